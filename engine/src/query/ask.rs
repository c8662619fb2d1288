//! Ask: plan, seeds, expand, rank, context, trace. The recipe is the minimal one of `ARCHITECTURE.md`, *Retrieval*.

use crate::error::{Damage, QueryError};
use crate::model::{Embed, ModelError, Models};
use crate::projection::Links;
use crate::query::answer::{
    Comparison, Context, Dropped, Legs, LinkTrace, NameTrace, Passage, Role, Step, Trace, VectorTrace,
};
use crate::query::filter::Filter;
use crate::query::legs::{self, Scores};
use crate::query::{names, node, rank, search};
use crate::snapshot::{Bounded, Space};
use hedgerow_format::{ChunkId, EntitySlot};
use roaring::RoaringBitmap;
use std::collections::BTreeMap;

/// Chunks ranked just below the passages that the trace tells of.
const DROPPED_TOLD: usize = 3;
/// A link in the map of links, in a list of those that count, and in the trace with its three keys.
const LINK_COPIES: usize = 12;
/// Bytes that a passage takes beside its text: two blocks of text, fields and path.
const PASSAGE_BYTES: u64 = 40 << 10;

/// A question with its budget.
#[derive(Clone, Debug)]
pub struct Question {
    /// What is asked.
    pub text: String,
    /// How it is answered.
    pub strategy: Strategy,
    /// k: passages that flat retrieval gives; the walk starts from the best of them.
    pub seeds: usize,
    /// k′: passages beside them. Both strategies return at most k + k′.
    pub neighbours: usize,
    /// Tokens of all passages together.
    pub tokens_max: usize,
    /// Which chunks may be chosen; none for all.
    pub filter: Option<Filter>,
    /// The vector space; none for the one that the embedder makes, or the only one.
    pub space: Option<String>,
    /// The question's own vector, where the caller has it.
    pub vector: Option<Vec<f32>>,
    /// How much the cosine counts beside BM25, 0 to 1; none for the embedder's, or 0.4.
    pub vector_weight: Option<f32>,
    /// Constants of the walk.
    pub recipe: Recipe,
}

/// How a question is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// By terms and vectors.
    Flat,
    /// By terms and vectors, then along definition links.
    #[default]
    Graph,
}

/// Constants of the walk, measured on three multi-hop sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recipe {
    /// Best chunks that the walk starts from, at most k.
    pub seeds_max: usize,
    /// Share of an entity's idf that its definitions get where the question names it.
    pub named: f32,
    /// Entities with more definitions than this don't raise them.
    pub definitions_max: usize,
    /// Share of a link's value that its target gets.
    pub link: f32,
    /// A target stays below this share of its best seed.
    pub bound: f32,
}

impl Default for Recipe {
    fn default() -> Self {
        Self { seeds_max: 5, named: 0.25, definitions_max: 10, link: 0.7, bound: 0.98 }
    }
}

impl Question {
    /// A question with the defaults: graph, 5 + 5 passages, 4,000 tokens.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            strategy: Strategy::Graph,
            seeds: 5,
            neighbours: 5,
            tokens_max: 4000,
            filter: None,
            space: None,
            vector: None,
            vector_weight: None,
            recipe: Recipe::default(),
        }
    }
}

impl Bounded<'_> {
    /// See [`Snapshot::ask`](crate::Snapshot::ask).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn ask(&self, question: &Question, models: Models<'_>) -> Result<Context, QueryError> {
        self.guard.scope(|| {
            let mut plan = Plan::of(self, question, models)?;
            if question.strategy == Strategy::Graph {
                plan.walk(models)?;
            }
            plan.context()
        })
    }

    /// See [`Snapshot::compare`](crate::Snapshot::compare).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn compare(&self, question: &Question, models: Models<'_>) -> Result<Comparison, QueryError> {
        let by = |strategy| self.ask(&Question { strategy, ..question.clone() }, models);
        Ok(Comparison { flat: by(Strategy::Flat)?, graph: by(Strategy::Graph)? })
    }
}

/// A question on its way.
struct Plan<'s, 'q> {
    snapshot: &'s Bounded<'s>,
    question: &'q Question,
    terms: Scores,
    vectors: Scores,
    /// What definitions get of the question's names, by chunk.
    named: BTreeMap<ChunkId, (f32, EntitySlot)>,
    /// What the walk adds, by chunk.
    linked: BTreeMap<ChunkId, Link>,
    seeds: Vec<(ChunkId, f32)>,
    allowed: Option<RoaringBitmap>,
    incomplete: Vec<String>,
    trace: Trace,
}

