//! Opens what a stranger made: nothing of it is believed before all of it was read into memory and checked.

use crate::error::OpenError;
use crate::index::control::Quiet;
use crate::maintain::cross;
use crate::manifest;
use crate::segment::Segment;
use crate::snapshot::{Snapshot, no_head};
use crate::storage::{Env, VerifiedFile, Vfs};
use hedgerow_format::Record;
use hedgerow_format::file::FileKind;
use hedgerow_format::head::Head;
use hedgerow_format::manifest::{FileEntry, Manifest};
use hedgerow_format::section::SectionKind;
use hedgerow_format::segment::EntityRow;
use hedgerow_format::text::{TEXT_BLOCK_BYTES, TextBlock};
use std::path::Path;
use std::sync::Arc;

/// How much a store may have that a stranger made. All of it is checked before memory is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all files together; of a pack, its own. So much memory is taken.
    pub total_bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of the manifest.
    pub manifest_bytes: u64,
    /// Segments and projections.
    pub files: u64,
    /// Ids of documents, whether they still count or not.
    pub documents: u64,
    /// Ids of chunks, whether they still count or not: a question takes memory for each.
    pub chunks: u64,
    /// Entities of all files, each counted in every file that has it.
    pub entities: u64,
    /// Bytes of text, unpacked, in whole blocks of 16 KiB. All of it is unpacked once.
    pub text_bytes: u64,
}

/// What fits a machine for people: a quarter of a gigabyte of memory, about a second of work.
impl Default for Limits {
    fn default() -> Self {
        Self {
            total_bytes: 256 << 20,
            file_bytes: 256 << 20,
            manifest_bytes: 1 << 20,
            files: 1 << 10,
            documents: 1 << 20,
            chunks: 1 << 21,
            entities: 1 << 21,
            text_bytes: 1 << 30,
        }
    }
}

impl Limits {
    fn check_manifest(&self, manifest: &Manifest, manifest_bytes: u64) -> Result<(), OpenError> {
        let segments = manifest.segments.iter().map(|segment| &segment.file);
        let files: Vec<&FileEntry> =
            segments.chain(manifest.projections.iter().map(|projection| &projection.file)).collect();
        let total = files.iter().fold(manifest_bytes, |total, file| total.saturating_add(file.file_bytes));
        let largest = files.iter().map(|file| file.file_bytes).max().unwrap_or(0);
        within("segments and projections", files.len() as u64, self.files)?;
        within("bytes of the largest file", largest, self.file_bytes)?;
        within("bytes of all files", total, self.total_bytes)?;
        within("ids of documents", manifest.documents_end.into(), self.documents)?;
        within("ids of chunks", manifest.chunks_end.into(), self.chunks)
    }
}

fn within(what: &'static str, found: u64, limit: u64) -> Result<(), OpenError> {
    if found <= limit { Ok(()) } else { Err(OpenError::TooMuch { what, found, limit }) }
}

impl Snapshot {
    /// Opens a store or a pack that a stranger made. Files are read into memory, never mapped, and every byte, every
    /// numbered invariant of `SPEC.md`, every projection and what the files say about each other is checked before this returns: what would otherwise be left
    /// out or told later is an error here. Links, pipes and devices are refused, in place of the store and of everything
    /// in it; the catalog is not looked at. Takes as much memory as the files are long, and reads each once.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::TooMuch`] above the limits.
    pub fn open_untrusted(path: impl AsRef<Path>, limits: &Limits) -> Result<Self, OpenError> {
        Self::open_untrusted_in(&*Env::untrusted(path.as_ref(), limits.file_bytes, limits.total_bytes)?.disk, limits)
    }

    /// As [`Snapshot::open_untrusted`], on a disk that gives no maps.
    ///
    /// # Errors
    /// As [`Snapshot::open_untrusted`].
    pub fn open_untrusted_in(disk: &dyn Vfs, limits: &Limits) -> Result<Self, OpenError> {
        let Some(head) = manifest::read_head(disk)? else {
            return Err(no_head(disk));
        };
        within("bytes of the manifest", head.manifest_bytes, limits.manifest_bytes)?;
        let manifest = manifest::read(disk, head.store, &manifest::entry_of(&head))?;
        limits.check_manifest(&manifest, head.manifest_bytes)?;
        if let Some(pack) = disk.pack() {
            pack.check_all(&manifest)?;
        }
        let segments = open_segments(disk, &head, &manifest, limits)?;
        let snapshot = Self::of_segments(disk, manifest, segments, None)?;
        let links = snapshot.links().map_or(Ok(0), |links| links.entities().map(|entities| entities.len()))?;
        within("entities of the links projection", links as u64, limits.entities)?;
        snapshot.verify_projections(&[])?;
        let projections = &snapshot.manifest().projections;
        let sound = projections.iter().map(|projection| projection.file.number).collect();
        match cross::problems(&snapshot, &sound, &Quiet).as_deref() {
            Ok([first, ..]) => Err(OpenError::Contradiction { reason: first.clone() }),
            _ => Ok(snapshot),
        }
    }
}

/// Each is checked as a whole before the next is opened.
fn open_segments(
    disk: &dyn Vfs,
    head: &Head,
    manifest: &Manifest,
    limits: &Limits,
) -> Result<Vec<Arc<Segment>>, OpenError> {
    let (mut segments, mut entities, mut text) = (Vec::new(), 0, 0);
    for entry in &manifest.segments {
        let file = VerifiedFile::open(disk, FileKind::Segment, head.store, &entry.file)?;
        entities += (file.section_bytes(SectionKind::Entities) / EntityRow::SIZE) as u64;
        within("entities of all segments", entities, limits.entities)?;
        text += ((file.section_bytes(SectionKind::TextBlocks) / TextBlock::SIZE) * TEXT_BLOCK_BYTES) as u64;
        within("bytes of text", text, limits.text_bytes)?;
        // A bitmap of few bytes can claim many ids; one of the ids that there are has at most so many.
        let tombstones = file.section_bytes(SectionKind::DeadDocuments) as u64;
        let containers = u64::from(manifest.documents_end).div_ceil(1 << 16);
        within("bytes of tombstones", tombstones, 64 + containers * (8192 + 64))?;
        let segment = Segment::new(file, *entry)?;
        segment.verify()?;
        segments.push(Arc::new(segment));
    }
    Ok(segments)
}
