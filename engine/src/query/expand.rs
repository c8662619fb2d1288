//! k-hop expansion: breadth first, with the best path to every node, the same from run to run.

use crate::error::QueryError;
use crate::query::graph::{Direction, Edge};
use crate::query::{ChunkSet, EdgeKind, Node};
use crate::snapshot::Bounded;
use hedgerow_format::Key;
use serde::Serialize;
use std::collections::BTreeMap;

/// How far and along what to expand.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpandOptions {
    /// Kinds of edges that are followed.
    pub edges: Vec<EdgeKind>,
    /// Labels of relations that are followed; empty for all.
    pub predicates: Vec<String>,
    /// Which way.
    pub direction: Direction,
    /// Depth.
    pub hops: usize,
    /// Edges that are followed out of one node: the heaviest, among equals those with the lower target key.
    pub fan_out: usize,
    /// A node with more edges of the kinds that are followed is reached, but not walked through, unless it is a seed.
    pub degree_max: usize,
    /// Whether a node counts for less the more edges it has: its score is multiplied by its idf, ln((n + 1) / (edges + 1)) /
    /// ln(n + 1) where the graph has n nodes.
    pub idf: bool,
    /// Edges below this weight are passed over.
    pub weight_min: f32,
    /// Nodes that are returned.
    pub limit: usize,
    /// Edges that are returned with a subgraph: those that are followed first.
    pub edge_limit: usize,
    /// What is returned beside how many were reached.
    pub returned: Returned,
}

/// What an expansion returns beside how many nodes were reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Returned {
    /// Nothing; no limit of nodes holds.
    Counts,
    /// The nodes, with the best path to each.
    #[default]
    Nodes,
    /// The nodes, and every edge that was followed between them.
    Subgraph,
}

impl ExpandOptions {
    /// All that is within so many hops, along edges of any kind and direction.
    #[must_use]
    pub fn all_within(hops: usize) -> Self {
        Self { hops, fan_out: usize::MAX, returned: Returned::Counts, ..Self::default() }
    }
}

impl Default for ExpandOptions {
    fn default() -> Self {
        Self {
            edges: EdgeKind::ALL.to_vec(),
            predicates: Vec::new(),
            direction: Direction::Both,
            hops: 1,
            fan_out: 64,
            degree_max: usize::MAX,
            idf: false,
            weight_min: 0.0,
            limit: 50,
            edge_limit: usize::MAX,
            returned: Returned::Nodes,
        }
    }
}

/// What was reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Expansion {
    /// How many nodes were reached with each number of hops, from 0.
    pub reached: Vec<u64>,
    /// By hop, then best path first.
    pub nodes: Vec<Reached>,
    /// Every edge that was followed between them, once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<PathEdge>,
    /// Whether a limit cut the walk short.
    pub truncated: bool,
    /// What the answer lacks.
    pub incomplete: Vec<String>,
}

/// A node that was reached.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reached {
    /// `doc:KEY`, `chunk:KEY#N` or `entity:NAME`.
    pub key: String,
    /// Edges from a seed.
    pub hop: usize,
    /// Product of the weights along the best path, each cut at 1.
    pub score: f32,
    /// The best path: the fewest edges, then the highest score. Empty for a seed.
    pub path: Vec<PathEdge>,
}

/// One edge of a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathEdge {
    /// Where it starts.
    pub from: String,
    /// Its kind.
    pub edge: EdgeKind,
    /// The predicate of a relation; else empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// Whether it is walked against its direction.
    pub reversed: bool,
    /// Where it leads.
    pub to: String,
    /// Its weight.
    pub weight: f32,
}

/// How a node was reached: its score, and the edge with the node that it came from.
#[derive(Clone, Copy, Debug)]
struct Arrival<'s> {
    hop: usize,
    score: f32,
    from: Option<(Node, Edge<'s>)>,
}

/// Bytes that an edge takes, and its target where it is new: in a map, in an order, and with keys to sort by.
const EDGE_BYTES: u64 = 384;

/// An expansion under way.
struct Walk<'w, 's> {
    store: &'s Bounded<'s>,
    options: &'w ExpandOptions,
    kinds: Vec<EdgeKind>,
    /// Nodes of the graph, for their idf.
    nodes: u64,
    arrivals: BTreeMap<Node, Arrival<'s>>,
    order: Vec<Node>,
    reached: Vec<u64>,
    followed: Vec<(Node, Edge<'s>)>,
    truncated: bool,
}

impl Bounded<'_> {
    /// See [`Snapshot::expand`](crate::Snapshot::expand).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn expand(&self, seeds: &[Node], options: &ExpandOptions) -> Result<Expansion, QueryError> {
        self.guard.scope(|| {
            if let Some(reached) = self.counted(seeds, options)? {
                return Ok(Expansion { reached, incomplete: self.incomplete(), ..Expansion::default() });
            }
            Walk::to_end(self, seeds, options)?.expansion()
        })
    }

    /// See [`Snapshot::chunks_within`](crate::Snapshot::chunks_within).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn chunks_within(&self, seeds: &[Node], options: &ExpandOptions) -> Result<ChunkSet, QueryError> {
        self.guard.scope(|| {
            let walk = Walk::to_end(self, seeds, options)?;
            let chunk = |node: &Node| if let Node::Chunk(chunk) = node { Some(chunk.0) } else { None };
            Ok(ChunkSet { chunks: walk.arrivals.keys().filter_map(chunk).collect() })
        })
    }

    /// What a node is ordered by among equals, which no history shows in: its key and, in a document, its place.
    pub(super) fn tie(&self, node: Node) -> Result<(Key, u32), QueryError> {
        Ok(match node {
            Node::Document(id) => (Key::of_document(self.document(id)?.key()?), 0),
            Node::Chunk(id) => {
                let chunk = self.chunk(id)?;
                (Key::of_document(chunk.document()?.key()?), chunk.ordinal().saturating_add(1))
            }
            Node::Entity(key) => (key, 0),
            Node::Community(row) => (Key(self.community(row)?.1.hash), 0),
        })
    }
}

