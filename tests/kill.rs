//! The power of SIGKILL: what `import` has acknowledged is there afterwards, whole, and at most one batch more.

use crate::command::command;
use crate::stores::{Numbers, Place, texts};
use hedgerow::{Env, OpenError, Quiet, Store, verify};
use serde_json::Value;
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;
use std::{fs, thread};

const DOCUMENTS: usize = 120;
const BATCH: usize = 5;
/// Rounds where `HEDGEROW_KILLS` names no other number.
const ROUNDS: usize = 6;

fn key(row: usize) -> String {
    format!("document {row}")
}

fn text(row: usize) -> String {
    format!(
        "Document number {row} is owned by Team {}. {}",
        row % 7,
        "It speaks of bridges and rivers. ".repeat(row % 40)
    )
}

fn write_documents(path: &Path) {
    let mut lines = String::new();
    for row in 0..DOCUMENTS {
        let line = serde_json::json!({"key": key(row), "title": format!("Page {row}"), "text": text(row)});
        writeln!(lines, "{line}").expect("a string takes everything");
    }
    fs::write(path, lines).expect("the file can be written");
}

fn start(store: &Path, documents: &Path) -> Child {
    let mut command = command();
    command.arg("import").arg(store).arg("--documents").arg(documents);
    command.args(["--batch", &BATCH.to_string(), "--json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the command starts")
}

/// Documents that the process has acknowledged until it ended.
fn acknowledged(child: &mut Child) -> usize {
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    let lines = out.lines().map_while(Result::ok);
    let told = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    let totals = told.filter_map(|line| line["total"].as_u64());
    usize::try_from(totals.last().unwrap_or(0)).expect("it is small")
}

#[test]
fn after_a_kill_at_any_moment_all_that_was_acknowledged_is_there_and_whole() {
    let rounds = std::env::var("HEDGEROW_KILLS").map_or(ROUNDS, |rounds| rounds.parse().expect("it is a number"));
    let place = Place::new();
    let documents = place.path().with_file_name("documents.jsonl");
    write_documents(&documents);
    // How long all of it takes, so that kills fall into every part.
    let begin = Instant::now();
    let mut child = start(&place.path(), &documents);
    assert_eq!(acknowledged(&mut child), DOCUMENTS);
    assert!(child.wait().expect("it ends").success());
    let whole = begin.elapsed();
    let mut numbers = Numbers(20_261_130);
    let mut cut_short = 0;
    for round in 0..rounds {
        let place = Place::new();
        let mut before = 0;
        // The store is killed again while it takes up what a kill has left.
        for part in 0..=round % 3 {
            let delay = whole.mul_f64(f64::from(u32::try_from(numbers.below(1000)).expect("it is small")) / 1000.0);
            let mut child = start(&place.path(), &documents);
            thread::sleep(delay);
            child.kill().expect("it is ours");
            let acknowledged = before + acknowledged(&mut child);
            child.wait().expect("it ends");
            before = check(&place, acknowledged, &format!("round {round}, part {part}, after {delay:?}"));
            cut_short += usize::from(before < DOCUMENTS);
        }
        finish(&place, &documents, DOCUMENTS - before);
    }
    assert!(rounds == 0 || cut_short > 0, "no kill came before the end");
}

/// Opens the store and looks at what it holds. Returns how many documents that is.
#[track_caller]
fn check(place: &Place, acknowledged: usize, when: &str) -> usize {
    let store = match Store::open(place.path()) {
        Err(OpenError::NotFound { .. }) if acknowledged == 0 => return 0,
        opened => opened.unwrap_or_else(|error| panic!("{when}: {error}")),
    };
    let held = texts(&store.snapshot());
    drop(store);
    assert!(held.len().is_multiple_of(BATCH), "{when}: {} documents are no whole batches", held.len());
    let more = held.len().checked_sub(acknowledged);
    assert!(
        more.is_some_and(|more| more <= BATCH),
        "{when}: {acknowledged} were acknowledged and {} are there",
        held.len()
    );
    for row in 0..held.len() {
        assert_eq!(held.get(&key(row)), Some(&text(row)), "{when}");
    }
    let verified = verify(&Env::folder(&place.path()).expect("it is a folder"), &Quiet);
    assert_eq!(verified.expect("the store can be checked").problems, Vec::<String>::new(), "{when}");
    held.len()
}

/// The same import again takes up where the last one was killed.
fn finish(place: &Place, documents: &Path, missing: usize) {
    let mut child = start(&place.path(), documents);
    assert_eq!(acknowledged(&mut child), missing);
    assert!(child.wait().expect("it ends").success());
    assert_eq!(check(place, DOCUMENTS, "at the end"), DOCUMENTS);
    assert!(place.read().incomplete().is_empty());
}
