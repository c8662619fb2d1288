//! What a file is read as, and what every reader makes of it: title, text, parts, metadata, or a refusal.

use std::path::Path;

use hedgerow::Part;
use serde_json::{Map, Value};

use crate::read::composer::one_line;
use crate::read::text::{Unreadable, decode};
use crate::read::{archive, delimited, html, mail, markdown, marked, rtf};

/// A document as a reader found it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// Its title; may be empty.
    pub title: String,
    /// Its text.
    pub text: String,
    /// What stands under which heading, on which page, in a table.
    pub parts: Vec<Part>,
    /// Anything else.
    pub metadata: Map<String, Value>,
    /// Its media type.
    pub media_type: String,
}

/// The formats that are more than plain text, and are read in a process of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Format {
    /// `.md`, `.markdown`
    Markdown,
    /// `.rst`
    Rst,
    /// `.org`
    Org,
    /// `.csv`
    Csv,
    /// `.tsv`
    Tsv,
    /// `.html`, `.htm`, `.xhtml`
    Html,
    /// `.docx`
    Docx,
    /// `.odt`
    Odt,
    /// `.pptx`
    Pptx,
    /// `.epub`
    Epub,
    /// `.eml`
    Mail,
    /// `.rtf`
    Rtf,
    /// `.pdf`
    Pdf,
}

/// Bytes of a file that is more than text, at most: such files hold pictures beside their text.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

impl Format {
    /// Bytes of a file of this format at most: of what is all text as many as a document has.
    #[must_use]
    pub fn bytes_max(self) -> u64 {
        match self {
            Self::Markdown | Self::Rst | Self::Org => hedgerow_format::limits::DOCUMENT_BYTES as u64,
            _ => FILE_BYTES_MAX,
        }
    }
}

/// Why a file does not become a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It is text of no encoding.
    #[error(transparent)]
    Text(#[from] Unreadable),
    /// It does not keep to the rules of its format.
    #[error("this is no whole {format} file: {what}; export or download it again")]
    Broken {
        /// The format.
        format: &'static str,
        /// What was found.
        what: String,
    },
    /// It holds no words.
    #[error("the {format} file holds no words")]
    NoWords {
        /// The format.
        format: &'static str,
    },
    /// It is a PDF of pictures.
    #[error(
        "the PDF has no text layer on its {pages} pages: it is scanned, or its letters are drawn; \
         run a text recognition such as `ocrmypdf` over it first"
    )]
    NoTextLayer {
        /// How many pages it has.
        pages: usize,
    },
    /// It needs a password, or another one.
    #[error("the {format} file is encrypted and does not open with {}; name its password with --password", given(*is_given))]
    Password {
        /// The format.
        format: &'static str,
        /// Whether a password was named.
        is_given: bool,
    },
    /// Its encryption is not known.
    #[error("the {format} file is encrypted in a way that is not read; save it without a password")]
    Encryption {
        /// The format.
        format: &'static str,
    },
    /// It would become too much text.
    #[error(
        "its text has more than {} bytes, the most that a document may have; split it",
        hedgerow_format::limits::DOCUMENT_BYTES
    )]
    TooLong,
    /// It unpacks to too much, or from too little.
    #[error("the archive is refused: {what}")]
    Bomb {
        /// The limit that it exceeds.
        what: String,
    },
    /// It is of a format that is not read.
    #[error("{what} are not read; {instead}")]
    Unsupported {
        /// The format.
        what: &'static str,
        /// What to do.
        instead: &'static str,
    },
}

fn given(is_given: bool) -> &'static str {
    if is_given { "the password that was given" } else { "an empty password" }
}

impl Format {
    /// The format that an ending of a file's name, in small letters, stands for.
    #[must_use]
    pub fn of_ending(ending: &str) -> Option<Format> {
        Some(match ending {
            "md" | "markdown" => Format::Markdown,
            "rst" => Format::Rst,
            "org" => Format::Org,
            "csv" => Format::Csv,
            "tsv" | "tab" => Format::Tsv,
            "html" | "htm" | "xhtml" => Format::Html,
            "docx" => Format::Docx,
            "odt" => Format::Odt,
            "pptx" => Format::Pptx,
            "epub" => Format::Epub,
            "eml" => Format::Mail,
            "rtf" => Format::Rtf,
            "pdf" => Format::Pdf,
            _ => return None,
        })
    }

