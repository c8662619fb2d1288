//! k-hop expansion: breadth first, with the best path to every node, the same from run to run.

use crate::error::QueryError;
use crate::query::graph::{Direction, Edge};
use crate::query::{EdgeKind, Node};
use crate::snapshot::Bounded;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How far and along what to expand.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpandOptions {
    /// Kinds of edges that are followed.
    pub edges: Vec<EdgeKind>,
    /// Which way.
    pub direction: Direction,
    /// Depth.
    pub hops: usize,
    /// Edges that are followed out of one node: the heaviest, among equals those with the lower target key.
    pub fan_out: usize,
    /// Nodes that are returned.
    pub limit: usize,
    /// Edges below this weight are passed over.
    pub weight_min: f32,
}

impl Default for ExpandOptions {
    fn default() -> Self {
        Self {
            edges: EdgeKind::ALL.to_vec(),
            direction: Direction::Both,
            hops: 1,
            fan_out: 64,
            limit: 50,
            weight_min: 0.0,
        }
    }
}

/// What was reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Expansion {
    /// By hop, then best path first.
    pub nodes: Vec<Reached>,
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
struct Arrival {
    hop: usize,
    score: f32,
    from: Option<(Node, Edge)>,
}

/// Bytes that an edge takes, and its target where it is new: in a map, in an order, and with keys to sort by.
const EDGE_BYTES: u64 = 384;

impl Bounded<'_> {
    /// See [`Snapshot::expand`](crate::Snapshot::expand).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn expand(&self, seeds: &[Node], options: &ExpandOptions) -> Result<Expansion, QueryError> {
        self.guard.scope(|| self.walk(seeds, options))
    }

    fn walk(&self, seeds: &[Node], options: &ExpandOptions) -> Result<Expansion, QueryError> {
        let mut arrivals: BTreeMap<Node, Arrival> = BTreeMap::new();
        let mut order = Vec::new();
        let mut frontier = Vec::new();
        for seed in seeds {
            let starts: Vec<Node> = match seed {
                Node::Document(id) => self.document(*id)?.chunks().map(Node::Chunk).collect(),
                other => vec![*other],
            };
            self.guard.hold_bytes((starts.len() as u64).saturating_mul(EDGE_BYTES))?;
            for start in starts {
                if arrivals.insert(start, Arrival { hop: 0, score: 1.0, from: None }).is_none() {
                    order.push(start);
                    frontier.push(start);
                }
            }
        }
        let mut truncated = order.len() > options.limit;
        order.truncate(options.limit);
        frontier.truncate(options.limit);
        for hop in 1..=options.hops {
            if frontier.is_empty() {
                break;
            }
            let (next, cut) = self.step(&frontier, &arrivals, options)?;
            truncated |= cut;
            frontier.clear();
            for (_, node, score, from) in next {
                if order.len() == options.limit {
                    truncated = true;
                    break;
                }
                arrivals.insert(node, Arrival { hop, score, from: Some(from) });
                order.push(node);
                frontier.push(node);
            }
        }
        let nodes = order.iter().map(|node| self.reached(*node, &arrivals)).collect::<Result<_, _>>()?;
        Ok(Expansion { nodes, truncated, incomplete: self.incomplete() })
    }

    /// One hop from a frontier: new nodes with their best arrival, best first, then by key.
    #[expect(clippy::type_complexity, reason = "key, node, score and origin of an arrival, used once")]
    fn step(
        &self,
        frontier: &[Node],
        arrivals: &BTreeMap<Node, Arrival>,
        options: &ExpandOptions,
    ) -> Result<(Vec<(String, Node, f32, (Node, Edge))>, bool), QueryError> {
        let mut best: BTreeMap<Node, (f32, (Node, Edge))> = BTreeMap::new();
        let mut truncated = false;
        for node in frontier {
            let (edges, cut) = self.out_of(*node, options)?;
            truncated |= cut;
            let score = arrivals.get(node).map_or(1.0, |arrival| arrival.score);
            for edge in edges {
                let reached = score * edge.weight.min(1.0);
                let target = edge.target;
                if arrivals.contains_key(&target) || best.get(&target).is_some_and(|known| known.0 >= reached) {
                    continue;
                }
                best.insert(target, (reached, (*node, edge)));
            }
        }
        let mut next = Vec::with_capacity(best.len());
        let mut pace = self.guard.pace();
        for (node, (score, from)) in best {
            pace.step()?;
            next.push((self.key_of(node)?, node, score, from));
        }
        next.sort_by(|a, b| b.2.total_cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
        Ok((next, truncated))
    }

    /// The edges of a node that are followed.
    fn out_of(&self, node: Node, options: &ExpandOptions) -> Result<(Vec<Edge>, bool), QueryError> {
        let kinds: BTreeSet<EdgeKind> = options.edges.iter().copied().collect();
        let mut edges = Vec::new();
        for kind in kinds {
            let found = self.edges_of(node, kind, options.direction)?;
            self.guard.hold_bytes((found.len() as u64).saturating_mul(EDGE_BYTES))?;
            edges.extend(found);
        }
        edges.retain(|edge| edge.weight >= options.weight_min);
        if edges.len() <= options.fan_out {
            return Ok((edges, false));
        }
        let mut keyed = Vec::with_capacity(edges.len());
        let mut pace = self.guard.pace();
        for edge in edges {
            pace.step()?;
            keyed.push((self.key_of(edge.target)?, edge));
        }
        keyed.sort_by(|a, b| b.1.weight.total_cmp(&a.1.weight).then_with(|| a.0.cmp(&b.0)));
        keyed.truncate(options.fan_out);
        Ok((keyed.into_iter().map(|(_, edge)| edge).collect(), true))
    }

    fn reached(&self, node: Node, arrivals: &BTreeMap<Node, Arrival>) -> Result<Reached, QueryError> {
        self.guard.poll()?;
        let mut path = Vec::new();
        let mut current = node;
        while let Some((from, edge)) = arrivals.get(&current).and_then(|arrival| arrival.from.as_ref()) {
            path.push(PathEdge {
                from: self.key_of(*from)?,
                edge: edge.kind,
                label: edge.label.clone(),
                reversed: edge.reversed,
                to: self.key_of(current)?,
                weight: edge.weight,
            });
            current = *from;
        }
        path.reverse();
        let (hop, score) = arrivals.get(&node).map_or((0, 0.0), |arrival| (arrival.hop, arrival.score));
        Ok(Reached { key: self.key_of(node)?, hop, score, path })
    }
}
