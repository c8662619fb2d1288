//! Similarity edges: the pairs above a percentile of all pairs, under a cap for each row; exact and reproducible.

mod bracket;
mod building;
mod choose;
pub mod composite;
mod image;
mod indexed;
mod lists;
mod offers;
mod part;
mod plan;
mod rules;
mod scan;
mod set;
mod settle;
mod shared;
mod sides;
mod spread;
mod state;

use crate::distance::codes::{Codes, Keeping};
use crate::distance::rows::{LetGo, Rows};
use crate::index::control::{Cancelled, Control};
use crate::index::edges::bracket::Bracket;
use crate::index::edges::offers::Choices;
use crate::index::edges::scan::{STRIPE, Scan, Tally};
use crate::index::edges::sides::Sides;
use crate::index::edges::state::State;
pub use building::{Building, Forgotten, Last, Outcome, Unfinished};
pub use image::image;
pub use indexed::indexed;
pub use lists::{Outside, Room, Stopped};
pub use part::{EdgeShare, Identity, Part};
pub use plan::{BYTES_USUAL, EdgeMemory, Memory, Plan, Shape};
pub use rules::{Cap, EdgeRules, Shared, Signal, SignalKind};
pub use set::{EdgeReport, EdgeSet};
pub use shared::{Mentions, shared};
pub use sides::Population;
pub use spread::Similarities;

/// What is needed of rules for the pairs of one population.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruning {
    /// Which pairs there are.
    pub pairs: Population,
    /// The share of pairs that lie below the threshold, in thousandths of a per cent; at most 100,000.
    pub percentile: u32,
    /// How many partners a row chooses of the candidates that pass.
    pub top_m: u32,
    /// Whose choice a pair needs.
    pub cap: Cap,
    /// How many of the nearest rows are candidates; none for all.
    pub nearest: Option<u32>,
    /// The image that a pair must have at least.
    pub least: u32,
    /// Whether the edges don't tell what each row chose, so that the reserve has to.
    pub apart: bool,
}

/// Builds the edges of rows that are unit vectors, of which row `i` comes `key_ranks[i]`th in the order of
/// keys; there are as many rows as ranks.
///
/// The threshold is the exact order statistic with the index ⌊pairs · percentile⌋, counted from zero in ascending
/// order, at most the last; all pairs at or above it and `least` pass. Of these each row chooses the `top_m` most similar
/// candidates, among equals those with the lower rank. Similarities are those of [`crate::distance::dot`], and -0 equals 0. The result
/// does not depend on the number of threads.
///
/// Codes of eight bits tell of nearly all pairs on which side of the threshold they lie, with a proven bound; the others
/// are compared by the similarity. Runs on the current rayon pool. Looks at every pair once, and again where a sample
/// misleads about where the threshold may lie or where so many different similarities lie there that they don't fit. Takes as
/// much memory as it may; where that is less than rows · (3 · dimensions + 24 · `top_m`) bytes and some MiB a thread, codes are
/// made again whenever they are needed, or partners lie in a file; the edges are the same.
///
/// # Errors
/// When `control` says so; what was done until then is given to `unfinished`, from which the next build goes on. Where the memory
/// is too little, or what does not fit can't be written.
pub fn build(
    rows: &Rows<'_>,
    key_ranks: &[u32],
    rules: Pruning,
    identity: &Identity,
    unfinished: &dyn Unfinished,
    memory: Memory<'_>,
    control: &dyn Control,
) -> Result<Built, Stopped> {
    let (kept, spills) = (unfinished.keeps(), true);
    let shape = Shape { rows: key_ranks.len(), dimensions: rows.dimensions(), rules, kept, spills };
    let plan = Plan::new(shape, memory)?;
    let mut building = Building::new(rows, key_ranks, rules, identity, (plan, memory.outside));
    let memory = plan.told;
    if rules.pairs.count(building.rows()) == 0 {
        let (edges, reserve) = (building.without_edges(), Reserve::default());
        return Ok(Built { edges, reserve, similarities: Similarities::default(), memory });
    }
    let mut work = building.resumed(unfinished)?;
    let mut similarities = building.similarities();
    loop {
        building.run(&mut work, |_| true, unfinished, control)?;
        similarities.passes += 1;
        match building.finish(work, control)? {
            Outcome::Edges(edges, reserve) => return Ok(Built { edges, reserve, similarities, memory }),
            Outcome::Again(next) => work = next,
        }
    }
}

