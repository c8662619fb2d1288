//! Which ids the rows of a segment have: those of its range in order, or a list of them.

use crate::record::to_usize;
use crate::section::{SectionKind, Sections};
use crate::segment::DocumentRow;
use crate::{FormatError, Rows, U32s};
use std::ops::Range;

/// What the manifest says of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentShape {
    /// First id that its documents may have.
    pub first_document: u32,
    /// One above the last id that its documents may have.
    pub documents_end: u32,
    /// Number of its documents.
    pub documents: u32,
    /// First id that its chunks may have.
    pub first_chunk: u32,
    /// One above the last id that its chunks may have.
    pub chunks_end: u32,
    /// Number of its chunks.
    pub chunks: u32,
}

impl SegmentShape {
    /// Ids of the documents.
    ///
    /// # Errors
    /// [`FormatError::Invariant`] where their number is not that of the shape; [`FormatError::Block`].
    pub fn document_ids<'a, S: Sections>(&self, file: &'a S) -> Result<Ids<'a>, FormatError> {
        Ids::of(file, SectionKind::DocumentIds, self.first_document, self.documents_end, self.documents)
    }

    /// Ids of the chunks.
    ///
    /// # Errors
    /// As [`SegmentShape::document_ids`].
    pub fn chunk_ids<'a, S: Sections>(&self, file: &'a S) -> Result<Ids<'a>, FormatError> {
        Ids::of(file, SectionKind::ChunkIds, self.first_chunk, self.chunks_end, self.chunks)
    }
}

/// Ids of documents or chunks, by slot.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ids<'a> {
    section: &'static str,
    first: u32,
    end: u32,
    count: u32,
    /// Empty where each id of the range has a row.
    listed: U32s<'a>,
}

impl<'a> Ids<'a> {
    fn of<S: Sections>(file: &'a S, kind: SectionKind, first: u32, end: u32, count: u32) -> Result<Self, FormatError> {
        let listed = file.u32s(kind)?;
        let dense = end.checked_sub(first) == Some(count);
        if listed.len() == if dense { 0 } else { to_usize(count) } {
            return Ok(Self { section: kind.name(), first, end, count, listed });
        }
        Err(FormatError::Invariant { section: kind.name(), rule: "S-IDS-1", row: listed.len() as u64 })
    }

    /// Checks that listed ids strictly increase inside their range.
    ///
    /// # Errors
    /// [`FormatError::Invariant`].
    pub fn check(&self) -> Result<(), FormatError> {
        let mut free = self.first;
        for (row, id) in self.listed.iter().enumerate() {
            if id < free || id >= self.end {
                return Err(FormatError::Invariant { section: self.section, rule: "S-IDS-2", row: row as u64 });
            }
            free = id.saturating_add(1);
        }
        Ok(())
    }

    /// The id of a slot.
    #[must_use]
    pub fn get(&self, slot: usize) -> Option<u32> {
        if !self.listed.is_empty() {
            return self.listed.get(slot);
        }
        let slot = u32::try_from(slot).ok().filter(|slot| *slot < self.count)?;
        self.first.checked_add(slot)
    }

    /// The slot of an id: by subtraction where all ids are there, else by halving.
    #[must_use]
    pub fn position(&self, id: u32) -> Option<usize> {
        if !self.listed.is_empty() {
            return self.listed.position_of(id);
        }
        id.checked_sub(self.first).filter(|slot| *slot < self.count).map(to_usize)
    }

    /// All of them as ranges, ascending: one range where no id is missing.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u32>> + use<'a> {
        let dense = if self.listed.is_empty() { self.count } else { 0 };
        let dense = (dense > 0).then(|| self.first..self.first.saturating_add(dense));
        dense.into_iter().chain(self.listed.iter().map(|id| id..id.saturating_add(1)))
    }

    /// All of them, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<'a> {
        let dense = if self.listed.is_empty() { self.count } else { 0 };
        (self.first..self.first.saturating_add(dense)).chain(self.listed.iter())
    }
}

/// The slot of the document at a place in the order of keys.
///
/// # Errors
/// As [`Sections::u32s`].
pub fn in_key_order<S: Sections>(file: &S) -> Result<impl Fn(usize) -> Option<usize> + '_, FormatError> {
    let order = file.u32s(SectionKind::DocumentOrder)?;
    Ok(move |place| if order.is_empty() { Some(place) } else { order.get(place).map(to_usize) })
}

/// S-IDS-3: the chunks of a document have consecutive ids. S-DOC-2: keys strictly increase in the order of documents, which
/// is listed only where it is not that of slots.
pub(super) fn validate<S: Sections>(file: &S, shape: SegmentShape) -> Result<(), FormatError> {
    shape.document_ids(file)?.check()?;
    let chunk_ids = shape.chunk_ids(file)?;
    chunk_ids.check()?;
    let documents: Rows<'_, DocumentRow> = file.rows(SectionKind::Documents)?;
    for (row, document) in documents.iter().enumerate() {
        let first = to_usize(document.first_chunk);
        let last = first.saturating_add(to_usize(document.chunks)).saturating_sub(1);
        let span = chunk_ids.get(first).zip(chunk_ids.get(last)).and_then(|(first, last)| last.checked_sub(first));
        if document.chunks > 0 && span != document.chunks.checked_sub(1) {
            let section = SectionKind::ChunkIds.name();
            return Err(FormatError::Invariant { section, rule: "S-IDS-3", row: row as u64 });
        }
    }
    let order = file.u32s(SectionKind::DocumentOrder)?;
    let broken = |row: usize| {
        let section = SectionKind::DocumentOrder.name();
        FormatError::Invariant { section, rule: "S-DOC-2", row: row as u64 }
    };
    if !order.is_empty() && order.len() != documents.len() {
        return Err(broken(order.len()));
    }
    let in_order = in_key_order(file)?;
    let (mut before, mut sorted) = (None, true);
    for place in 0..documents.len() {
        let slot = in_order(place);
        let key = slot.and_then(|slot| documents.get(slot)).map(|document| document.key);
        if key.is_none() || key <= before {
            return Err(broken(place));
        }
        before = key;
        sorted &= slot == Some(place);
    }
    if sorted && !order.is_empty() { Err(broken(0)) } else { Ok(()) }
}
