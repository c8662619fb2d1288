//! How texts are cut into chunks: the strategies, and what each of them makes of a document.

mod recursive;
mod sections;
mod semantic;
mod tables;

use std::borrow::Cow;
use std::ops::Range;

use crate::index::control::Control;
use crate::ingest::{Document, Part};
use crate::model::Embed;

/// How texts are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunking {
    /// Where a text is cut.
    pub strategy: ChunkStrategy,
    /// Characters of a chunk at most, tables excepted; at least one.
    pub size: usize,
    /// Characters at most that a chunk repeats of the one before it; at most half of `size`. Never from another section.
    pub overlap: usize,
}

/// Where a text is cut. Whatever the strategy, a chunk does not run from running text into a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChunkStrategy {
    /// At the strongest boundary that fits: section, paragraph, sentence, word, character. Neighbouring sections of at
    /// most a quarter of the size share a chunk if they stand under the same outer heading. A table is a chunk by
    /// itself, up to eight times the size, and is cut between rows above that.
    #[default]
    Recursive,
    /// One chunk a section, whatever its length; where the size does not allow it, as `Recursive` within the section.
    /// Without parts, the lines that begin with `#` outside of code are taken for headings.
    Headings,
    /// Between sentences where the subject changes: where the vectors of three neighbouring sentences and of the three
    /// one further on differ by more than four fifths of the document's do. At least three sentences a chunk where
    /// the size allows it, and no overlap. Needs the pipeline's embedder, and costs a vector a sentence.
    Semantic,
    /// As `Recursive`, and tables are cut into groups of rows that fit, each with the header above it: the document's
    /// text is stored that way. Without parts that are tables, lines with `|` or tabs are taken for rows.
    Tables,
}

impl ChunkStrategy {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Recursive => "recursive",
            Self::Headings => "headings",
            Self::Semantic => "semantic",
            Self::Tables => "tables",
        }
    }
}

impl Default for Chunking {
    fn default() -> Self {
        Self { strategy: ChunkStrategy::default(), size: 1000, overlap: 100 }
    }
}

impl Chunking {
    /// Identity of this way of cutting; a change of it makes documents be cut anew.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}-{}-{}", self.strategy.name(), self.size, self.overlap)
    }

    /// Cuts a document's text. O(text), and a vector a sentence for the semantic strategy.
    pub(super) fn cut<'d>(
        &self,
        document: &'d Document,
        embedder: Option<&dyn Embed>,
        control: &dyn Control,
    ) -> Result<Cut<'d>, String> {
        let mut cut = Cut::whole(document);
        match self.strategy {
            ChunkStrategy::Headings if cut.parts.is_empty() => cut.parts = sections::of_headings(&cut.text).into(),
            ChunkStrategy::Recursive | ChunkStrategy::Headings => {}
            ChunkStrategy::Semantic => {
                let embedder = embedder.ok_or(
                    "cutting by meaning needs an embedder, and there is none; name one, or cut by another strategy",
                )?;
                let sections = sections::joined(&cut.text, sections::of_parts(&cut.text, &cut.parts), self.size);
                cut.ranges = semantic::split(&cut.text, &sections, self.size.max(1), embedder, control)?;
                return Ok(cut);
            }
            ChunkStrategy::Tables => {
                if let Some((text, parts)) = tables::with_headers(&cut.text, &cut.parts, self.size) {
                    (cut.text, cut.parts) = (text.into(), parts.into());
                }
            }
        }
        let mut sections = sections::of_parts(&cut.text, &cut.parts);
        if self.strategy != ChunkStrategy::Headings {
            sections = sections::joined(&cut.text, sections, self.size);
        }
        for section in sections {
            let chunks = section.split(&cut.text, self.size, self.overlap);
            cut.ranges.extend(chunks);
        }
        Ok(cut)
    }
}

/// A document's text with the places of its chunks.
#[derive(Debug)]
pub(super) struct Cut<'d> {
    /// The text, as it is to be stored.
    pub text: Cow<'d, str>,
    /// The parts of that text.
    pub parts: Cow<'d, [Part]>,
    /// The chunks, each without white space at its ends.
    pub ranges: Vec<Range<usize>>,
}

impl<'d> Cut<'d> {
    /// A text with its parts and no chunk.
    pub fn whole(document: &'d Document) -> Self {
        Self { text: Cow::Borrowed(&document.text), parts: Cow::Borrowed(&document.parts), ranges: Vec::new() }
    }
}

#[cfg(test)]
mod tests;
