//! `hedgerow bench khop`: how many nodes of a graph lie within so many hops, from a store on disk.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use hedgerow::{
    Batch, Bounded, Direction, Env, Node, QueryError, QueryLimits, Reach, StagedDocument, StagedEdgeList, Store,
};
use serde::{Deserialize, Serialize};

use crate::command::bench::{Scratch, peak_mb};
use crate::command::import::numbered_graph;
use crate::command::render::field;
use crate::command::render::layout::{counted, grouped};
use crate::failure::{Failure, Outcome};
use crate::read::npy::integers;
use crate::session::{Progress, Session};

/// Count what lies within some hops of nodes of a graph, from a store on disk
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The edges are imported into a store in the folder for temporary files, which is removed afterwards. Another process opens it and \
walks from each seed, along and against all edges, on one thread; it finds the seed by its name each time. Counted are all nodes \
within so many hops, the seed included, as igraph's neighborhood_size does.

Examples:
  hedgerow bench khop --edges edges.npy --seeds seeds.npy --hops 1,2,3 --json
  hedgerow bench khop --edges edges.npy --seeds seeds.npy --segments 8
  hedgerow bench khop --store graph.hedgerow --seeds seeds.npy --hops 2")]
pub(super) struct Args {
    /// Edges of a graph: pairs of node numbers
    #[arg(long, value_name = "F.npy", required_unless_present = "store", conflicts_with = "store")]
    edges: Option<PathBuf>,
    /// Numbers of the nodes to walk from, one after the other
    #[arg(long, value_name = "F.npy")]
    seeds: PathBuf,
    /// How far to walk; several numbers are measured one after the other
    #[arg(long, value_name = "N,…", default_value = "1,2,3", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=64))]
    hops: Vec<u8>,
    /// Commit the edges in so many parts, whose segments are not merged
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    segments: u8,
    /// Make the store in this folder and keep it
    #[arg(long, value_name = "DIR", conflicts_with = "store")]
    keep: Option<PathBuf>,
    /// Measure this store, whose nodes are called by their numbers
    #[arg(long, value_name = "DIR", conflicts_with = "segments")]
    store: Option<PathBuf>,
}

/// What `--json` prints.
#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    nodes: u64,
    edges: u64,
    seeds: u64,
    seeds_alone: u64,
    load_s: Option<f64>,
    load_rss_mb: Option<f64>,
    disk_mb: f64,
    bytes_per_edge_direction: f64,
    open_ms: f64,
    first_ms: f64,
    rss_mb: Option<f64>,
    /// Of every number of hops: `hop2_ms` and so on.
    #[serde(flatten)]
    hops: BTreeMap<String, f64>,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub(super) fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let measured = match (&args.store, &args.edges) {
        (Some(store), _) => measure(args, store, session)?,
        (None, Some(edges)) => {
            let (store, _scratch) = place(args.keep.as_deref())?;
            let start = Instant::now();
            load(edges, args.segments, &store, &session.progress("importing edges"))?;
            let load_s = Some(start.elapsed().as_secs_f64());
            Measured { load_s, load_rss_mb: peak_mb(), ..elsewhere(args, &store)? }
        }
        (None, None) => return Err(Failure::Usage("give --edges or --store".to_owned())),
    };
    session.print(&measured, |out| measured.human(out, &args.hops))?;
    Ok(Outcome::Done)
}

/// Where the store is made, and what is removed in the end.
fn place(keep: Option<&Path>) -> Result<(PathBuf, Option<Scratch>), Failure> {
    match keep {
        Some(folder) if folder.exists() => {
            let there = folder.display();
            Err(Failure::Usage(format!("--keep {there}: expected a new folder; --store measures one that is there")))
        }
        Some(folder) => Ok((folder.to_owned(), None)),
        None => Scratch::new().map(|scratch| (scratch.0.join("store"), Some(scratch))),
    }
}

const LABEL: &str = "leads to";

/// Makes a store of the edges, with links in step.
fn load(edges: &Path, segments: u8, path: &Path, progress: &Progress) -> Result<(), Failure> {
    let (mut nodes, mut edges) = numbered_graph(edges)?;
    let mut env = Env::folder(path)?;
    if segments > 1 {
        env.merging.bytes = 0;
    }
    let store = Store::open_or_create_in(env)?;
    let parts = usize::from(segments);
    for part in 0..parts {
        // Every part has edges of all nodes.
        let (own, ends) = if parts == 1 {
            (mem::take(&mut edges), mem::take(&mut nodes))
        } else {
            (edges.iter().skip(part).step_by(parts).copied().collect(), nodes.clone())
        };
        let graph = BTreeMap::from([(LABEL.to_owned(), own)]);
        let edge_lists = StagedEdgeList::of_graph(ends, graph).map_err(Failure::Usage)?;
        let mut batch = Batch::default();
        batch.put(StagedDocument { edge_lists, ..StagedDocument::textless(format!("edges {part}"), [1; 16]) });
        store.commit(batch)?;
    }
    drop((edges, nodes));
    store.refresh(progress)?;
    store.close()?;
    Ok(())
}

/// Measures a store in a process of its own, whose memory holds nothing of the import.
fn elsewhere(args: &Args, store: &Path) -> Result<Measured, Failure> {
    let failed = |reason: String| Failure::Usage(format!("the process that measures {reason}"));
    let program = std::env::current_exe().map_err(|error| failed(format!("cannot be started: {error}")))?;
    let hops: Vec<String> = args.hops.iter().map(u8::to_string).collect();
    let mut command = Command::new(program);
    command.args(["bench", "khop", "--json", "--hops", &hops.join(","), "--store"]).arg(store);
    let run = command.arg("--seeds").arg(&args.seeds).stderr(Stdio::inherit()).output();
    let run = run.map_err(|error| failed(format!("cannot be started: {error}")))?;
    if !run.status.success() {
        return Err(failed(format!("ended with {}", run.status)));
    }
    serde_json::from_slice(&run.stdout).map_err(|error| failed(format!("said: {error}")))
}

