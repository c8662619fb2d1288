//! Where the threshold may lie, told by the codes of some rows.

use crate::distance::codes::{Coded, Codes};
use crate::distance::tile::{Products, TILE_COLUMNS, TILE_ROWS, products};
use crate::index::edges::image::{image, score};
use crate::index::edges::scan::BLOCK_ROWS;
use crate::index::edges::{Population, Pruning, Similarities};
use rayon::prelude::*;

/// The images that a pass counts, in bins of `1 << shift`; of others it counts how many lie below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bracket {
    /// The lowest image.
    pub low: u32,
    /// Images of a bin, as a power of two.
    pub shift: u32,
    /// How many bins there are.
    pub bins: u32,
}

/// A sample has at least so many pairs, and this share of all.
const SAMPLE_MIN: u64 = 1 << 23;
const SAMPLE_SHARE: u64 = 100;

/// Standard errors of the sample's percentile that the bracket reaches to both sides.
const SAMPLE_ERRORS: f64 = 4.0;

/// What the codes may shift a percentile: their errors have no preferred sign, so that it is far less than a pair's.
const CODES_SHIFT: f64 = 1e-4;

/// Turns of fitting the effects of blocks.
const EFFECT_TURNS: usize = 12;

/// The bracket reaches so much further to both sides where its images still fit, so that changes find the threshold in it
/// that they move.
const RESERVE: f64 = 6e-4;

/// Bins of a histogram of products.
const HISTOGRAM: u32 = 1 << 14;

/// Bins that a pass counts at most: 4 MiB a thread.
const BINS_MAX: u32 = 1 << 19;

impl Bracket {
    /// All images from `low` to `high` that numbers have.
    pub fn between(low: u32, high: u32) -> Self {
        Self::of_at_most(low, high, BINS_MAX)
    }

    /// The same, in so many bins at most.
    pub fn of_at_most(low: u32, high: u32, bins: u32) -> Self {
        let (least, most) = (image(f32::NEG_INFINITY), image(f32::INFINITY));
        let (low, high) = (low.clamp(least, most), high.clamp(least, most));
        let span = high.saturating_sub(low);
        let shift = (0..32).find(|shift| span >> shift < bins).unwrap_or(31);
        Self { low, shift, bins: (span >> shift) + 1 }
    }

    /// Whether its images are numbers of 32 bits, and its bins not too many.
    pub fn is_sound(&self) -> bool {
        let images = u64::from(self.bins).checked_shl(self.shift).unwrap_or(u64::MAX);
        (1..=BINS_MAX).contains(&self.bins) && self.shift < 32 && u64::from(self.low) + images <= 1 << 32
    }

    /// The highest image, of those that numbers have.
    pub fn high(&self) -> u32 {
        let images = u64::from(self.bins) << self.shift;
        u32::try_from(u64::from(self.low) + images - 1).unwrap_or(u32::MAX).min(image(f32::INFINITY))
    }

    /// The image that lies so much below the bracket.
    pub fn below(&self, by: f64) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "what is lost is less than what the bound has to spare")]
        image((f64::from(score(self.low)) - by) as f32)
    }

    /// The images of one bin.
    pub fn bin(&self, bin: u32) -> Self {
        let low = self.low + (bin << self.shift);
        Self::between(low, low + ((1 << self.shift) - 1))
    }

    /// A bracket below or above this one, and wider, for when the threshold was not in it.
    pub fn beyond(&self, lower: bool) -> Self {
        let span = (self.high() - self.low).saturating_mul(4).max(1 << 16);
        if lower {
            Self::between(self.low.saturating_sub(span), self.low.saturating_sub(1))
        } else {
            let low = self.high().saturating_add(1);
            Self::between(low, low.saturating_add(span))
        }
    }

    /// Around the percentile of all pairs, by the codes of some; and how similar these are.
    pub fn sampled(codes: &Codes<'_>, rules: Pruning) -> (Self, Similarities) {
        let sample = Sample::new(codes, rules.pairs);
        let histogram = sample.histogram();
        let share = f64::from(rules.percentile) / 100_000.0;
        let slack = sample.percentile_error(histogram.at(share)) * SAMPLE_ERRORS + 2.0 / histogram.pairs.max(1.0);
        let reach = CODES_SHIFT + histogram.width;
        let (low, high) = (histogram.at(share - slack) - reach, histogram.at(share + slack) + reach);
        #[expect(clippy::cast_possible_truncation, reason = "a place to begin with")]
        let around = |by: f64| Self::between(image((low - by) as f32), image((high + by) as f32));
        let mut reserve = RESERVE;
        while around(reserve).shift > 0 && reserve > RESERVE / 64.0 {
            reserve /= 2.0;
        }
        let similarities = Similarities::of(&histogram.counts, histogram.first, histogram.width, sample.all);
        (if around(reserve).shift > 0 { around(0.0) } else { around(reserve) }, similarities)
    }
}

