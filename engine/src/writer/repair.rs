//! Makes a lost or damaged catalog again from what was published, where all facts are whole.

use crate::catalog::{Catalog, State};
use crate::error::{OpenError, StorageError};
use crate::index::control::{Cancelled, Control};
use crate::manifest;
use crate::segment::Segment;
use crate::storage::{Env, FileFault, VerifiedFile};
use crate::writer::{Missing, Store, recover};
use hedgerow_format::file::FileKind;
use hedgerow_format::head::Head;
use hedgerow_format::manifest::FileEntry;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// What a repair did; projections are made again by [`Store::refresh`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Repaired {
    /// The generation that is true now.
    pub generation: u64,
    /// Why the catalog was made again; none where it was sound.
    pub catalog: Option<String>,
    /// Why `HEAD` was published again; none where it named this generation.
    pub head: Option<String>,
    /// What is wrong with projections, or missing: what a refresh makes again.
    pub projections: Vec<String>,
}

/// Why a store was not repaired. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// Facts are lost, and nothing else holds them.
    #[error(
        "facts of {path} are damaged and cannot be made again: {}; `hedgerow salvage` saves what can be read into a new store",
        problems.join("; ")
    )]
    Facts {
        /// The store.
        path: PathBuf,
        /// What is wrong with which file, a sentence each.
        problems: Vec<String>,
    },
    /// Nothing says which generation is true.
    #[error(
        "neither HEAD ({head}) nor catalog.redb ({catalog}) of {path} says which generation is true; `hedgerow salvage` saves what can be read into a new store"
    )]
    NoGeneration {
        /// The store.
        path: PathBuf,
        /// What is wrong with `HEAD`.
        head: String,
        /// What is wrong with the catalog.
        catalog: String,
    },
    /// There is no store, another writer holds it, or the system refused something.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It was cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl From<StorageError> for RepairError {
    fn from(error: StorageError) -> Self {
        Self::Open(error.into())
    }
}

impl Store {
    /// Repairs the store in a folder and opens it for writing, as [`Store::repair_in`].
    ///
    /// # Errors
    /// [`RepairError`].
    pub fn repair(path: impl AsRef<Path>, control: &dyn Control) -> Result<(Self, Repaired), RepairError> {
        Self::repair_in(Env::folder(path.as_ref())?, control)
    }

    /// Opens a store for writing whose catalog or `HEAD` may be lost or damaged. A catalog that cannot be believed is made
    /// again from the published generation; `HEAD` is published again. Reads every byte of
    /// all facts first, and takes nothing for true that is not whole. A crash in here changes nothing or leaves it done.
    ///
    /// What is wrong with projections is told; [`Store::refresh`] makes them again.
    ///
    /// # Errors
    /// [`RepairError`]; the store is then as it was.
    pub fn repair_in(env: Env, control: &dyn Control) -> Result<(Self, Repaired), RepairError> {
        let lock = recover::enter(&env, Missing::Refuse)?;
        let survey = Survey { env: &env, control, head: read_head(&env)? };
        let catalog = survey.catalog()?;
        if let Some((_, state)) = &catalog {
            Catalog::create(&env, state)?;
        }
        let head = survey.head;
        let (lock, writer, snapshot) = recover::resume(&env, lock)?;
        snapshot.distrust_unsound_projections();
        let generation = snapshot.generation();
        let head = match head {
            Ok(head) if head.store != snapshot.manifest().store => Some("it was of another store".into()),
            Ok(head) if head.generation != generation => Some(format!("it named generation {}", head.generation)),
            Ok(_) => None,
            Err(reason) => Some(reason),
        };
        let catalog = catalog.map(|(reason, _)| reason);
        let repaired = Repaired { generation, catalog, head, projections: snapshot.incomplete() };
        Ok((Self::opened(env, (lock, writer, snapshot)), repaired))
    }
}

