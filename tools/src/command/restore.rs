//! `hedgerow restore`: a pack becomes a folder that can be written to.

use std::path::PathBuf;

use hedgerow::{BackupError, StorageError};

use crate::command::backup::human;
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Make a store of a pack
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The folder must be absent or empty. Interrupted, it is no store yet: run the command again.

Example:
  hedgerow restore notes.pack again.hedgerow")]
pub struct Args {
    /// The pack, as `backup` wrote it
    pub file: PathBuf,
    /// Folder of the store to be
    store: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let snapshot = session.open(&args.file)?;
    let progress = session.progress("copying");
    let restored = snapshot.restore(&args.store, &progress).map_err(|error| match error {
        // What is said of the new store is relative to it.
        BackupError::Storage(StorageError { action, path, source }) => {
            Failure::io(action, &args.store.join(path))(source)
        }
        other => other.into(),
    })?;
    drop(progress);
    session.print(&restored, |out| human(out, &restored))?;
    Ok(Outcome::Done)
}
