//! The two legs of flat retrieval over all chunks: BM25 and the exact vector scan.

use crate::distance::dot_bytes;
use crate::error::QueryError;
use crate::index::terms::analysis::Analyzer;
use crate::index::terms::bm25::{Bm25, TermWeight, idf};
use crate::index::terms::language::Language;
use crate::query::answer::TermTrace;
use crate::segment::{Postings, Segment};
use crate::snapshot::{Bounded, Space};
use hedgerow_format::{ChunkId, ChunkSlot};
use rayon::prelude::*;
use roaring::RoaringBitmap;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that the terms of a question take for each of its own: a term is a string of its own.
const TERM_BYTES: u64 = 32;
/// Vectors that one task compares.
const COMPARED_TOGETHER: usize = 2048;

/// A score a chunk id, zero where there is none.
#[derive(Debug)]
pub(super) struct Scores {
    pub by_chunk: Vec<f32>,
}

impl Scores {
    pub(super) fn none(bounded: &Bounded<'_>) -> Result<Self, QueryError> {
        bounded.guard.hold::<f32>(bounded.chunks_end())?;
        Ok(Self { by_chunk: vec![0.0; bounded.chunks_end()] })
    }

    /// The scores of some chunks.
    pub(super) fn of(bounded: &Bounded<'_>, scored: &[(ChunkId, f32)]) -> Result<Self, QueryError> {
        let mut scores = Self::none(bounded)?;
        for (chunk, score) in scored {
            if let Some(place) = scores.by_chunk.get_mut(chunk.index()) {
                *place = *score;
            }
        }
        Ok(scores)
    }

    pub(super) fn get(&self, chunk: ChunkId) -> f32 {
        self.by_chunk.get(chunk.index()).copied().unwrap_or_default()
    }

    /// Divides by the highest score, so that it becomes 1; all zeros stay.
    pub(super) fn scale(&mut self, weight: f32) {
        let max = self.by_chunk.iter().copied().fold(0.0, f32::max);
        let factor = if max > 0.0 { weight / max } else { 0.0 };
        self.by_chunk.iter_mut().for_each(|score| *score *= factor);
    }
}

/// Which terms of the question stand in which chunk, and how much of the question each of them is.
#[derive(Debug)]
pub(super) struct Coverage {
    /// The terms, ascending.
    words: Vec<String>,
    /// A bit a term, by chunk.
    present: Vec<u64>,
    /// The share of the question's idf that each term has; together 1, or nothing where no chunk has any.
    shares: Vec<f32>,
}

impl Coverage {
    /// Share of the question that a chunk has nothing of.
    pub(super) fn lacking(&self, chunk: ChunkId) -> f32 {
        self.share(!self.terms(chunk))
    }

    /// Share of the question that a chunk has and another lacks.
    pub(super) fn gain(&self, chunk: ChunkId, other: ChunkId) -> f32 {
        self.beyond(chunk, self.terms(other))
    }

    /// Share of the question that a text says nothing of, whatever its language.
    pub(super) fn beside(&self, text: &str) -> f32 {
        let mut present = 0;
        Analyzer::new().for_each_term(None, text, |term| {
            let bit = self.words.binary_search_by(|word| word.as_str().cmp(term)).ok();
            present |= bit.and_then(|bit| u32::try_from(bit).ok()).and_then(|bit| 1_u64.checked_shl(bit)).unwrap_or(0);
        });
        self.share(!present)
    }

    /// Share of the question that a chunk has and two others lack.
    pub(super) fn gain_over(&self, chunk: ChunkId, others: [ChunkId; 2]) -> f32 {
        self.beyond(chunk, self.terms(others[0]) | self.terms(others[1]))
    }

    /// Share of the question that a chunk has and these terms do not.
    pub(super) fn beyond(&self, chunk: ChunkId, terms: u64) -> f32 {
        self.share(self.terms(chunk) & !terms)
    }

    /// A bit for each term that a chunk has.
    pub(super) fn terms(&self, chunk: ChunkId) -> u64 {
        self.present.get(chunk.index()).copied().unwrap_or_default()
    }

    fn share(&self, terms: u64) -> f32 {
        self.shares.iter().zip(0..).filter(|(_, bit)| terms >> bit & 1 == 1).map(|(share, _)| share).sum()
    }
}

/// The leg of terms.
#[derive(Debug)]
pub(super) struct Terms {
    pub scores: Scores,
    pub coverage: Coverage,
    pub traces: Vec<TermTrace>,
}

