//! `hedgerow bench vectors`: how fast the nearest vectors are found in a store on disk, and how many of them.

mod measure;
mod scan;
mod truth;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use hedgerow::{Batch, Env, Store};

use crate::command::bench::vectors::measure::{Measured, SETTINGS, measure};
use crate::command::bench::{Scratch, peak_mb, pool, staged};
use crate::command::render::field;
use crate::command::render::layout::{Side, Table, grouped};
use crate::failure::{Failure, Outcome};
use crate::read::npy::Matrix;
use crate::session::{Progress, Session};

/// Find the nearest of some vectors, from a store on disk
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The vectors are put into a store in the folder for temporary files, which is removed afterwards. For each way of searching another \
process opens it and finds the ten nearest of each query, one query at a time, on one thread.

Examples:
  hedgerow bench vectors --base base.npy --queries queries.npy --truth truth.npy --threads 2 --json
  hedgerow bench vectors --base base.npy --queries queries.npy --rows 10000 --filter-percent 50,10,1
  hedgerow bench vectors --base base.npy --queries queries.npy --store v.hedgerow --settings exact")]
pub(super) struct Args {
    /// Vectors, one a row: f32 or f16
    #[arg(long, value_name = "F.npy")]
    base: PathBuf,
    /// Vectors to find the nearest of
    #[arg(long, value_name = "F.npy")]
    queries: PathBuf,
    /// Numbers of the rows nearest to each query, the nearest first [default: found by comparing with all]
    #[arg(long, value_name = "F.npy")]
    truth: Option<PathBuf>,
    /// Name of the vector space
    #[arg(long, value_name = "NAME", default_value = "bench")]
    space: String,
    /// Use the first rows only; the nearest are then found by comparing with all
    #[arg(long, value_name = "N", conflicts_with = "truth")]
    rows: Option<usize>,
    /// Make the store in this folder unless it is there, and keep it
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Commit the vectors in so many parts, whose segments are not merged
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    segments: u8,
    /// Threads that make the store [default: as many as there are processors]
    #[arg(long, value_name = "T", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// Ways of searching, measured one after the other [default: all]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    settings: Vec<String>,
    /// Search also among these shares of the rows alone, in per cent
    #[arg(long, value_name = "P,…", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=99))]
    filter_percent: Vec<u8>,
    /// How often each way is measured; the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=99))]
    runs: u8,
    /// Measure one way of searching in this process
    #[arg(long, hide = true, requires_all = ["store", "truth"])]
    here: bool,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub(super) fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    if args.here {
        session.print(&measure(args, session)?, |_| Ok(()))?;
        return Ok(Outcome::Done);
    }
    let settings = settings(args)?;
    let scratch = Scratch::new()?;
    let store = args.store.clone().unwrap_or_else(|| scratch.0.join("store"));
    let pool = pool(args.threads)?;
    let mut built = Built::default();
    if !store.exists() {
        built = pool.install(|| load(args, &store, &session.progress("storing vectors")))?;
    }
    let mut measured = Vec::new();
    for percent in [None].into_iter().chain(args.filter_percent.iter().copied().map(Some)) {
        let truth = match &args.truth {
            Some(truth) if percent.is_none() => truth.clone(),
            _ => pool.install(|| truth::made(args, percent, &scratch.0))?,
        };
        for setting in settings.iter().filter(|name| percent.is_none() || !WHOLE.contains(name)) {
            let found = elsewhere(args, (&store, &truth), setting, percent)?;
            check(args, &store, found.rows)?;
            let Built { seconds: build_s, rss_mb: build_rss_mb } = built;
            measured.push(Measured { filter_percent: percent, build_s, build_rss_mb, ..found });
        }
    }
    if session.json() {
        measured.iter().try_for_each(|line| session.print(line, |_| Ok(())))?;
    } else {
        session.print(&(), |out| human(&measured, out))?;
    }
    Ok(Outcome::Done)
}

/// Those that read all vectors, whatever the filter.
const WHOLE: &[&str] = &["scan", "scan-all", "batch"];

/// The ways of searching that were asked for.
fn settings(args: &Args) -> Result<Vec<&str>, Failure> {
    let known: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
    if let Some(unknown) = args.settings.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Failure::Usage(format!("--settings: expected some of {}, found {unknown}", known.join(", "))));
    }
    Ok(if args.settings.is_empty() { known } else { args.settings.iter().map(String::as_str).collect() })
}

/// How long making the store took and how much memory.
#[derive(Clone, Copy, Debug, Default)]
struct Built {
    seconds: Option<f64>,
    rss_mb: Option<f64>,
}

