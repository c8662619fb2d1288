//! The real disk: a folder of the operating system.

use crate::storage::mapping::is_remote;
use crate::storage::{Access, FileName, Folder, Mapping, VFile, Vfs};
use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A folder of the operating system.
#[derive(Debug)]
pub struct RealDisk {
    root: PathBuf,
    /// What the pack is called, where the disk is made for one.
    pack: Option<OsString>,
    reading: Reading,
}

/// How a file's bytes are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// Mapped, but read into memory on network file systems and those of programs (FUSE), where Linux tells.
    #[default]
    Auto,
    /// Mapped: costs nothing until it is read. Where another program cuts the file, the process ends.
    Map,
    /// Read into memory, whole, when it is opened; nothing can change it afterwards.
    Heap {
        /// Bytes that a file may have.
        bytes_max: u64,
    },
}

impl RealDisk {
    /// The folder `root`, which need not exist.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), pack: None, reading: Reading::Auto }
    }

    /// The disk of one pack: [`FileName::Pack`] is the file at `path`.
    #[must_use]
    pub fn of_pack(path: &Path) -> Self {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let pack = Some(path.file_name().unwrap_or_default().to_owned());
        Self { pack, ..Self::new(parent.unwrap_or(Path::new("."))) }
    }

    /// The same disk, read in another way.
    #[must_use]
    pub fn reading(self, reading: Reading) -> Self {
        Self { reading, ..self }
    }

    fn path(&self, name: &FileName) -> io::Result<PathBuf> {
        let folder = self.folder(name.folder())?;
        let mut own = self.pack.clone().unwrap_or_default();
        match name {
            FileName::Pack if self.pack.is_some() => {}
            FileName::NewPack(random) if self.pack.is_some() => own.push(format!("-{random:016x}.new")),
            _ => return Ok(folder.join(name.name())),
        }
        Ok(folder.join(own))
    }

    /// Where a folder is. One that is a link is refused: it would lead out of the store.
    fn folder(&self, folder: Folder) -> io::Result<PathBuf> {
        if folder == Folder::Root {
            return Ok(self.root.clone());
        }
        let path = self.root.join(folder.path());
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => {
                let message = format!("{} is a link, and links inside a store are not followed", folder.path());
                Err(io::Error::new(io::ErrorKind::InvalidInput, message))
            }
            _ => Ok(path),
        }
    }

    fn file(&self, file: File) -> io::Result<Box<dyn VFile>> {
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        Ok(Box::new(RealFile { file, reading: self.reading }))
    }
}

impl Vfs for RealDisk {
    fn describe(&self) -> String {
        match &self.pack {
            None => self.root.display().to_string(),
            Some(pack) => self.root.join(pack).display().to_string(),
        }
    }

    fn create_new(&self, name: &FileName) -> io::Result<Box<dyn VFile>> {
        let file = options().read(true).write(true).create_new(true).open(self.path(name)?)?;
        self.file(file)
    }

    fn open(&self, name: &FileName, access: Access) -> io::Result<Box<dyn VFile>> {
        self.file(options().read(true).write(access == Access::Write).open(self.path(name)?)?)
    }

    fn remove(&self, name: &FileName) -> io::Result<()> {
        fs::remove_file(self.path(name)?)
    }

    fn rename(&self, from: &FileName, to: &FileName) -> io::Result<()> {
        fs::rename(self.path(from)?, self.path(to)?)
    }

    fn list(&self, folder: Folder) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.folder(folder)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_file()
                && let Ok(name) = entry.file_name().into_string()
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn make_folder(&self, folder: Folder) -> io::Result<()> {
        let path = self.folder(folder)?;
        if path.is_dir() && folder != Folder::Root {
            // Its name is synced with the root, which every commit syncs.
            return Ok(());
        }
        // Every folder that is made needs its parent synced, up to the first that was there; the store's own always, since
        // it may have been made a moment ago.
        let missing = path.ancestors().skip(1).take_while(|path| !path.as_os_str().is_empty() && !path.is_dir());
        let made: Vec<&Path> = std::iter::once(path.as_path()).chain(missing).collect();
        folders().create(&path)?;
        made.iter().try_for_each(|made| {
            let parent = made.parent().filter(|parent| !parent.as_os_str().is_empty());
            sync_path(parent.unwrap_or(Path::new(".")))
        })
    }

    fn sync_folder(&self, folder: Folder) -> io::Result<()> {
        sync_path(&self.folder(folder)?)
    }

    fn try_lock(&self, name: &FileName) -> io::Result<Option<Box<dyn Debug + Send + Sync>>> {
        let mut file = options().read(true).write(true).create(true).truncate(false).open(self.path(name)?)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        match file.try_lock() {
            Ok(()) => {
                // Who holds the lock, for the error that another writer gets; the lock itself is the system's, and a
                // full disk must not keep a writer from deleting.
                file.set_len(0).and_then(|()| writeln!(file, "process {}", std::process::id())).ok();
                Ok(Some(Box::new(Held(file))))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// A lock. A process that was just started may still have a copy of the handle, so closing this one would not be enough.
#[derive(Debug)]
struct Held(File);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.unlock().ok();
    }
}

#[derive(Debug)]
struct RealFile {
    file: File,
    reading: Reading,
}

impl VFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, out, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < out.len() {
            match std::os::windows::fs::FileExt::seek_read(&self.file, &mut out[done..], offset + done as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => done += read,
            }
        }
        Ok(())
    }

    #[cfg(unix)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, offset)
    }

    #[cfg(windows)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match std::os::windows::fs::FileExt::seek_write(&self.file, &bytes[done..], offset + done as u64)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => done += written,
            }
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn map(&self) -> io::Result<Mapping> {
        match self.reading {
            Reading::Heap { bytes_max } => Mapping::read(&self.file, bytes_max),
            Reading::Auto if is_remote(&self.file) => Mapping::read(&self.file, u64::MAX),
            Reading::Auto | Reading::Map => Mapping::of_file(&self.file),
        }
    }
}

#[cfg(unix)]
fn options() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    // Without O_NONBLOCK, opening a pipe would wait for its other end.
    options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
    options
}

/// Makes folders that are missing, for this user alone.
#[cfg(unix)]
fn folders() -> fs::DirBuilder {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
}

#[cfg(not(unix))]
fn folders() -> fs::DirBuilder {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    builder
}

#[cfg(not(unix))]
fn options() -> OpenOptions {
    OpenOptions::new()
}

/// A folder cannot be synced on Windows and need not be.
fn sync_path(path: &Path) -> io::Result<()> {
    if cfg!(windows) { Ok(()) } else { File::open(path)?.sync_all() }
}
