//! The records of a segment, and the proof that a segment's sections fit together.

mod rows;
mod validate;

pub use rows::{
    ChunkRow, DeadVectorRow, DocumentRow, EntityRow, EvidenceRow, MentionRow, NO_CHUNK, RangeRow, RelationRow,
    SpaceRow, TermRow, mention_flags,
};
pub use validate::{SegmentShape, validate};

use crate::section::{SectionKind, Sections};
use crate::{Field, FormatError, Record};
use roaring::RoaringBitmap;

/// Every record of the format with its name in `SPEC.md`, in the order of the specification.
pub const RECORDS: &[(&str, &[Field])] = &[
    ("FileHeader", crate::file::FileHeader::FIELDS),
    ("SectionEntry", crate::file::SectionEntry::FIELDS),
    ("Head", crate::head::Head::FIELDS),
    ("DocumentRow", DocumentRow::FIELDS),
    ("ChunkRow", ChunkRow::FIELDS),
    ("TextBlock", crate::text::TextBlock::FIELDS),
    ("EntityRow", EntityRow::FIELDS),
    ("MentionRow", MentionRow::FIELDS),
    ("RangeRow", RangeRow::FIELDS),
    ("RelationRow", RelationRow::FIELDS),
    ("EvidenceRow", EvidenceRow::FIELDS),
    ("TermRow", TermRow::FIELDS),
    ("SpaceRow", SpaceRow::FIELDS),
    ("DeadVectorRow", DeadVectorRow::FIELDS),
    ("LinkEntityRow", crate::projection::LinkEntityRow::FIELDS),
    ("EdgeReportRow", crate::projection::EdgeReportRow::FIELDS),
];

/// The documents of earlier segments that this segment's commit deleted.
///
/// # Errors
/// [`FormatError::Shape`] where the section is not a portable Roaring bitmap and nothing else.
pub fn dead_documents<S: Sections>(segment: &S) -> Result<RoaringBitmap, FormatError> {
    let mut bytes = segment.section(SectionKind::DeadDocuments)?;
    if bytes.is_empty() {
        return Ok(RoaringBitmap::new());
    }
    let malformed = |found: String| FormatError::Shape {
        section: SectionKind::DeadDocuments.name(),
        expected: "a portable Roaring bitmap".into(),
        found,
    };
    let bitmap = RoaringBitmap::deserialize_from(&mut bytes).map_err(|error| malformed(error.to_string()))?;
    if bytes.is_empty() { Ok(bitmap) } else { Err(malformed(format!("{} bytes more", bytes.len()))) }
}

/// The dictionary of a segment's terms; `None` where there are no terms.
///
/// # Errors
/// [`FormatError::Shape`] where the section is not an `fst` map.
pub fn dictionary(bytes: &[u8]) -> Result<Option<fst::Map<&[u8]>>, FormatError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    fst::Map::new(bytes).map(Some).map_err(|error| FormatError::Shape {
        section: SectionKind::TermDictionary.name(),
        expected: "an fst map".into(),
        found: error.to_string(),
    })
}

/// Whether the dictionary holds the numbers from zero to `terms`, in the terms' order, and nothing else.
fn dictionary_numbers_terms(bytes: &[u8], terms: usize) -> Result<bool, FormatError> {
    use fst::Streamer;
    let Some(map) = dictionary(bytes)? else { return Ok(terms == 0) };
    let mut stream = map.stream();
    let mut next = 0_u64;
    while let Some((_, row)) = stream.next() {
        if row != next {
            return Ok(false);
        }
        next = next.saturating_add(1);
    }
    Ok(next == terms as u64)
}
