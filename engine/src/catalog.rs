//! The commit point: one redb transaction that names the generation.

use crate::error::OpenError;
use crate::planted::{Planted, planted};
use crate::storage::{Access, Backend, Env, FileName, Folder, at, at_folder};
use hedgerow_format::file::FileKind;
use hedgerow_format::manifest::FileEntry;
use redb::{Database, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition};
use std::io;
use std::path::PathBuf;

/// `format`, `store`, `generation`, `random`, `bytes`, `hash`, `next file`.
const STATE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("state");
/// Files that no generation names any more: kind, number and random to the generation that dropped them.
const PENDING: TableDefinition<'_, (u32, u64, u64), u64> = TableDefinition::new("pending");
/// The catalog is small: this is enough to hold all of it.
const CACHE_BYTES: usize = 16 << 20;
/// A catalog has a few rows; one larger than this is not one.
const CHECKED_BYTES: u64 = 256 << 20;

/// The catalog of an open store.
#[derive(Debug)]
pub struct Catalog {
    database: Database,
    pending: Vec<FileName>,
}

/// Times that a copy is read while it differs from the one before.
const READINGS: usize = 64;

/// Where redb's header says, by this bit, that the file was not closed (its `docs/design.md`, "god byte").
const RECOVERY_BYTE: usize = 9;
const RECOVERY_REQUIRED: u8 = 2;

/// What is true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// UUID of the store.
    pub store: [u8; 16],
    /// The manifest of the last commit; its number is the generation.
    pub manifest: FileEntry,
    /// One above the highest number of a file that was ever named.
    pub next_file: u64,
}

/// Why the catalog could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("catalog.redb: {0}")]
pub struct CatalogError(String);

impl CatalogError {
    fn new(error: impl Into<redb::Error>) -> Self {
        Self(error.into().to_string())
    }

    fn malformed(field: &str) -> Self {
        Self(format!("its field {field} is missing or malformed"))
    }
}

impl Catalog {
    /// Makes a new catalog under a name that is never used again, then gives it its own.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn create(env: &Env, state: &State) -> Result<(), OpenError> {
        Self::write_anew(env, state, &[])
    }

    fn write_anew(env: &Env, state: &State, pending: &[FileName]) -> Result<(), OpenError> {
        let in_place = planted(Planted::CatalogInPlace);
        let name = if in_place { FileName::Catalog } else { FileName::NewCatalog(env.random()) };
        let disk = &*env.disk;
        let file = disk.create_new(&name).map_err(at("create", &name))?;
        let make = || -> Result<(), CatalogError> {
            let database = options().create_with_backend(Backend(file)).map_err(CatalogError::new)?;
            let mut catalog = Self { database, pending: Vec::new() };
            catalog.commit(state, pending, &[])?;
            catalog.database.close().map_err(CatalogError::new)
        };
        make().map_err(|error| damaged(env, &error))?;
        disk.open(&name, Access::Write).and_then(|file| file.sync()).map_err(at("sync", &name))?;
        if !in_place {
            disk.rename(&name, &FileName::Catalog).map_err(at("rename", &name))?;
        }
        Ok(disk.sync_folder(Folder::Root).map_err(at_folder("sync", Folder::Root))?)
    }

    /// Opens the catalog and checks all of it. One that was not closed is first written anew, as another file: a sync that
    /// failed may have dropped what memory still shows, and no later sync would write that again.
    ///
    /// # Errors
    /// [`OpenError::CatalogDamaged`] and [`OpenError::Storage`].
    pub fn open(env: &Env) -> Result<(Self, State), OpenError> {
        let name = FileName::Catalog;
        let mut first = [0; RECOVERY_BYTE + 1];
        let looked = env.disk.open(&name, Access::Read).and_then(|file| {
            // redb would make an empty database of an empty file.
            let length = file.len()?;
            let there = usize::try_from(length).unwrap_or(usize::MAX).min(first.len());
            file.read_at(&mut first[..there], 0).map(|()| length)
        });
        if looked.map_err(at("read", &name))? == 0 {
            return Err(damaged(env, &CatalogError("it is empty".into())));
        }
        if first[RECOVERY_BYTE] & RECOVERY_REQUIRED != 0 && !planted(Planted::OnePhase) {
            let (state, pending) = Self::copy(env)?;
            Self::write_anew(env, &state, &pending)?;
        }
        let file = env.disk.open(&name, Access::Write).map_err(at("open", &name))?;
        let read = || -> Result<(Self, State), CatalogError> {
            let database = options().create_with_backend(Backend(file)).map_err(CatalogError::new)?;
            let (state, pending) = read_all(&database)?;
            Ok((Self { database, pending }, state))
        };
        read().map_err(|error| damaged(env, &error))
    }

    /// What a copy of the catalog in memory says, all of it checked; a writer may be at work. Writes nothing.
    ///
    /// # Errors
    /// [`OpenError::MissingCatalog`], [`OpenError::CatalogDamaged`] and [`OpenError::Storage`].
    pub fn read(env: &Env) -> Result<State, OpenError> {
        Self::copy(env).map(|(state, _)| state)
    }

    fn copy(env: &Env) -> Result<(State, Vec<FileName>), OpenError> {
        let name = FileName::Catalog;
        let file = match env.disk.open(&name, Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(OpenError::MissingCatalog { path: PathBuf::from(env.disk.describe()) });
            }
            opened => opened.map_err(at("open", &name))?,
        };
        let read = |bytes: &[u8]| -> Result<(State, Vec<FileName>), CatalogError> {
            let memory = redb::backends::InMemoryBackend::new();
            let copied = memory.set_len(bytes.len() as u64).and_then(|()| memory.write(0, bytes));
            copied.map_err(|error| CatalogError(error.to_string()))?;
            let database = options().create_with_backend(memory).map_err(CatalogError::new)?;
            read_all(&database)
        };
        let (mut before, mut tries) = (Vec::new(), 0);
        loop {
            let length = file.len().map_err(at("read", &name))?;
            if length == 0 || length > CHECKED_BYTES {
                let reason = if length == 0 { "it is empty" } else { "it is larger than a catalog can be" };
                return Err(damaged(env, &CatalogError(reason.into())));
            }
            let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
            file.read_at(&mut bytes, 0).map_err(at("read", &name))?;
            tries += 1;
            match read(&bytes) {
                // What a writer wrote meanwhile is read in part: bytes that stay as they are were not read so.
                Err(_) if bytes != before && tries < READINGS => before = bytes,
                found => return found.map_err(|error| damaged(env, &error)),
            }
        }
    }

    /// Files that no generation names any more and that are still to be removed.
    #[must_use]
    pub fn pending(&self) -> &[FileName] {
        &self.pending
    }

    /// The commit point: makes `state` true, remembers `dropped` files and forgets `removed` ones. Two syncs, three when
    /// the file grows.
    ///
    /// # Errors
    /// [`CatalogError`]; the outcome is then unknown until the catalog is opened again.
    pub fn commit(&mut self, state: &State, dropped: &[FileName], removed: &[FileName]) -> Result<(), CatalogError> {
        let mut transaction = self.database.begin_write().map_err(CatalogError::new)?;
        transaction.set_two_phase_commit(!planted(Planted::OnePhase));
        transaction.set_quick_repair(!planted(Planted::OnePhase));
        {
            let mut table = transaction.open_table(STATE).map_err(CatalogError::new)?;
            for (field, bytes) in fields(state) {
                table.insert(field, bytes.as_slice()).map_err(CatalogError::new)?;
            }
            let mut table = transaction.open_table(PENDING).map_err(CatalogError::new)?;
            for key in removed.iter().filter_map(row_of) {
                table.remove(key).map_err(CatalogError::new)?;
            }
            for key in dropped.iter().filter_map(row_of) {
                table.insert(key, state.manifest.number).map_err(CatalogError::new)?;
            }
        }
        transaction.commit().map_err(CatalogError::new)?;
        self.pending.retain(|name| !removed.contains(name));
        self.pending.extend_from_slice(dropped);
        Ok(())
    }
}

