//! Numbers that order as similarities do.

/// A number that orders as the similarity does; -0 and 0 have one image.
#[inline]
pub fn image(similarity: f32) -> u32 {
    let bits = (similarity + 0.0).to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}

/// The similarity with this image.
pub fn score(image: u32) -> f32 {
    f32::from_bits(if image >> 31 == 0 { !image } else { image & !(1 << 31) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_order_as_similarities_and_zero_has_one() {
        let ordered = [-1.0, -0.5, -f32::MIN_POSITIVE, 0.0, f32::MIN_POSITIVE, 0.5, 1.0];
        assert!(ordered.map(image).is_sorted_by(|a, b| a < b));
        assert!(ordered.iter().all(|x| score(image(*x)).to_bits() == x.to_bits()));
        assert_eq!(image(-0.0), image(0.0));
    }
}
