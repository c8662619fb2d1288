//! How many entities relations reach, hop by hop, without the paths that other walks remember.

use crate::error::QueryError;
use crate::index::graph::reach::{ReachScratch, reach};
use crate::index::graph::{Direction, Graph};
use crate::query::expand::{ExpandOptions, Returned};
use crate::query::{EdgeKind, Node};
use crate::snapshot::Bounded;
use hedgerow_format::Key;

/// Walks that only count, one after the other, along all relations of a snapshot. They share their memory, so that each costs
/// what it reads: at most 4 bytes and 2 bits an entity are kept, and 1 bit an entity is cleared where a walk went far.
#[derive(Debug)]
pub struct Reach<'s> {
    store: &'s Bounded<'s>,
    graph: Graph<'s>,
    scratch: ReachScratch,
    /// Which way the last walk went, and how many of the nodes that it reached it went on from.
    last: (Direction, usize),
}

impl Bounded<'_> {
    /// What counts entities that relations reach; none where the links projection is missing, damaged or behind:
    /// [`Bounded::expand`] then counts all the same, edge by edge. Checks all of the projection at the first call.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn reach(&self) -> Result<Option<Reach<'_>>, QueryError> {
        let Some(links) = self.links_in_step() else { return Ok(None) };
        let [out, into] = links.relations()?;
        let last = (Direction::Both, 0);
        Ok(Some(Reach { store: self, graph: Graph { out, into }, scratch: ReachScratch::default(), last }))
    }

    /// How many nodes each hop of an expansion reaches, where nothing else is asked for and relations alone tell it.
    pub(super) fn counted(&self, seeds: &[Node], options: &ExpandOptions) -> Result<Option<Vec<u64>>, QueryError> {
        let only_relations = !options.edges.is_empty() && options.edges.iter().all(|kind| *kind == EdgeKind::Relations);
        // Weights are above zero; nothing is cut, so that no score decides what is reached.
        let all = options.predicates.is_empty() && options.weight_min <= 0.0;
        let uncut = options.fan_out == usize::MAX && options.degree_max == usize::MAX;
        if options.returned != Returned::Counts || !(only_relations && all && uncut) {
            return Ok(None);
        }
        let mut keys = Vec::with_capacity(seeds.len());
        for seed in seeds {
            let Node::Entity(key) = seed else { return Ok(None) };
            keys.push(*key);
        }
        let Some(mut reach) = self.reach()? else { return Ok(None) };
        let Some(slots) = reach.slots(&keys)? else { return Ok(None) };
        reach.from(&slots, options.direction, options.hops).map(Some)
    }
}

impl Reach<'_> {
    /// Number of entities.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.graph.nodes()
    }

    /// Number of relations.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.graph.out.len()
    }

    /// How many entities are reached with each number of hops and no fewer, from 0: what [`Bounded::expand`] tells as
    /// [`Expansion::reached`](crate::Expansion::reached) where nothing is cut; none where one of the keys is that of no entity.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn count(
        &mut self,
        entities: &[Key],
        direction: Direction,
        hops: usize,
    ) -> Result<Option<Vec<u64>>, QueryError> {
        let store = self.store;
        store.guard.scope(|| {
            let Some(slots) = self.slots(entities)? else { return Ok(None) };
            self.from(&slots, direction, hops).map(Some)
        })
    }

    /// Relations out of everything that the last walk went on from: those that a search reads which reads every one, each in
    /// every direction that was followed.
    #[must_use]
    pub fn walked(&self) -> u64 {
        let (direction, count) = self.last;
        let nodes = self.scratch.reached().iter().take(count);
        nodes.map(|node| self.graph.degree(direction, *node) as u64).sum()
    }

    fn slots(&self, entities: &[Key]) -> Result<Option<Vec<u32>>, QueryError> {
        let Some(links) = self.store.links_in_step() else { return Ok(None) };
        let mut slots = Vec::with_capacity(entities.len());
        for key in entities {
            let Some(slot) = links.find(*key)? else { return Ok(None) };
            slots.push(slot.0);
        }
        Ok(Some(slots))
    }

    fn from(&mut self, slots: &[u32], direction: Direction, hops: usize) -> Result<Vec<u64>, QueryError> {
        let counts = reach(self.graph, direction, slots, hops, (&mut self.scratch, &self.store.guard))?;
        self.last = (direction, counts.iter().take(hops).sum());
        let mut counts: Vec<u64> = counts.into_iter().map(|count| count as u64).collect();
        // A hop that found nothing counts, and is the last.
        if counts.len() <= hops && counts.last().is_some_and(|last| *last > 0) {
            counts.push(0);
        }
        Ok(counts)
    }
}