fn options() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
    builder
}

fn damaged(env: &Env, error: &CatalogError) -> OpenError {
    OpenError::CatalogDamaged { path: PathBuf::from(env.disk.describe()), reason: error.to_string() }
}

fn fields(state: &State) -> [(&'static str, Vec<u8>); 7] {
    let number = |value: u64| value.to_le_bytes().to_vec();
    [
        ("format", number(u64::from(hedgerow_format::file::FORMAT_VERSION))),
        ("store", state.store.to_vec()),
        ("generation", number(state.manifest.number)),
        ("random", number(state.manifest.random)),
        ("bytes", number(state.manifest.file_bytes)),
        ("hash", state.manifest.header_hash.to_vec()),
        ("next file", number(state.next_file)),
    ]
}

fn read_all(database: &Database) -> Result<(State, Vec<FileName>), CatalogError> {
    let transaction = database.begin_read().map_err(CatalogError::new)?;
    let table = transaction.open_table(STATE).map_err(CatalogError::new)?;
    let bytes = |field: &str| -> Result<Vec<u8>, CatalogError> {
        let value = table.get(field).map_err(CatalogError::new)?;
        value.map(|value| value.value().to_vec()).ok_or_else(|| CatalogError::malformed(field))
    };
    let number = |field: &str| -> Result<u64, CatalogError> {
        let bytes = bytes(field)?.try_into().map_err(|_| CatalogError::malformed(field))?;
        Ok(u64::from_le_bytes(bytes))
    };
    let version = number("format")?;
    if version != u64::from(hedgerow_format::file::FORMAT_VERSION) {
        return Err(CatalogError(format!("it is of format {version}, which this program does not write")));
    }
    let state = State {
        store: bytes("store")?.try_into().map_err(|_| CatalogError::malformed("store"))?,
        manifest: FileEntry {
            number: number("generation")?,
            random: number("random")?,
            file_bytes: number("bytes")?,
            header_hash: bytes("hash")?.try_into().map_err(|_| CatalogError::malformed("hash"))?,
        },
        next_file: number("next file")?,
    };
    let mut pending = Vec::new();
    let table = transaction.open_table(PENDING).map_err(CatalogError::new)?;
    for row in table.iter().map_err(CatalogError::new)? {
        let (kind, number, random) = row.map_err(CatalogError::new)?.0.value();
        let kind = FileKind::from_number(kind).ok_or_else(|| CatalogError::malformed("pending"))?;
        pending.push(FileName::Numbered { kind, number, random });
    }
    Ok((state, pending))
}

fn row_of(name: &FileName) -> Option<(u32, u64, u64)> {
    match name {
        FileName::Numbered { kind, number, random } => Some((kind.number(), *number, *random)),
        _ => None,
    }
}
