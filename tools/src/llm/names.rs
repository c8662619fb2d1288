//! Where names stand in a text, whatever their case, accents and signs.

use std::ops::Range;

use hedgerow_format::name::{fold_lower_into, tokens};

/// The words of a text with their places.
#[derive(Debug)]
pub(super) struct Words(Vec<(String, Range<usize>)>);

impl Words {
    /// Cuts a text into words. O(text).
    pub fn of(text: &str) -> Words {
        let words = tokens(text).into_iter().filter(hedgerow_format::name::Token::is_word);
        Words(words.map(|token| (folded(token.text), token.start..token.end)).collect())
    }

    /// The places where a name stands, in the order of the text and without overlap; a leading article does not matter.
    pub fn places(&self, name: &str) -> Vec<Range<usize>> {
        let name = Words::of(name);
        let articles = name.0.iter().take_while(|(word, _)| matches!(word.as_str(), "the" | "a" | "an")).count();
        let wanted: Vec<&str> = name.0.iter().skip(articles).map(|(word, _)| word.as_str()).collect();
        let mut places = Vec::new();
        let mut at: usize = 0;
        while let Some(window) = self.0.get(at..at.saturating_add(wanted.len())).filter(|window| !window.is_empty()) {
            let is_here = window.iter().map(|(word, _)| word.as_str()).eq(wanted.iter().copied());
            if let (true, Some((_, first)), Some((_, last))) = (is_here, window.first(), window.last()) {
                places.push(first.start..last.end);
            }
            at += if is_here { wanted.len() } else { 1 };
        }
        places
    }

    /// Whether a name stands there.
    pub fn has(&self, name: &str) -> bool {
        !self.places(name).is_empty()
    }
}

fn folded(word: &str) -> String {
    let mut folded = String::new();
    fold_lower_into(word, &mut folded);
    folded
}

/// The smallest stretch that holds a place of both lists.
pub(super) fn around(one: &[Range<usize>], other: &[Range<usize>]) -> Option<Range<usize>> {
    let pairs = one.iter().take(PLACES_MAX).flat_map(|a| other.iter().take(PLACES_MAX).map(move |b| (a, b)));
    pairs.map(|(a, b)| a.start.min(b.start)..a.end.max(b.end)).min_by_key(|range| (range.len(), range.start))
}

const PLACES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use crate::llm::names::{Words, around};

    #[test]
    fn a_name_is_found_as_whole_words() {
        let words = Words::of("The Wall is by Röger Waters; the WALL, wallpaper.");
        assert_eq!(words.places("the wall"), [4..8, 34..38]);
        assert_eq!(words.places("Roger Waters").first(), Some(&(15..28)));
        for name in ["", "the", "Wall by", "paper"] {
            assert!(words.places(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn the_smallest_stretch_counts() {
        assert_eq!(around(&[0..2, 50..52], &[40..44, 100..101]), Some(40..52));
        assert_eq!(around(&[], &[0..2, 3..4]), None);
    }
}