/// The strongest link to a chunk.
#[derive(Clone, Copy, Debug)]
struct Link {
    seed: ChunkId,
    entity: EntitySlot,
    idf: f32,
    value: f32,
    /// Score of the best seed among all that link to the chunk.
    best: f32,
}

impl<'s, 'q> Plan<'s, 'q> {
    /// Flat retrieval: H = (1 − w) · BM25 / max + w · cosine / max.
    fn of(snapshot: &'s Bounded<'s>, question: &'q Question, models: Models<'_>) -> Result<Self, QueryError> {
        let allowed = question.filter.as_ref().map(|filter| node::allowed(snapshot, filter)).transpose()?;
        let mut incomplete = if question.strategy == Strategy::Graph { snapshot.incomplete() } else { Vec::new() };
        let (mut terms, term_traces) = legs::terms(snapshot, &question.text)?;
        let vector = question_vector(snapshot, question, models, &mut incomplete)?;
        let mut weight = 0.0;
        let mut vectors = Scores::none(snapshot)?;
        let mut trace = Trace { generation: snapshot.generation(), terms: term_traces, ..Trace::default() };
        trace.chunks = match &allowed {
            Some(allowed) => allowed.len(),
            None => snapshot.statistics()?.chunks,
        };
        if let Some(vector) = vector {
            let cosines = legs::cosines(snapshot, &vector.space, &vector.components)?;
            vectors = Scores::of(snapshot, &cosines)?;
            let compared = cosines.len() as u64;
            weight = vector.weight;
            let Space { name, model, .. } = vector.space;
            trace.vector = Some(VectorTrace { space: name, model, weight, compared });
        }
        legs::restrict(&mut terms, allowed.as_ref());
        legs::restrict(&mut vectors, allowed.as_ref());
        terms.scale(1.0 - weight);
        vectors.scale(weight);
        let (named, linked, seeds) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Ok(Self { snapshot, question, terms, vectors, named, linked, seeds, allowed, incomplete, trace })
    }

    fn flat(&self, chunk: ChunkId) -> f32 {
        self.terms.get(chunk) + self.vectors.get(chunk)
    }

    fn head(&self, chunk: ChunkId) -> f32 {
        self.flat(chunk) + self.named.get(&chunk).map_or(0.0, |named| named.0)
    }

    /// F = max(H, min(H + 0.7 · B, 0.98 · best)): a neighbour never passes its best seed.
    fn score(&self, chunk: ChunkId) -> f32 {
        let head = self.head(chunk);
        let recipe = &self.question.recipe;
        self.linked
            .get(&chunk)
            .map_or(head, |link| head.max((head + recipe.link * link.value).min(recipe.bound * link.best)))
    }

    fn may_choose(&self, chunk: ChunkId) -> bool {
        self.snapshot.is_live(chunk) && self.allowed.as_ref().is_none_or(|allowed| allowed.contains(chunk.0))
    }

    /// All scores at once, for ranking.
    fn scores(&self, of: impl Fn(&Self, ChunkId) -> f32) -> Result<Scores, QueryError> {
        self.snapshot.guard.hold::<f32>(self.terms.by_chunk.len())?;
        let mut scores =
            Scores { by_chunk: self.terms.by_chunk.iter().zip(&self.vectors.by_chunk).map(|(a, b)| a + b).collect() };
        for chunk in self.named.keys().chain(self.linked.keys()) {
            if let Some(score) = scores.by_chunk.get_mut(chunk.index()) {
                *score = of(self, *chunk);
            }
        }
        Ok(scores)
    }

    /// From the question's names to what defines them, then from the seeds to what defines the entities they mention.
    fn walk(&mut self, models: Models<'_>) -> Result<(), QueryError> {
        let Some(links) = self.snapshot.links() else { return Ok(()) };
        let passages = self.snapshot.statistics()?.chunks;
        for entity in names::find(links, &self.question.text, &self.snapshot.guard, models.extractor)? {
            self.raise_named(links, entity, passages)?;
        }
        let count = self.question.seeds.min(self.question.recipe.seeds_max);
        self.seeds = rank::top(self.snapshot, &self.scores(Self::head)?, self.allowed.as_ref(), count)?;
        let mut pace = self.snapshot.guard.pace();
        for (seed, head) in self.seeds.clone() {
            for entity in links.mentions(seed)?.iter().map(EntitySlot) {
                let idf = idf(passages, self.mentions(links, entity)?);
                for target in links.definitions(entity)?.iter().map(ChunkId) {
                    pace.step()?;
                    self.trace.links_read += 1;
                    if target != seed && self.may_choose(target) {
                        self.follow(Link { seed, entity, idf, value: head * idf, best: head }, target)?;
                    }
                }
            }
        }
        self.trace_walk(links)
    }

