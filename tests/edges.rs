//! Stored similarity edges, against a computation that anyone can follow.

use crate::command::{Folder, Run, command, told};
use crate::stores::{Numbers, Place};
use hedgerow::{
    Batch, CommitError, Control, Description, EdgeError, EdgeReport, EdgeRules, Env, Node, PairKind, Quiet, Reason,
    Snapshot, StagedChunk, StagedDocument, StagedVector, Store, Target, dot,
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
    /// How many of a hundred are tables.
    tables: usize,
    rules: EdgeRules,
}

fn cases() -> impl Strategy<Value = Case> {
    let percentile = prop_oneof![Just(0), Just(95_000), Just(100_000), 0..100_001_u32];
    let top_m = prop_oneof![Just(0), Just(1), 1..6_u32, Just(1000)];
    let tables = prop_oneof![Just(0), Just(10), Just(50), Just(100)];
    let of_kind = || prop::option::of(0..100_001_u32);
    let shape = (1..40_usize, 1..9_usize, prop_oneof![1..5_usize, Just(1000)], any::<u64>(), tables);
    let rules = (percentile, of_kind(), of_kind(), top_m);
    (shape, rules).prop_map(|((rows, dimensions, directions, seed, tables), (percentile, tt, across, top_m))| Case {
        rows,
        dimensions,
        directions,
        seed,
        tables,
        rules: EdgeRules { percentile_tables: tt, percentile_across: across, ..EdgeRules::new(percentile, top_m) },
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
                let counted = (report.pairs, report.passed, report.kept);
                prop_assert_eq!(counted, (expected.pairs, expected.passed, expected.edges.len() as u64));
                // Zero and minus zero are one similarity.
                prop_assert_eq!((report.threshold + 0.0).to_bits(), (expected.threshold + 0.0).to_bits());
            }
            all.extend(expected.edges);
        }
        prop_assert_eq!(&stored(&snapshot, rows.len()), &all);
        explained(&snapshot, &rows, &all)?;
    }
}

/// Every pair is explained by what the naive computation made of it.
fn explained(snapshot: &Snapshot, rows: &[Row], edges: &Pairs) -> Result<(), TestCaseError> {
    let chunk = |row: &Row| match snapshot.find(&format!("chunk:{}#0", row.key)).expect("it is there") {
        Node::Chunk(chunk) => chunk,
        _ => panic!("{} has a chunk", row.key),
    };
    for (place, one) in rows.iter().enumerate() {
        for other in &rows[place + 1..] {
            let why = snapshot.explain([chunk(one), chunk(other)], "v").expect("it can be explained");
            let edge = edges.get(&ordered(format!("{}#0", one.key), format!("{}#0", other.key)));
            prop_assert_eq!((why.kind, why.edge), (PairKind::of([one.table, other.table]), edge.copied()));
            let partners = [other.table, one.table].map(|table| rows.iter().filter(|row| row.table == table).count());
            let partners = partners.map(|count| count - usize::from(one.table == other.table));
            prop_assert_eq!(why.partners, Some(partners));
            let chosen = [Reason::ChosenByFirst, Reason::ChosenBySecond, Reason::ChosenByBoth];
            prop_assert_eq!(chosen.contains(&why.reason), edge.is_some(), "{:?}", why);
        }
    }
    Ok(())
}

/// A document of one chunk with a vector.
#[derive(Clone, Debug)]
struct Row {
    key: String,
    table: bool,
    vector: Vec<f32>,
}

impl Row {
    fn staged(&self) -> StagedDocument {
        let vector = StagedVector { space: "v".into(), model: "m".into(), components: self.vector.clone() };
        let kind = u32::from(self.table);
        let chunk = StagedChunk { range: 0..4, kind, vectors: vec![vector], ..StagedChunk::default() };
        let fingerprint = [1 + u8::from(self.table); 16];
        let (name, text) = (self.key.clone(), "text".into());
        StagedDocument { name, text, fingerprint, chunks: vec![chunk], ..StagedDocument::default() }
    }
}

