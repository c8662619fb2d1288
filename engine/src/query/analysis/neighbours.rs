//! What an entity is related to, and what several entities have in common.

use crate::error::QueryError;
use crate::index::graph::neighbours::{Measure, in_common};
use crate::index::graph::{Direction, top};
use crate::query::analysis::{Following, LINE_BYTES, Relating};
use crate::snapshot::Bounded;
use hedgerow_format::{EntitySlot, Key};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Which neighbours to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourOptions {
    /// Which relations make neighbours.
    pub following: Following,
    /// How much a neighbour in common says.
    pub measure: Measure,
    /// Neighbours that are returned.
    pub limit: usize,
}

impl Default for NeighbourOptions {
    fn default() -> Self {
        Self { following: Following::default(), measure: Measure::default(), limit: 20 }
    }
}

/// Neighbours of one entity, or those that several have in common.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Neighbours {
    /// How many there are.
    pub count: u64,
    /// Sum of all their scores: for several entities, how near they are to each other.
    pub score: f64,
    /// Those with the highest scores, highest first; among equals by key.
    pub neighbours: Vec<NeighbourLine>,
    /// What the answer lacks.
    pub incomplete: Vec<String>,
}

/// A neighbour.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NeighbourLine {
    /// Its name.
    pub entity: String,
    /// The sum of the weights of the relations with it; for several entities, how much it says that they share it.
    pub score: f64,
    /// Labels of the relations with one entity, in the order of bytes; empty for several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

impl Bounded<'_> {
    /// See [`Snapshot::neighbours`](crate::Snapshot::neighbours).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn neighbours(&self, entities: &[Key], options: &NeighbourOptions) -> Result<Neighbours, QueryError> {
        self.guard.scope(|| {
            let mut distinct = entities.to_vec();
            distinct.sort_unstable();
            distinct.dedup();
            let mut found = match distinct.as_slice() {
                [] => Neighbours::default(),
                [one] => self.neighbours_of(*one, options)?,
                several => self.in_common(several, options)?,
            };
            found.incomplete = self.incomplete();
            Ok(found)
        })
    }

    /// The neighbours of one entity by the weight of the relations with it.
    fn neighbours_of(&self, entity: Key, options: &NeighbourOptions) -> Result<Neighbours, QueryError> {
        let Following { predicates, direction } = &options.following;
        // Reads the entity's own relations only, so that a choice of labels copies nothing.
        let relating = self.relating(&[])?;
        let (Some(links), Some(node)) = (relating.links, relating.node(entity)?) else {
            return Ok(Neighbours::default());
        };
        let mut around: BTreeMap<u32, (f64, BTreeSet<&str>)> = BTreeMap::new();
        let mut pace = self.guard.pace();
        for (row, skipped) in [
            (links.relations_from(EntitySlot(node))?, Direction::In),
            (links.relations_to(EntitySlot(node))?, Direction::Out),
        ] {
            if *direction == skipped {
                continue;
            }
            for (other, label, weight) in row.iter() {
                pace.step()?;
                let label = links.predicate(label)?;
                if other.0 == node || !(predicates.is_empty() || predicates.iter().any(|known| known == label)) {
                    continue;
                }
                self.guard.hold_bytes(LINE_BYTES)?;
                let (sum, labels) = around.entry(other.0).or_default();
                *sum += f64::from(weight);
                labels.insert(label);
            }
        }
        let score = around.values().map(|(sum, _)| sum).sum();
        self.guard.hold::<(u32, f64)>(around.len())?;
        let best = top(around.iter().map(|(other, (sum, _))| (*other, *sum)), options.limit);
        let mut neighbours = Vec::new();
        for (other, score) in best {
            let labels = around.get(&other).map(|(_, labels)| labels.iter().map(|label| (*label).to_owned()).collect());
            let entity = relating.name(other, &self.guard)?;
            neighbours.push(NeighbourLine { entity, score, labels: labels.unwrap_or_default() });
        }
        Ok(Neighbours { count: around.len() as u64, score, neighbours, incomplete: Vec::new() })
    }

    /// What several entities have in common; nothing where the projection lacks one of them.
    fn in_common(&self, entities: &[Key], options: &NeighbourOptions) -> Result<Neighbours, QueryError> {
        let Following { predicates, direction } = &options.following;
        let relating: Relating<'_> = self.relating(predicates)?;
        self.guard.hold::<u32>(entities.len())?;
        let mut nodes = Vec::with_capacity(entities.len());
        for entity in entities {
            let Some(node) = relating.node(*entity)? else { return Ok(Neighbours::default()) };
            nodes.push(node);
        }
        let ranked = (*direction, options.measure);
        let found = in_common(relating.graph(), ranked, &nodes, options.limit, &self.guard)?;
        let mut neighbours = Vec::new();
        for (node, score) in found.best {
            neighbours.push(NeighbourLine { entity: relating.name(node, &self.guard)?, score, labels: Vec::new() });
        }
        Ok(Neighbours { count: found.count as u64, score: found.score, neighbours, incomplete: Vec::new() })
    }
}
