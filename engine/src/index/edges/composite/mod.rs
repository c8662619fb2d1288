//! Similarity edges from several signals: exact thresholds over all pairs, signals that agree or are weighed, under a cap.

mod bins;
mod partners;
mod pass;

use crate::index::control::{Cancelled, Control};
use crate::index::edges::composite::bins::{Bins, order_statistic};
use crate::index::edges::composite::partners::{Partners, place_of};
use crate::index::edges::composite::pass::{Lines, Pass};
use crate::index::edges::image::{image, score};
pub use crate::index::edges::set::{EdgeReport, EdgeSet};
use crate::index::signals::Signal;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which pairs there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// All pairs of rows.
    Within,
    /// The rows below `second` with those from `second` on.
    Across {
        /// The first row of the second group.
        second: u32,
    },
}

/// What a pair has to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// The share of pairs that lie below the threshold, in thousandths of a per cent; at most 100,000.
    pub percentile: u32,
    /// What a pair has to exceed besides; 0 leaves out pairs that share nothing, where the threshold is 0. Nothing exceeds what
    /// is no number.
    pub above: Option<f32>,
}

impl Default for Bar {
    fn default() -> Self {
        Self { percentile: 95_000, above: None }
    }
}

/// How signals decide together.
#[derive(Clone, Debug, PartialEq)]
pub enum Combination {
    /// A pair has to reach the bar of every signal; the first one is its weight. As many signals count as there are bars.
    Agree(Vec<Bar>),
    /// The score Σ weightᵢ · similarityᵢ / Σ weightᵢ is the weight of a pair and has to reach the bar. It is computed in f64 in the
    /// order of signals and rounded once to f32; where that is no finite number, it is 0. As many signals count as there are
    /// weights.
    Weighted {
        /// The weight of each signal.
        weights: Vec<f64>,
        /// What the score has to reach.
        bar: Bar,
    },
}

/// Who has to choose a pair for it to stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ends {
    /// One of its rows.
    #[default]
    Either,
    /// Both of its rows.
    Both,
}

/// Which pairs become edges.
#[derive(Clone, Debug, PartialEq)]
pub struct CompositeRules {
    /// How signals decide together.
    pub combination: Combination,
    /// Where given, only pairs of which one row is among so many nearest of the other by the first signal become edges;
    /// thresholds are those of all pairs all the same.
    pub nearest: Option<u32>,
    /// How many partners a row may choose.
    pub top_m: u32,
    /// Who has to choose a pair.
    pub ends: Ends,
}

/// Edges and the thresholds that they passed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Composite {
    /// The edges; their report's threshold is the first one, and what passed reached every bar and was a candidate.
    pub edges: EdgeSet,
    /// The threshold of each signal, or of the score; none where there is no pair.
    pub thresholds: Vec<f32>,
}

/// Builds the edges of rows of which each signal has as many as there are ranks; row `i` comes `key_ranks[i]`th in the order
/// of keys.
///
/// A threshold is the exact order statistic with the index ⌊pairs · percentile⌋ over all pairs of the relation, counted from
/// zero in ascending order, at most the last. Of the pairs that pass, each row chooses the `top_m` with the highest weight,
/// among equals those with the lower rank; the nearest by the first signal are found in the same way. -0 equals 0. The result
/// does not depend on the number of threads.
///
/// Runs on the current rayon pool. Computes every signal for all pairs once for the thresholds, and again where a sample misleads
/// about where they may lie. Where several signals decide, once more to choose, dense ones only where sparse ones let a pair
/// pass. Beside
/// the signals it takes rows · (`top_m` + nearest) · 16 bytes, and 2 MiB for each signal and thread.
///
/// # Errors
/// When `control` says so.
pub fn build(
    signals: &[&dyn Signal],
    key_ranks: &[u32],
    relation: Relation,
    rules: &CompositeRules,
    control: &dyn Control,
) -> Result<Composite, Cancelled> {
    let mut order: Vec<u32> = (0..u32::MAX).zip(key_ranks).map(|(row, _)| row).collect();
    order.sort_by_key(|row| key_ranks[*row as usize]);
    let mut places = vec![0; order.len()];
    for (place, row) in (0..).zip(&order) {
        places[*row as usize] = place;
    }
    let signals = &signals[..signals.len().min(rules.combination.signals())];
    let pass = Pass::new(place_of(order.len()), relation, signals, control);
    let build = Build { signals, rules, pass, order: &order, places: &places };
    build.edges()
}

