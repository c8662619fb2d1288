//! From the question's names and the best passages along links, and a walk of two steps over entities.

use crate::error::QueryError;
use crate::model::Models;
use crate::projection::Links;
use crate::query::answer::{LinkTrace, NameTrace};
use crate::query::ask::entity::{Corpus, Entity};
use crate::query::ask::links::{Link, LinkKind};
use crate::query::ask::plan::Plan;
use crate::query::{names, rank};
use hedgerow_format::{ChunkId, EntitySlot};
use std::collections::BTreeSet;

/// Chunks that seeds are chosen from, and passages.
pub(super) const CANDIDATES: usize = 30;

/// What the walk of two steps gives a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub value: f32,
    /// The entity that gives most of it, and its idf.
    pub entity: EntitySlot,
    pub idf: f32,
    /// The seed that gives that entity most; none where the question names it.
    pub seed: Option<ChunkId>,
    pub kind: LinkKind,
    largest: f32,
}

impl Plan<'_, '_> {
    /// From the question's names to what defines them; from the seeds along every link; once more from what these reach;
    /// and two steps on from all entities of the seeds and the question at once.
    pub fn walk(&mut self, models: Models<'_>) -> Result<(), QueryError> {
        let Some(links) = self.snapshot.links() else { return Ok(()) };
        let corpus = self.corpus(links)?;
        let mut named = Vec::new();
        for slot in names::find(links, &self.question.text, &self.snapshot.guard, models.extractor)? {
            let mut entity = self.entity(&corpus, slot)?;
            let fit = |chunk, _| Ok(self.flat(chunk));
            self.share(&mut entity, self.question.recipe.rivals_named_spread, fit)?;
            named.push(entity);
        }
        for entity in &named {
            self.raise_named(links, entity)?;
        }
        self.choose_seeds()?;
        for position in 0..self.seeds.len() {
            self.leave_seed(&corpus, position)?;
        }
        self.follow_again(&corpus)?;
        let sum: f32 = named.iter().map(|entity| entity.idf).sum();
        for entity in &named {
            let mass = if sum > 0.0 { self.question.recipe.walk_named * entity.idf / sum } else { 0.0 };
            self.spread(entity, mass, None)?;
        }
        self.weigh_walk()?;
        self.trace_walk()
    }

    /// Of the best chunks one after the other, those that have most, and most of what the ones before lack.
    fn choose_seeds(&mut self) -> Result<(), QueryError> {
        let recipe = self.question.recipe;
        let count = self.question.seeds.min(recipe.seeds_max);
        let most = self.count().max(CANDIDATES);
        self.best = rank::top(self.snapshot, &self.heads()?, self.allowed.as_ref(), most)?;
        let mut best: Vec<(ChunkId, f32)> = self.best.iter().take(count.max(CANDIDATES)).copied().collect();
        let mut covered = 0;
        while self.seeds.len() < count && !best.is_empty() {
            let worth = |(chunk, head): &(ChunkId, f32)| head + recipe.cover * self.coverage.beyond(*chunk, covered);
            let mut chosen = 0;
            for position in 1..best.len() {
                if worth(&best[position]) > worth(&best[chosen]) {
                    chosen = position;
                }
            }
            let seed = best.remove(chosen);
            covered |= self.coverage.terms(seed.0);
            self.seeds.push(seed);
        }
        Ok(())
    }

    /// Follows every link out of a seed, and begins the walk there.
    fn leave_seed(&mut self, corpus: &Corpus<'_>, position: usize) -> Result<(), QueryError> {
        let (seed, entities) = self.seed(corpus, position)?;
        let sum: f32 = seed.entities.values().sum();
        for mut entity in entities {
            let fit = |chunk, slot| self.fit(corpus.links, &seed, chunk, slot);
            self.share(&mut entity, self.question.recipe.rivals_spread, fit)?;
            self.follow_all(&entity, &seed)?;
            let mass = if sum > 0.0 { seed.mass * entity.idf / sum } else { 0.0 };
            self.spread(&entity, mass, Some(seed.chunk))?;
        }
        self.follow_near(&seed)
    }

    fn raise_named(&mut self, links: &Links, entity: &Entity) -> Result<(), QueryError> {
        let Entity { slot, idf, mentioned, definitions, .. } = entity;
        let followed = definitions.len() <= self.question.recipe.definitions_max;
        for (target, share) in definitions.iter().filter(|_| followed) {
            if self.may_choose(*target) {
                self.named.entry(*target).or_insert((0.0, *slot)).0 += self.question.recipe.named * idf * share;
            }
        }
        let name = links.string(links.entity(*slot)?.name)?.to_owned();
        let (mentions, definitions) = (*mentioned as u64, definitions.len() as u64);
        self.trace.names.push(NameTrace { entity: name, mentions, definitions, idf: *idf, followed });
        Ok(())
    }

