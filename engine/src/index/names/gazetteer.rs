//! Where the names of a fixed list stand in a text.

use hedgerow_format::name::{Token, fold_lower_into, tokens};
use unicode_segmentation::UnicodeSegmentation;

use crate::index::names::{Cases, Fixed, ends_sentence, is_capital, stands_out};
use crate::index::scripts::is_unspaced;

/// A known name in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The name's number.
    pub id: u32,
    /// Its first byte in the text.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
}

/// Finds the names of a fixed list in texts, longest first, from left to right.
///
/// Names are compared as sequences of words, whatever signs stand between these. One word counts if it has a capital
/// or is a number of four digits, and, where the corpus mostly writes it in lower case, only in mid-sentence and if
/// the corpus writes it there with a capital often enough. More words need one capital or digit among them. A name that is written as code is (`pin_all`, `pin()`) counts always. Letters without case count as capitals; inside runs of a script without spaces, names of two
/// characters or more are found.
#[derive(Clone, Debug, Default)]
pub struct Gazetteer {
    words: Fixed<Box<str>, u32>,
    /// Names as numbers of their words, in order, so that a prefix is a range.
    names: Vec<(Box<[u32]>, u32)>,
    /// For each word, the names that start with it.
    ranges: Vec<(usize, usize)>,
    /// First two characters of the names in scripts without spaces, with the bytes of the longest such name.
    unspaced: Fixed<(char, char), usize>,
}

impl Gazetteer {
    /// A gazetteer of name keys (`name_key_text`) and their numbers; of a key given twice the lower number counts.
    #[must_use]
    pub fn new<'n>(names: impl IntoIterator<Item = (&'n str, u32)>) -> Self {
        let mut made = Self::default();
        for (key, id) in names {
            made.add(key, id);
        }
        made.names.sort_unstable();
        made.names.dedup_by(|later, earlier| later.0 == earlier.0);
        made.ranges = vec![(0, 0); made.words.len()];
        for (at, (name, _)) in made.names.iter().enumerate() {
            if let Some(range) = name.first().and_then(|&word| made.ranges.get_mut(word as usize)) {
                *range = if range.1 == 0 { (at, at + 1) } else { (range.0, at + 1) };
            }
        }
        made
    }

    /// Appends the names in a text, in order and without overlap.
    pub fn find(&self, text: &str, counts: &impl Cases, out: &mut Vec<Hit>) {
        let tokens = tokens(text);
        let mut lower = String::new();
        let mut words = Vec::with_capacity(tokens.len());
        for (place, token) in tokens.iter().enumerate().filter(|(_, token)| token.is_word()) {
            lower.clear();
            fold_lower_into(token.text, &mut lower);
            words.push((place, self.words.get(lower.as_str()).copied()));
        }
        let search = Search { tokens: &tokens, words: &words, counts };
        let mut at = 0;
        while let Some(&(place, _)) = words.get(at) {
            let token = &tokens[place];
            if let Some((length, id)) = self.longest(&search, at) {
                out.push(Hit { id, start: token.start, end: tokens[words[at + length - 1].0].end });
                at += length;
                continue;
            }
            if !self.unspaced.is_empty() && token.text.contains(is_unspaced) {
                self.find_inside(token, out);
            }
            at += 1;
        }
    }

    fn add(&mut self, key: &str, id: u32) {
        let mut name = Vec::new();
        for word in key.split(' ').filter(|word| !word.is_empty()) {
            let next = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
            let known = self.words.get(word).copied();
            name.push(known.unwrap_or_else(|| *self.words.entry(word.into()).or_insert(next)));
        }
        let mut letters = key.chars();
        if let ([_], Some(first), Some(second)) = (name.as_slice(), letters.next(), letters.next())
            && is_unspaced(first)
        {
            let longest = self.unspaced.entry((first, second)).or_default();
            *longest = key.len().max(*longest);
        }
        if !name.is_empty() {
            self.names.push((name.into(), id));
        }
    }

    /// The longest name that starts at a word and counts there: its words and its number.
    fn longest<C: Cases>(&self, search: &Search<C>, at: usize) -> Option<(usize, u32)> {
        let first = search.words[at].1?;
        let &(mut low, mut high) = self.ranges.get(first as usize)?;
        let mut best = None;
        for length in 1.. {
            // A name of exactly these words comes before those that go on.
            let candidate = self.names[low..high].first()?;
            if candidate.0.len() == length {
                if search.allows(at, length) {
                    best = Some((length, candidate.1));
                }
                low += 1;
            }
            let Some(&(_, Some(next))) = search.words.get(at + length) else {
                break;
            };
            let range = &self.names[low..high];
            let start = range.partition_point(|(name, _)| name[length] < next);
            let matching = range[start..].partition_point(|(name, _)| name[length] == next);
            (low, high) = (low + start, low + start + matching);
            if low == high {
                break;
            }
        }
        best
    }

    /// Names inside a run of a script without spaces, cut at characters as a reader sees them.
    fn find_inside(&self, token: &Token, out: &mut Vec<Hit>) {
        let mut folded = String::with_capacity(token.text.len());
        let mut bounds = vec![(0, token.start)];
        for (start, character) in token.text.grapheme_indices(true) {
            fold_lower_into(character, &mut folded);
            bounds.push((folded.len(), token.start + start + character.len()));
        }
        let mut at = 0;
        while let Some(&(from, start)) = bounds.get(at) {
            let mut letters = folded[from..].chars();
            let pair = letters.next().zip(letters.next());
            let longest = pair.and_then(|pair| self.unspaced.get(&pair)).copied().unwrap_or(0);
            let ends = bounds[at..].partition_point(|&(to, _)| to - from <= longest);
            let hit = (1..ends).rev().find_map(|length| {
                let (to, end) = bounds[at + length];
                let id = self.only_word(&folded[from..to])?;
                Some((length, Hit { id, start, end }))
            });
            at += hit.map_or(1, |(length, _)| length);
            out.extend(hit.map(|(_, hit)| hit));
        }
    }

    /// The number of the name that is this word alone.
    fn only_word(&self, word: &str) -> Option<u32> {
        let word = *self.words.get(word)?;
        let (name, id) = self.names.get(self.ranges.get(word as usize)?.0)?;
        (**name == [word]).then_some(*id)
    }
}

