//! The two legs of flat retrieval over all chunks: BM25 and the exact vector scan.

use crate::distance::dot_bytes;
use crate::error::{Damage, QueryError};
use crate::index::terms::analysis::Analyzer;
use crate::index::terms::bm25::{Bm25, TermWeight};
use crate::query::answer::TermTrace;
use crate::segment::Postings;
use crate::snapshot::{Snapshot, Space};
use hedgerow_format::{ChunkId, ChunkSlot};
use rayon::prelude::*;
use roaring::RoaringBitmap;

/// Vectors that one task compares.
const COMPARED_TOGETHER: usize = 2048;

/// A score a chunk id, zero where there is none.
#[derive(Debug)]
pub(super) struct Scores {
    pub by_chunk: Vec<f32>,
}

impl Scores {
    pub(super) fn none(snapshot: &Snapshot) -> Self {
        Self { by_chunk: vec![0.0; snapshot.chunks_end()] }
    }

    /// The scores of some chunks.
    pub(super) fn of(snapshot: &Snapshot, scored: &[(ChunkId, f32)]) -> Self {
        let mut scores = Self::none(snapshot);
        for (chunk, score) in scored {
            if let Some(place) = scores.by_chunk.get_mut(chunk.index()) {
                *place = *score;
            }
        }
        scores
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

/// BM25 of every chunk. Statistics count live rows only, so a deleted document leaves no trace in a score.
pub(super) fn terms(snapshot: &Snapshot, question: &str) -> Result<(Scores, Vec<TermTrace>), Damage> {
    let mut wanted = Vec::new();
    Analyzer::new().for_each_term(question, |term| wanted.push(term.to_owned()));
    wanted.sort_unstable();
    wanted.dedup();
    let statistics = snapshot.statistics()?;
    #[expect(clippy::cast_precision_loss, reason = "tantivy divides in f32 too")]
    let average = statistics.terms as f32 / statistics.chunks.max(1) as f32;
    let mut scores = Scores::none(snapshot);
    let mut traces = Vec::with_capacity(wanted.len());
    for term in wanted {
        let postings: Result<Vec<Postings<'_>>, Damage> =
            snapshot.segments().iter().map(|segment| segment.postings(&term)).collect();
        let postings = postings?;
        let chunks = live_postings(snapshot, &postings);
        let weight = TermWeight::new(statistics.chunks, chunks, average, Bm25::default());
        for (segment, postings) in snapshot.segments().iter().zip(&postings) {
            let (ids, lengths) = (segment.chunk_ids(), segment.lengths()?);
            for (slot, frequency) in postings.chunks.iter().zip(postings.frequencies.iter()) {
                let slot = ChunkSlot(slot).index();
                let Some(id) = ids.get(slot).map(ChunkId) else { continue };
                let length = lengths.get(slot).unwrap_or_default();
                if snapshot.is_live(id)
                    && let Some(score) = scores.by_chunk.get_mut(id.index())
                {
                    *score += weight.score(u32::from(frequency), length);
                }
            }
        }
        traces.push(TermTrace { term, chunks });
    }
    Ok((scores, traces))
}

fn live_postings(snapshot: &Snapshot, postings: &[Postings<'_>]) -> u64 {
    let segments = snapshot.segments().iter().zip(postings);
    let live = segments.map(|(segment, postings)| {
        let ids = segment.chunk_ids();
        let live = |slot: &u32| ids.get(ChunkSlot(*slot).index()).is_some_and(|id| snapshot.is_live(ChunkId(id)));
        postings.chunks.iter().filter(live).count() as u64
    });
    live.sum()
}

/// The cosine of every vector of a space with a question's, which has length 1. Compares all, on all threads; the scores
/// are the same bits on every machine.
pub(super) fn cosines(snapshot: &Snapshot, space: &Space, question: &[f32]) -> Result<Vec<(ChunkId, f32)>, QueryError> {
    if question.len() != space.dimensions {
        return Err(QueryError::Vector {
            space: space.name.clone(),
            expected: format!("{} components", space.dimensions),
            found: format!("{} components", question.len()),
        });
    }
    let mut rows: Vec<(ChunkId, &[u8])> = Vec::new();
    snapshot.for_each_vector(Some(&space.name), |_, chunk, row| rows.push((chunk, row)))?;
    let compared: Vec<Vec<(ChunkId, f32)>> = rows
        .par_chunks(COMPARED_TOGETHER)
        .map(|rows| rows.iter().map(|(chunk, row)| (*chunk, dot_bytes(question, row))).collect())
        .collect();
    Ok(compared.concat())
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