impl Combination {
    fn signals(&self) -> usize {
        match self {
            Self::Agree(bars) => bars.len(),
            Self::Weighted { weights, .. } => weights.len(),
        }
    }

    /// The bars of what decides: of each signal, or of the score.
    fn bars(&self) -> &[Bar] {
        match self {
            Self::Agree(bars) => bars,
            Self::Weighted { bar, .. } => std::slice::from_ref(bar),
        }
    }

    fn weights(&self) -> Option<&[f64]> {
        match self {
            Self::Agree(_) => None,
            Self::Weighted { weights, .. } => Some(weights),
        }
    }
}

/// The images of the thresholds; and how many pairs pass, where all that may pass were offered on the way.
struct Thresholds {
    images: Vec<u32>,
    passed: Option<u64>,
}

struct Build<'b> {
    signals: &'b [&'b dyn Signal],
    rules: &'b CompositeRules,
    pass: Pass<'b>,
    /// The rows in the order of their keys.
    order: &'b [u32],
    /// The place of each row in this order.
    places: &'b [u32],
}

impl Build<'_> {
    fn edges(&self) -> Result<Composite, Cancelled> {
        let rows = self.pass.rows;
        let pairs = self.pass.pairs();
        if pairs == 0 || self.signals.is_empty() {
            let report = EdgeReport { rows, pairs, ..EdgeReport::default() };
            return Ok(Composite { edges: EdgeSet::of(&[], report), thresholds: Vec::new() });
        }
        let partners = || Partners::new(self.order.len(), self.rules.top_m);
        let nearest = self.rules.nearest.map(|nearest| Partners::new(self.order.len(), nearest));
        // Where one number decides, a row can choose before the threshold is known.
        let early = (nearest.is_none() && self.measures() == 1).then(partners);
        let Thresholds { images, passed } = self.thresholds(pairs, nearest.as_ref().or(early.as_ref()))?;
        let floors: Vec<u32> =
            images.iter().zip(self.rules.combination.bars()).map(|(image, bar)| bar.floor(*image)).collect();
        let (chosen, passed) = match (nearest, early.zip(passed)) {
            (Some(nearest), _) => {
                let chosen = partners();
                let passed = self.choose_among(&nearest.pairs(self.order, Ends::Either, 0), &floors, &chosen)?;
                (chosen, passed)
            }
            (None, Some(chosen)) => chosen,
            (None, None) => {
                let chosen = partners();
                let passed = self.choose(&floors, &chosen)?;
                (chosen, passed)
            }
        };
        let thresholds: Vec<f32> = images.into_iter().map(score).collect();
        let report =
            EdgeReport { rows, pairs, threshold: thresholds.first().copied(), passed, ..EdgeReport::default() };
        let chosen = chosen.pairs(self.order, self.rules.ends, floors[0]);
        Ok(Composite { edges: EdgeSet::of(&chosen, report), thresholds })
    }

    fn lines(&self) -> Lines<'_> {
        Lines::new(self.signals, self.rules.combination.weights())
    }

    /// Finds the thresholds. Offers on the way all pairs by their first signal, where only the nearest become edges, else those
    /// that may pass by what decides.
    fn thresholds(&self, pairs: u64, offered: Option<&Partners>) -> Result<Thresholds, Cancelled> {
        let bars = &self.rules.combination.bars()[..self.measures()];
        let nearest = self.rules.nearest.is_some();
        let mut bins = self.sampled(bars, pairs);
        let mut found: Vec<Option<u32>> = vec![None; bars.len()];
        let (mut offered, mut passed) = (offered, None);
        while found.iter().any(Option::is_none) {
            let open: Vec<bool> = found.iter().map(Option::is_none).collect();
            let low = if nearest { 0 } else { bins[0].low() };
            let least = bars[0].floor(0);
            let start = || (self.lines(), bins.clone(), 0);
            let tallies = self.pass.run(start, |(lines, bins, exceeding), row, range| {
                lines.read(row, range.clone(), |measure| open[measure], nearest && offered.is_some());
                for (at, bins) in bins.iter_mut().enumerate().filter(|(at, _)| open[*at]) {
                    bins.count(lines.measure(at));
                }
                let Some(offered) = offered else { return };
                let line = if nearest { lines.first() } else { lines.measure(0) };
                for (other, image) in range.zip(line.iter().map(|similarity| image(*similarity))) {
                    *exceeding += u64::from(image >= least);
                    if image >= low {
                        self.offer(offered, row, other, image);
                    }
                }
            })?;
            for (at, bins) in bins.iter_mut().enumerate().filter(|(at, _)| open[*at]) {
                for (_, tally, _) in &tallies {
                    bins.add(&tally[at]);
                }
                match bins.narrowed(order_statistic(pairs, bars[at].percentile)) {
                    Ok((image, below)) => {
                        found[at] = Some(image);
                        let exceeding = tallies.iter().map(|(_, _, exceeding)| exceeding).sum();
                        passed = offered.map(|_| (pairs - below).min(exceeding));
                    }
                    Err(narrower) => *bins = narrower,
                }
            }
            offered = None;
        }
        Ok(Thresholds { images: found.into_iter().flatten().collect(), passed })
    }

    /// How many numbers decide about a pair.
    fn measures(&self) -> usize {
        self.rules.combination.weights().map_or(self.signals.len(), |_| 1)
    }

    /// Where a sample says that the thresholds may lie.
    fn sampled(&self, bars: &[Bar], pairs: u64) -> Vec<Bins> {
        let mut lines = self.lines();
        let mut images = vec![Vec::new(); bars.len()];
        for (row, other) in self.pass.sample() {
            lines.read_some(row, &[other]);
            for (at, images) in images.iter_mut().enumerate() {
                images.extend(lines.measure(at).iter().map(|similarity| image(*similarity)));
            }
        }
        images.into_iter().zip(bars).map(|(images, bar)| Bins::sampled(images, bar.percentile, pairs)).collect()
    }

    fn offer(&self, partners: &Partners, row: u32, other: u32, image: u32) {
        for (row, other) in [(row, other), (other, row)] {
            partners.offer(self.places[row as usize], self.places[other as usize], image);
        }
    }

    /// Offers all pairs that pass, and says how many that were.
    fn choose(&self, floors: &[u32], chosen: &Partners) -> Result<u64, Cancelled> {
        let start = || (self.lines(), Vec::new(), 0);
        let states = self.pass.run(start, |(lines, listed, passed), row, range| {
            let first = range.start;
            self.list_passing(lines, row, range, floors, listed);
            for other in &*listed {
                self.offer(chosen, row, *other, image(lines.measure(0)[(other - first) as usize]));
            }
            *passed += listed.len() as u64;
        })?;
        Ok(states.iter().map(|(_, _, passed)| passed).sum())
    }

    /// Lists the rows of a range with which a row makes a pair that passes. What sparse signals say costs little and often
    /// leaves few pairs for the dense ones.
    fn list_passing(&self, lines: &mut Lines<'_>, row: u32, range: Range<u32>, floors: &[u32], listed: &mut Vec<u32>) {
        let is_late = |at: usize| self.rules.combination.weights().is_none() && !self.signals[at].is_sparse();
        lines.read(row, range.clone(), |at| !is_late(at), false);
        listed.clear();
        listed.extend(range.clone());
        for late in [false, true] {
            for (at, floor) in floors.iter().enumerate().filter(|(at, _)| is_late(*at) == late) {
                if late {
                    lines.refine(row, &range, at, listed);
                }
                let measure = lines.measure(at);
                listed.retain(|other| image(measure[(other - range.start) as usize]) >= *floor);
            }
        }
    }

    /// Offers those of some pairs that pass, and says how many that were.
    fn choose_among(&self, pairs: &[(u32, u32, u32)], floors: &[u32], chosen: &Partners) -> Result<u64, Cancelled> {
        let rows: Vec<&[(u32, u32, u32)]> = pairs.chunk_by(|a, b| a.0 == b.0).collect();
        let passed = AtomicU64::new(0);
        self.pass.run_some(
            &rows,
            || self.lines(),
            |lines, pairs| {
                let listed: Vec<u32> = pairs.iter().map(|pair| pair.1).collect();
                let row = pairs.first().map_or(0, |pair| pair.0);
                lines.read_some(row, &listed);
                for (at, other) in listed.iter().enumerate() {
                    let mut measures = floors.iter().enumerate().map(|(measure, _)| image(lines.measure(measure)[at]));
                    if floors.iter().all(|floor| measures.next() >= Some(*floor)) {
                        passed.fetch_add(1, Ordering::Relaxed);
                        self.offer(chosen, row, *other, image(lines.measure(0)[at]));
                    }
                }
            },
        )?;
        Ok(passed.into_inner())
    }
}

