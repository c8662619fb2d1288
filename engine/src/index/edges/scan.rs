//! Passes over all pairs: what is counted around the threshold, and which partners each row chooses.
//!
//! Codes tell of most pairs on which side of the bracket they lie; only the others, and those that a row might choose,
//! are compared by the similarity itself.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::distance::codes::{Coded, Codes, FINE_NEVER, Lefts, NEVER};
use crate::distance::pair_dots;
use crate::distance::tile::{Columns, Line, Listed, Products, TILE_COLUMNS, TILE_ROWS, products, sift};
use crate::error::StorageError;
use crate::index::control::Control;
use crate::index::edges::bracket::Bracket;
use crate::index::edges::image::{image, score};
use crate::index::edges::lists::Stopped;
use crate::index::edges::offers::Choices;
use crate::index::edges::sides::Sides;
use std::collections::BTreeSet;

/// All that a pass over the pairs reads.
pub struct Scan<'s> {
    /// The codes of the rows, in the order of their keys: all below counts places in it.
    pub codes: &'s Codes<'s>,
    /// Which pairs.
    pub sides: &'s Sides,
    /// Partners are offered by what the finer codes estimate, where that is as near to their similarity, in units of
    /// [`Codes::fine_unit`]; else by the similarity.
    pub tolerance: i64,
    /// Blocks of rows on the left that are compared together.
    pub stripe: usize,
    /// Whether every column meets all rows of a stripe before the next one comes: then its codes, and its list, need be there
    /// only once a stripe.
    pub by_columns: bool,
    /// Asked once a block.
    pub control: &'s dyn Control,
}

/// What one pass saw, or one thread of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Pairs with images below the bracket.
    pub below: u64,
    /// Pairs in each bin of the bracket.
    pub counts: Vec<u64>,
}

/// Rows of a block: whole tiles and whole panels. Their codes and vectors fit the second-level cache together.
pub const BLOCK_ROWS: usize = TILE_ROWS * TILE_COLUMNS / 2;

/// Rows on the left that are compared with a block before the next one is fetched.
pub const LEFT_ROWS: usize = 8 * BLOCK_ROWS;

/// So many of these, one after another, are a stripe, unless memory is scarce: their codes are packed together.
pub const STRIPE: usize = 8;

/// Pairs of a block at most.
pub const BLOCK_PAIRS: usize = LEFT_ROWS * BLOCK_ROWS;

/// What some blocks saw.
pub struct Seen {
    /// What their pairs are like.
    pub tally: Tally,
    /// How many these are.
    pub pairs: u64,
    /// The blocks that are done: all that were asked for, unless the control said to stop.
    pub done: Vec<usize>,
}

/// Pairs that were compared before, and those that will have been in the end.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Before.
    pub before: u64,
    /// In the end.
    pub total: u64,
}

