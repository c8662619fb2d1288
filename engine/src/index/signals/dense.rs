//! The similarity of vectors of a space, as a signal beside others: of titles, say.

use crate::distance::rows::Rows;
use crate::distance::{dot, dots};
use crate::index::signals::{Scratch, Signal, hash_all};
use std::borrow::Cow;
use std::ops::Range;

/// A row-major matrix of unit vectors; a row of zeros is similar to none. The similarity is that of [`crate::distance::dot`].
#[derive(Clone, Debug)]
pub struct Dense<'m> {
    matrix: Cow<'m, [f32]>,
    dimensions: usize,
}

impl<'m> Dense<'m> {
    /// The rows of a matrix with so many columns; what is left over at its end is no row.
    pub fn new(matrix: impl Into<Cow<'m, [f32]>>, dimensions: usize) -> Self {
        Self { matrix: matrix.into(), dimensions }
    }

    fn row(&self, row: u32) -> &[f32] {
        let start = (row as usize).saturating_mul(self.dimensions);
        self.matrix.get(start..start.saturating_add(self.dimensions)).unwrap_or_default()
    }
}

impl Signal for Dense<'_> {
    fn rows(&self) -> usize {
        self.matrix.len().checked_div(self.dimensions).unwrap_or(0)
    }

    fn similarity(&self, a: u32, b: u32) -> f32 {
        plain(dot(self.row(a), self.row(b)))
    }

    fn line(&self, row: u32, range: Range<u32>, scratch: &mut Scratch, out: &mut Vec<f32>) {
        scratch.listed.clear();
        scratch.listed.extend(range);
        self.some(row, &scratch.listed, out);
    }

    fn some(&self, row: u32, listed: &[u32], out: &mut Vec<f32>) {
        let query = self.row(row);
        dots(query, &Rows::of_matrix(&self.matrix, self.dimensions), listed, out);
        for similarity in out {
            *similarity = plain(*similarity);
        }
    }

    fn unit_vectors(&self) -> Option<(&[f32], usize)> {
        let mut rows = self.matrix.chunks_exact(self.dimensions.max(1));
        // A row of zeros stands for no vector.
        rows.all(|row| row.iter().any(|component| *component != 0.0)).then_some((&self.matrix, self.dimensions))
    }

    fn is_sparse(&self) -> bool {
        false
    }

    fn bytes(&self) -> u64 {
        self.matrix.len() as u64 * 4
    }

    fn identify(&self, hash: &mut blake3::Hasher) {
        hash.update(b"vectors").update(&(self.dimensions as u64).to_le_bytes());
        hash_all(hash, self.matrix.iter().map(|component| component.to_le_bytes()));
    }
}

/// Vectors of a damaged file may have similarities that are no numbers.
fn plain(similarity: f32) -> f32 {
    if similarity.is_nan() { 0.0 } else { similarity + 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_lists_give_the_bits_of_single_similarities() {
        let matrix: Vec<f32> = (0..35u8).map(|i| f32::from(i).sin()).chain([0.0; 7]).collect();
        let dense = Dense::new(&matrix, 7);
        let (mut scratch, mut out) = (Scratch::default(), Vec::new());
        for row in 0..7 {
            let single: Vec<u32> = (1..8).map(|other| dense.similarity(row, other).to_bits()).collect();
            dense.line(row, 1..8, &mut scratch, &mut out);
            assert_eq!(out.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), single);
        }
        assert_eq!((dense.rows(), dense.similarity(5, 0).to_bits(), dense.similarity(9, 0).to_bits()), (6, 0, 0));
    }

    #[test]
    fn what_is_no_number_or_minus_zero_counts_as_zero() {
        let dense = Dense::new(vec![f32::NAN, 1.0, -0.0, 0.0], 1);
        for (a, b) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
            assert_eq!(dense.similarity(a, b).to_bits(), 0);
        }
        let empty = Dense::new(Vec::new(), 0);
        assert_eq!((empty.rows(), empty.similarity(0, 0).to_bits()), (0, 0));
    }
}
