//! Similarity edges of one vector space.

use crate::index::control::Control;
use crate::index::edges::{self, EdgeReport, EdgeRules, EdgeSet, Former, Reserve};
use crate::project::{Fault, chunks_end};
use crate::projection::{Edges, EdgesData, EdgesReserve};
use crate::snapshot::Snapshot;
use hedgerow_format::projection::{EdgeReportRow, EdgeReserveRow, EdgeRow, EdgeSpare};
use hedgerow_format::{ChunkId, Key, TextRef};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap};

/// Gathers the vectors that count and prunes all pairs; where `former` edges with the same rules can be followed, only
/// those of what changed since.
pub(super) fn build(
    snapshot: &Snapshot,
    space: &str,
    rules: EdgeRules,
    former: Option<&Edges>,
    control: &dyn Control,
) -> Result<EdgesData, Fault> {
    let vectors = Vectors::of(snapshot, space)?;
    let ranks = key_ranks(snapshot, &vectors.chunks)?;
    let followed = match former.filter(|former| former.entry().percentile_thousandths == rules.percentile) {
        Some(former) if former.entry().top_m == rules.top_m => {
            vectors.followed(snapshot, former, &ranks, rules, control)?
        }
        _ => None,
    };
    let (set, reserve) = match followed {
        Some(built) => built,
        None => edges::build(&vectors.matrix, vectors.dimensions, &ranks, rules, control)?,
    };
    Ok(EdgesData {
        space: space.to_owned(),
        report: report(&set.report, rules),
        edges: vectors.by_chunk(&set),
        reserve: vectors.recorded(&reserve),
        chunks_end: chunks_end(snapshot),
    })
}

fn report(report: &EdgeReport, rules: EdgeRules) -> EdgeReportRow {
    EdgeReportRow {
        space: TextRef::default(),
        percentile_thousandths: rules.percentile,
        top_m: rules.top_m,
        rows: u64::from(report.rows),
        pairs: report.pairs,
        passed: report.passed,
        kept: report.kept,
        threshold: report.threshold.unwrap_or_default(),
        degree_max: u32::try_from(report.degree_max).unwrap_or(u32::MAX),
        components: report.components,
        reserved: 0,
    }
}

/// The vectors of a space that count, ascending by chunk.
struct Vectors {
    chunks: Vec<ChunkId>,
    dimensions: usize,
    matrix: Vec<f32>,
    /// What tells a vector from another.
    hashes: Vec<[u8; 16]>,
}

impl Vectors {
    fn of(snapshot: &Snapshot, space: &str) -> Result<Self, Fault> {
        let (mut rows, mut dimensions) = (Vec::new(), 0);
        snapshot.for_each_vector(Some(space), |view, chunk, row| {
            dimensions = view.dimensions;
            rows.push((chunk, row));
        })?;
        rows.sort_by_key(|row| row.0);
        let mut matrix = vec![0.0; rows.len() * dimensions];
        matrix.par_chunks_mut(dimensions.max(1)).zip(&rows).for_each(|(components, (_, row))| decode(row, components));
        let hashes = rows.par_iter().map(|(_, row)| hash(row)).collect();
        Ok(Self { chunks: rows.iter().map(|row| row.0).collect(), dimensions, matrix, hashes })
    }

    fn row_of(&self, chunk: ChunkId) -> Option<usize> {
        self.chunks.binary_search(&chunk).ok()
    }

    /// The edges that follow from former ones and what changed; none where only building everything tells.
    fn followed(
        &self,
        snapshot: &Snapshot,
        former: &Edges,
        ranks: &[u32],
        rules: EdgeRules,
        control: &dyn Control,
    ) -> Result<Option<(EdgeSet, Reserve)>, Fault> {
        let kept = former.reserve()?;
        let same = |row: &EdgeRow| self.row_of(ChunkId(row.chunk)).filter(|at| self.hashes[*at] == row.vector);
        let rows: Vec<Option<u32>> = kept.rows.iter().map(|row| same(row).map(number)).collect();
        let gone: Vec<&EdgeRow> =
            kept.rows.iter().zip(&rows).filter(|(_, now)| now.is_none()).map(|(row, _)| row).collect();
        let came = self.chunks.len().saturating_sub(rows.len() - gone.len());
        if rows.is_empty() || gone.len() + came > self.chunks.len() / CHANGED_MAX {
            return Ok(None);
        }
        let Some(gone) = self.gone(snapshot, former.space(), &gone)? else { return Ok(None) };
        let Some((set, reserve)) = as_built(former, &kept)? else { return Ok(None) };
        let former = Former { edges: &set, reserve: &reserve, rows: &rows, gone: &gone };
        Ok(edges::update(&self.matrix, self.dimensions, ranks, rules, &former, control)?)
    }

