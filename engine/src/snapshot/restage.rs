//! Reads documents back as they were staged: what compaction, copies and fingerprints are made of.

use crate::error::Damage;
use crate::segment::{
    Numbered, Overlay, OverlayExtraction, OverlayRelation, OverlayVector, Segment, StagedChunk, StagedDocument,
    StagedEdgeList, StagedEnd, StagedMention, StagedRelation, StagedVector,
};
use crate::snapshot::Snapshot;
use crate::snapshot::extractions::{end, relation};
use hedgerow_format::segment::{DocumentRow, EdgeListView, EvidenceRow, NO_CHUNK, NO_EXTRACTION, RelationRow};
use hedgerow_format::{ChunkId, ChunkSlot, DocumentId};
use roaring::RoaringBitmap;
use std::collections::HashMap;
use std::ops::Range;

/// The live rows of some neighbouring segments, with what later ones among them say about them.
#[derive(Debug)]
pub(crate) struct Restage<'s> {
    snapshot: &'s Snapshot,
    run: Range<usize>,
    /// Relations by document: the overlay rows of the run.
    relations: HashMap<DocumentId, Vec<OverlayRelation>>,
    /// All vectors of the run, by chunk.
    vectors: HashMap<ChunkId, Vec<VectorRow<'s>>>,
    /// Extractions by chunk: the overlay rows of the run.
    extractions: HashMap<ChunkId, Vec<OverlayExtraction>>,
}

#[derive(Clone, Copy, Debug)]
struct VectorRow<'s> {
    space: &'s str,
    model: &'s str,
    components: &'s [u8],
}

impl VectorRow<'_> {
    fn components(&self) -> Vec<f32> {
        self.components.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }
}

impl Snapshot {
    /// Gathers what the segments at `run` say about each other. Holds references to vectors, and copies of the relations
    /// and extractions that were added to older documents.
    pub(crate) fn restage(&self, run: Range<usize>) -> Result<Restage<'_>, Damage> {
        let mut relations: HashMap<DocumentId, Vec<OverlayRelation>> = HashMap::new();
        let mut extractions: HashMap<ChunkId, Vec<OverlayExtraction>> = HashMap::new();
        for segment in self.segments().get(run.clone()).unwrap_or_default() {
            let (first, first_chunk) = (segment.entry().first_document, segment.entry().first_chunk);
            for found in self.staged_extractions(segment, |chunk| chunk.0 < first_chunk)? {
                extractions.entry(found.chunk).or_default().push(found);
            }
            self.for_each_source(segment, |row, source| {
                if source.document < first {
                    let (relation, document) = (relation(segment, row, source)?, DocumentId(source.document));
                    let chunk = (source.chunk != NO_CHUNK).then_some(ChunkId(source.chunk));
                    relations.entry(document).or_default().push(OverlayRelation { relation, document, chunk });
                }
                Ok(())
            })?;
        }
        let mut vectors: HashMap<ChunkId, Vec<VectorRow<'_>>> = HashMap::new();
        self.for_each_vector_of(run.clone(), None, |view, chunk, components| {
            vectors.entry(chunk).or_default().push(VectorRow { space: view.name, model: view.model, components });
        })?;
        Ok(Restage { snapshot: self, run, relations, vectors, extractions })
    }

    /// Calls `visit` with every live source of every relation of a segment that is part of no extraction.
    fn for_each_source(
        &self,
        segment: &Segment,
        mut visit: impl FnMut(&RelationRow, &EvidenceRow) -> Result<(), Damage>,
    ) -> Result<(), Damage> {
        for row in segment.relations()?.iter() {
            for source in self.evidence(segment, &row)?.filter(|source| source.extraction == NO_EXTRACTION) {
                visit(&row, &source)?;
            }
        }
        Ok(())
    }
}

