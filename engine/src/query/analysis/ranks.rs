//! `PageRank` of entities, and of chunks beside them: anywhere, or from some nodes.

use crate::error::QueryError;
use crate::index::graph::pagerank::{PageRank, pagerank};
use crate::index::graph::push::{Push, PushScratch, push, push_over};
use crate::index::graph::walkable::{Copied, Walkable};
use crate::index::graph::{Adjacency, Direction, Graph, top};
use crate::query::Node;
use crate::query::analysis::{Following, LINE_BYTES, Relating, slot};
use crate::snapshot::Bounded;
use hedgerow_format::{ChunkId, EntitySlot};
use serde::Serialize;

/// How ranks are computed.
#[derive(Clone, Debug, PartialEq)]
pub struct RankingOptions {
    /// Which relations a walk follows.
    pub following: Following,
    /// Whether a walk also goes from chunks to the entities that they mention or define, and back.
    pub chunks: bool,
    /// Which nodes are returned.
    pub kind: RankedKind,
    /// Share of steps that follow an edge; the others start anew.
    pub damping: f64,
    /// Whether a step chooses its edge by weight.
    pub weighted: bool,
    /// What may stay at a node for each of its edges without being pushed on, for ranks from some nodes: the work is bounded by
    /// it and not by the graph. None for the exact ranks.
    pub residual_max: Option<f64>,
    /// Nodes that are returned.
    pub limit: usize,
}

/// Which nodes are returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RankedKind {
    /// All.
    #[default]
    All,
    /// Entities.
    Entities,
    /// Chunks.
    Chunks,
}

impl Default for RankingOptions {
    fn default() -> Self {
        Self {
            following: Following::default(),
            chunks: false,
            kind: RankedKind::All,
            damping: 0.85,
            weighted: false,
            residual_max: None,
            limit: 20,
        }
    }
}

/// The nodes with the highest ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ranking {
    /// How many nodes a walk can be at.
    pub nodes: u64,
    /// Highest first.
    pub ranks: Vec<Ranked>,
    /// By how much all ranks together may differ from the exact ones.
    pub residual: f64,
    /// Iterations over all edges; none where ranks were pushed.
    pub iterations: Option<u32>,
    /// What the answer lacks.
    pub incomplete: Vec<String>,
}

/// A node with its rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranked {
    /// `chunk:KEY#N` or `entity:NAME`.
    pub key: String,
    /// Its share of a walk; those of all nodes sum to 1.
    pub score: f64,
}

/// Nodes of a graph with their shares.
type Shares = Vec<(u32, f64)>;

