//! Input that is too large: one rejected record with a reason, and memory that has a bound.

use crate::command::command;
use crate::stores::{Place, texts};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use std::{fs, thread};
use tempfile::TempDir;

const MEBIBYTE: u64 = 1 << 20;
/// A file far beyond the limit of 64 MiB; it has a hole, so that it takes no room.
const LARGE: u64 = 200 * MEBIBYTE;
/// What the command may need: the longest line, and what it needs for any work.
const PEAK_MAX: u64 = 160 * MEBIBYTE;

struct Ran {
    code: i32,
    told: Value,
    err: String,
    /// The most memory that it had, where the system tells.
    peak: Option<u64>,
}

/// Runs the command and watches its memory.
fn run(arguments: &[&Path]) -> Ran {
    let mut child = command();
    let child = child.args(arguments).arg("--json").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().expect("the command starts");
    let mut peak = None;
    let status = loop {
        peak = peak_of(child.id()).or(peak);
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            break status;
        }
        thread::sleep(Duration::from_millis(1));
    };
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().expect("it is piped").read_to_string(&mut out).expect("it writes text");
    child.stderr.take().expect("it is piped").read_to_string(&mut err).expect("it writes text");
    let told = out.lines().next_back().map_or(Value::Null, |line| serde_json::from_str(line).expect("it is JSON"));
    Ran { code: status.code().expect("it was not killed"), told, err, peak }
}

fn peak_of(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

/// A file that is `start`, zeros up to [`LARGE`] bytes, and `end`.
fn large(folder: &Path, name: &str, start: &str, end: &str) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("it has one")).expect("the folder can be made");
    let mut file = File::create(&path).expect("the file can be made");
    file.write_all(start.as_bytes()).expect("there is room");
    file.seek(SeekFrom::Start(LARGE)).expect("a file may have holes");
    file.write_all(end.as_bytes()).expect("there is room");
    file.set_len(LARGE + end.len() as u64).expect("a file may have holes");
    path
}

/// The reasons of all rejected records.
fn check(ran: &Ran, code: i32, rejected: usize) -> Vec<String> {
    assert_eq!(ran.code, code, "{}", ran.err);
    let lines = ran.err.lines().filter(|line| line.starts_with("rejected ")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines.len(), rejected, "{}", ran.err);
    if rejected > 0 {
        assert_eq!(ran.told["rejected_count"], rejected);
    }
    if let Some(peak) = ran.peak {
        assert!(peak < PEAK_MAX, "it had {} MiB", peak / MEBIBYTE);
    }
    lines
}

#[test]
fn documents_of_200_mebibytes_are_rejected_one_by_one_in_bounded_memory() {
    let (folder, place) = (TempDir::new().expect("there is room"), Place::new());
    let notes = folder.path().join("notes");
    for name in ["large.txt", "large.md"] {
        large(&notes, name, "# Title\n\nText.", "");
    }
    let line = r#"{"id":"ok","text":"A good line."}"#;
    let lines = large(&notes, "lines.jsonl", r#"{"id":"large","text":""#, &format!("\"}}\n{line}\n"));
    fs::write(notes.join("small.txt"), "A small file.").expect("there is room");
    let reasons = check(&run(&["ingest".as_ref(), &place.path(), &notes]), 1, 3);
    for (reason, place) in reasons.iter().zip(["large.md: ", "large.txt: ", "lines.jsonl:1: "]) {
        assert!(reason.contains(place) && reason.contains("bytes") && reason.contains("split"), "{reason}");
    }
    let good = ["notes/small.txt", "ok"];
    assert!(texts(&place.read()).keys().eq(good), "{:?}", texts(&place.read()));
    let reasons = check(&run(&["import".as_ref(), &place.path(), "--documents".as_ref(), &lines]), 1, 1);
    assert!(reasons[0].contains("lines.jsonl:1: the line is longer than 67108864 bytes"), "{reasons:?}");
    let triple = r#"{"subject":"Alice","predicate":"owns","object":"Bridge"}"#;
    let triples = large(folder.path(), "triples.jsonl", r#"{"subject":""#, &format!("\"}}\n{triple}\n"));
    let reasons = check(&run(&["import".as_ref(), &place.path(), "--triples".as_ref(), &triples]), 1, 1);
    assert!(reasons[0].contains("triples.jsonl:1: the line is longer"), "{reasons:?}");
}

#[test]
fn matrices_are_believed_only_as_far_as_their_files_reach() {
    let (folder, place) = (TempDir::new().expect("there is room"), Place::new());
    crate::stores::put(&place.open(), &[("d0", "Alice owns Bridge."), ("d1", "The Bridge.")]);
    let matrix = |shape: &str| {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let length = u16::try_from(header.len()).expect("it is short").to_le_bytes();
        let path = folder.path().join("matrix.npy");
        let data = [1.0_f32; 8].map(f32::to_le_bytes).concat();
        fs::write(&path, [b"\x93NUMPY\x01\0".as_slice(), &length, header.as_bytes(), &data].concat())
            .expect("there is room");
        path
    };
    let import = |matrix: &Path, ids: &Path| {
        run(&["import".as_ref(), &place.path(), "--vectors".as_ref(), matrix, "--ids".as_ref(), ids])
    };
    let ids = large(folder.path(), "ids.txt", "d0", "\nd1\n");
    for shape in ["1152921504606846976, 4", "1152921504606846976, 1152921504606846976", "3, 4"] {
        let ran = import(&matrix(shape), &ids);
        check(&ran, 2, 0);
        assert!(ran.err.contains("it was cut off"), "{}", ran.err);
    }
    let reasons = check(&import(&matrix("2, 4"), &ids), 1, 1);
    assert!(reasons[0].contains("ids.txt:1: the line is longer"), "{reasons:?}");
}
