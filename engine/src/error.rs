//! Everything that can go wrong, an enum per kind of call, under one umbrella.

use hedgerow_format::FormatError;
use std::path::PathBuf;
use std::time::Duration;

/// The operating system refused something.
#[derive(Debug, thiserror::Error)]
#[error("could not {action} {path}: {source}")]
pub struct StorageError {
    /// What was tried.
    pub action: &'static str,
    /// On which file or folder.
    pub path: String,
    /// What the system said.
    pub source: std::io::Error,
}

/// A file of the store holds other bytes than it must.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file} is damaged or foreign: {source}")]
pub struct Damage {
    /// The file, relative to the store.
    pub file: String,
    /// What is wrong, and where.
    pub source: FormatError,
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is nothing at this path.
    #[error("there is no store at {path}: create one with `hedgerow ingest` or `Store::open_or_create`")]
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// There is a store without `HEAD`.
    #[error("HEAD of {path} is missing: the next command that writes to the store publishes it again")]
    NoHead {
        /// The path.
        path: PathBuf,
    },
    /// There is something else at this path.
    #[error("{path} is not a Hedgerow store: {found}")]
    NotAStore {
        /// The path.
        path: PathBuf,
        /// What is there.
        found: String,
    },
    /// A pack was opened for writing.
    #[error("{path} is a pack, which never changes: `hedgerow restore` it into a folder, and write there")]
    Pack {
        /// The path.
        path: PathBuf,
    },
    /// A restore did not come to its end.
    #[error(
        "{path} has files of a store, but neither HEAD nor catalog.redb: if a restore was interrupted, run it again"
    )]
    Unfinished {
        /// The path.
        path: PathBuf,
    },
    /// Another writer holds the store.
    #[error("another writer holds {path}{holder}: wait for it to finish, or open the store for reading")]
    Locked {
        /// The path.
        path: PathBuf,
        /// Who, as far as known.
        holder: String,
    },
    /// A file has a feature that a writer must know.
    #[error(
        "{path} uses features {features:#x} that this program cannot write: open it for reading, or use a newer version"
    )]
    ReadOnly {
        /// The path.
        path: PathBuf,
        /// The unknown bits.
        features: u64,
    },
    /// The catalog is gone from a store that was written to.
    #[error("{path} has lost its catalog.redb: reading still works; `hedgerow repair` makes it again")]
    MissingCatalog {
        /// The path.
        path: PathBuf,
    },
    /// The catalog cannot be believed.
    #[error("catalog.redb of {path} is damaged ({reason}): reading still works; `hedgerow repair` makes it again")]
    CatalogDamaged {
        /// The path.
        path: PathBuf,
        /// What redb says.
        reason: String,
    },
    /// Each file is whole, but one says of another what is not so.
    #[error("the files of the store do not fit together: {reason}")]
    Contradiction {
        /// What does not fit.
        reason: String,
    },
    /// It has more than a store may have that is not trusted.
    #[error("{found} {what}, and {limit} are allowed where the store is not trusted")]
    TooMuch {
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        found: u64,
        /// How much there may be.
        limit: u64,
    },
    /// A file of the published generation is damaged.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The operating system refused something.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why a commit did not come true.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// An earlier commit failed in a way that leaves the outcome to the next open.
    #[error("an earlier commit failed halfway ({reason}): close the store and open it again before writing")]
    Poisoned {
        /// What failed then.
        reason: String,
    },
    /// The commit may or may not be durable; the next open decides.
    #[error("the commit's outcome is unknown ({reason}): close the store and open it again to see whether it holds")]
    Unknown {
        /// What failed.
        reason: String,
    },
    /// Something in the batch refers to a document or chunk that is not there.
    #[error("{what} {key} is neither in the batch nor in the store")]
    UnknownKey {
        /// What was looked for.
        what: &'static str,
        /// Its key.
        key: String,
    },
    /// Something in the batch cannot be written.
    #[error("{key} cannot be written: {reason}")]
    Malformed {
        /// Key of the document.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// A vector does not fit its space.
    #[error("the vector for {key} does not fit the space {space}: {expected} expected, {found} found")]
    Space {
        /// Key of the chunk.
        key: String,
        /// Name of the space.
        space: String,
        /// What the space holds.
        expected: String,
        /// What was given.
        found: String,
    },
    /// Edges can't be made by the rules that they are to have.
    #[error("edges of the space {space} cannot be made: {source}")]
    Rules {
        /// Name of the space.
        space: String,
        /// Why.
        source: RulesError,
    },
    /// Edges need more memory than they may take; nothing was changed.
    #[error(
        "edges of the space {space} need at least {needed} bytes of memory, and {allowed} are allowed: allow more, or let chunks \
         choose fewer partners"
    )]
    Memory {
        /// Name of the space.
        space: String,
        /// Bytes that suffice.
        needed: u64,
        /// Bytes that are allowed.
        allowed: u64,
    },
    /// The work was cancelled; nothing was changed.
    #[error("cancelled; the store is as it was")]
    Cancelled,
    /// The batch is too large.
    #[error(transparent)]
    Limit(#[from] FormatError),
    /// A file that the commit reads is damaged.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The operating system refused something; nothing was changed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why edges can't be made by some rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// A value is beyond what it may be.
    #[error("{what} is {found}: {least} to {most} is allowed")]
    Beyond {
        /// Which value.
        what: &'static str,
        /// What was given.
        found: u32,
        /// The least that it may be.
        least: u32,
        /// The most that it may be.
        most: u32,
    },
    /// The least similarity is no number that can be compared.
    #[error("the least similarity is {found}: a finite number is expected")]
    NoNumber {
        /// What was given.
        found: String,
    },
    /// The nearest are to be found by an index, and it is not said how many, or signals tell which they are.
    #[error("an index finds the nearest by their vectors alone: say how many, and give no signals")]
    Indexed,
    /// Edges among what an index finds are to be computed in shares.
    #[error("edges among what an index finds are not computed in shares: build them at once, or compare all pairs")]
    Whole,
}

