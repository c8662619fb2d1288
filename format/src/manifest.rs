//! The manifest: all that a reader needs to know of one generation, archived with rkyv.

use crate::FormatError;
use crate::edges::PairKind;
use crate::file::FileKind;
use crate::limits;
use crate::segment::SegmentShape;
use rkyv::{Archive, Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// What makes up one generation.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// UUID of the store.
    pub store: [u8; 16],
    /// Number of the commit.
    pub generation: u64,
    /// The last generation that changed facts: a projection made from another one is behind.
    pub facts: u64,
    /// One above the highest document id that was handed out.
    pub documents_end: u32,
    /// One above the highest chunk id that was handed out.
    pub chunks_end: u32,
    /// The segments, ascending by the ids of their rows.
    pub segments: Vec<SegmentEntry>,
    /// The projections, ascending by number.
    pub projections: Vec<ProjectionEntry>,
}

/// A file that a manifest names: where it is and what binds its bytes.
#[derive(Archive, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileEntry {
    /// First half of its name.
    pub number: u64,
    /// Second half of its name.
    pub random: u64,
    /// Its length in bytes.
    pub file_bytes: u64,
    /// BLAKE3 of its header.
    pub header_hash: [u8; 32],
}

/// A segment of a generation.
#[derive(Archive, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentEntry {
    /// The file.
    pub file: FileEntry,
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

impl SegmentEntry {
    /// The entry of a file with this shape.
    #[must_use]
    pub fn new(file: FileEntry, shape: SegmentShape) -> Self {
        let SegmentShape { first_document, documents_end, documents, first_chunk, chunks_end, chunks } = shape;
        Self { file, first_document, documents_end, documents, first_chunk, chunks_end, chunks }
    }

    /// Its ids and how many of them have rows.
    #[must_use]
    pub fn shape(&self) -> SegmentShape {
        let Self { first_document, documents_end, documents, first_chunk, chunks_end, chunks, .. } = *self;
        SegmentShape { first_document, documents_end, documents, first_chunk, chunks_end, chunks }
    }
}

/// A projection of a generation.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectionEntry {
    /// The file.
    pub file: FileEntry,
    /// Its kind: 2 links, 3 edges, 5 communities, 6 vector index.
    pub kind: u32,
    /// One above the highest chunk id that it covers.
    pub chunks_end: u32,
    /// The generation of facts that it was made from.
    pub facts: u64,
    /// Edges and vector index: name of the vector space; else empty.
    pub space: String,
    /// Edges: the number of the kind of their pairs; else 0.
    pub pairs: u32,
    /// Edges: the settings of the space; else all 0.
    pub settings: EdgeSettings,
}

/// The settings of all edges of a vector space.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeSettings {
    /// The percentile of each kind of pairs, in the order of their numbers, in thousandths of a per cent.
    pub percentiles: [u32; 3],
    /// How many partners of a kind a chunk chooses.
    pub top_m: u32,
    /// 0 a pair stays if either end chose it, 1 if both did.
    pub cap: u32,
    /// A pair is a candidate if one end is among so many nearest of the other; 0 all are.
    pub nearest: u32,
    /// 0 the nearest are found by comparing all, 1 by walks through an index.
    pub nearest_by: u32,
    /// The image of the similarity that a pair must have at least; 0 for any.
    pub least: u32,
    /// An entity that at most so many chunks mention joins them whatever their similarity; 0 none does.
    pub shared_chunks: u32,
    /// How many partners a chunk chooses for the entities that they share; 0 where none joins.
    pub shared_top_m: u32,
    /// 0 all signals must agree, 1 they are weighted.
    pub weighted: u32,
    /// What tells how alike chunks are; nothing where the similarity alone does.
    pub signals: Vec<EdgeSignal>,
}

/// A signal of how alike two chunks are.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeSignal {
    /// 0 the space's own vectors, 1 vectors of another space, 2 entities, 3 rare entities, 4 columns, 5 words, 6 titles.
    pub what: u32,
    /// Its percentile, in thousandths of a per cent.
    pub percentile: u32,
    /// Its weight, in thousandths.
    pub weight: u32,
    /// The other space; else empty.
    pub space: String,
}

impl ProjectionEntry {
    /// Whether what it says of edges is known; of others it says nothing, but a vector index is about a space.
    fn is_known(&self) -> bool {
        let is_index = self.kind == FileKind::Vectors.number();
        if self.kind != FileKind::Edges.number() {
            let names = self.space.is_empty() != is_index && self.space.len() <= limits::NAME_BYTES;
            return self.pairs == 0 && names && self.settings == EdgeSettings::default();
        }
        PairKind::from_number(self.pairs).is_some() && self.settings.is_known()
    }
}

