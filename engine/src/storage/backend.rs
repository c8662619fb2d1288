//! redb on top of the same disk as everything else.

use crate::storage::VFile;
use redb::StorageBackend;
use std::io;

/// A file that redb writes.
#[derive(Debug)]
pub struct Backend(pub Box<dyn VFile>);

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_at(out, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_at(bytes, offset)
    }
}
