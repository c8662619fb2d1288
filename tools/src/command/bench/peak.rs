//! The most that this machine could do: what the speed of a build is a share of.

use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use hedgerow::{Control, multiply_adds};

/// How fast the threads of the pool together multiply and add eight-bit numbers in registers.
pub struct Peak {
    /// Rounds that take a thread about [`SAMPLE_SECONDS`].
    rounds: u32,
    /// Operations a second.
    samples: Vec<f64>,
}

const SAMPLE_SECONDS: f64 = 0.05;
const ROUNDS_MIN: u32 = 1 << 10;
const ROUNDS_MAX: u32 = 1 << 30;

impl Peak {
    /// Finds out how many rounds a sample takes.
    pub fn new() -> Self {
        let mut peak = Self { rounds: ROUNDS_MIN, samples: Vec::new() };
        while peak.rounds < ROUNDS_MAX && peak.spin().1 < SAMPLE_SECONDS {
            peak.rounds *= 2;
        }
        peak
    }

    /// Measures a few times more.
    pub fn sample(&mut self) {
        for _ in 0..4 {
            let (operations, seconds) = self.spin();
            self.samples.push(operations / seconds);
        }
    }

    /// The median of what was measured, in operations a second; a multiplication is one, and so is an addition.
    pub fn median(mut self) -> f64 {
        self.samples.sort_by(f64::total_cmp);
        self.samples.get(self.samples.len() / 2).copied().unwrap_or_default()
    }

    /// Operations of all threads at once, and seconds until the last one was done.
    fn spin(&self) -> (f64, f64) {
        let start = Instant::now();
        let adds: u64 = rayon::broadcast(|_| multiply_adds(self.rounds)).into_iter().sum();
        #[expect(clippy::cast_precision_loss, reason = "a figure to read")]
        let operations = 2.0 * adds as f64;
        (operations, start.elapsed().as_secs_f64())
    }
}

/// Passes on progress, and remembers when the first pairs began to be compared and when the last ones were.
pub struct Timed<'t> {
    control: &'t dyn Control,
    first: OnceLock<Instant>,
    last: Mutex<Option<Instant>>,
}

impl<'t> Timed<'t> {
    /// Of a computation that has not begun.
    pub fn new(control: &'t dyn Control) -> Self {
        Self { control, first: OnceLock::new(), last: Mutex::new(None) }
    }

    /// Seconds from the first to the last, if pairs were compared.
    pub fn seconds(&self) -> Option<f64> {
        let last = (*self.last.lock().ok()?)?;
        Some(last.duration_since(*self.first.get()?).as_secs_f64())
    }
}

impl Control for Timed<'_> {
    fn advance(&self, done: u64, total: u64) {
        if let Ok(mut last) = self.last.lock() {
            *last = Some(Instant::now());
        }
        self.control.advance(done, total);
    }

    fn cancelled(&self) -> bool {
        self.first.get_or_init(Instant::now);
        self.control.cancelled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hedgerow::Quiet;

    #[test]
    fn the_peak_is_the_median_of_its_samples() {
        let mut peak = Peak { rounds: ROUNDS_MIN, samples: vec![3.0, 1.0, 2.0] };
        peak.samples.push(9.0);
        assert!((peak.median() - 3.0).abs() < f64::EPSILON);
        let mut peak = Peak::new();
        peak.sample();
        assert!(peak.samples.len() == 4 && peak.median() > 0.0);
    }

    #[test]
    fn time_runs_from_the_first_pair_to_the_last() {
        let timed = Timed::new(&Quiet);
        assert_eq!(timed.seconds(), None);
        assert!(!timed.cancelled());
        assert_eq!(timed.seconds(), None);
        timed.advance(1, 2);
        assert!(timed.seconds() >= Some(0.0));
    }
}
