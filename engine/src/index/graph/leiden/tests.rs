//! Communities hold what is promised of them.

use crate::index::control::{Cancelled, Control, Quiet};
use crate::index::graph::leiden::random::Random;
use crate::index::graph::leiden::{
    Communities, GraphFault, HierarchySettings, Level, Resolution, Undirected, communities, hierarchy, modularity,
};
use std::collections::BTreeSet;
use std::sync::Mutex;

type Edge = (u32, u32, f32);

/// Zachary's karate club (1977), from 0.
const KARATE: [&[u32]; 34] = [
    &[1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31],
    &[2, 3, 7, 13, 17, 19, 21, 30],
    &[3, 7, 8, 9, 13, 27, 28, 32],
    &[7, 12, 13],
    &[6, 10],
    &[6, 10, 16],
    &[16],
    &[],
    &[30, 32, 33],
    &[33],
    &[],
    &[],
    &[],
    &[33],
    &[32, 33],
    &[32, 33],
    &[],
    &[],
    &[32, 33],
    &[33],
    &[32, 33],
    &[],
    &[32, 33],
    &[25, 27, 29, 32, 33],
    &[25, 27, 31],
    &[31],
    &[29, 33],
    &[33],
    &[31, 33],
    &[32, 33],
    &[32, 33],
    &[32, 33],
    &[33],
    &[],
];

fn unweighted(rows: &[&[u32]]) -> Vec<Edge> {
    (0..).zip(rows).flat_map(|(from, row)| row.iter().map(move |to| (from, *to, 1.0))).collect()
}

fn graph(nodes: u32, edges: &[Edge]) -> Undirected {
    Undirected::from_edges(nodes, edges.iter().copied()).unwrap()
}

fn found(graph: &Undirected) -> Communities {
    communities(graph, Resolution::default(), 7, &Quiet).unwrap()
}

fn levels(graph: &Undirected, community_max: usize) -> Vec<Level> {
    let settings = HierarchySettings { community_max, resolution: Resolution::default(), seed: 7, levels_max: 20 };
    hierarchy(graph, settings, &Quiet).unwrap()
}

fn below(random: &mut Random, end: u32) -> u32 {
    u32::try_from(random.next() % u64::from(end)).unwrap()
}

/// Groups whose nodes are joined more often than others, with weights.
fn planted(seed: u64, nodes: u32, groups: u32, edges: usize) -> Vec<Edge> {
    let mut random = Random::apart(seed, 0);
    let edge = |_| {
        let from = below(&mut random, nodes);
        let mut to = below(&mut random, nodes);
        if below(&mut random, 10) < 7 {
            to = (to - to % groups + from % groups) % nodes;
        }
        (from, to, [0.5, 1.0, 2.25][below(&mut random, 3) as usize])
    };
    (0..edges).map(edge).collect()
}

/// Graphs on which something might go wrong.
fn hard() -> Vec<(&'static str, u32, Vec<Edge>)> {
    let star = |leaves: u32| (1..=leaves).map(|leaf| (0, leaf, 1.0)).collect::<Vec<_>>();
    let path = |nodes: u32| (1..nodes).map(|node| (node - 1, node, 1.0)).collect::<Vec<_>>();
    let mut cycle = path(200);
    cycle.push((199, 0, 1.0));
    let tree = (1..400).map(|node| ((node - 1) / 3, node, 1.0)).collect();
    let bipartite = (0..12).flat_map(|a| (12..30).map(move |b| (a, b, 1.0))).collect();
    // Hubs that hold groups together which are not joined otherwise: Louvain takes such hubs away.
    let hubs = (0..40)
        .flat_map(|hub: u32| (1..6).map(move |leaf| (hub * 6, hub * 6 + leaf, 1.0)).chain([(hub * 6, 0, 1.5)]))
        .collect();
    let uneven =
        planted(5, 300, 6, 1200).into_iter().map(|(a, b, w)| (a, b, if a % 7 == 0 { 1e30 } else { w * 1e-30 }));
    vec![
        ("star", 121, star(120)),
        ("path", 300, path(300)),
        ("cycle", 200, cycle),
        ("tree", 400, tree),
        ("bipartite", 30, bipartite),
        ("hubs", 240, hubs),
        ("uneven weights", 300, uneven.collect()),
        ("sparse", 500, planted(1, 500, 9, 450)),
        ("groups", 600, planted(2, 600, 20, 3000)),
        ("dense", 90, planted(3, 90, 4, 4000)),
        ("karate", 34, unweighted(&KARATE)),
        ("huge", 60, planted(4, 60, 3, 400).into_iter().map(|(a, b, _)| (a, b, f32::MAX)).collect()),
        ("tiny", 60, planted(4, 60, 3, 400).into_iter().map(|(a, b, _)| (a, b, f32::from_bits(1))).collect()),
    ]
}

