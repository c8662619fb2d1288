//! Made-up vectors that lie as embeddings of texts do: the same on every machine.

use std::ops::Range;

/// How many vectors to make up, of how many components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synthetic {
    /// Vectors.
    pub rows: usize,
    /// Components of each.
    pub dimensions: usize,
}

/// A matrix has at most as many rows as a store has chunks, and as many columns as a vector may have components.
const ROWS_MAX: usize = u32::MAX as usize;
const DIMENSIONS: Range<usize> = 1..4097;

/// Topics; a vector is of a few of them, and some are far more frequent than others.
const TOPICS: usize = 512;

/// How much of each of its topics a vector has.
const SHARES: [f32; 4] = [1.0, 0.7, 0.6, 0.5];

/// How much of its own it has beside.
const OWN: f32 = 0.6;

/// Directions that topics are mixed of, and how much of them a topic has, beside its own.
const DIRECTIONS: usize = 64;
const MIXED: f32 = 0.1;
const TOPICS_OWN: f32 = 0.6;

/// Reads a shape such as `20000x768`.
///
/// # Errors
/// What was expected.
pub fn shape(text: &str) -> Result<Synthetic, String> {
    let fault = || "expected ROWSxDIMENSIONS with at most 4,096 dimensions, such as 20000x768".to_owned();
    let (rows, dimensions) = text.split_once('x').ok_or_else(fault)?;
    let [rows, dimensions] = [rows, dimensions].map(|number| number.parse::<usize>().ok());
    let rows = rows.filter(|rows| *rows <= ROWS_MAX);
    let dimensions = dimensions.filter(|dimensions| DIMENSIONS.contains(dimensions));
    Ok(Synthetic { rows: rows.ok_or_else(fault)?, dimensions: dimensions.ok_or_else(fault)? })
}

impl Synthetic {
    /// The vectors, made one after another; not of length one.
    pub fn vectors(self) -> impl Iterator<Item = Vec<f32>> {
        let Self { rows, dimensions } = self;
        let mut numbers = Numbers(7);
        let directions: Vec<Vec<f32>> = (0..DIRECTIONS).map(|_| numbers.vector(dimensions, 1.0)).collect();
        let topics: Vec<Vec<f32>> = (0..TOPICS)
            .map(|_| {
                let mut topic = numbers.vector(dimensions, TOPICS_OWN);
                for direction in &directions {
                    add(&mut topic, direction, MIXED * numbers.bell());
                }
                topic
            })
            .collect();
        (0..rows).map(move |_| {
            let mut vector = numbers.vector(dimensions, OWN);
            for share in SHARES {
                add(&mut vector, &topics[numbers.topic()], share);
            }
            vector
        })
    }
}

fn add(sum: &mut [f32], vector: &[f32], share: f32) {
    for (sum, component) in sum.iter_mut().zip(vector) {
        *sum += share * component;
    }
}

/// Numbers that look random, by whole numbers, and by sums and products of floats alone.
struct Numbers(u64);

impl Numbers {
    /// From 0 up to 1.
    #[expect(clippy::cast_precision_loss, reason = "24 bits")]
    fn unit(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / 16_777_216.0
    }

    /// About normally distributed, with variance 1.
    fn bell(&mut self) -> f32 {
        2.0 * (self.unit() + self.unit() + self.unit() - 1.5)
    }

    fn vector(&mut self, dimensions: usize, size: f32) -> Vec<f32> {
        (0..dimensions).map(|_| size * self.bell()).collect()
    }

    /// A topic: the lower, the more frequent.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 up to the number of topics")]
    #[expect(clippy::cast_precision_loss, reason = "few topics")]
    fn topic(&mut self) -> usize {
        let unit = self.unit();
        ((TOPICS as f32 * unit * unit) as usize).min(TOPICS - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hedgerow::{dot, normalise};

    #[test]
    fn shapes_are_read_or_say_what_was_expected() {
        assert_eq!(shape("20000x768"), Ok(Synthetic { rows: 20_000, dimensions: 768 }));
        for text in ["", "x", "10", "10x", "x10", "10x0", "10x4097", "-1x3", "1x2x3", "99999999999999999999x3"] {
            assert!(shape(text).is_err_and(|fault| fault.contains("20000x768")), "{text}");
        }
    }

    #[test]
    fn made_up_vectors_lie_as_embeddings_of_texts_do() {
        let mut vectors: Vec<Vec<f32>> = Synthetic { rows: 600, dimensions: 384 }.vectors().collect();
        assert_eq!(vectors, Synthetic { rows: 600, dimensions: 384 }.vectors().collect::<Vec<_>>());
        for vector in &mut vectors {
            normalise(vector).expect("a direction");
        }
        let mut all: Vec<f32> =
            (0..600).flat_map(|a| (0..a).map(move |b| (a, b))).map(|(a, b)| dot(&vectors[a], &vectors[b])).collect();
        all.sort_by(f32::total_cmp);
        let at = |thousandths: usize| all[all.len() * thousandths / 1000];
        // Of 20,000 passages of Wikipedia by MiniLM: -0.08, 0.02, 0.20, 0.29, 0.43.
        let found = [100, 500, 950, 990, 999].map(at);
        for (found, expected) in found.iter().zip([-0.10, 0.01, 0.19, 0.32, 0.48]) {
            assert!((found - expected).abs() < 0.03, "{found} {expected}");
        }
    }
}
