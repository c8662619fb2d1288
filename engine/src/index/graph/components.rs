//! Weakly connected components, by union and find.

use crate::error::QueryError;
use crate::index::graph::{Graph, index, number};
use crate::index::guard::Guard;

/// Which nodes hang together, whatever the direction of edges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Components {
    /// The component of every node; components are numbered in the order of their lowest nodes.
    pub of_nodes: Vec<u32>,
    /// Number of nodes in every component.
    pub sizes: Vec<u32>,
}

/// The weakly connected components of a graph. Reads every edge once; holds 12 bytes a node.
///
/// # Errors
/// Those of the guard.
pub fn components(graph: Graph<'_>, guard: &Guard<'_>) -> Result<Components, QueryError> {
    guard.hold::<[u32; 3]>(graph.nodes())?;
    let mut roots = Roots(graph.numbers().collect());
    let mut pace = guard.pace();
    // Both sides hold the same edges, so one is enough.
    for node in graph.numbers() {
        pace.steps(1 + graph.out.degree(node))?;
        for target in graph.out.targets(node) {
            roots.join(node, target);
        }
    }
    let mut found = Components { of_nodes: vec![0; graph.nodes()], sizes: Vec::new() };
    for node in graph.numbers() {
        pace.step()?;
        let root = roots.find(node);
        // A root is the lowest node of its component, so it comes before the others.
        let component = if root == node { number(found.sizes.len()) } else { found.of_nodes[index(root)] };
        found.of_nodes[index(node)] = component;
        match found.sizes.get_mut(index(component)) {
            Some(size) => *size += 1,
            None => found.sizes.push(1),
        }
    }
    Ok(found)
}

/// For every node one that it hangs together with, never a higher one.
struct Roots(Vec<u32>);

impl Roots {
    /// The lowest node that a node is known to hang together with; halves the way there.
    fn find(&mut self, mut node: u32) -> u32 {
        loop {
            let above = self.0[index(node)];
            if above == node {
                return node;
            }
            self.0[index(node)] = self.0[index(above)];
            node = above;
        }
    }

    fn join(&mut self, node: u32, target: u32) {
        if index(target) >= self.0.len() {
            return;
        }
        let (a, b) = (self.find(node), self.find(target));
        self.0[index(a.max(b))] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::graph::Direction;
    use crate::index::graph::sample::{Sample, free};
    use crate::index::guard::QueryLimits;

    #[test]
    fn components_are_numbered_by_their_lowest_nodes() {
        let sample = Sample::plain(7, &[(6, 0), (4, 2), (2, 5), (3, 3)]);
        let found = components(sample.graph(), &free()).unwrap();
        assert_eq!(found.of_nodes, [0, 1, 2, 3, 2, 2, 0]);
        assert_eq!(found.sizes, [2, 1, 3, 1]);
    }

    #[test]
    fn components_are_those_that_walks_find() {
        for seed in 0..40 {
            let sample = Sample::random(60, 20 + u32::try_from(seed).unwrap(), seed);
            let graph = sample.graph();
            let found = components(graph, &free()).unwrap();
            let (mut expected, mut sizes) = (vec![u32::MAX; 60], Vec::new());
            for node in graph.numbers() {
                if expected[index(node)] != u32::MAX {
                    continue;
                }
                let mut open = vec![node];
                let before = expected.iter().filter(|component| **component != u32::MAX).count();
                while let Some(node) = open.pop() {
                    if expected[index(node)] == u32::MAX {
                        expected[index(node)] = number(sizes.len());
                        open.extend(graph.targets(Direction::Both, node));
                    }
                }
                sizes.push(number(expected.iter().filter(|component| **component != u32::MAX).count() - before));
            }
            assert_eq!((found.of_nodes, found.sizes), (expected, sizes));
        }
    }

    #[test]
    fn bytes_of_a_stranger_give_some_components_and_too_little_memory_none() {
        for seed in 0..100 {
            let sample = Sample::strange(30, 90, seed);
            let found = components(sample.graph(), &free()).unwrap();
            assert_eq!(found.sizes.iter().sum::<u32>(), 30);
            let guard = Guard::new(QueryLimits { memory_bytes: 300, ..QueryLimits::default() });
            assert!(matches!(components(sample.graph(), &guard), Err(QueryError::Memory { .. })));
        }
    }
}
