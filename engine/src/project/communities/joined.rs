//! The graph that communities are found in, pair by pair.

use crate::error::QueryError;
use crate::project::communities::graph::entity_graph;
use crate::projection::Links;
use crate::snapshot::Bounded;
use hedgerow_format::{ChunkId, EntitySlot};
use serde::Serialize;
use std::ops::ControlFlow;

/// Bytes that the graph takes for a pair of entities in a chunk or a relation, while it is made.
const PAIR_BYTES: u64 = 44;
/// Bytes that it takes for an entity.
const ENTITY_BYTES: u64 = 32;
/// Entities of one chunk that are joined at most; of more, none is.
const MENTIONS_MAX: u64 = 64;

/// A part of the graph that communities are found in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JoinedPart<'g> {
    /// An entity that is joined to another one.
    Entity {
        /// Its name, which no other entity has.
        name: &'g str,
        /// Its type; may be empty.
        kind: &'g str,
    },
    /// Two entities that relations join, or chunks that mention both.
    Pair {
        /// Name of one.
        one: &'g str,
        /// Name of the other.
        other: &'g str,
        /// The weight of all that joins them.
        weight: f64,
    },
}

/// What was visited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JoinedDumped {
    /// How many entities.
    pub entities: u64,
    /// How many pairs.
    pub pairs: u64,
    /// What the answer lacks.
    pub incomplete: Vec<String>,
}

impl Bounded<'_> {
    /// Visits the graph that communities are found in, by the rules of those that there are: every entity that is joined to another,
    /// and then every pair once, ascending by the keys of both. The visit ends where the visitor breaks it off. Reads and checks all links;
    /// holds about 44 bytes for each relation and for each pair of entities in a chunk.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn dump_joined(
        &self,
        visit: &mut dyn FnMut(JoinedPart<'_>) -> ControlFlow<()>,
    ) -> Result<JoinedDumped, QueryError> {
        self.guard.scope(|| {
            let mut dumped = JoinedDumped { incomplete: self.incomplete(), ..JoinedDumped::default() };
            let Some(links) = self.links() else { return Ok(dumped) };
            // The graph is made as a writer makes it, of links that are its own; these may be a stranger's.
            links.verify()?;
            let co_mentions = self.community_rules().unwrap_or_default().co_mentions;
            self.hold_graph(links, co_mentions)?;
            let graph = entity_graph(self, links, co_mentions)?;
            let row = |node: usize| links.entity(EntitySlot(u32::try_from(node).unwrap_or(u32::MAX)));
            let mut pace = self.guard.pace();
            for node in (0..graph.nodes()).filter(|node| graph.neighbours(*node).next().is_some()) {
                pace.step()?;
                let row = row(node)?;
                dumped.entities += 1;
                let part = JoinedPart::Entity { name: links.string(row.name)?, kind: links.string(row.kind)? };
                if visit(part).is_break() {
                    return Ok(dumped);
                }
            }
            for node in 0..graph.nodes() {
                pace.step()?;
                for (other, weight) in graph.neighbours(node).filter(|(other, _)| *other > node) {
                    pace.step()?;
                    let (one, other) = (links.string(row(node)?.name)?, links.string(row(other)?.name)?);
                    dumped.pairs += 1;
                    if visit(JoinedPart::Pair { one, other, weight }).is_break() {
                        return Ok(dumped);
                    }
                }
            }
            Ok(dumped)
        })
    }

    /// Counts what the graph takes at most.
    fn hold_graph(&self, links: &Links, co_mentions: bool) -> Result<(), QueryError> {
        let entities = links.entities()?.len();
        self.guard.hold_bytes((entities as u64).saturating_mul(ENTITY_BYTES))?;
        let mut pace = self.guard.pace();
        for entity in (0..u32::try_from(entities).unwrap_or(u32::MAX)).map(EntitySlot) {
            pace.step()?;
            self.guard.hold_bytes(links.relations_from(entity)?.iter().count() as u64 * PAIR_BYTES)?;
        }
        for chunk in (0..links.entry().chunks_end).map(ChunkId).filter(|_| co_mentions) {
            pace.step()?;
            let mentions = (links.mentions(chunk)?.iter().count() as u64).min(MENTIONS_MAX);
            self.guard.hold_bytes(mentions * mentions.saturating_sub(1) / 2 * PAIR_BYTES)?;
        }
        Ok(())
    }
}