/// BM25 of every chunk. Statistics count live rows only, so a deleted document leaves no trace in a score. Of a question of
/// more than 64 terms the first 64 count in the coverage.
///
/// A question is too short to tell its language, so each of its words stands for its terms in all languages of the store:
/// they weigh the same, as one term that is in as many chunks as all of them together.
pub(super) fn terms(bounded: &Bounded<'_>, question: &str) -> Result<Terms, QueryError> {
    let wanted = wanted(bounded, question)?;
    let statistics = bounded.statistics()?;
    #[expect(clippy::cast_precision_loss, reason = "tantivy divides in f32 too")]
    let average = statistics.terms as f32 / statistics.chunks.max(1) as f32;
    let mut scores = Scores::none(bounded)?;
    bounded.guard.hold::<u64>(bounded.chunks_end())?;
    let words = wanted.keys().cloned().collect();
    let mut coverage = Coverage { words, present: vec![0; bounded.chunks_end()], shares: Vec::new() };
    let mut traces = Vec::with_capacity(wanted.len());
    let most = 1 + wanted.values().map(BTreeSet::len).max().unwrap_or_default();
    bounded.guard.hold::<(&Segment, Postings<'_>)>(bounded.segments().len().saturating_mul(most))?;
    let mut pace = bounded.guard.pace();
    for (term, in_languages) in wanted {
        bounded.guard.poll()?;
        let mut found: Vec<(&Segment, Postings<'_>)> = Vec::new();
        for term in std::iter::once(&term).chain(&in_languages) {
            for segment in bounded.segments() {
                found.push((segment, segment.postings(term)?));
            }
        }
        let chunks = live_postings(bounded, &found)?.min(statistics.chunks);
        let weight = TermWeight::new(statistics.chunks, chunks, average, Bm25::default());
        let bit = u32::try_from(traces.len()).ok().and_then(|term| 1_u64.checked_shl(term)).unwrap_or(0);
        if bit != 0 {
            coverage.shares.push(if chunks > 0 { idf(statistics.chunks, chunks) } else { 0.0 });
        }
        for (segment, postings) in &found {
            let (ids, lengths) = (segment.chunk_ids(), segment.lengths()?);
            for (slot, frequency) in postings.chunks.iter().zip(postings.frequencies.iter()) {
                pace.step()?;
                let slot = ChunkSlot(slot).index();
                let Some(id) = ids.get(slot).map(ChunkId) else { continue };
                let length = lengths.get(slot).unwrap_or_default();
                if bounded.is_live(id)
                    && let Some(score) = scores.by_chunk.get_mut(id.index())
                {
                    *score += weight.score(u32::from(frequency), length);
                    coverage.present[id.index()] |= bit;
                }
            }
        }
        traces.push(TermTrace { term, chunks });
    }
    let sum: f32 = coverage.shares.iter().sum();
    if sum > 0.0 {
        coverage.shares.iter_mut().for_each(|share| *share /= sum);
    }
    Ok(Terms { scores, coverage, traces })
}

/// The question's terms, each with those that its words have in the languages of the store; each of those stands once.
fn wanted(bounded: &Bounded<'_>, question: &str) -> Result<BTreeMap<String, BTreeSet<String>>, QueryError> {
    let languages = languages(bounded)?;
    bounded.guard.hold_bytes(question.len() as u64 * TERM_BYTES * (1 + languages.len() as u64))?;
    let mut analyzer = Analyzer::new();
    let mut of = |language| {
        let mut terms = Vec::new();
        analyzer.for_each_term(language, question, |term| terms.push(term.to_owned()));
        terms
    };
    let plain = of(None);
    let mut wanted: BTreeMap<String, BTreeSet<String>> =
        plain.iter().map(|term| (term.clone(), BTreeSet::new())).collect();
    let mut seen = BTreeSet::new();
    for language in languages {
        let mut pairs: Vec<(&String, String)> = plain.iter().zip(of(Some(language))).collect();
        // The order of words in the question tells nothing.
        pairs.sort_unstable();
        for (term, other) in pairs {
            if *term != other
                && seen.insert(other.clone())
                && let Some(others) = wanted.get_mut(term)
            {
                others.insert(other);
            }
        }
    }
    Ok(wanted)
}

/// The languages that segments have terms of.
fn languages(bounded: &Bounded<'_>) -> Result<Vec<Language>, QueryError> {
    let mut languages = Vec::new();
    for segment in bounded.segments() {
        // They come before all other terms, so most segments tell at once that there are none.
        if !segment.first_term_from("")?.is_some_and(|term| term.starts_with(Language::MARK)) {
            continue;
        }
        for language in Language::all() {
            let prefix = language.prefix();
            if !languages.contains(&language)
                && segment.first_term_from(&prefix)?.is_some_and(|term| term.starts_with(&prefix))
            {
                languages.push(language);
            }
        }
    }
    languages.sort_unstable();
    Ok(languages)
}

fn live_postings(bounded: &Bounded<'_>, found: &[(&Segment, Postings<'_>)]) -> Result<u64, QueryError> {
    let (mut live, mut pace) = (0, bounded.guard.pace());
    for (segment, postings) in found {
        let ids = segment.chunk_ids();
        for slot in postings.chunks.iter() {
            pace.step()?;
            live += u64::from(ids.get(ChunkSlot(slot).index()).is_some_and(|id| bounded.is_live(ChunkId(id))));
        }
    }
    Ok(live)
}

