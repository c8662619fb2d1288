//! `verify`: every byte and every cross-reference of a generation, without a lock.

use crate::catalog::Catalog;
use crate::error::OpenError;
use crate::index::control::{Cancelled, Control};
use crate::maintain::cross;
use crate::manifest;
use crate::projection::{Communities, Edges, Links, Opened, VectorIndex};
use crate::segment::Segment;
use crate::snapshot::{Snapshot, no_head};
use crate::storage::{Env, FileFault, FileName, Folder, VerifiedFile};
use hedgerow_format::FormatError;
use hedgerow_format::file::FileKind;
use hedgerow_format::manifest::{FileEntry, Manifest, ProjectionEntry, SegmentEntry};
use serde::Serialize;
use std::collections::BTreeSet;

/// What `verify` found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Generation that was checked.
    pub generation: u64,
    /// Files that were read.
    pub files: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// What is wrong, one sentence each: file, what was expected, what was found, section and offset.
    pub problems: Vec<String>,
    /// Files that the generation does not name: what a crash left, or a writer is about to use or to remove. No problem.
    pub orphans: Vec<String>,
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

/// Checks every byte of every file that the published generation names, every invariant of `SPEC.md`, what the files say
/// about each other, and the catalog, without writing to it; of a pack, that it holds these files and nothing else. Goes on
/// behind what is wrong. Reads everything once; takes no
/// lock; memory is 20 bytes a document, and 16 a chunk of the largest segment.
///
/// # Errors
/// [`VerifyError`] when there is nothing to look at. What is wrong is no error: it is in [`Verified::problems`].
pub fn verify(env: &Env, control: &dyn Control) -> Result<Verified, VerifyError> {
    let mut tries = 0;
    loop {
        let before = manifest::read_head(&*env.disk);
        let verified = Work { env, control, found: Verified::default(), total: 0 }.generation()?;
        // A writer that published meanwhile has swept what looks lost, and writes the catalog that looks torn.
        let moved = || matches!((&before, manifest::read_head(&*env.disk)), (Ok(old), Ok(new)) if *old != new);
        if verified.problems.is_empty() || tries == RETRIES || !moved() {
            return Ok(verified);
        }
        tries += 1;
    }
}

/// Times that `verify` starts again when a writer publishes meanwhile.
const RETRIES: usize = 16;

/// One look at everything.
struct Work<'e> {
    env: &'e Env,
    control: &'e dyn Control,
    found: Verified,
    /// Bytes that there are to read.
    total: u64,
}

