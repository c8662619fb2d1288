//! Similarity edges of one vector space, a kind of pairs after the other.

use crate::distance::pair_dots;
use crate::distance::rows::Rows;
use crate::error::{CommitError, Damage};
use crate::index::control::Control;
use crate::index::edges::{
    self, Building, Built, EdgeMemory, EdgeReport, EdgeRules, EdgeSet, EdgeShare, Former, Identity, Last, Memory, Part,
    Population, Pruning, Reserve, Similarities, Stopped, Unfinished,
};
use crate::project::mentions::Mentioned;
use crate::project::{Unmade, check, chunks_end};
use crate::projection::{EdgeLists, Edges, EdgesData, EdgesReserve};
use crate::snapshot::Snapshot;
use hedgerow_format::edges::PairKind;
use hedgerow_format::projection::{EdgeReportRow, EdgeReserveRow, EdgeRow, EdgeSpare};
use hedgerow_format::{ChunkId, Key, TextRef};
use rayon::prelude::*;
use roaring::RoaringBitmap;
use std::collections::HashMap;

/// The edges of a space that are to be made.
pub(super) struct Task<'t> {
    pub snapshot: &'t Snapshot,
    pub space: &'t str,
    pub rules: &'t EdgeRules,
    /// Whether edges that are there may be followed.
    pub follow: bool,
    /// Where what is not finished is kept.
    pub unfinished: &'t dyn Unfinished,
    /// What chunks mention, where the rules are about it.
    pub mentioned: Option<&'t Mentioned>,
    /// What may be in memory.
    pub memory: Memory<'t>,
    pub control: &'t dyn Control,
}

/// The edges of a kind, and where pairs were compared how similar they are and what was in memory.
pub(super) type Made = (EdgesData, Option<(Similarities, EdgeMemory)>);

impl<'t> Task<'t> {
    /// The edges of each kind of pairs that the space has, and where these were compared what is told of it.
    pub(super) fn build(&self) -> Result<Vec<Made>, CommitError> {
        check(self.space, self.rules)?;
        let all = || {
            let chunks = Chunks::in_space(self.snapshot, self.space)?;
            let kinds: Vec<PairKind> = chunks.kinds().collect();
            let mut made: Vec<Made> = Vec::new();
            for kind in &kinds {
                let taken = made.iter().map(|(data, _)| bytes_of(data)).sum();
                let task = Task { memory: self.memory.less(taken).less(self.mentioned_bytes()), ..*self };
                // What is noted for the next kind is needed no more.
                let last = Last(self.unfinished);
                let is_last = made.len() + 1 == kinds.len() && self.rules.signals.is_empty();
                let task = if is_last { Task { unfinished: &last, ..task } } else { task };
                made.push(task.of_kind(*kind, &chunks)?);
            }
            Ok(made)
        };
        all().map_err(|fault: Unmade| self.told(fault))
    }

    /// Compares a share of the pairs: of every so many blocks one. Where there are signals, of the first pass that was not done
    /// before; nothing is told where all were.
    pub(super) fn tiles(&self, share: EdgeShare) -> Result<Vec<Part>, CommitError> {
        check(self.space, self.rules)?;
        let all = || {
            let chunks = Chunks::in_space(self.snapshot, self.space)?;
            let mut parts = Vec::new();
            for kind in chunks.kinds() {
                let taken = parts.iter().map(Part::bytes).sum();
                let task = Task { memory: self.memory.less(taken).less(self.mentioned_bytes()), ..*self };
                if self.rules.signals.is_empty() {
                    parts.push(task.tiles_of(kind, &chunks, share)?);
                } else {
                    parts.extend(task.composed_share(kind, &chunks, share)?);
                }
            }
            Ok(parts)
        };
        all().map_err(|fault: Unmade| self.told(fault))
    }

