//! The command `hedgerow` and what it brings to the engine: readers, an embedder, an extractor.

pub mod embed;
pub mod extract;
pub mod read;
