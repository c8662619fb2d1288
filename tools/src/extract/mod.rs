//! The extractor that comes with the program: names, identifiers, dates and stated relations by pattern; no model, no corpus.

mod patterns;
mod relations;
mod scripts;

use std::ops::Range;

use hedgerow::{Certainty, Extract, Extraction, FoundMention, ModelError};
use hedgerow_format::name::{Token, tokens};

use crate::extract::patterns::mentions;
use crate::extract::relations::relations;
use crate::extract::scripts::{is_katakana_name, parted};

/// Finds entities by the shape of their words and relations by the words between two of them.
///
/// | kind | pattern |
/// |---|---|
/// | `name` | a run of capitalised words, joined by connectors (`of`, `de`, `&`), hyphens, apostrophes and initials |
/// | `year` | four digits alone |
/// | `date` | `2024-05-01`, `1 May 2024`, `May 1st, 2024`, `May 2024` |
/// | `identifier` | `INC-2209`, `snake_case`, `path::name`, `camelCase` |
/// | `quoted` | at most eight tokens in double quotes that do not begin in lower case, or in `「」`, `『』` or `《》` |
///
/// In Chinese, Japanese and other scripts without capitals, three or more letters of Katakana count as a capitalised word, and
/// what is written in Latin letters is a word by itself. Connectors and the words that lead a sentence are known in English,
/// Russian and Greek, and the connectors of names in the languages of western Europe. A name may hold an identifier or lie in a date; both are given then. A capitalised word alone at the start of a sentence is
/// uncertain; acronyms are capitalised runs. The relations are those of the table in `relations.rs`. Cost: O(text).
#[derive(Clone, Copy, Debug, Default)]
pub struct Patterns;

impl Extract for Patterns {
    fn model(&self) -> &'static str {
        "patterns-2"
    }

    fn extract(&self, _title: &str, text: &str) -> Result<Extraction, ModelError> {
        let tokens = parted(text, tokens(text));
        let shapes: Vec<Shape> = tokens.iter().map(Shape::of).collect();
        let spans = mentions(text, &tokens, &shapes);
        let relations = relations(text, &tokens, &shapes, &spans);
        let mentions = spans.iter().filter_map(|span| {
            let range = span.bytes(&tokens);
            Some(FoundMention {
                name: text.get(range.clone())?.to_owned(),
                kind: span.kind.to_owned(),
                range,
                certainty: span.certainty,
            })
        });
        Ok(Extraction { mentions: mentions.collect(), relations })
    }
}

/// What a token looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// A word that starts with an upper-case letter, or is written as names are.
    Upper,
    /// Digits only.
    Digits,
    /// Any other word.
    Word,
    /// A character that is neither letter nor digit.
    Sign(char),
}

impl Shape {
    fn of(token: &Token<'_>) -> Shape {
        match token.text.chars().next() {
            Some(first) if first.is_uppercase() || is_katakana_name(token.text) => Shape::Upper,
            Some(first) if first.is_alphabetic() => Shape::Word,
            Some(first) if !first.is_alphanumeric() => Shape::Sign(first),
            _ if token.text.chars().all(char::is_numeric) => Shape::Digits,
            _ => Shape::Word,
        }
    }
}

/// A mention as a range of tokens, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    first: usize,
    last: usize,
    kind: &'static str,
    certainty: Certainty,
}

impl Span {
    /// The bytes of the text that it covers.
    fn bytes(&self, tokens: &[Token<'_>]) -> Range<usize> {
        let start = tokens.get(self.first).map_or(0, |token| token.start);
        start..tokens.get(self.last).map_or(start, |token| token.end)
    }
}

/// Whether a token begins a paragraph, heading, list item or table row: after a blank line or a heading, or as a sign that
/// opens a line.
fn starts_block(text: &str, tokens: &[Token<'_>], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    let (Some(before), Some(token)) = (before, tokens.get(at)) else {
        return true;
    };
    // Nearly all gaps are one space or none.
    if token.start - before.end < 2 && text.as_bytes().get(before.end) != Some(&b'\n') {
        return false;
    }
    let gap = text.get(before.end..token.start).unwrap_or_default();
    match gap.bytes().filter(|&byte| byte == b'\n').count() {
        0 => false,
        1 => matches!(token.text, "-" | "*" | "#" | "•" | "|") || ends_heading(text, before.end),
        _ => true,
    }
}

/// Whether the line that a byte stands in begins with the sign of a heading.
fn ends_heading(text: &str, at: usize) -> bool {
    let line = text.get(..at).unwrap_or_default().rsplit('\n').next().unwrap_or_default();
    line.trim_start().starts_with('#')
}
