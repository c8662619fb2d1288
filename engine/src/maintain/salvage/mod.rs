//! `salvage`: everything that can still be read goes into a new store, with a list of what was lost.

mod choice;
mod communities;
mod document;
mod extractions;
mod extras;
mod lists;
mod part;

use crate::error::{CommitError, OpenError, StorageError};
use crate::index::control::{Cancelled, Control};
use crate::index::edges::EdgeRules;
use crate::index::terms::analysis::Analyzer;
use crate::maintain::salvage::choice::Chosen;
use crate::maintain::salvage::document::Readings;
use crate::maintain::salvage::extras::Extras;
use crate::maintain::salvage::part::Part;
use crate::projection::FormerCommunities;
use crate::segment::StagedDocument;
use crate::storage::{Env, Folder, at_folder};
use crate::writer::{Batch, Store};
use hedgerow_format::file::FileKind;
use hedgerow_format::{DocumentId, Key};
use roaring::RoaringBitmap;
use serde::Serialize;
use std::collections::HashMap;
use std::path::PathBuf;

/// Bytes of staged documents that are committed together.
const BATCH_BYTES: usize = 64 << 20;

/// What was saved and what was lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Salvaged {
    /// The generation that was read; none where no manifest could be read, and so all segments were.
    pub generation: Option<u64>,
    /// Segments that were read.
    pub segments: u64,
    /// Documents that are in the new store.
    pub documents: u64,
    /// What was lost.
    pub lost: Vec<Lost>,
    /// Similarity edges that the old store had: vector spaces and rules, to be built again.
    #[serde(skip)]
    pub edges: Vec<(String, EdgeRules)>,
    /// Communities that the old store had, with the reports that could be read, to be found again; none where it had none.
    #[serde(skip)]
    pub communities: Option<FormerCommunities>,
}

/// Something that was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// The file that it was in; empty where none says.
    pub file: String,
    /// The document's key; none where it cannot be read, or where it is not a document's loss.
    pub document: Option<String>,
    /// What it is: `document`, `documents`, `mentions`, `relations`, `edges`, `vectors`, `extractions`, `reports` or `deletions`.
    pub what: &'static str,
    /// How much of it, and why.
    pub reason: String,
}

/// Why nothing was salvaged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SalvageError {
    /// There is nothing to read.
    #[error("{path} has no segment and no manifest that can be read: there is nothing to salvage")]
    Nothing {
        /// The store.
        path: PathBuf,
    },
    /// The new store's place is taken.
    #[error("{path} is not empty: name a folder that is not there yet")]
    Taken {
        /// The new store.
        path: PathBuf,
    },
    /// The old store cannot be looked at, or the new one not be made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What was read could not be committed.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// It was cancelled; what was committed to the new store stays there.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl From<StorageError> for SalvageError {
    fn from(error: StorageError) -> Self {
        Self::Open(error.into())
    }
}

/// Reads everything of a store that can still be read, and commits it to a new one. Works without `HEAD`, manifest and
/// catalog. Bytes of a block whose checksum is wrong are never believed: a document that needs them is lost, or kept without
/// the mentions, relations or vectors that do; terms are counted anew from the text. Projections are not made:
/// [`Store::refresh`], [`Store::build_edges`] and [`Store::follow_communities`] do that; reports of communities are read for the
/// last. Writes nothing to the old store and takes no lock there.
///
/// Memory is 64 MiB of staged documents, the relations of one segment and those that were added to older documents, all
/// extractions and reports of communities, and about 80 bytes a document and a vector.
///
/// # Errors
/// [`SalvageError`]. What is lost is no error: it is in [`Salvaged::lost`].
pub fn salvage(from: &Env, to: Env, control: &dyn Control) -> Result<(Store, Salvaged), SalvageError> {
    for folder in [Folder::Root].into_iter().chain(Folder::INNER) {
        if !to.disk.list(folder).map_err(at_folder("list", folder))?.is_empty() {
            return Err(SalvageError::Taken { path: PathBuf::from(to.disk.describe()) });
        }
    }
    let Some(chosen) = Chosen::find(from, control)? else {
        return Err(SalvageError::Nothing { path: PathBuf::from(from.disk.describe()) });
    };
    let store = Store::open_or_create_in(to)?;
    let mut work = Work::begin(from, &chosen, control)?;
    work.read(&store)?;
    Ok((store, work.found))
}

/// A salvage under way.
struct Work<'e> {
    control: &'e dyn Control,
    parts: Vec<Part>,
    dead: RoaringBitmap,
    /// By key: the part that has its newest version.
    newest: HashMap<[u8; 16], usize>,
    extras: Extras,
    found: Salvaged,
}

