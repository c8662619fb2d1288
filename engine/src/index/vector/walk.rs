//! A walk through the graph, the best first, until nothing near enough is left (Al-Jazzazi et al., `Distance Adaptive Beam Search`, 2025).

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

/// Nodes that most walks keep.
const USUAL: usize = 256;

/// Nodes are numbered below this.
pub const NODES_MAX: usize = 1 << 31;

/// When a walk ends: where no node is left that is among the best and near enough.
#[derive(Clone, Copy, Debug)]
pub struct Until {
    /// So many of the best are kept.
    pub width: usize,
    /// A node is near enough until so many that are wanted are found, and then if it is not further away than the last of these by
    /// more than the slack.
    pub nearest: usize,
    /// A share of that one's squared distance.
    pub slack: f64,
    /// The product that a node has which is the question itself: squared distances are twice what is missing from it.
    pub one: f64,
}

impl Until {
    /// The neighbours of so many best nodes were looked at.
    pub fn width(width: usize) -> Self {
        Self { width, nearest: width, slack: f64::INFINITY, one: 0.0 }
    }

    /// What is not near enough any more.
    #[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
    fn line(&self, found: &[Ranked]) -> Option<Ranked> {
        let last = found.get(self.nearest.checked_sub(1)?)?;
        let least = self.one - (1.0 + self.slack) * (self.one - f64::from(last.product()));
        Some(Ranked::new(least as i32, 0))
    }
}

/// The room that walks take; one after another may use the same.
#[derive(Debug, Default)]
pub struct Walk {
    seen: Vec<u64>,
    beam: Vec<Ranked>,
    /// The nodes whose neighbours were looked at, in that order.
    passed: Vec<Ranked>,
    /// The best of those that are wanted, where not all are.
    found: Option<Vec<Ranked>>,
    /// What lies beyond is not near enough.
    line: Option<Ranked>,
    listed: Vec<u32>,
    products: Vec<i32>,
}

/// Which nodes may be found; none for all.
pub type Wanted<'w> = Option<&'w dyn Fn(u32) -> bool>;

impl Walk {
    /// Walks until there is nothing more to look at. Asks now and then whether to `go_on`.
    ///
    /// # Errors
    /// What `go_on` says.
    pub fn walk<E>(
        &mut self,
        graph: &Graph<'_>,
        probe: &Probe,
        until: Until,
        wanted: Wanted<'_>,
        mut go_on: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        self.begin(graph);
        self.found = wanted.is_some().then(Vec::new);
        let mut next = 0;
        loop {
            next = next.min(self.weigh(graph, probe, until, wanted));
            while self.beam.get(next).is_some_and(|node| node.is_done()) {
                next += 1;
            }
            let Some(node) = self.beam.get_mut(next) else { return Ok(()) };
            let ranked = *node;
            if self.line.is_some_and(|line| ranked > line) {
                return Ok(());
            }
            *node = ranked.done();
            self.passed.push(ranked);
            // Unless a better one is seen now, this one's list is read next.
            if let Some(after) = self.beam.get(next + 1..).into_iter().flatten().find(|node| !node.is_done()) {
                graph.fetch(after.node());
            }
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
        self.line = None;
        self.listed.clear();
        self.beam.reserve(USUAL);
        self.passed.reserve(USUAL);
        for entry in graph.entries {
            list(&mut self.seen, &mut self.listed, u32::from_le_bytes(*entry));
        }
    }

    /// Ranks the listed nodes. Gives the lowest place of the beam that is new.
    fn weigh(&mut self, graph: &Graph<'_>, probe: &Probe, until: Until, wanted: Wanted<'_>) -> usize {
        products(probe, graph.rows, &self.listed, &mut self.products);
        let mut lowest = usize::MAX;
        for (node, product) in self.listed.iter().zip(&self.products) {
            let ranked = Ranked::new(*product, *node);
            if *product == NOWHERE || self.line.is_some_and(|line| ranked > line) {
                continue;
            }
            let place = insert(&mut self.beam, ranked, until.width.max(1));
            lowest = lowest.min(place.unwrap_or(usize::MAX));
            let place = match (&mut self.found, wanted) {
                (Some(found), Some(wanted)) if wanted(*node) => insert(found, ranked, until.width.max(1)),
                (Some(_), _) => None,
                (None, _) => place,
            };
            if until.slack.is_finite() && place.is_some_and(|place| place < until.nearest) {
                self.line = until.line(self.found.as_ref().unwrap_or(&self.beam));
            }
        }
        lowest
    }

    /// The best of those that were wanted, the best first.
    pub fn found(&self) -> impl Iterator<Item = Ranked> {
        self.found.as_ref().unwrap_or(&self.beam).iter().copied()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::near::CodeRows;
    use std::collections::BTreeSet;

    #[test]
    fn a_walk_through_any_lists_ends_and_sees_each_node_once() {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u32::try_from(state >> 33).unwrap()
        };
        for round in 0..200_u32 {
            let (nodes, stride) = (next() % 40, next() % 5);
            let codes: Vec<u8> = (0..nodes * 64).map(|_| u8::try_from(next() % 256).unwrap()).collect();
            // Nodes that are there and that are not, the node itself, and ends in the middle.
            let mut any = |count: u32| -> Vec<[u8; 4]> {
                let number = |draw: u32| if draw.is_multiple_of(9) { u32::MAX - draw % 2 } else { draw % (nodes + 3) };
                (0..count).map(|_| number(next()).to_le_bytes()).collect()
            };
            let (neighbours, entries) = (any(nodes * stride), any(round % 4));
            let graph = Graph {
                rows: CodeRows::new(&codes, 64),
                neighbours: &neighbours,
                stride: stride as usize,
                entries: &entries,
            };
            let probe = Probe::of_row(&[200; 64]);
            let even = |node: u32| node.is_multiple_of(2);
            for slack in [0.0, 0.5, f64::INFINITY, f64::NAN] {
                let until =
                    Until { width: next() as usize % 9, nearest: next() as usize % 4, slack, one: f64::from(round) };
                let wanted: Wanted<'_> = if round.is_multiple_of(3) { Some(&even) } else { None };
                let mut walk = Walk::default();
                let Ok(()) = walk.walk(&graph, &probe, until, wanted, || Ok::<(), std::convert::Infallible>(()));
                let passed: Vec<u32> = walk.passed().map(Ranked::node).collect();
                assert_eq!(passed.iter().collect::<BTreeSet<_>>().len(), passed.len(), "no node is passed twice");
                let found: Vec<Ranked> = walk.found().collect();
                assert!(found.is_sorted_by_key(|one| std::cmp::Reverse(one.product())));
                assert!(found.len() <= until.width.max(1) && found.iter().all(|one| one.node() < nodes));
                assert!(wanted.is_none() || found.iter().all(|one| even(one.node())));
            }
        }
    }
}
