//! Documents in files: a text file is one, a file of JSON lines has one a line; and what a document's title is.

use std::fs::{self, File};
use std::io::{BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use hedgerow::{Document, GivenChunk};
use hedgerow_format::limits;
use serde_json::{Map, Value};

use crate::command::intake::feed::{Feed, Origin};
use crate::failure::Failure;
use crate::read::folder::{FileKind, FoundFile};
use crate::read::lines::{ChunkRecord, DocumentRecord, LineError, Lines, document_from_json};
use crate::read::text::decode;

/// Reads a file of text or of JSON lines; what cannot be read is rejected.
///
/// # Errors
/// [`Failure::Interrupted`]; [`Failure::Io`] when a file of JSON lines breaks off.
pub fn read_file(file: &FoundFile, feed: &mut Feed<'_>) -> Result<(), Failure> {
    let origin = Origin { file: file.path.to_string_lossy().into(), line: None };
    if file.kind == FileKind::JsonLines {
        return match Lines::open(&file.path) {
            Ok(lines) => read_lines(lines, &file.path, feed),
            Err(error) => feed.reject(origin.rejected(format!("the file cannot be opened: {error}"))),
        };
    }
    match read_text(&file.path) {
        Ok((text, bytes)) => {
            feed.read(bytes);
            feed.document(origin.clone(), text_document(file.kind, &file.key, &origin.file, &text))
        }
        Err(reason) => feed.reject(origin.rejected(reason)),
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

/// The document that a text file is; a title that stands in the text is taken out of it, as it counts by itself.
#[must_use]
pub fn text_document(kind: FileKind, key: &str, source: &str, text: &str) -> Document {
    let document = match kind {
        FileKind::Markdown => markdown_document(key, text),
        _ => plain_document(text),
    };
    Document { key: key.to_owned(), source: source.to_owned(), ..document }
}

fn plain_document(text: &str) -> Document {
    let (title, body) = plain_title(text).unwrap_or_else(|| (String::new(), text.to_owned()));
    let text = first_with_words([&body, text]);
    Document { title, text, media_type: "text/plain".to_owned(), ..Document::default() }
}

fn markdown_document(key: &str, text: &str) -> Document {
    let (front, text) = front_matter(text).map_or((None, text), |(front, text)| (Some(front), text));
    let heading = markdown_title(text);
    let (title, body) = match (front.and_then(front_title), heading) {
        // A heading that only says the title again would count twice.
        (Some(title), Some((heading, body))) if title == heading => (title, body),
        (Some(title), _) => (title, text.to_owned()),
        (None, Some((heading, body))) => (heading, body),
        (None, None) => (stem(key), text.to_owned()),
    };
    let metadata = front.map(|front| ("front_matter".to_owned(), Value::from(front)));
    Document {
        // A heading alone is still worth finding.
        text: first_with_words([&body, text, &title]),
        title,
        media_type: "text/markdown".to_owned(),
        metadata: metadata.into_iter().collect::<Map<_, _>>(),
        ..Document::default()
    }
}

fn first_with_words<const N: usize>(texts: [&str; N]) -> String {
    texts.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default().to_owned()
}

/// What stands between a first line `---` and the next line `---` or `...`, and the text after it. A blank line after the
/// first one makes it a rule, as it does elsewhere.
fn front_matter(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" || rest.lines().next()?.trim().is_empty() {
        return None;
    }
    let mut offset = 0;
    for line in rest.split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            let (front, after) = (rest.get(..offset)?, rest.get(offset + line.len()..)?);
            return Some((front.trim_end(), without_blank_lines(after)));
        }
        offset += line.len();
    }
    None
}

/// The value of `title:` where it is on one line, without its quotes.
fn front_title(front: &str) -> Option<String> {
    let value = front.lines().find_map(|line| line.strip_prefix("title:"))?.trim();
    let quoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    let title = quoted.unwrap_or(value).trim();
    let is_title = !title.is_empty() && !title.starts_with(['|', '>']);
    is_title.then(|| title.to_owned())
}

const TITLE_CHARACTERS_MAX: usize = 80;

/// The text of a file and how many bytes it had, or why it is not read.
fn read_text(path: &Path) -> Result<(String, u64), String> {
    let unreadable = |error| format!("the file cannot be read: {error}");
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let too_long = |found: u64| {
        let most = limits::DOCUMENT_BYTES;
        format!("a document has at most {most} bytes, and the file has {found}; split it")
    };
    let most = limits::DOCUMENT_BYTES as u64;
    if metadata.len() > most {
        return Err(too_long(metadata.len()));
    }
    // The file may grow meanwhile, or tell no length at all.
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > most {
        return Err(too_long(bytes.len() as u64));
    }
    let text = decode(&bytes).map_err(|error| error.to_string())?;
    Ok((text, bytes.len() as u64))
}

fn record_document(record: DocumentRecord, source: &str) -> Document {
    let DocumentRecord { key, title, text, metadata, chunks } = record;
    let given = |chunk: ChunkRecord| GivenChunk { text: chunk.text, metadata: chunk.metadata };
    let chunks = chunks.map(|chunks| chunks.into_iter().map(given).collect());
    Document { key, title, text, metadata, chunks, source: source.to_owned(), ..Document::default() }
}

