//! Which words a corpus writes as names, where known names stand in a text, and what a text starts with.

mod gazetteer;

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::BuildHasherDefault;

use hedgerow_format::limits;
use hedgerow_format::name::{fold_lower_into, tokens};

pub use crate::index::names::gazetteer::Gazetteer;

/// A map whose hashing is the same in every run.
type Fixed<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

/// What a corpus says about its words.
pub trait Cases {
    /// The counts of one word, folded and in lower case.
    fn case(&self, word: &str) -> Case;
}

impl Cases for CaseCounts {
    fn case(&self, word: &str) -> Case {
        self.counts.get(word).copied().unwrap_or_default()
    }
}

/// How often a corpus writes each word in lower case and how often with a capital in mid-sentence.
#[derive(Clone, Debug, Default)]
pub struct CaseCounts {
    counts: Fixed<Box<str>, Case>,
}

/// Occurrences of one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// In lower case.
    pub lower: u32,
    /// With a capital, where no sentence starts.
    pub capital: u32,
}

impl Case {
    /// Whether one word that is written so counts as a name at the start of a sentence.
    #[must_use]
    pub fn is_name(self) -> bool {
        self.capital > 0 && self.lower <= self.capital
    }

    /// Whether a known name of one word that is written so counts wherever it has a capital, and whether it does in
    /// mid-sentence.
    #[must_use]
    pub fn allows(self) -> (bool, bool) {
        let everywhere = self.lower <= self.capital;
        (everywhere, everywhere || u64::from(self.capital) * 4 > u64::from(self.lower))
    }
}

impl CaseCounts {
    /// Counts the words of one text.
    pub fn add(&mut self, text: &str) {
        let (mut before, mut word) = (".", String::new());
        for token in tokens(text) {
            let mid_sentence = !ends_sentence(before);
            before = token.text;
            let case = match token.text.chars().next() {
                Some(first) if first.is_lowercase() => Case { lower: 1, capital: 0 },
                Some(first) if first.is_uppercase() && mid_sentence => Case { lower: 0, capital: 1 },
                _ => continue,
            };
            word.clear();
            fold_lower_into(token.text, &mut word);
            if word.len() <= limits::CASE_WORD_BYTES {
                self.add_word(&word, case);
            }
        }
    }

    /// Counts occurrences of one word, folded and in lower case.
    pub fn add_word(&mut self, word: &str, case: Case) {
        let Some(known) = self.counts.get_mut(word) else {
            self.counts.insert(word.into(), case);
            return;
        };
        known.lower = known.lower.saturating_add(case.lower);
        known.capital = known.capital.saturating_add(case.capital);
    }

    /// Adds the counts of other texts; the order of texts makes no difference.
    pub fn merge(&mut self, other: &Self) {
        for (word, case) in &other.counts {
            self.add_word(word, *case);
        }
    }

    /// Every word with its counts, in the order of words.
    #[must_use]
    pub fn sorted(&self) -> Vec<(&str, Case)> {
        let mut words: Vec<_> = self.counts.iter().map(|(word, case)| (&**word, *case)).collect();
        words.sort_unstable_by_key(|(word, _)| *word);
        words
    }
}

/// Whether a corpus writes a word (folded, lower case) as a name: with a capital in mid-sentence somewhere, and in lower
/// case no more often.
#[must_use]
pub fn counts_as_name(word: &str, counts: &impl Cases) -> bool {
    counts.case(word).is_name()
}

/// The phrases that a text may start by defining: after an article, one to six words of which the first and the last
/// have a capital or are digits, given as keys.
pub fn leads(text: &str, mut emit: impl FnMut(&str)) {
    let start = &text[..text.floor_char_boundary(LEAD_BYTES)];
    let tokens = tokens(start);
    let mut words: Vec<&str> = tokens.iter().take(LEAD_TOKENS).filter(|t| t.is_word()).map(|t| t.text).collect();
    let article = words.first().is_some_and(|first| ["the", "a", "an"].iter().any(|a| first.eq_ignore_ascii_case(a)));
    words.drain(..usize::from(article));
    if !words.first().is_some_and(|first| stands_out(first)) {
        return;
    }
    let mut key = String::new();
    for word in words.into_iter().take(LEAD_WORDS) {
        if !key.is_empty() {
            key.push(' ');
        }
        fold_lower_into(word, &mut key);
        if stands_out(word) {
            emit(&key);
        }
    }
}

/// A lead ends within so many tokens, signs included, and has at most so many words; more bytes are not looked at.
const LEAD_TOKENS: usize = 16;
const LEAD_WORDS: usize = 6;
const LEAD_BYTES: usize = 1024;

/// Whether a word has a capital, or a digit, or a letter that knows no case, at its start.
fn stands_out(word: &str) -> bool {
    word.chars().next().is_some_and(|first| is_capital(first) || first.is_numeric())
}

fn is_capital(letter: char) -> bool {
    letter.is_alphabetic() && !letter.is_lowercase()
}

/// Whether a capital after this token may be due to a new sentence alone.
fn ends_sentence(token: &str) -> bool {
    matches!(token, "." | "!" | "?" | "\"" | "…" | "“" | "”" | "。" | "！" | "？")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(text: &str) -> CaseCounts {
        let mut counts = CaseCounts::default();
        counts.add(text);
        counts
    }

    #[test]
    fn words_are_counted_by_case_outside_the_starts_of_sentences() {
        let mut counts = counted("Walls stand. The wall, the Wall! Wall? A WALL and Été. «Été» 12 東京");
        assert_eq!(counts.case("wall"), Case { lower: 1, capital: 2 });
        assert_eq!(counts.case("walls"), Case::default());
        assert_eq!(counts.case("ete"), Case { lower: 0, capital: 2 });
        assert!(counts_as_name("wall", &counts) && !counts_as_name("unknown", &counts));
        assert!(!counts_as_name("stand", &counts));
        let other = counted("wall wall");
        let mut merged = other.clone();
        merged.merge(&counts);
        counts.merge(&other);
        assert_eq!(counts.sorted(), merged.sorted());
        assert_eq!(counts.case("wall"), Case { lower: 3, capital: 2 });
        let words: Vec<&str> = counts.sorted().iter().map(|(word, _)| *word).collect();
        assert_eq!(words, ["and", "ete", "stand", "the", "wall"]);
    }

    #[test]
    fn leads_are_the_capitalised_phrases_that_open_a_text() {
        let all = |text: &str| {
            let mut keys = Vec::new();
            leads(text, |key| keys.push(key.to_owned()));
            keys
        };
        assert_eq!(all("The Dark Side of the Moon is"), ["dark", "dark side", "dark side of the moon"]);
        assert_eq!(all("\"Été\" (1984, film)"), ["ete", "ete 1984"]);
        assert_eq!(all("it was The Wall"), [""; 0]);
        assert_eq!(all("the"), [""; 0]);
        assert_eq!(all(&"A ".repeat(9)).len(), 6);
        assert_eq!(all(&"- ".repeat(16)), [""; 0]);
        assert_eq!(all(&"é".repeat(2000)).len(), 0);
    }
}
