//! A walk through the graph, the best first, with a beam of bounded width.

use crate::distance::near::{NOWHERE, Probe, products};
use crate::index::vector::Graph;

/// A node and how alike it is, so that the lowest is the best; between equals the lower number. The lowest bit says that its
/// neighbours were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ranked(u64);

impl Ranked {
    /// A node with its product.
    pub fn new(product: i32, node: u32) -> Self {
        let falling = !(product.cast_unsigned() ^ 1 << 31);
        Self(u64::from(falling) << 32 | u64::from(node) << 1)
    }

    /// The node.
    pub fn node(self) -> u32 {
        u32::try_from(self.0 >> 1 & 0x7fff_ffff).unwrap_or(u32::MAX)
    }

    /// Its product.
    pub fn product(self) -> i32 {
        let falling = u32::try_from(self.0 >> 32).unwrap_or(u32::MAX);
        (!falling ^ 1 << 31).cast_signed()
    }

    fn is_done(self) -> bool {
        self.0 & 1 == 1
    }

    fn done(self) -> Self {
        Self(self.0 | 1)
    }
}

/// Nodes are numbered below this.
pub const NODES_MAX: usize = 1 << 31;

/// The room that walks take; one after another may use the same.
#[derive(Debug, Default)]
pub struct Walk {
    seen: Vec<u64>,
    beam: Vec<Ranked>,
    /// The nodes whose neighbours were looked at, in that order.
    passed: Vec<Ranked>,
    /// The best of those that are wanted.
    found: Vec<Ranked>,
    listed: Vec<u32>,
    products: Vec<i32>,
}

impl Walk {
    /// Walks until the neighbours of the `width` best nodes that were seen have been seen. Keeps as many of the wanted ones. Asks now and then
    /// whether to `go_on`.
    ///
    /// # Errors
    /// What `go_on` says.
    pub fn walk<E>(
        &mut self,
        graph: &Graph<'_>,
        probe: &Probe,
        width: usize,
        wanted: Option<&dyn Fn(u32) -> bool>,
        mut go_on: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let width = width.max(1);
        self.begin(graph);
        let mut next = 0;
        loop {
            next = next.min(self.weigh(graph, probe, width, wanted));
            while self.beam.get(next).is_some_and(|node| node.is_done()) {
                next += 1;
            }
            let Some(node) = self.beam.get_mut(next) else { return Ok(()) };
            let ranked = *node;
            *node = ranked.done();
            self.passed.push(ranked);
            go_on()?;
            self.listed.clear();
            for other in graph.of(ranked.node()) {
                list(&mut self.seen, &mut self.listed, other);
            }
        }
    }

    fn begin(&mut self, graph: &Graph<'_>) {
        self.seen.clear();
        self.seen.resize(graph.rows.count().min(NODES_MAX).div_ceil(64), 0);
        self.beam.clear();
        self.passed.clear();
        self.found.clear();
        self.listed.clear();
        for entry in graph.entries {
            list(&mut self.seen, &mut self.listed, u32::from_le_bytes(*entry));
        }
    }

    /// Ranks the listed nodes. Gives the lowest place of the beam that is new.
    fn weigh(&mut self, graph: &Graph<'_>, probe: &Probe, width: usize, wanted: Option<&dyn Fn(u32) -> bool>) -> usize {
        products(probe, graph.rows, &self.listed, &mut self.products);
        let mut lowest = usize::MAX;
        for (node, product) in self.listed.iter().zip(&self.products) {
            if *product == NOWHERE {
                continue;
            }
            let ranked = Ranked::new(*product, *node);
            if let Some(place) = insert(&mut self.beam, ranked, width) {
                lowest = lowest.min(place);
            }
            if let Some(wanted) = wanted
                && wanted(*node)
            {
                insert(&mut self.found, ranked, width);
            }
        }
        lowest
    }

    /// The best nodes of the beam, the best first.
    pub fn best(&self) -> impl Iterator<Item = Ranked> {
        self.beam.iter().copied()
    }

    /// The best of those that were wanted, the best first.
    pub fn found(&self) -> impl Iterator<Item = Ranked> {
        self.found.iter().copied()
    }

    /// All nodes whose neighbours were looked at.
    pub fn passed(&self) -> impl Iterator<Item = Ranked> {
        self.passed.iter().copied()
    }
}

/// Lists a node that was not seen before.
#[inline]
fn list(seen: &mut [u64], listed: &mut Vec<u32>, node: u32) {
    if let Some(word) = seen.get_mut(node as usize / 64)
        && *word >> (node % 64) & 1 == 0
    {
        *word |= 1 << (node % 64);
        listed.push(node);
    }
}

/// Puts a node where it belongs among at most `most`, and tells where.
#[inline]
fn insert(ranked: &mut Vec<Ranked>, node: Ranked, most: usize) -> Option<usize> {
    if ranked.len() >= most {
        if ranked.last().is_some_and(|last| *last < node) {
            return None;
        }
        ranked.pop();
    }
    let place = ranked.partition_point(|other| *other < node);
    ranked.insert(place, node);
    Some(place)
}