/// Opens a store and walks from every seed.
fn measure(args: &Args, path: &Path, session: &Session) -> Result<Measured, Failure> {
    let seeds: Vec<String> = integers(&args.seeds)?.iter().map(|seed| format!("entity:{seed}")).collect();
    let (Some(first), Some(hops)) = (seeds.first(), args.hops.first()) else {
        return Err(Failure::Usage(format!("{}: expected the number of a node, found none", args.seeds.display())));
    };
    let start = Instant::now();
    let snapshot = session.open(path)?;
    let open_ms = milliseconds(start);
    let bounded = snapshot.bounded(QueryLimits::default());
    let behind = || Failure::Usage("the links of this store are behind: `hedgerow ingest` brings them in step".into());
    let mut reach = bounded.reach()?.ok_or_else(behind)?;
    within(&bounded, &mut reach, first, (*hops).into())?;
    let first_ms = milliseconds(start);
    let (mut figures, mut alone) = (BTreeMap::new(), 0);
    for hops in &args.hops {
        alone = walk(&bounded, &mut reach, (&seeds, *hops), &mut figures)?;
    }
    let (nodes, edges) = (reach.nodes() as u64, reach.edges() as u64);
    let bytes = real(snapshot.size().1);
    Ok(Measured {
        nodes,
        edges,
        seeds: seeds.len() as u64,
        seeds_alone: alone,
        load_s: None,
        load_rss_mb: None,
        disk_mb: bytes / f64::from(1 << 20),
        bytes_per_edge_direction: bytes / real(2 * edges.max(1)),
        open_ms,
        first_ms,
        rss_mb: peak_mb(),
        hops: figures,
    })
}

/// How many nodes lie within some hops of one that is called so; none where there is no such node, as it has no edges.
fn within(bounded: &Bounded<'_>, reach: &mut Reach<'_>, name: &str, hops: usize) -> Result<Option<u64>, QueryError> {
    let found = match bounded.find(name) {
        Ok(Node::Entity(key)) => reach.count(&[key], Direction::Both, hops)?,
        Ok(_) | Err(QueryError::NotFound { .. }) => None,
        Err(error) => return Err(error),
    };
    Ok(found.map(|counts| counts.iter().sum()))
}

/// Walks so far from every seed and notes how long it took; how many seeds have no edges.
fn walk(
    bounded: &Bounded<'_>,
    reach: &mut Reach<'_>,
    (seeds, hops): (&[String], u8),
    figures: &mut BTreeMap<String, f64>,
) -> Result<u64, Failure> {
    let (mut times, mut reached, mut walked, mut alone) = (Vec::with_capacity(seeds.len()), 0, 0, 0);
    for seed in seeds {
        let start = Instant::now();
        let found = within(bounded, reach, seed, hops.into())?;
        times.push(milliseconds(start));
        // What is not found reaches itself.
        reached += found.unwrap_or(1);
        alone += u64::from(found.is_none());
        walked += if found.is_some() { reach.walked() } else { 0 };
    }
    let total: f64 = times.iter().sum();
    times.sort_by(f64::total_cmp);
    let median = f64::midpoint(times[(times.len() - 1) / 2], times[times.len() / 2]);
    let count = real(seeds.len() as u64);
    for (name, figure) in [
        ("ms", median),
        ("mean_ms", total / count),
        ("reached", real(reached) / count),
        ("edges_per_s", real(walked) / total * 1000.0),
    ] {
        figures.insert(format!("hop{hops}_{name}"), figure);
    }
    Ok(alone)
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "a figure to read")]
fn real(count: u64) -> f64 {
    count as f64
}

impl Measured {
    fn human(&self, out: &mut dyn Write, hops: &[u8]) -> io::Result<()> {
        let (nodes, edges) = (counted(self.nodes, "node", "nodes"), counted(self.edges, "edge", "edges"));
        field(out, "graph", &format!("{nodes}, {edges}"))?;
        if let Some(seconds) = self.load_s {
            let memory = self.load_rss_mb.map(|peak| format!("; {peak:.0} MiB at most")).unwrap_or_default();
            field(out, "import", &format!("{seconds:.2} s{memory}"))?;
        }
        let bytes = self.bytes_per_edge_direction;
        field(out, "disk", &format!("{:.1} MiB: {bytes:.1} bytes an edge and direction", self.disk_mb))?;
        field(out, "open", &format!("{:.2} ms; first answer after {:.2} ms", self.open_ms, self.first_ms))?;
        let alone = grouped(self.seeds_alone);
        field(out, "seeds", &format!("{}, of which {alone} have no edges", grouped(self.seeds)))?;
        for hops in hops {
            let figure = |name: &str| self.hops.get(&format!("hop{hops}_{name}")).copied().unwrap_or_default();
            let times = format!("{:.4} ms at the median, {:.4} ms on average", figure("ms"), figure("mean_ms"));
            let (reached, rate) = (figure("reached"), figure("edges_per_s") / 1e6);
            let name = counted(u64::from(*hops), "hop", "hops");
            field(out, &name, &format!("{times}: {reached:.1} nodes, {rate:.0} million edges/s"))?;
        }
        if let Some(peak) = self.rss_mb {
            field(out, "memory", &format!("{peak:.0} MiB at most, maps included"))?;
        }
        Ok(())
    }
}
