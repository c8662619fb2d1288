//! Opens a generation: `HEAD`, its manifest, every file that it names.

use crate::error::{Damage, OpenError};
use crate::manifest;
use crate::projection::{Communities, Edges, Links, Opened, VectorIndex};
use crate::segment::Segment;
use crate::snapshot::{REFRESH, Snapshot};
use crate::storage::{Env, FileFault, FileName, Folder, VerifiedFile, Vfs};
use hedgerow_format::file::FileKind;
use hedgerow_format::manifest::{Manifest, ProjectionEntry};
use hedgerow_format::segment::Ids;
use hedgerow_format::{DocumentId, FormatError};
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Times that a reader starts again from `HEAD` when a writer sweeps what it was about to open.
const RETRIES: usize = 16;

/// Projections that could not be opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// One sentence each.
    pub messages: Vec<String>,
}

impl Snapshot {
    /// Opens the store in a folder for reading, as [`Snapshot::open_in`].
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_in(&*Env::folder(path.as_ref())?.disk)
    }

    /// Opens the published generation without a lock: reads `HEAD`, its manifest, and the headers and tables of every
    /// file that it names. Nothing is written.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_in(disk: &dyn Vfs) -> Result<Self, OpenError> {
        let mut tries = 0;
        loop {
            let Some(head) = manifest::read_head(disk)? else {
                return Err(no_head(disk));
            };
            let opened = manifest::read(disk, head.store, &manifest::entry_of(&head))
                .and_then(|manifest| Self::of_manifest(disk, manifest, None));
            // Where something is missing, a later commit may have been published and swept it.
            let lacks = match &opened {
                Ok(snapshot) => !snapshot.faults.messages.is_empty(),
                Err(FileFault::Storage(fault)) => fault.source.kind() == io::ErrorKind::NotFound,
                Err(FileFault::Damage(_)) => false,
            };
            if lacks && tries < RETRIES && manifest::read_head(disk)?.as_ref() != Some(&head) {
                tries += 1;
                continue;
            }
            return opened.map_err(OpenError::from);
        }
    }

    /// Opens the generation of a manifest, taking over files that `before` has open.
    pub(crate) fn of_manifest(disk: &dyn Vfs, manifest: Manifest, before: Option<&Self>) -> Result<Self, FileFault> {
        let mut segments = Vec::with_capacity(manifest.segments.len());
        for entry in &manifest.segments {
            let known = before.and_then(|before| before.segments.iter().find(|segment| segment.entry() == entry));
            segments.push(if let Some(known) = known {
                Arc::clone(known)
            } else {
                let file = VerifiedFile::open(disk, FileKind::Segment, manifest.store, &entry.file)?;
                Arc::new(Segment::new(file, *entry).map_err(FileFault::Damage)?)
            });
        }
        Self::of_segments(disk, manifest, segments, before)
    }

    /// Opens the rest of a generation whose segments are open.
    pub(crate) fn of_segments(
        disk: &dyn Vfs,
        manifest: Manifest,
        segments: Vec<Arc<Segment>>,
        before: Option<&Self>,
    ) -> Result<Self, FileFault> {
        let mut snapshot = Self {
            manifest,
            segments,
            links: None,
            edges: Vec::new(),
            communities: None,
            vector_indexes: Vec::new(),
            dead_documents: RoaringBitmap::new(),
            dead_chunks: RoaringBitmap::new(),
            dead_vectors: BTreeMap::new(),
            dead_extractions: BTreeMap::new(),
            faults: Faults::default(),
            statistics: OnceLock::new(),
            spaces: OnceLock::new(),
        };
        snapshot.bury().map_err(FileFault::Damage)?;
        snapshot.open_projections(disk, before)?;
        Ok(snapshot)
    }

    /// Checks every byte and every invariant of the files that `before` does not have, so that nothing is published which
    /// `verify` would refuse.
    pub(crate) fn verify_beside(&self, before: Option<&Self>) -> Result<(), Damage> {
        let known = before.map(|before| &before.segments[..]).unwrap_or_default();
        let known = |segment: &Segment| known.iter().any(|known| known.entry() == segment.entry());
        self.segments.iter().filter(|segment| !known(segment)).try_for_each(|segment| segment.verify())?;
        self.verify_projections(before.map(|before| &before.manifest.projections[..]).unwrap_or_default())
    }

    /// Checks every byte and every invariant of the projections that are not `known`; one that could not be opened is
    /// damaged.
    pub(crate) fn verify_projections(&self, known: &[ProjectionEntry]) -> Result<(), Damage> {
        for entry in self.manifest.projections.iter().filter(|entry| !known.contains(entry)) {
            if let Some(links) = self.links.iter().find(|links| links.entry() == entry) {
                links.verify()?;
            } else if let Some(edges) = self.edges.iter().find(|edges| edges.entry() == entry) {
                edges.verify()?;
            } else if let Some(found) = self.communities.iter().find(|found| found.entry() == entry) {
                found.verify()?;
            } else if let Some(index) = self.vector_indexes.iter().find(|index| index.entry() == entry) {
                index.verify()?;
            } else {
                let file = format!("projection {}", entry.file.number);
                return Err(Damage { file, source: FormatError::Hash { what: "the projection", offset: 0 } });
            }
        }
        Ok(())
    }

    /// Checks every byte and every invariant of the projections: one that fails counts as damaged from then on.
    pub(crate) fn distrust_unsound_projections(&self) {
        self.links.iter().for_each(|links| drop(links.verify()));
        self.edges.iter().for_each(|edges| drop(edges.verify()));
        self.communities.iter().for_each(|communities| drop(communities.verify()));
        self.vector_indexes.iter().for_each(|index| drop(index.verify()));
    }

    /// Gathers what is dead: what the tombstones of all segments name, the chunks of that, and every id that has no row,
    /// because a compaction left it out.
    fn bury(&mut self) -> Result<(), Damage> {
        for (position, segment) in self.segments.iter().enumerate() {
            self.dead_documents |= segment.dead_documents()?;
            for (space, chunk) in segment.dead_vectors()? {
                self.dead_vectors.entry(space.to_owned()).or_default().insert(chunk, position);
            }
        }
        self.bury_extractions()?;
        let mut dead_chunks = RoaringBitmap::new();
        for segment in &self.segments {
            let (ids, range) = (segment.document_ids(), segment.entry().first_document..segment.entry().documents_end);
            for id in self.dead_documents.range(range).filter(|id| ids.position(*id).is_some()) {
                dead_chunks.insert_range(segment.chunks_of(&segment.document(DocumentId(id))?));
            }
        }
        self.dead_chunks = dead_chunks;
        self.dead_documents |=
            without_rows(self.segments.iter().map(|s| s.document_ids()), self.manifest.documents_end);
        self.dead_chunks |= without_rows(self.segments.iter().map(|s| s.chunk_ids()), self.manifest.chunks_end);
        Ok(())
    }

    /// A projection that is missing or damaged is left out and said so: it is made from facts and can be made again.
    /// What the system refuses is an error: it may be there later.
    fn open_projections(&mut self, disk: &dyn Vfs, before: Option<&Self>) -> Result<(), FileFault> {
        for entry in self.manifest.projections.clone() {
            let reason = match self.open_projection(disk, &entry, before) {
                Ok(()) => continue,
                Err(FileFault::Storage(fault)) if fault.source.kind() != io::ErrorKind::NotFound => {
                    return Err(FileFault::Storage(fault));
                }
                Err(FileFault::Storage(fault)) => fault.to_string(),
                Err(FileFault::Damage(damage)) => damage.to_string(),
            };
            self.faults.messages.push(format!("a projection cannot be read ({reason}); {REFRESH}"));
        }
        Ok(())
    }

    /// Opens a projection, unless the generation before has it open.
    fn open_projection(
        &mut self,
        disk: &dyn Vfs,
        entry: &ProjectionEntry,
        before: Option<&Self>,
    ) -> Result<(), FileFault> {
        let store = self.manifest.store;
        let open = || Opened::open(disk, store, entry);
        match FileKind::from_number(entry.kind) {
            Some(FileKind::Edges) => {
                let known = before.and_then(|before| before.edges.iter().find(|known| known.entry() == entry));
                self.edges.push(known_or(known, || open().map(Edges::new))?);
            }
            Some(FileKind::Communities) => {
                let known = before.and_then(|before| before.communities.as_ref());
                let known = known.filter(|known| known.entry() == entry);
                self.communities = Some(known_or(known, || open().map(Communities::new))?);
            }
            Some(FileKind::Vectors) => {
                let known = before.and_then(|before| before.vector_indexes.iter().find(|known| known.entry() == entry));
                self.vector_indexes.push(known_or(known, || open().map(VectorIndex::new))?);
            }
            _ => {
                let known = before.and_then(|before| before.links.as_ref()).filter(|known| known.entry() == entry);
                self.links = Some(known_or(known, || open().map(Links::new))?);
            }
        }
        Ok(())
    }
}

