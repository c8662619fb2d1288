//! The similarity that decides: one inner product with the same bits on every machine.
//!
//! Products are widened to f64, where the product of two f32 is exact, and added up in sixteen lanes: component `i`
//! goes to lane `i mod 16`, in order. The lanes are summed by a fixed binary tree, `(i, i + 8)`, `(i, i + 4)`,
//! `(i, i + 2)`, `(i, i + 1)`, and the sum is rounded once to f32. Because products are exact, a fused
//! multiply-add gives the same bits as a multiplication and an addition, so every instruction set agrees.

mod coded;
pub mod codes;
pub mod fine;
mod kernel;
pub mod near;
#[cfg(target_arch = "aarch64")]
mod neon;
pub mod peak;
pub mod rows;
mod scalar;
pub mod tile;
pub mod together;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::distance::rows::{Rows, Typed};

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

/// The similarities of a vector with some rows that have as many components, the same bits as [`dot`] gives; 0 for a row that
/// is not there.
pub fn dots(query: &[f32], rows: &Rows<'_>, listed: &[u32], out: &mut Vec<f32>) {
    out.clear();
    match rows.typed() {
        _ if query.len() != rows.dimensions() => out.resize(listed.len(), 0.0),
        Typed::Together(rows) => kernel::dots(query, &rows, listed, out),
        Typed::Apart(rows) => kernel::dots(query, &rows, listed, out),
    }
}

/// The similarities of pairs of rows, the same bits as [`dot`] gives; 0 where a row is not there.
pub fn pair_dots(rows: &Rows<'_>, pairs: &[[u32; 2]], out: &mut Vec<f32>) {
    out.clear();
    match rows.typed() {
        Typed::Together(rows) => kernel::pair_dots(&rows, pairs, out),
        Typed::Apart(rows) => kernel::pair_dots(&rows, pairs, out),
    }
}

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
}