impl Bounded<'_> {
    /// See [`Snapshot::pagerank`](crate::Snapshot::pagerank).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn pagerank(&self, seeds: &[Node], options: &RankingOptions) -> Result<Ranking, QueryError> {
        self.guard.scope(|| {
            let relating = self.relating(&options.following.predicates)?;
            let mut ranking = Ranking { incomplete: self.incomplete(), ..Ranking::default() };
            let joined = self.joined(&relating, options)?;
            ranking.nodes = joined.nodes() as u64;
            let shares = self.seeds(&relating, &joined, seeds)?;
            let pushed = options.residual_max.filter(|_| !seeds.is_empty());
            let best = if let Some(residual_max) = pushed {
                self.pushed(&joined, &shares, (residual_max, options), &mut ranking)?
            } else {
                let reset = (!seeds.is_empty()).then_some(shares.as_slice());
                self.exact(&joined, reset, options, &mut ranking)?
            };
            for (node, score) in best {
                let key = match joined.chunk(node) {
                    Some(chunk) => self.key_of(Node::Chunk(chunk))?,
                    None => format!("entity:{}", relating.name(node, &self.guard)?),
                };
                self.guard.hold_bytes(key.len() as u64 + LINE_BYTES)?;
                ranking.ranks.push(Ranked { key, score });
            }
            Ok(ranking)
        })
    }

    /// The graph that a walk goes over.
    fn joined<'r>(&'r self, relating: &'r Relating<'_>, options: &RankingOptions) -> Result<Joined<'r>, QueryError> {
        let mut joined = Joined {
            store: self,
            relations: relating.graph(),
            direction: options.following.direction,
            entities: relating.graph().nodes(),
            chunks: 0,
            sides: Default::default(),
            kind: options.kind,
        };
        if let Some(links) = relating.links.filter(|_| options.chunks) {
            let [[by_chunk, by_entity], [defined, defines]] = links.chunks_and_entities()?;
            // No id is above that of the last chunk, and the numbers of nodes end where those of chunks would be too large.
            joined.chunks = by_chunk.nodes().max(defined.nodes()).min(slot(u32::MAX) - joined.entities);
            joined.sides = [[by_chunk, defined], [by_entity, defines]];
        }
        Ok(joined)
    }

    /// The nodes that seeds stand for, with equal shares for each seed.
    fn seeds(&self, relating: &Relating<'_>, joined: &Joined<'_>, seeds: &[Node]) -> Result<Shares, QueryError> {
        let mut shares = Vec::new();
        for seed in seeds {
            let mut nodes = Vec::new();
            for entity in self.entities_of(&[*seed])? {
                nodes.extend(relating.node(entity)?);
            }
            match seed {
                Node::Chunk(chunk) => nodes.extend(joined.node(*chunk)),
                Node::Document(id) => {
                    nodes.extend(self.document(*id)?.chunks().filter_map(|chunk| joined.node(chunk)));
                }
                Node::Entity(_) | Node::Community(_) => {}
            }
            self.guard.hold::<[(u32, f64); 2]>(nodes.len())?;
            let parts = f64::from(u32::try_from(nodes.len()).unwrap_or(u32::MAX));
            shares.extend(nodes.into_iter().map(|node| (node, 1.0 / parts)));
        }
        Ok(shares)
    }

    /// Ranks by pushing from the seeds.
    fn pushed(
        &self,
        joined: &Joined<'_>,
        seeds: &Shares,
        (residual_max, options): (f64, &RankingOptions),
        ranking: &mut Ranking,
    ) -> Result<Shares, QueryError> {
        let push_options = Push {
            direction: joined.direction,
            damping: options.damping,
            residual_max,
            weighted: options.weighted,
            count: options.limit,
        };
        let (mut scratch, guard) = (PushScratch::default(), &self.guard);
        let found = if joined.chunks == 0 && options.kind == RankedKind::All {
            push(joined.relations, seeds, &push_options, (&mut scratch, guard))?
        } else {
            push_over(joined, seeds, &push_options, (&mut scratch, guard))?
        };
        ranking.residual = found.residual;
        Ok(found.best)
    }

    /// Ranks by iterations over all edges.
    fn exact(
        &self,
        joined: &Joined<'_>,
        reset: Option<&[(u32, f64)]>,
        options: &RankingOptions,
        ranking: &mut Ranking,
    ) -> Result<Shares, QueryError> {
        let damping = if options.damping.is_nan() { 0.0 } else { options.damping.clamp(0.0, 1.0) };
        let mut ranks = PageRank { damping, weighted: options.weighted, reset, ..PageRank::default() };
        let found = if joined.chunks == 0 {
            ranks.direction = joined.direction;
            pagerank(joined.relations, &ranks, &self.guard)?
        } else {
            // Ranks are gathered against the edges, which are copied from both sides.
            let back = Joined { direction: joined.direction.reversed(), ..*joined };
            let copied = [Copied::new(joined, &self.guard)?, Copied::new(&back, &self.guard)?];
            let [out, into] = copied.each_ref().map(Copied::adjacency);
            ranks.direction = Direction::Out;
            pagerank(Graph { out, into }, &ranks, &self.guard)?
        };
        ranking.iterations = Some(found.iterations);
        ranking.residual = if damping < 1.0 { found.change * damping / (1.0 - damping) } else { found.change };
        self.guard.hold::<(u32, f64)>(found.scores.len())?;
        let scores = (0_u32..).zip(found.scores);
        Ok(top(scores.filter(|(node, score)| *score > 0.0 && joined.counts(*node)), options.limit))
    }
}

/// Entities with their relations, then chunks with the entities that they mention or define, each read where it lies.
struct Joined<'r> {
    store: &'r Bounded<'r>,
    relations: Graph<'r>,
    direction: Direction,
    entities: usize,
    chunks: usize,
    /// Mentions and definition links by chunk, and by entity.
    sides: [[Adjacency<'r>; 2]; 2],
    kind: RankedKind,
}

impl Joined<'_> {
    /// The chunk that a node is.
    fn chunk(&self, node: u32) -> Option<ChunkId> {
        let chunk = slot(node).checked_sub(self.entities)?;
        u32::try_from(chunk).ok().map(ChunkId)
    }

    /// The node that a chunk is.
    fn node(&self, chunk: ChunkId) -> Option<u32> {
        if chunk.index() >= self.chunks {
            return None;
        }
        u32::try_from(self.entities.checked_add(chunk.index())?).ok()
    }
}

impl Walkable for Joined<'_> {
    fn nodes(&self) -> usize {
        self.entities + self.chunks
    }

    fn degree(&self, node: u32) -> usize {
        let [by_chunk, by_entity] = &self.sides;
        if let Some(chunk) = self.chunk(node) {
            return by_chunk.iter().map(|side| side.degree(chunk.0)).sum();
        }
        let chunks: usize = by_entity.iter().map(|side| side.degree(node)).sum();
        chunks + self.relations.degree(self.direction, node)
    }

    #[inline]
    fn each(&self, node: u32, mut visit: impl FnMut(u32, f32)) {
        let [by_chunk, by_entity] = &self.sides;
        if let Some(chunk) = self.chunk(node) {
            let entities = by_chunk.iter().flat_map(|side| side.targets(chunk.0));
            entities.filter(|entity| EntitySlot(*entity).index() < self.entities).for_each(|entity| visit(entity, 1.0));
        } else {
            self.relations.edges(self.direction, node).for_each(|(entity, weight)| visit(entity, weight));
            let chunks = by_entity.iter().flat_map(|side| side.targets(node));
            chunks.filter_map(|chunk| self.node(ChunkId(chunk))).for_each(|chunk| visit(chunk, 1.0));
        }
    }

    fn counts(&self, node: u32) -> bool {
        match self.chunk(node) {
            // A projection that is behind knows chunks that are gone.
            Some(chunk) => self.kind != RankedKind::Entities && self.store.is_live(chunk),
            None => self.kind != RankedKind::Chunks,
        }
    }
}
