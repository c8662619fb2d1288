//! From a document as it is given to one that can be committed: chunks, names, relations, terms, vectors.

pub mod chunking;
mod definitions;
mod document;
mod prepare;

pub use document::{Document, GivenChunk, Part, PartKind, Rejected, Staged, triple};

use crate::index::control::{Cancelled, Control};
use crate::ingest::chunking::Chunking;
use crate::model::{Embed, Extract};
use crate::snapshot::Snapshot;
use crate::writer::Batch;

/// How documents are read. What it names goes into every document's fingerprint: another pipeline reads it anew.
#[derive(Clone, Copy, Default)]
pub struct Pipeline<'m> {
    /// How text is cut; none makes one chunk of a document.
    pub chunking: Option<Chunking>,
    /// Makes vectors; none stores none.
    pub embedder: Option<&'m dyn Embed>,
    /// Finds entities and relations; none finds none, and the graph has only what is asserted.
    pub extractor: Option<&'m dyn Extract>,
}

impl std::fmt::Debug for Pipeline<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.id())
    }
}

impl Pipeline<'_> {
    /// What tells this pipeline from another.
    #[must_use]
    pub fn id(&self) -> String {
        let chunking = self.chunking.map_or_else(|| "whole".to_owned(), |chunking| chunking.id());
        let embedder = self.embedder.map_or_else(String::new, |model| format!("{}={}", model.space(), model.model()));
        let extractor = self.extractor.map_or("", |model| model.model());
        format!("{chunking};{embedder};{extractor}")
    }

    /// Reads documents in parallel and puts them into `batch`, in the order given: of two with the same key the last
    /// one stays. Documents that `snapshot` has with the same fingerprint are not read.
    ///
    /// # Errors
    /// [`Cancelled`] when `control` says so; `batch` is then as it was. What is wrong with a document is no error: it
    /// is in [`Staged::rejected`], and the others go on.
    pub fn stage(
        &self,
        snapshot: &Snapshot,
        documents: Vec<Document>,
        batch: &mut Batch,
        control: &dyn Control,
    ) -> Result<Staged, Cancelled> {
        prepare::stage(self, snapshot, documents, batch, control)
    }
}
