//! A generation in one file, and back into a folder.

use crate::catalog::{Catalog, State};
use crate::error::{Damage, OpenError, StorageError};
use crate::index::control::{Cancelled, Control};
use crate::manifest;
use crate::snapshot::Snapshot;
use crate::storage::{Access, Env, FileName, Folder, PackDisk, VFile, VerifiedFile, Vfs, at, at_folder};
use hedgerow_format::FormatError;
use hedgerow_format::file::FileKind;
use hedgerow_format::head::Head;
use hedgerow_format::manifest::{FileEntry, Manifest};
use hedgerow_format::pack::Pack;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// Bytes that are written at once; in between it may be cancelled.
const PIECE: usize = 1 << 20;

/// What a backup does with what is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupOptions {
    /// A regular file of the pack's name is replaced, once the new one is complete and checked; else it is an error.
    pub replace: bool,
}

/// What a backup or a restore wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BackedUp {
    /// The generation that was copied.
    pub generation: u64,
    /// Files that were copied: the manifest, segments and projections.
    pub files: u64,
    /// Bytes of the pack; of a restore, of the files.
    pub bytes: u64,
    /// Projections that cannot be read and were left out: a refresh makes them again.
    pub left_out: Vec<String>,
}

/// Why a backup or a restore did not come to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// There is something already where it was to be written.
    #[error("{path} is there already: name another, or say that it is to be replaced")]
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// A restore goes into a new folder, or into one where the same restore was interrupted.
    #[error("{path} is not empty: {found}; name a new folder")]
    NotEmpty {
        /// The path.
        path: PathBuf,
        /// What is in it.
        found: String,
    },
    /// The folder cannot be opened for writing.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A file of the generation is damaged: what it has cannot be copied.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// What was written reads differently.
    #[error("{path} does not hold what was written to it ({source}): it was removed again; use another disk")]
    Unfaithful {
        /// The path.
        path: PathBuf,
        /// What is wrong.
        source: OpenError,
    },
    /// There is too much for one file.
    #[error(transparent)]
    Limit(#[from] FormatError),
    /// The system refused something.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// It was cancelled; a file of the pack's name is as it was.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl Snapshot {
    /// Writes the generation into one file, a pack, which every reader opens as it opens a folder. Reads all of it from
    /// what the snapshot has open, so a writer may commit and sweep meanwhile. The pack is written under a new name
    /// beside `file`, synced, read back, checked as [`verify`](crate::verify) does, and renamed; a process that is killed
    /// may leave the new name. The same content, ids and files give the same bytes.
    ///
    /// # Errors
    /// [`BackupError`]; nothing is left then, and what was there stays.
    pub fn backup(
        &self,
        file: impl AsRef<Path>,
        options: BackupOptions,
        control: &dyn Control,
    ) -> Result<BackedUp, BackupError> {
        self.backup_in(&Env::pack(file.as_ref()), options, control)
    }

    /// As [`Snapshot::backup`], into [`FileName::Pack`] of a disk.
    ///
    /// # Errors
    /// As [`Snapshot::backup`].
    pub fn backup_in(&self, env: &Env, options: BackupOptions, control: &dyn Control) -> Result<BackedUp, BackupError> {
        let disk = &*env.disk;
        match disk.open(&FileName::Pack, Access::Read) {
            Ok(_) if options.replace => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            _ => return Err(BackupError::Exists { path: PathBuf::from(disk.describe()) }),
        }
        let contents = Contents::of(self)?;
        let pack = Pack::of(contents.head, &contents.manifest)?;
        let name = FileName::NewPack(env.random());
        let mut meter = Meter { control, done: 0, total: pack.file_bytes() * 2 };
        let written = contents.write_pack(disk, name, &pack, &mut meter).and_then(|()| {
            let checked = check_pack(disk, name);
            checked.map_err(|source| BackupError::Unfaithful { path: PathBuf::from(disk.describe()), source })?;
            meter.advance(pack.file_bytes())?;
            Ok(disk.rename(&name, &FileName::Pack).map_err(at_path("rename", disk))?)
        });
        if let Err(error) = written {
            disk.remove(&name).ok();
            return Err(error);
        }
        disk.sync_folder(Folder::Root).map_err(at_path("sync the folder of", disk))?;
        Ok(contents.report(pack.file_bytes()))
    }

    /// Writes the generation into an absent or empty folder, which is a store afterwards, with the same ids and the same
    /// UUID. Where it is interrupted there is no store yet: doing it again completes it.
    ///
    /// # Errors
    /// [`BackupError`].
    pub fn restore(&self, folder: impl AsRef<Path>, control: &dyn Control) -> Result<BackedUp, BackupError> {
        self.restore_in(&Env::folder(folder.as_ref())?, control)
    }

    /// As [`Snapshot::restore`], into a disk.
    ///
    /// # Errors
    /// As [`Snapshot::restore`].
    pub fn restore_in(&self, env: &Env, control: &dyn Control) -> Result<BackedUp, BackupError> {
        let disk = &*env.disk;
        let path = || PathBuf::from(disk.describe());
        if disk.pack().is_some() {
            return Err(BackupError::Exists { path: path() });
        }
        let contents = Contents::of(self)?;
        contents.look_into(disk)?;
        disk.make_folder(Folder::Root).map_err(at_folder("create", Folder::Root))?;
        let lock = disk.try_lock(&FileName::Lock).map_err(at("lock", &FileName::Lock))?;
        let _lock = lock.ok_or_else(|| OpenError::Locked { path: path(), holder: String::new() })?;
        let entry = manifest::entry_of(&contents.head);
        let numbered = contents.files.keys().filter(|name| name.folder() != Folder::Manifests);
        let numbers = numbered.filter_map(FileName::file_number);
        let next_file = numbers.max().unwrap_or(0).saturating_add(1);
        let state = State { store: contents.manifest.store, manifest: entry, next_file };
        let found = contents.look_into(disk)?;
        let is_left =
            |name: &&FileName| matches!(name, FileName::NewHead(_) | FileName::NewCatalog(_) | FileName::Scratch(_));
        for name in found.iter().filter(is_left) {
            disk.remove(name).ok();
        }
        if found.contains(&FileName::Catalog) {
            let (_catalog, found) = Catalog::open(env)?;
            if found != state {
                return Err(BackupError::Exists { path: path() });
            }
            // The catalog's name may be in memory only, and HEAD's must not be durable before it.
            disk.sync_folder(Folder::Root).map_err(at_folder("sync", Folder::Root))?;
        } else {
            let bytes = contents.files.values().map(|bytes| bytes.len() as u64).sum::<u64>();
            let mut meter = Meter { control, done: 0, total: bytes * 2 };
            if let Err(error) = contents.write_files(disk, &mut meter) {
                contents.files.keys().for_each(|name| drop(disk.remove(name)));
                return Err(error);
            }
            Catalog::create(env, &state)?;
        }
        manifest::publish(disk, env.random(), state.store, &entry)?;
        Ok(contents.report(contents.files.values().map(|bytes| bytes.len() as u64).sum()))
    }
}

