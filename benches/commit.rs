//! What a small commit costs, beside `SQLite` and redb with the same document, in one run and interleaved.
//!
//! Everybody makes one document durable at a time: its syncs are counted for Hedgerow, its time is taken for all. Hedgerow
//! reads the document with the embedder and extractor of the command, and merges segments as it goes; links are left
//! behind, as they are between refreshes. `SQLite` has a table of key and text with an index on the key, in WAL mode with
//! `synchronous=FULL`; once so, and once with a full-text index beside it, which is nearer to what Hedgerow keeps. redb has
//! one table from key to text, with its default commit and with the two-phase commit that Hedgerow's catalog uses.

use hedgerow::{Batch, Document, Env, Pipeline, Quiet, Store};
use hedgerow_benches::{Counted, Counts, Scratch, late, median, pipeline, timed};
use hedgerow_cli::embed::StaticTable;
use hedgerow_cli::extract::Patterns;
use redb::{Database, TableDefinition};
use rusqlite::Connection;
use serde_json::json;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Commits of each, where `HEDGEROW_COMMITS` names no other number.
const COMMITS: usize = 2000;
/// Commits that are not counted: files are made and grow.
const WARM: usize = 20;

/// Makes a text durable under a key.
type Commit<'s> = Box<dyn FnMut(&str, &str) + 's>;

/// Somebody who makes a document durable: what it is, and what it does with key and text.
struct Subject<'s> {
    name: &'static str,
    commit: Commit<'s>,
    times: Vec<f64>,
}

impl<'s> Subject<'s> {
    fn new(name: &'static str, commit: impl FnMut(&str, &str) + 's) -> Self {
        Self { name, commit: Box::new(commit), times: Vec::new() }
    }

    fn time(&mut self, key: &str, text: &str) {
        let (seconds, ()) = timed(|| (self.commit)(key, text));
        self.times.push(seconds * 1e3);
    }
}

fn main() {
    let commits = std::env::var("HEDGEROW_COMMITS").map_or(COMMITS, |commits| commits.parse().expect("a number"));
    let scratch = Scratch::new("commit");
    let folder = scratch.0.as_path();
    let (disk, counts) = Counted::new(&folder.join("store"));
    let store = Store::open_or_create_in(Env::new(Arc::new(disk))).expect("a store");
    drop(counts.take_syncs());
    let (table, patterns) = (StaticTable::default(), Patterns);
    let pipeline = pipeline(&table, &patterns);
    let mut syncs = Syncs::default();
    let mut subjects = vec![
        Subject::new("one sync", sync(folder)),
        Subject::new("hedgerow", |key, text| hedgerow(&store, pipeline, (key, text), &counts, &mut syncs)),
        Subject::new("sqlite", sqlite(folder, FullText::No)),
        Subject::new("sqlite, fts5", sqlite(folder, FullText::Yes)),
        Subject::new("redb", redb(folder, Phases::One)),
        Subject::new("redb, 2 phases", redb(folder, Phases::Two)),
    ];
    for number in 0..WARM + commits {
        let text = format!("Note {number} of Ada Hale: a hedgerow is a pruned row of interwoven plants.");
        // Each follows each other one equally often.
        let first = number % subjects.len();
        for turn in 0..subjects.len() {
            let place = (first + turn) % subjects.len();
            subjects[place].time(&format!("note-{number}"), &text);
        }
    }
    let times: Vec<(&str, Vec<f64>)> =
        subjects.into_iter().map(|subject| (subject.name, subject.times[WARM..].to_vec())).collect();
    print(commits, &times, &syncs);
}

