//! How many nodes lie within so many hops of some: breadth first, with a bit a node.

use crate::error::QueryError;
use crate::index::graph::{Adjacency, Direction, Graph, index, number};
use crate::index::guard::Guard;
use std::ops::Range;

/// Bits in a word.
const BITS: usize = 64;
/// The part of all nodes below which a hop never counts its edges.
const FEW: usize = 64;
/// Edges that are followed in the time that it takes to look from one node that is not reached. Of 2 to 32, 8 was the quickest, or
/// as quick as any, for dependencies of 100,000 packages and for a made-up graph of a million nodes with hubs.
const LOOKED: usize = 8;

/// What walks use one after the other; each clears what the one before touched. Grows to 4 bytes and 2 bits a node.
#[derive(Debug, Default)]
pub struct ReachScratch {
    nodes: usize,
    /// A bit for every node that was reached, and for what is beyond the last node.
    visited: Vec<u64>,
    /// The bits as they were before a hop.
    before: Vec<u64>,
    /// The nodes that were reached, by hops; then at least one place, and what was there before.
    order: Vec<u32>,
    reached: usize,
}

impl ReachScratch {
    /// The nodes that the last walk reached, seeds first, then by hops.
    #[must_use]
    pub fn reached(&self) -> &[u32] {
        self.order.get(..self.reached).unwrap_or_default()
    }

    fn clear(&mut self, nodes: usize) {
        let words = nodes.div_ceil(BITS);
        if self.nodes != nodes || self.visited.len() != words {
            (self.nodes, self.visited) = (nodes, vec![0; words]);
        } else if self.reached > words / 4 {
            self.visited.fill(0);
        } else {
            for node in self.order.iter().take(self.reached) {
                self.visited[index(*node) / BITS] = 0;
            }
        }
        // What is beyond the last node counts as visited, so that no one looks there.
        if let (Some(last), rest @ 1..) = (self.visited.last_mut(), nodes % BITS) {
            *last = u64::MAX << rest;
        }
        self.reached = 0;
    }

    /// Makes places for so many more nodes, or for all. There are never more places than twice what was reached at most, so that
    /// a short walk over a large graph touches little memory.
    #[inline]
    fn reserve(&mut self, count: usize) {
        // One more than there are nodes, as a node that is there already is written where the next one will be.
        let most = self.nodes.saturating_add(1);
        let needed = self.reached.saturating_add(count).saturating_add(1).min(most);
        if self.order.len() < needed {
            self.order.resize(needed.max(self.order.len().saturating_mul(2).min(most)), 0);
        }
    }

    /// Marks nodes as reached which are not yet and are nodes.
    #[inline]
    fn reach(&mut self, nodes: impl ExactSizeIterator<Item = u32>) {
        self.reserve(nodes.len());
        let (visited, order) = (self.visited.as_mut_slice(), self.order.as_mut_slice());
        let mut reached = self.reached;
        for node in nodes {
            let Some(word) = visited.get_mut(index(node) / BITS) else { continue };
            let Some(place) = order.get_mut(reached) else { break };
            // Whether a node is new is a guess that processors often get wrong: there is no branch.
            *place = node;
            reached += usize::from(*word >> (index(node) % BITS) & 1 == 0);
            *word |= 1 << (index(node) % BITS);
        }
        self.reached = reached;
    }
}

