//! Similarity edges from several signals: exact thresholds over all pairs, signals that agree or are weighed, under a cap.

mod bins;
mod partners;
mod pass;

use crate::distance::rows::Rows;
use crate::index::control::{Cancelled, Control};
use crate::index::edges::composite::bins::Bins;
pub use crate::index::edges::composite::partners::Partners;
use crate::index::edges::composite::pass::{Lines, Pass};
use crate::index::edges::image::{image, score};
use crate::index::edges::state::order_statistic;
use crate::index::edges::{Cap, EdgeReport, EdgeSet, Forgotten, Memory, Population, Pruning, build, number};
use crate::index::signals::Signal;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A signal among several.
#[derive(Clone, Copy)]
pub struct Voice<'s> {
    /// How similar rows are by it.
    pub signal: &'s dyn Signal,
    /// The share of pairs that lie below its threshold, in thousandths of a per cent; at most 100,000.
    pub percentile: u32,
    /// Its weight.
    pub weight: f64,
}

/// How signals decide together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combination {
    /// A pair has to reach the threshold of every signal, and to have something in common by those that are sparse; the first
    /// one is its weight.
    Agree,
    /// The score Σ weightᵢ · similarityᵢ / Σ weightᵢ is the weight of a pair and has to reach its threshold. It is computed in f64
    /// in the order of signals and rounded once to f32; where that is no finite number, it is 0.
    Weighted,
}

/// Edges and the thresholds of their signals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Composite {
    /// The edges. Their report's threshold is that of the weight of a pair, and what passed is a candidate that reached
    /// everything that it had to reach.
    pub edges: EdgeSet,
    /// The threshold of each signal; none where there is no pair.
    pub thresholds: Vec<f32>,
}

/// Signals that decide together.
pub struct Composition<'c> {
    voices: &'c [Voice<'c>],
    combination: Combination,
}

impl<'c> Composition<'c> {
    /// What these signals decide.
    pub fn new(voices: &'c [Voice<'c>], combination: Combination) -> Self {
        Self { voices, combination }
    }

    /// The weight of a pair: the similarity by the first signal, or the score; 0 without a signal.
    pub fn weight(&self, row: u32, other: u32) -> f32 {
        let mut lines = Lines::new(self.voices, self.combination);
        lines.read_some(row, &[other]);
        lines.measure(0).first().copied().unwrap_or_default()
    }

    /// Builds the edges of rows in the order of their keys. Each signal knows as many.
    ///
    /// A threshold is the exact order statistic with the index ⌊pairs · percentile⌋ over all pairs, counted from zero in ascending
    /// order, at most the last; that of a score has the percentile of the rules. The weight of a pair has to reach `least` besides.
    /// Of the pairs that pass, each row chooses the `top_m` with the highest weight, among equals those of the first rows; the
    /// nearest by the first signal, which make candidates, are found in the same way. -0 equals 0. The result does not depend on the
    /// number of threads.
    ///
    /// Runs on the current rayon pool. Computes every signal for all pairs once for the thresholds, vectors that have to agree with
    /// others as [`build`] does, and again where a sample misleads about where they may lie. Where several signals have to agree, once more to choose, dense ones only where sparse
    /// ones let a pair pass. Beside the signals it takes rows · (`top_m` + nearest) · 16 bytes, and 2 MiB for each signal and
    /// thread.
    ///
    /// # Errors
    /// When `control` says so.
    pub fn edges(&self, rows: usize, rules: Pruning, control: &dyn Control) -> Result<Composite, Cancelled> {
        let pass = Pass::new(number(rows), rules.pairs, self.voices, control);
        Build { composition: self, rules, pass }.edges()
    }

    /// How many numbers have thresholds: the score, where it decides, and every signal.
    fn measures(&self) -> usize {
        self.voices.len() + self.scores()
    }

    /// How many of them decide, the first ones.
    fn deciding(&self) -> usize {
        match self.combination {
            Combination::Agree => self.voices.len(),
            Combination::Weighted => 1,
        }
    }

    /// How many scores come before the signals.
    fn scores(&self) -> usize {
        usize::from(self.combination == Combination::Weighted)
    }

    fn percentile(&self, measure: usize, rules: Pruning) -> u32 {
        let voice = measure.checked_sub(self.scores()).and_then(|at| self.voices.get(at));
        voice.map_or(rules.percentile, |voice| voice.percentile)
    }

    /// The lowest image that passes.
    fn floor(&self, measure: usize, threshold: u32, rules: Pruning) -> u32 {
        let least = if measure == 0 { rules.least } else { 0 };
        let voice = self.voices.get(measure).filter(|_| self.combination == Combination::Agree);
        threshold.max(least).max(voice.map_or(0, |voice| agreement(voice.signal)))
    }
}

