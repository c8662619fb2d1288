//! Stored similarity edges, against a computation that anyone can follow.

mod composed;
mod described;
mod indexed;
mod memory;
mod naive;
mod parts;

use crate::command::{Folder, Run, command, told};
use crate::edges::naive::{Expected, Pairs, Row, all_expected, direction, entities, expected, name, ordered};
use crate::stores::{Numbers, Place};
use hedgerow::{
    Batch, Cap, CommitError, Control, Description, EdgeError, EdgeReport, EdgeRules, Env, Explanation, Node, PairKind,
    Quiet, Reason, Shared, Signal, SignalKind, Snapshot, StagedVector, Store, Target, dot,
};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Debug)]
struct Case {
    rows: usize,
    dimensions: usize,
    /// Number of directions that vectors are drawn from; few make many ties.
    directions: usize,
    seed: u64,
    /// How many of a hundred are tables.
    tables: usize,
    rules: EdgeRules,
}

fn cases() -> impl Strategy<Value = Case> {
    let percentile = prop_oneof![Just(0), Just(95_000), Just(100_000), 0..100_001_u32];
    let top_m = prop_oneof![Just(0), Just(1), 1..6_u32, Just(1000)];
    let tables = prop_oneof![Just(0), Just(10), Just(50), Just(100)];
    let of_kind = || prop::option::of(0..100_001_u32);
    let cap = prop_oneof![Just(Cap::Either), Just(Cap::Both)];
    let nearest = prop::option::of(prop_oneof![1..4_u32, Just(1000)]);
    let least = prop::option::of(-1.0..1.0_f32);
    let shared = (prop_oneof![1..6_u32, Just(1000)], prop_oneof![0..4_u32, Just(1000)]);
    let shared = shared.prop_map(|(chunks_max, top_m)| Shared { chunks_max, top_m });
    let shape = (1..40_usize, 1..9_usize, prop_oneof![1..5_usize, Just(1000)], any::<u64>(), tables);
    let further = (cap, nearest, least, prop::option::of(shared));
    let rules = (percentile, of_kind(), of_kind(), top_m, further);
    (shape, rules).prop_map(|((rows, dimensions, directions, seed, tables), rules)| {
        let (percentile, percentile_tables, percentile_across, top_m, (cap, nearest, least, shared)) = rules;
        let base = EdgeRules { percentile_tables, percentile_across, ..EdgeRules::new(percentile, top_m) };
        let rules = EdgeRules { cap, nearest, least, shared, ..base };
        Case { rows, dimensions, directions, seed, tables, rules }
    })
}

proptest! {
    #![proptest_config(crate::stores::cases(48))]

    #[test]
    fn stored_edges_are_those_of_a_naive_computation(case in cases()) {
        let place = Place::new();
        let (store, rows) = built(&place, &case);
        let reports = store.build_edges("v", &case.rules, &Quiet).expect("edges can be built");
        let snapshot = place.read();
        let mut all = Pairs::new();
        for kind in PairKind::ALL {
            let expected = expected(&rows, &case.rules, kind);
            let report = reports.iter().find(|built| built.kind == kind).map(|built| built.report);
            prop_assert_eq!(report.is_some(), expected.pairs > 0 || kind == PairKind::DocumentDocument);
            if let Some(report) = report {
                let counted = (report.pairs, report.passed, report.kept, report.shared);
                let shared = expected.shared.iter().filter(|pair| !expected.similar.contains(*pair)).count() as u64;
                prop_assert_eq!(counted, (expected.pairs, expected.passed, expected.edges.len() as u64, shared));
                // Zero and minus zero are one similarity.
                prop_assert_eq!((report.threshold + 0.0).to_bits(), (expected.threshold + 0.0).to_bits());
            }
            explained(&snapshot, &rows, kind, &expected)?;
            all.extend(expected.edges);
        }
        prop_assert_eq!(&stored(&snapshot, &keys(&rows)), &all);
        let verified = hedgerow::verify(&Env::folder(&place.path()).expect("it is a folder"), &Quiet);
        prop_assert_eq!(verified.expect("it can be checked").problems, Vec::<String>::new());
        prop_assert_eq!(&snapshot.edge_rules()["v"].settings(), &case.rules.settings());
    }
}

/// What is explained of two chunks by their keys.
fn explain(snapshot: &Snapshot, pair: &(String, String), space: &str) -> Explanation {
    let chunk = |key: &String| match snapshot.find(&format!("chunk:{key}")).expect("it is there") {
        Node::Chunk(chunk) => chunk,
        _ => panic!("{key} is a chunk"),
    };
    snapshot.explain([chunk(&pair.0), chunk(&pair.1)], space).expect("it can be explained")
}

