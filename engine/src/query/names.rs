//! The entities that a question names.

use crate::error::QueryError;
use crate::index::guard::Guard;
use crate::model::{Certainty, Extract};
use crate::projection::Links;
use hedgerow_format::projection::link_flags;
use hedgerow_format::{EntitySlot, Key, name};
use std::collections::BTreeSet;

/// A title of more words than this is not looked for in a question.
const WORDS_MAX: usize = 16;
/// Bytes that the tokens and words of a question take for each of its own.
const TOKEN_BYTES: u64 = 64;

/// Entities of the links projection that stand in a question: titles in any case, longest first, and what the extractor
/// takes for a name. Ascending by slot.
pub(super) fn find(
    links: &Links,
    question: &str,
    guard: &Guard<'_>,
    extractor: Option<&dyn Extract>,
) -> Result<BTreeSet<EntitySlot>, QueryError> {
    let mut found = titles(links, question, guard)?;
    let Some(extractor) = extractor else { return Ok(found) };
    for mention in extractor.extract("", question)?.mentions {
        let Some(slot) = links.find(Key::of_entity(&name::name_key_text(&mention.name)))? else { continue };
        let flags = links.entity(slot)?.flags;
        if mention.certainty == Certainty::Certain || flags & link_flags::COMMON == 0 {
            found.insert(slot);
        }
    }
    Ok(found)
}

/// Greedy longest match of gazetteer names, from left to right.
fn titles(links: &Links, question: &str, guard: &Guard<'_>) -> Result<BTreeSet<EntitySlot>, QueryError> {
    guard.hold_bytes(question.len() as u64 * TOKEN_BYTES)?;
    let tokens = name::tokens(question);
    let mut words = Vec::new();
    let mut starts_sentence = true;
    for token in &tokens {
        if token.is_word() {
            words.push((token, starts_sentence));
            starts_sentence = false;
        } else {
            starts_sentence = matches!(token.text, "." | "!" | "?" | "\"");
        }
    }
    let mut found = BTreeSet::new();
    let mut position = 0;
    let mut pace = guard.pace();
    while position < words.len() {
        pace.step()?;
        let longest = WORDS_MAX.min(words.len() - position);
        let mut step = 1;
        for length in (1..=longest).rev() {
            let (first, last) = (words[position].0, words[position + length - 1].0);
            let key = name::name_key_text(&question[first.start..last.end]);
            // A leading article is no part of a key: the match then begins at the next word.
            if key.split(' ').count() != length || !name::is_meaningful(&key) {
                continue;
            }
            let Some(slot) = links.find(Key::of_entity(&key))? else { continue };
            let flags = links.entity(slot)?.flags;
            if flags & link_flags::GAZETTEER != 0 && (length > 1 || stands_out(first.text, words[position].1, flags)) {
                found.insert(slot);
                step = length;
                break;
            }
        }
        position += step;
    }
    Ok(found)
}

/// Whether one word is a name where it stands: it has a capital or is a year, and the corpus does not mostly write it
/// in lower case.
fn stands_out(word: &str, starts_sentence: bool, flags: u32) -> bool {
    let capital = word.chars().next().is_some_and(|first| first.is_alphabetic() && !first.is_lowercase());
    let year = word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
    if !capital && !year {
        return false;
    }
    flags & link_flags::COMMON == 0 || (!starts_sentence && flags & link_flags::MOSTLY_LOWER == 0)
}