impl Bar {
    /// The lowest image that passes.
    fn floor(self, threshold: u32) -> u32 {
        match self.above {
            Some(above) if above.is_nan() => u32::MAX,
            Some(above) => threshold.max(image(above).saturating_add(1)),
            None => threshold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::control::Quiet;
    use crate::index::signals::{Columns, ColumnsBuilder, Dense, Overlap, SetsBuilder, Weighing, columns_of};
    use std::collections::HashSet;

    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: u32) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u32::try_from((self.0 >> 33) % u64::from(end)).unwrap()
        }
    }

    /// Vectors, some of them twins and some zero.
    fn matrix(rows: u32, numbers: &mut Numbers) -> Vec<f32> {
        let mut matrix: Vec<f32> = Vec::new();
        for row in 0..rows {
            let mut vector: Vec<f32> =
                (0..5).map(|_| f32::from(u16::try_from(numbers.below(2000)).unwrap()) / 1000.0 - 0.8).collect();
            match row % 9 {
                3 => vector.copy_from_slice(&matrix[..5]),
                5 => vector.fill(0.0),
                _ => crate::distance::normalise(&mut vector).unwrap(),
            }
            matrix.extend(vector);
        }
        matrix
    }

    /// Sets of a few words out of a few, many of them empty.
    fn overlap(rows: u32, weighing: Weighing, numbers: &mut Numbers) -> Overlap {
        let mut builder = SetsBuilder::default();
        for _ in 0..rows {
            let names: Vec<String> = (0..numbers.below(5)).map(|_| numbers.below(9).to_string()).collect();
            builder.push(names);
        }
        Overlap::new(builder.finish(), weighing)
    }

    fn tables(rows: u32, numbers: &mut Numbers) -> Columns {
        let mut builder = ColumnsBuilder::default();
        for _ in 0..rows {
            let text: String = (0..numbers.below(4))
                .map(|_| format!("{} | {} | {}\n", numbers.below(5), numbers.below(5), numbers.below(9)))
                .fold(String::new(), |text, line| text + &line);
            builder.push(columns_of(&text));
        }
        builder.finish()
    }

    /// A pair: its rows, its measures, and the image of its first signal.
    struct Pair {
        rows: (u32, u32),
        measures: Vec<f32>,
        first: u32,
    }

    fn all_pairs(signals: &[&dyn Signal], rows: u32, relation: Relation, rules: &CompositeRules) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for a in 0..rows {
            for b in a + 1..rows {
                let is_one = match relation {
                    Relation::Within => true,
                    Relation::Across { second } => a < second && b >= second,
                };
                if is_one {
                    let similarities: Vec<f32> = signals.iter().map(|signal| signal.similarity(a, b)).collect();
                    let measures = match &rules.combination {
                        Combination::Agree(bars) => similarities[..bars.len().min(signals.len())].to_vec(),
                        Combination::Weighted { weights, .. } => {
                            let (mut sum, mut all) = (0.0, 0.0);
                            for (weight, similarity) in weights.iter().zip(&similarities) {
                                sum += weight * f64::from(*similarity);
                                all += weight;
                            }
                            vec![rounded(sum / all)]
                        }
                    };
                    pairs.push(Pair { rows: (a, b), measures, first: image(similarities[0]) });
                }
            }
        }
        pairs
    }

    #[expect(clippy::cast_possible_truncation, reason = "the definition's rounding")]
    fn rounded(score: f64) -> f32 {
        score as f32
    }

    /// The best partners of every row, by sorting all.
    fn best(pairs: &[(u32, u32, u32)], ranks: &[u32], most: u32) -> Vec<(u32, u32, u32)> {
        let mut chosen = Vec::new();
        let mut lists = vec![Vec::new(); ranks.len()];
        for pair in pairs {
            lists[pair.0 as usize].push(*pair);
            lists[pair.1 as usize].push(*pair);
        }
        for (row, mut mine) in (0..).zip(lists) {
            mine.sort_by_key(|pair| (!pair.2, ranks[(pair.0 + pair.1 - row) as usize]));
            chosen.extend(mine.into_iter().take(most as usize));
        }
        chosen.sort_unstable();
        chosen
    }

    /// The definition, by sorting everything: thresholds, how many passed, and the edges.
    fn oracle(
        signals: &[&dyn Signal],
        ranks: &[u32],
        relation: Relation,
        rules: &CompositeRules,
    ) -> (Vec<f32>, u64, Vec<(u32, u32, u32)>) {
        let pairs = all_pairs(signals, u32::try_from(ranks.len()).unwrap(), relation, rules);
        let bars = rules.combination.bars();
        let mut thresholds = Vec::new();
        for (at, bar) in bars.iter().enumerate() {
            let mut sorted: Vec<f32> = pairs.iter().map(|pair| pair.measures[at] + 0.0).collect();
            sorted.sort_by(f32::total_cmp);
            let index = sorted.len() * bar.percentile as usize / 100_000;
            thresholds.extend(sorted.get(index.min(sorted.len().saturating_sub(1))));
        }
        let firsts: Vec<_> = pairs.iter().map(|pair| (pair.rows.0, pair.rows.1, pair.first)).collect();
        let nearest = rules.nearest.map(|nearest| best(&firsts, ranks, nearest).into_iter().collect::<HashSet<_>>());
        let passing: Vec<_> = pairs
            .iter()
            .filter(|pair| {
                let is_candidate =
                    nearest.as_ref().is_none_or(|nearest| nearest.contains(&(pair.rows.0, pair.rows.1, pair.first)));
                let mut bars = pair.measures.iter().zip(&thresholds).zip(bars);
                is_candidate && bars.all(|((x, least), bar)| x >= least && bar.above.is_none_or(|above| *x > above))
            })
            .map(|pair| (pair.rows.0, pair.rows.1, image(pair.measures[0])))
            .collect();
        let chosen = best(&passing, ranks, rules.top_m);
        let most = if rules.ends == Ends::Both { 2 } else { 1 };
        let mut kept: Vec<_> =
            chosen.chunk_by(|a, b| a == b).filter(|one| one.len() >= most).map(|one| one[0]).collect();
        kept.dedup();
        (thresholds, passing.len() as u64, kept)
    }

    fn check(signals: &[&dyn Signal], rows: u32, relation: Relation, rules: &CompositeRules) {
        let ranks: Vec<u32> = (0..rows).map(|row| row * 7919 % 65_537).collect();
        let mut sorted = ranks.clone();
        sorted.sort_unstable();
        let ranks: Vec<u32> =
            ranks.iter().map(|rank| u32::try_from(sorted.binary_search(rank).unwrap()).unwrap()).collect();
        let built = build(signals, &ranks, relation, rules, &Quiet).unwrap();
        let (thresholds, passed, kept) = oracle(signals, &ranks, relation, rules);
        assert_eq!(built.thresholds, thresholds, "{relation:?} {rules:?}");
        assert_eq!(built.edges.report.threshold, thresholds.first().copied());
        assert_eq!(built.edges.report.passed, passed, "{relation:?} {rules:?}");
        let expected = EdgeSet::of(&kept, EdgeReport { kept: 0, ..built.edges.report });
        assert_eq!(built.edges, expected, "{relation:?} {rules:?}");
    }

    fn combinations(percentile: u32) -> [Combination; 5] {
        let bar = Bar { percentile, above: None };
        let positive = Bar { percentile, above: Some(0.0) };
        [
            Combination::Agree(vec![bar, bar, bar]),
            Combination::Agree(vec![positive, Bar { percentile: 30_000, above: Some(-0.1) }, positive]),
            Combination::Agree(vec![bar]),
            Combination::Weighted { weights: vec![0.4, 0.35, 0.25], bar },
            Combination::Weighted { weights: vec![0.5, 2.0], bar: positive },
        ]
    }

    fn rules_of(percentile: u32) -> Vec<CompositeRules> {
        let mut all = Vec::new();
        for combination in combinations(percentile) {
            for nearest in [None, Some(2)] {
                for (top_m, ends) in [(0, Ends::Either), (2, Ends::Either), (3, Ends::Both), (1000, Ends::Both)] {
                    all.push(CompositeRules { combination: combination.clone(), nearest, top_m, ends });
                }
            }
        }
        all
    }

    #[test]
    fn edges_equal_those_of_a_full_sort() {
        for rows in [0, 1, 2, 3, 9, 40] {
            let mut numbers = Numbers(u64::from(rows));
            let matrix = matrix(rows, &mut numbers);
            let dense = Dense::new(&matrix, 5);
            let equal = overlap(rows, Weighing::Equal, &mut numbers);
            let rare = overlap(rows, Weighing::Rarity, &mut numbers);
            let tables = tables(rows, &mut numbers);
            let orders: [[&dyn Signal; 3]; 3] =
                [[&dense, &equal, &rare], [&equal, &dense, &tables], [&tables, &rare, &dense]];
            for (signals, percentile) in orders.iter().zip([95_000, 60_000, 0]) {
                for percentile in [percentile, 100_000] {
                    for rules in rules_of(percentile) {
                        check(signals, rows, Relation::Within, &rules);
                        check(signals, rows, Relation::Across { second: rows / 3 }, &rules);
                    }
                }
            }
        }
    }

    /// More rows than a block has, and more pairs than the sample.
    #[test]
    fn edges_of_many_blocks_equal_those_of_a_full_sort() {
        let rows = 530;
        let mut numbers = Numbers(1);
        let matrix = matrix(rows, &mut numbers);
        let dense = Dense::new(&matrix, 5);
        let equal = overlap(rows, Weighing::Equal, &mut numbers);
        let agree = Combination::Agree(vec![Bar::default(), Bar { percentile: 80_000, above: None }]);
        let weighted = Combination::Weighted { weights: vec![0.6, 0.4], bar: Bar::default() };
        for combination in [agree, weighted] {
            for (relation, nearest) in [(Relation::Within, None), (Relation::Across { second: 100 }, Some(7))] {
                let combination = combination.clone();
                let rules = CompositeRules { combination, nearest, top_m: 4, ends: Ends::Either };
                check(&[&dense, &equal], rows, relation, &rules);
            }
        }
    }

    fn some_rules() -> CompositeRules {
        let combination = Combination::Agree(vec![Bar::default(), Bar::default()]);
        CompositeRules { combination, nearest: None, top_m: 8, ends: Ends::Either }
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let mut numbers = Numbers(4);
        let matrix = matrix(300, &mut numbers);
        let dense = Dense::new(&matrix, 5);
        let rare = overlap(300, Weighing::Rarity, &mut numbers);
        let ranks: Vec<u32> = (0..300).rev().collect();
        for nearest in [None, Some(20)] {
            let rules = CompositeRules { nearest, ..some_rules() };
            let on = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| build(&[&dense, &rare], &ranks, Relation::Within, &rules, &Quiet).unwrap())
            };
            assert_eq!(on(1), on(2));
        }
    }

    #[test]
    fn no_signal_no_group_and_weights_without_sum_give_no_edges_that_say_something() {
        let mut numbers = Numbers(4);
        let equal = overlap(9, Weighing::Equal, &mut numbers);
        let ranks: Vec<u32> = (0..9).collect();
        let none = build(&[], &ranks, Relation::Within, &some_rules(), &Quiet).unwrap();
        assert_eq!((none.edges.report.components, none.thresholds.len()), (9, 0));
        for second in [0, 9, 10, u32::MAX] {
            let none = build(&[&equal, &equal], &ranks, Relation::Across { second }, &some_rules(), &Quiet).unwrap();
            assert_eq!((none.edges.report.pairs, none.edges.offsets.len()), (0, 10));
        }
        let combination = Combination::Agree(vec![Bar { percentile: 0, above: Some(-f32::NAN) }]);
        let rules = CompositeRules { combination, ..some_rules() };
        let none = build(&[&equal], &ranks, Relation::Within, &rules, &Quiet).unwrap();
        assert_eq!((none.edges.report.passed, none.edges.report.kept), (0, 0));
        for weights in [vec![0.0, 0.0], vec![1.0, -1.0], vec![f64::NAN, 1.0], vec![f64::MAX, f64::MAX]] {
            let combination = Combination::Weighted { weights, bar: Bar { percentile: 0, above: Some(0.0) } };
            let rules = CompositeRules { combination, ..some_rules() };
            let none = build(&[&equal, &equal], &ranks, Relation::Within, &rules, &Quiet).unwrap();
            assert_eq!((none.thresholds.as_slice(), none.edges.report.passed), ([0.0].as_slice(), 0));
        }
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
        let equal = overlap(9, Weighing::Equal, &mut Numbers(4));
        assert_eq!(build(&[&equal, &equal], &[0; 9], Relation::Within, &some_rules(), &Stop), Err(Cancelled));
    }
}