/// Whether members are joined by edges between members.
fn is_connected(edges: &[Edge], members: &[u32]) -> bool {
    let members: BTreeSet<u32> = members.iter().copied().collect();
    let mut reached: BTreeSet<u32> = members.first().copied().into_iter().collect();
    loop {
        let before = reached.len();
        for (a, b, _) in edges {
            if members.contains(a) && members.contains(b) && (reached.contains(a) || reached.contains(b)) {
                reached.extend([*a, *b]);
            }
        }
        if reached.len() == before {
            return reached.len() == members.len();
        }
    }
}

/// Modularity by its definition, from the edges.
fn by_definition(nodes: u32, edges: &[Edge], of: &[u32], resolution: f64) -> f64 {
    let all: f64 = edges.iter().map(|edge| f64::from(edge.2)).sum();
    let ends = |node: u32| -> f64 {
        edges.iter().map(|(a, b, w)| f64::from(*w) * f64::from(u8::from(*a == node) + u8::from(*b == node))).sum()
    };
    let ends: Vec<f64> = (0..nodes).map(ends).collect();
    let mut sum =
        edges.iter().filter(|(a, b, _)| of[*a as usize] == of[*b as usize]).map(|e| f64::from(e.2)).sum::<f64>() / all;
    for a in 0..nodes as usize {
        for b in (0..nodes as usize).filter(|b| of[a] == of[*b]) {
            sum -= resolution * (ends[a] / (2.0 * all)) * (ends[b] / (2.0 * all));
        }
    }
    sum
}

#[test]
fn every_community_is_connected_and_none_is_worse_than_nodes_alone() {
    for (name, nodes, edges) in hard() {
        let graph = graph(nodes, &edges);
        let found = found(&graph);
        for community in 0..u32::try_from(found.count).unwrap() {
            let members: Vec<u32> = (0..nodes).filter(|node| found.of[*node as usize] == community).collect();
            assert!(is_connected(&edges, &members), "{name}: {members:?}");
        }
        let alone: Vec<u32> = (0..nodes).collect();
        let together = vec![0; nodes as usize];
        assert!(found.modularity >= modularity(&graph, &alone, Resolution::default()) - 1e-9, "{name}");
        assert!(found.modularity >= modularity(&graph, &together, Resolution::default()) - 1e-9, "{name}");
    }
}

#[test]
fn communities_of_random_graphs_are_connected_and_their_levels_nested() {
    for seed in 0..60 {
        let mut random = Random::apart(seed, 1);
        let nodes = 2 + below(&mut random, 60);
        let groups = 1 + below(&mut random, nodes);
        let count = below(&mut random, nodes * 4) as usize;
        let edges = planted(seed, nodes, groups, count);
        let graph = graph(nodes, &edges);
        let levels = levels(&graph, 4);
        for (number, level) in levels.iter().enumerate() {
            for (community, members) in level.communities().enumerate() {
                assert!(is_connected(&edges, members), "{seed}: {members:?}");
                if let Some(parent) = level.parent(community) {
                    let above = levels[number - 1].members(parent as usize);
                    assert!(members.len() < above.len() && members.iter().all(|node| above.contains(node)), "{seed}");
                }
            }
        }
    }
}

/// The highest modularity that any partition of the nodes has: all are tried.
fn highest(nodes: u32, edges: &[Edge]) -> f64 {
    fn rest(graph: &Undirected, of: &mut Vec<u32>, count: u32) -> f64 {
        if of.len() == graph.nodes() {
            return modularity(graph, of, Resolution::default());
        }
        let mut most = f64::MIN;
        for community in 0..=count {
            of.push(community);
            most = most.max(rest(graph, of, count.max(community + 1)));
            of.pop();
        }
        most
    }
    rest(&graph(nodes, edges), &mut Vec::new(), 0)
}

#[test]
fn small_graphs_are_divided_as_well_as_can_be() {
    for seed in 0..40 {
        let edges = planted(seed, 7, 2, 6 + usize::try_from(seed).unwrap() % 12);
        let (found, highest) = (found(&graph(7, &edges)).modularity, highest(7, &edges));
        assert!(found > highest - 1e-9, "{seed}: {found} {highest}");
    }
}