/// What is to be copied: a generation whose every byte was checked.
struct Contents<'s> {
    head: Head,
    manifest: Manifest,
    /// In the order in which a pack has them.
    files: BTreeMap<FileName, Cow<'s, [u8]>>,
    left_out: Vec<String>,
}

impl<'s> Contents<'s> {
    /// The manifest is written anew, without the projections that cannot be read; its name follows from what it says.
    fn of(snapshot: &'s Snapshot) -> Result<Self, BackupError> {
        let mut sources: Vec<&VerifiedFile> = snapshot.segments().iter().map(|segment| segment.file()).collect();
        sources.iter().try_for_each(|file| file.check_all())?;
        sources.extend(snapshot.links().map(|links| links.file()));
        sources.extend(snapshot.edges().map(|edges| edges.file()));
        sources.extend(snapshot.communities().map(|communities| communities.file()));
        sources.extend(snapshot.vector_indexes().map(|index| index.file()));
        let mut files: BTreeMap<_, _> =
            sources.into_iter().map(|file| (*file.name(), Cow::Borrowed(file.bytes()))).collect();
        let mut manifest = snapshot.manifest().clone();
        let mut left_out = Vec::new();
        manifest.projections.retain(|entry| {
            let name = FileKind::from_number(entry.kind).map(|kind| FileName::of(kind, &entry.file));
            let is_sound = name.is_some_and(|name| files.contains_key(&name));
            left_out.extend(name.filter(|_| !is_sound).map(|name| name.to_string()));
            is_sound
        });
        let (entry, bytes) = manifest::in_memory(&manifest)?;
        let FileEntry { number, random, file_bytes, header_hash } = entry;
        files.insert(FileName::of(FileKind::Manifest, &entry), Cow::Owned(bytes));
        Ok(Self { head: Head::new(manifest.store, number, random, file_bytes, header_hash), manifest, files, left_out })
    }

    fn report(&self, bytes: u64) -> BackedUp {
        let (generation, files) = (self.manifest.generation, self.files.len() as u64);
        BackedUp { generation, files, bytes, left_out: self.left_out.clone() }
    }

