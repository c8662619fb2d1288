//! What depends on the whole corpus, made from its facts: definition links, similarity edges and communities.

mod communities;
mod composed;
mod edges;
mod indexed;
mod links;
mod mentions;
mod tiles;
mod vectors;

use crate::error::{CommitError, Damage, EdgeError, QueryError, StorageError};
use crate::index::control::{Cancelled, Control, Quiet};
pub use crate::index::edges::EdgeShare;
use crate::index::edges::{
    BYTES_USUAL, EdgeMemory, EdgeRules, Forgotten, SignalKind, Similarities, Stopped, Unfinished,
};
use crate::model::Embed;
use crate::planted::{Planted, planted};
use crate::project::communities::Wanted;
pub use crate::project::communities::{CommunitiesBuilt, Extractive, JoinedDumped, JoinedPart};
use crate::project::edges::Task;
use crate::project::mentions::Mentioned;
pub use crate::project::tiles::UnfinishedEdges;
use crate::projection::{Links, LinksData};
use crate::snapshot::Snapshot;
use crate::writer::{Compacted, Projected, Store};
use hedgerow_format::edges::PairKind;
use hedgerow_format::file::FileKind;
use hedgerow_format::manifest::ProjectionEntry;
use hedgerow_format::projection::EdgeReportRow as EdgeReport;
use std::collections::BTreeSet;

impl Store {
    /// Brings projections in step with the facts: links always, the edges of every space that has them, with their
    /// own settings, and communities where there are any: their reports are kept where nothing has changed that they are made of, others are
    /// drawn from the store without a model and have no vectors, which [`Store::refresh_with`] gives them. Does nothing where all are in
    /// step. Reads all text; edges compare only what changed where that tells as much, those of several signals all pairs. The result
    /// depends on what is live alone.
    ///
    /// # Errors
    /// [`CommitError`]; [`CommitError::Cancelled`] leaves the store as it was.
    pub fn refresh(&self, control: &dyn Control) -> Result<(), CommitError> {
        self.refresh_with(&[], control)
    }

    /// Like [`Store::refresh`]; new reports of communities get their vectors by the embedder whose space and model are those of the other
    /// reports, if it is among these. Where it fails they have none, as answers and [`Stats`](crate::Stats) say.
    ///
    /// # Errors
    /// Those of [`Store::refresh`].
    pub fn refresh_with(&self, embedders: &[&dyn Embed], control: &dyn Control) -> Result<(), CommitError> {
        self.bring_in_step(None, embedders, control).map(drop)
    }

    /// Rewrites every segment that holds something dead, and merges neighbours up to the size that [`Merging::bytes`](crate::Merging)
    /// says; then indexes of vectors follow that lag behind. What was deleted is in no segment afterwards; a projection that is behind
    /// keeps names of it until [`Store::refresh`]. Every step is a commit of its own, so that after a cancellation or a crash the next
    /// call goes on from there. Memory is that of one merged segment's documents, or of an index.
    ///
    /// # Errors
    /// [`CommitError`]; [`CommitError::Cancelled`] leaves what was done.
    pub fn compact(&self, control: &dyn Control) -> Result<Compacted, CommitError> {
        let compacted = self.compact_segments(control)?;
        self.follow_indexes(control)?;
        Ok(compacted)
    }

    /// Merges what is left to merge, lets indexes of vectors follow that lag behind, removes the files that nothing needs any more, and
    /// closes the store. Gives the generation that it leaves. Dropping the store closes it too, and leaves all that to later commits.
    ///
    /// # Errors
    /// [`CommitError`], of the merging and indexing alone: every commit that was acknowledged holds.
    pub fn close(self) -> Result<u64, CommitError> {
        self.merge_all()?;
        if self.follow_indexes(&Quiet)? {
            self.merge_all()?;
        }
        Ok(self.snapshot().generation())
    }

    /// Brings the indexes in step that a search does without for an eighth of their vectors or more; tells whether there were any.
    fn follow_indexes(&self, control: &dyn Control) -> Result<bool, CommitError> {
        let snapshot = self.snapshot();
        let projected = self.indexes_behind(&snapshot, vectors::lags, control)?;
        if !projected.is_empty() {
            self.commit_projections(&snapshot, &projected)?;
        }
        Ok(!projected.is_empty())
    }