/// Every pair of a kind is explained by what the naive computation made of it.
fn explained(snapshot: &Snapshot, rows: &[Row], kind: PairKind, expected: &Expected) -> Result<(), TestCaseError> {
    let pairs =
        rows.iter().enumerate().flat_map(|(place, one)| rows[place + 1..].iter().map(move |other| (one, other)));
    for (one, other) in pairs.filter(|(one, other)| PairKind::of([one.table, other.table]) == kind) {
        let ends = (format!("{}#0", one.key), format!("{}#0", other.key));
        let why = explain(snapshot, &ends, "v");
        let pair = ordered(ends.0, ends.1);
        prop_assert_eq!((why.kind, why.edge), (kind, expected.edges.get(&pair).copied()));
        let made = (expected.similar.contains(&pair), expected.shared.contains(&pair));
        prop_assert_eq!((why.by_similarity, why.by_entities), made);
        let partners = [other.table, one.table].map(|table| rows.iter().filter(|row| row.table == table).count());
        let partners = partners.map(|count| count - usize::from(one.table == other.table));
        prop_assert_eq!(why.partners, Some(partners));
        let similarity = dot(&one.vector, &other.vector) + 0.0;
        let below = expected.similarities.iter().filter(|known| **known + 0.0 < similarity).count() as u64;
        prop_assert_eq!(why.pairs, Some((expected.pairs, below)));
        let chosen = [Reason::ChosenByFirst, Reason::ChosenBySecond, Reason::ChosenByBoth];
        prop_assert_eq!(chosen.contains(&why.reason), made.0, "{:?}", why);
    }
    Ok(())
}

/// A store of two segments whose documents have these vectors.
fn built(place: &Place, case: &Case) -> (Store, Vec<Row>) {
    let mut numbers = Numbers(case.seed);
    let directions: Vec<Vec<f32>> =
        (0..case.directions.min(case.rows)).map(|_| direction(&mut numbers, case.dimensions)).collect();
    let row = |row: usize| Row {
        key: name(row),
        table: numbers.below(100) < case.tables,
        vector: directions[numbers.below(directions.len())].clone(),
        entities: entities(&mut numbers),
    };
    let rows: Vec<Row> = (0..case.rows).map(row).collect();
    let store = place.open();
    for part in rows.chunks(case.rows.div_ceil(2)) {
        let mut batch = Batch::default();
        for row in part {
            batch.put(row.staged());
        }
        store.commit(batch).expect("the batch is sound");
    }
    (store, rows)
}

/// What the store says of the chunk of every document, each pair from both of its ends.
fn stored(snapshot: &Snapshot, documents: &[impl AsRef<str>]) -> Pairs {
    let mut ends = BTreeMap::new();
    for document in documents {
        let node = snapshot.find(&format!("chunk:{}#0", document.as_ref())).expect("the chunk is there");
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
    let rules = EdgeRules::new(50_000, 3);
    let case = Case { rows: 12, dimensions: 4, directions: 1000, seed: 5, tables: 0, rules };
    let (store, mut rows) = built(&place, &case);
    assert!(store.build_edges("other", &case.rules, &Quiet).is_err());
    let built = store.build_edges("v", &case.rules, &Quiet).expect("edges can be built");
    assert_eq!(built.len(), 1);
    let report: EdgeReport = built[0].report;
    assert_eq!((report.pairs, report.percentile_thousandths, report.top_m), (66, 50_000, 3));
    let mut batch = Batch::default();
    batch.delete(&name(11));
    store.commit(batch).expect("the batch is sound");
    let deleted = format!("{}#0", name(11));
    assert!(stored_keys(&place.read()).iter().all(|key| *key != deleted), "an edge leads to what is deleted");
    store.refresh(&Quiet).expect("the store can be brought in step");
    rows.pop();
    assert_eq!(stored(&place.read(), &keys(&rows)), all_expected(&rows, &case.rules));
    assert_eq!(store.snapshot().stats().expect("it can be counted").edges[0].pairs, 55);
}

fn keys(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| row.key.as_str()).collect()
}

fn signal(what: SignalKind, percentile: u32) -> Signal {
    Signal { what, percentile, weight: 500 }
}

