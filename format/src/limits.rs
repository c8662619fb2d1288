//! How much of everything a store may hold.

/// Bytes of one document's text.
pub const DOCUMENT_BYTES: usize = 64 << 20;
/// Bytes of a name: a document's key, a title, an entity's name, a predicate, a vector space.
pub const NAME_BYTES: usize = 4 << 10;
/// Bytes of a document's or chunk's metadata as JSON.
pub const METADATA_BYTES: usize = 1 << 20;
/// Chunks of one document.
pub const DOCUMENT_CHUNKS: usize = 1 << 20;
/// Components of a vector.
pub const DIMENSIONS: usize = 4096;
/// Bytes of text in one segment.
pub const SEGMENT_TEXT_BYTES: u64 = 1 << 32;
/// Bytes of the names and metadata of one file.
pub const STRINGS_BYTES: usize = u32::MAX as usize;
/// Bytes of a manifest.
pub const MANIFEST_BYTES: u64 = 64 << 20;
/// Bytes of the directory of a pack.
pub const DIRECTORY_BYTES: u64 = 64 << 20;
/// Sections of one file.
pub const SECTIONS: u32 = 256;
/// Vector spaces of one segment.
pub const SPACES: usize = 64;
/// Occurrences of one term in one chunk that are told apart.
pub const TERM_FREQUENCY: u16 = u16::MAX;
/// A percentile in thousandths of a per cent.
pub const PERCENTILE_MAX: u32 = 100_000;
/// Partners that a chunk may choose, nearest chunks that are candidates, and chunks that an entity may join.
pub const EDGES_TOP_M: u32 = 1024;
/// Signals of the edges of a space.
pub const EDGE_SIGNALS: usize = 16;
/// The weight of a signal, in thousandths.
pub const EDGE_SIGNAL_WEIGHT: u32 = 1_000_000;
/// Places of a list of neighbours in a vector index.
pub const INDEX_DEGREE: u32 = 256;
/// Bytes of a word whose cases are counted; longer runs of letters are no words.
pub const CASE_WORD_BYTES: usize = 64;
