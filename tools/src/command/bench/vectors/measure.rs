//! One way of searching, measured: what runs in a process of its own.

use std::fs;
use std::path::Path;
use std::time::Instant;

use hedgerow::{ChunkSet, Found, QueryError, Recall, Snapshot, VectorSearch};
use serde::{Deserialize, Serialize};

use crate::command::bench::vectors::{Args, scan, truth};
use crate::command::bench::{peak_mb, pool};
use crate::failure::Failure;
use crate::read::npy::integer_rows;
use crate::session::Session;

/// Neighbours of each query that are looked for.
pub(super) const COUNT: usize = 10;

/// A way of searching.
pub(super) struct Setting {
    pub name: &'static str,
    /// With how many of the queries it is measured, at most.
    queries: usize,
    how: How,
}

/// How the queries are asked, and what is told beside.
enum How {
    /// One after the other, on one thread.
    Alone(Recall),
    /// The same on one thread or on all, as a share of the memory's bandwidth.
    Scan { on_all: bool },
    /// All at once on all threads, as a share of the processor's peak.
    Batch,
}

/// All of them, from the fastest on.
pub(super) const SETTINGS: &[Setting] = &[
    alone("slack-20", Recall::Slack(20)),
    alone("slack-40", Recall::Slack(40)),
    alone("0.95", Recall::At95),
    alone("slack-80", Recall::Slack(80)),
    alone("slack-110", Recall::Slack(110)),
    alone("0.99", Recall::At99),
    alone("slack-180", Recall::Slack(180)),
    Setting { name: "exact", queries: 200, how: How::Alone(Recall::Exact) },
    Setting { name: "scan", queries: 50, how: How::Scan { on_all: false } },
    Setting { name: "scan-all", queries: 50, how: How::Scan { on_all: true } },
    Setting { name: "batch", queries: usize::MAX, how: How::Batch },
];

const fn alone(name: &'static str, recall: Recall) -> Setting {
    Setting { name, queries: usize::MAX, how: How::Alone(recall) }
}

/// A line of what `--json` prints.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Measured {
    pub setting: String,
    pub filter_percent: Option<u8>,
    pub rows: u64,
    pub dimensions: usize,
    pub build_s: Option<f64>,
    pub build_rss_mb: Option<f64>,
    pub disk_mb: f64,
    pub open_ms: f64,
    pub first_ms: f64,
    pub rss_mb: Option<f64>,
    pub threads: usize,
    pub queries: u64,
    pub recall: f64,
    pub qps: f64,
    pub cpu_qps: Option<f64>,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub gb_per_s: Option<f64>,
    pub bandwidth_gb_per_s: Option<f64>,
    pub share_of_bandwidth: Option<f64>,
    pub int8_peak_tops: Option<f64>,
    pub share_of_peak: Option<f64>,
}

/// What is searched, and for what.
pub(super) struct Asked<'a> {
    pub snapshot: &'a Snapshot,
    pub space: &'a str,
    pub queries: &'a [Vec<f32>],
    within: Option<ChunkSet>,
    runs: u8,
}

/// One time that all queries were asked.
pub(super) struct Run {
    pub seconds: f64,
    cpu_seconds: Option<f64>,
    /// Of each query, where they were asked one after the other.
    times: Vec<f64>,
    found: Vec<Vec<Found>>,
}

/// Opens the store and measures the one way of searching that is named.
pub(super) fn measure(args: &Args, session: &Session) -> Result<Measured, Failure> {
    let named = |setting: &&Setting| args.settings.iter().any(|name| name == setting.name);
    let (Some(store), Some(truth), Some(setting)) = (&args.store, &args.truth, SETTINGS.iter().find(named)) else {
        return Err(Failure::Usage("--here: expected --store, --truth and one of --settings".to_owned()));
    };
    let queries = truth::unit_rows(&args.queries, setting.queries)?;
    let Some(query) = queries.first() else {
        return Err(Failure::Usage(format!("{}: expected vectors, found none", args.queries.display())));
    };
    let filter = args.filter_percent.first().map(|percent| truth::filter(*percent)).transpose()?;
    let on_all = matches!(setting.how, How::Batch | How::Scan { on_all: true });
    let pool = pool(if on_all { args.threads } else { 1 })?;
    pool.install(|| {
        let start = Instant::now();
        let snapshot = session.open(store)?;
        let open_ms = start.elapsed().as_secs_f64() * 1000.0;
        let intent = if let How::Alone(recall) = setting.how { recall } else { Recall::Exact };
        let within = filter.as_ref().map(|filter| snapshot.chunks_where(filter)).transpose()?;
        let asked = Asked { snapshot: &snapshot, space: &args.space, queries: &queries, within, runs: args.runs };
        let first = asked.ask(query, intent)?;
        let first_ms = start.elapsed().as_secs_f64() * 1000.0;
        if first.is_empty() && filter.is_some() {
            let there = store.display();
            let expected = "expected one made with the same --filter-percent, found no such rows";
            return Err(Failure::Usage(format!("--store {there}: {expected}")));
        }
        let (run, shares) = match setting.how {
            How::Alone(recall) => {
                let run = asked.alone(recall)?;
                (run, Measured { rss_mb: peak_mb(), ..Measured::default() })
            }
            How::Scan { .. } => scan::against_memory(&asked)?,
            How::Batch => scan::against_peak(&asked)?,
        };
        let recall = recall(&run.found, truth)?;
        Ok(Measured { setting: setting.name.to_owned(), open_ms, first_ms, recall, ..asked.measured(run, shares)? })
    })
}

