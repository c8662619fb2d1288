//! Readers of what people bring: text files of any common encoding, folders, JSON lines, and matrices of numbers.

pub mod folder;
pub mod lines;
pub mod npy;
pub mod text;
