//! The best partners of each row, offered by any thread in any order.

use crate::index::edges::composite::Ends;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// For each row, named by its place in the order of keys, its best partners: those with the highest images, among equals
/// those with the lowest places.
pub struct Partners {
    width: usize,
    /// Image and inverted place of each partner as one number, worst first.
    lists: Vec<Mutex<Vec<u64>>>,
    /// The image that a partner needs at least, which saves most of the locks.
    worst: Vec<AtomicU32>,
}

impl Partners {
    /// Room for so many partners of so many rows.
    pub fn new(rows: usize, width: u32) -> Self {
        Self {
            width: width as usize,
            lists: (0..rows).map(|_| Mutex::new(Vec::new())).collect(),
            worst: (0..rows).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Offers a partner.
    pub fn offer(&self, place: u32, partner: u32, image: u32) {
        let place = place as usize;
        let (Some(list), Some(worst)) = (self.lists.get(place), self.worst.get(place)) else { return };
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

    /// The pairs that were chosen and have an image of `floor`, ascending: the lower row, the higher one, the image; `order`
    /// says which row has which place.
    pub fn pairs(self, order: &[u32], ends: Ends, floor: u32) -> Vec<(u32, u32, u32)> {
        let mut pairs = Vec::new();
        for (list, row) in self.lists.into_iter().zip(order) {
            let list = list.into_inner().unwrap_or_default();
            for (image, partner) in list.into_iter().map(parts).filter(|entry| entry.0 >= floor) {
                let Some(partner) = order.get(partner as usize) else { continue };
                pairs.push((*row.min(partner), *row.max(partner), image));
            }
        }
        pairs.sort_unstable();
        let mut kept = Vec::with_capacity(pairs.len());
        for chosen in pairs.chunk_by(|a, b| a == b) {
            if ends == Ends::Either || chosen.len() > 1 {
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

/// A place in the order of keys.
pub fn place_of(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_keeps_the_best_and_among_equals_the_lowest() {
        let partners = Partners::new(6, 2);
        for (partner, image) in [(5, 7), (4, 7), (3, 9), (2, 1), (1, 7)] {
            partners.offer(0, partner, image);
            partners.offer(partner, 0, image);
        }
        partners.offer(9, 0, 1);
        let order = [10, 11, 12, 13, 14, 15];
        assert_eq!(partners.pairs(&order, Ends::Both, 7), [(10, 11, 7), (10, 13, 9)]);
        let none = Partners::new(2, 0);
        none.offer(0, 1, 5);
        assert!(none.pairs(&order, Ends::Either, 0).is_empty());
    }
}
