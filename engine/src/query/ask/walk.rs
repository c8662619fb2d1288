//! From the question's names and the best passages along definition links and shared entities, one step and two.

use crate::error::QueryError;
use crate::model::Models;
use crate::projection::Links;
use crate::query::answer::{LinkTrace, NameTrace};
use crate::query::ask::plan::Plan;
use crate::query::{names, rank};
use hedgerow_format::{ChunkId, EntitySlot};
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

/// An entity that a passage or the question speaks of, with what is live of it.
struct Entity {
    slot: EntitySlot,
    idf: f32,
    mentions: Vec<ChunkId>,
    definitions: Vec<ChunkId>,
}

/// What an entity holds after the first step of the walk.
struct Held {
    entity: Entity,
    mass: f32,
    seed: Option<ChunkId>,
    largest: f32,
}

impl Plan<'_, '_> {
    /// From the question's names to what defines them; from the seeds to what defines or shares the entities that they
    /// mention; then two steps on from all of these entities at once.
    pub fn walk(&mut self, models: Models<'_>) -> Result<(), QueryError> {
        let Some(links) = self.snapshot.links() else { return Ok(()) };
        let passages = self.snapshot.statistics()?.chunks;
        let mentions_max = usize::try_from(passages / CHUNKS_A_MENTION).unwrap_or(usize::MAX);
        let mentions_max = mentions_max.min(self.question.recipe.mentions_max);
        let mut named = Vec::new();
        for slot in names::find(links, &self.question.text, &self.snapshot.guard, models.extractor)? {
            let entity = self.entity(links, slot, passages)?;
            self.raise_named(links, &entity)?;
            named.push(entity);
        }
        let count = self.question.seeds.min(self.question.recipe.seeds_max);
        self.seeds = rank::top(self.snapshot, &self.scores(Self::head)?, self.allowed.as_ref(), count)?;
        let all: f32 = self.seeds.iter().map(|(_, head)| head).sum();
        let mut held = BTreeMap::new();
        for (seed, head) in self.seeds.clone() {
            let slots = links.mentions(seed)?.iter().map(EntitySlot);
            let entities: Result<Vec<Entity>, QueryError> =
                slots.map(|slot| self.entity(links, slot, passages)).collect();
            let entities = entities?;
            let sum: f32 = entities.iter().map(|entity| entity.idf).sum();
            for entity in entities {
                self.follow_all(&entity, seed, head, mentions_max)?;
                let mass = if all * sum > 0.0 { head / all * entity.idf / sum } else { 0.0 };
                hold(&mut held, entity, mass, Some(seed));
            }
        }
        let sum: f32 = named.iter().map(|entity| entity.idf).sum();
        for entity in named {
            let mass = if sum > 0.0 { self.question.recipe.walk_named * entity.idf / sum } else { 0.0 };
            hold(&mut held, entity, mass, None);
        }
        self.spread(held, mentions_max)?;
        self.trace_walk(links)
    }

    fn entity(&self, links: &Links, slot: EntitySlot, passages: u64) -> Result<Entity, QueryError> {
        let mut pace = self.snapshot.guard.pace();
        let mut live = |chunks: &mut dyn Iterator<Item = ChunkId>, count| -> Result<Vec<ChunkId>, QueryError> {
            self.snapshot.guard.hold::<ChunkId>(count)?;
            let mut live = Vec::new();
            for chunk in chunks {
                pace.step()?;
                live.extend(Some(chunk).filter(|chunk| self.snapshot.is_live(*chunk)));
            }
            Ok(live)
        };
        let (mentioning, defining) = (links.mentioning(slot)?, links.definitions(slot)?);
        let mentions = live(&mut mentioning.iter().map(ChunkId), mentioning.len())?;
        let definitions = live(&mut defining.iter().map(ChunkId), defining.len())?;
        Ok(Entity { slot, idf: idf(passages, mentions.len()), mentions, definitions })
    }

