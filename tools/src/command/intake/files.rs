//! Documents in files: a file of JSON lines has one a line, any other is one.

use std::fs::{self, File};
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use hedgerow::{Document, GivenChunk};
use hedgerow_format::limits;

use crate::command::intake::feed::{Feed, Origin};
use crate::command::intake::reader::{Reader, Request, stem};
use crate::failure::Failure;
use crate::read::document::{Format, Parsed, unread_kind};
use crate::read::folder::{FileKind, FoundFile};
use crate::read::lines::{ChunkRecord, DocumentRecord, LineError, Lines, document_from_json};
use crate::read::text::{Unreadable, decode};
use crate::read::{markdown, plain};

/// Reads files one by one.
#[derive(Debug, Default)]
pub struct Files {
    /// What encrypted documents open with.
    pub password: Option<String>,
    /// Who reads what is more than text.
    pub reader: Reader,
}

/// Why a text file is no document, or what it is instead.
enum NoText {
    Reason(String),
    Document(Format),
}

impl Files {
    /// Reads a file; what cannot be read is rejected.
    ///
    /// # Errors
    /// [`Failure::Interrupted`]; [`Failure::Io`] when a file of JSON lines breaks off.
    pub fn read(&mut self, file: &FoundFile, feed: &mut Feed<'_>) -> Result<(), Failure> {
        let origin = Origin { file: file.path.to_string_lossy().into(), line: None };
        let read = match file.kind {
            FileKind::JsonLines => {
                return match Lines::open(&file.path) {
                    Ok(lines) => read_lines(lines, &file.path, feed),
                    Err(error) => feed.reject(origin.rejected(format!("the file cannot be opened: {error}"))),
                };
            }
            FileKind::Document(format) => self.document(file, format, feed),
            FileKind::Text => match text(&file.path) {
                Ok(text) => Ok(plain::read(&text)),
                Err(NoText::Document(format)) => self.document(file, format, feed),
                Err(NoText::Reason(reason)) => Err(reason),
            },
        };
        match read {
            Ok(parsed) => {
                feed.read(fs::metadata(&file.path).map_or(0, |metadata| metadata.len()));
                feed.document(origin.clone(), document(parsed, &file.key, &origin.file))
            }
            Err(reason) => feed.reject(origin.rejected(reason)),
        }
    }

    fn document(&mut self, file: &FoundFile, format: Format, feed: &Feed<'_>) -> Result<Parsed, String> {
        regular(&file.path, format.bytes_max())?;
        let path = file.path.to_str().ok_or("its path is not UTF-8; rename it")?;
        let request = Request { path, format, name: stem(&file.key), password: self.password.as_deref() };
        self.reader.read(&request, || feed.is_cancelled())
    }
}

/// Reads the documents of an open file of JSON lines.
///
/// # Errors
/// [`Failure::Interrupted`]; [`Failure::Io`] when the file breaks off.
pub fn read_lines<R: BufRead>(lines: Lines<R>, path: &Path, feed: &mut Feed<'_>) -> Result<(), Failure> {
    let file: Arc<str> = path.to_string_lossy().into();
    for line in lines {
        let line = match line {
            Ok(line) => line,
            Err(LineError::Io { source, .. }) => return Err(Failure::io("read", path)(source)),
            Err(error @ (LineError::TooLong { line } | LineError::NotText { line, .. })) => {
                feed.reject(Origin { file: file.clone(), line: Some(line) }.rejected(error.to_string()))?;
                continue;
            }
        };
        feed.read(line.text.len() as u64 + 1);
        let origin = Origin { file: file.clone(), line: Some(line.number) };
        match document_from_json(&line.text) {
            Ok(record) => feed.document(origin, record_document(record, &file))?,
            Err(reason) => feed.reject(origin.rejected(reason))?,
        }
    }
    Ok(())
}

/// The document that a text is; a title that stands in the text is taken out of it, as it counts by itself.
#[must_use]
pub fn text_document(kind: FileKind, key: &str, source: &str, text: &str) -> Document {
    let parsed = match kind {
        // Tables whose headers would repeat without end are left as they stand.
        FileKind::Document(_) => markdown::read(text, stem(key)).unwrap_or_else(|_| plain::read(text)),
        _ => plain::read(text),
    };
    document(parsed, key, source)
}

fn document(parsed: Parsed, key: &str, source: &str) -> Document {
    let Parsed { title, text, parts, metadata, media_type } = parsed;
    let (key, source) = (key.to_owned(), source.to_owned());
    Document { key, title, text, source, media_type, metadata, parts, chunks: None }
}

/// The text of a file.
fn text(path: &Path) -> Result<String, NoText> {
    let most = limits::DOCUMENT_BYTES as u64;
    regular(path, most).map_err(NoText::Reason)?;
    // The file may grow meanwhile, or tell no length at all.
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
    read.map_err(|error| NoText::Reason(unreadable(&error)))?;
    if bytes.len() as u64 > most {
        return Err(NoText::Reason(too_long(most, bytes.len() as u64)));
    }
    if let Some(format) = Format::of_bytes(&bytes) {
        return Err(NoText::Document(format));
    }
    decode(&bytes).map_err(|error| {
        let known = unread_kind(path, &bytes).filter(|_| matches!(error, Unreadable::Binary { .. }));
        NoText::Reason(known.map_or_else(|| error.to_string(), |refusal| refusal.to_string()))
    })
}

fn regular(path: &Path, most: u64) -> Result<(), String> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(&error))?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if metadata.len() > most { Err(too_long(most, metadata.len())) } else { Ok(()) }
}

fn unreadable(error: &io::Error) -> String {
    format!("the file cannot be read: {error}")
}

fn too_long(most: u64, found: u64) -> String {
    format!("a document has at most {most} bytes, and the file has {found}; split it")
}

fn record_document(record: DocumentRecord, source: &str) -> Document {
    let DocumentRecord { key, title, text, metadata, chunks } = record;
    let given = |chunk: ChunkRecord| GivenChunk { text: chunk.text, metadata: chunk.metadata };
    let chunks = chunks.map(|chunks| chunks.into_iter().map(given).collect());
    Document { key, title, text, metadata, chunks, source: source.to_owned(), ..Document::default() }
}
