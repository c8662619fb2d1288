//! What can happen to one file: every bit, every length, runs and blocks swapped, another file in its place.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Bytes that a medium writes as one, at the least, and the alignment of sections.
const RUN_BYTES: usize = 64;
/// Bytes under one checksum.
const BLOCK_BYTES: usize = 64 * 1024;
/// Bytes that a file gets longer by.
const LONGER: [usize; 3] = [1, RUN_BYTES, BLOCK_BYTES];

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    /// One bit is flipped.
    Bit,
    /// The file is cut, or longer by zeros.
    Length,
    /// Two runs of 64 bytes change places.
    Run,
    /// Two blocks of 64 KiB change places; the last block of a file only with itself, since it is shorter.
    Block,
    /// The file's bytes are those of another file, or the file is gone.
    Exchange,
}

impl Sort {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Bit, Self::Length, Self::Run, Self::Block, Self::Exchange];

    fn name(self) -> &'static str {
        match self {
            Self::Bit => "bit",
            Self::Length => "length",
            Self::Run => "run",
            Self::Block => "block",
            Self::Exchange => "exchange",
        }
    }
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Sort {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|sort| sort.name() == name);
        found.ok_or_else(|| format!("there is no change {name}"))
    }
}

/// A file that can be put in another's place.
#[derive(Clone, Debug)]
pub struct Other {
    /// Where it comes from.
    pub origin: Origin,
    /// Its bytes; none where the file is gone.
    pub bytes: Option<Arc<Vec<u8>>>,
}

/// Where a file comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: the file is gone.
    Nowhere,
    /// The same store.
    Own,
    /// The same store, one generation before.
    Older,
    /// A store with the same content and another UUID.
    Twin,
}

/// A file before it is changed.
#[derive(Debug)]
pub struct Before {
    /// Its bytes.
    pub bytes: Arc<Vec<u8>>,
    /// What can be put in its place.
    pub others: Vec<Other>,
}

/// What a file becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    /// What it was.
    Same,
    /// It is gone.
    Gone,
    /// These bytes.
    Bytes(Vec<u8>),
}

impl Before {
    /// How many changes of a sort there are.
    #[must_use]
    pub fn count(&self, sort: Sort) -> u64 {
        let length = self.bytes.len();
        let count = match sort {
            Sort::Bit => length * 8,
            Sort::Length => length + LONGER.len(),
            Sort::Run => (length / RUN_BYTES) * distances(length / RUN_BYTES).len(),
            Sort::Block => (length / BLOCK_BYTES) * distances(length / BLOCK_BYTES).len(),
            Sort::Exchange => self.others.len(),
        };
        count as u64
    }

    /// The bytes after a change, but for a flipped bit, which is done in place.
    #[must_use]
    pub fn after(&self, sort: Sort, place: usize) -> After {
        let mut bytes = self.bytes.as_ref().clone();
        match sort {
            Sort::Bit => flip(&mut bytes, place),
            Sort::Length => {
                let longer = place.checked_sub(bytes.len()).and_then(|longer| LONGER.get(longer));
                bytes.resize(longer.map_or(place, |longer| bytes.len() + longer), 0);
            }
            Sort::Run => swap(&mut bytes, RUN_BYTES, place),
            Sort::Block => swap(&mut bytes, BLOCK_BYTES, place),
            Sort::Exchange => match self.others.get(place) {
                Some(Other { bytes: Some(other), .. }) => bytes.clone_from(other.as_ref()),
                _ => return After::Gone,
            },
        }
        if bytes == *self.bytes { After::Same } else { After::Bytes(bytes) }
    }
}

/// Flips a bit; the lowest of a byte is the first.
pub fn flip(bytes: &mut [u8], bit: usize) {
    if let Some(byte) = bytes.get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
}

/// How far apart the two that change places are: every distance where there are few, else the powers of two.
fn distances(count: usize) -> Vec<usize> {
    match count {
        0 | 1 => Vec::new(),
        2..=256 => (1..=count / 2).collect(),
        _ => (0..usize::BITS).map(|power| 1 << power).take_while(|distance| *distance <= count / 2).collect(),
    }
}

fn swap(bytes: &mut [u8], size: usize, place: usize) {
    let count = bytes.len() / size;
    let (first, row) = (place % count.max(1), place / count.max(1));
    let Some(distance) = distances(count).get(row).copied() else { return };
    let second = (first + distance) % count;
    let (low, high) = (first.min(second) * size, first.max(second) * size);
    let (head, tail) = bytes.split_at_mut(high);
    if let (Some(low), Some(high)) = (head.get_mut(low..low + size), tail.get_mut(..size)) {
        low.swap_with_slice(high);
    }
}