    /// Makes everything that is behind in one commit, and the communities that are wanted even where they are not.
    fn bring_in_step(
        &self,
        wanted: Option<Wanted<'_>>,
        embedders: &[&dyn Embed],
        control: &dyn Control,
    ) -> Result<CommunitiesBuilt, CommitError> {
        let snapshot = self.snapshot();
        let links = self.links_behind(&snapshot, control)?;
        let mut projected = self.edges_behind(&snapshot, links.as_deref(), control)?;
        let communities = snapshot.communities();
        let is_behind = communities.is_none_or(|communities| is_behind(&snapshot, communities.entry().facts));
        let former = if is_behind { snapshot.former_communities()? } else { None };
        let following = former.as_ref().map(|former| Wanted::following(former, embedders, control));
        let mut built = CommunitiesBuilt::default();
        if let Some(wanted) = wanted.or(following) {
            let made = links.as_deref().map(Links::in_memory).transpose()?;
            if let Some(links) = made.as_ref().or(snapshot.links().map(|links| &**links)) {
                let (data, counted) = communities::communities(&snapshot, links, wanted)?;
                projected.push(Projected::Communities(Box::new(data)));
                built = counted;
            }
        }
        projected.splice(..0, links.map(Projected::Links));
        projected.extend(self.indexes_behind(&snapshot, vectors::is_behind, control)?);
        if !projected.is_empty() {
            self.commit_projections(&snapshot, &projected)?;
        }
        Ok(built)
    }

    /// New indexes of the spaces that have one, or vectors enough for one, where it is behind or can't be read.
    fn indexes_behind(
        &self,
        snapshot: &Snapshot,
        is_behind: vectors::IsBehind,
        control: &dyn Control,
    ) -> Result<Vec<Projected>, CommitError> {
        let mut projected = Vec::new();
        let is_index = |entry: &&ProjectionEntry| entry.kind == FileKind::Vectors.number();
        let indexed: BTreeSet<&str> =
            snapshot.manifest().projections.iter().filter(is_index).map(|entry| entry.space.as_str()).collect();
        let spaces = snapshot.spaces()?;
        let gone = indexed.iter().filter(|name| !spaces.iter().any(|space| space.name == **name));
        projected.extend(gone.map(|name| Projected::NoVectors((*name).to_owned())));
        for space in spaces {
            let index = snapshot.vector_index(&space.name);
            if !indexed.contains(space.name.as_str()) && space.vectors < self.index_from() {
                continue;
            }
            if let Some(index) = index
                && !is_behind(snapshot, space, index)?
            {
                continue;
            }
            projected.push(Projected::Vectors(Box::new(vectors::build(snapshot, space, index, control)?)));
        }
        Ok(projected)
    }

    /// New edges of the spaces whose edges are not in step or can't be read.
    fn edges_behind(
        &self,
        snapshot: &Snapshot,
        links: Option<&LinksData>,
        control: &dyn Control,
    ) -> Result<Vec<Projected>, CommitError> {
        let mut projected = Vec::new();
        let sound: BTreeSet<u64> = snapshot.edges().map(|edges| edges.entry().file.number).collect();
        let entries = snapshot.manifest().projections.iter().filter(|entry| entry.kind == FileKind::Edges.number());
        let behind = entries.filter(|entry| is_behind(snapshot, entry.facts) || !sound.contains(&entry.file.number));
        let behind: BTreeSet<&str> = behind.map(|entry| entry.space.as_str()).collect();
        let mut rules = snapshot.edge_rules();
        rules.retain(|space, _| behind.contains(space.as_str()));
        let mentioned = mentioned(snapshot, links, rules.values())?;
        let scratch = self.scratch(snapshot);
        for (space, rules) in &rules {
            let mentioned = mentioned.as_ref();
            let (unfinished, memory) = (&Forgotten, scratch.memory());
            let task = Task { snapshot, space, rules, follow: true, unfinished, mentioned, memory, control };
            let kinds = task.build()?.into_iter().map(|(data, _)| data).collect();
            projected.push(Projected::Edges(kinds));
        }
        Ok(projected)
    }

