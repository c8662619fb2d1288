//! Builds of edges in parts: shares on several machines, and builds that go on after an interruption.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hedgerow::{CommitError, EdgeError, EdgeRules, EdgeShare, EdgesBuilt, Store, UnfinishedEdges};
use serde::Serialize;

use crate::command::render::field;
use crate::command::render::layout::grouped;
use crate::failure::Failure;
use crate::session::{Progress, Session};

/// Which part of a build to do, and from what.
#[derive(Debug, clap::Args)]
pub struct Parts {
    /// Compare only the pairs of share I of N, and write what was seen to the file of --to; the store stays as it is. With --signal
    /// there are several passes over the pairs: the first, or, with --merge, the one after those of these files
    #[arg(long, value_name = "I/N", value_parser = share, requires = "to")]
    tiles: Option<EdgeShare>,
    /// File for a share
    #[arg(long, value_name = "FILE", requires = "tiles")]
    to: Option<PathBuf>,
    /// Build the edges from the files of all shares, computed with the same settings; passes that were not shared are done here
    #[arg(long, value_name = "FILE", num_args = 1..)]
    merge: Vec<PathBuf>,
}

/// What became of a build.
pub enum Done {
    /// The edges are there.
    Edges(Vec<EdgesBuilt>),
    /// A share was written.
    Share(Written),
}

/// What `--json` prints of a share.
#[derive(Debug, Serialize)]
pub struct Written {
    share: u32,
    of: u32,
    file: String,
    bytes: u64,
}

impl Written {
    /// Prints it for people.
    pub fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        field(out, "share", &format!("{} of {}, {} bytes in {}", self.share, self.of, grouped(self.bytes), self.file))
    }
}

impl Parts {
    /// Builds edges, or a part of them.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn build(
        &self,
        store: &Store,
        folder: &Path,
        (space, rules): (&str, &EdgeRules),
        session: &Session,
        progress: &Progress,
    ) -> Result<Done, Failure> {
        let read = |path: &PathBuf| fs::read(path).map_err(Failure::io("read", path));
        let shares: Vec<Vec<u8>> = self.merge.iter().map(read).collect::<Result<_, _>>()?;
        if let Some((share, to)) = self.tiles.zip(self.to.as_ref()) {
            let share_of = store.edge_share(space, rules, share, &shares, progress);
            let bytes = share_of.map_err(|error| self.of_file(error))?;
            fs::write(to, &bytes).map_err(Failure::io("write", to))?;
            let file = to.display().to_string();
            return Ok(Done::Share(Written { share: share.number, of: share.of, file, bytes: bytes.len() as u64 }));
        }
        if !self.merge.is_empty() {
            let joined = store.join_edges(space, rules, &shares, progress);
            return Ok(Done::Edges(joined.map_err(|error| self.of_file(error))?));
        }
        Ok(Done::Edges(resumed(store, folder, (space, rules), session, progress)?))
    }

    /// Names the file of a share that can't be read.
    fn of_file(&self, error: EdgeError) -> Failure {
        match error {
            EdgeError::Part { share, source } => {
                let file = self.merge.get(share).map_or_else(String::new, |path| path.display().to_string());
                Failure::Damaged(format!("{file}: {source}"))
            }
            other => other.into(),
        }
    }
}

/// Builds edges from what an interrupted build left in the folder of the store, and leaves something if it is interrupted.
fn resumed(
    store: &Store,
    folder: &Path,
    (space, rules): (&str, &EdgeRules),
    session: &Session,
    progress: &Progress,
) -> Result<Vec<EdgesBuilt>, Failure> {
    let file = folder.join(UNFINISHED);
    let last = fs::read(&file).unwrap_or_default();
    let keep = |bytes: &[u8]| {
        let new = file.with_extension("new");
        // What can't be kept is compared anew.
        private(&new).and_then(|mut out| out.write_all(bytes)).and_then(|()| fs::rename(&new, &file)).ok();
    };
    let unfinished = UnfinishedEdges::new(&last, &keep).or_else(|fault| {
        session.note(format_args!("{}: {fault}; the build starts anew", file.display()));
        UnfinishedEdges::new(&[], &keep)
    });
    let unfinished = unfinished.map_err(|fault| Failure::Damaged(fault.to_string()))?;
    let built = store.build_edges_from(space, rules, &unfinished, progress);
    match &built {
        Err(EdgeError::Commit(CommitError::Cancelled)) if file.exists() => {
            session.note("what was compared is kept: the same command goes on from there");
        }
        _ => _ = fs::remove_file(&file),
    }
    Ok(built?)
}

/// A new file for its owner alone, as all files of a store.
fn private(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// What an interrupted build leaves in the folder of the store.
const UNFINISHED: &str = "edges.unfinished";

/// Reads which share of how many.
fn share(text: &str) -> Result<EdgeShare, String> {
    let number = |text: &str| u32::from_str(text).ok();
    let parts = text.split_once('/').and_then(|(share, of)| number(share).zip(number(of)));
    let share = parts.filter(|(share, of)| (1..=*of).contains(share) && *of <= SHARES_MAX);
    let (number, of) = share.ok_or_else(|| format!("expected I/N with I from 1 to N, and N up to {SHARES_MAX}"))?;
    Ok(EdgeShare { number, of })
}

/// More shares than a build has blocks would be empty.
const SHARES_MAX: u32 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_one_of_several() {
        assert_eq!(share("1/4"), Ok(EdgeShare { number: 1, of: 4 }));
        assert_eq!(share("4/4"), Ok(EdgeShare { number: 4, of: 4 }));
        assert!(
            ["", "1", "0/4", "5/4", "1/0", "-1/4", "1/4/4", "1/100001", "a/b"].iter().all(|text| share(text).is_err())
        );
    }
}
