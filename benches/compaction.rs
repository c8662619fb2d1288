//! What merging costs and saves: bytes written and kept for each byte of content, over many commits of one document each.
//!
//! Six of ten commits add a document, three replace one, one deletes one. Content is text and f32 vectors, as they are given.

use hedgerow::{Batch, Document, Env, Quiet, Store};
use hedgerow_benches::{Counted, Scratch, folder_bytes, late, median, passages, pipeline, timed};
use hedgerow_cli::embed::StaticTable;
use hedgerow_cli::extract::Patterns;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Commits, where `HEDGEROW_COMMITS` names no other number.
const COMMITS: usize = 10_000;
/// Commits between two looks at the folder.
const LOOK_EVERY: usize = 250;
/// Bytes of a vector.
const VECTOR_BYTES: usize = 256 * 4;

/// What the commits came to.
#[derive(Debug, Default)]
struct Sums {
    times: Vec<f64>,
    merging: Vec<f64>,
    given: usize,
    merged_bytes: u64,
    segments_most: u64,
    folder_most: f64,
    live: BTreeMap<String, String>,
}

fn main() {
    let commits = std::env::var("HEDGEROW_COMMITS").map_or(COMMITS, |commits| commits.parse().expect("a number"));
    let scratch = Scratch::new("compaction");
    let folder = scratch.0.join("store");
    let (disk, counts) = Counted::new(&folder);
    let store = Store::open_or_create_in(Env::new(Arc::new(disk))).expect("a store");
    let sums = run(&store, &folder, commits);
    let (written, segments) = (counts.written(), store.snapshot().stats().expect("counts").segments);
    store.close().expect("closed");
    let store = Store::open(&folder).expect("a store");
    let closed = ratio(folder_bytes(&folder), fresh_bytes(&sums.live));
    store.compact(&Quiet).expect("compacted");
    drop(store);
    let compacted = ratio(folder_bytes(&folder), fresh_bytes(&sums.live));
    let all: Vec<f64> = sums.times.iter().chain(&sums.merging).copied().collect();
    let (plain, merging, total) = (median(sums.times.clone()), median(sums.merging.clone()), all.iter().sum::<f64>());
    let share = (sums.merging.iter().sum::<f64>() - sums.merging.iter().map(|_| plain).sum::<f64>()) / total;
    let amplification = ratio(written, sums.given as u64);
    let of_merging = ratio(sums.merged_bytes, sums.given as u64);
    let longest = all.iter().copied().fold(0.0, f64::max);
    println!(
        "{commits} commits of one document; {} live documents; content given {} bytes",
        sums.live.len(),
        sums.given
    );
    println!("written: {amplification:.2} bytes for each byte of content, {of_merging:.2} of them by merging");
    println!("commit: median {:.2} ms, p99 {:.2} ms, longest {longest:.1} ms", median(all.clone()), late(all.clone()));
    println!(
        "merging: in {} commits, median {merging:.2} ms beside {plain:.2} ms without; {:.0} % of all time",
        sums.merging.len(),
        share * 100.0
    );
    println!("segments: {segments} in the end, at most {}", sums.segments_most);
    println!(
        "folder beside a fresh store of the same documents: at most {:.2}, closed {closed:.2}, compacted {compacted:.2}",
        sums.folder_most
    );
    println!(
        "{}",
        json!({"bench": "compaction", "commits": commits, "content_bytes": sums.given, "written_bytes": written,
            "write_amplification": amplification, "by_merging": of_merging, "median_ms": median(all.clone()),
            "p99_ms": late(all), "longest_ms": longest, "merging_commits": sums.merging.len(), "merging_ms": merging,
            "merging_share": share, "segments": segments, "segments_most": sums.segments_most,
            "space_most": sums.folder_most, "space_closed": closed, "space_compacted": compacted})
    );
}

fn run(store: &Store, folder: &Path, commits: usize) -> Sums {
    let (table, patterns, texts) = (StaticTable::default(), Patterns, passages());
    let mut sums = Sums::default();
    let mut numbers = 1848_u64;
    let mut below = |end: usize| {
        numbers = numbers.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(numbers >> 33).unwrap_or_default() % end.max(1)
    };
    for number in 0..commits {
        let text = &texts[number % texts.len()].text;
        let mut batch = Batch::default();
        let old = sums.live.keys().nth(below(sums.live.len())).cloned();
        let (key, deletes) = match (below(10), old) {
            (0..6, _) | (_, None) => (format!("note {number}"), false),
            (6..9, Some(old)) => (old, false),
            (_, Some(old)) => (old, true),
        };
        if deletes {
            batch.delete(&key);
            sums.live.remove(&key);
        } else {
            let document = Document::new(key.as_str()).text(text.as_str());
            let pipeline = pipeline(&table, &patterns);
            pipeline.stage(&store.snapshot(), vec![document], &mut batch, &Quiet).expect("staged");
            sums.given += text.len() + VECTOR_BYTES;
            sums.live.insert(key, text.clone());
        }
        let (seconds, committed) = timed(|| store.commit(batch).expect("a commit"));
        assert_eq!(committed.merge_fault, None);
        let times = if committed.merged.segments_read > 0 { &mut sums.merging } else { &mut sums.times };
        times.push(seconds * 1e3);
        sums.merged_bytes += committed.merged.bytes_written;
        sums.segments_most = sums.segments_most.max(store.snapshot().stats().expect("counts").segments);
        if number % LOOK_EVERY == LOOK_EVERY - 1 {
            sums.folder_most = sums.folder_most.max(ratio(folder_bytes(folder), fresh_bytes(&sums.live)));
        }
    }
    sums
}

/// Bytes of a store that is made of the same documents in one commit.
fn fresh_bytes(documents: &BTreeMap<String, String>) -> u64 {
    let scratch = Scratch::new("fresh");
    let store = Store::open_or_create(&scratch.0).expect("a store");
    let (table, patterns) = (StaticTable::default(), Patterns);
    let documents = documents.iter().map(|(key, text)| Document::new(key).text(text)).collect();
    let mut batch = Batch::default();
    pipeline(&table, &patterns).stage(&store.snapshot(), documents, &mut batch, &Quiet).expect("staged");
    store.commit(batch).expect("a commit");
    drop(store);
    folder_bytes(&scratch.0)
}

#[expect(clippy::cast_precision_loss, reason = "a figure to read")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}
