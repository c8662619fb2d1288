//! What makes up one generation: `HEAD` and the manifest that it names.

use crate::error::{Damage, OpenError, StorageError};
use crate::storage::{Access, FileFault, FileName, Folder, VerifiedFile, Vfs, WriteFault, at, at_folder, write_file};
use hedgerow_format::checksum::hash;
use hedgerow_format::file::{FileBuilder, FileIdentity, FileKind, Finished, Layout};
use hedgerow_format::head::Head;
use hedgerow_format::manifest::{FileEntry, Manifest};
use hedgerow_format::section::{SectionKind, Sections};
use hedgerow_format::{FormatError, Record, limits};
use std::io::{self, Write};

/// Reads `HEAD`; `None` where there is none.
///
/// # Errors
/// [`OpenError::Damaged`] and [`OpenError::Storage`].
pub fn read_head(disk: &dyn Vfs) -> Result<Option<Head>, OpenError> {
    let name = FileName::Head;
    let read = || -> io::Result<Vec<u8>> {
        let file = disk.open(&name, Access::Read)?;
        // One byte more than a head has, so that a longer file is seen to be one.
        let length = usize::try_from(file.len()?).unwrap_or(usize::MAX).min(Head::SIZE + 1);
        let mut bytes = vec![0; length];
        file.read_at(&mut bytes, 0)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => {
            let damage = |source| Damage { file: name.to_string(), source };
            Ok(Some(Head::from_bytes(&bytes).map_err(damage)?))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at("read", &name)(error).into()),
    }
}

/// Reads and checks the manifest that an entry names.
///
/// # Errors
/// [`FileFault`].
pub fn read(disk: &dyn Vfs, store: [u8; 16], entry: &FileEntry) -> Result<Manifest, FileFault> {
    let file = VerifiedFile::open(disk, FileKind::Manifest, store, entry)?;
    let damage = |source| FileFault::Damage(file.damage(source));
    file.check_all().map_err(FileFault::Damage)?;
    let manifest = Manifest::from_bytes(file.section(SectionKind::Manifest).map_err(damage)?).map_err(damage)?;
    if manifest.store != store || manifest.generation != entry.number {
        return Err(damage(FormatError::Hash { what: "the manifest", offset: 0 }));
    }
    Ok(manifest)
}

/// Where the manifest lies that a head names.
#[must_use]
pub fn entry_of(head: &Head) -> FileEntry {
    FileEntry {
        number: head.generation,
        random: head.random,
        file_bytes: head.manifest_bytes,
        header_hash: head.manifest_hash,
    }
}

/// What a manifest's own header says of it: the store and the entry that would name it.
///
/// # Errors
/// [`FileFault`].
pub fn identify(disk: &dyn Vfs, number: u64, random: u64) -> Result<([u8; 16], FileEntry), FileFault> {
    let name = FileName::Numbered { kind: FileKind::Manifest, number, random };
    let mapping = disk.open(&name, Access::Read).and_then(|file| file.map());
    let mapping = mapping.map_err(at("open", &name)).map_err(FileFault::Storage)?;
    let layout = Layout::parse(FileKind::Manifest, &mapping)
        .map_err(|source| FileFault::Damage(Damage { file: name.to_string(), source }))?;
    let file_bytes = layout.header.file_bytes;
    Ok((layout.header.store, FileEntry { number, random, file_bytes, header_hash: layout.header_hash }))
}

/// Writes and syncs a manifest, not its folder.
///
/// # Errors
/// [`WriteFault`].
pub fn write(disk: &dyn Vfs, random: u64, manifest: &Manifest) -> Result<FileEntry, WriteFault> {
    let bytes = manifest.to_bytes().map_err(WriteFault::Limit)?;
    let identity =
        FileIdentity { kind: FileKind::Manifest, store: manifest.store, number: manifest.generation, random };
    write_file(disk, identity, |out| build(out, identity, &bytes))
}

/// A manifest as a file that lies in memory. The second half of its name follows from what it says, so that the same
/// content has the same bytes.
///
/// # Errors
/// [`FormatError::Limit`].
pub fn in_memory(manifest: &Manifest) -> Result<(FileEntry, Vec<u8>), FormatError> {
    let bytes = manifest.to_bytes()?;
    let random = u64::from_le_bytes(hash(&[&bytes]).first_chunk().copied().unwrap_or_default());
    let (store, number) = (manifest.store, manifest.generation);
    let identity = FileIdentity { kind: FileKind::Manifest, store, number, random };
    // A vector takes whatever is written to it: the only error is one of kinds out of order.
    let (finished, mut file) = build(Vec::new(), identity, &bytes)
        .map_err(|_| FormatError::Limit { what: "the length of a manifest", limit: limits::MANIFEST_BYTES })?;
    let Finished { header, header_hash, file_bytes } = finished;
    file.splice(..header.len(), header);
    Ok((FileEntry { number, random, file_bytes, header_hash }, file))
}

fn build<W: Write>(out: W, identity: FileIdentity, bytes: &[u8]) -> io::Result<(Finished, W)> {
    let mut file = FileBuilder::new(out, identity)?;
    file.section(SectionKind::Manifest, bytes)?;
    file.finish()
}

/// Publishes a manifest: writes `HEAD` under a new name, syncs it, renames it, syncs the folder.
///
/// # Errors
/// [`StorageError`]; either the old or the new head then stands.
pub fn publish(disk: &dyn Vfs, random: u64, store: [u8; 16], entry: &FileEntry) -> Result<(), StorageError> {
    let name = FileName::NewHead(random);
    let head = Head::new(store, entry.number, entry.random, entry.file_bytes, entry.header_hash);
    let write = || -> io::Result<()> {
        let file = disk.create_new(&name)?;
        file.write_at(&head.to_bytes(), 0)?;
        file.sync()
    };
    write().map_err(at("write", &name))?;
    disk.rename(&name, &FileName::Head).map_err(at("publish", &name))?;
    disk.sync_folder(Folder::Root).map_err(at_folder("sync", Folder::Root))
}
