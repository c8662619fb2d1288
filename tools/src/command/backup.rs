//! `hedgerow backup`: a store in one file.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use hedgerow::{BackedUp, BackupOptions, Env};

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
  hedgerow backup --canonical notes.hedgerow notes.pack
  hedgerow ask notes.pack \"a question of yours\"")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// The pack to write
    file: PathBuf,
    /// Replace the file if it is there, once the new one is complete
    #[arg(long)]
    replace: bool,
    /// Write the same bytes for the same content, whatever its history: ids numbered anew, nothing that was removed. Needs
    /// as much room again beside FILE while it works
    #[arg(long)]
    canonical: bool,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`]; a file that was there stays as it was.
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let snapshot = session.open(&args.store)?;
    let progress = session.progress("copying");
    let options = BackupOptions { replace: args.replace };
    let backed_up = if args.canonical {
        let scratch = Scratch::beside(&args.file);
        let store = hedgerow::canonical(&snapshot, Env::folder(&scratch.0)?.disk, &progress)?;
        progress.say("copying");
        store.snapshot().backup(&args.file, options, &progress)?
    } else {
        snapshot.backup(&args.file, options, &progress)?
    };
    drop(progress);
    for name in &backed_up.left_out {
        session.note(format_args!("left out, for it cannot be read: {name}; a refresh makes it again"));
    }
    session.print(&backed_up, |out| human(out, &backed_up))?;
    Ok(Outcome::Done)
}

/// A folder that is gone when this is dropped.
struct Scratch(PathBuf);

impl Scratch {
    /// A name beside the pack that no other process uses.
    fn beside(file: &Path) -> Self {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.canonical", std::process::id()));
        let scratch = Self(file.with_file_name(name));
        // Left behind by a process of this number that was killed.
        fs::remove_dir_all(&scratch.0).ok();
        scratch
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
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