/// The vectors of a space that count, ascending by chunk.
#[derive(Debug)]
pub(super) struct Vectors<'s> {
    rows: Vec<(ChunkId, &'s [u8])>,
}

impl<'s> Vectors<'s> {
    /// Of no space.
    pub(super) fn none() -> Self {
        Self { rows: Vec::new() }
    }

    pub(super) fn of(bounded: &'s Bounded<'_>, space: &Space) -> Result<Self, QueryError> {
        Self::outside(bounded, space, &vec![false; bounded.segments().len()])
    }

    /// Of the segments that are not covered.
    pub(super) fn outside(bounded: &'s Bounded<'_>, space: &Space, covered: &[bool]) -> Result<Self, QueryError> {
        let mut rows: Vec<(ChunkId, &[u8])> = Vec::new();
        for position in (0..covered.len()).filter(|position| !covered[*position]) {
            bounded.guard.poll()?;
            let most = bounded.vectors_in(position, &space.name)?;
            bounded.guard.hold::<(ChunkId, &[u8])>(most)?;
            rows.reserve(most);
            bounded.for_each_vector_of(position..position + 1, Some(&space.name), |_, chunk, row| {
                rows.push((chunk, row));
            })?;
        }
        if !rows.is_sorted_by_key(|(chunk, _)| *chunk) {
            rows.sort_unstable_by_key(|(chunk, _)| *chunk);
        }
        Ok(Self { rows })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The chunks that have one, ascending.
    pub(super) fn chunks(&self) -> impl Iterator<Item = ChunkId> {
        self.rows.iter().map(|(chunk, _)| *chunk)
    }

    /// The components of some chunks' vectors, row after row; counts as much again for what is made of them.
    pub(super) fn matrix(&self, bounded: &Bounded<'_>, chunks: &[ChunkId]) -> Result<Vec<f32>, QueryError> {
        let dimensions = self.rows.first().map_or(0, |(_, row)| row.len() / size_of::<f32>());
        bounded.guard.hold::<[f32; 2]>(chunks.len().saturating_mul(dimensions))?;
        let mut matrix = Vec::with_capacity(chunks.len().saturating_mul(dimensions));
        let mut pace = bounded.guard.pace();
        for chunk in chunks {
            pace.step()?;
            let row = self.row(*chunk).unwrap_or_default();
            matrix.extend(row.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        }
        Ok(matrix)
    }

    fn row(&self, chunk: ChunkId) -> Option<&'s [u8]> {
        self.rows.binary_search_by_key(&chunk, |(chunk, _)| *chunk).ok().map(|row| self.rows[row].1)
    }

    /// The components of a chunk's vector.
    pub(super) fn components(&self, chunk: ChunkId) -> Option<Vec<f32>> {
        Some(self.row(chunk)?.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    /// The cosine of two chunks; 0 where one of them has no vector.
    pub(super) fn between(&self, a: ChunkId, b: ChunkId) -> f32 {
        self.components(a).zip(self.row(b)).map_or(0.0, |(a, b)| dot_bytes(&a, b))
    }

    /// The cosine of every vector with a question's, which has length 1. Compares all, on all threads; the scores are the
    /// same bits on every machine.
    pub(super) fn cosines(
        &self,
        bounded: &Bounded<'_>,
        space: &Space,
        question: &[f32],
    ) -> Result<Vec<(ChunkId, f32)>, QueryError> {
        check_length(space, question)?;
        let guard = &bounded.guard;
        // The scores, once as each task gives them and once joined.
        guard.hold::<[(ChunkId, f32); 2]>(self.rows.len())?;
        let compared: Result<Vec<Vec<(ChunkId, f32)>>, QueryError> = self
            .rows
            .par_chunks(COMPARED_TOGETHER)
            .map(|rows| {
                guard.poll()?;
                Ok(rows.iter().map(|(chunk, row)| (*chunk, dot_bytes(question, row))).collect())
            })
            .collect();
        Ok(compared?.concat())
    }
}

/// A question's vector has as many components as the space.
pub(super) fn check_length(space: &Space, question: &[f32]) -> Result<(), QueryError> {
    if question.len() == space.dimensions {
        return Ok(());
    }
    Err(QueryError::Vector {
        space: space.name.clone(),
        expected: format!("{} components", space.dimensions),
        found: format!("{} components", question.len()),
    })
}

/// Sets the scores of all chunks outside `allowed` to zero.
pub(super) fn restrict(scores: &mut Scores, allowed: Option<&RoaringBitmap>) {
    let Some(allowed) = allowed else { return };
    for (id, score) in (0..).zip(&mut scores.by_chunk) {
        if !allowed.contains(id) {
            *score = 0.0;
        }
    }
}
