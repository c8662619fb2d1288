//! The bytes of a whole file, mapped into memory or read into it.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::ops::Deref;

/// A file's bytes.
#[derive(Debug)]
pub enum Mapping {
    /// Mapped: costs nothing until it is read, and is read from the page cache.
    Mapped(memmap2::Mmap),
    /// Read: for disks where a map is not to be trusted, and for simulated ones.
    Heap(Vec<u8>),
    /// Shared with others that read them.
    Shared(Box<dyn Bytes>),
}

/// Bytes that don't change, owned by whom it may concern.
pub trait Bytes: AsRef<[u8]> + Debug + Send + Sync {}

impl<T: AsRef<[u8]> + Debug + Send + Sync> Bytes for T {}

impl Mapping {
    /// Maps a file for reading.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Self::Heap(Vec::new()));
        }
        // SAFETY: a store never changes a file that it has published: files are written once under a name that is never
        // used again, and removed by unlinking, which leaves this mapping whole. Another program that writes into the
        // store's folder breaks that; SPEC.md states it as an assumption.
        #[expect(unsafe_code, reason = "a map of a file is the only way to read it in place")]
        let map = unsafe { memmap2::Mmap::map(file)? };
        Ok(Self::Mapped(map))
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Heap(bytes) => bytes,
            Self::Shared(bytes) => (**bytes).as_ref(),
        }
    }
}
