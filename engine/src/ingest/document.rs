//! Documents and triples as a caller gives them.

use crate::segment::{StagedEnd, StagedRelation};
use hedgerow_format::limits;
use serde_json::{Map, Value};
use std::ops::Range;

/// A document as it is given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The caller's key: a document with the same key takes its place.
    pub key: String,
    /// Title; may be empty.
    pub title: String,
    /// The text; ignored where `chunks` are given.
    pub text: String,
    /// Where it came from, such as a file's path; may be empty.
    pub source: String,
    /// Media type; empty for `text/plain`.
    pub media_type: String,
    /// Anything else.
    pub metadata: Map<String, Value>,
    /// What its text consists of, ascending and without overlap: headings, pages, tables. May be empty; ignored where
    /// `chunks` are given. A chunk takes heading and page of the part that it begins in, and the last page
    /// from the part that it ends in.
    pub parts: Vec<Part>,
    /// Chunks that are already cut; the text is then their join by blank lines.
    pub chunks: Option<Vec<GivenChunk>>,
}

/// A part of a document's text: what stands under a heading, on a page, or in a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Its bytes.
    pub range: Range<usize>,
    /// The headings that it stands under, from the outermost, joined by ` > `; may be empty.
    pub heading: String,
    /// The page that it begins on, from 1; none where there are no pages.
    pub page: Option<u32>,
    /// What it is.
    pub kind: PartKind,
}

/// What a part of a document is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartKind {
    /// Running text, which may be cut and joined with what follows it.
    #[default]
    Text,
    /// Rows of a table with their header, which are a chunk by themselves.
    Table,
}

/// A chunk that is already cut.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GivenChunk {
    /// Its text.
    pub text: String,
    /// Anything else.
    pub metadata: Map<String, Value>,
}

impl Document {
    /// A document with this key, which still needs a text or chunks.
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        Self { key: key.into(), ..Self::default() }
    }

    /// With this title.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    /// With this text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        Self { text: text.into(), ..self }
    }
}

/// A record that was not taken, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Its key, or where it stands.
    pub key: String,
    /// What was expected and what was found.
    pub reason: String,
}

/// What became of the documents that were staged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Staged {
    /// Documents that are in the batch now.
    pub staged: u64,
    /// Documents that the store has just so.
    pub unchanged: u64,
    /// Keys that the batch held twice; the last one stays.
    pub duplicates: Vec<String>,
    /// Documents that were not taken.
    pub rejected: Vec<Rejected>,
}

/// A relation that is asserted: subject and object are names with their types, which may be empty.
///
/// # Errors
/// A sentence that says what is wrong: an end without a name, both ends the same, a weight that is not finite and above
/// zero, a name that is too long.
pub fn triple(
    subject: (&str, &str),
    predicate: &str,
    object: (&str, &str),
    weight: f32,
) -> Result<StagedRelation, String> {
    let (subject, object) = (end("subject", subject)?, end("object", object)?);
    if subject.key == object.key {
        return Err(format!("subject and object must differ, and both are {:?}", subject.name));
    }
    let predicate = predicate.trim();
    if predicate.is_empty() || predicate.len() > limits::NAME_BYTES {
        return Err(format!("predicate must have 1 to {} bytes, and has {}", limits::NAME_BYTES, predicate.len()));
    }
    if !(weight.is_finite() && weight > 0.0) {
        return Err(format!("weight must be finite and above 0, and is {weight}"));
    }
    Ok(StagedRelation { subject, predicate: predicate.to_owned(), object, weight, range: 0..0 })
}

fn end(what: &str, (name, kind): (&str, &str)) -> Result<StagedEnd, String> {
    StagedEnd::new(name, kind).map_err(|reason| format!("{what}: {reason}"))
}