/// What is known, or else what is opened.
fn known_or<T>(known: Option<&Arc<T>>, open: impl FnOnce() -> Result<T, FileFault>) -> Result<Arc<T>, FileFault> {
    known.map_or_else(|| open().map(Arc::new), |known| Ok(Arc::clone(known)))
}

/// The ids below `end` that no segment has.
fn without_rows<'s>(segments: impl Iterator<Item = Ids<'s>>, end: u32) -> RoaringBitmap {
    let (mut missing, mut free) = (RoaringBitmap::new(), 0);
    for id in segments.flat_map(|ids| ids.ranges()) {
        missing.insert_range(free..id.start);
        free = id.end;
    }
    missing.insert_range(free..end);
    missing
}

/// A folder without `HEAD` is empty, a store that is being made or lost it, or something else.
pub(crate) fn no_head(disk: &dyn Vfs) -> OpenError {
    let path = PathBuf::from(disk.describe());
    let names = disk.list(Folder::Root).unwrap_or_default();
    let committed = !disk.list(Folder::Segments).unwrap_or_default().is_empty();
    let restoring = committed && !names.contains(&FileName::Catalog.name());
    match names.iter().find(|name| FileName::parse(Folder::Root, name).is_none()) {
        Some(name) => OpenError::NotAStore { path, found: format!("a folder without HEAD, with files such as {name}") },
        None if restoring => OpenError::Unfinished { path },
        None if committed => OpenError::NoHead { path },
        None => OpenError::NotFound { path },
    }
}
