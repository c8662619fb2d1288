//! Edge lists: graphs of named nodes that a document states as a whole, staged, written and read.

use crate::error::Damage;
use crate::segment::build::{Content, count};
use crate::segment::graph::Numbers;
use crate::segment::staged::within;
use crate::segment::{Segment, StagedEnd, Strings};
use crate::storage::VerifiedFile;
use hedgerow_format::file::FileBuilder;
use hedgerow_format::section::SectionKind;
use hedgerow_format::segment::{EdgeListRow, EdgeListView, EdgeLists, NO_WEIGHTS};
use hedgerow_format::{DocumentId, EntitySlot, FormatError, Key, Record, limits, name};
use rayon::prelude::*;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;

/// An edge between two of the nodes that edge lists are made of, by their positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StagedEdge {
    /// Where it starts.
    pub subject: u32,
    /// Where it leads.
    pub object: u32,
    /// Finite and above zero.
    pub weight: f32,
}

impl StagedEdge {
    /// The order of edges: that of subjects, then of objects; and one that no order of arrival changes.
    fn order(&self) -> (u32, u32, u32) {
        (self.subject, self.object, self.weight.to_bits())
    }
}

/// A directed, weighted graph between named nodes that a document states as a whole: its edges of one label, as offsets and
/// targets. It takes four bytes an edge, eight with weights, and what its nodes take.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StagedEdgeList {
    /// Label of the edges.
    pub predicate: String,
    /// The nodes, ascending by key; each starts or ends an edge.
    pub nodes: Vec<StagedEnd>,
    /// First of the edges that start from each node, and one more.
    pub offsets: Vec<u32>,
    /// The node that each edge leads to, by its position, ascending within a node.
    pub targets: Vec<u32>,
    /// The weight of each edge; empty where all weigh 1.
    pub weights: Vec<f32>,
}

impl StagedEdgeList {
    /// The edge lists of a graph: one a label, of edges in any order between `nodes` in any order. Nodes with one key are one
    /// node, with the best of their names; nodes and labels without edges are left out. Edges that are there more than once become one
    /// with the sum of their weights, which no order of edges and no number of threads changes. Takes some 20 bytes an edge.
    ///
    /// ```
    /// use hedgerow::{Batch, StagedDocument, StagedEdge, StagedEdgeList, StagedEnd};
    /// use std::collections::BTreeMap;
    ///
    /// # fn main() -> Result<(), String> {
    /// let nodes = vec![StagedEnd::new("Ely", "city")?, StagedEnd::new("Dover", "town")?];
    /// let edges = vec![StagedEdge { subject: 0, object: 1, weight: 1.0 }];
    /// let edge_lists = StagedEdgeList::of_graph(nodes, BTreeMap::from([("leads to".to_owned(), edges)]))?;
    /// // A document with this key and another fingerprint would be replaced.
    /// let document = StagedDocument { edge_lists, ..StagedDocument::textless("roads", [1; 16]) };
    /// let mut batch = Batch::default();
    /// batch.put(document);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A sentence that says what is wrong: a label, a weight, or an edge between nodes that are not there.
    pub fn of_graph(nodes: Vec<StagedEnd>, edges: BTreeMap<String, Vec<StagedEdge>>) -> Result<Vec<Self>, String> {
        let (nodes, places) = in_order(nodes);
        let lists = edges.into_iter().filter(|(_, edges)| !edges.is_empty());
        lists.map(|(predicate, edges)| Self::of_edges(predicate, &nodes, &places, edges)).collect()
    }

