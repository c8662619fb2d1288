//! The bytes of a Hedgerow store: records, sections, files and keys, described in `SPEC.md`.
//!
//! This crate opens nothing and trusts nothing: every reader is total on every input, and answers with a
//! [`FormatError`] where bytes are not what the specification asks for.
#![forbid(unsafe_code)]
#![deny(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::unreachable,
    clippy::todo,
    clippy::unimplemented,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        clippy::string_slice,
        clippy::arithmetic_side_effects,
        reason = "tests"
    )
)]

pub mod checksum;
pub mod edges;
mod error;
pub mod file;
pub mod head;
mod ids;
mod key;
pub mod limits;
pub mod manifest;
pub mod name;
pub mod pack;
pub mod projection;
mod record;
pub mod section;
pub mod segment;
pub mod text;

pub use error::FormatError;
pub use ids::{ChunkId, ChunkSlot, DocumentId, EntitySlot};
pub use key::Key;
pub use record::{F32s, Field, Record, Rows, TextRef, U16s, U32s};
