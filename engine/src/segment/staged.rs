//! Documents as they wait for a commit: everything derived from them is there, nothing has an id.

use crate::distance;
use crate::segment::{StagedEdgeList, StagedExtraction};
use hedgerow_format::segment::mention_flags;
use hedgerow_format::{ChunkId, DocumentId, Key, limits, name};
use std::collections::BTreeSet;
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
    /// Graphs that the document states as a whole, one a label.
    pub edge_lists: Vec<StagedEdgeList>,
}

/// A staged document that has its ids.
#[derive(Clone, Debug)]
pub struct Numbered {
    /// Its id.
    pub id: DocumentId,
    /// Id of its first chunk; the others follow.
    pub first_chunk: ChunkId,
    /// The document.
    pub document: StagedDocument,
}

impl StagedDocument {
    /// A document without text, as a source for relations that have no other.
    #[must_use]
    pub fn textless(name: impl Into<String>, fingerprint: [u8; 16]) -> Self {
        Self { name: name.into(), fingerprint, media_type: "application/x-relations".into(), ..Self::default() }
    }

    /// Whether it can be written: what a pipeline makes always can.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let names =
            [("key", &self.name), ("title", &self.title), ("source", &self.source), ("media type", &self.media_type)];
        for (what, name) in names {
            within(what, name.len(), limits::NAME_BYTES)?;
        }
        if self.name.is_empty() {
            return Err("the key is empty".into());
        }
        object(&self.metadata)?;
        within("text", self.text.len(), limits::DOCUMENT_BYTES)?;
        if self.chunks.len() > limits::DOCUMENT_CHUNKS {
            return Err(format!("it has {} chunks, and may have {}", self.chunks.len(), limits::DOCUMENT_CHUNKS));
        }
        let text_bytes = u32::try_from(self.text.len()).map_err(|error| error.to_string())?;
        let mut start = 0;
        for (ordinal, chunk) in self.chunks.iter().enumerate() {
            let place = usize::try_from(chunk.range.start).ok().zip(usize::try_from(chunk.range.end).ok());
            let text = place.and_then(|(start, end)| self.text.get(start..end));
            if text.is_none_or(str::is_empty) || chunk.range.start < start || chunk.kind > 2 {
                return Err(format!("chunk {ordinal} has a place that cannot be: {:?}", chunk.range));
            }
            start = chunk.range.start;
            chunk.check(text_bytes).map_err(|reason| format!("chunk {ordinal}: {reason}"))?;
        }
        let mut labels = BTreeSet::new();
        for list in &self.edge_lists {
            list.check()?;
            if !labels.insert(&list.predicate) {
                return Err(format!("there are two edge lists with the label {:?}", list.predicate));
            }
        }
        self.relations.iter().try_for_each(StagedRelation::check)
    }

    /// Bytes that staging it takes, roughly: what the memory budget counts.
    #[must_use]
    pub fn staged_bytes(&self) -> usize {
        let chunks = self.chunks.iter().map(|chunk| {
            let vectors: usize = chunk.vectors.iter().map(|vector| vector.components.len() * 4).sum();
            let extracted: usize = chunk.extractions.iter().map(StagedExtraction::staged_bytes).sum();
            chunk.terms.len() * 48 + chunk.mentions.len() * 96 + vectors + extracted + 256
        });
        let lists: usize = self.edge_lists.iter().map(StagedEdgeList::staged_bytes).sum();
        self.text.len() + self.metadata.len() + chunks.sum::<usize>() + self.relations.len() * 128 + lists + 512
    }
}

pub(super) fn within(what: &str, length: usize, limit: usize) -> Result<(), String> {
    if length <= limit { Ok(()) } else { Err(format!("{what} has {length} bytes, and may have {limit}")) }
}

/// Metadata is a JSON object, or empty.
fn object(metadata: &str) -> Result<(), String> {
    within("metadata", metadata.len(), limits::METADATA_BYTES)?;
    if metadata.is_empty() || (metadata.starts_with('{') && metadata.ends_with('}')) {
        return Ok(());
    }
    Err("metadata is not a JSON object".into())
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
    /// What extractors found in it beside that, at most one extraction an extractor.
    pub extractions: Vec<StagedExtraction>,
}

