//! Sets of entities, composed of others by a short text.

use crate::error::QueryError;
use crate::index::graph::components::components;
use crate::index::graph::plan::{Leaves, Plan, PlanError};
use crate::index::graph::reach::{ReachScratch, reach};
use crate::index::graph::{Direction, top};
use crate::projection::Links;
use crate::query::Node;
use crate::query::analysis::{Relating, slot};
use crate::snapshot::Bounded;
use hedgerow_format::{ChunkId, EntitySlot};
use roaring::RoaringBitmap;
use serde::Serialize;
use std::borrow::Cow;

/// Hops that a set may reach.
const HOPS_MAX: usize = 64;
/// Bytes that a bitmap of few entities may take beside those of many.
const BITMAP_BYTES: u64 = 16 << 10;

/// A set of entities, as a text composes it.
///
/// ```text
/// set   = terms { "|" terms | "\" terms }      in either; in what comes before but not in this
/// terms = term { "&" ( term | "?" test ) }     in all; of what comes before, what passes the test
/// term  = name | "(" set ")"
/// ```
///
/// A name with spaces or one of `( ) & | \ ?` stands between two `"`. Names:
///
/// | Name | The entities |
/// |---|---|
/// | `NAME`, `entity:NAME` | this one |
/// | `near:HOPS:NAME`, `out:HOPS:NAME`, `in:HOPS:NAME` | within so many relations of this one: either way, along them, against them |
/// | `with:NAME` | that some chunk mentions beside this one |
/// | `component:NAME` | that hang together with this one by relations |
/// | `type:TYPE` | of this type |
/// | `community:ID` | of this community |
/// | `all` | all |
///
/// Tests: `type:TYPE`; `label:LABEL` for a relation with this label; `degree:N` and `mentions:N` for at least so many relations
/// and chunks that mention it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSet(Plan<Leaf>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Leaf {
    All,
    Entity(String),
    Near(Direction, usize, String),
    With(String),
    Component(String),
    Kind(String),
    Community(String),
    Label(String),
    Degree(usize),
    Mentions(usize),
}

impl NodeSet {
    /// Reads a text.
    ///
    /// # Errors
    /// [`PlanError`], which says where it goes wrong and what would be right there.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        Plan::read(text, &|name, is_test| if is_test { test(name) } else { set(name) }).map(Self)
    }
}

fn set(name: &str) -> Result<Leaf, &'static str> {
    let Some((before, after)) = name.split_once(':') else {
        return Ok(if name == "all" { Leaf::All } else { Leaf::Entity(name.to_owned()) });
    };
    let given = after.to_owned();
    let near = |direction| {
        let (hops, name) = after.split_once(':').ok_or("near:HOPS:NAME with at most 64 hops")?;
        let hops = hops.parse().ok().filter(|hops| *hops <= HOPS_MAX);
        Ok(Leaf::Near(direction, hops.ok_or("near:HOPS:NAME with at most 64 hops")?, name.to_owned()))
    };
    match before {
        "entity" => Ok(Leaf::Entity(given)),
        "near" => near(Direction::Both),
        "out" => near(Direction::Out),
        "in" => near(Direction::In),
        "with" => Ok(Leaf::With(given)),
        "component" => Ok(Leaf::Component(given)),
        "type" => Ok(Leaf::Kind(given)),
        "community" => Ok(Leaf::Community(given)),
        _ => Ok(Leaf::Entity(name.to_owned())),
    }
}

fn test(name: &str) -> Result<Leaf, &'static str> {
    const EXPECTED: &str = "type:TYPE, label:LABEL, degree:N or mentions:N";
    let (before, after) = name.split_once(':').ok_or(EXPECTED)?;
    match before {
        "type" => Ok(Leaf::Kind(after.to_owned())),
        "label" => Ok(Leaf::Label(after.to_owned())),
        "degree" => after.parse().map(Leaf::Degree).map_err(|_| EXPECTED),
        "mentions" => after.parse().map(Leaf::Mentions).map_err(|_| EXPECTED),
        _ => Err(EXPECTED),
    }
}

/// The entities of a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Selected {
    /// How many there are.
    pub count: u64,
    /// Those with most relations, most first; among equals by key.
    pub entities: Vec<SelectedLine>,
    /// What the answer lacks.
    pub incomplete: Vec<String>,
}

/// An entity of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SelectedLine {
    /// Its name.
    pub entity: String,
    /// Its type; may be empty.
    pub kind: String,
    /// How many relations it has, either way.
    pub degree: u64,
}

impl Bounded<'_> {
    /// See [`Snapshot::select`](crate::Snapshot::select).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn select(&self, set: &NodeSet, limit: usize) -> Result<Selected, QueryError> {
        self.guard.scope(|| {
            let incomplete = self.incomplete();
            let relating = self.relating(&[])?;
            let Some(links) = relating.links else { return Ok(Selected { incomplete, ..Selected::default() }) };
            let sets = Sets { store: self, relating: &relating, links };
            let nodes = set.0.nodes(&sets, &self.guard)?;
            let graph = relating.graph();
            self.guard.hold_bytes(nodes.len().saturating_mul(size_of::<(u32, f64)>() as u64))?;
            #[expect(clippy::cast_precision_loss, reason = "numbers of relations are far below 2^53")]
            let degrees = nodes.iter().map(|node| (node, graph.degree(Direction::Both, node) as f64));
            let mut entities = Vec::new();
            for (node, _) in top(degrees, limit) {
                let kind = links.string(links.entity(EntitySlot(node))?.kind)?.to_owned();
                self.guard.hold_bytes(kind.len() as u64)?;
                let degree = graph.degree(Direction::Both, node) as u64;
                entities.push(SelectedLine { entity: relating.name(node, &self.guard)?, kind, degree });
            }
            Ok(Selected { count: nodes.len(), entities, incomplete })
        })
    }
}

