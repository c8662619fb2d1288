//! A store's files in memory: a disk that a store can be opened on, and whose bytes can be changed and put back.

use hedgerow::{Access, FileName, Folder, Mapping, VFile, Vfs};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The files of one store. Clones are the same disk; [`Image::fork`] gives another one.
#[derive(Clone, Debug, Default)]
pub struct Image {
    files: Arc<Mutex<BTreeMap<FileName, Arc<Node>>>>,
    locked: Arc<AtomicBool>,
}

/// A file's bytes, shared with other images until one of them writes.
#[derive(Debug, Default)]
struct Node(Mutex<Arc<Vec<u8>>>);

impl Node {
    fn bytes(&self) -> MutexGuard<'_, Arc<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Image {
    /// Reads every file of a store from another disk.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn load(disk: &dyn Vfs) -> io::Result<Self> {
        let image = Self::default();
        for folder in [Folder::Root].into_iter().chain(Folder::INNER) {
            for name in disk.list(folder)?.iter().filter_map(|name| FileName::parse(folder, name)) {
                let file = disk.open(&name, Access::Read)?;
                let mut bytes = vec![0; usize::try_from(file.len()?).map_err(io::Error::other)?];
                file.read_at(&mut bytes, 0)?;
                image.put(name, Arc::new(bytes));
            }
        }
        Ok(image)
    }

    /// Another disk with the same files. No bytes are copied until one of the two writes.
    #[must_use]
    pub fn fork(&self) -> Self {
        let copy = |(name, node): (&FileName, &Arc<Node>)| (*name, Arc::new(Node(Mutex::new(node.bytes().clone()))));
        Self { files: Arc::new(Mutex::new(self.files().iter().map(copy).collect())), ..Self::default() }
    }

    /// Names of all files.
    #[must_use]
    pub fn names(&self) -> Vec<FileName> {
        self.files().keys().copied().collect()
    }

    /// The bytes of a file.
    #[must_use]
    pub fn bytes(&self, name: &FileName) -> Option<Arc<Vec<u8>>> {
        self.files().get(name).map(|node| node.bytes().clone())
    }

    /// Gives a file these bytes, whatever it had.
    pub fn put(&self, name: FileName, bytes: Arc<Vec<u8>>) {
        *self.files().entry(name).or_default().bytes() = bytes;
    }

    /// Changes the bytes of a file in place. They are copied first where another image shares them.
    pub fn edit(&self, name: &FileName, change: impl FnOnce(&mut Vec<u8>)) {
        if let Some(node) = self.files().get(name) {
            change(Arc::make_mut(&mut node.bytes()));
        }
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<FileName, Arc<Node>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Vfs for Image {
    fn describe(&self) -> String {
        "memory".into()
    }

    fn create_new(&self, name: &FileName) -> io::Result<Box<dyn VFile>> {
        let mut files = self.files();
        if files.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        Ok(Box::new(Handle(files.entry(*name).or_default().clone())))
    }

    fn open(&self, name: &FileName, _: Access) -> io::Result<Box<dyn VFile>> {
        let node = self.files().get(name).cloned().ok_or(ErrorKind::NotFound)?;
        Ok(Box::new(Handle(node)))
    }

    fn remove(&self, name: &FileName) -> io::Result<()> {
        self.files().remove(name).map(drop).ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &FileName, to: &FileName) -> io::Result<()> {
        let mut files = self.files();
        let node = files.remove(from).ok_or(ErrorKind::NotFound)?;
        files.insert(*to, node);
        Ok(())
    }

    fn list(&self, folder: Folder) -> io::Result<Vec<String>> {
        let mut names: Vec<String> =
            self.files().keys().filter(|name| name.folder() == folder).map(FileName::name).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn make_folder(&self, _: Folder) -> io::Result<()> {
        Ok(())
    }

    fn sync_folder(&self, _: Folder) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self, name: &FileName) -> io::Result<Option<Box<dyn Debug + Send + Sync>>> {
        self.files().entry(*name).or_default();
        let taken = self.locked.swap(true, Ordering::AcqRel);
        Ok(if taken { None } else { Some(Box::new(Lock(Arc::clone(&self.locked)))) })
    }
}

#[derive(Debug)]
struct Lock(Arc<AtomicBool>);

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Bytes as they were when they were mapped.
#[derive(Debug)]
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[derive(Debug)]
struct Handle(Arc<Node>);

impl VFile for Handle {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.bytes().len() as u64)
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = self.0.bytes();
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let found = start.checked_add(out.len()).and_then(|end| bytes.get(start..end));
        out.copy_from_slice(found.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start.checked_add(bytes.len()).ok_or(ErrorKind::FileTooLarge)?;
        let mut held = self.0.bytes();
        let held = Arc::make_mut(&mut held);
        if held.len() < end {
            held.resize(end, 0);
        }
        if let Some(place) = held.get_mut(start..end) {
            place.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).map_err(io::Error::other)?;
        Arc::make_mut(&mut self.0.bytes()).resize(length, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn map(&self) -> io::Result<Mapping> {
        Ok(Mapping::Shared(Box::new(Shared(self.0.bytes().clone()))))
    }
}
