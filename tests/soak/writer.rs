//! The writer: one stamp after another, each a whole commit, with refreshes and edges between them.

use crate::content;
use crate::models::PIPELINE;
use crate::progress::Progress;
use hedgerow::{Batch, Document, EdgeRules, Quiet, Store};
use std::path::Path;
use std::time::Instant;

/// Stamps between two refreshes.
const REFRESH_EVERY: u64 = 3;
/// Stamps between two times that similarity edges are built anew.
const EDGES_EVERY: u64 = 50;

/// Commits until the end, or until it is killed. Says `ready` once the store holds a stamp.
pub fn write(path: &Path, end: Instant) -> Result<(), String> {
    let store = Store::open_or_create(path).map_err(|error| error.to_string())?;
    let mut progress = Progress::read(path)?;
    let mut stamp = content::stamp_of(&store.snapshot())?;
    if stamp < progress.get("stamp") {
        return Err(format!("stamp {} was acknowledged, and the store is at {stamp}", progress.get("stamp")));
    }
    let mut ready = false;
    while Instant::now() < end || !ready {
        stamp += 1;
        let (puts, deletions) = commit(&store, stamp)?;
        progress.set("stamp", stamp);
        progress.add("puts", puts);
        progress.add("deletions", deletions);
        if stamp.is_multiple_of(REFRESH_EVERY) {
            store.refresh(&Quiet).map_err(|error| error.to_string())?;
            progress.add("refreshes", 1);
        }
        if stamp.is_multiple_of(EDGES_EVERY) {
            let rules = EdgeRules { top_m: 3, ..EdgeRules::default() };
            store.build_edges("letters", rules, &Quiet).map_err(|error| error.to_string())?;
            progress.add("edges", 1);
        }
        progress.write(path)?;
        if !ready {
            println!("ready");
            ready = true;
        }
    }
    Ok(())
}

/// Brings the store to a stamp. Returns how many documents it put and deleted.
fn commit(store: &Store, stamp: u64) -> Result<(u64, u64), String> {
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
    Ok((committed.added + committed.replaced, committed.deleted))
}
