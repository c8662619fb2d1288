//! Counts of images, to find the one at an index in ascending order: exact, wherever it lies.

use crate::index::edges::image::image;

/// Bins at most: 2 MiB.
const BINS: u32 = 1 << 18;

/// Bins that any number of pairs may have.
const BINS_MIN: u32 = 1 << 8;

/// How far the index of a sample is believed, in standard deviations.
const DEVIATIONS: f64 = 4.0;

/// How many images lie below a bracket, and in each of its bins.
#[derive(Clone, Debug)]
pub struct Bins {
    low: u32,
    /// A bin holds two to this power of images.
    shift: u32,
    /// Bins at most.
    most: u32,
    below: u64,
    counts: Vec<u64>,
}

impl Bins {
    /// Bins over the images from `low` to `high`, as narrow as their number allows: `most`.
    fn new(low: u32, high: u32, most: u32) -> Self {
        let shift = (0..32).find(|shift| (high - low) >> shift < most).unwrap_or(0);
        let counts = vec![0; ((high - low) >> shift) as usize + 1];
        Self { low, shift, most, below: 0, counts }
    }

    /// Bins where a sample says that the image at a percentile lies among so many pairs: no more bins than pairs.
    pub fn sampled(mut images: Vec<u32>, percentile: u32, pairs: u64) -> Self {
        let most = u32::try_from(pairs).unwrap_or(u32::MAX).clamp(BINS_MIN, BINS);
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
            match image(*similarity).checked_sub(self.low) {
                None => self.below += 1,
                Some(over) => {
                    if let Some(count) = self.counts.get_mut((over >> self.shift) as usize) {
                        *count += 1;
                    }
                }
            }
        }
    }

    /// Adds what others counted in the same bins.
    pub fn add(&mut self, other: &Self) {
        self.below += other.below;
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// The lowest image that is counted in a bin.
    pub fn low(&self) -> u32 {
        self.low
    }

    /// The highest image that is counted in a bin.
    fn high(&self) -> u32 {
        let images = self.counts.len() as u64 * (1 << self.shift);
        u32::try_from(u64::from(self.low) + images - 1).unwrap_or(u32::MAX)
    }

    /// The image at an index and how many images lie below it, or the bins to count next.
    pub fn narrowed(&self, target: u64) -> Result<(u32, u64), Self> {
        let mut before = self.below;
        if target < before {
            return self.low.checked_sub(1).map_or(Ok((self.low, 0)), |high| Err(Self::new(0, high, self.most)));
        }
        for (bin, count) in (0..).zip(&self.counts) {
            if target < before + count {
                let low = self.low + (bin << self.shift);
                let high = low.saturating_add((1 << self.shift) - 1);
                return if low == high { Ok((low, before)) } else { Err(Self::new(low, high, self.most)) };
            }
            before += count;
        }
        let end = self.high();
        end.checked_add(1).map_or(Ok((end, before)), |low| Err(Self::new(low, u32::MAX, self.most)))
    }
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
            let bins = Bins::sampled((0..1000).collect(), percentile, 1000);
            let middle = (percentile / 100).min(999);
            assert!(bins.low <= middle && middle <= bins.high(), "{percentile}");
        }
        assert_eq!(Bins::sampled(Vec::new(), 50_000, 9).high(), u32::MAX);
    }
}