impl Asked<'_> {
    fn ask(&self, query: &[f32], recall: Recall) -> Result<Vec<Found>, QueryError> {
        let search = VectorSearch { recall, within: self.within.as_ref(), ..VectorSearch::new(COUNT) };
        self.snapshot.search_vectors(self.space, query, &search)
    }

    /// Asks one query after the other; the run that took the middle of the time.
    pub(super) fn alone(&self, recall: Recall) -> Result<Run, Failure> {
        self.repeated(|| {
            let (mut times, mut found) = (Vec::new(), Vec::new());
            for query in self.queries {
                let start = Instant::now();
                found.push(self.ask(query, recall)?);
                times.push(start.elapsed().as_secs_f64() * 1e6);
            }
            Ok((times, found))
        })
    }

    /// Asks all queries at once; the run that took the middle of the time.
    pub(super) fn together(&self) -> Result<Run, Failure> {
        let search = VectorSearch { recall: Recall::Exact, within: self.within.as_ref(), ..VectorSearch::new(COUNT) };
        self.repeated(|| Ok((Vec::new(), self.snapshot.search_vectors_all(self.space, self.queries, &search)?)))
    }

    fn repeated(&self, run: impl Fn() -> Result<(Vec<f64>, Vec<Vec<Found>>), QueryError>) -> Result<Run, Failure> {
        let once = |_| {
            let (start, cpu) = (Instant::now(), cpu_seconds());
            let (times, found) = run()?;
            let seconds = start.elapsed().as_secs_f64();
            let cpu_seconds = cpu.zip(cpu_seconds()).map(|(before, after)| after - before);
            Ok(Run { seconds, cpu_seconds, times, found })
        };
        let mut runs = (0..self.runs.max(1)).map(once).collect::<Result<Vec<Run>, Failure>>()?;
        runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Ok(runs.swap_remove(runs.len() / 2))
    }

    /// Bytes of all vectors that are compared: their codes where there is an index, else 32-bit numbers.
    pub(super) fn bytes(&self) -> Result<u64, Failure> {
        let (rows, dimensions) = self.shape()?;
        let indexed = self.snapshot.has_vector_index(self.space);
        Ok(rows * if indexed { dimensions.next_multiple_of(64) } else { dimensions * 4 } as u64)
    }

    /// Vectors, and components of each.
    pub(super) fn shape(&self) -> Result<(u64, usize), Failure> {
        let spaces = self.snapshot.spaces().map_err(QueryError::from)?;
        let own = spaces.iter().find(|space| space.name == self.space);
        Ok(own.map_or((0, 0), |space| (space.vectors, space.dimensions)))
    }

    /// What is told of a run, beside the shares of it.
    fn measured(&self, run: Run, shares: Measured) -> Result<Measured, Failure> {
        let (rows, dimensions) = self.shape()?;
        let Run { seconds, cpu_seconds, mut times, .. } = run;
        times.sort_by(f64::total_cmp);
        let at = |percent: usize| times.get(times.len() * percent / 100).copied();
        let queries = self.queries.len() as u64;
        Ok(Measured {
            rows,
            dimensions,
            disk_mb: real(self.snapshot.size().1) / f64::from(1 << 20),
            threads: rayon::current_num_threads(),
            queries,
            qps: real(queries) / seconds,
            cpu_qps: cpu_seconds.map(|cpu| real(queries) / cpu),
            p50_us: at(50),
            p99_us: at(99),
            ..shares
        })
    }
}

/// Which share of the rows that a file calls nearest was found.
fn recall(found: &[Vec<Found>], truth: &Path) -> Result<f64, Failure> {
    let rows = integer_rows(truth)?;
    if rows.len() < found.len() {
        let (expected, found) = (found.len(), rows.len());
        return Err(Failure::Usage(format!(
            "{}: expected {expected} rows, one a query, found {found}",
            truth.display()
        )));
    }
    let (mut right, mut all) = (0, 0);
    for (found, nearest) in found.iter().zip(&rows) {
        let nearest = &nearest[..nearest.len().min(COUNT)];
        // The key of a chunk is the name of its document, which is the row's number, and its own number.
        let row = |found: &Found| found.key.split('#').next().and_then(|name| name.parse::<i128>().ok());
        right += found.iter().filter_map(row).filter(|row| nearest.contains(row)).count() as u64;
        all += nearest.len() as u64;
    }
    Ok(real(right) / real(all))
}

/// For how long the process computed, on all threads, where the system tells.
fn cpu_seconds() -> Option<f64> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let told = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        nanoseconds += told.split(' ').next()?.parse::<u64>().ok()?;
    }
    Some(real(nanoseconds) / 1e9)
}

#[expect(clippy::cast_precision_loss, reason = "a figure to read")]
pub(super) fn real(count: u64) -> f64 {
    count as f64
}
