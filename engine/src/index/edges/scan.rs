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

impl Scan<'_> {
    /// The blocks of rows that hold every pair once.
    pub fn blocks(&self) -> Vec<(usize, usize)> {
        let blocks = self.order.len().div_ceil(BLOCK_ROWS);
        (0..blocks).flat_map(|left| (left..blocks).map(move |right| (left, right))).collect()
    }

    /// Compares all pairs, in blocks that the threads of the pool take one after another.
    pub fn pass(&self, bracket: Bracket, choices: &Choices, before: u64) -> Result<Tally, Cancelled> {
        let blocks = self.blocks();
        let (next, done) = (AtomicUsize::new(0), AtomicU64::new(before));
        let total = before + pairs_of(self.order.len());
        let work = || {
            let mut block = Block::new(self, bracket, choices);
            while let Some(&place) = blocks.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.control.cancelled() {
                    return Err(Cancelled);
                }
                let seen = block.scan(place);
                let before = done.fetch_add(seen, Ordering::Relaxed);
                self.control.advance(before + seen, total);
            }
            Ok(block.tally)
        };
        let mut all = Tally { below: 0, counts: vec![0; bracket.bins as usize] };
        for tally in rayon::broadcast(|_| work()) {
            all.add(&tally?);
        }
        Ok(all)
    }

    fn rows_of(&self, block: usize) -> std::ops::Range<usize> {
        let start = (block * BLOCK_ROWS).min(self.order.len());
        start..(start + BLOCK_ROWS).min(self.order.len())
    }
}

impl Tally {
    /// Adds what another one saw.
    pub fn add(&mut self, other: &Self) {
        self.below += other.below;
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// The bin that holds the pair at an index in ascending order, and how many pairs lie below it. Otherwise whether it
    /// lies below the bracket.
    pub fn bin_of(&self, target: u64) -> Result<(u32, u64), bool> {
        let mut before = self.below;
        if target < before {
            return Err(true);
        }
        for (bin, count) in (0..).zip(&self.counts) {
            if target < before + count {
                return Ok((bin, before));
            }
            before += count;
        }
        Err(false)
    }
}

impl Choices {
    /// None yet, of `width` for each of `rows` rows; partners need an image of `floor`.
    pub fn new(rows: usize, width: usize, floor: u32) -> Self {
        let blocks = (0..rows).step_by(BLOCK_ROWS).map(|start| BLOCK_ROWS.min(rows - start) * width);
        let needed = if width == 0 { u32::MAX } else { floor };
        Self {
            width,
            blocks: blocks.map(|entries| Mutex::new(vec![0; entries])).collect(),
            worst: (0..rows).map(|_| AtomicU32::new(needed)).collect(),
        }
    }

    /// For each row in turn its choices, worst first.
    pub fn into_entries(self) -> Vec<u64> {
        self.blocks.into_iter().flat_map(|block| block.into_inner().unwrap_or_default()).collect()
    }

    /// Offers partners to rows of a block: row, partner, image.
    fn offer(&self, block: usize, offers: impl Iterator<Item = (u32, u32, u32)>) {
        let Some(Ok(mut entries)) = self.blocks.get(block).map(Mutex::lock) else { return };
        for (row, partner, image) in offers {
            let row = row as usize;
            let at = (row - block * BLOCK_ROWS) * self.width;
            let Some(entries) = entries.get_mut(at..at + self.width) else { continue };
            insert(entries, u64::from(image) << 32 | u64::from(!partner));
            if let Some((worst, _)) = entries.first().filter(|entry| **entry != 0).map(|entry| parts(*entry)) {
                self.worst[row].store(worst, Ordering::Relaxed);
            }
        }
    }
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
    /// What partners of the rows on the left and on the right need.
    needed: [Vec<u32>; 2],
    /// What products must exceed to be chosen by a row on the right, errors apart.
    chosen: Vec<i32>,
    /// The highest error of each panel, and the lowest of what its rows need.
    panels: Vec<(i32, i32)>,
    /// For each row of a tile the columns of its block to compare, and the products of codes.
    listed: [Vec<(u16, i32)>; TILE_ROWS],
    mixed: Vec<i32>,
    narrowed: Vec<Between>,
    /// Of those, the ones whose similarity decides.
    deciding: Vec<u16>,
    deciding_rows: Vec<u32>,
    similarities: Vec<f32>,
    /// Pairs that a row may choose: left row, right row, image.
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
            needed: [Vec::new(), Vec::new()],
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

    /// Compares the pairs of two blocks, the second not before the first, and says how many they were.
    fn scan(&mut self, (left, right): (usize, usize)) -> u64 {
        let scan = self.scan;
        let (rows, columns) = (scan.rows_of(left), scan.rows_of(right));
        for (needed, rows) in self.needed.iter_mut().zip([&rows, &columns]) {
            needed.clear();
            needed.extend(self.choices.worst[rows.clone()].iter().map(|worst| worst.load(Ordering::Relaxed)));
        }
        self.chosen.clear();
        for image in &self.needed[1] {
            self.chosen.push(product_of(scan.codes, *image));
        }
        self.panels.clear();
        for panel in columns.clone().step_by(TILE_COLUMNS) {
            let error = (panel..panel + TILE_COLUMNS).map(|row| scan.codes.error(row)).max().unwrap_or(0);
            let chosen = self.chosen.iter().skip(panel - columns.start).take(TILE_COLUMNS).min();
            self.panels.push((error, *chosen.unwrap_or(&i32::MAX)));
        }
        let seen = rows.clone().step_by(TILE_ROWS).map(|tile| self.tile(tile, &columns)).sum();
        let offers = std::mem::take(&mut self.offers);
        self.choices.offer(left, offers.iter().copied());
        self.choices.offer(right, offers.iter().map(|(row, column, image)| (*column, *row, *image)));
        self.offers = offers;
        self.offers.clear();
        seen
    }

