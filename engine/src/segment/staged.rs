//! Documents as they wait for a commit: everything derived from them is there, nothing has an id.

use hedgerow_format::Key;
use std::ops::Range;

/// A document with all that was read out of it.
#[derive(Clone, Debug, Default)]
pub struct StagedDocument {
    /// The caller's name for it.
    pub name: String,
    /// Hash over the document as it was given and the identity of what read it.
    pub fingerprint: [u8; 16],
    /// Title; may be empty.
    pub title: String,
    /// Where it came from; may be empty.
    pub source: String,
    /// Media type.
    pub media_type: String,
    /// A JSON object, or empty.
    pub metadata: String,
    /// The text.
    pub text: String,
    /// Its chunks, in order.
    pub chunks: Vec<StagedChunk>,
    /// Relations whose evidence is the document as a whole.
    pub relations: Vec<StagedRelation>,
}

impl StagedDocument {
    /// A document without text, as a source for relations that have no other.
    #[must_use]
    pub fn textless(name: impl Into<String>, fingerprint: [u8; 16]) -> Self {
        Self { name: name.into(), fingerprint, media_type: "application/x-relations".into(), ..Self::default() }
    }

    /// Bytes that staging it takes, roughly: what the memory budget counts.
    #[must_use]
    pub fn staged_bytes(&self) -> usize {
        let chunks = self.chunks.iter().map(|chunk| {
            let vectors: usize = chunk.vectors.iter().map(|vector| vector.components.len() * 4).sum();
            chunk.terms.len() * 48 + chunk.mentions.len() * 96 + vectors + 256
        });
        self.text.len() + self.metadata.len() + chunks.sum::<usize>() + self.relations.len() * 128 + 512
    }
}

/// A chunk of a staged document.
#[derive(Clone, Debug, Default)]
pub struct StagedChunk {
    /// Bytes of the document's text.
    pub range: Range<u32>,
    /// 0 text, 1 table, 2 record.
    pub kind: u32,
    /// Heading path; may be empty.
    pub heading: String,
    /// A JSON object, or empty.
    pub metadata: String,
    /// Entities in it, each once.
    pub mentions: Vec<StagedMention>,
    /// Relations that it states.
    pub relations: Vec<StagedRelation>,
    /// Its terms with their frequencies, title counted, each once.
    pub terms: Vec<(String, u16)>,
    /// Number of its terms, repeated ones included.
    pub length: u32,
    /// Its vectors, at most one a space.
    pub vectors: Vec<StagedVector>,
}

/// An entity in a chunk.
#[derive(Clone, Debug)]
pub struct StagedMention {
    /// Key of the entity.
    pub key: Key,
    /// Its name as it stands there.
    pub name: String,
    /// Its type; may be empty.
    pub kind: String,
    /// How it comes to stand there (`mention_flags`).
    pub flags: u16,
    /// Its occurrences, as bytes of the document's text.
    pub ranges: Vec<Range<u32>>,
}

/// A relation with one source.
#[derive(Clone, Debug)]
pub struct StagedRelation {
    /// Where it starts.
    pub subject: StagedEnd,
    /// Its label.
    pub predicate: String,
    /// Where it leads.
    pub object: StagedEnd,
    /// Finite and above zero.
    pub weight: f32,
    /// Bytes of the document's text that say it; empty where unknown.
    pub range: Range<u32>,
}

/// An end of a relation.
#[derive(Clone, Debug)]
pub struct StagedEnd {
    /// Key of the entity.
    pub key: Key,
    /// Its name.
    pub name: String,
    /// Its type; may be empty.
    pub kind: String,
}

/// A vector of a chunk in a space, normalised.
#[derive(Clone, Debug)]
pub struct StagedVector {
    /// Name of the space.
    pub space: String,
    /// Identity of the model.
    pub model: String,
    /// Its components.
    pub components: Vec<f32>,
}