impl<'w, 's> Walk<'w, 's> {
    fn new(store: &'s Bounded<'s>, options: &'w ExpandOptions) -> Result<Self, QueryError> {
        let mut kinds = options.edges.clone();
        kinds.sort_unstable();
        kinds.dedup();
        let mut nodes = 0;
        if options.idf {
            let entities = store.links().map_or(Ok(0), |links| links.entities().map(|rows| rows.len() as u64))?;
            nodes = store.statistics()?.chunks.saturating_add(entities);
        }
        let (arrivals, order, reached, followed) = (BTreeMap::new(), Vec::new(), Vec::new(), Vec::new());
        Ok(Self { store, options, kinds, nodes, arrivals, order, reached, followed, truncated: false })
    }

    /// Walks until its options end it.
    fn to_end(store: &'s Bounded<'s>, seeds: &[Node], options: &'w ExpandOptions) -> Result<Self, QueryError> {
        let mut walk = Self::new(store, options)?;
        let mut frontier = walk.start(seeds)?;
        for hop in 1..=options.hops {
            if frontier.is_empty() {
                break;
            }
            frontier = walk.step(hop, &frontier)?;
        }
        Ok(walk)
    }

    /// Nodes that may still be returned.
    fn left(&self) -> usize {
        match self.options.returned {
            Returned::Counts => usize::MAX,
            Returned::Nodes | Returned::Subgraph => self.options.limit.saturating_sub(self.order.len()),
        }
    }

    fn start(&mut self, seeds: &[Node]) -> Result<Vec<Node>, QueryError> {
        for seed in seeds {
            let starts: Vec<Node> = match seed {
                Node::Document(id) => self.store.document(*id)?.chunks().map(Node::Chunk).collect(),
                Node::Community(row) => self.store.members_of(*row)?,
                other => vec![*other],
            };
            self.store.guard.hold_bytes((starts.len() as u64).saturating_mul(EDGE_BYTES))?;
            for start in starts {
                if self.arrivals.contains_key(&start) {
                    continue;
                }
                if self.left() == 0 {
                    self.truncated = true;
                    break;
                }
                self.arrivals.insert(start, Arrival { hop: 0, score: 1.0, from: None });
                self.order.push(start);
            }
        }
        self.reached.push(self.order.len() as u64);
        Ok(self.order.clone())
    }

    /// One hop from a frontier to the next one: new nodes with their best arrival, best first, then by key.
    fn step(&mut self, hop: usize, frontier: &[Node]) -> Result<Vec<Node>, QueryError> {
        let mut best: BTreeMap<Node, (f32, (Node, Edge<'s>))> = BTreeMap::new();
        for node in frontier {
            let score = self.arrivals.get(node).map_or(1.0, |arrival| arrival.score);
            for edge in self.out_of(*node)? {
                let reached = score * edge.weight.min(1.0);
                let target = edge.target;
                if self.arrivals.contains_key(&target) || best.get(&target).is_some_and(|known| known.0 >= reached) {
                    continue;
                }
                best.insert(target, (reached, (*node, edge)));
            }
        }
        let mut next = Vec::with_capacity(best.len());
        let mut pace = self.store.guard.pace();
        for (node, (score, from)) in best {
            pace.step()?;
            next.push((score * self.idf(node)?, self.store.tie(node)?, node, from));
        }
        next.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        self.truncated |= next.len() > self.left();
        next.truncate(self.left());
        for (score, _, node, from) in &next {
            self.arrivals.insert(*node, Arrival { hop, score: *score, from: Some(*from) });
        }
        let nodes: Vec<Node> = next.into_iter().map(|(_, _, node, _)| node).collect();
        self.reached.push(nodes.len() as u64);
        if self.options.returned != Returned::Counts {
            self.order.extend(&nodes);
        }
        Ok(nodes)
    }

    /// The edges of a node that are followed.
    fn out_of(&mut self, node: Node) -> Result<Vec<Edge<'s>>, QueryError> {
        let options = self.options;
        let is_seed = self.arrivals.get(&node).is_some_and(|arrival| arrival.hop == 0);
        let mut edges = self.edges(node)?;
        if edges.len() > options.degree_max && !is_seed {
            return Ok(Vec::new());
        }
        edges.retain(|edge| edge.weight >= options.weight_min);
        if edges.len() > options.fan_out {
            self.truncated = true;
            let mut keyed = Vec::with_capacity(edges.len());
            let mut pace = self.store.guard.pace();
            for edge in edges {
                pace.step()?;
                keyed.push((self.store.tie(edge.target)?, edge));
            }
            keyed.sort_by(|a, b| b.1.weight.total_cmp(&a.1.weight).then_with(|| a.0.cmp(&b.0)));
            edges = keyed.into_iter().take(options.fan_out).map(|(_, edge)| edge).collect();
        }
        if options.returned == Returned::Subgraph {
            self.followed.extend(edges.iter().map(|edge| (node, *edge)));
        }
        Ok(edges)
    }

    /// The edges of a node of the kinds and with the labels that are asked for.
    fn edges(&self, node: Node) -> Result<Vec<Edge<'s>>, QueryError> {
        let mut edges = Vec::new();
        for kind in &self.kinds {
            let found = self.store.edges_of(node, *kind, self.options.direction)?;
            self.store.guard.hold_bytes((found.len() as u64).saturating_mul(EDGE_BYTES))?;
            edges.extend(found);
        }
        let predicates = &self.options.predicates;
        if !predicates.is_empty() {
            edges.retain(|edge| edge.kind != EdgeKind::Relations || predicates.iter().any(|label| label == edge.label));
        }
        Ok(edges)
    }

