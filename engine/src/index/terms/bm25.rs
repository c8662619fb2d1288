//! BM25 in f32 with lengths of one byte, as Lucene and tantivy count, so that scores equal theirs.

/// The two constants of BM25.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bm25 {
    /// How fast further occurrences of a term stop counting; zero or more.
    pub k1: f32,
    /// How much a long passage is held against it: 0 (not) to 1.
    pub b: f32,
}

impl Default for Bm25 {
    fn default() -> Self {
        Self { k1: 1.2, b: 0.75 }
    }
}

/// What an occurrence of one term is worth in passages of each length.
#[derive(Clone, Debug)]
pub struct TermWeight {
    weight: f32,
    norms: [f32; 256],
}

impl TermWeight {
    /// The weight of a term that `passages_with_term` of `passages` contain, all counted over live rows.
    #[must_use]
    pub fn new(passages: u64, passages_with_term: u64, average_length: f32, bm25: Bm25) -> Self {
        let mut norms = [0.0; 256];
        for (code, norm) in (0..=u8::MAX).zip(&mut norms) {
            let relative = if average_length > 0.0 { real(code_length(code).into()) / average_length } else { 1.0 };
            *norm = bm25.k1 * (1.0 - bm25.b + bm25.b * relative);
        }
        Self { weight: idf(passages, passages_with_term) * (1.0 + bm25.k1), norms }
    }

    /// The score of a passage of `length` terms in which the term occurs `occurrences` times.
    #[must_use]
    pub fn score(&self, occurrences: u32, length: u32) -> f32 {
        self.score_coded(occurrences, length_code(length))
    }

    /// The score of a passage whose length is known as its code.
    #[must_use]
    pub fn score_coded(&self, occurrences: u32, length_code: u8) -> f32 {
        if occurrences == 0 {
            return 0.0;
        }
        let occurrences = real(occurrences.into());
        self.weight * (occurrences / (occurrences + self.norms[usize::from(length_code)]))
    }
}

/// How much a term tells: `ln(1 + (N − n + 0.5) / (n + 0.5))`.
#[must_use]
pub fn idf(passages: u64, passages_with_term: u64) -> f32 {
    let without = real(passages.saturating_sub(passages_with_term));
    libm::logf(1.0 + (without + 0.5) / (real(passages_with_term) + 0.5))
}

/// The code of the greatest length not above this one that has a code.
#[must_use]
pub fn length_code(length: u32) -> u8 {
    let Some(above) = length.checked_sub(EXACT) else {
        return byte(length);
    };
    if above < 8 {
        return byte(length);
    }
    // Three bits below the highest one are kept.
    let shift = above.ilog2() - 3;
    byte(EXACT + ((shift + 1) << 3 | (above >> shift & 7)))
}

/// The length that a code stands for.
#[must_use]
pub fn code_length(code: u8) -> u32 {
    let code = u32::from(code);
    match code.checked_sub(EXACT) {
        Some(above) if above >= 8 => EXACT + ((8 | above & 7) << ((above >> 3) - 1)),
        _ => code,
    }
}

/// Lengths below this are their own codes; above it, what exceeds it is a floating-point number of four bits.
const EXACT: u32 = 24;

/// A code from a number that is below 256: the highest length, 2³² − 1, has the code 255.
fn byte(code: u32) -> u8 {
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// A count as BM25 uses it.
#[expect(clippy::cast_precision_loss, reason = "BM25 is defined in f32; counts above 2²⁴ are rounded")]
fn real(count: u64) -> f32 {
    count as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_lengths_are_the_known_ones() {
        let known = [(0, 0), (39, 39), (40, 40), (41, 42), (48, 56), (64, 152), (90, 1304), (255, 2_013_265_944)];
        for (code, length) in known {
            assert_eq!(code_length(code), length);
        }
        for code in 0..=u8::MAX {
            let length = code_length(code);
            assert_eq!(length_code(length), code);
            if code < u8::MAX {
                assert!(code_length(code + 1) > length);
                assert_eq!(length_code(code_length(code + 1) - 1), code);
            }
        }
        assert_eq!(length_code(u32::MAX), u8::MAX);
    }

    #[test]
    fn scores_follow_the_formula() {
        let weight = TermWeight::new(10, 3, 20.0, Bm25::default());
        let idf = f64::ln(1.0 + 7.5 / 3.5);
        let expected = idf * 2.2 * 2.0 / (2.0 + 1.2 * (0.25 + 0.75 * 42.0 / 20.0));
        assert!((f64::from(weight.score(2, 43)) - expected).abs() < 1e-6);
        assert_eq!(weight.score(2, 43).to_bits(), weight.score_coded(2, 41).to_bits());
        assert_eq!(weight.score(0, 43).to_bits(), 0);
    }

    #[test]
    fn odd_counts_give_finite_scores() {
        for (passages, with, average) in [(0, 0, 0.0), (1, 5, 0.0), (u64::MAX, 1, 1.0)] {
            assert!(TermWeight::new(passages, with, average, Bm25::default()).score(u32::MAX, 0).is_finite());
        }
        let none = Bm25 { k1: 0.0, b: 0.0 };
        assert!(TermWeight::new(2, 1, 1.0, none).score(1, 1).is_finite());
    }
}
