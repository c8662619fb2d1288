//! Hedgerow: an embedded knowledge store. SQLite for GraphRAG.

mod catalog;
mod distance;
pub mod error;
mod index;
mod ingest;
mod maintain;
mod manifest;
mod model;
mod project;
mod projection;
mod query;
mod segment;
mod snapshot;
mod storage;
mod writer;

pub use crate::distance::{VectorFault, dot, normalise};
pub use crate::error::{CommitError, Damage, Error, OpenError, QueryError, StorageError};
pub use crate::index::control::{Cancelled, Control, Quiet};
pub use crate::index::edges::EdgeRules;
pub use crate::ingest::chunking::Chunking;
pub use crate::ingest::{Document, GivenChunk, Pipeline, Rejected, Staged, triple};
pub use crate::maintain::{EdgeStats, SpaceStats, Stats, Verified, VerifyError, verify};
pub use crate::model::{Certainty, Embed, Extract, Extraction, FoundMention, FoundRelation, ModelError, Models};
pub use crate::project::EdgeError;
pub use crate::query::filter::{Filter, FilterError};
pub use crate::query::{
    Comparison, Context, Description, Direction, DocumentLine, Dropped, EdgeKind, EntityEdges, EntityLine,
    ExpandOptions, Expansion, Legs, LinkTrace, Listing, NameTrace, Node, Passage, PathEdge, Question, Reached, Recipe,
    RelationLine, Role, Step, Strategy, TermTrace, Trace, VectorTrace,
};
pub use crate::segment::{StagedDocument, StagedRelation, StagedVector};
pub use crate::snapshot::{ChunkView, DocumentView, Snapshot, Space, Statistics};
pub use crate::storage::{Access, Env, FileName, Folder, Mapping, RealDisk, VFile, Vfs};
pub use crate::writer::{Batch, Committed, Store, Target};
pub use hedgerow_format::projection::EdgeReportRow as EdgeReport;
