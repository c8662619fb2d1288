//! How sure a difference between two strategies is: the paired bootstrap over questions, with a fixed seed.

use std::array;

use hedgerow::{Cancelled, Control};

/// Times that questions are drawn anew.
pub(super) const RESAMPLES: usize = 10_000;
const SEED: u64 = 0x6865_6467_6572_6f77;

/// Where 95 of 100 means of redrawn questions lie.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Interval {
    pub low: f64,
    pub high: f64,
}

/// The 95 % percentile intervals of the mean of each column; a row holds the differences of one question, and all
/// columns see the same draws. The same differences give the same intervals.
///
/// # Errors
/// When the work was cancelled.
pub(super) fn intervals<const N: usize>(
    differences: &[[f64; N]],
    control: &dyn Control,
) -> Result<[Interval; N], Cancelled> {
    if differences.is_empty() {
        return Ok([Interval::default(); N]);
    }
    let mut means: [Vec<f64>; N] = array::from_fn(|_| Vec::with_capacity(RESAMPLES));
    let mut draws = Draws(SEED);
    for _ in 0..RESAMPLES {
        if control.cancelled() {
            return Err(Cancelled);
        }
        let mut sums = [0.0; N];
        for _ in 0..differences.len() {
            let drawn = differences.get(draws.below(differences.len())).unwrap_or(&[0.0; N]);
            sums.iter_mut().zip(drawn).for_each(|(sum, difference)| *sum += difference);
        }
        means.iter_mut().zip(sums).for_each(|(means, sum)| means.push(sum / count(differences.len())));
    }
    Ok(means.map(|mut means| {
        means.sort_by(f64::total_cmp);
        // 2.5 % of the means lie below the one and above the other.
        let [low, high] = [RESAMPLES / 40, RESAMPLES - 1 - RESAMPLES / 40].map(|place| means.get(place).copied());
        Interval { low: low.unwrap_or_default(), high: high.unwrap_or_default() }
    }))
}

#[expect(clippy::cast_precision_loss, reason = "a count of questions, far below 2^53")]
fn count(questions: usize) -> f64 {
    questions as f64
}

/// Sebastiano Vigna's `SplitMix64`.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, each as likely as the others but for one part in 2⁶⁴ / `end`.
    fn below(&mut self, end: usize) -> usize {
        let scaled = (u128::from(self.next()) * end as u128) >> 64;
        usize::try_from(scaled).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use hedgerow::Quiet;

    use crate::command::eval::bootstrap::{Draws, Interval, intervals};

    #[test]
    fn the_draws_are_those_of_the_published_generator() {
        let mut draws = Draws(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| draws.next()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn an_interval_holds_the_mean_and_has_the_width_that_theory_says() {
        // 400 questions, a quarter better by one: the mean is .25, its standard error .0217.
        let differences: Vec<[f64; 2]> = (0..400).map(|at| [if at % 4 == 0 { 1.0 } else { 0.0 }, 0.5]).collect();
        let [first, constant] = intervals(&differences, &Quiet).unwrap();
        assert!((first.low - (0.25 - 1.96 * 0.0217)).abs() < 0.006, "{first:?}");
        assert!((first.high - (0.25 + 1.96 * 0.0217)).abs() < 0.006, "{first:?}");
        assert_eq!(constant, Interval { low: 0.5, high: 0.5 });
        assert_eq!(intervals(&differences, &Quiet).unwrap(), [first, constant]);
        assert_eq!(intervals::<2>(&[], &Quiet).unwrap(), [Interval::default(); 2]);
    }
}
