//! `hedgerow select`: sets of entities, composed of others.

use std::io::{self, Write};
use std::path::PathBuf;

use hedgerow::{Bounded, NodeSet, Selected};

use crate::command::analysis::number;
use crate::command::bounds::Bounds;
use crate::command::render::layout::{Side, Table, counted, grouped};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// List the entities of a set that is composed of others
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A SET joins names by & (in both), | (in either), \\ (in what comes before, but not in this) and ( ); & ? keeps what passes a test. \
& binds closer than | and \\, which are read from left to right. A name with spaces or one of ( ) & | \\ ? stands between two \".

Names:  NAME or entity:NAME; near:HOPS:NAME, out:HOPS:NAME, in:HOPS:NAME (within so many relations, either way, along or against \
them); with:NAME (mentioned beside it in a chunk); component:NAME (hanging together with it); type:TYPE; community:ID; all
Tests:  type:TYPE; label:LABEL; degree:N; mentions:N (at least so many relations, or chunks that mention it)

Examples:
  hedgerow select notes.hedgerow '\"near:2:Pink Floyd\" & type:person'
  hedgerow select notes.hedgerow '(\"with:Abbey Road\" | \"near:1:The Wall\") \\ \"Pink Floyd\" & ?degree:3'")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// The set
    #[arg(value_name = "SET")]
    set: String,
    /// Entities that are told, those with most relations first
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Time and memory.
    #[command(flatten)]
    bounds: Bounds,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let set = NodeSet::parse(&args.set).map_err(|error| Failure::Usage(error.to_string()))?;
    let snapshot = session.open(&args.store)?;
    let query = |store: &Bounded<'_>| Ok(store.select(&set, number(args.limit))?);
    let found = args.bounds.run(&snapshot, session, query)?;
    found.incomplete.iter().for_each(|lack| session.note(lack));
    session.print(&found, |out| human(out, &found))?;
    Ok(Outcome::Done)
}

fn human(out: &mut dyn Write, found: &Selected) -> io::Result<()> {
    writeln!(out, "{}", counted(found.count, "entity", "entities"))?;
    let mut table = Table::new(&[("entity", Side::Left), ("type", Side::Left), ("relations", Side::Right)]);
    for line in &found.entities {
        table.add([line.entity.clone(), line.kind.clone(), grouped(line.degree)]);
    }
    table.print(out, 0)
}
