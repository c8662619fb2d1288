//! `hedgerow backup`: a store in one file.

use std::io::{self, Write};
use std::path::PathBuf;

use hedgerow::{BackedUp, BackupOptions};

use crate::command::render::layout::{byte_size, counted, grouped};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Copy a store into one file, a pack, while others may write to it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every byte is checked, and read back before the pack gets its name. Every command that reads takes a pack in place of a \
folder.

Examples:
  hedgerow backup notes.hedgerow notes.pack
  hedgerow ask notes.pack \"a question of yours\"")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// The pack to write
    file: PathBuf,
    /// Replace the file if it is there, once the new one is complete
    #[arg(long)]
    replace: bool,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`]; a file that was there stays as it was.
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let snapshot = session.open(&args.store)?;
    let progress = session.progress("copying");
    let backed_up = snapshot.backup(&args.file, BackupOptions { replace: args.replace }, &progress)?;
    drop(progress);
    for name in &backed_up.left_out {
        session.note(format_args!("left out, for it cannot be read: {name}; a refresh makes it again"));
    }
    session.print(&backed_up, |out| human(out, &backed_up))?;
    Ok(Outcome::Done)
}

/// What was copied, for people.
///
/// # Errors
/// Those of `out`.
pub(super) fn human(out: &mut dyn Write, backed_up: &BackedUp) -> io::Result<()> {
    let files = counted(backed_up.files, "file", "files");
    let bytes = byte_size(backed_up.bytes);
    writeln!(out, "generation {}: {files}, {bytes} copied and checked", grouped(backed_up.generation))
}
