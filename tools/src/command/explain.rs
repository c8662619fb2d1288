//! `hedgerow explain`: why a similarity edge is there, or is not.

use std::io::{self, Write};
use std::path::PathBuf;

use hedgerow::{ChunkId, Explanation, Node};
use serde::Serialize;

use crate::command::bounds::Bounds;
use crate::command::edges::only_space;
use crate::command::find;
use crate::command::render::field;
use crate::command::render::layout::{decimal, grouped};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Say why there is a similarity edge between two chunks, or none
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A document stands for its first chunk. The ranks are exact: both chunks are compared with every vector of the space.

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
                Node::Entity(_) => None,
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
    percentile: Option<f64>,
    top_m: Option<u32>,
    threshold: Option<f32>,
    in_step: Option<bool>,
    edge: Option<f32>,
    reason: &'static str,
    shared: Vec<Shared<'e>>,
}

#[derive(Debug, Serialize)]
struct Shared<'e> {
    name: &'e str,
    chunks: usize,
}

impl<'e> Told<'e> {
    fn of(explained: &'e Explained, space: &'e str) -> Self {
        let Explained { first, second, explanation } = explained;
        let Explanation { similarity, kind, chunks, partners, ranks, rules, edge, reason, shared, .. } = explanation;
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
            percentile: rules.map(|rules| f64::from(rules.percentile) / 1000.0),
            top_m: rules.map(|rules| rules.top_m),
            threshold: rules.map(|rules| rules.threshold),
            in_step: rules.map(|rules| rules.in_step),
            edge: *edge,
            reason: reason.text(),
            shared: shared.iter().map(|(name, chunks)| Shared { name, chunks: *chunks }).collect(),
        }
    }
}

fn human(out: &mut dyn Write, told: &Told<'_>) -> io::Result<()> {
    field(out, "edge", &told.edge.map_or_else(|| "none".to_owned(), |weight| decimal(weight, 4)))?;
    field(out, "because", told.reason)?;
    if let Some(similarity) = told.similarity {
        field(out, "similarity", &format!("{} in the space {}, {}", decimal(similarity, 4), told.space, told.kind))?;
    }
    if let (Some(threshold), Some(percentile)) = (told.threshold, told.percentile) {
        let threshold = decimal(threshold, 4);
        field(out, "threshold", &format!("{threshold}: {percentile} per cent of the pairs lie below it"))?;
    }
    let partners = told.partners.unwrap_or_default();
    let top = told.top_m.map_or_else(String::new, |top| format!("; each chooses {top}"));
    for (other, chunk, rank, of) in [
        (told.second, told.first, told.rank_of_second, partners[0]),
        (told.first, told.second, told.rank_of_first, partners[1]),
    ] {
        if let Some(rank) = rank {
            let of = grouped(of as u64);
            field(out, "rank", &format!("{other} is number {} of {of} for {chunk}{top}", grouped(rank as u64)))?;
        }
    }
    if told.in_step == Some(false) {
        field(out, "behind", "the edges were built before the last change: `hedgerow edges` brings them in step")?;
    }
    for Shared { name, chunks } in told.shared.iter().take(SHARED_MAX) {
        field(out, "shared", &format!("{name}, which {} mention", grouped(*chunks as u64)))?;
    }
    Ok(())
}

/// Names that are shown of those that both mention.
const SHARED_MAX: usize = 10;