impl StagedChunk {
    fn check(&self, text_bytes: u32) -> Result<(), String> {
        within("heading", self.heading.len(), limits::NAME_BYTES)?;
        object(&self.metadata)?;
        let (mut keys, mut terms, mut spaces) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for mention in &self.mentions {
            let named = Key::of_entity(&name::name_key_text(&mention.name)) == mention.key;
            let placed = mention.ranges.iter().all(|range| range.start < range.end && range.end <= text_bytes);
            within("a name", mention.name.len(), limits::NAME_BYTES)?;
            within("a type", mention.kind.len(), limits::NAME_BYTES)?;
            let flagged = mention.flags != 0 && mention.flags & !mention_flags::ALL == 0;
            if !named || !placed || !flagged || !keys.insert(mention.key) {
                return Err(format!("the mention of {:?} is malformed or there twice", mention.name));
            }
        }
        for (term, frequency) in &self.terms {
            if term.is_empty() || *frequency == 0 || !terms.insert(term) {
                return Err(format!("the term {term:?} is empty or there twice"));
            }
        }
        for vector in &self.vectors {
            vector.check()?;
            if !spaces.insert(&vector.space) {
                return Err(format!("there are two vectors in the space {}", vector.space));
            }
        }
        let mut extractors = BTreeSet::new();
        for extraction in &self.extractions {
            extraction.check()?;
            if !extractors.insert(&extraction.extractor) {
                return Err(format!("there are two extractions by {}", extraction.extractor));
            }
        }
        self.relations.iter().try_for_each(StagedRelation::check)
    }
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

impl StagedMention {
    /// How the entity is written there.
    pub(crate) fn spelling(&self) -> (Key, &str, &str) {
        (self.key, &self.name, &self.kind)
    }
}

/// A relation with one source.
#[derive(Clone, Debug, PartialEq)]
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

impl StagedRelation {
    /// Whether it can be written.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        for end in [&self.subject, &self.object] {
            end.check()?;
        }
        within("a predicate", self.predicate.len(), limits::NAME_BYTES)?;
        let weighed = self.weight.is_finite() && self.weight > 0.0;
        if !weighed || self.range.start > self.range.end || self.predicate.is_empty() {
            return Err(format!("the relation {:?} has no label, weight or place", self.predicate));
        }
        Ok(())
    }
}

/// An end of a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedEnd {
    /// Key of the entity.
    pub key: Key,
    /// Its name.
    pub name: String,
    /// Its type; may be empty.
    pub kind: String,
}

impl StagedEnd {
    /// An entity by its name, with a type or an empty one.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the name.
    pub fn new(name: &str, kind: &str) -> Result<Self, String> {
        let key = name::name_key_text(name);
        if key.is_empty() {
            return Err(format!("a name must have letters or digits that are no article alone, and is {name:?}"));
        }
        within("a name", name.len(), limits::NAME_BYTES)?;
        within("a type", kind.len(), limits::NAME_BYTES)?;
        Ok(Self { key: Key::of_entity(&key), name: name.trim().to_owned(), kind: kind.to_owned() })
    }

    pub(super) fn check(&self) -> Result<(), String> {
        within("a name", self.name.len(), limits::NAME_BYTES)?;
        within("a type", self.kind.len(), limits::NAME_BYTES)?;
        let named = Key::of_entity(&name::name_key_text(&self.name)) == self.key;
        if named { Ok(()) } else { Err(format!("the name {:?} does not give its key", self.name)) }
    }

    /// How the entity is written there.
    pub(crate) fn spelling(&self) -> (Key, &str, &str) {
        (self.key, &self.name, &self.kind)
    }
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

impl StagedVector {
    /// Whether it can be written.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        within("the name of a space", self.space.len(), limits::NAME_BYTES)?;
        within("the name of a model", self.model.len(), limits::NAME_BYTES)?;
        // A vector of length 1 to the precision of f32 is left as it is.
        let length = distance::dot(&self.components, &self.components);
        let is_unit = (length - 1.0).abs() <= 1e-3;
        if !is_unit || self.space.is_empty() {
            return Err(format!(
                "a vector in the space {:?} is not normalised: its squared length is {length}",
                self.space
            ));
        }
        Ok(())
    }
}
