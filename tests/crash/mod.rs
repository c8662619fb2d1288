//! Power cuts, kills and failing calls at every operation of a store's life: nothing that was acknowledged is lost.

pub mod disk;

use crate::crash::disk::{Disk, Fault};
use crate::stores::{PIPELINE, document, entities, relations, texts, vector};
use hedgerow::{Batch, CommitError, Env, FileName, OpenError, Quiet, Snapshot, Store, Target, triple, verify};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a reader sees of a store.
type Seen = (BTreeMap<String, String>, Vec<String>, Vec<String>);

fn seen(snapshot: &Snapshot) -> Seen {
    (texts(snapshot), entities(snapshot), relations(snapshot))
}

fn env(disk: &Disk) -> Env {
    Env::new(Arc::new(disk.clone()))
}

/// Steps of a store's life after its creation: puts, a replacement, deletions, an overlay, projections.
const STEPS: usize = 6;

fn step(store: &Store, number: usize) -> Result<(), CommitError> {
    let mut batch = Batch::default();
    let put = |documents: &[(&str, &str)], batch: &mut Batch| {
        let documents = documents.iter().map(|(key, text)| document(key, text)).collect();
        PIPELINE.stage(&store.snapshot(), documents, batch, &Quiet).expect("no one cancels");
    };
    match number {
        0 => put(&[("a", "Alice owns Bridge."), ("b", "The old Bridge of Dover.")], &mut batch),
        2 => {
            put(&[("b", "Carol met Alice in Ely."), ("c", "Ely owns Dover.")], &mut batch);
            let relation = triple(("Alice", ""), "knows", ("Carol", ""), 1.0).expect("it is a triple");
            batch.relate(Target { document: "a".into(), chunk: Some(0) }, relation);
        }
        3 => batch.set_vector(Target { document: "a".into(), chunk: None }, vector(&[0.6, 0.8])),
        4 => batch.delete("c"),
        _ => return store.refresh(&Quiet),
    }
    store.commit(batch).map(|_| ())
}

/// What is seen after each step when nothing goes wrong, the empty store first; and the operations that it takes.
fn undisturbed() -> (Vec<Seen>, u64) {
    let disk = Disk::default();
    let store = Store::open_or_create_in(env(&disk)).expect("the disk is sound");
    let mut states = vec![seen(&store.snapshot())];
    for number in 0..STEPS {
        step(&store, number).expect("the disk is sound");
        states.push(seen(&store.snapshot()));
    }
    (states, disk.operations())
}

/// Lives until something fails: how many states were acknowledged, none if the store was not even made.
fn live(disk: &Disk) -> usize {
    let Ok(store) = Store::open_or_create_in(env(disk)) else { return 0 };
    let failed = (0..STEPS).position(|number| step(&store, number).is_err());
    failed.unwrap_or(STEPS) + 1
}

/// Opens what is left: a reader first, then the writer; both see what was acknowledged, or one step more. Then writes on.
fn check(disk: &Disk, states: &[Seen], acknowledged: usize, what: &str) {
    let possible = &states[acknowledged.saturating_sub(1)..states.len().min(acknowledged + 1)];
    match Snapshot::open_in(disk) {
        Ok(snapshot) => assert!(possible.contains(&seen(&snapshot)), "{what}: the reader sees another state"),
        Err(OpenError::NotFound { .. }) if acknowledged == 0 => {}
        Err(error) => panic!("{what}: no reader can open the store: {error}"),
    }
    let store = Store::open_or_create_in(env(disk)).unwrap_or_else(|error| panic!("{what}: no writer can: {error}"));
    assert!(possible.contains(&seen(&store.snapshot())), "{what}: the writer sees another state");
    let again = vec![document("z", "Alice met Ely.")];
    let mut batch = Batch::default();
    PIPELINE.stage(&store.snapshot(), again, &mut batch, &Quiet).expect("no one cancels");
    store.commit(batch).unwrap_or_else(|error| panic!("{what}: cannot be written to: {error}"));
    store.refresh(&Quiet).unwrap_or_else(|error| panic!("{what}: cannot be brought in step: {error}"));
    assert_eq!(texts(&store.snapshot()).get("z").map(String::as_str), Some("Alice met Ely."), "{what}");
    drop(store);
    let verified = verify(&env(disk), &Quiet).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(verified.problems, Vec::<String>::new(), "{what}");
}

