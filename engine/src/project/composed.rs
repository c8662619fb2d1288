//! Edges of one kind of pairs by several signals.

use crate::index::control::Cancelled;
use crate::index::edges::composite::{Combination, Composition, Course, Voice};
use crate::index::edges::{self, EdgeSet, EdgeShare, Part, Population, Pruning, Signal};
use crate::index::signals::Signal as Similar;
use crate::project::edges::{Chunks, Task, key_ranks, report};
use crate::project::{Unmade, chunks_end};
use crate::projection::{EdgeLists, EdgesData, EdgesReserve};
use crate::snapshot::Signals;
use hedgerow_format::ChunkId;
use hedgerow_format::edges::PairKind;

impl Task<'_> {
    /// Prunes all pairs of a kind by those of the signals that take part in it. Nothing is remembered by which these edges could
    /// follow changes.
    pub(super) fn composed(&self, kind: PairKind, chunks: &Chunks) -> Result<EdgesData, Unmade> {
        let rules = self.rules;
        let sources = self.sources(kind, chunks)?;
        let Sources { placed, tables, pruning, .. } = &sources;
        let voices = sources.voices();
        let composition = self.composition(&voices);
        let composite = composition.edges(placed.len(), *pruning, self.course(None))?;
        let mut found = composite.thresholds.into_iter();
        let threshold =
            |signal: &Signal| if signal.what.takes_part(kind) { found.next().unwrap_or_default() } else { 0.0 };
        let thresholds = rules.signals.iter().map(threshold).collect();
        let weight = |row, other| composition.weight(row, other);
        let data = self.placed_edges((kind, *tables, *pruning), placed, composite.edges, &weight)?;
        Ok(EdgesData { thresholds, ..data })
    }

    /// What is written of edges between chunks in the order of their keys, with those for shared entities: nothing by which they
    /// could follow changes.
    pub(super) fn placed_edges(
        &self,
        (kind, tables, pruning): (PairKind, usize, Pruning),
        placed: &[ChunkId],
        set: EdgeSet,
        weight: &(dyn Fn(u32, u32) -> f32 + Sync),
    ) -> Result<EdgesData, Unmade> {
        let Self { snapshot, space, rules, control, .. } = *self;
        let set = match rules.shared.zip(self.mentioned) {
            Some((shared, mentioned)) => {
                let places: Vec<u32> = (0..u32::MAX).take(placed.len()).collect();
                let mentions = (&mentioned.rare(placed, shared), shared.top_m);
                set.with_shared(&edges::shared(weight, &places, pruning.pairs, mentions, control)?)
            }
            None => set,
        };
        let report = report(&set.report, kind, tables, pruning);
        let (edges, origins) = by_chunk(&set, placed);
        Ok(EdgesData {
            space: space.to_owned(),
            settings: rules.settings(),
            kind,
            report,
            edges,
            origins,
            thresholds: Vec::new(),
            reserve: EdgesReserve::default(),
            chunks_end: chunks_end(snapshot),
        })
    }

    /// What a share of the first pass over the pairs of a kind that was not done before saw; nothing where all were done.
    pub(super) fn composed_share(
        &self,
        kind: PairKind,
        chunks: &Chunks,
        share: EdgeShare,
    ) -> Result<Vec<Part>, Unmade> {
        let sources = self.sources(kind, chunks)?;
        let voices = sources.voices();
        let rows = sources.placed.len();
        Ok(self.composition(&voices).share(rows, sources.pruning, self.course(Some(share)))?)
    }

    fn composition<'v>(&self, voices: &'v [Voice<'v>]) -> Composition<'v> {
        Composition::new(voices, if self.rules.weighted { Combination::Weighted } else { Combination::Agree })
    }

    fn course(&self, share: Option<EdgeShare>) -> Course<'_> {
        let Self { unfinished, memory, control, .. } = *self;
        Course { unfinished, share, memory, control }
    }

    /// Reads what the signals are about that take part in a kind.
    fn sources(&self, kind: PairKind, chunks: &Chunks) -> Result<Sources<'_>, Unmade> {
        let Self { snapshot, space, rules, control, .. } = *self;
        let (placed, tables) = self.placed(kind, chunks)?;
        let pairs = if kind == PairKind::TableDocument { Population::Across(tables) } else { Population::All };
        let mentions =
            |chunk| Ok(self.mentioned.map_or_else(Vec::new, |mentioned| mentioned.of(chunk).collect::<Vec<u32>>()));
        let step = || if control.cancelled() { Err(Unmade::from(Cancelled)) } else { Ok(()) };
        let source = Signals { snapshot, space, mentions: &mentions, step: &step };
        let rules_of: Vec<&Signal> = rules.signals.iter().filter(|signal| signal.what.takes_part(kind)).collect();
        let signals = rules_of.iter().map(|signal| source.of(&signal.what, &placed));
        let signals = signals.collect::<Result<Vec<_>, Unmade>>()?;
        Ok(Sources { placed, tables, pruning: rules.pruning(kind, pairs), signals, rules_of })
    }

    /// The chunks of a kind in the order of their keys, tables first where they are joined with others; and how many are tables.
    pub(super) fn placed(&self, kind: PairKind, chunks: &Chunks) -> Result<(Vec<ChunkId>, usize), Unmade> {
        let mut placed = chunks.of(kind);
        let tables = placed.iter().filter(|chunk| chunks.is_table(**chunk)).count();
        let ranks =
            key_ranks(self.snapshot, &placed, |chunk| kind == PairKind::TableDocument && !chunks.is_table(chunk))?;
        let mut ranked: Vec<(u32, ChunkId)> = ranks.into_iter().zip(placed).collect();
        ranked.sort_unstable();
        placed = ranked.into_iter().map(|(_, chunk)| chunk).collect();
        Ok((placed, tables))
    }
}

