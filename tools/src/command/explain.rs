//! `hedgerow explain`: why a similarity edge is there, or is not.

use std::io::{self, Write};
use std::path::PathBuf;

use hedgerow::{ChunkId, Explanation, Node, Verdict};
use serde::Serialize;

use crate::command::bounds::Bounds;
use crate::command::edges::signals::SignalTold;
use crate::command::edges::{RulesTold, only_space};
use crate::command::find;
use crate::command::render::field;
use crate::command::render::layout::{decimal, grouped};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Say why there is a similarity edge between two chunks, or none
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A document stands for its first chunk. The ranks are exact: both chunks are compared with every vector of the space. Where \
signals make the edges, each is told with its threshold in place of the ranks.

Example:
  hedgerow explain notes.hedgerow opera#0 band#0")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// Key of a chunk, KEY#N, or of a document
    first: String,
    /// Key of the other one
    second: String,
    /// Vector space [default: the only one]
    #[arg(long, value_name = "NAME")]
    space: Option<String>,
    /// Time and memory.
    #[command(flatten)]
    bounds: Bounds,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let snapshot = session.open(&args.store)?;
    let space = match &args.space {
        Some(space) => space.clone(),
        None => only_space(&snapshot)?,
    };
    let explained = args.bounds.run(&snapshot, session, |store| {
        let chunk = |key: &str| -> Result<ChunkId, Failure> {
            let first = match find(store, key)? {
                Node::Chunk(chunk) => Some(chunk),
                Node::Document(id) => store.document(id)?.chunks().next(),
                Node::Entity(_) | Node::Community(_) => None,
            };
            first.ok_or_else(|| Failure::Usage(format!("{key} is no chunk; a chunk is KEY#N, counted from 0")))
        };
        let pair = [chunk(&args.first)?, chunk(&args.second)?];
        let explanation = store.explain(pair, &space)?;
        let keys = pair.map(|chunk| store.key_of(Node::Chunk(chunk)));
        let [first, second] = keys;
        Ok(Explained { first: first?, second: second?, explanation })
    })?;
    let told = Told::of(&explained, &space);
    session.print(&told, |out| human(out, &told))?;
    Ok(Outcome::Done)
}

struct Explained {
    first: String,
    second: String,
    explanation: Explanation,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Told<'e> {
    first: &'e str,
    second: &'e str,
    space: &'e str,
    similarity: Option<f32>,
    kind: &'static str,
    chunks: usize,
    partners: Option<[usize; 2]>,
    rank_of_second: Option<usize>,
    rank_of_first: Option<usize>,
    pairs: Option<u64>,
    pairs_below: Option<u64>,
    percentile_of_pair: Option<f64>,
    percentile: Option<f64>,
    threshold: Option<f32>,
    rules: Option<RulesTold>,
    signals: Vec<VerdictTold>,
    weight: Option<f32>,
    in_step: Option<bool>,
    edge: Option<f32>,
    by_similarity: bool,
    by_entities: bool,
    reason: &'static str,
    shared: Vec<Shared<'e>>,
}

/// What a signal says of the pair.
#[derive(Debug, Serialize)]
struct VerdictTold {
    #[serde(flatten)]
    signal: SignalTold,
    similarity: f32,
    agrees: bool,
}

#[derive(Debug, Serialize)]
struct Shared<'e> {
    name: &'e str,
    chunks: usize,
}

impl<'e> Told<'e> {
    fn of(explained: &'e Explained, space: &'e str) -> Self {
        let Explained { first, second, explanation } = explained;
        let Explanation {
            similarity,
            kind,
            chunks,
            partners,
            ranks,
            pairs,
            rules,
            signals,
            weight,
            edge,
            by_similarity,
            by_entities,
            reason,
            shared,
            ..
        } = explanation;
        let rules = rules.as_ref();
        let weighted = rules.is_some_and(|rules| rules.rules.weighted);
        Self {
            first,
            second,
            space,
            similarity: *similarity,
            kind: kind.name(),
            chunks: *chunks,
            partners: *partners,
            rank_of_second: ranks.map(|ranks| ranks[0]),
            rank_of_first: ranks.map(|ranks| ranks[1]),
            pairs: pairs.map(|pairs| pairs.0),
            pairs_below: pairs.map(|pairs| pairs.1),
            percentile_of_pair: pairs.map(|(pairs, below)| share(below, pairs)),
            percentile: rules.map(|rules| f64::from(rules.percentile) / 1000.0),
            threshold: rules.map(|rules| rules.threshold),
            rules: rules.map(|rules| RulesTold::of(&rules.rules)),
            signals: signals.iter().map(|verdict| VerdictTold::of(verdict, weighted)).collect(),
            weight: *weight,
            in_step: rules.map(|rules| rules.in_step),
            edge: *edge,
            by_similarity: *by_similarity,
            by_entities: *by_entities,
            reason: reason.text(),
            shared: shared.iter().map(|(name, chunks)| Shared { name, chunks: *chunks }).collect(),
        }
    }
}

impl VerdictTold {
    fn of(verdict: &Verdict, weighted: bool) -> Self {
        let Verdict { signal, similarity, threshold, agrees, .. } = verdict;
        Self { signal: SignalTold::of(signal, *threshold, weighted), similarity: *similarity, agrees: *agrees }
    }
}

