//! The graph that `expand` walks: one step from a node along one kind of edge.

use crate::error::QueryError;
pub use crate::index::graph::Direction;
use crate::query::Node;
use crate::snapshot::Bounded;
use hedgerow_format::segment::{EvidenceRow, RelationRow};
use hedgerow_format::{ChunkId, EntitySlot, Key};
use serde::Serialize;
use std::collections::BTreeMap;

/// A kind of edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeKind {
    /// Chunk to the entities that it mentions.
    Mentions,
    /// Entity to entity.
    Relations,
    /// Chunk to chunk, by similarity.
    Similar,
    /// Entity to the chunk that defines it.
    Defines,
    /// Chunk to the next chunk of its document.
    Next,
}

impl EdgeKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Mentions, Self::Relations, Self::Similar, Self::Defines, Self::Next];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mentions => "mentions",
            Self::Relations => "relations",
            Self::Similar => "similar",
            Self::Defines => "defines",
            Self::Next => "next",
        }
    }
}

/// Live relations of an entity: label, other end, whether it is the object.
pub(super) type Relations<'s> = BTreeMap<(&'s str, Key, bool), Relation>;

/// Bytes that a relation takes in a map.
pub(super) const RELATION_BYTES: u64 = 128;

/// One edge out of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Edge<'s> {
    pub kind: EdgeKind,
    /// The predicate of a relation; else empty.
    pub label: &'s str,
    pub target: Node,
    pub weight: f32,
    /// Whether the edge is walked against its direction.
    pub reversed: bool,
}

/// The live sources of a relation, over all segments.
#[derive(Clone, Debug, Default)]
pub(super) struct Relation {
    pub weight: f32,
    pub sources: Vec<EvidenceRow>,
}

fn edge(label: &str, other: Key, weight: f32, reversed: bool) -> Edge<'_> {
    Edge { kind: EdgeKind::Relations, label, target: Node::Entity(other), weight, reversed }
}

