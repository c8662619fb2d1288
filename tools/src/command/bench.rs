//! `hedgerow bench`: how fast the store is on this machine, on the user's own data.

mod khop;
pub mod peak;
mod synthetic;
mod vectors;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::time::Instant;

use hedgerow::{Batch, EdgeReport, EdgeRules, Env, StagedChunk, StagedDocument, StagedVector, Store};
use rayon::ThreadPool;
use serde::Serialize;

use crate::command::bench::peak::{Peak, Timed};
use crate::command::bench::synthetic::{Synthetic, shape};
use crate::command::edges::memory::{Told, memory};
use crate::command::edges::percentile;
use crate::command::render::field;
use crate::command::render::layout::{counted, grouped};
use crate::failure::{Failure, Outcome};
use crate::read::npy::Matrix;
use crate::session::{Progress, Session};

/// Measure on this machine how long something takes
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Edges(EdgeArgs),
    Khop(khop::Args),
    Vectors(vectors::Args),
}

/// Build the similarity edges of some vectors, and follow a change of them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The vectors are put into a store in the folder for temporary files, which is removed afterwards; the time is that of building \
the edges, from the vectors on disk to edges that are durable and verified. The peak is what the same threads reach with the same \
instructions in registers, without any memory.

Examples:
  hedgerow bench edges --vectors v.npy --percentile 95 --top-m 32 --threads 2 --added 1 --json
  hedgerow bench edges --synthetic 20000x768 --percentile 99")]
struct EdgeArgs {
    /// Vectors, one a row: f32 or f16
    #[arg(long, value_name = "F.npy", required_unless_present = "synthetic", conflicts_with = "synthetic")]
    vectors: Option<PathBuf>,
    /// Make up so many vectors instead, clustered as embeddings of texts are; always the same
    #[arg(long, value_name = "ROWSxDIMENSIONS", value_parser = shape)]
    synthetic: Option<Synthetic>,
    /// Use the first rows only
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// Share of pairs that lie below the threshold, 0 to 100 with up to three decimals
    #[arg(long, value_name = "P", default_value = "95", value_parser = percentile)]
    percentile: u32,
    /// How many partners each row may choose
    #[arg(long, value_name = "M", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    top_m: u32,
    /// Threads [default: as many as there are processors]
    #[arg(long, value_name = "T", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// Add this share of the rows, in per cent, to edges of the others, and measure that too
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=90))]
    added: Option<u32>,
    /// Memory that building the edges may take, as for `edges`
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<u64>,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let args = match &args.what {
        What::Edges(args) => args,
        What::Khop(args) => return khop::run(args, session),
        What::Vectors(args) => return vectors::run(args, session),
    };
    let folder = Scratch::new()?;
    let measured = pool(args.threads)?.install(|| edges(args, &folder.0, &session.progress("building edges")))?;
    session.print(&measured, |out| measured.human(out))?;
    Ok(Outcome::Done)
}

/// So many threads; as many as there are processors for none.
fn pool(threads: usize) -> Result<ThreadPool, Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Failure::Usage(format!("--threads {threads}: {error}")))
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Measured {
    rows: u64,
    dimensions: usize,
    threads: usize,
    pairs: u64,
    edges: u64,
    seconds: f64,
    pairs_per_s: f64,
    scan_seconds: Option<f64>,
    int8_peak_tops: f64,
    share_of_peak: f64,
    scan_share_of_peak: Option<f64>,
    added: Option<u64>,
    added_seconds: Option<f64>,
    memory: Option<Told>,
    rss_mb: Option<f64>,
}

/// How many rows to measure, of how many components, and these.
struct Source {
    rows: usize,
    dimensions: usize,
    vectors: Box<dyn Iterator<Item = Result<Vec<f32>, Failure>>>,
}

impl Source {
    fn open(args: &EdgeArgs) -> Result<Self, Failure> {
        let most = args.rows.unwrap_or(usize::MAX);
        if let Some(synthetic) = args.synthetic {
            let Synthetic { rows, dimensions } = synthetic;
            return Ok(Self { rows: rows.min(most), dimensions, vectors: Box::new(synthetic.vectors().map(Ok)) });
        }
        let path = args.vectors.as_deref();
        let matrix = Matrix::open(path.ok_or_else(|| Failure::Usage("give --vectors or --synthetic".to_owned()))?)?;
        let rows = usize::try_from(matrix.row_count()).unwrap_or(usize::MAX).min(most);
        let dimensions = matrix.columns();
        Ok(Self { rows, dimensions, vectors: Box::new(matrix.rows().map(|row| row.map_err(Into::into))) })
    }
}

