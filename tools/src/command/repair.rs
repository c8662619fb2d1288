//! `hedgerow repair`: makes again what can be made again.

use std::io::{self, Write};
use std::path::PathBuf;

use hedgerow::{Repaired, Store};

use crate::command::models;
use crate::command::render::layout::grouped;
use crate::command::verify::list;
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Make again what can be made again: the catalog, HEAD, links and similarity edges
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every byte of the documents and what was read out of them is checked first. Where something of that is damaged, nothing \
is changed and the exit code is 4: `hedgerow salvage` saves the rest.

Example:
  hedgerow repair notes.hedgerow")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let progress = session.progress("checking");
    let (store, mut repaired) = Store::repair(&args.store, &progress)?;
    progress.say("linking");
    models::refresh(&store, None, &progress)?;
    drop(progress);
    repaired.generation = store.snapshot().generation();
    session.print(&repaired, |out| human(out, &repaired))?;
    Ok(Outcome::Done)
}

fn human(out: &mut dyn Write, repaired: &Repaired) -> io::Result<()> {
    let parts = [("catalog.redb", &repaired.catalog), ("HEAD", &repaired.head)];
    let made = parts.into_iter().filter_map(|(name, reason)| Some(format!("{name}: {}", reason.as_ref()?)));
    let made: Vec<String> = made.chain(repaired.projections.iter().cloned()).collect();
    let generation = grouped(repaired.generation);
    if made.is_empty() {
        return writeln!(out, "generation {generation}; there was nothing to repair");
    }
    writeln!(out, "generation {generation}; made again:")?;
    list(out, "✔", &made)
}
