//! From the question's names and the best passages along definition links and shared entities, one step and two.

use crate::error::QueryError;
use crate::model::Models;
use crate::projection::Links;
use crate::query::answer::{LinkTrace, NameTrace};
use crate::query::ask::Recipe;
use crate::query::ask::plan::Plan;
use crate::query::{names, rank};
use hedgerow_format::{ChunkId, EntitySlot, U32s};
use std::collections::BTreeMap;

/// A link in the map of links, in a list of those that count, and in the trace with its three keys.
const LINK_COPIES: usize = 12;

/// Of so many chunks one may mention an entity that joins passages: in a small store fewer do than the recipe allows.
const CHUNKS_A_MENTION: u64 = 20;

/// How two passages are linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkKind {
    /// One mentions an entity that the other defines.
    Definition,
    /// Both mention an entity.
    Shared,
}

impl LinkKind {
    /// How the target follows from the entity.
    pub fn step(self) -> &'static str {
        match self {
            Self::Definition => "defined by",
            Self::Shared => "mentioned in",
        }
    }
}

/// The strongest link to a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub seed: ChunkId,
    pub entity: EntitySlot,
    pub kind: LinkKind,
    pub idf: f32,
    pub value: f32,
    /// Score of the best seed among all that link to the chunk.
    pub best: f32,
}

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

/// What is asked of the whole corpus.
struct Corpus<'l> {
    links: &'l Links,
    passages: u64,
    /// Entities that more chunks mention join no passages.
    mentions_max: usize,
    /// Whether nothing that the links name is dead.
    is_in_step: bool,
}

/// An entity that a passage or the question speaks of, with what is live of it.
struct Entity {
    slot: EntitySlot,
    idf: f32,
    /// Chunks that mention it.
    mentioned: usize,
    /// These chunks; none of an entity that more mention than join passages.
    mentions: Vec<ChunkId>,
    /// What defines it, each with its share: where several chunks do, how well it fits what speaks of the entity.
    definitions: Vec<(ChunkId, f32)>,
}

/// A seed and what is known of it.
struct Seed {
    chunk: ChunkId,
    head: f32,
    /// Share of its links' worth that it passes on.
    need: f32,
    /// Share of the walk that begins here.
    mass: f32,
    /// The idf of every entity that it mentions.
    entities: BTreeMap<EntitySlot, f32>,
}

impl Plan<'_, '_> {
    /// From the question's names to what defines them; from the seeds to what defines or shares the entities that they
    /// mention; then two steps on from all of these entities at once.
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
        let count = self.question.seeds.min(self.question.recipe.seeds_max);
        self.seeds = rank::top(self.snapshot, &self.scores(Self::head)?, self.allowed.as_ref(), count)?;
        for position in 0..self.seeds.len() {
            let (seed, entities) = self.seed(&corpus, position)?;
            let sum: f32 = seed.entities.values().sum();
            for mut entity in entities {
                let fit = |chunk, slot| self.fit(links, &seed, chunk, slot);
                self.share(&mut entity, self.question.recipe.rivals_spread, fit)?;
                self.follow_all(&entity, &seed)?;
                let mass = if sum > 0.0 { seed.mass * entity.idf / sum } else { 0.0 };
                self.spread(&entity, mass, Some(seed.chunk))?;
            }
        }
        let sum: f32 = named.iter().map(|entity| entity.idf).sum();
        for entity in &named {
            let mass = if sum > 0.0 { self.question.recipe.walk_named * entity.idf / sum } else { 0.0 };
            self.spread(entity, mass, None)?;
        }
        self.weigh_walk()?;
        self.trace_walk(links)
    }

    fn corpus<'l>(&self, links: &'l Links) -> Result<Corpus<'l>, QueryError> {
        let passages = self.snapshot.statistics()?.chunks;
        let few = usize::try_from(passages / CHUNKS_A_MENTION).unwrap_or(usize::MAX);
        let mentions_max = few.min(self.question.recipe.mentions_max);
        let is_in_step = links.entry().facts == self.snapshot.manifest().facts;
        Ok(Corpus { links, passages, mentions_max, is_in_step })
    }

    fn entity(&self, corpus: &Corpus<'_>, slot: EntitySlot) -> Result<Entity, QueryError> {
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

    fn seed(&self, corpus: &Corpus<'_>, position: usize) -> Result<(Seed, Vec<Entity>), QueryError> {
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
    fn share(
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
    fn fit(&self, links: &Links, seed: &Seed, chunk: ChunkId, entity: EntitySlot) -> Result<f32, QueryError> {
        let recipe = &self.question.recipe;
        let shared = links.mentions(chunk)?.iter().map(EntitySlot).filter(|slot| *slot != entity);
        let shared: f32 = shared.filter_map(|slot| seed.entities.get(&slot)).sum();
        Ok(recipe.rivals_vector * self.vectors.between(seed.chunk, chunk) + recipe.rivals_shared * shared)
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
    fn need(&self, seed: ChunkId) -> Result<f32, QueryError> {
        let gate = self.question.recipe.gate;
        if gate <= 0.0 {
            return Ok(1.0);
        }
        let open = self.coverage.beside(self.snapshot.chunk(seed)?.document()?.title()?);
        Ok(if open > 0.0 { (gate * self.coverage.lacking(seed) / open).min(1.0) } else { 0.0 })
    }

    /// Every link out of a seed by an entity.
    fn follow_all(&mut self, entity: &Entity, seed: &Seed) -> Result<(), QueryError> {
        let Entity { slot, idf, mentions, definitions, .. } = entity;
        let Recipe { gain, definition_gain, undefined, undefined_max, .. } = self.question.recipe;
        let value = seed.head * idf;
        let kind = LinkKind::Definition;
        let link = Link { seed: seed.chunk, entity: *slot, kind, idf: *idf, value, best: seed.head };
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

    /// From shares of the walk to what they add to a score.
    fn weigh_walk(&mut self) -> Result<(), QueryError> {
        let need = self.seeds.first().map_or(Ok(1.0), |(seed, _)| self.need(*seed))?;
        let most = self.walked.values().map(|share| share.value).fold(0.0, f32::max);
        for share in self.walked.values_mut() {
            share.value = need * self.question.recipe.walk * (share.value / most).sqrt();
        }
        Ok(())
    }

    fn trace_walk(&mut self, links: &Links) -> Result<(), QueryError> {
        for (seed, _) in &self.seeds {
            self.trace.seeds.push(self.snapshot.chunk(*seed)?.key()?);
        }
        let mut raised: Vec<(ChunkId, Link)> = self.linked.iter().map(|(target, link)| (*target, *link)).collect();
        raised.retain(|(target, link)| link.value > 0.0 && self.linked_score(*target) > self.head(*target));
        let mut traces = Vec::with_capacity(raised.len());
        let mut pace = self.snapshot.guard.pace();
        for (target, link) in raised {
            pace.step()?;
            traces.push(LinkTrace {
                seed: self.snapshot.chunk(link.seed)?.key()?,
                entity: links.string(links.entity(link.entity)?.name)?.to_owned(),
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
