//! Questions about the graph of relations as a whole: parts, ranks, paths, what nodes share, sets of nodes, and all its edges.

mod dump;
mod hubs;
mod neighbours;
mod parts;
mod paths;
mod ranks;
mod sets;

pub use crate::index::graph::neighbours::Measure;
pub use crate::index::graph::plan::PlanError;
pub use dump::{GraphDumped, GraphPart};
pub use hubs::{Betweenness, DegreeLine, Degrees, ScoreLine};
pub use neighbours::{NeighbourLine, NeighbourOptions, Neighbours};
pub use parts::{ComponentLine, Components};
pub use paths::{FoundPath, FoundPaths, PathCost, PathOptions};
pub use ranks::{Ranked, RankedKind, Ranking, RankingOptions};
pub use sets::{NodeSet, Selected, SelectedLine};

use crate::error::{Damage, QueryError};
use crate::index::graph::walkable::{Copied, Walkable};
use crate::index::graph::{Adjacency, Direction, Graph};
use crate::index::guard::Guard;
use crate::projection::Links;
use crate::query::Node;
use crate::snapshot::Bounded;
use hedgerow_format::{EntitySlot, Key, U32s};

/// Bytes that a line of an answer takes beside its texts.
const LINE_BYTES: u64 = 128;

/// Which relations are followed, and which way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Following {
    /// Labels of relations that are followed; empty for all. A choice reads and copies every relation once.
    pub predicates: Vec<String>,
    /// Which way.
    pub direction: Direction,
}

/// The graph of entities and their relations, as far as the links projection covers it. Nodes are slots of entities.
struct Relating<'s> {
    links: Option<&'s Links>,
    whole: Graph<'s>,
    chosen: Option<[Copied; 2]>,
}

impl<'s> Relating<'s> {
    /// The relations with some labels, or all of them.
    fn new(links: Option<&'s Links>, predicates: &[String], guard: &Guard<'_>) -> Result<Self, QueryError> {
        let Some(found) = links else { return Ok(Self { links, whole: Graph::default(), chosen: None }) };
        let [out, into] = found.relations()?;
        let whole = Graph { out, into };
        if predicates.is_empty() {
            return Ok(Self { links, whole, chosen: None });
        }
        let (mut wanted, mut pace) = (Vec::new(), guard.pace());
        for row in 0..found.predicates()? {
            pace.step()?;
            let label = found.predicate(row)?;
            guard.hold::<bool>(1)?;
            wanted.push(predicates.iter().any(|predicate| predicate == label));
        }
        let [out_labels, into_labels] = found.relation_labels()?;
        let labelled = |side, labels| Labelled { side, labels, wanted: &wanted, nodes: whole.nodes() };
        let chosen =
            [Copied::new(&labelled(out, out_labels), guard)?, Copied::new(&labelled(into, into_labels), guard)?];
        Ok(Self { links, whole, chosen: Some(chosen) })
    }

    fn graph(&self) -> Graph<'_> {
        match &self.chosen {
            Some([out, into]) => Graph { out: out.adjacency(), into: into.adjacency() },
            None => self.whole,
        }
    }

    /// The node of an entity; none where the projection doesn't have it.
    fn node(&self, entity: Key) -> Result<Option<u32>, Damage> {
        Ok(self.links.map_or(Ok(None), |links| links.find(entity))?.map(|slot| slot.0))
    }

    /// Name of a node's entity, which is held.
    fn name(&self, node: u32, guard: &Guard<'_>) -> Result<String, QueryError> {
        let Some(links) = self.links else { return Ok(String::new()) };
        let name = links.string(links.entity(EntitySlot(node))?.name)?;
        guard.hold_bytes(name.len() as u64 + LINE_BYTES)?;
        Ok(name.to_owned())
    }
}

/// One side of a graph without the edges whose labels are not wanted.
struct Labelled<'a> {
    side: Adjacency<'a>,
    labels: U32s<'a>,
    wanted: &'a [bool],
    nodes: usize,
}

impl Walkable for Labelled<'_> {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn degree(&self, node: u32) -> usize {
        self.side.degree(node)
    }

    fn each(&self, node: u32, mut visit: impl FnMut(u32, f32)) {
        for (at, (target, weight)) in self.side.row(node).zip(self.side.edges(node)) {
            let label = self.labels.get(at).unwrap_or_default();
            let is_wanted = self.wanted.get(slot(label)) == Some(&true);
            if is_wanted && slot(target) < self.nodes {
                visit(target, weight);
            }
        }
    }
}

impl Bounded<'_> {
    /// The graph of relations with some labels, as far as the links projection covers it.
    fn relating(&self, predicates: &[String]) -> Result<Relating<'_>, QueryError> {
        Relating::new(self.links().map(|links| &**links), predicates, &self.guard)
    }

    /// The entities that nodes stand for: a community stands for its members, a chunk or a document for none.
    fn entities_of(&self, nodes: &[Node]) -> Result<Vec<Key>, QueryError> {
        let mut entities = Vec::new();
        for node in nodes {
            match node {
                Node::Entity(key) => entities.push(*key),
                Node::Community(row) => {
                    let members = self.members_of(*row)?;
                    entities.extend(members.iter().filter_map(|member| match member {
                        Node::Entity(key) => Some(*key),
                        _ => None,
                    }));
                }
                Node::Document(_) | Node::Chunk(_) => {}
            }
        }
        Ok(entities)
    }
}

fn slot(node: u32) -> usize {
    EntitySlot(node).index()
}
