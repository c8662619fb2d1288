//! Terms: how text becomes words to search for, and how much a word says about a passage.

/// From text to terms.
pub mod analysis;
/// From counts of terms to scores.
pub mod bm25;
/// From a text and a title to counts of terms.
pub mod counts;
/// Languages and how they are told.
pub mod language;
