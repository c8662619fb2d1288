//! All of the graph of relations, part by part.

use crate::error::QueryError;
use crate::query::analysis::Relating;
use crate::snapshot::Bounded;
use hedgerow_format::EntitySlot;
use roaring::RoaringBitmap;
use serde::Serialize;
use std::ops::ControlFlow;

/// A part of the graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GraphPart<'g> {
    /// An entity.
    Entity {
        /// Its name, which no other entity has.
        name: &'g str,
        /// Its type; may be empty.
        kind: &'g str,
    },
    /// A relation.
    Relation {
        /// Name of the entity that it starts from.
        subject: &'g str,
        /// Its label.
        predicate: &'g str,
        /// Name of the entity that it leads to.
        object: &'g str,
        /// Its weight.
        weight: f32,
    },
}

/// What was dumped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GraphDumped {
    /// How many entities.
    pub entities: u64,
    /// How many relations.
    pub relations: u64,
    /// Whether the limit left relations out.
    pub truncated: bool,
    /// What the answer lacks.
    pub incomplete: Vec<String>,
}

/// Whose turn it is.
type Visit<'v> = &'v mut dyn FnMut(GraphPart<'_>) -> ControlFlow<()>;

impl Bounded<'_> {
    /// See [`Snapshot::dump_graph`](crate::Snapshot::dump_graph).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn dump_graph(&self, predicates: &[String], limit: usize, visit: Visit<'_>) -> Result<GraphDumped, QueryError> {
        self.guard.scope(|| {
            let mut dumped = GraphDumped { incomplete: self.incomplete(), ..GraphDumped::default() };
            let relating = self.relating(&[])?;
            let mut ends = RoaringBitmap::new();
            // Entities come before relations, so that what is read need not be held; those of a part are its ends.
            let is_part = limit != usize::MAX || !predicates.is_empty();
            if is_part {
                // A bitmap takes at most two bytes a number, or a bit for each that there could be, whichever is less.
                self.guard.hold_bytes((relating.graph().nodes() as u64).saturating_mul(2))?;
                dumped.truncated = self.each_relation(&relating, predicates, limit, &mut |subject, _, object, _| {
                    ends.insert(subject);
                    ends.insert(object);
                    Ok(ControlFlow::Continue(()))
                })?;
            }
            let mut pace = self.guard.pace();
            for node in relating.graph().numbers().filter(|node| !is_part || ends.contains(*node)) {
                pace.step()?;
                let Some(links) = relating.links else { break };
                let row = links.entity(EntitySlot(node))?;
                dumped.entities += 1;
                let part = GraphPart::Entity { name: links.string(row.name)?, kind: links.string(row.kind)? };
                if visit(part).is_break() {
                    return Ok(dumped);
                }
            }
            let relations = &mut dumped.relations;
            self.each_relation(&relating, predicates, limit, &mut |subject, label, object, weight| {
                let Some(links) = relating.links else { return Ok(ControlFlow::Break(())) };
                let name = |node: u32| links.string(links.entity(EntitySlot(node))?.name);
                *relations += 1;
                let (subject, object) = (name(subject)?, name(object)?);
                Ok(visit(GraphPart::Relation { subject, predicate: links.predicate(label)?, object, weight }))
            })?;
            Ok(dumped)
        })
    }

    /// Visits relations, ascending by subject, object and label: subject, label, object, weight. Whether the limit left any
    /// out.
    fn each_relation(
        &self,
        relating: &Relating<'_>,
        predicates: &[String],
        limit: usize,
        visit: &mut dyn FnMut(u32, u32, u32, f32) -> Result<ControlFlow<()>, QueryError>,
    ) -> Result<bool, QueryError> {
        let Some(links) = relating.links else { return Ok(false) };
        let (mut left, mut pace) = (limit, self.guard.pace());
        for subject in relating.graph().numbers() {
            pace.step()?;
            for (object, label, weight) in links.relations_from(EntitySlot(subject))?.iter() {
                pace.step()?;
                if !predicates.is_empty() {
                    let label = links.predicate(label)?;
                    if !predicates.iter().any(|predicate| predicate == label) {
                        continue;
                    }
                }
                if left == 0 {
                    return Ok(true);
                }
                left -= 1;
                if visit(subject, label, object.0, weight)?.is_break() {
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }
}
