//! Turns a batch into what a segment holds: keys become ids, what is already true is left out.

mod extractions;

use crate::error::{CommitError, Damage};
use crate::segment::{
    Content, Numbered, Overlay, OverlayRelation, OverlayVector, StagedDocument, StagedRelation, StagedVector,
};
use crate::snapshot::{DocumentView, Snapshot};
use crate::writer::{Batch, Committed, Target};
use hedgerow_format::manifest::Manifest;
use hedgerow_format::segment::{NO_CHUNK, NO_EXTRACTION, SegmentShape};
use hedgerow_format::text::Codec;
use hedgerow_format::{ChunkId, DocumentId, FormatError, Key};
use std::collections::{BTreeMap, HashMap};

/// A batch whose every reference is known to exist.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    /// Documents of the new segment, ascending by key.
    pub documents: Vec<StagedDocument>,
    /// Rows about older documents.
    pub overlay: Overlay,
    counts: Committed,
}

impl Resolved {
    pub(super) fn is_empty(&self) -> bool {
        self.documents.is_empty() && self.overlay.is_empty()
    }

    /// What was done where nothing is to be written.
    pub(super) fn unchanged(self, generation: u64) -> Committed {
        Committed { generation, ..self.counts }
    }

    /// Gives the documents the ids that follow those of the manifest.
    pub(super) fn number(self, manifest: &Manifest, codec: Codec) -> Result<(Content, Committed), FormatError> {
        let full = FormatError::Limit { what: "the number of documents or chunks", limit: u64::from(u32::MAX) };
        let (first_document, first_chunk) = (manifest.documents_end, manifest.chunks_end);
        let (mut documents_end, mut chunks_end) = (first_document, first_chunk);
        let mut documents = Vec::with_capacity(self.documents.len());
        for document in self.documents {
            let chunks = u32::try_from(document.chunks.len()).map_err(|_| full.clone())?;
            let (id, first_chunk) = (DocumentId(documents_end), ChunkId(chunks_end));
            documents_end = documents_end.checked_add(1).ok_or_else(|| full.clone())?;
            chunks_end = chunks_end.checked_add(chunks).ok_or_else(|| full.clone())?;
            documents.push(Numbered { id, first_chunk, document });
        }
        let (documents_count, chunks) = (documents_end - first_document, chunks_end - first_chunk);
        let shape =
            SegmentShape { first_document, documents_end, documents: documents_count, first_chunk, chunks_end, chunks };
        Ok((Content { shape, documents, overlay: self.overlay, codec }, self.counts))
    }
}

/// Looks up all that the batch refers to.
pub(super) fn resolve(snapshot: &Snapshot, batch: Batch) -> Result<Resolved, CommitError> {
    let Batch { documents, deletions, relations, vectors, extractions, .. } = batch;
    let mut resolved = Resolved::default();
    let mut staged: BTreeMap<Key, StagedDocument> = BTreeMap::new();
    for name in deletions {
        match snapshot.find_document(&name)? {
            Some(old) => {
                resolved.overlay.dead_documents.insert(old.id().0);
                resolved.counts.deleted += 1;
            }
            None => resolved.counts.missing.push(name),
        }
    }
    for (name, document) in documents {
        document.check().map_err(|reason| CommitError::Malformed { key: name.clone(), reason })?;
        match snapshot.find_document(&name)? {
            Some(old) if old.fingerprint() == document.fingerprint => {
                resolved.counts.unchanged += 1;
                continue;
            }
            Some(old) => {
                resolved.overlay.dead_documents.insert(old.id().0);
                resolved.counts.replaced += 1;
            }
            None => resolved.counts.added += 1,
        }
        staged.insert(Key::of_document(&name), document);
    }
    let malformed = |target: &Target, reason| CommitError::Malformed { key: target.document.clone(), reason };
    for (target, relation) in relations {
        relation.check().map_err(|reason| malformed(&target, reason))?;
        resolved.relate(snapshot, &mut staged, &target, relation)?;
    }
    let mut spaces = Spaces::of(snapshot)?;
    for document in staged.values() {
        for vector in document.chunks.iter().flat_map(|chunk| &chunk.vectors) {
            spaces.check(&document.name, vector)?;
        }
    }
    // A document stands for its only chunk: of two vectors for one chunk the later counts, however it is named.
    let mut latest: BTreeMap<(String, u32, String), (Target, StagedVector)> = BTreeMap::new();
    for (target, vector) in vectors {
        let place = (target.document.clone(), target.chunk.unwrap_or(0), vector.space.clone());
        latest.insert(place, (target, vector));
    }
    for (target, vector) in latest.into_values() {
        vector.check().map_err(|reason| malformed(&target, reason))?;
        spaces.check(&target.document, &vector)?;
        resolved.set_vector(snapshot, &mut staged, &target, vector)?;
    }
    resolved.set_extractions(snapshot, &mut staged, extractions)?;
    resolved.counts.chunks = staged.values().map(|document| document.chunks.len() as u64).sum();
    resolved.documents = staged.into_values().collect();
    Ok(resolved)
}

