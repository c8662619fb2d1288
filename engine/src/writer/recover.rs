//! Opens a store for writing, and brings it from whatever a crash left to the last commit.

use crate::catalog::{Catalog, State};
use crate::error::{OpenError, StorageError};
use crate::manifest;
use crate::planted::{Planted, planted};
use crate::snapshot::{Snapshot, no_head};
use crate::storage::{Access, Env, FileFault, FileName, Folder, VFile, Vfs, WriteFault, at, at_folder};
use crate::writer::commit::remove;
use crate::writer::{Missing, Writer};
use hedgerow_format::file::FileKind;
use hedgerow_format::manifest::{FileEntry, Manifest};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::io;
use std::path::PathBuf;

/// The lock of a store, held until it is dropped.
pub(super) type Lock = Box<dyn Debug + Send + Sync>;
pub(super) type Opened = (Lock, Writer, Snapshot);

/// Takes the lock, finds out what is true, publishes it, and sweeps orphans. A crash anywhere in here changes nothing.
pub(super) fn open(env: &Env, missing: Missing) -> Result<Opened, OpenError> {
    let lock = enter(env, missing)?;
    let disk = &*env.disk;
    if !there(disk, FileName::Catalog)? {
        return Err(if there(disk, FileName::Head)? {
            OpenError::MissingCatalog { path: PathBuf::from(disk.describe()) }
        } else {
            no_head(disk)
        });
    }
    resume(env, lock)
}

/// Takes the lock, and makes the store where it is not there or was not made to the end.
pub(super) fn enter(env: &Env, missing: Missing) -> Result<Lock, OpenError> {
    let disk = &*env.disk;
    let path = || PathBuf::from(disk.describe());
    if disk.pack().is_some() {
        return Err(OpenError::Pack { path: path() });
    }
    if is_bare(env)? {
        if !there(disk, FileName::Catalog)? {
            if missing == Missing::Refuse {
                return Err(no_head(disk));
            }
            refuse_foreign(disk)?;
        }
        disk.make_folder(Folder::Root).map_err(at_folder("create", Folder::Root))?;
    }
    let lock = disk.try_lock(&FileName::Lock).map_err(at("lock", &FileName::Lock))?;
    let lock = lock.ok_or_else(|| OpenError::Locked { path: path(), holder: holder(disk) })?;
    remove_unfinished(disk)?;
    // A creation is complete only when HEAD stands; until then it is done again.
    if is_bare(env)? {
        create_store(env)?;
    }
    Ok(lock)
}

/// From a catalog that is there to an open store.
pub(super) fn resume(env: &Env, lock: Lock) -> Result<Opened, OpenError> {
    let disk = &*env.disk;
    for folder in Folder::INNER {
        disk.make_folder(folder).map_err(at_folder("create", folder))?;
    }
    let (mut catalog, mut state) = Catalog::open(env)?;
    let generation_floor = adopt_newer_head(env, &mut catalog, &mut state)?;
    let snapshot = manifest::read(disk, state.store, &state.manifest)
        .and_then(|manifest| Snapshot::of_manifest(disk, manifest, None))
        .map_err(fault)?;
    if let Some(features) = snapshot.unknown_features() {
        return Err(OpenError::ReadOnly { path: PathBuf::from(disk.describe()), features });
    }
    // Also where HEAD reads as it should: its name may be in memory only, and the sweep must not come before it.
    if !planted(Planted::NoPublishAtOpen) {
        manifest::publish(disk, env.random(), state.store, &state.manifest)?;
    }
    if !planted(Planted::NoSweep) {
        sweep(disk, &snapshot, &state.manifest)?;
    }
    state.next_file = state.next_file.max(above_all_files(&snapshot));
    Ok((lock, Writer { catalog, state, generation_floor, poisoned: None }, snapshot))
}

fn there(disk: &dyn Vfs, name: FileName) -> Result<bool, StorageError> {
    match disk.open(&name, Access::Read) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(at("open", &name)(error)),
    }
}

/// Whether nothing was ever committed here: a store that lost files is never taken for one that was not made yet.
fn is_bare(env: &Env) -> Result<bool, OpenError> {
    let disk = &*env.disk;
    let list = |folder: Folder| disk.list(folder).map_err(at_folder("list", folder));
    if there(disk, FileName::Head)? || !list(Folder::Segments)?.is_empty() {
        return Ok(false);
    }
    let mut manifests =
        list(Folder::Manifests)?.into_iter().filter_map(|name| FileName::parse(Folder::Manifests, &name));
    if manifests.any(|name| matches!(name, FileName::Numbered { number, .. } if number > 0)) {
        return Ok(false);
    }
    match Catalog::read(env) {
        Ok(state) => Ok(state.manifest.number == 0),
        Err(OpenError::Storage(error)) => Err(error.into()),
        Err(_) => Ok(true),
    }
}

/// Removes what a crash left under names that are given only for a moment.
fn remove_unfinished(disk: &dyn Vfs) -> Result<(), StorageError> {
    for name in disk.list(Folder::Root).map_err(at_folder("list", Folder::Root))? {
        let found = FileName::parse(Folder::Root, &name);
        if let Some(name @ (FileName::NewHead(_) | FileName::NewCatalog(_) | FileName::Scratch(_))) = found {
            remove(disk, &name).ok();
        }
    }
    Ok(())
}

