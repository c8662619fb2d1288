//! The container of every file: header, sections, section table, block table.

mod builder;
mod layout;

pub use builder::{FileBuilder, FileIdentity, Finished};
pub(crate) use layout::fingerprint;
pub use layout::{Layout, Section, Whole};

use crate::record::record;

/// The version of the format that this program writes, and the only one that it reads.
pub const FORMAT_VERSION: u16 = 2;
/// First bytes of every file but `HEAD` and the catalog.
pub const MAGIC: [u8; 8] = *b"\x89HEDGE\r\n";
/// Bytes of the header; the first section may begin here.
pub const HEADER_BYTES: u64 = 256;
/// Sections begin at multiples of this.
pub const SECTION_ALIGNMENT: u64 = 64;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// Facts.
    Segment,
    /// Definition links and the mentions that count.
    Links,
    /// Similarity edges of one vector space.
    Edges,
    /// What makes up one generation.
    Manifest,
    /// Communities of entities and their reports.
    Communities,
    /// The index of one vector space.
    Vectors,
}

impl FileKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Segment, Self::Links, Self::Edges, Self::Manifest, Self::Communities, Self::Vectors];

    /// The number in the header.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Self::Segment => 1,
            Self::Links => 2,
            Self::Edges => 3,
            Self::Manifest => 4,
            Self::Communities => 5,
            Self::Vectors => 6,
        }
    }

    /// The kind with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Its name in errors.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Segment => "segment",
            Self::Links => "links projection",
            Self::Edges => "edges projection",
            Self::Manifest => "manifest",
            Self::Communities => "communities projection",
            Self::Vectors => "vector index",
        }
    }
}

record! {
    /// The first 256 bytes of a file.
    FileHeader: 256 bytes {
        0 magic: [u8; 8] = "`89 48 45 44 47 45 0d 0a`.";
        8 version: u16 = "Version of the format; a reader refuses any other.";
        10 header_bytes: u16 = "256.";
        12 kind: u32 = "1 segment, 2 links, 3 edges, 4 manifest, 5 communities, 6 vector index.";
        16 incompatible: u64 = "Features that a reader must know; an unknown bit is refused.";
        24 read_only_compatible: u64 = "Features that a writer must know; an unknown bit makes the store read-only.";
        32 compatible: u64 = "Features that may be ignored.";
        40 store: [u8; 16] = "UUID of the store.";
        56 number: u64 = "Number of the file, in its name too; a manifest's is its generation.";
        64 random: u64 = "Second half of its name.";
        72 file_bytes: u64 = "Length of the whole file.";
        80 section_table: u64 = "Offset of the section table, a multiple of 64: the sections end here.";
        88 sections: u32 = "Entries of the section table.";
        92 blocks: u32 = "Entries of the block table: the section table's offset divided by 65,536, rounded up.";
        96 tables_hash: [u8; 32] = "BLAKE3 of the section table followed by the block table.";
        128 layout: u64 = "First eight bytes of the BLAKE3 of all record tables of the specification.";
        136 reserved: [u8; 116] = "Zero.";
        252 checksum: u32 = "CRC32C of the 252 bytes before.";
    }
}

record! {
    /// One entry of the section table.
    SectionEntry: 32 bytes {
        0 kind: u32 = "Which section it is; kinds strictly increase.";
        4 element_bytes: u32 = "Size of one element; the length is a multiple of it.";
        8 offset: u64 = "First byte in the file, a multiple of 64.";
        16 length: u64 = "Bytes, without the zeros that follow up to a multiple of 64.";
        24 reserved: u64 = "Zero.";
    }
}
