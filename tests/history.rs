//! Whatever was done to a store, it holds what a map would hold, and answers as a store made of that at once.

use crate::stores::{MODELS, PIPELINE, Place, ask, document, entities, files, relations, said, texts, vector};
use hedgerow::{
    Batch, CommitError, EdgeRules, Env, ExpandOptions, Key, Merging, Quiet, Snapshot, Store, Strategy as By, Target,
    triple,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Debug)]
enum Step {
    /// Changes that are committed together.
    Commit(Vec<Change>),
    Refresh,
    Edges,
    Compact,
    Reopen,
}

/// What is done to the document with a number.
#[derive(Clone, Copy, Debug)]
enum Change {
    Put(u8, u8),
    Delete(u8),
    Relate(u8, u8),
    Vector(u8, u8),
}

/// A document as the model holds it: its text, and what was said about it since it was put.
#[derive(Clone, Debug, Default, PartialEq)]
struct Held {
    text: String,
    relations: BTreeSet<u8>,
    vector: Option<u8>,
}

type Model = BTreeMap<String, Held>;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let change = prop_oneof![
        6 => (0..6_u8, 0..5_u8).prop_map(|(key, text)| Change::Put(key, text)),
        2 => (0..6_u8).prop_map(Change::Delete),
        2 => (0..6_u8, 0..4_u8).prop_map(|(key, relation)| Change::Relate(key, relation)),
        2 => (0..6_u8, 0..4_u8).prop_map(|(key, vector)| Change::Vector(key, vector)),
    ];
    let step = prop_oneof![
        8 => prop::collection::vec(change, 1..6).prop_map(Step::Commit),
        1 => Just(Step::Refresh),
        1 => Just(Step::Edges),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..12)
}

fn key(number: u8) -> String {
    format!("d{number}")
}

fn text(key: u8, number: u8) -> String {
    let texts = [
        "Alice owns Bridge.",
        "The old Bridge of Dover.",
        "Carol met ALICE in Ely.",
        "Ely owns Dover. alice owns Ely",
        "BRIDGE owns Carol.",
    ];
    format!("{} It is number {key}.", texts[usize::from(number)])
}

fn relate(batch: &mut Batch, key: &str, number: u8) {
    let ends = [("Alice", "Carol"), ("ALICE", "Dover"), ("Ely", "Alice"), ("Zoe", "bridge")][usize::from(number)];
    let weight = [1.0, 0.1, 0.7, 3.0][usize::from(number)];
    let relation = triple((ends.0, ""), "knows", (ends.1, "person"), weight).expect("it is a triple");
    batch.relate(Target { document: key.into(), chunk: number.is_multiple_of(2).then_some(0) }, relation);
}

fn set_vector(batch: &mut Batch, key: &str, number: u8) {
    let components = [[0.6, 0.8], [0.8, 0.6], [-1.0, 0.2], [0.0, -1.0]][usize::from(number)];
    batch.set_vector(Target { document: key.into(), chunk: None }, vector(&components));
}

/// Fills a batch, and does the same to the model.
fn change(store: &Store, model: &mut Model, changes: &[Change]) -> Batch {
    let mut batch = Batch::default();
    let mut after = model.clone();
    for change in changes {
        match *change {
            Change::Put(number, text_number) => {
                let given = vec![document(&key(number), &text(number, text_number))];
                PIPELINE.stage(&store.snapshot(), given, &mut batch, &Quiet).expect("no one cancels");
                let text = text(number, text_number);
                let known = model.get(&key(number)).filter(|held| held.text == text).cloned();
                after.insert(key(number), known.unwrap_or(Held { text, ..Held::default() }));
            }
            Change::Delete(number) => {
                batch.delete(&key(number));
                after.remove(&key(number));
            }
            _ => {}
        }
    }
    for change in changes {
        match *change {
            Change::Relate(number, relation) => {
                if let Some(held) = after.get_mut(&key(number)) {
                    relate(&mut batch, &key(number), relation);
                    held.relations.insert(relation);
                }
            }
            Change::Vector(number, vector) => {
                if let Some(held) = after.get_mut(&key(number)) {
                    set_vector(&mut batch, &key(number), vector);
                    held.vector = Some(vector);
                }
            }
            _ => {}
        }
    }
    *model = after;
    batch
}

const RULES: EdgeRules = EdgeRules { percentile: 30_000, top_m: 3 };

fn build_edges(store: &Store) {
    if !store.snapshot().spaces().expect("spaces can be counted").is_empty() {
        store.build_edges("letters", RULES, &Quiet).expect("edges can be built");
    }
}

