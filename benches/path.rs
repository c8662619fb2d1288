//! The whole path: import, size on disk, reopening to the first answer, asking, and how good the answers are.
//!
//! Every measurement runs in a process of its own, five times; medians are printed with the machine's yardsticks.

use hedgerow::{Batch, Models, Question, Quiet, Snapshot, Store, Strategy};
use hedgerow_benches::{
    Scratch, copy_gb_per_s, data, folder_bytes, median, passages, peak_mb, pipeline, questions, sync_ms, timed,
};
use hedgerow_cli::embed::StaticTable;
use hedgerow_cli::extract::Patterns;
use std::path::Path;
use std::process::Command;

const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match (arguments.get(1).map(String::as_str), arguments.get(2)) {
        (Some("import"), Some(store)) => import(Path::new(store)),
        (Some("reopen"), Some(store)) => reopen(Path::new(store)),
        (Some("ask"), Some(store)) => ask(Path::new(store)),
        _ => all(),
    }
}

/// Runs this program for one measurement; it prints its figures on one line.
fn figures(step: &str, store: &Path) -> Vec<f64> {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program).arg(step).arg(store).output().expect("a measurement");
    assert!(output.status.success(), "{step}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("figures");
    text.split_whitespace().map(|figure| figure.parse().expect("a figure")).collect()
}

fn medians(step: &str, store: &Path, prepare: impl Fn()) -> Vec<f64> {
    let rounds: Vec<Vec<f64>> = (0..ROUNDS)
        .map(|_| {
            prepare();
            figures(step, store)
        })
        .collect();
    (0..rounds[0].len()).map(|figure| median(rounds.iter().map(|round| round[figure]).collect())).collect()
}

fn all() {
    let scratch = Scratch::new("path");
    let store = scratch.0.join("store");
    println!("data {}, {ROUNDS} rounds each", data().display());
    println!("yardsticks: sync {:.2} ms, copy {:.1} GB/s", sync_ms(&scratch.0), copy_gb_per_s());
    let imported = medians("import", &store, || {
        std::fs::remove_dir_all(&store).ok();
    });
    let (documents, seconds, peak) = (imported[0], imported[1], imported[2]);
    println!("import: {:.0} passages/s ({documents} in {seconds:.2} s), peak {peak:.0} MB", documents / seconds);
    let (bytes, raw) = (folder_bytes(&store), imported[3]);
    #[expect(clippy::cast_precision_loss, reason = "a figure to read")]
    let ratio = bytes as f64 / raw;
    println!("size: {bytes} bytes, {ratio:.2} times text and f32 vectors ({raw:.0} bytes)");
    let reopened = medians("reopen", &store, || {});
    println!("reopen to the first answer: {:.1} ms (opening alone {:.1} ms)", reopened[0], reopened[1]);
    let asked = medians("ask", &store, || {});
    println!("ask (graph): median {:.2} ms, p99 {:.2} ms, peak {:.0} MB", asked[0], asked[1], asked[2]);
    println!("recall at 5: flat {:.3}, graph {:.3}", asked[3], asked[4]);
}

/// Documents, seconds, peak megabytes, bytes of text and vectors.
fn import(folder: &Path) {
    let (table, patterns) = (StaticTable::default(), Patterns);
    let (seconds, (documents, raw)) = timed(|| {
        let store = Store::open_or_create(folder).expect("a store");
        let (mut count, mut raw) = (0, 0);
        let mut rest = passages().into_iter().peekable();
        while rest.peek().is_some() {
            let documents: Vec<_> = rest.by_ref().take(1000).collect();
            count += documents.len();
            raw += documents.iter().map(|document| document.text.len() + 256 * 4).sum::<usize>();
            let mut batch = Batch::default();
            pipeline(&table, &patterns).stage(&store.snapshot(), documents, &mut batch, &Quiet).expect("staged");
            store.commit(batch).expect("a commit");
        }
        store.refresh(&Quiet).expect("a refresh");
        (count, raw)
    });
    println!("{documents} {seconds} {} {raw}", peak_mb());
}

/// Milliseconds from nothing to the first answer, and those of opening alone.
fn reopen(folder: &Path) {
    let question = questions().swap_remove(0).text;
    let (all, opening) = timed(|| {
        let (opening, snapshot) = timed(|| Snapshot::open(folder).expect("a store"));
        let (table, patterns) = (StaticTable::default(), Patterns);
        let models = Models { embedder: Some(&table), extractor: Some(&patterns) };
        assert!(!snapshot.ask(&Question::new(question), models).expect("an answer").passages.is_empty());
        opening
    });
    println!("{} {}", all * 1e3, opening * 1e3);
}

/// Median and 99th percentile of milliseconds, peak megabytes, recall at 5 flat and graph.
fn ask(folder: &Path) {
    let snapshot = Snapshot::open(folder).expect("a store");
    let (table, patterns) = (StaticTable::default(), Patterns);
    let models = Models { embedder: Some(&table), extractor: Some(&patterns) };
    let questions = questions();
    let mut recalls = Vec::new();
    let mut times = Vec::new();
    for strategy in [Strategy::Flat, Strategy::Graph] {
        times.clear();
        let mut recall = 0.0;
        for gold in &questions {
            let question = Question { strategy, ..Question::new(&gold.text) };
            let (seconds, context) = timed(|| snapshot.ask(&question, models).expect("an answer"));
            times.push(seconds * 1e3);
            let found = |key: &&String| context.passages.iter().take(5).any(|passage| passage.document == **key);
            #[expect(clippy::cast_precision_loss, reason = "a handful of keys")]
            let share = gold.keys.iter().filter(found).count() as f64 / gold.keys.len() as f64;
            recall += share;
        }
        #[expect(clippy::cast_precision_loss, reason = "some hundred questions")]
        recalls.push(recall / questions.len() as f64);
    }
    times.sort_by(f64::total_cmp);
    let late = times[times.len() * 99 / 100];
    println!("{} {late} {} {} {}", median(times), peak_mb(), recalls[0], recalls[1]);
}
