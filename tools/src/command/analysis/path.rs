//! `hedgerow path`: the shortest paths between two entities.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use hedgerow::{Bounded, FoundPath, FoundPaths, PathCost, PathOptions};

use crate::command::analysis::{FollowingOptions, entity, number};
use crate::command::bounds::Bounds;
use crate::command::expand::arrow;
use crate::command::render::layout::{columns, counted, decimal, plain, width};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Find the shortest paths between two entities along relations
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hedgerow path notes.hedgerow 'Syd Barrett' 'Abbey Road'
  hedgerow path notes.hedgerow 'Syd Barrett' 'Abbey Road' -k 3 --weighted
  hedgerow path notes.hedgerow libc6 bash --direction in --predicate depends")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// Name of the entity where paths begin
    from: String,
    /// Name of the entity where they end
    to: String,
    /// Paths that are told
    #[arg(short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    k: u32,
    /// Let strong relations be near: each costs the inverse of its weight; short for --cost inverse
    #[arg(long, conflicts_with = "cost")]
    weighted: bool,
    /// What a relation costs: 1, the inverse of its weight, or its weight as a length
    #[arg(long, value_enum, default_value_t = Costs::Hops)]
    cost: Costs,
    /// Relations that are followed.
    #[command(flatten)]
    following: FollowingOptions,
    /// Entities that may be visited
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    visits: u32,
    /// Time and memory.
    #[command(flatten)]
    bounds: Bounds,
}

/// What a relation costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Costs {
    Hops,
    Inverse,
    Weight,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let snapshot = session.open(&args.store)?;
    let options = PathOptions {
        following: args.following.following(),
        cost: match args.cost {
            Costs::Hops if args.weighted => PathCost::Inverse,
            Costs::Hops => PathCost::Hops,
            Costs::Inverse => PathCost::Inverse,
            Costs::Weight => PathCost::Weight,
        },
        count: number(args.k),
        visited_max: number(args.visits),
    };
    let query = |store: &Bounded<'_>| {
        let ends = (entity(store, &args.from)?, entity(store, &args.to)?);
        Ok(store.paths(ends.0, ends.1, &options)?)
    };
    let found = args.bounds.run(&snapshot, session, query)?;
    found.incomplete.iter().for_each(|lack| session.note(lack));
    session.print(&found, |out| human(out, &found))?;
    Ok(Outcome::Done)
}

fn human(out: &mut dyn Write, found: &FoundPaths) -> io::Result<()> {
    for path in &found.paths {
        draw(out, path)?;
    }
    let visited = counted(found.visited, "entity was visited", "entities were visited");
    if !found.complete {
        writeln!(out, "The search gave up: {visited}; --visits allows more.")
    } else if found.paths.is_empty() {
        writeln!(out, "There is no path; {visited}.")
    } else {
        Ok(())
    }
}

/// A path with its cost; a long one breaks before a relation.
fn draw(out: &mut dyn Write, path: &FoundPath) -> io::Result<()> {
    let name = |key: &str| plain(key.strip_prefix("entity:").unwrap_or(key));
    let Some(first) = path.edges.first() else { return writeln!(out, "The path begins at its end.") };
    let cost = format!("{:>6}", decimal(path.cost, 2));
    let mut line = format!("{cost}  {}", name(&first.from));
    for edge in &path.edges {
        let step = format!("{} {}", arrow(edge), name(&edge.to));
        if columns(&line) + 1 + columns(&step) > width() {
            writeln!(out, "{line}")?;
            line = " ".repeat(columns(&cost) + 2);
        }
        line.push(' ');
        line.push_str(&step);
    }
    writeln!(out, "{line}")
}
