//! Relations of similar chunks that were read before: so that one thing keeps one name, and one label one form.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hedgerow::{Listing, Snapshot};

use crate::failure::Failure;

/// What is known of the chunks that were read.
#[derive(Debug)]
pub(super) struct Similar {
    snapshot: Arc<Snapshot>,
    lines: HashMap<String, Vec<String>>,
}

/// Relations of a store that are looked at.
const RELATIONS_MAX: usize = 200_000;
/// Lines that are kept of a chunk, chunks that are shown, and those among which they are looked for.
const LINES_MAX: usize = 3;
const CHUNKS_MAX: usize = 3;
const FOUND_MAX: usize = 12;
/// Characters of a text by which similar ones are found.
const TEXT_CHARS: usize = 300;

impl Similar {
    /// What earlier runs left, of the chunks that are marked.
    pub fn of(snapshot: Arc<Snapshot>, read: &HashSet<String>) -> Result<Similar, Failure> {
        let mut similar = Similar { snapshot, lines: HashMap::new() };
        if read.is_empty() {
            return Ok(similar);
        }
        let Listing::Relations(relations) = similar.snapshot.list_relations(RELATIONS_MAX)? else { return Ok(similar) };
        for relation in relations {
            let line = line(&relation.subject, &relation.predicate, &relation.object);
            for chunk in relation.evidence.into_iter().filter(|chunk| read.contains(chunk)) {
                similar.add(chunk, line.clone());
            }
        }
        Ok(similar)
    }

    /// One more relation of a chunk.
    pub fn add(&mut self, chunk: String, line: String) {
        let lines = self.lines.entry(chunk).or_default();
        if lines.len() < LINES_MAX {
            lines.push(line);
        }
    }

    /// Lines about the chunks that are most similar to this one by their terms.
    pub fn to(&self, chunk: &str, text: &str) -> Result<Vec<String>, Failure> {
        if self.lines.is_empty() {
            return Ok(Vec::new());
        }
        let start: String = text.chars().take(TEXT_CHARS).collect();
        let found = self.snapshot.search_terms(&start, None, FOUND_MAX)?;
        let others = found.iter().filter(|found| found.key != chunk);
        let known = others.filter_map(|found| self.lines.get(&found.key)).take(CHUNKS_MAX);
        Ok(known.flatten().cloned().collect())
    }
}

/// A relation as a model is shown it.
pub(super) fn line(subject: &str, predicate: &str, object: &str) -> String {
    format!("{subject} | {predicate} | {object}")
}