#[test]
fn settings_say_all_of_the_rules() {
    let all = [
        SignalKind::Content,
        SignalKind::Vectors("titles".into()),
        SignalKind::Entities,
        SignalKind::RareEntities,
        SignalKind::Columns,
        SignalKind::Words,
        SignalKind::Titles,
    ];
    let rules = EdgeRules {
        percentile_tables: Some(1),
        percentile_across: Some(2),
        cap: Cap::Both,
        nearest: Some(3),
        least: Some(-0.25),
        shared: Some(Shared { chunks_max: 4, top_m: 5 }),
        signals: all.into_iter().map(|what| signal(what, 99_000)).collect(),
        weighted: true,
        ..EdgeRules::default()
    };
    assert!(rules.check().is_ok() && rules.settings().is_known());
    assert_eq!(EdgeRules::of(&rules.settings()), rules);
    assert_eq!(EdgeRules::of(&EdgeRules::default().settings()), EdgeRules::default());
}

#[test]
fn rules_beyond_their_limits_are_refused() {
    let place = Place::new();
    let rules = EdgeRules::new(50_000, 3);
    let (store, _) = built(&place, &Case { rows: 5, dimensions: 3, directions: 9, seed: 5, tables: 0, rules });
    for rules in [
        EdgeRules::new(100_001, 3),
        EdgeRules::new(50_000, 1025),
        EdgeRules { percentile_tables: Some(u32::MAX), ..EdgeRules::default() },
        EdgeRules { nearest: Some(0), ..EdgeRules::default() },
        EdgeRules { nearest: Some(1025), ..EdgeRules::default() },
        EdgeRules { indexed: true, ..EdgeRules::default() },
        EdgeRules { least: Some(f32::NAN), ..EdgeRules::default() },
        EdgeRules { shared: Some(Shared { chunks_max: 0, top_m: 1 }), ..EdgeRules::default() },
        EdgeRules { shared: Some(Shared { chunks_max: 1, top_m: 1025 }), ..EdgeRules::default() },
        EdgeRules { signals: vec![signal(SignalKind::Vectors(String::new()), 0)], ..EdgeRules::default() },
        EdgeRules { signals: vec![signal(SignalKind::Words, 100_001)], ..EdgeRules::default() },
    ] {
        let refused = store.build_edges("v", &rules, &Quiet).expect_err("they are beyond their limits");
        assert!(matches!(refused, EdgeError::Commit(CommitError::Rules { .. })), "{refused}");
    }
    assert!(place.read().edge_rules().is_empty());
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

/// Changes a few documents in one way: takes some away, adds some, gives some other vectors, or writes some again as what
/// they were not.
fn change(store: &Store, rows: &mut Vec<Row>, numbers: &mut Numbers, dimensions: usize) {
    let mut batch = Batch::default();
    let kind = numbers.below(4);
    for _ in 0..=numbers.below(3) {
        let vector = direction(numbers, dimensions);
        match kind {
            0 => batch.delete(&rows.pop().expect("there are some").key),
            1 => {
                let (key, table) = (name(rows.len()), numbers.below(3) == 0);
                let row = Row { key, table, vector, entities: entities(numbers) };
                batch.put(row.staged());
                rows.push(row);
            }
            2 => {
                let row = numbers.below(40);
                rows[row].vector.clone_from(&vector);
                let vector = StagedVector { space: "v".into(), model: "m".into(), components: vector };
                batch.set_vector(Target { document: rows[row].key.clone(), chunk: None }, vector);
            }
            _ => {
                let row = numbers.below(40);
                rows[row].table = !rows[row].table;
                rows[row].entities = entities(numbers);
                batch.put(rows[row].staged());
            }
        }
    }
    store.commit(batch).expect("the batch is sound");
}

#[test]
fn edges_that_follow_changes_are_those_of_a_naive_computation() {
    let (mut followed, mut steps) = (0, 0);
    for seed in 0..12 {
        let place = Place::new();
        let percentile = [90_000, 95_000, 50_000][usize::try_from(seed % 3).expect("it is small")];
        let mut rules = EdgeRules { percentile_across: Some(80_000), ..EdgeRules::new(percentile, 3) };
        if seed >= 6 {
            rules.cap = if seed % 2 == 0 { Cap::Both } else { Cap::Either };
            rules.nearest = [None, Some(2)][usize::try_from(seed / 2 % 2).expect("it is small")];
            rules.least = Some(0.7);
            rules.shared = Some(Shared { chunks_max: 9, top_m: 2 });
        }
        let tables = if seed % 2 == 0 { 0 } else { 40 };
        let case = Case { rows: 80, dimensions: 12, directions: 20, seed, tables, rules };
        let (store, mut rows) = built(&place, &case);
        store.build_edges("v", &case.rules, &Quiet).expect("edges can be built");
        let mut numbers = Numbers(seed);
        for _ in 0..8 {
            change(&store, &mut rows, &mut numbers, case.dimensions);
            let heard = Heard::default();
            store.refresh(&heard).expect("the store can be brought in step");
            let tables = rows.iter().filter(|row| row.table).count() as u64;
            let most = PairKind::ALL.map(|kind| kind.pairs(rows.len() as u64, tables)).into_iter().max();
            followed += usize::from(Some(heard.0.load(Ordering::Relaxed)) < most);
            steps += 1;
            let snapshot = place.read();
            assert_eq!(stored(&snapshot, &keys(&rows)), all_expected(&rows, &case.rules), "seed {seed}");
            assert_eq!(snapshot.edge_rules(), BTreeMap::from([("v".to_owned(), case.rules.clone())]));
            let verified = hedgerow::verify(&Env::folder(&place.path()).expect("it is a folder"), &Quiet);
            assert_eq!(verified.expect("it can be checked").problems, Vec::<String>::new());
        }
    }
    // In few rows one change may move the threshold beyond what was counted; then everything is built.
    assert!(followed * 10 > steps, "{followed} of {steps} changes were followed");
}

#[test]
fn a_kind_of_pairs_has_a_file_while_it_has_a_pair_and_settings_outlive_all_pairs() {
    let place = Place::new();
    let rules = EdgeRules { percentile_tables: Some(10_000), ..EdgeRules::new(50_000, 3) };
    let (store, mut rows) = built(&place, &Case { rows: 6, dimensions: 3, directions: 9, seed: 5, tables: 0, rules });
    let rules = EdgeRules { percentile_tables: Some(10_000), ..EdgeRules::new(50_000, 3) };
    store.build_edges("v", &rules, &Quiet).expect("edges can be built");
    let kinds = |store: &Store| -> Vec<&'static str> {
        store.snapshot().stats().expect("it can be counted").edges.iter().map(|edges| edges.kind).collect()
    };
    assert_eq!(kinds(&store), ["document-document"]);
    for (tables, expected) in [
        (1, &["document-document", "table-document"][..]),
        (3, &["document-document", "table-table", "table-document"]),
        (6, &["document-document", "table-table"]),
        (0, &["document-document"]),
    ] {
        let mut batch = Batch::default();
        for (place, row) in rows.iter_mut().enumerate() {
            row.table = place < tables;
            batch.put(row.staged());
        }
        store.commit(batch).expect("the batch is sound");
        let behind = place.read().incomplete();
        assert_eq!(behind.iter().filter(|said| said.contains("edges")).count(), 1, "{behind:?}");
        store.refresh(&Quiet).expect("the store can be brought in step");
        assert_eq!(kinds(&store), expected);
        assert_eq!(stored(&place.read(), &keys(&rows)), all_expected(&rows, &rules));
    }
    let mut batch = Batch::default();
    for row in &rows {
        batch.delete(&row.key);
    }
    store.commit(batch).expect("the batch is sound");
    store.refresh(&Quiet).expect("the store can be brought in step");
    assert_eq!(store.snapshot().edge_rules(), BTreeMap::from([("v".to_owned(), rules)]));
}

