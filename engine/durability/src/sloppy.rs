//! A disk that leaves out what a careless program would leave out: the calls of a store pass through it.

use crate::disk::Disk;
use hedgerow::{Access, FileName, Folder, Mapping, VFile, Vfs};
use hedgerow_format::file::FileKind;
use std::fmt::Debug;
use std::io;

/// What is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sloppy {
    /// Segments and projections are not synced.
    NoFileSync,
    /// Manifests are not synced.
    NoManifestSync,
    /// The folders of segments, projections and manifests are not synced.
    NoFolderSync,
    /// `HEAD` is renamed before it is synced, and never synced.
    NoHeadSync,
    /// The folder that `HEAD` lies in is not synced.
    NoRootSync,
    /// The catalog is not synced.
    NoCatalogSync,
    /// A sync that failed is taken for one that worked.
    SyncErrorIgnored,
    /// Names that are given only for a moment are given again.
    NameReused,
}

impl Sloppy {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::NoFileSync,
        Self::NoManifestSync,
        Self::NoFolderSync,
        Self::NoHeadSync,
        Self::NoRootSync,
        Self::NoCatalogSync,
        Self::SyncErrorIgnored,
        Self::NameReused,
    ];

    /// Whether this is a file that is not synced.
    fn skips(self, name: &FileName) -> bool {
        match (self, name) {
            (Self::NoFileSync, FileName::Numbered { kind, .. }) => *kind != FileKind::Manifest,
            (Self::NoManifestSync, FileName::Numbered { kind, .. }) => *kind == FileKind::Manifest,
            (Self::NoHeadSync, FileName::NewHead(_))
            | (Self::NoCatalogSync, FileName::Catalog | FileName::NewCatalog(_)) => true,
            _ => false,
        }
    }
}

/// A disk behind which something is left out.
#[derive(Clone, Debug)]
pub(crate) struct SloppyDisk {
    pub disk: Disk,
    pub sloppy: Sloppy,
}

impl SloppyDisk {
    fn name(&self, name: &FileName) -> FileName {
        match (self.sloppy, name) {
            (Sloppy::NameReused, FileName::NewHead(_)) => FileName::NewHead(0),
            (Sloppy::NameReused, FileName::NewCatalog(_)) => FileName::NewCatalog(0),
            _ => *name,
        }
    }

    fn wrap(&self, name: &FileName, inner: Box<dyn VFile>) -> Box<dyn VFile> {
        let ignored = self.sloppy == Sloppy::SyncErrorIgnored;
        Box::new(SloppyFile { inner, skipped: self.sloppy.skips(name), ignored })
    }
}

#[derive(Debug)]
struct SloppyFile {
    inner: Box<dyn VFile>,
    skipped: bool,
    ignored: bool,
}

impl VFile for SloppyFile {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        self.inner.read_at(out, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.inner.write_at(bytes, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.inner.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        let synced = if self.skipped { Ok(()) } else { self.inner.sync() };
        if self.ignored { Ok(()) } else { synced }
    }

    fn map(&self) -> io::Result<Mapping> {
        self.inner.map()
    }
}

impl Vfs for SloppyDisk {
    fn describe(&self) -> String {
        self.disk.describe()
    }

    fn create_new(&self, name: &FileName) -> io::Result<Box<dyn VFile>> {
        let reused = self.name(name);
        if reused != *name {
            self.disk.remove(&reused).ok();
        }
        Ok(self.wrap(name, self.disk.create_new(&reused)?))
    }

    fn open(&self, name: &FileName, access: Access) -> io::Result<Box<dyn VFile>> {
        Ok(self.wrap(name, self.disk.open(&self.name(name), access)?))
    }

    fn remove(&self, name: &FileName) -> io::Result<()> {
        self.disk.remove(&self.name(name))
    }

    fn rename(&self, from: &FileName, to: &FileName) -> io::Result<()> {
        self.disk.rename(&self.name(from), to)
    }

    fn list(&self, folder: Folder) -> io::Result<Vec<String>> {
        self.disk.list(folder)
    }

    fn make_folder(&self, folder: Folder) -> io::Result<()> {
        self.disk.make_folder(folder)
    }

    fn sync_folder(&self, folder: Folder) -> io::Result<()> {
        match (self.sloppy, folder) {
            (Sloppy::NoRootSync, Folder::Root) => Ok(()),
            (Sloppy::NoFolderSync, folder) if folder != Folder::Root => Ok(()),
            (Sloppy::SyncErrorIgnored, folder) => {
                self.disk.sync_folder(folder).ok();
                Ok(())
            }
            _ => self.disk.sync_folder(folder),
        }
    }

    fn try_lock(&self, name: &FileName) -> io::Result<Option<Box<dyn Debug + Send + Sync>>> {
        self.disk.try_lock(name)
    }
}
