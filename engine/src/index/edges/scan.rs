//! Passes over all pairs: what is counted around the threshold, and which partners each row chooses.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::distance::dots;
use crate::index::control::{Cancelled, Control};

/// All that a pass over the pairs reads.
pub struct Scan<'s> {
    /// Rows of unit vectors.
    pub matrix: &'s [f32],
    /// Components of a row; not zero.
    pub dimensions: usize,
    /// For each row its place in the order of keys.
    pub ranks: &'s [u32],
    /// Partners that each row chooses.
    pub choices: usize,
    /// Asked once a tile.
    pub control: &'s dyn Control,
}

/// The images that a pass counts, in bins of `1 << shift`; lower ones are only summed up.
#[derive(Clone, Copy)]
struct Bracket {
    low: u32,
    shift: u32,
    bins: usize,
}

/// What one pass saw, or one thread of it.
pub struct Tally {
    below: u64,
    counts: Vec<u64>,
    /// For each row its best partners, worst first, of those not below: image and inverted rank; zero where none.
    pub choices: Vec<u64>,
}

/// A bin of a tally.
pub struct Found {
    /// Its lowest image.
    pub image: u32,
    /// Pairs with lower images.
    pub before: u64,
}

impl Scan<'_> {
    /// Finds the image of the pair at an index by counting.
    ///
    /// A sample nearly always tells a narrow bracket around it, and then one pass counts and chooses. Where it does
    /// not, a pass counts the upper halves of all images and another the lower halves within the one bin.
    pub fn counted_around(&self, target: u64, percentile: u32) -> Result<(Tally, Found), Cancelled> {
        let pairs = pairs_of(self.ranks.len());
        let bracket = self.sampled_bracket(percentile);
        let whole = Progress { before: 0, total: pairs };
        let tally = self.pass(bracket, whole)?;
        if let Some(found) = tally.bin_of(target, bracket) {
            return Ok((tally, found));
        }
        let after = |before| Progress { before, total: pairs * 3 };
        let halves = Bracket { low: 0, shift: 16, bins: 1 << 16 };
        let counting = Scan { choices: 0, ..*self };
        let coarse = counting.pass(halves, after(pairs))?;
        let low = coarse.bin_of(target, halves).map_or(0, |found| found.image);
        let bin = Bracket { low, shift: 0, bins: 1 << 16 };
        let tally = self.pass(bin, after(pairs * 2))?;
        let found = tally.bin_of(target, bin).unwrap_or(Found { image: low, before: tally.below });
        Ok((tally, found))
    }

    /// The images around the percentile of the pairs among evenly spread rows.
    fn sampled_bracket(&self, percentile: u32) -> Bracket {
        let step = self.ranks.len().div_ceil(SAMPLE_ROWS).max(1);
        let sample: Vec<f32> = self.matrix.chunks_exact(self.dimensions).step_by(step).flatten().copied().collect();
        let mut images = Vec::new();
        let mut scores = Vec::new();
        for tile in tiles(sample.len() / self.dimensions) {
            for_each_pair(&sample, self.dimensions, tile, &mut scores, |_, _, image| images.push(image));
        }
        let last = images.len().saturating_sub(1);
        let middle = usize::try_from(order_statistic(images.len() as u64, percentile)).unwrap_or(last).min(last);
        let slack = images.len() / SAMPLE_SLACK;
        images.sort_unstable();
        let at = |index: usize| images.get(index).copied().unwrap_or(0);
        let (low, high) = (at(middle.saturating_sub(slack)), at((middle + slack).min(last)));
        let bins = ((high - low) as usize + 1).min(BINS_MAX);
        let low = low.max(at(middle).saturating_sub(BINS_BEFORE_MAX));
        Bracket { low, shift: 0, bins }
    }

    /// Compares all pairs, in tiles that the threads of the pool take one after another.
    fn pass(&self, bracket: Bracket, progress: Progress) -> Result<Tally, Cancelled> {
        let tiles: Vec<(usize, usize)> = tiles(self.ranks.len()).collect();
        let (next, done) = (AtomicUsize::new(0), AtomicU64::new(progress.before));
        let work = || {
            let mut tally = Tally::new(bracket, self.ranks.len() * self.choices);
            let mut scores = Vec::new();
            while let Some(&tile) = tiles.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.control.cancelled() {
                    return Err(Cancelled);
                }
                let seen = tally.add(self, bracket, tile, &mut scores);
                let before = done.fetch_add(seen, Ordering::Relaxed);
                self.control.advance(before + seen, progress.total);
            }
            Ok(tally)
        };
        let mut tallies = rayon::broadcast(|_| work()).into_iter();
        let mut all = tallies.next().unwrap_or(Err(Cancelled))?;
        for tally in tallies {
            all.merge(&tally?, self.choices);
        }
        Ok(all)
    }
}

/// Where a pass stands in the whole work, in pairs.
#[derive(Clone, Copy)]
struct Progress {
    before: u64,
    total: u64,
}

impl Tally {
    fn new(bracket: Bracket, choices: usize) -> Self {
        Self { below: 0, counts: vec![0; bracket.bins], choices: vec![0; choices] }
    }

    /// Counts the pairs of one tile and says how many they were.
    fn add(&mut self, scan: &Scan, bracket: Bracket, tile: (usize, usize), scores: &mut Vec<f32>) -> u64 {
        let (mut seen, mut below) = (0, 0);
        for_each_pair(scan.matrix, scan.dimensions, tile, scores, |left, right, image| {
            seen += 1;
            let Some(over) = image.checked_sub(bracket.low) else {
                below += 1;
                return;
            };
            if let Some(count) = self.counts.get_mut((over >> bracket.shift) as usize) {
                *count += 1;
            }
            choose(&mut self.choices[left * scan.choices..][..scan.choices], image, scan.ranks[right]);
            choose(&mut self.choices[right * scan.choices..][..scan.choices], image, scan.ranks[left]);
        });
        self.below += below;
        seen
    }

