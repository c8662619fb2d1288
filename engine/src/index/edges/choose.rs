//! Which of the pairs that pass become edges: the choices of each row, and what the cap makes of them.

use crate::index::edges::scan::{entry, parts};
use crate::index::edges::{Cap, Pruning};
use rayon::prelude::*;

/// For each place the partners that it chooses, best first, with their images: of the candidates with an image of at least
/// `bar` the first. `lists` are the partners that each place knows, worst first.
pub fn choices<'l>(lists: impl IndexedParallelIterator<Item = &'l [u64]>, bar: u32, rules: Pruning) -> Vec<Vec<u64>> {
    let passing = |list: &'l [u64], most: usize| -> Vec<u64> {
        let known = list.iter().rev().filter(|entry| parts(**entry).1.is_some());
        known.take_while(|entry| parts(**entry).0 >= bar).take(most).copied().collect()
    };
    let most = rules.top_m as usize;
    match rules.nearest.map(|nearest| nearest as usize).filter(|nearest| *nearest < most) {
        None => lists.map(|list| passing(list, most)).collect(),
        Some(nearest) => {
            let own: Vec<Vec<u64>> = lists.map(|list| passing(list, nearest)).collect();
            // A row may also choose those that it is itself among the nearest of.
            let mut all = own.clone();
            for (place, list) in (0..).zip(&own) {
                for (image, partner) in list.iter().map(|entry| parts(*entry)) {
                    if let Some(other) = partner.and_then(|partner| all.get_mut(partner as usize)) {
                        other.push(entry(image, place));
                    }
                }
            }
            for list in &mut all {
                list.sort_unstable_by(|a, b| b.cmp(a));
                list.dedup();
                list.truncate(most);
            }
            all
        }
    }
}

/// The pairs that the choices leave under a cap, sorted, each once: the lower row, the higher one, the image.
pub fn capped(choices: &[Vec<u64>], order: &[u32], cap: Cap) -> Vec<(u32, u32, u32)> {
    let row_of = |place: usize| order.get(place).copied();
    let chosen = |place: usize| {
        let list = choices.get(place).into_iter().flatten().map(|entry| parts(*entry));
        list.filter_map(move |(image, partner)| {
            let (row, partner) = (row_of(place)?, row_of(partner? as usize)?);
            Some((row.min(partner), row.max(partner), image))
        })
    };
    // Sorted by the lower row by counting, and by the higher one within each of these few.
    let mut ends = vec![0_usize; order.len() + 1];
    (0..choices.len()).flat_map(chosen).for_each(|(low, _, _)| ends[low as usize + 1] += 1);
    for row in 0..order.len() {
        ends[row + 1] += ends[row];
    }
    let mut higher = vec![(0, 0); ends.last().copied().unwrap_or(0)];
    let mut next = ends.clone();
    for (low, high, image) in (0..choices.len()).flat_map(chosen) {
        higher[next[low as usize]] = (high, image);
        next[low as usize] += 1;
    }
    let (mut rest, mut rows) = (higher.as_mut_slice(), Vec::with_capacity(order.len()));
    for bounds in ends.windows(2) {
        let (row, others) = rest.split_at_mut(bounds[1] - bounds[0]);
        rest = others;
        rows.push(row);
    }
    rows.par_iter_mut().for_each(|row| row.sort_unstable());
    // What both chose stands there twice.
    let asked = if cap == Cap::Both { 2 } else { 1 };
    let mut pairs = Vec::new();
    for (low, row) in (0..).zip(&rows) {
        let same = row.chunk_by(|a, b| a == b).filter(|same| same.len() >= asked);
        pairs.extend(same.filter_map(|same| same.first()).map(|(high, image)| (low, *high, *image)));
    }
    pairs
}