/// Why a query has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The key names nothing.
    #[error("{key} is neither a document, a chunk nor an entity of this store")]
    NotFound {
        /// The key as it was given.
        key: String,
    },
    /// The vector space that was asked for is not there.
    #[error("this store has no vector space {space}; it has {known}")]
    UnknownSpace {
        /// The space that was asked for.
        space: String,
        /// The spaces that there are.
        known: String,
    },
    /// A question's vector does not fit its space.
    #[error("the question's vector does not fit the space {space}: {expected} expected, {found} found")]
    Vector {
        /// Name of the space.
        space: String,
        /// What the space holds.
        expected: String,
        /// What was given.
        found: String,
    },
    /// The query did not end in time.
    #[error("the query was not done after {} s: give it more time, or ask for less", after.as_secs_f64())]
    Deadline {
        /// The time that it had.
        after: Duration,
    },
    /// The query needs more memory than it may have.
    #[error(
        "the query needs {needed} bytes of memory and may have {budget}: give it more, or ask for less with a lower \
         limit or a smaller store"
    )]
    Memory {
        /// Bytes that it would have held.
        needed: u64,
        /// Bytes that it may hold.
        budget: u64,
    },
    /// The query was stopped by its control.
    #[error("the query was cancelled; ask again to get its answer")]
    Cancelled,
    /// The embedder or extractor failed.
    #[error(transparent)]
    Model(#[from] crate::model::ModelError),
    /// A file of the store is damaged.
    #[error(transparent)]
    Damaged(#[from] Damage),
}

/// Why edges were not built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EdgeError {
    /// The space is not there.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// They could not be committed.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// There is no such share.
    #[error("there is no share {number} of {of}: shares are numbered from 1 to their number")]
    Share {
        /// Which was asked for.
        number: u32,
        /// Of how many.
        of: u32,
    },
    /// A share can't be read.
    #[error("share {share}, counted from 0: {source}")]
    Part {
        /// Which one, in the order given.
        share: usize,
        /// Why.
        source: TilesFault,
    },
    /// All that can be shared was done.
    #[error("no pass over the pairs is left to be shared: merge the shares that there are")]
    NothingLeft,
    /// Shares don't make up the edges.
    #[error("{reason}: compute every share once, from the same documents and vectors and with the same settings")]
    NotJoined {
        /// What is wrong.
        reason: &'static str,
    },
}

/// Why bytes are none of a build of edges.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TilesFault {
    /// They don't begin as one does.
    #[error("this is no file of edge tiles: it does not begin with \"hedgerow-tiles\"")]
    NotTiles,
    /// Another version wrote them.
    #[error(
        "these edge tiles are of version {found}, and this program reads version {expected}: compute them anew with it"
    )]
    Version {
        /// The version that they name.
        found: u32,
        /// The version that is read.
        expected: u32,
    },
    /// They end early, go on too long, or their hash differs.
    #[error("the edge tiles from byte {at} on are damaged or cut off: copy the file again, or compute them anew")]
    Damaged {
        /// Where the part begins that is damaged.
        at: usize,
    },
}

/// Any error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// At opening.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// At committing.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// At asking.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// At building edges.
    #[error(transparent)]
    Edges(#[from] EdgeError),
}