    fn tiles_of(&self, kind: PairKind, chunks: &Chunks, share: EdgeShare) -> Result<Part, Unmade> {
        let Gathered { vectors, ranks, pruning, identity, .. } = self.gather(kind, chunks)?;
        let building = Building::of_share(&vectors.rows, &ranks, pruning, &identity, self.memory)?;
        let mut work = building.begin().map_err(Stopped::from)?;
        building.run(&mut work, |block| share.has(block), self.unfinished, self.control)?;
        Ok(work.part)
    }

    fn mentioned_bytes(&self) -> u64 {
        self.mentioned.map_or(0, |mentioned| mentioned.bytes(self.rules.shared))
    }

    fn told(&self, fault: Unmade) -> CommitError {
        fault.of(self.space, self.memory.bytes)
    }

    /// The vectors that occur in pairs of a kind, and how these are pruned.
    fn gather(&self, kind: PairKind, chunks: &Chunks) -> Result<Gathered<'t>, Unmade> {
        let Self { snapshot, space, rules, .. } = *self;
        let vectors = Vectors::of(snapshot, space, |chunk| chunks.occurs(kind, chunk))?;
        if self.memory.bytes.is_some() {
            // All of them were read for their hashes.
            self.memory.outside.let_go();
        }
        let tables = vectors.chunks.iter().filter(|chunk| chunks.tables.contains(chunk.0)).count();
        let pairs = if kind == PairKind::TableDocument { Population::Across(tables) } else { Population::All };
        let pruning = rules.pruning(kind, pairs);
        let ranks = key_ranks(snapshot, &vectors.chunks, |chunk| {
            kind == PairKind::TableDocument && !chunks.tables.contains(chunk.0)
        })?;
        let mut identity = blake3::Hasher::new();
        vectors.hashes.iter().zip(&ranks).for_each(|(vector, rank)| {
            identity.update(vector).update(&rank.to_le_bytes());
        });
        Ok(Gathered { vectors, ranks, pruning, tables, identity: *identity.finalize().as_bytes() })
    }

    /// Prunes all pairs of a kind; where there are edges with the same rules that can be followed, only those of what changed
    /// since.
    fn of_kind(&self, kind: PairKind, chunks: &Chunks) -> Result<Made, Unmade> {
        if !self.rules.signals.is_empty() {
            return Ok((self.composed(kind, chunks)?, None));
        }
        if self.rules.indexed {
            return Ok((self.indexed(kind, chunks)?, None));
        }
        let Self { snapshot, space, rules, control, .. } = *self;
        let Gathered { vectors, ranks, pruning, tables, identity } = self.gather(kind, chunks)?;
        let former = snapshot.edges().find(|edges| edges.space() == space && edges.kind() == kind);
        let former = former.filter(|former| self.follow && EdgeRules::of(&former.entry().settings) == *rules);
        let follow = Follow { snapshot, chunks, pruning, ranks: &ranks, memory: self.memory, control };
        let followed = former.map_or(Ok(None), |former| vectors.followed(former, &follow))?;
        let (set, reserve, told) = if let Some((set, reserve)) = followed {
            (set, reserve, None)
        } else {
            let Built { edges, reserve, similarities, memory } =
                edges::build(&vectors.rows, &ranks, pruning, &identity, self.unfinished, self.memory, control)?;
            (edges, reserve, Some((similarities, memory)))
        };
        let set = match rules.shared.zip(self.mentioned) {
            Some((shared, mentioned)) => {
                let mentions = (&mentioned.rare(&vectors.chunks, shared), shared.top_m);
                let similarity = |row, other| vectors.similarity(row, other);
                set.with_shared(&edges::shared(&similarity, &ranks, pruning.pairs, mentions, control)?)
            }
            None => set,
        };
        let reserve = vectors.recorded(reserve);
        let (report, origins) = (report(&set.report, kind, tables, pruning), set.origins);
        let edges = vectors.by_chunk((set.offsets, set.targets, set.weights));
        let data = EdgesData {
            space: space.to_owned(),
            settings: rules.settings(),
            kind,
            report,
            edges,
            origins,
            thresholds: Vec::new(),
            reserve,
            chunks_end: chunks_end(snapshot),
        };
        Ok((data, told))
    }
}

