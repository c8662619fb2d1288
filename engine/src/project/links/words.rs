//! The corpus' words, followed: the counts of an earlier generation, less what went, plus what came.

use crate::index::names::{Case, CaseCounts, Cases};
use crate::projection::WordList;
use hedgerow_format::limits;
use hedgerow_format::projection::{LinkWordRow, LinkWords};
use std::collections::BTreeSet;

/// Counts of words.
pub(super) struct Counted<'o> {
    old: LinkWords<'o>,
    /// Ascending by word.
    changed: Vec<Changed>,
}

/// A word whose counts are others than before.
pub(super) struct Changed {
    pub word: Box<str>,
    pub before: Case,
    pub after: Case,
}

impl<'o> Counted<'o> {
    /// The counts `old` less what `gone` counts, plus what `come` counts. None where that cannot be told, because a count
    /// was cut or does not hold what went.
    pub(super) fn new(old: LinkWords<'o>, gone: &CaseCounts, come: &CaseCounts) -> Option<Self> {
        let words: BTreeSet<&str> = gone.sorted().into_iter().chain(come.sorted()).map(|(word, _)| word).collect();
        let mut changed = Vec::with_capacity(words.len());
        for word in words {
            let before = case_of(old.find(word));
            let (gone, come) = (gone.case(word), come.case(word));
            let after = |before: u32, gone: u32, come: u32| {
                let known = (before < u32::MAX).then_some(before)?;
                known.checked_sub(gone)?.checked_add(come).filter(|after| *after < u32::MAX)
            };
            let lower = after(before.lower, gone.lower, come.lower)?;
            let capital = after(before.capital, gone.capital, come.capital)?;
            let after = Case { lower, capital };
            if before != after {
                changed.push(Changed { word: word.into(), before, after });
            }
        }
        Some(Self { old, changed })
    }

    /// The words whose counts changed.
    pub(super) fn changed(&self) -> &[Changed] {
        &self.changed
    }

    /// All words with their counts; none where the old ones are no words in order.
    pub(super) fn list(&self) -> Option<WordList> {
        let mut words = WordList::with_capacity(self.old.len() + self.changed.len(), self.old.len() * 9);
        let mut changed = self.changed.iter().peekable();
        let mut before: &[u8] = &[];
        for row in 0..self.old.len() {
            let (word, counts) = self.old.get(row).filter(|(word, _)| before < *word)?;
            std::str::from_utf8(word).ok().filter(|word| word.len() <= limits::CASE_WORD_BYTES)?;
            before = word;
            while let Some(new) = changed.next_if(|changed| changed.word.as_bytes() < word) {
                push(&mut words, new.word.as_bytes(), new.after);
            }
            let after = changed.next_if(|changed| changed.word.as_bytes() == word).map(|changed| changed.after);
            push(&mut words, word, after.unwrap_or_else(|| case_of(Some(counts))));
        }
        changed.for_each(|new| push(&mut words, new.word.as_bytes(), new.after));
        Some(words)
    }
}

impl Cases for Counted<'_> {
    fn case(&self, word: &str) -> Case {
        match self.changed.binary_search_by_key(&word, |changed| &changed.word) {
            Ok(place) => self.changed[place].after,
            Err(_) => case_of(self.old.find(word)),
        }
    }
}

fn case_of(row: Option<LinkWordRow>) -> Case {
    row.map_or_else(Case::default, |row| Case { lower: row.lower, capital: row.capital })
}

/// A word that is not there any more is left out.
fn push(words: &mut WordList, word: &[u8], case: Case) {
    if case != Case::default() {
        words.push(word, case.lower, case.capital);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projection::{LinksData, build_links};
    use hedgerow_format::file::{FileIdentity, FileKind, Whole};

    fn counted(text: &str) -> CaseCounts {
        let mut counts = CaseCounts::default();
        counts.add(text);
        counts
    }

    #[test]
    fn counts_are_followed_unless_they_were_cut_or_lack_what_went() {
        let mut words = WordList::default();
        words.push(b"wall", u32::MAX, 1);
        words.push(b"zoo", 1, 0);
        let identity = FileIdentity { kind: FileKind::Links, store: [0; 16], number: 1, random: 2 };
        let (finished, mut bytes) =
            build_links(Vec::new(), identity, &LinksData { words, ..LinksData::default() }).unwrap();
        bytes[..256].copy_from_slice(&finished.header);
        let file = Whole::open(FileKind::Links, &bytes).unwrap();
        let old = LinkWords::of(&file).unwrap();
        let none = CaseCounts::default();
        assert!(Counted::new(old, &none, &counted("wall")).is_none());
        assert!(Counted::new(old, &counted("zoo zoo"), &none).is_none());
        let followed = Counted::new(old, &counted("zoo"), &counted("animal farm, the Farm")).unwrap();
        assert_eq!(followed.case("farm"), Case { lower: 1, capital: 1 });
        assert_eq!(followed.case("wall"), Case { lower: u32::MAX, capital: 1 });
        let mut words = WordList::default();
        for (word, lower, capital) in [("animal", 1, 0), ("farm", 1, 1), ("the", 1, 0), ("wall", u32::MAX, 1)] {
            words.push(word.as_bytes(), lower, capital);
        }
        assert_eq!(followed.list(), Some(words));
    }
}