/// What names in a text stand for.
struct Sets<'r, 's> {
    store: &'r Bounded<'r>,
    relating: &'r Relating<'s>,
    links: &'s Links,
}

impl Sets<'_, '_> {
    /// The node of an entity that is there; none where the projection is behind and lacks it.
    fn node(&self, name: &str) -> Result<Option<u32>, QueryError> {
        match self.store.find(&format!("entity:{name}"))? {
            Node::Entity(key) => Ok(self.relating.node(key)?),
            _ => Ok(None),
        }
    }

    /// Entities that a chunk mentions beside one.
    fn with(&self, node: u32) -> Result<RoaringBitmap, QueryError> {
        let (mut nodes, mut pace) = (RoaringBitmap::new(), self.store.guard.pace());
        for chunk in self.links.mentioning(EntitySlot(node))?.iter().map(ChunkId) {
            pace.step()?;
            if self.store.is_live(chunk) {
                let mentions = self.links.mentions(chunk)?;
                pace.steps(mentions.len())?;
                nodes.extend(mentions.iter());
            }
        }
        nodes.remove(node);
        Ok(nodes)
    }

    fn is_of_kind(&self, node: u32, kind: &str) -> Result<bool, QueryError> {
        Ok(self.links.string(self.links.entity(EntitySlot(node))?.kind)? == kind)
    }

    fn of_kind(&self, kind: &str) -> Result<RoaringBitmap, QueryError> {
        let (mut nodes, mut pace) = (RoaringBitmap::new(), self.store.guard.pace());
        for node in self.relating.graph().numbers() {
            pace.step()?;
            if self.is_of_kind(node, kind)? {
                nodes.insert(node);
            }
        }
        Ok(nodes)
    }

    fn members(&self, id: &str) -> Result<RoaringBitmap, QueryError> {
        let mut nodes = RoaringBitmap::new();
        let community = self.store.find(&format!("community:{id}"))?;
        for entity in self.store.entities_of(&[community])? {
            nodes.extend(self.relating.node(entity)?);
        }
        Ok(nodes)
    }

    fn component(&self, node: u32) -> Result<RoaringBitmap, QueryError> {
        let guard = &self.store.guard;
        let mark = guard.mark();
        let found = components(self.relating.graph(), guard)?;
        guard.release(mark);
        let component = found.of_nodes.get(slot(node));
        let numbered = (0_u32..).zip(&found.of_nodes);
        Ok(numbered.filter(|(_, other)| component == Some(other)).map(|(node, _)| node).collect())
    }
}

impl Leaves<Leaf> for Sets<'_, '_> {
    fn set(&self, leaf: &Leaf) -> Result<Cow<'_, RoaringBitmap>, QueryError> {
        let (graph, guard) = (self.relating.graph(), &self.store.guard);
        // A bitmap takes at most a bit for each node that there could be, and sixteen for each that is in it.
        guard.hold_bytes((graph.nodes() as u64 / 4).saturating_add(BITMAP_BYTES))?;
        let of = |name: &str, nodes: &dyn Fn(u32) -> Result<RoaringBitmap, QueryError>| {
            self.node(name)?.map_or(Ok(RoaringBitmap::new()), nodes)
        };
        Ok(Cow::Owned(match leaf {
            Leaf::All => graph.numbers().collect(),
            Leaf::Entity(name) => of(name, &|node| Ok(RoaringBitmap::from([node])))?,
            Leaf::Near(direction, hops, name) => of(name, &|node| {
                let (mark, mut scratch) = (guard.mark(), ReachScratch::default());
                reach(graph, *direction, &[node], *hops, (&mut scratch, guard))?;
                guard.release(mark);
                Ok(scratch.reached().iter().copied().collect())
            })?,
            Leaf::With(name) => of(name, &|node| self.with(node))?,
            Leaf::Component(name) => of(name, &|node| self.component(node))?,
            Leaf::Kind(kind) => self.of_kind(kind)?,
            Leaf::Community(id) => self.members(id)?,
            // These are tests only.
            Leaf::Label(_) | Leaf::Degree(_) | Leaf::Mentions(_) => RoaringBitmap::new(),
        }))
    }

    fn passes(&self, leaf: &Leaf, node: u32) -> Result<bool, QueryError> {
        let entity = EntitySlot(node);
        match leaf {
            Leaf::Kind(kind) => self.is_of_kind(node, kind),
            Leaf::Degree(least) => Ok(self.relating.graph().degree(Direction::Both, node) >= *least),
            Leaf::Mentions(least) => {
                let chunks = self.links.mentioning(entity)?;
                Ok(chunks.iter().filter(|chunk| self.store.is_live(ChunkId(*chunk))).take(*least).count() >= *least)
            }
            Leaf::Label(label) => {
                let mut pace = self.store.guard.pace();
                for row in [self.links.relations_from(entity)?, self.links.relations_to(entity)?] {
                    pace.steps(row.len())?;
                    let mut before = None;
                    for (_, number, _) in row.iter() {
                        if before.replace(number) != Some(number) && self.links.predicate(number)? == label {
                            return Ok(true);
                        }
                    }
                }
                Ok(false)
            }
            _ => Ok(false),
        }
    }
}
