//! `PageRank` by power iteration, over all nodes or from some.

use crate::error::QueryError;
use crate::index::graph::{Direction, Graph, index, number, real, strength};
use crate::index::guard::Guard;
use rayon::prelude::*;

/// Nodes whose sums one thread makes at a time. Sums are added in this grain, so it decides their last bits.
const GRAIN: usize = 1024;

/// How ranks are computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageRank<'r> {
    /// Which way a walk follows edges.
    pub direction: Direction,
    /// Share of steps that follow an edge; the others start anew. Held to 0 to 1.
    pub damping: f64,
    /// The ranks are done when they change by no more than this, summed over all nodes. They are then at most
    /// `damping / (1 - damping)` times as far from the exact ones.
    pub tolerance: f64,
    /// The ranks are done after so many iterations, whatever they change by.
    pub iterations_max: u32,
    /// Whether a step chooses its edge by weight; edges whose weight is not above zero, or not finite, are then passed over.
    pub weighted: bool,
    /// Where a walk starts anew, nodes with their shares; none for anywhere. What is no node, or no share above zero, is
    /// passed over; where nothing remains, all ranks are zero.
    pub reset: Option<&'r [(u32, f64)]>,
}

impl Default for PageRank<'_> {
    fn default() -> Self {
        Self {
            direction: Direction::Out,
            damping: 0.85,
            tolerance: 1e-10,
            iterations_max: 200,
            weighted: false,
            reset: None,
        }
    }
}

/// What an iteration ended with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranks {
    /// The rank of every node; they sum to 1.
    pub scores: Vec<f64>,
    /// Iterations that were made.
    pub iterations: u32,
    /// What the last one changed, summed over all nodes.
    pub change: f64,
}

/// The share of its time that a walk of random steps spends at each node (Page, Brin, Motwani, Winograd 1999). At a node that
/// no edge leaves it starts anew. An iteration reads every edge once, in parallel; 32 bytes are held a node, 40 with a reset.
///
/// # Errors
/// Those of the guard.
pub fn pagerank(graph: Graph<'_>, options: &PageRank<'_>, guard: &Guard<'_>) -> Result<Ranks, QueryError> {
    let nodes = graph.nodes();
    guard.hold::<[f64; 4]>(nodes)?;
    let damping = if options.damping.is_nan() { 0.0 } else { options.damping.clamp(0.0, 1.0) };
    let start = Start::new(options.reset, nodes, guard)?;
    let mut iteration = Iteration {
        graph,
        options: PageRank { damping, ..*options },
        guard,
        strengths: strengths(graph, options, guard)?,
        shares: vec![0.0; nodes],
        start,
    };
    let mut ranks = Ranks { scores: (0..nodes).map(|node| iteration.start.share(node)).collect(), ..Ranks::default() };
    let mut next = vec![0.0; nodes];
    while ranks.iterations < options.iterations_max {
        ranks.change = iteration.step(&ranks.scores, &mut next)?;
        std::mem::swap(&mut ranks.scores, &mut next);
        ranks.iterations += 1;
        if ranks.change <= options.tolerance {
            break;
        }
    }
    Ok(ranks)
}

/// What leaves every node. Summed over the side that ranks are gathered from, so that a walk loses and gains nothing even where
/// the sides of a stranger differ.
fn strengths(graph: Graph<'_>, options: &PageRank<'_>, guard: &Guard<'_>) -> Result<Vec<f64>, QueryError> {
    let mut strengths = vec![0.0; graph.nodes()];
    let mut pace = guard.pace();
    let gathered = options.direction.reversed();
    for node in graph.numbers() {
        pace.steps(1 + graph.degree(gathered, node))?;
        for (source, weight) in graph.edges(gathered, node) {
            strengths[index(source)] += strength(weight, options.weighted).unwrap_or(0.0);
        }
    }
    Ok(strengths)
}

/// Where a walk starts.
enum Start {
    Anywhere(f64),
    Shares(Vec<f64>),
}

