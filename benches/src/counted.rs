//! The real disk, with every sync and every byte written counted.

use hedgerow::{Access, FileName, Folder, Mapping, RealDisk, VFile, Vfs};
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What was done to a disk.
#[derive(Debug, Default)]
pub struct Counts {
    syncs: Mutex<Vec<String>>,
    written: AtomicU64,
}

impl Counts {
    /// What was synced since the last call, in order.
    #[must_use]
    pub fn take_syncs(&self) -> Vec<String> {
        std::mem::take(&mut *self.syncs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Bytes written so far, to all files.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn note(&self, sync: String) {
        self.syncs.lock().unwrap_or_else(PoisonError::into_inner).push(sync);
    }
}

/// The real disk, counted.
#[derive(Debug)]
pub struct Counted {
    disk: RealDisk,
    counts: Arc<Counts>,
}

#[derive(Debug)]
struct CountedFile {
    file: Box<dyn VFile>,
    name: String,
    counts: Arc<Counts>,
}

impl Counted {
    /// The folder `root`, and where its counts are.
    #[must_use]
    pub fn new(root: &Path) -> (Self, Arc<Counts>) {
        let counts = Arc::<Counts>::default();
        (Self { disk: RealDisk::new(root), counts: Arc::clone(&counts) }, counts)
    }

    fn wrap(&self, file: Box<dyn VFile>, name: &FileName) -> Box<dyn VFile> {
        // Names hold random digits; the kind of file is what matters here.
        let name = format!("{}/{}", name.folder().path(), name.name().rsplit('.').next().unwrap_or_default());
        Box::new(CountedFile { file, name, counts: Arc::clone(&self.counts) })
    }
}

impl Vfs for Counted {
    fn describe(&self) -> String {
        self.disk.describe()
    }
    fn create_new(&self, name: &FileName) -> io::Result<Box<dyn VFile>> {
        Ok(self.wrap(self.disk.create_new(name)?, name))
    }
    fn open(&self, name: &FileName, access: Access) -> io::Result<Box<dyn VFile>> {
        Ok(self.wrap(self.disk.open(name, access)?, name))
    }
    fn remove(&self, name: &FileName) -> io::Result<()> {
        self.disk.remove(name)
    }
    fn rename(&self, from: &FileName, to: &FileName) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn list(&self, folder: Folder) -> io::Result<Vec<String>> {
        self.disk.list(folder)
    }
    fn make_folder(&self, folder: Folder) -> io::Result<()> {
        self.disk.make_folder(folder)
    }
    fn sync_folder(&self, folder: Folder) -> io::Result<()> {
        self.counts.note(format!("folder {}", folder.path()));
        self.disk.sync_folder(folder)
    }
    fn try_lock(&self, name: &FileName) -> io::Result<Option<Box<dyn Debug + Send + Sync>>> {
        self.disk.try_lock(name)
    }
}

impl VFile for CountedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(out, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.counts.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.write_at(bytes, offset)
    }
    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }
    fn sync(&self) -> io::Result<()> {
        self.counts.note(format!("file {}", self.name));
        self.file.sync()
    }
    fn map(&self) -> io::Result<Mapping> {
        self.file.map()
    }
}
