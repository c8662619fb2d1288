//! `hedgerow salvage`: what can still be read of a damaged store goes into a new one.

use std::io::{self, Write};
use std::path::PathBuf;

use hedgerow::{EdgeError, Env, Lost, QueryError, Salvaged, Store};
use serde::Serialize;

use crate::command::render::layout::{counted, grouped};
use crate::embed::StaticTable;
use crate::failure::{Failure, Outcome};
use crate::session::{Progress, Session};

/// Save what can be read of a damaged store into a new one
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Works without HEAD, catalog.redb and manifests. A document is saved as it was or not at all, but for mentions, relations and \
vectors, which it may lose; what is lost is listed, and the exit code is 1. Ingesting the same content again then gives it \
back. A report of a community that a model wrote is saved where nothing is lost that it is made of; others are drawn from the \
store. The damaged store is left as it is.

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
    let (store, mut salvaged) = hedgerow::salvage(&Env::folder(&args.store)?, Env::folder(&args.new)?, &progress)?;
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
    let reports_by_models = communities(&store, &mut salvaged, &progress)?;
    store.close()?;
    drop(progress);
    for lost in &salvaged.lost {
        session.note(sentence(lost));
    }
    let told = Told { salvaged: &salvaged, reports_by_models };
    session.print(&told, |out| human(out, &told))?;
    Ok(if salvaged.lost.is_empty() { Outcome::Done } else { Outcome::Rejected })
}

/// Finds the communities that there were; how many of their reports are those of a model. What is lost of these is added.
fn communities(store: &Store, salvaged: &mut Salvaged, progress: &Progress) -> Result<u64, Failure> {
    let Some(former) = &salvaged.communities else { return Ok(0) };
    progress.say("finding communities");
    let kept = store.follow_communities(former, &[&StaticTable::default()], progress)?.by_models;
    let count = former.by_models();
    if kept < count {
        let (file, document, what) = (String::new(), None, "reports");
        let reason = format!("{} of {count} by a model: what they are made of is not there as it was", count - kept);
        salvaged.lost.push(Lost { file, document, what, reason });
    }
    Ok(kept)
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Told<'s> {
    #[serde(flatten)]
    salvaged: &'s Salvaged,
    reports_by_models: u64,
}

fn sentence(lost: &Lost) -> String {
    let of = lost.document.as_ref().map_or_else(String::new, |key| format!(" of {key}"));
    let file = if lost.file.is_empty() { String::new() } else { format!(" ({})", lost.file) };
    format!("lost {}{of}{file}: {}", lost.what, lost.reason)
}

fn human(out: &mut dyn Write, told: &Told<'_>) -> io::Result<()> {
    let Told { salvaged, reports_by_models } = told;
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
    let reports = match counted(*reports_by_models, "report", "reports") {
        _ if *reports_by_models == 0 => String::new(),
        reports => format!(" and {reports} by a model"),
    };
    writeln!(out, "{documents}{reports} saved from {segments}; {generation}; {losses}")
}
