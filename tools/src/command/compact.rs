//! `hedgerow compact`: what is dead leaves the files, and small segments become large ones.

use std::io::{self, Write};
use std::path::PathBuf;

use hedgerow::{Compacted, Store};
use serde::Serialize;

use crate::command::models;
use crate::command::render::layout::{byte_size, counted, grouped};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Rewrite what holds something dead, and merge small segments
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Small segments are merged by themselves after commits, and those of which a third is dead are rewritten; this does all \
that is left at once, so that what was removed is in no file of the store afterwards. Answers stay the same. Interrupted, \
it keeps what it did.

Example:
  hedgerow compact notes.hedgerow")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let store = Store::open(&args.store)?;
    let progress = session.progress("compacting");
    // A projection that is behind still has names of what was removed.
    models::refresh(&store, None, &progress)?;
    let compacted = store.compact(&progress)?;
    drop(progress);
    let report = Report { generation: store.snapshot().generation(), compacted };
    session.print(&report, |out| human(out, &report))?;
    Ok(Outcome::Done)
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    generation: u64,
    #[serde(flatten)]
    compacted: Compacted,
}

fn human(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let Compacted { segments_read, bytes_read, segments_written, bytes_written } = report.compacted;
    if segments_read == 0 {
        return writeln!(out, "nothing to compact; generation {}", grouped(report.generation));
    }
    let read = format!("{} ({})", counted(segments_read, "segment", "segments"), byte_size(bytes_read));
    let written = format!("{} ({})", grouped(segments_written), byte_size(bytes_written));
    writeln!(out, "{read} rewritten as {written}; generation {}", grouped(report.generation))
}
