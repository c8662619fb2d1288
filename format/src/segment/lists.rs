//! Edge lists: graphs of named nodes that documents state as a whole.

use crate::ids::EntitySlot;
use crate::record::{F32s, to_usize};
use crate::section::{SectionKind, Sections};
use crate::segment::{DocumentRow, EdgeListRow, NO_WEIGHTS, SpellingRow};
use crate::{FormatError, Rows, U32s};
use std::ops::Range;

/// The edge lists of a segment, read where they lie.
#[derive(Debug)]
pub struct EdgeLists<'a, S> {
    file: &'a S,
    rows: Rows<'a, EdgeListRow>,
    spellings: Rows<'a, SpellingRow>,
    nodes: U32s<'a>,
    offsets: U32s<'a>,
    targets: U32s<'a>,
    weights: F32s<'a>,
}

/// One edge list: its edges of one label. Nodes are numbered from 0, ascending by entity slot.
#[derive(Clone, Copy, Debug)]
pub struct EdgeListView<'a> {
    /// Slot of the document that states it.
    pub document: usize,
    /// Label of its edges.
    pub predicate: &'a str,
    /// Row of `spellings` of each node.
    pub nodes: U32s<'a>,
    /// Offsets of the edges that start from each node, and one more.
    pub offsets: U32s<'a>,
    /// The node that each edge leads to.
    pub targets: U32s<'a>,
    /// The weight of each edge; empty where all weigh 1.
    pub weights: F32s<'a>,
    spellings: Rows<'a, SpellingRow>,
}

impl<'a, S: Sections> EdgeLists<'a, S> {
    /// The edge lists of a segment.
    ///
    /// # Errors
    /// [`FormatError::Block`] and [`FormatError::Shape`].
    pub fn of(file: &'a S) -> Result<Self, FormatError> {
        let weights = file.section(SectionKind::ListWeights)?;
        Ok(Self {
            file,
            rows: file.rows(SectionKind::EdgeLists)?,
            spellings: file.rows(SectionKind::Spellings)?,
            nodes: file.u32s(SectionKind::ListNodes)?,
            offsets: file.u32s(SectionKind::ListOffsets)?,
            targets: file.u32s(SectionKind::ListTargets)?,
            weights: F32s::new(SectionKind::ListWeights.name(), weights)?,
        })
    }

    /// Number of lists.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A list: its arrays have the lengths that its row says, what they hold is as it lies in the file.
    ///
    /// # Errors
    /// [`FormatError::Invariant`] where its arrays are not there; [`FormatError::Shape`].
    pub fn get(&self, row: usize) -> Result<EdgeListView<'a>, FormatError> {
        let found = self.rows.get(row).ok_or_else(|| broken(SectionKind::EdgeLists, "S-LST-2", row))?;
        let (nodes, edges) = (to_usize(found.nodes), to_usize(found.edges));
        let from = |first: u32, count: usize| to_usize(first)..to_usize(first).saturating_add(count);
        let weights = if found.first_weight == NO_WEIGHTS { 0 } else { edges };
        let view = EdgeListView {
            document: to_usize(found.document),
            predicate: self.file.string(found.predicate)?,
            nodes: self.nodes.slice(from(found.first_node, nodes)),
            offsets: self.offsets.slice(from(found.first_offset, nodes.saturating_add(1))),
            targets: self.targets.slice(from(found.first_edge, edges)),
            weights: self.weights.slice(from(found.first_weight, weights)),
            spellings: self.spellings,
        };
        let found = (view.nodes.len(), view.targets.len(), view.weights.len());
        let is_whole = found == (nodes, edges, weights) && view.offsets.len() == nodes.saturating_add(1);
        if is_whole { Ok(view) } else { Err(broken(SectionKind::EdgeLists, "S-LST-2", row)) }
    }

    /// The rows of the lists of a document, by halving.
    #[must_use]
    pub fn of_document(&self, slot: usize) -> Range<usize> {
        let first_from = |slot: usize| {
            let (mut low, mut high) = (0, self.rows.len());
            while low < high {
                let middle = low.midpoint(high);
                if self.rows.get(middle).is_some_and(|row| to_usize(row.document) < slot) {
                    low = middle.saturating_add(1);
                } else {
                    high = middle;
                }
            }
            low
        };
        first_from(slot)..first_from(slot.saturating_add(1))
    }
}

