//! From text to terms: words folded, lower-cased and stemmed; scripts without spaces as overlapping pairs.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::BuildHasherDefault;

use hedgerow_format::name::{fold, fold_lower_into, is_stop_word, tokens};
use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

use crate::index::scripts::is_unspaced;
use crate::index::terms::language::Language;

/// Turns texts into terms, one after another; owns its buffers and remembers the stems that it has seen.
///
/// A term is a maximal run of letters, digits and `_`, folded and lower-cased, if it is no stop word; one of ASCII
/// letters alone is reduced by Snowball's English stemmer. A run of a script without spaces gives its overlapping
/// pairs of characters. In a text of another language, words in its script are reduced by its stemmer instead, and the
/// term begins with `.` and the language: `.de:haus`. What a text gives never depends on the texts before it.
pub struct Analyzer {
    /// By language; the last are those of English.
    stems: [Option<Stems>; Language::COUNT + 1],
    word: String,
}

/// A stemmer and the stems that it gave.
struct Stems {
    stemmer: Stemmer,
    known: HashMap<Box<str>, Box<str>, BuildHasherDefault<DefaultHasher>>,
}

impl Stems {
    fn new(algorithm: Algorithm) -> Self {
        Self { stemmer: Stemmer::create(algorithm), known: HashMap::default() }
    }

    /// Calls `emit` with what a word is reduced to; `make` gives it, where it is not known.
    fn give(&mut self, word: &str, make: impl FnOnce(&Stemmer) -> Box<str>, emit: impl FnOnce(&str)) {
        if let Some(stem) = self.known.get(word) {
            emit(stem);
            return;
        }
        let stem = make(&self.stemmer);
        emit(&stem);
        if self.known.len() >= STEMS_MAX {
            self.known.clear();
        }
        self.known.insert(word.into(), stem);
    }
}

impl Default for Analyzer {
    fn default() -> Self {
        Self::new()
    }
}

impl Analyzer {
    /// An analyzer that has seen no text.
    #[must_use]
    pub fn new() -> Self {
        Self { stems: Default::default(), word: String::new() }
    }

    /// Calls `emit` with every term of a text in a language, English or unknown if none, in order. A text gives the same
    /// number of terms in every language.
    pub fn for_each_term(&mut self, language: Option<Language>, text: &str, mut emit: impl FnMut(&str)) {
        for part in text.split_ascii_whitespace() {
            if part.is_ascii() {
                let words = part.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
                words.for_each(|word| self.emit_word(language, word, &mut emit));
            } else {
                self.for_each_run(language, part, &mut emit);
            }
        }
    }

    /// The runs of a part that is not ASCII; `_` is a token by itself and joins its neighbours.
    fn for_each_run(&mut self, language: Option<Language>, part: &str, emit: &mut impl FnMut(&str)) {
        let mut run = 0..0;
        for token in tokens(part).iter().filter(|token| token.is_word() || token.text == "_") {
            if token.start != run.end {
                self.emit_run(language, &part[run], emit);
                run = token.start..token.start;
            }
            run.end = token.end;
        }
        self.emit_run(language, &part[run], emit);
    }

    /// A run may change between scripts: `iPhone用` is a word and a run of Han.
    fn emit_run(&mut self, language: Option<Language>, mut run: &str, emit: &mut impl FnMut(&str)) {
        while let Some(first) = run.chars().next() {
            let unspaced = is_unspaced(first);
            // What folding drops leaves the word around it whole.
            let is_kept = |letter: char| letter.is_alphanumeric() && !fold(letter.encode_utf8(&mut [0; 4])).is_empty();
            let changes = |letter: char| is_unspaced(letter) != unspaced && is_kept(letter);
            let (piece, rest) = run.split_at(run.find(changes).unwrap_or(run.len()));
            if unspaced {
                self.emit_pairs(piece, emit);
            } else {
                self.emit_word(language, piece, emit);
            }
            run = rest;
        }
    }

    /// The pairs of neighbouring characters as a reader sees them, so that composed and decomposed Hangul agree.
    fn emit_pairs(&mut self, run: &str, emit: &mut impl FnMut(&str)) {
        self.word.clear();
        let mut characters = run.graphemes(true);
        if let Some(first) = characters.next() {
            fold_lower_into(first, &mut self.word);
        }
        let (mut first_bytes, mut alone) = (self.word.len(), true);
        for second in characters {
            let start = self.word.len();
            fold_lower_into(second, &mut self.word);
            if self.word.len() > start {
                emit(cut(&self.word));
                self.word.drain(..first_bytes);
                (first_bytes, alone) = (self.word.len(), false);
            }
        }
        if alone && !self.word.is_empty() {
            emit(cut(&self.word));
        }
    }

    fn emit_word(&mut self, language: Option<Language>, word: &str, emit: &mut impl FnMut(&str)) {
        self.word.clear();
        for (i, piece) in word.split('_').enumerate() {
            // Folding keeps letters and digits only.
            if i > 0 {
                self.word.push('_');
            }
            fold_lower_into(piece, &mut self.word);
        }
        self.word.truncate(cut(&self.word).len());
        if self.word.is_empty() || is_stop_word(&self.word) {
            return;
        }
        if let Some(language) = language.filter(|language| language.writes(&self.word)) {
            self.emit_stem(language, word, emit);
        } else if self.word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            let stems = self.stems[Language::COUNT].get_or_insert_with(|| Stems::new(Algorithm::English));
            stems.give(&self.word, |stemmer| stemmer.stem(&self.word).into(), emit);
        } else {
            emit(&self.word);
        }
    }

    /// Stemmers know letters with their marks, which folding takes away; so the stem is folded, not the word.
    fn emit_stem(&mut self, language: Language, word: &str, emit: &mut impl FnMut(&str)) {
        let stems = self.stems[language.index()].get_or_insert_with(|| Stems::new(language.algorithm()));
        let lower = cut(word).nfkc().collect::<String>().to_lowercase();
        let make = |stemmer: &Stemmer| {
            let mut term = language.prefix();
            let mut stem = String::new();
            fold_lower_into(&stemmer.stem(&lower), &mut stem);
            term.push_str(if stem.is_empty() { &self.word } else { &stem });
            cut(&term).into()
        };
        stems.give(&lower, make, emit);
    }
}