    /// Builds the similarity edges of a space, in place of those that it has, and tells of each kind of pairs that it has;
    /// of pairs without a table always. Where rules are about entities, brings the links in step as well.
    ///
    /// Compares all pairs: n² / 2 inner products for n vectors, on all threads. Takes no more memory than
    /// [`Env::edge_memory`](crate::Env) says, apart from maps of the store's files: up to n · (3 · dimensions + 24 · `top_m`) bytes;
    /// with less, codes of vectors are made again and again, and partners of chunks are put into a file in the store's folder
    /// while it runs. Where there are signals, computes each for all pairs, once or twice, and
    /// holds what they are about, such as the words of all chunks: these are read before it is known how much memory is needed.
    ///
    /// # Errors
    /// [`QueryError::UnknownSpace`] where no chunk has a vector in the space, or in that of a signal; [`CommitError`], and
    /// [`CommitError::Rules`] where the rules are none that edges can be made by, [`CommitError::Memory`] where the memory does not
    /// do.
    pub fn build_edges(
        &self,
        space: &str,
        rules: &EdgeRules,
        control: &dyn Control,
    ) -> Result<Vec<EdgesBuilt>, EdgeError> {
        check_signals(&self.snapshot(), space, rules)?;
        self.build_kinds(space, rules, &Forgotten, control)
    }

    /// Like [`Store::build_edges`], but goes on with a build that was cancelled or killed, if the vectors and the rules are
    /// still the same. Those whose partners did not fit in memory are always built from the start.
    ///
    /// # Errors
    /// Those of [`Store::build_edges`].
    pub fn build_edges_from(
        &self,
        space: &str,
        rules: &EdgeRules,
        unfinished: &UnfinishedEdges<'_>,
        control: &dyn Control,
    ) -> Result<Vec<EdgesBuilt>, EdgeError> {
        check_signals(&self.snapshot(), space, rules)?;
        self.build_kinds(space, rules, unfinished, control)
    }

    /// Builds the edges, whether or not there are vectors of the spaces that signals name.
    pub(crate) fn build_kinds(
        &self,
        space: &str,
        rules: &EdgeRules,
        unfinished: &dyn Unfinished,
        control: &dyn Control,
    ) -> Result<Vec<EdgesBuilt>, EdgeError> {
        let snapshot = self.snapshot();
        has_space(&snapshot, space)?;
        let links = if rules.reads_mentions() { self.links_behind(&snapshot, control)? } else { None };
        let mentioned = mentioned(&snapshot, links.as_deref(), std::iter::once(rules))?;
        let mentioned = mentioned.as_ref();
        let scratch = self.scratch(&snapshot);
        let memory = scratch.memory().less(unfinished.bytes());
        let task = Task { snapshot: &snapshot, space, rules, follow: false, unfinished, mentioned, memory, control };
        let (mut kinds, mut built) = (Vec::new(), Vec::new());
        for (data, told) in task.build()? {
            let (similarities, memory) = told.unzip();
            let similarities = similarities.unwrap_or_default();
            let thresholds = data.thresholds.clone();
            built.push(EdgesBuilt { kind: data.kind, report: data.report, thresholds, similarities, memory });
            kinds.push(data);
        }
        let projected: Vec<Projected> =
            links.map(Projected::Links).into_iter().chain([Projected::Edges(kinds)]).collect();
        self.commit_projections(&snapshot, &projected)?;
        Ok(built)
    }

    /// New links, where those of a snapshot are not in step or can't be read.
    fn links_behind(&self, snapshot: &Snapshot, control: &dyn Control) -> Result<Option<Box<LinksData>>, CommitError> {
        if snapshot.links().is_some_and(|links| !is_behind(snapshot, links.entry().facts)) {
            return Ok(None);
        }
        let links = links::build(snapshot, self.linked().as_deref(), control)?;
        Ok(Some(Box::new(links)))
    }
}