/// The first heading of the highest level outside of code, and the text without its line. Of headings with a line of `=`
/// below them only the one that opens the text counts.
fn markdown_title(text: &str) -> Option<(String, String)> {
    if let Some(underlined) = underlined_title(text) {
        return Some(underlined);
    }
    let (mut offset, mut is_code) = (0, false);
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            is_code = !is_code;
        }
        if let Some(heading) = line.strip_prefix("# ").filter(|_| !is_code) {
            let heading = without_closing(heading.trim());
            if heading.is_empty() {
                return None;
            }
            let (before, after) = (text.get(..offset)?, text.get(offset + line.len()..)?);
            let body = if before.trim().is_empty() {
                without_blank_lines(after).to_owned()
            } else {
                format!("{before}{after}")
            };
            return Some((heading.to_owned(), body));
        }
        offset += line.len();
    }
    None
}

fn underlined_title(text: &str) -> Option<(String, String)> {
    let (first, rest) = without_blank_lines(text).split_once('\n')?;
    let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
    let line = line.trim();
    let is_heading = !line.is_empty() && line.bytes().all(|byte| byte == b'=') && !first.starts_with('#');
    is_heading.then(|| (first.trim().to_owned(), without_blank_lines(after).to_owned()))
}

/// A heading may be closed by signs that mean nothing: `# Title #`.
fn without_closing(heading: &str) -> &str {
    let open = heading.trim_end_matches('#');
    if open.ends_with(char::is_whitespace) { open.trim_end() } else { heading }
}

/// A short first line with a blank line after it that does not end as a sentence does, and the text after it.
fn plain_title(text: &str) -> Option<(String, String)> {
    let (first, rest) = without_blank_lines(text).split_once('\n')?;
    let (second, _) = rest.split_once('\n')?;
    let title = first.trim();
    let is_title = second.trim().is_empty()
        && title.chars().count() <= TITLE_CHARACTERS_MAX
        && !title.ends_with(['.', ',', ';', ':', '!', '?']);
    is_title.then(|| (title.to_owned(), without_blank_lines(rest).to_owned()))
}

fn without_blank_lines(mut text: &str) -> &str {
    while let Some((line, rest)) = text.split_once('\n')
        && line.trim().is_empty()
    {
        text = rest;
    }
    text
}

/// The last part of a key without its ending.
fn stem(key: &str) -> String {
    let name = key.rsplit('/').next().unwrap_or(key);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned()
}

#[cfg(test)]
mod tests {
    use crate::command::intake::files::text_document;
    use crate::read::folder::FileKind;

    fn check(kind: FileKind, text: &str, title: &str, body: &str) {
        let document = text_document(kind, "a/notes.v2.md", "a/notes.v2.md", text);
        assert_eq!((document.title.as_str(), document.text.as_str()), (title, body), "{text:?}");
    }

    #[test]
    fn the_title_of_markdown_is_its_first_heading_or_the_name_of_the_file() {
        for (text, title, body) in [
            ("# Gate Scheduler\n\nIt plans.\n", "Gate Scheduler", "It plans.\n"),
            ("\n# C# #\r\nText", "C#", "Text"),
            ("Intro\n# Late\nText", "Late", "Intro\nText"),
            ("```sh\n# comment\n```\n# Real\nx", "Real", "```sh\n# comment\n```\nx"),
            ("## Lower\nText", "notes.v2", "## Lower\nText"),
            ("# Alone", "Alone", "# Alone"),
            ("\nGate Scheduler\r\n=====\r\n\r\nIt plans.\n# Part", "Gate Scheduler", "It plans.\n# Part"),
            ("Text\n\nLate\n====\n", "notes.v2", "Text\n\nLate\n====\n"),
        ] {
            check(FileKind::Markdown, text, title, body);
        }
    }

    #[test]
    fn front_matter_is_metadata_and_gives_the_title() {
        for (text, title, body) in [
            (
                "---\ntitle: \"The Wall\"\nyear: 1979\n---\n\n# Side one\nIn the flesh",
                "The Wall",
                "# Side one\nIn the flesh",
            ),
            ("---\r\ntitle: 'The Wall'\r\n...\r\n# The Wall\r\nText", "The Wall", "Text"),
            ("---\ntags: [a]\n---\n# Heading\nText", "Heading", "Text"),
            ("---\ntitle: >\n  folded\n---\nText", "notes.v2", "Text"),
            ("---\ntitle: Alone\n---\n", "Alone", "Alone"),
            ("---\n\nA rule.\n\n---\nText", "notes.v2", "---\n\nA rule.\n\n---\nText"),
            ("---\nnever: closed\n", "notes.v2", "---\nnever: closed\n"),
        ] {
            check(FileKind::Markdown, text, title, body);
        }
        let text = "---\ntitle: A\nyear: 1979\n---\nText";
        let document = text_document(FileKind::Markdown, "a.md", "a.md", text);
        assert_eq!(document.metadata["front_matter"], "title: A\nyear: 1979");
        assert!(text_document(FileKind::Text, "a.txt", "a.txt", text).metadata.is_empty());
    }

    #[test]
    fn the_title_of_plain_text_is_a_short_first_line_above_a_blank_one() {
        for (text, title, body) in [
            ("\nThe Wall\r\n\r\nA rock opera.", "The Wall", "A rock opera."),
            ("It is a sentence.\n\nMore.", "", "It is a sentence.\n\nMore."),
            ("One line\nand the next\n", "", "One line\nand the next\n"),
            ("One line", "", "One line"),
            ("Alone\n\n", "Alone", "Alone\n\n"),
        ] {
            check(FileKind::Text, text, title, body);
        }
        let long = format!("{}\n\nText", "x".repeat(81));
        check(FileKind::Text, &long, "", &long);
    }
}
