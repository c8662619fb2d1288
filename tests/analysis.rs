//! Questions about the graph as a whole: against plain searches over its relations, in step and behind.

mod commands;
mod naive;

use crate::analysis::naive::{Edge, Steps, costs, hops, ranks, steps};
use crate::stores::{Place, change, document, put};
use hedgerow::{
    Batch, CommunityRules, Direction, Extractive, Following, GraphPart, Key, Listing, NeighbourOptions, Node, NodeSet,
    PathCost, PathOptions, Quiet, RankedKind, RankingOptions, Snapshot, StagedDocument, StagedEdge, StagedEdgeList,
    StagedEnd, Store, canonical,
};
use hedgerow_durability::Disk;
use rayon::ThreadPoolBuilder;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

const DIRECTIONS: [Direction; 3] = [Direction::Out, Direction::In, Direction::Both];
const NODES: u32 = 14;

fn name(node: u32) -> String {
    format!("node {node}")
}

fn key(name: &str) -> Key {
    Key::of_entity(name)
}

/// Numbers that follow from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(self.0 >> 33).expect("it has 31 bits") % end
    }
}

/// Random edges, no two alike; the last two nodes have none.
fn edges(seed: u64, count: u32) -> Vec<Edge> {
    let mut numbers = Numbers(seed);
    let mut made = BTreeMap::new();
    for _ in 0..count {
        let [subject, object] = [numbers.below(NODES - 2), numbers.below(NODES - 2)];
        let label = ["knows", "owns"][usize::from(numbers.below(3) == 0)];
        let weight = f32::from(u8::try_from(numbers.below(8) + 1).expect("it is small")) / 4.0;
        made.insert((subject, label, object), weight);
    }
    let edge = |((subject, label, object), weight): ((u32, &str, u32), f32)| {
        (name(subject), label.to_owned(), name(object), weight)
    };
    made.into_iter().map(edge).collect()
}

/// A document that states edges.
fn graph(name: &str, edges: &[Edge]) -> StagedDocument {
    let ends = edges.iter().flat_map(|(subject, _, object, _)| [subject, object]);
    let nodes = ends.map(|name| StagedEnd::new(name, "person").expect("it is a name")).collect();
    let mut staged: BTreeMap<String, Vec<StagedEdge>> = BTreeMap::new();
    for ((_, label, _, weight), subject) in edges.iter().zip((0..).step_by(2)) {
        let edge = StagedEdge { subject, object: subject + 1, weight: *weight };
        staged.entry(label.clone()).or_default().push(edge);
    }
    let edge_lists = StagedEdgeList::of_graph(nodes, staged).expect("the graph is sound");
    StagedDocument { edge_lists, ..StagedDocument::textless(name, [1; 16]) }
}

fn commit(store: &Store, document: StagedDocument) {
    let mut batch = Batch::default();
    batch.put(document);
    store.commit(batch).expect("the batch is sound");
}

fn check(snapshot: &Snapshot, all: &[Edge], predicates: &[String]) {
    let wanted = |edge: &&Edge| predicates.is_empty() || predicates.contains(&edge.1);
    let edges: Vec<Edge> = all.iter().filter(wanted).cloned().collect();
    let names: BTreeSet<&String> = all.iter().flat_map(|edge| [&edge.0, &edge.2]).collect();
    let all_steps = |direction| {
        let mut steps = steps(&edges, direction);
        for name in &names {
            steps.entry((*name).clone()).or_default();
        }
        steps
    };
    parts(snapshot, &all_steps(Direction::Both), predicates);
    for direction in DIRECTIONS {
        let following = Following { predicates: predicates.to_vec(), direction };
        let steps = all_steps(direction);
        degrees(snapshot, &steps, &following);
        betweenness(snapshot, &steps, &following);
        ranked(snapshot, &steps, &following);
        around(snapshot, &steps, &following);
        for cost in [PathCost::Hops, PathCost::Inverse, PathCost::Weight] {
            routes(snapshot, &steps, &following, cost);
        }
    }
}

