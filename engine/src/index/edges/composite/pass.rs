//! Passes over all pairs, and the similarities of a row with a range of others.

use crate::index::control::{Cancelled, Control};
use crate::index::edges::Population;
use crate::index::edges::composite::{Combination, Voice};
use crate::index::signals::{Scratch, rounded};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Rows that a thread takes at a time.
const LEFT_ROWS: u32 = 64;

/// Rows that these are compared with before the next ones: 512 KiB of vectors with 256 components fit the second-level cache.
const RIGHT_ROWS: u32 = 512;

/// Likewise where no signal is dense: finding where a range begins costs more than what it takes of the cache.
const RIGHT_ROWS_SPARSE: u32 = 8192;

/// After so many pairs what was done is kept: some seconds.
const KEPT_AFTER: u64 = 1 << 29;

/// Blocks of a thread that are visited at least before what was done is kept.
const BLOCKS_MIN: usize = 16;

/// Pairs of a sample.
const SAMPLE: u64 = 1 << 16;

/// All pairs of rows in the order of their keys.
pub struct Pass<'p> {
    /// Rows in all.
    pub rows: u32,
    /// Which pairs.
    population: Population,
    /// Told and asked once a block.
    pub control: &'p dyn Control,
    /// Rows that a few are compared with before the next ones.
    right_rows: u32,
    /// Pairs of the passes that were begun, and those of them that were visited.
    begun: AtomicU64,
    done: AtomicU64,
}

impl<'p> Pass<'p> {
    /// All pairs of so many rows, to be compared by these signals.
    pub fn new(rows: u32, population: Population, voices: &[Voice<'_>], control: &'p dyn Control) -> Self {
        let is_sparse = voices.iter().all(|voice| voice.signal.is_sparse());
        let right_rows = if is_sparse { RIGHT_ROWS_SPARSE } else { RIGHT_ROWS };
        Self { rows, population, control, right_rows, begun: AtomicU64::new(0), done: AtomicU64::new(0) }
    }

    /// How many pairs there are.
    pub fn pairs(&self) -> u64 {
        self.population.count(self.rows as usize)
    }

    /// Where pairs join two sides, the first row of the second.
    fn second(&self) -> Option<u32> {
        match self.population {
            Population::All => None,
            Population::Across(firsts) => Some(u32::try_from(firsts).unwrap_or(u32::MAX).min(self.rows)),
        }
    }

    /// The rows that a row is compared with.
    fn partners(&self, row: u32) -> Range<u32> {
        self.second().unwrap_or(row + 1)..self.rows
    }

    /// Rows of the left sides of pairs.
    fn lefts(&self) -> u32 {
        self.second().unwrap_or(self.rows)
    }

    /// How many blocks the pairs are cut into: some rows with all that they are compared with.
    pub fn blocks(&self) -> usize {
        self.lefts().div_ceil(LEFT_ROWS) as usize
    }

    /// So many blocks are visited between two times that what was done is kept.
    pub fn slice(&self) -> usize {
        let pairs = u64::from(LEFT_ROWS) * u64::from(self.rows.max(1));
        usize::try_from(KEPT_AFTER / pairs).unwrap_or(usize::MAX).max(BLOCKS_MIN * rayon::current_num_threads())
    }

    /// Tells of pairs that are to be visited, of which some were visited before.
    pub fn begin(&self, before: u64) {
        self.begun.fetch_add(self.pairs(), Ordering::Relaxed);
        self.done.fetch_add(before, Ordering::Relaxed);
    }

    /// Visits the pairs of some blocks, each once, as rows with ranges of others; the threads of the pool take one block after
    /// another. Ends early where the control says so.
    pub fn run<S: Send>(
        &self,
        blocks: &[usize],
        start: impl Fn() -> S + Sync,
        visit: impl Fn(&mut S, u32, Range<u32>) + Sync,
    ) -> Visited<S> {
        let next = AtomicUsize::new(0);
        let work = || {
            let (mut state, mut seen, mut done) = (start(), 0, Vec::new());
            while let Some(block) = blocks.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.control.cancelled() {
                    break;
                }
                let pairs = self.visit_block(*block, |row, range| visit(&mut state, row, range));
                let all = self.done.fetch_add(pairs, Ordering::Relaxed) + pairs;
                self.control.advance(all, self.begun.load(Ordering::Relaxed));
                seen += pairs;
                done.push(*block);
            }
            (state, seen, done)
        };
        let mut visited = Visited { states: Vec::new(), pairs: 0, done: Vec::new() };
        for (state, pairs, done) in rayon::broadcast(|_| work()) {
            visited.states.push(state);
            visited.pairs += pairs;
            visited.done.extend(done);
        }
        visited
    }

    /// Visits the pairs of a block, and says how many they are.
    fn visit_block(&self, block: usize, mut visit: impl FnMut(u32, Range<u32>)) -> u64 {
        let first = u32::try_from(block).unwrap_or(u32::MAX).saturating_mul(LEFT_ROWS);
        let rows = first..first.saturating_add(LEFT_ROWS).min(self.lefts());
        let mut seen = 0;
        for right in self.partners(first).step_by(self.right_rows as usize) {
            for row in rows.clone() {
                let partners = self.partners(row);
                let end = right.saturating_add(self.right_rows).min(partners.end);
                let range = partners.start.max(right)..end;
                if range.start < range.end {
                    seen += u64::from(range.end - range.start);
                    visit(row, range);
                }
            }
        }
        seen
    }

