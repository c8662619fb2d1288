//! Edge lists, as far as they can be read: edge by edge.

use crate::maintain::salvage::Lost;
use crate::maintain::salvage::document::spelling;
use crate::maintain::salvage::part::{Part, index};
use crate::segment::{StagedDocument, StagedEdge, StagedEdgeList, StagedEnd};
use hedgerow_format::section::SectionKind;
use hedgerow_format::segment::{EdgeListRow, NO_WEIGHTS};
use std::collections::{BTreeMap, HashMap};

/// Rows of edge lists by the slot of their document.
#[derive(Debug, Default)]
pub(super) struct Lists(HashMap<usize, Vec<EdgeListRow>>);

impl Lists {
    /// The rows of a segment's edge lists. Says whether one cannot be read, so that nothing tells which document lacks it.
    pub fn of(part: &Part, lost: &mut Vec<Lost>) -> (Self, bool) {
        let (mut lists, mut unknown) = (Self::default(), 0);
        let mut next = (0, 0);
        for row in 0..part.wreck.count(SectionKind::EdgeLists) {
            let row = part.wreck.row::<EdgeListRow>(SectionKind::EdgeLists, row);
            // Lists that share nodes or edges are none, and could be as many as one likes.
            match row.filter(|row| row.first_node >= next.0 && row.first_edge >= next.1) {
                Some(row) => {
                    next = (row.first_node.saturating_add(row.nodes), row.first_edge.saturating_add(row.edges));
                    lists.0.entry(index(row.document)).or_default().push(row);
                }
                None => unknown += 1,
            }
        }
        if unknown > 0 {
            lost.push(part.lost("edges", format!("{unknown} edge lists cannot be read")));
        }
        (lists, unknown > 0)
    }

    /// Gives a document its edge lists; says how many edges are lost.
    pub fn add_to(&self, part: &Part, slot: usize, document: &mut StagedDocument) -> usize {
        let mut lost = 0;
        for row in self.0.get(&slot).into_iter().flatten() {
            let edges = index(row.edges).min(part.wreck.count(SectionKind::ListTargets));
            let list = part.wreck.string(row.predicate).filter(|label| !label.is_empty());
            let list = list.and_then(|label| read(part, row, edges, label));
            lost += edges.saturating_sub(list.as_ref().map_or(0, StagedEdgeList::len));
            document.edge_lists.extend(list);
        }
        lost
    }
}

/// What can be read of a list; none where that is no edge.
fn read(part: &Part, row: &EdgeListRow, edges: usize, label: &str) -> Option<StagedEdgeList> {
    let count = index(row.nodes).min(part.wreck.count(SectionKind::ListNodes));
    let number = |kind, first: u32, at: usize| part.wreck.number(kind, index(first).checked_add(at)?);
    // Where a node cannot be named, none of its edges can be kept.
    let (mut nodes, mut places) = (Vec::new(), Vec::with_capacity(count));
    for node in 0..count {
        let named = number(SectionKind::ListNodes, row.first_node, node).and_then(|row| spelling(part, row));
        places.push(named.is_some().then_some(u32::try_from(nodes.len()).unwrap_or(u32::MAX)));
        nodes.extend(named.map(|(key, name, kind)| StagedEnd { key, name, kind }));
    }
    let (mut kept, mut reached) = (Vec::new(), 0);
    for node in 0..count {
        let bound = |node| number(SectionKind::ListOffsets, row.first_offset, node).map(index);
        let (Some(start), Some(end)) = (bound(node), bound(node + 1)) else { continue };
        // No edge starts from two nodes.
        let here = start.max(reached)..end.min(edges);
        reached = reached.max(here.end);
        for edge in here {
            let target = number(SectionKind::ListTargets, row.first_edge, edge);
            let target = target.and_then(|target| places.get(index(target)).copied().flatten());
            let weight = if row.first_weight == NO_WEIGHTS {
                Some(1.0)
            } else {
                number(SectionKind::ListWeights, row.first_weight, edge).map(f32::from_bits)
            };
            let weight = weight.filter(|weight| weight.is_finite() && *weight > 0.0);
            if let (Some(subject), Some(object), Some(weight)) = (places.get(node).copied().flatten(), target, weight) {
                kept.push(StagedEdge { subject, object, weight });
            }
        }
    }
    if kept.is_empty() {
        return None;
    }
    StagedEdgeList::of_graph(nodes, BTreeMap::from([(label.to_owned(), kept)])).ok()?.pop()
}
