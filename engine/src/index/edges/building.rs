//! A build of edges, step by step: begun, run over blocks of pairs, and finished.

use crate::distance::codes::{Codes, Keeping};
use crate::distance::rows::Rows;
use crate::index::control::{Cancelled, Control, Quiet};
use crate::index::edges::bracket::Bracket;
use crate::index::edges::part::{Identity, Part};
use crate::index::edges::scan::{BLOCK_PAIRS, Choices, Progress, Scan, parts};
use crate::index::edges::settle::{EXTRA, Settling};
use crate::index::edges::sides::Sides;
use crate::index::edges::state::{State, order_statistic, width};
use crate::index::edges::{Change, EdgeReport, EdgeSet, Pruning, Reserve, Similarities, number, ordered};

/// Where a build is kept while it is not finished.
pub trait Unfinished: Sync {
    /// What was kept last of a build, if it can be gone on with.
    ///
    /// # Errors
    /// [`Cancelled`] where nothing but what was kept may be used.
    fn last(&self, identity: &Identity) -> Result<Option<Part>, Cancelled>;
    /// Keeps a part instead of what was kept before of its build. What can't be kept is done anew.
    fn keep(&self, part: &Part);
    /// Notes a part that is done, so that it is kept with the next one.
    fn note(&self, _part: &Part) {}
}

/// Nothing is kept.
#[derive(Clone, Copy, Debug)]
pub struct Forgotten;

impl Unfinished for Forgotten {
    fn last(&self, _: &Identity) -> Result<Option<Part>, Cancelled> {
        Ok(None)
    }

    fn keep(&self, _: &Part) {}
}

/// All that the steps of a build read.
pub struct Building<'b> {
    rules: Pruning,
    codes: Codes<'b>,
    sides: Sides,
    /// How far estimates may be off that choose partners, in their units and as a similarity.
    tolerance: (i64, f64),
    /// Where the threshold may lie, and how similar pairs are, by a sample of them; where there are pairs.
    sampled: Option<(Bracket, Similarities)>,
    identity: Identity,
}

/// What a part comes to that is whole.
pub enum Outcome {
    /// These edges, and what is kept beside them.
    Edges(EdgeSet, Reserve),
    /// The threshold lay elsewhere, or too many different similarities lie there: pairs are to be compared again.
    Again(Part),
}

/// After so many pairs what was done is kept: a few seconds.
const KEPT_AFTER: usize = 1 << 31;

impl<'b> Building<'b> {
    /// Encodes the rows and looks at a sample of the pairs; `identity` tells them and the order of their keys from others.
    pub fn new(rows: &'b Rows<'b>, key_ranks: &[u32], rules: Pruning, identity: &Identity) -> Self {
        let codes = Codes::new(rows, ordered(rows, key_ranks), Keeping::All);
        let sides = Sides::all(codes.rows(), rules.pairs);
        let tolerance = codes.usual_error();
        let tolerance = (tolerance, codes.reach_of(tolerance));
        let mut hash = blake3::Hasher::new();
        hash.update(identity).update(format!("{rules:?}").as_bytes());
        let identity = *hash.finalize().as_bytes();
        let some = rules.pairs.count(codes.rows()) > 0;
        let sampled = some.then(|| Bracket::sampled(&codes, rules));
        Self { rules, codes, sides, tolerance, sampled, identity }
    }

    /// Rows that are compared.
    pub fn rows(&self) -> usize {
        self.codes.rows()
    }

    fn pairs(&self) -> u64 {
        self.rules.pairs.count(self.rows())
    }

    /// The edges where there is no pair, or where no pair is at the index of the threshold.
    pub fn without_edges(&self) -> EdgeSet {
        let report = EdgeReport { rows: number(self.rows()), pairs: self.pairs(), ..EdgeReport::default() };
        EdgeSet::of(&[], report)
    }

    fn width(&self) -> usize {
        width(self.rows(), self.rules)
    }

    fn scan<'s>(&'s self, control: &'s dyn Control) -> Scan<'s> {
        let Self { codes, sides, tolerance, .. } = self;
        Scan { codes, sides, tolerance: tolerance.0, control }
    }

