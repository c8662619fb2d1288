//! A question on its way: flat scores, then what the walk adds, then passages under a budget.

use crate::error::{Damage, QueryError};
use crate::model::Models;
use crate::query::answer::{Context, Dropped, ReportPassage, Trace, VectorTrace};
use crate::query::ask::beside::Beside;
use crate::query::ask::community::Held;
use crate::query::ask::links::Link;
use crate::query::ask::vector::question_vector;
use crate::query::ask::walk::Share;
use crate::query::ask::{Question, Strategy};
use crate::query::legs::{self, Coverage, Scores, Terms, Vectors};
use crate::query::{node, rank};
use crate::snapshot::{Bounded, Space};
use hedgerow_format::{ChunkId, EntitySlot};
use roaring::RoaringBitmap;
use std::collections::{BTreeMap, BTreeSet};

/// Chunks ranked just below the passages that the trace tells of.
const DROPPED_TOLD: usize = 3;

/// Below the bound there is so much room for those that would pass the first seed.
const ORDER_KEPT: f32 = 1e-3;
const NO_EDGES: &str =
    "there are no similarity edges: answered by terms and vectors alone; `hedgerow edges` builds them";

/// A question on its way.
pub(super) struct Plan<'s, 'q> {
    pub snapshot: &'s Bounded<'s>,
    pub question: &'q Question,
    pub terms: Scores,
    pub cosines: Scores,
    pub vectors: Vectors<'s>,
    pub coverage: Coverage,
    /// What definitions get of the question's names, by chunk.
    pub named: BTreeMap<ChunkId, (f32, EntitySlot)>,
    /// The strongest link to a chunk.
    pub linked: BTreeMap<ChunkId, Link>,
    /// The strongest link to a chunk out of what a link reached.
    pub again: BTreeMap<ChunkId, Link>,
    /// What the walk of two steps gives a chunk.
    pub walked: BTreeMap<ChunkId, Share>,
    /// What a chunk gained when passages were chosen.
    pub choice: BTreeMap<ChunkId, f32>,
    /// How a chunk came beside a seed.
    pub beside: BTreeMap<ChunkId, Beside>,
    /// Through which community a chunk was found.
    pub held: BTreeMap<ChunkId, Held>,
    /// Reports that are told.
    pub reports: Vec<ReportPassage>,
    /// The question's vector, of length 1.
    pub vector: Option<Vec<f32>>,
    pub seeds: Vec<(ChunkId, f32)>,
    /// The best by their heads, of which the seeds are some.
    pub best: Vec<(ChunkId, f32)>,
    pub allowed: Option<RoaringBitmap>,
    incomplete: Vec<String>,
    pub trace: Trace,
}

impl<'s, 'q> Plan<'s, 'q> {
    /// Flat retrieval: H = (1 − w) · BM25 / max + w · cosine / max.
    pub fn of(snapshot: &'s Bounded<'s>, question: &'q Question, models: Models<'_>) -> Result<Self, QueryError> {
        let allowed = question.filter.as_ref().map(|filter| node::allowed(snapshot, filter)).transpose()?;
        let mut incomplete = match question.strategy {
            Strategy::Graph | Strategy::Reports | Strategy::Subgraph | Strategy::Combined => snapshot.incomplete(),
            Strategy::Sage if snapshot.edges().next().is_none() => vec![NO_EDGES.into()],
            Strategy::Flat | Strategy::Neighbours | Strategy::Sage => Vec::new(),
        };
        let Terms { scores: mut terms, coverage, traces } = legs::terms(snapshot, &question.text)?;
        let vector = question_vector(snapshot, question, models, &mut incomplete)?;
        let (mut weight, mut own) = (0.0, None);
        let mut cosines = Scores::none(snapshot)?;
        let mut vectors = Vectors::none();
        let mut trace = Trace { generation: snapshot.generation(), terms: traces, ..Trace::default() };
        trace.chunks = match &allowed {
            Some(allowed) => allowed.len(),
            None => snapshot.statistics()?.chunks,
        };
        if let Some(vector) = vector {
            vectors = Vectors::of(snapshot, &vector.space)?;
            let scored = vectors.cosines(snapshot, &vector.space, &vector.components)?;
            cosines = Scores::of(snapshot, &scored)?;
            let compared = scored.len() as u64;
            weight = vector.weight;
            own = Some(vector.components);
            let Space { name, model, .. } = vector.space;
            trace.vector = Some(VectorTrace { space: name, model, weight, compared });
        }
        legs::restrict(&mut terms, allowed.as_ref());
        legs::restrict(&mut cosines, allowed.as_ref());
        terms.scale(1.0 - weight);
        cosines.scale(weight);
        Ok(Self {
            snapshot,
            question,
            terms,
            cosines,
            vectors,
            coverage,
            named: BTreeMap::new(),
            linked: BTreeMap::new(),
            again: BTreeMap::new(),
            walked: BTreeMap::new(),
            choice: BTreeMap::new(),
            beside: BTreeMap::new(),
            held: BTreeMap::new(),
            reports: Vec::new(),
            vector: own,
            seeds: Vec::new(),
            best: Vec::new(),
            allowed,
            incomplete,
            trace,
        })
    }

    /// Says what the answer lacks.
    pub fn lacks(&mut self, what: &str) {
        self.incomplete.push(what.to_owned());
    }