/// Longer words, which no one types, are cut here.
fn cut(word: &str) -> &str {
    &word[..word.floor_char_boundary(TERM_BYTES_MAX)]
}

const TERM_BYTES_MAX: usize = 128;

/// Stems remembered at most of a language: some five megabytes.
const STEMS_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        Analyzer::new().for_each_term(None, text, |term| found.push(term.to_owned()));
        found
    }

    #[test]
    fn words_are_folded_stemmed_and_rid_of_stop_words() {
        assert_eq!(terms("The Runners were running, in Orléans!"), ["runner", "run", "orlean"]);
        assert_eq!(terms("INC-2209 snake_case B52s don't"), ["inc", "2209", "snake_case", "b52s", "don"]);
        assert_eq!(terms("größe_2 naïve–cafés ½"), ["große_2", "naiv", "cafe", "12"]);
        assert_eq!(terms("e\u{301}te\u{301} हिन्दी fo\u{e38}o"), ["ete", "हिनदी", "foo"]);
        assert_eq!(terms(" \n –"), [""; 0]);
    }

    #[test]
    fn scripts_without_spaces_give_overlapping_pairs() {
        assert_eq!(terms("東京都に住む。"), ["東京", "京都", "都に", "に住", "住む"]);
        assert_eq!(terms("iPhone用 京"), ["iphon", "用", "京"]);
        assert_eq!(terms("한국어"), terms("\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}\u{110b}\u{1165}"));
        assert_eq!(terms("한국어").len(), 2);
        assert_eq!(terms("ภาษาไทย").len(), 6);
    }

    #[test]
    fn words_of_a_language_are_stemmed_by_its_stemmer() {
        let check = |text: &str, expected: &[&str]| {
            let (mut found, mut plain) = (Vec::new(), 0);
            let mut analyzer = Analyzer::new();
            let language = Language::of(text);
            analyzer.for_each_term(language, text, |term| found.push(term.to_owned()));
            analyzer.for_each_term(None, text, |_| plain += 1);
            assert_eq!(found, expected);
            assert_eq!(found.len(), plain, "a text has as many terms in every language");
        };
        check(
            "die Häuser des Hauses und 東京 INC-7 der a_b",
            &[".de:die", ".de:haus", ".de:des", ".de:haus", ".de:und", "東京", ".de:inc", "7", ".de:der", "a_b"],
        );
        check(
            "и в не на людей человека Windows",
            &[".ru:и", ".ru:в", ".ru:не", ".ru:на", ".ru:люд", ".ru:человек", "window"],
        );
        check(
            "las organizaciones de la organizacio\u{301}n en que",
            &[".es:las", ".es:organiz", ".es:de", ".es:la", ".es:organiz", ".es:en", ".es:que"],
        );
        check("οι άνθρωποι του ανθρώπου", &[".el:οι", ".el:ανθρωπ", ".el:τ", ".el:ανθρωπ"]);
    }

    #[test]
    fn any_word_has_a_term_of_bounded_length_in_every_language() {
        let letters: Vec<char> =
            "abcdeghilmnorstuyzäöüßéèñçõşğıåøабвгеиклмностыйяαειοσςτάابتةونيஅகிதுன்ை'\u{301}ﬁ".chars().collect();
        let mut analyzer = Analyzer::new();
        let mut seed = 5_u32;
        for round in 0..20_000 {
            let word: String = (0..1 + round % 19 + if round % 500 == 0 { 300 } else { 0 })
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    letters[(seed >> 16) as usize % letters.len()]
                })
                .collect();
            let mut plain = 0;
            analyzer.for_each_term(None, &word, |_| plain += 1);
            for language in Language::all() {
                let mut count = 0;
                analyzer.for_each_term(Some(language), &word, |term| {
                    assert!(!term.is_empty() && term.len() <= TERM_BYTES_MAX, "{term}");
                    count += 1;
                });
                assert_eq!(count, plain, "{word}");
            }
        }
    }

    #[test]
    fn what_a_text_gives_does_not_depend_on_the_texts_before_it() {
        let mut analyzer = Analyzer::new();
        let number = |i: u32| -> String { i.to_string().bytes().map(|b| char::from(b + 49)).collect() };
        (0..70_000).for_each(|i| analyzer.for_each_term(None, &number(i), |_| ()));
        assert!(analyzer.stems.iter().flatten().all(|stems| stems.known.len() <= STEMS_MAX));
        let mut found = Vec::new();
        analyzer.for_each_term(None, "running", |term| found.push(term.to_owned()));
        assert_eq!(found, ["run"]);
        assert_eq!(terms(&"ab1".repeat(1000))[0].len(), TERM_BYTES_MAX);
        assert!(terms(&format!("ก{}ข", "\u{e34}".repeat(1000)))[0].len() <= TERM_BYTES_MAX);
    }
}
