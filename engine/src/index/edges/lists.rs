//! The partners that each row knows: in memory, or in a file where they don't fit.

use crate::error::StorageError;
use crate::index::control::Cancelled;
use crate::index::edges::scan::BLOCK_ROWS;
use rayon::prelude::*;
#[cfg(test)]
use std::io;

/// Why edges were not built.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// Somebody said so.
    #[error("{}", Cancelled)]
    Cancelled,
    /// What did not fit in memory could not be written or read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The memory that may be taken is too little.
    #[error("{needed} bytes of memory are needed")]
    Memory {
        /// Bytes that suffice.
        needed: u64,
    },
}

impl From<Cancelled> for Stopped {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// What lies outside of memory while edges are built.
pub trait Outside: Sync {
    /// Makes room for so many numbers, all zero; it is gone when it is dropped.
    ///
    /// # Errors
    /// Those of the system.
    fn room(&self, numbers: u64) -> Result<Box<dyn Room>, StorageError>;
    /// Vectors that were read need not stay in memory.
    fn let_go(&self);
}

/// Room outside of memory.
pub trait Room: Send + Sync {
    /// Reads numbers from a position on.
    ///
    /// # Errors
    /// Those of the system.
    fn read(&self, at: u64, out: &mut [u64]) -> Result<(), StorageError>;
    /// Writes numbers from a position on.
    ///
    /// # Errors
    /// Those of the system.
    fn write(&self, at: u64, numbers: &[u64]) -> Result<(), StorageError>;
}

/// For builds that have all the memory that they need.
#[cfg(test)]
pub struct Nowhere;

#[cfg(test)]
impl Outside for Nowhere {
    fn room(&self, _: u64) -> Result<Box<dyn Room>, StorageError> {
        let source = io::ErrorKind::Unsupported.into();
        Err(StorageError { action: "make room in", path: "a file that is none".into(), source })
    }

    fn let_go(&self) {}
}

/// The lists of all rows, one after another, each worst first.
pub struct Lists {
    /// Entries of a row.
    stride: usize,
    /// How many of these count: the last ones.
    width: usize,
    rows: usize,
    lie: Lie,
}

/// Where lists lie.
enum Lie {
    Here(Vec<u64>),
    Away(Box<dyn Room>),
}

/// Rows whose lists are read together.
const TOGETHER: usize = 8 * BLOCK_ROWS;

impl Lists {
    /// Lists in memory, of so many entries each, of which the last `width` count.
    pub fn here(entries: Vec<u64>, stride: usize, width: usize) -> Self {
        let rows = entries.len().checked_div(stride).unwrap_or(0);
        Self { stride, width, rows, lie: Lie::Here(entries) }
    }

    /// Lists of so many rows in a file.
    pub fn away(room: Box<dyn Room>, rows: usize, stride: usize, width: usize) -> Self {
        Self { stride, width, rows, lie: Lie::Away(room) }
    }

    /// How many.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Entries of a row.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// All entries, where they are in memory.
    pub fn entries(&mut self) -> Option<&mut [u64]> {
        match &mut self.lie {
            Lie::Here(entries) => Some(entries),
            Lie::Away(_) => None,
        }
    }

    /// The file where they are not.
    pub fn room(&self) -> Option<&dyn Room> {
        match &self.lie {
            Lie::Here(_) => None,
            Lie::Away(room) => Some(&**room),
        }
    }

    /// Computes something of every whole list, in the order of rows.
    ///
    /// # Errors
    /// Where lists lie elsewhere and can't be read.
    pub fn map_all<O: Send>(&self, compute: impl Fn(&[u64]) -> O + Sync) -> Result<Vec<O>, StorageError> {
        let mut all = Vec::with_capacity(self.rows);
        let mut each = |entries: &[u64]| all.extend(entries.chunks_exact(self.stride.max(1)).map(&compute));
        match &self.lie {
            Lie::Here(entries) => each(entries),
            Lie::Away(room) => for_each_part(&**room, (self.rows, self.stride), |entries, _| {
                each(entries);
                Ok(())
            })?,
        }
        Ok(all)
    }

    /// Computes something of what counts of every list, a few rows together, on the current rayon pool, in the order of rows.
    ///
    /// # Errors
    /// Where lists lie elsewhere and can't be read.
    pub fn map<O: Send>(&self, compute: impl Fn(usize, &[u64]) -> O + Sync) -> Result<Vec<O>, StorageError> {
        let of = |entries: &[u64], first: usize| -> Vec<O> {
            let lists = entries.par_chunks_exact(self.stride.max(1)).enumerate();
            lists.map(|(at, list)| compute(first + at, &list[self.stride - self.width..])).collect()
        };
        match &self.lie {
            Lie::Here(entries) => Ok(of(entries, 0)),
            Lie::Away(room) => {
                let mut all = Vec::with_capacity(self.rows);
                for_each_part(&**room, (self.rows, self.stride), |entries, first| {
                    all.extend(of(entries, first));
                    Ok(())
                })?;
                Ok(all)
            }
        }
    }

