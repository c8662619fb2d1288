//! Stored similarity edges, against a computation that anyone can follow.

use crate::command::{Folder, Run, command, told};
use crate::stores::{Numbers, PIPELINE, Place, document};
use hedgerow::{
    Batch, Control, Description, EdgeReport, EdgeRules, Node, Pipeline, Quiet, Reason, Snapshot, StagedVector, Store,
    Target, dot,
};
use hedgerow_format::Key;
use proptest::prelude::*;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

/// Pairs of chunk keys, the lower first, with their similarity.
type Pairs = BTreeMap<(String, String), f32>;

#[derive(Clone, Debug)]
struct Case {
    rows: usize,
    dimensions: usize,
    /// Number of directions that vectors are drawn from; few make many ties.
    directions: usize,
    seed: u64,
    rules: EdgeRules,
}

fn cases() -> impl Strategy<Value = Case> {
    let percentile = prop_oneof![Just(0), Just(95_000), Just(100_000), 0..100_001_u32];
    let top_m = prop_oneof![Just(0), Just(1), 1..6_u32, Just(1000)];
    (1..40_usize, 1..9_usize, prop_oneof![1..5_usize, Just(1000)], any::<u64>(), percentile, top_m).prop_map(
        |(rows, dimensions, directions, seed, percentile, top_m)| Case {
            rows,
            dimensions,
            directions,
            seed,
            rules: EdgeRules { percentile, top_m },
        },
    )
}

proptest! {
    #![proptest_config(crate::stores::cases(48))]

    #[test]
    fn stored_edges_are_those_of_a_naive_computation(case in cases()) {
        let place = Place::new();
        let (store, vectors) = built(&place, &case);
        let report = store.build_edges("v", case.rules, &Quiet).expect("edges can be built");
        let expected = expected(&vectors, case.rules);
        prop_assert_eq!(&stored(&place.read(), case.rows), &expected.edges);
        prop_assert_eq!(report.pairs, expected.pairs);
        prop_assert_eq!(report.passed, expected.passed);
        prop_assert_eq!(report.kept, expected.edges.len() as u64);
        let snapshot = place.read();
        for (row, (key, _)) in vectors.iter().enumerate() {
            for (other, _) in vectors.iter().skip(row + 1) {
                let chunk = |name: &str| match snapshot.find(&format!("chunk:{name}#0")).expect("it is there") {
                    Node::Chunk(chunk) => chunk,
                    _ => panic!("{name} has a chunk"),
                };
                let why = snapshot.explain([chunk(key), chunk(other)], "v").expect("it can be explained");
                let ends = [format!("{key}#0"), format!("{other}#0")];
                let edge = expected.edges.iter().find(|(pair, _)| ends.contains(&pair.0) && ends.contains(&pair.1));
                prop_assert_eq!(why.edge, edge.map(|(_, weight)| *weight));
                let chosen = [Reason::ChosenByFirst, Reason::ChosenBySecond, Reason::ChosenByBoth];
                prop_assert_eq!(chosen.contains(&why.reason), edge.is_some(), "{:?}", why);
            }
        }
        if expected.pairs > 0 {
            // Zero and minus zero are one similarity.
            prop_assert_eq!((report.threshold + 0.0).to_bits(), (expected.threshold + 0.0).to_bits());
        }
    }
}

fn name(row: usize) -> String {
    format!("document {row}")
}

/// A store of two segments whose documents have these vectors.
fn built(place: &Place, case: &Case) -> (Store, Vec<(String, Vec<f32>)>) {
    let mut numbers = Numbers(case.seed);
    let mut direction = || -> Vec<f32> {
        let mut vector: Vec<f32> = (0..case.dimensions).map(|_| numbers.component()).collect();
        vector[0] += 2.0;
        hedgerow::normalise(&mut vector).expect("it has a direction");
        vector
    };
    let directions: Vec<Vec<f32>> = (0..case.directions.min(case.rows)).map(|_| direction()).collect();
    let mut numbers = Numbers(case.seed ^ 1);
    let pick = |numbers: &mut Numbers| directions[numbers.below(directions.len())].clone();
    let vectors: Vec<(String, Vec<f32>)> = (0..case.rows).map(|row| (name(row), pick(&mut numbers))).collect();
    let store = place.open();
    for part in vectors.chunks(case.rows.div_ceil(2)) {
        let mut batch = Batch::default();
        let documents = part.iter().map(|(key, _)| document(key, "text")).collect();
        let pipeline = Pipeline { embedder: None, ..PIPELINE };
        pipeline.stage(&store.snapshot(), documents, &mut batch, &Quiet).expect("no one cancels");
        for (key, components) in part {
            let vector = StagedVector { space: "v".into(), model: "m".into(), components: components.clone() };
            batch.set_vector(Target { document: key.clone(), chunk: None }, vector);
        }
        store.commit(batch).expect("the batch is sound");
    }
    (store, vectors)
}