impl Bounded<'_> {
    /// Every edge of a kind out of a node that is followed in a direction.
    pub(super) fn edges_of(
        &self,
        node: Node,
        kind: EdgeKind,
        direction: Direction,
    ) -> Result<Vec<Edge<'_>>, QueryError> {
        self.guard.poll()?;
        let (forward, backward) = (direction != Direction::In, direction != Direction::Out);
        let mut edges = Vec::new();
        let mut add = |target: Node, weight: f32, reversed: bool| {
            edges.push(Edge { kind, label: "", target, weight, reversed });
        };
        match (kind, node) {
            (EdgeKind::Mentions, Node::Chunk(chunk)) if forward => {
                self.entities_in(chunk)?.into_iter().for_each(|entity| add(Node::Entity(entity), 1.0, false));
            }
            (EdgeKind::Mentions, Node::Entity(entity)) if backward => {
                self.chunks_mentioning(entity)?.into_iter().for_each(|chunk| add(Node::Chunk(chunk), 1.0, true));
            }
            (EdgeKind::Defines, Node::Entity(entity)) if forward => {
                self.definitions_of(entity)?.into_iter().for_each(|chunk| add(Node::Chunk(chunk), 1.0, false));
            }
            (EdgeKind::Defines, Node::Chunk(chunk)) if backward => {
                self.defined_by(chunk)?.into_iter().for_each(|entity| add(Node::Entity(entity), 1.0, true));
            }
            (EdgeKind::Similar, Node::Chunk(chunk)) => {
                for edges in self.edges() {
                    for (target, weight) in edges.neighbours(chunk)?.filter(|(target, _)| self.is_live(*target)) {
                        add(Node::Chunk(target), weight, false);
                    }
                }
            }
            (EdgeKind::Next, Node::Chunk(id)) => {
                let chunk = self.chunk(id)?;
                let mut siblings = chunk.document()?.chunks();
                let position = ChunkId(chunk.ordinal()).index();
                if backward && position > 0 {
                    siblings.nth(position - 1).into_iter().for_each(|before| add(Node::Chunk(before), 1.0, true));
                    siblings.next();
                } else {
                    siblings.nth(position);
                }
                if forward {
                    siblings.next().into_iter().for_each(|after| add(Node::Chunk(after), 1.0, false));
                }
            }
            (EdgeKind::Relations, Node::Entity(entity)) => {
                if backward {
                    edges.extend(self.related(entity, true)?);
                }
                if forward {
                    edges.extend(self.related(entity, false)?);
                }
            }
            _ => {}
        }
        Ok(edges)
    }

    /// Entities in a chunk: those that count by the links projection, or by its segment where there is none.
    pub(super) fn entities_in(&self, chunk: ChunkId) -> Result<Vec<Key>, QueryError> {
        if let Some(links) = self.links().filter(|links| chunk.0 < links.entry().chunks_end) {
            return links.mentions(chunk)?.iter().map(|slot| Ok(Key(links.entity(EntitySlot(slot))?.key))).collect();
        }
        let view = self.chunk(chunk)?;
        let segment = view.segment();
        segment.mentions(chunk)?.map(|mention| Ok(Key(segment.entity(mention.entity)?.key))).collect()
    }

    /// Live chunks that mention an entity, ascending.
    pub(super) fn chunks_mentioning(&self, entity: Key) -> Result<Vec<ChunkId>, QueryError> {
        let (mut chunks, mut pace) = (Vec::new(), self.guard.pace());
        let mut covered = 0;
        if let Some(links) = self.links() {
            covered = links.entry().chunks_end;
            if let Some(slot) = links.find(entity)? {
                let mentioning = links.mentioning(slot)?;
                self.guard.hold::<ChunkId>(mentioning.len())?;
                chunks.extend(mentioning.iter().map(ChunkId));
            }
        }
        for segment in self.segments().iter().filter(|segment| segment.entry().chunks_end > covered) {
            if let Some(slot) = segment.find_entity(entity)? {
                for chunk in segment.mentioning(slot)?.filter(|chunk| chunk.0 >= covered) {
                    pace.step()?;
                    self.guard.hold::<ChunkId>(1)?;
                    chunks.push(chunk);
                }
            }
        }
        chunks.retain(|chunk| self.is_live(*chunk));
        Ok(chunks)
    }

    /// Live chunks that define an entity, ascending.
    pub(super) fn definitions_of(&self, entity: Key) -> Result<Vec<ChunkId>, QueryError> {
        let Some(links) = self.links() else { return Ok(Vec::new()) };
        let Some(slot) = links.find(entity)? else { return Ok(Vec::new()) };
        Ok(links.definitions(slot)?.iter().map(ChunkId).filter(|chunk| self.is_live(*chunk)).collect())
    }

    /// Entities that a chunk defines.
    pub(super) fn defined_by(&self, chunk: ChunkId) -> Result<Vec<Key>, QueryError> {
        let Some(links) = self.links() else { return Ok(Vec::new()) };
        links.defining(chunk)?.iter().map(|slot| Ok(Key(links.entity(EntitySlot(slot))?.key))).collect()
    }

    /// The relations that start from an entity, or that lead to it.
    fn related(&self, entity: Key, reversed: bool) -> Result<Vec<Edge<'_>>, QueryError> {
        let Some(links) = self.links_in_step() else {
            let direction = if reversed { Direction::In } else { Direction::Out };
            let found = self.relations_of(entity, direction)?.into_iter().filter(|((_, _, back), _)| *back == reversed);
            return Ok(found
                .map(|((label, other, _), relation)| edge(label, other, relation.weight, reversed))
                .collect());
        };
        let Some(slot) = links.find(entity)? else { return Ok(Vec::new()) };
        let row = if reversed { links.relations_to(slot)? } else { links.relations_from(slot)? };
        self.guard.hold::<Edge<'_>>(row.len())?;
        let mut pace = self.guard.pace();
        let related = row.iter().map(|(other, label, weight)| {
            pace.step()?;
            Ok(edge(links.predicate(label)?, Key(links.entity(other)?.key), weight, reversed))
        });
        related.collect()
    }

    /// Live relations of an entity over all segments: label, other end, whether it is the object; with their sources. Those of
    /// one direction at least.
    pub(super) fn relations_of(&self, entity: Key, direction: Direction) -> Result<Relations<'_>, QueryError> {
        let mut found = Relations::new();
        let mut pace = self.guard.pace();
        for segment in self.segments() {
            let Some(slot) = segment.find_entity(entity)? else { continue };
            self.add_listed(segment, slot, direction, &mut found)?;
            let out = segment.relations_from(slot)?.map(|row| (row, false));
            for (row, reversed) in out.chain(segment.relations_to(slot)?.map(|row| (row, true))) {
                let RelationRow { subject, object, .. } = row;
                let other = Key(segment.entity(EntitySlot(if reversed { subject } else { object }))?.key);
                pace.step()?;
                let label = segment.string(row.predicate)?;
                self.guard.hold_bytes(RELATION_BYTES)?;
                for source in self.evidence(segment, &row)? {
                    pace.step()?;
                    self.guard.hold::<[EvidenceRow; 2]>(1)?;
                    let relation = found.entry((label, other, reversed)).or_default();
                    relation.sources.push(source);
                }
            }
        }
        for relation in found.values_mut() {
            // In an order that no history of segments changes, since sums of floating-point numbers depend on theirs.
            let mut weights: Vec<f32> = relation.sources.iter().map(|source| source.weight).collect();
            weights.sort_unstable_by(f32::total_cmp);
            relation.weight = weights.iter().sum();
        }
        Ok(found)
    }
}
