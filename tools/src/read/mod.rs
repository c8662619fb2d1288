//! Readers of what people bring: documents, text files of any common encoding, folders, JSON lines, and matrices of numbers.

pub mod archive;
pub mod composer;
pub mod delimited;
pub mod document;
pub mod edges;
pub mod folder;
pub mod grid;
pub mod html;
pub mod lines;
pub mod mail;
pub mod markdown;
pub mod marked;
pub mod npy;
#[cfg(feature = "pdf")]
pub mod pdf;
pub mod plain;
pub mod rtf;
pub mod table;
pub mod text;