    pub fn flat(&self, chunk: ChunkId) -> f32 {
        self.terms.get(chunk) + self.cosines.get(chunk)
    }

    pub fn head(&self, chunk: ChunkId) -> f32 {
        self.flat(chunk) + self.named.get(&chunk).map_or(0.0, |named| named.0)
    }

    /// F = max(H, min(H + 0.85 · B, 0.98 · best)) + the walk's: along a link no neighbour passes its best seed.
    pub fn score(&self, chunk: ChunkId) -> f32 {
        self.linked_score(chunk) + self.walked.get(&chunk).map_or(0.0, |share| share.value)
    }

    /// What a chunk has of itself and of the strongest link to it.
    pub fn linked_score(&self, chunk: ChunkId) -> f32 {
        self.strongest(chunk).map_or_else(|| self.head(chunk), |link| self.by_link(chunk, link))
    }

    /// The link that gives a chunk most, if it gives anything.
    pub fn strongest(&self, chunk: ChunkId) -> Option<&Link> {
        let links = self.linked.get(&chunk).into_iter().chain(self.again.get(&chunk));
        let mut best: Option<&Link> = None;
        for link in links {
            let least = best.map_or_else(|| self.head(chunk), |best| self.by_link(chunk, best));
            if self.by_link(chunk, link) > least {
                best = Some(link);
            }
        }
        best
    }

    /// What a chunk has of itself and of a link to it.
    pub fn by_link(&self, chunk: ChunkId, link: &Link) -> f32 {
        let (head, recipe) = (self.head(chunk), &self.question.recipe);
        head.max((head + recipe.link * link.value).min(recipe.bound * link.best))
    }

    pub fn is_seed(&self, chunk: ChunkId) -> bool {
        self.seeds.iter().any(|(seed, _)| *seed == chunk)
    }

    /// Name of an entity; empty for none.
    pub fn name_of(&self, entity: Option<EntitySlot>) -> Result<&str, Damage> {
        match (self.snapshot.links(), entity) {
            (Some(links), Some(entity)) => links.string(links.entity(entity)?.name),
            _ => Ok(""),
        }
    }

    pub fn may_choose(&self, chunk: ChunkId) -> bool {
        self.snapshot.is_live(chunk) && self.allowed.as_ref().is_none_or(|allowed| allowed.contains(chunk.0))
    }

    /// The heads of all chunks, for ranking.
    pub fn heads(&self) -> Result<Scores, QueryError> {
        self.snapshot.guard.hold::<f32>(self.terms.by_chunk.len())?;
        let both = self.terms.by_chunk.iter().zip(&self.cosines.by_chunk);
        let mut scores = Scores { by_chunk: both.map(|(a, b)| a + b).collect() };
        for chunk in self.named.keys() {
            if let Some(score) = scores.by_chunk.get_mut(chunk.index()) {
                *score = self.head(*chunk);
            }
        }
        Ok(scores)
    }

    /// Chunks that have more than their flat score.
    fn changed(&self) -> impl Iterator<Item = &ChunkId> {
        self.named.keys().chain(self.linked.keys()).chain(self.again.keys()).chain(self.walked.keys())
    }

    /// The best chunks by all that is known of them. None passes the first seed; those that would keep their order below it.
    ///
    /// No score falls below the head, so what was not among the best by that, and has nothing more, is not among these.
    pub fn ranked(&self, count: usize) -> Result<Vec<(ChunkId, f32)>, QueryError> {
        let Some((first, _)) = self.seeds.first() else {
            return rank::top(self.snapshot, &self.heads()?, self.allowed.as_ref(), count);
        };
        let most = self.score(*first);
        let bound = self.question.recipe.bound * most;
        let bounded = |chunk| {
            let score = self.score(chunk);
            let passes = score > bound && chunk != *first;
            if passes { bound - ORDER_KEPT * (1.0 - (score / (2.0 * most)).min(1.0)) } else { score }
        };
        let scored = self.candidates()?.into_iter().map(|chunk| (chunk, bounded(chunk))).collect();
        rank::best(self.snapshot, scored, count)
    }

    /// Chunks that may be among the best: by their heads, or because they have more.
    pub fn candidates(&self) -> Result<BTreeSet<ChunkId>, QueryError> {
        let changed = self.named.len() + self.linked.len() + self.again.len() + self.walked.len();
        self.snapshot.guard.hold::<[(ChunkId, f32); 3]>(self.best.len() + changed)?;
        Ok(self.best.iter().map(|(chunk, _)| chunk).chain(self.changed()).copied().collect())
    }

    /// Passages that are ranked: those that are asked for, and what the trace tells of beyond them.
    pub fn count(&self) -> usize {
        self.question.seeds.saturating_add(self.question.neighbours).saturating_add(DROPPED_TOLD)
    }

    /// Fills the budget, and says what was left out.
    pub fn context(mut self, ranked: Vec<(ChunkId, f32)>) -> Result<Context, QueryError> {
        let count = self.question.seeds.saturating_add(self.question.neighbours);
        let mut tokens = self.reports.iter().map(|report| report.tokens).sum();
        let mut passages = Vec::new();
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
            strategy: self.question.strategy.name(),
            reports: self.reports,
            passages,
            tokens,
            incomplete: self.incomplete,
            trace: self.trace,
        })
    }
}
