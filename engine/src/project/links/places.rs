//! Where a name may stand: the chunks that have its words, as the terms of segments tell, without a look at text.
//!
//! A chunk that has a name is always among them; most that are have it. That holds because a word of the name stands in
//! the text as a token that folds to it, and such a token is a term of the chunk: by its English stem or as it is; or, in a
//! chunk of another language, by a stem that only the token with its marks would tell, so that all chunks with terms of
//! other languages count; or joined to others by `_`; or, in scripts without spaces, as letters of pairs.

use crate::error::Damage;
use crate::index::scripts::is_unspaced;
use crate::index::terms::analysis::Analyzer;
use crate::index::terms::language::Language;
use crate::segment::Segment;
use crate::snapshot::Snapshot;
use hedgerow_format::U32s;
use hedgerow_format::segment::Terms;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::ops::Range;

/// Terms of so many bytes may have been cut, and lack what a word had beyond.
const CUT_BYTES: usize = 120;

/// What is asked for names.
pub(super) struct Places<'s> {
    segments: Vec<Searched<'s>>,
}

/// What a word of a name makes the terms of a chunk have.
enum Asked<'w> {
    /// The word, as such a term.
    Word(&'w str, String),
    /// A letter of a script without spaces, in some term.
    Letter(char),
}

struct Searched<'s> {
    segment: &'s Segment,
    terms: Terms<'s>,
    chunks: U32s<'s>,
    /// Terms that hold several words, or part of one, with their postings.
    joined: Vec<(&'s [u8], Range<usize>)>,
    /// Slots of the chunks with terms of other languages.
    foreign: RoaringBitmap,
    /// Slots of the chunks with a letter of a script without spaces, for each letter in a name.
    letters: BTreeMap<char, RoaringBitmap>,
}

impl<'s> Places<'s> {
    /// Prepares for questions after these name keys. Reads the dictionaries of all segments once.
    pub(super) fn of(snapshot: &'s Snapshot, keys: &[String]) -> Result<Self, Damage> {
        let letters: BTreeMap<char, RoaringBitmap> = keys
            .iter()
            .flat_map(|key| key.chars().filter(|letter| is_letter(*letter)))
            .map(|letter| (letter, RoaringBitmap::new()))
            .collect();
        let searched = |segment: &'s std::sync::Arc<Segment>| Searched::of(segment, letters.clone());
        Ok(Self { segments: snapshot.segments().iter().map(searched).collect::<Result<_, _>>()? })
    }

    /// Ids of the chunks that may have a name, given by its key; dead ones among them. None where any chunk may.
    pub(super) fn chunks(&self, analyzer: &mut Analyzer, key: &str) -> Option<RoaringBitmap> {
        let mut asked = Vec::new();
        for word in key.split(' ') {
            let before = asked.len();
            asked.extend(word.chars().filter(|letter| is_letter(*letter)).map(Asked::Letter));
            if asked.len() == before {
                // A stop word gives no term.
                analyzer.for_each_term(None, word, |term| asked.push(Asked::Word(word, term.to_owned())));
            }
        }
        if asked.is_empty() {
            return None;
        }
        let mut found = RoaringBitmap::new();
        for searched in &self.segments {
            let ids = searched.segment.chunk_ids();
            let slots = searched.slots(&asked);
            found.extend(slots.into_iter().filter_map(|slot| ids.get(usize::try_from(slot).ok()?)));
        }
        Some(found)
    }
}

impl<'s> Searched<'s> {
    fn of(segment: &'s Segment, letters: BTreeMap<char, RoaringBitmap>) -> Result<Self, Damage> {
        let (terms, chunks) = segment.dictionary()?;
        let foreign = chunks.slice(terms.beginning(Language::MARK as u8)).iter().collect();
        let mut searched = Self { segment, terms, chunks, joined: Vec::new(), foreign, letters };
        for row in 0..terms.len() {
            let Some((term, postings)) = terms.get(row) else { continue };
            if term.len() >= CUT_BYTES || term.contains(&b'_') {
                searched.joined.push((term, postings.clone()));
            }
            if searched.letters.is_empty() || term.is_ascii() {
                continue;
            }
            for letter in std::str::from_utf8(term).unwrap_or_default().chars().filter(|letter| is_letter(*letter)) {
                if let Some(slots) = searched.letters.get_mut(&letter) {
                    slots.extend(chunks.slice(postings.clone()).iter());
                }
            }
        }
        Ok(searched)
    }

    /// Slots of the chunks that have all that is asked for.
    fn slots(&self, asked: &[Asked<'_>]) -> Vec<u32> {
        let mut sets: Vec<Slots<'_>> = asked.iter().map(|asked| self.having(asked)).collect();
        sets.sort_by_key(Slots::len);
        let Some((fewest, others)) = sets.split_first() else { return Vec::new() };
        let mut slots = fewest.all();
        slots.retain(|slot| others.iter().all(|other| other.contains(*slot)));
        slots
    }

    fn having(&self, asked: &Asked<'_>) -> Slots<'_> {
        match asked {
            Asked::Letter(letter) => {
                // Terms that were cut may lack the letter.
                let cut = self.joined.iter().filter(|(term, _)| term.len() >= CUT_BYTES);
                let postings = cut.map(|(_, postings)| self.chunks.slice(postings.clone())).collect();
                Slots { postings, sets: self.letters.get(letter).into_iter().collect() }
            }
            Asked::Word(word, term) => {
                let holds = |text: &[u8]| {
                    text.len() >= CUT_BYTES || text.windows(word.len()).any(|part| part == word.as_bytes())
                };
                let joined = self.joined.iter().filter(|(text, _)| holds(text)).map(|(_, postings)| postings.clone());
                let ranges = self.terms.find(term).into_iter().chain(joined);
                Slots { postings: ranges.map(|range| self.chunks.slice(range)).collect(), sets: vec![&self.foreign] }
            }
        }
    }
}

/// Slots of chunks, as several ascending lists and sets.
struct Slots<'s> {
    postings: Vec<U32s<'s>>,
    sets: Vec<&'s RoaringBitmap>,
}

impl Slots<'_> {
    fn len(&self) -> u64 {
        let listed: usize = self.postings.iter().map(U32s::len).sum();
        self.sets.iter().map(|set| set.len()).sum::<u64>().saturating_add(listed as u64)
    }

    fn contains(&self, slot: u32) -> bool {
        self.sets.iter().any(|set| set.contains(slot))
            || self.postings.iter().any(|list| list.position_of(slot).is_some())
    }

    fn all(&self) -> Vec<u32> {
        let listed = self.postings.iter().flat_map(U32s::iter);
        let mut slots: Vec<u32> = self.sets.iter().flat_map(|set| set.iter()).chain(listed).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }
}

/// Whether a letter stands in pairs, not in words.
fn is_letter(letter: char) -> bool {
    is_unspaced(letter) && letter.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hedgerow_format::name::{fold, fold_lower_into};

    #[test]
    fn letters_of_pairs_fold_to_letters_of_pairs_alone() {
        for letter in (0..=u32::from(char::MAX)).filter_map(char::from_u32).filter(|letter| is_letter(*letter)) {
            let mut folded = String::new();
            fold_lower_into(letter.encode_utf8(&mut [0; 4]), &mut folded);
            let is_dropped = fold(letter.encode_utf8(&mut [0; 4])).is_empty();
            assert_eq!(folded.is_empty(), is_dropped, "{letter} U+{:X}", u32::from(letter));
            assert!(folded.chars().all(is_letter), "{letter} U+{:X}", u32::from(letter));
        }
    }
}