impl Work<'_> {
    fn generation(mut self) -> Result<Verified, VerifyError> {
        let Some((store, entry)) = self.published()? else { return Ok(self.found) };
        self.found.generation = entry.number;
        self.found.files = 1;
        self.total = entry.file_bytes;
        self.count(&entry)?;
        match manifest::read(&*self.env.disk, store, &entry) {
            Ok(manifest) => self.files(&manifest)?,
            Err(fault) => self.fault(fault),
        }
        self.orphans(store, &entry)?;
        Ok(self.found)
    }

    /// The generation that `HEAD` names; where that cannot be read, the catalog's. Looks at both.
    fn published(&mut self) -> Result<Option<([u8; 16], FileEntry)>, VerifyError> {
        if self.env.disk.pack().is_some() {
            return match manifest::read_head(&*self.env.disk) {
                Ok(head) => Ok(head.map(|head| (head.store, manifest::entry_of(&head)))),
                Err(error) => {
                    self.problem(&error);
                    Ok(None)
                }
            };
        }
        let catalog = Catalog::read(self.env);
        let state = catalog.as_ref().ok();
        match manifest::read_head(&*self.env.disk) {
            Ok(Some(head)) => {
                match catalog {
                    Ok(state) if state.store == head.store => {}
                    Ok(_) => self.problem(&"catalog.redb is of another store: `hedgerow repair` makes it again"),
                    Err(error) => self.problem(&error),
                }
                return Ok(Some((head.store, manifest::entry_of(&head))));
            }
            Ok(None) if state.is_none_or(|state| state.manifest.number == 0) => {
                return Err(no_head(&*self.env.disk).into());
            }
            Ok(None) => self.problem(&"HEAD is missing: `hedgerow repair` publishes it again"),
            Err(error) => self.problem(&error),
        }
        Ok(catalog.ok().map(|state| (state.store, state.manifest)))
    }

    fn problem(&mut self, sentence: &dyn ToString) {
        self.found.problems.push(sentence.to_string());
    }

    fn fault(&mut self, fault: FileFault) {
        match fault {
            FileFault::Storage(error) => self.problem(&error),
            FileFault::Damage(damage) => match damage.source {
                FormatError::Hash { what: "the section and block tables", .. } => {
                    self.problem(&format!("{damage} (at the end of the file)"));
                }
                FormatError::Shape { .. } | FormatError::Invariant { .. } | FormatError::Block { .. } => {
                    self.problem(&damage);
                }
                _ => self.problem(&format!("{damage} (header; offset 0)")),
            },
        }
    }

    /// A file has been looked at.
    fn count(&mut self, entry: &FileEntry) -> Result<(), Cancelled> {
        self.found.files += 1;
        self.found.bytes += entry.file_bytes;
        self.control.advance(self.found.bytes, self.total);
        if self.control.cancelled() { Err(Cancelled) } else { Ok(()) }
    }

    fn files(&mut self, manifest: &Manifest) -> Result<(), Cancelled> {
        let segments = manifest.segments.iter().map(|segment| segment.file.file_bytes);
        self.total += segments.chain(manifest.projections.iter().map(|entry| entry.file.file_bytes)).sum::<u64>();
        let pack = self.env.disk.pack().and_then(|pack| pack.check_all(manifest).err());
        self.found.problems.extend(pack.map(|damage| damage.to_string()));
        let before = self.found.problems.len();
        for segment in &manifest.segments {
            self.segment(manifest.store, segment);
            self.count(&segment.file)?;
        }
        let facts_are_whole = self.found.problems.len() == before;
        let mut sound = BTreeSet::new();
        for projection in &manifest.projections {
            if self.projection(manifest.store, projection) {
                sound.insert(projection.file.number);
            }
            self.count(&projection.file)?;
        }
        if facts_are_whole {
            // What is wrong with a file is told already; what was read may be gone by now, and the next try tells.
            match Snapshot::of_manifest(&*self.env.disk, manifest.clone(), None) {
                Ok(snapshot) => self.found.problems.extend(cross::problems(&snapshot, &sound, self.control)?),
                Err(fault) => self.fault(fault),
            }
        }
        Ok(())
    }

    fn segment(&mut self, store: [u8; 16], entry: &SegmentEntry) {
        let opened = VerifiedFile::open(&*self.env.disk, FileKind::Segment, store, &entry.file).map(|file| {
            // Opening a segment reads sections too: what is wrong with bytes is told by section first.
            let faults: Vec<String> = file.faults().into_iter().map(|error| file.sentence(error)).collect();
            (file, faults)
        });
        let opened = match opened {
            Ok((_, faults)) if !faults.is_empty() => return self.found.problems.extend(faults),
            Ok((file, _)) => Segment::new(file, *entry).map_err(FileFault::Damage),
            Err(fault) => Err(fault),
        };
        match opened {
            Ok(segment) => {
                self.found.problems.extend(segment.findings().into_iter().map(|error| segment.file().sentence(error)));
            }
            Err(fault) => self.fault(fault),
        }
    }

    /// Whether nothing is wrong with a projection.
    fn projection(&mut self, store: [u8; 16], entry: &ProjectionEntry) -> bool {
        let opened = match Opened::open(&*self.env.disk, store, entry) {
            Ok(opened) => opened,
            Err(fault) => {
                self.fault(fault);
                return false;
            }
        };
        let sentences = |file: &VerifiedFile, found: Vec<FormatError>| -> Vec<String> {
            found.into_iter().map(|error| file.sentence(error)).collect()
        };
        let found = match FileKind::from_number(entry.kind) {
            Some(FileKind::Edges) => {
                let edges = Edges::new(opened);
                sentences(edges.file(), edges.findings())
            }
            Some(FileKind::Communities) => {
                let communities = Communities::new(opened);
                sentences(communities.file(), communities.findings())
            }
            Some(FileKind::Vectors) => {
                let index = VectorIndex::new(opened);
                sentences(index.file(), index.findings())
            }
            _ => {
                let links = Links::new(opened);
                sentences(links.file(), links.findings())
            }
        };
        let is_sound = found.is_empty();
        self.found.problems.extend(found);
        is_sound
    }

    /// Files of ours that this generation does not name.
    fn orphans(&mut self, store: [u8; 16], entry: &FileEntry) -> Result<(), OpenError> {
        let disk = &*self.env.disk;
        let mut named = BTreeSet::from([FileName::Head, FileName::Catalog, FileName::Lock]);
        named.insert(FileName::of(FileKind::Manifest, entry));
        let Ok(manifest) = manifest::read(disk, store, entry) else { return Ok(()) };
        named.extend(manifest.segments.iter().map(|segment| FileName::of(FileKind::Segment, &segment.file)));
        for projection in &manifest.projections {
            named.extend(FileKind::from_number(projection.kind).map(|kind| FileName::of(kind, &projection.file)));
        }
        for folder in [Folder::Root].into_iter().chain(Folder::INNER) {
            let names = disk.list(folder).map_err(crate::storage::at_folder("list", folder))?;
            let ours = names.iter().filter_map(|name| FileName::parse(folder, name));
            self.found.orphans.extend(ours.filter(|name| !named.contains(name)).map(|name| name.to_string()));
        }
        Ok(())
    }
}
