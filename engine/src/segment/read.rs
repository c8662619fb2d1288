//! Views of a segment's facts. Every answer is checked: a damaged segment gives [`Damage`], never nonsense.

use crate::error::Damage;
use crate::storage::VerifiedFile;
use hedgerow_format::manifest::SegmentEntry;
use hedgerow_format::section::{SectionKind, Sections};
use hedgerow_format::segment::{
    self, ChunkRow, DeadVectorRow, DocumentRow, EntityRow, EvidenceRow, Ids, MentionRow, RangeRow, RelationRow,
    SpellingRow, Terms,
};
use hedgerow_format::text::TextView;
use hedgerow_format::{ChunkId, DocumentId, EntitySlot, FormatError, Key, Record, Rows, TextRef, U16s, U32s};
use roaring::RoaringBitmap;
use std::ops::Range;

/// An open segment.
#[derive(Debug)]
pub struct Segment {
    file: VerifiedFile,
    entry: SegmentEntry,
}

/// An entity in a chunk.
#[derive(Clone, Copy, Debug)]
pub struct MentionView<'a> {
    /// Slot of the entity.
    pub entity: EntitySlot,
    /// Row of `spellings` that the chunk writes it in.
    pub spelling: u32,
    /// How it comes to stand there.
    pub flags: u16,
    rows: Rows<'a, RangeRow>,
    first: usize,
    count: usize,
}

impl MentionView<'_> {
    /// Its occurrences, as bytes of the document's text.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u32>> {
        self.rows.range(self.first..self.first.saturating_add(self.count)).map(|row| row.start..row.end)
    }
}

/// The chunks that a term stands in, with its frequencies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Postings<'a> {
    /// Chunk slots, ascending.
    pub chunks: U32s<'a>,
    /// Frequencies beside them.
    pub frequencies: U16s<'a>,
}

impl Segment {
    /// The segment that `entry` describes, in an open file. The lengths of its sections bear out the entry's counts, and its
    /// ids lie in the entry's ranges: where ids are listed, all of them are read.
    ///
    /// # Errors
    /// [`Damage`] where they don't.
    pub fn new(file: VerifiedFile, entry: SegmentEntry) -> Result<Self, Damage> {
        let segment = Self { file, entry };
        for (kind, size, count) in [
            (SectionKind::Documents, DocumentRow::SIZE, entry.documents),
            (SectionKind::Chunks, ChunkRow::SIZE, entry.chunks),
        ] {
            let found = segment.file.section_bytes(kind);
            if found as u64 != size as u64 * u64::from(count) {
                let (section, expected) = (kind.name(), format!("{count} rows, as the manifest says"));
                let error = FormatError::Shape { section, expected, found: format!("{found} bytes") };
                return Err(segment.file.damage(error));
            }
        }
        let shape = entry.shape();
        let ids = shape.document_ids(&segment.file).and_then(|ids| ids.check());
        let ids = ids.and_then(|()| shape.chunk_ids(&segment.file)?.check());
        match ids {
            Ok(()) => Ok(segment),
            Err(error) => Err(segment.file.damage(error)),
        }
    }

    /// What the manifest says of it.
    #[must_use]
    pub fn entry(&self) -> &SegmentEntry {
        &self.entry
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &VerifiedFile {
        &self.file
    }

    /// Ids of its documents, by slot. They were checked when the segment was opened.
    #[must_use]
    pub fn document_ids(&self) -> Ids<'_> {
        self.entry.shape().document_ids(&self.file).unwrap_or_default()
    }

