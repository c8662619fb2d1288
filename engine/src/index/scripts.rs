//! Scripts that put no space between words, which need other ways to find words than runs of letters.

/// Whether a character belongs to a script written without spaces between words (Han, kana, Thai, Lao, Khmer,
/// Myanmar), or to Hangul, whose spaces do not part a noun from its particles.
#[must_use]
pub fn is_unspaced(letter: char) -> bool {
    matches!(
        u32::from(letter),
        0x0E00..=0x0EFF // Thai, Lao
        | 0x1000..=0x109F // Myanmar
        | 0x1100..=0x11FF // Hangul letters
        | 0x1780..=0x17FF // Khmer
        | 0x3005..=0x3007 | 0x3040..=0x318F // iteration marks, kana, bopomofo, Hangul letters
        | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF // kana, Han
        | 0xA960..=0xA97F | 0xAC00..=0xD7FF // Hangul
        | 0xF900..=0xFAFF // Han
        | 0xFF66..=0xFFDC // half-width kana and Hangul
        | 0x1B000..=0x1B16F // historic kana
        | 0x20000..=0x3FFFF // Han
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_without_spaces_are_told_from_those_with() {
        assert!("東京ひらカタ々한ไทยລາວកၵ𠀀ｶ".chars().all(is_unspaced));
        assert!(!"aÉжעعहगA０".chars().any(is_unspaced));
    }
}
