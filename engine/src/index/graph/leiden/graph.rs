//! Undirected weighted graphs in memory, on which communities are found.

use crate::index::graph::leiden::random::Random;

/// Edges that a graph can have at most; what stands twice counts twice.
const EDGES_MAX: usize = 1 << 31;

/// The largest resolution, by which every node is long since alone unless weights are very unlike each other.
pub(super) const RESOLUTION_MAX: f64 = 1e9;

/// An undirected weighted graph: for each node its neighbours with the weight of the edge to each.
///
/// Takes 24 bytes for each edge between two nodes and 24 for each node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Undirected {
    /// Where the neighbours of each node begin, and at the end their number.
    pub(super) offsets: Vec<usize>,
    /// Neighbours, none the node itself.
    pub(super) targets: Vec<u32>,
    /// Weights of the edges to them, all positive.
    pub(super) weights: Vec<f64>,
    /// The weight of the edges of each node to itself.
    pub(super) loops: Vec<f64>,
    /// The weight of all ends of edges at each node; an edge to itself has both ends there.
    pub(super) strengths: Vec<f64>,
    /// The weight of all ends of edges.
    pub(super) total: f64,
}

/// Why edges make no graph, or a number no resolution.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphFault {
    /// An end is no node.
    #[error(
        "edge {edge} joins the nodes {from} and {to}, but there are {nodes} nodes, counted from 0; correct the edge"
    )]
    NoSuchNode {
        /// Its place among the edges.
        edge: usize,
        /// One end.
        from: u32,
        /// The other.
        to: u32,
        /// How many nodes there are.
        nodes: u32,
    },
    /// A weight is negative, infinite or no number.
    #[error("edge {edge} weighs {weight}; give it a finite weight that is not negative")]
    Weight {
        /// Its place among the edges.
        edge: usize,
        /// Its weight.
        weight: f32,
    },
    /// There are too many edges.
    #[error("there are more than {EDGES_MAX} edges; leave out the lightest")]
    TooMany,
    /// A resolution is negative, no number or too large.
    #[error("the resolution is {given}; give one from 0 to {RESOLUTION_MAX:e}, larger for smaller communities")]
    Resolution {
        /// What was given.
        given: f64,
    },
}

impl Undirected {
    /// A graph from its edges, each given once, in either direction and in any order, which does not show in the graph.
    ///
    /// Weights of edges between the same nodes add up in f64, and an edge of weight 0 is none. Takes time in proportion to nodes
    /// and edges, and for the time being another 32 bytes an edge.
    ///
    /// # Errors
    /// [`GraphFault`], for the first edge that is at fault.
    pub fn from_edges(nodes: u32, edges: impl IntoIterator<Item = (u32, u32, f32)>) -> Result<Self, GraphFault> {
        let mut kept = Vec::new();
        for (edge, (from, to, weight)) in edges.into_iter().enumerate() {
            if from >= nodes || to >= nodes {
                return Err(GraphFault::NoSuchNode { edge, from, to, nodes });
            }
            if !weight.is_finite() || weight < 0.0 {
                return Err(GraphFault::Weight { edge, weight });
            }
            if kept.len() >= EDGES_MAX {
                return Err(GraphFault::TooMany);
            }
            if weight > 0.0 {
                kept.push((from, to, weight));
            }
        }
        let arcs = || kept.iter().flat_map(|&(from, to, weight)| [(from, to, weight), (to, from, weight)]);
        // Placed by one end and then by the other, so that each row is in ascending order.
        let by_target = Rows::new(nodes, arcs);
        drop(kept);
        let rows = Rows::new(nodes, || by_target.arcs().map(|(to, from, weight)| (from, to, weight)));
        drop(by_target);
        Ok(rows.merged())
    }

    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.loops.len()
    }

    /// Number of edges, each between two nodes counted once, those of a node to itself left out.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.targets.len() / 2
    }

    /// A seed that follows from nodes, edges and weights. Where nodes are numbered in the order of their keys, no history shows in it.
    /// Reads the whole graph.
    #[must_use]
    pub fn seed(&self) -> u64 {
        let ends = self.offsets.iter().map(|offset| *offset as u64);
        let targets = self.targets.iter().map(|target| u64::from(*target));
        let weights = self.weights.iter().chain(&self.loops).map(|weight| weight.to_bits());
        ends.chain(targets).chain(weights).fold(0, |seed, number| Random::apart(seed, number).next())
    }

    /// The graph of the nodes of one community and of the edges between them. `places` has the place of each among the members.
    pub(super) fn induced(&self, members: &[u32], places: &[u32], communities: &[u32]) -> Self {
        let mut inside = Self { offsets: vec![0], ..Self::default() };
        for node in members.iter().map(|node| *node as usize) {
            for (other, weight) in self.neighbours(node) {
                if communities[other] == communities[node] {
                    inside.targets.push(places[other]);
                    inside.weights.push(weight);
                }
            }
            inside.offsets.push(inside.targets.len());
            inside.loops.push(self.loops[node]);
        }
        inside.with_strengths()
    }

    /// The neighbours of a node with the weights of the edges to them.
    pub fn neighbours(&self, node: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.offsets[node]..self.offsets[node + 1];
        self.targets[range.clone()].iter().zip(&self.weights[range]).map(|(target, weight)| (*target as usize, *weight))
    }

    /// Works out what follows from neighbours and loops.
    pub(super) fn with_strengths(mut self) -> Self {
        let strength =
            |node: usize| 2.0 * self.loops[node] + self.neighbours(node).map(|(_, weight)| weight).sum::<f64>();
        self.strengths = (0..self.nodes()).map(strength).collect();
        self.total = self.strengths.iter().sum();
        self
    }
}

