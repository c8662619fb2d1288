//! One segment file of a store that is salvaged: its rows and their ids, as far as they can be read.

use crate::maintain::salvage::Lost;
use crate::storage::Wreck;
use hedgerow_format::manifest::SegmentEntry;
use hedgerow_format::section::SectionKind;
use hedgerow_format::segment::{self, ChunkRow, DocumentRow, EvidenceRow, NO_CHUNK, SpaceRow};
use roaring::RoaringBitmap;

/// An open segment file, and the first ids of its documents and chunks; none where nothing tells.
#[derive(Debug)]
pub(super) struct Part {
    pub wreck: Wreck,
    first_document: Option<u32>,
    first_chunk: Option<u32>,
}

impl Part {
    /// A segment whose ids the manifest tells.
    pub fn named(wreck: Wreck, entry: &SegmentEntry) -> Self {
        Self { wreck, first_document: Some(entry.first_document), first_chunk: Some(entry.first_chunk) }
    }

    /// A segment that no manifest names. Its ids are those that it lists, or those that its vectors and the sources of its
    /// relations agree on; `next_chunk` is tried where it has no vectors.
    pub fn guessed(wreck: Wreck, next_chunk: u32) -> Self {
        let mut part = Self { wreck, first_document: None, first_chunk: None };
        let listed = |kind| part.wreck.number(kind, 0);
        let (document, chunk) = (listed(SectionKind::DocumentIds), listed(SectionKind::ChunkIds));
        let by_vectors = chunk.or_else(|| part.first_chunk_by_vectors());
        let chunk = by_vectors.unwrap_or(next_chunk);
        let by_sources = part.first_document_by_sources(chunk).map(|document| (chunk, document));
        part.first_chunk = by_vectors.or(by_sources.map(|(chunk, _)| chunk));
        part.first_document = document.or(by_sources.map(|(_, document)| document));
        part
    }

    /// Where every chunk has a vector, the last ids of the space are those of its chunks, which follow each other.
    fn first_chunk_by_vectors(&self) -> Option<u32> {
        let chunks = self.wreck.count(SectionKind::Chunks);
        (0..self.wreck.count(SectionKind::Spaces)).find_map(|space| {
            let space: SpaceRow = self.wreck.row(SectionKind::Spaces, space)?;
            let end = index(space.first_vector).checked_add(index(space.vectors))?;
            let ids = end.checked_sub(chunks).filter(|start| *start >= index(space.first_vector))?..end;
            let first = self.wreck.number(SectionKind::VectorChunks, ids.start)?;
            let follow =
                ids.zip(first..).all(|(row, id)| self.wreck.number(SectionKind::VectorChunks, row) == Some(id));
            (follow && chunks > 0).then_some(first)
        })
    }

    /// The id that all sources of relations in its own chunks agree on, if it has any.
    fn first_document_by_sources(&self, first_chunk: u32) -> Option<u32> {
        let mut first = None;
        for row in 0..self.wreck.count(SectionKind::Evidence) {
            let source: EvidenceRow = self.wreck.row(SectionKind::Evidence, row)?;
            let Some(slot) = source.chunk.checked_sub(first_chunk).filter(|_| source.chunk != NO_CHUNK) else {
                continue;
            };
            let chunk: ChunkRow = self.wreck.row(SectionKind::Chunks, index(slot))?;
            let found = source.document.checked_sub(chunk.document)?;
            if *first.get_or_insert(found) != found {
                return None;
            }
        }
        first
    }

    /// One above the last id of its chunks, if that is known.
    pub fn chunks_end(&self) -> Option<u32> {
        self.chunk_id(self.wreck.count(SectionKind::Chunks).checked_sub(1)?)?.checked_add(1)
    }

    /// The first id of its documents: sources of relations below it are older documents. Where nothing tells of its own
    /// ids, all are.
    pub fn first_document(&self) -> u32 {
        self.first_document.unwrap_or(u32::MAX)
    }

    /// Number of its documents, readable or not.
    pub fn documents(&self) -> usize {
        self.wreck.count(SectionKind::Documents)
    }

    /// A document's row.
    pub fn row(&self, slot: usize) -> Option<DocumentRow> {
        self.wreck.row(SectionKind::Documents, slot)
    }

    /// A document's id.
    pub fn document_id(&self, slot: usize) -> Option<u32> {
        self.id(SectionKind::DocumentIds, self.first_document, slot)
    }

    /// A chunk's id.
    pub fn chunk_id(&self, slot: usize) -> Option<u32> {
        self.id(SectionKind::ChunkIds, self.first_chunk, slot)
    }

    fn id(&self, listed: SectionKind, first: Option<u32>, slot: usize) -> Option<u32> {
        if self.wreck.count(listed) > 0 {
            return self.wreck.number(listed, slot);
        }
        first?.checked_add(u32::try_from(slot).ok()?)
    }

    /// Documents of earlier segments that it makes dead; none where that cannot be read.
    pub fn dead_documents(&self) -> Option<RoaringBitmap> {
        segment::dead_documents(&self.wreck).ok()
    }

    /// Something that is lost of this file as a whole.
    pub fn lost(&self, what: &'static str, reason: impl Into<String>) -> Lost {
        Lost { file: self.wreck.name().to_string(), document: None, what, reason: reason.into() }
    }
}

/// A row's number as an index.
pub(super) fn index(row: u32) -> usize {
    usize::try_from(row).unwrap_or(usize::MAX)
}
