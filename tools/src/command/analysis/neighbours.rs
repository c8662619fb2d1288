//! `hedgerow neighbours`: what an entity is related to, and what several have in common.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use hedgerow::{Bounded, Measure, NeighbourOptions, Neighbours};

use crate::command::analysis::{FollowingOptions, entity, number};
use crate::command::bounds::Bounds;
use crate::command::render::layout::{Side, Table, counted, decimal};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// List what an entity is related to, or what several entities have in common
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The neighbours of one entity are ordered by the weight of their relations with it; those that several have in common by how much \
that says: a neighbour of few says more than a hub.

Examples:
  hedgerow neighbours notes.hedgerow 'Pink Floyd'
  hedgerow neighbours notes.hedgerow 'Roger Waters' 'David Gilmour'")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// Names of entities
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
    /// Relations that are followed.
    #[command(flatten)]
    following: FollowingOptions,
    /// How much a neighbour in common says by its number of neighbours: the inverse of its logarithm, or of itself
    #[arg(long, value_enum, default_value_t = Says::AdamicAdar)]
    measure: Says,
    /// Neighbours that are told
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
    /// Time and memory.
    #[command(flatten)]
    bounds: Bounds,
}

/// How much a neighbour in common says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Says {
    AdamicAdar,
    ResourceAllocation,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let snapshot = session.open(&args.store)?;
    let options = NeighbourOptions {
        following: args.following.following(),
        measure: match args.measure {
            Says::AdamicAdar => Measure::AdamicAdar,
            Says::ResourceAllocation => Measure::ResourceAllocation,
        },
        limit: number(args.limit),
    };
    let query = |store: &Bounded<'_>| {
        let entities = args.keys.iter().map(|key| entity(store, key)).collect::<Result<Vec<_>, _>>()?;
        Ok(store.neighbours(&entities, &options)?)
    };
    let found = args.bounds.run(&snapshot, session, query)?;
    found.incomplete.iter().for_each(|lack| session.note(lack));
    session.print(&found, |out| human(out, &found, args.keys.len() > 1))?;
    Ok(Outcome::Done)
}

fn human(out: &mut dyn Write, found: &Neighbours, in_common: bool) -> io::Result<()> {
    let count = counted(found.count, "neighbour", "neighbours");
    if in_common {
        writeln!(out, "{count} in common; nearness {}", decimal(found.score, 3))?;
    } else {
        writeln!(out, "{count}")?;
    }
    let (says, entity) = (("says", Side::Right), ("entity", Side::Left));
    let heading: &[_] =
        if in_common { &[says, entity] } else { &[("weight", Side::Right), entity, ("by", Side::Left)] };
    let mut table = Table::new(heading);
    for line in &found.neighbours {
        let mut cells = vec![decimal(line.score, 3), line.entity.clone()];
        cells.extend((!in_common).then(|| line.labels.join(", ")));
        table.add(cells);
    }
    table.print(out, 0)
}