fn parts(snapshot: &Snapshot, steps: &Steps, predicates: &[String]) {
    let components: BTreeSet<Vec<String>> =
        steps.keys().map(|node| hops(steps, node).into_keys().collect::<Vec<_>>()).collect();
    let found = snapshot.components(predicates, 99, 99).expect("it can be told");
    assert_eq!((found.entities, found.components), (steps.len() as u64, components.len() as u64));
    let told = found.largest.iter().map(|line| {
        let mut names = line.foremost.clone();
        names.sort();
        assert_eq!(line.size, names.len() as u64);
        names
    });
    assert_eq!(told.collect::<BTreeSet<_>>(), components);
    assert!(found.largest.is_sorted_by(|a, b| a.size >= b.size));
    assert_eq!(found.alone, components.iter().filter(|nodes| nodes.len() == 1).count() as u64);
}

fn degrees(snapshot: &Snapshot, steps: &Steps, following: &Following) {
    let found = snapshot.degrees(following, 99).expect("it can be told");
    let told: BTreeMap<String, u64> = found.hubs.iter().map(|line| (line.entity.clone(), line.degree)).collect();
    let expected: BTreeMap<String, u64> = steps.iter().map(|(node, out)| (node.clone(), out.len() as u64)).collect();
    assert_eq!(told, expected, "{following:?}");
    assert_eq!(found.edges, expected.values().sum::<u64>());
    assert_eq!(Some(&found.max), expected.values().max());
}

fn betweenness(snapshot: &Snapshot, steps: &Steps, following: &Following) {
    let simple: BTreeMap<&String, BTreeSet<&String>> =
        steps.iter().map(|(node, out)| (node, out.iter().map(|(target, _)| target).collect())).collect();
    // Hops and the number of shortest paths between all pairs.
    let mut counts: BTreeMap<(&String, &String), (usize, f64)> = BTreeMap::new();
    for from in steps.keys() {
        let mut reached: Vec<(String, usize)> = hops(steps, from).into_iter().collect();
        reached.sort_by_key(|(_, hop)| *hop);
        for (node, hop) in &reached {
            let node = *simple.get_key_value(node).expect("it is a node").0;
            let before = simple.keys().filter(|before| simple[**before].contains(node) && **before != node);
            let paths: f64 = before
                .filter_map(|before| counts.get(&(from, *before)))
                .filter(|(hops, _)| hops + 1 == *hop)
                .map(|(_, paths)| paths)
                .sum();
            counts.insert((from, node), (*hop, if *hop == 0 { 1.0 } else { paths }));
        }
    }
    let found = snapshot.betweenness(following, usize::MAX, 99).expect("it can be told");
    assert_eq!(found.sources, steps.len() as u64);
    let told: BTreeMap<&str, f64> = found.hubs.iter().map(|line| (line.entity.as_str(), line.score)).collect();
    for middle in steps.keys() {
        let mut expected = 0.0;
        for ((from, to), (hop, paths)) in counts.iter().filter(|((from, to), _)| *from != middle && *to != middle) {
            if from == to {
                continue;
            }
            let halves = (counts.get(&(from, middle)), counts.get(&(middle, to)));
            if let (Some((first, before)), Some((second, after))) = halves
                && first + second == *hop
            {
                expected += before * after / paths;
            }
        }
        if following.direction == Direction::Both {
            expected /= 2.0;
        }
        let score = told.get(middle.as_str()).copied().unwrap_or_default();
        assert!((score - expected).abs() < 1e-9, "{middle}: {score} for {expected}, {following:?}");
    }
}

fn ranked(snapshot: &Snapshot, steps: &Steps, following: &Following) {
    for (seed, weighted) in [(None, false), (None, true), (Some("node 3"), false), (Some("node 3"), true)] {
        let expected = ranks(steps, seed, weighted);
        let options = RankingOptions { following: following.clone(), weighted, limit: 99, ..RankingOptions::default() };
        let seeds: Vec<Node> = seed.iter().map(|name| Node::Entity(key(name))).collect();
        let exact = snapshot.pagerank(&seeds, &options).expect("it can be told");
        let missing = |found: &hedgerow::Ranking| -> f64 {
            let told: BTreeMap<&str, f64> = found.ranks.iter().map(|line| (&line.key[7..], line.score)).collect();
            expected.iter().map(|(node, rank)| (rank - told.get(node.as_str()).unwrap_or(&0.0)).abs()).sum()
        };
        assert!(missing(&exact) <= exact.residual + 1e-9, "{exact:?}, {expected:?}");
        if seed.is_some() {
            let pushed = RankingOptions { residual_max: Some(1e-4), ..options };
            let pushed = snapshot.pagerank(&seeds, &pushed).expect("it can be told");
            assert!(missing(&pushed) <= pushed.residual + 1e-9, "{pushed:?}");
            assert!(pushed.residual < 0.1 && pushed.iterations.is_none());
        }
    }
}

