//! How long communities take and how good they are: `communities [EDGES] [--nodes-max N] [--runs N]`, as one line of JSON.
//!
//! EDGES is a .npy file of pairs of u32, or a .tsv file whose lines hold a node, anything, another node, and perhaps a weight, as
//! `hedgerow graph` writes them; weights of what stands several times, 1 where none is told, add up. Without it 200 groups of 100 nodes are made up, on the same edges every time. Seconds are medians of so
//! many runs (3), those of communities without and with the smaller ones inside those of more than N nodes (100), once the graph
//! is made. `RAYON_NUM_THREADS` tells how many threads there are.

use hedgerow::{HierarchySettings, Quiet, Resolution, Undirected, communities, hierarchy};
use hedgerow_benches::{median, timed};
use std::collections::HashMap;
use std::path::Path;

fn main() {
    let (mut file, mut community_max, mut runs) = (None, 100, 3);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number follows an option");
        match argument.as_str() {
            "--nodes-max" => community_max = number(),
            "--runs" => runs = number().max(1),
            _ => file = Some(argument),
        }
    }
    let (nodes, edges) = file.as_deref().map_or_else(planted, |file| read(Path::new(file)));
    let (build_seconds, graph) =
        timed(|| Undirected::from_edges(nodes, edges.iter().copied()).expect("edges make a graph"));
    let resolution = Resolution::default();
    let settings = HierarchySettings { community_max, resolution, seed: graph.seed(), levels_max: 16 };
    let (mut seconds, mut hierarchy_seconds, mut last) = (Vec::new(), Vec::new(), None);
    for _ in 0..runs {
        let (taken, found) =
            timed(|| communities(&graph, resolution, settings.seed, &Quiet).expect("nothing cancels it"));
        seconds.push(taken);
        let (taken, levels) = timed(|| hierarchy(&graph, settings, &Quiet).expect("nothing cancels it"));
        hierarchy_seconds.push(taken);
        last = Some((found, levels));
    }
    let (found, levels) = last.expect("there is a run");
    let level = |level: &hedgerow::Level| {
        let largest = level.members(0).len();
        serde_json::json!({ "communities": level.len(), "largest": largest, "modularity": level.modularity() })
    };
    let told = serde_json::json!({
        "nodes": graph.nodes(),
        "edges": graph.edges(),
        "build_seconds": build_seconds,
        "seconds": median(seconds),
        "modularity": found.modularity,
        "communities": found.count,
        "hierarchy_seconds": median(hierarchy_seconds),
        "levels": levels.iter().map(level).collect::<Vec<_>>(),
    });
    println!("{told}");
}

type Edges = Vec<(u32, u32, f32)>;

/// The number of nodes, and the edges.
fn read(path: &Path) -> (u32, Edges) {
    if path.extension().is_some_and(|extension| extension == "npy") {
        let bytes = std::fs::read(path).expect("the file can be read");
        let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let told = String::from_utf8_lossy(&bytes[..header]);
        assert!(
            told.contains("'<u4'") && told.contains(", 2)"),
            "{} does not hold pairs of u32: {told}",
            path.display()
        );
        let (words, _) = bytes[header..].as_chunks::<4>();
        let (pairs, _) = words.as_chunks::<2>();
        let edges: Edges = pairs.iter().map(|[a, b]| (u32::from_le_bytes(*a), u32::from_le_bytes(*b), 1.0)).collect();
        let nodes = edges.iter().map(|(from, to, _)| from.max(to) + 1).max().unwrap_or(0);
        return (nodes, edges);
    }
    let text = std::fs::read_to_string(path).expect("the file can be read");
    let mut numbers = HashMap::new();
    let mut edges = Edges::new();
    for line in text.lines() {
        let mut fields = line.split('\t').map(str::trim);
        let (Some(from), Some(_), Some(to)) = (fields.next(), fields.next(), fields.next()) else {
            panic!("{} does not hold triples: {line}", path.display());
        };
        let weight = fields.next().map_or(1.0, |weight| weight.parse().expect("a weight is a number"));
        let mut number = |name| {
            let next = u32::try_from(numbers.len()).expect("few nodes");
            *numbers.entry(name).or_insert(next)
        };
        edges.push((number(from), number(to), weight));
    }
    (u32::try_from(numbers.len()).expect("few nodes"), edges)
}

/// 200 groups of 100 nodes with ten edges a node, half of them inside the group.
fn planted() -> (u32, Edges) {
    const NODES: u32 = 20_000;
    const GROUP: u32 = 100;
    let mut state = 1_u64;
    let mut below = |end: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((state >> 32) % u64::from(end)).expect("below a u32")
    };
    let mut edge = |_| {
        let from = below(NODES);
        let to = if below(2) == 0 { from - from % GROUP + below(GROUP) } else { below(NODES) };
        (from, to, 1.0)
    };
    (NODES, (0..NODES * 10).map(&mut edge).collect())
}
