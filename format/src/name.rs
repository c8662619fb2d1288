//! Names of entities: how text is folded, cut into tokens, and made into the key under which an entity is known.

use std::borrow::Cow;

use unicode_normalization::char::{canonical_combining_class, decompose_compatible, is_combining_mark};

/// Compatibility decomposition (NFKD) of `text` without its combining marks; ASCII is borrowed.
#[must_use]
pub fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut folded = String::with_capacity(text.len());
    for letter in text.chars() {
        fold_char(letter, |part| folded.push(part));
    }
    Cow::Owned(folded)
}

/// A token and the bytes of the text where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'t> {
    /// The token, as it stands in the text.
    pub text: &'t str,
    /// Its first byte.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
}

impl Token<'_> {
    /// Whether it is a word or a number, not a sign.
    #[must_use]
    pub fn is_word(&self) -> bool {
        self.text.chars().next().is_some_and(char::is_alphanumeric)
    }
}

/// Cuts text into maximal runs of letters and digits (with the combining marks inside them) and single other characters;
/// white space separates. O(text).
#[must_use]
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    // Prose has a little over four bytes a token.
    let mut found = Vec::with_capacity(text.len() / 4);
    let mut at = 0;
    while let Some(token) = next_token(text, at) {
        at = token.end;
        found.push(token);
    }
    found
}

/// The key of a name: its words folded, lower-cased and joined by one space, leading articles dropped.
///
/// Two names with one key are one entity: `The Wall` and `wall`, `INC-2209` and `Inc 2209`. Empty when no word remains.
#[must_use]
pub fn name_key_text(name: &str) -> String {
    let mut key = String::with_capacity(name.len());
    if name.is_ascii() {
        let words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
        words.filter(|word| !word.is_empty()).for_each(|word| add_word(word, &mut key));
        return key;
    }
    let mut at = 0;
    while let Some(token) = next_token(name, at) {
        at = token.end;
        if token.is_word() {
            add_word(token.text, &mut key);
        }
    }
    key
}

/// Appends a word to a name key.
fn add_word(word: &str, key: &mut String) {
    let before = key.len();
    if before > 0 {
        key.push(' ');
    }
    let start = key.len();
    fold_lower_into(word, key);
    if key.len() == start {
        key.truncate(before);
    } else if start == 0 && matches!(key.as_str(), "the" | "a" | "an") {
        key.clear();
    }
}

/// Appends one token, folded and lower-cased; signs that folding uncovers (`½` is `1⁄2`) are left out, so that one
/// token stays one word; and so are marks at its beginning, which no word begins with. `out` is empty, or ends in a space
/// or in the word so far.
pub fn fold_lower_into(token: &str, out: &mut String) {
    if token.is_ascii() {
        let start = out.len();
        out.push_str(token);
        if let Some(added) = out.get_mut(start..) {
            added.make_ascii_lowercase();
        }
        return;
    }
    for letter in token.chars() {
        fold_char(letter, |part| {
            for lower in part.to_lowercase() {
                let goes_on = !out.is_empty() && !out.ends_with(' ');
                if lower.is_alphanumeric() || (goes_on && continues_word(lower)) {
                    // A final sigma is the same letter, which upper case cannot tell.
                    out.push(if lower == 'ς' { 'σ' } else { lower });
                }
            }
        });
    }
}

/// Whether a key says enough to be an entity: neither only stop words and single letters nor a lone number of one or two digits.
#[must_use]
pub fn is_meaningful(key: &str) -> bool {
    let lone_number = key.len() < 3 && key.bytes().all(|byte| byte.is_ascii_digit());
    !lone_number && key.split(' ').any(|word| !is_single_letter(word) && !is_stop_word(word))
}

/// Whether a lower-case word is too common to tell one text from another (English).
#[must_use]
pub fn is_stop_word(lower: &str) -> bool {
    lower.len() <= STOP_WORD_BYTES_MAX && STOP_WORDS.binary_search(&packed(lower)).is_ok()
}