/// Pairs of blocks in which every row occurs equally often, so that rows that are like many others don't mislead; all
/// of them where these are few.
struct Sample<'c> {
    codes: &'c Codes<'c>,
    /// Which pairs count.
    pairs: Population,
    blocks: Vec<(usize, usize)>,
    all: bool,
}

/// How many pairs of the sample have which products.
struct Histogram {
    counts: Vec<u64>,
    pairs: f64,
    /// The similarity at which the first bin begins, and that of a bin's width.
    first: f64,
    width: f64,
}

impl Histogram {
    /// The similarity below which a share of the pairs lies.
    fn at(&self, share: f64) -> f64 {
        let target = share.clamp(0.0, 1.0) * self.pairs;
        let mut before = 0.0;
        let mut bins = 0.0;
        for count in self.counts.iter().map(|count| float(*count)) {
            if before + count >= target && count > 0.0 {
                return self.first + self.width * (bins + (target - before) / count);
            }
            before += count;
            bins += 1.0;
        }
        self.first + self.width * bins
    }
}

impl<'c> Sample<'c> {
    fn new(codes: &'c Codes<'c>, pairs: Population) -> Self {
        match pairs {
            Population::All => Self::among(codes),
            Population::Across(firsts) => Self::across(codes, firsts.min(codes.rows())),
        }
    }

    fn among(codes: &'c Codes<'c>) -> Self {
        let rows = codes.rows();
        let blocks = rows.div_ceil(BLOCK_ROWS);
        let wanted = SAMPLE_MIN.max(Population::All.count(rows) / SAMPLE_SHARE);
        let offsets = usize::try_from(wanted / (rows * BLOCK_ROWS).max(1) as u64).unwrap_or(0) + 1;
        let all = 2 * offsets >= blocks;
        let pairs = if all {
            (0..blocks).flat_map(|left| (left..blocks).map(move |right| (left, right))).collect()
        } else {
            let offset = move |number: usize| 1 + number * (blocks / 2 - 1) / offsets;
            (0..offsets)
                .flat_map(|number| (0..blocks).map(move |left| (left, (left + offset(number)) % blocks)))
                .collect()
        };
        Self { codes, pairs: Population::All, blocks: pairs, all }
    }

    /// Each block of the side that has more of them is paired with equally many of the other, evenly spread.
    fn across(codes: &'c Codes<'c>, firsts: usize) -> Self {
        let pairs = Population::Across(firsts);
        let start = firsts / BLOCK_ROWS;
        let (left, right) = (firsts.div_ceil(BLOCK_ROWS), codes.rows().div_ceil(BLOCK_ROWS) - start);
        let (most, least) = (left.max(right), left.min(right).max(1));
        let wanted = SAMPLE_MIN.max(pairs.count(codes.rows()) / SAMPLE_SHARE);
        let wanted = usize::try_from(wanted / (BLOCK_ROWS * BLOCK_ROWS) as u64).unwrap_or(usize::MAX);
        let each = wanted / most.max(1) + 1;
        let all = 2 * each >= least;
        let each = if all { least } else { each };
        let pair = |one: usize, number: usize| {
            let other = (one + number * least / each) % least;
            if left == most { (one, start + other) } else { (other, start + one) }
        };
        let blocks = (0..most).flat_map(|one| (0..each).map(move |number| pair(one, number))).collect();
        Self { codes, pairs, blocks, all }
    }