/// What the edges of a kind are made of.
struct Gathered<'g> {
    vectors: Vectors<'g>,
    ranks: Vec<u32>,
    pruning: Pruning,
    tables: usize,
    /// What tells these rows, and the order of their keys, from others.
    identity: Identity,
}

pub(super) fn report(report: &EdgeReport, kind: PairKind, tables: usize, pruning: Pruning) -> EdgeReportRow {
    EdgeReportRow {
        space: TextRef::default(),
        percentile_thousandths: pruning.percentile,
        top_m: pruning.top_m,
        rows: u64::from(report.rows),
        pairs: report.pairs,
        passed: report.passed,
        kept: report.kept,
        threshold: report.threshold.unwrap_or_default(),
        degree_max: u32::try_from(report.degree_max).unwrap_or(u32::MAX),
        components: report.components,
        kind: kind.number(),
        tables: tables as u64,
        shared: report.shared,
        cap: 0,
        nearest: 0,
        least: 0,
        shared_chunks: 0,
        shared_top_m: 0,
        weighted: 0,
        nearest_by: 0,
    }
}

/// The chunks that have a vector of a space.
pub(super) struct Chunks {
    all: Vec<ChunkId>,
    /// Those that are tables.
    tables: RoaringBitmap,
}

impl Chunks {
    fn in_space(snapshot: &Snapshot, space: &str) -> Result<Self, Damage> {
        let mut chunks = Vec::new();
        snapshot.for_each_vector(Some(space), |_, chunk, _| chunks.push(chunk))?;
        let mut tables = RoaringBitmap::new();
        for chunk in &chunks {
            if snapshot.chunk(*chunk)?.is_table() {
                tables.insert(chunk.0);
            }
        }
        Ok(Self { all: chunks, tables })
    }

    /// The kinds that have pairs; that of pairs without a table always, so that the settings are kept while there is no pair.
    fn kinds(&self) -> impl Iterator<Item = PairKind> {
        let (all, tables) = (self.all.len() as u64, self.tables.len());
        let has_pairs = move |kind: &PairKind| *kind == PairKind::DocumentDocument || kind.pairs(all, tables) > 0;
        PairKind::ALL.into_iter().filter(has_pairs)
    }

    /// Those that occur in pairs of a kind.
    pub(super) fn of(&self, kind: PairKind) -> Vec<ChunkId> {
        self.all.iter().copied().filter(|chunk| self.occurs(kind, *chunk)).collect()
    }

    pub(super) fn is_table(&self, chunk: ChunkId) -> bool {
        self.tables.contains(chunk.0)
    }

    /// Whether a chunk occurs in pairs of a kind.
    fn occurs(&self, kind: PairKind, chunk: ChunkId) -> bool {
        match kind {
            PairKind::DocumentDocument => !self.tables.contains(chunk.0),
            PairKind::TableTable => self.tables.contains(chunk.0),
            PairKind::TableDocument => true,
        }
    }
}

/// What following edges needs beside the vectors.
struct Follow<'f> {
    snapshot: &'f Snapshot,
    chunks: &'f Chunks,
    pruning: Pruning,
    ranks: &'f [u32],
    memory: Memory<'f>,
    control: &'f dyn Control,
}

/// The vectors of some chunks of a space, ascending by chunk, where the files have them.
struct Vectors<'v> {
    chunks: Vec<ChunkId>,
    rows: Rows<'v>,
    /// What tells a vector from another.
    hashes: Vec<[u8; 16]>,
}

