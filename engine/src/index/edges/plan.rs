//! What a build keeps in memory, and what it makes again or puts into a file, so that it needs no more than it may.

use crate::distance::codes::{CODED_BYTES, Keeping};
use crate::index::edges::Pruning;
#[cfg(test)]
use crate::index::edges::lists::Nowhere;
use crate::index::edges::lists::{Outside, Stopped};
use crate::index::edges::scan::{BLOCK_ROWS, LEFT_ROWS, STRIPE};
use crate::index::edges::settle::EXTRA;
use crate::index::edges::state::width;

/// The memory that a build may take, and where it puts what does not fit.
#[derive(Clone, Copy)]
pub struct Memory<'m> {
    /// Bytes that it may take in all; none for [`BYTES_USUAL`], or more where that is too little.
    pub bytes: Option<u64>,
    /// Bytes of these that are taken by what was built before.
    pub taken: u64,
    /// Where the rest goes.
    pub outside: &'m dyn Outside,
}

impl Memory<'_> {
    /// All that is needed.
    #[cfg(test)]
    pub const ALL: Memory<'static> = Memory { bytes: Some(u64::MAX), taken: 0, outside: &Nowhere };

    /// What is left when more is taken.
    pub fn less(self, bytes: u64) -> Self {
        Self { taken: self.taken.saturating_add(bytes), ..self }
    }

    /// Whether there is so much.
    ///
    /// # Errors
    /// [`Stopped::Memory`] where there is not.
    pub fn bears(self, bytes: u64) -> Result<(), Stopped> {
        let needed = self.taken.saturating_add(bytes);
        if self.bytes.is_some_and(|most| most < needed) { Err(Stopped::Memory { needed }) } else { Ok(()) }
    }
}

/// Bytes that a build takes at most, unless it is told otherwise or can't do with less: 2 GiB.
pub const BYTES_USUAL: u64 = 2 << 30;

/// How a build uses memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EdgeMemory {
    /// Bytes that were to be in memory at most, without the vectors, which stay in their files.
    pub planned: u64,
    /// Bytes of partners that were put into a file beside the store's.
    pub spilled: u64,
    /// Whether codes of vectors were made again and again.
    pub codes_again: bool,
}

/// The same, as the steps of a build need it.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Whether codes are kept.
    pub keeping: Keeping,
    /// Blocks of rows that are compared with all columns together.
    pub stripe: usize,
    /// Whether partners lie in a file.
    pub away: bool,
    /// After so many bytes of vectors they are let go; none where all may stay.
    pub vectors: Option<u64>,
    /// What is told of it.
    pub told: EdgeMemory,
}

/// What a plan is made for.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Rows.
    pub rows: usize,
    /// Components of each.
    pub dimensions: usize,
    /// The rules.
    pub rules: Pruning,
    /// Whether partners in memory are written down now and then, which takes as much again.
    pub kept: bool,
    /// Whether partners may lie in a file.
    pub spills: bool,
}

/// What the program takes without any edges, and what is the same for every build.
pub const PROGRAM: u64 = 24 << 20;

/// What a thread takes: counts of similarities, and what it has in hand.
const THREAD: u64 = 5 << 20;

/// What is known of each row: where it lies, which one it is, its key's rank, its errors.
const ROW: u64 = 100;

/// Spare partners of each row while they are gathered.
const SPARES: u64 = 110;

/// Vectors that may be in memory at least.
const VECTORS_MIN: u64 = 4 << 20;

/// Stripes that are compared together at most.
const STRIPES_MAX: u64 = 64;

impl Plan {
    /// Whether columns should meet a whole stripe, one after the other.
    pub fn by_columns(&self) -> bool {
        self.away || self.keeping == Keeping::None
    }

    /// The fastest way that takes no more memory than there is.
    ///
    /// # Errors
    /// [`Stopped::Memory`] where even the smallest takes more.
    pub fn new(shape: Shape, memory: Memory<'_>) -> Result<Self, Stopped> {
        let threads = rayon::current_num_threads();
        let least = shape.least().saturating_add(memory.taken);
        let bytes = memory.bytes.unwrap_or_else(|| BYTES_USUAL.max(least));
        let free = bytes.saturating_sub(memory.taken);
        for (keeping, away) in shape.ways() {
            let needs = |stripe: u64| shape.bytes(keeping, away, stripe, threads);
            let most = if keeping == Keeping::All { STRIPE as u64 } else { STRIPES_MAX };
            if let Some(stripe) = (1..=most).rev().find(|stripe| needs(*stripe) <= free) {
                return Ok(shape.planned((keeping, away), stripe, needs(stripe), free));
            }
        }
        Err(Stopped::Memory { needed: least })
    }
}