#[test]
fn edges_for_shared_entities_need_no_refresh_before_them_and_say_so() {
    let place = Place::new();
    let rules = EdgeRules { shared: Some(Shared { chunks_max: 2, top_m: 4 }), ..EdgeRules::new(100_000, 0) };
    let store = place.open();
    let mut batch = Batch::default();
    let mut rows = Vec::new();
    for (row, named) in [vec![0], vec![0, 1], vec![1], vec![1], vec![]].into_iter().enumerate() {
        let vector = vec![0.6, if row % 2 == 0 { 0.8 } else { -0.8 }];
        let row = Row { key: name(row), table: false, vector, entities: named.into_iter().collect() };
        batch.put(row.staged());
        rows.push(row);
    }
    store.commit(batch).expect("the batch is sound");
    let built = store.build_edges("v", &rules, &Quiet).expect("edges can be built");
    // The second entity is in three chunks.
    assert_eq!((built[0].report.kept, built[0].report.shared), (1, 1));
    assert_eq!(stored(&place.read(), &keys(&rows)), all_expected(&rows, &rules));
    assert_eq!(place.read().incomplete(), Vec::<String>::new());
    // Of three chunks two are left.
    let mut batch = Batch::default();
    batch.delete(&name(3));
    store.commit(batch).expect("the batch is sound");
    store.refresh(&Quiet).expect("the store can be brought in step");
    rows.remove(3);
    let snapshot = place.read();
    let edges = all_expected(&rows, &rules);
    assert_eq!(edges.len(), 2);
    let chunk = |row: usize| match snapshot.find(&format!("chunk:{}#0", name(row))).expect("it is there") {
        Node::Chunk(chunk) => chunk,
        _ => panic!("it is a chunk"),
    };
    for (one, other, edge) in [(0, 1, true), (1, 2, true), (0, 2, false)] {
        let why = snapshot.explain([chunk(one), chunk(other)], "v").expect("it can be explained");
        assert_eq!((why.edge.is_some(), why.by_entities, why.by_similarity), (edge, edge, false), "{why:?}");
    }
}

