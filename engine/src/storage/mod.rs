//! The only room that knows an operating system: files, maps, locks and syncs, behind one trait that can be simulated.

mod backend;
mod mapping;
mod names;
mod os;
mod pack;
mod sink;
pub mod sync;
mod verified;
mod wreck;

pub use backend::Backend;
pub use mapping::Mapping;
pub use names::{FileName, Folder};
pub use os::{Reading, RealDisk};
pub use pack::PackDisk;
pub use sink::{WriteFault, write_file};
pub use verified::{FileFault, VerifiedFile};
pub use wreck::Wreck;

use crate::error::{OpenError, StorageError};
use hedgerow_format::Key;
use hedgerow_format::text::Codec;
use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The disk of one store. All names lie inside the store's folder.
///
/// A sync makes durable what was done before it to that file or folder, and nothing else: a new file needs both its own
/// and its folder's.
pub trait Vfs: Send + Sync + Debug {
    /// Where the store is, for messages.
    fn describe(&self) -> String;
    /// The pack that it is, if it is one: then it can only be read, and has no catalog.
    fn pack(&self) -> Option<&PackDisk> {
        None
    }
    /// Makes a new file, open for writing; refuses a name that is taken.
    ///
    /// # Errors
    /// Those of the system.
    fn create_new(&self, name: &FileName) -> io::Result<Box<dyn VFile>>;
    /// Opens a regular file; links are not followed.
    ///
    /// # Errors
    /// Those of the system.
    fn open(&self, name: &FileName, access: Access) -> io::Result<Box<dyn VFile>>;
    /// Removes a file.
    ///
    /// # Errors
    /// Those of the system.
    fn remove(&self, name: &FileName) -> io::Result<()>;
    /// Renames a file, replacing what has the new name.
    ///
    /// # Errors
    /// Those of the system.
    fn rename(&self, from: &FileName, to: &FileName) -> io::Result<()>;
    /// Names of the files in a folder, sorted.
    ///
    /// # Errors
    /// Those of the system; none when the folder is missing, which reads as empty.
    fn list(&self, folder: Folder) -> io::Result<Vec<String>>;
    /// Makes a folder where it is missing, and its name durable.
    ///
    /// # Errors
    /// Those of the system.
    fn make_folder(&self, folder: Folder) -> io::Result<()>;
    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// Those of the system.
    fn sync_folder(&self, folder: Folder) -> io::Result<()>;
    /// Takes the exclusive lock on a file, made if missing; `None` when another has it.
    ///
    /// # Errors
    /// Those of the system.
    fn try_lock(&self, name: &FileName) -> io::Result<Option<Box<dyn Debug + Send + Sync>>>;
}

/// An open file.
#[expect(clippy::len_without_is_empty, reason = "nothing asks whether a file is empty")]
pub trait VFile: Send + Sync + Debug {
    /// Its length.
    ///
    /// # Errors
    /// Those of the system.
    fn len(&self) -> io::Result<u64>;
    /// Fills `out` from `offset`.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::UnexpectedEof`] where the file ends early.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// Those of the system.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Cuts the file or makes it longer with zeros.
    ///
    /// # Errors
    /// Those of the system.
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Makes its bytes and length durable.
    ///
    /// # Errors
    /// Those of the system.
    fn sync(&self) -> io::Result<()>;
    /// Its bytes, mapped or read.
    ///
    /// # Errors
    /// Those of the system.
    fn map(&self) -> io::Result<Mapping>;
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// How segments are merged after commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merging {
    /// Neighbouring segments of one level that are merged into one of a higher; at least 2.
    pub fanout: usize,
    /// Bytes of segments that are merged at once at most. One segment that is a third dead is rewritten whatever its size.
    /// With 0 nothing is merged or rewritten before it is asked for.
    pub bytes: u64,
}

/// Vectors from which on an index answers sooner than comparing all of them.
const INDEX_FROM: u64 = 4096;

impl Default for Merging {
    fn default() -> Self {
        Self { fanout: 8, bytes: 64 << 20 }
    }
}

/// What the engine takes from outside: a disk, randomness, how eagerly to merge, and how much memory edges may take.
#[derive(Clone, Debug)]
pub struct Env {
    /// The disk.
    pub disk: Arc<dyn Vfs>,
    /// How segments are merged after commits.
    pub merging: Merging,
    /// Bytes of memory that similarity edges may take while they are made, apart from maps of files; none for 2 GiB, or more
    /// where that does not do. With less a build takes longer, and its edges are the same; builds by signals need what they say.
    pub edge_memory: Option<u64>,
    /// Vectors from which on a space has an index; one with fewer is compared as a whole.
    pub index_from: u64,
    /// How text is written.
    pub(crate) codec: Codec,
    seed: Option<Arc<AtomicU64>>,
}

