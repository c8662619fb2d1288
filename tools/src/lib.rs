//! The command `hedgerow` and what it brings to the engine: readers, embedders, an extractor, and models behind a URL.

pub mod command;
pub mod embed;
pub mod extract;
mod failure;
pub mod llm;
pub mod read;
mod session;

pub use crate::command::main;
pub use crate::failure::{Failure, Outcome};
pub use crate::session::{Progress, RejectedRecord, Session};
