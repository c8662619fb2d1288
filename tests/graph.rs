//! Walks over relations: the cases of another graph store, and random graphs against a plain search.

use crate::command::{Folder, command, told};
use crate::edge_lists::shaped;
use crate::stores::{Numbers, Place, entities, relations};
use hedgerow::{
    Batch, Direction, EdgeKind, ExpandOptions, Expansion, Key, Node, QueryLimits, Quiet, Returned, Snapshot,
    StagedDocument, StagedEnd, StagedEntity, StagedRelation, Store,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A vertex of these graphs as an entity: one letter alone might be an article.
fn name(vertex: &str) -> String {
    format!("node {vertex}")
}

fn end(vertex: &str) -> StagedEnd {
    let StagedEntity { key, name, kind, .. } = StagedEntity::new(&name(vertex), "").expect("it is a name");
    StagedEnd { key, name, kind }
}

/// A relation that may lead to where it starts.
fn relation(subject: &str, predicate: &str, object: &str, weight: f32) -> StagedRelation {
    StagedRelation { subject: end(subject), predicate: predicate.into(), object: end(object), weight, range: 0..0 }
}

/// Each relation in a document of its own, named by its place.
fn commit(store: &Store, edges: &[(String, String, String, f32)]) {
    let mut batch = Batch::default();
    for (number, (subject, predicate, object, weight)) in edges.iter().enumerate() {
        let fingerprint = [u8::try_from(number % 251).unwrap_or(0); 16];
        let mut document = StagedDocument::textless(format!("edge {number}"), fingerprint);
        document.relations.push(relation(subject, predicate, object, *weight));
        batch.put(document);
    }
    store.commit(batch).expect("the batch is sound");
}

fn nodes(snapshot: &Snapshot, vertices: &[&str]) -> Vec<Node> {
    vertices.iter().map(|vertex| snapshot.find(&format!("entity:{}", name(vertex))).expect("it is there")).collect()
}

fn expand(snapshot: &Snapshot, seeds: &[&str], options: ExpandOptions) -> Expansion {
    let options = ExpandOptions { edges: vec![EdgeKind::Relations], ..options };
    snapshot.expand(&nodes(snapshot, seeds), &options).expect("it can be walked")
}

/// Everything, as far as the edges lead.
fn whole() -> ExpandOptions {
    ExpandOptions {
        hops: 99,
        fan_out: usize::MAX,
        limit: usize::MAX,
        returned: Returned::Subgraph,
        ..ExpandOptions::default()
    }
}

fn cases() -> Value {
    serde_json::from_str(include_str!("data/memory-graph/cases.json")).expect("it is JSON")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("it is a string")
}

fn number(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|number| usize::try_from(number).ok())
}

/// The edges of a case; those that were inserted first are the heaviest.
fn edges(listed: &Value) -> Vec<(String, String, String, f32)> {
    let listed = listed.as_array().expect("it is a list");
    let edge = |(place, edge): (u8, &Value)| {
        let field = |at: usize| text(&edge[at]).to_owned();
        (field(0), field(2), field(1), 1.0 - f32::from(place) / 100.0)
    };
    (0..).zip(listed).map(edge).collect()
}

