//! Counts of images, to find the one at an index in ascending order: exact, wherever it lies.

use crate::index::edges::bracket::Bracket;
use crate::index::edges::image::image;
use crate::index::edges::scan::Tally;

/// Bins at most: 2 MiB.
const BINS: u32 = 1 << 18;

/// Bins that any number of pairs may have.
const BINS_MIN: u32 = 1 << 8;

/// How far the index of a sample is believed, in standard deviations.
const DEVIATIONS: f64 = 4.0;

/// How many images lie below a bracket, and in each of its bins.
#[derive(Clone, Debug)]
pub struct Bins {
    bracket: Bracket,
    /// Bins at most.
    most: u32,
    tally: Tally,
}

impl Bins {
    /// Bins over the images from `low` to `high`, as narrow as their number allows: `most`.
    fn new(low: u32, high: u32, most: u32) -> Self {
        let bracket = Bracket::of_at_most(low, high, most);
        Self { bracket, most, tally: Tally { below: 0, counts: vec![0; bracket.bins as usize] } }
    }

    /// Bytes of bins for so many pairs.
    pub fn bytes_most(pairs: u64) -> u64 {
        u64::from(bins_most(pairs)) * 8
    }

    /// Bins where a sample says that the image at a percentile lies among so many pairs: no more bins than pairs.
    pub fn sampled(mut images: Vec<u32>, percentile: u32, pairs: u64) -> Self {
        let most = bins_most(pairs);
        images.sort_unstable();
        let share = f64::from(percentile.min(100_000)) / 100_000.0;
        let size = f64::from(u32::try_from(images.len()).unwrap_or(u32::MAX));
        let (middle, spread) = (size * share, DEVIATIONS * (size * share * (1.0 - share)).sqrt() + 1.0);
        let at = |place: f64| images.get(floored(place)).copied();
        let low = if middle < spread { 0 } else { at(middle - spread).unwrap_or(0) };
        Self::new(low, at(middle + spread).unwrap_or(u32::MAX), most)
    }

    /// Counts the images of similarities.
    pub fn count(&mut self, similarities: &[f32]) {
        for similarity in similarities {
            match image(*similarity).checked_sub(self.bracket.low) {
                None => self.tally.below += 1,
                Some(over) => {
                    if let Some(count) = self.tally.counts.get_mut((over >> self.bracket.shift) as usize) {
                        *count += 1;
                    }
                }
            }
        }
    }

    /// Which images are counted.
    pub fn bracket(&self) -> Bracket {
        self.bracket
    }

    /// What was counted.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The same bins, when all was counted in them.
    pub fn counted(&self, tally: Tally) -> Self {
        Self { tally, ..*self }
    }

    /// The image at an index and how many images lie below it, or the bins to count next.
    pub fn narrowed(&self, target: u64) -> Result<(u32, u64), Self> {
        let Bracket { low, shift, .. } = self.bracket;
        let (least, most) = (image(f32::NEG_INFINITY), image(f32::INFINITY));
        match self.tally.bin_of(target) {
            Ok((bin, before)) if shift == 0 => Ok((low + bin, before)),
            Ok((bin, _)) => {
                let low = low + (bin << shift);
                Err(Self::new(low, low.saturating_add((1 << shift) - 1), self.most))
            }
            // Beyond these images there are no numbers.
            Err(true) if low <= least => Ok((low, 0)),
            Err(true) => Err(Self::new(0, low - 1, self.most)),
            Err(false) if self.bracket.high() >= most => Ok((most, self.tally.below)),
            Err(false) => Err(Self::new(self.bracket.high() + 1, u32::MAX, self.most)),
        }
    }
}

/// Bins at most for so many pairs.
fn bins_most(pairs: u64) -> u32 {
    u32::try_from(pairs).unwrap_or(u32::MAX).clamp(BINS_MIN, BINS)
}

/// A place in a sample.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a sample is small, and no place is negative"
)]
fn floored(place: f64) -> usize {
    place as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_at_an_index_is_found_wherever_counting_begins() {
        let mut seed = 9u32;
        let mut similarities: Vec<f32> = (0..500)
            .map(|at| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if at % 3 == 0 { 0.0 } else { f32::from(u16::try_from(seed >> 16).unwrap()) / 40_000.0 - 0.5 }
            })
            .collect();
        similarities.extend([f32::INFINITY, f32::NEG_INFINITY, 1.0, 1.0]);
        let mut sorted: Vec<u32> = similarities.iter().map(|x| image(*x)).collect();
        sorted.sort_unstable();
        for start in [(0, u32::MAX), (image(0.1), image(0.2)), (5, 5), (image(0.0), image(0.0)), (u32::MAX, u32::MAX)] {
            for target in [0, 1, 100, 250, 400, 503] {
                let mut bins = Bins::new(start.0, start.1, 1 << 10);
                let found = (0..9).find_map(|_| {
                    bins.count(&similarities);
                    bins.narrowed(target).map_err(|narrower| bins = narrower).ok()
                });
                let image = sorted[usize::try_from(target).unwrap()];
                assert_eq!(found, Some((image, sorted.partition_point(|other| *other < image) as u64)));
            }
        }
    }

    #[test]
    fn a_sample_brackets_what_it_was_drawn_from() {
        for percentile in [0, 50_000, 95_000, 100_000, u32::MAX] {
            let first = image(0.1);
            let bins = Bins::sampled((first..first + 1000).collect(), percentile, 1000);
            let middle = first + (percentile / 100).min(999);
            assert!(bins.bracket.low <= middle && middle <= bins.bracket.high(), "{percentile}");
        }
        assert_eq!(Bins::sampled(Vec::new(), 50_000, 9).bracket.high(), image(f32::INFINITY));
    }
}
