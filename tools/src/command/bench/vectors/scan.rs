//! How near exact search comes to what the machine could do: the bandwidth of its memory, and its products of eight-bit numbers.

use std::hint::black_box;
use std::time::Instant;

use hedgerow::Recall;
use rayon::prelude::*;

use crate::command::bench::peak::Peak;
use crate::command::bench::peak_mb;
use crate::command::bench::vectors::measure::{Asked, Measured, Run, real};
use crate::failure::Failure;

/// Queries one after the other, each of which reads all vectors, beside a plain sum over as many numbers on as many threads.
pub(super) fn against_memory(asked: &Asked<'_>) -> Result<(Run, Measured), Failure> {
    let bytes = asked.bytes()?;
    let run = asked.alone(Recall::Exact)?;
    let rss_mb = peak_mb();
    let queries = real(asked.queries.len() as u64);
    let own = real(bytes) * queries / run.seconds / 1e9;
    let memory = bandwidth(bytes) / 1e9;
    let shares = Measured {
        rss_mb,
        gb_per_s: Some(own),
        bandwidth_gb_per_s: Some(memory),
        share_of_bandwidth: Some(own / memory),
        ..Measured::default()
    };
    Ok((run, shares))
}

/// All queries at once, beside products of eight-bit numbers in registers on as many threads.
pub(super) fn against_peak(asked: &Asked<'_>) -> Result<(Run, Measured), Failure> {
    let (rows, dimensions) = asked.shape()?;
    let mut peak = Peak::new();
    peak.sample();
    let run = asked.together()?;
    let rss_mb = peak_mb();
    peak.sample();
    let peak = peak.median();
    let operations = 2.0 * real(rows * dimensions as u64) * real(asked.queries.len() as u64);
    let shares = Measured {
        rss_mb,
        int8_peak_tops: Some(peak / 1e12),
        share_of_peak: Some(operations / run.seconds / peak),
        ..Measured::default()
    };
    Ok((run, shares))
}

/// Numbers that a task adds up.
const TOGETHER: usize = 1 << 15;
/// Times that all are added up; the median counts.
const SUMS: usize = 9;

/// Bytes a second that the pool's threads read when they add up numbers which take so many bytes.
fn bandwidth(bytes: u64) -> f64 {
    // Ones, as the system need not have memory of its own for zeros.
    let numbers = vec![1u64; usize::try_from(bytes / 8).unwrap_or(usize::MAX).max(1)];
    let mut seconds: Vec<f64> = (0..SUMS)
        .map(|_| {
            let start = Instant::now();
            let sum = |part: &[u64]| part.iter().fold(0, |sum: u64, number| sum.wrapping_add(*number));
            black_box(black_box(&numbers).par_chunks(TOGETHER).map(sum).sum::<u64>());
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    real(numbers.len() as u64 * 8) / seconds[SUMS / 2]
}
