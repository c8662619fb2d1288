//! The best of many chunks, ties resolved by key so that no history of the store shows in the order.

use crate::error::Damage;
use crate::query::legs::Scores;
use crate::snapshot::Snapshot;
use hedgerow_format::ChunkId;

/// The `count` chunks with the highest scores above zero, best first. Among equals the lower key comes first.
pub(super) fn top(snapshot: &Snapshot, scores: &Scores, count: usize) -> Result<Vec<(ChunkId, f32)>, Damage> {
    let ids = (0..).map(ChunkId).zip(scores.by_chunk.iter().copied());
    let mut chosen: Vec<(ChunkId, f32)> = ids.filter(|(_, score)| *score > 0.0).collect();
    if count == 0 {
        return Ok(Vec::new());
    }
    if chosen.len() > count {
        let (_, last, _) = chosen.select_nth_unstable_by(count - 1, |a, b| b.1.total_cmp(&a.1));
        let least = last.1;
        // Everything that ties with the last place is kept until keys decide.
        chosen.retain(|(_, score)| *score >= least);
    }
    let mut ordered = Vec::with_capacity(chosen.len());
    for (id, score) in chosen {
        let chunk = snapshot.chunk(id)?;
        ordered.push((score, chunk.document()?.key()?, chunk.ordinal(), id));
    }
    ordered.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)).then_with(|| a.2.cmp(&b.2)));
    ordered.truncate(count);
    Ok(ordered.into_iter().map(|(score, _, _, id)| (id, score)).collect())
}