/// Arcs, row by row.
struct Rows {
    offsets: Vec<usize>,
    arcs: Vec<(u32, f32)>,
}

impl Rows {
    /// Places arcs by their first end, in the order in which they come.
    fn new<I: Iterator<Item = (u32, u32, f32)>>(nodes: u32, arcs: impl Fn() -> I) -> Self {
        let mut offsets = vec![0; nodes as usize + 1];
        for (from, _, _) in arcs() {
            offsets[from as usize + 1] += 1;
        }
        for node in 1..offsets.len() {
            offsets[node] += offsets[node - 1];
        }
        let mut next = offsets.clone();
        let mut placed = vec![(0, 0.0); offsets[nodes as usize]];
        for (from, to, weight) in arcs() {
            let place = &mut next[from as usize];
            placed[*place] = (to, weight);
            *place += 1;
        }
        Self { offsets, arcs: placed }
    }

    fn arcs(&self) -> impl Iterator<Item = (u32, u32, f32)> + '_ {
        let rows = (0..).zip(self.offsets.windows(2));
        rows.flat_map(|(from, ends)| self.arcs[ends[0]..ends[1]].iter().map(move |(to, weight)| (from, *to, *weight)))
    }

    /// The graph of rows in ascending order, with what stands more than once added up.
    fn merged(mut self) -> Undirected {
        let nodes = self.offsets.len() - 1;
        let mut graph = Undirected { loops: vec![0.0; nodes], ..Undirected::default() };
        graph.offsets.reserve_exact(nodes + 1);
        graph.offsets.push(0);
        graph.targets.reserve_exact(self.arcs.len());
        graph.weights.reserve_exact(self.arcs.len());
        for node in 0..nodes {
            let row = &mut self.arcs[self.offsets[node]..self.offsets[node + 1]];
            for same in row.chunk_by_mut(|a, b| a.0 == b.0) {
                let target = same[0].0;
                // In an order of their own, since a sum of more than two depends on it.
                same.sort_unstable_by_key(|(_, weight)| weight.to_bits());
                let weight = same.iter().map(|(_, weight)| f64::from(*weight)).sum::<f64>();
                if target as usize == node {
                    // An edge of a node to itself has two arcs in its row.
                    graph.loops[node] = weight / 2.0;
                } else {
                    graph.targets.push(target);
                    graph.weights.push(weight);
                }
            }
            graph.offsets.push(graph.targets.len());
        }
        graph.with_strengths()
    }
}