#[test]
fn no_move_of_one_node_adds_to_modularity() {
    for (name, nodes, edges) in hard().into_iter().filter(|(_, nodes, _)| *nodes <= 300) {
        let graph = graph(nodes, &edges);
        let found = found(&graph);
        for (from, to, _) in edges {
            let mut moved = found.of.clone();
            moved[from as usize] = moved[to as usize];
            let other = modularity(&graph, &moved, Resolution::default());
            assert!(other <= found.modularity + 1e-5, "{name}: {from} to {to}, {other} {}", found.modularity);
        }
    }
}

#[test]
fn modularity_is_what_its_definition_says() {
    for (name, nodes, mut edges) in hard().into_iter().filter(|(_, nodes, _)| *nodes <= 121) {
        edges.push((3, 3, 1.5));
        edges.push((edges[0].1, edges[0].0, edges[0].2));
        let graph = graph(nodes, &edges);
        for (resolution, groups) in [(0.0, 2), (1.0, 5), (2.5, 3)] {
            let of: Vec<u32> = (0..nodes).map(|node| node % groups * 1_000_000).collect();
            let given = modularity(&graph, &of, Resolution::new(resolution).unwrap());
            let expected = by_definition(nodes, &edges, &of, resolution);
            assert!((given - expected).abs() < 1e-9, "{name}: {given} {expected}");
        }
    }
}

#[test]
fn the_karate_club_is_divided_as_well_as_can_be() {
    let graph = graph(34, &unweighted(&KARATE));
    assert_eq!(graph.edges(), 78);
    let found = found(&graph);
    assert!(found.modularity > 0.4185 && found.modularity < 0.419_79, "{}", found.modularity);
    assert_eq!(found.count, 4);
}

#[test]
fn two_cliques_with_a_bridge_are_two_communities() {
    let clique = |first: u32| (0..6).flat_map(move |a| (a + 1..6).map(move |b| (first + a, first + b, 1.0)));
    let edges: Vec<Edge> = clique(0).chain(clique(6)).chain([(5, 6, 1.0)]).collect();
    assert_eq!(found(&graph(12, &edges)).of, [[0; 6], [1; 6]].concat());
}

#[test]
fn graphs_without_edges_between_nodes_have_every_node_alone() {
    for (nodes, edges) in [
        (0, vec![]),
        (1, vec![]),
        (1, vec![(0, 0, 2.0)]),
        (4, vec![]),
        (4, vec![(0, 1, 0.0), (2, 3, -0.0)]),
        (4, vec![(0, 0, 1.0), (1, 1, 3.0)]),
    ] {
        let graph = graph(nodes, &edges);
        let found = found(&graph);
        assert_eq!(found.of, (0..nodes).collect::<Vec<_>>());
        let levels = levels(&graph, 1);
        assert_eq!(levels.len(), 1);
        assert_eq!(levels[0].len(), nodes as usize);
        assert_eq!(levels[0].is_empty(), nodes == 0);
    }
}

#[test]
fn edges_that_make_no_graph_are_refused() {
    let refused = |edge: Edge| Undirected::from_edges(3, [(0, 1, 1.0), edge]).unwrap_err();
    assert_eq!(refused((1, 3, 1.0)), GraphFault::NoSuchNode { edge: 1, from: 1, to: 3, nodes: 3 });
    assert_eq!(refused((1, 2, -1.0)), GraphFault::Weight { edge: 1, weight: -1.0 });
    assert!(matches!(refused((1, 2, f32::NAN)), GraphFault::Weight { edge: 1, .. }));
    assert!(matches!(refused((1, 2, f32::INFINITY)), GraphFault::Weight { .. }));
    assert!(refused((1, 2, -1.0)).to_string().starts_with("edge 1 weighs -1; "));
    for given in [-1.0, f64::NAN, f64::INFINITY, 1e10] {
        assert!(matches!(Resolution::new(given), Err(GraphFault::Resolution { .. })));
    }
}