impl EdgeSettings {
    /// Whether every value is one that edges can be made by.
    #[must_use]
    pub fn is_known(&self) -> bool {
        let percentiles = self.percentiles.iter().chain(self.signals.iter().map(|signal| &signal.percentile));
        let counts = [self.top_m, self.nearest, self.shared_chunks, self.shared_top_m];
        percentiles.max().is_none_or(|most| *most <= limits::PERCENTILE_MAX)
            && counts.iter().all(|count| *count <= limits::EDGES_TOP_M)
            && [self.cap, self.nearest_by, self.weighted].iter().all(|choice| *choice <= 1)
            && (self.least == 0 || LEAST.contains(&self.least))
            && (self.nearest_by == 0 || (self.nearest > 0 && self.signals.is_empty()))
            && (self.shared_chunks > 0 || self.shared_top_m == 0)
            && self.signals.len() <= limits::EDGE_SIGNALS
            && self.signals.iter().all(EdgeSignal::is_known)
    }
}

/// The images of finite numbers.
const LEAST: RangeInclusive<u32> = 0x0080_0000..=0xff7f_ffff;

impl EdgeSignal {
    /// The number of the signal that names a space.
    pub const VECTORS: u32 = 1;

    /// The highest number of a signal.
    const LAST: u32 = 6;

    fn is_known(&self) -> bool {
        let names_a_space = !self.space.is_empty() && self.space.len() <= limits::NAME_BYTES;
        let space_fits = if self.what == Self::VECTORS { names_a_space } else { self.space.is_empty() };
        self.what <= Self::LAST && space_fits && self.weight <= limits::EDGE_SIGNAL_WEIGHT
    }
}

// Another crate of the build that turns on other rkyv features would change these bytes: then nothing compiles.
const _: () = {
    assert!(size_of::<ArchivedManifest>() == 56 && align_of::<ArchivedManifest>() == 1);
    assert!(size_of::<ArchivedSegmentEntry>() == 80 && align_of::<ArchivedSegmentEntry>() == 1);
    assert!(size_of::<ArchivedProjectionEntry>() == 136 && align_of::<ArchivedProjectionEntry>() == 1);
    assert!(size_of::<ArchivedEdgeSignal>() == 20 && align_of::<ArchivedEdgeSignal>() == 1);
};

impl Manifest {
    /// The archived bytes.
    ///
    /// # Errors
    /// [`FormatError::Limit`] when there are more files than a manifest holds.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FormatError> {
        let limit = FormatError::Limit { what: "the length of a manifest", limit: limits::MANIFEST_BYTES };
        let bytes = rkyv::to_bytes::<rkyv::rancor::Error>(self).map_err(|_| limit.clone())?;
        if bytes.len() as u64 > limits::MANIFEST_BYTES { Err(limit) } else { Ok(bytes.to_vec()) }
    }

    /// Reads archived bytes, checking structure and the invariants of `SPEC.md`.
    ///
    /// # Errors
    /// [`FormatError::Shape`] where they are not a manifest; [`FormatError::Invariant`] where ids or numbers overlap.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        if bytes.len() as u64 > limits::MANIFEST_BYTES {
            return Err(FormatError::Limit { what: "the length of a manifest", limit: limits::MANIFEST_BYTES });
        }
        let manifest: Self =
            rkyv::from_bytes::<Self, rkyv::rancor::Error>(bytes).map_err(|error| FormatError::Shape {
                section: "manifest",
                expected: "an archived manifest".into(),
                found: error.to_string(),
            })?;
        manifest.validate()?;
        Ok(manifest)
    }

    fn validate(&self) -> Result<(), FormatError> {
        let broken = |rule, row: usize| FormatError::Invariant { section: "manifest", rule, row: row as u64 };
        if self.facts > self.generation {
            return Err(broken("S-MAN-1", 0));
        }
        let (mut numbers, mut document, mut chunk) = (BTreeSet::new(), 0_u32, 0_u32);
        for (row, segment) in self.segments.iter().enumerate() {
            if !numbers.insert(segment.file.number) {
                return Err(broken("S-MAN-2", row));
            }
            let rooms = [
                (document, segment.first_document, segment.documents, segment.documents_end),
                (chunk, segment.first_chunk, segment.chunks, segment.chunks_end),
            ];
            for (free, first, count, end) in rooms {
                if first < free || end.checked_sub(first).is_none_or(|room| room < count) {
                    return Err(broken("S-MAN-3", row));
                }
            }
            (document, chunk) = (segment.documents_end, segment.chunks_end);
        }
        if document > self.documents_end || chunk > self.chunks_end {
            return Err(broken("S-MAN-3", self.segments.len()));
        }
        let mut number = None;
        for (row, projection) in self.projections.iter().enumerate() {
            if projection.facts > self.facts || projection.chunks_end > self.chunks_end {
                return Err(broken("S-MAN-4", row));
            }
            if number >= Some(projection.file.number) || ![2, 3, 5, 6].contains(&projection.kind) {
                return Err(broken("S-MAN-5", row));
            }
            if !projection.is_known() {
                return Err(broken("S-MAN-6", row));
            }
            number = Some(projection.file.number);
        }
        Ok(())
    }
}