/// How many variants of each: `HEDGEROW_CRASHES` times the few that every run of the tests makes.
fn variants(few: u64) -> u64 {
    few * std::env::var("HEDGEROW_CRASHES").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

#[test]
fn a_power_cut_at_any_operation_loses_nothing_that_was_acknowledged() {
    let (states, operations) = undisturbed();
    (0..operations).into_par_iter().for_each(|operation| {
        let disk = Disk::default();
        disk.fail(Fault::Crash { at: operation });
        let acknowledged = live(&disk);
        for variant in 0..variants(2) {
            let what = format!("cut at {operation}, variant {variant}");
            check(&disk.cut(operation * 31 + variant), &states, acknowledged, &what);
        }
    });
}

#[test]
fn a_power_cut_while_recovering_from_a_cut_or_a_kill_loses_nothing_either() {
    let (states, operations) = undisturbed();
    (0..operations).into_par_iter().for_each(|operation| {
        let disk = Disk::default();
        disk.fail(Fault::Crash { at: operation });
        let acknowledged = live(&disk);
        check_recovery(&disk.killed(), &states, acknowledged, &format!("killed at {operation}"), operation);
        if operation % 5 == 0 {
            let what = format!("cut at {operation}");
            check_recovery(&disk.cut(operation), &states, acknowledged, &what, operation);
        }
    });
}

/// Cuts the power when the writer has opened what is left, and shortly before.
fn check_recovery(left: &Disk, states: &[Seen], acknowledged: usize, what: &str, seed: u64) {
    let probe = left.killed();
    let opened = Store::open_or_create_in(env(&probe)).unwrap_or_else(|error| panic!("{what}: does not open: {error}"));
    let found = states.iter().rposition(|state| *state == seen(&opened.snapshot()));
    let found = found.unwrap_or_else(|| panic!("{what}: another state")) + 1;
    let operations = probe.operations();
    for before in (0..variants(1) * 6).step_by(2) {
        let disk = left.killed();
        disk.fail(Fault::Crash { at: operations.saturating_sub(before) });
        let done = Store::open_or_create_in(env(&disk)).is_ok();
        // What was opened was published, and so acknowledged.
        let least = if done { found } else { acknowledged };
        // Nothing of the names and all of the data, and by chance.
        for seed in [seed * 8 + 2, seed * 17 + before] {
            check(&disk.cut(seed), states, least, &format!("{what}, then cut {before} before the end, seed {seed}"));
        }
    }
}

#[test]
fn a_call_that_fails_once_or_for_ever_loses_nothing_and_is_told() {
    let (states, operations) = undisturbed();
    let faults = [(false, false), (true, false), (false, true), (true, true)];
    (0..operations).into_par_iter().filter(|operation| operation % 3 == 0).for_each(|operation| {
        for (for_ever, full) in faults {
            let disk = Disk::default();
            disk.fail(Fault::Call { at: operation, for_ever, full });
            let acknowledged = live(&disk);
            let what = format!("call {operation} fails, for ever {for_ever}, disk full {full}");
            check(&disk.killed(), &states, acknowledged, &what);
            check(&disk.cut(operation), &states, acknowledged, &format!("{what}, then cut"));
        }
    });
}

#[test]
fn a_read_that_fails_once_while_the_catalog_is_behind_gives_nothing_up() {
    let (states, _) = undisturbed();
    let disk = Disk::default();
    let store = Store::open_or_create_in(env(&disk)).expect("the disk is sound");
    (0..STEPS - 1).for_each(|number| step(&store, number).expect("the disk is sound"));
    let older = disk.killed();
    step(&store, STEPS - 1).expect("the disk is sound");
    drop(store);
    let behind = disk.killed();
    behind.put_back(&older, &FileName::Catalog);
    let last = Snapshot::open_in(&behind).expect("HEAD names a whole generation").generation();
    let (mut failed, mut at) = (0, 0);
    loop {
        let disk = behind.killed();
        disk.fail(Fault::Read { at });
        let opened = Store::open_in(env(&disk));
        failed += u64::from(opened.is_err());
        drop(opened);
        if disk.reads() <= at {
            break;
        }
        let store = Store::open_in(env(&disk.killed())).expect("nothing is wrong any more");
        assert_eq!(seen(&store.snapshot()), states[STEPS], "read {at} failed, and the last commit is gone");
        assert_eq!(store.snapshot().generation(), last, "read {at} failed");
        at += 1;
    }
    assert!(failed > 10 && at > 20, "only {failed} of {at} reads made the opening fail");
}