    /// The vectors of chunks that are gone or have others now, while files still hold them.
    fn gone(&self, snapshot: &Snapshot, space: &str, rows: &[&EdgeRow]) -> Result<Option<Vec<f32>>, Fault> {
        let mut wanted: HashMap<(u32, [u8; 16]), usize> =
            rows.iter().enumerate().map(|(at, row)| ((row.chunk, row.vector), at)).collect();
        let chunks: std::collections::HashSet<u32> = rows.iter().map(|row| row.chunk).collect();
        let mut matrix = vec![0.0; rows.len() * self.dimensions];
        snapshot.for_each_vector_held(space, |chunk, row| {
            if !chunks.contains(&chunk.0) || row.len() != self.dimensions * 4 {
                return;
            }
            if let Some(at) = wanted.remove(&(chunk.0, hash(row))) {
                decode(row, &mut matrix[at * self.dimensions..][..self.dimensions]);
            }
        })?;
        Ok(wanted.is_empty().then_some(matrix))
    }

    fn by_chunk(&self, set: &EdgeSet) -> Vec<(u32, u32, f32)> {
        let mut pairs = Vec::with_capacity(set.targets.len());
        for (chunk, bounds) in self.chunks.iter().zip(set.offsets.windows(2)) {
            let range = index(bounds[0])..index(bounds[1]);
            let targets = set.targets[range.clone()].iter().zip(&set.weights[range]);
            pairs.extend(targets.map(|(target, weight)| (chunk.0, self.chunks[*target as usize].0, *weight)));
        }
        pairs
    }

    fn recorded(&self, reserve: &Reserve) -> EdgesReserve {
        let rows = reserve.offsets.iter().skip(1).zip(reserve.ranks.iter().zip(&reserve.floors));
        let rows =
            rows.zip(self.chunks.iter().zip(&self.hashes)).map(|((end, (rank, floor)), (chunk, hash))| EdgeRow {
                vector: *hash,
                chunk: chunk.0,
                rank: *rank,
                floor: *floor,
                spares_end: u32::try_from(*end).unwrap_or(u32::MAX),
            });
        let rows: Vec<EdgeRow> = rows.collect();
        let spares = reserve.partners.iter().zip(&reserve.similarities);
        EdgesReserve {
            spares: spares.map(|(row, similarity)| EdgeSpare { row: *row, similarity: *similarity }).collect(),
            counts: reserve.counts.clone(),
            start: (!rows.is_empty()).then_some(EdgeReserveRow { below: reserve.below, low: reserve.low, reserved: 0 }),
            rows,
        }
    }
}

/// Former edges and their reserve by the rows that they were built from; none where they speak of other chunks.
fn as_built(former: &Edges, kept: &EdgesReserve) -> Result<Option<(EdgeSet, Reserve)>, Fault> {
    let row_of: BTreeMap<u32, u32> = (0..).zip(&kept.rows).map(|(at, row)| (row.chunk, at)).collect();
    let mut set = EdgeSet { offsets: vec![0], ..EdgeSet::default() };
    let start = kept.start.unwrap_or(EdgeReserveRow { below: 0, low: 0, reserved: 0 });
    let mut reserve = Reserve {
        low: start.low,
        below: start.below,
        counts: kept.counts.clone(),
        offsets: vec![0],
        ..Reserve::default()
    };
    for row in &kept.rows {
        for (partner, weight) in former.neighbours(ChunkId(row.chunk))? {
            let Some(partner) = row_of.get(&partner.0) else { return Ok(None) };
            set.targets.push(*partner);
            set.weights.push(weight);
        }
        set.offsets.push(set.targets.len() as u64);
        reserve.ranks.push(row.rank);
        reserve.floors.push(row.floor);
        reserve.offsets.push(u64::from(row.spares_end));
    }
    for spare in &kept.spares {
        reserve.partners.push(spare.row);
        reserve.similarities.push(spare.similarity);
    }
    Ok(Some((set, reserve)))
}

/// Where more rows than one in so many changed, building everything is as fast.
const CHANGED_MAX: usize = 4;

fn decode(row: &[u8], components: &mut [f32]) {
    for (component, bytes) in components.iter_mut().zip(row.as_chunks().0) {
        *component = f32::from_le_bytes(*bytes);
    }
}

fn hash(row: &[u8]) -> [u8; 16] {
    *blake3::hash(row).as_bytes().first_chunk().unwrap_or(&[0; 16])
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

fn number(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}

/// The rank of every chunk in the order of document keys and ordinals, which no history changes.
fn key_ranks(snapshot: &Snapshot, chunks: &[ChunkId]) -> Result<Vec<u32>, Fault> {
    let mut order = Vec::with_capacity(chunks.len());
    for (row, id) in chunks.iter().enumerate() {
        let chunk = snapshot.chunk(*id)?;
        order.push((Key::of_document(chunk.document()?.key()?), chunk.ordinal(), row));
    }
    order.par_sort_unstable();
    let mut ranks = vec![0; chunks.len()];
    for (rank, (_, _, row)) in (0..).zip(order) {
        ranks[row] = rank;
    }
    Ok(ranks)
}
