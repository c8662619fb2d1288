//! Personalised `PageRank` of what lies near some nodes, by pushing what is left forward.

use crate::error::QueryError;
use crate::index::graph::walkable::{Along, Walkable};
use crate::index::graph::{Direction, Graph, index, real, strength, top};
use crate::index::guard::{Guard, Pace};
use std::collections::VecDeque;

/// The largest damping that is taken: beyond it a walk hardly ever ends.
const DAMPING_MAX: f64 = 0.999;
/// The smallest residual that is asked for.
const RESIDUAL_MIN: f64 = 1e-12;

/// How a walk spreads from its seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Push {
    /// Which way the walk follows edges.
    pub direction: Direction,
    /// Share of steps that follow an edge; the others start anew at a seed. Held to 0 to 0.999.
    pub damping: f64,
    /// What may stay at a node for each of its edges without being pushed on; held to 1e-12 and more. The work is at most
    /// `1 / (residual_max * (1 - damping))` edges.
    pub residual_max: f64,
    /// Whether a step chooses its edge by weight; edges whose weight is not above zero, or not finite, are then passed over.
    pub weighted: bool,
    /// Number of nodes to return.
    pub count: usize,
}

impl Default for Push {
    fn default() -> Self {
        Self { direction: Direction::Both, damping: 0.85, residual_max: 1e-5, weighted: false, count: 20 }
    }
}

/// What a walk found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pushed {
    /// The nodes with the highest scores. A score is never above the exact one, and all that are missing sum to `residual`.
    pub best: Vec<(u32, f64)>,
    /// The share of the walk that was not pushed on.
    pub residual: f64,
    /// Number of nodes that the walk came to.
    pub touched: usize,
    /// Number of edges that it followed.
    pub edges: usize,
}

/// What walks use one after the other; each clears what the one before touched. Grows to 24 bytes a node, of which a machine
/// with virtual memory provides only what is touched.
#[derive(Debug, Default)]
pub struct PushScratch {
    /// For each node its residual, and the residual from which on it is pushed, zero where it was not touched.
    residuals: Vec<[f64; 2]>,
    scores: Vec<f64>,
    touched: Vec<u32>,
    queue: VecDeque<u32>,
}

impl PushScratch {
    fn clear(&mut self, nodes: usize) {
        if self.scores.len() == nodes {
            for node in &self.touched {
                self.residuals[index(*node)] = [0.0; 2];
                self.scores[index(*node)] = 0.0;
            }
        } else {
            self.residuals = vec![[0.0; 2]; nodes];
            self.scores = vec![0.0; nodes];
        }
        self.touched.clear();
        self.queue.clear();
    }
}

