//! Similarity edges from several signals: exact thresholds over all pairs, signals that agree or are weighed, under a cap.

mod bins;
mod build;
mod partners;
mod pass;
mod rounds;

use crate::index::edges::composite::bins::Bins;
use crate::index::edges::composite::build::Build;
pub use crate::index::edges::composite::partners::{Partners, pairs, width};
use crate::index::edges::composite::pass::{Lines, Pass};
use crate::index::edges::composite::rounds::{Reached, Rounds};
use crate::index::edges::image::image;
use crate::index::edges::plan::{PROGRAM, Shape};
use crate::index::edges::{Cap, EdgeSet, Part, Population, Pruning, Stopped, number};
use crate::index::signals::Signal;
pub use rounds::Course;

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
    /// ones let a pair pass. Each of these passes goes on from what was done of it before. Beside the signals it takes rows ·
    /// (`top_m` + nearest) · 16 bytes, and 2 MiB for each signal and thread.
    ///
    /// # Errors
    /// When the control says so; what was done until then is kept. Where the memory is too little, or what does not fit can't be
    /// written.
    pub fn edges(&self, rows: usize, rules: Pruning, course: Course<'_>) -> Result<Composite, Stopped> {
        match self.build(rows, rules, Course { share: None, ..course })? {
            Reached::All(edges) => Ok(edges),
            // All of it was asked for.
            Reached::Share(_) => Err(Stopped::Cancelled),
        }
    }

    /// Does a share of the first pass over the pairs that was not done before, and tells what it saw: nothing where all passes
    /// were done, or where there is no pair.
    ///
    /// # Errors
    /// Those of [`Composition::edges`].
    pub fn share(&self, rows: usize, rules: Pruning, course: Course<'_>) -> Result<Vec<Part>, Stopped> {
        match self.build(rows, rules, course)? {
            Reached::All(_) => Ok(Vec::new()),
            Reached::Share(parts) => Ok(parts),
        }
    }

    fn build(&self, rows: usize, rules: Pruning, course: Course<'_>) -> Result<Reached<Composite>, Stopped> {
        let pass = Pass::new(number(rows), rules.pairs, self.voices, course.control);
        let signals: u64 = self.voices.iter().map(|voice| voice.signal.bytes()).sum();
        course.memory.bears(signals.saturating_add(self.needed(rows, rules, course)))?;
        let course = Course { memory: course.memory.less(signals), ..course };
        let mut hash = blake3::Hasher::new();
        hash.update(format!("{rules:?} {:?}", self.combination).as_bytes());
        for voice in self.voices {
            hash.update(&voice.percentile.to_le_bytes()).update(&voice.weight.to_le_bytes());
            voice.signal.identify(&mut hash);
        }
        let rounds = Rounds { pass: &pass, course };
        Build { composition: self, rules, rounds, identity: *hash.finalize().as_bytes() }.built()
    }

    /// Bytes at the step that takes most, beside the signals: counts of each thread, partners as they are chosen and written down, and
    /// what edges are made of.
    fn needed(&self, rows: usize, rules: Pruning, course: Course<'_>) -> u64 {
        let most = |partners: u32| width(number(rows), partners) as u64;
        let of_row = 160 + 80 * most(rules.top_m) + 48 * most(rules.nearest.unwrap_or(0));
        let threads = rayon::current_num_threads() as u64;
        let counts = Bins::bytes_most(rules.pairs.count(rows)) * self.measures() as u64;
        let own = PROGRAM + (threads + 4) * counts + threads * LINES + rows as u64 * of_row;
        let of_vectors = self.by_codes(rules).map(|(_, pruning, _, dimensions)| {
            let (kept, spills) = (course.unfinished.keeps(), course.share.is_none());
            Shape { rows, dimensions, rules: pruning, kept: kept || !spills, spills }.least()
        });
        own.max(of_vectors.max().unwrap_or(0))
    }

    /// The signals whose thresholds are found as those of vectors alone: which one, by what rules, and what is compared.
    fn by_codes(&self, rules: Pruning) -> impl Iterator<Item = (usize, Pruning, &[f32], usize)> {
        let alone = self.combination == Combination::Agree && self.deciding() > 1;
        let nearest_first = usize::from(rules.nearest.is_some());
        let some = self.voices.iter().enumerate().skip(nearest_first).filter(move |_| alone);
        some.filter_map(move |(at, voice)| {
            let (matrix, dimensions) = voice.signal.unit_vectors()?;
            let rules = Pruning { pairs: rules.pairs, percentile: voice.percentile, ..THRESHOLD_ALONE };
            Some((at, rules, matrix, dimensions))
        })
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

/// Bytes of lines of similarities, and what a thread has in hand, at most.
const LINES: u64 = 1 << 20;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::control::{Cancelled, Control, Quiet};
    use crate::index::edges::{EdgeReport, EdgeShare, Forgotten, Identity, Memory, Unfinished};
    use crate::index::signals::{ColumnsBuilder, Dense, Overlap, SetsBuilder, Weighing, columns_of};
    use std::collections::HashSet;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const ALL: Course<'static> = Course { unfinished: &Forgotten, share: None, memory: Memory::ALL, control: &Quiet };

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
        let built = composition.edges(rows as usize, rules, ALL).unwrap();
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
                pool.install(|| Composition::new(&voices, combination).edges(300, rules, ALL).unwrap())
            };
            assert_eq!(on(1), on(2));
        }
    }

    /// Keeps parts in memory.
    #[derive(Default)]
    struct Kept(Mutex<Vec<Part>>);

    impl Unfinished for Kept {
        fn last(&self, identity: &Identity) -> Result<Option<Part>, Cancelled> {
            Ok(self.0.lock().unwrap().iter().find(|part| part.identity == *identity).cloned())
        }

        fn keep(&self, part: &Part) {
            let mut parts = self.0.lock().unwrap();
            parts.retain(|known| known.identity != part.identity);
            parts.push(part.clone());
        }

        fn note(&self, part: &Part) {
            self.keep(part);
        }
    }

    impl Kept {
        /// Adds what others saw.
        fn join(&self, parts: Vec<Part>) {
            let mut known = self.0.lock().unwrap();
            for part in parts {
                match known.iter_mut().find(|known| known.identity == part.identity) {
                    Some(known) => assert!(known.join(&part)),
                    None => known.push(part),
                }
            }
        }
    }

    /// Stops after some blocks.
    struct StopAfter(AtomicUsize);

    impl Control for StopAfter {
        fn advance(&self, done: u64, all: u64) {
            assert!(done <= all);
        }

        fn cancelled(&self) -> bool {
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
        }
    }

    /// Calls `check` with compositions that take one pass, or several, of every kind, and rules for them.
    fn for_each_way(mut check: impl FnMut(&Composition<'_>, Pruning)) {
        let mut numbers = Numbers(7);
        let vectors = |numbers: &mut Numbers| -> Vec<f32> {
            let mut component = || f32::from(u16::try_from(numbers.below(2000)).unwrap()) / 1000.0 - 0.8;
            let mut all: Vec<f32> = (0..ROWS * 5).map(|_| component()).collect();
            all.chunks_mut(5).for_each(|row| crate::distance::normalise(row).unwrap());
            all
        };
        let (one, other) = (Dense::new(vectors(&mut numbers), 5), Dense::new(vectors(&mut numbers), 5));
        let rare = overlap(ROWS, Weighing::Rarity, &mut numbers);
        let signals: [&[&dyn Signal]; 3] = [&[&one, &rare, &other], &[&one, &other], &[&rare]];
        for signals in signals {
            let mut voices = voices(signals, &[0.5, 0.3, 0.2]);
            for voice in &mut voices {
                voice.percentile = 70_000;
            }
            for combination in [Combination::Agree, Combination::Weighted] {
                for (pairs, nearest) in [(Population::All, None), (Population::Across(100), Some(9))] {
                    check(&Composition::new(&voices, combination), Pruning { pairs, nearest, top_m: 4, ..RULES });
                }
            }
        }
    }

    const ROWS: u32 = 130;

    #[test]
    fn a_build_that_was_stopped_again_and_again_goes_on_and_gives_the_same_edges() {
        for_each_way(|composition, rules| {
            let expected = composition.edges(ROWS as usize, rules, ALL).unwrap();
            let kept = Kept::default();
            let mut stops = 0;
            let built = loop {
                let control = StopAfter(AtomicUsize::new(2));
                let course = Course { unfinished: &kept, control: &control, ..ALL };
                match composition.edges(ROWS as usize, rules, course) {
                    Ok(built) => break built,
                    Err(Stopped::Cancelled) => stops += 1,
                    Err(other) => panic!("{other}"),
                }
                assert!(stops < 40, "every run does some blocks");
            };
            assert!(stops > 0 && built == expected, "{rules:?}");
        });
    }

    #[test]
    fn passes_that_are_shared_in_part_or_altogether_give_the_edges_of_a_single_run() {
        let mut passes_most = 0;
        for_each_way(|composition, rules| {
            let expected = composition.edges(ROWS as usize, rules, ALL).unwrap();
            let joined = Kept::default();
            let mut passes = 0;
            loop {
                let share = |number| {
                    let known = Kept(Mutex::new(joined.0.lock().unwrap().clone()));
                    let share = Some(EdgeShare { number, of: 3 });
                    let course = Course { unfinished: &known, share, ..ALL };
                    composition.share(ROWS as usize, rules, course).unwrap()
                };
                let shares = [share(2), share(3), share(1)];
                if shares.iter().all(Vec::is_empty) {
                    break;
                }
                for parts in shares {
                    joined.join(parts);
                }
                assert!(joined.0.lock().unwrap().iter().all(Part::is_whole));
                // What is left is done by who joins them.
                let known = Kept(Mutex::new(joined.0.lock().unwrap().clone()));
                let course = Course { unfinished: &known, ..ALL };
                assert!(composition.edges(ROWS as usize, rules, course).unwrap() == expected, "{rules:?}");
                passes += 1;
            }
            assert!(passes > 0);
            passes_most = passes.max(passes_most);
            let course = Course { unfinished: &joined, control: &StopAfter(AtomicUsize::new(200)), ..ALL };
            assert!(composition.edges(ROWS as usize, rules, course).unwrap() == expected, "{rules:?}");
        });
        assert!(passes_most > 1);
    }

    #[test]
    fn parts_of_other_signals_or_rules_are_not_gone_on_with() {
        let identities = |composition: &Composition<'_>, rules| {
            let course = Course { share: Some(EdgeShare { number: 1, of: 1 }), ..ALL };
            let parts = composition.share(ROWS as usize, rules, course).unwrap();
            parts.into_iter().map(|part| part.identity).collect::<HashSet<_>>()
        };
        let mut all = HashSet::new();
        for_each_way(|composition, rules| {
            for rules in [rules, Pruning { top_m: 5, ..rules }] {
                let new = identities(composition, rules);
                assert!(new.iter().all(|identity| all.insert(*identity)));
            }
        });
    }

    #[test]
    fn partners_that_a_damaged_part_names_are_compared_again() {
        for_each_way(|composition, rules| {
            let expected = composition.edges(ROWS as usize, rules, ALL).unwrap();
            let course = Course { share: Some(EdgeShare { number: 1, of: 1 }), ..ALL };
            let parts = composition.share(ROWS as usize, rules, course).unwrap();
            let has_partners = |part: &Part| !part.entries.is_empty() && part.tally.counts.len() == 1;
            let Some(at) = parts.iter().position(has_partners) else { return };
            let damages: [fn(&mut Part); 5] = [
                |part| part.entries[3] ^= 1 << 40,
                |part| part.entries[3] ^= 1,
                |part| part.entries[3] = part.entries[2],
                |part| part.entries[3] |= 0xFFFF_FFFF,
                |part| part.done.push(true),
            ];
            for damage in damages {
                let mut parts = parts.clone();
                damage(&mut parts[at]);
                let course = Course { unfinished: &Kept(Mutex::new(parts)), ..ALL };
                assert!(composition.edges(ROWS as usize, rules, course).unwrap() == expected, "{rules:?}");
            }
        });
    }

    #[test]
    fn no_signal_no_second_side_and_weights_without_sum_give_no_edges_that_say_something() {
        let equal = overlap(9, Weighing::Equal, &mut Numbers(4));
        let none = Composition::new(&[], Combination::Agree);
        let empty = none.edges(9, RULES, ALL).unwrap();
        assert_eq!((empty.edges.report.components, empty.thresholds.len(), none.weight(0, 1).to_bits()), (9, 0, 0));
        let twice: [&dyn Signal; 2] = [&equal, &equal];
        for firsts in [0, 9, 10, usize::MAX] {
            let rules = Pruning { pairs: Population::Across(firsts), ..RULES };
            let voices = voices(&twice, &[1.0, 1.0]);
            let none = Composition::new(&voices, Combination::Agree).edges(9, rules, ALL).unwrap();
            assert_eq!((none.edges.report.pairs, none.edges.offsets.len()), (0, 10));
        }
        for weights in [[0.0, 0.0], [1.0, -1.0], [f64::NAN, 1.0], [f64::MAX, f64::MAX]] {
            let voices = voices(&twice, &weights);
            let rules = Pruning { least: image(0.1), ..RULES };
            let none = Composition::new(&voices, Combination::Weighted).edges(9, rules, ALL).unwrap();
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
        let stopped = composition.edges(9, RULES, Course { control: &Stop, ..ALL });
        assert!(matches!(stopped, Err(Stopped::Cancelled)));
    }
}