    /// Ids of its chunks, by slot. They were checked when the segment was opened.
    #[must_use]
    pub fn chunk_ids(&self) -> Ids<'_> {
        self.entry.shape().chunk_ids(&self.file).unwrap_or_default()
    }

    /// Id of the document that the caller calls by a name with this key. Reads a few rows: keys are evenly spread.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn find_document(&self, key: Key) -> Result<Option<DocumentId>, Damage> {
        let rows: Rows<'_, DocumentRow> = self.rows(SectionKind::Documents)?;
        let slot_at = segment::in_key_order(&self.file).map_err(|error| self.file.damage(error))?;
        let found = find_key(rows.len(), key, |place| rows.get(slot_at(place)?).map(|row| Key(row.key)));
        let Some(slot) = found.and_then(slot_at) else { return Ok(None) };
        Ok(self.document_ids().get(slot).map(DocumentId))
    }

    /// Slot of the entity with this key. Reads a few rows: keys are evenly spread.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn find_entity(&self, key: Key) -> Result<Option<EntitySlot>, Damage> {
        let rows: Rows<'_, EntityRow> = self.rows(SectionKind::Entities)?;
        let found = find_key(rows.len(), key, |slot| rows.get(slot).map(|row| Key(row.key)));
        Ok(found.and_then(|slot| u32::try_from(slot).ok()).map(EntitySlot))
    }

    /// A document's row.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn document(&self, id: DocumentId) -> Result<DocumentRow, Damage> {
        self.row(SectionKind::Documents, self.document_ids().position(id.0).unwrap_or(usize::MAX))
    }

    /// A chunk's row.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn chunk(&self, id: ChunkId) -> Result<ChunkRow, Damage> {
        self.row(SectionKind::Chunks, self.chunk_ids().position(id.0).unwrap_or(usize::MAX))
    }

    /// Id of the document that a chunk of this segment belongs to.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn document_of(&self, chunk: &ChunkRow) -> Result<DocumentId, Damage> {
        let slot = usize::try_from(chunk.document).unwrap_or(usize::MAX);
        let id = self.document_ids().get(slot).map(DocumentId);
        id.ok_or_else(|| self.no_row(SectionKind::Documents, slot))
    }

    /// Ids of a document's chunks, which follow each other.
    #[must_use]
    pub fn chunks_of(&self, document: &DocumentRow) -> Range<u32> {
        let first = usize::try_from(document.first_chunk).ok().and_then(|slot| self.chunk_ids().get(slot));
        let first = first.filter(|_| document.chunks > 0).unwrap_or(self.entry.chunks_end);
        first..first.saturating_add(document.chunks).min(self.entry.chunks_end)
    }

    /// Bytes of a document's text. Decompresses the blocks that they lie in.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn text(&self, document: &DocumentRow, range: Range<u32>) -> Result<String, Damage> {
        let bytes = self.section(SectionKind::Text)?;
        let view = TextView { blocks: self.rows(SectionKind::TextBlocks)?, bytes };
        let start = document.text_offset.saturating_add(u64::from(range.start.min(document.text_bytes)));
        let end = document.text_offset.saturating_add(u64::from(range.end.min(document.text_bytes)));
        view.read(start..end).map_err(|error| self.file.damage(error))
    }

    /// The texts of consecutive documents, one after another, from the first one's first byte to the last one's last.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn texts(&self, first: &DocumentRow, last: &DocumentRow) -> Result<String, Damage> {
        let view = TextView { blocks: self.rows(SectionKind::TextBlocks)?, bytes: self.section(SectionKind::Text)? };
        let end = last.text_offset.saturating_add(u64::from(last.text_bytes));
        view.read(first.text_offset..end).map_err(|error| self.file.damage(error))
    }

    /// All documents, ascending by key.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn documents(&self) -> Result<Rows<'_, DocumentRow>, Damage> {
        self.rows(SectionKind::Documents)
    }

    /// A string that a row refers to.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn string(&self, place: TextRef) -> Result<&str, Damage> {
        self.file.string(place).map_err(|error| self.file.damage(error))
    }

    /// All entities, ascending by key.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn entities(&self) -> Result<Rows<'_, EntityRow>, Damage> {
        self.rows(SectionKind::Entities)
    }

    /// An entity's row.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn entity(&self, slot: EntitySlot) -> Result<EntityRow, Damage> {
        self.row(SectionKind::Entities, slot.index())
    }

    /// All spellings of entities, ascending by entity, name and type.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn spellings(&self) -> Result<Rows<'_, SpellingRow>, Damage> {
        self.rows(SectionKind::Spellings)
    }

    /// A name and a type that an entity is given, by its row in `spellings`.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn spelling(&self, row: u32) -> Result<(EntitySlot, &str, &str), Damage> {
        let row: SpellingRow = self.row(SectionKind::Spellings, usize::try_from(row).unwrap_or(usize::MAX))?;
        Ok((EntitySlot(row.entity), self.string(row.name)?, self.string(row.kind)?))
    }

    /// The entities in a chunk, ascending by slot.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn mentions(&self, chunk: ChunkId) -> Result<impl Iterator<Item = MentionView<'_>>, Damage> {
        let slot = self.chunk_ids().position(chunk.0).unwrap_or(usize::MAX);
        let range = self.u32s(SectionKind::MentionOffsets)?.row(slot);
        let rows: Rows<'_, RangeRow> = self.rows(SectionKind::MentionRanges)?;
        let mentions: Rows<'_, MentionRow> = self.rows(SectionKind::Mentions)?;
        Ok(mentions.range(range).map(move |mention| MentionView {
            entity: EntitySlot(mention.entity),
            spelling: mention.spelling,
            flags: mention.flags,
            rows,
            first: usize::try_from(mention.first_range).unwrap_or(usize::MAX),
            count: usize::from(mention.ranges),
        }))
    }

    /// The chunks that mention an entity, ascending.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn mentioning(&self, entity: EntitySlot) -> Result<impl Iterator<Item = ChunkId>, Damage> {
        let range = self.u32s(SectionKind::MentioningOffsets)?.row(entity.index());
        let ids = self.chunk_ids();
        let slots = self.u32s(SectionKind::Mentioning)?.slice(range);
        Ok(slots.iter().filter_map(move |slot| ids.get(usize::try_from(slot).ok()?).map(ChunkId)))
    }

    /// All relations, ascending by subject, predicate and object.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn relations(&self) -> Result<Rows<'_, RelationRow>, Damage> {
        self.rows(SectionKind::Relations)
    }

    /// The relations that start from an entity.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn relations_from(&self, subject: EntitySlot) -> Result<impl Iterator<Item = RelationRow>, Damage> {
        let range = self.u32s(SectionKind::RelationOffsets)?.row(subject.index());
        Ok(self.relations()?.range(range))
    }

    /// The relations that lead to an entity.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn relations_to(&self, object: EntitySlot) -> Result<impl Iterator<Item = RelationRow>, Damage> {
        let range = self.u32s(SectionKind::RelatingOffsets)?.row(object.index());
        let relations = self.relations()?;
        let rows = self.u32s(SectionKind::Relating)?.slice(range);
        Ok(rows.iter().filter_map(move |row| relations.get(usize::try_from(row).ok()?)))
    }

    /// The sources of a relation.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn evidence(&self, relation: &RelationRow) -> Result<impl Iterator<Item = EvidenceRow>, Damage> {
        let first = usize::try_from(relation.first_evidence).unwrap_or(usize::MAX);
        let count = usize::try_from(relation.evidence).unwrap_or(usize::MAX);
        let rows: Rows<'_, EvidenceRow> = self.rows(SectionKind::Evidence)?;
        Ok(rows.range(first..first.saturating_add(count)))
    }

    /// Where a term stands.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn postings(&self, term: &str) -> Result<Postings<'_>, Damage> {
        let damage = |error| self.file.damage(error);
        let Some(range) = Terms::of(&self.file).map_err(damage)?.find(term) else { return Ok(Postings::default()) };
        let frequencies = self.file.u16s(SectionKind::PostingFrequencies).map_err(damage)?;
        let chunks = self.u32s(SectionKind::PostingChunks)?.slice(range.clone());
        Ok(Postings { chunks, frequencies: frequencies.slice(range) })
    }

    /// All terms, and the chunk slots that their postings refer to.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn dictionary(&self) -> Result<(Terms<'_>, U32s<'_>), Damage> {
        let terms = Terms::of(&self.file).map_err(|error| self.file.damage(error))?;
        Ok((terms, self.u32s(SectionKind::PostingChunks)?))
    }

    /// The first term that is not below `bound`; none where all are, or where it is no text.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn first_term_from(&self, bound: &str) -> Result<Option<&str>, Damage> {
        let terms = Terms::of(&self.file).map_err(|error| self.file.damage(error))?;
        Ok(terms.get(terms.first_from(bound)).and_then(|(term, _)| std::str::from_utf8(term).ok()))
    }

    /// Calls `visit` with every term, the slot of a chunk that it stands in, and its frequency there; terms in byte order.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn for_each_posting(&self, mut visit: impl FnMut(&str, u32, u16)) -> Result<(), Damage> {
        let damage = |error| self.file.damage(error);
        let terms = Terms::of(&self.file).map_err(damage)?;
        let chunks = self.u32s(SectionKind::PostingChunks)?;
        let frequencies = self.file.u16s(SectionKind::PostingFrequencies).map_err(damage)?;
        for row in 0..terms.len() {
            let found = terms.get(row).and_then(|(term, postings)| Some((std::str::from_utf8(term).ok()?, postings)));
            let (term, postings) = found.ok_or_else(|| self.no_row(SectionKind::Terms, row))?;
            for (slot, frequency) in chunks.slice(postings.clone()).iter().zip(frequencies.slice(postings).iter()) {
                visit(term, slot, frequency);
            }
        }
        Ok(())
    }

    /// Number of terms of each chunk, by slot.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn lengths(&self) -> Result<U32s<'_>, Damage> {
        self.u32s(SectionKind::ChunkLengths)
    }

    /// Documents of earlier segments that its commit deleted.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn dead_documents(&self) -> Result<RoaringBitmap, Damage> {
        segment::dead_documents(&self.file).map_err(|error| self.file.damage(error))
    }

    /// Vectors of earlier segments that its commit replaced: space and chunk.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn dead_vectors(&self) -> Result<Vec<(&str, ChunkId)>, Damage> {
        let rows: Rows<'_, DeadVectorRow> = self.rows(SectionKind::DeadVectors)?;
        rows.iter().map(|row| Ok((self.string(row.space)?, ChunkId(row.chunk)))).collect()
    }

    /// Checks every byte and every invariant.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn verify(&self) -> Result<(), Damage> {
        self.file.check_all()?;
        segment::validate(&self.file, self.entry.shape()).map_err(|error| self.file.damage(error))
    }

    /// Everything that is wrong with its bytes, and the first broken invariant of each group of its sections.
    #[must_use]
    pub fn findings(&self) -> Vec<FormatError> {
        let mut found = self.file.faults();
        let broken = segment::findings(&self.file, self.entry.shape());
        found.extend(broken.into_iter().filter(|error| !matches!(error, FormatError::Block { .. })));
        found
    }

    pub(super) fn section(&self, kind: SectionKind) -> Result<&[u8], Damage> {
        self.file.section(kind).map_err(|error| self.file.damage(error))
    }

    pub(super) fn u32s(&self, kind: SectionKind) -> Result<U32s<'_>, Damage> {
        self.file.u32s(kind).map_err(|error| self.file.damage(error))
    }

    pub(super) fn rows<R: Record>(&self, kind: SectionKind) -> Result<Rows<'_, R>, Damage> {
        self.file.rows(kind).map_err(|error| self.file.damage(error))
    }

    pub(super) fn row<R: Record>(&self, kind: SectionKind, row: usize) -> Result<R, Damage> {
        self.rows(kind)?.get(row).ok_or_else(|| self.no_row(kind, row))
    }

    pub(super) fn no_row(&self, kind: SectionKind, row: usize) -> Damage {
        let (expected, found) = (format!("a row {row}"), "a row that is not there".into());
        self.file.damage(FormatError::Shape { section: kind.name(), expected, found })
    }
}

/// Position of a key among `rows` rows that ascend by key, by interpolation: keys are hashes and so evenly spread.
pub(crate) fn find_key(rows: usize, key: Key, at: impl Fn(usize) -> Option<Key>) -> Option<usize> {
    let high_bits = |key: Key| u128::from(u64::from_be_bytes(key.0.first_chunk().copied().unwrap_or_default()));
    let (mut low, mut high) = (0, rows);
    let (mut below, mut above) = (0_u128, u128::from(u64::MAX));
    let wanted = high_bits(key);
    let mut probes = 0;
    while low < high {
        // After a few probes of a file whose keys are not spread, plain halving bounds the search.
        let middle = if probes < 8 && above > below && (below..=above).contains(&wanted) {
            let span = (high - low - 1) as u128;
            low + usize::try_from(span * (wanted - below) / (above - below)).unwrap_or(0)
        } else {
            low + (high - low) / 2
        };
        probes += 1;
        let found = at(middle)?;
        match found.cmp(&key) {
            std::cmp::Ordering::Equal => return Some(middle),
            std::cmp::Ordering::Less => (low, below) = (middle + 1, high_bits(found)),
            std::cmp::Ordering::Greater => (high, above) = (middle, high_bits(found)),
        }
    }
    None
}