impl<'e> Work<'e> {
    fn begin(env: &Env, chosen: &Chosen, control: &'e dyn Control) -> Result<Self, SalvageError> {
        let mut found = Salvaged { generation: chosen.generation(), ..Salvaged::default() };
        for entry in chosen.projections().filter(|entry| entry.kind == FileKind::Edges.number()) {
            if found.edges.iter().all(|(space, _)| *space != entry.space) {
                found.edges.push((entry.space.clone(), EdgeRules::of(&entry.settings)));
            }
        }
        found.communities = communities::former(env, &chosen.communities(env)?, &mut found.lost)?;
        let parts = chosen.open(env, &mut found.lost)?;
        found.segments = parts.len() as u64;
        let mut dead = RoaringBitmap::new();
        for part in &parts {
            match part.dead_documents() {
                Some(documents) => dead |= documents,
                None => found.lost.push(part.lost("deletions", "its deletions cannot be read; documents may be back")),
            }
        }
        let newest = newest(&parts, &dead);
        let extras = Extras::gather(&parts, &mut found.lost);
        Ok(Self { control, parts, dead, newest, extras, found })
    }

    fn read(&mut self, store: &Store) -> Result<(), SalvageError> {
        let total = self.parts.iter().map(|part| part.documents() as u64).sum();
        let (mut batch, mut done) = (Batch::default(), 0);
        let mut analyzer = Analyzer::new();
        let parts = std::mem::take(&mut self.parts);
        for (position, part) in parts.iter().enumerate() {
            let mut relations = self.extras.relations_of(part, &mut self.found.lost);
            let lists = self.extras.lists_of(part, &mut self.found.lost);
            for slot in 0..part.documents() {
                done += 1;
                if done % 256 == 0 {
                    self.control.advance(done, total);
                    if self.control.cancelled() {
                        return Err(Cancelled.into());
                    }
                }
                if !self.counts(part, position, slot) {
                    continue;
                }
                let id = part.document_id(slot).map(DocumentId);
                let mut sourced = id.and_then(|id| relations.remove(&id)).unwrap_or_default();
                sourced.extend(id.map(|id| self.extras.added_to(id)).unwrap_or_default());
                let readings = Readings { parts: &parts, part, slot, lists: &lists, analyzer: &mut analyzer };
                if let Some(document) = readings.document(sourced, &self.extras, &mut self.found.lost) {
                    self.found.documents += 1;
                    batch.put(document);
                }
                if batch.staged_bytes() > BATCH_BYTES {
                    store.commit(std::mem::take(&mut batch))?;
                }
            }
        }
        self.control.advance(total, total);
        store.commit(batch)?;
        Ok(())
    }

    /// Whether a document is live and the newest of its key, as far as that can be read.
    fn counts(&self, part: &Part, position: usize, slot: usize) -> bool {
        if part.document_id(slot).is_some_and(|id| self.dead.contains(id)) {
            return false;
        }
        // One whose row cannot be read is told as lost.
        part.row(slot).is_none_or(|row| self.newest.get(&row.key) == Some(&position))
    }
}

/// The part that has the newest live version of each document: of two versions the later part's, of two that are the same
/// the first, which a manifest is more likely to name.
fn newest(parts: &[Part], dead: &RoaringBitmap) -> HashMap<[u8; 16], usize> {
    let mut newest: HashMap<[u8; 16], (usize, [u8; 16])> = HashMap::new();
    for (position, part) in parts.iter().enumerate() {
        for slot in 0..part.documents() {
            let Some(row) = part.row(slot) else { continue };
            if part.document_id(slot).is_some_and(|id| dead.contains(id)) {
                continue;
            }
            let known = newest.entry(row.key).or_insert((position, row.fingerprint));
            if known.1 != row.fingerprint {
                *known = (position, row.fingerprint);
            }
        }
    }
    newest.into_iter().map(|(key, (position, _))| (key, position)).collect()
}

/// Whether a document's key is that of its name.
fn is_named(name: &str, key: [u8; 16]) -> bool {
    Key::of_document(name).0 == key
}

/// What a document that lost something is read anew for: no reader of documents gives this fingerprint.
const INCOMPLETE: [u8; 16] = [0; 16];

/// Makes a document that lacks something one that the next reading of the same content replaces.
fn mark_incomplete(document: &mut StagedDocument) {
    document.fingerprint = INCOMPLETE;
}