    /// Live chunks that mention an entity.
    fn mentions(&self, links: &Links, entity: EntitySlot) -> Result<usize, QueryError> {
        let mentioning = links.mentioning(entity)?;
        if links.entry().facts == self.snapshot.manifest().facts {
            return Ok(mentioning.len());
        }
        let (mut live, mut pace) = (0, self.snapshot.guard.pace());
        for chunk in mentioning.iter().map(ChunkId) {
            pace.step()?;
            live += usize::from(self.snapshot.is_live(chunk));
        }
        Ok(live)
    }

    fn raise_named(&mut self, links: &Links, entity: EntitySlot, passages: u64) -> Result<(), QueryError> {
        let (mentions, definitions) = (self.mentions(links, entity)?, links.definitions(entity)?);
        let idf = idf(passages, mentions);
        let followed = definitions.len() <= self.question.recipe.definitions_max;
        if followed {
            let targets: Vec<ChunkId> =
                definitions.iter().map(ChunkId).filter(|target| self.may_choose(*target)).collect();
            for target in targets {
                let named = self.named.entry(target).or_insert((0.0, entity));
                named.0 += self.question.recipe.named * idf;
            }
        }
        let name = links.string(links.entity(entity)?.name)?.to_owned();
        let (mentions, definitions) = (mentions as u64, definitions.len() as u64);
        self.trace.names.push(NameTrace { entity: name, mentions, definitions, idf, followed });
        Ok(())
    }