#[test]
fn rules_survive_damage_salvage_and_the_canonical_form() {
    let place = Place::new();
    let shared = Some(Shared { chunks_max: 9, top_m: 2 });
    let rules = EdgeRules { cap: Cap::Both, least: Some(0.2), shared, ..EdgeRules::new(60_000, 3) };
    let case = Case { rows: 30, dimensions: 6, directions: 20, seed: 3, tables: 40, rules };
    let (store, rows) = built(&place, &case);
    store.build_edges("v", &case.rules, &Quiet).expect("edges can be built");
    let expected = all_expected(&rows, &case.rules);
    let kept = BTreeMap::from([("v".to_owned(), case.rules.clone())]);
    let keys = keys(&rows);
    let scratch = Place::new();
    let disk = Env::folder(&scratch.path()).expect("it is a folder").disk;
    drop(hedgerow::canonical(&place.read(), disk, &Quiet).expect("what is whole can be copied"));
    assert_eq!((stored(&scratch.read(), &keys), scratch.read().edge_rules()), (expected.clone(), kept.clone()));
    drop(store);
    // A file of each kind in turn.
    for number in 0..3 {
        let files = fs::read_dir(place.path().join("projections")).expect("there are projections");
        let files = files.map(|file| file.expect("the folder can be read").path());
        let mut edges: Vec<_> = files.filter(|path| path.to_string_lossy().ends_with(".edges.prj")).collect();
        edges.sort();
        assert_eq!(edges.len(), 3);
        let mut bytes = fs::read(&edges[number]).expect("it can be read");
        bytes[300] ^= 1;
        fs::write(&edges[number], bytes).expect("it can be written");
        place.open().refresh(&Quiet).expect("the store can be brought in step");
        place.open().close().expect("there is nothing to merge");
        assert_eq!((stored(&place.read(), &keys), place.read().edge_rules()), (expected.clone(), kept.clone()));
    }
    let env = |place: &Place| Env::folder(&place.path()).expect("it is a folder");
    let saved = Place::new();
    let (_, salvaged) = hedgerow::salvage(&env(&place), env(&saved), &Quiet).expect("it can be read");
    assert_eq!(salvaged.edges, kept.into_iter().collect::<Vec<_>>());
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
        assert_eq!((&pair["in_step"], &pair["rules"]["top_m"]), (&json!(true), &json!(1)));
        if pair["edge"].is_null() { none += 1 } else { edges += 1 }
    }
    assert!(edges > 0 && none > 0);
    let built = told(&[
        "edges",
        &folder.store(),
        "--cap",
        "both",
        "--nearest",
        "3",
        "--least",
        "0.5",
        "--shared-entities",
        "9:2",
    ]);
    let said = ["top_m", "cap", "nearest", "least", "shared_chunks_max", "shared_top_m"].map(|rule| &built[rule]);
    assert_eq!(said, [&json!(16), &json!("both"), &json!(3), &json!(0.5), &json!(9), &json!(2)], "{built}");
    let spread = &built["kinds"][0]["similarities"];
    let counts = spread["counts"].as_array().expect("they are counted").iter().filter_map(serde_json::Value::as_u64);
    assert_eq!((counts.sum::<u64>(), &spread["of"]), (15, &json!("all pairs")), "{built}");
    let pair = told(&["explain", &folder.store(), "d0", "d1"]);
    assert_eq!((&pair["pairs"], &pair["rules"]["cap"]), (&json!(15), &json!("both")), "{pair}");
    for command_line in [&["edges"][..], &["explain", "d0", "d1"]] {
        let (verb, keys) = command_line.split_first().expect("there is a verb");
        let run = Run::of(command().args([verb, &folder.store()[..]]).args(keys));
        assert_eq!(run.code, 0, "{}", run.err);
        let expected = if keys.is_empty() { "threshold" } else { "percentile" };
        assert!(run.out.contains(expected), "{}", run.out);
    }
    let run = Run::of(command().args(["explain", &folder.store(), "d0", "nowhere"]));
    assert_eq!(run.code, 3, "{}", run.err);
}
