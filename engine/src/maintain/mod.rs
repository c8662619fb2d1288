//! Looking after a store: `verify` checks all bytes and all cross-references, `stats` counts, `backup` and `restore` copy.

mod backup;
mod untrusted;

pub use backup::{BackedUp, BackupError, BackupOptions};
pub use untrusted::Limits;

use crate::catalog::Catalog;
use crate::error::{OpenError, QueryError};
use crate::index::control::{Cancelled, Control};
use crate::index::guard::{Guard, QueryLimits};
use crate::manifest;
use crate::projection::{Edges, Links, Opened};
use crate::segment::Segment;
use crate::snapshot::{Bounded, Snapshot, Space, no_head};
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

/// What a generation holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Its number.
    pub generation: u64,
    /// Hash over the live content, in hexadecimal: the same whatever history led to it.
    pub fingerprint: String,
    /// Live documents.
    pub documents: u64,
    /// Live chunks.
    pub chunks: u64,
    /// Bytes of live text.
    pub text_bytes: u64,
    /// Terms of live chunks, repeated ones included.
    pub terms: u64,
    /// Live entities.
    pub entities: u64,
    /// Mentions that count.
    pub mentions: u64,
    /// Definition links.
    pub definitions: u64,
    /// Vector spaces.
    pub spaces: Vec<SpaceStats>,
    /// Similarity edges.
    pub edges: Vec<EdgeStats>,
    /// Segments.
    pub segments: u64,
    /// Bytes of all segments.
    pub segment_bytes: u64,
    /// Bytes of all projections.
    pub projection_bytes: u64,
    /// What answers lack.
    pub incomplete: Vec<String>,
}

/// A vector space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpaceStats {
    /// Its name.
    pub name: String,
    /// Its model.
    pub model: String,
    /// Components of a vector.
    pub dimensions: usize,
    /// Vectors that count.
    pub vectors: u64,
}

/// Similarity edges of a space, as their report says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EdgeStats {
    /// The space.
    pub space: String,
    /// Percentile of the threshold.
    pub percentile: f64,
    /// Best of either end that a pair must be among.
    pub top_m: u32,
    /// The threshold.
    pub threshold: f32,
    /// Pairs that were compared.
    pub pairs: u64,
    /// Pairs at or above the threshold.
    pub passed: u64,
    /// Edges.
    pub kept: u64,
    /// Highest degree.
    pub degree_max: u32,
    /// Connected components.
    pub components: u32,
}

impl Snapshot {
    /// Counts what the generation holds. Reads every row of documents, lengths and links.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn stats(&self) -> Result<Stats, QueryError> {
        self.bounded(QueryLimits::default()).stats()
    }
}

impl Bounded<'_> {
    /// See [`Snapshot::stats`](crate::Snapshot::stats). Polls before and after the fingerprint, which reads all text.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn stats(&self) -> Result<Stats, QueryError> {
        self.guard.poll()?;
        let counts = self.statistics()?;
        let mut stats = Stats {
            generation: self.generation(),
            fingerprint: format!("{:?}", self.fingerprint()?),
            documents: counts.documents,
            chunks: counts.chunks,
            terms: counts.terms,
            segments: self.segments().len() as u64,
            incomplete: self.incomplete(),
            ..Stats::default()
        };
        let mut pace = self.guard.pace();
        for id in self.document_ids() {
            pace.step()?;
            stats.text_bytes += u64::from(self.document(id)?.text_bytes());
        }
        let space = |Space { name, model, dimensions, vectors }| SpaceStats { name, model, dimensions, vectors };
        stats.spaces = self.spaces()?.iter().cloned().map(space).collect();
        stats.segment_bytes = self.segments().iter().map(|segment| segment.entry().file.file_bytes).sum();
        stats.projection_bytes = self.manifest().projections.iter().map(|entry| entry.file.file_bytes).sum();
        if let Some(links) = self.links() {
            count_links(links, &mut stats, &self.guard)?;
        }
        for edges in self.edges() {
            let report = edges.report()?;
            stats.edges.push(EdgeStats {
                space: edges.space().to_owned(),
                percentile: f64::from(report.percentile_thousandths) / 1000.0,
                top_m: report.top_m,
                threshold: report.threshold,
                pairs: report.pairs,
                passed: report.passed,
                kept: report.kept,
                degree_max: report.degree_max,
                components: report.components,
            });
        }
        Ok(stats)
    }
}

fn count_links(links: &Links, stats: &mut Stats, guard: &Guard<'_>) -> Result<(), QueryError> {
    let entities = links.entities()?.len();
    stats.entities = entities as u64;
    let mut pace = guard.pace();
    for slot in (0..).map(hedgerow_format::EntitySlot).take(entities) {
        pace.step()?;
        stats.mentions += links.mentioning(slot)?.len() as u64;
        stats.definitions += links.definitions(slot)?.len() as u64;
    }
    Ok(())
}
