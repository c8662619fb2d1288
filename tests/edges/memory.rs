//! Edges that are built in little memory: the same files, whatever lies on the disk meanwhile.

use crate::stores::Numbers;
use hedgerow::{
    Batch, CommitError, EdgeError, EdgeRules, EdgeShare, EdgesBuilt, Env, FileName, Folder, Quiet, Shared, Signal,
    SignalKind, Snapshot, StagedChunk, StagedDocument, StagedVector, Store,
};
use hedgerow_durability::{Disk, Fault, FaultKind};
use std::sync::Arc;

/// A store on a simulated disk, the same every time, whose edges may take so much memory.
fn store(disk: &Disk, memory: Option<u64>) -> Store {
    let mut env = Env::seeded(Arc::new(disk.clone()), 7);
    env.edge_memory = memory;
    Store::open_or_create_in(env).expect("the store opens")
}

/// So many rows that some of them have to wait for others where memory is least.
const ROWS: usize = 2600;
const DIMENSIONS: usize = 65;

fn fill(store: &Store, rows: usize) {
    let mut numbers = Numbers(23);
    let mut batch = Batch::default();
    for row in 0..rows {
        let component = |_| f32::from(u8::try_from(numbers.below(200)).expect("it is below 200")) - 99.5;
        let mut components: Vec<f32> = (0..DIMENSIONS).map(component).collect();
        hedgerow::normalise(&mut components).expect("it has a direction");
        let vectors = vec![StagedVector { space: "v".into(), model: "m".into(), components }];
        let chunks = vec![StagedChunk { range: 0..1, vectors, ..StagedChunk::default() }];
        batch.put(StagedDocument { name: format!("{row:05}"), text: "x".into(), chunks, ..StagedDocument::default() });
    }
    store.commit(batch).expect("the batch is sound");
}

fn rules() -> EdgeRules {
    EdgeRules::new(95_000, 4)
}

fn build(store: &Store) -> Result<Vec<EdgesBuilt>, EdgeError> {
    store.build_edges("v", &rules(), &Quiet)
}

/// Names and bytes of the files of edges, and whether anything is left that belongs to no store.
fn files(disk: &Disk) -> Vec<(FileName, Vec<u8>)> {
    let now = disk.now();
    assert!(!now.names().any(|name| matches!(name, FileName::Scratch(_))), "nothing is left of what was spilled");
    let edges = now.names().filter(|name| name.folder() == Folder::Projections);
    edges.map(|name| (name, now.bytes(&name).unwrap_or_default().to_vec())).collect()
}

/// The least memory that edges of a store on a disk need, which it says itself.
fn needed(disk: &Disk) -> u64 {
    match build(&store(disk, Some(1))) {
        Err(EdgeError::Commit(CommitError::Memory { space, needed, allowed: 1 })) if space == "v" => needed,
        other => panic!("a byte is too little: {other:?}"),
    }
}

/// A disk with a store that has vectors.
fn filled() -> Disk {
    let disk = Disk::default();
    fill(&store(&disk, None), ROWS);
    disk
}

#[test]
fn edges_that_are_built_in_little_memory_have_the_same_bytes() {
    let usual = filled();
    let built = build(&store(&usual, None)).expect("edges can be built");
    assert!(built.iter().all(|built| built.memory.is_some_and(|memory| memory.spilled == 0 && !memory.codes_again)));
    let little = filled();
    let least = needed(&little);
    let spilled = build(&store(&little, Some(least))).expect("what is needed suffices");
    let of_most = spilled.iter().max_by_key(|built| built.report.pairs).and_then(|built| built.memory);
    assert!(of_most.is_some_and(|memory| memory.spilled > 0 && memory.codes_again && memory.planned <= least));
    for (spilled, built) in spilled.iter().zip(&built) {
        assert_eq!((spilled.kind, spilled.report), (built.kind, built.report));
    }
    // Names of files are drawn by chance, in an order that opening a store again changes.
    let sections = |disk: &Disk| -> Vec<Vec<u8>> {
        files(disk).into_iter().map(|(_, bytes)| bytes.get(256..).unwrap_or_default().to_vec()).collect()
    };
    assert_eq!(sections(&little), sections(&usual));
}

