//! Edges built in parts: shares that are joined, and builds that go on after they were stopped.

use crate::command::{Folder, command, told};
use crate::stores::{Numbers, Place};
use hedgerow::{
    Batch, Control, Description, EdgeError, EdgeRules, EdgeShare, EdgesBuilt, Quiet, Signal, SignalKind, StagedChunk,
    StagedDocument, StagedVector, Store, UnfinishedEdges,
};
use serde_json::Value;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many rows that their pairs are cut into several blocks.
const ROWS: usize = 2000;

fn letter(row: usize) -> String {
    char::from(b'a' + u8::try_from(row % 7).unwrap()).into()
}

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
fn fill(store: &Store, rows: usize) {
    let mut numbers = Numbers(17);
    let mut batch = Batch::default();
    for row in 0..rows {
        let mut components: Vec<f32> =
            (0..4).map(|_| f32::from(u8::try_from(numbers.below(200)).unwrap()) - 99.5).collect();
        hedgerow::normalise(&mut components).expect("it has a direction");
        let vectors = vec![StagedVector { space: "v".into(), model: "m".into(), components }];
        let kind = u32::from(row % 3 == 0);
        let chunks = vec![StagedChunk { range: 0..1, kind, vectors, ..StagedChunk::default() }];
        batch.put(StagedDocument { name: key(row), text: letter(row), chunks, ..StagedDocument::default() });
    }
    store.commit(batch).expect("the batch is sound");
}

/// The reports, and what some chunks are joined with.
fn edges(place: &Place, built: &[EdgesBuilt], rows: usize) -> (Vec<EdgesBuilt>, Vec<String>) {
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
    (built, (0..rows).step_by(97).map(of_row).collect())
}

fn rules() -> EdgeRules {
    EdgeRules::new(99_000, 4)
}

#[test]
fn shares_of_several_machines_give_the_edges_of_one() {
    let places = [Place::new(), Place::new()];
    let stores = [places[0].open(), places[1].open()];
    for store in &stores {
        fill(store, ROWS);
    }
    let expected = stores[0].build_edges("v", &rules(), &Quiet).expect("edges can be built");
    let share = |number: u32| {
        let store = &stores[number as usize % 2];
        store.edge_share("v", &rules(), EdgeShare { number, of: 3 }, &[], &Quiet).expect("a share can be computed")
    };
    let shares = [share(3), share(1), share(2)];
    let joined = stores[1].join_edges("v", &rules(), &shares, &Quiet).expect("the shares belong together");
    assert_eq!(edges(&places[1], &joined, ROWS), edges(&places[0], &expected, ROWS));

    let join = |shares: &[Vec<u8>], rules: &EdgeRules| stores[1].join_edges("v", rules, shares, &Quiet);
    let refused =
        |result: Result<Vec<EdgesBuilt>, EdgeError>| result.expect_err("they don't belong together").to_string();
    assert!(refused(join(&shares[..2], &rules())).contains("missing"));
    assert!(refused(join(&[&shares[..], &shares[..1]].concat(), &rules())).contains("twice"));
    assert!(refused(join(&shares, &EdgeRules::new(95_000, 4))).contains("settings"));
    let cut = [vec![shares[0][..shares[0].len() - 1].to_vec()], shares[1..].to_vec()].concat();
    assert!(matches!(join(&cut, &rules()), Err(EdgeError::Part { share: 0, .. })));
    for number in [0, 4] {
        let none = stores[0].edge_share("v", &rules(), EdgeShare { number, of: 3 }, &[], &Quiet);
        assert!(matches!(none, Err(EdgeError::Share { .. })));
    }
}

/// Stops after some blocks.
struct StopAfter(AtomicUsize);

impl Control for StopAfter {
    fn advance(&self, _: u64, _: u64) {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).ok();
    }

    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// Whether edges of these rules are those of a single run when the build is stopped again and again.
fn check_stopped(rules: &EdgeRules, rows: usize) {
    let places = [Place::new(), Place::new()];
    let stores = [places[0].open(), places[1].open()];
    for store in &stores {
        fill(store, rows);
    }
    let expected = stores[0].build_edges("v", rules, &Quiet).expect("edges can be built");
    let kept = Mutex::new(Vec::new());
    let keep = |bytes: &[u8]| *kept.lock().unwrap() = bytes.to_vec();
    let mut stops = 0;
    let built = loop {
        let last = kept.lock().unwrap().clone();
        let unfinished = UnfinishedEdges::new(&last, &keep).expect("what was kept can be read");
        match stores[1].build_edges_from("v", rules, &unfinished, &StopAfter(AtomicUsize::new(BLOCKS))) {
            Ok(built) => break built,
            Err(error) => assert!(error.to_string().contains("cancelled"), "{error}"),
        }
        stops += 1;
        assert!(stops < 20, "every run does some blocks");
    };
    assert!(stops > 0);
    assert_eq!(edges(&places[1], &built, rows), edges(&places[0], &expected, rows));
    assert!(UnfinishedEdges::new(b"anything", &keep).is_err());
}

/// After so many blocks a build is stopped.
const BLOCKS: usize = 9;

