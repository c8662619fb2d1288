//! `hedgerow rm`: documents go, with everything that only they support.

use std::io::{self, Write};
use std::path::PathBuf;

use hedgerow::{Batch, Node, Snapshot, Store};
use serde::Serialize;

use crate::command::models;
use crate::command::render::layout::{counted, grouped};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Remove documents, with the chunks, mentions and relations that only they support
#[derive(Debug, clap::Args)]
#[command(after_help = "\
All documents that are there are removed together; exit code 3 if one was not there. Chunks and entities go with their \
documents, not by themselves.

Example:
  hedgerow rm notes.hedgerow guide/start.md doc:import:0f3b9c2a417d5e668a90b1c2d3e4f506")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// Keys of documents, as KEY or doc:KEY
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`]; [`Failure::NotFound`] if a document was not there, after the others are removed.
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let store = Store::open(&args.store)?;
    let progress = session.progress("removing");
    let mut batch = Batch::default();
    for key in &args.keys {
        batch.delete(key.strip_prefix("doc:").unwrap_or(key));
    }
    let before = store.snapshot();
    let committed = store.commit(batch)?;
    progress.say("linking");
    models::refresh(&store, None, &progress)?;
    let generation = store.close()?;
    drop(progress);
    let report = Report { generation, removed: committed.deleted, missing: committed.missing };
    session.print(&report, |out| human(out, &report))?;
    if report.missing.is_empty() {
        return Ok(Outcome::Done);
    }
    let missing: Vec<String> = report.missing.iter().map(|key| described(&before, key)).collect();
    let (missing, removed) = (missing.join(", "), counted(report.removed, "document was", "documents were"));
    Err(Failure::NotFound(format!("not a document of this store: {missing}; {removed} removed")))
}

/// A key that is no document's, with what it is instead.
fn described(before: &Snapshot, key: &str) -> String {
    match before.find(key) {
        Ok(Node::Chunk(_)) => format!("{key} (a chunk: only whole documents can be removed)"),
        Ok(Node::Community(_)) => format!("{key} (a community: it goes with the documents that its members stand in)"),
        Ok(Node::Entity(_)) => format!("{key} (an entity: it goes with the documents that mention it)"),
        _ => key.to_owned(),
    }
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    generation: u64,
    removed: u64,
    missing: Vec<String>,
}

fn human(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let documents = counted(report.removed, "document", "documents");
    writeln!(out, "{documents} removed; generation {}", grouped(report.generation))
}