    /// Calls `visit` for every tile of a pair of blocks, with its first row, its first column, and what counts of each line
    /// of it: from which place to before which.
    fn for_each_tile(
        &self,
        (left, right): (usize, usize),
        mut visit: impl FnMut(&Products, usize, &dyn Fn(usize) -> (usize, usize)),
    ) {
        let rows = self.codes.rows();
        // Before which place the left sides of pairs lie, and from which on the right ones.
        let (lefts_end, rights_start) = match self.pairs {
            Population::All => (rows, 0),
            Population::Across(firsts) => (firsts, firsts),
        };
        let range = |block: usize, end: usize| block * BLOCK_ROWS..((block + 1) * BLOCK_ROWS).min(end);
        let mut out = Products::default();
        let lefts = self.codes.lefts(range(left, lefts_end).filter_map(|place| u32::try_from(place).ok()).collect());
        let mut room = Coded::default();
        let columns = self.codes.columns(range(right, rows), &mut room);
        for (number, tile) in range(left, lefts_end).step_by(TILE_ROWS).enumerate() {
            for panel in range(right, rows).step_by(TILE_COLUMNS) {
                let end = (rows - panel).min(TILE_COLUMNS);
                let start = rights_start.saturating_sub(panel).min(end);
                if start == end {
                    continue;
                }
                let (codes, bias) = columns.right(panel / TILE_COLUMNS);
                products(lefts.tile(number), codes, bias, &mut out);
                let within = self.pairs == Population::All && left == right;
                let first = |at: usize| if within { (tile + at + 1).saturating_sub(panel).min(end) } else { start };
                visit(&out, (lefts_end - tile).min(TILE_ROWS), &|at| (first(at), end));
            }
        }
    }

    /// Counts the products of all pairs of the sample.
    fn histogram(&self) -> Histogram {
        let offset = self.codes.product_max();
        let shift = (0..32).find(|shift| (2 * i64::from(offset)) >> shift < i64::from(HISTOGRAM)).unwrap_or(31);
        let counted = self.blocks.par_iter().fold(
            || vec![0_u64; HISTOGRAM as usize],
            |mut counts, blocks| {
                self.for_each_tile(*blocks, |out, rows, columns| {
                    for (at, line) in out.0.iter().enumerate().take(rows) {
                        let (start, end) = columns(at);
                        for product in &line[start..end] {
                            let bin = (product.saturating_add(offset) >> shift).max(0).cast_unsigned();
                            counts[bin.min(HISTOGRAM - 1) as usize] += 1;
                        }
                    }
                });
                counts
            },
        );
        let counts = counted.reduce(
            || vec![0; HISTOGRAM as usize],
            |mut all, more| {
                all.iter_mut().zip(more).for_each(|(count, more)| *count += more);
                all
            },
        );
        let unit = self.codes.unit();
        let pairs = float(counts.iter().sum());
        Histogram { counts, pairs, first: -f64::from(offset) * unit, width: f64::from(1_u32 << shift) * unit }
    }