/// What a build gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Built {
    /// The edges.
    pub edges: EdgeSet,
    /// What is kept beside them.
    pub reserve: Reserve,
    /// How similar pairs are.
    pub similarities: Similarities,
    /// What was in memory.
    pub memory: EdgeMemory,
}

/// How many pairs of rows that are unit vectors are less similar than something; where they join two sides, the
/// rows of the first come first. Compares all pairs.
///
/// # Errors
/// When `control` says so.
pub fn below(rows: &Rows<'_>, pairs: Population, similarity: f32, control: &dyn Control) -> Result<u64, Cancelled> {
    let count = rows.count();
    if pairs.count(count) == 0 {
        return Ok(0);
    }
    let codes = Codes::new(rows, (0..number(count)).collect(), Keeping::All, None);
    let sides = Sides::all(count, pairs);
    let bracket = Bracket { low: image(similarity), shift: 0, bins: 1 };
    let scan = Scan { codes: &codes, sides: &sides, tolerance: 0, stripe: STRIPE, by_columns: false, control };
    // Nothing lies elsewhere.
    Ok(scan.pass(bracket, &Choices::new(&mut [], 0, 0)).map_err(|_| Cancelled)?.below)
}

/// What was built for rows that have changed since.
pub struct Former<'f> {
    /// The edges.
    pub edges: &'f EdgeSet,
    /// What was kept beside them.
    pub reserve: &'f Reserve,
    /// For each of its rows the row that it is now, with the same vector; none if it is gone.
    pub rows: &'f [Option<u32>],
    /// Where pairs join two sides, whether each of the rows that are gone is of the first.
    pub gone_firsts: &'f [bool],
}

/// Builds what [`build`] builds from what was built before: compares the rows that came and those that went with all, and
/// anew those that lost so many partners that others may take their places. Behind the rows that are there, of which there
/// are as many as ranks, there are those that are gone, in their former order.
///
/// Compares n · (changed + renewed) pairs. None where what was kept does not tell the threshold any more, where too much
/// changed, or where that does not fit in memory; then only [`build`] can.
///
/// # Errors
/// When `control` says so.
pub fn update(
    vectors: &Rows<'_>,
    key_ranks: &[u32],
    rules: Pruning,
    former: &Former<'_>,
    memory: Memory<'_>,
    control: &dyn Control,
) -> Result<Option<(EdgeSet, Reserve)>, Stopped> {
    let shape = Shape { rows: vectors.count(), dimensions: vectors.dimensions(), rules, kept: false, spills: false };
    let taken = memory.taken + (former.edges.targets.len() + former.reserve.partners.len()) as u64 * 8;
    let Ok(plan) = Plan::new(shape, Memory { taken, ..memory }) else { return Ok(None) };
    let let_go = plan.vectors.map(|bytes| LetGo::new(bytes, || memory.outside.let_go()));
    let order = ordered(vectors, key_ranks);
    let rows = order.len();
    let mut place_of = vec![0; rows];
    for (place, row) in (0..).zip(&order) {
        place_of[*row as usize] = place;
    }
    let places: Vec<Option<u32>> = former.rows.iter().map(|row| place_of.get((*row)? as usize).copied()).collect();
    let Some(state) = State::resumed(former.edges, former.reserve, rules, &places, rows) else { return Ok(None) };
    let mut known = vec![false; rows];
    places.iter().flatten().for_each(|place| known[*place as usize] = true);
    let came: Vec<u32> = (0..).zip(&known).filter(|(_, known)| !**known).map(|(place, _)| place).collect();
    let all: Vec<u32> = order.iter().copied().chain(number(rows)..number(vectors.count())).collect();
    let gone: Vec<u32> = (number(rows)..number(all.len())).collect();
    let codes = Codes::new(vectors, all, plan.keeping, let_go);
    let firsts = rules.pairs.firsts(rows).map(|firsts| [&firsts, former.gone_firsts].concat());
    let (stripe, by_columns) = (plan.stripe, plan.by_columns());
    let change = Change { codes: &codes, firsts, stripe, by_columns, control };
    let Some(mut state) = change.apply(state, &came, &gone)? else { return Ok(None) };
    let Some((threshold, before)) = state.threshold(rules) else { return Ok(None) };
    let renewed = state.incomplete(threshold.max(rules.least), rules)?;
    if renewed.len() > rows / RENEWED_MAX {
        return Ok(None);
    }
    change.renew(&mut state, &renewed, &gone)?;
    Ok(Some(state.edges(&order, rules, (threshold, before))?))
}

