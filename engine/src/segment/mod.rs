//! One immutable file of facts: staged documents go in, views come out.

mod build;
mod extraction;
mod graph;
mod lists;
mod read;
mod staged;
mod strings;
mod vectors;

pub use build::{Content, Overlay, OverlayRelation, OverlayVector, build};
pub use extraction::{ExtractionView, OverlayExtraction, StagedEntity, StagedExtraction};
pub(crate) use graph::csr;
pub use lists::{StagedEdge, StagedEdgeList};
pub(crate) use read::find_key;
pub use read::{Postings, Segment};
pub use staged::{Numbered, StagedChunk, StagedDocument, StagedEnd, StagedMention, StagedRelation, StagedVector};
pub use strings::Strings;
pub use vectors::SpaceView;
