//! The best of many chunks, ties resolved by key so that no history of the store shows in the order.

use crate::error::QueryError;
use crate::query::legs::Scores;
use crate::snapshot::{Bounded, ChunkView, DocumentView};
use hedgerow_format::ChunkId;
use roaring::RoaringBitmap;

/// The `count` chunks with the highest scores, best first; among equals the lower key comes first. Without a filter only
/// scores above zero count; with one, whatever it lets through does, so that `count` come when `count` match.
pub(super) fn top(
    bounded: &Bounded<'_>,
    scores: &Scores,
    allowed: Option<&RoaringBitmap>,
    count: usize,
) -> Result<Vec<(ChunkId, f32)>, QueryError> {
    bounded.guard.poll()?;
    let most = match allowed {
        Some(allowed) => usize::try_from(allowed.len()).unwrap_or(usize::MAX),
        None => scores.by_chunk.iter().filter(|score| **score > 0.0).count(),
    };
    bounded.guard.hold::<(ChunkId, f32)>(most)?;
    let scored = |id: ChunkId| (id, scores.get(id));
    let chosen: Vec<(ChunkId, f32)> = if let Some(allowed) = allowed {
        allowed.iter().map(ChunkId).map(scored).collect()
    } else {
        let all = (0..).map(ChunkId).zip(scores.by_chunk.iter().copied());
        all.filter(|(_, score)| *score > 0.0).collect()
    };
    best(bounded, chosen, count)
}

/// A scored chunk and its key: the document's and its ordinal.
pub(super) struct Named<'s> {
    pub chunk: ChunkId,
    pub score: f32,
    pub document: &'s str,
    pub ordinal: u32,
}

/// The `count` best of some scored chunks, best first; among equals the lower key comes first.
pub(super) fn best(
    bounded: &Bounded<'_>,
    chosen: Vec<(ChunkId, f32)>,
    count: usize,
) -> Result<Vec<(ChunkId, f32)>, QueryError> {
    Ok(best_named(bounded, chosen, count)?.into_iter().map(|named| (named.chunk, named.score)).collect())
}

/// Leaves out what is not among the `count` best, in whatever order; what ties with the last of them is kept until keys decide.
pub(super) fn cut(chosen: &mut Vec<(ChunkId, f32)>, count: usize) {
    if count == 0 {
        chosen.clear();
    } else if chosen.len() > count {
        let (_, last, _) = chosen.select_nth_unstable_by(count - 1, |a, b| b.1.total_cmp(&a.1));
        let least = last.1;
        chosen.retain(|(_, score)| *score >= least);
    }
}

/// As [`best`], with their keys.
pub(super) fn best_named<'s>(
    bounded: &'s Bounded<'_>,
    mut chosen: Vec<(ChunkId, f32)>,
    count: usize,
) -> Result<Vec<Named<'s>>, QueryError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    cut(&mut chosen, count);
    bounded.guard.hold::<(Named<'_>, ChunkView<'_>, DocumentView<'_>)>(chosen.len())?;
    // Row by row of one kind, so that the memory of many is asked for at once.
    let mut pace = bounded.guard.pace();
    let found = |(chunk, score)| {
        pace.step()?;
        Ok((score, chunk, bounded.chunk(chunk)?))
    };
    let found = chosen.into_iter().map(found).collect::<Result<Vec<_>, QueryError>>()?;
    let documents = found.iter().map(|(_, _, chunk)| chunk.document()).collect::<Result<Vec<_>, _>>()?;
    let mut ordered = Vec::with_capacity(found.len());
    for ((score, chunk, view), document) in found.into_iter().zip(documents) {
        ordered.push(Named { chunk, score, document: document.key()?, ordinal: view.ordinal() });
    }
    let by_key = |a: &Named<'_>, b: &Named<'_>| a.document.cmp(b.document).then(a.ordinal.cmp(&b.ordinal));
    ordered.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| by_key(a, b)));
    ordered.truncate(count);
    Ok(ordered)
}