struct Expected {
    edges: Pairs,
    pairs: u64,
    passed: u64,
    threshold: f32,
}

fn expected(vectors: &[(String, Vec<f32>)], rules: EdgeRules) -> Expected {
    let mut all = Vec::new();
    for (row, (_, a)) in vectors.iter().enumerate() {
        for (other, (_, b)) in vectors.iter().enumerate().skip(row + 1) {
            all.push((dot(a, b), row, other));
        }
    }
    let mut ascending: Vec<f32> = all.iter().map(|pair| pair.0).collect();
    ascending.sort_by(f32::total_cmp);
    let index = all.len() * rules.percentile as usize / 100_000;
    let Some(&threshold) = ascending.get(index.min(all.len().saturating_sub(1))) else {
        return Expected { edges: Pairs::new(), pairs: 0, passed: 0, threshold: 0.0 };
    };
    all.retain(|pair| pair.0 >= threshold);
    let mut kept = BTreeSet::new();
    for row in 0..vectors.len() {
        let ends = all.iter().filter(|pair| pair.1 == row || pair.2 == row);
        let mut partners: Vec<(f32, Key, usize, usize)> = ends
            .map(|&(similarity, a, b)| (similarity, Key::of_document(&name(if a == row { b } else { a })), a, b))
            .collect();
        partners.sort_by(|a, b| b.0.partial_cmp(&a.0).expect("similarities are numbers").then(a.1.cmp(&b.1)));
        kept.extend(partners.iter().take(rules.top_m as usize).map(|partner| (partner.2, partner.3)));
    }
    let key = |row: usize| format!("{}#0", name(row));
    let edges = all.iter().filter(|pair| kept.contains(&(pair.1, pair.2)));
    let edges = edges.map(|&(similarity, a, b)| (ordered(key(a), key(b)), similarity)).collect();
    let pairs = (vectors.len() * (vectors.len() - 1) / 2) as u64;
    Expected { edges, pairs, passed: all.len() as u64, threshold }
}

fn ordered(a: String, b: String) -> (String, String) {
    if a < b { (a, b) } else { (b, a) }
}

/// What the store says of every chunk, each pair from both of its ends.
fn stored(snapshot: &Snapshot, rows: usize) -> Pairs {
    let mut ends = BTreeMap::new();
    for row in 0..rows {
        let node = snapshot.find(&format!("chunk:{}#0", name(row))).expect("the chunk is there");
        let Description::Chunk { key, similar, .. } = snapshot.describe(node, usize::MAX).expect("it can be described")
        else {
            panic!("a chunk is described as a chunk");
        };
        for (other, similarity) in similar {
            let (count, weight) = ends.entry(ordered(key.clone(), other)).or_insert((0, similarity));
            assert_eq!(weight.to_bits(), similarity.to_bits());
            *count += 1;
        }
    }
    assert!(ends.values().all(|(count, _)| *count == 2), "an edge is written at one end only");
    ends.into_iter().map(|(pair, (_, similarity))| (pair, similarity)).collect()
}

#[test]
fn edges_of_a_space_that_no_one_has_are_refused_and_edges_follow_their_documents() {
    let place = Place::new();
    let case =
        Case { rows: 12, dimensions: 4, directions: 1000, seed: 5, rules: EdgeRules { percentile: 50_000, top_m: 3 } };
    let (store, mut vectors) = built(&place, &case);
    assert!(store.build_edges("other", case.rules, &Quiet).is_err());
    let report: EdgeReport = store.build_edges("v", case.rules, &Quiet).expect("edges can be built");
    assert_eq!((report.pairs, report.percentile_thousandths, report.top_m), (66, 50_000, 3));
    let mut batch = Batch::default();
    batch.delete(&name(11));
    store.commit(batch).expect("the batch is sound");
    let deleted = format!("{}#0", name(11));
    assert!(stored_keys(&place.read()).iter().all(|key| *key != deleted), "an edge leads to what is deleted");
    store.refresh(&Quiet).expect("the store can be brought in step");
    vectors.pop();
    assert_eq!(stored(&place.read(), 11), expected(&vectors, case.rules).edges);
    assert_eq!(store.snapshot().stats().expect("it can be counted").edges[0].pairs, 55);
}

