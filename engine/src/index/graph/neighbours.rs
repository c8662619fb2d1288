//! What two or more nodes have in common, hubs counting less.

use crate::error::QueryError;
use crate::index::graph::simple::neighbours;
use crate::index::graph::{Direction, Graph, real, top};
use crate::index::guard::Guard;

/// How much a neighbour in common says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// The inverse logarithm of its number of neighbours, either way (Adamic, Adar 2003).
    #[default]
    AdamicAdar,
    /// The inverse of its number of neighbours, either way (Zhou, Lü, Zhang 2009).
    ResourceAllocation,
}

impl Measure {
    fn score(self, degree: usize) -> f64 {
        // Whatever two nodes have in common has both of them as neighbours; a stranger's sides may say less.
        let degree = real(degree.max(2));
        match self {
            Self::AdamicAdar => 1.0 / libm::log(degree),
            Self::ResourceAllocation => 1.0 / degree,
        }
    }
}

/// What nodes have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InCommon {
    /// Number of neighbours that all of the nodes have.
    pub count: usize,
    /// Sum of all their scores: how near the nodes are to each other.
    pub score: f64,
    /// The neighbours that say most, with their scores; among equals the lower number first.
    pub best: Vec<(u32, f64)>,
}

/// The neighbours that all of some nodes have in a direction, never one of the nodes themselves, with the `count` best of them.
/// Reads the edges of the nodes and of what they have in common.
///
/// # Errors
/// Those of the guard.
pub fn in_common(
    graph: Graph<'_>,
    (direction, measure): (Direction, Measure),
    nodes: &[u32],
    count: usize,
    guard: &Guard<'_>,
) -> Result<InCommon, QueryError> {
    let mut nodes = nodes.to_vec();
    nodes.sort_unstable();
    nodes.dedup();
    // The fewest first, so that what they have in common is short from the start.
    nodes.sort_by_key(|node| graph.degree(direction, *node));
    let (mut common, mut list, mut pace) = (Vec::new(), Vec::new(), guard.pace());
    for (at, node) in nodes.iter().enumerate() {
        let degree = graph.degree(direction, *node);
        guard.hold::<u32>(degree)?;
        pace.steps(1 + degree)?;
        neighbours(graph, direction, *node, &mut list);
        if at == 0 {
            std::mem::swap(&mut common, &mut list);
        } else {
            intersect(&mut common, &list);
        }
    }
    common.retain(|node| !nodes.contains(node));
    guard.hold::<(u32, f64)>(common.len())?;
    let mut scores = Vec::with_capacity(common.len());
    for node in common {
        let degree = graph.degree(Direction::Both, node);
        let mark = guard.mark();
        guard.hold::<u32>(degree)?;
        pace.steps(1 + degree)?;
        neighbours(graph, Direction::Both, node, &mut list);
        guard.release(mark);
        scores.push((node, measure.score(list.len())));
    }
    let score = scores.iter().map(|(_, score)| score).sum();
    Ok(InCommon { count: scores.len(), score, best: top(scores.into_iter(), count) })
}

/// Keeps what is in both lists; both ascend.
fn intersect(kept: &mut Vec<u32>, others: &[u32]) {
    let mut others = others.iter().copied().peekable();
    kept.retain(|node| {
        while others.next_if(|other| other < node).is_some() {}
        others.peek() == Some(node)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::graph::sample::{Sample, free};
    use std::collections::BTreeSet;

    #[test]
    fn hubs_say_less_than_what_few_have() {
        let sample =
            Sample::plain(9, &[(0, 2), (1, 2), (0, 3), (1, 3), (4, 3), (5, 3), (0, 1), (1, 1), (6, 0), (1, 6)]);
        let of = |direction, measure, nodes: &[u32]| {
            in_common(sample.graph(), (direction, measure), nodes, 2, &free()).unwrap()
        };
        let found = of(Direction::Both, Measure::ResourceAllocation, &[1, 0, 1]);
        assert_eq!((found.count, found.best), (3, vec![(2, 0.5), (6, 0.5)]));
        assert!((found.score - 1.25).abs() < 1e-12);
        let found = of(Direction::Out, Measure::AdamicAdar, &[0, 1]);
        assert_eq!(found.best, [(2, 1.0 / libm::log(2.0)), (3, 1.0 / libm::log(4.0))]);
        assert_eq!(of(Direction::Both, Measure::AdamicAdar, &[0, 1, 4]).best, [(3, 1.0 / libm::log(4.0))]);
        assert_eq!(of(Direction::Both, Measure::AdamicAdar, &[8, 0]), InCommon::default());
        assert_eq!(of(Direction::Both, Measure::AdamicAdar, &[]), InCommon::default());
        assert_eq!(of(Direction::In, Measure::AdamicAdar, &[99, 0]), InCommon::default());
    }

    #[test]
    fn what_nodes_have_in_common_is_the_intersection_of_sets() {
        for seed in 0..100 {
            for sample in [Sample::random(30, 200, seed), Sample::strange(30, 200, seed)] {
                let graph = sample.graph();
                for direction in [Direction::Out, Direction::In, Direction::Both] {
                    let nodes = [3, 17, 5];
                    let found = in_common(graph, (direction, Measure::default()), &nodes, 99, &free()).unwrap();
                    let sets = nodes
                        .map(|node| graph.targets(direction, node).filter(|to| *to != node).collect::<BTreeSet<_>>());
                    let all = |node: &u32| sets.iter().all(|set| set.contains(node)) && !nodes.contains(node);
                    let expected: BTreeSet<u32> = sets[0].iter().copied().filter(all).collect();
                    assert_eq!(found.best.iter().map(|best| best.0).collect::<BTreeSet<_>>(), expected);
                    assert_eq!(found.count, expected.len());
                }
            }
        }
    }
}