/// A text's tokens, the places of its words among them with the words' numbers, and what decides whether they count.
struct Search<'s, C> {
    tokens: &'s [Token<'s>],
    words: &'s [(usize, Option<u32>)],
    counts: &'s C,
}

impl<C: Cases> Search<'_, C> {
    /// Whether these tokens are written as code writes a name: joined by `_` or `::`, or with `(` right behind.
    fn is_symbol(&self, first: usize, last: usize) -> bool {
        let joined = self.tokens[first..=last].windows(2).all(|two| {
            let sign = |token: &Token| matches!(token.text, "_" | ":");
            two[0].end == two[1].start && (sign(&two[0]) || sign(&two[1]))
        });
        let called =
            || self.tokens.get(last + 1).is_some_and(|next| next.text == "(" && next.start == self.tokens[last].end);
        joined && (first < last || called())
    }

    fn allows(&self, at: usize, length: usize) -> bool {
        let mut words = self.words[at..at + length].iter().map(|&(place, _)| self.tokens[place].text);
        let place = self.words[at].0;
        if self.is_symbol(place, self.words[at + length - 1].0) {
            return true;
        }
        if length > 1 {
            return words.any(stands_out);
        }
        let word = self.tokens[place].text;
        let year = word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
        if !year && !word.chars().next().is_some_and(is_capital) {
            return false;
        }
        let mut lower = String::new();
        fold_lower_into(word, &mut lower);
        let (everywhere, in_sentence) = self.counts.case(&lower).allows();
        let mid_sentence = place > 0 && !ends_sentence(self.tokens[place - 1].text);
        everywhere || (mid_sentence && in_sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::names::CaseCounts;
    use hedgerow_format::name::name_key_text;

    fn counted(text: &str) -> CaseCounts {
        let mut counts = CaseCounts::default();
        counts.add(text);
        counts
    }

    fn found<'t>(names: &[&str], text: &'t str, counts: &CaseCounts) -> Vec<&'t str> {
        let keys: Vec<String> = names.iter().map(|name| name_key_text(name)).collect();
        let gazetteer = Gazetteer::new(keys.iter().map(String::as_str).zip(0..));
        let mut hits = Vec::new();
        gazetteer.find(text, counts, &mut hits);
        hits.iter()
            .inspect(|hit| {
                let words = name_key_text(&text[hit.start..hit.end]);
                assert_eq!(words, keys[usize::try_from(hit.id).unwrap()]);
            })
            .map(|hit| &text[hit.start..hit.end])
            .collect()
    }

    #[test]
    fn the_longest_name_wins_and_signs_between_words_do_not_matter() {
        let names = ["Pink", "Pink Floyd", "Pink Floyd The Wall", "The Wall", "Floyd Mayweather", "São Paulo"];
        let none = CaseCounts::default();
        let text = "Pink Floyd; the Wall and Pink-Floyd Mayweather in Pink. SÃO Paulo";
        assert_eq!(found(&names, text, &none), ["Pink Floyd; the Wall", "Pink-Floyd", "Pink", "SÃO Paulo"]);
        assert_eq!(found(&names, "pink floyd", &none), [""; 0]);
        assert_eq!(found(&[], "Pink", &none), [""; 0]);
        assert_eq!(found(&["", "The"], "The", &none), [""; 0]);
    }

    #[test]
    fn one_word_needs_a_capital_where_the_corpus_gives_it_one() {
        let names = ["Help", "Speed", "1984", "99", "2nd"];
        let counts = counted("We help and help, but Help came. speed speed speed speed speed, so Speed");
        assert_eq!(found(&names, "Help! They got Help in 1984 of 99 for 2nd", &counts), ["Help", "1984"]);
        assert_eq!(found(&names, "Speed is Speed", &counts), [""; 0]);
        assert_eq!(found(&names, "I saw Help", &CaseCounts::default()), ["Help"]);
    }

    #[test]
    fn symbols_are_found_where_they_are_written_as_code() {
        let names = ["pin_all", "store::pin", "fork"];
        let text = "pin all with pin_all or store::pin, and fork() but never fork (a process)";
        assert_eq!(found(&names, text, &counted("fork fork")), ["pin_all", "store::pin", "fork"]);
    }

    #[test]
    fn names_are_found_in_runs_without_spaces_and_without_case() {
        let none = CaseCounts::default();
        let names = ["東京", "東京タワー", "京", "서울", "القاهرة", "กรุงเทพ"];
        assert_eq!(found(&names, "彼は東京タワーと東京に行く。京", &none), ["東京タワー", "東京", "京"]);
        assert_eq!(found(&names, "나는 서울에 갔다", &none), ["서울"]);
        assert_eq!(found(&names, "فى القاهرة", &none), ["القاهرة"]);
        assert_eq!(found(&names, "ไปกรุงเทพครับ", &none), ["กรุงเทพ"]);
    }
}
