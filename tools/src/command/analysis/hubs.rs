//! `hedgerow hubs`: the entities with most relations, or through which most shortest paths lead.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use hedgerow::{Betweenness, Bounded, Degrees};

use crate::command::analysis::{FollowingOptions, number};
use crate::command::bounds::Bounds;
use crate::command::render::layout::{Side, Table, counted, decimal, grouped};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Find the entities with most relations, or through which most shortest paths lead
#[derive(Debug, clap::Args)]
#[command(after_help = "\
By degree it tells as well how relations are spread. By betweenness, an entity's score is the sum, over all pairs of others, of the \
share of their shortest paths that lead through it; where the graph has more entities than --sources, it is estimated from as many.

Examples:
  hedgerow hubs notes.hedgerow --limit 10
  hedgerow hubs notes.hedgerow --by betweenness --sources 1000")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// What makes a hub
    #[arg(long, value_enum, default_value_t = By::Degree)]
    by: By,
    /// Relations that are followed.
    #[command(flatten)]
    following: FollowingOptions,
    /// Entities from which paths are counted, by betweenness [default: 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    sources: Option<u32>,
    /// Entities that are told
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
    /// Time and memory.
    #[command(flatten)]
    bounds: Bounds,
}

/// What makes a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    Degree,
    Betweenness,
}

const SOURCES: u32 = 256;

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    if args.by == By::Degree && args.sources.is_some() {
        return Err(Failure::Usage("--sources is for --by betweenness".to_owned()));
    }
    let snapshot = session.open(&args.store)?;
    let (following, limit) = (args.following.following(), number(args.limit));
    if args.by == By::Degree {
        let query = |store: &Bounded<'_>| Ok(store.degrees(&following, limit)?);
        let found = args.bounds.run(&snapshot, session, query)?;
        found.incomplete.iter().for_each(|lack| session.note(lack));
        session.print(&found, |out| degrees(out, &found))?;
    } else {
        let sources = number(args.sources.unwrap_or(SOURCES));
        let query = |store: &Bounded<'_>| Ok(store.betweenness(&following, sources, limit)?);
        let found = args.bounds.run(&snapshot, session, query)?;
        found.incomplete.iter().for_each(|lack| session.note(lack));
        session.print(&found, |out| betweenness(out, &found))?;
    }
    Ok(Outcome::Done)
}

fn degrees(out: &mut dyn Write, found: &Degrees) -> io::Result<()> {
    let entities = counted(found.entities, "entity", "entities");
    let (mean, max) = (decimal(found.mean, 2), grouped(found.max));
    writeln!(out, "{entities}; relations of one: {mean} on average, {max} at most")?;
    for (class, count) in found.spread.iter().enumerate().filter(|(_, count)| **count > 0) {
        let entities = counted(*count, "entity", "entities");
        match class {
            0 => writeln!(out, "  {entities} without relations")?,
            1 => writeln!(out, "  {entities} with 1")?,
            class => {
                let least = 1_u64 << (class - 1).min(62);
                writeln!(out, "  {entities} with {} to {}", grouped(least), grouped(least * 2 - 1))?;
            }
        }
    }
    let mut table = Table::new(&[("relations", Side::Right), ("entity", Side::Left)]);
    for line in &found.hubs {
        table.add([grouped(line.degree), line.entity.clone()]);
    }
    table.print(out, 0)
}

fn betweenness(out: &mut dyn Write, found: &Betweenness) -> io::Result<()> {
    let entities = counted(found.entities, "entity", "entities");
    if found.sources < found.entities {
        writeln!(out, "{entities}; estimated by paths from {} of them", grouped(found.sources))?;
    } else {
        writeln!(out, "{entities}; exact")?;
    }
    let mut table = Table::new(&[("betweenness", Side::Right), ("entity", Side::Left)]);
    for line in &found.hubs {
        table.add([decimal(line.score, 2), line.entity.clone()]);
    }
    table.print(out, 0)
}