fn unknown(target: &Target) -> CommitError {
    match target.chunk {
        Some(ordinal) => CommitError::UnknownKey { what: "chunk", key: format!("{}#{ordinal}", target.document) },
        None => CommitError::UnknownKey { what: "document", key: target.document.clone() },
    }
}

/// Position of the chunk that a target names; a document stands for its only chunk.
fn one_chunk(target: &Target, chunks: usize) -> Result<usize, CommitError> {
    match ordinal(target) {
        Some(chunk) if chunk < chunks => Ok(chunk),
        None if chunks == 1 => Ok(0),
        None => Err(CommitError::UnknownKey {
            what: "the only chunk of the document",
            key: format!("{} (it has {chunks} chunks; name one as KEY#N)", target.document),
        }),
        Some(_) => Err(unknown(target)),
    }
}

fn ordinal(target: &Target) -> Option<usize> {
    target.chunk.and_then(|ordinal| usize::try_from(ordinal).ok())
}

impl Resolved {
    /// The live document that is not about to be deleted.
    fn kept<'s>(&self, snapshot: &'s Snapshot, target: &Target) -> Result<DocumentView<'s>, CommitError> {
        let found = snapshot.find_document(&target.document)?;
        found.filter(|old| !self.overlay.dead_documents.contains(old.id().0)).ok_or_else(|| unknown(target))
    }

    fn relate(
        &mut self,
        snapshot: &Snapshot,
        staged: &mut BTreeMap<Key, StagedDocument>,
        target: &Target,
        relation: StagedRelation,
    ) -> Result<(), CommitError> {
        if let Some(document) = staged.get_mut(&Key::of_document(&target.document)) {
            let list = match ordinal(target) {
                Some(chunk) => &mut document.chunks.get_mut(chunk).ok_or_else(|| unknown(target))?.relations,
                None => &mut document.relations,
            };
            if !list.iter().any(|known| same(known, &relation)) {
                list.push(relation);
                self.counts.relations += 1;
            }
            return Ok(());
        }
        let document = self.kept(snapshot, target)?;
        let chunk = match ordinal(target) {
            Some(chunk) => Some(document.chunks().nth(chunk).ok_or_else(|| unknown(target))?),
            None => None,
        };
        let found = OverlayRelation { relation, document: document.id(), chunk };
        if !is_known(snapshot, &found)? && !self.overlay.relations.iter().any(|known| same_source(known, &found)) {
            self.overlay.relations.push(found);
            self.counts.relations += 1;
        }
        Ok(())
    }

    fn set_vector(
        &mut self,
        snapshot: &Snapshot,
        staged: &mut BTreeMap<Key, StagedDocument>,
        target: &Target,
        vector: StagedVector,
    ) -> Result<(), CommitError> {
        if let Some(document) = staged.get_mut(&Key::of_document(&target.document)) {
            let chunk = one_chunk(target, document.chunks.len())?;
            let Some(chunk) = document.chunks.get_mut(chunk) else { return Err(unknown(target)) };
            chunk.vectors.retain(|known| known.space != vector.space);
            chunk.vectors.push(vector);
            self.counts.vectors += 1;
            return Ok(());
        }
        let document = self.kept(snapshot, target)?;
        let position = one_chunk(target, document.chunks().count())?;
        let chunk = document.chunks().nth(position).ok_or_else(|| unknown(target))?;
        match known_vector(snapshot, chunk, &vector)? {
            Known::Same => return Ok(()),
            Known::Other => self.overlay.dead_vectors.push((vector.space.clone(), chunk)),
            Known::None => {}
        }
        let StagedVector { space, model, components } = vector;
        self.overlay.vectors.push(OverlayVector { space, model, chunk, components });
        self.counts.vectors += 1;
        Ok(())
    }
}