/// A catalog that lost commits knows a lower number than the files that it names now.
fn above_all_files(snapshot: &Snapshot) -> u64 {
    let Manifest { segments, projections, .. } = snapshot.manifest();
    let segments = segments.iter().map(|entry| entry.file.number);
    let numbers = segments.chain(projections.iter().map(|entry| entry.file.number));
    numbers.max().map_or(0, |highest| highest.saturating_add(1))
}

/// A folder that holds other things is not made a store.
fn refuse_foreign(disk: &dyn Vfs) -> Result<(), OpenError> {
    let names = disk.list(Folder::Root).map_err(at_folder("list", Folder::Root))?;
    match names.iter().find(|name| FileName::parse(Folder::Root, name).is_none()) {
        None => Ok(()),
        Some(name) => Err(OpenError::NotAStore {
            path: PathBuf::from(disk.describe()),
            found: format!("a folder with other files in it, such as {name}; name a new folder"),
        }),
    }
}

fn holder(disk: &dyn Vfs) -> String {
    let read = || -> Option<String> {
        let file: Box<dyn VFile> = disk.open(&FileName::Lock, Access::Read).ok()?;
        let mut bytes = vec![0; usize::try_from(file.len().ok()?).ok()?.min(64)];
        file.read_at(&mut bytes, 0).ok()?;
        Some(String::from_utf8(bytes).ok()?.trim().to_owned())
    };
    read().filter(|holder| !holder.is_empty()).map(|holder| format!(" ({holder})")).unwrap_or_default()
}

/// An empty manifest, then the catalog that makes it true; `open` publishes it.
fn create_store(env: &Env) -> Result<(), OpenError> {
    let disk = &*env.disk;
    disk.make_folder(Folder::Manifests).map_err(at_folder("create", Folder::Manifests))?;
    let mut store = [0; 16];
    let (first, second) = store.split_at_mut(8);
    first.copy_from_slice(&env.random().to_le_bytes());
    second.copy_from_slice(&env.random().to_le_bytes());
    let manifest = Manifest { store, ..Manifest::default() };
    let entry = manifest::write(disk, env.random(), &manifest).map_err(|error| match error {
        WriteFault::Storage(error) => OpenError::Storage(error),
        WriteFault::Limit(_) => OpenError::NotFound { path: PathBuf::from(disk.describe()) },
    })?;
    disk.sync_folder(Folder::Manifests).map_err(at_folder("sync", Folder::Manifests))?;
    Catalog::create(env, &State { store, manifest: entry, next_file: 1 })
}

/// Where `HEAD` names a later generation than the catalog, a sync lied about the catalog or an old copy of it was put
/// back. If all of that generation is there, it was published and so acknowledged: it is made true. Else its number is
/// skipped: the generation that is returned is the highest that must not be given again.
fn adopt_newer_head(env: &Env, catalog: &mut Catalog, state: &mut State) -> Result<u64, OpenError> {
    let head = match manifest::read_head(&*env.disk) {
        Err(OpenError::Damaged(_)) | Ok(None) => return Ok(0),
        Err(error) => return Err(error),
        Ok(Some(head)) => head,
    };
    if head.store != state.store || head.generation <= state.manifest.number {
        return Ok(0);
    }
    let entry = manifest::entry_of(&head);
    let opened = manifest::read(&*env.disk, state.store, &entry)
        .and_then(|manifest| Snapshot::of_manifest(&*env.disk, manifest, None));
    let whole = match opened {
        Ok(_) if planted(Planted::AdoptUnverified) => true,
        Ok(snapshot) => snapshot.segments().iter().all(|segment| segment.verify().is_ok()),
        // What the system refuses now may be there later: nothing is given up for it.
        Err(FileFault::Storage(error)) if error.source.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        Err(_) => false,
    };
    if whole {
        let adopted = State { manifest: entry, ..state.clone() };
        catalog.commit(&adopted, &[], &[]).map_err(|error| OpenError::CatalogDamaged {
            path: PathBuf::from(env.disk.describe()),
            reason: error.to_string(),
        })?;
        *state = adopted;
    }
    Ok(if planted(Planted::GenerationReused) { 0 } else { head.generation })
}

/// Removes every file of ours that the generation does not name.
fn sweep(disk: &dyn Vfs, snapshot: &Snapshot, manifest: &FileEntry) -> Result<(), StorageError> {
    let mut named =
        BTreeSet::from([FileName::Head, FileName::Catalog, FileName::Lock, FileName::of(FileKind::Manifest, manifest)]);
    named.extend(snapshot.segments().iter().map(|segment| FileName::of(FileKind::Segment, &segment.entry().file)));
    for projection in snapshot.manifest().projections.iter().filter(|_| !planted(Planted::SweepsProjections)) {
        named.extend(FileKind::from_number(projection.kind).map(|kind| FileName::of(kind, &projection.file)));
    }
    for folder in [Folder::Root].into_iter().chain(Folder::INNER) {
        let mut swept = false;
        for name in disk.list(folder).map_err(at_folder("list", folder))? {
            let Some(name) = FileName::parse(folder, &name) else { continue };
            // One that the system does not let go is tried again at the next open.
            swept |= !named.contains(&name) && remove(disk, &name).is_ok();
        }
        if swept {
            disk.sync_folder(folder).map_err(at_folder("sync", folder))?;
        }
    }
    Ok(())
}

fn fault(fault: FileFault) -> OpenError {
    match fault {
        FileFault::Storage(error) => OpenError::Storage(error),
        FileFault::Damage(damage) => OpenError::Damaged(damage),
    }
}
