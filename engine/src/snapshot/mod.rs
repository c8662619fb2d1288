//! One pinned generation: reads across segments, and skips what is dead.

mod bounded;
mod extractions;
mod fingerprint;
mod lists;
mod open;
mod restage;
mod runs;
mod signals;
mod vectors;
mod views;

pub use bounded::Bounded;
pub use open::Faults;
pub(crate) use open::no_head;
pub(crate) use runs::TextRun;
pub(crate) use signals::Signals;
pub(crate) use vectors::SpaceVectors;
pub(crate) use views::chunk_key;
pub use views::{ChunkView, DocumentView};

use crate::error::Damage;
use crate::index::edges::EdgeRules;
use crate::index::graph::rules::CommunityRules;
use crate::planted::{Planted, planted};
use crate::projection::{Communities, Edges, FormerCommunities, Links, VectorIndex};
use crate::segment::Segment;
use hedgerow_format::file::FileKind;
use hedgerow_format::manifest::{Manifest, ProjectionEntry};
use hedgerow_format::{ChunkId, DocumentId, FormatError, Key};
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// What brings projections in step.
const REFRESH: &str = "the next ingest, import or rm brings it in step, or Store::refresh";

/// A generation of the store: it never changes, and lives as long as someone holds it.
///
/// Every file that it needs was opened before it came to be, so no writer and no sweep can take anything from it.
#[derive(Debug)]
pub struct Snapshot {
    manifest: Manifest,
    segments: Vec<Arc<Segment>>,
    links: Option<Arc<Links>>,
    edges: Vec<Arc<Edges>>,
    communities: Option<Arc<Communities>>,
    vector_indexes: Vec<Arc<VectorIndex>>,
    dead_documents: RoaringBitmap,
    dead_chunks: RoaringBitmap,
    /// By space: chunks whose vectors in segments before the position no longer count.
    dead_vectors: BTreeMap<String, BTreeMap<ChunkId, usize>>,
    /// By number of the segment's file: rows of its extractions that later segments replaced.
    dead_extractions: BTreeMap<u64, RoaringBitmap>,
    faults: Faults,
    statistics: OnceLock<Statistics>,
    spaces: OnceLock<Vec<Space>>,
}

/// Counts over live rows only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Documents.
    pub documents: u64,
    /// Chunks.
    pub chunks: u64,
    /// Terms of all chunks, repeated ones included.
    pub terms: u64,
}

/// A vector space of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// Its name.
    pub name: String,
    /// Identity of the model that made its vectors.
    pub model: String,
    /// Components of a vector.
    pub dimensions: usize,
    /// Vectors that count.
    pub vectors: u64,
}

