//! Similarity edges of one vector space.

use crate::index::control::Control;
use crate::index::edges::{self, EdgeRules};
use crate::project::{Fault, chunks_end};
use crate::projection::EdgesData;
use crate::snapshot::Snapshot;
use hedgerow_format::projection::EdgeReportRow;
use hedgerow_format::{ChunkId, Key, TextRef};

/// Gathers the vectors that count and prunes all pairs.
pub(super) fn build(
    snapshot: &Snapshot,
    space: &str,
    rules: EdgeRules,
    control: &dyn Control,
) -> Result<EdgesData, Fault> {
    let (mut rows, mut dimensions) = (Vec::new(), 0);
    snapshot.for_each_vector(Some(space), |view, chunk, row| {
        dimensions = view.dimensions;
        rows.push((chunk, row));
    })?;
    rows.sort_by_key(|row| row.0);
    let mut matrix = Vec::with_capacity(rows.len() * dimensions);
    for (_, row) in &rows {
        matrix.extend(row.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
    }
    let chunks: Vec<ChunkId> = rows.iter().map(|row| row.0).collect();
    let set = edges::build(&matrix, dimensions, &key_ranks(snapshot, &chunks)?, rules, control)?;
    let mut pairs = Vec::with_capacity(set.targets.len());
    for (row, bounds) in set.offsets.windows(2).enumerate() {
        let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let range = place(bounds[0])..place(bounds[1]);
        for (target, weight) in set.targets[range.clone()].iter().zip(&set.weights[range]) {
            pairs.push((chunks[row].0, chunks[ChunkId(*target).index()].0, *weight));
        }
    }
    let report = EdgeReportRow {
        space: TextRef::default(),
        percentile_thousandths: rules.percentile,
        top_m: rules.top_m,
        rows: u64::from(set.report.rows),
        pairs: set.report.pairs,
        passed: set.report.passed,
        kept: set.report.kept,
        threshold: set.report.threshold.unwrap_or_default(),
        degree_max: u32::try_from(set.report.degree_max).unwrap_or(u32::MAX),
        components: set.report.components,
        reserved: 0,
    };
    Ok(EdgesData { space: space.to_owned(), report, edges: pairs, chunks_end: chunks_end(snapshot) })
}

/// The rank of every chunk in the order of document keys and ordinals, which no history changes.
fn key_ranks(snapshot: &Snapshot, chunks: &[ChunkId]) -> Result<Vec<u32>, Fault> {
    let mut order = Vec::with_capacity(chunks.len());
    for (row, id) in chunks.iter().enumerate() {
        let chunk = snapshot.chunk(*id)?;
        order.push((Key::of_document(chunk.document()?.key()?), chunk.ordinal(), row));
    }
    order.sort_unstable();
    let mut ranks = vec![0; chunks.len()];
    for (rank, (_, _, row)) in (0..).zip(order) {
        ranks[row] = rank;
    }
    Ok(ranks)
}
