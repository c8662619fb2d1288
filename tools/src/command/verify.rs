//! `hedgerow verify`: every byte and every cross-reference of a store.

use std::io::{self, Write};
use std::path::PathBuf;

use hedgerow::{Env, Verified};

use crate::command::render::layout::{byte_size, counted, width, wrap};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Check every byte of a store; exit code 4 where something is wrong
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  hedgerow verify notes.hedgerow")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`]; [`Failure::Damaged`] where something is wrong.
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let progress = session.progress("verify");
    let verified = if session.untrusted() {
        // Opening checks all of it, but for the catalog, which a stranger's store is not to be asked for.
        let snapshot = session.open(&args.store)?;
        let (files, bytes) = snapshot.size();
        Verified { generation: snapshot.generation(), files, bytes, ..Verified::default() }
    } else {
        hedgerow::verify(&Env::folder(&args.store)?, &progress)?
    };
    drop(progress);
    session.print(&verified, |out| human(out, &verified))?;
    match verified.problems.len() as u64 {
        0 => Ok(Outcome::Done),
        problems => {
            let problems = counted(problems, "problem", "problems");
            Err(Failure::Damaged(format!(
                "{problems}; `hedgerow repair` makes again what can be, or says what is lost"
            )))
        }
    }
}

fn human(out: &mut dyn Write, verified: &Verified) -> io::Result<()> {
    let files = counted(verified.files, "file", "files");
    let read = format!("generation {}: {files}, {} read", verified.generation, byte_size(verified.bytes));
    if verified.problems.is_empty() {
        writeln!(out, "{read}; everything is as it must be")?;
    } else {
        let problems = counted(verified.problems.len() as u64, "problem", "problems");
        writeln!(out, "{read}; {problems}:")?;
        list(out, "✗", &verified.problems)?;
    }
    if !verified.orphans.is_empty() {
        let orphans = counted(verified.orphans.len() as u64, "file is", "files are");
        writeln!(out, "{orphans} of another generation; the next command that writes removes what is left over:")?;
        list(out, "·", &verified.orphans)?;
    }
    Ok(())
}

/// A list whose entries may take several lines.
pub fn list(out: &mut dyn Write, mark: &str, entries: &[String]) -> io::Result<()> {
    for entry in entries {
        for (line, number) in wrap(entry, width() - 4).iter().zip(0..) {
            writeln!(out, "  {} {line}", if number == 0 { mark } else { " " })?;
        }
    }
    Ok(())
}