    fn of_edges(
        predicate: String,
        nodes: &[StagedEnd],
        places: &[u32],
        mut edges: Vec<StagedEdge>,
    ) -> Result<Self, String> {
        let place = |node: u32| places.get(EntitySlot(node).index()).copied();
        edges.par_iter_mut().try_for_each(|edge| {
            let StagedEdge { subject, object, weight } = *edge;
            let (Some(from), Some(to)) = (place(subject), place(object)) else {
                return Err(format!("an edge leads from node {subject} to {object}, and there are {}", places.len()));
            };
            (edge.subject, edge.object) = (from, to);
            check_weight(weight)
        })?;
        edges.par_sort_unstable_by_key(StagedEdge::order);
        let edges = merged(edges)?;
        let mut used = RoaringBitmap::new();
        for edge in &edges {
            used.insert(edge.subject);
            used.insert(edge.object);
        }
        let used: Vec<u32> = used.into_iter().collect();
        let number = |node: u32| used.binary_search(&node).ok().and_then(|at| u32::try_from(at).ok());
        let targets = edges.par_iter().map(|edge| number(edge.object).unwrap_or_default()).collect();
        let (mut offsets, mut end) = (Vec::with_capacity(used.len() + 1), 0);
        for node in &used {
            offsets.push(end);
            let here = edges.get(EntitySlot(end).index()..).unwrap_or_default();
            let length = here.iter().take_while(|edge| edge.subject == *node).count();
            end = u32::try_from(length).ok().and_then(|length| end.checked_add(length)).ok_or_else(too_many)?;
        }
        offsets.push(end);
        let weighted = edges.iter().any(|edge| edge.weight.to_bits() != 1_f32.to_bits());
        let weights = if weighted { edges.iter().map(|edge| edge.weight).collect() } else { Vec::new() };
        let nodes = used.iter().filter_map(|node| nodes.get(EntitySlot(*node).index())).cloned().collect();
        Ok(Self { predicate, nodes, offsets, targets, weights })
    }

    /// Number of edges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether it has no edge.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Whether it can be written.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let Self { predicate, nodes, offsets, targets, weights } = self;
        let wrong = |what: &str| Err(format!("the edge list {predicate:?} {what}"));
        within("a predicate", predicate.len(), limits::NAME_BYTES)?;
        if predicate.is_empty() || targets.is_empty() {
            return wrong("has no label or no edges");
        }
        nodes.par_iter().try_for_each(StagedEnd::check)?;
        if !nodes.is_sorted_by(|a, b| a.key < b.key) {
            return wrong("has nodes that do not ascend by key");
        }
        let ends_there = offsets.last().is_some_and(|end| EntitySlot(*end).index() == targets.len());
        let is_placed = offsets.len() == nodes.len() + 1 && offsets.first() == Some(&0) && ends_there;
        if !is_placed || !offsets.is_sorted() || u32::try_from(targets.len()).is_err() {
            return wrong("has offsets that are none");
        }
        let mut joined = vec![false; nodes.len()];
        for (node, bounds) in offsets.windows(2).enumerate() {
            let edges = EntitySlot(bounds[0]).index()..EntitySlot(bounds[1]).index();
            let targets = targets.get(edges).unwrap_or_default();
            if !targets.is_sorted_by(|a, b| a < b) {
                return wrong("has targets that do not ascend");
            }
            joined[node] |= !targets.is_empty();
            for target in targets {
                match joined.get_mut(EntitySlot(*target).index()) {
                    Some(joined) => *joined = true,
                    None => return wrong("has an edge to a node that is not there"),
                }
            }
        }
        if joined.contains(&false) {
            return wrong("has a node without edges");
        }
        let is_needed = weights.iter().any(|weight| weight.to_bits() != 1_f32.to_bits());
        if !weights.is_empty() && (weights.len() != targets.len() || !is_needed) {
            return wrong("has weights that are none");
        }
        weights.iter().try_for_each(|weight| check_weight(*weight))
    }

    /// Bytes that staging it takes, roughly.
    pub(super) fn staged_bytes(&self) -> usize {
        let names: usize = self.nodes.iter().map(|node| node.name.len() + node.kind.len() + 112).sum();
        (self.offsets.len() + self.targets.len() + self.weights.len()) * 4 + names + 128
    }
}

