//! Similarity edges: the pairs above a percentile of all pairs, under a cap for each row; exact and reproducible.

mod bracket;
mod image;
mod scan;

use crate::distance::codes::Codes;
use crate::index::control::{Cancelled, Control};
use crate::index::edges::bracket::Bracket;
use crate::index::edges::image::score;
use crate::index::edges::scan::{Choices, Scan, pairs_of, parts};

/// Which pairs become edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeRules {
    /// The share of pairs that lie below the threshold, in thousandths of a per cent; at most 100,000.
    pub percentile: u32,
    /// How many partners a row may choose; a pair stays if either end chose it.
    pub top_m: u32,
}

impl Default for EdgeRules {
    fn default() -> Self {
        Self { percentile: 95_000, top_m: 16 }
    }
}

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

/// Builds the edges of a row-major matrix of unit vectors, of which row `i` comes `key_ranks[i]`th in the order of
/// keys; there are as many rows as ranks.
///
/// The threshold is the exact order statistic with the index ⌊pairs · percentile⌋, counted from zero in ascending
/// order, at most the last; all pairs at or above it pass. Of these each row chooses the `top_m` most similar, among
/// equals those with the lower rank. Similarities are those of [`crate::distance::dot`], and -0 equals 0. The result
/// does not depend on the number of threads.
///
/// Codes of eight bits tell of nearly all pairs on which side of the threshold they lie, with a proven bound; the others
/// are compared by the similarity. Runs on the current rayon pool. Looks at every pair once, and again where a sample
/// misleads about where the threshold may lie or where so many different similarities lie there that they don't fit; needs
/// rows · (4 · dimensions + 8 · `top_m`) bytes and up to 16 MiB a thread.
///
/// # Errors
/// When `control` says so.
pub fn build(
    matrix: &[f32],
    dimensions: usize,
    key_ranks: &[u32],
    rules: EdgeRules,
    control: &dyn Control,
) -> Result<EdgeSet, Cancelled> {
    let rows = matrix.len().checked_div(dimensions).unwrap_or(0);
    let order = ordered(key_ranks.get(..rows).unwrap_or(key_ranks));
    let (rows, pairs) = (order.len(), pairs_of(order.len()));
    let mut report = EdgeReport { rows: order.iter().max().map_or(0, |last| last + 1), pairs, ..EdgeReport::default() };
    if pairs == 0 {
        return Ok(edge_set(&[], report));
    }
    let width = (rows - 1).min(rules.top_m as usize);
    let matrix = &matrix[..rows * dimensions];
    let codes = Codes::new(matrix, dimensions, &order);
    let scan = Scan { matrix, dimensions, codes: &codes, order: &order, control };
    let target = order_statistic(pairs, rules.percentile);
    let mut bracket = Bracket::sampled(&codes, rules.percentile);
    let mut done = 0;
    let (threshold, before, choices) = loop {
        let choices = Choices::new(rows, width, bracket.low);
        let tally = scan.pass(bracket, &choices, done)?;
        done += pairs;
        match tally.bin_of(target) {
            Ok((bin, before)) if bracket.shift == 0 => break (bracket.low + bin, before, choices),
            Ok((bin, _)) => bracket = bracket.bin(bin),
            Err(lower) => bracket = bracket.beyond(lower),
        }
    };
    report.threshold = Some(score(threshold));
    report.passed = pairs - before;
    Ok(edge_set(&chosen(&choices.into_entries(), width, &order, threshold), report))
}

/// The index of the order statistic at a percentile among at least one pair.
fn order_statistic(pairs: u64, percentile: u32) -> u64 {
    let index = u128::from(pairs) * u128::from(percentile) / 100_000;
    u64::try_from(index).unwrap_or(u64::MAX).min(pairs.saturating_sub(1))
}

/// Rows in the order of their keys.
fn ordered(key_ranks: &[u32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..u32::MAX).zip(key_ranks).map(|(row, _)| row).collect();
    order.sort_by_key(|&row| key_ranks[row as usize]);
    order
}

