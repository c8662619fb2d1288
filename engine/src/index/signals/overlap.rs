//! The overlap of sets of features, entities or words: Jaccard's index, plain or by how rare a feature is.

use crate::index::signals::{Scratch, Sets, Signal, hash_all, known, real, rounded};
use std::ops::Range;

/// What a feature weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighing {
    /// One.
    Equal,
    /// The natural logarithm of 1 + (N - n + 0.5) / (n + 0.5), where n of N rows have the feature, in f64.
    Rarity,
}

/// A set of features for each row.
///
/// The similarity of two rows is the weight of the features that both have, over the weight of those that either has; 0 where
/// they share none. Weights are added in f64 in the order of features. What either has is what both together weigh, each by
/// itself, less what they share. The quotient is rounded once to f32. It is 1 for equal sets and never above.
///
/// Takes 8 bytes for each feature of each row, 16 for each row and 16 for each feature.
#[derive(Clone, Debug)]
pub struct Overlap {
    sets: Sets,
    holders: Sets,
    weights: Vec<f64>,
    /// What the features of each row weigh.
    totals: Vec<f64>,
}

impl Overlap {
    /// The overlap of these sets, one for each row.
    pub fn new(sets: Sets, weighing: Weighing) -> Self {
        let holders = sets.transposed();
        let weight = |feature| match weighing {
            Weighing::Equal => 1.0,
            Weighing::Rarity => rarity(sets.len(), holders.of(feature).len()),
        };
        let weights: Vec<f64> = (0..u32::MAX).take(holders.len()).map(weight).collect();
        let total = |row| sets.of(row).iter().map(|feature| weights[*feature as usize]).sum();
        let totals = (0..u32::MAX).take(sets.len()).map(total).collect();
        Self { sets, holders, weights, totals }
    }

    fn total(&self, row: u32) -> f64 {
        self.totals.get(row as usize).copied().unwrap_or(0.0)
    }

    fn quotient(&self, a: u32, b: u32, shared: f64) -> f32 {
        if shared > 0.0 { rounded(shared / ((self.total(a) + self.total(b)) - shared)) } else { 0.0 }
    }
}

impl Signal for Overlap {
    fn rows(&self) -> usize {
        self.sets.len()
    }

    fn similarity(&self, a: u32, b: u32) -> f32 {
        let shared = self.sets.shared(a, b).map(|feature| self.weights[feature as usize]).sum();
        self.quotient(a, b, shared)
    }

    fn line(&self, row: u32, range: Range<u32>, scratch: &mut Scratch, out: &mut Vec<f32>) {
        out.clear();
        out.resize(range.len(), 0.0);
        let Range { start, end } = known(&range, self.rows());
        scratch.reserve(out.len());
        for feature in self.sets.of(row) {
            let holders = self.holders.of(*feature);
            let first = holders.partition_point(|holder| *holder < start);
            let weight = self.weights[*feature as usize];
            holders[first..].iter().take_while(|holder| **holder < end).for_each(|holder| {
                scratch.share(*holder - start, weight);
            });
        }
        scratch.drain(|at, shared| out[at as usize] = self.quotient(row, start + at, shared));
    }

    fn is_sparse(&self) -> bool {
        true
    }

    fn bytes(&self) -> u64 {
        self.sets.bytes() + self.holders.bytes() + (self.weights.len() + self.totals.len()) as u64 * 8
    }

    fn identify(&self, hash: &mut blake3::Hasher) {
        hash.update(b"overlap");
        self.sets.identify(hash);
        hash_all(hash, self.weights.iter().map(|weight| weight.to_le_bytes()));
    }
}

fn rarity(rows: usize, holders: usize) -> f64 {
    let holders = real(holders);
    libm::log(1.0 + (real(rows) - holders + 0.5) / (holders + 0.5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::signals::SetsBuilder;

    fn overlap(rows: &[&str], weighing: Weighing) -> Overlap {
        let mut builder = SetsBuilder::default();
        for row in rows {
            builder.push_words(row);
        }
        Overlap::new(builder.finish(), weighing)
    }

    #[test]
    fn shared_features_count_over_all_that_either_has() {
        let overlap = overlap(&["a b c", "B c d e", "", "a b c", "x"], Weighing::Equal);
        let similarities: Vec<f32> = (0..6).map(|row| overlap.similarity(0, row)).collect();
        assert_eq!(similarities, [1.0, 0.4, 0.0, 1.0, 0.0, 0.0]);
        assert_eq!(overlap.similarity(2, 2).to_bits(), 0);
    }

    #[test]
    fn a_rare_feature_weighs_more_than_a_common_one() {
        let overlap = overlap(&["the rose", "the thorn", "a rose", "the", "the a"], Weighing::Rarity);
        let [the, rose, thorn, a] = [4.0, 2.0, 1.0, 2.0].map(|n: f64| (1.0 + (5.0 - n + 0.5) / (n + 0.5)).ln());
        assert!((f64::from(overlap.similarity(0, 1)) - the / (the + rose + thorn)).abs() < 1e-7);
        assert!((f64::from(overlap.similarity(0, 2)) - rose / (the + rose + a)).abs() < 1e-7);
        assert!(overlap.similarity(0, 2) > overlap.similarity(0, 1));
        assert_eq!(overlap.similarity(4, 4).to_bits(), 1f32.to_bits());
    }

    #[test]
    fn lines_give_the_bits_of_single_similarities_both_ways() {
        let rows: Vec<String> = (0..60u32)
            .map(|row| {
                let words = (0..row % 7).map(|word| (row * 31 + word * word * 17) % 23);
                words.map(|word| word.to_string()).collect::<Vec<_>>().join(" ")
            })
            .collect();
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let (mut scratch, mut out) = (Scratch::default(), Vec::new());
        for weighing in [Weighing::Equal, Weighing::Rarity] {
            let overlap = overlap(&rows, weighing);
            for row in 0..61 {
                for range in [0..60, 13..41, 59..60, 30..30, 50..70] {
                    overlap.line(row, range.clone(), &mut scratch, &mut out);
                    let bits: Vec<u32> = out.iter().map(|x| x.to_bits()).collect();
                    let single = |other| overlap.similarity(row, other).to_bits();
                    assert_eq!(bits, range.clone().map(single).collect::<Vec<_>>());
                    assert_eq!(bits, range.map(|other| overlap.similarity(other, row).to_bits()).collect::<Vec<_>>());
                    assert!(out.iter().all(|x| (0.0..=1.0).contains(x)));
                }
            }
        }
    }
}