impl Start {
    fn new(reset: Option<&[(u32, f64)]>, nodes: usize, guard: &Guard<'_>) -> Result<Self, QueryError> {
        let Some(reset) = reset else { return Ok(Self::Anywhere(1.0 / real(nodes))) };
        guard.hold::<f64>(nodes)?;
        let mut shares = vec![0.0; nodes];
        let most = reset.iter().map(|(_, share)| *share).filter(|share| share.is_finite()).fold(0.0, f64::max);
        for (node, share) in reset.iter().filter(|(_, share)| *share > 0.0 && share.is_finite()) {
            if let Some(sum) = shares.get_mut(index(*node)) {
                // By the largest one first, so that no sum is too large for a number.
                *sum += share / most;
            }
        }
        let all: f64 = shares.iter().sum();
        if all > 0.0 {
            for share in &mut shares {
                *share /= all;
            }
        }
        Ok(Self::Shares(shares))
    }

    fn share(&self, node: usize) -> f64 {
        match self {
            Self::Anywhere(share) => *share,
            Self::Shares(shares) => shares.get(node).copied().unwrap_or_default(),
        }
    }
}

struct Iteration<'i, 'a> {
    graph: Graph<'a>,
    options: PageRank<'i>,
    guard: &'i Guard<'i>,
    /// What leaves each node.
    strengths: Vec<f64>,
    /// What each node passes on along an edge of weight 1.
    shares: Vec<f64>,
    start: Start,
}

impl Iteration<'_, '_> {
    /// The next ranks, and by how much they differ.
    fn step(&mut self, ranks: &[f64], next: &mut [f64]) -> Result<f64, QueryError> {
        let strengths = self.strengths.par_chunks(GRAIN).zip(ranks.par_chunks(GRAIN));
        let stuck: Vec<f64> = self
            .shares
            .par_chunks_mut(GRAIN)
            .zip(strengths)
            .map(|(shares, (strengths, ranks))| {
                let mut stuck = 0.0;
                for ((share, strength), rank) in shares.iter_mut().zip(strengths).zip(ranks) {
                    *share = if *strength > 0.0 { rank / strength } else { 0.0 };
                    stuck += if *strength > 0.0 { 0.0 } else { *rank };
                }
                stuck
            })
            .collect();
        let damping = self.options.damping;
        let anew = (1.0 - damping) + damping * stuck.iter().sum::<f64>();
        let changes: Result<Vec<f64>, QueryError> =
            next.par_chunks_mut(GRAIN).enumerate().map(|(grain, next)| self.gather(grain, anew, ranks, next)).collect();
        Ok(changes?.iter().sum())
    }

