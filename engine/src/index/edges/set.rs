//! Edges between rows, and what became of all pairs.

use crate::index::edges::image::score;

/// Undirected edges between rows, written at both ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EdgeSet {
    /// Where each row's edges start in `targets`, and at the end their number: one more than there are rows.
    pub offsets: Vec<u64>,
    /// The partners of each row, strictly increasing within a row.
    pub targets: Vec<u32>,
    /// The similarity of each of `targets`.
    pub weights: Vec<f32>,
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
    /// Edges of the row that has most.
    pub degree_max: u64,
    /// Sets of rows that edges connect; a row without edges is a set by itself.
    pub components: u32,
}

impl EdgeSet {
    /// Writes sorted pairs at both ends and counts what came out.
    pub fn of(pairs: &[(u32, u32, u32)], report: EdgeReport) -> Self {
        let rows = report.rows as usize;
        let mut starts = vec![0; rows + 1];
        let mut sets = Sets { parents: (0..report.rows).collect() };
        let mut components = report.rows;
        for &(low, high, _) in pairs {
            starts[low as usize + 1] += 1;
            starts[high as usize + 1] += 1;
            components -= u32::from(sets.join(low, high));
        }
        let degree_max = starts.iter().copied().max().unwrap_or(0) as u64;
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let offsets = starts.iter().map(|&start: &usize| start as u64).collect();
        let mut targets = vec![0; pairs.len() * 2];
        let mut weights = vec![0.0; pairs.len() * 2];
        // A row's lower partners come first in the order of pairs, so that its targets increase.
        for &(low, high, image) in pairs {
            for (row, partner) in [(low, high), (high, low)] {
                let place = &mut starts[row as usize];
                targets[*place] = partner;
                weights[*place] = score(image);
                *place += 1;
            }
        }
        let kept = pairs.len() as u64;
        let report = EdgeReport { kept, degree_max, components, ..report };
        EdgeSet { offsets, targets, weights, report }
    }
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
