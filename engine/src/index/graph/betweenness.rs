//! How many shortest paths lead through each node, counted from all nodes or from a sample of them.

use crate::error::QueryError;
use crate::index::graph::simple::Simple;
use crate::index::graph::{Direction, Graph, index, real};
use crate::index::guard::Guard;
use rayon::prelude::*;

/// Parts that the sources are cut into; each is summed on one thread, and the sums are added in order.
const PARTS: usize = 16;
/// A number of paths from which on a hop counts in units of it, as there may be more paths than a number can tell.
const MANY: f64 = 1e150;

/// How paths are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Betweenness {
    /// Which way paths follow edges. Either way, each pair of nodes counts once, else once for each order.
    pub direction: Direction,
    /// Nodes that paths begin at; where there are no more nodes, the result is exact.
    pub sources_max: usize,
    /// Chooses the sample.
    pub seed: u64,
}

impl Default for Betweenness {
    fn default() -> Self {
        Self { direction: Direction::Both, sources_max: 256, seed: 0 }
    }
}

/// The betweenness of all nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Between {
    /// For each node the sum, over all pairs of other nodes, of the share of their shortest paths that lead through it;
    /// estimated where not every node was a source.
    pub scores: Vec<f64>,
    /// Number of nodes that paths began at.
    pub sources: usize,
}

/// The betweenness of all nodes (Brandes 2001; sampled, Brandes and Pich 2007): shortest paths by number of edges, edges
/// between the same nodes counting as one. Sources are the nodes whose hash with the seed is lowest; what they give is scaled to
/// all nodes. A source reads every edge twice; 520 bytes are held a node, and 4 an edge.
///
/// # Errors
/// Those of the guard.
pub fn betweenness(graph: Graph<'_>, options: Betweenness, guard: &Guard<'_>) -> Result<Between, QueryError> {
    let nodes = graph.nodes();
    guard.hold::<[[f64; 4]; PARTS]>(nodes)?;
    guard.hold::<(u64, u32)>(nodes)?;
    let simple = Simple::new(graph, options.direction, guard)?;
    let sources = sources(graph, options);
    let parts: Result<Vec<Vec<f64>>, QueryError> = sources
        .par_chunks(sources.len().div_ceil(PARTS).max(1))
        .map(|part| {
            let mut count = Count::new(&simple, nodes);
            part.iter().try_for_each(|source| count.from(*source, guard))?;
            Ok(count.scores)
        })
        .collect();
    let both = if options.direction == Direction::Both { 0.5 } else { 1.0 };
    let scale = both * real(nodes) / real(sources.len().max(1));
    let mut scores = vec![0.0; nodes];
    for part in parts? {
        scores.iter_mut().zip(part).for_each(|(score, part)| *score += part);
    }
    for score in &mut scores {
        *score *= scale;
    }
    Ok(Between { scores, sources: sources.len() })
}

/// The sources, ascending.
fn sources(graph: Graph<'_>, options: Betweenness) -> Vec<u32> {
    if options.sources_max >= graph.nodes() {
        return graph.numbers().collect();
    }
    let mut hashed: Vec<(u64, u32)> = graph.numbers().map(|node| (hash(options.seed, node), node)).collect();
    hashed.select_nth_unstable(options.sources_max);
    hashed.truncate(options.sources_max);
    let mut sources: Vec<u32> = hashed.into_iter().map(|(_, node)| node).collect();
    sources.sort_unstable();
    sources
}

