//! What the benches share: the data, the yardsticks of the machine, medians.

mod counted;

pub use crate::counted::{Counted, Counts};

use hedgerow::{Chunking, Document, Pipeline};
use hedgerow_cli::embed::StaticTable;
use hedgerow_cli::extract::Patterns;
use hedgerow_cli::read::lines::{Lines, document_from_json};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A question with the keys of the documents that answer it.
#[derive(Clone, Debug)]
pub struct Gold {
    /// The question.
    pub text: String,
    /// Keys.
    pub keys: Vec<String>,
}

/// The folder with `passages.jsonl` and `questions.jsonl`: `HEDGEROW_DATA`, or the sample that the tests use.
#[must_use]
pub fn data() -> PathBuf {
    std::env::var_os("HEDGEROW_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/multihop-ci"), PathBuf::from)
}

/// All passages of the data.
///
/// # Panics
/// Where the data cannot be read: a bench has nothing else to do.
#[must_use]
pub fn passages() -> Vec<Document> {
    passages_of(&data().join("passages.jsonl"))
}

/// All passages of a file.
///
/// # Panics
/// Where it cannot be read.
#[must_use]
pub fn passages_of(path: &Path) -> Vec<Document> {
    let lines = Lines::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let document = |text: &str| {
        let record = document_from_json(text).expect("a passage");
        Document { metadata: record.metadata, ..Document::new(record.key).title(record.title).text(record.text) }
    };
    lines.map(|line| document(&line.expect("a line").text)).collect()
}

/// All questions of the data.
///
/// # Panics
/// Where the data cannot be read.
#[must_use]
pub fn questions() -> Vec<Gold> {
    let text = fs::read_to_string(data().join("questions.jsonl")).expect("questions.jsonl");
    let gold = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).expect("a question");
        let keys = value["gold"].as_array().expect("gold").iter();
        let keys = keys.map(|key| key.as_str().expect("a key").to_owned()).collect();
        Gold { text: value["question"].as_str().expect("a question").to_owned(), keys }
    };
    text.lines().map(gold).collect()
}

/// The pipeline that the command imports with.
#[must_use]
pub fn pipeline<'m>(table: &'m StaticTable, patterns: &'m Patterns) -> Pipeline<'m> {
    Pipeline { chunking: None::<Chunking>, embedder: Some(table), extractor: Some(patterns) }
}

/// A folder that is removed in the end.
#[derive(Debug)]
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// A fresh folder; `HEDGEROW_SCRATCH` says on which disk.
    ///
    /// # Panics
    /// Where it cannot be made.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let base = std::env::var_os("HEDGEROW_SCRATCH").map_or_else(std::env::temp_dir, PathBuf::from);
        let path = base.join(format!("hedgerow-bench-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a scratch folder");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// The middle of some values.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The value below which 99 of 100 lie.
#[must_use]
pub fn late(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() * 99 / 100).copied().unwrap_or_default()
}

/// Seconds that `work` takes, and what it gives.
pub fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_secs_f64(), result)
}

/// Yardstick: median milliseconds of writing 4 KiB at the end of a file and syncing it, over 101 times.
///
/// # Panics
/// Where the file cannot be written.
#[must_use]
pub fn sync_ms(folder: &Path) -> f64 {
    let path = folder.join("yardstick");
    let mut file = File::create(&path).expect("a file");
    let one = |file: &mut File| {
        let (seconds, ()) = timed(|| {
            file.write_all(&[7; 4096]).expect("a write");
            file.sync_data().expect("a sync");
        });
        seconds * 1e3
    };
    let times = (0..101).map(|_| one(&mut file)).collect();
    fs::remove_file(path).ok();
    median(times)
}

/// Yardstick: gigabytes a second that one thread copies, over 256 MiB.
#[must_use]
pub fn copy_gb_per_s() -> f64 {
    let from = vec![1_u8; 256 << 20];
    let mut to = vec![0_u8; 256 << 20];
    let times = (0..5).map(|_| timed(|| to.copy_from_slice(std::hint::black_box(&from))).0).collect();
    std::hint::black_box(&to);
    0.268_435_456 / median(times)
}

/// Peak memory of this process in megabytes, where the system tells.
#[must_use]
pub fn peak_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse::<f64>().ok());
    kib.unwrap_or_default() * 1024.0 / 1e6
}

/// Bytes of all files below a folder.
#[must_use]
pub fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.sum()
}