#[test]
fn edges_between_the_same_nodes_add_up_whatever_their_order() {
    let edges =
        [(0, 1, 0.1), (1, 0, 1e8), (0, 1, 0.3), (2, 2, 0.7), (2, 1, 1e-3), (1, 0, 7e-9), (2, 2, 1e9), (2, 2, 3.0)];
    let expected = graph(3, &edges);
    assert_eq!((expected.nodes(), expected.edges()), (3, 2));
    let mut random = Random::apart(3, 0);
    for _ in 0..50 {
        let mut other = edges;
        random.shuffle(&mut other);
        other.iter_mut().filter(|_| below(&mut random, 2) == 0).for_each(|edge| *edge = (edge.1, edge.0, edge.2));
        assert_eq!(graph(3, &other), expected);
        assert_eq!(graph(3, &other).seed(), expected.seed());
    }
    assert_ne!(graph(3, &edges[1..]).seed(), expected.seed());
}

#[test]
fn neither_the_order_of_edges_nor_the_number_of_threads_shows() {
    for (name, nodes, edges) in hard() {
        let expected = levels(&graph(nodes, &edges), 20);
        let mut random = Random::apart(11, 0);
        for threads in [1, 2, 5] {
            let mut edges = edges.clone();
            random.shuffle(&mut edges);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| levels(&graph(nodes, &edges), 20)), expected, "{name}");
        }
    }
}

#[test]
fn levels_are_nested_connected_and_small() {
    for (name, nodes, edges) in hard() {
        let graph = graph(nodes, &edges);
        let levels = levels(&graph, 10);
        let mut of: Vec<u32> = vec![0; nodes as usize];
        for (number, level) in levels.iter().enumerate() {
            let mut divided: Vec<Vec<u32>> =
                vec![Vec::new(); number.checked_sub(1).map_or(1, |above| levels[above].len())];
            for (community, members) in level.communities().enumerate() {
                assert_eq!(level.members(community), members);
                assert!(is_connected(&edges, members), "{name}: {members:?}");
                assert!(members.is_sorted());
                let parent = level.parent(community);
                assert_eq!(parent.is_some(), number > 0);
                divided[parent.unwrap_or(0) as usize].extend(members);
                for node in members {
                    of[*node as usize] = members[0];
                }
            }
            for (parent, mut parts) in divided.into_iter().enumerate().filter(|(_, parts)| !parts.is_empty()) {
                parts.sort_unstable();
                if number == 0 {
                    assert_eq!(parts, (0..nodes).collect::<Vec<_>>());
                } else {
                    assert_eq!(parts, levels[number - 1].members(parent), "{name}");
                    assert!(parts.len() > 10);
                }
            }
            let order = |of: &[u32]| (std::cmp::Reverse(of.len()), of[0]);
            assert!(level.communities().is_sorted_by_key(order));
            let quality = modularity(&graph, &of, Resolution::default());
            assert!((quality - level.modularity()).abs() < 1e-9, "{name}");
            assert_eq!(level.members(level.len()), [0_u32; 0]);
        }
        assert!(
            levels.len() > 1 || levels[0].members(0).len() <= 10 || name == "star" || name == "bipartite",
            "{name}"
        );
    }
}

#[test]
fn a_higher_resolution_gives_more_communities() {
    let graph = graph(600, &planted(2, 600, 20, 3000));
    let count = |resolution| communities(&graph, Resolution::new(resolution).unwrap(), 1, &Quiet).unwrap().count;
    assert!(count(0.0) < count(1.0) && count(1.0) < count(4.0) && count(4.0) < count(1e9));
    assert_eq!(count(1e9), 600);
}

/// Stops after so many questions.
struct Impatient(Mutex<(u64, u64, u64)>);

impl Control for Impatient {
    fn advance(&self, done: u64, total: u64) {
        assert!(done <= total, "{done} {total}");
        let mut state = self.0.lock().unwrap();
        (state.1, state.2) = (state.1.max(done), state.2.max(total));
    }

    fn cancelled(&self) -> bool {
        let mut state = self.0.lock().unwrap();
        state.0 = state.0.saturating_sub(1);
        state.0 == 0
    }
}

#[test]
fn the_search_stops_when_told_to_and_tells_its_progress() {
    let graph = graph(600, &planted(2, 600, 20, 3000));
    let settings = HierarchySettings { community_max: 10, resolution: Resolution::default(), seed: 1, levels_max: 9 };
    for patience in 1..8 {
        let control = Impatient(Mutex::new((patience, 0, 0)));
        assert_eq!(hierarchy(&graph, settings, &control), Err(Cancelled));
    }
    let control = Impatient(Mutex::new((u64::MAX, 0, 0)));
    hierarchy(&graph, settings, &control).unwrap();
    let (_, done, total) = *control.0.lock().unwrap();
    assert_eq!(done, total);
}
