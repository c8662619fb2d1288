//! The records of a segment, and the proof that a segment's sections fit together.

mod ids;
mod lists;
mod rows;
mod validate;

pub use ids::{Ids, SegmentShape, in_key_order};
pub use lists::{EdgeListView, EdgeLists};
pub use rows::{
    ChunkRow, DeadExtractionRow, DeadVectorRow, DocumentRow, EdgeListRow, EntityRow, EvidenceRow, ExtractedRow,
    ExtractionRow, MentionRow, NO_CHUNK, NO_EXTRACTION, NO_WEIGHTS, RangeRow, RelationRow, SpaceRow, SpellingRow,
    TermRow, mention_flags,
};
pub use validate::{findings, validate};

use crate::record::to_usize;
use crate::section::{SectionKind, Sections};
use crate::{Field, FormatError, Record, Rows};
use roaring::RoaringBitmap;
use std::ops::Range;

/// Every record of the format with its name in `SPEC.md`, in the order of the specification.
pub const RECORDS: &[(&str, &[Field])] = &[
    ("FileHeader", crate::file::FileHeader::FIELDS),
    ("SectionEntry", crate::file::SectionEntry::FIELDS),
    ("Head", crate::head::Head::FIELDS),
    ("DocumentRow", DocumentRow::FIELDS),
    ("ChunkRow", ChunkRow::FIELDS),
    ("TextBlock", crate::text::TextBlock::FIELDS),
    ("EntityRow", EntityRow::FIELDS),
    ("SpellingRow", SpellingRow::FIELDS),
    ("MentionRow", MentionRow::FIELDS),
    ("RangeRow", RangeRow::FIELDS),
    ("RelationRow", RelationRow::FIELDS),
    ("EvidenceRow", EvidenceRow::FIELDS),
    ("ExtractionRow", ExtractionRow::FIELDS),
    ("ExtractedRow", ExtractedRow::FIELDS),
    ("EdgeListRow", EdgeListRow::FIELDS),
    ("TermRow", TermRow::FIELDS),
    ("SpaceRow", SpaceRow::FIELDS),
    ("DeadVectorRow", DeadVectorRow::FIELDS),
    ("DeadExtractionRow", DeadExtractionRow::FIELDS),
    ("LinkEntityRow", crate::projection::LinkEntityRow::FIELDS),
    ("LinkWordRow", crate::projection::LinkWordRow::FIELDS),
    ("LinkLeadRow", crate::projection::LinkLeadRow::FIELDS),
    ("LinkPredicateRow", crate::projection::LinkPredicateRow::FIELDS),
    ("CommunitySettingsRow", crate::projection::CommunitySettingsRow::FIELDS),
    ("CommunityLevelRow", crate::projection::CommunityLevelRow::FIELDS),
    ("CommunityRow", crate::projection::CommunityRow::FIELDS),
    ("CommunityReportRow", crate::projection::CommunityReportRow::FIELDS),
    ("ReportCitationRow", crate::projection::ReportCitationRow::FIELDS),
    ("VectorIndexRow", crate::projection::VectorIndexRow::FIELDS),
    ("CoveredSegmentRow", crate::projection::CoveredSegmentRow::FIELDS),
    ("WalkRow", crate::projection::WalkRow::FIELDS),
    ("EdgeReportRow", crate::projection::EdgeReportRow::FIELDS),
    ("EdgeRow", crate::projection::EdgeRow::FIELDS),
    ("EdgeSpare", crate::projection::EdgeSpare::FIELDS),
    ("EdgeCount", crate::projection::EdgeCount::FIELDS),
    ("EdgeReserveRow", crate::projection::EdgeReserveRow::FIELDS),
    ("EdgeSignalRow", crate::projection::EdgeSignalRow::FIELDS),
    ("PackHeader", crate::pack::PackHeader::FIELDS),
    ("PackEntry", crate::pack::PackEntry::FIELDS),
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

/// The terms of a segment, looked up where they lie.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    rows: Rows<'a, TermRow>,
    text: &'a [u8],
}

impl<'a> Terms<'a> {
    /// The terms of a segment.
    ///
    /// # Errors
    /// [`FormatError::Block`] and [`FormatError::Shape`].
    pub fn of<S: Sections>(segment: &'a S) -> Result<Self, FormatError> {
        Ok(Self { rows: segment.rows(SectionKind::Terms)?, text: segment.section(SectionKind::TermText)? })
    }

    /// Number of terms.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len().saturating_sub(1)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A term's bytes and its postings.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<(&'a [u8], Range<usize>)> {
        let (row, next) = (self.rows.get(row)?, self.rows.get(row.checked_add(1)?)?);
        let text = self.text.get(to_usize(row.text)..to_usize(next.text))?;
        Some((text, to_usize(row.first_posting)..to_usize(next.first_posting)))
    }

    /// The postings of all terms that begin with `prefix`, which follow each other.
    #[must_use]
    pub fn beginning(&self, prefix: u8) -> Range<usize> {
        let first_posting = |row: usize| self.rows.get(row).map_or(0, |row| to_usize(row.first_posting));
        let bound = |byte: u8| {
            let (mut low, mut high) = (0, self.len());
            while low < high {
                let middle = low.midpoint(high);
                if self.get(middle).is_some_and(|(text, _)| text.first() < Some(&byte)) {
                    low = middle.saturating_add(1);
                } else {
                    high = middle;
                }
            }
            low
        };
        first_posting(bound(prefix))..first_posting(bound(prefix.saturating_add(1)))
    }

    /// The postings of a term, by halving: about log2 of the number of terms reads.
    #[must_use]
    pub fn find(&self, term: &str) -> Option<Range<usize>> {
        let (text, postings) = self.get(self.first_from(term))?;
        (text == term.as_bytes()).then_some(postings)
    }

    /// The row of the first term that is not below `bound`, the number of terms if all are; by halving.
    #[must_use]
    pub fn first_from(&self, bound: &str) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.get(middle).is_some_and(|(text, _)| text < bound.as_bytes()) {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        low
    }
}
