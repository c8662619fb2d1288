//! Edges by several signals, against a computation pair by pair.

use crate::command::{Folder, Run, command, told};
use crate::edges::described::{Described, expected, other};
use crate::edges::naive::Pairs;
use crate::edges::{explain, stored};
use crate::stores::{Numbers, Place, cases};
use hedgerow::{Batch, Cap, EdgeError, EdgeRules, Env, PairKind, QueryError, Quiet, Shared, Signal, SignalKind, Store};
use proptest::prelude::*;
use serde_json::json;

fn rules() -> impl Strategy<Value = EdgeRules> {
    let percentile = || prop_oneof![Just(0), Just(100_000), 0..100_001_u32];
    let what = prop_oneof![
        Just(SignalKind::Content),
        Just(SignalKind::Vectors("o".into())),
        Just(SignalKind::Entities),
        Just(SignalKind::RareEntities),
        Just(SignalKind::Columns),
        Just(SignalKind::Words),
        Just(SignalKind::Titles),
    ];
    let low = prop_oneof![Just(0), 0..100_001_u32];
    let signal = (what, low, prop_oneof![Just(0), 1..1000_u32]).prop_map(|(what, percentile, weight)| Signal {
        what,
        percentile,
        weight,
    });
    let top_m = prop_oneof![Just(0), 1..6_u32, Just(1000)];
    let cap = prop_oneof![Just(Cap::Either), Just(Cap::Both)];
    let nearest = prop::option::of(prop_oneof![1..5_u32, Just(1000)]);
    let shared = (1..6_u32, 0..4_u32).prop_map(|(chunks_max, top_m)| Shared { chunks_max, top_m });
    let further = (top_m, cap, nearest, prop::option::of(-0.5..0.9_f32), prop::option::of(shared), any::<bool>());
    let signals = prop::collection::vec(signal, 1..4);
    (percentile(), prop::option::of(percentile()), signals, further).prop_map(
        |(percentile, percentile_tables, mut signals, (top_m, cap, nearest, least, shared, weighted))| {
            // Weights that are all zero are refused.
            if let Some(first) = signals.first_mut().filter(|first| weighted && first.weight == 0) {
                first.weight = 1;
            }
            let base = EdgeRules::new(percentile, top_m);
            EdgeRules { percentile_tables, cap, nearest, least, shared, signals, weighted, ..base }
        },
    )
}

fn commit(store: &Store, rows: &[Described]) {
    let mut batch = Batch::default();
    for row in rows {
        batch.put(row.staged());
    }
    store.commit(batch).expect("the batch is sound");
}

/// Takes some documents away, adds some, and writes some again as what they were not; and brings the edges in step.
fn change(store: &Store, rows: &mut Vec<Described>, numbers: &mut Numbers) {
    let mut batch = Batch::default();
    for _ in 0..=numbers.below(3) {
        match numbers.below(3) {
            0 if rows.len() > 2 => batch.delete(&rows.swap_remove(numbers.below(rows.len())).row.key),
            1 => {
                let row = Described::random(100 + numbers.below(1000), numbers);
                if rows.iter().all(|known| known.row.key != row.row.key) {
                    batch.put(row.staged());
                    rows.push(row);
                }
            }
            _ => {
                let place = numbers.below(rows.len());
                let key = rows[place].row.key.clone();
                rows[place] = Described::random(0, numbers);
                rows[place].row.key = key;
                batch.put(rows[place].staged());
            }
        }
    }
    store.commit(batch).expect("the batch is sound");
    store.refresh(&Quiet).expect("the store can be brought in step");
}

/// The edges of a store, and what `explain` says of every pair, are those of the definition.
fn check(place: &Place, rows: &[Described], rules: &EdgeRules) -> Result<(), TestCaseError> {
    let snapshot = place.read();
    let mut all = Pairs::new();
    for kind in PairKind::ALL {
        let expected = expected(rows, rules, kind);
        for (pair, (said, weight)) in &expected.said {
            let why = explain(&snapshot, pair, "v");
            let found: Vec<f32> = why.signals.iter().map(|verdict| verdict.similarity).collect();
            let is_edge = expected.edges.get(pair).copied();
            prop_assert_eq!((&found, why.weight, why.edge, why.kind), (said, *weight, is_edge, kind), "{:?}", pair);
            prop_assert_eq!(why.by_similarity, expected.similar.contains(pair), "{:?}", why);
            let thresholds: Vec<f32> =
                why.signals.iter().map(|verdict| verdict.threshold.unwrap_or_default()).collect();
            prop_assert_eq!(&thresholds, &expected.thresholds);
        }
        all.extend(expected.edges);
    }
    let keys: Vec<&str> = rows.iter().map(|row| row.row.key.as_str()).collect();
    prop_assert_eq!(&stored(&snapshot, &keys), &all);
    prop_assert_eq!(&snapshot.edge_rules()["v"].settings(), &rules.settings());
    let verified = hedgerow::verify(&Env::folder(&place.path()).expect("it is a folder"), &Quiet);
    prop_assert_eq!(verified.expect("it can be checked").problems, Vec::<String>::new());
    Ok(())
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn edges_by_signals_are_those_of_a_naive_computation_whatever_the_history(
        count in 1..24_usize, seed in any::<u64>(), rules in rules(),
    ) {
        let place = Place::new();
        let store = place.open();
        let mut numbers = Numbers(seed);
        let mut rows: Vec<Described> = (0..count).map(|row| Described::random(row, &mut numbers)).collect();
        rows[0].other = Some(other(&mut numbers));
        rows.chunks(count.div_ceil(2)).for_each(|part| commit(&store, part));
        let built = store.build_edges("v", &rules, &Quiet).expect("edges can be built");
        for built in built {
            let expected = expected(&rows, &rules, built.kind);
            let counted = (built.report.pairs, built.report.passed, built.report.kept);
            prop_assert_eq!(counted, (expected.pairs, expected.passed, expected.edges.len() as u64));
            prop_assert_eq!((built.report.threshold, built.thresholds), (expected.threshold, expected.thresholds));
        }
        check(&place, &rows, &rules)?;
        for _ in 0..2 {
            change(&store, &mut rows, &mut numbers);
            check(&place, &rows, &rules)?;
        }
    }
}

