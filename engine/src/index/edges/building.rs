//! A build of edges, step by step: begun, run over blocks of pairs, and finished.

use crate::distance::codes::Codes;
use crate::distance::rows::{LetGo, Rows};
use crate::error::StorageError;
use crate::index::control::{Cancelled, Control, Quiet};
use crate::index::edges::bracket::Bracket;
use crate::index::edges::lists::{Lists, Outside, Stopped};
use crate::index::edges::offers::Choices;
use crate::index::edges::part::{Identity, Part};
use crate::index::edges::plan::{Memory, Plan, Shape};
use crate::index::edges::scan::{BLOCK_PAIRS, Progress, Scan, parts};
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
    /// Likewise, of a step that follows from others, of which nothing may have been done.
    ///
    /// # Errors
    /// As of [`Unfinished::last`].
    fn later(&self, identity: &Identity) -> Result<Option<Part>, Cancelled> {
        self.last(identity)
    }
    /// Keeps a part instead of what was kept before of its build. What can't be kept is done anew.
    fn keep(&self, part: &Part);
    /// Notes a part that is done, so that it is kept with the next one.
    fn note(&self, _part: &Part) {}
    /// Bytes of memory that what was kept takes while edges are built from it.
    fn bytes(&self) -> u64 {
        0
    }
    /// Whether it keeps anything.
    fn keeps(&self) -> bool {
        true
    }
}

/// What is kept of parts, apart from what is noted: nothing is built after this part.
pub struct Last<'u>(pub &'u dyn Unfinished);

impl Unfinished for Last<'_> {
    fn last(&self, identity: &Identity) -> Result<Option<Part>, Cancelled> {
        self.0.last(identity)
    }

    fn keep(&self, part: &Part) {
        self.0.keep(part);
    }

    fn keeps(&self) -> bool {
        self.0.keeps()
    }
}

/// Nothing is kept.
#[derive(Clone, Copy, Debug)]
pub struct Forgotten;

impl Unfinished for Forgotten {
    fn last(&self, _: &Identity) -> Result<Option<Part>, Cancelled> {
        Ok(None)
    }

    fn keep(&self, _: &Part) {}

    fn keeps(&self) -> bool {
        false
    }
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
    plan: Plan,
    outside: &'b dyn Outside,
}

/// A build on its way.
pub struct Work {
    /// What was seen. Where the lists of partners lie elsewhere, its entries are none.
    pub part: Part,
    /// These lists.
    away: Option<Lists>,
}

impl From<Part> for Work {
    fn from(part: Part) -> Self {
        Self { part, away: None }
    }
}

/// What a part comes to that is whole.
pub enum Outcome {
    /// These edges, and what is kept beside them.
    Edges(EdgeSet, Reserve),
    /// The threshold lay elsewhere, or too many different similarities lie there: pairs are to be compared again.
    Again(Work),
}

/// After so many pairs what was done is kept: a few seconds.
const KEPT_AFTER: usize = 1 << 31;