    fn raise_named(&mut self, links: &Links, entity: &Entity) -> Result<(), QueryError> {
        let Entity { slot, idf, mentions, definitions } = entity;
        let followed = definitions.len() <= self.question.recipe.definitions_max;
        for target in definitions.iter().filter(|_| followed) {
            if self.may_choose(*target) {
                self.named.entry(*target).or_insert((0.0, *slot)).0 += self.question.recipe.named * idf;
            }
        }
        let name = links.string(links.entity(*slot)?.name)?.to_owned();
        let (mentions, definitions) = (mentions.len() as u64, definitions.len() as u64);
        self.trace.names.push(NameTrace { entity: name, mentions, definitions, idf: *idf, followed });
        Ok(())
    }

    /// Share of its links' worth that a seed passes on: a seed that has all of the question needs no one else.
    fn need(&self, seed: ChunkId) -> f32 {
        let gate = self.question.recipe.gate;
        if gate > 0.0 { (gate * self.coverage.lacking(seed)).min(1.0) } else { 1.0 }
    }

    /// Every link out of a seed by an entity.
    fn follow_all(&mut self, entity: &Entity, seed: ChunkId, head: f32, mentions_max: usize) -> Result<(), QueryError> {
        let Entity { slot, idf, mentions, definitions } = entity;
        let value = head * idf;
        let link = Link { seed, entity: *slot, kind: LinkKind::Definition, idf: *idf, value, best: head };
        let defined = Link { value: value * self.need(seed), ..link };
        for target in definitions {
            self.follow(defined, *target)?;
        }
        if mentions.len() > mentions_max {
            return Ok(());
        }
        for target in mentions {
            let value = value * self.question.recipe.gain * self.coverage.gain(*target, seed);
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

    /// The second step of the walk: what an entity holds goes in equal parts to the chunks that mention or define it.
    fn spread(&mut self, held: BTreeMap<EntitySlot, Held>, mentions_max: usize) -> Result<(), QueryError> {
        let mut walked: BTreeMap<ChunkId, Share> = BTreeMap::new();
        for Held { entity, mass, seed, .. } in held.into_values() {
            let Entity { slot, idf, mentions, definitions } = entity;
            if mentions.len() > mentions_max || mass <= 0.0 {
                continue;
            }
            #[expect(clippy::cast_precision_loss, reason = "a few chunks")]
            let part = mass / (mentions.len() + definitions.len()) as f32;
            let shared = mentions.into_iter().map(|chunk| (chunk, LinkKind::Shared));
            for (chunk, kind) in shared.chain(definitions.into_iter().map(|chunk| (chunk, LinkKind::Definition))) {
                self.trace.links_read += 1;
                if !self.may_choose(chunk) {
                    continue;
                }
                if !walked.contains_key(&chunk) {
                    self.snapshot.guard.hold::<[(ChunkId, Share); 2]>(1)?;
                }
                let share = Share { value: 0.0, entity: slot, idf, seed, kind, largest: 0.0 };
                let known = walked.entry(chunk).or_insert(share);
                known.value += part;
                if part > known.largest {
                    *known = Share { value: known.value, largest: part, ..share };
                }
            }
        }
        let most = walked.values().map(|share| share.value).fold(0.0, f32::max);
        let weight = self.seeds.first().map_or(1.0, |(seed, _)| self.need(*seed)) * self.question.recipe.walk;
        for share in walked.values_mut() {
            share.value = weight * (share.value / most).sqrt();
        }
        self.walked = walked;
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

/// Adds to what an entity holds; the seed that adds most is remembered.
fn hold(held: &mut BTreeMap<EntitySlot, Held>, entity: Entity, mass: f32, seed: Option<ChunkId>) {
    let slot = entity.slot;
    let known = held.entry(slot).or_insert(Held { entity, mass: 0.0, seed, largest: 0.0 });
    known.mass += mass;
    if mass > known.largest {
        (known.seed, known.largest) = (seed, mass);
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
