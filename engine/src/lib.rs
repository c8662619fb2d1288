//! Hedgerow is an embedded knowledge store: what `SQLite` is for tables, for graph retrieval. It keeps documents, chunks,
//! entities, relations, embeddings, definition links and similarity edges in memory-mapped files with transactional
//! metadata, and answers a question with passages, each with the path that led to it.
//!
//! ```
//! use hedgerow::{Batch, Chunking, Document, Models, Pipeline, Question, Quiet, Snapshot, Store};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("hedgerow-doc-{}", std::process::id()));
//! let store = Store::open_or_create(&folder)?;
//! let pipeline = Pipeline { chunking: Some(Chunking::default()), ..Pipeline::default() };
//! let mut batch = Batch::default();
//! let documents = vec![
//!     Document::new("band").title("Pink Floyd").text("Pink Floyd was formed in London in 1965."),
//!     Document::new("opera").title("The Wall").text("The Wall is a rock opera of 1979."),
//! ];
//! pipeline.stage(&store.snapshot(), documents, &mut batch, &Quiet)?;
//! store.commit(batch)?;
//! store.refresh(&Quiet)?;
//!
//! let reader = Snapshot::open(&folder)?;
//! let context = reader.ask(&Question::new("Which rock opera is of 1979?"), Models::default())?;
//! assert_eq!(context.passages[0].key, "opera#0");
//! # drop((store, reader));
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Nouns
//!
//! A [`Store`] is the one writer of a folder. A [`Pipeline`] reads [`Document`]s into a [`Batch`], which
//! [`Store::commit`] makes true as a whole. A [`Snapshot`] is one generation, pinned: it never changes, needs no lock, and
//! any number of processes can have one. A [`Question`] put to a snapshot gives a [`Context`]: passages under a budget of
//! tokens, with scores, paths and a trace.
//!
//! # Promises
//!
//! - What [`Store::commit`] acknowledged survives a kill and a power cut, on a medium whose syncs do what they say.
//! - A batch is true as a whole or not at all; a reader never sees a part of one.
//! - Opening never fails because of what a crash left behind.
//! - Every byte is under a checksum that is checked before the byte is first believed. Damage is an error, never another
//!   answer.
//! - The same operations give the same answers and, names apart, the same bytes, whatever the number of threads.
//!
//! # Limits
//!
//! One writer. 2³² documents and chunks in a store's life, 64 MiB of text in a document, 4 KiB in a key or name, 4,096
//! components in a vector. Nothing is encrypted. Other programs must not write into a store's folder.
#![warn(missing_docs)]

mod catalog;
mod distance;
mod error;
mod index;
mod ingest;
mod maintain;
mod manifest;
mod model;
mod planted;
mod project;
mod projection;
mod query;
mod segment;
mod snapshot;
mod storage;
mod writer;

