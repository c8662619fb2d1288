//! Opens a store for writing, and brings it from whatever a crash left to the last commit.

use crate::catalog::{Catalog, State};
use crate::error::{OpenError, StorageError};
use crate::manifest;
use crate::snapshot::Snapshot;
use crate::storage::{Access, Env, FileFault, FileName, Folder, VFile, Vfs, WriteFault, at, at_folder};
use crate::writer::Writer;
use crate::writer::commit::remove;
use hedgerow_format::file::FileKind;
use hedgerow_format::head::Head;
use hedgerow_format::manifest::{FileEntry, Manifest};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::PathBuf;

type Opened = (Box<dyn Debug + Send + Sync>, Writer, Snapshot);

/// Takes the lock, finds out what is true, publishes it again where that is needed, and sweeps orphans. A crash anywhere
/// in here changes nothing.
pub(super) fn open(env: &Env, create: bool) -> Result<Opened, OpenError> {
    let disk = &*env.disk;
    let path = || PathBuf::from(disk.describe());
    let there = |name: FileName| match disk.open(&name, Access::Read) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(at("open", &name)(error)),
    };
    let list = |folder| disk.list(folder).map_err(at_folder("list", folder));
    let catalog_there = there(FileName::Catalog)?;
    if !catalog_there && !create && !there(FileName::Head)? && list(Folder::Segments)?.is_empty() {
        return Err(OpenError::NotFound { path: path() });
    }
    if !catalog_there && !there(FileName::Head)? {
        refuse_foreign(disk)?;
    }
    disk.make_folder(Folder::Root).map_err(at_folder("create", Folder::Root))?;
    let lock = disk.try_lock(&FileName::Lock).map_err(at("lock", &FileName::Lock))?;
    let lock = lock.ok_or_else(|| OpenError::Locked { path: path(), holder: holder(disk) })?;
    if !there(FileName::Catalog)? {
        if there(FileName::Head)? || !list(Folder::Segments)?.is_empty() {
            return Err(OpenError::MissingCatalog { path: path() });
        }
        create_store(env)?;
    }
    let (mut catalog, mut state) = Catalog::open(env)?;
    let head = manifest::read_head(disk);
    let mut generation_floor = 0;
    if let Ok(Some(head)) = &head
        && head.store == state.store
        && head.generation > state.manifest.number
    {
        generation_floor = head.generation;
        adopt(env, head, &mut catalog, &mut state)?;
    }
    let snapshot = manifest::read(disk, state.store, &state.manifest)
        .and_then(|manifest| Snapshot::of_manifest(disk, manifest, None))
        .map_err(fault)?;
    let published = head.ok().flatten().is_some_and(|head| manifest::entry_of(&head) == state.manifest);
    if !published {
        manifest::publish(disk, env.random(), state.store, &state.manifest)?;
    }
    if let Some(features) = snapshot.unknown_features() {
        return Err(OpenError::ReadOnly { path: path(), features });
    }
    sweep(disk, &snapshot, &state.manifest)?;
    // A catalog that lost commits knows a lower number than the files that it names now.
    let Manifest { segments, projections, .. } = snapshot.manifest();
    let numbers = segments.iter().map(|entry| entry.file.number);
    let numbers = numbers.chain(projections.iter().map(|entry| entry.file.number));
    let above = numbers.max().map_or(0, |highest| highest.saturating_add(1));
    state.next_file = state.next_file.max(above);
    Ok((lock, Writer { catalog, state, generation_floor, poisoned: None }, snapshot))
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

/// Folders, an empty manifest, then the catalog that makes it true.
fn create_store(env: &Env) -> Result<(), OpenError> {
    let disk = &*env.disk;
    for folder in Folder::INNER {
        disk.make_folder(folder).map_err(at_folder("create", folder))?;
    }
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

/// `HEAD` names a later generation than the catalog: a sync lied about the catalog. If all of that generation is there,
/// it was published and so acknowledged; else its numbers are skipped.
fn adopt(env: &Env, head: &Head, catalog: &mut Catalog, state: &mut State) -> Result<(), OpenError> {
    let entry = manifest::entry_of(head);
    let opened = manifest::read(&*env.disk, state.store, &entry)
        .and_then(|manifest| Snapshot::of_manifest(&*env.disk, manifest, None));
    let Ok(snapshot) = opened else { return Ok(()) };
    if snapshot.segments().iter().any(|segment| segment.verify().is_err()) {
        return Ok(());
    }
    let adopted = State { manifest: entry, ..state.clone() };
    catalog.commit(&adopted, &[], &[]).map_err(|error| OpenError::CatalogDamaged {
        path: PathBuf::from(env.disk.describe()),
        reason: error.to_string(),
    })?;
    *state = adopted;
    Ok(())
}

/// Removes every file of ours that the generation does not name.
fn sweep(disk: &dyn Vfs, snapshot: &Snapshot, manifest: &FileEntry) -> Result<(), StorageError> {
    let mut named =
        BTreeSet::from([FileName::Head, FileName::Catalog, FileName::Lock, FileName::of(FileKind::Manifest, manifest)]);
    named.extend(snapshot.segments().iter().map(|segment| FileName::of(FileKind::Segment, &segment.entry().file)));
    for projection in &snapshot.manifest().projections {
        named.extend(FileKind::from_number(projection.kind).map(|kind| FileName::of(kind, &projection.file)));
    }
    for folder in [Folder::Root].into_iter().chain(Folder::INNER) {
        let mut swept = false;
        for name in disk.list(folder).map_err(at_folder("list", folder))? {
            let Some(name) = FileName::parse(folder, &name) else { continue };
            if !named.contains(&name) {
                remove(disk, &name)?;
                swept = true;
            }
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
