//! How many edges nodes have: the mean, the most, the hubs, and how degrees are spread.

use crate::error::QueryError;
use crate::index::graph::{Direction, Graph, real};
use crate::index::guard::Guard;

/// How many edges the nodes of a graph have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Degrees {
    /// Sum of the degrees of all nodes.
    pub edges: usize,
    /// Mean degree; zero without nodes.
    pub mean: f64,
    /// Largest degree.
    pub max: usize,
    /// Number of nodes without edges; with 1; with 2 and 3; with 4 to 7; and so on, up to the largest degree.
    pub spread: Vec<usize>,
    /// The nodes with most edges and their degrees, most first; among equals the lower number first.
    pub hubs: Vec<(u32, usize)>,
}

/// The degrees of a graph's nodes in a direction, with so many hubs. Reads every edge once, as a target that is no node doesn't
/// count.
///
/// # Errors
/// Those of the guard.
pub fn degrees(graph: Graph<'_>, direction: Direction, hubs: usize, guard: &Guard<'_>) -> Result<Degrees, QueryError> {
    guard.hold::<(u32, usize)>(graph.nodes())?;
    let mut pace = guard.pace();
    let mut found = Degrees::default();
    for node in graph.numbers() {
        pace.steps(1 + graph.degree(direction, node))?;
        let degree = graph.targets(direction, node).count();
        found.edges = found.edges.saturating_add(degree);
        found.max = found.max.max(degree);
        let class = usize::try_from(usize::BITS - degree.leading_zeros()).unwrap_or(0);
        if found.spread.len() <= class {
            found.spread.resize(class + 1, 0);
        }
        found.spread[class] += 1;
        found.hubs.push((node, degree));
    }
    found.mean = if graph.nodes() == 0 { 0.0 } else { real(found.edges) / real(graph.nodes()) };
    found.hubs.sort_by_key(|(_, degree)| std::cmp::Reverse(*degree));
    found.hubs.truncate(hubs);
    found.hubs.shrink_to_fit();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::graph::sample::{SMALL, Sample, free};

    #[test]
    fn degrees_are_counted_in_each_direction() {
        let sample = Sample::new(10, &SMALL);
        let of = |direction| degrees(sample.graph(), direction, 3, &free()).unwrap();
        let out = of(Direction::Out);
        assert_eq!((out.edges, out.max, out.spread), (14, 2, vec![2, 2, 6]));
        assert_eq!(out.hubs, [(0, 2), (1, 2), (2, 2)]);
        assert!((out.mean - 1.4).abs() < 1e-12);
        let both = of(Direction::Both);
        assert_eq!((both.edges, both.max, both.spread), (28, 4, vec![1, 1, 4, 4]));
        assert_eq!(both.hubs, [(1, 4), (2, 4), (3, 4)]);
    }

    #[test]
    fn targets_that_are_no_node_do_not_count() {
        for seed in 0..50 {
            let sample = Sample::strange(40, 150, seed);
            let graph = sample.graph();
            let found = degrees(graph, Direction::Out, 99, &free()).unwrap();
            let counted: usize = graph.numbers().map(|node| graph.targets(Direction::Out, node).count()).sum();
            assert_eq!((found.edges, found.hubs.len(), found.spread.iter().sum()), (counted, 40, 40_usize));
        }
        assert_eq!(degrees(Graph::default(), Direction::Both, 5, &free()).unwrap(), Degrees::default());
    }
}