/// What edges of a kind are made of.
struct Sources<'s> {
    /// The chunks of the rows.
    placed: Vec<ChunkId>,
    /// How many of them are tables.
    tables: usize,
    pruning: Pruning,
    signals: Vec<Box<dyn Similar>>,
    /// What the rules say of each.
    rules_of: Vec<&'s Signal>,
}

impl Sources<'_> {
    fn voices(&self) -> Vec<Voice<'_>> {
        let mut voices = Vec::with_capacity(self.signals.len());
        for (signal, rule) in self.signals.iter().zip(&self.rules_of) {
            let (percentile, weight) = (rule.percentile, f64::from(rule.weight));
            voices.push(Voice { signal: signal.as_ref(), percentile, weight });
        }
        voices
    }
}

/// Both directions of every edge by the ids of the chunks, sorted, and which rules made each.
fn by_chunk(set: &EdgeSet, placed: &[ChunkId]) -> (EdgeLists, Vec<u8>) {
    let mut edges = Vec::with_capacity(set.targets.len());
    let mut targets = set.targets.iter().zip(&set.weights).enumerate();
    for (chunk, bounds) in placed.iter().zip(set.offsets.windows(2)) {
        for (at, (target, weight)) in targets.by_ref().take(usize::try_from(bounds[1] - bounds[0]).unwrap_or(0)) {
            edges.push(((chunk.0, placed[*target as usize].0, *weight), set.origins.get(at).copied()));
        }
    }
    edges.sort_unstable_by_key(|((chunk, target, _), _)| (*chunk, *target));
    let origins = edges.iter().filter_map(|(_, origin)| *origin).collect();
    let mut chunks: Vec<u32> = placed.iter().map(|chunk| chunk.0).collect();
    chunks.sort_unstable();
    let mut lists = EdgeLists { chunks, offsets: vec![0], ..EdgeLists::default() };
    let mut rest = edges.iter().map(|(edge, _)| edge).peekable();
    for chunk in &lists.chunks {
        while let Some((_, target, weight)) = rest.next_if(|edge| edge.0 == *chunk) {
            lists.targets.push(*target);
            lists.weights.push(*weight);
        }
        lists.offsets.push(lists.targets.len() as u64);
    }
    (lists, origins)
}