    fn follow(&mut self, link: Link, target: ChunkId) -> Result<(), QueryError> {
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

    fn trace_walk(&mut self, links: &Links) -> Result<(), QueryError> {
        for (seed, _) in &self.seeds {
            self.trace.seeds.push(self.snapshot.chunk(*seed)?.key()?);
        }
        let mut raised: Vec<(ChunkId, Link)> = self.linked.iter().map(|(target, link)| (*target, *link)).collect();
        raised.retain(|(target, _)| self.score(*target) > self.head(*target));
        let mut traces = Vec::with_capacity(raised.len());
        let mut pace = self.snapshot.guard.pace();
        for (target, link) in raised {
            pace.step()?;
            traces.push(LinkTrace {
                seed: self.snapshot.chunk(link.seed)?.key()?,
                entity: links.string(links.entity(link.entity)?.name)?.to_owned(),
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

    /// Ranks, fills the budget, and says what was left out.
    fn context(mut self) -> Result<Context, QueryError> {
        let count = self.question.seeds.saturating_add(self.question.neighbours);
        let ranked = rank::top(
            self.snapshot,
            &self.scores(Self::score)?,
            self.allowed.as_ref(),
            count.saturating_add(DROPPED_TOLD),
        )?;
        let (mut passages, mut tokens) = (Vec::new(), 0);
        for (position, (chunk, score)) in ranked.into_iter().enumerate() {
            let passage = self.passage(chunk, score)?;
            let reason = if position >= count {
                "ranked below the number of passages asked for"
            } else if tokens + passage.tokens > self.question.tokens_max {
                "does not fit into the budget of tokens"
            } else {
                tokens += passage.tokens;
                passages.push(passage);
                continue;
            };
            self.trace.dropped.push(Dropped { key: passage.key, score, reason });
        }
        Ok(Context {
            question: self.question.text.clone(),
            strategy: if self.question.strategy == Strategy::Graph { "graph" } else { "flat" },
            passages,
            tokens,
            incomplete: self.incomplete,
            trace: self.trace,
        })
    }

    fn passage(&self, id: ChunkId, score: f32) -> Result<Passage, QueryError> {
        let chunk = self.snapshot.chunk(id)?;
        let document = chunk.document()?;
        self.snapshot.guard.poll()?;
        self.snapshot.guard.hold_bytes(chunk.range().len() as u64 + PASSAGE_BYTES)?;
        let text = chunk.text()?;
        let legs = Legs {
            terms: self.terms.get(id),
            vector: self.vectors.get(id),
            named: self.named.get(&id).map_or(0.0, |named| named.0),
            link: score - self.head(id),
        };
        let (role, path) = self.path(id, &legs)?;
        Ok(Passage {
            key: chunk.key()?,
            document: document.key()?.to_owned(),
            title: document.title()?.to_owned(),
            source: document.source()?.to_owned(),
            start: chunk.range().start,
            end: chunk.range().end,
            tokens: text.len().div_ceil(4),
            text,
            role,
            score,
            legs,
            path,
        })
    }

    /// The reason for a passage: a link from a seed (for another seed only if that is the largest part of its score), a
    /// name in the question, or terms and vector.
    fn path(&self, id: ChunkId, legs: &Legs) -> Result<(Role, Vec<Step>), Damage> {
        let name = |entity| -> Result<String, Damage> {
            let Some(links) = self.snapshot.links() else { return Ok(String::new()) };
            Ok(format!("entity:{}", links.string(links.entity(entity)?.name)?))
        };
        let node = |chunk| -> Result<String, Damage> { Ok(format!("chunk:{}", self.snapshot.chunk(chunk)?.key()?)) };
        let is_seed = self.seeds.iter().any(|seed| seed.0 == id);
        let own = if is_seed { Role::Seed } else { Role::Match };
        let by_itself = |chunk| -> Result<Step, Damage> {
            let by = match (self.terms.get(chunk) > 0.0, self.vectors.get(chunk) > 0.0) {
                (true, true) => "terms and vector",
                (true, false) => "terms",
                (false, true) => "vector",
                (false, false) => "filter",
            };
            Ok(Step { by, node: node(chunk)?, weight: self.head(chunk) })
        };
        match (self.linked.get(&id), self.named.get(&id)) {
            (Some(link), _) if legs.link > if is_seed { legs.named.max(self.flat(id)) } else { 0.0 } => {
                let steps = vec![
                    by_itself(link.seed)?,
                    Step { by: "mentions", node: name(link.entity)?, weight: link.idf },
                    Step { by: "defined by", node: node(id)?, weight: link.value },
                ];
                Ok((if is_seed { Role::Seed } else { Role::Neighbour }, steps))
            }
            (_, Some((value, entity))) if legs.named > 0.0 => {
                let steps = vec![
                    Step { by: "names", node: name(*entity)?, weight: *value },
                    Step { by: "defined by", node: node(id)?, weight: self.head(id) },
                ];
                Ok((own, steps))
            }
            _ => Ok((own, vec![by_itself(id)?])),
        }
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

/// The question's vector with its space and weight.
struct QuestionVector {
    space: Space,
    components: Vec<f32>,
    weight: f32,
}

fn question_vector(
    snapshot: &Bounded<'_>,
    question: &Question,
    models: Models<'_>,
    incomplete: &mut Vec<String>,
) -> Result<Option<QuestionVector>, QueryError> {
    let first = || -> Result<Option<&Space>, QueryError> { Ok(snapshot.spaces()?.first()) };
    let space = match (&question.space, models.embedder) {
        (Some(name), _) => Some(snapshot.space(name)?),
        (None, Some(embedder)) => match snapshot.space(embedder.space()) {
            Ok(space) => Some(space),
            Err(_) => first()?,
        },
        (None, None) => first()?,
    };
    let Some(space) = space else {
        if question.vector.is_some() {
            incomplete.push("this store has no vectors: the question's vector was not used".into());
        }
        return Ok(None);
    };
    let embedder = models.embedder.filter(|model| model.space() == space.name && model.model() == space.model);
    let weight = question.vector_weight.unwrap_or_else(|| embedder.map_or(0.4, Embed::weight));
    let components = match (&question.vector, embedder) {
        (Some(vector), _) => Some(vector.clone()),
        (None, Some(embedder)) => embed(embedder, &question.text)?,
        (None, None) => {
            let Space { name, model, .. } = &space;
            incomplete.push(format!(
                "the vectors of the space {name} were made by {model}, which this program cannot run: \
                 answered without vectors"
            ));
            None
        }
    };
    let Some(mut components) = components else { return Ok(None) };
    search::unit(space, &mut components)?;
    Ok(Some(QuestionVector { space: space.clone(), components, weight: weight.clamp(0.0, 1.0) }))
}

/// The vector of a question; none where its text has none.
fn embed(embedder: &dyn Embed, text: &str) -> Result<Option<Vec<f32>>, QueryError> {
    let made = embedder.embed(&[text])?;
    let count = made.len();
    match made.into_iter().next() {
        Some(vector) if count == 1 => Ok(vector),
        _ => {
            let (model, reason) = (embedder.model().to_owned(), format!("it gave {count} vectors for one text"));
            Err(ModelError { model, reason }.into())
        }
    }
}