/// Builds the edges of all rows, after those of a part of them and what `--added` adds.
fn edges(args: &EdgeArgs, folder: &Path, progress: &Progress) -> Result<Measured, Failure> {
    let Source { rows, dimensions, vectors } = Source::open(args)?;
    let added = args.added.map_or(0, |share| rows * share as usize / 100);
    let mut vectors = vectors.take(rows).enumerate();
    let mut env = Env::folder(&folder.join("store"))?;
    env.edge_memory = args.memory;
    let store = Store::open_or_create_in(env)?;
    put(&store, vectors.by_ref().take(rows - added))?;
    let rules = EdgeRules::new(args.percentile, args.top_m);
    let mut added_seconds = None;
    if added > 0 {
        store.build_edges(SPACE, &rules, progress)?;
        store.refresh(progress)?;
        put(&store, vectors)?;
        let start = Instant::now();
        store.refresh(progress)?;
        added_seconds = Some(start.elapsed().as_secs_f64());
    }
    let mut peak = Peak::new();
    peak.sample();
    let timed = Timed::new(progress);
    let start = Instant::now();
    let built = store.build_edges(SPACE, &rules, &timed)?;
    let seconds = start.elapsed().as_secs_f64();
    let scan_seconds = timed.seconds();
    peak.sample();
    let peak = peak.median();
    let sum = |of: fn(&EdgeReport) -> u64| built.iter().map(|built| of(&built.report)).sum::<u64>();
    let all_pairs = sum(|report| report.pairs);
    #[expect(clippy::cast_precision_loss, reason = "figures to read")]
    let (pairs, columns) = (all_pairs as f64, dimensions as f64);
    let share = |seconds: f64| 2.0 * pairs * columns / seconds / peak;
    Ok(Measured {
        rows: sum(|report| report.rows),
        dimensions,
        threads: rayon::current_num_threads(),
        pairs: all_pairs,
        edges: sum(|report| report.kept),
        seconds,
        pairs_per_s: pairs / seconds,
        scan_seconds,
        int8_peak_tops: peak / 1e12,
        share_of_peak: share(seconds),
        scan_share_of_peak: scan_seconds.map(share),
        added: args.added.map(|_| added as u64),
        added_seconds,
        memory: built.iter().find_map(|built| built.memory.as_ref()).map(Told::of),
        rss_mb: peak_mb(),
    })
}

const SPACE: &str = "bench";
const BATCH: usize = 10_000;

/// Puts each row into the store as the vector of a document of its own.
fn put(store: &Store, rows: impl Iterator<Item = (usize, Result<Vec<f32>, Failure>)>) -> Result<(), Failure> {
    let mut rows = rows.peekable();
    while rows.peek().is_some() {
        let mut batch = Batch::default();
        for (number, row) in rows.by_ref().take(BATCH) {
            batch.put(staged(number, row?, SPACE, String::new())?);
        }
        store.commit(batch)?;
    }
    Ok(())
}

/// A document with one chunk, which has the vector of a row; its name is the row's number.
fn staged(row: usize, mut components: Vec<f32>, space: &str, metadata: String) -> Result<StagedDocument, Failure> {
    hedgerow::normalise(&mut components)
        .map_err(|fault| Failure::Usage(format!("row {row}: {fault}; vectors must be of length one")))?;
    let vector = StagedVector { space: space.into(), model: SPACE.into(), components };
    let chunk = StagedChunk { range: 0..1, metadata, vectors: vec![vector], ..StagedChunk::default() };
    let name = format!("{row:09}");
    Ok(StagedDocument { name, text: "x".into(), chunks: vec![chunk], ..StagedDocument::default() })
}

/// The most memory that the process had at once, maps included, where the system tells.
fn peak_mb() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib / 1024.0)
}

/// A folder that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("hedgerow-bench-{}", process::id()));
        fs::create_dir_all(&path).map_err(Failure::io("make", &path))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What can't be removed stays in the folder for temporary files.
        fs::remove_dir_all(&self.0).ok();
    }
}

impl Measured {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let rate = format!(
            "{:.0} million pairs/s on {}",
            self.pairs_per_s / 1e6,
            counted(self.threads as u64, "thread", "threads")
        );
        field(out, "vectors", &format!("{} of {} dimensions", grouped(self.rows), self.dimensions))?;
        field(out, "edges", &format!("{} of {} pairs", grouped(self.edges), grouped(self.pairs)))?;
        field(out, "build", &format!("{:.2} s: {rate}", self.seconds))?;
        let scan = self.scan_share_of_peak.map(|share| format!(", comparing alone at {:.0} %", share * 100.0));
        let share = format!("the build runs at {:.0} % of it{}", self.share_of_peak * 100.0, scan.unwrap_or_default());
        field(out, "peak", &format!("{:.2} int8 TOPS: {share}", self.int8_peak_tops))?;
        if let (Some(added), Some(seconds)) = (self.added, self.added_seconds) {
            field(out, "added", &format!("{}: followed in {seconds:.2} s", counted(added, "vector", "vectors")))?;
        }
        if let Some(memory) = &self.memory {
            field(out, "memory", &memory.sentence())?;
        }
        if let Some(peak) = self.rss_mb {
            field(out, "process", &format!("{peak:.0} MiB at most, maps included"))?;
        }
        Ok(())
    }
}