/// Neighbours of one and of two, and sets of what is near.
fn around(snapshot: &Snapshot, steps: &Steps, following: &Following) {
    let options = NeighbourOptions { following: following.clone(), limit: 99, ..NeighbourOptions::default() };
    let of = |node: &str| {
        let mut sums: BTreeMap<String, f64> = BTreeMap::new();
        for (target, weight) in steps[node].iter().filter(|(target, _)| target != node) {
            *sums.entry(target.clone()).or_default() += f64::from(*weight);
        }
        sums
    };
    for (node, other) in [("node 3", "node 5"), ("node 0", "node 8")] {
        if !steps.contains_key(node) || !steps.contains_key(other) {
            continue;
        }
        let found = snapshot.neighbours(&[key(node)], &options).expect("it can be told");
        let told: BTreeMap<String, f64> =
            found.neighbours.iter().map(|line| (line.entity.clone(), line.score)).collect();
        assert_eq!(told, of(node));
        assert!(found.neighbours.is_sorted_by(|a, b| a.score >= b.score));
        let found = snapshot.neighbours(&[key(node), key(other)], &options).expect("it can be told");
        let told: BTreeSet<String> = found.neighbours.iter().map(|line| line.entity.clone()).collect();
        let [these, those] = [of(node), of(other)];
        let both = these.into_keys().filter(|name| those.contains_key(name) && name != node && name != other);
        assert_eq!(told, both.collect());
        if following.predicates.is_empty() {
            let way = ["out", "in", "near"][DIRECTIONS.iter().position(|way| *way == following.direction).unwrap_or(2)];
            let set = NodeSet::parse(&format!("\"{way}:2:{node}\" \\ \"{other}\"")).expect("it is a set");
            let near = hops(steps, node).into_iter().filter(|(name, hop)| *hop <= 2 && name != other);
            let told = snapshot.select(&set, 99).expect("it can be told");
            let told: BTreeSet<String> = told.entities.into_iter().map(|line| line.entity).collect();
            assert_eq!(told, near.map(|(name, _)| name).collect());
        }
    }
}

fn routes(snapshot: &Snapshot, steps: &Steps, following: &Following, cost: PathCost) {
    let options = PathOptions { following: following.clone(), cost, count: 4, ..PathOptions::default() };
    for (from, to) in [("node 3", "node 5"), ("node 0", "node 8"), ("node 2", "node 2")] {
        if !steps.contains_key(from) || !steps.contains_key(to) {
            continue;
        }
        let found = snapshot.paths(key(from), key(to), &options).expect("it can be told");
        let expected = costs(steps, from, cost).get(to).copied();
        let best = found.paths.first().map(|path| path.cost);
        let near = best.zip(expected).map_or(best.is_none() && expected.is_none(), |(a, b)| (a - b).abs() < 1e-9);
        assert!(near, "{from} to {to}: {best:?} for {expected:?}, {options:?}");
        assert!(found.complete && found.paths.is_sorted_by(|a, b| a.cost <= b.cost));
        for path in &found.paths {
            let mut at = format!("entity:{from}");
            let mut sum = 0.0;
            for edge in &path.edges {
                assert_eq!(edge.from, at);
                let there = &steps[&edge.from[7..]];
                assert!(
                    there
                        .iter()
                        .any(|(target, weight)| *target == edge.to[7..] && weight.to_bits() == edge.weight.to_bits())
                );
                assert!(following.predicates.is_empty() || following.predicates.contains(&edge.label));
                at.clone_from(&edge.to);
                sum += match cost {
                    PathCost::Hops => 1.0,
                    PathCost::Inverse => 1.0 / f64::from(edge.weight),
                    PathCost::Weight => f64::from(edge.weight),
                };
            }
            assert!(at == format!("entity:{to}") && (sum - path.cost).abs() < 1e-9, "{path:?}");
        }
    }
}

