//! Which of the pairs that pass become edges: the choices of each row, and what the cap makes of them.

use crate::error::StorageError;
use crate::index::edges::lists::Lists;
use crate::index::edges::scan::{entry, parts};
use crate::index::edges::{Cap, Pruning};
use rayon::prelude::*;

/// The partners that each place chooses.
pub enum Choices<'l> {
    /// The first of its list with an image of at least so much, at most so many.
    First(&'l Lists, u32, usize),
    /// Those that are listed, best first.
    Listed(Vec<Vec<u64>>),
}

/// The partners that a list, worst first, begins with from its end, with an image of at least `bar`, at most so many.
pub fn passing(list: &[u64], bar: u32, most: usize) -> impl Iterator<Item = u64> {
    let known = list.iter().rev().copied().filter(|entry| parts(*entry).1.is_some());
    known.take_while(move |entry| parts(*entry).0 >= bar).take(most)
}

impl<'l> Choices<'l> {
    /// Of the candidates with an image of at least `bar` the first. `lists` are the partners that each place knows.
    ///
    /// # Errors
    /// Where lists lie elsewhere and can't be read.
    pub fn of(lists: &'l Lists, bar: u32, rules: Pruning) -> Result<Self, StorageError> {
        let most = rules.top_m as usize;
        let Some(nearest) = rules.nearest.map(|nearest| nearest as usize).filter(|nearest| *nearest < most) else {
            return Ok(Self::First(lists, bar, most));
        };
        let mut own: Vec<Vec<u64>> = Vec::with_capacity(lists.rows());
        lists.for_each(|_, list| own.push(passing(list, bar, nearest).collect()))?;
        // A row may also choose those that it is itself among the nearest of.
        let mut all = own.clone();
        for (place, list) in (0..).zip(&own) {
            for (image, partner) in list.iter().map(|entry| parts(*entry)) {
                if let Some(other) = partner.and_then(|partner| all.get_mut(partner as usize)) {
                    other.push(entry(image, place));
                }
            }
        }
        all.par_iter_mut().for_each(|list| {
            list.sort_unstable_by(|a, b| b.cmp(a));
            list.dedup();
            list.truncate(most);
        });
        Ok(Self::Listed(all))
    }

    /// Visits every partner that a place chooses: place, partner, image.
    fn for_each(&self, mut visit: impl FnMut(usize, u32, u32)) -> Result<(), StorageError> {
        let mut chosen = |place: usize, entry: u64| {
            if let (image, Some(partner)) = parts(entry) {
                visit(place, partner, image);
            }
        };
        match self {
            Self::First(lists, bar, most) => {
                lists.for_each(|place, list| passing(list, *bar, *most).for_each(|entry| chosen(place, entry)))
            }
            Self::Listed(all) => {
                all.iter().enumerate().for_each(|(place, list)| list.iter().for_each(|entry| chosen(place, *entry)));
                Ok(())
            }
        }
    }
}

/// Pairs that became edges, each once.
pub struct Pairs {
    /// For each row the end of its part of `higher`.
    ends: Vec<usize>,
    /// The higher row and the image, for each lower row ascending; what stands there twice is one.
    higher: Vec<(u32, u32)>,
    /// How often a pair has to be chosen.
    asked: usize,
}

impl Pairs {
    /// The lower row, the higher one, the image; ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32, u32)> {
        let mut start = 0;
        let rows = (0_u32..).zip(&self.ends).map(move |(low, end)| (low, std::mem::replace(&mut start, *end)..*end));
        rows.flat_map(|(low, range)| {
            let same = self.higher.get(range).unwrap_or_default().chunk_by(|a, b| a == b);
            let kept = same.filter(|same| same.len() >= self.asked).filter_map(|same| same.first());
            kept.map(move |(high, image)| (low, *high, *image))
        })
    }
}

/// The pairs that the choices leave under a cap; `order` says which row has which place.
///
/// # Errors
/// Where lists lie elsewhere and can't be read.
pub fn capped(choices: &Choices<'_>, order: &[u32], cap: Cap) -> Result<Pairs, StorageError> {
    let ends_of = |place: usize, partner: u32| {
        let (row, partner) = (*order.get(place)?, *order.get(partner as usize)?);
        Some((row.min(partner), row.max(partner)))
    };
    // Sorted by the lower row by counting, and by the higher one within each of these few.
    let mut ends = vec![0_usize; order.len()];
    choices.for_each(|place, partner, _| {
        if let Some((low, _)) = ends_of(place, partner) {
            ends[low as usize] += 1;
        }
    })?;
    let mut all = 0;
    for end in &mut ends {
        // For now, where each begins.
        all += std::mem::replace(end, all);
    }
    let mut higher = vec![(0, 0); all];
    choices.for_each(|place, partner, image| {
        if let Some((low, high)) = ends_of(place, partner) {
            higher[ends[low as usize]] = (high, image);
            ends[low as usize] += 1;
        }
    })?;
    let (mut rest, mut rows, mut start) = (higher.as_mut_slice(), Vec::with_capacity(order.len()), 0);
    for end in &ends {
        let (row, others) = rest.split_at_mut(end - start);
        (rest, start) = (others, *end);
        rows.push(row);
    }
    rows.par_iter_mut().for_each(|row| row.sort_unstable());
    // What both chose stands there twice.
    Ok(Pairs { ends, higher, asked: if cap == Cap::Both { 2 } else { 1 } })
}