    /// The format that the first bytes of a file tell, whatever its name says.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Option<Format> {
        let start = bytes.get(..bytes.len().min(1024)).unwrap_or_default();
        if start.starts_with(b"{\\rtf") {
            return Some(Format::Rtf);
        }
        start.windows(5).any(|window| window == b"%PDF-").then_some(Format::Pdf)
    }

    /// Reads a file of this format; its first bytes count more than its name. `name` is the title where it has none.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn read(self, bytes: &[u8], name: &str, password: Option<&str>) -> Result<Parsed, Refusal> {
        if bytes.is_empty() {
            return Err(Unreadable::Empty.into());
        }
        let format = Format::of_bytes(bytes).unwrap_or(self);
        let mut parsed = match format {
            Format::Markdown => markdown::read(&decoded(bytes)?, name)?,
            Format::Rst => marked::rst(&decoded(bytes)?, name)?,
            Format::Org => marked::org(&decoded(bytes)?, name)?,
            Format::Csv => delimited::read(&decoded(bytes)?, name, false)?,
            Format::Tsv => delimited::read(&decoded(bytes)?, name, true)?,
            Format::Html => html::read(bytes)?,
            Format::Docx => archive::docx::read(bytes)?,
            Format::Odt => archive::odt::read(bytes)?,
            Format::Pptx => archive::pptx::read(bytes)?,
            Format::Epub => archive::epub::read(bytes)?,
            Format::Mail => mail::read(bytes)?,
            Format::Rtf => rtf::read(bytes)?,
            Format::Pdf => read_pdf(bytes, password)?,
        };
        parsed.title = shortened(&parsed.title);
        if parsed.text.trim().is_empty() {
            if parsed.title.is_empty() {
                return Err(Refusal::NoWords { format: format.name() });
            }
            // A title alone is still worth finding.
            parsed.text.clone_from(&parsed.title);
            parsed.parts.clear();
        }
        if parsed.title.is_empty() {
            name.clone_into(&mut parsed.title);
        }
        Ok(parsed)
    }

    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::Markdown => "Markdown",
            Format::Rst => "RST",
            Format::Org => "Org",
            Format::Csv => "CSV",
            Format::Tsv => "TSV",
            Format::Html => "HTML",
            Format::Docx => "DOCX",
            Format::Odt => "ODT",
            Format::Pptx => "PPTX",
            Format::Epub => "EPUB",
            Format::Mail => "e-mail",
            Format::Rtf => "RTF",
            Format::Pdf => "PDF",
        }
    }
}

#[cfg(feature = "pdf")]
fn read_pdf(bytes: &[u8], password: Option<&str>) -> Result<Parsed, Refusal> {
    crate::read::pdf::read(bytes, password)
}

#[cfg(not(feature = "pdf"))]
fn read_pdf(_: &[u8], _: Option<&str>) -> Result<Parsed, Refusal> {
    Err(Refusal::Unsupported { what: "PDF files", instead: "this program was built without its feature `pdf`" })
}

fn decoded(bytes: &[u8]) -> Result<String, Refusal> {
    decode(bytes).map_err(|error| {
        let known = unread_kind(Path::new(""), bytes).filter(|_| matches!(error, Unreadable::Binary { .. }));
        known.unwrap_or(Refusal::Text(error))
    })
}

/// A title that fits into a name.
fn shortened(title: &str) -> String {
    let title = one_line(title);
    match title.char_indices().nth(TITLE_CHARACTERS_MAX) {
        Some((end, _)) => title.get(..end).unwrap_or_default().to_owned(),
        None => title,
    }
}

/// Characters of a title: of the longest ones, each takes four bytes of the 4 KiB that a name may have.
const TITLE_CHARACTERS_MAX: usize = 1000;

/// The endings of the files that are read, in a sentence.
pub const ENDINGS_READ: &str = ".txt, .md, .markdown, .rst, .org, .csv, .tsv, .html, .htm, .xhtml, \
     .docx, .odt, .pptx, .epub, .eml, .rtf, .pdf, .jsonl or .ndjson";

/// What a binary file is that is not read, told by its first bytes or by the ending of its name.
#[must_use]
pub fn unread_kind(path: &Path, start: &[u8]) -> Option<Refusal> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    let by_ending = ENDINGS.iter().find(|(endings, ..)| endings.contains(&ending.as_str()));
    let by_bytes = SIGNATURES.iter().find(|(signature, ..)| start.starts_with(signature));
    let by_ending = by_ending.map(|(_, what, instead)| (*what, *instead));
    let (what, instead) = by_ending.or_else(|| by_bytes.map(|(_, what, instead)| (*what, *instead)))?;
    Some(Refusal::Unsupported { what, instead })
}

const OCR: &str = "run a text recognition over it and ingest what it found";
const UNPACK: &str = "unpack it and ingest the folder";
const CONVERT: &str = "save it in its new format or as PDF first";

/// First bytes of files that are not read.
const SIGNATURES: [(&[u8], &str, &str); 13] = [
    (b"\x89PNG\r\n\x1a\n", "pictures (PNG)", OCR),
    (b"\xff\xd8\xff", "pictures (JPEG)", OCR),
    (b"GIF8", "pictures (GIF)", OCR),
    (b"II*\0", "pictures (TIFF)", OCR),
    (b"MM\0*", "pictures (TIFF)", OCR),
    (b"\x1f\x8b", "gzip files", UNPACK),
    (b"BZh", "bzip2 files", UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "7z archives", UNPACK),
    (b"\x28\xb5\x2f\xfd", "zstd files", UNPACK),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old or encrypted Office files (doc, xls, ppt, msg)", CONVERT),
    (b"\x7fELF", "programs", "name documents"),
    (b"PK\x03\x04", "archives of this name (ZIP)", UNPACK),
    (b"SQLite format 3\0", "SQLite databases", "export its tables as CSV"),
];

/// Endings of files that are not read though they may hold text.
const ENDINGS: [(&[&str], &str, &str); 3] = [
    (&["xlsx", "ods", "xls", "numbers"], "spreadsheets", "save each sheet as CSV"),
    (&["doc", "ppt", "pages", "key", "odp"], "files of this office format", CONVERT),
    (&["zip", "tar", "rar"], "archives", UNPACK),
];