impl EdgeListView<'_> {
    /// The entity that a node is.
    #[must_use]
    pub fn entity(&self, node: usize) -> Option<EntitySlot> {
        self.spellings.get(to_usize(self.nodes.get(node)?)).map(|row| EntitySlot(row.entity))
    }

    /// The entities of all nodes, in order; one whose spelling is not there is left out.
    pub fn entities(&self) -> impl Iterator<Item = EntitySlot> {
        (0..self.nodes.len()).filter_map(|node| self.entity(node))
    }

    /// The node that an entity is, by halving.
    #[must_use]
    pub fn node_of(&self, entity: EntitySlot) -> Option<usize> {
        let (mut low, mut high) = (0, self.nodes.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.entity(middle)?.cmp(&entity) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle.saturating_add(1),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// The positions of the edges that start from a node.
    #[must_use]
    pub fn edges_from(&self, node: usize) -> Range<usize> {
        let row = self.offsets.row(node);
        row.start.min(self.targets.len())..row.end.min(self.targets.len())
    }

    /// The node that the edge at a position starts from, by halving.
    #[must_use]
    pub fn source_of(&self, edge: usize) -> usize {
        let (mut low, mut high) = (0, self.nodes.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.offsets.get(middle.saturating_add(1)).is_some_and(|end| to_usize(end) <= edge) {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        low
    }

    /// The weight of the edge at a position.
    #[must_use]
    pub fn weight(&self, edge: usize) -> f32 {
        self.weights.get(edge).unwrap_or(1.0)
    }
}

fn broken(section: SectionKind, rule: &'static str, row: usize) -> FormatError {
    FormatError::Invariant { section: section.name(), rule, row: row as u64 }
}

fn require(holds: bool, section: SectionKind, rule: &'static str, row: usize) -> Result<(), FormatError> {
    if holds { Ok(()) } else { Err(broken(section, rule, row)) }
}

/// Checks all edge lists. Memory is a byte a node of the largest.
pub(super) fn validate<S: Sections>(file: &S) -> Result<(), FormatError> {
    let documents = file.rows::<DocumentRow>(SectionKind::Documents)?.len();
    let lists = EdgeLists::of(file)?;
    let (mut before, mut next, mut next_weight) = (None, [0_u64; 3], 0_u64);
    for row in 0..lists.len() {
        let holds = |holds, rule| require(holds, SectionKind::EdgeLists, rule, row);
        let found = lists.rows.get(row).ok_or_else(|| broken(SectionKind::EdgeLists, "S-LST-2", row))?;
        let list = lists.get(row)?;
        let order = Some((found.document, list.predicate));
        holds(before < order && list.document < documents && !list.predicate.is_empty(), "S-LST-1")?;
        before = order;
        let first = [found.first_node, found.first_offset, found.first_edge].map(u64::from);
        holds(first == next && found.nodes > 0 && found.edges > 0, "S-LST-2")?;
        let counts = [u64::from(found.nodes), u64::from(found.nodes).saturating_add(1), u64::from(found.edges)];
        for (next, count) in next.iter_mut().zip(counts) {
            *next = next.saturating_add(count);
        }
        if found.first_weight != NO_WEIGHTS {
            holds(u64::from(found.first_weight) == next_weight, "S-LST-2")?;
            next_weight = next_weight.saturating_add(u64::from(found.edges));
        }
        let places = (to_usize(found.first_node), to_usize(found.first_offset), to_usize(found.first_edge));
        one(&list, row, places, to_usize(found.first_weight))?;
    }
    let lengths = [lists.nodes.len(), lists.offsets.len(), lists.targets.len(), lists.weights.len()];
    let whole = lengths.map(|length| length as u64) == [next[0], next[1], next[2], next_weight];
    require(whole, SectionKind::EdgeLists, "S-LST-2", lists.len())
}

/// Checks what the arrays of one list hold; where they begin, for the places of what is wrong.
fn one(
    list: &EdgeListView<'_>,
    row: usize,
    (first_node, first_offset, first_edge): (usize, usize, usize),
    first_weight: usize,
) -> Result<(), FormatError> {
    let mut before = None;
    for node in 0..list.nodes.len() {
        let entity = list.entity(node);
        require(before < entity, SectionKind::ListNodes, "S-LST-3", first_node.saturating_add(node))?;
        before = entity;
    }
    let mut end = 0;
    for (place, offset) in (first_offset..).zip(list.offsets.iter()) {
        require(offset >= end && (place > first_offset || offset == 0), SectionKind::ListOffsets, "S-LST-4", place)?;
        end = offset;
    }
    require(to_usize(end) == list.targets.len(), SectionKind::ListOffsets, "S-LST-4", first_offset)?;
    let mut joined: Vec<bool> = list.nodes.iter().map(|_| false).collect();
    for node in 0..list.nodes.len() {
        let edges = list.edges_from(node);
        let place = first_edge.saturating_add(edges.start);
        let mut before = None;
        if let Some(joined) = joined.get_mut(node) {
            *joined |= !edges.is_empty();
        }
        for (place, target) in (place..).zip(list.targets.slice(edges).iter()) {
            let known = joined.get_mut(to_usize(target));
            require(before < Some(target) && known.is_some(), SectionKind::ListTargets, "S-LST-5", place)?;
            before = Some(target);
            if let Some(joined) = known {
                *joined = true;
            }
        }
    }
    let alone = joined.iter().position(|joined| !joined);
    let place = first_node.saturating_add(alone.unwrap_or(0));
    require(alone.is_none(), SectionKind::ListNodes, "S-LST-6", place)?;
    let wrong = list.weights.iter().position(|weight| !(weight.is_finite() && weight > 0.0));
    let place = first_weight.saturating_add(wrong.unwrap_or(0));
    require(wrong.is_none(), SectionKind::ListWeights, "S-LST-7", place)?;
    let is_needed = list.weights.is_empty() || list.weights.iter().any(|weight| weight.to_bits() != 1_f32.to_bits());
    require(is_needed, SectionKind::EdgeLists, "S-LST-7", row)
}