#[test]
fn answers_about_a_graph_are_those_of_plain_searches_in_step_and_over_what_is_covered_when_behind() {
    for seed in 0..6 {
        let (first, second) = (edges(seed, 20), edges(seed + 100, 6));
        let place = Place::new();
        let store = place.open();
        commit(&store, graph("first", &first));
        store.refresh(&Quiet).expect("the store can be brought in step");
        let snapshot = place.read();
        check(&snapshot, &first, &[]);
        check(&snapshot, &first, &["owns".to_owned()]);
        assert_eq!(snapshot.degrees(&Following::default(), 1).expect("it can be told").incomplete, [""; 0]);
        commit(&store, graph("second", &second));
        let snapshot = place.read();
        check(&snapshot, &first, &[]);
        let lacks = snapshot.degrees(&Following::default(), 1).expect("it can be told").incomplete;
        assert!(lacks.iter().any(|lack| lack.contains("behind")), "{lacks:?}");
    }
}

#[test]
fn without_links_answers_are_empty_and_say_why() {
    let place = Place::new();
    let store = place.open();
    commit(&store, graph("first", &edges(1, 20)));
    let snapshot = place.read();
    let found = snapshot.components(&[], 9, 9).expect("it can be told");
    assert_eq!((found.entities, found.components), (0, 0));
    let ranks = snapshot.pagerank(&[], &RankingOptions { chunks: true, ..RankingOptions::default() });
    let ranks = ranks.expect("it can be told");
    let paths = snapshot.paths(key("node 1"), key("node 1"), &PathOptions::default()).expect("it can be told");
    assert!(ranks.ranks.is_empty() && paths.paths.is_empty());
    for lacks in [found.incomplete, ranks.incomplete, paths.incomplete] {
        assert!(lacks.iter().any(|lack| lack.contains("no links projection")), "{lacks:?}");
    }
}

#[test]
fn a_walk_over_chunks_that_is_pushed_is_the_exact_one_within_its_residual_and_leaves_out_what_is_gone() {
    let place = Place::new();
    let store = place.open();
    let texts = ["Alice owns Bridge.", "The Bridge of Dover.", "Carol met Alice in Ely.", "Dover owns Ely.", "Fay."];
    let keyed: Vec<(String, &str)> = (0..25).map(|row| (format!("d{row}"), texts[row % texts.len()])).collect();
    put(&store, &keyed.iter().map(|(key, text)| (key.as_str(), *text)).collect::<Vec<_>>());
    let snapshot = place.read();
    let seeds = [snapshot.find("entity:Alice").expect("it is there")];
    for (kind, weighted) in [(RankedKind::All, true), (RankedKind::Entities, false), (RankedKind::Chunks, false)] {
        let exact = RankingOptions { chunks: true, kind, weighted, limit: 999, ..RankingOptions::default() };
        let found = snapshot.pagerank(&seeds, &exact).expect("it can be told");
        let pushed = RankingOptions { residual_max: Some(1e-5), ..exact };
        let pushed = snapshot.pagerank(&seeds, &pushed).expect("it can be told");
        let scores: BTreeMap<&str, f64> = pushed.ranks.iter().map(|line| (line.key.as_str(), line.score)).collect();
        let differ: f64 =
            found.ranks.iter().map(|line| line.score - scores.get(line.key.as_str()).unwrap_or(&0.0)).sum();
        assert!(differ >= -1e-9 && differ <= pushed.residual + 1e-9, "{differ} beyond {}", pushed.residual);
        let prefix = if kind == RankedKind::Chunks { "chunk:" } else { "entity:Alice" };
        assert!(pushed.ranks[0].key.starts_with(prefix), "{pushed:?}");
        assert_eq!(pushed.ranks.len(), found.ranks.len());
    }
    change(&store, vec![document("late", "Alice owns Ferry.")], &["d0"]);
    let options = RankingOptions { chunks: true, residual_max: Some(1e-5), limit: 999, ..RankingOptions::default() };
    let behind = place.read().pagerank(&seeds, &options).expect("it can be told");
    assert!(!behind.incomplete.is_empty() && behind.ranks.iter().all(|line| line.key != "chunk:d0#0"));
    assert!(behind.ranks.iter().any(|line| line.key == "chunk:d5#0"));
}