#[test]
fn walks_reach_what_the_cases_of_another_graph_store_say() {
    let cases = cases();
    let place = Place::new();
    let store = place.open();
    commit(&store, &edges(&cases["edges"]));
    for in_step in [false, true] {
        if in_step {
            store.refresh(&Quiet).expect("the store can be brought in step");
        }
        let snapshot = place.read();
        let mut seen = 0;
        for group in ["search", "limit", "fan", "depth"] {
            for case in cases[group].as_array().expect("it is a list") {
                // A vertex without edges is no entity here.
                let seeds: Vec<&str> = case["seeds"].as_array().expect("a list").iter().map(text).collect();
                let lone = seeds.iter().filter(|seed| **seed == "G").count();
                let seeds: Vec<&str> = seeds.into_iter().filter(|seed| *seed != "G").collect();
                let direction = match text(&case[if case["dir"].is_null() { "direct" } else { "dir" }]) {
                    "OUT" => Direction::Out,
                    "IN" => Direction::In,
                    _ => Direction::Both,
                };
                let options = ExpandOptions {
                    direction,
                    hops: number(&case["depth"]).unwrap_or(99),
                    fan_out: number(&case["fan"]).unwrap_or(usize::MAX),
                    edge_limit: number(&case["limit"]).unwrap_or(usize::MAX),
                    ..whole()
                };
                let found = expand(&snapshot, &seeds, options);
                assert_eq!(Some(found.edges.len()), number(&case["e"]), "{case}");
                if let Some(vertices) = number(&case["v"]) {
                    assert_eq!(found.nodes.len() + lone, vertices, "{case}");
                }
                seen += 1;
            }
        }
        assert_eq!(seen, 18);
    }
}

