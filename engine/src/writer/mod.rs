//! The one writer of a store: stage, seal, commit, publish, recover, repair, sweep.

mod batch;
mod commit;
mod compact;
mod copy;
mod recover;
mod repair;
mod resolve;
mod scratch;

pub use batch::{Batch, Target};
pub use commit::{Committed, Projected};
pub use compact::Compacted;
pub use repair::{RepairError, Repaired};

use crate::catalog::{Catalog, State};
use crate::error::{CommitError, OpenError};
use crate::planted::{Planted, planted};
use crate::snapshot::Snapshot;
use crate::storage::Env;
use crate::storage::sync::{Mutex, MutexGuard, RwLock};
use std::path::Path;
use std::sync::{Arc, PoisonError};

/// An open store: one writer, any number of snapshots.
#[derive(Debug)]
pub struct Store {
    env: Env,
    writer: Mutex<Writer>,
    current: RwLock<Arc<Snapshot>>,
    /// The newest generation whose links were in step: what links are followed from. It keeps the text that they were made
    /// of, whatever a merge leaves out since.
    linked: RwLock<Option<Arc<Snapshot>>>,
    _lock: recover::Lock,
}

/// What to do where there is no store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Refuse,
    Create,
}

#[derive(Debug)]
struct Writer {
    catalog: Catalog,
    state: State,
    /// The next commit's generation is above this: numbers that a lost commit may have used are skipped.
    generation_floor: u64,
    poisoned: Option<String>,
}

impl Store {
    /// Opens the store in a folder for writing. Takes the lock, and recovers whatever an earlier process left undone.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::NotFound`] where there is none.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_in(Env::folder(path.as_ref())?)
    }

    /// Opens the store in a folder for writing, making it unless it is there.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_or_create(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_or_create_in(Env::folder(path.as_ref())?)
    }

    /// Opens the store on a disk for writing.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_in(env: Env) -> Result<Self, OpenError> {
        Self::open_with(env, Missing::Refuse)
    }

    /// Opens the store on a disk for writing, making it unless it is there.
    ///
    /// # Errors
    /// As [`Store::open_or_create`].
    pub fn open_or_create_in(env: Env) -> Result<Self, OpenError> {
        Self::open_with(env, Missing::Create)
    }

    fn open_with(env: Env, missing: Missing) -> Result<Self, OpenError> {
        let opened = recover::open(&env, missing)?;
        Ok(Self::opened(env, opened))
    }

    fn opened(env: Env, (lock, writer, snapshot): recover::Opened) -> Self {
        let current = Arc::new(snapshot);
        let linked = RwLock::new(current.has_links_in_step().then(|| Arc::clone(&current)));
        Self { env, writer: Mutex::new(writer), current: RwLock::new(current), linked, _lock: lock }
    }

    /// The newest generation.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes all of a batch true, or none of it. Returns once it is durable: at most nine syncs.
    /// Then, one time in several, neighbouring segments are merged, which is a commit of its own: see [`Merging`](crate::Merging).
    ///
    /// Documents that are in the store with the same fingerprint are left as they are; a batch that changes nothing
    /// makes no generation. Projections are behind afterwards.
    ///
    /// # Errors
    /// [`CommitError`]. After [`CommitError::Unknown`] the store refuses to write until it is opened again.
    pub fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        let early = planted(Planted::LockedTooLate).then(|| self.snapshot());
        let mut writer = self.lock()?;
        let before = early.unwrap_or_else(|| self.snapshot());
        let resolved = resolve::resolve(&before, batch)?;
        if resolved.is_empty() {
            return Ok(resolved.unchanged(before.generation()));
        }
        let (mut committed, snapshot) = writer.commit_facts(&self.env, &before, resolved)?;
        self.swap(snapshot);
        match self.merge(&mut writer) {
            Ok(merged) => committed.merged = merged,
            Err(error) => committed.merge_fault = Some(error.to_string()),
        }
        Ok(committed)
    }

    /// Publishes projections that were made from the snapshot `made_from`.
    pub(crate) fn commit_projections(&self, made_from: &Snapshot, projected: &[Projected]) -> Result<(), CommitError> {
        let mut writer = self.lock()?;
        let before = self.snapshot();
        let snapshot = writer.commit_projections(&self.env, &before, made_from, projected)?;
        self.swap(snapshot);
        Ok(())
    }

    /// The writer, unless an earlier commit failed halfway or panicked.
    fn lock(&self) -> Result<MutexGuard<'_, Writer>, CommitError> {
        let writer = self.writer.lock().unwrap_or_else(|poisoned| {
            let mut writer = poisoned.into_inner();
            writer.poisoned.get_or_insert_with(|| "it panicked".into());
            writer
        });
        match &writer.poisoned {
            Some(reason) if !planted(Planted::PoisonIgnored) => Err(CommitError::Poisoned { reason: reason.clone() }),
            _ => Ok(writer),
        }
    }

    /// Vectors from which on a space has an index.
    pub(crate) fn index_from(&self) -> u64 {
        self.env.index_from
    }

    /// The newest generation whose links were in step while this store has been open.
    pub(crate) fn linked(&self) -> Option<Arc<Snapshot>> {
        self.linked.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn swap(&self, snapshot: Snapshot) {
        let snapshot = Arc::new(snapshot);
        if snapshot.has_links_in_step() {
            *self.linked.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&snapshot));
        }
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }
}
