//! Passes over all pairs: what is counted around the threshold, and which partners each row chooses.
//!
//! Codes tell of most pairs on which side of the bracket they lie; only the others, and those that a row might choose,
//! are compared by the similarity itself.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::distance::codes::{Between, Codes};
use crate::distance::dots;
use crate::distance::tile::{Marks, Products, TILE_COLUMNS, TILE_ROWS, compare, products};
use crate::index::control::{Cancelled, Control};
use crate::index::edges::bracket::Bracket;
use crate::index::edges::image::{image, score};
use crate::index::edges::sides::Sides;

/// All that a pass over the pairs reads.
pub struct Scan<'s> {
    /// Rows of unit vectors.
    pub matrix: &'s [f32],
    /// Components of a row; not zero.
    pub dimensions: usize,
    /// The codes of the rows, in the order of their keys.
    pub codes: &'s Codes,
    /// The rows in the order of their keys: all below counts places in it.
    pub order: &'s [u32],
    /// Which pairs.
    pub sides: &'s Sides,
    /// Partners are offered by the middle of what the finer codes say of them, where that is as near to their similarity;
    /// else by the similarity.
    pub tolerance: f64,
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

/// The partners of each row.
pub struct Choices {
    width: usize,
    /// For the rows of each block, one after another, their best partners, worst first, of those not below the bracket:
    /// image and inverted place; zero where none.
    blocks: Vec<Mutex<Vec<u64>>>,
    /// The image that a partner needs to be chosen, at least.
    worst: Vec<AtomicU32>,
}

/// Rows of a block: whole tiles and whole panels. Their codes and vectors fit the second-level cache together.
pub const BLOCK_ROWS: usize = TILE_ROWS * TILE_COLUMNS / 2;

/// Rows on the left that are compared with a block before the next one is fetched.
const LEFT_ROWS: usize = 8 * BLOCK_ROWS;

impl Scan<'_> {
    /// Compares all pairs, in blocks that the threads of the pool take one after another.
    pub fn pass(&self, bracket: Bracket, choices: &Choices, before: u64) -> Result<Tally, Cancelled> {
        let rights = self.order.len().div_ceil(BLOCK_ROWS);
        let blocks = self.sides.left.len().div_ceil(LEFT_ROWS) * rights;
        let (next, done) = (AtomicUsize::new(0), AtomicU64::new(before));
        let total = before + self.sides.pairs;
        let work = || {
            let mut block = Block::new(self, bracket, choices);
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                if place >= blocks {
                    return Ok(block.tally);
                }
                if self.control.cancelled() {
                    return Err(Cancelled);
                }
                let seen = block.scan(place / rights, place % rights);
                let before = done.fetch_add(seen, Ordering::Relaxed);
                self.control.advance(before + seen, total);
            }
        };
        let mut all = Tally { below: 0, counts: vec![0; bracket.bins as usize] };
        for tally in rayon::broadcast(|_| work()) {
            all.add(&tally?);
        }
        Ok(all)
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

impl Choices {
    /// The entries of all rows, one row after another, each sorted, to be bettered; partners need an image of `floor`.
    pub fn new(entries: &[u64], width: usize, floor: u32) -> Self {
        let blocks: Vec<_> =
            entries.chunks((BLOCK_ROWS * width).max(1)).map(|entries| Mutex::new(entries.to_vec())).collect();
        let worst =
            entries.chunks_exact(width.max(1)).map(|entries| AtomicU32::new(needed(entries).max(floor))).collect();
        Self { width, blocks, worst }
    }

    /// For each row in turn its choices, worst first.
    pub fn into_entries(self) -> Vec<u64> {
        self.blocks.into_iter().flat_map(|block| block.into_inner().unwrap_or_default()).collect()
    }

    fn needed(&self, place: usize) -> u32 {
        self.worst.get(place).map_or(u32::MAX, |worst| worst.load(Ordering::Relaxed))
    }

    /// Offers partners: place, partner, image. Those of a block follow one another.
    fn offer(&self, offers: &[(u32, u32, u32)]) {
        let block = |offer: &(u32, u32, u32)| offer.0 as usize / BLOCK_ROWS;
        for offers in offers.chunk_by(|a, b| block(a) == block(b)) {
            let Some(Ok(mut entries)) = offers.first().and_then(|first| self.blocks.get(block(first))).map(Mutex::lock)
            else {
                continue;
            };
            for (place, partner, image) in offers {
                let place = *place as usize;
                let at = place % BLOCK_ROWS * self.width;
                let Some(entries) = entries.get_mut(at..at + self.width) else { continue };
                insert(entries, entry(*image, *partner));
                let worst = self.worst.get(place);
                worst.inspect(|worst| _ = worst.fetch_max(needed(entries), Ordering::Relaxed));
            }
        }
    }
}

