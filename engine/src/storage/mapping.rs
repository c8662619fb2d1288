//! The bytes of a whole file, mapped into memory or read into it.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Read};
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
    /// Reads a file.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::FileTooLarge`] above `bytes_max`, [`io::ErrorKind::OutOfMemory`].
    pub(crate) fn read(file: &File, bytes_max: u64) -> io::Result<Self> {
        let length = file.metadata()?.len();
        if length > bytes_max {
            let message = format!("it has {length} bytes, and {bytes_max} are allowed");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        let mut bytes = Vec::new();
        let room = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.try_reserve_exact(room).map_err(|_| io::ErrorKind::OutOfMemory)?;
        // No more than there was at first, even if the file grows meanwhile.
        file.take(length).read_to_end(&mut bytes)?;
        if bytes.len() == room { Ok(Self::Heap(bytes)) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

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

impl Mapping {
    /// Lets the system take the bytes out of this process's memory, where they are mapped; whoever reads them next gets them from
    /// the page cache, or from the disk.
    pub(crate) fn let_go(&self) {
        #[cfg(unix)]
        if let Self::Mapped(map) = self {
            // SAFETY: the map is one of a file, shared and only ever read, so that no page of it has another content than the
            // file: a page that is dropped reads the same when it is next touched.
            #[expect(unsafe_code, reason = "the advice is unchecked because of what it does to private maps")]
            let advised = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
            // It is a matter of memory alone.
            advised.ok();
        }
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

/// Whether a file lies where a map may fail or change under its reader: on a network file system, or on one that a program
/// provides (FUSE). Known on Linux alone.
#[cfg(target_os = "linux")]
pub(crate) fn is_remote(file: &File) -> bool {
    use std::os::fd::AsRawFd;
    // AFS, Ceph, CIFS, Coda, FUSE, NCP, NFS, SMB, SMB2, 9P, as `statfs(2)` and linux/magic.h number them.
    const REMOTE: [u32; 10] = [
        0x5346_414f,
        0x00c3_6400,
        0xff53_4d42,
        0x7375_7245,
        0x6573_5546,
        0x0000_564c,
        0x0000_6969,
        0x0000_517b,
        0xfe53_4d42,
        0x0102_1997,
    ];
    let mut found = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the descriptor is open as long as `file` is borrowed, and the call fills what it is given a pointer to.
    #[expect(unsafe_code, reason = "the standard library does not tell the kind of a file system")]
    let kind = unsafe {
        if libc::fstatfs(file.as_raw_fd(), found.as_mut_ptr()) != 0 {
            return false;
        }
        found.assume_init().f_type
    };
    // The magic number has 32 bits, whatever the type of the field; some machines extend its sign.
    REMOTE.iter().any(|known| kind.to_le_bytes().starts_with(&known.to_le_bytes()))
}

/// Whether a file lies where a map may fail or change under its reader. Known on Linux alone.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_remote(_file: &File) -> bool {
    false
}