#[test]
fn what_is_deleted_takes_its_edges_as_the_cases_of_another_graph_store_say() {
    let cases = cases();
    let all = edges(&cases["edges"]);
    let mut seen = 0;
    for case in cases["deletes"].as_array().expect("it is a list") {
        // Properties of edges are none of a relation's.
        if !case["match_props"].is_null() {
            continue;
        }
        let place = Place::new();
        let store = place.open();
        commit(&store, &all);
        let arguments: Vec<&str> = case["args"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        let gone = |(subject, label, object, _): &(String, String, String, f32)| match text(&case["op"]) {
            "del_vertices" => arguments.contains(&subject.as_str()) || arguments.contains(&object.as_str()),
            "del_neighbor_edges" => object == arguments[0],
            _ => arguments[..2] == [subject, object] && arguments.get(2).is_none_or(|wanted| wanted == label),
        };
        let mut batch = Batch::default();
        all.iter().enumerate().filter(|(_, edge)| gone(edge)).for_each(|(at, _)| batch.delete(&format!("edge {at}")));
        store.commit(batch).expect("the batch is sound");
        for in_step in [false, true] {
            if in_step {
                store.refresh(&Quiet).expect("the store can be brought in step");
            }
            let snapshot = place.read();
            assert_eq!(Some(relations(&snapshot).len()), number(&case["e"]), "{case}");
            let lone = usize::from(!(case["op"] == "del_vertices" && arguments.contains(&"G")));
            assert_eq!(Some(entities(&snapshot).len() + lone), number(&case["v"]), "{case}");
        }
        seen += 1;
    }
    assert_eq!(seen, 9);
}

#[test]
fn a_walk_is_breadth_first_where_a_depth_first_one_depends_on_its_order() {
    let cases = cases();
    let place = Place::new();
    let store = place.open();
    commit(&store, &edges(&cases["known_defect_case"]["edges"]));
    let options = ExpandOptions { direction: Direction::Out, hops: 3, ..whole() };
    let found = expand(&place.read(), &["S"], options);
    assert_eq!(Some(found.edges.len()), number(&cases["known_defect_case"]["bfs_correct_edges"]));
    assert_eq!(found.reached, [1, 2, 1, 1]);
}

type Edges = Vec<(String, String, String, f32)>;
type Named = (String, String, String);

/// A graph with loops, edges of several labels between the same nodes, and sources that say the same.
fn random(numbers: &mut Numbers) -> Edges {
    let vertices = 3 + numbers.below(9);
    let mut edge = || {
        let vertex = |numbers: &mut Numbers| numbers.below(vertices).to_string();
        let (subject, object) = (vertex(numbers), vertex(numbers));
        let weight = [0.25, 0.5, 1.0, 2.0][numbers.below(4)];
        (subject, ["owns", "sees"][numbers.below(2)].to_owned(), object, weight)
    };
    (0..20).map(|_| edge()).collect()
}

/// Relations with the sum of their sources.
fn merged(edges: &Edges) -> BTreeMap<Named, f32> {
    let mut merged = BTreeMap::new();
    for (subject, label, object, weight) in edges {
        *merged.entry((name(subject), label.clone(), name(object))).or_insert(0.0) += weight;
    }
    merged
}

/// The nodes by their distance, and the edges out of all that are not at the last.
fn searched(
    merged: &BTreeMap<Named, f32>,
    seed: &str,
    options: &ExpandOptions,
) -> (Vec<BTreeSet<String>>, BTreeSet<Named>) {
    let followed = |label: &String, weight: f32| {
        (options.predicates.is_empty() || options.predicates.contains(label)) && weight >= options.weight_min
    };
    let steps: Vec<(&String, &String, Named)> = merged
        .iter()
        .filter(|((_, label, _), weight)| followed(label, **weight))
        .flat_map(|(edge, _)| {
            let out = (options.direction != Direction::In).then_some((&edge.0, &edge.2, edge.clone()));
            let back = (options.direction != Direction::Out).then_some((&edge.2, &edge.0, edge.clone()));
            out.into_iter().chain(back)
        })
        .collect();
    let mut hops = vec![BTreeSet::from([name(seed)])];
    let (mut seen, mut edges) = (hops[0].clone(), BTreeSet::new());
    for _ in 0..options.hops {
        let frontier = hops.last().cloned().unwrap_or_default();
        let mut next = BTreeSet::new();
        for (_, to, edge) in steps.iter().filter(|(from, _, _)| frontier.contains(*from)) {
            edges.insert(edge.clone());
            if !seen.contains(*to) {
                next.insert((*to).clone());
            }
        }
        seen.extend(next.iter().cloned());
        if frontier.is_empty() {
            break;
        }
        hops.push(next);
    }
    (hops, edges)
}

#[test]
fn walks_over_random_graphs_reach_what_a_plain_search_reaches_in_step_and_behind() {
    let mut numbers = Numbers(11);
    for round in 0..40 {
        let all = random(&mut numbers);
        let place = Place::new();
        let store = place.open_unmerged();
        // In one segment, and in several.
        all.chunks(if round % 2 == 0 { 20 } else { 7 }).enumerate().for_each(|(part, edges)| {
            let mut batch = Batch::default();
            for (number, (subject, label, object, weight)) in edges.iter().enumerate() {
                let mut document = StagedDocument::textless(format!("{part} {number}"), [1; 16]);
                document.relations.push(relation(subject, label, object, *weight));
                batch.put(document);
            }
            store.commit(batch).expect("the batch is sound");
        });
        let merged = merged(&all);
        let options = ExpandOptions {
            direction: [Direction::Both, Direction::In, Direction::Out][round % 3],
            hops: round % 4,
            predicates: if round % 5 == 0 { vec!["sees".into()] } else { Vec::new() },
            weight_min: if round % 7 == 0 { 0.75 } else { 0.0 },
            ..whole()
        };
        let seed = &all[0].0;
        let (hops, edges) = searched(&merged, seed, &options);
        let behind = expand(&place.read(), &[seed], options.clone());
        store.refresh(&Quiet).expect("the store can be brought in step");
        let found = expand(&place.read(), &[seed], options.clone());
        assert_eq!((&behind.nodes, &behind.edges), (&found.nodes, &found.edges));
        let mut found_hops = vec![BTreeSet::new(); hops.len()];
        for node in &found.nodes {
            found_hops[node.hop].insert(node.key.trim_start_matches("entity:").to_owned());
            assert_eq!(node.path.len(), node.hop);
        }
        assert_eq!(found_hops, hops);
        let found_edges: BTreeSet<Named> = found
            .edges
            .iter()
            .map(|edge| {
                let end = |key: &String| key.trim_start_matches("entity:").to_owned();
                (end(&edge.from), edge.label.clone(), end(&edge.to))
            })
            .collect();
        assert_eq!(found_edges, edges);
        for edge in &found.edges {
            let end = |key: &String| key.trim_start_matches("entity:").to_owned();
            let weight = merged[&(end(&edge.from), edge.label.clone(), end(&edge.to))];
            assert_eq!(edge.weight.to_bits(), weight.to_bits());
        }
        let counted = expand(&place.read(), &[seed], ExpandOptions { returned: Returned::Counts, ..options });
        let sizes: Vec<u64> = hops.iter().map(|hop| hop.len() as u64).collect();
        assert_eq!((counted.reached, counted.nodes), (sizes, Vec::new()));
    }
}

#[test]
fn a_hub_is_reached_but_not_walked_through_and_counts_for_less() {
    let place = Place::new();
    let store = place.open();
    let mut all: Edges = (0..30).map(|leaf| ("hub".into(), "has".into(), format!("leaf {leaf}"), 1.0)).collect();
    all.push(("start".into(), "has".into(), "hub".into(), 1.0));
    all.push(("start".into(), "has".into(), "quiet".into(), 1.0));
    commit(&store, &all);
    store.refresh(&Quiet).expect("the store can be brought in step");
    let snapshot = place.read();
    let options = ExpandOptions { hops: 3, degree_max: 10, ..whole() };
    assert_eq!(expand(&snapshot, &["start"], options.clone()).reached, [1, 2, 0]);
    // A start is always walked from.
    assert_eq!(expand(&snapshot, &["hub"], options).reached, [1, 31, 1, 0]);
    let weighed = expand(&snapshot, &["start"], ExpandOptions { hops: 1, idf: true, ..whole() });
    let order: Vec<&str> = weighed.nodes.iter().map(|node| node.key.as_str()).collect();
    assert_eq!(order, ["entity:node start", "entity:node quiet", "entity:node hub"]);
    assert!(weighed.nodes[2].score < 0.2 && weighed.nodes[1].score > 0.7, "{:?}", weighed.nodes);
}

#[test]
fn counts_alone_are_those_of_walks_that_remember_their_paths() {
    let mut numbers = Numbers(5);
    let place = Place::new();
    let store = place.open();
    let all: Edges = (0..3).flat_map(|_| random(&mut numbers)).collect();
    commit(&store, &all);
    let behind = place.read();
    assert!(behind.bounded(QueryLimits::default()).reach().expect("it can be read").is_none());
    store.refresh(&Quiet).expect("the store can be brought in step");
    let snapshot = place.read();
    let bounded = snapshot.bounded(QueryLimits::default());
    let mut reach = bounded.reach().expect("it can be read").expect("links are in step");
    assert_eq!(reach.edges(), merged(&all).len());
    assert_eq!(reach.nodes(), entities(&snapshot).len());
    let vertices: BTreeSet<&str> = all.iter().flat_map(|edge| [edge.0.as_str(), edge.2.as_str()]).collect();
    let vertices: Vec<&str> = vertices.into_iter().collect();
    for seeds in [&vertices[..1], &vertices[1..3], &[vertices[2], vertices[2]], &[]] {
        for direction in [Direction::Out, Direction::In, Direction::Both] {
            for hops in [0, 1, 2, 5, usize::MAX] {
                let walked = |snapshot: &Snapshot, fan_out, returned| {
                    let options = ExpandOptions { direction, hops, fan_out, returned, ..whole() };
                    expand(snapshot, seeds, options).reached
                };
                let counts = walked(&snapshot, usize::MAX, Returned::Counts);
                // Neither of these takes the same way.
                assert_eq!(walked(&snapshot, usize::MAX, Returned::Nodes), counts);
                assert_eq!(walked(&snapshot, 1_000_000, Returned::Counts), counts);
                assert_eq!(walked(&behind, usize::MAX, Returned::Counts), counts);
                let keys: Vec<Key> = seeds.iter().map(|seed| end(seed).key).collect();
                assert_eq!(reach.count(&keys, direction, hops).expect("it can be walked"), Some(counts));
            }
        }
    }
    let lone = end("nowhere").key;
    assert_eq!(reach.count(&[lone], Direction::Both, 1).expect("it can be walked"), None);
    let options = ExpandOptions { returned: Returned::Counts, hops: 2, ..whole() };
    let options = ExpandOptions { edges: vec![EdgeKind::Relations], ..options };
    let found = snapshot.expand(&[Node::Entity(lone)], &options).expect("it can be walked");
    assert_eq!(found.reached, [1, 0]);
}

#[test]
fn the_bench_of_hops_counts_what_a_plain_search_finds_in_one_segment_and_in_several() {
    let folder = Folder::new();
    let mut numbers = Numbers(8);
    let edges: Vec<[u64; 2]> = (0..90).map(|_| [(); 2].map(|()| numbers.below(60) as u64)).collect();
    let seeds: Vec<u64> = (0..70).step_by(7).chain([4_000_000]).collect();
    let within = |seed: u64, hops: usize| {
        let mut found = BTreeSet::from([seed]);
        for _ in 0..hops {
            let next = edges.iter().filter(|edge| edge.iter().any(|end| found.contains(end)));
            found = next.flatten().copied().chain(found.iter().copied()).collect();
        }
        u32::try_from(found.len()).expect("they are few")
    };
    let matrix = folder.write("edges.npy", shaped("<u4", "90, 2", edges.as_flattened()));
    let flat = folder.write("seeds.npy", shaped("<i8", &format!("{},", seeds.len()), &seeds));
    let column = folder.write("column.npy", shaped("<u4", &format!("{}, 1", seeds.len()), &seeds));
    let kept = folder.store();
    for more in [&["--segments", "3"] as &[&str], &["--keep", &kept], &["--store", &kept]] {
        let from =
            if more[0] == "--store" { vec!["--seeds", &column] } else { vec!["--edges", &matrix, "--seeds", &flat] };
        let told = told(&[&["bench", "khop", "--hops", "1,2,4"], &from[..], more].concat());
        let distinct: BTreeSet<&[u64; 2]> = edges.iter().collect();
        let nodes: BTreeSet<&u64> = edges.iter().flatten().collect();
        let alone = seeds.iter().filter(|seed| !nodes.contains(seed)).count();
        let counts = ["nodes", "edges", "seeds", "seeds_alone"].map(|name| &told[name]);
        assert_eq!(counts, [&json!(nodes.len()), &json!(distinct.len()), &json!(11), &json!(alone)], "{told}");
        for hops in [1, 2, 4] {
            let sum: u32 = seeds.iter().map(|seed| within(*seed, hops)).sum();
            let reached = told[format!("hop{hops}_reached")].as_f64().expect("it is a number");
            assert!((reached - f64::from(sum) / 11.0).abs() < 1e-9, "{hops}: {told}");
            for name in ["ms", "mean_ms", "edges_per_s"] {
                assert!(told[format!("hop{hops}_{name}")].as_f64() > Some(0.0), "{told}");
            }
        }
        for name in ["disk_mb", "bytes_per_edge_direction", "open_ms", "first_ms"] {
            assert!(told[name].as_f64() > Some(0.0), "{told}");
        }
        assert_eq!(told["load_s"].is_null(), more[0] == "--store");
    }
    let again = command().args(["bench", "khop", "--edges", &matrix, "--keep", &kept, "--seeds", &flat]).output();
    let again = String::from_utf8(again.expect("the command starts").stderr).expect("it is text");
    assert!(again.contains("expected a new folder"), "{again}");
    let human = command().args(["bench", "khop", "--hops", "1", "--store", &kept, "--seeds", &flat]).output();
    let human = String::from_utf8(human.expect("the command starts").stdout).expect("it is text");
    assert!(human.contains("1 hop ") && human.contains("million edges/s"), "{human}");
}
