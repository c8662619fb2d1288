//! The best partners of each row, offered by any thread in any order.

use crate::index::edges::Cap;
use crate::index::edges::choose::{Choices as Chosen, capped};
use crate::index::edges::offers::Choices;
use crate::index::edges::part::Part;
use crate::index::edges::scan::parts;

/// For each row its best partners: those with the highest images, among equals the first rows.
pub struct Partners<'p> {
    choices: Choices<'p>,
}

impl<'p> Partners<'p> {
    /// The partners that a part knows, to be bettered.
    pub fn of(part: &'p mut Part) -> Self {
        Self { choices: Choices::new(&mut part.entries, part.width, 0) }
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
}

/// How many partners each of so many rows can have, of those that it may.
pub fn width(rows: u32, width: u32) -> usize {
    width.min(rows.saturating_sub(1)) as usize
}

/// The pairs that rows chose and that have at least an image of `floor`, ascending: the lower row, the higher one, the image.
pub fn pairs(part: &Part, rows: u32, cap: Cap, floor: u32) -> Vec<(u32, u32, u32)> {
    let order: Vec<u32> = (0..rows).collect();
    let passing = |list: &[u64]| list.iter().copied().filter(|entry| parts(*entry).0 >= floor).collect();
    let lists = part.entries.chunks_exact(part.width.max(1)).map(passing).collect();
    // What is listed here is read nowhere else.
    capped(&Chosen::Listed(lists), &order, cap).map(|pairs| pairs.iter().collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::edges::bracket::Bracket;

    #[test]
    fn a_row_keeps_the_best_and_among_equals_the_lowest() {
        let part = |rows: u32, most| Part::new([0; 32], Bracket::between(0, 0), 0, rows as usize, width(rows, most));
        let mut six = part(6, 2);
        let partners = Partners::of(&mut six);
        for (partner, image) in [(5, 7), (4, 7), (3, 9), (2, 1), (1, 7)] {
            partners.offer_both(0, partner, image);
        }
        partners.offer_both(9, 8, 1);
        drop(partners);
        assert_eq!(pairs(&six, 6, Cap::Both, 7), [(0, 1, 7), (0, 3, 9)]);
        let mut none = part(2, 0);
        Partners::of(&mut none).offer_both(0, 1, 5);
        assert!(pairs(&none, 2, Cap::Either, 0).is_empty());
    }
}
