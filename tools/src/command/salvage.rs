//! `hedgerow salvage`: what can still be read of a damaged store goes into a new one.

use std::io::{self, Write};
use std::path::PathBuf;

use hedgerow::{EdgeError, Env, Lost, QueryError, Salvaged};

use crate::command::render::layout::{counted, grouped};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Save what can be read of a damaged store into a new one
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Works without HEAD, catalog.redb and manifests. A document is saved as it was or not at all, but for mentions, relations and \
vectors, which it may lose; what is lost is listed, and the exit code is 1. Ingesting the same content again then gives it \
back. The damaged store is left as it is.

Example:
  hedgerow salvage notes.hedgerow saved.hedgerow")]
pub struct Args {
    /// Folder of the damaged store
    pub store: PathBuf,
    /// Folder of the new store, absent or empty
    new: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let progress = session.progress("salvaging");
    let (store, salvaged) = hedgerow::salvage(&Env::folder(&args.store)?, Env::folder(&args.new)?, &progress)?;
    progress.say("linking");
    store.refresh(&progress)?;
    for (space, rules) in &salvaged.edges {
        progress.say("comparing");
        match store.build_edges(space, rules, &progress) {
            // No vector of the space was saved, and that is told.
            Err(EdgeError::Query(QueryError::UnknownSpace { .. })) => {}
            built => drop(built?),
        }
    }
    store.close()?;
    drop(progress);
    for lost in &salvaged.lost {
        session.note(sentence(lost));
    }
    session.print(&salvaged, |out| human(out, &salvaged))?;
    Ok(if salvaged.lost.is_empty() { Outcome::Done } else { Outcome::Rejected })
}

fn sentence(lost: &Lost) -> String {
    let of = lost.document.as_ref().map_or_else(String::new, |key| format!(" of {key}"));
    let file = if lost.file.is_empty() { String::new() } else { format!(" ({})", lost.file) };
    format!("lost {}{of}{file}: {}", lost.what, lost.reason)
}

fn human(out: &mut dyn Write, salvaged: &Salvaged) -> io::Result<()> {
    let documents = counted(salvaged.documents, "document", "documents");
    let segments = counted(salvaged.segments, "segment", "segments");
    let generation = salvaged.generation.map_or_else(
        || "no manifest could be read".to_owned(),
        |generation| format!("generation {}", grouped(generation)),
    );
    let losses = match salvaged.lost.len() as u64 {
        0 => "nothing is lost".to_owned(),
        count => format!("{} listed", counted(count, "loss is", "losses are")),
    };
    writeln!(out, "{documents} saved from {segments}; {generation}; {losses}")
}