    /// Writes and syncs the pack, not its folder.
    fn write_pack(
        &self,
        disk: &dyn Vfs,
        name: FileName,
        pack: &Pack,
        meter: &mut Meter<'_>,
    ) -> Result<(), BackupError> {
        let file = disk.create_new(&name).map_err(at_path("create a file beside", disk))?;
        file.write_at(&pack.front(), 0).map_err(at_path("write", disk))?;
        // Padding is what is not written.
        file.set_len(pack.file_bytes()).map_err(at_path("write", disk))?;
        for (entry, bytes) in pack.entries().iter().zip(self.files.values()) {
            put(&*file, bytes, entry.offset, meter, &|error| at_path("write", disk)(error))?;
        }
        Ok(file.sync().map_err(at_path("sync", disk))?)
    }

    /// Writes the files under their own names, makes all of it durable, reads it back and checks it.
    fn write_files(&self, disk: &dyn Vfs, meter: &mut Meter<'_>) -> Result<(), BackupError> {
        for folder in Folder::INNER {
            disk.make_folder(folder).map_err(at_folder("create", folder))?;
        }
        for (name, bytes) in &self.files {
            // What an interrupted restore left may be torn.
            match disk.remove(name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at("remove", name)(error).into()),
                _ => {}
            }
            let file = disk.create_new(name).map_err(at("create", name))?;
            put(&*file, bytes, 0, meter, &|error| at("write", name)(error))?;
            file.sync().map_err(at("sync", name))?;
        }
        // The folders' own names too, before anything says that this is a store.
        for folder in Folder::INNER.into_iter().chain([Folder::Root]) {
            disk.sync_folder(folder).map_err(at_folder("sync", folder))?;
        }
        let opened = manifest::read(disk, self.manifest.store, &manifest::entry_of(&self.head))
            .and_then(|manifest| Snapshot::of_manifest(disk, manifest, None));
        let checked = opened.map_err(OpenError::from).and_then(|snapshot| Ok(snapshot.verify_beside(None)?));
        checked.map_err(|source| BackupError::Unfaithful { path: PathBuf::from(disk.describe()), source })?;
        let written = meter.done;
        Ok(meter.advance(written)?)
    }

    /// What is in a folder. One that has anything but what an interrupted restore of the same content leaves is refused.
    fn look_into(&self, disk: &dyn Vfs) -> Result<BTreeSet<FileName>, BackupError> {
        let path = || PathBuf::from(disk.describe());
        let mut found = BTreeSet::new();
        for folder in [Folder::Root].into_iter().chain(Folder::INNER) {
            for name in disk.list(folder).map_err(at_folder("list", folder))? {
                let Some(known) = FileName::parse(folder, &name) else {
                    return Err(BackupError::NotEmpty { path: path(), found: format!("it has files such as {name}") });
                };
                found.insert(known);
            }
        }
        if found.contains(&FileName::Head) {
            return Err(BackupError::NotEmpty { path: path(), found: "there is a store in it".into() });
        }
        let is_other = |name: &&FileName| name.file_number().is_some() && !self.files.contains_key(name);
        match found.iter().find(is_other) {
            Some(name) => Err(BackupError::NotEmpty { path: path(), found: format!("it has {name} of another store") }),
            None => Ok(found),
        }
    }
}

/// Opens what was written and checks all of it.
fn check_pack(disk: &dyn Vfs, name: FileName) -> Result<(), OpenError> {
    let pack = PackDisk::open(disk, name)?;
    let snapshot = Snapshot::open_in(&pack)?;
    pack.check_all(snapshot.manifest())?;
    Ok(snapshot.verify_beside(None)?)
}

/// Progress in bytes.
struct Meter<'c> {
    control: &'c dyn Control,
    done: u64,
    total: u64,
}

impl Meter<'_> {
    fn advance(&mut self, bytes: u64) -> Result<(), Cancelled> {
        self.done += bytes;
        self.control.advance(self.done, self.total);
        if self.control.cancelled() { Err(Cancelled) } else { Ok(()) }
    }
}

fn put(
    file: &dyn VFile,
    bytes: &[u8],
    mut offset: u64,
    meter: &mut Meter<'_>,
    fault: &dyn Fn(io::Error) -> StorageError,
) -> Result<(), BackupError> {
    for piece in bytes.chunks(PIECE) {
        file.write_at(piece, offset).map_err(fault)?;
        offset += piece.len() as u64;
        meter.advance(piece.len() as u64)?;
    }
    Ok(())
}

/// Gives an error of the system on the pack its place, which is not inside a store.
fn at_path(action: &'static str, disk: &dyn Vfs) -> impl FnOnce(io::Error) -> StorageError {
    let path = disk.describe();
    move |source| StorageError { action, path, source }
}