    /// Visits what counts of every list, in the order of rows.
    ///
    /// # Errors
    /// Where lists lie elsewhere and can't be read.
    pub fn for_each(&self, mut visit: impl FnMut(usize, &[u64])) -> Result<(), StorageError> {
        let mut each = |entries: &[u64], first: usize| {
            for (at, list) in entries.chunks_exact(self.stride.max(1)).enumerate() {
                visit(first + at, &list[self.stride - self.width..]);
            }
        };
        match &self.lie {
            Lie::Here(entries) => {
                each(entries, 0);
                Ok(())
            }
            Lie::Away(room) => for_each_part(&**room, (self.rows, self.stride), |entries, first| {
                each(entries, first);
                Ok(())
            }),
        }
    }

    /// Changes whole lists, on the current rayon pool; what is computed is in the order of rows.
    ///
    /// # Errors
    /// Where lists lie elsewhere and can't be read or written.
    pub fn change<S: Default, O: Send>(
        &mut self,
        change: impl Fn(&mut S, usize, &mut [u64]) -> O + Sync,
    ) -> Result<Vec<O>, StorageError> {
        let stride = self.stride.max(1);
        let of = |entries: &mut [u64], first: usize| -> Vec<O> {
            let lists = entries.par_chunks_exact_mut(stride).enumerate();
            lists.map_init(S::default, |scratch, (at, list)| change(scratch, first + at, list)).collect()
        };
        match &mut self.lie {
            Lie::Here(entries) => Ok(of(entries, 0)),
            Lie::Away(room) => {
                let mut all = Vec::with_capacity(self.rows);
                for_each_part(&**room, (self.rows, self.stride), |entries, first| {
                    all.extend(of(entries, first));
                    room.write((first * stride) as u64, entries)
                })?;
                Ok(all)
            }
        }
    }

    /// Takes all entries of all lists from elsewhere.
    ///
    /// # Errors
    /// Where lists lie elsewhere and can't be written.
    pub fn fill(&mut self, all: &[u64]) -> Result<(), StorageError> {
        match &mut self.lie {
            Lie::Here(entries) => {
                all.clone_into(entries);
                Ok(())
            }
            Lie::Away(room) => room.write(0, all),
        }
    }

    /// Makes the lists of some rows empty.
    ///
    /// # Errors
    /// Where lists lie elsewhere and can't be written.
    pub fn empty(&mut self, rows: &[u32]) -> Result<(), StorageError> {
        let stride = self.stride;
        let nothing = vec![0; stride];
        for row in rows.iter().map(|row| *row as usize) {
            match &mut self.lie {
                Lie::Here(entries) => {
                    if let Some(entries) = entries.chunks_exact_mut(stride.max(1)).nth(row) {
                        entries.fill(0);
                    }
                }
                Lie::Away(room) => room.write((row * stride) as u64, &nothing)?,
            }
        }
        Ok(())
    }
}

/// Reads lists of so many entries, a few rows together.
fn for_each_part(
    room: &dyn Room,
    (rows, stride): (usize, usize),
    mut visit: impl FnMut(&mut [u64], usize) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    let mut entries = Vec::new();
    for first in (0..rows).step_by(TOGETHER) {
        entries.resize((rows - first).min(TOGETHER) * stride, 0);
        room.read((first * stride) as u64, &mut entries)?;
        visit(&mut entries, first)?;
    }
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::index::edges::Memory;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// As much memory as is needed.
    pub const MEMORY: Memory<'static> = Memory { bytes: None, taken: 0, outside: &Nowhere };

    fn full() -> StorageError {
        StorageError { action: "write", path: "scratch".into(), source: io::ErrorKind::StorageFull.into() }
    }

    /// Room that ends after so many bytes were written.
    #[derive(Default)]
    pub struct Elsewhere {
        pub bytes_max: Option<u64>,
        pub let_go: AtomicU64,
        pub written: std::sync::Arc<AtomicU64>,
    }

    impl Outside for Elsewhere {
        fn room(&self, numbers: u64) -> Result<Box<dyn Room>, StorageError> {
            let numbers = Mutex::new(vec![0; usize::try_from(numbers).unwrap()]);
            Ok(Box::new(Apart { numbers, bytes_max: self.bytes_max, written: self.written.clone() }))
        }

        fn let_go(&self) {
            self.let_go.fetch_add(1, Ordering::Relaxed);
        }
    }

    struct Apart {
        numbers: Mutex<Vec<u64>>,
        bytes_max: Option<u64>,
        written: std::sync::Arc<AtomicU64>,
    }

    impl Room for Apart {
        fn read(&self, at: u64, out: &mut [u64]) -> Result<(), StorageError> {
            let at = usize::try_from(at).unwrap();
            out.copy_from_slice(&self.numbers.lock().unwrap()[at..at + out.len()]);
            Ok(())
        }

        fn write(&self, at: u64, numbers: &[u64]) -> Result<(), StorageError> {
            let bytes = numbers.len() as u64 * 8;
            let written = self.written.fetch_add(bytes, Ordering::Relaxed) + bytes;
            if self.bytes_max.is_some_and(|most| written > most) {
                return Err(full());
            }
            let at = usize::try_from(at).unwrap();
            self.numbers.lock().unwrap()[at..at + numbers.len()].copy_from_slice(numbers);
            Ok(())
        }
    }
}