#[test]
fn a_disk_that_is_full_while_edges_are_spilled_leaves_the_store_as_it_was() {
    let disk = filled();
    let least = needed(&disk);
    let expected = build(&store(&disk, None)).expect("edges can be built");
    let before = files(&disk);
    let opened = store(&disk, Some(least));
    let start = disk.calls();
    build(&opened).expect("what is needed suffices");
    let calls = disk.calls() - start;
    for error in [FaultKind::Full, FaultKind::Io] {
        for step in 0..3 {
            let generation = opened.snapshot().generation();
            disk.fail(Fault { at: calls / 2 * step / 3, for_ever: true, error });
            let failed = build(&opened);
            disk.mend();
            assert!(matches!(failed, Err(EdgeError::Commit(CommitError::Storage(_)))), "{failed:?}");
            assert_eq!(opened.snapshot().generation(), generation);
        }
    }
    drop(opened);
    // What could not be removed is swept.
    let again = build(&store(&disk, Some(least))).expect("the disk is mended");
    assert_eq!(
        again.iter().map(|built| built.report).collect::<Vec<_>>(),
        expected.iter().map(|built| built.report).collect::<Vec<_>>()
    );
    drop(store(&disk, None));
    assert!(files(&disk).len() >= before.len());
    Snapshot::open_in(&disk).expect("the store is whole");
}

/// Few rows: every pair is compared by every signal.
const ROWS_SIGNALLED: usize = 150;

/// The memory that a build needs, as it says itself where a byte is too little; so much does, and less does not.
fn least(disk: &Disk, build: impl Fn(&Store) -> Result<Vec<EdgesBuilt>, EdgeError>) -> u64 {
    let refused = |memory| match build(&store(disk, Some(memory))) {
        Err(EdgeError::Commit(CommitError::Memory { needed, allowed, .. })) if allowed == memory => needed,
        other => panic!("{memory} bytes are too little: {other:?}"),
    };
    let needed = refused(1);
    assert_eq!(refused(needed - 1), needed);
    let expected = build(&store(disk, None)).expect("edges can be built");
    let built = build(&store(disk, Some(needed))).expect("what is needed suffices");
    let told =
        |built: &[EdgesBuilt]| built.iter().map(|built| (built.report, built.thresholds.clone())).collect::<Vec<_>>();
    assert_eq!(told(&built), told(&expected));
    needed
}

#[test]
fn builds_by_signals_for_shared_entities_and_of_shares_say_what_memory_they_need() {
    let disk = Disk::default();
    fill(&store(&disk, None), ROWS_SIGNALLED);
    let signal = |what| Signal { what, percentile: 90_000, weight: 1 };
    let signalled = |weighted| {
        let signals = vec![signal(SignalKind::Content), signal(SignalKind::Words)];
        EdgeRules { signals, weighted, ..rules() }
    };
    let build = |rules: EdgeRules| least(&disk, |store| store.build_edges("v", &rules, &Quiet));
    let (agreeing, weighted) = (build(signalled(false)), build(signalled(true)));
    let vectors = (ROWS_SIGNALLED * DIMENSIONS * 4) as u64;
    assert!(agreeing > vectors && weighted > vectors);
    // The more partners, the more memory.
    assert!(build(EdgeRules { top_m: 100, ..signalled(true) }) > weighted);
    let shared = |top_m| EdgeRules { shared: Some(Shared { chunks_max: 4, top_m }), ..rules() };
    assert_eq!(build(shared(9)) - build(shared(1)), 8 * 24 * ROWS_SIGNALLED as u64);
    for rules in [rules(), signalled(false), signalled(true)] {
        let opened = store(&disk, None);
        let share =
            opened.edge_share("v", &rules, EdgeShare { number: 1, of: 1 }, &[], &Quiet).expect("it can be computed");
        drop(opened);
        let shares = [share];
        let joined = least(&disk, |store| store.join_edges("v", &rules, &shares, &Quiet));
        assert!(joined > shares[0].len() as u64);
    }
}
