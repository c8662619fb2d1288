//! Which of the pairs that pass become edges: the choices of each row, and what the cap makes of them.

use crate::index::edges::scan::{entry, parts};
use crate::index::edges::{Cap, Pruning};
use rayon::prelude::*;

/// For each place the partners that it chooses, best first, with their images: of the candidates with an image of at least
/// `bar` the first. `lists` are the partners that each place knows, worst first.
pub fn choices<'l>(lists: impl Iterator<Item = &'l [u64]>, bar: u32, rules: Pruning) -> Vec<Vec<u64>> {
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

/// The pairs that the choices leave under a cap, each once: the lower row, the higher one, the image.
pub fn capped(choices: &[Vec<u64>], order: &[u32], cap: Cap) -> Vec<(u32, u32, u32)> {
    let mut pairs = Vec::new();
    for (list, row) in choices.iter().zip(order) {
        for (image, partner) in list.iter().map(|entry| parts(*entry)) {
            let Some(partner) = partner.and_then(|place| order.get(place as usize)) else { continue };
            pairs.push((*row.min(partner), *row.max(partner), image));
        }
    }
    pairs.par_sort_unstable();
    if cap == Cap::Both {
        // What both chose stands there twice.
        pairs = pairs
            .chunk_by(|a, b| a == b)
            .filter(|same| same.len() > 1)
            .filter_map(|same| same.first())
            .copied()
            .collect();
    }
    pairs.dedup();
    pairs
}
