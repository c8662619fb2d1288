//! A file beside the store's, for what a computation can't hold in memory.

use crate::error::StorageError;
use crate::index::edges::{Memory, Outside, Room};
use crate::snapshot::Snapshot;
use crate::storage::{FileName, VFile, Vfs, at};
use crate::writer::Store;
use std::io;
use std::sync::Arc;

/// What lies outside of memory while edges are made from a snapshot.
pub struct Scratch<'s> {
    store: &'s Store,
    snapshot: &'s Snapshot,
}

impl Store {
    /// Where a computation that reads a snapshot puts what does not fit in memory.
    pub(crate) fn scratch<'s>(&'s self, snapshot: &'s Snapshot) -> Scratch<'s> {
        Scratch { store: self, snapshot }
    }
}

impl Scratch<'_> {
    /// The memory that edges may take.
    pub(crate) fn memory(&self) -> Memory<'_> {
        Memory { bytes: self.store.env.edge_memory, taken: 0, outside: self }
    }
}

impl Outside for Scratch<'_> {
    fn room(&self, numbers: u64) -> Result<Box<dyn Room>, StorageError> {
        let disk = &self.store.env.disk;
        // Not drawn by chance: how much memory there is must not show in the names of other files.
        let mut number = 0;
        let (name, file) = loop {
            let name = FileName::Scratch(number);
            match disk.create_new(&name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < SCRATCHES => number += 1,
                created => break (name, created.map_err(at("create", &name))?),
            }
        };
        let scratch = ScratchFile { disk: Arc::clone(disk), name, file };
        // On most file systems this takes no space until it is written.
        scratch.file.set_len(numbers.saturating_mul(8)).map_err(at("write", &name))?;
        Ok(Box::new(scratch))
    }

    fn let_go(&self) {
        self.snapshot.let_go();
    }
}

/// Files of this kind that there may be: of builds that run together, and left by a crash where the system does not remove them.
const SCRATCHES: u64 = 1024;

/// An open file that is removed when it is dropped; after a crash, by the next writer.
struct ScratchFile {
    disk: Arc<dyn Vfs>,
    name: FileName,
    file: Box<dyn VFile>,
}

/// Numbers that are converted together.
const TOGETHER: usize = 1 << 13;

impl Room for ScratchFile {
    fn read(&self, at_number: u64, out: &mut [u64]) -> Result<(), StorageError> {
        let mut bytes = vec![0; out.len().min(TOGETHER) * 8];
        let mut offset = at_number * 8;
        for out in out.chunks_mut(TOGETHER) {
            let bytes = &mut bytes[..out.len() * 8];
            self.file.read_at(bytes, offset).map_err(at("read", &self.name))?;
            for (number, bytes) in out.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *number = u64::from_le_bytes(*bytes);
            }
            offset += bytes.len() as u64;
        }
        Ok(())
    }

    fn write(&self, at_number: u64, numbers: &[u64]) -> Result<(), StorageError> {
        let mut bytes = Vec::with_capacity(numbers.len().min(TOGETHER) * 8);
        let mut offset = at_number * 8;
        for numbers in numbers.chunks(TOGETHER) {
            bytes.clear();
            bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            self.file.write_at(&bytes, offset).map_err(at("write", &self.name))?;
            offset += bytes.len() as u64;
        }
        Ok(())
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        // Where the system refuses, the next open sweeps it.
        self.disk.remove(&self.name).ok();
    }
}