/// Everything that can be asked, as text.
fn answers(snapshot: &Snapshot) -> Vec<String> {
    let mut answers = Vec::new();
    for question in ["Who owns the old Bridge?", "Alice and Dover", "Carol in Ely"] {
        for strategy in [By::Flat, By::Graph] {
            answers.push(format!("{:?}", said(ask(snapshot, question, strategy))));
        }
        answers.push(format!("{:?}", snapshot.search_terms(question, None, 10)));
        answers.push(format!(
            "{:?}",
            snapshot.compare(&hedgerow::Question::new(question), MODELS).map(|both| said(both.graph))
        ));
    }
    for key in ["Alice", "Bridge", "d0#0", "d3", "Zoe"] {
        let Ok(node) = snapshot.find(key) else { continue };
        answers.push(format!("{:?}", snapshot.describe(node, 20)));
        answers.push(format!("{:?}", snapshot.expand(&[node], &ExpandOptions::default())));
    }
    let mut stats = snapshot.stats().expect("the store can be counted");
    (stats.generation, stats.segments, stats.segment_bytes, stats.projection_bytes) = (0, 0, 0, 0);
    answers.push(format!("{stats:?}"));
    answers
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
fn made_at_once(place: &Place, model: &Model, together: usize, edges: bool) -> Snapshot {
    let store = place.open();
    for held in model.iter().collect::<Vec<_>>().chunks(together) {
        let mut batch = Batch::default();
        let documents = held.iter().map(|(key, held)| document(key, &held.text)).collect();
        PIPELINE.stage(&store.snapshot(), documents, &mut batch, &Quiet).expect("no one cancels");
        for (key, held) in held {
            held.relations.iter().for_each(|relation| relate(&mut batch, key, *relation));
            held.vector.iter().for_each(|vector| set_vector(&mut batch, key, *vector));
        }
        store.commit(batch).expect("the batch is sound");
    }
    if edges {
        build_edges(&store);
    }
    store.refresh(&Quiet).expect("the store can be brought in step");
    drop(store);
    place.read()
}

proptest! {
    #![proptest_config(crate::stores::cases(48))]

    #[test]
    fn any_history_equals_a_fresh_build(steps in steps(), fanout in 2..5_usize, threads in 1..4_usize, together in 1..4_usize) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be had");
        pool.install(|| check(&steps, fanout, together))?;
    }
}

fn check(steps: &[Step], fanout: usize, together: usize) -> Result<(), TestCaseError> {
    let place = Place::new();
    let open = || {
        let mut env = Env::folder(&place.path()).expect("it is a folder");
        env.merging = Merging { fanout, ..Merging::default() };
        Store::open_or_create_in(env).expect("the store opens")
    };
    let (mut store, mut model, mut edges) = (open(), Model::new(), false);
    for step in steps {
        match step {
            Step::Refresh => store.refresh(&Quiet).expect("the store can be brought in step"),
            Step::Edges => {
                edges |= !store.snapshot().spaces().expect("spaces can be counted").is_empty();
                build_edges(&store);
            }
            Step::Compact => {
                let before: Result<Key, _> = store.snapshot().fingerprint();
                store.compact(&Quiet).expect("the store can be compacted");
                prop_assert_eq!(store.snapshot().fingerprint(), before);
            }
            Step::Reopen => {
                drop(store);
                store = open();
            }
            Step::Commit(changes) => {
                let batch = change(&store, &mut model, changes);
                let committed: Result<_, CommitError> = store.commit(batch);
                prop_assert_eq!(committed.expect("the batch is sound").merge_fault, None);
            }
        }
        let held: BTreeMap<String, String> = model.iter().map(|(key, held)| (key.clone(), held.text.clone())).collect();
        prop_assert_eq!(&texts(&store.snapshot()), &held);
    }
    store.refresh(&Quiet).expect("the store can be brought in step");
    let verified = hedgerow::verify(&Env::folder(&place.path()).expect("it is a folder"), &Quiet);
    prop_assert_eq!(verified.expect("the store can be checked").problems, Vec::<String>::new());
    let fresh = Place::new();
    let (old, new) = (place.read(), made_at_once(&fresh, &model, together, edges));
    prop_assert_eq!(entities(&old), entities(&new));
    prop_assert_eq!(relations(&old), relations(&new));
    prop_assert_eq!(old.fingerprint(), new.fingerprint());
    prop_assert!(canonical(&old) == canonical(&new), "the canonical forms have other bytes");
    for (old, new) in answers(&old).into_iter().zip(answers(&new)) {
        prop_assert!(old == new, "{}\n{}", old, new);
    }
    Ok(())
}
