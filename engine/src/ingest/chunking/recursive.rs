//! Cuts a text into chunks at the strongest boundary that fits, paragraph, sentence, word or character, and into sentences.

use std::ops::Range;

use unicode_segmentation::GraphemeCursor;

use crate::index::scripts::is_unspaced;

/// The byte ranges of the chunks of `text[within]`.
///
/// They start and end with what is no white space, both ends increase from one to the next, and together they
/// hold all of the text but white space. A chunk ends with a paragraph if that fills a quarter of it, else with a
/// sentence, a word or, in a long run without any, a character as a reader sees it. After an end that is not a
/// paragraph's, the next chunk goes back to the first sentence, or else word, within the overlap. O(text).
pub fn split(text: &str, within: Range<usize>, size: usize, overlap: usize) -> Vec<Range<usize>> {
    let size = size.max(1);
    let overlap = overlap.min(size / 2);
    let (offset, text) = (within.start, text[within].trim_end());
    let mut chunks = Vec::new();
    let (mut start, mut done) = (skip_space(text, 0), 0);
    while start < text.len() {
        let limit = text[start..].char_indices().nth(size).map_or(text.len(), |(at, _)| start + at);
        if limit == text.len() {
            chunks.push(start + offset..limit + offset);
            break;
        }
        let fresh = skip_space(text, done);
        if limit <= fresh {
            // Nothing but white space would follow what is repeated.
            start = fresh;
            continue;
        }
        let cut = before_heading(text, start, done, best_cut(text, start, limit, done));
        chunks.push(start + offset..cut.end + offset);
        done = cut.end;
        start =
            if cut.strength == Strength::Paragraph { cut.next } else { overlapping_start(text, start, &cut, overlap) };
    }
    chunks
}

/// The sentences of `text[within]`, without white space at their ends; a line ends one, too.
pub fn sentences(text: &str, within: Range<usize>) -> Vec<Range<usize>> {
    let (offset, text) = (within.start, text[within].trim_end());
    let (mut found, mut start) = (Vec::new(), skip_space(text, 0));
    for_each_cut(text, start, text.len(), |cut| {
        if cut.strength >= Strength::Sentence {
            found.push(start + offset..cut.end + offset);
            start = cut.next;
        }
        true
    });
    if start < text.len() {
        found.push(start + offset..text.len() + offset);
    }
    found
}

/// A place where a text may be cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    strength: Strength,
    /// The byte after what lies before it.
    end: usize,
    /// The first byte of what follows it, after white space.
    next: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Character,
    Word,
    Sentence,
    Paragraph,
}

/// The last of the strongest cuts that end at most at `limit`, after `done`, and leave a quarter of the chunk or more.
fn best_cut(text: &str, start: usize, limit: usize, done: usize) -> Cut {
    let after = done.max(start + (limit - start) / 4);
    let mut best: Option<Cut> = None;
    for_each_cut(text, start, limit, |cut| {
        if cut.end > after && best.is_none_or(|best| cut.strength >= best.strength) {
            best = Some(cut);
        }
        true
    });
    best.unwrap_or_else(|| {
        let whole = start + text[start..character_before(text, start, limit)].trim_end().len();
        // A character of hundreds of marks is cut within.
        let end = if whole > done.max(start) { whole } else { text[..limit].trim_end().len() };
        Cut { strength: Strength::Character, end, next: skip_space(text, end) }
    })
}

/// Headings (lines that begin with `#`) that would end a chunk go with what follows them, unless nothing else is there.
fn before_heading(text: &str, start: usize, done: usize, given: Cut) -> Cut {
    let is_heading = |line: &str| line.trim_start().starts_with('#');
    let mut cut = given;
    while let Some(line) = text[start..cut.end].rfind('\n') {
        let end = start + text[start..start + line].trim_end().len();
        let heading = start + line + 1;
        if !is_heading(&text[heading..cut.end]) {
            return cut;
        }
        if end <= done.max(start) {
            return given;
        }
        cut = Cut { strength: Strength::Paragraph, end, next: skip_space(text, heading) };
    }
    // Headings alone would become a chunk each, and each would look through all of them.
    if is_heading(&text[start..cut.end]) { given } else { cut }
}