fn too_many() -> String {
    format!("an edge list may have {} edges", u32::MAX)
}

fn check_weight(weight: f32) -> Result<(), String> {
    if weight.is_finite() && weight > 0.0 {
        return Ok(());
    }
    Err(format!("the weight of an edge must be finite and above 0, and is {weight}"))
}

/// Nodes ascending by key, each key once; and where each of those that were given is there.
fn in_order(nodes: Vec<StagedEnd>) -> (Vec<StagedEnd>, Vec<u32>) {
    let mut order: Vec<(Key, u32)> = nodes.iter().map(|node| node.key).zip(0..).collect();
    order.par_sort_unstable();
    let mut nodes: Vec<Option<StagedEnd>> = nodes.into_iter().map(Some).collect();
    let (mut kept, mut places) = (Vec::<StagedEnd>::with_capacity(nodes.len()), vec![0; nodes.len()]);
    for (_, from) in order {
        let from = EntitySlot(from).index();
        let Some(node) = nodes.get_mut(from).and_then(Option::take) else { continue };
        match kept.last_mut().filter(|last| last.key == node.key) {
            Some(last) => {
                if name::better_spelling(&last.name, &node.name) != last.name {
                    last.name = node.name;
                }
                if name::better_kind(&last.kind, &node.kind) != last.kind {
                    last.kind = node.kind;
                }
            }
            None => kept.push(node),
        }
        places[from] = u32::try_from(kept.len() - 1).unwrap_or(u32::MAX);
    }
    (kept, places)
}

/// Sorted edges, each once.
fn merged(mut edges: Vec<StagedEdge>) -> Result<Vec<StagedEdge>, String> {
    let same = |a: &StagedEdge, b: &StagedEdge| (a.subject, a.object) == (b.subject, b.object);
    let mut kept = 0;
    let mut at = 0;
    while let Some(first) = edges.get(at).copied() {
        let group = edges[at..].iter().take_while(|edge| same(edge, &first));
        // Edges of one pair ascend by weight, so the sum is the same whatever order they came in.
        let (count, sum) = group.fold((0, 0.0), |(count, sum), edge| (count + 1, sum + f64::from(edge.weight)));
        let weight = if count == 1 { first.weight } else { narrow(sum) };
        check_weight(weight)?;
        edges[kept] = StagedEdge { weight, ..first };
        kept += 1;
        at += count;
    }
    edges.truncate(kept);
    Ok(edges)
}

#[expect(clippy::cast_possible_truncation, reason = "weights are kept as f32; the range is checked after rounding")]
fn narrow(sum: f64) -> f32 {
    sum as f32
}

/// The rows of edge lists, and of the spellings of their nodes.
#[derive(Debug, Default)]
pub(super) struct ListRows {
    rows: Vec<u8>,
    nodes: Vec<u8>,
}

/// What a segment may have too much of.
const EDGES: &str = "the number of edges of lists";

fn lists(content: &Content) -> impl Iterator<Item = &StagedEdgeList> {
    content.documents.iter().flat_map(|numbered| in_label_order(&numbered.document.edge_lists))
}

fn in_label_order(lists: &[StagedEdgeList]) -> Vec<&StagedEdgeList> {
    let mut lists: Vec<&StagedEdgeList> = lists.iter().collect();
    lists.sort_unstable_by_key(|list| &list.predicate);
    lists
}

