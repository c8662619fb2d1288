//! How often each term counts in a chunk: in its text and in its document's title.

use crate::index::terms::analysis::Analyzer;
use crate::index::terms::language::Language;
use hedgerow_format::limits;
use std::collections::{BTreeMap, HashMap};

/// How often a term of the title counts beside one of the text.
const TITLE_WEIGHT: u32 = 3;

/// A title, counted once in each language that chunks of its document are written in.
pub struct Title<'t> {
    text: &'t str,
    counted: Vec<(Option<Language>, BTreeMap<String, u32>)>,
}

impl<'t> Title<'t> {
    /// A title that is not counted yet.
    #[must_use]
    pub fn new(text: &'t str) -> Self {
        Self { text, counted: Vec::new() }
    }

    fn counts(&mut self, analyzer: &mut Analyzer, language: Option<Language>) -> HashMap<String, u32> {
        let known = self.counted.iter().position(|(known, _)| *known == language);
        let place = known.unwrap_or_else(|| {
            let mut counts = BTreeMap::new();
            let count = |term: &str| *counts.entry(term.to_owned()).or_insert(0) += TITLE_WEIGHT;
            analyzer.for_each_term(language, self.text, count);
            self.counted.push((language, counts));
            self.counted.len() - 1
        });
        self.counted[place].1.iter().map(|(term, count)| (term.clone(), *count)).collect()
    }
}

/// The terms of a chunk with their frequencies, by term, and how many there are.
pub fn of_chunk(analyzer: &mut Analyzer, title: &mut Title<'_>, text: &str) -> (Vec<(String, u16)>, u32) {
    let language = Language::of(text);
    let mut counts = title.counts(analyzer, language);
    analyzer.for_each_term(language, text, |term| match counts.get_mut(term) {
        Some(count) => *count = count.saturating_add(1),
        None => {
            counts.insert(term.to_owned(), 1);
        }
    });
    let length = counts.values().fold(0_u32, |sum, count| sum.saturating_add(*count));
    let cut = |count: u32| u16::try_from(count).unwrap_or(limits::TERM_FREQUENCY);
    let mut terms: Vec<(String, u16)> = counts.into_iter().map(|(term, count)| (term, cut(count))).collect();
    terms.sort_unstable();
    (terms, length)
}