    /// What the score of a node is multiplied by.
    fn idf(&self, node: Node) -> Result<f32, QueryError> {
        if !self.options.idf {
            return Ok(1.0);
        }
        let mark = self.store.guard.mark();
        let edges = self.edges(node)?.len() as u64;
        self.store.guard.release(mark);
        #[expect(clippy::cast_precision_loss, reason = "a ratio of counts")]
        let [all, some] = [self.nodes.max(1) as f64 + 1.0, edges as f64 + 1.0];
        #[expect(clippy::cast_possible_truncation, reason = "a number from 0 to 1")]
        Ok((libm::log(all / some) / libm::log(all)).clamp(0.0, 1.0) as f32)
    }

    fn expansion(self) -> Result<Expansion, QueryError> {
        let mut nodes: Vec<Reached> = Vec::new();
        if self.options.returned != Returned::Counts {
            nodes = self.order.iter().map(|node| self.node(*node)).collect::<Result<_, _>>()?;
        }
        nodes.sort_by(|a, b| {
            a.hop.cmp(&b.hop).then_with(|| b.score.total_cmp(&a.score)).then_with(|| a.key.cmp(&b.key))
        });
        let (edges, cut) = self.subgraph()?;
        Ok(Expansion {
            reached: self.reached,
            nodes,
            edges,
            truncated: self.truncated || cut,
            incomplete: self.store.incomplete(),
        })
    }

    /// The edges that were followed between the nodes that are returned, each along its direction and once; whether there are
    /// more.
    fn subgraph(&self) -> Result<(Vec<PathEdge>, bool), QueryError> {
        let mut edges = BTreeMap::new();
        let mut pace = self.store.guard.pace();
        for (from, edge) in self.followed.iter().filter(|(_, edge)| self.arrivals.contains_key(&edge.target)) {
            pace.step()?;
            self.store.guard.hold_bytes(EDGE_BYTES)?;
            let (mut from, mut to) = (self.store.key_of(*from)?, self.store.key_of(edge.target)?);
            // A similarity edge has no direction.
            if edge.reversed || (edge.kind == EdgeKind::Similar && to < from) {
                std::mem::swap(&mut from, &mut to);
            }
            let key = (from, edge.kind, edge.label, to);
            if edges.len() == self.options.edge_limit && !edges.contains_key(&key) {
                return Ok((path_edges(edges), true));
            }
            edges.insert(key, edge.weight);
        }
        Ok((path_edges(edges), false))
    }

    fn node(&self, node: Node) -> Result<Reached, QueryError> {
        self.store.guard.poll()?;
        let mut path = Vec::new();
        let mut current = node;
        while let Some((from, edge)) = self.arrivals.get(&current).and_then(|arrival| arrival.from.as_ref()) {
            path.push(PathEdge {
                from: self.store.key_of(*from)?,
                edge: edge.kind,
                label: edge.label.to_owned(),
                reversed: edge.reversed,
                to: self.store.key_of(current)?,
                weight: edge.weight,
            });
            current = *from;
        }
        path.reverse();
        let (hop, score) = self.arrivals.get(&node).map_or((0, 0.0), |arrival| (arrival.hop, arrival.score));
        Ok(Reached { key: self.store.key_of(node)?, hop, score, path })
    }
}

fn path_edges(edges: BTreeMap<(String, EdgeKind, &str, String), f32>) -> Vec<PathEdge> {
    let edge = |((from, edge, label, to), weight)| {
        let label = String::from(label);
        PathEdge { from, edge, label, reversed: false, to, weight }
    };
    edges.into_iter().map(edge).collect()
}