impl ListRows {
    pub(super) fn of(content: &Content, numbers: &Numbers<'_>, strings: &mut Strings) -> Result<Self, FormatError> {
        let mut made = Self::default();
        let [mut first_node, mut first_offset, mut first_edge, mut first_weight] = [0_u32; 4];
        let limit = || FormatError::Limit { what: EDGES, limit: u64::from(u32::MAX) };
        let added = |first: u32, more: usize| first.checked_add(count(more, EDGES)?).ok_or_else(limit);
        for (document, numbered) in (0_u32..).zip(&content.documents) {
            for list in in_label_order(&numbered.document.edge_lists) {
                let weighted = !list.weights.is_empty();
                EdgeListRow {
                    document,
                    predicate: strings.place(&list.predicate)?,
                    first_node,
                    nodes: count(list.nodes.len(), EDGES)?,
                    first_offset,
                    first_edge,
                    edges: count(list.targets.len(), EDGES)?,
                    first_weight: if weighted { first_weight } else { NO_WEIGHTS },
                }
                .encode(&mut made.rows);
                first_node = added(first_node, list.nodes.len())?;
                first_offset = added(first_offset, list.offsets.len())?;
                first_edge = added(first_edge, list.targets.len())?;
                first_weight = added(first_weight, list.weights.len())?;
                let spelt: Vec<u32> = list.nodes.par_iter().map(|node| numbers.spelling(node.spelling())).collect();
                made.nodes.extend(spelt.into_iter().flat_map(u32::to_le_bytes));
            }
        }
        Ok(made)
    }

    /// Writes the sections, edges straight from where they are staged.
    pub(super) fn write<W: Write>(&self, file: &mut FileBuilder<W>, content: &Content) -> io::Result<()> {
        file.section(SectionKind::EdgeLists, &self.rows)?;
        file.section(SectionKind::ListNodes, &self.nodes)?;
        numbers(file, SectionKind::ListOffsets, lists(content).map(|list| &list.offsets), |offset| {
            offset.to_le_bytes()
        })?;
        numbers(file, SectionKind::ListTargets, lists(content).map(|list| &list.targets), u32::to_le_bytes)?;
        numbers(file, SectionKind::ListWeights, lists(content).map(|list| &list.weights), f32::to_le_bytes)
    }
}

/// Numbers that are encoded at a time.
const ENCODED_TOGETHER: usize = 16 << 10;

fn numbers<'a, W: Write, T: Copy + 'a>(
    file: &mut FileBuilder<W>,
    kind: SectionKind,
    arrays: impl Iterator<Item = &'a Vec<T>>,
    encode: impl Fn(T) -> [u8; 4],
) -> io::Result<()> {
    let (mut bytes, mut begun) = (Vec::with_capacity(ENCODED_TOGETHER * 4), false);
    for some in arrays.flat_map(|array| array.chunks(ENCODED_TOGETHER)) {
        if !begun {
            file.begin(kind)?;
            begun = true;
        }
        bytes.clear();
        bytes.extend(some.iter().flat_map(|number| encode(*number)));
        file.put(&bytes)?;
    }
    Ok(())
}

impl Segment {
    /// All edge lists, ascending by document and label, each with the id of its document.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn edge_lists(&self) -> Result<impl Iterator<Item = Result<(DocumentId, EdgeListView<'_>), Damage>>, Damage> {
        self.edge_lists_at(|lists| 0..lists.len())
    }

    /// The edge lists of a document, ascending by label.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn edge_lists_of(
        &self,
        document: DocumentId,
    ) -> Result<impl Iterator<Item = Result<(DocumentId, EdgeListView<'_>), Damage>>, Damage> {
        let slot = self.document_ids().position(document.0).unwrap_or(usize::MAX);
        self.edge_lists_at(move |lists| lists.of_document(slot))
    }

    fn edge_lists_at(
        &self,
        rows: impl FnOnce(&EdgeLists<'_, VerifiedFile>) -> Range<usize>,
    ) -> Result<impl Iterator<Item = Result<(DocumentId, EdgeListView<'_>), Damage>>, Damage> {
        let lists = EdgeLists::of(self.file()).map_err(|error| self.file().damage(error))?;
        Ok(rows(&lists).map(move |row| {
            let list = lists.get(row).map_err(|error| self.file().damage(error))?;
            let id = self.document_ids().get(list.document).map(DocumentId);
            Ok((id.ok_or_else(|| self.no_row(SectionKind::Documents, list.document))?, list))
        }))
    }
}