/// Makes a store with a document a row, ready to be searched.
fn load(args: &Args, path: &Path, progress: &Progress) -> Result<Built, Failure> {
    let matrix = Matrix::open(&args.base)?;
    let rows = rows_of(args, &matrix);
    let mut vectors = matrix.rows().take(rows).enumerate();
    let start = Instant::now();
    let mut env = Env::folder(path)?;
    if args.segments > 1 {
        env.merging.bytes = 0;
    }
    let store = Store::open_or_create_in(env)?;
    for _ in 0..args.segments {
        let mut batch = Batch::default();
        for (row, vector) in vectors.by_ref().take(rows.div_ceil(args.segments.into())) {
            batch.put(staged(row, vector?, &args.space, truth::metadata(row, &args.filter_percent))?);
        }
        store.commit(batch)?;
    }
    store.refresh(progress)?;
    store.close()?;
    Ok(Built { seconds: Some(start.elapsed().as_secs_f64()), rss_mb: peak_mb() })
}

/// How many rows of a file to use.
fn rows_of(args: &Args, matrix: &Matrix) -> usize {
    usize::try_from(matrix.row_count()).unwrap_or(usize::MAX).min(args.rows.unwrap_or(usize::MAX))
}

/// Whether a store that was there is one of these vectors.
fn check(args: &Args, store: &Path, found: u64) -> Result<(), Failure> {
    let expected = rows_of(args, &Matrix::open(&args.base)?) as u64;
    if found == expected {
        return Ok(());
    }
    let (store, space) = (store.display(), &args.space);
    let (expected, found) = (grouped(expected), grouped(found));
    let what = format!("expected {expected} vectors in the space {space}, found {found}");
    Err(Failure::Usage(format!("--store {store}: {what}; name a folder that is not there to make the store anew")))
}

/// Measures in a process of its own, whose memory holds nothing of what was done before.
fn elsewhere(
    args: &Args,
    (store, truth): (&Path, &Path),
    setting: &str,
    percent: Option<u8>,
) -> Result<Measured, Failure> {
    let failed = |reason: String| Failure::Usage(format!("the process that measures {reason}"));
    let program = std::env::current_exe().map_err(|error| failed(format!("cannot be started: {error}")))?;
    let mut command = Command::new(program);
    command.args(["bench", "vectors", "--here", "--json", "--settings", setting, "--space", &args.space]);
    command.arg("--base").arg(&args.base).arg("--queries").arg(&args.queries);
    command.arg("--store").arg(store).arg("--truth").arg(truth);
    command.args(["--runs", &args.runs.to_string(), "--threads", &args.threads.to_string()]);
    if let Some(percent) = percent {
        command.args(["--filter-percent", &percent.to_string()]);
    }
    let run = command.stderr(Stdio::inherit()).output();
    let run = run.map_err(|error| failed(format!("cannot be started: {error}")))?;
    if !run.status.success() {
        return Err(failed(format!("ended with {}", run.status)));
    }
    serde_json::from_slice(&run.stdout).map_err(|error| failed(format!("said: {error}")))
}

/// Writes what was measured for people.
fn human(measured: &[Measured], out: &mut dyn Write) -> io::Result<()> {
    let Some(first) = measured.first() else { return Ok(()) };
    field(out, "vectors", &format!("{} of {} dimensions", grouped(first.rows), first.dimensions))?;
    if let Some(seconds) = first.build_s {
        let memory = first.build_rss_mb.map(|peak| format!("; {peak:.0} MiB at most")).unwrap_or_default();
        field(out, "build", &format!("{seconds:.2} s{memory}"))?;
    }
    field(out, "disk", &format!("{:.1} MiB", first.disk_mb))?;
    let heading = ["threads", "queries", "recall", "queries/s", "p50 µs", "p99 µs", "first ms", "MiB"];
    let heading: Vec<(&str, Side)> = heading.map(|name| (name, Side::Right)).into();
    let mut table = Table::new(&[&[("setting", Side::Left)], &heading[..]].concat());
    for line in measured {
        let filter = line.filter_percent.map(|percent| format!(" of {percent} %")).unwrap_or_default();
        let memory = line.rss_mb.map(|peak| format!("{peak:.0}")).unwrap_or_default();
        let time = |time: Option<f64>| time.map(|time| format!("{time:.0}")).unwrap_or_default();
        let times = [time(Some(line.qps)), time(line.p50_us), time(line.p99_us)];
        let counts = [grouped(line.threads as u64), grouped(line.queries), format!("{:.4}", line.recall)];
        let ends = [format!("{:.1}", line.first_ms), memory];
        table.add([format!("{}{filter}", line.setting)].into_iter().chain(counts).chain(times).chain(ends));
    }
    table.print(out, 2)?;
    for line in measured {
        if let (Some(own), Some(memory)) = (line.gb_per_s, line.bandwidth_gb_per_s) {
            let share = line.share_of_bandwidth.unwrap_or_default() * 100.0;
            let rate = format!("{own:.1} GB/s of vectors, {share:.0} % of the {memory:.1} GB/s of a plain sum");
            field(out, &line.setting, &rate)?;
        }
        if let (Some(peak), Some(share)) = (line.int8_peak_tops, line.share_of_peak) {
            field(out, &line.setting, &format!("{:.1} % of {peak:.2} int8 TOPS", share * 100.0))?;
        }
    }
    Ok(())
}
