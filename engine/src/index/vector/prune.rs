//! Which candidates become neighbours.

use crate::distance::near::{CodeRows, Probe, products};

/// A candidate is occluded where a nearer neighbour lies so much nearer to it, in elevenths and tenths of a squared distance.
const OCCLUSION: [i64; 2] = [11, 10];

/// The room that pruning takes.
#[derive(Debug, Default)]
pub struct Pruning {
    /// Squared distances with nodes, ascending.
    candidates: Vec<(i32, u32)>,
    occluded: Vec<(i32, u32)>,
    rest: Vec<(i32, u32)>,
    listed: Vec<u32>,
    products: Vec<i32>,
    probe: Probe,
    /// Those that were chosen, the nearest first, and behind them what fills up.
    pub chosen: Vec<u32>,
}

impl Pruning {
    /// Chooses at most `degree` neighbours of a node among candidates, which may repeat: the nearest one, and each further one that
    /// none of the chosen occludes; then the nearest of the occluded ones.
    pub fn prune(
        &mut self,
        (rows, squares): (CodeRows<'_>, &[i32]),
        node: u32,
        candidates: impl IntoIterator<Item = u32>,
        degree: usize,
    ) {
        self.listed.clear();
        self.listed.extend(candidates.into_iter().filter(|other| *other != node));
        self.listed.sort_unstable();
        self.listed.dedup();
        let distances = |probe: &mut Probe, from: u32, listed: &[u32], out: &mut Vec<i32>| {
            probe.take_row(rows.row(from));
            products(probe, rows, listed, out);
            let square = |row: u32| squares.get(row as usize).copied().unwrap_or_default();
            for (product, other) in out.iter_mut().zip(listed) {
                *product = square(from).wrapping_add(square(*other)).wrapping_sub(product.wrapping_mul(2));
            }
        };
        distances(&mut self.probe, node, &self.listed, &mut self.products);
        self.candidates.clear();
        self.candidates.extend(self.products.iter().copied().zip(self.listed.iter().copied()));
        self.candidates.sort_unstable();
        self.chosen.clear();
        self.occluded.clear();
        while let Some((_, nearest)) = self.candidates.first().copied() {
            self.chosen.push(nearest);
            if self.chosen.len() >= degree {
                return;
            }
            self.listed.clear();
            self.listed.extend(self.candidates[1..].iter().map(|(_, other)| *other));
            distances(&mut self.probe, nearest, &self.listed, &mut self.products);
            self.rest.clear();
            for (candidate, between) in self.candidates[1..].iter().zip(&self.products) {
                let occluded = OCCLUSION[0] * i64::from(*between) <= OCCLUSION[1] * i64::from(candidate.0);
                if occluded { &mut self.occluded } else { &mut self.rest }.push(*candidate);
            }
            std::mem::swap(&mut self.candidates, &mut self.rest);
        }
        self.occluded.sort_unstable();
        let missing = degree.saturating_sub(self.chosen.len());
        self.chosen.extend(self.occluded.iter().take(missing).map(|(_, other)| *other));
    }
}