impl Restage<'_> {
    /// The live documents of one segment of the run, ascending by id. Memory is that of the documents.
    pub(crate) fn segment(&self, position: usize) -> Result<Vec<Numbered>, Damage> {
        self.chosen(position, |_| true)
    }

    /// Likewise, those that are wanted.
    pub(crate) fn chosen(&self, position: usize, wanted: impl Fn(DocumentId) -> bool) -> Result<Vec<Numbered>, Damage> {
        let segment = &self.snapshot.segments()[position];
        let mut own: HashMap<DocumentId, Vec<(u32, StagedRelation)>> = HashMap::new();
        let first = segment.entry().first_document;
        self.snapshot.for_each_source(segment, |row, source| {
            if source.document >= first {
                let relation = relation(segment, row, source)?;
                own.entry(DocumentId(source.document)).or_default().push((source.chunk, relation));
            }
            Ok(())
        })?;
        let mut extractions: HashMap<ChunkId, Vec<OverlayExtraction>> = HashMap::new();
        let first_chunk = segment.entry().first_chunk;
        for found in self.snapshot.staged_extractions(segment, |chunk| chunk.0 >= first_chunk)? {
            extractions.entry(found.chunk).or_default().push(found);
        }
        let mut terms = self.terms(segment)?;
        let mut documents = Vec::new();
        for run in self.snapshot.text_runs(segment)? {
            run.for_each(|id, row, text| {
                if !wanted(id) {
                    return Ok(());
                }
                let mut numbered = document(segment, id, row, text, &mut terms)?;
                for (chunk, relation) in own.remove(&id).unwrap_or_default() {
                    numbered.add_relation(chunk, relation);
                }
                numbered.add_extractions(&extractions);
                self.add_overlay(&mut numbered);
                documents.push(numbered);
                Ok::<(), Damage>(())
            })?;
        }
        Ok(documents)
    }

    /// The terms of each live chunk, by slot.
    fn terms(&self, segment: &Segment) -> Result<Vec<Vec<(String, u16)>>, Damage> {
        let ids = segment.chunk_ids();
        let live: Vec<bool> = ids.iter().map(|id| self.snapshot.is_live(ChunkId(id))).collect();
        let mut terms = vec![Vec::new(); live.len()];
        segment.for_each_posting(|term, slot, frequency| {
            let slot = ChunkSlot(slot).index();
            if live.get(slot) == Some(&true)
                && let Some(terms) = terms.get_mut(slot)
            {
                terms.push((term.to_owned(), frequency));
            }
        })?;
        Ok(terms)
    }

    /// What later segments of the run say about a document.
    fn add_overlay(&self, numbered: &mut Numbered) {
        for found in self.relations.get(&numbered.id).into_iter().flatten() {
            let chunk = found.chunk.map_or(NO_CHUNK, |chunk| chunk.0);
            numbered.add_relation(chunk, found.relation.clone());
        }
        for (id, chunk) in (numbered.first_chunk.0..).map(ChunkId).zip(&mut numbered.document.chunks) {
            let vectors = self.vectors.get(&id).into_iter().flatten();
            chunk.vectors.extend(vectors.map(|row| StagedVector {
                space: row.space.to_owned(),
                model: row.model.to_owned(),
                components: row.components(),
            }));
        }
        numbered.add_extractions(&self.extractions);
    }

    /// What the run says about documents of earlier segments.
    pub(crate) fn overlay(&self) -> Result<Overlay, Damage> {
        let segments = self.snapshot.segments().get(self.run.clone()).unwrap_or_default();
        let Some(first) = segments.first().map(|segment| *segment.entry()) else { return Ok(Overlay::default()) };
        let mut overlay = Overlay::default();
        for (_, found) in self.relations.iter().filter(|(document, _)| document.0 < first.first_document) {
            overlay.relations.extend(found.iter().cloned());
        }
        for (chunk, rows) in self.vectors.iter().filter(|(chunk, _)| chunk.0 < first.first_chunk) {
            overlay.vectors.extend(rows.iter().map(|row| OverlayVector {
                space: row.space.to_owned(),
                model: row.model.to_owned(),
                chunk: *chunk,
                components: row.components(),
            }));
        }
        for (_, found) in self.extractions.iter().filter(|(chunk, _)| chunk.0 < first.first_chunk) {
            overlay.extractions.extend(found.iter().cloned());
        }
        for segment in segments {
            overlay.dead_documents |= segment.dead_documents()?;
            for (space, chunk) in segment.dead_vectors()? {
                if chunk.0 < first.first_chunk && self.snapshot.is_live(chunk) {
                    overlay.dead_vectors.push((space.to_owned(), chunk));
                }
            }
            for (extractor, chunk) in segment.dead_extractions()? {
                if chunk.0 < first.first_chunk && self.snapshot.is_live(chunk) {
                    overlay.dead_extractions.push((extractor.to_owned(), chunk));
                }
            }
        }
        overlay.dead_documents.remove_range(first.first_document..);
        // An id without a row is dead without being named.
        let mut named = RoaringBitmap::new();
        for earlier in self.snapshot.segments().get(..self.run.start).unwrap_or_default() {
            let ids = earlier.document_ids();
            let range = earlier.entry().first_document..earlier.entry().documents_end;
            named.extend(overlay.dead_documents.range(range).filter(|id| ids.position(*id).is_some()));
        }
        overlay.dead_documents = named;
        for dead in [&mut overlay.dead_vectors, &mut overlay.dead_extractions] {
            dead.sort_unstable();
            dead.dedup();
        }
        Ok(overlay)
    }
}