/// Whether a signal with a threshold agrees that two rows are similar, of which it says how much.
pub fn agrees(signal: &dyn Signal, similarity: f32, threshold: f32) -> bool {
    image(similarity) >= image(threshold).max(agreement(signal))
}

/// The lowest image that can be an agreement.
fn agreement(signal: &dyn Signal) -> u32 {
    if signal.is_sparse() { image(0.0) + 1 } else { 0 }
}

/// Rules by which no pair becomes an edge.
const THRESHOLD_ALONE: Pruning = Pruning {
    pairs: Population::All,
    percentile: 0,
    top_m: 0,
    cap: Cap::Either,
    nearest: None,
    least: 0,
    apart: false,
};

/// The images of all thresholds; and how many pairs pass, where all that may pass were offered on the way.
struct Thresholds {
    images: Vec<u32>,
    passed: Option<u64>,
}

struct Build<'b> {
    composition: &'b Composition<'b>,
    rules: Pruning,
    pass: Pass<'b>,
}

impl Build<'_> {
    fn edges(&self) -> Result<Composite, Cancelled> {
        let rows = self.pass.rows;
        let pairs = self.pass.pairs();
        if pairs == 0 || self.composition.voices.is_empty() {
            let report = EdgeReport { rows, pairs, ..EdgeReport::default() };
            return Ok(Composite { edges: EdgeSet::of(std::iter::empty, report), thresholds: Vec::new() });
        }
        let partners = || Partners::new(rows, self.rules.top_m);
        let nearest = self.rules.nearest.map(|nearest| Partners::new(rows, nearest));
        // Where one number decides, a row can choose before the threshold is known.
        let early = (nearest.is_none() && self.composition.deciding() == 1).then(partners);
        let Thresholds { images, passed } = self.thresholds(pairs, nearest.as_ref().or(early.as_ref()))?;
        let floors: Vec<u32> = (0..self.composition.deciding())
            .zip(&images)
            .map(|(at, image)| self.composition.floor(at, *image, self.rules))
            .collect();
        let (chosen, passed) = match (nearest, early.zip(passed)) {
            (Some(nearest), _) => {
                let chosen = partners();
                let passed = self.choose_among(&nearest.pairs(Cap::Either, 0), &floors, &chosen)?;
                (chosen, passed)
            }
            (None, Some(chosen)) => chosen,
            (None, None) => {
                let chosen = partners();
                let passed = self.choose(&floors, &chosen)?;
                (chosen, passed)
            }
        };
        let mut thresholds: Vec<f32> = images.into_iter().map(score).collect();
        let report =
            EdgeReport { rows, pairs, threshold: thresholds.first().copied(), passed, ..EdgeReport::default() };
        thresholds.drain(..self.composition.scores());
        let chosen = chosen.pairs(self.rules.cap, floors.first().copied().unwrap_or(0));
        Ok(Composite { edges: EdgeSet::of(|| chosen.iter().copied(), report), thresholds })
    }

    fn lines(&self) -> Lines<'_> {
        Lines::new(self.composition.voices, self.composition.combination)
    }

    /// Finds the thresholds. Offers on the way all pairs by their first signal, where only the nearest become edges, else those
    /// that may pass by what decides.
    fn thresholds(&self, pairs: u64, offered: Option<&Partners>) -> Result<Thresholds, Cancelled> {
        let nearest = self.rules.nearest.is_some();
        let mut bins = self.sampled(pairs);
        let mut found = self.thresholds_of_vectors()?;
        let (mut offered, mut passed) = (offered, None);
        while found.iter().any(Option::is_none) {
            let open: Vec<bool> = found.iter().map(Option::is_none).collect();
            let low = if nearest { 0 } else { bins[0].low() };
            let least = self.composition.floor(0, 0, self.rules);
            let start = || (self.lines(), bins.clone(), 0);
            let tallies = self.pass.run(start, |(lines, bins, reaching), row, range| {
                lines.read(row, range.clone(), |measure| open[measure], nearest && offered.is_some());
                for (at, bins) in bins.iter_mut().enumerate().filter(|(at, _)| open[*at]) {
                    bins.count(lines.measure(at));
                }
                let Some(offered) = offered else { return };
                let line = if nearest { lines.first() } else { lines.measure(0) };
                for (other, image) in range.zip(line.iter().map(|similarity| image(*similarity))) {
                    *reaching += u64::from(image >= least);
                    if image >= low {
                        offered.offer_both(row, other, image);
                    }
                }
            })?;
            for (at, bins) in bins.iter_mut().enumerate().filter(|(at, _)| open[*at]) {
                for (_, tally, _) in &tallies {
                    bins.add(&tally[at]);
                }
                match bins.narrowed(order_statistic(pairs, self.composition.percentile(at, self.rules))) {
                    Ok((image, below)) => {
                        found[at] = Some(image);
                        let reaching: u64 = tallies.iter().map(|(_, _, reaching)| reaching).sum();
                        if at == 0 {
                            passed = offered.map(|_| (pairs - below).min(reaching));
                        }
                    }
                    Err(narrower) => *bins = narrower,
                }
            }
            offered = None;
        }
        Ok(Thresholds { images: found.into_iter().flatten().collect(), passed })
    }

    /// The thresholds of vectors, where nothing but these has to be known of all pairs: by codes of eight bits they are found
    /// several times as fast, and without them only pairs are compared that sparse signals let pass.
    fn thresholds_of_vectors(&self) -> Result<Vec<Option<u32>>, Cancelled> {
        let mut found = vec![None; self.composition.measures()];
        if self.composition.combination == Combination::Weighted || self.composition.deciding() == 1 {
            return Ok(found);
        }
        let ranks: Vec<u32> = (0..self.pass.rows).collect();
        let nearest_first = usize::from(self.rules.nearest.is_some());
        for (found, voice) in found.iter_mut().zip(self.composition.voices).skip(nearest_first) {
            let Some((matrix, dimensions)) = voice.signal.unit_vectors() else { continue };
            let rules = Pruning { pairs: self.rules.pairs, percentile: voice.percentile, ..THRESHOLD_ALONE };
            let rows = Rows::of_matrix(matrix, dimensions);
            let built = build(&rows, &ranks, rules, &[0; 32], &Forgotten, Memory::ALL, self.pass.control);
            // Nothing of it lies elsewhere.
            *found = built.map_err(|_| Cancelled)?.edges.report.threshold.map(image);
        }
        Ok(found)
    }

    /// Where a sample says that the thresholds may lie.
    fn sampled(&self, pairs: u64) -> Vec<Bins> {
        let mut lines = self.lines();
        let mut images = vec![Vec::new(); self.composition.measures()];
        for (row, other) in self.pass.sample() {
            lines.read_some(row, &[other]);
            for (at, images) in images.iter_mut().enumerate() {
                images.extend(lines.measure(at).iter().map(|similarity| image(*similarity)));
            }
        }
        let bins = |(at, images)| Bins::sampled(images, self.composition.percentile(at, self.rules), pairs);
        images.into_iter().enumerate().map(bins).collect()
    }

    /// Offers all pairs that pass, and says how many that were.
    fn choose(&self, floors: &[u32], chosen: &Partners) -> Result<u64, Cancelled> {
        let start = || (self.lines(), Vec::new(), 0);
        let states = self.pass.run(start, |(lines, listed, passed), row, range| {
            let first = range.start;
            self.list_passing(lines, row, range, floors, listed);
            for other in &*listed {
                chosen.offer_both(row, *other, image(lines.measure(0)[(other - first) as usize]));
            }
            *passed += listed.len() as u64;
        })?;
        Ok(states.iter().map(|(_, _, passed)| passed).sum())
    }

    /// Lists the rows of a range with which a row makes a pair that passes. What sparse signals say costs little and often
    /// leaves few pairs for the dense ones.
    fn list_passing(&self, lines: &mut Lines<'_>, row: u32, range: Range<u32>, floors: &[u32], listed: &mut Vec<u32>) {
        let Composition { voices, combination } = self.composition;
        let is_late = |at: usize| *combination == Combination::Agree && !voices[at].signal.is_sparse();
        lines.read(row, range.clone(), |at| at < floors.len() && !is_late(at), false);
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
                        chosen.offer_both(row, *other, image(lines.measure(0)[at]));
                    }
                }
            },
        )?;
        Ok(passed.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::control::Quiet;
    use crate::index::signals::{ColumnsBuilder, Dense, Overlap, SetsBuilder, Weighing, columns_of};
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

    fn tables(rows: u32, numbers: &mut Numbers) -> impl Signal {
        let mut builder = ColumnsBuilder::default();
        for _ in 0..rows {
            let text: String = (0..numbers.below(4))
                .map(|_| format!("{} | {} | {}\n", numbers.below(5), numbers.below(5), numbers.below(9)))
                .fold(String::new(), |text, line| text + &line);
            builder.push(columns_of(&text));
        }
        builder.finish()
    }

    /// Signals, how they decide, and the weights that they have then.
    struct Case<'c> {
        signals: Vec<&'c dyn Signal>,
        percentiles: Vec<u32>,
        weights: Vec<f64>,
        combination: Combination,
    }

    impl<'c> Case<'c> {
        fn voices(&self) -> Vec<Voice<'c>> {
            let rules = self.percentiles.iter().zip(&self.weights);
            let voice = |(signal, (percentile, weight)): (&&'c dyn Signal, (&u32, &f64))| Voice {
                signal: *signal,
                percentile: *percentile,
                weight: *weight,
            };
            self.signals.iter().zip(rules).map(voice).collect()
        }
    }

    /// A pair: its rows, its similarities by all signals, and its weight.
    struct Pair {
        rows: (u32, u32),
        similarities: Vec<f32>,
        weight: f32,
    }

    fn all_pairs(case: &Case<'_>, rows: u32, pairs: Population) -> Vec<Pair> {
        let mut all = Vec::new();
        let is_first = |row: u32| matches!(pairs, Population::Across(firsts) if (row as usize) < firsts);
        for a in 0..rows {
            for b in a + 1..rows {
                if pairs == Population::All || is_first(a) != is_first(b) {
                    let similarities: Vec<f32> = case.signals.iter().map(|signal| signal.similarity(a, b)).collect();
                    let weight = match case.combination {
                        Combination::Agree => similarities[0],
                        Combination::Weighted => {
                            let (mut sum, mut all) = (0.0, 0.0);
                            for (weight, similarity) in case.weights.iter().zip(&similarities) {
                                sum += weight * f64::from(*similarity);
                                all += weight;
                            }
                            rounded(sum / all)
                        }
                    };
                    all.push(Pair { rows: (a, b), similarities, weight });
                }
            }
        }
        all
    }

    #[expect(clippy::cast_possible_truncation, reason = "the definition's rounding")]
    fn rounded(score: f64) -> f32 {
        score as f32
    }

    /// The best partners of every row, by sorting all.
    fn best(pairs: &[(u32, u32, u32)], rows: u32, most: u32) -> Vec<(u32, u32, u32)> {
        let mut chosen = Vec::new();
        let mut lists = vec![Vec::new(); rows as usize];
        for pair in pairs {
            lists[pair.0 as usize].push(*pair);
            lists[pair.1 as usize].push(*pair);
        }
        for (row, mut mine) in (0..).zip(lists) {
            mine.sort_by_key(|pair| (!pair.2, pair.0 + pair.1 - row));
            chosen.extend(mine.into_iter().take(most as usize));
        }
        chosen.sort_unstable();
        chosen
    }

    fn order_statistic(numbers: impl Iterator<Item = f32>, percentile: u32) -> Option<f32> {
        let mut sorted: Vec<f32> = numbers.map(|number| number + 0.0).collect();
        sorted.sort_by(f32::total_cmp);
        sorted.get((sorted.len() * percentile as usize / 100_000).min(sorted.len().saturating_sub(1))).copied()
    }

    fn check(case: &Case<'_>, rows: u32, rules: Pruning) {
        let voices = case.voices();
        let composition = Composition::new(&voices, case.combination);
        let built = composition.edges(rows as usize, rules, &Quiet).unwrap();
        let pairs = all_pairs(case, rows, rules.pairs);
        let thresholds: Vec<f32> = (case.percentiles.iter().enumerate())
            .filter_map(|(at, percentile)| order_statistic(pairs.iter().map(|pair| pair.similarities[at]), *percentile))
            .collect();
        let agree = case.combination == Combination::Agree;
        let of_score = order_statistic(pairs.iter().map(|pair| pair.weight), rules.percentile);
        let threshold = if agree { thresholds.first().copied() } else { of_score };
        let firsts: Vec<_> = pairs.iter().map(|pair| (pair.rows.0, pair.rows.1, image(pair.similarities[0]))).collect();
        let nearest = rules.nearest.map(|nearest| best(&firsts, rows, nearest).into_iter().collect::<HashSet<_>>());
        let agrees = |pair: &Pair| {
            let mut signals = case.signals.iter().zip(pair.similarities.iter().zip(&thresholds));
            signals.all(|(signal, (x, least))| x >= least && (!signal.is_sparse() || *x > 0.0))
        };
        let passing: Vec<_> = pairs
            .iter()
            .zip(&firsts)
            .filter(|(_, first)| nearest.as_ref().is_none_or(|nearest| nearest.contains(first)))
            .filter(|(pair, _)| if agree { agrees(pair) } else { Some(pair.weight) >= threshold })
            .map(|(pair, _)| (pair.rows.0, pair.rows.1, image(pair.weight)))
            .filter(|(_, _, weight)| *weight >= rules.least)
            .collect();
        let chosen = best(&passing, rows, rules.top_m);
        let most = if rules.cap == Cap::Both { 2 } else { 1 };
        let mut kept: Vec<_> =
            chosen.chunk_by(|a, b| a == b).filter(|one| one.len() >= most).map(|one| one[0]).collect();
        kept.dedup();
        let report = EdgeReport {
            rows,
            pairs: pairs.len() as u64,
            passed: passing.len() as u64,
            threshold,
            ..EdgeReport::default()
        };
        let expected = Composite { edges: EdgeSet::of(|| kept.iter().copied(), report), thresholds };
        assert_eq!(built, expected, "{rules:?} {:?}", case.combination);
        for pair in pairs {
            assert_eq!(composition.weight(pair.rows.1, pair.rows.0).to_bits(), (pair.weight + 0.0).to_bits());
        }
    }

    const RULES: Pruning = Pruning {
        pairs: Population::All,
        percentile: 95_000,
        top_m: 8,
        cap: Cap::Either,
        nearest: None,
        least: 0,
        apart: false,
    };

    fn rules_of(percentile: u32, rows: u32) -> Vec<Pruning> {
        let mut all = Vec::new();
        for pairs in [Population::All, Population::Across(rows as usize / 3)] {
            for nearest in [None, Some(2)] {
                for (top_m, cap) in [(0, Cap::Either), (2, Cap::Either), (3, Cap::Both), (1000, Cap::Both)] {
                    for least in [0, image(0.3)] {
                        all.push(Pruning { pairs, percentile, top_m, cap, nearest, least, ..RULES });
                    }
                }
            }
        }
        all
    }

    #[test]
    fn edges_equal_those_of_a_full_sort() {
        for rows in [0, 1, 2, 3, 9, 24] {
            let mut numbers = Numbers(u64::from(rows));
            let matrix = matrix(rows, &mut numbers);
            let dense = Dense::new(&matrix, 5);
            let equal = overlap(rows, Weighing::Equal, &mut numbers);
            let rare = overlap(rows, Weighing::Rarity, &mut numbers);
            let tables = tables(rows, &mut numbers);
            let orders: [Vec<&dyn Signal>; 4] = [
                vec![&dense, &equal, &rare],
                vec![&equal, &dense, &tables],
                vec![&tables, &rare, &dense],
                vec![&dense],
            ];
            for (signals, percentile) in orders.iter().zip([95_000, 60_000, 0, 30_000]) {
                for percentile in [percentile, 100_000] {
                    for combination in [Combination::Agree, Combination::Weighted] {
                        let percentiles = [percentile, percentile / 2, 30_000][..signals.len()].to_vec();
                        let weights = [0.4, 0.35, 0.25][..signals.len()].to_vec();
                        let case = Case { signals: signals.clone(), percentiles, weights, combination };
                        for rules in rules_of(percentile, rows) {
                            check(&case, rows, rules);
                        }
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
        let has_direction = |row: &&[f32]| row.iter().any(|component| *component != 0.0);
        let whole: Vec<f32> = matrix
            .chunks(5)
            .map(|row| Some(row).filter(has_direction).unwrap_or(&matrix[..5]))
            .collect::<Vec<_>>()
            .concat();
        let (dense, whole) = (Dense::new(&matrix, 5), Dense::new(whole, 5));
        let equal = overlap(rows, Weighing::Equal, &mut numbers);
        assert!(dense.unit_vectors().is_none() && whole.unit_vectors().is_some());
        for combination in [Combination::Agree, Combination::Weighted] {
            for (pairs, nearest) in
                [(Population::All, None), (Population::Across(100), Some(7)), (Population::Across(100), None)]
            {
                for (signals, percentiles) in [
                    ([&dense as &dyn Signal, &equal], [95_000, 80_000]),
                    ([&whole, &equal], [95_000, 80_000]),
                    ([&equal, &whole], [0, 30_000]),
                ] {
                    let (signals, percentiles, weights) = (signals.to_vec(), percentiles.to_vec(), vec![0.6, 0.4]);
                    let case = Case { signals, percentiles, weights, combination };
                    check(&case, rows, Pruning { pairs, nearest, top_m: 4, ..RULES });
                }
            }
        }
    }

    fn voices<'v>(signals: &[&'v dyn Signal], weights: &[f64]) -> Vec<Voice<'v>> {
        let voice =
            |(signal, weight): (&&'v dyn Signal, &f64)| Voice { signal: *signal, percentile: 0, weight: *weight };
        signals.iter().zip(weights).map(voice).collect()
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let mut numbers = Numbers(4);
        let matrix = matrix(300, &mut numbers);
        let dense = Dense::new(&matrix, 5);
        let rare = overlap(300, Weighing::Rarity, &mut numbers);
        let voices = voices(&[&dense, &rare], &[1.0, 2.0]);
        for (nearest, combination) in [(None, Combination::Weighted), (Some(20), Combination::Agree)] {
            let rules = Pruning { nearest, ..RULES };
            let on = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| Composition::new(&voices, combination).edges(300, rules, &Quiet).unwrap())
            };
            assert_eq!(on(1), on(2));
        }
    }

    #[test]
    fn no_signal_no_second_side_and_weights_without_sum_give_no_edges_that_say_something() {
        let equal = overlap(9, Weighing::Equal, &mut Numbers(4));
        let none = Composition::new(&[], Combination::Agree);
        let empty = none.edges(9, RULES, &Quiet).unwrap();
        assert_eq!((empty.edges.report.components, empty.thresholds.len(), none.weight(0, 1).to_bits()), (9, 0, 0));
        let twice: [&dyn Signal; 2] = [&equal, &equal];
        for firsts in [0, 9, 10, usize::MAX] {
            let rules = Pruning { pairs: Population::Across(firsts), ..RULES };
            let voices = voices(&twice, &[1.0, 1.0]);
            let none = Composition::new(&voices, Combination::Agree).edges(9, rules, &Quiet).unwrap();
            assert_eq!((none.edges.report.pairs, none.edges.offsets.len()), (0, 10));
        }
        for weights in [[0.0, 0.0], [1.0, -1.0], [f64::NAN, 1.0], [f64::MAX, f64::MAX]] {
            let voices = voices(&twice, &weights);
            let rules = Pruning { least: image(0.1), ..RULES };
            let none = Composition::new(&voices, Combination::Weighted).edges(9, rules, &Quiet).unwrap();
            assert_eq!((none.edges.report.threshold, none.edges.report.passed), (Some(0.0), 0));
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
        let voices = voices(&[&equal, &equal], &[1.0, 1.0]);
        let composition = Composition::new(&voices, Combination::Agree);
        assert_eq!(composition.edges(9, RULES, &Stop), Err(Cancelled));
    }
}
