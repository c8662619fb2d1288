//! The writer: one stamp after another, each a whole commit, with refreshes, edges and compactions between them.

use crate::content;
use crate::progress::Progress;
use hedgerow::{Batch, Committed, Document, EdgeRules, Quiet, Store};
use hedgerow_durability::PIPELINE;
use std::path::Path;
use std::time::{Duration, Instant};

/// Stamps between two refreshes.
const REFRESH_EVERY: u64 = 3;
/// Stamps between two times that similarity edges are built anew.
const EDGES_EVERY: u64 = 50;
/// Stamps between two times that everything is compacted, beside what commits merge.
const COMPACT_EVERY: u64 = 20;
/// Time between two times that the store is closed and opened again: a writer that has just begun holds it.
const CLOSE_EVERY: Duration = Duration::from_secs(1);

/// Commits until the end, or until it is killed. Says `ready` once the store holds a stamp.
pub fn write(path: &Path, end: Instant) -> Result<(), String> {
    let mut store = Store::open_or_create(path).map_err(|error| error.to_string())?;
    let mut progress = Progress::read(path)?;
    let mut stamp = content::stamp_of(&store.snapshot())?;
    if stamp < progress.get("stamp") {
        return Err(format!("stamp {} was acknowledged, and the store is at {stamp}", progress.get("stamp")));
    }
    let (mut ready, mut opened) = (false, Instant::now());
    while Instant::now() < end || !ready {
        stamp += 1;
        let committed = commit(&store, stamp)?;
        progress.set("stamp", stamp);
        progress.add("puts", committed.added + committed.replaced);
        progress.add("deletions", committed.deleted);
        progress.add("merged", committed.merged.segments_read);
        if stamp.is_multiple_of(REFRESH_EVERY) {
            store.refresh(&Quiet).map_err(|error| error.to_string())?;
            progress.add("refreshes", 1);
        }
        if stamp.is_multiple_of(EDGES_EVERY) {
            let rules = EdgeRules { top_m: 3, ..EdgeRules::default() };
            store.build_edges("letters", &rules, &Quiet).map_err(|error| error.to_string())?;
            progress.add("edges", 1);
        }
        if stamp.is_multiple_of(COMPACT_EVERY) {
            let compacted = store.compact(&Quiet).map_err(|error| error.to_string())?;
            progress.add("compacted", compacted.segments_read);
        }
        progress.write(path)?;
        if opened.elapsed() > CLOSE_EVERY {
            store.close().map_err(|error| error.to_string())?;
            progress.add("closed", 1);
            store = Store::open(path).map_err(|error| error.to_string())?;
            opened = Instant::now();
        }
        if !ready {
            println!("ready");
            ready = true;
        }
    }
    Ok(())
}

/// Brings the store to a stamp.
fn commit(store: &Store, stamp: u64) -> Result<Committed, String> {
    let snapshot = store.snapshot();
    let (before, after) = (content::texts(&snapshot)?, content::content(stamp));
    if let Some(difference) = content::difference(stamp - 1, &before) {
        return Err(format!("before stamp {stamp}: {difference}"));
    }
    let mut batch = Batch::default();
    let documents = after.iter().map(|(key, text)| Document::new(key).title(content::title(key)).text(text)).collect();
    let staged = PIPELINE.stage(&snapshot, documents, &mut batch, &Quiet).map_err(|error| error.to_string())?;
    if !staged.rejected.is_empty() {
        return Err(format!("rejected: {:?}", staged.rejected));
    }
    before.keys().filter(|key| !after.contains_key(*key)).for_each(|key| batch.delete(key));
    let committed = store.commit(batch).map_err(|error| error.to_string())?;
    match &committed.merge_fault {
        Some(fault) => Err(format!("stamp {stamp} could not be merged: {fault}")),
        None => Ok(committed),
    }
}
