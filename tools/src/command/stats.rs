//! `hedgerow stats`: counts of what a store holds.

use std::io::{self, Write};
use std::path::PathBuf;

use hedgerow::{CommunityStats, EdgeStats, Stats};

use crate::command::bounds::Bounds;
use crate::command::render::layout::{byte_size, counted, decimal, grouped, plain};
use crate::command::render::{field, rule};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Count what a store holds
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  hedgerow stats notes.hedgerow")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
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
    let stats = args.bounds.run(&snapshot, session, |store| Ok(store.stats()?))?;
    session.print(&stats, |out| human(out, &stats))?;
    Ok(Outcome::Done)
}

fn human(out: &mut dyn Write, stats: &Stats) -> io::Result<()> {
    rule(out, &format!("generation {}", grouped(stats.generation)))?;
    let text = byte_size(stats.text_bytes);
    let chunks = counted(stats.chunks, "chunk", "chunks");
    field(out, "fingerprint", &stats.fingerprint)?;
    field(out, "documents", &grouped(stats.documents))?;
    field(out, "text", &format!("{text} in {chunks}, {}", counted(stats.terms, "term", "terms")))?;
    let mentions = counted(stats.mentions, "mention", "mentions");
    let definitions = counted(stats.definitions, "definition link", "definition links");
    field(out, "entities", &format!("{}, {mentions}, {definitions}", grouped(stats.entities)))?;
    field(out, "relations", &grouped(stats.relations))?;
    for space in &stats.spaces {
        let vectors = counted(space.vectors, "vector", "vectors");
        let made = format!("{} components, made by {}", space.dimensions, space.model);
        let indexed = space.indexed.map(|count| format!("; its index covers {}", grouped(count))).unwrap_or_default();
        field(out, "vectors", &format!("{}: {vectors} of {made}{indexed}", space.name))?;
    }
    for read in &stats.extractions {
        let chunks = counted(read.chunks, "chunk", "chunks");
        field(out, "extracted", &format!("{}: {chunks} by {}", plain(&read.extractor), plain(&read.model)))?;
    }
    for edges in &stats.edges {
        similarity(out, edges)?;
    }
    if let Some(communities) = &stats.communities {
        field(out, "communities", &reported(communities))?;
    }
    let segments = counted(stats.segments, "segment", "segments");
    let bytes = (byte_size(stats.segment_bytes), byte_size(stats.projection_bytes));
    field(out, "on disk", &format!("{} in {segments}, {} of projections", bytes.0, bytes.1))?;
    field(out, "incomplete", &stats.incomplete.join("\n"))
}

fn reported(stats: &CommunityStats) -> String {
    let levels = counted(stats.levels, "level", "levels");
    let reports =
        format!("{} in {levels}; {} reports by a model", grouped(stats.communities), grouped(stats.by_models));
    if stats.space.is_empty() {
        return format!("{reports}, none with a vector");
    }
    format!("{reports}, {} with a vector in {} made by {}", grouped(stats.vectors), stats.space, stats.model)
}

fn similarity(out: &mut dyn Write, edges: &EdgeStats) -> io::Result<()> {
    let threshold = decimal(edges.threshold, 3);
    let kind = edges.kind;
    let threshold = match edges.signals {
        0 => format!("percentile {} (cosine {threshold})", edges.percentile),
        signals => counted(signals as u64, "signal", "signals"),
    };
    let rules = format!("{threshold}, top {}", edges.top_m);
    let pairs = format!("{} of {} pairs passed", grouped(edges.passed), grouped(edges.pairs));
    let shape = format!(
        "degree at most {}, {}",
        grouped(edges.degree_max.into()),
        counted(edges.components.into(), "component", "components")
    );
    let [down, up] = edges.reserve;
    let reserve = match edges.signals {
        0 => format!("follows changes over {} pairs down, {} up", grouped(down), grouped(up)),
        _ => "built anew after changes".to_owned(),
    };
    field(
        out,
        "similarity",
        &format!(
            "{}, {kind}: {}; {rules}; {pairs}; {shape}; {reserve}",
            edges.space,
            counted(edges.kept, "edge", "edges")
        ),
    )
}
