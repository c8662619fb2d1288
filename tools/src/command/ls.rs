//! `hedgerow ls`: what is in a store, in columns.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use hedgerow::{Bounded, CommunityLine, Listing};

use crate::command::bounds::Bounds;
use crate::command::render::layout::{Side, Table, byte_size, counted, decimal, grouped};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// List documents by key, entities by how often they are mentioned, relations by subject, or communities by level
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  hedgerow ls notes.hedgerow entities --limit 20")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// What to list
    #[arg(value_enum, default_value_t = What::Documents)]
    what: What,
    /// Lines that are printed
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Time and memory.
    #[command(flatten)]
    bounds: Bounds,
}

/// What a store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    Documents,
    Entities,
    Relations,
    Communities,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let snapshot = session.open(&args.store)?;
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let list = |store: &Bounded<'_>| {
        Ok(match args.what {
            What::Documents => store.list_documents(limit)?,
            What::Entities => store.list_entities(limit)?,
            What::Relations => store.list_relations(limit)?,
            What::Communities => store.list_communities(None, limit)?,
        })
    };
    let listing = args.bounds.run(&snapshot, session, list)?;
    session.print(&listing, |out| human(out, &listing, limit))?;
    Ok(Outcome::Done)
}

/// Communities in columns.
pub fn communities(lines: &[CommunityLine]) -> Table {
    let mut table = Table::new(&[
        ("id", Side::Left),
        ("level", Side::Right),
        ("members", Side::Right),
        ("rank", Side::Right),
        ("title", Side::Left),
    ]);
    for line in lines {
        let title = if line.stale { format!("{} (stale)", line.title) } else { line.title.clone() };
        table.add([line.id.clone(), line.level.to_string(), grouped(line.members), decimal(line.rank, 3), title]);
    }
    table
}

fn human(out: &mut dyn Write, listing: &Listing, limit: usize) -> io::Result<()> {
    let table = match listing {
        Listing::Documents(lines) => {
            let mut table = Table::new(&[
                ("key", Side::Left),
                ("title", Side::Left),
                ("chunks", Side::Right),
                ("text", Side::Right),
            ]);
            for line in lines {
                let bytes = byte_size(line.bytes.into());
                table.add([line.key.clone(), line.title.clone(), grouped(line.chunks), bytes]);
            }
            table
        }
        Listing::Entities(lines) => {
            let mut table = Table::new(&[
                ("entity", Side::Left),
                ("type", Side::Left),
                ("mentions", Side::Right),
                ("definitions", Side::Right),
            ]);
            for line in lines {
                let counts = (grouped(line.mentions), grouped(line.definitions));
                table.add([line.name.clone(), line.kind.clone(), counts.0, counts.1]);
            }
            table
        }
        Listing::Relations(lines) => {
            let mut table = Table::new(&[
                ("subject", Side::Left),
                ("relation", Side::Left),
                ("object", Side::Left),
                ("weight", Side::Right),
                ("evidence", Side::Left),
            ]);
            for line in lines {
                let evidence = match line.evidence.as_slice() {
                    [one] => one.clone(),
                    [first, rest @ ..] => format!("{first} and {} more", rest.len()),
                    [] => String::new(),
                };
                let [subject, predicate, object] = [&line.subject, &line.predicate, &line.object].map(String::clone);
                table.add([subject, predicate, object, decimal(line.weight, 2), evidence]);
            }
            table
        }
        Listing::Communities(lines) => communities(lines),
    };
    table.print(out, 0)?;
    if table.len() == limit && limit > 0 {
        writeln!(out, "The first {}; --limit shows more, if there are more.", counted(limit as u64, "line", "lines"))?;
    }
    Ok(())
}
