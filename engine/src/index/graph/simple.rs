//! A graph of which every node knows each of its neighbours once, in memory.

use crate::error::QueryError;
use crate::index::graph::{Direction, Graph, index};
use crate::index::guard::Guard;

/// Neighbours in a direction: each once, ascending, never the node itself.
#[derive(Debug, Default)]
pub struct Simple {
    offsets: Vec<usize>,
    targets: Vec<u32>,
}

impl Simple {
    /// The neighbours of all nodes. Reads every edge once; holds 8 bytes a node and 4 an edge.
    ///
    /// # Errors
    /// Those of the guard.
    pub fn new(graph: Graph<'_>, direction: Direction, guard: &Guard<'_>) -> Result<Self, QueryError> {
        let mut pace = guard.pace();
        let mut edges = 0_usize;
        for node in graph.numbers() {
            pace.step()?;
            edges = edges.saturating_add(graph.degree(direction, node));
        }
        // Rows of a stranger may overlap, so that there are more edges than bytes.
        guard.hold::<u32>(edges)?;
        guard.hold::<usize>(graph.nodes() + 1)?;
        let mut simple = Self { offsets: Vec::with_capacity(graph.nodes() + 1), targets: Vec::with_capacity(edges) };
        simple.offsets.push(0);
        let mut row = Vec::new();
        for node in graph.numbers() {
            pace.steps(1 + graph.degree(direction, node))?;
            neighbours(graph, direction, node, &mut row);
            simple.targets.extend_from_slice(&row);
            simple.offsets.push(simple.targets.len());
        }
        Ok(simple)
    }

    /// The neighbours of a node.
    #[must_use]
    #[inline]
    pub fn of(&self, node: u32) -> &[u32] {
        match self.offsets.get(index(node)..) {
            Some([start, end, ..]) => self.targets.get(*start..*end).unwrap_or_default(),
            _ => &[],
        }
    }
}

/// The neighbours of one node in place of what the list holds: each once, ascending, never the node itself.
#[expect(clippy::stable_sort_primitive, reason = "the stable sort merges the runs of the two sides as they are")]
pub fn neighbours(graph: Graph<'_>, direction: Direction, node: u32, list: &mut Vec<u32>) {
    list.clear();
    list.extend(graph.targets(direction, node).filter(|target| *target != node));
    if !list.is_sorted() {
        list.sort();
    }
    list.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::graph::sample::{Sample, free};
    use crate::index::guard::QueryLimits;
    use std::collections::BTreeSet;

    #[test]
    fn neighbours_are_the_sets_of_targets() {
        for seed in 0..50 {
            for sample in [Sample::random(40, 300, seed), Sample::strange(40, 200, seed)] {
                let graph = sample.graph();
                for direction in [Direction::Out, Direction::In, Direction::Both] {
                    let simple = Simple::new(graph, direction, &free()).unwrap();
                    for node in graph.numbers() {
                        let set: BTreeSet<u32> = graph.targets(direction, node).filter(|to| *to != node).collect();
                        assert_eq!(simple.of(node), set.into_iter().collect::<Vec<_>>());
                    }
                    assert_eq!(simple.of(40), [0; 0]);
                }
            }
        }
    }

    #[test]
    fn rows_that_overlap_are_refused_before_they_take_memory() {
        let mut sample = Sample::random(100, 1000, 1);
        for (at, offset) in sample.out.offsets.chunks_exact_mut(4).enumerate() {
            offset.copy_from_slice(&if at % 2 == 0 { 0_u32 } else { 900 }.to_le_bytes());
        }
        let guard = Guard::new(QueryLimits { memory_bytes: 100_000, ..QueryLimits::default() });
        assert!(matches!(Simple::new(sample.graph(), Direction::Out, &guard), Err(QueryError::Memory { .. })));
    }
}