impl Shape {
    /// The ways to build, what costs least first.
    fn ways(self) -> impl Iterator<Item = (Keeping, bool)> {
        let ways = [(Keeping::All, false), (Keeping::All, true), (Keeping::None, false), (Keeping::None, true)];
        ways.into_iter().filter(move |(_, away)| self.spills || !away)
    }

    /// Bytes without which nothing is built.
    pub fn least(self) -> u64 {
        let threads = rayon::current_num_threads();
        self.ways().map(|(keeping, away)| self.bytes(keeping, away, 1, threads)).min().unwrap_or(u64::MAX)
    }

    /// Bytes at the step that takes most.
    fn bytes(self, keeping: Keeping, away: bool, stripe: u64, threads: usize) -> u64 {
        let (rows, threads) = (self.rows as u64, threads as u64);
        let codes = CODED_BYTES * self.dimensions.next_multiple_of(64) as u64;
        let list = 8 * (width(self.rows, self.rules) + EXTRA) as u64;
        let chosen = u64::from(self.rules.top_m).min(rows.saturating_sub(1));
        let (block, left) = ((BLOCK_ROWS as u64).min(rows), (stripe * LEFT_ROWS as u64).min(rows));
        let fixed = PROGRAM + threads * THREAD + rows * ROW + self.vectors().min(VECTORS_MIN);
        // While pairs are compared.
        let coded = match keeping {
            Keeping::All => rows * codes + left * codes / CODED_BYTES,
            Keeping::None => left * codes + threads * block * codes,
        };
        let kept = if self.kept { 2 } else { 1 };
        let lists = if away { (left + threads * block) * list } else { rows * list * kept };
        // When edges are made of the choices: each choice with its end and image, then both ends of every edge, by row, by chunk and as
        // they are written.
        let nearest = self.rules.nearest.is_some_and(|nearest| nearest < self.rules.top_m);
        let listed = if nearest { rows * (48 + 16 * chosen) } else { 0 };
        let edges = rows * (8 * chosen + 24 * chosen + SPARES) + listed;
        let last = if away { left.min(LEFT_ROWS as u64) * list } else { rows * list };
        fixed.saturating_add((coded + lists).max(edges + last))
    }

    /// Bytes of the vectors.
    fn vectors(self) -> u64 {
        self.rows as u64 * self.dimensions as u64 * 4
    }

    fn planned(self, (keeping, away): (Keeping, bool), stripe: u64, planned: u64, free: u64) -> Plan {
        let room = free - planned + self.vectors().min(VECTORS_MIN);
        let list = 8 * (width(self.rows, self.rules) + EXTRA) as u64;
        let spilled = if away { self.rows as u64 * list } else { 0 };
        Plan {
            keeping,
            stripe: usize::try_from(stripe).unwrap_or(STRIPE),
            away,
            vectors: (room < self.vectors()).then_some(room),
            told: EdgeMemory { planned, spilled, codes_again: keeping == Keeping::None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::edges::{Cap, Population};

    fn shape(rows: usize) -> Shape {
        let rules = Pruning {
            pairs: Population::All,
            percentile: 95_000,
            top_m: 32,
            cap: Cap::Either,
            nearest: None,
            least: 0,
            apart: false,
        };
        Shape { rows, dimensions: 384, rules, kept: true, spills: true }
    }

    #[test]
    fn plans_take_no_more_than_there_is_and_what_they_say_is_needed_suffices() {
        for rows in [0, 1, 5000, 100_000, 10_000_000] {
            let plan = |bytes| Plan::new(shape(rows), Memory { bytes: Some(bytes), ..Memory::ALL });
            let Err(Stopped::Memory { needed }) = plan(1) else { panic!("a byte is too little") };
            assert!(matches!(plan(needed - 1), Err(Stopped::Memory { .. })));
            let mut ways = Vec::new();
            for share in 0..40 {
                let bytes = needed + needed / 10 * share;
                let plan = plan(bytes).unwrap();
                assert!(plan.told.planned <= bytes);
                assert!(plan.vectors.is_none_or(|vectors| plan.told.planned + vectors <= bytes + VECTORS_MIN));
                ways.push((plan.keeping == Keeping::None, plan.away));
            }
            ways.dedup();
            // More memory is never used worse.
            assert!(ways.is_sorted_by(|a, b| a > b), "{rows} {ways:?}");
            assert_eq!(ways.last(), Some(&(false, false)));
        }
        // Without a bound, as much as is needed.
        assert!(Plan::new(shape(50_000_000), Memory { bytes: None, ..Memory::ALL }).is_ok());
    }
}