#[test]
fn a_build_that_is_stopped_goes_on_where_it_was() {
    check_stopped(&rules(), ROWS);
}

/// Rules with signals of which one is found by codes, and one is not.
fn signalled(weighted: bool) -> EdgeRules {
    let signal = |what, percentile| Signal { what, percentile, weight: 1 };
    let signals = vec![signal(SignalKind::Content, 80_000), signal(SignalKind::Words, 50_000)];
    EdgeRules { signals, weighted, nearest: weighted.then_some(9), ..EdgeRules::new(90_000, 4) }
}

/// Fewer, since every pair is compared by every signal.
const ROWS_SIGNALLED: usize = 400;

#[test]
fn a_build_by_signals_that_is_stopped_goes_on_where_it_was() {
    check_stopped(&signalled(false), ROWS_SIGNALLED);
    check_stopped(&signalled(true), ROWS_SIGNALLED);
}

#[test]
fn a_build_by_signals_is_shared_pass_by_pass() {
    let places = [Place::new(), Place::new()];
    let stores = [places[0].open(), places[1].open()];
    for store in &stores {
        fill(store, ROWS_SIGNALLED);
    }
    let rules = signalled(false);
    let expected = stores[0].build_edges("v", &rules, &Quiet).expect("edges can be built");
    let expected = edges(&places[0], &expected, ROWS_SIGNALLED);
    let mut all: Vec<Vec<u8>> = Vec::new();
    let mut passes = 0;
    loop {
        let share =
            |number| stores[number as usize % 2].edge_share("v", &rules, EdgeShare { number, of: 2 }, &all, &Quiet);
        let shares = match (share(1), share(2)) {
            (Ok(one), Ok(two)) => [two, one],
            (Err(EdgeError::NothingLeft), Err(EdgeError::NothingLeft)) => break,
            other => panic!("{other:?}"),
        };
        all.extend(shares);
        let joined = stores[1].join_edges("v", &rules, &all, &Quiet).expect("the shares belong together");
        assert_eq!(edges(&places[1], &joined, ROWS_SIGNALLED), expected);
        passes += 1;
        assert!(passes < 9);
    }
    assert!(passes > 1);
    let refused = |shares: &[Vec<u8>], rules: &EdgeRules| {
        let joined = stores[1].join_edges("v", rules, shares, &Quiet).expect_err("they don't belong together");
        assert!(matches!(joined, EdgeError::NotJoined { .. }), "{joined}");
        joined.to_string()
    };
    assert!(refused(&all[1..], &rules).contains("missing"));
    assert!(refused(&all[..all.len() - 1], &rules).contains("missing"));
    assert!(refused(&all[2..], &rules).contains("settings"));
    assert!(refused(&[&all[..], &all[..1]].concat(), &rules).contains("twice"));
    assert!(refused(&all, &signalled(true)).contains("settings"));
    let share = EdgeShare { number: 1, of: 2 };
    let lacking = stores[0].edge_share("v", &rules, share, &all[..1], &Quiet);
    assert!(matches!(lacking, Err(EdgeError::NotJoined { .. })), "{lacking:?}");
    let single = stores[0].edge_share("v", &self::rules(), share, &all, &Quiet);
    assert!(matches!(single, Err(EdgeError::NothingLeft)), "{single:?}");
}

#[test]
fn the_command_computes_shares_and_merges_them() {
    let folder = Folder::new();
    let [store, one, two] = ["store", "one.tiles", "two.tiles"].map(|name| folder.path(name));
    fill(&Store::open_or_create(&store).expect("the folder is empty"), ROWS);
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
    assert_eq!(code(&["--percentile", "99", "--tiles", "1/2", "--merge", &two, &one, "--to", &one]), Some(2));
    assert_eq!(code(&["--percentile", "98", "--merge", &two, &one]), Some(2));
    assert_eq!(code(&["--tiles", "3/2", "--to", &one]), Some(2));
    assert_eq!(code(&["--tiles", "1/2"]), Some(2));
    assert_eq!(code(&["--merge", &folder.path("nothing")]), Some(5));
}

#[test]
fn the_command_shares_the_passes_of_a_build_by_signals() {
    let folder = Folder::new();
    let [store, one, two, three] = ["store", "one.tiles", "two.tiles", "three.tiles"].map(|name| folder.path(name));
    fill(&Store::open_or_create(&store).expect("the folder is empty"), ROWS_SIGNALLED);
    let edges = |arguments: &[&str]| {
        told(&[&["edges", &store, "--signal", "content@80", "--signal", "words@50"], arguments].concat())
    };
    let whole = edges(&[]);
    edges(&["--tiles", "1/2", "--to", &one]);
    edges(&["--tiles", "2/2", "--to", &two]);
    let written = edges(&["--tiles", "1/1", "--merge", &one, &two, "--to", &three]);
    assert_eq!(written["bytes"], fs::metadata(&three).expect("it is there").len());
    for files in [&[&one, &two][..], &[&three, &two, &one]] {
        let files: Vec<&str> = files.iter().map(|file| file.as_str()).collect();
        assert_eq!(kinds(&edges(&[&["--merge"], &files[..]].concat())), kinds(&whole));
    }
}
