//! Shortest paths between two nodes: by number of edges or by what edges cost, one or several.

use crate::error::QueryError;
use crate::index::graph::{Direction, Graph, index};
use crate::index::guard::Guard;
use std::collections::BTreeSet;

/// The shortest path by what edges cost.
mod costs;
/// The shortest path by number of edges.
mod hops;

/// Nodes that a search may visit unless its caller says otherwise.
const VISITED_MAX: usize = 10_000_000;
/// What stands in place of hops where a path may not pass.
const BARRED: u32 = u32::MAX;

/// What an edge costs.
#[derive(Clone, Copy, Default)]
pub enum Cost<'c> {
    /// One, whatever it weighs.
    #[default]
    Hops,
    /// The inverse of its weight.
    Inverse,
    /// What a function makes of its weight.
    Of(&'c (dyn Fn(f32) -> f64 + Sync)),
}

impl std::fmt::Debug for Cost<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Hops => "Hops",
            Self::Inverse => "Inverse",
            Self::Of(_) => "Of",
        })
    }
}

impl Cost<'_> {
    /// What an edge of a weight costs; none where that is below zero or not finite, so that the edge is passed over.
    #[inline]
    fn of(self, weight: f32) -> Option<f64> {
        let cost = match self {
            Self::Hops => 1.0,
            Self::Inverse if weight > 0.0 && weight.is_finite() => 1.0 / f64::from(weight),
            Self::Inverse => return None,
            Self::Of(cost) => cost(weight),
        };
        // Zero without a sign, as costs are compared by their bits.
        (cost >= 0.0 && cost.is_finite()).then_some(cost + 0.0)
    }
}

/// How paths are searched for.
#[derive(Clone, Copy, Debug)]
pub struct Route<'c> {
    /// Which way paths follow edges.
    pub direction: Direction,
    /// What edges cost.
    pub cost: Cost<'c>,
    /// Number of paths.
    pub count: usize,
    /// Nodes that all searches together may visit.
    pub visited_max: usize,
}

impl Default for Route<'_> {
    fn default() -> Self {
        Self { direction: Direction::Both, cost: Cost::Hops, count: 1, visited_max: VISITED_MAX }
    }
}

/// One path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// Its nodes from end to end.
    pub nodes: Vec<u32>,
    /// What its edges cost, added from its end.
    pub cost: f64,
}

/// The paths that were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Paths {
    /// The shortest ones, shortest first.
    pub found: Vec<Path>,
    /// Number of nodes that were visited.
    pub visited: usize,
    /// Whether there are no paths but these, or as many as were asked for; else the search had visited as many nodes as it may.
    pub complete: bool,
}

/// The shortest paths between two nodes that pass no node twice. Of paths that cost the same, those with fewer edges come first,
/// then those whose first node that differs has the lower number. Of edges between the same nodes the cheapest counts.
///
/// One path by number of edges is found breadth first from both ends; by cost, from its end (Dijkstra 1959); further ones by
/// leaving those that were found at each of their nodes (Yen 1971, Lawler 1972), a search for each. Holds 12 bytes a node, of
/// which a machine with virtual memory provides only what is visited.
///
/// # Errors
/// Those of the guard.
pub fn paths(
    graph: Graph<'_>,
    (from, to): (u32, u32),
    route: &Route<'_>,
    guard: &Guard<'_>,
) -> Result<Paths, QueryError> {
    let mut paths = Paths { complete: true, ..Paths::default() };
    if index(from) >= graph.nodes() || index(to) >= graph.nodes() || route.count == 0 {
        return Ok(paths);
    }
    guard.hold::<[u32; 3]>(graph.nodes())?;
    let mut search = Search::new(graph, route, guard);
    let mut candidates = BTreeSet::new();
    let mut next = search.best(from, to, &Bars::default())?.map(|nodes| Candidate::new(&search, nodes, 0));
    while let Some(candidate) = next {
        let Candidate { cost, nodes, left, .. } = candidate;
        paths.found.push(Path { nodes, cost: f64::from_bits(cost) });
        if paths.found.len() == route.count || search.exhausted {
            break;
        }
        search.leave(&paths.found, left, &mut candidates)?;
        next = if search.exhausted { None } else { candidates.pop_first() };
    }
    paths.complete = !search.exhausted;
    paths.visited = search.visited;
    Ok(paths)
}

/// A path that leaves one that was found before, in the order in which paths come.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// The bits of its cost, which are in the order of costs, as none is below zero.
    cost: u64,
    edges: usize,
    nodes: Vec<u32>,
    /// Where it leaves the path that it was made from.
    left: usize,
}

impl Candidate {
    fn new(search: &Search<'_, '_>, nodes: Vec<u32>, left: usize) -> Self {
        Self { cost: search.cost(&nodes).to_bits(), edges: nodes.len(), nodes, left }
    }
}

/// Where a search may not pass.
#[derive(Debug, Default)]
struct Bars<'b> {
    /// Nodes.
    nodes: &'b [u32],
    /// The second nodes of paths.
    seconds: Vec<u32>,
}

