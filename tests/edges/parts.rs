//! Edges built in parts: shares that are joined, and builds that go on after they were stopped.

use crate::command::{Folder, command, told};
use crate::stores::{Numbers, Place};
use hedgerow::{
    Batch, Control, Description, EdgeError, EdgeRules, EdgeShare, EdgesBuilt, Quiet, StagedChunk, StagedDocument,
    StagedVector, Store, UnfinishedEdges,
};
use serde_json::Value;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many rows that their pairs are cut into several blocks.
const ROWS: usize = 2000;

fn key(row: usize) -> String {
    format!("{row:05}")
}

/// What is told of each kind of pairs, apart from memory: what is to be kept takes some.
fn kinds(told: &Value) -> Value {
    let mut kinds = told["kinds"].clone();
    for kind in kinds.as_array_mut().into_iter().flatten() {
        kind["memory"].take();
    }
    kinds
}

/// Every third chunk is a table, so that there are edges of three kinds.
fn fill(store: &Store) {
    let mut numbers = Numbers(17);
    let mut batch = Batch::default();
    for row in 0..ROWS {
        let mut components: Vec<f32> =
            (0..4).map(|_| f32::from(u8::try_from(numbers.below(200)).unwrap()) - 99.5).collect();
        hedgerow::normalise(&mut components).expect("it has a direction");
        let vectors = vec![StagedVector { space: "v".into(), model: "m".into(), components }];
        let kind = u32::from(row % 3 == 0);
        let chunks = vec![StagedChunk { range: 0..1, kind, vectors, ..StagedChunk::default() }];
        batch.put(StagedDocument { name: key(row), text: "x".into(), chunks, ..StagedDocument::default() });
    }
    store.commit(batch).expect("the batch is sound");
}

/// The reports, and what some chunks are joined with.
fn edges(place: &Place, built: &[EdgesBuilt]) -> (Vec<EdgesBuilt>, Vec<String>) {
    let snapshot = place.read();
    let of_row = |row: usize| {
        let node = snapshot.find(&format!("chunk:{}#0", key(row))).expect("the chunk is there");
        match snapshot.describe(node, usize::MAX).expect("it can be described") {
            Description::Chunk { similar, .. } => format!("{similar:?}"),
            _ => panic!("a chunk is described as a chunk"),
        }
    };
    let mut built = built.to_vec();
    // What is to be kept takes memory.
    for built in &mut built {
        built.memory = None;
    }
    (built, (0..ROWS).step_by(97).map(of_row).collect())
}

fn rules() -> EdgeRules {
    EdgeRules::new(99_000, 4)
}

#[test]
fn shares_of_several_machines_give_the_edges_of_one() {
    let places = [Place::new(), Place::new()];
    let stores = [places[0].open(), places[1].open()];
    stores.iter().for_each(fill);
    let expected = stores[0].build_edges("v", &rules(), &Quiet).expect("edges can be built");
    let share = |number: u32| {
        let store = &stores[number as usize % 2];
        store.edge_share("v", &rules(), EdgeShare { number, of: 3 }, &Quiet).expect("a share can be computed")
    };
    let shares = [share(3), share(1), share(2)];
    let joined = stores[1].join_edges("v", &rules(), &shares, &Quiet).expect("the shares belong together");
    assert_eq!(edges(&places[1], &joined), edges(&places[0], &expected));

    let join = |shares: &[Vec<u8>], rules: &EdgeRules| stores[1].join_edges("v", rules, shares, &Quiet);
    let refused =
        |result: Result<Vec<EdgesBuilt>, EdgeError>| result.expect_err("they don't belong together").to_string();
    assert!(refused(join(&shares[..2], &rules())).contains("missing"));
    assert!(refused(join(&[&shares[..], &shares[..1]].concat(), &rules())).contains("twice"));
    assert!(refused(join(&shares, &EdgeRules::new(95_000, 4))).contains("settings"));
    let cut = [vec![shares[0][..shares[0].len() - 1].to_vec()], shares[1..].to_vec()].concat();
    assert!(matches!(join(&cut, &rules()), Err(EdgeError::Part { share: 0, .. })));
    for number in [0, 4] {
        let none = stores[0].edge_share("v", &rules(), EdgeShare { number, of: 3 }, &Quiet);
        assert!(matches!(none, Err(EdgeError::Share { .. })));
    }
}

/// Stops after some blocks.
struct StopAfter(AtomicUsize);

impl Control for StopAfter {
    fn advance(&self, _: u64, _: u64) {}

    fn cancelled(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
    }
}

#[test]
fn a_build_that_is_stopped_goes_on_where_it_was() {
    let places = [Place::new(), Place::new()];
    let stores = [places[0].open(), places[1].open()];
    stores.iter().for_each(fill);
    let expected = stores[0].build_edges("v", &rules(), &Quiet).expect("edges can be built");
    let kept = Mutex::new(Vec::new());
    let keep = |bytes: &[u8]| *kept.lock().unwrap() = bytes.to_vec();
    let mut stops = 0;
    let built = loop {
        let last = kept.lock().unwrap().clone();
        let unfinished = UnfinishedEdges::new(&last, &keep).expect("what was kept can be read");
        match stores[1].build_edges_from("v", &rules(), &unfinished, &StopAfter(AtomicUsize::new(9))) {
            Ok(built) => break built,
            Err(error) => assert!(error.to_string().contains("cancelled"), "{error}"),
        }
        stops += 1;
        assert!(stops < 20, "every run does some blocks");
    };
    assert!(stops > 0);
    assert_eq!(edges(&places[1], &built), edges(&places[0], &expected));
    assert!(UnfinishedEdges::new(b"anything", &keep).is_err());
}

#[test]
fn the_command_computes_shares_and_merges_them() {
    let folder = Folder::new();
    let [store, one, two] = ["store", "one.tiles", "two.tiles"].map(|name| folder.path(name));
    fill(&Store::open_or_create(&store).expect("the folder is empty"));
    let whole = told(&["edges", &store, "--percentile", "99"]);
    for (share, file) in [("1/2", &one), ("2/2", &two)] {
        let written = told(&["edges", &store, "--percentile", "99", "--tiles", share, "--to", file]);
        assert_eq!(written["bytes"], fs::metadata(file).expect("it is there").len());
    }
    // What is left of an interrupted build and can't be read is no obstacle, and does not stay.
    let left = std::path::Path::new(&store).join("edges.unfinished");
    fs::write(&left, "damaged").expect("it can be written");
    assert_eq!(told(&["edges", &store, "--percentile", "99"])["kinds"], whole["kinds"]);
    assert!(!left.exists());
    let merged = told(&["edges", &store, "--percentile", "99", "--merge", &two, &one]);
    assert_eq!(kinds(&merged), kinds(&whole));
    let code = |arguments: &[&str]| command().arg("edges").arg(&store).args(arguments).output().unwrap().status.code();
    assert_eq!(code(&["--percentile", "99", "--merge", &two]), Some(2));
    assert_eq!(code(&["--percentile", "98", "--merge", &two, &one]), Some(2));
    assert_eq!(code(&["--tiles", "3/2", "--to", &one]), Some(2));
    assert_eq!(code(&["--tiles", "1/2"]), Some(2));
    assert_eq!(code(&["--merge", &folder.path("nothing")]), Some(5));
}