impl Scan<'_> {
    /// How many blocks all pairs are cut into.
    pub fn blocks(&self) -> usize {
        self.sides.left.len().div_ceil(LEFT_ROWS) * self.rights()
    }

    fn rights(&self) -> usize {
        self.codes.rows().div_ceil(BLOCK_ROWS)
    }

    /// Compares all pairs.
    ///
    /// # Errors
    /// When the control says so, or lists that lie elsewhere can't be read or written.
    pub fn pass(&self, bracket: Bracket, choices: &Choices<'_>) -> Result<Tally, Stopped> {
        let blocks = self.in_order((0..self.blocks()).collect());
        let seen = self.look_at(&blocks, bracket, choices, Progress { before: 0, total: self.sides.pairs })?;
        if seen.done.len() < blocks.len() { Err(Stopped::Cancelled) } else { Ok(seen.tally) }
    }

    /// Some blocks in the order in which they are compared.
    pub fn in_order(&self, mut blocks: Vec<usize>) -> Vec<usize> {
        if self.by_columns {
            let rights = self.rights().max(1);
            blocks.sort_unstable_by_key(|block| (block / rights / self.stripe, block % rights, block / rights));
        }
        blocks
    }

    /// Compares the pairs of some blocks, in order, which the threads of the pool take one after another. What they see of a
    /// block does not depend on the others.
    ///
    /// # Errors
    /// Where lists lie elsewhere and can't be read or written.
    pub fn look_at(
        &self,
        blocks: &[usize],
        bracket: Bracket,
        choices: &Choices<'_>,
        progress: Progress,
    ) -> Result<Seen, StorageError> {
        let tally = Tally { below: 0, counts: vec![0; bracket.bins as usize] };
        let mut seen = Seen { tally, pairs: 0, done: Vec::new() };
        let stripe = |block: &usize| block / self.rights() / self.stripe;
        for blocks in blocks.chunk_by(|a, b| stripe(a) == stripe(b)) {
            let before = seen.done.len();
            self.look_at_stripe(blocks, bracket, choices, progress, &mut seen)?;
            if seen.done.len() - before < blocks.len() {
                break;
            }
        }
        Ok(seen)
    }

    /// Compares the pairs of some blocks of one stripe.
    fn look_at_stripe(
        &self,
        blocks: &[usize],
        bracket: Bracket,
        choices: &Choices<'_>,
        progress: Progress,
        seen: &mut Seen,
    ) -> Result<(), StorageError> {
        let lefts = || blocks.iter().map(|block| block / self.rights());
        let start = lefts().min().unwrap_or(0) * LEFT_ROWS;
        let end = ((lefts().max().unwrap_or(0) + 1) * LEFT_ROWS).min(self.sides.left.len());
        let left = self.sides.left.get(start..end).unwrap_or_default();
        let pinned: BTreeSet<usize> = left.iter().map(|place| *place as usize / BLOCK_ROWS).collect();
        pinned.iter().try_for_each(|block| choices.fetch(*block).map(drop))?;
        let lefts = self.codes.lefts(left.to_vec());
        let items: Vec<&[usize]> = if self.by_columns {
            blocks.chunk_by(|a, b| a % self.rights() == b % self.rights()).collect()
        } else {
            blocks.chunks(1).collect()
        };
        let (next, pairs) = (AtomicUsize::new(0), AtomicU64::new(progress.before + seen.pairs));
        let work = || -> Result<(Tally, Vec<usize>), StorageError> {
            let (mut block, mut done) = (Block::new(self, (start, &lefts), bracket, choices), Vec::new());
            let mut room = Coded::default();
            while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                let asked = done.len() + item.len();
                let seen = self.columns(item, &mut block, &mut room, &mut done)?;
                let before = pairs.fetch_add(seen, Ordering::Relaxed);
                self.control.advance(before + seen, progress.total);
                if done.len() < asked {
                    break;
                }
            }
            Ok((block.tally, done))
        };
        for some in rayon::broadcast(|_| work()) {
            let (some, some_done) = some?;
            seen.tally.add(&some);
            seen.done.extend(some_done);
        }
        seen.pairs = pairs.into_inner() - progress.before;
        pinned.iter().try_for_each(|block| choices.put_back(*block))
    }

    /// Compares the pairs of blocks that have the same columns, unless the control says to stop, and says how many that were.
    fn columns(
        &self,
        blocks: &[usize],
        block: &mut Block<'_, '_>,
        room: &mut Coded,
        done: &mut Vec<usize>,
    ) -> Result<u64, StorageError> {
        let right = blocks.first().map_or(0, |block| block % self.rights());
        let columns = right * BLOCK_ROWS..((right + 1) * BLOCK_ROWS).min(self.codes.rows());
        let left = |number: &usize| number / self.rights() * LEFT_ROWS;
        if !blocks.iter().any(|number| self.sides.meet(left(number), &columns)) {
            done.extend(if self.control.cancelled() { &[] } else { blocks });
            return Ok(0);
        }
        let coded = self.codes.columns(columns.clone(), room);
        let fetched = block.choices.fetch(right)?;
        let mut seen = 0;
        for number in blocks {
            if self.control.cancelled() {
                break;
            }
            seen += block.scan(left(number), &columns, coded);
            done.push(*number);
        }
        if fetched {
            block.choices.put_back(right)?;
        }
        Ok(seen)
    }
}

