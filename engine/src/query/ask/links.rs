//! Links out of passages: to what defines or shares an entity, to what is similar or stands next to them; and once more.

use crate::error::QueryError;
use crate::query::ask::Recipe;
use crate::query::ask::entity::{Corpus, Entity, Seed};
use crate::query::ask::plan::Plan;
use crate::query::{Direction, EdgeKind, Node, rank};
use hedgerow_format::{ChunkId, EntitySlot};

/// Passages that are looked at beyond the seeds and those to go on from.
const AGAIN_BEYOND: usize = 10;
/// A link in the map of links, in a list of those that count, and in the trace with its three keys.
const LINK_COPIES: usize = 12;

/// How two passages are linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkKind {
    /// One mentions an entity that the other defines.
    Definition,
    /// Both mention an entity.
    Shared,
    /// A similarity edge joins them.
    Similar,
    /// They follow each other in a document.
    Adjoining,
}

impl LinkKind {
    /// How the target follows from the entity, or from the passage where there is none.
    pub fn step(self) -> &'static str {
        match self {
            Self::Definition => "defined by",
            Self::Shared => "mentioned in",
            Self::Similar => "similar to",
            Self::Adjoining => "next to",
        }
    }
}

/// The strongest link to a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub seed: ChunkId,
    /// None where no entity joins them.
    pub entity: Option<EntitySlot>,
    pub kind: LinkKind,
    /// The entity's idf, or the weight of the edge.
    pub idf: f32,
    pub value: f32,
    /// Score of the best seed among all that link to the chunk.
    pub best: f32,
}

impl Plan<'_, '_> {
    /// Every link out of a seed by an entity.
    pub fn follow_all(&mut self, entity: &Entity, seed: &Seed) -> Result<(), QueryError> {
        let Entity { slot, idf, mentions, definitions, .. } = entity;
        let Recipe { gain, definition_gain, undefined, undefined_max, .. } = self.question.recipe;
        let value = seed.head * idf;
        let kind = LinkKind::Definition;
        let link = Link { seed: seed.chunk, entity: Some(*slot), kind, idf: *idf, value, best: seed.head };
        for (target, share) in definitions {
            let more = 1.0 + definition_gain * self.coverage.gain(*target, seed.chunk);
            self.follow(Link { value: value * seed.need * share * more, ..link }, *target)?;
        }
        #[expect(clippy::cast_precision_loss, reason = "a few chunks")]
        let instead = match mentions.len() {
            2.. if definitions.is_empty() && mentions.len() <= undefined_max => {
                seed.need * undefined / (mentions.len() - 1) as f32
            }
            _ => 0.0,
        };
        for target in mentions {
            let value = value * instead.max(gain * self.coverage.gain(*target, seed.chunk));
            self.follow(Link { kind: LinkKind::Shared, value, ..link }, *target)?;
        }
        Ok(())
    }

    /// Keeps a link that is the strongest to its target.
    fn follow(&mut self, link: Link, target: ChunkId) -> Result<(), QueryError> {
        self.trace.links_read += 1;
        if link.value <= 0.0 || target == link.seed || !self.may_choose(target) {
            return Ok(());
        }
        if !self.linked.contains_key(&target) {
            self.snapshot.guard.hold::<[(ChunkId, Link); LINK_COPIES]>(1)?;
        }
        let known = self.linked.entry(target).or_insert(link);
        let best = known.best.max(link.best);
        if link.value > known.value {
            *known = link;
        }
        known.best = best;
        Ok(())
    }

    /// Similarity edges and neighbours of a seed, as far as their targets add to the question and the seed needs that.
    pub fn follow_near(&mut self, seed: &Seed) -> Result<(), QueryError> {
        let Recipe { gain, similar, similar_min, similar_max, adjoining, .. } = self.question.recipe;
        let from = Node::Chunk(seed.chunk);
        let mut near = self.snapshot.edges_of(from, EdgeKind::Similar, Direction::Both)?;
        near.retain(|edge| edge.weight >= similar_min);
        near.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        near.truncate(similar_max);
        near.extend(self.snapshot.edges_of(from, EdgeKind::Next, Direction::Both)?);
        for edge in near {
            let Node::Chunk(target) = edge.target else { continue };
            let (kind, share) = match edge.kind {
                EdgeKind::Similar => (LinkKind::Similar, similar * edge.weight),
                _ => (LinkKind::Adjoining, adjoining),
            };
            let value = seed.head * share * seed.need.min(gain * self.coverage.gain(target, seed.chunk));
            let link = Link { seed: seed.chunk, entity: None, kind, idf: edge.weight, value, best: seed.head };
            self.follow(link, target)?;
        }
        Ok(())
    }

    /// Once more from the best passages that links reached, to those that share an entity with them and have what they and
    /// their seeds both lack.
    pub fn follow_again(&mut self, corpus: &Corpus<'_>) -> Result<(), QueryError> {
        let Recipe { gain, again_max, .. } = self.question.recipe;
        let most = self.seeds.len().saturating_add(again_max).saturating_add(AGAIN_BEYOND);
        let scored = self.candidates()?.into_iter().map(|chunk| (chunk, self.linked_score(chunk))).collect();
        let mut from = rank::best(self.snapshot, scored, most)?;
        from.retain(|(chunk, _)| self.linked.contains_key(chunk) && !self.is_seed(*chunk));
        from.truncate(again_max);
        for (start, score) in from {
            let seed = self.linked.get(&start).map_or(start, |link| link.seed);
            for slot in corpus.links.mentions(start)?.iter().map(EntitySlot) {
                let entity = self.entity(corpus, slot)?;
                for target in entity.mentions.iter().copied().filter(|target| *target != start) {
                    self.trace.links_read += 1;
                    let value = score * entity.idf * gain * self.coverage.gain_over(target, [start, seed]);
                    let (kind, idf) = (LinkKind::Shared, entity.idf);
                    let link = Link { seed: start, entity: Some(slot), kind, idf, value, best: score };
                    if value <= 0.0 || self.is_seed(target) || !self.may_choose(target) {
                        continue;
                    }
                    match self.again.get(&target) {
                        Some(known) if self.by_link(target, &link) <= self.by_link(target, known) => continue,
                        Some(_) => {}
                        None => self.snapshot.guard.hold::<[(ChunkId, Link); LINK_COPIES]>(1)?,
                    }
                    self.again.insert(target, link);
                }
            }
        }
        Ok(())
    }
}
