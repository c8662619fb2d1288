//! The best partners of each row, offered by any thread in any order.

use crate::index::edges::Cap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// For each row its best partners: those with the highest images, among equals the first rows.
pub struct Partners {
    width: usize,
    /// Image and inverted row of each partner as one number, worst first.
    lists: Vec<Mutex<Vec<u64>>>,
    /// The image that a partner needs at least, which saves most of the locks.
    worst: Vec<AtomicU32>,
}

impl Partners {
    /// Room for so many partners of so many rows.
    pub fn new(rows: u32, width: u32) -> Self {
        Self {
            width: width as usize,
            lists: (0..rows).map(|_| Mutex::new(Vec::new())).collect(),
            worst: (0..rows).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Offers each of two rows to the other.
    pub fn offer_both(&self, row: u32, other: u32, image: u32) {
        self.offer(row, other, image);
        self.offer(other, row, image);
    }

    /// Offers a partner.
    fn offer(&self, row: u32, partner: u32, image: u32) {
        let row = row as usize;
        let (Some(list), Some(worst)) = (self.lists.get(row), self.worst.get(row)) else { return };
        if self.width == 0 || image < worst.load(Ordering::Relaxed) {
            return;
        }
        let Ok(mut list) = list.lock() else { return };
        let entry = u64::from(image) << 32 | u64::from(!partner);
        let at = list.partition_point(|other| *other < entry);
        if list.len() < self.width {
            list.insert(at, entry);
        } else if at > 0 {
            list.copy_within(1..at, 0);
            list[at - 1] = entry;
        }
        if list.len() == self.width {
            worst.store(parts(list[0]).0, Ordering::Relaxed);
        }
    }

    /// The pairs that were chosen and have at least an image of `floor`, ascending: the lower row, the higher one, the image.
    pub fn pairs(self, cap: Cap, floor: u32) -> Vec<(u32, u32, u32)> {
        let mut pairs = Vec::new();
        for (row, list) in (0_u32..).zip(self.lists) {
            let list = list.into_inner().unwrap_or_default();
            for (image, partner) in list.into_iter().map(parts).filter(|entry| entry.0 >= floor) {
                pairs.push((row.min(partner), row.max(partner), image));
            }
        }
        pairs.sort_unstable();
        let mut kept = Vec::with_capacity(pairs.len());
        for chosen in pairs.chunk_by(|a, b| a == b) {
            if cap == Cap::Either || chosen.len() > 1 {
                kept.push(chosen[0]);
            }
        }
        kept
    }
}

/// The image and the partner of an entry.
#[expect(clippy::cast_possible_truncation, reason = "an entry consists of two halves")]
fn parts(entry: u64) -> (u32, u32) {
    ((entry >> 32) as u32, !(entry as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_keeps_the_best_and_among_equals_the_lowest() {
        let partners = Partners::new(6, 2);
        for (partner, image) in [(5, 7), (4, 7), (3, 9), (2, 1), (1, 7)] {
            partners.offer_both(0, partner, image);
        }
        partners.offer(9, 0, 1);
        assert_eq!(partners.pairs(Cap::Both, 7), [(0, 1, 7), (0, 3, 9)]);
        let none = Partners::new(2, 0);
        none.offer(0, 1, 5);
        assert!(none.pairs(Cap::Either, 0).is_empty());
    }
}