fn name(row: usize) -> String {
    format!("document {row}")
}

fn direction(numbers: &mut Numbers, dimensions: usize) -> Vec<f32> {
    let mut vector: Vec<f32> = (0..dimensions).map(|_| numbers.component()).collect();
    vector[0] += 2.0;
    hedgerow::normalise(&mut vector).expect("it has a direction");
    vector
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

struct Expected {
    edges: Pairs,
    pairs: u64,
    passed: u64,
    threshold: f32,
}

/// The edges of one kind, by the definition.
fn expected(rows: &[Row], rules: &EdgeRules, kind: PairKind) -> Expected {
    let mut all = Vec::new();
    for (row, one) in rows.iter().enumerate() {
        for (other, two) in rows.iter().enumerate().skip(row + 1) {
            if PairKind::of([one.table, two.table]) == kind {
                all.push((dot(&one.vector, &two.vector), row, other));
            }
        }
    }
    let pairs = all.len() as u64;
    let mut ascending: Vec<f32> = all.iter().map(|pair| pair.0).collect();
    ascending.sort_by(f32::total_cmp);
    let index = all.len() * rules.percentile_of(kind) as usize / 100_000;
    let Some(&threshold) = ascending.get(index.min(all.len().saturating_sub(1))) else {
        return Expected { edges: Pairs::new(), pairs: 0, passed: 0, threshold: 0.0 };
    };
    all.retain(|pair| pair.0 >= threshold);
    let mut kept = BTreeSet::new();
    for row in 0..rows.len() {
        let ends = all.iter().filter(|pair| pair.1 == row || pair.2 == row);
        let mut partners: Vec<(f32, Key, usize, usize)> = ends
            .map(|&(similarity, a, b)| (similarity, Key::of_document(&rows[if a == row { b } else { a }].key), a, b))
            .collect();
        partners.sort_by(|a, b| b.0.partial_cmp(&a.0).expect("similarities are numbers").then(a.1.cmp(&b.1)));
        kept.extend(partners.iter().take(rules.top_m as usize).map(|partner| (partner.2, partner.3)));
    }
    let key = |row: usize| format!("{}#0", rows[row].key);
    let edges = all.iter().filter(|pair| kept.contains(&(pair.1, pair.2)));
    let edges = edges.map(|&(similarity, a, b)| (ordered(key(a), key(b)), similarity)).collect();
    Expected { edges, pairs, passed: all.len() as u64, threshold }
}

/// The edges of all kinds.
fn all_expected(rows: &[Row], rules: &EdgeRules) -> Pairs {
    PairKind::ALL.into_iter().flat_map(|kind| expected(rows, rules, kind).edges).collect()
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
    assert_eq!(stored(&place.read(), 11), all_expected(&rows, &case.rules));
    assert_eq!(store.snapshot().stats().expect("it can be counted").edges[0].pairs, 55);
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
                let row = Row { key: name(rows.len()), table: numbers.below(3) == 0, vector };
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
                batch.put(rows[row].staged());
            }
        }
    }
    store.commit(batch).expect("the batch is sound");
}

#[test]
fn edges_that_follow_changes_are_those_of_a_naive_computation() {
    let (mut followed, mut steps) = (0, 0);
    for seed in 0..8 {
        let place = Place::new();
        let percentile = [90_000, 95_000, 50_000][usize::try_from(seed % 3).expect("it is small")];
        let rules = EdgeRules { percentile_across: Some(80_000), ..EdgeRules::new(percentile, 3) };
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
            assert_eq!(stored(&snapshot, rows.len()), all_expected(&rows, &case.rules), "seed {seed}");
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
        store.refresh(&Quiet).expect("the store can be brought in step");
        assert_eq!(kinds(&store), expected);
        assert_eq!(stored(&place.read(), 6), all_expected(&rows, &rules));
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