impl<'b> Building<'b> {
    /// Encodes the rows and looks at a sample of the pairs; `identity` tells them and the order of their keys from others.
    pub fn new(
        rows: &'b Rows<'b>,
        key_ranks: &[u32],
        rules: Pruning,
        identity: &Identity,
        (plan, outside): (Plan, &'b dyn Outside),
    ) -> Self {
        let let_go = plan.vectors.map(|bytes| LetGo::new(bytes, move || outside.let_go()));
        let codes = Codes::new(rows, ordered(rows, key_ranks), plan.keeping, let_go);
        let sides = Sides::all(codes.rows(), rules.pairs);
        let tolerance = codes.usual_error();
        let tolerance = (tolerance, codes.reach_of(tolerance));
        let mut hash = blake3::Hasher::new();
        hash.update(identity).update(format!("{rules:?}").as_bytes());
        let identity = *hash.finalize().as_bytes();
        let some = rules.pairs.count(codes.rows()) > 0;
        let sampled = some.then(|| Bracket::sampled(&codes, rules));
        Self { rules, codes, sides, tolerance, sampled, identity, plan, outside }
    }

    /// Likewise, for a share of the pairs, whose partners are to be in memory.
    ///
    /// # Errors
    /// Where the memory is too little.
    pub fn of_share(
        rows: &'b Rows<'b>,
        key_ranks: &[u32],
        rules: Pruning,
        identity: &Identity,
        memory: Memory<'b>,
    ) -> Result<Self, Stopped> {
        let shape = Shape { rows: key_ranks.len(), dimensions: rows.dimensions(), rules, kept: true, spills: false };
        Ok(Self::new(rows, key_ranks, rules, identity, (Plan::new(shape, memory)?, memory.outside)))
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
        EdgeSet::of(std::iter::empty, report)
    }

    fn width(&self) -> usize {
        width(self.rows(), self.rules)
    }

    fn scan<'s>(&'s self, control: &'s dyn Control) -> Scan<'s> {
        let Self { codes, sides, tolerance, plan, .. } = self;
        Scan { codes, sides, tolerance: tolerance.0, stripe: plan.stripe, by_columns: plan.by_columns(), control }
    }

    /// Work of which nothing is done.
    pub fn begin(&self) -> Result<Work, StorageError> {
        self.begin_at(self.sampled.as_ref().map_or(Bracket::between(0, 0), |sampled| sampled.0))
    }

    /// How similar pairs are, by the sample.
    pub fn similarities(&self) -> Similarities {
        self.sampled.as_ref().map(|sampled| sampled.1.clone()).unwrap_or_default()
    }

    fn begin_at(&self, bracket: Bracket) -> Result<Work, StorageError> {
        let (width, rows) = (self.width(), self.rows());
        let stride = width + EXTRA;
        if !self.plan.away {
            return Ok(Work { part: Part::new(self.identity, bracket, self.blocks(), rows, stride), away: None });
        }
        let room = self.outside.room((rows * stride) as u64)?;
        let part = Part::new(self.identity, bracket, self.blocks(), 0, stride);
        Ok(Work { part, away: Some(Lists::away(room, rows, stride, width)) })
    }

    /// How many blocks the pairs are cut into.
    fn blocks(&self) -> usize {
        self.scan(&Quiet).blocks()
    }

    /// What was kept of this build, or work of which nothing is done. Where partners lie elsewhere, nothing was kept.
    ///
    /// # Errors
    /// As [`Unfinished::last`] says, and where there is no room for partners elsewhere.
    pub fn resumed(&self, unfinished: &dyn Unfinished) -> Result<Work, Stopped> {
        let last = unfinished.last(&self.identity)?.filter(|part| self.is_of(part));
        let mut work = match last {
            Some(part) if !self.plan.away => return Ok(Work { part, away: None }),
            Some(part) => self.begin_at(part.bracket).map(|begun| (begun, Some(part)))?,
            None => (self.begin()?, None),
        };
        if let (Work { part, away: Some(lists) }, Some(mut last)) = (&mut work.0, work.1) {
            lists.fill(&std::mem::take(&mut last.entries))?;
            *part = last;
        }
        Ok(work.0)
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
    /// When `control` says so; what was done until then is kept, unless partners lie elsewhere. Where these can't be read or
    /// written.
    pub fn run(
        &self,
        work: &mut Work,
        wanted: impl Fn(usize) -> bool,
        unfinished: &dyn Unfinished,
        control: &dyn Control,
    ) -> Result<(), Stopped> {
        let scan = self.scan(control);
        let Work { part, away } = work;
        let open: Vec<usize> = (0..part.done.len()).filter(|block| !part.done[*block] && wanted(*block)).collect();
        let open = scan.in_order(open);
        let slice = (KEPT_AFTER / BLOCK_PAIRS).max(1);
        let floor = part.bracket.below(self.tolerance.1);
        for blocks in open.chunks(slice) {
            let choices = match away {
                None => Choices::new(&mut part.entries, part.width, floor),
                Some(lists) => Choices::of_lists(lists, floor)?,
            };
            let progress = Progress { before: part.pairs, total: self.pairs() };
            let seen = scan.look_at(blocks, part.bracket, &choices, progress)?;
            drop(choices);
            part.pairs = part.pairs.saturating_add(seen.pairs);
            part.tally.add(&seen.tally);
            seen.done.iter().for_each(|block| part.done[*block] = true);
            let cancelled = seen.done.len() < blocks.len();
            if away.is_none() && (cancelled || blocks.len() == slice) {
                unfinished.keep(part);
            }
            if cancelled {
                return Err(Stopped::Cancelled);
            }
        }
        if away.is_none() {
            unfinished.note(part);
        }
        Ok(())
    }

    /// Makes edges of work that is whole.
    ///
    /// # Errors
    /// When `control` says so, or where partners lie elsewhere and can't be read or written.
    pub fn finish(&mut self, work: Work, control: &dyn Control) -> Result<Outcome, Stopped> {
        let Work { mut part, away } = work;
        let (bracket, width, pairs) = (part.bracket, self.width(), self.pairs());
        let next = match part.tally.bin_of(order_statistic(pairs, self.rules.percentile)) {
            Ok((bin, before)) if bracket.shift == 0 => {
                let (low, stride) = (bracket.low, part.width);
                let entries = std::mem::take(&mut part.entries);
                let mut lists = away.unwrap_or_else(|| Lists::here(entries, stride, width));
                let settling = Settling { codes: &self.codes, tolerance: self.tolerance.1, width, low };
                let unsure = settling.settle(&mut lists)?;
                let mut state = State { low, tally: part.tally, width, lists, pairs };
                let firsts = self.rules.pairs.firsts(self.rows());
                let (stripe, by_columns) = (self.plan.stripe, self.plan.by_columns());
                Change { codes: &self.codes, firsts, stripe, by_columns, control }.renew(&mut state, &unsure, &[])?;
                self.codes.forget();
                if self.plan.vectors.is_some() {
                    self.outside.let_go();
                }
                let (edges, reserve) = state.edges(self.codes.order(), self.rules, (low + bin, before))?;
                return Ok(Outcome::Edges(edges, reserve));
            }
            Ok((bin, _)) => bracket.bin(bin),
            Err(lower) => bracket.beyond(lower),
        };
        // Vectors of a damaged file may have similarities that are no numbers: then no pair is at the index.
        if next == bracket {
            return Ok(Outcome::Edges(self.without_edges(), Reserve::default()));
        }
        Ok(Outcome::Again(self.begin_at(next)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::codes::Keeping;
    use crate::distance::normalise;
    use crate::index::edges::lists::Nowhere;
    use crate::index::edges::lists::tests::{Elsewhere, MEMORY};
    use crate::index::edges::{Cap, EdgeMemory, Population, build};
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
            let expected =
                build(&Rows::of_matrix(&matrix, 6), &ranks, rules, &[7; 32], &Forgotten, MEMORY, &Quiet).unwrap();
            let rows = Rows::of_matrix(&matrix, 6);
            let shape = Shape { rows: ranks.len(), dimensions: 6, rules, kept: false, spills: true };
            let plan = Plan::new(shape, MEMORY).unwrap();
            let mut building = Building::new(&rows, &ranks, rules, &[7; 32], (plan, &Nowhere));
            let share = |number: usize| {
                let mut work = building.begin().unwrap();
                building.run(&mut work, |block| block % 3 == number, &Forgotten, &Quiet).unwrap();
                assert!(!work.part.is_whole());
                work.part
            };
            let mut joined = share(2);
            assert!(joined.join(&share(0)) && joined.join(&share(1)) && joined.is_whole());
            match building.finish(joined.into(), &Quiet).unwrap() {
                Outcome::Edges(edges, reserve) => assert!((edges, reserve) == (expected.edges, expected.reserve)),
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
        let expected =
            build(&Rows::of_matrix(&matrix, 6), &ranks, RULES, &[7; 32], &Forgotten, MEMORY, &Quiet).unwrap();
        let memory = Memory::default();
        let mut stops = 0;
        let built = loop {
            match build(
                &Rows::of_matrix(&matrix, 6),
                &ranks,
                RULES,
                &[7; 32],
                &memory,
                MEMORY,
                &StopAfter(AtomicUsize::new(4)),
            ) {
                Ok(built) => break built,
                Err(Stopped::Cancelled) => stops += 1,
                Err(other) => panic!("{other}"),
            }
            let done =
                memory.0.lock().unwrap().as_ref().map_or(0, |part| part.done.iter().filter(|done| **done).count());
            assert_eq!(done, 4 * stops);
        };
        assert!(stops > 2 && (built.edges, built.reserve) == (expected.edges, expected.reserve));
        // Of other vectors nothing is gone on with.
        let other = vectors(ROWS as usize, 5);
        let expected = build(&Rows::of_matrix(&other, 5), &ranks, RULES, &[8; 32], &Forgotten, MEMORY, &Quiet).unwrap();
        let built = build(&Rows::of_matrix(&other, 5), &ranks, RULES, &[8; 32], &memory, MEMORY, &Quiet).unwrap();
        assert!((built.edges, built.reserve) == (expected.edges, expected.reserve));
    }

    /// A build with a plan of its own.
    fn built(
        rows: &Rows<'_>,
        ranks: &[u32],
        rules: Pruning,
        (plan, outside): (Plan, &Elsewhere),
    ) -> Result<(EdgeSet, Reserve), Stopped> {
        let mut building = Building::new(rows, ranks, rules, &[7; 32], (plan, outside));
        let mut work = building.begin()?;
        building.run(&mut work, |_| true, &Forgotten, &Quiet)?;
        match building.finish(work, &Quiet)? {
            Outcome::Edges(edges, reserve) => Ok((edges, reserve)),
            Outcome::Again(_) => panic!("a single run finishes"),
        }
    }

    #[test]
    fn edges_are_the_same_wherever_codes_and_partners_lie() {
        let matrix = vectors(ROWS as usize, 6);
        let bytes: Vec<u8> = matrix.iter().flat_map(|x| x.to_le_bytes()).collect();
        let rows = Rows::of_bytes(bytes.chunks(24), 6);
        let ranks: Vec<u32> = (0..ROWS).rev().collect();
        let near = Pruning { nearest: Some(2), cap: Cap::Both, apart: true, ..RULES };
        for rules in [RULES, Pruning { pairs: Population::Across(700), ..near }] {
            let together = Rows::of_matrix(&matrix, 6);
            let expected = build(&together, &ranks, rules, &[7; 32], &Forgotten, MEMORY, &Quiet).unwrap();
            for (keeping, away) in
                [(Keeping::All, false), (Keeping::All, true), (Keeping::None, false), (Keeping::None, true)]
            {
                let plan = Plan { keeping, stripe: 1, away, vectors: Some(4096), told: EdgeMemory::default() };
                let outside = Elsewhere::default();
                let found = built(&rows, &ranks, rules, (plan, &outside)).unwrap();
                assert!(found == (expected.edges.clone(), expected.reserve.clone()), "{keeping:?} {away}");
                assert!(outside.let_go.into_inner() > 0);
                assert_eq!(outside.written.load(Ordering::Relaxed) > 0, away);
            }
        }
    }

    #[test]
    fn a_full_disk_ends_a_build_whose_partners_lie_there() {
        let matrix = vectors(ROWS as usize, 6);
        let rows = Rows::of_matrix(&matrix, 6);
        let ranks: Vec<u32> = (0..ROWS).collect();
        let plan = Plan { keeping: Keeping::None, stripe: 1, away: true, vectors: None, told: EdgeMemory::default() };
        let all = Elsewhere::default();
        built(&rows, &ranks, RULES, (plan, &all)).unwrap();
        let all = all.written.load(Ordering::Relaxed);
        for bytes_max in [0, all / 2, all - 1] {
            let outside = Elsewhere { bytes_max: Some(bytes_max), ..Elsewhere::default() };
            let stopped = built(&rows, &ranks, RULES, (plan, &outside));
            assert!(matches!(stopped, Err(Stopped::Storage(_))), "{bytes_max} of {all}");
        }
    }
}
