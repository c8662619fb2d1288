//! One immutable file made from the whole corpus: links, similarity edges, or communities.

mod communities;
mod edges;
mod links;
mod relations;
mod vectors;

pub use communities::{
    Communities, CommunitiesData, CommunityData, CommunityReport, FormerCommunities, build_communities,
};
pub use edges::{EdgeLists, Edges, EdgesData, EdgesReserve, build_edges};
pub use links::{EntityList, Links, LinksData, WordList, build_links};
pub use relations::{Related, RelationList};
pub use vectors::{VectorIndex, VectorIndexData, build_vector_index};

use crate::error::Damage;
use crate::storage::{FileFault, VerifiedFile, Vfs};
use hedgerow_format::file::FileKind;
use hedgerow_format::manifest::ProjectionEntry;
use std::sync::OnceLock;

/// What every projection has: its file, what the manifest says of it, and whether all of it is sound.
#[derive(Debug)]
pub struct Opened {
    file: VerifiedFile,
    entry: ProjectionEntry,
    sound: OnceLock<Result<(), Damage>>,
}

impl Opened {
    /// Opens the projection that `entry` describes.
    ///
    /// # Errors
    /// [`FileFault`].
    pub fn open(disk: &dyn Vfs, store: [u8; 16], entry: &ProjectionEntry) -> Result<Self, FileFault> {
        let kind = FileKind::from_number(entry.kind).unwrap_or(FileKind::Links);
        let file = VerifiedFile::open(disk, kind, store, &entry.file)?;
        Ok(Self::new(file, entry.clone()))
    }

    fn new(file: VerifiedFile, entry: ProjectionEntry) -> Self {
        Self { file, entry, sound: OnceLock::new() }
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &VerifiedFile {
        &self.file
    }

    /// What the manifest says of it.
    #[must_use]
    pub fn entry(&self) -> &ProjectionEntry {
        &self.entry
    }

    /// Whether every byte is as it was written; read once, at the first question that needs it.
    ///
    /// # Errors
    /// [`Damage`], the same every time.
    pub fn check(&self) -> Result<(), &Damage> {
        self.sound.get_or_init(|| self.file.check_all()).as_ref().copied()
    }

    /// Remembers what a check of all bytes and invariants found, so that one that failed does not count.
    fn conclude(&self, found: Result<(), Damage>) -> Result<(), Damage> {
        if found.is_err() {
            self.sound.set(found.clone()).ok();
        }
        found
    }
}
