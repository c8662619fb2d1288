//! Whatever was done to a store, it holds what a map would hold, and answers as a store made of that at once.

use crate::stores::{Place, files, texts};
use hedgerow::{Env, Extractive, Merging, Quiet, Snapshot, Stats, Store};
use hedgerow_durability::{COMMUNITIES, Change, Model, RULES, Step, answers, build, documents, live};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A step, or none for closing and opening again.
fn steps() -> impl Strategy<Value = Vec<Option<Step>>> {
    let change = prop_oneof![
        6 => (0..6_u8, 0..5_u8).prop_map(|(key, text)| Change::Put(key, text)),
        2 => (0..6_u8).prop_map(Change::Delete),
        2 => (0..6_u8, 0..4_u8).prop_map(|(key, relation)| Change::Relate(key, relation)),
        2 => (0..6_u8, 0..4_u8).prop_map(|(key, vector)| Change::Vector(key, vector)),
        2 => (0..6_u8, 0..4_u8).prop_map(|(key, found)| Change::Extract(key, found)),
    ];
    let step = prop_oneof![
        8 => prop::collection::vec(change, 1..6).prop_map(|changes| Some(Step::Commit(changes))),
        1 => Just(Some(Step::Refresh)),
        1 => Just(Some(Step::Edges)),
        1 => Just(Some(Step::Communities)),
        1 => Just(Some(Step::Compact)),
        1 => Just(None),
    ];
    prop::collection::vec(step, 1..12)
}

/// The files of a store in its canonical form.
fn canonical(snapshot: &Snapshot) -> BTreeMap<PathBuf, Vec<u8>> {
    let place = Place::new();
    let disk = Arc::clone(&Env::folder(&place.path()).expect("it is a folder").disk);
    let store = hedgerow::canonical(snapshot, disk, &Quiet).expect("what is whole can be copied");
    assert_eq!(store.snapshot().fingerprint(), snapshot.fingerprint());
    drop(store);
    let mut files = files(&place.path());
    // It names the process that wrote it.
    files.remove(Path::new("LOCK"));
    files
}

/// A store made of what the model holds, a few documents at a time.
fn made_at_once(place: &Place, model: &Model, together: usize, edges: bool, communities: bool) -> Snapshot {
    let store = place.open();
    for held in model.iter().collect::<Vec<_>>().chunks(together) {
        let part = held.iter().map(|(number, held)| (**number, (*held).clone())).collect();
        build(&store, &part).expect("the batch is sound");
    }
    if edges && !store.snapshot().spaces().expect("spaces can be counted").is_empty() {
        store.build_edges("letters", &RULES, &Quiet).expect("edges can be built");
    }
    if communities {
        store.build_communities(&COMMUNITIES, &Extractive, None, &Quiet).expect("communities can be found");
    }
    store.refresh(&Quiet).expect("the store can be brought in step");
    drop(store);
    place.read()
}

proptest! {
    #![proptest_config(crate::stores::cases(48))]

    #[test]
    fn any_history_equals_a_fresh_build(
        steps in steps(), fanout in 2..5_usize, threads in 1..4_usize, together in 1..4_usize
    ) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be had");
        pool.install(|| check(&steps, fanout, together))?;
    }
}

fn check(steps: &[Option<Step>], fanout: usize, together: usize) -> Result<(), TestCaseError> {
    let place = Place::new();
    let open = || {
        let mut env = Env::folder(&place.path()).expect("it is a folder");
        env.merging = Merging { fanout, ..Merging::default() };
        Store::open_or_create_in(env).expect("the store opens")
    };
    let (mut store, mut model, mut edges) = (open(), Model::new(), false);
    for step in steps {
        let Some(step) = step else {
            store.close().expect("what is left can be merged");
            store = open();
            continue;
        };
        let before = store.snapshot().fingerprint();
        edges |= *step == Step::Edges && !model.is_empty();
        model = live(&store, &model, step).expect("the batch is sound");
        if !matches!(step, Step::Commit(_)) {
            prop_assert_eq!(store.snapshot().fingerprint(), before);
        }
        prop_assert_eq!(texts(&store.snapshot()), documents(&model));
    }
    store.refresh(&Quiet).expect("the store can be brought in step");
    let verified = hedgerow::verify(&Env::folder(&place.path()).expect("it is a folder"), &Quiet);
    prop_assert_eq!(verified.expect("the store can be checked").problems, Vec::<String>::new());
    store.close().expect("what is left can be merged");
    let fresh = Place::new();
    let old = place.read();
    let communities = old.community_rules().is_some();
    prop_assert_eq!(communities, steps.contains(&Some(Step::Communities)));
    let new = made_at_once(&fresh, &model, together, edges, communities);
    prop_assert!(canonical(&old) == canonical(&new), "the canonical forms have other bytes");
    let [(one, counted), (other, counted_too)] =
        [&old, &new].map(|snapshot| (answers(snapshot).expect("it can be asked"), content(snapshot)));
    for (one, other) in one.lines().zip(other.lines()) {
        // Rules outlive the last vector, and a fresh store without vectors has none.
        let emptied = model.is_empty() && one.starts_with('{');
        prop_assert!(one == other || emptied, "{}\n{}", one, other);
    }
    prop_assert_eq!(counted, counted_too);
    Ok(())
}

/// What `stats` counts, numbers of files and generations apart.
fn content(snapshot: &Snapshot) -> Stats {
    let mut stats = snapshot.stats().expect("the store can be counted");
    (stats.generation, stats.segments, stats.segment_bytes, stats.projection_bytes) = (0, 0, 0, 0);
    if stats.documents == 0 {
        stats.edges.clear();
    }
    stats
}