#[test]
fn answers_follow_from_what_is_in_a_store_and_not_from_its_history_or_the_number_of_threads() {
    let place = Place::new();
    let store = place.open_unmerged();
    for round in 0..4 {
        put(&store, &[("a", &format!("Alice met Carol in Dover {round}.")), ("b", "Carol met Fay in Ely.")]);
        commit(&store, graph(&format!("edges {round}"), &edges(round, 12)));
    }
    store.refresh(&Quiet).expect("the store can be brought in step");
    let told = |snapshot: &Snapshot| {
        let following = Following::default();
        let ranks = RankingOptions { weighted: true, limit: 99, ..RankingOptions::default() };
        let paths = PathOptions { count: 5, ..PathOptions::default() };
        let near = NodeSet::parse("\"near:2:node 3\" | with:Carol").expect("it is a set");
        let mut dumped = Vec::new();
        let mut visit = |part: GraphPart<'_>| {
            dumped.push(format!("{part:?}"));
            ControlFlow::Continue(())
        };
        snapshot.dump_graph(&[], 9, &mut visit).expect("it can be told");
        let answers = [
            format!("{:?}", snapshot.components(&[], 9, 9)),
            format!("{:?}", snapshot.degrees(&following, 99)),
            format!("{:?}", snapshot.betweenness(&following, 5, 99)),
            format!("{:?}", snapshot.pagerank(&[Node::Entity(key("node 3"))], &ranks)),
            format!("{:?}", snapshot.paths(key("node 3"), key("node 5"), &paths)),
            format!("{:?}", snapshot.neighbours(&[key("node 3"), key("node 5")], &NeighbourOptions::default())),
            format!("{:?}", snapshot.select(&near, 99)),
        ];
        assert!(answers.iter().all(|answer| answer.starts_with("Ok(") && !answer.contains("behind")), "{answers:?}");
        (answers, dumped)
    };
    let expected = told(&place.read());
    let copy = canonical(&place.read(), Arc::new(Disk::default()), &Quiet).expect("it can be copied");
    assert_eq!(told(&copy.snapshot()), expected);
    let alone = ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    assert_eq!(alone.install(|| told(&place.read())), expected);
}