    /// A part of which nothing is done.
    fn begin(&self) -> Part {
        self.begin_at(self.sampled.as_ref().map_or(Bracket::between(0, 0), |sampled| sampled.0))
    }

    /// How similar pairs are, by the sample.
    pub fn similarities(&self) -> Similarities {
        self.sampled.as_ref().map(|sampled| sampled.1.clone()).unwrap_or_default()
    }

    fn begin_at(&self, bracket: Bracket) -> Part {
        Part::new(self.identity, bracket, self.blocks(), self.rows(), self.width() + EXTRA)
    }

    /// How many blocks the pairs are cut into.
    fn blocks(&self) -> usize {
        self.scan(&Quiet).blocks()
    }

    /// What was kept of this build, or a part of which nothing is done.
    ///
    /// # Errors
    /// As [`Unfinished::last`] says.
    pub fn resumed(&self, unfinished: &dyn Unfinished) -> Result<Part, Cancelled> {
        Ok(unfinished.last(&self.identity)?.filter(|part| self.is_of(part)).unwrap_or_else(|| self.begin()))
    }

    /// Whether a part is one of this build.
    fn is_of(&self, part: &Part) -> bool {
        let width = self.width() + EXTRA;
        let fits = part.width == width && part.entries.len() == width * self.rows() && part.done.len() == self.blocks();
        // A part may come from elsewhere.
        let rows = number(self.rows());
        let known = |entry: &u64| parts(*entry).1.is_none_or(|partner| partner < rows);
        part.identity == self.identity && fits && part.entries.iter().all(known)
    }

    /// Compares the pairs of the blocks that are wanted and not done.
    ///
    /// # Errors
    /// When `control` says so; what was done until then is kept.
    pub fn run(
        &self,
        part: &mut Part,
        wanted: impl Fn(usize) -> bool,
        unfinished: &dyn Unfinished,
        control: &dyn Control,
    ) -> Result<(), Cancelled> {
        let scan = self.scan(control);
        let open: Vec<usize> = (0..part.done.len()).filter(|block| !part.done[*block] && wanted(*block)).collect();
        let slice = (KEPT_AFTER / BLOCK_PAIRS).max(1);
        for blocks in open.chunks(slice) {
            let choices = Choices::new(&mut part.entries, part.width, part.bracket.below(self.tolerance.1));
            let progress = Progress { before: part.pairs, total: self.pairs() };
            let seen = scan.look_at(blocks, part.bracket, &choices, progress);
            part.pairs = part.pairs.saturating_add(seen.pairs);
            part.tally.add(&seen.tally);
            seen.done.iter().for_each(|block| part.done[*block] = true);
            let cancelled = seen.done.len() < blocks.len();
            if cancelled || blocks.len() == slice {
                unfinished.keep(part);
            }
            if cancelled {
                return Err(Cancelled);
            }
        }
        unfinished.note(part);
        Ok(())
    }

