//! Edges between rows, and what became of all pairs.

use crate::index::edges::image::{image, score};
use hedgerow_format::projection::edge_origins::{SHARED, SIMILARITY};
use rayon::prelude::*;

/// The lower row, the higher one and the image; and which rules made it an edge.
type Pair = ((u32, u32, u32), u8);

/// Undirected edges between rows, written at both ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EdgeSet {
    /// Where each row's edges start in `targets`, and at the end their number: one more than there are rows.
    pub offsets: Vec<u64>,
    /// The partners of each row, strictly increasing within a row.
    pub targets: Vec<u32>,
    /// The similarity of each of `targets`.
    pub weights: Vec<f32>,
    /// Which rules made each of `targets` an edge; empty where all are edges by similarity.
    pub origins: Vec<u8>,
    /// How they came about.
    pub report: EdgeReport,
}

/// What became of all pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EdgeReport {
    /// Rows compared.
    pub rows: u32,
    /// Pairs of rows.
    pub pairs: u64,
    /// The similarity from which on pairs pass; none if there is no pair.
    pub threshold: Option<f32>,
    /// Pairs at or above the threshold.
    pub passed: u64,
    /// Pairs that became edges.
    pub kept: u64,
    /// Those that are none by similarity.
    pub shared: u64,
    /// Edges of the row that has most.
    pub degree_max: u64,
    /// Sets of rows that edges connect; a row without edges is a set by itself.
    pub components: u32,
}

impl EdgeSet {
    /// Writes sorted pairs that are edges by similarity at both ends and counts what came out: the lower row, the higher
    /// one, the image. Goes through them several times.
    pub fn of<I: Iterator<Item = (u32, u32, u32)>>(pairs: impl Fn() -> I + Sync, report: EdgeReport) -> Self {
        Self::written(|| pairs().map(|pair| (pair, SIMILARITY)), report)
    }

    /// With edges for entities, sorted pairs likewise.
    #[must_use]
    pub fn with_shared(self, shared: &[(u32, u32, u32)]) -> Self {
        if shared.is_empty() {
            return self;
        }
        let mut pairs: Vec<Pair> = shared.iter().map(|pair| (*pair, SHARED)).collect();
        let rows = (0_u32..).zip(self.offsets.windows(2));
        for (row, bounds) in rows {
            let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
            let range = place(bounds[0])..place(bounds[1]);
            let targets = self.targets.get(range.clone()).into_iter().flatten();
            let weights = self.weights.get(range).into_iter().flatten();
            let higher = targets.zip(weights).filter(|(target, _)| **target > row);
            pairs.extend(higher.map(|(target, weight)| ((row, *target, image(*weight)), SIMILARITY)));
        }
        pairs.par_sort_unstable();
        // What both rules made stands there twice.
        let joined = pairs.chunk_by(|a, b| a.0 == b.0);
        let joined: Vec<Pair> = joined
            .filter_map(|same| Some((same.first()?.0, same.iter().fold(0, |origins, pair| origins | pair.1))))
            .collect();
        Self::written(|| joined.iter().copied(), self.report)
    }

    fn written<I: Iterator<Item = Pair>>(pairs: impl Fn() -> I + Sync, report: EdgeReport) -> Self {
        let (components, set) = rayon::join(|| components(pairs(), report.rows), || Self::laid_out(&pairs, report));
        Self { report: EdgeReport { components, ..set.report }, ..set }
    }

    fn laid_out<I: Iterator<Item = Pair>>(pairs: &impl Fn() -> I, report: EdgeReport) -> Self {
        let rows = report.rows as usize;
        let mut starts = vec![0; rows + 1];
        let (mut kept, mut shared, mut by_similarity) = (0_usize, 0, true);
        for ((low, high, _), origin) in pairs() {
            starts[low as usize + 1] += 1;
            starts[high as usize + 1] += 1;
            kept += 1;
            shared += u64::from(origin == SHARED);
            by_similarity &= origin == SIMILARITY;
        }
        let degree_max = starts.iter().copied().max().unwrap_or(0) as u64;
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let offsets = starts.iter().map(|&start: &usize| start as u64).collect();
        let mut targets = vec![0; kept * 2];
        let mut weights = vec![0.0; kept * 2];
        let mut origins = vec![SIMILARITY; if by_similarity { 0 } else { kept * 2 }];
        // A row's lower partners come first in the order of pairs, so that its targets increase.
        for ((low, high, image), origin) in pairs() {
            for (row, partner) in [(low, high), (high, low)] {
                let place = &mut starts[row as usize];
                targets[*place] = partner;
                weights[*place] = score(image);
                if let Some(known) = origins.get_mut(*place) {
                    *known = origin;
                }
                *place += 1;
            }
        }
        let kept = kept as u64;
        EdgeSet { offsets, targets, weights, origins, report: EdgeReport { kept, shared, degree_max, ..report } }
    }
}

/// How many sets of rows the edges connect.
fn components(pairs: impl Iterator<Item = Pair>, rows: u32) -> u32 {
    let mut sets = Sets { parents: (0..rows).collect() };
    pairs.fold(rows, |components, ((low, high, _), _)| components - u32::from(sets.join(low, high)))
}

/// Disjoint sets of rows.
struct Sets {
    parents: Vec<u32>,
}

impl Sets {
    /// Makes one set of two; false if they were one.
    fn join(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b) as usize] = a.min(b);
        a != b
    }

    fn root(&mut self, mut row: u32) -> u32 {
        while self.parents[row as usize] != row {
            let grandparent = self.parents[self.parents[row as usize] as usize];
            self.parents[row as usize] = grandparent;
            row = grandparent;
        }
        row
    }
}
