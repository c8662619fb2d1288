//! `hedgerow components`: which entities hang together by relations.

use std::io::{self, Write};
use std::path::PathBuf;

use hedgerow::{Bounded, Components};

use crate::command::analysis::number;
use crate::command::bounds::Bounds;
use crate::command::render::layout::{Side, Table, counted, grouped};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Tell into which parts the graph of relations falls, and the largest of them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Entities hang together where relations lead from one to the other, whatever their direction.

Example:
  hedgerow components notes.hedgerow --limit 5")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// Label of relations that count; may be given several times [default: all]
    #[arg(long, value_name = "LABEL")]
    predicate: Vec<String>,
    /// Components that are told, the largest first
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: u32,
    /// Entities that are named of each, those with most relations first
    #[arg(long, value_name = "N", default_value_t = 5)]
    named: u32,
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
    let query = |store: &Bounded<'_>| Ok(store.components(&args.predicate, number(args.limit), number(args.named))?);
    let found = args.bounds.run(&snapshot, session, query)?;
    for lack in &found.incomplete {
        session.note(lack);
    }
    session.print(&found, |out| human(out, &found))?;
    Ok(Outcome::Done)
}

fn human(out: &mut dyn Write, found: &Components) -> io::Result<()> {
    let entities = counted(found.entities, "entity", "entities");
    let components = counted(found.components, "component", "components");
    writeln!(out, "{entities} in {components}, {} of one entity alone", grouped(found.alone))?;
    let mut table = Table::new(&[("entities", Side::Right), ("foremost", Side::Left)]);
    for line in &found.largest {
        table.add([grouped(line.size), line.foremost.join(", ")]);
    }
    table.print(out, 0)
}