    /// Share of its links' worth that a seed passes on: one that has all of the question beside what its title says needs
    /// no one else.
    pub fn need(&self, seed: ChunkId) -> Result<f32, QueryError> {
        let gate = self.question.recipe.gate;
        if gate <= 0.0 {
            return Ok(1.0);
        }
        let open = self.coverage.beside(self.snapshot.chunk(seed)?.document()?.title()?);
        Ok(if open > 0.0 { (gate * self.coverage.lacking(seed) / open).min(1.0) } else { 0.0 })
    }

    /// The second step of the walk: what an entity holds goes to the chunks that mention it, and to those that define it by
    /// their shares.
    fn spread(&mut self, entity: &Entity, mass: f32, seed: Option<ChunkId>) -> Result<(), QueryError> {
        let Entity { slot, idf, mentioned, mentions, definitions } = entity;
        if *mentioned > mentions.len() || mass <= 0.0 {
            return Ok(());
        }
        let shares: f32 = definitions.iter().map(|(_, share)| share).sum();
        #[expect(clippy::cast_precision_loss, reason = "a few chunks")]
        let part = mass / (mentions.len() as f32 + shares);
        let shared = mentions.iter().map(|chunk| (*chunk, part, LinkKind::Shared));
        let defined = definitions.iter().map(|(chunk, share)| (*chunk, part * share, LinkKind::Definition));
        for (chunk, part, kind) in shared.chain(defined) {
            self.trace.links_read += 1;
            if !self.may_choose(chunk) {
                continue;
            }
            if !self.walked.contains_key(&chunk) {
                self.snapshot.guard.hold::<[(ChunkId, Share); 2]>(1)?;
            }
            let share = Share { value: 0.0, entity: *slot, idf: *idf, seed, kind, largest: 0.0 };
            let known = self.walked.entry(chunk).or_insert(share);
            known.value += part;
            if part > known.largest {
                *known = Share { value: known.value, largest: part, ..share };
            }
        }
        Ok(())
    }

    /// From shares of the walk to what they add to a score; a passage that adds nothing to the first seed gets nothing.
    fn weigh_walk(&mut self) -> Result<(), QueryError> {
        let Some((first, _)) = self.seeds.first().copied() else { return Ok(()) };
        let (need, recipe) = (self.need(first)?, self.question.recipe);
        let seeds: Vec<ChunkId> = self.seeds.iter().map(|(seed, _)| *seed).collect();
        for (chunk, share) in &mut self.walked {
            if !seeds.contains(chunk) {
                share.value *= (recipe.gain * self.coverage.gain(*chunk, first)).min(1.0);
            }
        }
        let most = self.walked.values().map(|share| share.value).fold(0.0, f32::max);
        self.walked.retain(|_, share| share.value > 0.0);
        for share in self.walked.values_mut() {
            share.value = need * recipe.walk * (share.value / most).sqrt();
        }
        Ok(())
    }

    fn trace_walk(&mut self) -> Result<(), QueryError> {
        for (seed, _) in &self.seeds {
            self.trace.seeds.push(self.snapshot.chunk(*seed)?.key()?);
        }
        let targets = self.linked.keys().chain(self.again.keys()).collect::<BTreeSet<_>>();
        let strongest = |target: &&ChunkId| Some((**target, *self.strongest(**target)?));
        let raised: Vec<(ChunkId, Link)> = targets.iter().filter_map(strongest).collect();
        let mut traces = Vec::with_capacity(raised.len());
        let mut pace = self.snapshot.guard.pace();
        for (target, link) in raised {
            pace.step()?;
            traces.push(LinkTrace {
                seed: self.snapshot.chunk(link.seed)?.key()?,
                entity: self.name_of(link.entity)?.to_owned(),
                by: link.kind.step(),
                target: self.snapshot.chunk(target)?.key()?,
                idf: link.idf,
                value: link.value,
            });
        }
        traces.sort_by(|a, b| b.value.total_cmp(&a.value).then_with(|| a.target.cmp(&b.target)));
        traces.truncate(self.question.seeds.saturating_add(self.question.neighbours));
        self.trace.links = traces;
        Ok(())
    }
}
