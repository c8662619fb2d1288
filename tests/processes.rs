//! Many processes on one store: a writer that is killed and begins again, and readers that must not notice.

use crate::stores::Place;
use hedgerow::{Env, OpenError, Quiet, Store, verify};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Seconds where `HEDGEROW_SOAK` names no other number.
const SECONDS: u64 = 20;
const READERS: usize = 8;
/// How long a writer lives at most.
const LIFE: Duration = Duration::from_millis(3100);

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hedgerow-soak"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the process starts")
}

/// Starts a writer and waits until it has committed.
fn start_writer(store: &str, seconds: f64) -> Child {
    let mut writer = start(&["write", store, &seconds.to_string()]);
    let mut line = String::new();
    let out = writer.stdout.as_mut().expect("it is piped");
    BufReader::new(out).read_line(&mut line).expect("it can be read");
    assert!(line == "ready\n", "the writer said {line:?}, then {}", last_words(&mut writer));
    writer
}

/// What a process wrote to standard error until it ended.
fn last_words(child: &mut Child) -> String {
    let mut words = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut words).expect("it is text");
    words
}

/// Another writer is refused, and told who holds the store.
#[track_caller]
fn refuse_second_writer(store: &str, holder: u32) {
    match Store::open(store) {
        Err(OpenError::Locked { holder: named, .. }) => assert_eq!(named, format!(" (process {holder})")),
        opened => panic!("a second writer got {opened:?}"),
    }
}

#[test]
fn readers_see_whole_generations_only_while_writers_are_killed_and_begin_again() {
    let seconds = std::env::var("HEDGEROW_SOAK").map_or(SECONDS, |seconds| seconds.parse().expect("it is a number"));
    let place = Place::new();
    let store = place.path().to_str().expect("the path is text").to_owned();
    let end = Instant::now() + Duration::from_secs(seconds);
    let left = || end.saturating_duration_since(Instant::now());
    let mut writer = start_writer(&store, left().as_secs_f64());
    let readers: Vec<Child> = (0..READERS)
        .map(|number| start(&["read", &store, &left().as_secs_f64().to_string(), &number.to_string()]))
        .collect();
    let (mut kills, mut refused) = (0, 0);
    while left() > LIFE {
        refuse_second_writer(&store, writer.id());
        refused += 1;
        thread::sleep(LIFE.mul_f64(f64::from(kills % 7 + 1) / 7.0));
        assert!(
            writer.try_wait().expect("it is ours").is_none(),
            "the writer ended by itself: {}",
            last_words(&mut writer)
        );
        writer.kill().expect("it is ours");
        writer.wait().expect("it ends");
        kills += 1;
        // The lock's file of the one that was killed is still there.
        writer = start_writer(&store, left().as_secs_f64());
    }
    let mut told = Vec::new();
    for mut reader in readers {
        let mut out = String::new();
        reader.stdout.take().expect("it is piped").read_to_string(&mut out).expect("it is text");
        let words = last_words(&mut reader);
        assert!(reader.wait().expect("it ends").success(), "a reader said: {words}");
        told.push(serde_json::from_str::<Value>(&out).expect("its last line is JSON"));
    }
    let words = last_words(&mut writer);
    assert!(writer.wait().expect("it ends").success(), "the writer said: {words}");
    check_end(&place, &told);
    let progress = fs::read_to_string(place.path().with_extension("progress")).expect("it is there");
    let sum = |name: &str| told.iter().filter_map(|line| line[name].as_u64()).sum::<u64>();
    let [opened, verified, again] = ["opened", "verified", "again"].map(sum);
    println!(
        "{seconds} s, {READERS} readers: {opened} openings checked, {verified} verified, {again} held snapshots asked \
        again; {kills} writers killed, {refused} second writers refused; writers: {progress}"
    );
}

/// Everyone saw something, and in the end nothing is left over.
#[track_caller]
fn check_end(place: &Place, told: &[Value]) {
    for line in told {
        assert!(line["generations"].as_u64() > Some(1) && line["again"].as_u64() > Some(0), "{line}");
    }
    let verified = verify(&Env::folder(&place.path()).expect("it is a folder"), &Quiet);
    assert_eq!(verified.expect("the store can be checked").problems, Vec::<String>::new());
    let store = place.open();
    let named = store.snapshot().stats().expect("it can be counted").segments;
    assert_eq!(count(&place.path().join("segments")), named, "segments that no generation names are left");
    assert_eq!(count(&place.path().join("manifests")), 1, "manifests that nothing names are left");
}

fn count(folder: &Path) -> u64 {
    fs::read_dir(folder).expect("the folder can be read").count() as u64
}