/// The better of two spellings of one name: the one with fewer capitals inside words, then the lower in byte order. The
/// choice among many does not depend on the order in which they come.
#[must_use]
pub fn better_spelling<'n>(one: &'n str, other: &'n str) -> &'n str {
    if one == other {
        return one;
    }
    let rank = |name: &'n str| {
        let inside = name
            .chars()
            .zip(name.chars().skip(1))
            .filter(|(before, letter)| before.is_alphabetic() && letter.is_uppercase());
        (inside.count(), name)
    };
    if rank(one) <= rank(other) { one } else { other }
}

/// The better of two types of one entity: any before none, then the lower in byte order.
#[must_use]
pub fn better_kind<'n>(one: &'n str, other: &'n str) -> &'n str {
    if other.is_empty() || (!one.is_empty() && one <= other) { one } else { other }
}

/// A title without the qualifier in parentheses that ends it: `Help!` for `Help! (album)`.
#[must_use]
pub fn title_name(title: &str) -> &str {
    let title = title.trim();
    let Some(inside) = title.strip_suffix(')') else {
        return title;
    };
    let qualifier = inside.rsplit(')').next().unwrap_or_default();
    let name = qualifier
        .split_once('(')
        .and_then(|(_, opened)| inside.strip_suffix(opened)?.strip_suffix('('))
        .unwrap_or_default()
        .trim_end();
    // A title that is nothing but parentheses is its own name.
    if name.is_empty() { title } else { name }
}

fn next_token(text: &str, from: usize) -> Option<Token<'_>> {
    let (skipped, first) = text.get(from..)?.char_indices().find(|(_, letter)| !letter.is_whitespace())?;
    let start = from.saturating_add(skipped);
    let length = if first.is_alphanumeric() { word_length(text.get(start..)?) } else { first.len_utf8() };
    let end = start.saturating_add(length);
    Some(Token { text: text.get(start..end)?, start, end })
}

fn word_length(text: &str) -> usize {
    match text.bytes().enumerate().find(|(_, byte)| !byte.is_ascii_alphanumeric()) {
        None => text.len(),
        Some((length, byte)) if byte.is_ascii() => length,
        Some(_) => {
            text.char_indices().find(|(_, letter)| !continues_word(*letter)).map_or(text.len(), |(length, _)| length)
        }
    }
}

fn continues_word(letter: char) -> bool {
    letter.is_alphanumeric() || (!letter.is_ascii() && is_combining_mark(letter))
}

/// Calls `emit` with the parts of a letter that folding keeps. Only marks would need reordering, and they are dropped.
fn fold_char(letter: char, mut emit: impl FnMut(char)) {
    if letter.is_ascii() {
        emit(letter);
        return;
    }
    decompose_compatible(letter, |part| {
        if canonical_combining_class(part) == 0 {
            emit(part);
        }
    });
}

/// One letter of an alphabet; an ideograph is a word by itself.
fn is_single_letter(word: &str) -> bool {
    let mut letters = word.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) => {
            !matches!(letter, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
        }
        (first, _) => first.is_none(),
    }
}

/// A word of at most eight bytes as a number. Looking these up takes 10 ns; looking up the strings took 57 ns.
const fn packed(word: &str) -> u64 {
    let (mut bytes, mut number) = (word.as_bytes(), 0);
    while let [first, rest @ ..] = bytes {
        number = (number << 8) | *first as u64;
        bytes = rest;
    }
    number
}

const STOP_WORD_BYTES_MAX: usize = 6;

macro_rules! packed_all {
    ($($word:literal)*) => { [$(packed($word)),*] };
}