/// Where the chunk after a cut starts: within the overlap before it if a sentence or a word does.
fn overlapping_start(text: &str, start: usize, cut: &Cut, overlap: usize) -> usize {
    let Some((from, _)) = text[start..cut.end].char_indices().rev().take(overlap).last() else {
        return cut.next;
    };
    // One character earlier, so that a start at the very first place is seen.
    let before = text[start..start + from].chars().next_back().map_or(0, char::len_utf8);
    let mut best = *cut;
    let mut strength = Strength::Character;
    for_each_cut(text, start + from - before, cut.end, |inner| {
        if inner.next < cut.end && inner.next > start && inner.strength.min(Strength::Sentence) > strength {
            strength = inner.strength;
            best = inner;
        }
        strength < Strength::Sentence
    });
    best.next
}

/// Calls `visit` with the cuts of `text[from..]` that end at most at `limit`, until it says no.
fn for_each_cut(text: &str, from: usize, limit: usize, mut visit: impl FnMut(Cut) -> bool) {
    let (mut end, mut before, mut lines) = (from, None, 0);
    let mut sentence = SentenceEnd::No;
    for (at, letter) in text[from..].char_indices() {
        let next = from + at;
        if letter.is_whitespace() {
            lines += match letter {
                '\n' | '\u{2028}' => 1,
                '\u{2029}' => 2,
                _ => 0,
            };
            continue;
        }
        let strength = match before {
            None => None,
            Some(before) if end == next => within_run(&text[from..], at, before, letter, sentence),
            Some(_) if lines > 1 => Some(Strength::Paragraph),
            Some(_) if lines == 1 || (sentence != SentenceEnd::No && !letter.is_lowercase()) => {
                Some(Strength::Sentence)
            }
            Some(_) => Some(Strength::Word),
        };
        if strength.is_some_and(|strength| !visit(Cut { strength, end, next })) || next >= limit {
            return;
        }
        sentence = sentence.after(letter);
        (end, before, lines) = (next + letter.len_utf8(), Some(letter), 0);
    }
}

/// The cut between two letters that no white space parts.
fn within_run(run: &str, at: usize, before: char, letter: char, sentence: SentenceEnd) -> Option<Strength> {
    if sentence == SentenceEnd::WithoutSpace && sentence.after(letter) == SentenceEnd::No {
        return Some(Strength::Sentence);
    }
    let unspaced = is_unspaced(before) || is_unspaced(letter);
    (unspaced && letter.is_alphanumeric() && character_before(run, 0, at) == at).then_some(Strength::Word)
}

/// Whether a sentence may just have ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SentenceEnd {
    No,
    /// If white space follows.
    BeforeSpace,
    /// Whatever follows, as is the custom in Chinese and Japanese.
    WithoutSpace,
}

impl SentenceEnd {
    fn after(self, letter: char) -> Self {
        match letter {
            '。' | '！' | '？' | '｡' => Self::WithoutSpace,
            '.' | '!' | '?' | '…' | '؟' | '۔' | '।' | '॥' | '։' | '።' => Self::BeforeSpace,
            '"' | '\'' | ')' | ']' | '}' | '”' | '’' | '»' | '」' | '』' | '）' | '】' | '》' => self,
            _ => Self::No,
        }
    }
}

/// The last boundary between characters as a reader sees them from `start`, a boundary itself, up to a byte.
fn character_before(text: &str, start: usize, at: usize) -> usize {
    // What lies before the start is kept from the cursor, or a text of marks alone would cost O(n²).
    let part = &text[start..];
    let mut cursor = GraphemeCursor::new(at - start, part.len(), true);
    match cursor.is_boundary(part, 0) {
        Ok(false) => start + cursor.prev_boundary(part, 0).ok().flatten().unwrap_or(0),
        _ => at,
    }
}