    fn merge(&mut self, other: &Self, choices: usize) {
        self.below += other.below;
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        if choices > 0 {
            for (row, entries) in self.choices.chunks_exact_mut(choices).zip(other.choices.chunks_exact(choices)) {
                for &entry in entries {
                    insert(row, entry);
                }
            }
        }
    }

    /// The bin that holds the pair at an index in ascending order; `None` if it lies outside the bracket.
    fn bin_of(&self, target: u64, bracket: Bracket) -> Option<Found> {
        let mut before = self.below;
        if target < before {
            return None;
        }
        for (bin, count) in (0u32..).zip(&self.counts) {
            if target < before + count {
                return Some(Found { image: bracket.low + (bin << bracket.shift), before });
            }
            before += count;
        }
        None
    }
}

/// The pairs of blocks of rows that hold every pair of rows once.
fn tiles(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    let blocks = rows.div_ceil(BLOCK_ROWS);
    (0..blocks).flat_map(move |left| (left..blocks).map(move |right| (left, right)))
}

/// Calls `visit` with both rows and the image of every pair of a tile, which lies on or above the diagonal.
#[inline]
fn for_each_pair(
    matrix: &[f32],
    dimensions: usize,
    tile: (usize, usize),
    scores: &mut Vec<f32>,
    mut visit: impl FnMut(usize, usize, u32),
) {
    let block = |number: usize| {
        let start = (number * BLOCK_ROWS * dimensions).min(matrix.len());
        &matrix[start..(start + BLOCK_ROWS * dimensions).min(matrix.len())]
    };
    let (left, right) = (block(tile.0), block(tile.1));
    let width = right.len() / dimensions;
    scores.resize(left.len() / dimensions * width, 0.0);
    dots(left, right, dimensions, scores);
    for (i, line) in scores.chunks_exact(width.max(1)).enumerate() {
        let first = if tile.0 == tile.1 { i + 1 } else { 0 };
        for (j, similarity) in line.iter().enumerate().skip(first) {
            visit(tile.0 * BLOCK_ROWS + i, tile.1 * BLOCK_ROWS + j, image(*similarity));
        }
    }
}

/// Offers a partner to a row's choices.
#[inline]
fn choose(row: &mut [u64], image: u32, rank: u32) {
    insert(row, u64::from(image) << 32 | u64::from(!rank));
}

/// The image and the rank of which an entry was made.
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

/// The index of the order statistic at a percentile among at least one pair.
pub fn order_statistic(pairs: u64, percentile: u32) -> u64 {
    let index = u128::from(pairs) * u128::from(percentile) / 100_000;
    u64::try_from(index).unwrap_or(u64::MAX).min(pairs.saturating_sub(1))
}

pub fn pairs_of(rows: usize) -> u64 {
    rows as u64 * (rows as u64).saturating_sub(1) / 2
}

/// A number that orders as the similarity does; -0 and 0 have one image.
#[inline]
fn image(similarity: f32) -> u32 {
    let bits = (similarity + 0.0).to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}

/// The similarity with this image.
pub fn score(image: u32) -> f32 {
    f32::from_bits(if image >> 31 == 0 { !image } else { image & !(1 << 31) })
}

/// Rows of a tile's side: 512 rows of 384 components ran 1.15 times as fast as 256, and twice as fast as 64.
const BLOCK_ROWS: usize = 512;

/// Rows whose pairs tell where the threshold may lie.
const SAMPLE_ROWS: usize = 2048;

/// The bracket reaches this share of the sample's pairs to both sides.
const SAMPLE_SLACK: usize = 64;

/// Bins that a pass counts at most: 16 MiB a thread.
const BINS_MAX: usize = 1 << 21;
const BINS_BEFORE_MAX: u32 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::control::Quiet;

    #[test]
    fn a_misleading_sample_changes_nothing() {
        // Only the even rows are sampled, and these are all alike.
        let rows = SAMPLE_ROWS + 2;
        let vector = |row: usize| {
            if row.is_multiple_of(2) { [1.0, 0.0] } else { [0.6, [0.8, -0.8][row / 2 % 2]] }
        };
        let matrix: Vec<f32> = (0..rows).flat_map(vector).collect();
        let ranks = vec![0; rows];
        let scan = Scan { matrix: &matrix, dimensions: 2, ranks: &ranks, choices: 2, control: &Quiet };
        let bracket = scan.sampled_bracket(20_000);
        let target = order_statistic(pairs_of(rows), 20_000);
        let tally = scan.pass(bracket, Progress { before: 0, total: 1 }).unwrap();
        assert!(tally.bin_of(target, bracket).is_none());
        let (_, found) = scan.counted_around(target, 20_000).unwrap();
        let mut all: Vec<u32> = Vec::new();
        for tile in tiles(rows) {
            for_each_pair(&matrix, 2, tile, &mut Vec::new(), |_, _, image| {
                all.push(image);
            });
        }
        all.sort_unstable();
        assert_eq!(found.image, all[usize::try_from(target).unwrap()]);
    }

    #[test]
    fn images_order_as_similarities_and_zero_has_one() {
        let ordered = [-1.0, -0.5, -f32::MIN_POSITIVE, 0.0, f32::MIN_POSITIVE, 0.5, 1.0];
        assert!(ordered.map(image).is_sorted_by(|a, b| a < b));
        assert!(ordered.iter().all(|x| score(image(*x)).to_bits() == x.to_bits()));
        assert_eq!(image(-0.0), image(0.0));
    }
}
