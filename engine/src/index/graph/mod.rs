//! Algorithms over graphs whose edges lie in a mapped file, row by row.

/// Communities by the algorithm of Leiden.
pub mod leiden;

use hedgerow_format::U32s;
use std::ops::Range;

/// How many shortest paths lead through each node.
pub mod betweenness;
/// Which nodes hang together.
pub mod components;
/// How many edges nodes have.
pub mod degrees;
/// What nodes have in common.
pub mod neighbours;
/// Which nodes most paths lead to.
pub mod pagerank;
/// Shortest paths between two nodes.
pub mod paths;
/// Sets of nodes made from other sets.
pub mod plan;
/// Which nodes most paths from some lead to.
pub mod push;
/// How many nodes lie within so many hops.
pub mod reach;
/// How communities are found.
pub mod rules;
#[cfg(test)]
pub mod sample;
/// Neighbours, each once.
pub mod simple;
/// Graphs as a walk reads them.
pub mod walkable;

/// The edges of a graph by the node that they leave (CSR), read where they lie. Bytes may be a stranger's: a target that is no
/// node is passed over by every algorithm.
#[derive(Clone, Copy, Debug, Default)]
pub struct Adjacency<'a> {
    offsets: U32s<'a>,
    targets: U32s<'a>,
    weights: U32s<'a>,
}

impl<'a> Adjacency<'a> {
    /// Edges from their CSR: offsets, one more than there are nodes; targets; and the bits of their weights, `f32`, or nothing
    /// where all weigh 1.
    #[must_use]
    pub fn new(offsets: U32s<'a>, targets: U32s<'a>, weights: U32s<'a>) -> Self {
        Self { offsets, targets, weights }
    }

    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Number of edges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Number of edges that leave a node.
    #[must_use]
    #[inline]
    pub fn degree(&self, node: u32) -> usize {
        self.offsets.row(index(node)).len()
    }

    /// Places of the edges that leave a node among all, for what lies beside them.
    #[must_use]
    pub fn row(&self, node: u32) -> Range<usize> {
        self.offsets.row(index(node))
    }

    /// Where the edges that leave a node lead, ascending.
    #[inline]
    pub fn targets(&self, node: u32) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        self.targets.slice(self.offsets.row(index(node))).iter()
    }

    /// The edges that leave a node, ascending by target, with their weights.
    #[inline]
    pub fn edges(&self, node: u32) -> impl Iterator<Item = (u32, f32)> + use<'a> {
        let range = self.offsets.row(index(node));
        let weights = self.weights.slice(range.clone());
        let targets = self.targets.slice(range).iter();
        targets.enumerate().map(move |(at, target)| (target, weights.get(at).map_or(1.0, f32::from_bits)))
    }
}

/// Which way edges are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Along them.
    Out,
    /// Against them.
    In,
    /// Either way.
    #[default]
    Both,
}

impl Direction {
    /// The way back.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
            Self::Both => Self::Both,
        }
    }
}

/// A graph: the same edges by the node that they leave and by the node that they reach. Nodes are numbered in the order of their
/// keys, so that ties that are decided by number follow from the keys. Where a stranger's sides hold different edges, answers
/// follow from the side that an algorithm reads, and nothing worse happens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Graph<'a> {
    /// Edges by the node that they leave.
    pub out: Adjacency<'a>,
    /// Edges by the node that they reach.
    pub into: Adjacency<'a>,
}

impl<'a> Graph<'a> {
    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.out.nodes().max(self.into.nodes()).min(index(u32::MAX))
    }

    /// Numbers of the nodes.
    #[must_use]
    pub fn numbers(&self) -> Range<u32> {
        0..number(self.nodes())
    }

    /// The edges to follow from a node in a direction: one side and one without edges, or both. Either way, an edge that has
    /// its reverse beside it is met twice.
    #[must_use]
    pub fn sides(&self, direction: Direction) -> [Adjacency<'a>; 2] {
        match direction {
            Direction::Out => [self.out, Adjacency::default()],
            Direction::In => [self.into, Adjacency::default()],
            Direction::Both => [self.out, self.into],
        }
    }

    /// Where edges lead from a node in a direction; targets that are no node are left out.
    #[inline]
    pub fn targets(&self, direction: Direction, node: u32) -> impl Iterator<Item = u32> + use<'a> {
        let nodes = number(self.nodes());
        let [first, second] = self.sides(direction);
        first.targets(node).chain(second.targets(node)).filter(move |target| *target < nodes)
    }

    /// The edges from a node in a direction with their weights; targets that are no node are left out.
    #[inline]
    pub fn edges(&self, direction: Direction, node: u32) -> impl Iterator<Item = (u32, f32)> + use<'a> {
        let nodes = number(self.nodes());
        let [first, second] = self.sides(direction);
        first.edges(node).chain(second.edges(node)).filter(move |(target, _)| *target < nodes)
    }

    /// Number of edges that leave a node in a direction, with those that lead to no node.
    #[must_use]
    #[inline]
    pub fn degree(&self, direction: Direction, node: u32) -> usize {
        self.sides(direction).iter().map(|side| side.degree(node)).sum()
    }
}