/// How many nodes lie at 0, 1, 2, … hops from the seeds and no nearer, up to `hops`; the list ends where there are no more.
/// Every edge out of what is reached before the last hop is read once, or, where that is most of the graph, edges into what is
/// not reached until one of them leads to what is (Beamer, Asanović, Patterson 2012).
///
/// # Errors
/// Those of the guard.
pub fn reach(
    graph: Graph<'_>,
    direction: Direction,
    seeds: &[u32],
    hops: usize,
    (scratch, guard): (&mut ReachScratch, &Guard<'_>),
) -> Result<Vec<usize>, QueryError> {
    guard.hold::<u32>(graph.nodes())?;
    guard.hold::<[u64; 2]>(graph.nodes().div_ceil(BITS))?;
    guard.poll()?;
    scratch.clear(graph.nodes());
    scratch.reach(seeds.iter().copied());
    let mut counts = vec![scratch.reached];
    let mut start = 0;
    for _ in 0..hops {
        let end = scratch.reached;
        if is_most(graph, direction, start..end, scratch) {
            against(graph.sides(direction.reversed()), scratch, guard)?;
        } else {
            along(graph.sides(direction), start..end, scratch, guard)?;
        }
        if scratch.reached == end {
            break;
        }
        counts.push(scratch.reached - end);
        start = end;
    }
    Ok(counts)
}

/// Follows every edge out of the nodes that the last hop reached.
fn along(
    sides: [Adjacency<'_>; 2],
    last: Range<usize>,
    scratch: &mut ReachScratch,
    guard: &Guard<'_>,
) -> Result<(), QueryError> {
    let mut pace = guard.pace();
    for at in last {
        let Some(node) = scratch.order.get(at).copied() else { break };
        for side in sides {
            let targets = side.targets(node);
            pace.steps(1 + targets.len())?;
            scratch.reach(targets);
        }
    }
    Ok(())
}

/// Whether it is quicker to look from what is not reached than from what the last hop reached.
fn is_most(graph: Graph<'_>, direction: Direction, last: Range<usize>, scratch: &ReachScratch) -> bool {
    if last.len() < graph.nodes() / FEW {
        return false;
    }
    let open = graph.nodes().saturating_sub(scratch.reached);
    let last = scratch.order.get(last).unwrap_or_default();
    let last: usize = last.iter().map(|node| graph.degree(direction, *node)).sum();
    last > open.saturating_mul(LOOKED)
}

/// Looks from every node that is not reached for an edge that leads there from one that is.
fn against(sides: [Adjacency<'_>; 2], scratch: &mut ReachScratch, guard: &Guard<'_>) -> Result<(), QueryError> {
    let mut before = std::mem::take(&mut scratch.before);
    before.clone_from(&scratch.visited);
    // What is beyond the last node leads nowhere.
    if let (Some(last), rest @ 1..) = (before.last_mut(), scratch.nodes % BITS) {
        *last &= !(u64::MAX << rest);
    }
    let looked = look(sides, &before, scratch, guard);
    scratch.before = before;
    looked
}

/// Reaches every node with an edge that leads, against its direction, to one that was reached before.
fn look(
    sides: [Adjacency<'_>; 2],
    before: &[u64],
    scratch: &mut ReachScratch,
    guard: &Guard<'_>,
) -> Result<(), QueryError> {
    let known = |node: u32| before.get(index(node) / BITS).is_some_and(|word| word & (1 << (index(node) % BITS)) != 0);
    let mut pace = guard.pace();
    for at in 0..scratch.visited.len() {
        let mut open = !scratch.visited[at];
        while open != 0 {
            let node = number(at * BITS) + open.trailing_zeros();
            open &= open - 1;
            for side in sides {
                let mut targets = side.targets(node);
                pace.steps(1 + targets.len())?;
                if targets.any(known) {
                    scratch.reach([node].into_iter());
                    break;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::graph::sample::{SMALL, Sample, Stopped, free};
    use crate::index::guard::QueryLimits;
    use std::collections::BTreeSet;

    fn naive(graph: Graph<'_>, direction: Direction, seeds: &[u32], hops: usize) -> Vec<BTreeSet<u32>> {
        let mut found: BTreeSet<u32> = BTreeSet::new();
        let mut last: BTreeSet<u32> = seeds.iter().copied().filter(|seed| index(*seed) < graph.nodes()).collect();
        let mut levels = vec![last.clone()];
        for _ in 0..hops {
            found.extend(&last);
            last =
                last.iter().flat_map(|node| graph.targets(direction, *node)).filter(|to| !found.contains(to)).collect();
            if last.is_empty() {
                break;
            }
            levels.push(last.clone());
        }
        levels
    }

    #[test]
    fn counts_are_those_of_sets_of_nodes_one_walk_after_the_other() {
        let mut scratch = ReachScratch::default();
        for (seed, nodes) in [1, 2, 63, 64, 65, 300, 128, 300].into_iter().enumerate() {
            for edges in [nodes / 2, nodes * 2, nodes * 20] {
                let sample = Sample::random(nodes, edges, seed as u64);
                let graph = sample.graph();
                for direction in [Direction::Out, Direction::In, Direction::Both] {
                    for (seeds, hops) in
                        [(vec![0], 1), (vec![nodes - 1, 0, nodes, 0], 2), (vec![nodes / 2], 9), (vec![], 3)]
                    {
                        let found = reach(graph, direction, &seeds, hops, (&mut scratch, &free())).unwrap();
                        let expected = naive(graph, direction, &seeds, hops);
                        assert_eq!(found, expected.iter().map(BTreeSet::len).collect::<Vec<_>>());
                        let mut rest = scratch.reached();
                        for level in expected {
                            let (these, others) = rest.split_at(level.len());
                            assert_eq!(these.iter().copied().collect::<BTreeSet<_>>(), level);
                            rest = others;
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn counts_are_those_of_a_small_graph_by_hand() {
        let sample = Sample::new(10, &SMALL);
        let mut scratch = ReachScratch::default();
        let mut count = |direction, seeds: &[u32]| {
            reach(sample.graph(), direction, seeds, usize::MAX, (&mut scratch, &free())).unwrap()
        };
        assert_eq!(count(Direction::Out, &[0]), [1, 2, 2, 1, 1, 1]);
        assert_eq!(count(Direction::In, &[7]), [1, 2, 1, 2, 2, 1]);
        assert_eq!(count(Direction::Both, &[8, 9]), [2, 1, 1, 2, 2, 2]);
    }

    #[test]
    fn a_walk_that_was_stopped_leaves_nothing_to_the_next() {
        let sample = Sample::random(100, 900, 1);
        let mut scratch = ReachScratch::default();
        let whole = reach(sample.graph(), Direction::Both, &[5], 9, (&mut scratch, &free())).unwrap();
        scratch.clear(100);
        scratch.reach([7].into_iter());
        let stopped = Guard::new(QueryLimits { control: &Stopped, ..QueryLimits::default() });
        assert!(against(sample.graph().sides(Direction::Both), &mut scratch, &stopped).is_err());
        assert_eq!(reach(sample.graph(), Direction::Both, &[5], 9, (&mut scratch, &free())).unwrap(), whole);
    }

    #[test]
    fn bytes_of_a_stranger_are_counted_to_the_end() {
        let mut scratch = ReachScratch::default();
        for seed in 0..200 {
            let sample = Sample::strange(100, 300, seed);
            for direction in [Direction::Out, Direction::In, Direction::Both] {
                let found = reach(sample.graph(), direction, &[3, 150], usize::MAX, (&mut scratch, &free())).unwrap();
                assert!(found.iter().sum::<usize>() <= 100);
            }
        }
    }
}
