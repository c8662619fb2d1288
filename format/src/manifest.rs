//! The manifest: all that a reader needs to know of one generation, archived with rkyv.

use crate::{FormatError, limits};
use rkyv::{Archive, Deserialize, Serialize};

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
    /// The segments, ascending by number.
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
    /// Id of its first document; the others follow in the order of slots.
    pub first_document: u32,
    /// Number of its documents.
    pub documents: u32,
    /// Id of its first chunk; the others follow in the order of slots.
    pub first_chunk: u32,
    /// Number of its chunks.
    pub chunks: u32,
}

/// A projection of a generation.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectionEntry {
    /// The file.
    pub file: FileEntry,
    /// Its kind: 2 links, 3 edges.
    pub kind: u32,
    /// One above the highest chunk id that it covers.
    pub chunks_end: u32,
    /// The generation of facts that it was made from.
    pub facts: u64,
    /// Edges: name of the vector space; else empty.
    pub space: String,
    /// Edges: the percentile, in thousandths of a per cent; else 0.
    pub percentile_thousandths: u32,
    /// Edges: a pair stays if it is among this many best of either end; else 0.
    pub top_m: u32,
}

// Another crate of the build that turns on other rkyv features would change these bytes: then nothing compiles.
const _: () = {
    assert!(size_of::<ArchivedManifest>() == 56 && align_of::<ArchivedManifest>() == 1);
    assert!(size_of::<ArchivedSegmentEntry>() == 72 && align_of::<ArchivedSegmentEntry>() == 1);
    assert!(size_of::<ArchivedProjectionEntry>() == 88 && align_of::<ArchivedProjectionEntry>() == 1);
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
        let (mut number, mut document, mut chunk) = (None, 0_u32, 0_u32);
        for (row, segment) in self.segments.iter().enumerate() {
            if number.is_some_and(|before| before >= segment.file.number) {
                return Err(broken("S-MAN-2", row));
            }
            number = Some(segment.file.number);
            let ends = segment
                .first_document
                .checked_add(segment.documents)
                .zip(segment.first_chunk.checked_add(segment.chunks));
            let next = (segment.first_document, segment.first_chunk) == (document, chunk);
            (document, chunk) = ends.filter(|_| next).ok_or_else(|| broken("S-MAN-3", row))?;
        }
        if (document, chunk) != (self.documents_end, self.chunks_end) {
            return Err(broken("S-MAN-3", self.segments.len()));
        }
        let mut number = None;
        for (row, projection) in self.projections.iter().enumerate() {
            if projection.facts > self.facts || projection.chunks_end > self.chunks_end {
                return Err(broken("S-MAN-4", row));
            }
            if number >= Some(projection.file.number) || ![2, 3].contains(&projection.kind) {
                return Err(broken("S-MAN-5", row));
            }
            number = Some(projection.file.number);
        }
        Ok(())
    }
}