/// The image that an entry must have at least to become one of these.
fn needed(entries: &[u64]) -> u32 {
    entries.first().map_or(u32::MAX, |entry| parts(*entry).0)
}

/// What a thread needs while it scans one block after another.
struct Block<'s> {
    scan: &'s Scan<'s>,
    bracket: Bracket,
    choices: &'s Choices,
    tally: Tally,
    /// What products must exceed: to be perhaps in the bracket, and to be certainly above it, errors apart.
    perhaps: i32,
    above: i32,
    /// What partners of the columns need.
    needed: Vec<u32>,
    /// What products must exceed to be chosen by a column, errors apart.
    chosen: Vec<i32>,
    /// The highest error of each panel, and the lowest of what its columns need.
    panels: Vec<(i32, i32)>,
    /// For each row of a tile the columns of its block to compare, and the products of codes.
    listed: [Vec<(u16, i32)>; TILE_ROWS],
    mixed: Vec<i32>,
    narrowed: Vec<Between>,
    /// Of those, the ones whose similarity decides.
    deciding: Vec<u16>,
    deciding_rows: Vec<u32>,
    similarities: Vec<f32>,
    /// Pairs that a row may choose: left place, right place, image.
    offers: Vec<(u32, u32, u32)>,
}

impl<'s> Block<'s> {
    fn new(scan: &'s Scan<'s>, bracket: Bracket, choices: &'s Choices) -> Self {
        Self {
            scan,
            bracket,
            choices,
            tally: Tally { below: 0, counts: vec![0; bracket.bins as usize] },
            perhaps: scan.codes.perhaps_at_least(score(bracket.low)),
            above: scan.codes.certainly_above(score(bracket.high())),
            needed: Vec::new(),
            chosen: Vec::new(),
            panels: Vec::new(),
            listed: Default::default(),
            mixed: Vec::new(),
            narrowed: Vec::new(),
            deciding: Vec::new(),
            deciding_rows: Vec::new(),
            similarities: Vec::new(),
            offers: Vec::new(),
        }
    }

    /// Compares a block of rows on the left with a block of columns, and says how many pairs that were.
    fn scan(&mut self, left: usize, right: usize) -> u64 {
        let scan = self.scan;
        let start = left * LEFT_ROWS;
        let rows = &scan.sides.left[start..(start + LEFT_ROWS).min(scan.sides.left.len())];
        let columns = right * BLOCK_ROWS..((right + 1) * BLOCK_ROWS).min(scan.order.len());
        self.needed.clear();
        self.needed.extend(columns.clone().map(|column| self.choices.needed(column)));
        self.chosen.clear();
        for image in &self.needed {
            self.chosen.push(product_of(scan.codes, *image));
        }
        self.panels.clear();
        for (panel, chosen) in columns.clone().step_by(TILE_COLUMNS).zip(self.chosen.chunks(TILE_COLUMNS)) {
            let error = (panel..panel + TILE_COLUMNS).map(|row| scan.codes.error(row)).max().unwrap_or(0);
            self.panels.push((error, chosen.iter().copied().min().unwrap_or(i32::MAX)));
        }
        let tiles = (start / TILE_ROWS..).zip(rows.chunks(TILE_ROWS));
        let seen = tiles.map(|(tile, rows)| self.tile(tile, rows, &columns)).sum();
        self.choices.offer(&self.offers);
        for offer in &mut self.offers {
            *offer = (offer.1, offer.0, offer.2);
        }
        self.choices.offer(&self.offers);
        self.offers.clear();
        seen
    }