impl<'v> Vectors<'v> {
    fn of(snapshot: &'v Snapshot, space: &str, occurs: impl Fn(ChunkId) -> bool) -> Result<Self, Unmade> {
        let (mut rows, mut dimensions) = (Vec::new(), 0);
        snapshot.for_each_vector(Some(space), |view, chunk, row| {
            if occurs(chunk) {
                dimensions = view.dimensions;
                rows.push((chunk, row));
            }
        })?;
        rows.sort_by_key(|row| row.0);
        let hashes = rows.par_iter().map(|(_, row)| hash(row)).collect();
        let chunks = rows.iter().map(|row| row.0).collect();
        Ok(Self { chunks, rows: Rows::of_bytes(rows.into_iter().map(|row| row.1), dimensions), hashes })
    }

    fn similarity(&self, row: u32, other: u32) -> f32 {
        let mut similarities = Vec::new();
        pair_dots(&self.rows, &[[row, other]], &mut similarities);
        similarities.first().copied().unwrap_or_default()
    }

    fn row_of(&self, chunk: ChunkId) -> Option<usize> {
        self.chunks.binary_search(&chunk).ok()
    }

    /// The edges that follow from former ones and what changed; none where only building everything tells.
    fn followed(&self, former: &Edges, follow: &Follow<'v>) -> Result<Option<(EdgeSet, Reserve)>, Unmade> {
        let kept = former.reserve()?;
        let tables = former.report()?.tables;
        // Where pairs join two sides, tables come first.
        let across = former.kind() == PairKind::TableDocument;
        let was_first = |row: &EdgeRow| across && u64::from(row.rank) < tables;
        let is_first = |row: &EdgeRow| across && follow.chunks.tables.contains(row.chunk);
        let same = |row: &EdgeRow| {
            let at = self.row_of(ChunkId(row.chunk)).filter(|at| self.hashes[*at] == row.vector);
            at.filter(|_| was_first(row) == is_first(row))
        };
        let rows: Vec<Option<u32>> = kept.rows.iter().map(|row| same(row).map(number)).collect();
        let gone: Vec<&EdgeRow> =
            kept.rows.iter().zip(&rows).filter(|(_, now)| now.is_none()).map(|(row, _)| row).collect();
        let came = self.chunks.len().saturating_sub(rows.len() - gone.len());
        if rows.is_empty() || gone.len() + came > self.chunks.len() / CHANGED_MAX {
            return Ok(None);
        }
        let gone_firsts: Vec<bool> = gone.iter().map(|row| was_first(row)).collect();
        let Some(gone) = self.gone(follow.snapshot, former.space(), &gone)? else { return Ok(None) };
        let Some((set, reserve)) = as_built(former, &kept)? else { return Ok(None) };
        let former = Former { edges: &set, reserve: &reserve, rows: &rows, gone_firsts: &gone_firsts };
        let Follow { pruning, ranks, memory, control, .. } = *follow;
        let vectors = self.rows.and(gone);
        Ok(edges::update(&vectors, ranks, pruning, &former, memory, control)?)
    }

    /// The vectors of chunks that are gone or have others now, while files still hold them.
    fn gone(&self, snapshot: &'v Snapshot, space: &str, rows: &[&EdgeRow]) -> Result<Option<Vec<&'v [u8]>>, Unmade> {
        let mut wanted: HashMap<(u32, [u8; 16]), usize> =
            rows.iter().enumerate().map(|(at, row)| ((row.chunk, row.vector), at)).collect();
        let chunks: std::collections::HashSet<u32> = rows.iter().map(|row| row.chunk).collect();
        let mut found: Vec<&[u8]> = vec![&[]; rows.len()];
        snapshot.for_each_vector_held(space, |chunk, row| {
            if !chunks.contains(&chunk.0) || row.len() != self.rows.dimensions() * 4 {
                return;
            }
            if let Some(at) = wanted.remove(&(chunk.0, hash(row))) {
                found[at] = row;
            }
        })?;
        Ok(wanted.is_empty().then_some(found))
    }

    /// Offsets, targets and weights of the rows by chunk.
    fn by_chunk(&self, (offsets, mut targets, weights): (Vec<u64>, Vec<u32>, Vec<f32>)) -> EdgeLists {
        targets.par_iter_mut().for_each(|target| *target = self.chunks[*target as usize].0);
        EdgeLists { chunks: self.chunks.iter().map(|chunk| chunk.0).collect(), offsets, targets, weights }
    }

    fn recorded(&self, reserve: Reserve) -> EdgesReserve {
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
            counts: reserve.counts,
            start: (!rows.is_empty()).then_some(EdgeReserveRow { below: reserve.below, low: reserve.low, reserved: 0 }),
            rows,
        }
    }
}