impl Snapshot {
    /// Number of the commit that made this generation.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.manifest.generation
    }

    /// How many files it is made of, its manifest and `HEAD` included; and bytes of its segments and projections.
    #[must_use]
    pub fn size(&self) -> (u64, u64) {
        let segments = self.manifest.segments.iter().map(|segment| segment.file.file_bytes);
        let files = segments.chain(self.manifest.projections.iter().map(|projection| projection.file.file_bytes));
        files.fold((2, 0), |(count, bytes), file| (count + 1, bytes + file))
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    pub(crate) fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    /// The links projection, unless it is missing or damaged. Checks all of it at the first call.
    pub(crate) fn links(&self) -> Option<&Arc<Links>> {
        self.links.as_ref().filter(|links| links.check().is_ok())
    }

    /// The links projection, where it is made from these facts: it then speaks of all that is live and of nothing else.
    pub(crate) fn links_in_step(&self) -> Option<&Links> {
        self.links().map(|links| &**links).filter(|links| links.entry().facts == self.manifest.facts)
    }

    /// The edges projections that are there and sound, one a vector space and kind of pairs. Checks all of them at the first call.
    pub(crate) fn edges(&self) -> impl Iterator<Item = &Arc<Edges>> {
        self.edges.iter().filter(|edges| edges.check().is_ok())
    }

    /// The communities projection, unless it is missing or damaged. Checks all of it at the first call.
    pub(crate) fn communities(&self) -> Option<&Arc<Communities>> {
        self.communities.as_ref().filter(|communities| communities.check().is_ok())
    }

    /// The vector indexes that are there and sound, one a vector space. Checks all of them at the first call.
    pub(crate) fn vector_indexes(&self) -> impl Iterator<Item = &Arc<VectorIndex>> {
        self.vector_indexes.iter().filter(|index| index.check().is_ok())
    }

    /// Whether a vector space has an index.
    #[must_use]
    pub fn has_vector_index(&self, space: &str) -> bool {
        self.vector_index(space).is_some()
    }

    /// The index of a vector space, unless there is none or it is damaged. Checks all of it at the first call.
    pub(crate) fn vector_index(&self, space: &str) -> Option<&VectorIndex> {
        let mut found = self.vector_indexes.iter().filter(|index| index.entry().space == space);
        found.find(|index| index.check().is_ok()).map(|index| &**index)
    }

    /// Projections that could not be opened; answers are incomplete without them.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// What an answer lacks: projections that are missing, damaged or behind, and how many chunks they don't cover.
    #[must_use]
    pub fn incomplete(&self) -> Vec<String> {
        let mut lacks = self.faults.messages.clone();
        let behind = |name: &str, facts: u64, chunks_end: u32| {
            (facts != self.manifest.facts && !planted(Planted::StaleBelieved)).then(|| {
                let missing = self.chunk_ids().filter(|id| id.0 >= chunks_end).count();
                format!("{name} is behind: {missing} chunks are not covered; {REFRESH}")
            })
        };
        let damaged = |damage: &Damage| format!("a projection cannot be read ({damage}); {REFRESH}");
        match self.links.as_ref().map(|links| (links.check(), links.entry())) {
            Some((Err(damage), _)) => lacks.push(damaged(damage)),
            Some((Ok(()), entry)) => lacks.extend(behind("the links projection", entry.facts, entry.chunks_end)),
            None if self.faults.messages.is_empty() && !self.segments.is_empty() => {
                lacks.push(format!("there is no links projection: definition links are not followed; {REFRESH}"));
            }
            None => {}
        }
        let edges = self.edges.iter().map(|edges| (edges.check(), edges.entry(), "the edges projection"));
        let communities =
            self.communities.iter().map(|made| (made.check(), made.entry(), "the communities projection"));
        for (check, entry, name) in edges.chain(communities) {
            let said =
                check.map_or_else(|damage| Some(damaged(damage)), |()| behind(name, entry.facts, entry.chunks_end));
            // Those of all kinds and spaces are mostly behind together.
            lacks.extend(said.filter(|said| !lacks.contains(said)));
        }
        // One that is behind hides nothing: what it does not cover is compared.
        lacks.extend(self.vector_indexes.iter().filter_map(|index| index.check().err().map(damaged)));
        lacks
    }

    /// The vector spaces that have similarity edges, by name, with the settings that these were built with.
    #[must_use]
    pub fn edge_rules(&self) -> BTreeMap<String, EdgeRules> {
        let edges = self.manifest.projections.iter().filter(|entry| entry.kind == FileKind::Edges.number());
        edges.map(|entry| (entry.space.clone(), EdgeRules::of(&entry.settings))).collect()
    }

    /// How communities are found, where there are any; as nobody chose where their file cannot be read.
    #[must_use]
    pub fn community_rules(&self) -> Option<CommunityRules> {
        let is_ours = |entry: &&ProjectionEntry| entry.kind == FileKind::Communities.number();
        self.manifest.projections.iter().find(is_ours)?;
        let settings = self.communities().and_then(|communities| communities.settings().ok());
        Some(settings.map_or_else(CommunityRules::default, |row| CommunityRules::of(&row)))
    }

    /// The communities that there are, for those that follow them; without reports where their file cannot be read.
    pub(crate) fn former_communities(&self) -> Result<Option<FormerCommunities>, Damage> {
        let Some(rules) = self.community_rules() else { return Ok(None) };
        let nothing = FormerCommunities { rules, ..FormerCommunities::default() };
        Ok(Some(
            self.communities().map(|communities| FormerCommunities::of(communities)).transpose()?.unwrap_or(nothing),
        ))
    }

    /// Features of its files that a writer must know and this program does not.
    pub(crate) fn unknown_features(&self) -> Option<u64> {
        let features = self.segments.iter().fold(0, |known, segment| known | segment.file().unknown_features());
        (features != 0).then_some(features)
    }

    /// Whether any document or extraction was ever deleted or replaced.
    pub(crate) fn has_dead(&self) -> bool {
        !self.dead_documents.is_empty() || !self.dead_extractions.is_empty()
    }

    /// Whether a document counts.
    #[must_use]
    pub fn is_live_document(&self, id: DocumentId) -> bool {
        !self.dead_documents.contains(id.0)
    }

    /// Whether a chunk counts.
    #[must_use]
    pub fn is_live(&self, id: ChunkId) -> bool {
        self.dead_chunks.is_empty() || !self.dead_chunks.contains(id.0)
    }

    /// Ids of all live chunks.
    pub(crate) fn live_chunks(&self) -> RoaringBitmap {
        let mut live = RoaringBitmap::new();
        live.insert_range(0..self.manifest.chunks_end);
        live - &self.dead_chunks
    }

    /// Whether there is a links projection that was made from these facts.
    pub(crate) fn has_links_in_step(&self) -> bool {
        self.links.as_ref().is_some_and(|links| links.entry().facts == self.manifest.facts)
    }

    /// One above the highest chunk id.
    #[must_use]
    pub fn chunks_end(&self) -> usize {
        ChunkId(self.manifest.chunks_end).index()
    }

    /// Ids of all live chunks, ascending.
    pub fn chunk_ids(&self) -> impl Iterator<Item = ChunkId> {
        self.segments.iter().flat_map(|segment| segment.chunk_ids().iter()).map(ChunkId).filter(|id| self.is_live(*id))
    }

    /// Ids of all live documents, ascending.
    pub fn document_ids(&self) -> impl Iterator<Item = DocumentId> {
        let ids = self.segments.iter().flat_map(|segment| segment.document_ids().iter()).map(DocumentId);
        ids.filter(|id| self.is_live_document(*id))
    }

    /// The live document that the caller calls `name`. Probes every segment, newest first.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn find_document(&self, name: &str) -> Result<Option<DocumentView<'_>>, Damage> {
        self.document_with_key(Key::of_document(name))
    }

    /// The live document with a key.
    pub(crate) fn document_with_key(&self, key: Key) -> Result<Option<DocumentView<'_>>, Damage> {
        for segment in self.segments.iter().rev() {
            if let Some(id) = segment.find_document(key)?.filter(|id| self.is_live_document(*id)) {
                return DocumentView::of(segment, id).map(Some);
            }
        }
        Ok(None)
    }

    /// A document.
    ///
    /// # Errors
    /// [`Damage`] where there is no such document, as an id from a damaged file would have it.
    pub fn document(&self, id: DocumentId) -> Result<DocumentView<'_>, Damage> {
        let position = self.segments.partition_point(|segment| segment.entry().documents_end <= id.0);
        let segment = self.segments.get(position);
        DocumentView::of(segment.ok_or_else(|| unknown("a document", id.0))?, id)
    }

    /// A chunk.
    ///
    /// # Errors
    /// [`Damage`] where there is no such chunk, as an id from a damaged file would have it.
    pub fn chunk(&self, id: ChunkId) -> Result<ChunkView<'_>, Damage> {
        let position = self.segments.partition_point(|segment| segment.entry().chunks_end <= id.0);
        let segment = self.segments.get(position);
        ChunkView::of(segment.ok_or_else(|| unknown("a chunk", id.0))?, id)
    }

    /// Counts over what is live. Reads the lengths of all chunks once.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn statistics(&self) -> Result<Statistics, Damage> {
        if let Some(known) = self.statistics.get() {
            return Ok(*known);
        }
        let mut counts = Statistics { documents: self.document_ids().count() as u64, ..Statistics::default() };
        for segment in &self.segments {
            for (id, length) in segment.chunk_ids().iter().zip(segment.lengths()?.iter()) {
                if self.is_live(ChunkId(id)) {
                    counts.chunks += 1;
                    counts.terms += u64::from(length);
                }
            }
        }
        Ok(*self.statistics.get_or_init(|| counts))
    }

    /// Rows of a segment that no longer count, and all of its rows: documents, chunks, vectors, extractions, edges of lists. Reads the
    /// chunk ids of its vectors where vectors were replaced.
    pub(crate) fn dead_rows(&self, position: usize) -> Result<(u64, u64), Damage> {
        let Some(segment) = self.segments.get(position) else { return Ok((0, 0)) };
        let entry = segment.entry();
        let (mut dead, mut rows) = (0, 0);
        for (bitmap, ids, count) in [
            (&self.dead_documents, entry.first_document..entry.documents_end, entry.documents),
            (&self.dead_chunks, entry.first_chunk..entry.chunks_end, entry.chunks),
        ] {
            let without_rows = (ids.len() as u64).saturating_sub(u64::from(count));
            dead += bitmap.range_cardinality(ids).saturating_sub(without_rows);
            rows += u64::from(count);
        }
        for view in segment.spaces()? {
            rows += view.chunks.len() as u64;
            let replaced = self.dead_vectors.get(view.name).into_iter().flatten();
            let here = |chunk: &ChunkId| view.chunks.position_of(chunk.0).is_some();
            dead += replaced.filter(|(chunk, before)| position < **before && here(chunk)).count() as u64;
        }
        rows += segment.extractions()? as u64;
        dead += self.replaced_extractions(segment);
        for found in segment.edge_lists()? {
            let (document, list) = found?;
            let edges = list.targets.len() as u64;
            rows += edges;
            dead += if self.is_live_document(document) { 0 } else { edges };
        }
        Ok((dead, rows))
    }

    /// Whether a segment holds anything that no longer counts. Reads the sources of all its relations.
    pub(crate) fn holds_dead(&self, position: usize) -> Result<bool, Damage> {
        let Some(segment) = self.segments.get(position) else { return Ok(false) };
        if self.dead_rows(position)?.0 > 0 {
            return Ok(true);
        }
        for row in 0..segment.extractions()? {
            if !self.is_live(segment.extraction(row)?.chunk) {
                return Ok(true);
            }
        }
        for relation in segment.relations()?.iter() {
            if segment.evidence(&relation)?.any(|source| !self.is_live_document(DocumentId(source.document))) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lets the system take what was read of its segments out of this process's memory.
    pub(crate) fn let_go(&self) {
        self.segments.iter().for_each(|segment| segment.file().let_go());
    }
}

fn unknown(what: &'static str, id: u32) -> Damage {
    let (expected, found) = ("an id of this generation".into(), id.to_string());
    Damage { file: "the manifest".into(), source: FormatError::Value { what, expected, found } }
}
