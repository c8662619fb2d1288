//! From partners that codes chose to those that the similarity chooses.

use crate::distance::codes::Codes;
use crate::distance::dots;
use crate::error::StorageError;
use crate::index::edges::image::{image, score};
use crate::index::edges::lists::Lists;
use crate::index::edges::scan::{entry, parts};

/// Partners that codes choose beyond those that are wanted, for what the similarity puts in another order.
pub const EXTRA: usize = 8;

/// What is to be settled.
pub struct Settling<'s> {
    /// The codes of the rows, in the order of their keys.
    pub codes: &'s Codes<'s>,
    /// How far the similarity of a partner may lie from what it was chosen by.
    pub tolerance: f64,
    /// Partners that are wanted of each row, with an image of at least `low`.
    pub width: usize,
    /// The lowest image that counts.
    pub low: u32,
}

impl Settling<'_> {
    /// From entries that codes chose makes those of the similarity, worst first, in the last places of each row; and tells the
    /// rows that may lack one: so many partners are as similar that the codes can't tell them apart.
    ///
    /// # Errors
    /// Where lists lie elsewhere and can't be read or written.
    pub fn settle(&self, chosen: &mut Lists) -> Result<Vec<u32>, StorageError> {
        let sure = chosen.change(|(list, room, similarities): &mut (Vec<u64>, Vec<f32>, Vec<f32>), place, slots| {
            list.clear();
            list.extend_from_slice(slots);
            slots.fill(0);
            self.row(place, list, &mut slots[EXTRA..], (room, similarities))
        })?;
        Ok((0..).zip(sure).filter(|(_, sure)| !sure).map(|(place, _)| place).collect())
    }

    /// Fills the entries of a row from what codes chose, and says whether none can be missing.
    fn row(
        &self,
        place: usize,
        list: &[u64],
        slots: &mut [u64],
        (room, similarities): (&mut Vec<f32>, &mut Vec<f32>),
    ) -> bool {
        let row = |place: usize| self.codes.order().get(place).copied().unwrap_or(u32::MAX);
        let similarity = |entry: &u64| f64::from(score(parts(*entry).0));
        // Even if they are as far off as can be, others are more similar.
        let hopeless = list.iter().nth_back(self.width - 1).filter(|entry| **entry != 0).map(similarity);
        let hopeless = hopeless.map_or(f64::NEG_INFINITY, |last| last - 2.0 * self.tolerance);
        let hopeful = list.iter().filter(|entry| similarity(entry) >= hopeless);
        let partners: Vec<u32> = hopeful.filter_map(|entry| parts(*entry).1).collect();
        let rows: Vec<u32> = partners.iter().map(|partner| row(*partner as usize)).collect();
        let vectors = self.codes.vectors();
        dots(vectors.read(row(place), room), vectors, &rows, similarities);
        let known = partners.iter().zip(similarities).map(|(partner, similarity)| entry(image(*similarity), *partner));
        let mut known: Vec<u64> = known.filter(|entry| parts(*entry).0 >= self.low).collect();
        known.sort_unstable_by(|a, b| b.cmp(a));
        for (slot, entry) in slots.iter_mut().rev().zip(&known) {
            *slot = *entry;
        }
        let Some(worst) = list.first().filter(|worst| **worst != 0) else { return true };
        // What was not chosen is at most so similar.
        let bound = similarity(worst) + self.tolerance;
        let last = known.get(self.width - 1).map(similarity);
        bound < f64::from(score(self.low)) || last.is_some_and(|last| last > bound)
    }
}