#[test]
fn a_dump_has_every_entity_and_relation_once_or_the_first_with_their_ends() {
    let place = Place::new();
    let store = place.open();
    let all = edges(3, 20);
    commit(&store, graph("first", &all));
    store.refresh(&Quiet).expect("the store can be brought in step");
    let snapshot = place.read();
    for (limit, predicates) in [(usize::MAX, vec![]), (5, vec![]), (usize::MAX, vec!["owns".to_owned()]), (0, vec![])] {
        let (mut entities, mut found) = (BTreeSet::new(), Vec::new());
        let dumped = snapshot.dump_graph(&predicates, limit, &mut |part| {
            match part {
                GraphPart::Entity { name, kind } => {
                    assert!(kind == "person" && found.is_empty() && entities.insert(name.to_owned()));
                }
                GraphPart::Relation { subject, predicate, object, weight } => {
                    found.push((subject.to_owned(), predicate.to_owned(), object.to_owned(), weight.to_string()));
                }
            }
            ControlFlow::Continue(())
        });
        let dumped = dumped.expect("it can be told");
        let is_wanted = |edge: &&Edge| predicates.is_empty() || predicates.contains(&edge.1);
        let wanted: BTreeSet<_> = all
            .iter()
            .filter(is_wanted)
            .map(|(subject, label, object, weight)| {
                (subject.clone(), label.clone(), object.clone(), weight.to_string())
            })
            .collect();
        assert_eq!(found.len(), limit.min(wanted.len()));
        assert_eq!((dumped.relations, dumped.entities), (found.len() as u64, entities.len() as u64));
        assert_eq!(dumped.truncated, limit < wanted.len());
        let ends: BTreeSet<String> = found.iter().flat_map(|edge| [edge.0.clone(), edge.2.clone()]).collect();
        assert_eq!(entities, ends);
        assert!(found.into_iter().collect::<BTreeSet<_>>().is_subset(&wanted));
    }
    let mut parts = 0;
    let broken = snapshot.dump_graph(&[], usize::MAX, &mut |_| {
        parts += 1;
        if parts == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((broken.expect("it can be told").entities, parts), (3, 3));
}

#[test]
fn sets_are_composed_of_names_and_tests() {
    let place = Place::new();
    let store = place.open();
    put(&store, &[("a", "Alice met Carol in Dover."), ("b", "Carol met Fay."), ("c", "Dover Bridge.")]);
    commit(&store, graph("roads", &[("Alice".into(), "knows".into(), "Fay".into(), 1.0)]));
    store.refresh(&Quiet).expect("the store can be brought in step");
    let snapshot = place.read();
    let told = |text: &str| {
        let found = snapshot.select(&NodeSet::parse(text).expect("it is a set"), 99).expect("it can be told");
        let mut names: Vec<String> = found.entities.into_iter().map(|line| line.entity).collect();
        names.sort();
        assert_eq!(found.count, names.len() as u64);
        names
    };
    let Listing::Entities(lines) = snapshot.list_entities(99).expect("it can be told") else { panic!("entities") };
    let mut all: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
    all.sort();
    assert_eq!(told("all"), all);
    assert_eq!(told("Alice | entity:Fay"), ["Alice", "Fay"]);
    assert_eq!(told("near:1:Alice"), ["Alice", "Fay"]);
    assert_eq!(told("in:1:Alice"), ["Alice"]);
    assert_eq!(told("component:Fay & type:name"), ["Alice", "Fay"]);
    assert_eq!(told("all & ?label:knows"), ["Alice", "Fay"]);
    assert_eq!(told("all & ?degree:1 \\ Fay"), ["Alice"]);
    assert!(told("with:Carol").contains(&"Fay".to_owned()));
    assert_eq!(told("all & ?mentions:2"), lines_with(&lines, 2));
    let missing = snapshot.select(&NodeSet::parse("near:1:Nobody").expect("it is a set"), 9);
    assert!(matches!(missing, Err(hedgerow::QueryError::NotFound { .. })), "{missing:?}");
    for text in ["near:x:Alice", "near:99:Alice", "all & ?knows", "all & ?degree:many", "(all"] {
        assert!(NodeSet::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_community_is_a_set_and_a_seed_that_stands_for_its_members() {
    let place = Place::new();
    let store = place.open();
    commit(&store, graph("first", &edges(5, 24)));
    store.refresh(&Quiet).expect("the store can be brought in step");
    let rules = CommunityRules { members_max: 4, ..CommunityRules::default() };
    store.build_communities(&rules, &Extractive, None, &Quiet).expect("communities can be found");
    let snapshot = place.read();
    let Listing::Communities(lines) = snapshot.list_communities(None, 99).expect("it can be told") else {
        panic!("communities are listed as communities");
    };
    assert!(lines.len() > 1);
    for line in lines {
        let set = NodeSet::parse(&format!("community:{}", line.id)).expect("it is a set");
        let selected = snapshot.select(&set, 99).expect("it can be told");
        assert_eq!(selected.count, line.members);
        let names: BTreeSet<&str> = selected.entities.iter().map(|line| line.entity.as_str()).collect();
        let seed = snapshot.find(&format!("community:{}", line.id)).expect("it is there");
        let options = RankingOptions { damping: 0.0, limit: 99, ..RankingOptions::default() };
        let found = snapshot.pagerank(&[seed], &options).expect("it can be told");
        assert_eq!(found.ranks.iter().map(|line| &line.key[7..]).collect::<BTreeSet<_>>(), names);
    }
}

fn lines_with(lines: &[hedgerow::EntityLine], least: u64) -> Vec<String> {
    let mut names: Vec<String> =
        lines.iter().filter(|line| line.mentions >= least).map(|line| line.name.clone()).collect();
    names.sort();
    names
}
