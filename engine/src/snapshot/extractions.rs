//! Which extractions of a generation count, and what they say.

use crate::error::Damage;
use crate::segment::{
    ExtractionView, OverlayExtraction, Segment, StagedEnd, StagedEntity, StagedExtraction, StagedRelation,
};
use crate::snapshot::Snapshot;
use hedgerow_format::segment::{EvidenceRow, ExtractedRow, NO_EXTRACTION, RelationRow};
use hedgerow_format::{ChunkId, DocumentId, EntitySlot, Key};
use roaring::RoaringBitmap;
use std::collections::{BTreeMap, HashMap};

impl Snapshot {
    /// Gathers the rows of extractions that later segments replaced. Reads the rows of extractions where any was.
    pub(super) fn bury_extractions(&mut self) -> Result<(), Damage> {
        let mut replaced: HashMap<(&str, ChunkId), usize> = HashMap::new();
        for (position, segment) in self.segments.iter().enumerate() {
            replaced.extend(segment.dead_extractions()?.into_iter().map(|named| (named, position)));
        }
        let mut dead = BTreeMap::new();
        if !replaced.is_empty() {
            for (position, segment) in self.segments.iter().enumerate() {
                let mut rows = RoaringBitmap::new();
                for (number, row) in (0_u32..).zip(0..segment.extractions()?) {
                    let ExtractionView { chunk, extractor, .. } = segment.extraction(row)?;
                    if replaced.get(&(extractor, chunk)).is_some_and(|before| position < *before) {
                        rows.insert(number);
                    }
                }
                if !rows.is_empty() {
                    dead.insert(segment.entry().file.number, rows);
                }
            }
        }
        self.dead_extractions = dead;
        Ok(())
    }

    /// How many extractions of a segment were replaced.
    pub(super) fn replaced_extractions(&self, segment: &Segment) -> u64 {
        self.dead_extractions.get(&segment.entry().file.number).map_or(0, RoaringBitmap::len)
    }

    /// Whether a row of a segment's extractions was not replaced. Its chunk may be dead.
    fn is_newest(&self, segment: &Segment, row: u32) -> bool {
        self.dead_extractions.get(&segment.entry().file.number).is_none_or(|dead| !dead.contains(row))
    }

    /// The sources of a relation that count: their documents are live, and their extractions the newest.
    pub(crate) fn evidence<'s>(
        &'s self,
        segment: &'s Segment,
        relation: &RelationRow,
    ) -> Result<impl Iterator<Item = EvidenceRow>, Damage> {
        let counts = move |source: &EvidenceRow| {
            let newest = source.extraction == NO_EXTRACTION || self.is_newest(segment, source.extraction);
            newest && self.is_live_document(DocumentId(source.document))
        };
        Ok(segment.evidence(relation)?.filter(counts))
    }

    /// What the extractions of a segment that count say of an entity, each with its chunk.
    pub(crate) fn extracted<'s>(
        &'s self,
        segment: &'s Segment,
        entity: EntitySlot,
    ) -> Result<impl Iterator<Item = Result<(ChunkId, ExtractedRow), Damage>>, Damage> {
        let rows = segment.extracted_of(entity)?;
        Ok(rows.filter_map(|row| self.counted(segment, row).transpose()))
    }

    /// Likewise, of all entities.
    pub(crate) fn all_extracted<'s>(
        &'s self,
        segment: &'s Segment,
    ) -> Result<impl Iterator<Item = Result<(ChunkId, ExtractedRow), Damage>>, Damage> {
        let rows = segment.extracted()?.iter();
        Ok(rows.filter_map(|row| self.counted(segment, row).transpose()))
    }

    fn counted(&self, segment: &Segment, row: ExtractedRow) -> Result<Option<(ChunkId, ExtractedRow)>, Damage> {
        let chunk = segment.extraction(index(row.extraction))?.chunk;
        Ok((self.is_newest(segment, row.extraction) && self.is_live(chunk)).then_some((chunk, row)))
    }

    /// The extractions of a live chunk, ascending by extractor. Looks into every segment by halving.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn extractions(&self, chunk: ChunkId) -> Result<Vec<ExtractionView<'_>>, Damage> {
        let mut found: BTreeMap<&str, ExtractionView<'_>> = BTreeMap::new();
        for segment in self.segments() {
            for row in segment.extractions_of(chunk)? {
                let view = segment.extraction(row)?;
                if u32::try_from(row).is_ok_and(|row| self.is_newest(segment, row)) && self.is_live(chunk) {
                    found.insert(view.extractor, view);
                }
            }
        }
        Ok(found.into_values().collect())
    }

    /// Calls `visit` with every extraction of a segment that counts.
    pub(crate) fn for_each_extraction<'s>(
        &'s self,
        segment: &'s Segment,
        mut visit: impl FnMut(u32, ExtractionView<'s>),
    ) -> Result<(), Damage> {
        for (number, row) in (0_u32..).zip(0..segment.extractions()?) {
            let view = segment.extraction(row)?;
            if self.is_newest(segment, number) && self.is_live(view.chunk) {
                visit(number, view);
            }
        }
        Ok(())
    }

    /// The extractions of a segment that count, of wanted chunks, as they were staged. Reads the sources of all its
    /// relations if it has any such extraction.
    pub(crate) fn staged_extractions(
        &self,
        segment: &Segment,
        wanted: impl Fn(ChunkId) -> bool,
    ) -> Result<Vec<OverlayExtraction>, Damage> {
        let mut rows: BTreeMap<u32, (ChunkId, StagedExtraction)> = BTreeMap::new();
        self.for_each_extraction(segment, |number, view| {
            if wanted(view.chunk) {
                let (extractor, model) = (view.extractor.to_owned(), view.model.to_owned());
                let staged = StagedExtraction { extractor, model, ..StagedExtraction::default() };
                rows.insert(number, (view.chunk, staged));
            }
        })?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        for row in segment.extracted()?.iter() {
            if let Some((_, staged)) = rows.get_mut(&row.extraction) {
                let StagedEnd { key, name, kind } = end(segment, row.spelling)?;
                let description = segment.string(row.description)?.to_owned();
                staged.entities.push(StagedEntity { key, name, kind, description, range: row.start..row.end });
            }
        }
        for relation_row in segment.relations()?.iter() {
            for source in segment.evidence(&relation_row)? {
                if let Some((_, staged)) = rows.get_mut(&source.extraction) {
                    staged.relations.push(relation(segment, &relation_row, &source)?);
                }
            }
        }
        let placed = rows.into_values().map(|(chunk, extraction)| {
            let document = self.chunk(chunk)?.document()?.id();
            Ok(OverlayExtraction { document, chunk, extraction })
        });
        placed.collect()
    }
}

/// A relation as one of its sources writes it.
pub(super) fn relation(segment: &Segment, row: &RelationRow, source: &EvidenceRow) -> Result<StagedRelation, Damage> {
    Ok(StagedRelation {
        subject: end(segment, source.subject_spelling)?,
        predicate: segment.string(row.predicate)?.to_owned(),
        object: end(segment, source.object_spelling)?,
        weight: source.weight,
        range: source.start..source.end,
    })
}

/// An entity as a row of spellings writes it.
pub(super) fn end(segment: &Segment, spelling: u32) -> Result<StagedEnd, Damage> {
    let (slot, name, kind) = segment.spelling(spelling)?;
    Ok(StagedEnd { key: Key(segment.entity(slot)?.key), name: name.to_owned(), kind: kind.to_owned() })
}

fn index(row: u32) -> usize {
    usize::try_from(row).unwrap_or(usize::MAX)
}