/// The chosen pairs at or above the threshold, as lower row, higher row and image, in order.
fn chosen(choices: &[u64], width: usize, order: &[u32], threshold: u32) -> Vec<(u32, u32, u32)> {
    let mut pairs = Vec::new();
    for (&row, entries) in order.iter().zip(choices.chunks_exact(width.max(1))) {
        for &entry in entries {
            let (image, place) = parts(entry);
            if entry != 0 && image >= threshold {
                let partner = order[place as usize];
                pairs.push((row.min(partner), row.max(partner), image));
            }
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Writes sorted pairs at both ends and counts what came out.
fn edge_set(pairs: &[(u32, u32, u32)], report: EdgeReport) -> EdgeSet {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::{dot, normalise};
    use crate::index::control::Quiet;

    fn number(row: usize) -> u32 {
        u32::try_from(row).unwrap()
    }

    fn place(offset: u64) -> usize {
        usize::try_from(offset).unwrap()
    }

    /// Vectors that look random, with some twins among them.
    fn vectors(rows: usize, dimensions: usize) -> Vec<f32> {
        let mut seed = 5u32;
        let mut matrix: Vec<f32> = (0..rows * dimensions)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                f32::from(u16::try_from(seed >> 16).unwrap()) / 65_536.0 - 0.4
            })
            .collect();
        for row in (7..rows).step_by(5) {
            matrix.copy_within((row - 7) * dimensions..(row - 6) * dimensions, row * dimensions);
        }
        matrix.chunks_mut(dimensions).for_each(|row| normalise(row).unwrap());
        matrix
    }

    /// The definition, by sorting everything.
    fn oracle(
        matrix: &[f32],
        dimensions: usize,
        ranks: &[u32],
        rules: EdgeRules,
    ) -> (f32, usize, Vec<(u32, u32, f32)>) {
        let rows = ranks.len();
        let similarity =
            |a: usize, b: usize| dot(&matrix[a * dimensions..][..dimensions], &matrix[b * dimensions..][..dimensions]);
        let mut all: Vec<f32> = (0..rows).flat_map(|a| (0..a).map(move |b| similarity(a, b))).collect();
        all.sort_by(f32::total_cmp);
        let threshold = all[(all.len() * rules.percentile as usize / 100_000).min(all.len() - 1)];
        let passed = all.iter().filter(|x| **x >= threshold).count();
        let mut kept = Vec::new();
        for row in 0..rows {
            let mut partners: Vec<usize> = (0..rows).filter(|&x| x != row && similarity(row, x) >= threshold).collect();
            partners.sort_by(|&a, &b| similarity(row, b).total_cmp(&similarity(row, a)).then(ranks[a].cmp(&ranks[b])));
            for &partner in partners.iter().take(rules.top_m as usize) {
                kept.push((number(row.min(partner)), number(row.max(partner)), similarity(row, partner)));
            }
        }
        kept.sort_by_key(|edge| (edge.0, edge.1));
        kept.dedup();
        (threshold, passed, kept)
    }

    fn check(matrix: &[f32], dimensions: usize, rules: EdgeRules) {
        let rows = matrix.len() / dimensions;
        let ranks: Vec<u32> = (0..rows).map(|row| number(row * 7919 % 65_537)).collect();
        let edges = build(matrix, dimensions, &ranks, rules, &Quiet).unwrap();
        let (threshold, passed, kept) = oracle(matrix, dimensions, &ranks, rules);
        assert_eq!(edges.report.threshold, Some(threshold));
        assert_eq!(edges.report.passed, passed as u64);
        let mut found = Vec::new();
        for row in 0..rows {
            let range = place(edges.offsets[row])..place(edges.offsets[row + 1]);
            assert!(edges.targets[range.clone()].is_sorted_by(|a, b| a < b));
            for at in range {
                found.push((number(row), edges.targets[at], edges.weights[at]));
            }
        }
        let mut expected: Vec<_> = kept.iter().flat_map(|&(a, b, w)| [(a, b, w), (b, a, w)]).collect();
        expected.sort_by_key(|edge| (edge.0, edge.1));
        assert_eq!(found, expected);
        assert_eq!(edges.report.kept, kept.len() as u64);
    }

    #[test]
    fn edges_equal_those_of_a_full_sort() {
        for (rows, dimensions) in [(2, 3), (3, 1), (40, 5)] {
            let matrix = vectors(rows, dimensions);
            for percentile in [0, 50_000, 95_000, 99_999, 100_000] {
                for top_m in [0, 1, 3, 1000] {
                    check(&matrix, dimensions, EdgeRules { percentile, top_m });
                }
            }
        }
        // More than one block of rows.
        check(&vectors(530, 17), 17, EdgeRules { percentile: 95_000, top_m: 3 });
    }

    #[test]
    fn few_rows_and_equal_rows_work() {
        for rows in 0..3u32 {
            let ranks: Vec<u32> = (0..rows).collect();
            let edges = build(&vec![1.0; rows as usize], 1, &ranks, EdgeRules::default(), &Quiet).unwrap();
            assert_eq!(edges.offsets.len(), ranks.len() + 1);
            assert_eq!(edges.report.components, rows.min(1));
            assert_eq!(edges.report.threshold, (rows > 1).then_some(1.0));
        }
        let same: Vec<f32> = [0.6, 0.8].repeat(50);
        check(&same, 2, EdgeRules { percentile: 95_000, top_m: 4 });
        let zeros: Vec<f32> = (0..20).flat_map(|i| if i % 2 == 0 { [1.0, 0.0] } else { [-0.0, 1.0] }).collect();
        check(&zeros, 2, EdgeRules { percentile: 30_000, top_m: 4 });
        assert_eq!(build(&[], 0, &[3], EdgeRules::default(), &Quiet).unwrap().offsets, [0]);
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let matrix = vectors(1100, 5);
        let ranks: Vec<u32> = (0..1100).rev().collect();
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| build(&matrix, 5, &ranks, EdgeRules::default(), &Quiet).unwrap())
        };
        assert_eq!(on(1), on(3));
    }

    #[test]
    fn a_cancelled_build_says_so() {
        struct Stop;
        impl Control for Stop {
            fn advance(&self, _: u64, _: u64) {}
            fn cancelled(&self) -> bool {
                true
            }
        }
        assert_eq!(build(&vectors(9, 2), 2, &[0; 9], EdgeRules::default(), &Stop), Err(Cancelled));
    }
}
