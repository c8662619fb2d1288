//! The records of a vector index, and the proof that its sections fit together.

use crate::record::{record, to_usize};
use crate::section::{SectionKind, Sections};
use crate::{FormatError, TextRef, limits};

/// In place of a neighbour: the node has no more.
pub const NOBODY: u32 = u32::MAX;

record! {
    /// What a vector index is about.
    VectorIndexRow: 40 bytes {
        0 space: TextRef = "Name of the vector space.";
        8 model: TextRef = "Identity of the model of its vectors.";
        16 dimensions: u32 = "Components of a vector.";
        20 nodes: u32 = "Vectors that it covers.";
        24 degree: u32 = "Places of a list of neighbours.";
        28 reserved: u32 = "Zero.";
        32 scale: f64 = "What a code of one stands for; above zero.";
    }
}

record! {
    /// A segment whose vectors of the space are all covered.
    CoveredSegmentRow: 8 bytes {
        0 number: u64 = "Number of the segment.";
    }
}

record! {
    /// How much of what is nearest a walk finds.
    WalkRow: 8 bytes {
        0 slack: u32 = "Slack of the walk, in thousandths.";
        4 found: u32 = "How much of the ten nearest was found, in hundredths of a per cent.";
    }
}

/// Bytes of a row of codes: as many as components, filled up to a multiple of 64.
#[must_use]
pub fn code_bytes(dimensions: u32) -> usize {
    to_usize(dimensions).checked_next_multiple_of(64).unwrap_or(usize::MAX)
}

/// One above the highest number of nodes.
pub const INDEX_NODES: u32 = 1 << 31;

fn broken(section: SectionKind, rule: &'static str, row: usize) -> FormatError {
    FormatError::Invariant { section: section.name(), rule, row: row as u64 }
}

/// Checks every invariant of a vector index.
///
/// # Errors
/// The first that is broken.
pub fn validate_vectors<S: Sections>(file: &S) -> Result<(), FormatError> {
    vectors_findings(file).into_iter().next().map_or(Ok(()), Err)
}

/// What is wrong with a vector index: the first finding of its row, its nodes, its codes, its lists and its walks.
pub fn vectors_findings<S: Sections>(file: &S) -> Vec<FormatError> {
    [row(file).map(drop), nodes(file), codes(file), lists(file), walks(file)]
        .into_iter()
        .filter_map(Result::err)
        .collect()
}

/// S-VIX-1: there is one row, of a known size; the scale is a number above zero.
fn row<S: Sections>(file: &S) -> Result<VectorIndexRow, FormatError> {
    let rows = file.rows::<VectorIndexRow>(SectionKind::VectorIndex)?;
    let fits = |row: &VectorIndexRow| {
        let counts = (1..=limits::DIMENSIONS).contains(&to_usize(row.dimensions)) && row.nodes < INDEX_NODES;
        let degree = (1..=limits::INDEX_DEGREE).contains(&row.degree);
        counts && degree && row.scale.is_normal() && row.scale > 0.0 && row.reserved == 0
    };
    let found = rows.get(0).filter(|row| rows.len() == 1 && fits(row));
    let found = found.ok_or_else(|| broken(SectionKind::VectorIndex, "S-VIX-1", 0))?;
    [found.space, found.model].into_iter().try_for_each(|text| file.string(text).map(drop))?;
    Ok(found)
}

/// S-VIX-2: there is a chunk a node, and they strictly increase; so do the numbers of segments.
fn nodes<S: Sections>(file: &S) -> Result<(), FormatError> {
    let (row, chunks) = (row(file)?, file.u32s(SectionKind::IndexedChunks)?);
    let mut before = None;
    for (node, chunk) in chunks.iter().enumerate() {
        if before >= Some(chunk) {
            return Err(broken(SectionKind::IndexedChunks, "S-VIX-2", node));
        }
        before = Some(chunk);
    }
    if chunks.len() != to_usize(row.nodes) {
        return Err(broken(SectionKind::IndexedChunks, "S-VIX-2", chunks.len()));
    }
    let mut before = None;
    for (place, segment) in file.rows::<CoveredSegmentRow>(SectionKind::CoveredSegments)?.iter().enumerate() {
        if before >= Some(segment.number) {
            return Err(broken(SectionKind::CoveredSegments, "S-VIX-2", place));
        }
        before = Some(segment.number);
    }
    Ok(())
}

/// S-VIX-3: there are codes and an error of all nodes; no code is 0, what fills up is 128, and no error is below zero.
fn codes<S: Sections>(file: &S) -> Result<(), FormatError> {
    let (row, codes) = (row(file)?, file.section(SectionKind::IndexCodes)?);
    let width = code_bytes(row.dimensions);
    if Some(codes.len()) != to_usize(row.nodes).checked_mul(width) {
        return Err(broken(SectionKind::IndexCodes, "S-VIX-3", codes.len()));
    }
    let is_whole = |codes: &[u8]| {
        let (own, rest) = codes.split_at_checked(to_usize(row.dimensions)).unwrap_or_default();
        !own.contains(&0) && rest.iter().all(|code| *code == 128)
    };
    if let Some(node) = codes.chunks_exact(width.max(1)).position(|codes| !is_whole(codes)) {
        return Err(broken(SectionKind::IndexCodes, "S-VIX-3", node.saturating_mul(width)));
    }
    let errors = file.u32s(SectionKind::IndexErrors)?;
    let is_wrong = |bits: u32| !(f32::from_bits(bits) >= 0.0 && f32::from_bits(bits).is_finite());
    match errors.iter().position(is_wrong) {
        None if errors.len() == to_usize(row.nodes) => Ok(()),
        place => Err(broken(SectionKind::IndexErrors, "S-VIX-3", place.unwrap_or(errors.len()))),
    }
}

/// S-VIX-4: there is a list a node, of nodes and then of nobody; entries are nodes.
fn lists<S: Sections>(file: &S) -> Result<(), FormatError> {
    let (row, lists) = (row(file)?, file.u32s(SectionKind::IndexNeighbours)?);
    let degree = to_usize(row.degree).max(1);
    if Some(lists.len()) != to_usize(row.nodes).checked_mul(degree) {
        return Err(broken(SectionKind::IndexNeighbours, "S-VIX-4", lists.len()));
    }
    let mut ended = false;
    for (place, node) in lists.iter().enumerate() {
        ended = ended && !place.is_multiple_of(degree);
        if node != NOBODY && (ended || node >= row.nodes) {
            return Err(broken(SectionKind::IndexNeighbours, "S-VIX-4", place));
        }
        ended = node == NOBODY;
    }
    match file.u32s(SectionKind::IndexEntries)?.iter().position(|entry| entry >= row.nodes) {
        Some(place) => Err(broken(SectionKind::IndexEntries, "S-VIX-4", place)),
        None => Ok(()),
    }
}

/// S-VIX-5: slacks of walks strictly increase from 1, and what they find is a share.
fn walks<S: Sections>(file: &S) -> Result<(), FormatError> {
    let mut before = 0;
    for (place, walk) in file.rows::<WalkRow>(SectionKind::IndexWalks)?.iter().enumerate() {
        if walk.slack <= before || walk.found > 10_000 {
            return Err(broken(SectionKind::IndexWalks, "S-VIX-5", place));
        }
        before = walk.slack;
    }
    Ok(())
}
