//! How many relations entities have, and how many shortest paths lead through them.

use crate::error::QueryError;
use crate::index::graph::{betweenness, degrees, top};
use crate::query::analysis::Following;
use crate::snapshot::Bounded;
use serde::Serialize;

/// How many relations entities have.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Degrees {
    /// How many entities there are.
    pub entities: u64,
    /// Sum of all degrees: every relation once, or, either way, once for each of its ends.
    pub edges: u64,
    /// Mean degree.
    pub mean: f64,
    /// Largest degree.
    pub max: u64,
    /// Number of entities without relations; with 1; with 2 and 3; with 4 to 7; and so on.
    pub spread: Vec<u64>,
    /// The entities with most relations, most first; among equals by key.
    pub hubs: Vec<DegreeLine>,
    /// What the answer lacks.
    pub incomplete: Vec<String>,
}

/// An entity with its number of relations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DegreeLine {
    /// Its name.
    pub entity: String,
    /// How many relations it has.
    pub degree: u64,
}

/// How many shortest paths lead through entities.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Betweenness {
    /// How many entities there are.
    pub entities: u64,
    /// From how many of them paths were counted; the scores are exact where that is all, and else estimated.
    pub sources: u64,
    /// The entities with the highest scores, highest first; among equals by key.
    pub hubs: Vec<ScoreLine>,
    /// What the answer lacks.
    pub incomplete: Vec<String>,
}

/// An entity with a score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoreLine {
    /// Its name.
    pub entity: String,
    /// Its score.
    pub score: f64,
}

impl Bounded<'_> {
    /// See [`Snapshot::degrees`](crate::Snapshot::degrees).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn degrees(&self, following: &Following, limit: usize) -> Result<Degrees, QueryError> {
        self.guard.scope(|| {
            let relating = self.relating(&following.predicates)?;
            let graph = relating.graph();
            let found = degrees::degrees(graph, following.direction, limit, &self.guard)?;
            let mut hubs = Vec::new();
            for (node, degree) in found.hubs {
                hubs.push(DegreeLine { entity: relating.name(node, &self.guard)?, degree: degree as u64 });
            }
            Ok(Degrees {
                entities: graph.nodes() as u64,
                edges: found.edges as u64,
                mean: found.mean,
                max: found.max as u64,
                spread: found.spread.into_iter().map(|count| count as u64).collect(),
                hubs,
                incomplete: self.incomplete(),
            })
        })
    }

    /// See [`Snapshot::betweenness`](crate::Snapshot::betweenness).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn betweenness(
        &self,
        following: &Following,
        sources_max: usize,
        limit: usize,
    ) -> Result<Betweenness, QueryError> {
        self.guard.scope(|| {
            let relating = self.relating(&following.predicates)?;
            let graph = relating.graph();
            let options = betweenness::Betweenness {
                direction: following.direction,
                sources_max,
                ..betweenness::Betweenness::default()
            };
            let found = betweenness::betweenness(graph, options, &self.guard)?;
            let mut hubs = Vec::new();
            for (node, score) in top((0..).zip(found.scores), limit) {
                hubs.push(ScoreLine { entity: relating.name(node, &self.guard)?, score });
            }
            Ok(Betweenness {
                entities: graph.nodes() as u64,
                sources: found.sources as u64,
                hubs,
                incomplete: self.incomplete(),
            })
        })
    }
}
