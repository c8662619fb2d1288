//! The best partners of each row, offered by any thread in any order.

use crate::index::edges::Cap;
use crate::index::edges::choose::{Choices as Chosen, capped};
use crate::index::edges::offers::Choices;
use crate::index::edges::scan::parts;

/// For each row its best partners: those with the highest images, among equals the first rows.
pub struct Partners {
    rows: u32,
    width: usize,
    choices: Choices<'static>,
}

impl Partners {
    /// Room for so many partners of so many rows.
    pub fn new(rows: u32, width: u32) -> Self {
        let width = width.min(rows.saturating_sub(1)) as usize;
        Self { rows, width, choices: Choices::none(rows as usize, width) }
    }

    /// Offers each of two rows to the other.
    pub fn offer_both(&self, row: u32, other: u32, image: u32) {
        for (row, partner) in [(row, other), (other, row)] {
            // Saves most of the locks.
            if image >= self.choices.needed(row as usize) {
                self.choices.offer(&[(row, partner, image)]);
            }
        }
    }

    /// The pairs that were chosen and have at least an image of `floor`, ascending: the lower row, the higher one, the image.
    pub fn pairs(self, cap: Cap, floor: u32) -> Vec<(u32, u32, u32)> {
        let order: Vec<u32> = (0..self.rows).collect();
        let entries = self.choices.into_entries();
        let passing = |list: &[u64]| list.iter().copied().filter(|entry| parts(*entry).0 >= floor).collect();
        let lists = entries.chunks_exact(self.width.max(1)).map(passing).collect();
        // What is listed here is read nowhere else.
        capped(&Chosen::Listed(lists), &order, cap).map(|pairs| pairs.iter().collect()).unwrap_or_default()
    }
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
        partners.offer_both(9, 8, 1);
        assert_eq!(partners.pairs(Cap::Both, 7), [(0, 1, 7), (0, 3, 9)]);
        let none = Partners::new(2, 0);
        none.offer_both(0, 1, 5);
        assert!(none.pairs(Cap::Either, 0).is_empty());
    }
}