/// Searches, one after the other.
struct Search<'s, 'a> {
    graph: Graph<'a>,
    route: &'s Route<'s>,
    guard: &'s Guard<'s>,
    /// For each node one more than its hops from the start; zero where it was not visited. Empty where edges have costs.
    forward: Vec<u32>,
    /// The same to the end.
    backward: Vec<u32>,
    /// What the way to the end costs from each node that has hops there. Empty where edges have none.
    costs: Vec<f64>,
    /// Nodes whose hops are not zero.
    touched: Vec<u32>,
    visited: usize,
    /// Whether as many nodes were visited as may be.
    exhausted: bool,
}

impl<'s, 'a> Search<'s, 'a> {
    fn new(graph: Graph<'a>, route: &'s Route<'s>, guard: &'s Guard<'s>) -> Self {
        let (hops, costs) = match route.cost {
            Cost::Hops => (graph.nodes(), 0),
            Cost::Inverse | Cost::Of(_) => (0, graph.nodes()),
        };
        Self {
            graph,
            route,
            guard,
            forward: vec![0; hops],
            backward: vec![0; graph.nodes()],
            costs: vec![0.0; costs],
            touched: Vec::new(),
            visited: 0,
            exhausted: false,
        }
    }

    /// The nodes of the best path past the bars, if there is one and it was found in time.
    fn best(&mut self, from: u32, to: u32, bars: &Bars<'_>) -> Result<Option<Vec<u32>>, QueryError> {
        for node in bars.nodes {
            self.touched.push(*node);
            self.backward[index(*node)] = BARRED;
            if let Some(hops) = self.forward.get_mut(index(*node)) {
                *hops = BARRED;
            }
        }
        let mark = self.guard.mark();
        let found = match self.route.cost {
            _ if from == to => Ok(Some(vec![from])),
            Cost::Hops => self.by_hops(from, to, bars),
            Cost::Inverse | Cost::Of(_) => self.by_cost(from, to, bars),
        };
        self.guard.release(mark);
        for node in self.touched.drain(..) {
            self.backward[index(node)] = 0;
            if let Some(hops) = self.forward.get_mut(index(node)) {
                *hops = 0;
            }
        }
        found
    }

    /// The best paths that leave the last one that was found at one of its nodes, from the place on where it left another.
    fn leave(&mut self, found: &[Path], left: usize, into: &mut BTreeSet<Candidate>) -> Result<(), QueryError> {
        let Some((last, [.., to])) = found.last().map(|path| (&path.nodes, path.nodes.as_slice())) else {
            return Ok(());
        };
        for at in left..last.len() - 1 {
            let (root, before) = (last.get(..=at), last.get(..at).unwrap_or_default());
            let same = found.iter().map(|path| &path.nodes).filter(|nodes| nodes.get(..=at) == root);
            let bars = Bars { nodes: before, seconds: same.filter_map(|nodes| nodes.get(at + 1)).copied().collect() };
            let rest = self.best(last[at], *to, &bars)?;
            if self.exhausted {
                break;
            }
            if let Some(rest) = rest {
                let nodes = [before, &rest].concat();
                self.guard.hold::<u32>(nodes.len())?;
                into.insert(Candidate::new(self, nodes, at));
            }
        }
        Ok(())
    }

    /// Counts a node that is visited; false where there may be no more.
    #[inline]
    fn visit(&mut self, node: u32) -> bool {
        self.exhausted = self.visited >= self.route.visited_max;
        self.visited += usize::from(!self.exhausted);
        self.touched.push(node);
        !self.exhausted
    }

    /// What a path costs, added from its end.
    fn cost(&self, nodes: &[u32]) -> f64 {
        nodes.windows(2).rev().fold(0.0, |sum, pair| match pair {
            [from, to] => self.cheapest(*from, *to).unwrap_or_default() + sum,
            _ => sum,
        })
    }