/// A document without its relations and vectors.
fn document(
    segment: &Segment,
    id: DocumentId,
    row: &DocumentRow,
    text: &str,
    terms: &mut [Vec<(String, u16)>],
) -> Result<Numbered, Damage> {
    let string = |place| segment.string(place).map(str::to_owned);
    let lengths = segment.lengths()?;
    let ids = segment.chunks_of(row);
    let mut chunks = Vec::with_capacity(ids.len());
    for (slot, id) in (ChunkSlot(row.first_chunk).index()..).zip(ids.clone().map(ChunkId)) {
        let chunk = segment.chunk(id)?;
        let mut mentions = Vec::new();
        for mention in segment.mentions(id)? {
            let StagedEnd { key, name, kind } = end(segment, mention.spelling)?;
            let ranges = mention.ranges().collect();
            mentions.push(StagedMention { key, name, kind, flags: mention.flags, ranges });
        }
        chunks.push(StagedChunk {
            range: chunk.start..chunk.end,
            kind: chunk.kind,
            heading: string(chunk.heading)?,
            metadata: string(chunk.metadata)?,
            mentions,
            terms: terms.get_mut(slot).map(std::mem::take).unwrap_or_default(),
            length: lengths.get(slot).unwrap_or_default(),
            ..StagedChunk::default()
        });
    }
    let document = StagedDocument {
        name: string(row.name)?,
        fingerprint: row.fingerprint,
        title: string(row.title)?,
        source: string(row.source)?,
        media_type: string(row.media_type)?,
        metadata: string(row.metadata)?,
        text: text.to_owned(),
        chunks,
        relations: Vec::new(),
        edge_lists: edge_lists(segment, id)?,
    };
    Ok(Numbered { id, first_chunk: ChunkId(ids.start), document })
}

/// The edge lists of a document.
fn edge_lists(segment: &Segment, id: DocumentId) -> Result<Vec<StagedEdgeList>, Damage> {
    let staged = |list: EdgeListView<'_>| -> Result<StagedEdgeList, Damage> {
        Ok(StagedEdgeList {
            predicate: list.predicate.to_owned(),
            nodes: list.nodes.iter().map(|spelling| end(segment, spelling)).collect::<Result<_, _>>()?,
            offsets: list.offsets.iter().collect(),
            targets: list.targets.iter().collect(),
            weights: list.weights.iter().collect(),
        })
    };
    segment.edge_lists_of(id)?.map(|found| staged(found?.1)).collect()
}

impl Numbered {
    /// Gives extractions back to the chunks that they were made of.
    fn add_extractions(&mut self, found: &HashMap<ChunkId, Vec<OverlayExtraction>>) {
        for (id, chunk) in (self.first_chunk.0..).map(ChunkId).zip(&mut self.document.chunks) {
            let found = found.get(&id).into_iter().flatten();
            chunk.extractions.extend(found.map(|found| found.extraction.clone()));
        }
    }

    /// Gives a relation back to the chunk that says it, or to the document as a whole.
    fn add_relation(&mut self, chunk: u32, relation: StagedRelation) {
        let position = chunk.checked_sub(self.first_chunk.0).map(|position| ChunkSlot(position).index());
        match position.and_then(|position| self.document.chunks.get_mut(position)) {
            Some(chunk) => chunk.relations.push(relation),
            None => self.document.relations.push(relation),
        }
    }
}