fn same(a: &StagedRelation, b: &StagedRelation) -> bool {
    a.subject.key == b.subject.key
        && a.object.key == b.object.key
        && a.predicate == b.predicate
        && a.weight.to_bits() == b.weight.to_bits()
        && a.range == b.range
}

fn same_source(a: &OverlayRelation, b: &OverlayRelation) -> bool {
    a.document == b.document && a.chunk == b.chunk && same(&a.relation, &b.relation)
}

/// Whether the store already has this relation from this source.
fn is_known(snapshot: &Snapshot, found: &OverlayRelation) -> Result<bool, Damage> {
    let relation = &found.relation;
    let chunk = found.chunk.map_or(NO_CHUNK, |chunk| chunk.0);
    for segment in snapshot.segments() {
        let ends = segment.find_entity(relation.subject.key)?.zip(segment.find_entity(relation.object.key)?);
        let Some((subject, object)) = ends else { continue };
        for row in segment.relations_from(subject)? {
            if row.object != object.0 || segment.string(row.predicate)? != relation.predicate {
                continue;
            }
            for source in segment.evidence(&row)?.filter(|source| source.extraction == NO_EXTRACTION) {
                let weighed = source.weight.to_bits() == relation.weight.to_bits();
                let placed = source.start == relation.range.start && source.end == relation.range.end;
                if source.document == found.document.0 && source.chunk == chunk && weighed && placed {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

enum Known {
    None,
    Same,
    Other,
}

/// Whether a chunk has a vector in the space of `vector`, and the same one.
fn known_vector(snapshot: &Snapshot, chunk: ChunkId, vector: &StagedVector) -> Result<Known, Damage> {
    let mut known = Known::None;
    for segment in snapshot.segments() {
        for view in segment.spaces()?.into_iter().filter(|view| view.name == vector.space) {
            let Some(row) = view.chunks.position_of(chunk.0) else { continue };
            let bytes = view.vector(row)?;
            let same = bytes.iter().copied().eq(vector.components.iter().flat_map(|component| component.to_le_bytes()));
            known = if same { Known::Same } else { Known::Other };
        }
    }
    Ok(known)
}

/// What each vector space holds: a space has one model and one number of components.
struct Spaces(HashMap<String, (String, usize)>);

impl Spaces {
    fn of(snapshot: &Snapshot) -> Result<Self, Damage> {
        let mut spaces = HashMap::new();
        for segment in snapshot.segments() {
            for view in segment.spaces()? {
                spaces.insert(view.name.to_owned(), (view.model.to_owned(), view.dimensions));
            }
        }
        Ok(Self(spaces))
    }

    fn check(&mut self, key: &str, vector: &StagedVector) -> Result<(), CommitError> {
        let found = (vector.model.clone(), vector.components.len());
        let known = self.0.entry(vector.space.clone()).or_insert_with(|| found.clone());
        let limit = hedgerow_format::limits::DIMENSIONS;
        if *known == found && (1..=limit).contains(&found.1) {
            return Ok(());
        }
        Err(CommitError::Space {
            key: key.to_owned(),
            space: vector.space.clone(),
            expected: format!("{} components of {}", known.1, known.0),
            found: format!("{} components of {}", found.1, found.0),
        })
    }
}