/// The nodes with most personalised `PageRank` from some seeds, nodes with their shares (Andersen, Chung, Lang 2006): reads only
/// edges of nodes near the seeds. At a node that no edge leaves, a walk starts anew. What is no node, or no share above zero, is
/// passed over; where nothing remains, nothing is found.
///
/// # Errors
/// Those of the guard.
pub fn push(
    graph: Graph<'_>,
    seeds: &[(u32, f64)],
    options: &Push,
    within: (&mut PushScratch, &Guard<'_>),
) -> Result<Pushed, QueryError> {
    push_over(&Along { graph, direction: options.direction }, seeds, options, within)
}

/// The same over any graph, in the direction that it has; only nodes that count are among the best.
///
/// # Errors
/// Those of the guard.
pub fn push_over(
    graph: &impl Walkable,
    seeds: &[(u32, f64)],
    options: &Push,
    (scratch, guard): (&mut PushScratch, &Guard<'_>),
) -> Result<Pushed, QueryError> {
    guard.hold::<[f64; 4]>(graph.nodes())?;
    guard.hold::<[f64; 2]>(seeds.len())?;
    scratch.clear(graph.nodes());
    let seeds = shares(seeds, graph.nodes());
    let damping = if options.damping.is_nan() { 0.0 } else { options.damping.clamp(0.0, DAMPING_MAX) };
    let residual_max = if options.residual_max.is_nan() { 1.0 } else { options.residual_max.max(RESIDUAL_MIN) };
    let mut walk = Walk {
        graph,
        options: Push { damping, residual_max, ..*options },
        scratch,
        pace: guard.pace(),
        stuck: if seeds.is_empty() { 0.0 } else { 1.0 },
        edges: 0,
    };
    // What is stuck starts anew, all of it at the beginning.
    while walk.stuck > residual_max || walk.edges == 0 && walk.stuck > 0.0 {
        walk.pace.steps(seeds.len())?;
        let stuck = std::mem::take(&mut walk.stuck);
        for (seed, share) in &seeds {
            walk.add(*seed, share * stuck);
        }
        if walk.run()? == 0 {
            break;
        }
    }
    Ok(walk.end())
}

/// The seeds that are nodes, with shares that sum to 1.
fn shares(seeds: &[(u32, f64)], nodes: usize) -> Vec<(u32, f64)> {
    let sound = |(seed, share): &&(u32, f64)| index(*seed) < nodes && *share > 0.0 && share.is_finite();
    let mut shares: Vec<(u32, f64)> = seeds.iter().filter(sound).copied().collect();
    // By the largest one first, so that their sum is not too large for a number.
    let most = shares.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    let all: f64 = shares.iter().map(|(_, share)| share / most).sum();
    for (_, share) in &mut shares {
        *share = *share / most / all;
    }
    shares
}

struct Walk<'w, W> {
    graph: &'w W,
    options: Push,
    scratch: &'w mut PushScratch,
    pace: Pace<'w>,
    /// What came to nodes that no edge leaves.
    stuck: f64,
    edges: usize,
}

impl<W: Walkable> Walk<'_, W> {
    /// Leaves something at a node, which is pushed on once there is enough of it.
    #[inline]
    fn add(&mut self, node: u32, mass: f64) {
        let Some([residual, enough]) = self.scratch.residuals.get_mut(index(node)) else { return };
        if *enough == 0.0 {
            *enough = self.options.residual_max * real(self.graph.degree(node).max(1));
            self.scratch.touched.push(node);
        }
        let before = *residual;
        *residual += mass;
        // A node with enough is in the queue already.
        if before <= *enough && *residual > *enough {
            self.scratch.queue.push_back(node);
        }
    }

    /// Pushes on until no node has enough; the number of nodes that were pushed.
    fn run(&mut self) -> Result<usize, QueryError> {
        let mut pushed = 0;
        while let Some(node) = self.scratch.queue.pop_front() {
            let mass = std::mem::take(&mut self.scratch.residuals[index(node)][0]);
            self.scratch.scores[index(node)] += (1.0 - self.options.damping) * mass;
            self.leave(node, self.options.damping * mass)?;
            pushed += 1;
        }
        Ok(pushed)
    }

    /// Shares out what leaves a node among its edges.
    fn leave(&mut self, node: u32, mass: f64) -> Result<(), QueryError> {
        let (graph, weighted) = (self.graph, self.options.weighted);
        let degree = graph.degree(node);
        self.pace.steps(1 + degree)?;
        self.edges += degree;
        let mut all = 0.0;
        graph.each(node, |_, weight| all += strength(weight, weighted).unwrap_or_default());
        if all <= 0.0 {
            self.stuck += mass;
            return Ok(());
        }
        let part = mass / all;
        graph.each(node, |target, weight| {
            if let Some(strength) = strength(weight, weighted) {
                self.add(target, part * strength);
            }
        });
        Ok(())
    }

    /// The best nodes. A walk that is at a node starts anew there with what it does not follow edges with, so that much of its
    /// residual is sure to be the node's.
    fn end(self) -> Pushed {
        let anew = 1.0 - self.options.damping;
        let PushScratch { residuals, scores, touched, .. } = self.scratch;
        let residual: f64 = touched.iter().map(|node| residuals[index(*node)][0]).sum();
        let counted = touched.iter().filter(|node| self.graph.counts(**node));
        let scores = counted.map(|node| (*node, scores[index(*node)] + anew * residuals[index(*node)][0]));
        Pushed {
            best: top(scores, self.options.count),
            residual: self.options.damping * residual + self.stuck,
            touched: touched.len(),
            edges: self.edges,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::graph::pagerank::{PageRank, pagerank};
    use crate::index::graph::sample::{Sample, free};

    #[test]
    fn scores_are_below_the_exact_ones_by_no_more_than_the_residual() {
        let mut scratch = PushScratch::default();
        for seed in 0..30 {
            let sample = Sample::random(200, 500, seed);
            let seeds = [(3, 2.0), (150, 1.0), (7, f64::NAN), (200, 1.0)];
            for direction in [Direction::Out, Direction::In, Direction::Both] {
                let (weighted, count) = (seed % 2 == 0, 300);
                let ranks =
                    PageRank { direction, weighted, tolerance: 1e-14, reset: Some(&seeds), ..PageRank::default() };
                let exact = pagerank(sample.graph(), &ranks, &free()).unwrap().scores;
                for residual_max in [1e-2, 1e-4, 1e-7] {
                    let options = Push { direction, residual_max, weighted, count, ..Push::default() };
                    let found = push(sample.graph(), &seeds, &options, (&mut scratch, &free())).unwrap();
                    let sum: f64 = found.best.iter().map(|best| best.1).sum();
                    assert!((sum + found.residual - 1.0).abs() < 1e-9, "{found:?}");
                    for (node, score) in &found.best {
                        assert!(*score <= exact[index(*node)] + 1e-12, "{node} has {score}");
                    }
                    let missing: f64 = found.best.iter().map(|(node, score)| exact[index(*node)] - score).sum();
                    assert!(missing <= found.residual + 1e-9);
                }
            }
        }
    }

    #[test]
    fn the_work_is_bounded_by_the_residual_and_not_by_the_graph() {
        let sample = Sample::random(5000, 40_000, 4);
        let mut scratch = PushScratch::default();
        for residual_max in [1.0, 0.1, 1e-2, 1e-3, 1e-4] {
            let options = Push { residual_max, ..Push::default() };
            let found = push(sample.graph(), &[(3, 1.0)], &options, (&mut scratch, &free())).unwrap();
            assert!(real(found.edges) <= 1.0 / (residual_max * 0.15), "{found:?}");
        }
    }

    #[test]
    fn walks_from_nowhere_find_nothing_and_walks_that_end_at_once_their_seeds() {
        let sample = Sample::plain(4, &[(0, 1)]);
        let found = |seeds: &[(u32, f64)]| {
            push(sample.graph(), seeds, &Push::default(), (&mut PushScratch::default(), &free())).unwrap()
        };
        assert_eq!(found(&[]), Pushed::default());
        assert_eq!(found(&[(4, 1.0), (0, -1.0)]), Pushed::default());
        let alone = found(&[(3, 5.0)]);
        assert_eq!(alone.best.len(), 1);
        assert!((alone.best[0].1 - 1.0).abs() < 1e-4 && alone.residual < 1e-4, "{alone:?}");
    }

    #[test]
    fn bytes_of_a_stranger_lose_and_gain_nothing() {
        let mut scratch = PushScratch::default();
        for seed in 0..100 {
            let sample = Sample::strange(50, 150, seed);
            for (weighted, damping, residual_max) in [(false, 0.85, 1e-4), (true, 7.0, 1e-3), (true, f64::NAN, -1.0)] {
                let options = Push { weighted, damping, residual_max, count: 99, ..Push::default() };
                let found = push(sample.graph(), &[(9, 1.0), (30, 1.0)], &options, (&mut scratch, &free())).unwrap();
                let sum: f64 = found.best.iter().map(|best| best.1).sum();
                assert!((sum + found.residual - 1.0).abs() < 1e-6, "{found:?}");
            }
        }
    }
}