fn stored_keys(snapshot: &Snapshot) -> Vec<String> {
    let mut keys = Vec::new();
    for row in 0..11 {
        let node = snapshot.find(&format!("chunk:{}#0", name(row))).expect("the chunk is there");
        if let Ok(Description::Chunk { similar, .. }) = snapshot.describe(node, usize::MAX) {
            keys.extend(similar.into_iter().map(|(key, _)| key));
        }
    }
    keys
}

/// Hears how much there is to compare.
#[derive(Default)]
struct Heard(AtomicU64);

impl Control for Heard {
    fn advance(&self, _: u64, total: u64) {
        self.0.fetch_max(total, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        false
    }
}

#[test]
fn edges_that_follow_changes_are_those_of_a_naive_computation() {
    let (mut followed, mut steps) = (0, 0);
    for seed in 0..6 {
        let place = Place::new();
        let percentile = [90_000, 95_000, 50_000][usize::try_from(seed % 3).expect("it is small")];
        let rules = EdgeRules { percentile, top_m: 3 };
        let case = Case { rows: 80, dimensions: 12, directions: 60, seed, rules };
        let (store, mut vectors) = built(&place, &case);
        store.build_edges("v", rules, &Quiet).expect("edges can be built");
        let mut numbers = Numbers(seed);
        for _ in 0..8 {
            let mut batch = Batch::default();
            let kind = numbers.below(3);
            for _ in 0..=numbers.below(3) {
                let mut components: Vec<f32> = (0..case.dimensions).map(|_| numbers.component()).collect();
                components[0] += 2.0;
                hedgerow::normalise(&mut components).expect("it has a direction");
                let row = match kind {
                    0 => {
                        batch.delete(&vectors.pop().expect("there are some").0);
                        continue;
                    }
                    1 => {
                        let key = name(vectors.len());
                        let pipeline = Pipeline { embedder: None, ..PIPELINE };
                        let documents = vec![document(&key, "text")];
                        pipeline.stage(&store.snapshot(), documents, &mut batch, &Quiet).expect("no one cancels");
                        vectors.push((key, Vec::new()));
                        vectors.len() - 1
                    }
                    _ => numbers.below(40),
                };
                vectors[row].1.clone_from(&components);
                let vector = StagedVector { space: "v".into(), model: "m".into(), components };
                batch.set_vector(Target { document: vectors[row].0.clone(), chunk: None }, vector);
            }
            store.commit(batch).expect("the batch is sound");
            let heard = Heard::default();
            store.refresh(&heard).expect("the store can be brought in step");
            let pairs = vectors.len() * (vectors.len() - 1) / 2;
            followed += usize::from(heard.0.load(Ordering::Relaxed) < pairs as u64);
            steps += 1;
            assert_eq!(stored(&place.read(), vectors.len()), expected(&vectors, rules).edges, "seed {seed}");
        }
    }
    // In few rows one change may move the threshold beyond what was counted; then everything is built.
    assert!(followed * 10 > steps, "{followed} of {steps} changes were followed");
}

#[test]
fn a_pair_is_explained_whether_or_not_there_is_an_edge() {
    let folder = Folder::new();
    let line = |row: usize| json!({"id": format!("d{row}"), "text": format!("Text number {row}.")}).to_string() + "\n";
    let lines: String = (0..6).map(line).collect();
    let documents = folder.write("d.jsonl", lines);
    told(&["import", &folder.store(), "--documents", &documents]);
    let unbuilt = told(&["explain", &folder.store(), "d0", "d1#0"]);
    assert!(unbuilt["edge"].is_null() && unbuilt["reason"].as_str().is_some_and(|text| text.contains("no edges")));
    told(&["edges", &folder.store(), "--percentile", "50", "--top-m", "1"]);
    let (mut edges, mut none) = (0, 0);
    for other in 1..6 {
        let pair = told(&["explain", &folder.store(), "d0", &format!("d{other}")]);
        let chosen = [&pair["rank_of_first"], &pair["rank_of_second"]].iter().any(|rank| **rank == json!(1));
        let passes = pair["similarity"].as_f64() >= pair["threshold"].as_f64();
        assert_eq!(!pair["edge"].is_null(), chosen && passes, "{pair}");
        assert_eq!((&pair["in_step"], &pair["top_m"]), (&json!(true), &json!(1)));
        if pair["edge"].is_null() { none += 1 } else { edges += 1 }
    }
    assert!(edges > 0 && none > 0);
    let run = Run::of(command().args(["explain", &folder.store(), "d0", "nowhere"]));
    assert_eq!(run.code, 3, "{}", run.err);
}