fn print(commits: usize, times: &[(&str, Vec<f64>)], syncs: &Syncs) {
    println!("{commits} commits of one small document each, milliseconds");
    println!("{:<16} {:>8} {:>8} {:>12} {:>12}", "", "median", "p99", "first tenth", "last tenth");
    let mut rows = Vec::new();
    for (name, times) in times {
        let tenth = (times.len() / 10).max(1);
        let of = |part: &[f64]| median(part.to_vec());
        let (first, last) = (of(&times[..tenth]), of(&times[times.len() - tenth..]));
        let (middle, late) = (of(times), late(times.clone()));
        println!("{name:<16} {middle:>8.3} {late:>8.3} {first:>12.3} {last:>12.3}");
        rows.push(json!({"name": name, "median_ms": middle, "p99_ms": late, "first_ms": first, "last_ms": last}));
    }
    let plain = median(syncs.plain.clone());
    let most = syncs.most.len();
    println!("syncs of a commit without merging: median {plain:.0}, most {most}: {}", syncs.most.join(", "));
    let share = 100 * syncs.merging.len() / (syncs.merging.len() + syncs.plain.len());
    println!("commits that merged: {share} %, with {:.0} syncs (median)", median(syncs.merging.clone()));
    let syncs = json!({"median": plain, "most": most, "merging_percent": share});
    println!("{}", json!({"bench": "commit", "commits": commits, "syncs": syncs, "rows": rows}));
}

/// Numbers of syncs of commits.
#[derive(Debug, Default)]
struct Syncs {
    plain: Vec<f64>,
    merging: Vec<f64>,
    /// The longest list of a commit that merged nothing.
    most: Vec<String>,
}

fn hedgerow(store: &Store, pipeline: Pipeline<'_>, note: (&str, &str), counts: &Counts, syncs: &mut Syncs) {
    let mut batch = Batch::default();
    let document = Document::new(note.0).text(note.1);
    pipeline.stage(&store.snapshot(), vec![document], &mut batch, &Quiet).expect("staged");
    let committed = store.commit(batch).expect("a commit");
    let synced = counts.take_syncs();
    let count = f64::from(u32::try_from(synced.len()).expect("few syncs"));
    if committed.merged.segments_read > 0 {
        syncs.merging.push(count);
        return;
    }
    syncs.plain.push(count);
    if synced.len() > syncs.most.len() {
        syncs.most = synced;
    }
}

/// The yardstick: 4 KiB at the end of a file.
fn sync(folder: &Path) -> impl FnMut(&str, &str) + use<> {
    let mut file = File::create(folder.join("yardstick")).expect("a file");
    move |_, _| {
        file.write_all(&[7; 4096]).expect("a write");
        file.sync_data().expect("a sync");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FullText {
    No,
    Yes,
}

fn sqlite(folder: &Path, full_text: FullText) -> impl FnMut(&str, &str) + use<> {
    let connection = Connection::open(folder.join(format!("{full_text:?}.sqlite"))).expect("a database");
    let mode: String = connection.query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0)).expect("a mode");
    assert_eq!(mode, "wal");
    connection
        .execute_batch("PRAGMA synchronous=FULL; CREATE TABLE note (key TEXT PRIMARY KEY, text TEXT)")
        .expect("set");
    if full_text == FullText::Yes {
        connection.execute_batch("CREATE VIRTUAL TABLE words USING fts5 (text)").expect("an index");
    }
    move |key, text| {
        let transaction = connection.unchecked_transaction().expect("a transaction");
        let put = |sql, values: &[&str]| {
            let mut statement = transaction.prepare_cached(sql).expect("a statement");
            statement.execute(rusqlite::params_from_iter(values)).expect("a row");
        };
        put("INSERT OR REPLACE INTO note VALUES (?1, ?2)", &[key, text]);
        if full_text == FullText::Yes {
            put("INSERT INTO words (text) VALUES (?1)", &[text]);
        }
        transaction.commit().expect("a commit");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phases {
    One,
    Two,
}

fn redb(folder: &Path, phases: Phases) -> impl FnMut(&str, &str) + use<> {
    const NOTES: TableDefinition<'_, &str, &str> = TableDefinition::new("note");
    let database = Database::create(folder.join(format!("{phases:?}.redb"))).expect("a database");
    move |key, text| {
        let mut transaction = database.begin_write().expect("a transaction");
        transaction.set_two_phase_commit(phases == Phases::Two);
        transaction.set_quick_repair(phases == Phases::Two);
        transaction.open_table(NOTES).expect("a table").insert(key, text).expect("a row");
        transaction.commit().expect("a commit");
    }
}