/// `HEAD`, or what is wrong with it.
fn read_head(env: &Env) -> Result<Result<Head, String>, OpenError> {
    match manifest::read_head(&*env.disk) {
        Ok(Some(head)) => Ok(Ok(head)),
        Ok(None) => Ok(Err("it was missing".into())),
        Err(OpenError::Damaged(damage)) => Ok(Err(damage.to_string())),
        Err(error) => Err(error),
    }
}

/// Finds out what is there, and writes nothing.
struct Survey<'e> {
    env: &'e Env,
    control: &'e dyn Control,
    head: Result<Head, String>,
}

impl Survey<'_> {
    /// Why the catalog must be made again, and what it must say; none where opening takes the one that is there.
    fn catalog(&self) -> Result<Option<(String, State)>, RepairError> {
        let reason = match Catalog::read(self.env) {
            Ok(state) => return self.believed(&state),
            Err(OpenError::MissingCatalog { .. }) => "it was missing".to_owned(),
            Err(OpenError::CatalogDamaged { reason, .. }) => reason,
            Err(error) => return Err(error.into()),
        };
        match &self.head {
            Ok(head) => Ok(Some((reason, self.published(head)?))),
            Err(head) => Err(RepairError::NoGeneration { path: self.path(), head: head.clone(), catalog: reason }),
        }
    }

    /// A sound catalog leads, unless it is of another store than `HEAD` and the files.
    fn believed(&self, state: &State) -> Result<Option<(String, State)>, RepairError> {
        if let Ok(head) = &self.head
            && head.store == state.store
            && head.generation > state.manifest.number
        {
            // Opening adopts it; where it is not whole, it was published all the same, and is not given up in silence.
            self.whole(head.store, &manifest::entry_of(head))?;
            return Ok(None);
        }
        match (self.whole(state.store, &state.manifest), &self.head) {
            (Ok(()), _) => Ok(None),
            (Err(RepairError::Facts { .. }), Ok(head)) if head.store != state.store => {
                Ok(Some(("it was of another store".into(), self.published(head)?)))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// The published generation, where it is whole. One above it was never acknowledged, and what memory shows of it may
    /// not be on the disk.
    fn published(&self, head: &Head) -> Result<State, RepairError> {
        let entry = manifest::entry_of(head);
        self.whole(head.store, &entry)?;
        // Opening raises the number above all files that the generation names.
        Ok(State { store: head.store, manifest: entry, next_file: 1 })
    }

    /// Whether every byte and every invariant of a generation's facts is right.
    fn whole(&self, store: [u8; 16], entry: &FileEntry) -> Result<(), RepairError> {
        let disk = &*self.env.disk;
        let mut problems = Vec::new();
        match manifest::read(disk, store, entry) {
            Err(fault) => problems.push(lost(fault)?),
            Ok(manifest) => {
                let total = manifest.segments.iter().map(|segment| segment.file.file_bytes).sum();
                let mut done = 0;
                for segment in &manifest.segments {
                    if self.control.cancelled() {
                        return Err(Cancelled.into());
                    }
                    let opened = VerifiedFile::open(disk, FileKind::Segment, store, &segment.file);
                    let checked = opened.and_then(|file| {
                        let checked = Segment::new(file, *segment).and_then(|segment| segment.verify());
                        checked.map_err(FileFault::Damage)
                    });
                    if let Err(fault) = checked {
                        problems.push(lost(fault)?);
                    }
                    done += segment.file.file_bytes;
                    self.control.advance(done, total);
                }
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(RepairError::Facts { path: self.path(), problems }) }
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(self.env.disk.describe())
    }
}

/// What is lost. What the system refuses now may be there later: that is an error.
fn lost(fault: FileFault) -> Result<String, StorageError> {
    match fault {
        FileFault::Storage(error) if error.source.kind() != io::ErrorKind::NotFound => Err(error),
        FileFault::Storage(error) => Ok(error.to_string()),
        FileFault::Damage(damage) => Ok(damage.to_string()),
    }
}