pub use crate::distance::peak::multiply_adds;
pub use crate::distance::{VectorFault, dot, normalise};
pub use crate::error::{
    CommitError, Damage, EdgeError, Error, OpenError, QueryError, RulesError, StorageError, TilesFault,
};
pub use crate::index::control::{Cancelled, Control, Quiet};
pub use crate::index::edges::{Cap, EdgeMemory, EdgeRules, Shared, Signal, SignalKind, Similarities};
pub use crate::index::graph::leiden::{
    Communities, GraphFault, HierarchySettings, Level, Resolution, Undirected, communities, hierarchy, modularity,
};
pub use crate::index::graph::rules::CommunityRules;
pub use crate::index::guard::{Deadline, QueryLimits};
pub use crate::ingest::chunking::{ChunkStrategy, Chunking};
pub use crate::ingest::{Document, GivenChunk, Part, PartKind, Pipeline, Rejected, Staged, triple};
pub use crate::maintain::{
    BackedUp, BackupError, BackupOptions, CommunityStats, EdgeStats, ExtractionStats, Limits, Lost, SalvageError,
    Salvaged, SpaceStats, Stats, Verified, VerifyError, salvage, verify,
};
pub use crate::model::{
    Certainty, CommunityContent, CommunityEntity, CommunityPassage, CommunityRelation, Embed, Extract, Extraction,
    FoundMention, FoundRelation, ModelError, Models, Summarize, Summary,
};
#[cfg(feature = "planted")]
pub use crate::planted::{Planted, plant};
pub use crate::project::{
    CommunitiesBuilt, EdgeShare, EdgesBuilt, Extractive, JoinedDumped, JoinedPart, UnfinishedEdges,
};
pub use crate::projection::FormerCommunities;
pub use crate::query::filter::{Fields, Filter, FilterError, Neighbourhood, TextField};
pub use crate::query::{
    Betweenness, ChunkSet, CommunityDescription, CommunityLine, Comparison, ComponentLine, Components, Context,
    DegreeLine, Degrees, Description, DescriptionLine, Direction, DocumentLine, Dropped, EdgeKind, EdgeRule,
    EntityEdges, EntityLine, ExpandOptions, Expansion, Explanation, ExtractionLine, Following, Found, FoundPath,
    FoundPaths, GraphDumped, GraphPart, Legs, LinkTrace, Listing, Measure, MentionLine, NameTrace, NeighbourLine,
    NeighbourOptions, Neighbours, Node, NodeSet, Passage, PathCost, PathEdge, PathOptions, PlanError, Question, Ranked,
    RankedKind, Ranking, RankingOptions, Reach, Reached, Reason, Recall, Recipe, RelationLine, ReportPassage, Returned,
    Role, Sage, ScoreLine, Selected, SelectedLine, Step, Strategy, TermTrace, Trace, VectorSearch, VectorTrace,
    Verdict,
};
pub use crate::segment::{
    ExtractionView, StagedChunk, StagedDocument, StagedEdge, StagedEdgeList, StagedEnd, StagedEntity, StagedExtraction,
    StagedMention, StagedRelation, StagedVector,
};
pub use crate::snapshot::{Bounded, ChunkView, DocumentView, Faults, Snapshot, Space, Statistics};
pub use crate::storage::{Access, Env, FileName, Folder, Mapping, Merging, PackDisk, Reading, RealDisk, VFile, Vfs};
pub use crate::writer::{Batch, Committed, Compacted, RepairError, Repaired, Store, Target};
pub use hedgerow_format::edges::PairKind;
pub use hedgerow_format::projection::EdgeReportRow as EdgeReport;
pub use hedgerow_format::{ChunkId, DocumentId, Key};

/// Makes a store, on an empty disk, whose files follow from the live content of a snapshot alone: the same content gives
/// the same bytes, whatever history it has. Ids are numbered anew in the order of keys, text is stored as it is, names and
/// UUID follow from the content's fingerprint. Projections are made anew, edges and communities with the settings that they have; reports of
/// communities that are the same stay as they are.
///
/// # Errors
/// [`Error`]; what was written is then of no use.
pub fn canonical(snapshot: &Snapshot, disk: std::sync::Arc<dyn Vfs>, control: &dyn Control) -> Result<Store, Error> {
    let fingerprint = snapshot.fingerprint().map_err(QueryError::from)?;
    let store = Store::open_or_create_in(Env::canonical(disk, fingerprint))?;
    store.copy_of(snapshot, control)?;
    let copied = store.snapshot();
    for (space, rules) in snapshot.edge_rules() {
        if copied.spaces().map_err(QueryError::from)?.iter().any(|known| known.name == space) {
            store.build_kinds(&space, &rules, &index::edges::Forgotten, control)?;
        }
    }
    store.refresh(control)?;
    if let Some(former) = snapshot.former_communities().map_err(QueryError::from)? {
        store.follow_communities(&former, &[], control)?;
    }
    Ok(store)
}

/// The README's code is a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