    /// The standard error of the share of pairs below a similarity. Pairs of one row are not independent of each other, but
    /// all rows occur equally often; so what remains is how the share of two blocks differs from what is usual for both.
    fn percentile_error(&self, similarity: f64) -> f64 {
        if self.all {
            return 0.0;
        }
        #[expect(clippy::cast_possible_truncation, reason = "an estimate")]
        let threshold = self.codes.certainly_above(similarity as f32);
        let shares: Vec<f64> = self
            .blocks
            .par_iter()
            .map(|blocks| {
                let (mut above, mut all) = (0, 0);
                self.for_each_tile(*blocks, |out, rows, columns| {
                    for (at, line) in out.0.iter().enumerate().take(rows) {
                        let (start, end) = columns(at);
                        above += line[start..end].iter().map(|product| u64::from(*product > threshold)).sum::<u64>();
                        all += (end - start) as u64;
                    }
                });
                float(above) / float(all).max(1.0)
            })
            .collect();
        residual_error(&self.blocks, &shares)
    }
}

/// The standard error of the mean of what pairs of blocks have, every block in equally many of them, apart from what comes
/// from either block: the residuals of a model with an effect of each block, fitted by turns.
fn residual_error(pairs: &[(usize, usize)], shares: &[f64]) -> f64 {
    let blocks = pairs.iter().map(|pair| pair.0.max(pair.1) + 1).max().unwrap_or(0);
    let count = float(shares.len() as u64);
    let mean = shares.iter().sum::<f64>() / count;
    let mut effects = vec![0.0; blocks];
    for _ in 0..EFFECT_TURNS {
        let mut sums = vec![(0.0, 0.0); blocks];
        for ((left, right), share) in pairs.iter().zip(shares) {
            for (block, other) in [(*left, *right), (*right, *left)] {
                sums[block].0 += share - mean - effects[other];
                sums[block].1 += 1.0;
            }
        }
        // Half a step, so that turns settle.
        for (effect, (sum, pairs)) in effects.iter_mut().zip(sums) {
            *effect = f64::midpoint(*effect, sum / f64::max(pairs, 1.0));
        }
    }
    let residual = |((left, right), share): (&(usize, usize), &f64)| share - mean - effects[*left] - effects[*right];
    let squares: f64 = pairs.iter().zip(shares).map(residual).map(|residual| residual * residual).sum();
    let free = (count - float(blocks as u64)).max(count / 4.0);
    (squares / free / count).sqrt()
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_cover_their_images_and_those_beyond_adjoin() {
        let (least, most) = (image(f32::NEG_INFINITY), image(f32::INFINITY));
        for (low, high) in
            [(least, least), (least + 5, least + 9), (1 << 31, most), (least, most), (image(0.19), image(0.2))]
        {
            let bracket = Bracket::between(low, high);
            assert_eq!(bracket.low, low);
            assert!(bracket.high() >= high && bracket.bins <= BINS_MAX);
            assert_eq!(bracket.bin(0).low, low);
            assert!(low == least || bracket.beyond(true).high() >= low - 1);
            assert!(bracket.high() == most || bracket.beyond(false).low == bracket.high() + 1);
        }
        // What is no number has no place.
        assert_eq!(Bracket::between(0, u32::MAX), Bracket::between(least, most));
        assert!(score(image(0.19)) < score(Bracket::between(image(0.19), image(0.2)).high()));
    }

    #[test]
    fn what_comes_from_the_blocks_is_no_error_of_a_balanced_sample() {
        let blocks = 40;
        let effect = |block: usize| float(block as u64 % 7) / 100.0;
        let pairs: Vec<(usize, usize)> =
            (1..4).flat_map(|offset| (0..blocks).map(move |left| (left, (left + offset * 5) % blocks))).collect();
        let regular: Vec<f64> = pairs.iter().map(|pair| 0.05 + effect(pair.0) + effect(pair.1)).collect();
        let irregular = |at: usize| if at.is_multiple_of(2) { 0.01 } else { -0.01 };
        let shares: Vec<f64> = regular.iter().enumerate().map(|(at, share)| share + irregular(at / 3 + at)).collect();
        let error = residual_error(&pairs, &shares);
        assert!(residual_error(&pairs, &regular) < error / 5.0);
        // The standard error of a mean of 120 numbers of which each is off by 0.01.
        assert!(error > 0.0007 && error < 0.0013, "{error}");
    }
}
