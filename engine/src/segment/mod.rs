//! One immutable file of facts: staged documents go in, views come out.

mod build;
mod read;
mod staged;
mod strings;

pub(crate) use build::csr;
pub use build::{Overlay, OverlayRelation, OverlayVector, Place, build};
pub(crate) use read::find_key;
pub use read::{Postings, Segment, SpaceView};
pub use staged::{StagedChunk, StagedDocument, StagedEnd, StagedMention, StagedRelation, StagedVector};
pub use strings::Strings;
