//! How often each term counts in a chunk: in its text and in its document's title.

use crate::index::terms::analysis::Analyzer;
use hedgerow_format::limits;
use std::collections::{BTreeMap, HashMap};

/// How often a term of the title counts beside one of the text.
const TITLE_WEIGHT: u32 = 3;

/// The terms of a title, as they count in each chunk of its document.
pub fn of_title(analyzer: &mut Analyzer, title: &str) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    analyzer.for_each_term(title, |term| *counts.entry(term.to_owned()).or_insert(0) += TITLE_WEIGHT);
    counts
}

/// The terms of a chunk with their frequencies, by term, and how many there are.
pub fn of_chunk(analyzer: &mut Analyzer, title: &BTreeMap<String, u32>, text: &str) -> (Vec<(String, u16)>, u32) {
    let mut counts: HashMap<String, u32> = title.iter().map(|(term, count)| (term.clone(), *count)).collect();
    analyzer.for_each_term(text, |term| match counts.get_mut(term) {
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