/// Bytes of memory that edges take until they are written.
fn bytes_of(data: &EdgesData) -> u64 {
    let of_chunks = data.edges.chunks.len() * (4 + 8) + size_of_val(data.reserve.rows.as_slice());
    (of_chunks + data.edges.targets.len() * 9 + size_of_val(data.reserve.spares.as_slice())) as u64
}

/// Former edges and their reserve by the rows that they were built from; none where they speak of other chunks.
fn as_built(former: &Edges, kept: &EdgesReserve) -> Result<Option<(EdgeSet, Reserve)>, Unmade> {
    let mut row_of = vec![u32::MAX; kept.rows.iter().map(|row| row.chunk as usize + 1).max().unwrap_or(0)];
    for (at, row) in (0..).zip(&kept.rows) {
        row_of[row.chunk as usize] = at;
    }
    let start = kept.start.unwrap_or(EdgeReserveRow { below: 0, low: 0, reserved: 0 });
    let mut reserve = Reserve {
        low: start.low,
        below: start.below,
        counts: kept.counts.clone(),
        offsets: vec![0],
        ..Reserve::default()
    };
    let known = |partner: ChunkId| row_of.get(partner.0 as usize).copied().filter(|row| *row != u32::MAX);
    let of_row = |row: &EdgeRow| -> Result<Option<Vec<(u32, f32)>>, Unmade> {
        let neighbours = former.neighbours(ChunkId(row.chunk))?;
        Ok(neighbours.map(|(partner, weight)| Some((known(partner)?, weight))).collect())
    };
    let lists: Vec<Option<Vec<(u32, f32)>>> = kept.rows.par_iter().map(of_row).collect::<Result<_, Unmade>>()?;
    let mut set = EdgeSet { offsets: vec![0], ..EdgeSet::default() };
    for (row, list) in kept.rows.iter().zip(lists) {
        let Some(list) = list else { return Ok(None) };
        set.targets.extend(list.iter().map(|edge| edge.0));
        set.weights.extend(list.iter().map(|edge| edge.1));
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

fn hash(row: &[u8]) -> [u8; 16] {
    *blake3::hash(row).as_bytes().first_chunk().unwrap_or(&[0; 16])
}

fn number(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}

/// The rank of every chunk in the order of document keys and ordinals, which no history changes; those that are `last` come
/// after all others.
pub(super) fn key_ranks(
    snapshot: &Snapshot,
    chunks: &[ChunkId],
    last: impl Fn(ChunkId) -> bool + Sync,
) -> Result<Vec<u32>, Unmade> {
    let keyed = chunks.par_iter().enumerate().map(|(row, id)| -> Result<_, Damage> {
        let chunk = snapshot.chunk(*id)?;
        Ok((last(*id), Key::of_document(chunk.document()?.key()?), chunk.ordinal(), row))
    });
    let mut order = keyed.collect::<Result<Vec<_>, _>>()?;
    order.par_sort_unstable();
    let mut ranks = vec![0; chunks.len()];
    for (rank, (_, _, _, row)) in (0..).zip(order) {
        ranks[row] = rank;
    }
    Ok(ranks)
}
