//! Passages beside the best ones: the chunks next to them in their documents, or those that similarity edges join to them.

use crate::error::QueryError;
use crate::query::ask::Strategy;
use crate::query::ask::plan::Plan;
use crate::query::{Direction, EdgeKind, Node, rank};
use hedgerow_format::ChunkId;
use std::collections::{BTreeMap, BTreeSet};

/// How a chunk came beside a seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    pub seed: ChunkId,
    /// `next to` or `similar to`.
    pub by: &'static str,
    pub weight: f32,
}

impl Plan<'_, '_> {
    /// The k best chunks, what stands beside them, and the next best where that is not enough; in this order.
    pub fn ranked_beside(&mut self) -> Result<Vec<(ChunkId, f32)>, QueryError> {
        let count = self.count();
        let flat = rank::top(self.snapshot, &self.heads()?, self.allowed.as_ref(), count)?;
        self.seeds = flat.iter().take(self.question.seeds).copied().collect();
        for (seed, _) in self.seeds.clone() {
            self.trace.seeds.push(self.snapshot.chunk(seed)?.key()?);
        }
        let beside = match self.question.strategy {
            Strategy::Sage => self.similar()?,
            _ => self.adjoining()?,
        };
        let mut ranked = self.seeds.clone();
        ranked.extend(beside.into_iter().take(self.question.neighbours));
        let mut chosen: BTreeSet<ChunkId> = ranked.iter().map(|(chunk, _)| *chunk).collect();
        ranked.extend(flat.into_iter().filter(|(chunk, _)| chosen.insert(*chunk)));
        ranked.truncate(count);
        Ok(ranked)
    }

    /// The chunks before and behind each seed, in the order of the seeds.
    fn adjoining(&mut self) -> Result<Vec<(ChunkId, f32)>, QueryError> {
        let mut found = Vec::new();
        for (seed, _) in self.seeds.clone() {
            for edge in self.snapshot.edges_of(Node::Chunk(seed), EdgeKind::Next, Direction::Both)? {
                let Node::Chunk(chunk) = edge.target else { continue };
                if self.is_new(chunk) {
                    self.beside.insert(chunk, Beside { seed, by: "next to", weight: 1.0 });
                    found.push((chunk, self.flat(chunk)));
                }
            }
        }
        Ok(found)
    }

    /// The chunks that similarity edges join to the seeds, ranked among themselves.
    fn similar(&mut self) -> Result<Vec<(ChunkId, f32)>, QueryError> {
        let mut joined: BTreeMap<ChunkId, usize> = BTreeMap::new();
        for (seed, _) in self.seeds.clone() {
            // In two vector spaces there may be two edges: one seed all the same.
            let mut targets = BTreeMap::new();
            for edge in self.snapshot.edges_of(Node::Chunk(seed), EdgeKind::Similar, Direction::Both)? {
                let Node::Chunk(chunk) = edge.target else { continue };
                self.trace.links_read += 1;
                let weight: &mut f32 = targets.entry(chunk).or_insert(edge.weight);
                *weight = weight.max(edge.weight);
            }
            for (chunk, weight) in targets {
                let known = self.beside.get(&chunk).map(|beside| beside.weight);
                if self.is_new(chunk) || known.is_some() {
                    *joined.entry(chunk).or_default() += 1;
                    if known.is_none_or(|known| weight > known) {
                        self.beside.insert(chunk, Beside { seed, by: "similar to", weight });
                    }
                }
            }
        }
        let sage = self.question.sage;
        joined.retain(|_, seeds| *seeds >= sage.seeds_min);
        self.snapshot.guard.hold::<[(ChunkId, f32); 4]>(joined.len())?;
        let most = |of: &dyn Fn(ChunkId) -> f32| joined.keys().map(|chunk| of(*chunk)).fold(0.0, f32::max);
        let (terms, vectors) = (most(&|chunk| self.terms.get(chunk)), most(&|chunk| self.cosines.get(chunk)));
        let share = |score: f32, most: f32| if most > 0.0 { score / most } else { 0.0 };
        let score = |chunk| {
            sage.terms * share(self.terms.get(chunk), terms) + sage.vector * share(self.cosines.get(chunk), vectors)
        };
        let scored: Vec<(ChunkId, f32)> = joined.keys().map(|chunk| (*chunk, score(*chunk))).collect();
        let mut ranked = rank::best(self.snapshot, scored, self.question.neighbours)?;
        let best = ranked.first().map_or(0.0, |(_, score)| *score);
        ranked.retain(|(_, score)| *score >= sage.cutoff * best);
        Ok(ranked)
    }

    /// Whether a chunk may be chosen and is not yet.
    fn is_new(&self, chunk: ChunkId) -> bool {
        let is_seed = self.seeds.iter().any(|(seed, _)| *seed == chunk);
        !is_seed && !self.beside.contains_key(&chunk) && self.may_choose(chunk)
    }
}