    /// Compares the rows of one tile with a block of columns.
    fn tile(&mut self, tile: usize, rows: &[u32], columns: &std::ops::Range<usize>) -> u64 {
        let scan = self.scan;
        let mut limits = [[i32::MAX; 3]; TILE_ROWS];
        let mut chosen = [i32::MAX; TILE_ROWS];
        for ((limits, chosen), place) in limits.iter_mut().zip(&mut chosen).zip(rows) {
            let error = scan.codes.error(*place as usize);
            *limits = [self.perhaps.saturating_sub(error), self.above.saturating_add(error), error];
            *chosen = product_of(scan.codes, self.choices.needed(*place as usize));
        }
        let (mut seen, mut below) = (0, 0);
        let (mut out, mut marks) = (Products::default(), [Marks::default(); TILE_ROWS]);
        for (panel, (error, needed)) in columns.clone().step_by(TILE_COLUMNS).zip(self.panels.clone()) {
            let end = (columns.end - panel).min(TILE_COLUMNS);
            let number = panel / TILE_COLUMNS;
            // The first row is compared with most.
            if rows.first().is_none_or(|place| scan.sides.counted(*place as usize, number, end) == 0) {
                continue;
            }
            let (right, bias) = scan.codes.right(number);
            products(scan.sides.lefts.tile(tile), right, bias, &mut out);
            let mut thresholds = limits;
            for (threshold, chosen) in thresholds.iter_mut().zip(chosen) {
                *threshold = [
                    threshold[0].saturating_sub(error),
                    threshold[1].saturating_add(error),
                    chosen.min(needed).saturating_sub(threshold[2]).saturating_sub(error),
                ];
            }
            compare(&out, &thresholds, &mut marks);
            for (at, (place, marks)) in rows.iter().zip(&marks).enumerate() {
                let counted = scan.sides.counted(*place as usize, number, end);
                seen += u64::from(counted.count_ones());
                let above = marks[1] & counted;
                let band = marks[0] & counted & !above;
                below += u64::from((counted & !above & !band).count_ones());
                let offset = panel - columns.start;
                let line = &out.0[at];
                let mut candidates = band | (marks[2] & above);
                while candidates != 0 {
                    let column = candidates.trailing_zeros() as usize;
                    candidates &= candidates - 1;
                    let needed = chosen[at].min(self.chosen[offset + column]);
                    let needed = needed.saturating_sub(limits[at][2]).saturating_sub(error);
                    if band >> column & 1 == 1 || line[column] > needed {
                        self.listed[at].push((in_block(offset + column), line[column]));
                    }
                }
            }
        }
        self.tally.below += below;
        for (at, place) in rows.iter().enumerate() {
            self.score(*place, at, columns);
        }
        seen
    }

    /// Compares a row with the columns listed for it: by the finer codes, then by the similarity where it decides.
    fn score(&mut self, place: u32, at: usize, columns: &std::ops::Range<usize>) {
        let listed = &mut self.listed[at];
        self.scan.codes.narrow(place as usize, columns.start, listed, &mut self.mixed, &mut self.narrowed);
        let [low, high] = [self.bracket.low, self.bracket.high()].map(|image| f64::from(score(image)));
        let needed = self.choices.needed(place as usize);
        self.deciding.clear();
        self.deciding_rows.clear();
        for ((column, _), between) in listed.iter().zip(&self.narrowed) {
            if between.high < low {
                self.tally.below += 1;
                continue;
            }
            let at = columns.start + usize::from(*column);
            let needed = f64::from(score(needed.min(self.needed[usize::from(*column)])));
            if between.low <= high || (between.error() > self.scan.tolerance && between.high >= needed) {
                self.deciding.push(*column);
                self.deciding_rows.push(self.scan.order[at]);
            } else if between.middle() >= needed {
                self.offers.push((place, number(at), image(rounded(between.middle()))));
            }
        }
        listed.clear();
        let (scan, dimensions) = (self.scan, self.scan.dimensions);
        let query = scan.matrix.chunks_exact(dimensions).nth(scan.order[place as usize] as usize).unwrap_or_default();
        dots(query, scan.matrix, &self.deciding_rows, &mut self.similarities);
        for (column, similarity) in self.deciding.iter().zip(&self.similarities) {
            let image = image(*similarity);
            let Some(over) = image.checked_sub(self.bracket.low) else {
                self.tally.below += 1;
                continue;
            };
            if let Some(count) = self.tally.counts.get_mut((over >> self.bracket.shift) as usize) {
                *count += 1;
            }
            let column = usize::from(*column);
            if image >= needed.min(self.needed[column]) {
                self.offers.push((place, number(columns.start + column), image));
            }
        }
    }
}

/// A similarity that is not exact anyway.
#[expect(clippy::cast_possible_truncation, reason = "an estimate")]
fn rounded(similarity: f64) -> f32 {
    similarity as f32
}

/// What the product of a pair with this image exceeds, errors apart.
fn product_of(codes: &Codes, image: u32) -> i32 {
    if image == u32::MAX { i32::MAX } else { codes.perhaps_at_least(score(image)) }
}

/// A place in a block, which is small.
#[expect(clippy::cast_possible_truncation, reason = "a block has fewer rows")]
fn in_block(place: usize) -> u16 {
    place as u16
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
fn insert(row: &mut [u64], entry: u64) {
    if row.first().is_some_and(|&worst| entry > worst) {
        let place = row.partition_point(|&other| other < entry);
        row.copy_within(1..place, 0);
        row[place - 1] = entry;
    }
}
