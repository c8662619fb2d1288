//! Relations that edge lists state: those of one entity, read where they lie.

use crate::error::QueryError;
use crate::query::Direction;
use crate::query::graph::{RELATION_BYTES, Relations};
use crate::segment::Segment;
use crate::snapshot::Bounded;
use hedgerow_format::segment::{EdgeListView, EvidenceRow, NO_CHUNK, NO_EXTRACTION};
use hedgerow_format::{DocumentId, EntitySlot, Key};

/// Edges that are looked through between two questions whether to stop.
const LOOKED_THROUGH: usize = 1 << 16;

impl Bounded<'_> {
    /// Adds what the edge lists of a segment say of an entity. Edges that lead to it are found by looking through all edges of
    /// the lists that it is a node of.
    pub(super) fn add_listed<'s>(
        &'s self,
        segment: &'s Segment,
        entity: EntitySlot,
        direction: Direction,
        found: &mut Relations<'s>,
    ) -> Result<(), QueryError> {
        let mut pace = self.guard.pace();
        for list in self.edge_lists(segment)? {
            pace.step()?;
            let (document, list) = list?;
            let Some(node) = list.node_of(entity) else { continue };
            let mut add = |edge: usize, reversed: bool| -> Result<(), QueryError> {
                let target = list.targets.get(edge).map_or(usize::MAX, |target| EntitySlot(target).index());
                let subject = if reversed { list.source_of(edge) } else { node };
                let Some(other) = list.entity(if reversed { subject } else { target }) else { return Ok(()) };
                let other = Key(segment.entity(other)?.key);
                self.guard.hold_bytes(RELATION_BYTES)?;
                self.guard.hold::<[EvidenceRow; 2]>(1)?;
                let relation = found.entry((list.predicate, other, reversed)).or_default();
                relation.sources.push(source(document, &list, edge, [subject, target]));
                Ok(())
            };
            if direction != Direction::In {
                for edge in list.edges_from(node) {
                    pace.step()?;
                    add(edge, false)?;
                }
            }
            if direction != Direction::Out {
                for first in (0..list.targets.len()).step_by(LOOKED_THROUGH) {
                    self.guard.poll()?;
                    let some = list.targets.slice(first..first.saturating_add(LOOKED_THROUGH)).iter();
                    let leads_here = |(_, target): &(usize, u32)| EntitySlot(*target).index() == node;
                    (first..).zip(some).filter(leads_here).try_for_each(|(edge, _)| add(edge, true))?;
                }
            }
        }
        Ok(())
    }
}

/// The document as a whole, as a source of one of its edges.
fn source(document: DocumentId, list: &EdgeListView<'_>, edge: usize, ends: [usize; 2]) -> EvidenceRow {
    let [subject_spelling, object_spelling] = ends.map(|node| list.nodes.get(node).unwrap_or(u32::MAX));
    EvidenceRow {
        document: document.0,
        chunk: NO_CHUNK,
        weight: list.weight(edge),
        start: 0,
        end: 0,
        subject_spelling,
        object_spelling,
        extraction: NO_EXTRACTION,
    }
}
