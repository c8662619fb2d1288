//! The real disk: a folder of the operating system.

use crate::storage::{Access, FileName, Folder, Mapping, VFile, Vfs};
use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A folder of the operating system.
#[derive(Debug)]
pub struct RealDisk {
    root: PathBuf,
}

impl RealDisk {
    /// The folder `root`, which need not exist.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    fn path(&self, name: &FileName) -> PathBuf {
        self.folder(name.folder()).join(name.name())
    }

    fn folder(&self, folder: Folder) -> PathBuf {
        match folder {
            Folder::Root => self.root.clone(),
            inner => self.root.join(inner.path()),
        }
    }
}

impl Vfs for RealDisk {
    fn describe(&self) -> String {
        self.root.display().to_string()
    }

    fn create_new(&self, name: &FileName) -> io::Result<Box<dyn VFile>> {
        let file = options().read(true).write(true).create_new(true).open(self.path(name))?;
        Ok(Box::new(RealFile(file)))
    }

    fn open(&self, name: &FileName, access: Access) -> io::Result<Box<dyn VFile>> {
        let file = options().read(true).write(access == Access::Write).open(self.path(name))?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        Ok(Box::new(RealFile(file)))
    }

    fn remove(&self, name: &FileName) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn rename(&self, from: &FileName, to: &FileName) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn list(&self, folder: Folder) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.folder(folder)) {
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
        let path = self.folder(folder);
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
        sync_path(&self.folder(folder))
    }

    fn try_lock(&self, name: &FileName) -> io::Result<Option<Box<dyn Debug + Send + Sync>>> {
        let mut file = options().read(true).write(true).create(true).truncate(false).open(self.path(name))?;
        match file.try_lock() {
            Ok(()) => {
                // Who holds the lock, for the error that another writer gets; the lock itself is the system's, and a
                // full disk must not keep a writer from deleting.
                file.set_len(0).and_then(|()| writeln!(file, "process {}", std::process::id())).ok();
                Ok(Some(Box::new(file)))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[derive(Debug)]
struct RealFile(File);

impl VFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.0, out, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < out.len() {
            match std::os::windows::fs::FileExt::seek_read(&self.0, &mut out[done..], offset + done as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => done += read,
            }
        }
        Ok(())
    }

    #[cfg(unix)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.0, bytes, offset)
    }

    #[cfg(windows)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            done += std::os::windows::fs::FileExt::seek_write(&self.0, &bytes[done..], offset + done as u64)?;
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn map(&self) -> io::Result<Mapping> {
        Mapping::of_file(&self.0)
    }
}

#[cfg(unix)]
fn options() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
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
