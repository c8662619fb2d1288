//! Entities that passages or a question speak of, what defines them, and which definition fits what speaks of them.

use crate::error::QueryError;
use crate::projection::Links;
use crate::query::ask::plan::Plan;
use hedgerow_format::{ChunkId, EntitySlot, U32s};
use std::collections::BTreeMap;

/// Of so many chunks one may mention an entity that joins passages: in a small store fewer do than the recipe allows.
const CHUNKS_A_MENTION: u64 = 20;

/// What is asked of the whole corpus.
pub(super) struct Corpus<'l> {
    pub links: &'l Links,
    pub passages: u64,
    /// Entities that more chunks mention join no passages.
    pub mentions_max: usize,
    /// Whether nothing that the links name is dead.
    pub is_in_step: bool,
}

/// An entity that a passage or the question speaks of, with what is live of it.
pub(super) struct Entity {
    pub slot: EntitySlot,
    pub idf: f32,
    /// Chunks that mention it.
    pub mentioned: usize,
    /// These chunks; none of an entity that more mention than join passages.
    pub mentions: Vec<ChunkId>,
    /// What defines it, each with its share: where several chunks do, how well it fits what speaks of the entity.
    pub definitions: Vec<(ChunkId, f32)>,
}

/// A seed and what is known of it.
pub(super) struct Seed {
    pub chunk: ChunkId,
    pub head: f32,
    /// Share of its links' worth that it passes on.
    pub need: f32,
    /// Share of the walk that begins here.
    pub mass: f32,
    /// The idf of every entity that it mentions.
    pub entities: BTreeMap<EntitySlot, f32>,
}

impl Plan<'_, '_> {
    pub fn corpus<'l>(&self, links: &'l Links) -> Result<Corpus<'l>, QueryError> {
        let passages = self.snapshot.statistics()?.chunks;
        let few = usize::try_from(passages / CHUNKS_A_MENTION).unwrap_or(usize::MAX);
        let mentions_max = few.min(self.question.recipe.mentions_max);
        let is_in_step = links.entry().facts == self.snapshot.manifest().facts;
        Ok(Corpus { links, passages, mentions_max, is_in_step })
    }

    pub fn entity(&self, corpus: &Corpus<'_>, slot: EntitySlot) -> Result<Entity, QueryError> {
        let mut pace = self.snapshot.guard.pace();
        let mut live = |chunks: U32s<'_>| -> Result<Vec<ChunkId>, QueryError> {
            self.snapshot.guard.hold::<ChunkId>(chunks.len())?;
            let mut live = Vec::new();
            for chunk in chunks.iter().map(ChunkId) {
                pace.step()?;
                live.extend(Some(chunk).filter(|chunk| self.snapshot.is_live(*chunk)));
            }
            Ok(live)
        };
        let mentioning = corpus.links.mentioning(slot)?;
        let many = corpus.is_in_step && mentioning.len() > corpus.mentions_max;
        let mut mentions = if many { Vec::new() } else { live(mentioning)? };
        let mentioned = if many { mentioning.len() } else { mentions.len() };
        if mentioned > corpus.mentions_max {
            mentions.clear();
        }
        let definitions = live(corpus.links.definitions(slot)?)?.into_iter().map(|chunk| (chunk, 1.0)).collect();
        Ok(Entity { slot, idf: idf(corpus.passages, mentioned), mentioned, mentions, definitions })
    }

    /// The idf of an entity alone, without what mentions it.
    pub fn idf_of(&self, corpus: &Corpus<'_>, slot: EntitySlot) -> Result<f32, QueryError> {
        let mentioning = corpus.links.mentioning(slot)?;
        if corpus.is_in_step {
            return Ok(idf(corpus.passages, mentioning.len()));
        }
        let mut pace = self.snapshot.guard.pace();
        let mut live = 0;
        for chunk in mentioning.iter().map(ChunkId) {
            pace.step()?;
            live += usize::from(self.snapshot.is_live(chunk));
        }
        Ok(idf(corpus.passages, live))
    }

    pub fn seed(&self, corpus: &Corpus<'_>, position: usize) -> Result<(Seed, Vec<Entity>), QueryError> {
        let all: f32 = self.seeds.iter().map(|(_, head)| head).sum();
        let (chunk, head) = self.seeds[position];
        let mut entities = Vec::new();
        for slot in corpus.links.mentions(chunk)?.iter().map(EntitySlot) {
            self.snapshot.guard.hold::<Entity>(2)?;
            entities.push(self.entity(corpus, slot)?);
        }
        let mass = if all > 0.0 { head / all } else { 0.0 };
        let known = entities.iter().map(|entity| (entity.slot, entity.idf)).collect();
        Ok((Seed { chunk, head, need: self.need(chunk)?, mass, entities: known }, entities))
    }

    /// Gives what defines an entity its shares: 1 for what fits best, less for its rivals.
    pub fn share(
        &self,
        entity: &mut Entity,
        spread: f32,
        fit: impl Fn(ChunkId, EntitySlot) -> Result<f32, QueryError>,
    ) -> Result<(), QueryError> {
        if entity.definitions.len() < 2 || spread <= 0.0 {
            return Ok(());
        }
        let mut best = f32::NEG_INFINITY;
        for (chunk, share) in &mut entity.definitions {
            self.snapshot.guard.poll()?;
            *share = fit(*chunk, entity.slot)?;
            best = best.max(*share);
        }
        for (_, share) in &mut entity.definitions {
            *share = libm::expf((*share - best) / spread);
        }
        Ok(())
    }

    /// How well a chunk that defines an entity fits a seed that mentions it: their vectors, and what else both mention.
    pub fn fit(&self, links: &Links, seed: &Seed, chunk: ChunkId, entity: EntitySlot) -> Result<f32, QueryError> {
        let recipe = &self.question.recipe;
        let shared = links.mentions(chunk)?.iter().map(EntitySlot).filter(|slot| *slot != entity);
        let shared: f32 = shared.filter_map(|slot| seed.entities.get(&slot)).sum();
        Ok(recipe.rivals_vector * self.vectors.between(seed.chunk, chunk) + recipe.rivals_shared * shared)
    }
}

/// How much an entity tells: ln((N + 1) / (df + 1)) / ln(N + 1), 0 where every chunk mentions it, 1 where none does. With one
/// chunk more than there are, a name that one of two chunks mentions still tells something.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "counts of chunks; the result is a weight"
)]
fn idf(passages: u64, mentions: usize) -> f32 {
    let (all, with) = (passages as f64 + 1.0, mentions as f64 + 1.0);
    if passages == 0 { 0.0 } else { (libm::log(all / with) / libm::log(all)).clamp(0.0, 1.0) as f32 }
}