    /// Makes edges of a part that is whole.
    ///
    /// # Errors
    /// When `control` says so.
    pub fn finish(&self, mut part: Part, control: &dyn Control) -> Result<Outcome, Cancelled> {
        let Self { codes, rules, .. } = self;
        let (bracket, width, pairs) = (part.bracket, self.width(), self.pairs());
        let next = match part.tally.bin_of(order_statistic(pairs, rules.percentile)) {
            Ok((bin, before)) if bracket.shift == 0 => {
                let low = bracket.low;
                let tolerance = self.tolerance.1;
                let unsure = Settling { codes, tolerance, width, low }.settle(&mut part.entries);
                let Part { tally, width: stride, entries, .. } = part;
                let mut state = State { low, tally, width, stride, entries, pairs };
                let firsts = rules.pairs.firsts(codes.rows());
                Change { codes, firsts, control }.renew(&mut state, &unsure, &[])?;
                let (edges, reserve) = state.edges(codes.order(), *rules, (low + bin, before));
                return Ok(Outcome::Edges(edges, reserve));
            }
            Ok((bin, _)) => bracket.bin(bin),
            Err(lower) => bracket.beyond(lower),
        };
        // Vectors of a damaged file may have similarities that are no numbers: then no pair is at the index.
        if next == bracket {
            return Ok(Outcome::Edges(self.without_edges(), Reserve::default()));
        }
        Ok(Outcome::Again(self.begin_at(next)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::normalise;
    use crate::index::edges::{Cap, Population, build};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn vectors(rows: usize, dimensions: usize) -> Vec<f32> {
        let mut seed = 3_u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from(u16::try_from(seed >> 16).unwrap()) / 65_536.0 - 0.4
        };
        let mut matrix: Vec<f32> = (0..rows * dimensions).map(|_| next()).collect();
        matrix.chunks_mut(dimensions).for_each(|row| normalise(row).unwrap());
        matrix
    }

    const ROWS: u32 = 1900;
    const RULES: Pruning = Pruning {
        pairs: Population::All,
        percentile: 95_000,
        top_m: 5,
        cap: Cap::Either,
        nearest: None,
        least: 0,
        apart: false,
    };

    #[test]
    fn shares_joined_in_any_order_give_the_edges_of_a_single_run() {
        let matrix = vectors(ROWS as usize, 6);
        let ranks: Vec<u32> = (0..ROWS).rev().collect();
        for pairs in [Population::All, Population::Across(700)] {
            let rules = Pruning { pairs, ..RULES };
            let expected = build(&Rows::of_matrix(&matrix, 6), &ranks, rules, &[7; 32], &Forgotten, &Quiet).unwrap();
            let rows = Rows::of_matrix(&matrix, 6);
            let building = Building::new(&rows, &ranks, rules, &[7; 32]);
            let share = |number: usize| {
                let mut part = building.begin();
                building.run(&mut part, |block| block % 3 == number, &Forgotten, &Quiet).unwrap();
                assert!(!part.is_whole());
                part
            };
            let mut joined = share(2);
            assert!(joined.join(&share(0)) && joined.join(&share(1)) && joined.is_whole());
            match building.finish(joined, &Quiet).unwrap() {
                Outcome::Edges(edges, reserve) => assert!((edges, reserve) == (expected.0, expected.1)),
                Outcome::Again(_) => panic!("a single run finishes"),
            }
        }
    }

    /// Keeps the last part in memory.
    #[derive(Default)]
    struct Memory(Mutex<Option<Part>>);

    impl Unfinished for Memory {
        fn last(&self, identity: &Identity) -> Result<Option<Part>, Cancelled> {
            Ok(self.0.lock().unwrap().clone().filter(|part| part.identity == *identity))
        }

        fn keep(&self, part: &Part) {
            *self.0.lock().unwrap() = Some(part.clone());
        }
    }

    /// Stops after some blocks.
    struct StopAfter(AtomicUsize);

    impl Control for StopAfter {
        fn advance(&self, _: u64, _: u64) {}

        fn cancelled(&self) -> bool {
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
        }
    }

    #[test]
    fn a_build_that_was_stopped_again_and_again_goes_on_and_gives_the_same_edges() {
        let matrix = vectors(ROWS as usize, 6);
        let ranks: Vec<u32> = (0..ROWS).collect();
        let expected = build(&Rows::of_matrix(&matrix, 6), &ranks, RULES, &[7; 32], &Forgotten, &Quiet).unwrap();
        let memory = Memory::default();
        let mut stops = 0;
        let built = loop {
            match build(&Rows::of_matrix(&matrix, 6), &ranks, RULES, &[7; 32], &memory, &StopAfter(AtomicUsize::new(4)))
            {
                Ok(built) => break built,
                Err(Cancelled) => stops += 1,
            }
            let done =
                memory.0.lock().unwrap().as_ref().map_or(0, |part| part.done.iter().filter(|done| **done).count());
            assert_eq!(done, 4 * stops);
        };
        assert!(stops > 2 && built == expected);
        // Of other vectors nothing is gone on with.
        let other = vectors(ROWS as usize, 5);
        let expected = build(&Rows::of_matrix(&other, 5), &ranks, RULES, &[8; 32], &Forgotten, &Quiet).unwrap();
        assert!(build(&Rows::of_matrix(&other, 5), &ranks, RULES, &[8; 32], &memory, &Quiet).unwrap() == expected);
    }
}