    /// What the cheapest edge from one node to another costs.
    fn cheapest(&self, from: u32, to: u32) -> Option<f64> {
        let edges = self.graph.edges(self.route.direction, from).filter(|(target, _)| *target == to);
        edges.filter_map(|(_, weight)| self.route.cost.of(weight)).min_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::graph::sample::{SMALL, Sample, free};
    use crate::index::graph::simple::Simple;
    use crate::index::guard::QueryLimits;

    const DIRECTIONS: [Direction; 3] = [Direction::Out, Direction::In, Direction::Both];

    /// All paths that pass no node twice, in the order in which they are to come.
    fn naive(graph: Graph<'_>, (from, to): (u32, u32), route: &Route<'_>) -> Vec<Path> {
        let simple = Simple::new(graph, route.direction, &free()).unwrap();
        let guard = free();
        let search = Search::new(graph, route, &guard);
        let (mut open, mut paths) = (vec![vec![from]], Vec::new());
        while let Some(nodes) = open.pop() {
            let last = *nodes.last().unwrap();
            if last == to {
                paths.push(Candidate::new(&search, nodes, 0));
                continue;
            }
            let on = simple.of(last).iter().filter(|node| !nodes.contains(node));
            let on = on.filter(|node| search.cheapest(last, **node).is_some());
            open.extend(on.map(|node| [nodes.as_slice(), &[*node]].concat()));
        }
        paths.sort();
        paths.into_iter().map(|path| Path { nodes: path.nodes, cost: f64::from_bits(path.cost) }).collect()
    }

    fn check(graph: Graph<'_>, ends: (u32, u32), route: Route<'_>) {
        let expected = naive(graph, ends, &route);
        for count in [1, 2, 7, 1000] {
            let found = paths(graph, ends, &Route { count, ..route }, &free()).unwrap();
            assert!(found.complete);
            assert_eq!(found.found, expected[..count.min(expected.len())], "{ends:?} {route:?}");
        }
    }

    #[test]
    fn paths_are_the_first_of_all_paths_in_their_order() {
        let halves = |weight: f32| f64::from((weight * 4.0) % 3.0) / 2.0;
        for seed in 0..25 {
            let sample = Sample::random(9, 16 + u32::try_from(seed).unwrap() % 8, seed);
            for direction in DIRECTIONS {
                for cost in [Cost::Hops, Cost::Inverse, Cost::Of(&halves), Cost::Of(&|_| 0.0)] {
                    for ends in [(0, 8), (3, 4), (5, 5)] {
                        check(sample.graph(), ends, Route { direction, cost, ..Route::default() });
                    }
                }
            }
        }
    }

    #[test]
    fn a_longer_path_along_stronger_edges_can_cost_less() {
        let sample = Sample::new(10, &SMALL);
        let of = |direction, cost| {
            let route = Route { direction, cost, ..Route::default() };
            paths(sample.graph(), (0, 7), &route, &free()).unwrap().found.swap_remove(0)
        };
        assert_eq!(of(Direction::Out, Cost::Hops), Path { nodes: vec![0, 1, 3, 5, 6, 7], cost: 5.0 });
        assert_eq!(of(Direction::Out, Cost::Inverse), Path { nodes: vec![0, 2, 4, 5, 6, 7], cost: 5.5 });
        assert_eq!(of(Direction::Both, Cost::Hops), Path { nodes: vec![0, 2, 4, 6, 7], cost: 4.0 });
    }

    #[test]
    fn one_path_by_hops_over_a_large_graph_is_as_long_as_a_search_from_one_end_says() {
        for seed in 0..20 {
            let sample = Sample::random(2000, 5000, seed);
            for direction in DIRECTIONS {
                let route = Route { direction, cost: Cost::Hops, ..Route::default() };
                let by_cost = Route { cost: Cost::Of(&|_| 1.0), ..route };
                for ends in [(0, 1), (17, 1500), (999, 3)] {
                    let found = paths(sample.graph(), ends, &route, &free()).unwrap();
                    assert_eq!(found.found, paths(sample.graph(), ends, &by_cost, &free()).unwrap().found);
                }
            }
        }
    }

    #[test]
    fn a_search_ends_where_it_visited_as_many_nodes_as_it_may() {
        let sample = Sample::random(500, 2000, 2);
        for cost in [Cost::Hops, Cost::Inverse] {
            let of = |visited_max| {
                paths(sample.graph(), (0, 1), &Route { cost, visited_max, count: 30, ..Route::default() }, &free())
                    .unwrap()
            };
            let whole = of(usize::MAX);
            assert!(whole.complete && whole.found.len() == 30);
            for visited_max in [0, 1, 5, 100, whole.visited / 2, whole.visited - 1] {
                let part = of(visited_max);
                assert!(!part.complete && part.visited <= visited_max);
                assert_eq!(part.found, whole.found[..part.found.len()]);
            }
            assert_eq!(of(whole.visited), whole);
        }
    }

    #[test]
    fn there_is_no_path_between_what_is_apart_or_no_node() {
        let sample = Sample::new(10, &SMALL);
        for cost in [Cost::Hops, Cost::Inverse] {
            for ends in [(0, 9), (9, 0), (0, 10), (10, 10), (0, 8)] {
                let route = Route { cost, direction: Direction::Out, ..Route::default() };
                let found = paths(sample.graph(), ends, &route, &free()).unwrap();
                assert!(found.complete && found.found.is_empty());
            }
        }
        let guard = Guard::new(QueryLimits { memory_bytes: 100, ..QueryLimits::default() });
        let refused = paths(sample.graph(), (0, 7), &Route::default(), &guard);
        assert!(matches!(refused, Err(QueryError::Memory { .. })));
    }

    #[test]
    fn bytes_of_a_stranger_give_paths_or_none() {
        for seed in 0..60 {
            let sample = Sample::strange(40, 150, seed);
            for direction in DIRECTIONS {
                for cost in [Cost::Hops, Cost::Inverse, Cost::Of(&f64::from)] {
                    let route = Route { direction, cost, count: 5, visited_max: 10_000 };
                    let found = paths(sample.graph(), (1, 38), &route, &free()).unwrap();
                    for path in &found.found {
                        assert_eq!((path.nodes[0], path.nodes.last()), (1, Some(&38)));
                        assert!(path.nodes.iter().all(|node| *node < 40));
                    }
                }
            }
        }
    }
}
