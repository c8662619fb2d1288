//! Ask: plan, seeds, expand, rank, context, trace. The recipe stands in `ARCHITECTURE.md`, *Retrieval*.

mod beside;
mod choose;
mod community;
mod entity;
mod links;
mod passage;
mod plan;
mod vector;
mod walk;

use crate::error::QueryError;
use crate::model::Models;
use crate::query::answer::{Comparison, Context};
use crate::query::ask::plan::Plan;
use crate::query::filter::Filter;
use crate::snapshot::Bounded;

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
    /// The level of communities whose reports are read; none for all.
    pub level: Option<u32>,
    /// Constants of the walk.
    pub recipe: Recipe,
    /// Constants of [`Strategy::Sage`].
    pub sage: Sage,
}

/// How a question is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// By terms and vectors.
    Flat,
    /// Likewise, and k′ chunks that stand next to the k best in their documents.
    Neighbours,
    /// By terms and vectors, then along definition links and shared entities.
    #[default]
    Graph,
    /// Structure-aware graph expansion: by terms and vectors, and k′ of the chunks that similarity edges join to the k
    /// best, ranked among themselves.
    Sage,
    /// By the reports of the communities that the question is about, and the chunks that tell of these.
    Reports,
    /// By terms and vectors, and chunks that mention several members of the communities that the question is about.
    Subgraph,
    /// As [`Strategy::Graph`], with the reports of communities beside it in a quarter of the budget.
    Combined,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Flat, Self::Neighbours, Self::Graph, Self::Sage, Self::Reports, Self::Subgraph, Self::Combined];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Neighbours => "neighbours",
            Self::Graph => "graph",
            Self::Sage => "sage",
            Self::Reports => "reports",
            Self::Subgraph => "subgraph",
            Self::Combined => "combined",
        }
    }
}

/// Constants of [`Strategy::Sage`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sage {
    /// How much the cosine counts among the neighbours.
    pub vector: f32,
    /// How much BM25 counts among the neighbours.
    pub terms: f32,
    /// Seeds that a neighbour is joined to at least.
    pub seeds_min: usize,
    /// Neighbours below this share of the best one's score are left out.
    pub cutoff: f32,
}

impl Default for Sage {
    fn default() -> Self {
        Self { vector: 0.4, terms: 0.6, seeds_min: 1, cutoff: 0.0 }
    }
}

/// Constants of the walk, measured on three multi-hop sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recipe {
    /// Best chunks that the walk starts from, at most k.
    pub seeds_max: usize,
    /// What a chunk gains, when seeds are chosen, for the share of the question that no seed before it has.
    pub cover: f32,
    /// Share of an entity's idf that its definitions get where the question names it.
    pub named: f32,
    /// Entities with more definitions than this don't raise them.
    pub definitions_max: usize,
    /// Share of a link's value that its target gets.
    pub link: f32,
    /// A target stays below this share of its best seed.
    pub bound: f32,
    /// How much of a question, beside what its title says, a seed must lack for its links to count in full: 1 over this. 0
    /// lets all count in full.
    pub gate: f32,
    /// Where several chunks define an entity, how much their likeness to the seed counts,
    pub rivals_vector: f32,
    /// and the idf of each entity that both mention;
    pub rivals_shared: f32,
    /// one that fits worse than the best by this gets 1/e of its share; 0 gives all the same.
    pub rivals_spread: f32,
    /// Likewise where the question names the entity; what counts there is the flat score.
    pub rivals_named_spread: f32,
    /// How much more a definition gets for the share of the question that it adds.
    pub definition_gain: f32,
    /// What the passages that mention an entity get that nothing defines, together.
    pub undefined: f32,
    /// At most so many of them.
    pub undefined_max: usize,
    /// How much a passage that shares an entity with a seed gets for the share of the question that it adds.
    pub gain: f32,
    /// Entities that more chunks mention join no passages.
    pub mentions_max: usize,
    /// What the passage that the walk of two steps reaches best gets of it.
    pub walk: f32,
    /// How much of the walk begins at the entities that the question names, beside 1 at the seeds.
    pub walk_named: f32,
    /// Share of a similarity edge's weight that its target gets where it adds to the question; 0 follows none.
    pub similar: f32,
    /// Weaker similarity edges don't count,
    pub similar_min: f32,
    /// nor those of a seed behind so many.
    pub similar_max: usize,
    /// What the chunks next to a seed get where they add to the question; 0 for nothing.
    pub adjoining: f32,
    /// Passages that links reached from which shared entities are followed once more.
    pub again_max: usize,
    /// What a passage gains, when passages are chosen, for the share of the question that none before it has,
    pub adds: f32,
    /// and for the idf of the strongest entity that joins it to one of them.
    pub joins: f32,
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            seeds_max: 3,
            cover: 0.2,
            named: 0.4,
            definitions_max: 10,
            link: 0.85,
            bound: 0.98,
            gate: 3.0,
            rivals_vector: 1.5,
            rivals_shared: 0.05,
            rivals_spread: 0.3,
            rivals_named_spread: 0.1,
            definition_gain: 1.0,
            undefined: 0.5,
            undefined_max: 5,
            gain: 3.0,
            mentions_max: 80,
            walk: 0.3,
            walk_named: 0.5,
            similar: 0.7,
            similar_min: 0.5,
            similar_max: 10,
            adjoining: 1.0,
            again_max: 3,
            adds: 0.6,
            joins: 0.03,
        }
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
            level: None,
            recipe: Recipe::default(),
            sage: Sage::default(),
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
            let ranked = match question.strategy {
                Strategy::Flat => plan.ranked(plan.count())?,
                Strategy::Graph => {
                    plan.walk(models)?;
                    plan.chosen()?
                }
                Strategy::Neighbours | Strategy::Sage => plan.ranked_beside()?,
                Strategy::Reports => {
                    let told = plan.communities()?;
                    plan.report(&told, 1)?;
                    plan.reported(&told)?
                }
                Strategy::Subgraph => {
                    let told = plan.communities()?;
                    plan.subgraph(&told)?
                }
                Strategy::Combined => {
                    plan.report_beside()?;
                    plan.walk(models)?;
                    plan.chosen()?
                }
            };
            plan.context(ranked)
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
