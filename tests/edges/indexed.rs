//! Edges among the nearest that an index finds, against those among the nearest of all.

use crate::command::told;
use crate::edges::{built, cases, explain, keys, stored};
use crate::stores::{Numbers, Place};
use hedgerow::{
    Batch, CommitError, EdgeError, EdgeRules, EdgeShare, Env, PairKind, Quiet, Reason, RulesError, StagedChunk,
    StagedDocument, StagedVector, Store,
};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;

proptest! {
    #![proptest_config(crate::stores::cases(24))]

    #[test]
    fn among_few_chunks_an_index_finds_all_of_the_nearest(case in cases(), nearest in 1..30_u32) {
        let (place, whole) = (Place::new(), Place::new());
        let rules = EdgeRules { nearest: Some(nearest), ..case.rules.clone() };
        let (store, rows) = built(&place, &case);
        let indexed = EdgeRules { indexed: true, ..rules.clone() };
        let built_indexed = store.build_edges("v", &indexed, &Quiet).expect("edges can be built");
        let (store, _) = built(&whole, &case);
        let built_whole = store.build_edges("v", &rules, &Quiet).expect("edges can be built");
        let (snapshot, keys) = (place.read(), keys(&rows));
        let edges = stored(&snapshot, &keys);
        prop_assert_eq!(&edges, &stored(&whole.read(), &keys));
        for (one, other) in built_indexed.iter().zip(&built_whole) {
            let threshold = if one.report.percentile_thousandths == 0 { -1.0 } else { other.report.threshold };
            let threshold = if one.report.pairs == 0 { 0.0 } else { threshold };
            prop_assert_eq!((one.kind, one.report.threshold, one.report.kept), (other.kind, threshold, other.report.kept));
        }
        for pair in edges.keys().take(20) {
            let why = explain(&snapshot, pair, "v");
            prop_assert_eq!(why.reason == Reason::Found, why.by_similarity, "{:?}", why);
        }
        let verified = hedgerow::verify(&Env::folder(&place.path()).expect("it is a folder"), &Quiet);
        prop_assert_eq!(verified.expect("it can be checked").problems, Vec::<String>::new());
        prop_assert_eq!(&snapshot.edge_rules()["v"], &EdgeRules::of(&indexed.settings()));
    }
}

fn rules() -> EdgeRules {
    EdgeRules { nearest: Some(10), indexed: true, ..EdgeRules::new(0, 6) }
}

const ROWS: usize = 1200;

/// A store of vectors around some centres, committed in parts of which the second is given in another order.
fn store(place: &Place, parts: usize) -> Store {
    let mut numbers = Numbers(7);
    let draw = |numbers: &mut Numbers| f32::from(u8::try_from(numbers.below(200)).expect("below 200")) - 99.5;
    let documents: Vec<StagedDocument> = (0..ROWS)
        .map(|row| {
            let mut of_centre = Numbers(numbers.below(9) as u64 + 50);
            let mut components: Vec<f32> = (0..16).map(|_| 2.0 * draw(&mut of_centre) + draw(&mut numbers)).collect();
            hedgerow::normalise(&mut components).expect("it has a direction");
            let vector = StagedVector { space: "v".into(), model: "m".into(), components };
            let fingerprint = u128::try_from(row).expect("it fits").to_le_bytes();
            let chunks = vec![StagedChunk { range: 0..1, vectors: vec![vector], ..StagedChunk::default() }];
            let (name, text) = (format!("row {row}"), "x".into());
            StagedDocument { name, text, chunks, fingerprint, ..StagedDocument::default() }
        })
        .collect();
    let store = place.open();
    for part in 0..parts {
        let mut batch = Batch::default();
        for document in documents.iter().skip(parts - 1 - part).step_by(parts) {
            batch.put(document.clone());
        }
        store.commit(batch).expect("the batch is sound");
    }
    store
}

fn edges(store: &Store) -> BTreeMap<(String, String), f32> {
    let keys: Vec<String> = (0..ROWS).map(|row| format!("row {row}")).collect();
    stored(&store.snapshot(), &keys)
}

#[test]
fn among_many_an_index_finds_nearly_all_the_same_for_every_history_and_number_of_threads() {
    let (one, several) = (Place::new(), Place::new());
    let first = store(&one, 1);
    first.build_edges("v", &EdgeRules { indexed: false, ..rules() }, &Quiet).expect("edges can be built");
    let all = edges(&first);
    first.build_edges("v", &rules(), &Quiet).expect("edges can be built");
    let found = edges(&first);
    let right = found.iter().filter(|(pair, weight)| all.get(*pair) == Some(weight)).count();
    assert!(right * 100 >= all.len() * 97 && all.len() > 4 * ROWS, "{right} of {}", all.len());
    let other = store(&several, 3);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("threads start");
    pool.install(|| other.build_edges("v", &rules(), &Quiet).expect("edges can be built"));
    assert_eq!(edges(&other), found);
    // They follow changes by being made anew.
    let mut batch = Batch::default();
    batch.delete("row 3");
    other.commit(batch).expect("the batch is sound");
    other.refresh(&Quiet).expect("the store is sound");
    let snapshot = other.snapshot();
    assert!(snapshot.edge_rules()["v"].indexed && snapshot.incomplete().is_empty());
    let refused =
        other.edge_share("v", &rules(), EdgeShare { number: 1, of: 2 }, &[], &Quiet).expect_err("it is refused");
    assert!(matches!(refused, EdgeError::Commit(CommitError::Rules { source: RulesError::Whole, .. })), "{refused}");
}

#[test]
fn too_little_memory_for_what_an_index_takes_is_said_with_how_much_is_needed() {
    let place = Place::new();
    drop(store(&place, 1));
    let build = |memory: u64| {
        let mut env = Env::folder(&place.path()).expect("it is a folder");
        env.edge_memory = Some(memory);
        Store::open_in(env).expect("the store opens").build_edges("v", &rules(), &Quiet)
    };
    let Err(EdgeError::Commit(CommitError::Memory { needed, allowed: 1, .. })) = build(1) else {
        panic!("a byte is too little");
    };
    assert!(matches!(build(needed - 1), Err(EdgeError::Commit(CommitError::Memory { .. }))));
    assert!(build(needed).is_ok_and(|built| built[0].report.kept > 0));
}

#[test]
fn the_command_builds_edges_among_what_an_index_finds() {
    let place = Place::new();
    drop(store(&place, 1));
    let path = place.path();
    let folder = path.to_str().expect("it is text");
    let told = told(&["edges", folder, "--percentile", "0", "--nearest", "8", "--indexed"]);
    assert_eq!([&told["indexed"], &told["nearest"]], [&json!(true), &json!(8)]);
    assert_eq!(told["kinds"][0]["kind"], json!(PairKind::DocumentDocument.name()));
    assert!(told["kinds"][0]["kept"].as_u64() > Some(4 * ROWS as u64), "{told}");
}
