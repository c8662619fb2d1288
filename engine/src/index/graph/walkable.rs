//! Graphs as a walk reads them: the edges of one node at a time, wherever they lie.

use crate::error::QueryError;
use crate::index::graph::{Adjacency, Direction, Graph, index, number};
use crate::index::guard::Guard;
use hedgerow_format::U32s;

/// Edges out of one node at a time.
pub trait Walkable {
    /// Number of nodes.
    fn nodes(&self) -> usize;

    /// Number of edges out of a node: no fewer than are visited.
    fn degree(&self, node: u32) -> usize;

    /// Visits the edges out of a node: where each leads, which is a node, and its weight.
    fn each(&self, node: u32, visit: impl FnMut(u32, f32));

    /// Whether a node may be among the best ones.
    fn counts(&self, _node: u32) -> bool {
        true
    }
}

/// A graph in one direction.
#[derive(Clone, Copy, Debug)]
pub struct Along<'a> {
    /// The graph.
    pub graph: Graph<'a>,
    /// Which way its edges are followed.
    pub direction: Direction,
}

impl Walkable for Along<'_> {
    fn nodes(&self) -> usize {
        self.graph.nodes()
    }

    fn degree(&self, node: u32) -> usize {
        self.graph.degree(self.direction, node)
    }

    #[inline]
    fn each(&self, node: u32, mut visit: impl FnMut(u32, f32)) {
        let nodes = self.graph.nodes();
        for side in self.graph.sides(self.direction) {
            for (target, weight) in side.edges(node).filter(|(target, _)| index(*target) < nodes) {
                visit(target, weight);
            }
        }
    }
}

/// Edges in memory, by the node that they leave.
#[derive(Debug, Default)]
pub struct Copied {
    offsets: Vec<u8>,
    targets: Vec<u8>,
    weights: Vec<u8>,
}

impl Copied {
    /// Copies the edges of all nodes. Reads every edge once; holds 4 bytes a node and 8 an edge.
    ///
    /// # Errors
    /// Those of the guard.
    pub fn new(rows: &impl Walkable, guard: &Guard<'_>) -> Result<Self, QueryError> {
        let (nodes, mut pace, mut edges, mut most) = (rows.nodes(), guard.pace(), 0_usize, 0);
        for node in 0..number(nodes) {
            pace.step()?;
            edges = edges.saturating_add(rows.degree(node));
            most = rows.degree(node).max(most);
        }
        // Rows of a stranger may overlap, so that there are more edges than bytes.
        guard.hold::<[u32; 2]>(edges.saturating_add(most))?;
        guard.hold::<u32>(nodes + 1)?;
        let of = |count: usize| Vec::with_capacity(count.saturating_mul(size_of::<u32>()));
        let mut copied = Self { offsets: of(nodes + 1), targets: of(edges), weights: of(edges) };
        copied.offsets.extend(0_u32.to_le_bytes());
        let (mut row, mut count) = (Vec::new(), 0_u32);
        for node in 0..number(nodes) {
            pace.steps(1 + rows.degree(node))?;
            row.clear();
            rows.each(node, |target, weight| row.push((target, weight)));
            row.sort_by_key(|(target, _)| *target);
            for (target, weight) in &row {
                copied.targets.extend(target.to_le_bytes());
                copied.weights.extend(weight.to_bits().to_le_bytes());
            }
            count = count.saturating_add(number(row.len()));
            copied.offsets.extend(count.to_le_bytes());
        }
        Ok(copied)
    }

    /// The edges.
    #[must_use]
    pub fn adjacency(&self) -> Adjacency<'_> {
        let [offsets, targets, weights] =
            [&self.offsets, &self.targets, &self.weights].map(|bytes| U32s::new("copied edges", bytes));
        // Each is a whole number of values.
        Adjacency::new(offsets.unwrap_or_default(), targets.unwrap_or_default(), weights.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::graph::sample::{Sample, free};
    use crate::index::guard::QueryLimits;

    #[test]
    fn a_copy_has_the_edges_of_its_original_whatever_their_bytes() {
        for seed in 0..50 {
            for sample in [Sample::random(30, 90, seed), Sample::strange(30, 90, seed)] {
                let graph = sample.graph();
                let copied = Copied::new(&Along { graph, direction: Direction::Both }, &free()).unwrap();
                let adjacency = copied.adjacency();
                for node in graph.numbers() {
                    let mut expected: Vec<_> = graph.edges(Direction::Both, node).collect();
                    expected.sort_by_key(|(target, _)| *target);
                    let bits = |edges: Vec<(u32, f32)>| -> Vec<(u32, u32)> {
                        edges.into_iter().map(|(target, weight)| (target, weight.to_bits())).collect()
                    };
                    assert_eq!(bits(adjacency.edges(node).collect()), bits(expected));
                }
                let guard = Guard::new(QueryLimits { memory_bytes: 100, ..QueryLimits::default() });
                let refused = Copied::new(&Along { graph, direction: Direction::Both }, &guard);
                assert!(matches!(refused, Err(QueryError::Memory { .. })));
            }
        }
    }
}