/// What an edge counts: its weight, or 1 where weights are left aside; none where the weight is not above zero or not finite,
/// so that the edge counts as if it were not there.
#[inline]
fn strength(weight: f32, weighted: bool) -> Option<f64> {
    match weighted {
        true if weight > 0.0 && weight.is_finite() => Some(f64::from(weight)),
        true => None,
        false => Some(1.0),
    }
}

/// The nodes with the highest scores, highest first; among equals the lower number first.
#[must_use]
pub fn top(scores: impl Iterator<Item = (u32, f64)>, count: usize) -> Vec<(u32, f64)> {
    let better = |a: &(u32, f64), b: &(u32, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    let mut best: Vec<(u32, f64)> = scores.collect();
    if count == 0 {
        return Vec::new();
    }
    if count < best.len() {
        best.select_nth_unstable_by(count - 1, better);
        best.truncate(count);
    }
    best.sort_unstable_by(better);
    best
}

#[inline]
fn index(node: u32) -> usize {
    usize::try_from(node).unwrap_or(usize::MAX)
}

#[inline]
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "numbers of nodes and edges are far below 2^53")]
fn real(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::QueryError;
    use crate::index::graph::sample::{Sample, Stopped};
    use crate::index::guard::{Guard, QueryLimits};

    #[test]
    fn both_sides_hold_the_same_edges_and_either_way_meets_them_all() {
        let sample = Sample::new(4, &[(0, 1, 2.0), (2, 1, 3.0), (1, 3, 4.0)]);
        let graph = sample.graph();
        assert_eq!((graph.nodes(), graph.out.len(), graph.into.len()), (4, 3, 3));
        assert_eq!(graph.edges(Direction::In, 1).collect::<Vec<_>>(), [(0, 2.0), (2, 3.0)]);
        assert_eq!(graph.targets(Direction::Both, 1).collect::<Vec<_>>(), [3, 0, 2]);
        assert_eq!(graph.degree(Direction::Out, 1), 1);
    }

    #[test]
    fn every_algorithm_stops_when_it_is_told_to() {
        let sample = Sample::random(50, 200, 1);
        let (graph, either) = (sample.graph(), Direction::Both);
        let stopped = Guard::new(QueryLimits { control: &Stopped, ..QueryLimits::default() });
        let guard = &stopped;
        let by_cost = paths::Route { cost: paths::Cost::Inverse, ..paths::Route::default() };
        let errors = [
            betweenness::betweenness(graph, betweenness::Betweenness::default(), guard).map(drop),
            components::components(graph, guard).map(drop),
            degrees::degrees(graph, either, 1, guard).map(drop),
            neighbours::in_common(graph, (either, neighbours::Measure::default()), &[1, 2], 1, guard).map(drop),
            pagerank::pagerank(graph, &pagerank::PageRank::default(), guard).map(drop),
            paths::paths(graph, (0, 40), &paths::Route::default(), guard).map(drop),
            paths::paths(graph, (0, 40), &by_cost, guard).map(drop),
            push::push(graph, &[(0, 1.0)], &push::Push::default(), (&mut push::PushScratch::default(), guard))
                .map(drop),
            reach::reach(graph, either, &[0], 2, (&mut reach::ReachScratch::default(), guard)).map(drop),
        ];
        for (at, error) in errors.into_iter().enumerate() {
            assert!(matches!(error, Err(QueryError::Cancelled)), "{at}: {error:?}");
        }
    }

    #[test]
    fn weights_that_are_no_strength_are_no_edges() {
        for weight in [f32::NAN, f32::INFINITY, -1.0, 0.0] {
            assert_eq!((strength(weight, true), strength(weight, false)), (None, Some(1.0)));
        }
        assert_eq!(strength(0.5, true), Some(0.5));
    }

    #[test]
    fn the_best_come_first_and_equals_in_the_order_of_their_numbers() {
        let scores = [(3, 1.0), (1, 2.0), (2, 1.0), (0, 0.5)];
        assert_eq!(top(scores.into_iter(), 3), [(1, 2.0), (2, 1.0), (3, 1.0)]);
        assert_eq!(top(scores.into_iter(), 9).len(), 4);
        assert_eq!(top(scores.into_iter(), 0), []);
    }
}