/// A share in per cent.
#[expect(clippy::cast_precision_loss, reason = "a figure to read; exact up to 2⁵³ pairs")]
fn share(part: u64, all: u64) -> f64 {
    part as f64 * 100.0 / all.max(1) as f64
}

fn human(out: &mut dyn Write, told: &Told<'_>) -> io::Result<()> {
    field(out, "edge", &told.edge.map_or_else(|| "none".to_owned(), |weight| decimal(weight, 4)))?;
    let because = match (told.by_similarity, told.by_entities) {
        (true, true) => format!("{}; and they share a rare entity", told.reason),
        (false, true) => format!("they share a rare entity; by similarity there is none: {}", told.reason),
        _ => told.reason.to_owned(),
    };
    field(out, "because", &because)?;
    if let Some(similarity) = told.similarity {
        let place = format!("in the space {}, {}", told.space, told.kind);
        field(out, "similarity", &format!("{} {place}", decimal(similarity, 4)))?;
        if let (Some(pairs), Some(below), Some(percentile)) = (told.pairs, told.pairs_below, told.percentile_of_pair) {
            let of = format!("{} of {} pairs of this kind are less similar", grouped(below), grouped(pairs));
            field(out, "percentile", &format!("{}: {of}", decimal(percentile, 3)))?;
        }
    }
    if let (Some(rules), Some(similarity)) = (&told.rules, told.similarity) {
        if told.signals.is_empty() {
            verdicts(out, told, rules, similarity)?;
        } else {
            by_signals(out, told, rules)?;
        }
    }
    if told.in_step == Some(false) {
        field(out, "behind", "the edges were built before the last change: `hedgerow edges` brings them in step")?;
    }
    for Shared { name, chunks } in told.shared.iter().take(SHARED_MAX) {
        let most = told.rules.as_ref().and_then(|rules| rules.shared_chunks_max);
        let rare = match most {
            Some(most) if *chunks as u64 <= u64::from(most) => "; rare",
            _ => "",
        };
        field(out, "shared", &format!("{name}, which {} mention{rare}", grouped(*chunks as u64)))?;
    }
    Ok(())
}

/// What every signal says of a pair.
fn by_signals(out: &mut dyn Write, told: &Told<'_>, rules: &RulesTold) -> io::Result<()> {
    for VerdictTold { signal, similarity, agrees } in &told.signals {
        let verdict = if *agrees { "agrees" } else { "does not agree" };
        signal.human(out, Some(&format!("{} {verdict}", decimal(*similarity, 4))))?;
    }
    let Some(weight) = told.weight else { return Ok(()) };
    let reached = |bar: f32| if weight >= bar { "reached" } else { "not reached" };
    if rules.weighted {
        field(out, "score", &format!("{}, the mean of the signals by their weights", decimal(weight, 4)))?;
        if let (Some(threshold), Some(percentile)) = (told.threshold, told.percentile) {
            let below = format!("{percentile} per cent of the pairs lie below it");
            field(out, "threshold", &format!("{}, {}: {below}", decimal(threshold, 4), reached(threshold)))?;
        }
    }
    if let Some(least) = rules.least {
        field(out, "least", &format!("{}, {}", decimal(least, 4), reached(least)))?;
    }
    cap(out, told, rules)
}

/// What every rule says of a pair.
fn verdicts(out: &mut dyn Write, told: &Told<'_>, rules: &RulesTold, similarity: f32) -> io::Result<()> {
    let reached = |bar: f32| if similarity >= bar { "reached" } else { "not reached" };
    if let (Some(threshold), Some(percentile)) = (told.threshold, told.percentile) {
        let below = format!("{percentile} per cent of the pairs lie below it");
        field(out, "threshold", &format!("{}, {}: {below}", decimal(threshold, 4), reached(threshold)))?;
    }
    if let Some(least) = rules.least {
        field(out, "least", &format!("{}, {}", decimal(least, 4), reached(least)))?;
    }
    let ends = told.partners.unwrap_or_default();
    for (other, chunk, rank, of) in [
        (told.second, told.first, told.rank_of_second, ends[0]),
        (told.first, told.second, told.rank_of_first, ends[1]),
    ] {
        if let Some(rank) = rank {
            let top = if rank as u64 <= u64::from(rules.top_m) { "among" } else { "not among" };
            let near = match rules.nearest {
                Some(nearest) if rank as u64 <= u64::from(nearest) => format!(", among its {nearest} nearest"),
                Some(nearest) => format!(", not among its {nearest} nearest"),
                None => String::new(),
            };
            let place = format!("number {} of {} for {chunk}", grouped(rank as u64), grouped(of as u64));
            field(out, "rank", &format!("{other} is {place}, {top} its top {}{near}", rules.top_m))?;
        }
    }
    cap(out, told, rules)
}

fn cap(out: &mut dyn Write, told: &Told<'_>, rules: &RulesTold) -> io::Result<()> {
    field(out, "cap", if rules.cap == "both" { "both have to choose the other" } else { "either's choice is enough" })?;
    if let (Some(most), Some(top)) = (rules.shared_chunks_max, rules.shared_top_m) {
        let verdict = if told.by_entities { "an edge" } else { "no edge" };
        field(out, "entities", &format!("{verdict}: those of at most {most} chunks join, top {top} of either"))?;
    }
    Ok(())
}

/// Names that are shown of those that both mention.
const SHARED_MAX: usize = 10;