/// `SplitMix64` (Steele, Lea, Flood 2014) of a node.
fn hash(seed: u64, node: u32) -> u64 {
    let mut mixed = seed.wrapping_add(u64::from(node).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Counts paths from one source after the other.
struct Count<'s> {
    simple: &'s Simple,
    scores: Vec<f64>,
    /// One more than the hops from the source; zero where a node was not reached.
    hops: Vec<u32>,
    /// Number of shortest paths from the source, and what of other nodes depends on this one.
    paths: Vec<[f64; 2]>,
    order: Vec<u32>,
}

impl<'s> Count<'s> {
    fn new(simple: &'s Simple, nodes: usize) -> Self {
        let (scores, hops, paths) = (vec![0.0; nodes], vec![0; nodes], vec![[0.0; 2]; nodes]);
        Self { simple, scores, hops, paths, order: Vec::new() }
    }

    /// Adds what paths from a source give.
    fn from(&mut self, source: u32, guard: &Guard<'_>) -> Result<(), QueryError> {
        self.order.clear();
        self.order.push(source);
        self.hops[index(source)] = 1;
        self.paths[index(source)][0] = 1.0;
        let mut levels = vec![(0, 1.0)];
        let mut start = 0;
        while start < self.order.len() {
            let end = self.order.len();
            self.hop(start..end, guard)?;
            levels.push((end, self.scale(end)));
            start = end;
        }
        self.back(&levels, guard)?;
        for node in self.order.iter().map(|node| index(*node)) {
            self.scores[node] += if node == index(source) { 0.0 } else { self.paths[node][1] };
            self.hops[node] = 0;
            self.paths[node] = [0.0; 2];
        }
        Ok(())
    }

    /// One hop on from the nodes at these places of the order.
    fn hop(&mut self, last: std::ops::Range<usize>, guard: &Guard<'_>) -> Result<(), QueryError> {
        let mut pace = guard.pace();
        for at in last {
            let node = self.order[at];
            let (hops, paths) = (self.hops[index(node)], self.paths[index(node)][0]);
            let neighbours = self.simple.of(node);
            pace.steps(1 + neighbours.len())?;
            for neighbour in neighbours {
                let known = &mut self.hops[index(*neighbour)];
                if *known == 0 {
                    *known = hops + 1;
                    self.order.push(*neighbour);
                }
                if *known == hops + 1 {
                    self.paths[index(*neighbour)][0] += paths;
                }
            }
        }
        Ok(())
    }

    /// Counts the paths to the nodes from this place of the order on in a unit that numbers can tell, and returns one in it.
    fn scale(&mut self, start: usize) -> f64 {
        let (order, paths) = (&self.order, &mut self.paths);
        let reached = order.get(start..).unwrap_or_default();
        if !reached.iter().any(|node| paths[index(*node)][0] > MANY) {
            return 1.0;
        }
        for node in reached {
            let count = &mut paths[index(*node)][0];
            *count = (*count / MANY).max(f64::MIN_POSITIVE);
        }
        1.0 / MANY
    }

    /// From the farthest nodes back: a node passes on what depends on it to those before it by their shares of its paths.
    fn back(&mut self, levels: &[(usize, f64)], guard: &Guard<'_>) -> Result<(), QueryError> {
        let mut pace = guard.pace();
        let mut end = self.order.len();
        let mut unit = 1.0;
        for (start, next) in levels.iter().rev() {
            for node in self.order.get(*start..end).unwrap_or_default() {
                let (hops, [paths, _]) = (self.hops[index(*node)], self.paths[index(*node)]);
                let neighbours = self.simple.of(*node);
                pace.steps(1 + neighbours.len())?;
                let mut depends = 0.0;
                for neighbour in neighbours.iter().map(|neighbour| index(*neighbour)) {
                    if self.hops[neighbour] == hops + 1 {
                        let [beyond, dependent] = self.paths[neighbour];
                        depends += paths / beyond * unit * (1.0 + dependent);
                    }
                }
                self.paths[index(*node)][1] = depends;
            }
            (end, unit) = (*start, *next);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::graph::sample::{SMALL, Sample, free, near, numbers, same_on_any_threads};

    fn all(direction: Direction) -> Betweenness {
        Betweenness { direction, sources_max: usize::MAX, ..Betweenness::default() }
    }

    #[test]
    fn betweenness_is_that_of_igraph() {
        let sample = Sample::new(10, &SMALL);
        let of = |direction| betweenness(sample.graph(), all(direction), &free()).unwrap().scores;
        assert!(near(&of(Direction::Out), &numbers("1 11 9 13.5 14.5 10.5 11.5 0 0 0"), 1e-12));
        assert!(near(&of(Direction::Both), &numbers("0 2 6 4 11.5 2.5 12 7 0 0"), 1e-12));
    }

    #[test]
    fn betweenness_is_what_all_pairs_of_paths_give_on_any_threads() {
        for seed in 0..10 {
            let sample = Sample::random(40, 90, seed);
            for direction in [Direction::Out, Direction::In, Direction::Both] {
                let found = same_on_any_threads(|| betweenness(sample.graph(), all(direction), &free()).unwrap());
                assert!(near(&found.scores, &naive(sample.graph(), direction), 1e-9));
            }
        }
    }

    /// From distances and numbers of paths between all pairs: a node is between two when the distances over it add up.
    fn naive(graph: Graph<'_>, direction: Direction) -> Vec<f64> {
        let simple = Simple::new(graph, direction, &free()).unwrap();
        let nodes = graph.nodes();
        let from = |source: u32| {
            let (mut hops, mut paths) = (vec![usize::MAX; nodes], vec![0.0; nodes]);
            (hops[index(source)], paths[index(source)]) = (0, 1.0);
            for hop in 0..nodes {
                for node in graph.numbers().filter(|node| hops[index(*node)] == hop).collect::<Vec<_>>() {
                    for to in simple.of(node).iter().map(|to| index(*to)) {
                        hops[to] = hops[to].min(hop + 1);
                        paths[to] += if hops[to] == hop + 1 { paths[index(node)] } else { 0.0 };
                    }
                }
            }
            (hops, paths)
        };
        let all: Vec<_> = graph.numbers().map(from).collect();
        let mut scores = vec![0.0; nodes];
        for (a, b) in (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            for node in (0..nodes).filter(|node| *node != a && *node != b) {
                let (before, beyond) = (all[a].0[node], all[node].0[b]);
                if before < nodes && beyond < nodes && before + beyond == all[a].0[b] {
                    scores[node] += all[a].1[node] * all[node].1[b] / all[a].1[b];
                }
            }
        }
        let both = if direction == Direction::Both { 0.5 } else { 1.0 };
        scores.iter().map(|score| score * both).collect()
    }

    #[test]
    fn a_sample_is_chosen_by_its_seed_and_comes_near_the_whole() {
        let sample = Sample::random(400, 1600, 3);
        let graph = sample.graph();
        let of = |sources_max, seed| {
            betweenness(graph, Betweenness { sources_max, seed, ..Betweenness::default() }, &free()).unwrap()
        };
        let (exact, some) = (of(400, 0), of(200, 1));
        assert_eq!((exact.sources, some.sources), (400, 200));
        assert_eq!(some, of(200, 1));
        assert_ne!(some, of(200, 2));
        assert_eq!(exact, of(usize::MAX, 9));
        let sum = |scores: &[f64]| scores.iter().sum::<f64>();
        assert!((sum(&some.scores) / sum(&exact.scores) - 1.0).abs() < 0.1);
        assert_eq!(of(0, 0).scores, [0.0; 400]);
    }

    #[test]
    fn more_paths_than_a_number_can_tell_are_shared_out_as_they_should() {
        // A chain of 2,000 diamonds: 2^2000 paths from end to end, half of all that pass a diamond through each side.
        let edges: Vec<(u32, u32)> =
            (0..2000).flat_map(|at| [(0, 1), (0, 2), (1, 3), (2, 3)].map(|(a, b)| (3 * at + a, 3 * at + b))).collect();
        let sample = Sample::plain(6001, &edges);
        let options = Betweenness { direction: Direction::Out, sources_max: 30, seed: 5 };
        let scores = betweenness(sample.graph(), options, &free()).unwrap().scores;
        assert!(scores.iter().all(|score| score.is_finite()));
        let sources = sources(sample.graph(), options);
        for diamond in 0..2000 {
            let before = sources.iter().filter(|source| index(**source) <= 3 * diamond).count();
            let expected = 0.5 * real(before * (6001 - 3 * diamond - 3)) * 6001.0 / 30.0;
            assert!(near(&scores[3 * diamond + 1..3 * diamond + 3], &[expected; 2], 1e-9 * expected));
        }
    }

    #[test]
    fn bytes_of_a_stranger_give_finite_numbers() {
        for seed in 0..50 {
            let sample = Sample::strange(40, 150, seed);
            let scores = betweenness(sample.graph(), all(Direction::Both), &free()).unwrap().scores;
            assert!(scores.iter().all(|score| score.is_finite() && *score >= 0.0));
        }
    }
}
