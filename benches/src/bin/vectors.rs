//! What the index of vectors costs as it grows, and what a change does to it: `vectors BASE.npy QUERIES.npy [ROWS,…]`.
//!
//! For each number of rows a store on disk is made of as many rows of BASE, again and again with noise of a tenth of their length once
//! all are used, and queries are put to it, one at a time. Then of a store of all rows three in ten are replaced by others,
//! and its answers are compared with those of a store made afresh. One JSON line each.

use hedgerow::{Batch, Quiet, Recall, Snapshot, StagedChunk, StagedDocument, StagedVector, Store, VectorSearch};
use hedgerow_benches::{median, timed};
use hedgerow_cli::read::npy::Matrix;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const SPACE: &str = "bench";
const NEAREST: usize = 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [base, queries, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: vectors BASE.npy QUERIES.npy [ROWS,…]");
        std::process::exit(2);
    };
    let (base, queries) = (rows_of(base), rows_of(queries));
    let sizes = rest.first().map_or("10000,100000", String::as_str).split(',');
    let sizes = sizes.map(|rows| rows.parse::<usize>().expect("ROWS is a number"));
    for rows in sizes {
        let folder = Folder::new("grown");
        let (seconds, ()) = timed(|| drop(made(&folder.0, &base, 0..rows)));
        let snapshot = Snapshot::open(&folder.0).expect("a store");
        let exact: Vec<BTreeSet<String>> =
            queries.iter().take(200).map(|query| nearest(&snapshot, query, Recall::Exact)).collect();
        for (name, recall) in [("0.95", Recall::At95), ("0.99", Recall::At99)] {
            let (found, rate) = answered(&snapshot, &queries, recall);
            let bytes = snapshot.size().1;
            let recall = shared(&found, &exact);
            println!(
                r#"{{"rows": {rows}, "build_s": {seconds:.2}, "bytes": {bytes}, "setting": "{name}", "recall": {recall:.4}, "qps": {rate:.0}}}"#
            );
        }
    }
    change(&base, &queries);
}

/// Replaces three in ten of the first rows by as many others, and compares with a store made afresh.
fn change(base: &[Vec<f32>], queries: &[Vec<f32>]) {
    let kept = base.len() * 10 / 13;
    let gone = kept * 3 / 10;
    let (changed, fresh) = (Folder::new("changed"), Folder::new("fresh"));
    let store = made(&changed.0, base, 0..kept);
    let mut batch = Batch::default();
    // Every third row and a bit more, so that what goes is everywhere.
    (0..gone).for_each(|row| batch.delete(&name(row * kept / gone)));
    for row in kept..kept + gone {
        batch.put(document(base, row));
    }
    store.commit(batch).expect("the batch is sound");
    let (seconds, ()) = timed(|| store.refresh(&Quiet).expect("an index"));
    let gone: BTreeSet<usize> = (0..gone).map(|row| row * kept / gone).collect();
    let rows = (0..kept + gone.len()).filter(|row| !gone.contains(row));
    let (afresh, other) = timed(|| made(&fresh.0, base, rows));
    for (name, recall) in [("0.95", Recall::At95), ("0.99", Recall::At99)] {
        let [one, two] = [&store, &other].map(|store| {
            let snapshot = store.snapshot();
            let exact: Vec<BTreeSet<String>> =
                queries.iter().take(200).map(|query| nearest(&snapshot, query, Recall::Exact)).collect();
            shared(&answered(&snapshot, queries, recall).0, &exact)
        });
        println!(
            r#"{{"changed_in_s": {seconds:.2}, "made_in_s": {afresh:.2}, "setting": "{name}", "recall_changed": {one:.4}, "recall_afresh": {two:.4}}}"#
        );
    }
}

/// A folder that goes when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hedgerow-vectors-{}-{name}", std::process::id()));
        fs::remove_dir_all(&path).ok();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn rows_of(path: &str) -> Vec<Vec<f32>> {
    let matrix = Matrix::open(Path::new(path)).expect("a matrix");
    matrix.rows().collect::<Result<_, _>>().expect("rows of numbers")
}

/// A store with an index of some rows.
fn made(folder: &Path, base: &[Vec<f32>], rows: impl IntoIterator<Item = usize>) -> Store {
    let store = Store::open_or_create(folder).expect("a store");
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        let mut batch = Batch::default();
        for row in rows.by_ref().take(50_000) {
            batch.put(document(base, row));
        }
        store.commit(batch).expect("the batch is sound");
    }
    store.refresh(&Quiet).expect("an index");
    store
}

fn name(row: usize) -> String {
    format!("{row:09}")
}

fn document(base: &[Vec<f32>], row: usize) -> StagedDocument {
    let mut components = base[row % base.len()].clone();
    if row >= base.len() {
        let mut state = row as u64;
        let scale = 0.1 * 3_f32.sqrt() / f32::from(u16::try_from(components.len()).unwrap_or(u16::MAX)).sqrt();
        for component in &mut components {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let noise = f32::from(u16::try_from(state >> 48).unwrap_or(0)) / 32_768.0 - 1.0;
            *component += noise * scale;
        }
    }
    hedgerow::normalise(&mut components).expect("it has a direction");
    let vectors = vec![StagedVector { space: SPACE.into(), model: SPACE.into(), components }];
    let chunks = vec![StagedChunk { range: 0..1, vectors, ..StagedChunk::default() }];
    StagedDocument { name: name(row), text: "x".into(), chunks, ..StagedDocument::default() }
}

fn nearest(snapshot: &Snapshot, query: &[f32], recall: Recall) -> BTreeSet<String> {
    let search = VectorSearch { recall, ..VectorSearch::new(NEAREST) };
    let found = snapshot.search_vectors(SPACE, query, &search).expect("an answer");
    found.into_iter().map(|found| found.key).collect()
}

/// What is found for all queries, and how many are answered in a second: the middle one of three runs, on one thread.
fn answered(snapshot: &Snapshot, queries: &[Vec<f32>], recall: Recall) -> (Vec<BTreeSet<String>>, f64) {
    let run = || timed(|| queries.iter().map(|query| nearest(snapshot, query, recall)).collect::<Vec<_>>());
    let runs: Vec<_> = (0..3).map(|_| run()).collect();
    let rates = runs.iter().map(|(seconds, _)| count(queries.len()) / seconds).collect();
    let rate = median(rates);
    (runs.into_iter().next().map(|(_, found)| found).unwrap_or_default(), rate)
}

/// Which share of what is nearest was found.
fn shared(found: &[BTreeSet<String>], exact: &[BTreeSet<String>]) -> f64 {
    let right: usize = found.iter().zip(exact).map(|(found, exact)| found.intersection(exact).count()).sum();
    count(right) / count(exact.iter().map(BTreeSet::len).sum())
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
