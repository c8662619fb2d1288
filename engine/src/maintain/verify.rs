//! `verify`: every byte and every cross-reference of a generation, without a lock.

use crate::catalog::Catalog;
use crate::error::OpenError;
use crate::index::control::{Cancelled, Control};
use crate::manifest;
use crate::projection::{Edges, Links, Opened};
use crate::segment::Segment;
use crate::snapshot::no_head;
use crate::storage::{Env, FileFault, VerifiedFile};
use hedgerow_format::file::FileKind;
use hedgerow_format::head::Head;
use hedgerow_format::manifest::{FileEntry, Manifest};
use serde::Serialize;

/// What `verify` found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Generation that was checked.
    pub generation: u64,
    /// Files that were read.
    pub files: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// What is wrong, one sentence each: file, place, expected, found.
    pub problems: Vec<String>,
}

/// Why `verify` could not look.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// There is no store, or it cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It was cancelled; nothing was changed.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Checks every byte of every file that the published generation names, and every invariant of `SPEC.md`; and the
/// catalog, without writing to it; of a pack, that it holds these files and nothing else. Reads everything once; takes no
/// lock.
///
/// # Errors
/// [`VerifyError`] when there is nothing to look at. What is wrong is no error: it is in [`Verified::problems`].
pub fn verify(env: &Env, control: &dyn Control) -> Result<Verified, VerifyError> {
    let mut tries = 0;
    loop {
        let head = manifest::read_head(&*env.disk);
        let verified = verify_generation(env, head.as_ref().map_err(ToString::to_string), control)?;
        // A writer that published meanwhile has swept what looks lost, and writes the catalog that looks torn.
        let moved = || matches!((&head, manifest::read_head(&*env.disk)), (Ok(old), Ok(new)) if *old != new);
        if verified.problems.is_empty() || tries == RETRIES || !moved() {
            return Ok(verified);
        }
        tries += 1;
    }
}

/// Times that `verify` starts again when a writer publishes meanwhile.
const RETRIES: usize = 16;

fn verify_generation(
    env: &Env,
    head: Result<&Option<Head>, String>,
    control: &dyn Control,
) -> Result<Verified, VerifyError> {
    let mut verified = Verified::default();
    let head = match head {
        Ok(Some(head)) => head,
        Ok(None) => return Err(no_head(&*env.disk).into()),
        Err(problem) => {
            verified.problems.push(problem);
            return Ok(verified);
        }
    };
    verified.generation = head.generation;
    verified.files = 1;
    if env.disk.pack().is_none()
        && let Err(reason) = Catalog::check(env, head.store)
    {
        verified.problems.push(reason.to_string());
    }
    let entry = manifest::entry_of(head);
    verified.count(&entry);
    match manifest::read(&*env.disk, head.store, &entry) {
        Ok(manifest) => verified.files(env, &manifest, control)?,
        Err(fault) => verified.problems.push(message(fault)),
    }
    Ok(verified)
}

impl Verified {
    fn count(&mut self, entry: &FileEntry) {
        self.files += 1;
        self.bytes += entry.file_bytes;
    }

    fn files(&mut self, env: &Env, manifest: &Manifest, control: &dyn Control) -> Result<(), Cancelled> {
        let (disk, store) = (&*env.disk, manifest.store);
        let pack = disk.pack().map(|pack| pack.check_all(manifest));
        self.problems.extend(pack.and_then(Result::err).map(|damage| damage.to_string()));
        let total = (manifest.segments.len() + manifest.projections.len()) as u64;
        for segment in &manifest.segments {
            let opened = VerifiedFile::open(disk, FileKind::Segment, store, &segment.file);
            let checked = opened.and_then(|file| {
                Segment::new(file, *segment).and_then(|segment| segment.verify()).map_err(FileFault::Damage)
            });
            self.take(&segment.file, checked, total, control)?;
        }
        for projection in &manifest.projections {
            let checked = Opened::open(disk, store, projection).and_then(|opened| {
                let checked = match FileKind::from_number(projection.kind) {
                    Some(FileKind::Edges) => Edges::new(opened).verify(),
                    _ => Links::new(opened).verify(),
                };
                checked.map_err(FileFault::Damage)
            });
            self.take(&projection.file, checked, total, control)?;
        }
        Ok(())
    }

    fn take(
        &mut self,
        entry: &FileEntry,
        checked: Result<(), FileFault>,
        total: u64,
        control: &dyn Control,
    ) -> Result<(), Cancelled> {
        self.count(entry);
        self.problems.extend(checked.err().map(message));
        control.advance(self.files.saturating_sub(2), total);
        if control.cancelled() { Err(Cancelled) } else { Ok(()) }
    }
}

fn message(fault: FileFault) -> String {
    match fault {
        FileFault::Storage(error) => error.to_string(),
        FileFault::Damage(damage) => damage.to_string(),
    }
}