/// Shorter words first, words of one length in alphabetical order: the order of their numbers.
#[rustfmt::skip]
const STOP_WORDS: [u64; 80] = packed_all![
    "a" "i" "s" "t" "am" "an" "as" "at" "be" "by" "do" "he" "if" "in" "is" "it" "me" "my" "no" "of" "on" "or"
    "so" "to" "us" "we" "and" "are" "but" "can" "did" "for" "had" "has" "her" "him" "his" "how" "its" "not"
    "our" "she" "the" "was" "who" "why" "you" "also" "been" "does" "from" "have" "into" "such" "than" "that"
    "them" "then" "they" "this" "were" "what" "when" "whom" "will" "with" "your" "about" "being" "could"
    "other" "their" "there" "these" "those" "where" "which" "whose" "would" "should"
];

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use crate::name::{STOP_WORDS, fold, is_meaningful, is_stop_word, name_key_text, title_name, tokens};

    fn words(text: &str) -> Vec<&str> {
        tokens(text).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn keys_join_spellings_of_one_name() {
        for (name, key) in [
            ("The Wall", "wall"),
            ("the", ""),
            ("The The Band", "band"),
            ("Fruit Chan", "fruit chan"),
            ("INC-2209", "inc 2209"),
            ("Śrī", "sri"),
            ("Beyoncé  Knowles-Carter's", "beyonce knowles carter s"),
            ("Ａｌｐｈａ", "alpha"),
            ("ΟΔΟΣ", "οδοσ"),
            ("οδος", "οδοσ"),
            ("İzmir", "izmir"),
            ("Bjørn", "bjørn"),
            ("½ Man", "12 man"),
            ("  -- ", ""),
            ("東京", "東京"),
            ("\u{6DA}\u{34F}r b", "r b"),
        ] {
            assert_eq!(name_key_text(name), key, "{name}");
            assert_eq!(name_key_text(key), key, "the key of a key is itself: {key}");
        }
    }

    #[test]
    fn keys_of_ascii_names_are_made_of_their_tokens() {
        for name in ["The  A an-Wall_2 ", "a.b::C", "...", "the", "X'the'"] {
            let words: Vec<String> =
                tokens(name).iter().filter(|token| token.is_word()).map(|token| token.text.to_lowercase()).collect();
            let articles = words.iter().take_while(|word| matches!(word.as_str(), "the" | "a" | "an")).count();
            assert_eq!(name_key_text(name), words[articles..].join(" "), "{name}");
        }
    }

    #[test]
    fn tokens_are_words_and_single_signs_with_their_bytes() {
        assert_eq!(words("Rock-'n' 2.0_x…"), ["Rock", "-", "'", "n", "'", "2", ".", "0", "_", "x", "…"]);
        assert_eq!(words("\u{301}a\u{301}b\u{a0}हिन्दी"), ["\u{301}", "a\u{301}b", "हिन्दी"]);
        assert_eq!(words(" \n"), [""; 0]);
        let text = "Śrī (गीता)";
        for token in tokens(text) {
            assert_eq!(token.text, &text[token.start..token.end]);
        }
    }

    #[test]
    fn folding_drops_marks_and_borrows_ascii() {
        assert!(matches!(fold("plain"), Cow::Borrowed("plain")));
        assert_eq!(fold("naïve ﬁancé – Ω"), "naive fiance – Ω");
    }

    #[test]
    fn meaning_needs_more_than_stop_words_letters_and_short_numbers() {
        for key in ["wall", "1965", "b 52", "京", "a wall", "747"] {
            assert!(is_meaningful(key), "{key}");
        }
        for key in ["", "the", "of the", "x", "u s", "12", "7"] {
            assert!(!is_meaningful(key), "{key}");
        }
    }

    #[test]
    fn stop_words_are_in_order_and_found() {
        assert!(STOP_WORDS.is_sorted());
        for word in ["a", "we", "the", "should", "your"] {
            assert!(is_stop_word(word), "{word}");
        }
        for word in ["", "wall", "zz", "shoulder"] {
            assert!(!is_stop_word(word), "{word}");
        }
    }

    #[test]
    fn titles_lose_their_last_qualifier() {
        for (title, name) in [
            ("Help! (album)", "Help!"),
            ("A (b) (c) ", "A (b)"),
            ("A (b (c)", "A"),
            ("(500)", "(500)"),
            ("f()", "f"),
            ("a)b)", "a)b)"),
            ("(I) Am", "(I) Am"),
        ] {
            assert_eq!(title_name(title), name);
        }
    }
}
