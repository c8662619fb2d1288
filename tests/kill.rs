//! The power of SIGKILL: what `import` has acknowledged is there afterwards, whole, and at most one batch more; every other
//! command that writes is done or not.

use crate::command::command;
use crate::stores::{Numbers, Place, texts};
use hedgerow::{Env, OpenError, Quiet, Snapshot, Store, verify};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

pub const DOCUMENTS: usize = 120;
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

pub fn write_documents(path: &Path) {
    let mut lines = String::new();
    for row in 0..DOCUMENTS {
        let line = serde_json::json!({"key": key(row), "title": format!("Page {row}"), "text": text(row)});
        writeln!(lines, "{line}").expect("a string takes everything");
    }
    fs::write(path, lines).expect("the file can be written");
}

pub fn start(store: &Path, documents: &Path) -> Child {
    let mut command = command();
    command.arg("import").arg(store).arg("--documents").arg(documents);
    command.args(["--batch", &BATCH.to_string(), "--json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the command starts")
}

/// Documents that the process has acknowledged until it ended.
pub fn acknowledged(child: &mut Child) -> usize {
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    let lines = out.lines().map_while(Result::ok);
    let told = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    let totals = told.filter_map(|line| line["total"].as_u64());
    usize::try_from(totals.last().unwrap_or(0)).expect("it is small")
}

/// A number of rounds: the one that `HEDGEROW_KILLS` names, or another.
fn rounds(otherwise: usize) -> usize {
    std::env::var("HEDGEROW_KILLS").map_or(otherwise, |rounds| rounds.parse().expect("it is a number"))
}

/// A moment within a time.
pub fn moment(whole: Duration, numbers: &mut Numbers) -> Duration {
    whole.mul_f64(f64::from(u32::try_from(numbers.below(1000)).expect("it is small")) / 1000.0)
}

#[test]
fn after_a_kill_at_any_moment_all_that_was_acknowledged_is_there_and_whole() {
    let rounds = rounds(ROUNDS);
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
    let (mut cut_short, mut kills) = (0, 0);
    for round in 0..rounds {
        let place = Place::new();
        let mut before = 0;
        // The store is killed again while it takes up what a kill has left.
        for part in 0..=round % 3 {
            let delay = moment(whole, &mut numbers);
            let mut child = start(&place.path(), &documents);
            thread::sleep(delay);
            child.kill().expect("it is ours");
            kills += 1;
            let acknowledged = before + acknowledged(&mut child);
            child.wait().expect("it ends");
            before = check(&place.path(), acknowledged, &format!("round {round}, part {part}, after {delay:?}"));
            cut_short += usize::from(before < DOCUMENTS);
        }
        finish(&place, &documents, DOCUMENTS - before);
    }
    println!("{kills} kills of import, {cut_short} of them before the end");
    assert!(rounds == 0 || cut_short > 0, "no kill came before the end");
}

/// Opens the store and looks at what it holds. Returns how many documents that is.
#[track_caller]
pub fn check(path: &Path, acknowledged: usize, when: &str) -> usize {
    let store = match Store::open(path) {
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
    let verified = verify(&Env::folder(path).expect("it is a folder"), &Quiet);
    assert_eq!(verified.expect("the store can be checked").problems, Vec::<String>::new(), "{when}");
    held.len()
}

/// The same import again takes up where the last one was killed.
fn finish(place: &Place, documents: &Path, missing: usize) {
    let mut child = start(&place.path(), documents);
    assert_eq!(acknowledged(&mut child), missing);
    assert!(child.wait().expect("it ends").success());
    assert_eq!(check(&place.path(), DOCUMENTS, "at the end"), DOCUMENTS);
    assert!(place.read().incomplete().is_empty());
}

/// Rounds of every command where `HEDGEROW_KILLS` names no other number.
const ROUNDS_EACH: usize = 2;
/// Files that are ingested.
const FILES: usize = 12;

/// A command that is done or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Deed {
    Ingest,
    Remove,
    Edges,
    Compact,
}

const DEEDS: [Deed; 4] = [Deed::Ingest, Deed::Remove, Deed::Edges, Deed::Compact];

/// What is in the store, by key.
type Held = BTreeMap<String, String>;

/// A store beside the files that it is made of.
struct Bench {
    place: Place,
    held: Held,
    /// How long each deed took when nothing stopped it.
    took: BTreeMap<Deed, Duration>,
}

impl Bench {
    fn files(&self) -> PathBuf {
        self.place.path().with_file_name("notes")
    }

    /// Prepares a deed: its arguments, and what the store holds when it is done.
    fn prepare(&self, deed: Deed, numbers: &mut Numbers) -> (Vec<String>, Held) {
        let store = self.place.path().to_str().expect("the path is text").to_owned();
        let mut after = self.held.clone();
        let (verb, rest) = match deed {
            Deed::Ingest => {
                fs::create_dir_all(self.files()).expect("the folder can be made");
                for file in 0..FILES {
                    let (name, stamp) = (format!("page-{file}.txt"), numbers.below(4));
                    let text = format!("Page {file} of stamp {stamp} is about Ada Hale and Dover Bridge.");
                    fs::write(self.files().join(&name), &text).expect("the file can be written");
                    after.insert(format!("notes/{name}"), text);
                }
                ("ingest", vec![self.files().to_str().expect("the path is text").to_owned()])
            }
            Deed::Remove => {
                let keys: Vec<String> = after.keys().filter(|_| numbers.below(3) == 0).take(5).cloned().collect();
                let keys = if keys.is_empty() { after.keys().take(1).cloned().collect() } else { keys };
                for key in &keys {
                    after.remove(key);
                }
                ("rm", keys)
            }
            Deed::Edges => ("edges", vec!["--top-m".into(), (1 + numbers.below(3)).to_string()]),
            Deed::Compact => ("compact", Vec::new()),
        };
        ([vec![verb.to_owned(), store], rest].concat(), after)
    }

    /// Does a deed to its end.
    #[track_caller]
    fn finish(&mut self, deed: Deed, numbers: &mut Numbers) {
        let (arguments, after) = self.prepare(deed, numbers);
        let begin = Instant::now();
        let output = command().args(&arguments).output().expect("the command starts");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        self.took.insert(deed, begin.elapsed());
        self.held = after;
        self.look(&self.held, &format!("after {deed:?}"));
        assert_eq!(self.place.read().incomplete(), Vec::<String>::new(), "after {deed:?}");
    }

    /// Kills a deed at some moment, up to three times in a row. Tells whether it was done all the same.
    #[track_caller]
    fn kill(&mut self, deed: Deed, times: usize, numbers: &mut Numbers) -> bool {
        let (arguments, after) = self.prepare(deed, numbers);
        for _ in 0..times {
            let mut command = command();
            let mut child = command.args(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            let child = child.as_mut().expect("the command starts");
            thread::sleep(moment(self.took[&deed], numbers));
            child.kill().expect("it is ours");
            child.wait().expect("it ends");
        }
        let when = format!("{arguments:?} was killed {times} times");
        let store = Store::open(self.place.path()).unwrap_or_else(|error| panic!("{when}: {error}"));
        let found = texts(&store.snapshot());
        drop(store);
        let done = found == after;
        self.look(if done { &after } else { &self.held }, &when);
        self.held = found;
        done
    }

    /// The store holds just this, all of it is sound.
    #[track_caller]
    fn look(&self, held: &Held, when: &str) {
        let snapshot = self.place.read();
        assert_eq!(&texts(&snapshot), held, "{when}");
        let verified = verify(&Env::folder(&self.place.path()).expect("it is a folder"), &Quiet);
        assert_eq!(verified.expect("the store can be checked").problems, Vec::<String>::new(), "{when}");
    }
}

#[test]
fn a_command_that_is_killed_is_done_or_not_and_the_store_is_sound() {
    let mut bench = Bench { place: Place::new(), held: Held::new(), took: BTreeMap::new() };
    let mut numbers = Numbers(20_261_130);
    for deed in DEEDS {
        bench.finish(deed, &mut numbers);
    }
    let (mut kills, mut done) = (0, 0);
    for round in 0..rounds(ROUNDS_EACH) {
        for deed in DEEDS {
            let times = 1 + round % 3;
            done += usize::from(bench.kill(deed, times, &mut numbers));
            kills += times;
        }
        bench.finish(Deed::Ingest, &mut numbers);
    }
    println!("{kills} kills of {DEEDS:?}; {done} times what the last one was to do was done all the same");
}

/// Copies of a store, and what mends it, are killed at some moment.
struct Copies {
    bench: Bench,
    numbers: Numbers,
    kills: usize,
}

impl Copies {
    /// Starts a command and kills it before it took as long as it takes.
    fn kill(&mut self, arguments: &[&str], took: Duration) {
        let mut command = command();
        let child = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("the command starts");
        thread::sleep(moment(took, &mut self.numbers));
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
        self.kills += 1;
    }

    #[track_caller]
    fn finish(arguments: &[&str]) -> Duration {
        let begin = Instant::now();
        let output = command().args(arguments).output().expect("the command starts");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        begin.elapsed()
    }

    /// A backup over an older pack: the pack holds what one of them was made of.
    fn backup(&mut self, store: &str, pack: &str, older: &Held) {
        let arguments = ["backup", store, pack, "--replace"];
        let kept = fs::read(pack).expect("there is an older pack");
        let took = Self::finish(&arguments);
        fs::write(pack, kept).expect("the older pack can be put back");
        self.kill(&arguments, took);
        let found = texts(&Snapshot::open(pack).unwrap_or_else(|error| panic!("a killed backup: {error}")));
        assert!(found == *older || found == self.bench.held, "a killed backup holds something else");
        Self::finish(&arguments);
        assert_eq!(texts(&Snapshot::open(pack).expect("it opens")), self.bench.held);
        for left in fs::read_dir(Path::new(pack).parent().expect("it is in a folder")).expect("it can be listed") {
            let name = left.expect("it can be listed").file_name();
            let name = name.to_str().expect("names are text");
            if Path::new(name).extension().is_some_and(|extension| extension == "new") {
                fs::remove_file(Path::new(pack).with_file_name(name)).expect("it can be removed");
            }
        }
    }

    /// A restore: no store is there yet or all of it, and doing it again completes it.
    fn restore(&mut self, pack: &str, folder: &str) {
        let arguments = ["restore", pack, folder];
        let took = Self::finish(&arguments);
        fs::remove_dir_all(folder).expect("it can be removed");
        self.kill(&arguments, took);
        if let Ok(snapshot) = Snapshot::open(folder) {
            assert_eq!(texts(&snapshot), self.bench.held, "a killed restore");
        } else {
            Self::finish(&arguments);
        }
        let store = Store::open(folder).unwrap_or_else(|error| panic!("a restored store: {error}"));
        assert_eq!(texts(&store.snapshot()), self.bench.held);
        drop(store);
        fs::remove_dir_all(folder).expect("it can be removed");
    }

    /// A repair of a store without its catalog or `HEAD`.
    fn repair(&mut self, store: &str) {
        let lost = ["catalog.redb", "HEAD"][self.numbers.below(2)];
        let lose = || fs::remove_file(Path::new(store).join(lost)).expect("it is there");
        lose();
        let took = Self::finish(&["repair", store]);
        lose();
        self.kill(&["repair", store], took);
        Self::finish(&["repair", store]);
        self.bench.look(&self.bench.held, "a killed repair, done again");
    }
}

#[test]
fn a_backup_a_restore_or_a_repair_that_is_killed_can_be_done_again_and_loses_nothing() {
    let bench = Bench { place: Place::new(), held: Held::new(), took: BTreeMap::new() };
    let mut copies = Copies { bench, numbers: Numbers(20_261_201), kills: 0 };
    let path = copies.bench.place.path();
    let name = |name: &str| path.with_file_name(name).to_str().expect("the path is text").to_owned();
    let (store, pack, folder) = (name("store"), name("copy.pack"), name("restored"));
    assert_eq!(Path::new(&store), path, "the store is beside its copies");
    copies.bench.finish(Deed::Ingest, &mut Numbers(1));
    Copies::finish(&["backup", &store, &pack]);
    for round in 0..rounds(ROUNDS_EACH) {
        let older = copies.bench.held.clone();
        copies.bench.finish(Deed::Ingest, &mut Numbers(2 + round as u64));
        copies.backup(&store, &pack, &older);
        copies.restore(&pack, &folder);
        copies.repair(&store);
    }
    println!("{} kills of backup, restore and repair", copies.kills);
}
