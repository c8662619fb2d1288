//! The similarity that decides, against a plain sum in f64 and against simsimd's.

use crate::stores::Numbers;
use hedgerow::dot;
use simsimd::SpatialSimilarity;

#[test]
fn random_vectors_of_every_length_agree_with_both() {
    let mut numbers = Numbers(1);
    for length in (0..70).chain([127, 128, 129, 256, 384, 767, 1536, 4096]) {
        for _ in 0..20 {
            let a: Vec<f32> = (0..length).map(|_| numbers.component()).collect();
            let b: Vec<f32> = (0..length).map(|_| numbers.component()).collect();
            check(&a, &b);
        }
    }
}

#[test]
fn unit_vectors_have_length_one_and_are_closest_to_themselves() {
    let mut numbers = Numbers(2);
    let mut rows: Vec<Vec<f32>> = (0..50).map(|_| (0..384).map(|_| numbers.component()).collect()).collect();
    for row in &mut rows {
        hedgerow::normalise(row).expect("it has a direction");
    }
    for row in &rows {
        assert!((dot(row, row) - 1.0).abs() <= 2.0 * f32::EPSILON, "{}", dot(row, row));
        assert!(rows.iter().all(|other| dot(row, other) <= dot(row, row)));
    }
}

#[test]
fn hard_vectors_agree_with_both() {
    let spread: Vec<f32> = (-60..60_i8).map(|power| f32::powi(2.0, i32::from(power))).collect();
    let mirrored: Vec<f32> = spread.iter().rev().copied().collect();
    let alternating: Vec<f32> = spread.iter().zip([1.0, -1.0].into_iter().cycle()).map(|(x, sign)| x * sign).collect();
    // Almost all of it cancels, and what is left is small.
    let cancelling = [1e7, 1.0, -1e7, 1e-3, 3e6, -3e6];
    let tiny = [f32::MIN_POSITIVE, 1e-45, -1e-40, 1e-38];
    let zeros = [0.0, -0.0, 0.0, -0.0];
    for row in [spread.as_slice(), &mirrored, &alternating, &cancelling, &tiny, &zeros, &[1.0; 1000], &[0.1; 999]] {
        let ones = vec![1.0; row.len()];
        let reversed: Vec<f32> = row.iter().rev().copied().collect();
        for other in [row, &ones, &reversed] {
            check(row, other);
        }
    }
}

#[test]
fn a_sum_beyond_f32_is_infinite_and_one_within_is_not() {
    let large = [f32::MAX, f32::MAX];
    let bits = |a: &[f32], b: &[f32]| dot(a, b).to_bits();
    assert_eq!(bits(&large, &[1.0, 1.0]), f32::INFINITY.to_bits());
    assert_eq!(bits(&large, &[1.0, -1.0]), 0.0_f32.to_bits());
    assert_eq!(bits(&[f32::MAX; 3], &[1.0, 1.0, -1.0]), f32::MAX.to_bits());
}

/// The order of a sum does not show beyond f64's own rounding, and f32's once; simsimd sums in f32.
#[track_caller]
fn check(a: &[f32], b: &[f32]) {
    let products: Vec<f64> = a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).collect();
    let (reference, size) = (products.iter().sum::<f64>(), products.iter().map(|product| product.abs()).sum::<f64>());
    let length = f64::from(u32::try_from(a.len()).expect("it is short"));
    let found = f64::from(dot(a, b));
    let rounding = f64::from(f32::EPSILON) / 2.0 * reference.abs() + f64::EPSILON * length * size + 1e-45;
    assert!((found - reference).abs() <= rounding, "{found} is not {reference} of {} components", a.len());
    assert_eq!(dot(a, b).to_bits(), dot(b, a).to_bits());
    let Some(theirs) = f32::dot(a, b) else { panic!("simsimd has an answer") };
    let rounding = f64::from(f32::EPSILON) * (length + 1.0) * size + 1e-38;
    assert!((found - theirs).abs() <= rounding, "{found} is not simsimd's {theirs} of {} components", a.len());
}
