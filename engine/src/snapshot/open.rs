//! Opens a generation: `HEAD`, its manifest, every file that it names.

use crate::error::{Damage, OpenError};
use crate::manifest;
use crate::projection::{Edges, Links, Opened};
use crate::segment::Segment;
use crate::snapshot::{REFRESH, Snapshot};
use crate::storage::{Env, FileFault, Folder, VerifiedFile, Vfs};
use hedgerow_format::ChunkId;
use hedgerow_format::file::FileKind;
use hedgerow_format::manifest::{Manifest, ProjectionEntry};
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
            match opened {
                Ok(snapshot) => return Ok(snapshot),
                // A later commit was published and the sweep took a file of the one that `HEAD` named before.
                Err(FileFault::Storage(fault)) if fault.source.kind() == io::ErrorKind::NotFound && tries < RETRIES => {
                    tries += 1;
                }
                Err(FileFault::Storage(fault)) => return Err(fault.into()),
                Err(FileFault::Damage(damage)) => return Err(damage.into()),
            }
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
        let mut snapshot = Self {
            manifest,
            segments,
            links: None,
            edges: Vec::new(),
            dead_documents: RoaringBitmap::new(),
            dead_chunks: RoaringBitmap::new(),
            dead_vectors: BTreeMap::new(),
            faults: Faults::default(),
            statistics: OnceLock::new(),
            spaces: OnceLock::new(),
        };
        snapshot.bury().map_err(FileFault::Damage)?;
        snapshot.open_projections(disk, before);
        Ok(snapshot)
    }

    /// Gathers the tombstones of all segments.
    fn bury(&mut self) -> Result<(), Damage> {
        for (position, segment) in self.segments.iter().enumerate() {
            self.dead_documents |= segment.dead_documents()?;
            for (space, chunk) in segment.dead_vectors()? {
                self.dead_vectors.entry(space.to_owned()).or_default().insert(chunk, position);
            }
        }
        let mut dead_chunks = RoaringBitmap::new();
        for segment in &self.segments {
            let ids = segment.document_ids();
            for id in self.dead_documents.range(ids) {
                let row = segment.document(hedgerow_format::DocumentId(id))?;
                let ChunkId(first) = segment.chunk_of(&row, 0);
                let end = first.saturating_add(row.chunks).min(segment.chunk_ids().end);
                dead_chunks.insert_range(first..end);
            }
        }
        self.dead_chunks = dead_chunks;
        Ok(())
    }

    /// A projection that can't be opened is left out and said so: it is made from facts and can be made again.
    fn open_projections(&mut self, disk: &dyn Vfs, before: Option<&Self>) {
        for entry in self.manifest.projections.clone() {
            let opened = match FileKind::from_number(entry.kind) {
                Some(FileKind::Edges) => self.open_edges(disk, &entry, before),
                _ => self.open_links(disk, &entry, before),
            };
            if let Err(fault) = opened {
                let reason = match fault {
                    FileFault::Storage(fault) => fault.to_string(),
                    FileFault::Damage(damage) => damage.to_string(),
                };
                self.faults.messages.push(format!("a projection cannot be read ({reason}); {REFRESH}"));
            }
        }
    }

    fn open_links(&mut self, disk: &dyn Vfs, entry: &ProjectionEntry, before: Option<&Self>) -> Result<(), FileFault> {
        let known = before.and_then(|before| before.links.as_ref()).filter(|links| links.entry() == entry);
        self.links = Some(match known {
            Some(known) => Arc::clone(known),
            None => Arc::new(Links::new(Opened::open(disk, self.manifest.store, entry)?)),
        });
        Ok(())
    }

    fn open_edges(&mut self, disk: &dyn Vfs, entry: &ProjectionEntry, before: Option<&Self>) -> Result<(), FileFault> {
        let known = before.and_then(|before| before.edges.iter().find(|edges| edges.entry() == entry));
        self.edges.push(match known {
            Some(known) => Arc::clone(known),
            None => Arc::new(Edges::new(Opened::open(disk, self.manifest.store, entry)?)),
        });
        Ok(())
    }
}

/// A folder without `HEAD` is either empty or something else.
pub(crate) fn no_head(disk: &dyn Vfs) -> OpenError {
    let path = PathBuf::from(disk.describe());
    match disk.list(Folder::Root) {
        Ok(names) if !names.is_empty() => {
            OpenError::NotAStore { path, found: format!("a folder without HEAD, with files such as {}", names[0]) }
        }
        _ => OpenError::NotFound { path },
    }
}
