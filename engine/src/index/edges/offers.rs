//! The partners that rows are offered, in any order and by any thread.

use crate::error::StorageError;
use crate::index::edges::lists::{Lists, Room};
use crate::index::edges::scan::{BLOCK_ROWS, entry, insert, parts};
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// The partners of each row.
pub struct Choices<'c> {
    width: usize,
    /// For the rows of each block, one after another, their best partners, worst first, of those not below the bracket:
    /// image and inverted place; zero where none.
    blocks: Vec<Mutex<Slots<'c>>>,
    /// The image that a partner needs to be chosen, at least.
    worst: Vec<AtomicU32>,
    /// Where blocks lie that are not here.
    room: Option<&'c dyn Room>,
}

/// The entries of a block.
enum Slots<'c> {
    /// Those of somebody else.
    Lent(&'c mut [u64]),
    /// Its own.
    Own(Vec<u64>),
    /// Elsewhere.
    Away,
}

impl Deref for Slots<'_> {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match self {
            Self::Lent(slots) => slots,
            Self::Own(slots) => slots,
            Self::Away => &[],
        }
    }
}

impl DerefMut for Slots<'_> {
    fn deref_mut(&mut self) -> &mut [u64] {
        match self {
            Self::Lent(slots) => slots,
            Self::Own(slots) => slots,
            Self::Away => &mut [],
        }
    }
}

impl<'c> Choices<'c> {
    /// The entries of all rows, one row after another, each sorted, to be bettered; partners need an image of `floor`.
    pub fn new(entries: &'c mut [u64], width: usize, floor: u32) -> Self {
        let worst =
            entries.chunks_exact(width.max(1)).map(|entries| AtomicU32::new(needed(entries).max(floor))).collect();
        let blocks =
            entries.chunks_mut((BLOCK_ROWS * width).max(1)).map(|slots| Mutex::new(Slots::Lent(slots))).collect();
        Self { width, blocks, worst, room: None }
    }

    /// Likewise, those of lists, wherever they lie.
    ///
    /// # Errors
    /// Where lists lie elsewhere and can't be read.
    pub fn of_lists(lists: &'c mut Lists, floor: u32) -> Result<Self, StorageError> {
        let (stride, rows) = (lists.stride(), lists.rows());
        if lists.room().is_none() {
            return Ok(Self::new(lists.entries().unwrap_or_default(), stride, floor));
        }
        let worst = lists.map_all(|entries| AtomicU32::new(needed(entries).max(floor)))?;
        let blocks = (0..rows.div_ceil(BLOCK_ROWS)).map(|_| Mutex::new(Slots::Away)).collect();
        Ok(Self { width: stride, blocks, worst, room: lists.room() })
    }

    /// Likewise, for some rows alone, whose lists are empty.
    ///
    /// # Errors
    /// Where lists lie elsewhere and can't be read.
    pub fn of_some(lists: &'c mut Lists, some: &[u32], floor: u32) -> Result<Self, StorageError> {
        let choices = Self::of_lists(lists, u32::MAX)?;
        for place in some {
            choices.worst.get(*place as usize).inspect(|worst| worst.store(floor, Ordering::Relaxed));
        }
        Ok(choices)
    }

    /// Has the entries of a block here; whether they were elsewhere.
    ///
    /// # Errors
    /// Where they can't be read.
    pub fn fetch(&self, block: usize) -> Result<bool, StorageError> {
        let (Some(room), Some(Ok(mut slots))) = (self.room, self.blocks.get(block).map(Mutex::lock)) else {
            return Ok(false);
        };
        if !matches!(*slots, Slots::Away) {
            return Ok(false);
        }
        let rows = (self.worst.len() - block * BLOCK_ROWS).min(BLOCK_ROWS);
        let mut entries = vec![0; rows * self.width];
        room.read((block * BLOCK_ROWS * self.width) as u64, &mut entries)?;
        *slots = Slots::Own(entries);
        Ok(true)
    }

    /// Has them elsewhere again.
    ///
    /// # Errors
    /// Where they can't be written.
    pub fn put_back(&self, block: usize) -> Result<(), StorageError> {
        let (Some(room), Some(Ok(mut slots))) = (self.room, self.blocks.get(block).map(Mutex::lock)) else {
            return Ok(());
        };
        room.write((block * BLOCK_ROWS * self.width) as u64, &slots)?;
        *slots = Slots::Away;
        Ok(())
    }

    /// The image that a partner of a place needs to be chosen; more than any has where there is no room.
    pub fn needed(&self, place: usize) -> u32 {
        self.worst.get(place).map_or(u32::MAX, |worst| worst.load(Ordering::Relaxed))
    }

    /// Offers partners: place, partner, image. Those of a block follow one another.
    pub fn offer(&self, offers: &[(u32, u32, u32)]) {
        let block = |offer: &(u32, u32, u32)| offer.0 as usize / BLOCK_ROWS;
        for offers in offers.chunk_by(|a, b| block(a) == block(b)) {
            let Some(Ok(mut entries)) = offers.first().and_then(|first| self.blocks.get(block(first))).map(Mutex::lock)
            else {
                continue;
            };
            for (place, partner, image) in offers {
                let place = *place as usize;
                if self.needed(place) == u32::MAX {
                    continue;
                }
                let at = place % BLOCK_ROWS * self.width;
                let Some(entries) = entries.get_mut(at..at + self.width) else { continue };
                insert(entries, entry(*image, *partner));
                let worst = self.worst.get(place);
                worst.inspect(|worst| _ = worst.fetch_max(needed(entries), Ordering::Relaxed));
            }
        }
    }
}

/// The image that an entry must have at least to become one of these.
fn needed(entries: &[u64]) -> u32 {
    entries.first().map_or(u32::MAX, |entry| parts(*entry).0)
}