    /// The next ranks of one grain of nodes.
    fn gather(&self, grain: usize, anew: f64, ranks: &[f64], next: &mut [f64]) -> Result<f64, QueryError> {
        let PageRank { direction, damping, weighted, .. } = self.options;
        let (gathered, mut pace, mut change) = (direction.reversed(), self.guard.pace(), 0.0);
        for (at, (next, rank)) in next.iter_mut().zip(ranks.iter().skip(grain * GRAIN)).enumerate() {
            let at = grain * GRAIN + at;
            let node = number(at);
            pace.steps(1 + self.graph.degree(gathered, node))?;
            let mut sum = 0.0;
            if weighted {
                for (source, weight) in self.graph.edges(gathered, node) {
                    sum += strength(weight, true).unwrap_or(0.0) * self.shares[index(source)];
                }
            } else {
                for source in self.graph.targets(gathered, node) {
                    sum += self.shares[index(source)];
                }
            }
            *next = anew * self.start.share(at) + damping * sum;
            change += (*next - rank).abs();
        }
        Ok(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::graph::sample::{Random, SMALL, Sample, free, near, numbers, same_on_any_threads};

    /// Ranks from a matrix of steps, with as many iterations as it takes.
    fn naive(graph: Graph<'_>, options: &PageRank<'_>) -> Vec<f64> {
        let nodes = graph.nodes();
        let mut start = vec![if options.reset.is_some() { 0.0 } else { 1.0 / real(nodes) }; nodes];
        let all: f64 = options.reset.iter().copied().flatten().map(|(_, share)| share).sum();
        options.reset.iter().copied().flatten().for_each(|(node, share)| start[index(*node)] += share / all);
        let steps: Vec<Vec<(u32, f64)>> = graph
            .numbers()
            .map(|node| {
                let edges = graph.edges(options.direction, node);
                edges.filter_map(|(to, weight)| Some((to, strength(weight, options.weighted)?))).collect()
            })
            .collect();
        let mut ranks = start.clone();
        for _ in 0..150 {
            let mut next: Vec<f64> = start.iter().map(|share| (1.0 - options.damping) * share).collect();
            for (edges, rank) in steps.iter().zip(&ranks) {
                let all: f64 = edges.iter().map(|edge| edge.1).sum();
                if edges.is_empty() {
                    next.iter_mut().zip(&start).for_each(|(next, share)| *next += options.damping * rank * share);
                }
                for (to, weight) in edges {
                    next[index(*to)] += options.damping * rank * weight / all;
                }
            }
            ranks = next;
        }
        ranks
    }

    #[test]
    fn ranks_are_those_of_igraph() {
        let sample = Sample::new(10, &SMALL);
        let check = |options: &PageRank<'_>, expected: &[f64]| {
            let found = pagerank(sample.graph(), options, &free()).unwrap();
            assert!(near(&found.scores, expected, 1e-8), "{found:?}");
            assert!(found.change <= options.tolerance);
        };
        let plain = PageRank::default();
        let expected = numbers(
            "0.0712466116 0.112629081 0.104837741 0.130961645 0.13271462 0.138752984 0.144630608 0.110845566 0.0266905717 0.0266905717",
        );
        check(&plain, &expected);
        let expected = numbers(
            "0.115171502 0.212278156 0.146919591 0.197669961 0.0985918992 0.0593281319 0.0719391745 0.05508106 0.0215102624 0.0215102624",
        );
        check(&PageRank { weighted: true, ..plain }, &expected);
        let expected = numbers(
            "0.238799883 0.24026332 0.167501387 0.280110437 0.0366983567 0.0200969091 0.0140678364 0.00246187136 0.0 0.0",
        );
        check(&PageRank { weighted: true, damping: 0.7, reset: Some(&[(0, 1.0), (3, 1.0)]), ..plain }, &expected);
        let expected = numbers(
            "0.228424706 0.169274437 0.188126795 0.151946259 0.106895578 0.0698446322 0.0523790891 0.0232340382 0.00987446624 0.0",
        );
        check(&PageRank { direction: Direction::Both, reset: Some(&[(0, 3.0), (3, 1.0)]), ..plain }, &expected);
    }

    #[test]
    fn ranks_are_those_of_a_matrix_of_steps_on_any_threads() {
        for seed in 0..2 {
            let sample = Sample::random(1500, 2500, seed);
            for direction in [Direction::Out, Direction::In, Direction::Both] {
                let weighted = seed % 2 == 0;
                let options = PageRank { direction, weighted, damping: 0.8, tolerance: 1e-13, ..PageRank::default() };
                let found = same_on_any_threads(|| pagerank(sample.graph(), &options, &free()).unwrap());
                assert!(near(&found.scores, &naive(sample.graph(), &options), 1e-12));
                assert!((found.scores.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn a_reset_passes_over_what_is_no_node_or_no_share() {
        let sample = Sample::new(10, &SMALL);
        let ranks = |reset: &[(u32, f64)]| {
            pagerank(sample.graph(), &PageRank { reset: Some(reset), ..PageRank::default() }, &free()).unwrap().scores
        };
        let strange = [(0, f64::MAX), (3, f64::MAX), (1, f64::NAN), (2, -1.0), (4, f64::INFINITY), (10, 1.0), (5, 0.0)];
        assert_eq!(ranks(&strange), ranks(&[(3, 1.0), (0, 1.0)]));
        assert_eq!(ranks(&[(10, 1.0)]), [0.0; 10]);
        assert_eq!(ranks(&[]), [0.0; 10]);
    }

    #[test]
    fn bytes_of_a_stranger_give_ranks_that_sum_to_one() {
        for seed in 0..100 {
            let sample = Sample::strange(30, 90, seed);
            let damping = f64::from(Random(seed).below(30)) / 20.0 - 0.2;
            for weighted in [false, true] {
                let options = PageRank { weighted, damping, direction: Direction::Both, ..PageRank::default() };
                let found = pagerank(sample.graph(), &options, &free()).unwrap();
                assert!((found.scores.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{found:?}");
            }
        }
        assert_eq!(pagerank(Graph::default(), &PageRank::default(), &free()).unwrap().scores, [0.0; 0]);
    }
}