    /// Whether two rows are a pair.
    pub fn is_pair(&self, row: u32, other: u32) -> bool {
        let (low, high) = (row.min(other), row.max(other));
        low < self.lefts() && self.partners(low).contains(&high)
    }

    /// Visits some things, many at a time.
    pub fn run_some<T: Sync, S: Send>(
        &self,
        things: &[T],
        start: impl Fn() -> S + Sync + Send,
        visit: impl Fn(&mut S, &T) + Sync + Send,
    ) -> Result<(), Cancelled> {
        things.par_chunks(LEFT_ROWS as usize).try_for_each_init(start, |state, things| {
            if self.control.cancelled() {
                return Err(Cancelled);
            }
            for thing in things {
                visit(state, thing);
            }
            Ok(())
        })
    }

    /// Some pairs, always the same ones, drawn as if at random; there is a pair.
    pub fn sample(&self) -> impl Iterator<Item = (u32, u32)> {
        let mut seed = 1u64;
        let mut below = move |end: u32| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u32::try_from(((seed >> 32) * u64::from(end)) >> 32).unwrap_or(0)
        };
        let (rows, second) = (self.rows, self.second());
        (0..SAMPLE.min(self.pairs())).map(move |_| {
            if let Some(second) = second {
                (below(second), second + below(rows - second))
            } else {
                let (row, other) = (below(rows), below(rows - 1));
                (row, other + u32::from(other >= row))
            }
        })
    }
}

/// What became of some blocks.
pub struct Visited<S> {
    /// The state of each thread.
    pub states: Vec<S>,
    /// Pairs that were visited.
    pub pairs: u64,
    /// The blocks that were: all, unless the control said to stop.
    pub done: Vec<usize>,
}

/// What decides about the pairs of a row with others: the score, where it decides, then the similarity of each signal.
pub struct Lines<'l> {
    voices: &'l [Voice<'l>],
    combination: Combination,
    similarities: Vec<Vec<f32>>,
    scores: Vec<f32>,
    scratch: Scratch,
    refined: Vec<f32>,
}

impl<'l> Lines<'l> {
    /// Nothing read yet.
    pub fn new(voices: &'l [Voice<'l>], combination: Combination) -> Self {
        let similarities = vec![Vec::new(); voices.len()];
        Self { voices, combination, similarities, scores: Vec::new(), scratch: Scratch::default(), refined: Vec::new() }
    }

    /// Reads what a range has of the measures that are wanted, and the first signal where asked for.
    pub fn read(&mut self, row: u32, range: Range<u32>, is_wanted: impl Fn(usize) -> bool, first: bool) {
        let scored = self.combination == Combination::Weighted && is_wanted(0);
        let before = usize::from(self.combination == Combination::Weighted);
        for (at, (voice, line)) in self.voices.iter().zip(&mut self.similarities).enumerate() {
            if scored || is_wanted(at + before) || (first && at == 0) {
                voice.signal.line(row, range.clone(), &mut self.scratch, line);
            } else {
                line.clear();
                line.resize(range.len(), 0.0);
            }
        }
        if scored {
            self.score(range.len());
        }
    }

    /// Reads what some rows have of all measures.
    pub fn read_some(&mut self, row: u32, listed: &[u32]) {
        for (voice, line) in self.voices.iter().zip(&mut self.similarities) {
            voice.signal.some(row, listed, line);
        }
        if self.combination == Combination::Weighted {
            self.score(listed.len());
        }
    }

    /// Reads what some rows of the range that was read last have of a signal that was not wanted then.
    pub fn refine(&mut self, row: u32, range: &Range<u32>, signal: usize, listed: &[u32]) {
        self.voices[signal].signal.some(row, listed, &mut self.refined);
        for (other, similarity) in listed.iter().zip(&self.refined) {
            self.similarities[signal][(other - range.start) as usize] = *similarity;
        }
    }

    /// What was read of a measure.
    pub fn measure(&self, at: usize) -> &[f32] {
        let signal = match self.combination {
            Combination::Agree => Some(at),
            Combination::Weighted => at.checked_sub(1),
        };
        signal.map_or(Some(&self.scores), |at| self.similarities.get(at)).map_or(&[], Vec::as_slice)
    }

    /// What was read of the first signal.
    pub fn first(&self) -> &[f32] {
        self.similarities.first().map_or(&[], Vec::as_slice)
    }

    fn score(&mut self, rows: usize) {
        let all: f64 = self.voices.iter().map(|voice| voice.weight).sum();
        self.scores.clear();
        self.scores.extend((0..rows).map(|at| {
            let weighted = self.voices.iter().zip(&self.similarities);
            let weighted = weighted.map(|(voice, line)| voice.weight * f64::from(line[at]));
            let score = rounded(weighted.sum::<f64>() / all);
            if score.is_finite() { score } else { 0.0 }
        }));
    }
}
