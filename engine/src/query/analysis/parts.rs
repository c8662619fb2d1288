//! Which entities hang together by relations.

use crate::error::QueryError;
use crate::index::graph::{Direction, components, top};
use crate::query::analysis::{Relating, slot};
use crate::snapshot::Bounded;
use serde::Serialize;
use std::cmp::Reverse;

/// The parts of the graph of relations between which no relation leads.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Components {
    /// How many entities there are.
    pub entities: u64,
    /// How many components there are.
    pub components: u64,
    /// How many of them are one entity alone.
    pub alone: u64,
    /// The largest of them, largest first; among equals that with the lowest key first.
    pub largest: Vec<ComponentLine>,
    /// What the answer lacks.
    pub incomplete: Vec<String>,
}

/// A component.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComponentLine {
    /// How many entities it has.
    pub size: u64,
    /// Names of those with most relations, most first.
    pub foremost: Vec<String>,
}

impl Bounded<'_> {
    /// See [`Snapshot::components`](crate::Snapshot::components).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn components(&self, predicates: &[String], limit: usize, named: usize) -> Result<Components, QueryError> {
        self.guard.scope(|| {
            let relating = self.relating(predicates)?;
            let found = components::components(relating.graph(), &self.guard)?;
            self.guard.hold::<(u32, f64)>(found.sizes.len())?;
            let sizes = (0_u32..).zip(found.sizes.iter().map(|size| f64::from(*size)));
            let largest = top(sizes, limit);
            self.guard.hold::<ComponentLine>(largest.len())?;
            let mut lines: Vec<ComponentLine> = Vec::with_capacity(largest.len());
            for (component, _) in &largest {
                let size = found.sizes.get(slot(*component)).copied().unwrap_or_default();
                lines.push(ComponentLine { size: size.into(), foremost: Vec::new() });
            }
            self.name_foremost(&relating, &found, (&largest, named), &mut lines)?;
            Ok(Components {
                entities: found.of_nodes.len() as u64,
                components: found.sizes.len() as u64,
                alone: found.sizes.iter().filter(|size| **size == 1).count() as u64,
                largest: lines,
                incomplete: self.incomplete(),
            })
        })
    }

    /// Puts the names of the entities with most relations into the lines of components.
    fn name_foremost(
        &self,
        relating: &Relating<'_>,
        found: &components::Components,
        (largest, named): (&[(u32, f64)], usize),
        lines: &mut [ComponentLine],
    ) -> Result<(), QueryError> {
        let graph = relating.graph();
        self.guard.hold::<usize>(found.sizes.len())?;
        let mut places = vec![usize::MAX; found.sizes.len()];
        for (place, (component, _)) in largest.iter().enumerate() {
            if let Some(known) = places.get_mut(slot(*component)) {
                *known = place;
            }
        }
        let listed = lines.iter().fold(0_u64, |sum, line| sum.saturating_add(line.size));
        self.guard.hold::<(usize, Reverse<usize>, u32)>(usize::try_from(listed).unwrap_or(usize::MAX))?;
        let (mut members, mut pace) = (Vec::new(), self.guard.pace());
        for (node, component) in (0_u32..).zip(&found.of_nodes) {
            pace.step()?;
            let place = places.get(slot(*component)).copied().unwrap_or(usize::MAX);
            if place != usize::MAX {
                members.push((place, Reverse(graph.degree(Direction::Both, node)), node));
            }
        }
        members.sort_unstable();
        for component in members.chunk_by(|a, b| a.0 == b.0) {
            for (place, _, node) in component.iter().take(named) {
                let name = relating.name(*node, &self.guard)?;
                lines.get_mut(*place).into_iter().for_each(|line| line.foremost.push(name.clone()));
            }
        }
        Ok(())
    }
}