impl Tally {
    /// Adds what another one saw.
    pub fn add(&mut self, other: &Self) {
        self.below = self.below.saturating_add(other.below);
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more);
        }
    }

    /// Takes away what another one saw; false if it saw more.
    pub fn subtract(&mut self, other: &Self) -> bool {
        let mut counts = std::iter::once(&mut self.below).chain(&mut self.counts);
        let mut others = std::iter::once(&other.below).chain(&other.counts);
        counts.all(|count| {
            let less = others.next().and_then(|other| count.checked_sub(*other));
            *count = less.unwrap_or(0);
            less.is_some()
        })
    }

    /// The bin that holds the pair at an index in ascending order, and how many pairs lie below it. Otherwise whether it
    /// lies below the bracket.
    pub fn bin_of(&self, target: u64) -> Result<(u32, u64), bool> {
        let mut before = self.below;
        if target < before {
            return Err(true);
        }
        for (bin, count) in (0..).zip(&self.counts) {
            let end = before.saturating_add(*count);
            if target < end {
                return Ok((bin, before));
            }
            before = end;
        }
        Err(false)
    }
}

/// What a thread needs while it scans one block after another. Pairs go from one sieve to the next: [`sift`] by products
/// of codes, [`Block::narrow`] by finer codes, [`Block::decide`] by the similarity.
struct Block<'s, 'c> {
    scan: &'s Scan<'s>,
    /// The position of the first row of the stripe among those on the left, and the codes of the stripe.
    lefts: (usize, &'s Lefts),
    bracket: Bracket,
    choices: &'s Choices<'c>,
    tally: Tally,
    /// What products must exceed to be perhaps in the bracket and certainly above it, errors apart.
    limits: [i32; 2],
    /// Between which estimates the bracket lies, errors apart.
    fine_limits: [i64; 2],
    /// For each panel of columns what decides about them.
    panels: Vec<Columns>,
    /// For each column the image and the estimate that partners need, and its error.
    needed: Vec<(u32, i64, i64)>,
    /// For each row of a tile the columns that products leave open.
    listed: [Listed; TILE_ROWS],
    mixed: Vec<i32>,
    estimates: Vec<i64>,
    /// Of these, the columns that are offered, with the estimate.
    open: Vec<(u32, i64)>,
    /// Pairs of places whose similarity decides.
    deciding: Vec<[u32; 2]>,
    deciding_rows: Vec<[u32; 2]>,
    similarities: Vec<f32>,
    /// Pairs that a row may choose: left place, right place, image.
    offers: Vec<(u32, u32, u32)>,
}

/// Pairs that are decided at once.
const DECIDED_AT_ONCE: usize = 1 << 12;

impl<'s, 'c> Block<'s, 'c> {
    fn new(scan: &'s Scan<'s>, lefts: (usize, &'s Lefts), bracket: Bracket, choices: &'s Choices<'c>) -> Self {
        let [low, high] = [bracket.low, bracket.high()].map(score);
        Self {
            scan,
            lefts,
            bracket,
            choices,
            tally: Tally { below: 0, counts: vec![0; bracket.bins as usize] },
            limits: [scan.codes.perhaps_at_least(low), scan.codes.certainly_above(high)],
            fine_limits: [scan.codes.fine_floor(low), scan.codes.fine_floor(high) + 2],
            panels: Vec::new(),
            needed: Vec::new(),
            listed: Default::default(),
            mixed: Vec::new(),
            estimates: Vec::new(),
            open: Vec::new(),
            deciding: Vec::new(),
            deciding_rows: Vec::new(),
            similarities: Vec::new(),
            offers: Vec::new(),
        }
    }

    /// Compares a block of rows on the left, from a position on, with a block of columns, and says how many pairs that were.
    fn scan(&mut self, start: usize, columns: &Range<usize>, coded: &Coded) -> u64 {
        let scan = self.scan;
        if !scan.sides.meet(start, columns) {
            return 0;
        }
        let rows = &scan.sides.left[start..(start + LEFT_ROWS).min(scan.sides.left.len())];
        self.needed.clear();
        self.panels.clear();
        for panel in columns.clone().step_by(TILE_COLUMNS) {
            let mut known = Columns { first: number(panel), errors: [0; TILE_COLUMNS], chosen: [NEVER; TILE_COLUMNS] };
            for (at, column) in (panel..columns.end).take(TILE_COLUMNS).enumerate() {
                let image = self.choices.needed(column);
                let (product, estimate) = needed_of(scan.codes, image);
                known.errors[at] = scan.codes.error(column);
                known.chosen[at] = product - known.errors[at];
                self.needed.push((image, estimate, scan.codes.fine_error(column)));
            }
            self.panels.push(known);
        }
        let tiles = ((start - self.lefts.0) / TILE_ROWS..).zip(rows.chunks(TILE_ROWS));
        let seen = tiles.map(|(tile, rows)| self.tile(tile, rows, (coded, columns))).sum();
        self.decide(columns.start);
        self.choices.offer(&self.offers);
        for offer in &mut self.offers {
            *offer = (offer.1, offer.0, offer.2);
        }
        self.choices.offer(&self.offers);
        self.offers.clear();
        seen
    }

    /// Compares the rows of one tile with a block of columns.
    fn tile(&mut self, tile: usize, rows: &[u32], (coded, columns): (&Coded, &Range<usize>)) -> u64 {
        let scan = self.scan;
        let mut lines = [Line::default(); TILE_ROWS];
        let mut needed = [(u32::MAX, FINE_NEVER); TILE_ROWS];
        for ((line, needed), place) in lines.iter_mut().zip(&mut needed).zip(rows) {
            let image = self.choices.needed(*place as usize);
            let (product, estimate) = needed_of(scan.codes, image);
            *needed = (image, estimate);
            let error = scan.codes.error(*place as usize);
            let [perhaps, above] = self.limits;
            *line = Line { perhaps: perhaps - error, above: above + error, chosen: product - error, error, counted: 0 };
        }
        let mut seen = 0;
        let mut out = Products::default();
        for (number, known) in (columns.start / TILE_COLUMNS..).zip(&self.panels) {
            let end = (columns.end - number * TILE_COLUMNS).min(TILE_COLUMNS);
            // A later row is compared with no column that an earlier one is not.
            let counted =
                |place: Option<&u32>| place.map_or(0, |place| scan.sides.counted(*place as usize, number, end));
            let (most, least) = (counted(rows.first()), counted(rows.last()));
            if most == 0 {
                continue;
            }
            for (line, place) in lines.iter_mut().zip(rows) {
                line.counted = if most == least { most } else { counted(Some(place)) };
            }
            let (right, bias) = coded.right(number);
            products(self.lefts.1.tile(tile), right, bias, &mut out);
            let sifted = sift(&out, &lines, known, &mut self.listed);
            seen += sifted.seen;
            self.tally.below += sifted.below;
        }
        for (at, (place, needed)) in rows.iter().zip(needed).enumerate() {
            self.narrow((*place, tile * TILE_ROWS + at), (at, needed.1), (coded, columns.start));
        }
        if self.deciding.len() >= DECIDED_AT_ONCE {
            self.decide(columns.start);
        }
        seen
    }

    /// Compares a row by the finer codes with the columns that are listed for it.
    #[expect(clippy::needless_bitwise_bool, reason = "no branches")]
    fn narrow(&mut self, (place, number): (u32, usize), (at, needed): (usize, i64), (coded, first): (&Coded, usize)) {
        let codes = self.scan.codes;
        let listed = &mut self.listed[at];
        let others = (coded, listed.columns());
        codes.narrow((self.lefts.1, number), others, listed.products(), &mut self.mixed, &mut self.estimates);
        let [low, high] = self.fine_limits;
        let (own, tolerance) = (codes.fine_error(place as usize), self.scan.tolerance);
        // Without branches, which nobody can foresee here: what is not wanted is written over by the next one.
        let (mut below, mut decided, mut offered) = (0, self.deciding.len(), 0);
        self.deciding.resize(decided + listed.columns().len() + 1, [0; 2]);
        self.open.resize(listed.columns().len() + 1, (0, 0));
        for (column, estimate) in listed.columns().iter().zip(&self.estimates) {
            let (_, needed_by_column, error) = self.needed[*column as usize - first];
            let (needed, error) = (needed.min(needed_by_column), own + error);
            let is_below = estimate + error < low;
            let unsure = (estimate - error <= high) | ((error > tolerance) & (estimate + error >= needed));
            self.deciding[decided] = [place, *column];
            self.open[offered] = (*column, *estimate);
            below += u64::from(is_below);
            decided += usize::from(!is_below & unsure);
            offered += usize::from(!is_below & !unsure & (*estimate >= needed));
        }
        self.deciding.truncate(decided);
        for (column, estimate) in &self.open[..offered] {
            self.offers.push((place, *column, image(codes.estimated(*estimate))));
        }
        self.tally.below += below;
        listed.clear();
    }

    /// Compares pairs by the similarity.
    fn decide(&mut self, first: usize) {
        let scan = self.scan;
        let row = |place: u32| scan.codes.order().get(place as usize).copied().unwrap_or(u32::MAX);
        self.deciding_rows.clear();
        self.deciding_rows.extend(self.deciding.iter().map(|pair| pair.map(row)));
        pair_dots(scan.codes.vectors(), &self.deciding_rows, &mut self.similarities);
        for ([place, column], similarity) in self.deciding.drain(..).zip(&self.similarities) {
            let image = image(*similarity);
            let Some(over) = image.checked_sub(self.bracket.low) else {
                self.tally.below += 1;
                continue;
            };
            if let Some(count) = self.tally.counts.get_mut((over >> self.bracket.shift) as usize) {
                *count += 1;
            }
            if image >= self.choices.needed(place as usize).min(self.needed[column as usize - first].0) {
                self.offers.push((place, column, image));
            }
        }
    }
}

/// What the product and the estimate of a pair exceed or reach that has this image, errors apart.
fn needed_of(codes: &Codes<'_>, image: u32) -> (i32, i64) {
    match image {
        u32::MAX => (NEVER, FINE_NEVER),
        _ => (codes.perhaps_at_least(score(image)), codes.fine_floor(score(image))),
    }
}

fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// A partner and its image as one number: the better, the higher; never one of those that [`bar`] makes.
pub fn entry(image: u32, partner: u32) -> u64 {
    u64::from(image) << 32 | u64::from(!partner.wrapping_add(1))
}

/// What stands in for a partner that is not known: only those with a higher image can take its place.
pub fn bar(image: u32) -> u64 {
    u64::from(image) << 32 | u64::from(u32::MAX)
}

/// The image and the partner of an entry; no partner in what stands in for one.
#[expect(clippy::cast_possible_truncation, reason = "an entry consists of two halves")]
pub fn parts(entry: u64) -> (u32, Option<u32>) {
    ((entry >> 32) as u32, (!(entry as u32)).checked_sub(1).filter(|_| entry != 0))
}

/// Puts an entry in place of the lowest of a sorted row, if it is higher.
#[inline]
pub fn insert(row: &mut [u64], entry: u64) {
    if row.first().is_some_and(|&worst| entry > worst) {
        let place = row.partition_point(|&other| other < entry);
        row.copy_within(1..place, 0);
        row[place - 1] = entry;
    }
}