/// Where more rows than one in so many have to be compared with all others, building everything is as fast.
const RENEWED_MAX: usize = 4;

/// The vectors of an update: those that are there, and behind them those that are gone.
struct Change<'c> {
    codes: &'c Codes<'c>,
    /// Where pairs join two sides, which places are of the first.
    firsts: Option<Vec<bool>>,
    /// As of [`Scan`].
    stripe: usize,
    by_columns: bool,
    control: &'c dyn Control,
}

impl Change<'_> {
    fn pass(&self, left: &[u32], skipped: &[u32], bracket: Bracket, choices: &Choices<'_>) -> Result<Tally, Stopped> {
        let Self { codes, stripe, by_columns, control, .. } = *self;
        let mut all = Tally { below: 0, counts: vec![0; bracket.bins as usize] };
        for sides in Sides::of_some(codes.rows(), left, skipped, self.firsts.as_deref()) {
            let scan = Scan { codes, sides: &sides, tolerance: 0, stripe, by_columns, control };
            all.add(&scan.pass(bracket, choices)?);
        }
        Ok(all)
    }

    /// Takes off the pairs of what is gone and adds those of what came. None where the counts don't bear it.
    fn apply(&self, mut state: State, came: &[u32], gone: &[u32]) -> Result<Option<State>, Stopped> {
        let bracket = Bracket { low: state.low, shift: 0, bins: number(state.tally.counts.len()) };
        let off = self.pass(gone, came, bracket, &Choices::new(&mut [], 0, 0))?;
        if !state.tally.subtract(&off) {
            return Ok(None);
        }
        let seen = self.pass(came, gone, bracket, &Choices::of_lists(&mut state.lists, state.low)?)?;
        state.tally.add(&seen);
        Ok(Some(state))
    }

    /// Finds the partners of some rows anew.
    fn renew(&self, state: &mut State, renewed: &[u32], gone: &[u32]) -> Result<(), Stopped> {
        if renewed.is_empty() {
            return Ok(());
        }
        state.lists.empty(renewed)?;
        let bracket = Bracket { low: state.low, shift: 0, bins: number(state.tally.counts.len()) };
        let choices = Choices::of_some(&mut state.lists, renewed, state.low)?;
        self.pass(renewed, gone, bracket, &choices)?;
        Ok(())
    }
}

/// What a later build needs beside the edges; rows are those of the matrix.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reserve {
    /// The lowest image that is counted.
    pub low: u32,
    /// Pairs below it.
    pub below: u64,
    /// Pairs of each image from `low` on.
    pub counts: Vec<u64>,
    /// The place of each row in the order of keys.
    pub ranks: Vec<u32>,
    /// For each row the image from which on it knows all its partners.
    pub floors: Vec<u32>,
    /// Where the further partners of each row start, best first: those that it did not choose, or that did not pass.
    pub offsets: Vec<u64>,
    /// These partners.
    pub partners: Vec<u32>,
    /// How similar they are.
    pub similarities: Vec<f32>,
}

