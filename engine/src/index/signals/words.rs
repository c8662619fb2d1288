//! Words as white space parts them, without regard to case: the plainest signal of a text.

use crate::index::signals::SetsBuilder;

impl SetsBuilder {
    /// Adds the words of a text: in lower case, cut at white space; punctuation stays with its word. Case and white space are
    /// Unicode's.
    pub fn push_words(&mut self, text: &str) {
        self.push(text.to_lowercase().split_whitespace());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_lower_case_and_keep_their_punctuation() {
        let mut sets = SetsBuilder::default();
        for text in [" Eerie, Indiana\n(1991)\tÉTÉ ", "été (1991) eerie, indiana", "Eerie", ""] {
            sets.push_words(text);
        }
        let sets = sets.finish();
        assert_eq!((sets.of(0).len(), sets.of(3).len()), (4, 0));
        assert_eq!(sets.of(0), sets.of(1));
        assert_eq!(sets.shared(0, 2).count(), 0);
    }
}
