//! The similarity that decides: one inner product with the same bits on every machine.
//!
//! Products are widened to f64, where the product of two f32 is exact, and added up in sixteen lanes: component `i`
//! goes to lane `i mod 16`, in order. The lanes are summed by a fixed binary tree, `(i, i + 8)`, `(i, i + 4)`,
//! `(i, i + 2)`, `(i, i + 1)`, and the sum is rounded once to f32. Because products are exact, a fused
//! multiply-add gives the same bits as a multiplication and an addition, so every instruction set agrees.

mod kernel;

/// Why a vector cannot stand in a vector space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VectorFault {
    /// A component is infinite or not a number.
    #[error("component {component} is not a finite number")]
    NotFinite {
        /// Position of the first such component.
        component: usize,
    },
    /// The vector has no direction.
    #[error("the vector is zero and has no direction")]
    Zero,
}

/// The similarity of two vectors of equal length; where lengths differ, the longer one's rest is ignored.
#[must_use]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    round(kernel::dot(a, b))
}

/// The similarity of a vector and a row that lies in a file as little-endian f32.
#[must_use]
pub fn dot_bytes(query: &[f32], row_le_bytes: &[u8]) -> f32 {
    round(kernel::dot(query, row_le_bytes.as_chunks::<4>().0))
}

/// Brings a vector to length one, the norm taken in f64 by the lanes of the similarity.
///
/// # Errors
/// When a component is not finite, or all are zero; the vector is then unchanged.
pub fn normalise(vector: &mut [f32]) -> Result<(), VectorFault> {
    if let Some(component) = vector.iter().position(|x| !x.is_finite()) {
        return Err(VectorFault::NotFinite { component });
    }
    let norm = kernel::dot(vector, vector).sqrt();
    if norm == 0.0 {
        return Err(VectorFault::Zero);
    }
    for component in vector {
        *component = round(f64::from(*component) / norm);
    }
    Ok(())
}

/// The similarities of every query with every row, the same bits as [`dot`] gives.
///
/// `queries` and `rows` are row-major matrices of `dimensions` columns; `out` gets one line a query, one value a row.
/// Whole rows that find no place in `out` are left out. Costs a copy of both matrices in f64, so call it for blocks
/// that fit the second-level cache.
pub fn dots(queries: &[f32], rows: &[f32], dimensions: usize, out: &mut [f32]) {
    if dimensions == 0 {
        out.fill(0.0);
        return;
    }
    let (m, n) = (queries.len() / dimensions, rows.len() / dimensions);
    if m >= TILED_QUERIES_MIN && n >= TILED_QUERIES_MIN {
        kernel::dots(queries, rows, dimensions, out);
        return;
    }
    for (query, line) in queries.chunks_exact(dimensions).zip(out.chunks_mut(n.max(1))) {
        for (row, value) in rows.chunks_exact(dimensions).zip(line) {
            *value = dot(query, row);
        }
    }
}

/// Below this many queries or rows, packing them costs more than the tiles save.
const TILED_QUERIES_MIN: usize = 4;

/// The one rounding of a sum.
#[expect(clippy::cast_possible_truncation, reason = "the similarity is defined by this rounding")]
fn round(sum: f64) -> f32 {
    sum as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_file_give_the_same_bits_as_floats() {
        let a: Vec<f32> = (0..70u8).map(|i| f32::from(i).sin()).collect();
        let bytes: Vec<u8> = a.iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(dot(&a, &a).to_bits(), dot_bytes(&a, &bytes).to_bits());
    }

    #[test]
    fn a_normalised_vector_has_length_one_and_faults_are_named() {
        let mut vector = vec![3.0, 4.0];
        normalise(&mut vector).unwrap();
        assert_eq!(vector, [0.6, 0.8]);
        let mut tiny = vec![1e-45; 3];
        normalise(&mut tiny).unwrap();
        assert!((dot(&tiny, &tiny) - 1.0).abs() < 1e-6);
        assert_eq!(normalise(&mut [0.0, -0.0]), Err(VectorFault::Zero));
        assert_eq!(normalise(&mut [0.0, f32::NAN]), Err(VectorFault::NotFinite { component: 1 }));
        assert_eq!(normalise(&mut []), Err(VectorFault::Zero));
    }

    #[test]
    fn few_queries_and_many_give_the_same_bits_and_odd_shapes_are_safe() {
        let matrix: Vec<f32> = (0..9u8 * 21).map(|i| f32::from(i).cos()).collect();
        let mut all = vec![0.0; 81];
        dots(&matrix, &matrix, 21, &mut all);
        for (query, line) in matrix.chunks_exact(21).zip(all.chunks_exact(9)) {
            let mut one = vec![0.0; 9];
            dots(query, &matrix, 21, &mut one);
            assert_eq!(one, line);
        }
        dots(&matrix, &[], 21, &mut []);
        dots(&matrix, &matrix, 21, &mut [0.0; 5]);
        dots(&[], &[], 0, &mut [0.0; 5]);
    }
}