fn is_behind(snapshot: &Snapshot, facts: u64) -> bool {
    facts != snapshot.manifest().facts && !planted(Planted::StaleBelieved)
}

/// What chunks mention, by links that are about to be committed or else by those that are in step, if any rules ask for it.
fn mentioned<'r>(
    snapshot: &Snapshot,
    links: Option<&LinksData>,
    mut rules: impl Iterator<Item = &'r EdgeRules>,
) -> Result<Option<Mentioned>, CommitError> {
    if !rules.any(EdgeRules::reads_mentions) {
        return Ok(None);
    }
    match (links, snapshot.links()) {
        (Some(links), _) => Ok(Some(Mentioned::made(snapshot, links)?)),
        (None, Some(links)) => Ok(Some(Mentioned::open(snapshot, links)?)),
        (None, None) => Ok(None),
    }
}

fn has_space(snapshot: &Snapshot, space: &str) -> Result<(), EdgeError> {
    let spaces = snapshot.spaces().map_err(CommitError::Damaged)?;
    if spaces.iter().any(|known| known.name == space) {
        return Ok(());
    }
    let known = spaces.iter().map(|space| space.name.as_str()).collect::<Vec<_>>().join(", ");
    Err(QueryError::UnknownSpace { space: space.to_owned(), known }.into())
}

/// Whether edges of a space can be made by some rules.
fn check(space: &str, rules: &EdgeRules) -> Result<(), CommitError> {
    rules.check().map_err(|source| CommitError::Rules { space: space.to_owned(), source })
}

/// Whether the rules are sound and the spaces that their signals name are there.
fn check_signals(snapshot: &Snapshot, space: &str, rules: &EdgeRules) -> Result<(), EdgeError> {
    check(space, rules)?;
    for signal in &rules.signals {
        if let SignalKind::Vectors(space) = &signal.what {
            has_space(snapshot, space)?;
        }
    }
    Ok(())
}

/// The edges of one kind of pairs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EdgesBuilt {
    /// The kind.
    pub kind: PairKind,
    /// What became of all pairs of the kind.
    pub report: EdgeReport,
    /// The threshold of each signal of the rules, in their order; 0 of one that takes no part in pairs of the kind.
    pub thresholds: Vec<f32>,
    /// How similar they are; nothing is counted where there are signals.
    pub similarities: Similarities,
    /// What was in memory, and what was not; none where there are signals.
    pub memory: Option<EdgeMemory>,
}

/// Why a projection was not made.
enum Fault {
    Cancelled,
    Damage(Damage),
}

/// Why edges were not made.
enum Unmade {
    Cancelled,
    Damage(Damage),
    Storage(StorageError),
    Memory { needed: u64 },
}

impl From<Damage> for Fault {
    fn from(damage: Damage) -> Self {
        Self::Damage(damage)
    }
}

impl From<Damage> for Unmade {
    fn from(damage: Damage) -> Self {
        Self::Damage(damage)
    }
}

impl From<Cancelled> for Unmade {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl From<Stopped> for Unmade {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Cancelled => Self::Cancelled,
            Stopped::Storage(error) => Self::Storage(error),
            Stopped::Memory { needed } => Self::Memory { needed },
        }
    }
}

impl From<Cancelled> for Fault {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl From<Fault> for CommitError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Cancelled => Self::Cancelled,
            Fault::Damage(damage) => Self::Damaged(damage),
        }
    }
}

impl Unmade {
    /// As it is told of a space whose edges may take so much memory.
    fn of(self, space: &str, allowed: Option<u64>) -> CommitError {
        match self {
            Self::Cancelled => CommitError::Cancelled,
            Self::Damage(damage) => CommitError::Damaged(damage),
            Self::Storage(error) => CommitError::Storage(error),
            Self::Memory { needed } => {
                CommitError::Memory { space: space.to_owned(), needed, allowed: allowed.unwrap_or(BYTES_USUAL) }
            }
        }
    }
}

/// One above the highest chunk id of a snapshot.
fn chunks_end(snapshot: &Snapshot) -> u32 {
    snapshot.manifest().chunks_end
}