impl Env {
    /// A folder of the operating system, which need not exist; or a pack, which can only be read: its header and its
    /// directory are then checked.
    ///
    /// # Errors
    /// [`OpenError::NotAStore`] where the path is another file; [`OpenError::Damaged`] where it is a damaged pack.
    pub fn folder(path: &Path) -> Result<Self, OpenError> {
        Self::reading(path, Reading::Auto)
    }

    /// As [`Env::folder`], and says how files are read.
    ///
    /// # Errors
    /// As [`Env::folder`].
    pub fn reading(path: &Path, reading: Reading) -> Result<Self, OpenError> {
        if !path.exists() || path.is_dir() {
            return Ok(Self::new(Arc::new(RealDisk::new(path).reading(reading))));
        }
        // A link to a folder is followed too.
        let path = path.canonicalize().map_err(at("open", &FileName::Pack))?;
        Self::of_file(&path, reading)
    }

    /// As [`Env::reading`], for what a stranger made: read into memory, and nothing but a folder or a regular file.
    pub(crate) fn untrusted(path: &Path, file_bytes: u64, pack_bytes: u64) -> Result<Self, OpenError> {
        let kind = match path.symlink_metadata() {
            Ok(found) => found.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(OpenError::NotFound { path: path.to_owned() });
            }
            Err(source) => return Err(StorageError { action: "open", path: path.display().to_string(), source }.into()),
        };
        if kind.is_dir() {
            Ok(Self::new(Arc::new(RealDisk::new(path).reading(Reading::Heap { bytes_max: file_bytes }))))
        } else if kind.is_file() {
            Self::of_file(path, Reading::Heap { bytes_max: pack_bytes })
        } else {
            let found = "it is neither a folder nor a regular file".into();
            Err(OpenError::NotAStore { path: path.to_owned(), found })
        }
    }

    fn of_file(path: &Path, reading: Reading) -> Result<Self, OpenError> {
        let outer = RealDisk::of_pack(path).reading(reading);
        let file = outer.open(&FileName::Pack, Access::Read).map_err(at("open", &FileName::Pack))?;
        if !PackDisk::is_pack(&*file).map_err(at("read", &FileName::Pack))? {
            let found = "it is a file that is no pack, and a store is a folder or a pack".into();
            return Err(OpenError::NotAStore { path: path.to_owned(), found });
        }
        Ok(Self::new(Arc::new(PackDisk::open(&outer, FileName::Pack)?)))
    }

    /// The disk on which a pack is written at this path: [`FileName::Pack`] is the file, whatever it is called.
    #[must_use]
    pub fn pack(path: &Path) -> Self {
        Self::new(Arc::new(RealDisk::of_pack(path)))
    }

    /// The system's randomness.
    #[must_use]
    pub fn new(disk: Arc<dyn Vfs>) -> Self {
        Self {
            disk,
            merging: Merging::default(),
            edge_memory: None,
            index_from: INDEX_FROM,
            codec: Codec::Zstd,
            seed: None,
        }
    }

    /// Randomness that follows from a seed, so that a run replays exactly.
    #[must_use]
    pub fn seeded(disk: Arc<dyn Vfs>, seed: u64) -> Self {
        Self { seed: Some(Arc::new(AtomicU64::new(seed))), ..Self::new(disk) }
    }

    /// For a store whose bytes follow from its content alone: names and UUID follow from a fingerprint, text is stored as
    /// it is, and nothing is merged.
    #[must_use]
    pub fn canonical(disk: Arc<dyn Vfs>, fingerprint: Key) -> Self {
        let seed = u64::from_le_bytes(fingerprint.0.first_chunk().copied().unwrap_or_default());
        let merging = Merging { fanout: usize::MAX, bytes: 0 };
        Self { merging, codec: Codec::Stored, ..Self::seeded(disk, seed) }
    }

    /// A number that no file name had before, with overwhelming probability. It decides names, never content.
    #[must_use]
    pub fn random(&self) -> u64 {
        match &self.seed {
            None => RandomState::new().hash_one(std::process::id()),
            Some(state) => {
                // SplitMix64 (Steele, Lea and Flood 2014).
                let mut z =
                    state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed).wrapping_add(0x9e37_79b9_7f4a_7c15);
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                z ^ (z >> 31)
            }
        }
    }
}

/// Gives an error of the system its place.
pub(crate) fn at(action: &'static str, name: &FileName) -> impl FnOnce(io::Error) -> StorageError {
    let path = name.to_string();
    move |source| StorageError { action, path, source }
}

/// Gives an error of the system on a folder its place.
pub(crate) fn at_folder(action: &'static str, folder: Folder) -> impl FnOnce(io::Error) -> StorageError {
    move |source| StorageError { action, path: folder.path().to_owned(), source }
}