fn vectors_of(space: &str) -> EdgeRules {
    let what = SignalKind::Vectors(space.to_owned());
    EdgeRules { signals: vec![Signal { what, percentile: 0, weight: 0 }], ..EdgeRules::new(0, 3) }
}

#[test]
fn a_signal_of_a_space_that_no_one_has_is_refused_and_one_that_is_gone_tells_nothing() {
    let place = Place::new();
    let store = place.open();
    let mut numbers = Numbers(3);
    let mut rows: Vec<Described> = (0..6).map(|row| Described::random(row, &mut numbers)).collect();
    for (place, row) in rows.iter_mut().enumerate() {
        row.row.table = false;
        row.other = (place == 0).then(|| other(&mut numbers));
    }
    commit(&store, &rows);
    let refused = store.build_edges("v", &vectors_of("nowhere"), &Quiet).expect_err("there is no such space");
    assert!(matches!(&refused, EdgeError::Query(QueryError::UnknownSpace { space, .. }) if space == "nowhere"));
    store.build_edges("v", &vectors_of("o"), &Quiet).expect("edges can be built");
    let mut batch = Batch::default();
    batch.delete(&rows.remove(0).row.key);
    store.commit(batch).expect("the batch is sound");
    store.refresh(&Quiet).expect("the store can be brought in step");
    check(&place, &rows, &vectors_of("o")).expect("edges are those of nothing but zeros");
    let (copy, disk) = (Place::new(), |place: &Place| Env::folder(&place.path()).expect("it is a folder").disk);
    let copied = hedgerow::canonical(&place.read(), disk(&copy), &Quiet).expect("what is whole can be copied");
    assert_eq!(copied.snapshot().edge_rules(), place.read().edge_rules());
}

#[test]
fn weights_that_are_all_zero_are_refused() {
    let place = Place::new();
    let store = place.open();
    let mut numbers = Numbers(3);
    commit(&store, &[Described::random(0, &mut numbers), Described::random(1, &mut numbers)]);
    let rules = EdgeRules { weighted: true, ..vectors_of("v") };
    let refused = store.build_edges("v", &rules, &Quiet).expect_err("no weight is left");
    assert!(refused.to_string().contains("weights"), "{refused}");
}

#[test]
fn signals_are_told_with_their_thresholds_when_they_are_built_and_when_a_pair_is_explained() {
    let folder = Folder::new();
    let store = folder.store();
    let line = |row: usize| {
        let text = format!("Number {row} is by {}.", ["Ridley Scott", "Frank Herbert"][row % 2]);
        json!({"id": format!("d{row}"), "title": format!("Works {}", row % 3), "text": text}).to_string() + "\n"
    };
    let documents = folder.write("d.jsonl", (0..8).map(line).collect::<String>());
    told(&["import", &store, "--documents", &documents]);
    let signals = [
        "--signal",
        "content=0.4@50",
        "--signal",
        "rare-entities=0.35",
        "--signal",
        "titles=0.25",
        "--signal",
        "columns",
    ];
    let weighted = [&["edges", &store, "--percentile", "60", "--weighted"][..], &signals].concat();
    let built = told(&weighted);
    let kind = &built["kinds"][0];
    let said = |at: usize| {
        let signal = &kind["signals"][at];
        (signal["what"].clone(), signal["weight"].clone(), signal["threshold"].is_number())
    };
    assert_eq!((said(0), &built["weighted"]), ((json!("content"), json!(0.4), true), &json!(true)), "{built}");
    assert_eq!(said(1), (json!("rare-entities"), json!(0.35), true));
    assert_eq!(said(3), (json!("columns"), json!(1.0), false));
    let pair = told(&["explain", &store, "d0", "d6"]);
    assert_eq!((&pair["threshold"], &pair["ranks"]), (&kind["threshold"], &json!(null)));
    assert_eq!(
        (&pair["signals"][2]["similarity"], &pair["signals"][2]["agrees"]),
        (&json!(1.0), &json!(true)),
        "{pair}"
    );
    assert!(pair["weight"].is_number() && pair["weight"] == pair["edge"], "{pair}");
    for (keys, expected) in [(&["d0", "d6"][..], "score"), (&[], "weighted mean")] {
        let verb = if keys.is_empty() { weighted.clone() } else { [&["explain", &store], keys].concat() };
        let run = Run::of(command().args(verb));
        assert_eq!(run.code, 0, "{}", run.err);
        for expected in [expected, "rare-entities", "threshold", "takes no part"] {
            assert!(run.out.contains(expected), "{expected}: {}", run.out);
        }
    }
    let agreed = told(&[&["edges", &store][..], &signals].concat());
    assert_eq!(agreed["kinds"][0]["signals"][0]["weight"], json!(null));
    let refused = Run::of(command().args(["edges", &store, "--signal", "vectors:nowhere"]));
    assert!(refused.code != 0 && refused.err.contains("no vector space nowhere"), "{}", refused.err);
}
