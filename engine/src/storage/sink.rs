//! Writes a new file from front to back through a buffer.

use crate::error::StorageError;
use crate::storage::{FileName, VFile, Vfs, at};
use hedgerow_format::FormatError;
use hedgerow_format::file::{FileIdentity, Finished};
use hedgerow_format::manifest::FileEntry;
use std::io::{self, BufWriter, Write};

/// Why a file was not written. Nothing of it is left.
#[derive(Debug)]
pub enum WriteFault {
    /// The system refused.
    Storage(StorageError),
    /// There was too much for one file.
    Limit(FormatError),
}

/// A buffered, growing file.
pub type Sink = BufWriter<Appender>;

/// Appends to a file.
#[derive(Debug)]
pub struct Appender {
    file: Box<dyn VFile>,
    position: u64,
}

impl Write for Appender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(bytes, self.position)?;
        self.position += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Creates the file `identity` names, lets `build` write it, puts the header in place and syncs the file.
/// Its folder is not synced.
///
/// # Errors
/// [`WriteFault`]; the file is then removed again, and its name never used.
pub fn write_file(
    disk: &dyn Vfs,
    identity: FileIdentity,
    build: impl FnOnce(Sink) -> io::Result<(Finished, Sink)>,
) -> Result<FileEntry, WriteFault> {
    let FileIdentity { kind, number, random, .. } = identity;
    let name = FileName::Numbered { kind, number, random };
    let file = disk.create_new(&name).map_err(|error| WriteFault::Storage(at("create", &name)(error)))?;
    let write = || -> io::Result<Finished> {
        let (finished, sink) = build(BufWriter::with_capacity(256 * 1024, Appender { file, position: 0 }))?;
        let appender = sink.into_inner().map_err(io::IntoInnerError::into_error)?;
        appender.file.write_at(&finished.header, 0)?;
        appender.file.sync()?;
        Ok(finished)
    };
    match write() {
        Ok(Finished { header_hash, file_bytes, .. }) => Ok(FileEntry { number, random, file_bytes, header_hash }),
        Err(error) => {
            // What is left of the file is an orphan; should removing it fail, the next open sweeps it.
            disk.remove(&name).ok();
            let limit = error.get_ref().and_then(|inner| inner.downcast_ref::<FormatError>()).cloned();
            Err(limit.map_or_else(|| WriteFault::Storage(at("write", &name)(error)), WriteFault::Limit))
        }
    }
}