fn number(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

/// The rows that have a rank in the order of their keys.
fn ordered(rows: &Rows<'_>, key_ranks: &[u32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..u32::MAX).zip(key_ranks).take(rows.count()).map(|(row, _)| row).collect();
    order.sort_by_key(|&row| key_ranks[row as usize]);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::{dot, normalise};
    use crate::index::control::Quiet;
    use crate::index::edges::lists::tests::MEMORY;

    const RULES: Pruning = Pruning {
        pairs: Population::All,
        percentile: 95_000,
        top_m: 16,
        cap: Cap::Either,
        nearest: None,
        least: 0,
        apart: false,
    };

    fn build(
        matrix: &[f32],
        dimensions: usize,
        ranks: &[u32],
        rules: Pruning,
        control: &dyn Control,
    ) -> Result<(EdgeSet, Reserve), Cancelled> {
        let rows = Rows::of_matrix(matrix, dimensions);
        let built = super::build(&rows, ranks, rules, &[0; 32], &Forgotten, MEMORY, control);
        let Built { edges, reserve, similarities, .. } = match built {
            Err(Stopped::Cancelled) => return Err(Cancelled),
            built => built.unwrap(),
        };
        let counted = similarities.counts.iter().sum::<u64>();
        assert!(counted == edges.report.pairs || (counted > 0 && !similarities.all));
        Ok((edges, reserve))
    }

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
    fn oracle(matrix: &[f32], dimensions: usize, ranks: &[u32], rules: Pruning) -> (f32, usize, Vec<(u32, u32, f32)>) {
        let rows = ranks.len();
        let similarity =
            |a: usize, b: usize| dot(&matrix[a * dimensions..][..dimensions], &matrix[b * dimensions..][..dimensions]);
        let place = |row: usize| ranks.iter().filter(|rank| **rank < ranks[row]).count();
        let is_pair = |a: usize, b: usize| match rules.pairs {
            Population::All => a != b,
            Population::Across(firsts) => (place(a) < firsts) != (place(b) < firsts),
        };
        let pairs = (0..rows).flat_map(|a| (0..a).map(move |b| (a, b))).filter(|(a, b)| is_pair(*a, *b));
        let mut all: Vec<f32> = pairs.map(|(a, b)| similarity(a, b)).collect();
        all.sort_by(f32::total_cmp);
        let threshold = all[(all.len() * rules.percentile as usize / 100_000).min(all.len() - 1)];
        let passed = all.iter().filter(|x| **x >= threshold).count();
        let bar = |x: f32| x >= threshold && image::image(x) >= rules.least;
        let partners = |row: usize| {
            let mut partners: Vec<usize> = (0..rows).filter(|&x| is_pair(row, x)).collect();
            partners.sort_by(|&a, &b| similarity(row, b).total_cmp(&similarity(row, a)).then(ranks[a].cmp(&ranks[b])));
            partners
        };
        let orders: Vec<Vec<usize>> = (0..rows).map(partners).collect();
        let nearest = |row: usize| rules.nearest.map_or(rows, |nearest| nearest as usize).min(orders[row].len());
        let is_near = |a: usize, b: usize| orders[a][..nearest(a)].contains(&b);
        let mut chosen: Vec<Vec<usize>> = Vec::new();
        for (row, order) in orders.iter().enumerate() {
            let passing = order.iter().copied().filter(|&x| bar(similarity(row, x)));
            let candidates = passing.filter(|&x| is_near(row, x) || is_near(x, row));
            chosen.push(candidates.take(rules.top_m as usize).collect());
        }
        let mut kept = Vec::new();
        for row in 0..rows {
            for &partner in &chosen[row] {
                if rules.cap == Cap::Either || chosen[partner].contains(&row) {
                    kept.push((number(row.min(partner)), number(row.max(partner)), similarity(row, partner)));
                }
            }
        }
        kept.sort_by_key(|edge| (edge.0, edge.1));
        kept.dedup();
        (threshold, passed, kept)
    }

    fn check(matrix: &[f32], dimensions: usize, rules: Pruning) {
        let rows = matrix.len() / dimensions;
        let ranks: Vec<u32> = (0..rows).map(|row| number(row * 7919 % 65_537)).collect();
        let (edges, _) = build(matrix, dimensions, &ranks, rules, &Quiet).unwrap();
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
                    check(&matrix, dimensions, Pruning { percentile, top_m, ..RULES });
                }
            }
        }
        // More than one block of rows.
        check(&vectors(530, 17), 17, Pruning { top_m: 3, ..RULES });
    }

    #[test]
    fn edges_between_two_sides_equal_those_of_a_full_sort() {
        for (rows, firsts) in [(2, 1), (3, 1), (40, 13), (40, 39), (40, 3)] {
            let matrix = vectors(rows, 5);
            for percentile in [0, 50_000, 95_000, 100_000] {
                for top_m in [0, 1, 3, 1000] {
                    check(&matrix, 5, Pruning { pairs: Population::Across(firsts), percentile, top_m, ..RULES });
                }
            }
        }
        // More than one block of rows, and one of both sides.
        for firsts in [100, 224, 300, 500] {
            check(&vectors(530, 7), 7, Pruning { pairs: Population::Across(firsts), top_m: 3, ..RULES });
        }
    }

    #[test]
    fn edges_of_any_rules_equal_those_of_the_definition() {
        let matrix = vectors(40, 5);
        for pairs in [Population::All, Population::Across(13)] {
            for (percentile, top_m) in [(0, 1), (50_000, 3), (90_000, 3), (50_000, 1000)] {
                for cap in [Cap::Either, Cap::Both] {
                    for nearest in [None, Some(1), Some(2), Some(3), Some(7)] {
                        for least in [0, image::image(0.2), image::image(0.95), image::image(2.0)] {
                            check(&matrix, 5, Pruning { pairs, percentile, top_m, cap, nearest, least, apart: true });
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn rows_of_one_side_have_no_pair() {
        for firsts in [0, 5, 7] {
            let rules = Pruning { pairs: Population::Across(firsts), ..RULES };
            let (edges, reserve) = build(&vectors(5, 2), 2, &[0, 1, 2, 3, 4], rules, &Quiet).unwrap();
            assert_eq!((edges.report.pairs, edges.report.components, edges.targets.len()), (0, 5, 0));
            assert_eq!(reserve, Reserve::default());
        }
    }

    #[test]
    fn a_sample_of_two_sides_brackets_the_threshold_at_once() {
        // So many rows that the sample is not all of them.
        for (rows, firsts) in [(9000, 4000), (9000, 5000)] {
            let matrix = vectors(rows, 4);
            let placed = Rows::of_matrix(&matrix, 4);
            let codes = Codes::new(&placed, (0..number(rows)).collect(), Keeping::All, None);
            let rules = Pruning { pairs: Population::Across(firsts), ..RULES };
            let (bracket, similarities) = Bracket::sampled(&codes, rules);
            assert!(!similarities.all);
            let edges = build(&matrix, 4, &(0..number(rows)).collect::<Vec<_>>(), rules, &Quiet).unwrap().0;
            let threshold = image::image(edges.report.threshold.unwrap());
            assert!(bracket.low <= threshold && threshold <= bracket.high(), "{rows} {firsts}");
        }
    }

    #[test]
    fn edges_have_the_same_bits_on_every_machine() {
        let matrix = vectors(530, 61);
        let ranks: Vec<u32> = (0..530).map(|row| number(row * 7919 % 65_537)).collect();
        let (edges, reserve) =
            build(&matrix, 61, &ranks, Pruning { percentile: 90_000, top_m: 5, ..RULES }, &Quiet).unwrap();
        let offsets = edges.offsets.iter().chain(&reserve.offsets).copied();
        let partners = edges.targets.iter().chain(&reserve.partners).map(|partner| u64::from(*partner));
        let weights = edges.weights.iter().chain(&reserve.similarities).map(|weight| u64::from(weight.to_bits()));
        let sum = offsets
            .chain(partners)
            .chain(weights)
            .fold(0_u64, |sum, x| (sum.rotate_left(5) ^ x).wrapping_mul(0x100_0000_01b3));
        assert_eq!((edges.report.kept, sum), (1881, 12_850_363_497_942_006_601));
    }

    #[test]
    fn few_rows_and_equal_rows_work() {
        for rows in 0..3u32 {
            let ranks: Vec<u32> = (0..rows).collect();
            let (edges, _) = build(&vec![1.0; rows as usize], 1, &ranks, RULES, &Quiet).unwrap();
            assert_eq!(edges.offsets.len(), ranks.len() + 1);
            assert_eq!(edges.report.components, rows.min(1));
            assert_eq!(edges.report.threshold, (rows > 1).then_some(1.0));
        }
        let same: Vec<f32> = [0.6, 0.8].repeat(50);
        check(&same, 2, Pruning { top_m: 4, ..RULES });
        let zeros: Vec<f32> = (0..20).flat_map(|i| if i % 2 == 0 { [1.0, 0.0] } else { [-0.0, 1.0] }).collect();
        check(&zeros, 2, Pruning { percentile: 30_000, top_m: 4, ..RULES });
        assert_eq!(build(&[], 0, &[3], RULES, &Quiet).unwrap().0.offsets, [0]);
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let matrix = vectors(1100, 5);
        let ranks: Vec<u32> = (0..1100).rev().collect();
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| build(&matrix, 5, &ranks, RULES, &Quiet).unwrap())
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
        assert_eq!(build(&vectors(9, 2), 2, &[0; 9], RULES, &Stop), Err(Cancelled));
    }

    /// Numbers that look random.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % end
        }
    }

    /// A row: its key, and which vector it has. Keys below the middle are of the first side.
    type Row = (usize, usize);

    const MIDDLE: usize = 30_000;

    fn laid_out(rows: &[Row], pool: &[f32], dimensions: usize) -> (Vec<f32>, Vec<u32>) {
        let matrix = rows.iter().flat_map(|row| &pool[row.1 * dimensions..][..dimensions]).copied().collect();
        let mut keys: Vec<usize> = rows.iter().map(|row| row.0).collect();
        keys.sort_unstable();
        let ranks = rows.iter().map(|row| number(keys.binary_search(&row.0).unwrap())).collect();
        (matrix, ranks)
    }

    /// The rules, with as many rows of the first side as there are.
    fn in_step(rules: Pruning, rows: &[Row]) -> Pruning {
        let firsts = rows.iter().filter(|row| row.0 < MIDDLE).count();
        let pairs = if rules.pairs == Population::All { rules.pairs } else { Population::Across(firsts) };
        Pruning { pairs, ..rules }
    }

    /// Edges after random changes equal those built afresh; says how many of the updates were possible.
    fn updated(seed: u64, start: usize, dimensions: usize, rules: Pruning, change: usize) -> (usize, usize) {
        let mut numbers = Numbers(seed);
        // The pool has twins, so that there are ties.
        let pool = vectors(start, dimensions);
        let mut next_key = 0;
        let mut fresh = |numbers: &mut Numbers| {
            next_key += 1;
            (next_key * 7919 % 65_537, numbers.below(start))
        };
        let mut rows: Vec<Row> = (0..start).map(|_| fresh(&mut numbers)).collect();
        let (matrix, ranks) = laid_out(&rows, &pool, dimensions);
        let mut built = build(&matrix, dimensions, &ranks, in_step(rules, &rows), &Quiet).unwrap();
        let (mut possible, steps) = (0, 6);
        for _ in 0..steps {
            let mut changed = rows.clone();
            for _ in 0..=numbers.below(change) {
                match numbers.below(3) {
                    0 => changed.push(fresh(&mut numbers)),
                    1 if changed.len() > 3 => _ = changed.swap_remove(numbers.below(changed.len())),
                    _ => {
                        let at = numbers.below(changed.len());
                        changed[at].1 = numbers.below(start);
                    }
                }
            }
            let former: Vec<Option<u32>> =
                rows.iter().map(|row| changed.iter().position(|other| other == row).map(number)).collect();
            let gone: Vec<Row> =
                rows.iter().zip(&former).filter(|(_, row)| row.is_none()).map(|(row, _)| *row).collect();
            let gone_firsts: Vec<bool> = gone.iter().map(|row| row.0 < MIDDLE).collect();
            let (gone, _) = laid_out(&gone, &pool, dimensions);
            let (matrix, ranks) = laid_out(&changed, &pool, dimensions);
            let former = Former { edges: &built.0, reserve: &built.1, rows: &former, gone_firsts: &gone_firsts };
            let rules = in_step(rules, &changed);
            let joined = [matrix.as_slice(), &gone].concat();
            let update = update(&Rows::of_matrix(&joined, dimensions), &ranks, rules, &former, MEMORY, &Quiet).unwrap();
            let expected = build(&matrix, dimensions, &ranks, rules, &Quiet).unwrap();
            if let Some(update) = update {
                assert_eq!(update.0, expected.0);
                possible += 1;
                built = update;
            } else {
                built = expected;
            }
            rows = changed;
        }
        (possible, steps)
    }

    #[test]
    fn changed_rows_give_the_edges_of_a_fresh_build() {
        follow_changes(Population::All);
    }

    #[test]
    fn changed_rows_of_two_sides_give_the_edges_of_a_fresh_build() {
        follow_changes(Population::Across(0));
    }

    fn follow_changes(pairs: Population) {
        let (mut possible, mut all) = (0, 0);
        for seed in 0..24 {
            let mut numbers = Numbers(seed);
            let rows = [5, 40, 90, 260][numbers.below(4)];
            let dimensions = [2, 5, 16][numbers.below(3)];
            let percentile = [0, 50_000, 90_000, 95_000, 99_000, 100_000][numbers.below(6)];
            let mut rules = Pruning { pairs, percentile, top_m: [1, 3, 16][numbers.below(3)], ..RULES };
            if seed % 2 == 1 {
                rules.cap = [Cap::Either, Cap::Both][numbers.below(2)];
                rules.nearest = [None, Some(1), Some(2), Some(20)][numbers.below(4)];
                rules.least = [0, image::image(0.3), image::image(0.9)][numbers.below(3)];
                rules.apart = rules.cap == Cap::Both || rules.nearest.is_some() || numbers.below(2) == 0;
            }
            let (some, of) = updated(seed, rows, dimensions, rules, 1 + rows / 20);
            possible += some;
            all += of;
        }
        assert!(possible * 2 > all, "{possible} of {all} updates were possible");
    }
}
