//! What becomes visible together.

use crate::segment::{StagedDocument, StagedExtraction, StagedRelation, StagedVector};
use std::collections::{BTreeMap, BTreeSet};

/// Changes that are committed together. Its size is the memory that a commit takes.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) documents: BTreeMap<String, StagedDocument>,
    pub(crate) deletions: BTreeSet<String>,
    pub(crate) relations: Vec<(Target, StagedRelation)>,
    pub(crate) vectors: Vec<(Target, StagedVector)>,
    pub(crate) extractions: Vec<(Target, StagedExtraction)>,
    staged_bytes: usize,
}

/// A document or one of its chunks, by the caller's key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Key of the document.
    pub document: String,
    /// Ordinal of the chunk; none for the document as a whole.
    pub chunk: Option<u32>,
}

impl Batch {
    /// Puts or replaces a document. Tells whether the batch already held one with this key: the last one wins.
    pub fn put(&mut self, document: StagedDocument) -> bool {
        self.staged_bytes += document.staged_bytes();
        self.deletions.remove(&document.name);
        let before = self.documents.insert(document.name.clone(), document);
        self.staged_bytes -= before.as_ref().map_or(0, StagedDocument::staged_bytes);
        before.is_some()
    }

    /// Deletes a document with everything that only it supports.
    pub fn delete(&mut self, document: &str) {
        if let Some(before) = self.documents.remove(document) {
            self.staged_bytes -= before.staged_bytes();
        }
        self.deletions.insert(document.to_owned());
    }

    /// Leaves a document as the store has it. Tells whether the batch was to put another one in its place.
    pub fn keep(&mut self, document: &str) -> bool {
        self.deletions.remove(document);
        let before = self.documents.remove(document);
        self.staged_bytes -= before.as_ref().map_or(0, StagedDocument::staged_bytes);
        before.is_some()
    }

    /// Adds a relation with its source. The same relation from the same source again changes nothing.
    pub fn relate(&mut self, source: Target, relation: StagedRelation) {
        self.staged_bytes += 256;
        self.relations.push((source, relation));
    }

    /// Sets the vector of a chunk in a space. For a whole document, it must have exactly one chunk.
    pub fn set_vector(&mut self, target: Target, vector: StagedVector) {
        self.staged_bytes += vector.components.len() * 4 + 128;
        self.vectors.push((target, vector));
    }

    /// Sets what an extractor found in a chunk: it takes the place of what the same extractor found there before. For a
    /// whole document, it must have exactly one chunk.
    pub fn set_extraction(&mut self, target: Target, extraction: StagedExtraction) {
        self.staged_bytes += extraction.staged_bytes() + 128;
        self.extractions.push((target, extraction));
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { documents, deletions, relations, vectors, extractions, staged_bytes: _ } = self;
        let no_documents = documents.is_empty() && deletions.is_empty();
        no_documents && relations.is_empty() && vectors.is_empty() && extractions.is_empty()
    }

    /// Bytes that it takes in memory, roughly.
    #[must_use]
    pub fn staged_bytes(&self) -> usize {
        self.staged_bytes
    }
}