fn skip_space(text: &str, from: usize) -> usize {
    text.len() - text[from..].trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, size: usize, overlap: usize) -> Vec<&str> {
        let chunks = split(text, 0..text.len(), size, overlap);
        let mut covered = vec![false; text.len()];
        for chunk in &chunks {
            let part = &text[chunk.clone()];
            assert!(!part.is_empty() && part.trim() == part, "{part:?}");
            assert!(part.chars().count() <= size.max(1), "{part:?}");
            covered[chunk.clone()].fill(true);
        }
        for pair in chunks.windows(2) {
            assert!(pair[0].start < pair[1].start && pair[0].end < pair[1].end);
            let shared = text.get(pair[1].start..pair[0].end).map_or(0, |shared| shared.chars().count());
            assert!(shared <= overlap, "{shared} of {overlap}");
        }
        for (at, letter) in text.char_indices() {
            assert!(covered[at] || letter.is_whitespace(), "{letter} at {at} is lost");
        }
        chunks.into_iter().map(|chunk| &text[chunk]).collect()
    }

    #[test]
    fn the_strongest_boundary_that_fits_is_taken() {
        assert_eq!(check("One two.\n\nThree four five.", 20, 5), ["One two.", "Three four five."]);
        assert_eq!(check("One two. Three four. Five six.", 22, 0), ["One two. Three four.", "Five six."]);
        assert_eq!(check("one two three four", 9, 0), ["one two", "three", "four"]);
        assert_eq!(check("abcdefghij", 4, 2), ["abcd", "efgh", "ij"]);
        assert_eq!(check("  short \n", 100, 10), ["short"]);
        assert_eq!(check(" \n ", 100, 10), [""; 0]);
        // A heading goes with what follows it.
        let text = "One two three.\n\n## Four\n\nFive six seven.";
        assert_eq!(check(text, 30, 5), ["One two three.", "## Four\n\nFive six seven."]);
        // A paragraph of a few letters too.
        assert_eq!(check("Abc\n\nOne two three. Four five six.", 24, 0), ["Abc\n\nOne two three.", "Four five six."]);
    }

    #[test]
    fn a_chunk_repeats_the_last_sentence_or_words_of_the_one_before() {
        let text = "The first is long. Second. The third is long too. Fourth.";
        assert_eq!(
            check(text, 30, 12),
            ["The first is long. Second.", "Second. The third is long too.", "long too. Fourth."]
        );
        assert_eq!(check("one two three four five six", 14, 6), ["one two three", "three four", "four five six"]);
    }

    #[test]
    fn scripts_without_spaces_and_marks_are_cut_between_characters() {
        assert_eq!(check("東京に行く。京都に住む。奈良", 8, 0), ["東京に行く。", "京都に住む。奈良"]);
        assert_eq!(check("東京都東京都東京都", 4, 2), ["東京都東", "都東京都", "京都東京", "東京都"]);
        assert_eq!(check(&"e\u{301}".repeat(5), 5, 0), ["e\u{301}e\u{301}", "e\u{301}e\u{301}", "e\u{301}"]);
        assert_eq!(check("👩‍👩‍👧‍👦👩‍👩‍👧‍👦", 8, 0), ["👩‍👩‍👧‍👦", "👩‍👩‍👧‍👦"]);
        check(&format!("e{}", "\u{301}".repeat(100)), 7, 3);
        check("אבג דהו. זחט יכל! ภาษาไทยไม่มีช่องว่าง النص العربي؟ نعم.", 9, 4);
    }

    #[test]
    fn any_text_is_covered_in_any_size() {
        let letters: Vec<char> = "ab. \n\n東。\u{301}ก็é!\"\u{2029}👍🏽\r\t".chars().collect();
        let mut seed = 3u32;
        for round in 0..400 {
            let text: String = (0..round)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    letters[(seed >> 16) as usize % letters.len()]
                })
                .collect();
            check(&text, round % 37, round % 11);
        }
    }

    #[test]
    fn long_runs_of_anything_take_no_longer_than_text() {
        for run in ["\u{301}", " ", "a", "東", "\n", "🇫", "ก\u{e34}", ". "] {
            let text = format!("x{}y", run.repeat(1 << 20));
            let chunks = split(&text, 0..text.len(), 1000, 100);
            assert!(chunks.len() > 1);
        }
    }

    #[test]
    fn sentences_end_where_signs_lines_and_scripts_say_so() {
        let check = |text: &str, expected: &[&str]| {
            let text = format!("x. {text}");
            let found: Vec<&str> = sentences(&text, 3..text.len()).into_iter().map(|range| &text[range]).collect();
            assert_eq!(found, expected);
        };
        check("One two. Three e.g. four?\nFive ", &["One two.", "Three e.g. four?", "Five"]);
        check("東京に行く。京都「に住む。」奈良", &["東京に行く。", "京都「に住む。」", "奈良"]);
        check("كيف حالك؟ أنا بخير۔ हम हैं। तुम", &["كيف حالك؟", "أنا بخير۔", "हम हैं।", "तुम"]);
        check(" \n", &[]);
    }
}