    /// Compares the rows of one tile with a block of columns.
    fn tile(&mut self, first_row: usize, columns: &std::ops::Range<usize>) -> u64 {
        let scan = self.scan;
        let rows = TILE_ROWS.min(scan.order.len() - first_row);
        let mut limits = [[i32::MAX; 3]; TILE_ROWS];
        let mut chosen = [i32::MAX; TILE_ROWS];
        for (at, (limits, chosen)) in limits.iter_mut().zip(&mut chosen).enumerate().take(rows) {
            let error = scan.codes.error(first_row + at);
            let needed = self.needed[0]
                .get((first_row + at) % BLOCK_ROWS)
                .map_or(i32::MAX, |image| product_of(scan.codes, *image));
            *limits = [self.perhaps.saturating_sub(error), self.above.saturating_add(error), error];
            *chosen = needed;
        }
        let (mut seen, mut below) = (0, 0);
        let (mut out, mut marks) = (Products::default(), [Marks::default(); TILE_ROWS]);
        for (panel, (error, needed)) in columns.clone().step_by(TILE_COLUMNS).zip(self.panels.clone()) {
            let end = (columns.end - panel).min(TILE_COLUMNS);
            if panel + end <= first_row + 1 {
                continue;
            }
            let (right, bias) = scan.codes.right(panel / TILE_COLUMNS);
            products(scan.codes.left(first_row / TILE_ROWS), right, bias, &mut out);
            let mut thresholds = limits;
            for (threshold, chosen) in thresholds.iter_mut().zip(chosen) {
                *threshold = [
                    threshold[0].saturating_sub(error),
                    threshold[1].saturating_add(error),
                    chosen.min(needed).saturating_sub(threshold[2]).saturating_sub(error),
                ];
            }
            compare(&out, &thresholds, &mut marks);
            for (at, marks) in marks.iter().enumerate().take(rows) {
                let start = (first_row + at + 1).saturating_sub(panel).min(end);
                let counted = mask(start, end);
                seen += u64::from(counted.count_ones());
                let above = marks[1] & counted;
                let band = marks[0] & counted & !above;
                below += u64::from((counted & !above & !band).count_ones());
                let offset = panel - columns.start;
                let line = &out.0[at];
                let mut candidates = band | marks[2] & counted;
                while candidates != 0 {
                    let column = candidates.trailing_zeros() as usize;
                    candidates &= candidates - 1;
                    let needed = chosen[at].min(self.chosen[offset + column]);
                    let needed = needed.saturating_sub(limits[at][2]).saturating_sub(error);
                    if band >> column & 1 == 1 || line[column] > needed {
                        self.listed[at].push((place(offset + column), line[column]));
                    }
                }
            }
        }
        self.tally.below += below;
        for at in 0..rows {
            self.score(first_row + at, at, columns);
        }
        seen
    }

    /// Compares a row with the columns listed for it: by the finer codes, then by the similarity where it decides.
    fn score(&mut self, row: usize, at: usize, columns: &std::ops::Range<usize>) {
        let listed = &mut self.listed[at];
        self.scan.codes.narrow(row, columns.start, listed, &mut self.mixed, &mut self.narrowed);
        let [low, high] = [self.bracket.low, self.bracket.high()].map(|image| f64::from(score(image)));
        let needed = self.needed[0][row % BLOCK_ROWS];
        self.deciding.clear();
        self.deciding_rows.clear();
        for ((column, _), between) in listed.iter().zip(&self.narrowed) {
            if between.high < low {
                self.tally.below += 1;
            } else if between.low <= high
                || between.high >= f64::from(score(needed.min(self.needed[1][usize::from(*column)])))
            {
                self.deciding.push(*column);
                self.deciding_rows.push(self.scan.order[columns.start + usize::from(*column)]);
            }
        }
        listed.clear();
        let (scan, dimensions) = (self.scan, self.scan.dimensions);
        let query = scan.matrix.chunks_exact(dimensions).nth(scan.order[row] as usize).unwrap_or_default();
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
            if image >= needed.min(self.needed[1][column]) {
                self.offers.push((number(row), number(columns.start + column), image));
            }
        }
    }
}

/// What the product of a pair with this image exceeds, errors apart.
fn product_of(codes: &Codes, image: u32) -> i32 {
    if image == u32::MAX { i32::MAX } else { codes.perhaps_at_least(score(image)) }
}

/// A bit for each place from `start` to before `end`, at most 32.
fn mask(start: usize, end: usize) -> u32 {
    let below = |place: usize| u32::try_from((1_u64 << place) - 1).unwrap_or(u32::MAX);
    below(end) & !below(start)
}

/// A place in a block, which is small.
#[expect(clippy::cast_possible_truncation, reason = "a block has fewer rows")]
fn place(row: usize) -> u16 {
    row as u16
}

fn number(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}

/// The image and the place of which an entry was made.
#[expect(clippy::cast_possible_truncation, reason = "an entry consists of two halves")]
pub fn parts(entry: u64) -> (u32, u32) {
    ((entry >> 32) as u32, !(entry as u32))
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

pub fn pairs_of(rows: usize) -> u64 {
    rows as u64 * (rows as u64).saturating_sub(1) / 2
}
