//! The shortest paths between two entities along relations.

use crate::error::QueryError;
use crate::index::graph::Direction;
use crate::index::graph::paths::{Cost, Route, paths};
use crate::projection::Links;
use crate::query::analysis::{Following, LINE_BYTES, Relating};
use crate::query::{EdgeKind, PathEdge};
use crate::snapshot::Bounded;
use hedgerow_format::{EntitySlot, Key};
use serde::Serialize;

/// What a relation costs on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathCost {
    /// One, whatever it weighs.
    #[default]
    Hops,
    /// The inverse of its weight: strong relations are near.
    Inverse,
    /// Its weight, taken for a length.
    Weight,
}

/// How paths are searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathOptions {
    /// Which relations paths lead along.
    pub following: Following,
    /// What a relation costs.
    pub cost: PathCost,
    /// Paths that are returned.
    pub count: usize,
    /// Entities that may be visited.
    pub visited_max: usize,
}

impl Default for PathOptions {
    fn default() -> Self {
        let visited_max = Route::default().visited_max;
        Self { following: Following::default(), cost: PathCost::default(), count: 1, visited_max }
    }
}

/// Paths between two entities.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FoundPaths {
    /// The cheapest ones, cheapest first; of equals those with fewer relations, then by the keys of their entities.
    pub paths: Vec<FoundPath>,
    /// How many entities were visited.
    pub visited: u64,
    /// Whether there are no more paths than these, or as many as were asked for; else the search gave up.
    pub complete: bool,
    /// What the answer lacks.
    pub incomplete: Vec<String>,
}

/// One path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FoundPath {
    /// What its relations cost together.
    pub cost: f64,
    /// Its relations in order; none where a path begins at its end.
    pub edges: Vec<PathEdge>,
}

impl Bounded<'_> {
    /// See [`Snapshot::paths`](crate::Snapshot::paths).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn paths(&self, from: Key, to: Key, options: &PathOptions) -> Result<FoundPaths, QueryError> {
        self.guard.scope(|| {
            let incomplete = self.incomplete();
            let relating = self.relating(&options.following.predicates)?;
            let (Some(links), Some(first), Some(last)) = (relating.links, relating.node(from)?, relating.node(to)?)
            else {
                return Ok(FoundPaths { complete: true, incomplete, ..FoundPaths::default() });
            };
            let route = Route {
                direction: options.following.direction,
                cost: match options.cost {
                    PathCost::Hops => Cost::Hops,
                    PathCost::Inverse => Cost::Inverse,
                    PathCost::Weight => Cost::Of(&f64::from),
                },
                count: options.count,
                visited_max: options.visited_max,
            };
            let found = paths(relating.graph(), (first, last), &route, &self.guard)?;
            let mut drawn = Vec::new();
            for path in found.found {
                let mut edges = Vec::new();
                for pair in path.nodes.windows(2) {
                    let [from, to] = pair else { continue };
                    edges.extend(self.step(&relating, links, (*from, *to), options)?);
                }
                drawn.push(FoundPath { cost: path.cost, edges });
            }
            let (visited, complete) = (found.visited as u64, found.complete);
            Ok(FoundPaths { paths: drawn, visited, complete, incomplete })
        })
    }

    /// The relation that a path takes from one entity to the next: the cheapest, or the heaviest where all cost the same; then
    /// one along its direction, then the first label.
    fn step(
        &self,
        relating: &Relating<'_>,
        links: &Links,
        (from, to): (u32, u32),
        options: &PathOptions,
    ) -> Result<Option<PathEdge>, QueryError> {
        let Following { predicates, direction } = &options.following;
        let (mut best, mut pace): (Option<(f32, bool, &str)>, _) = (None, self.guard.pace());
        let node = EntitySlot(from);
        for (row, reversed) in [(links.relations_from(node)?, false), (links.relations_to(node)?, true)] {
            if *direction == if reversed { Direction::Out } else { Direction::In } {
                continue;
            }
            pace.steps(row.len())?;
            for (_, label, weight) in row.iter().filter(|(other, _, _)| other.0 == to) {
                let label = links.predicate(label)?;
                let is_wanted = predicates.is_empty() || predicates.iter().any(|known| known == label);
                let is_better = |known: f32| match options.cost {
                    PathCost::Weight => weight < known,
                    PathCost::Hops | PathCost::Inverse => weight > known,
                };
                if is_wanted && best.is_none_or(|(known, _, _)| is_better(known)) {
                    best = Some((weight, reversed, label));
                }
            }
        }
        let Some((weight, reversed, label)) = best else { return Ok(None) };
        self.guard.hold_bytes(label.len() as u64 + LINE_BYTES)?;
        let [from, to] = [relating.name(from, &self.guard)?, relating.name(to, &self.guard)?];
        Ok(Some(PathEdge {
            from: format!("entity:{from}"),
            edge: EdgeKind::Relations,
            label: label.to_owned(),
            reversed,
            to: format!("entity:{to}"),
            weight,
        }))
    }
}
