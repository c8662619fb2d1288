//! What an extractor found in a chunk: as it waits for a commit, as rows, and as it is read.

use crate::error::Damage;
use crate::segment::build::count;
use crate::segment::graph::{Numbers, offsets};
use crate::segment::staged::within;
use crate::segment::{Content, Segment, StagedRelation, Strings};
use hedgerow_format::section::SectionKind;
use hedgerow_format::segment::{DeadExtractionRow, ExtractedRow, ExtractionRow};
use hedgerow_format::{ChunkId, DocumentId, EntitySlot, FormatError, Key, Record, Rows, limits, name};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Range;

/// What an extractor found in a chunk, bound to it: a chunk has at most one extraction of each extractor, and a new one
/// takes the place of the one before with all its entities and relations. One that found nothing says that the chunk was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StagedExtraction {
    /// Name of the extractor.
    pub extractor: String,
    /// Identity of the model and of what it was told; may be empty.
    pub model: String,
    /// Entities that the chunk speaks of, each once. They count as mentioned in it.
    pub entities: Vec<StagedEntity>,
    /// Relations that the chunk states. Their ends count as mentioned, too.
    pub relations: Vec<StagedRelation>,
}

/// An entity of an extraction.
#[derive(Clone, Debug, PartialEq)]
pub struct StagedEntity {
    /// Key of the entity.
    pub key: Key,
    /// Its name.
    pub name: String,
    /// Its type; may be empty.
    pub kind: String,
    /// What the chunk says that it is; may be empty.
    pub description: String,
    /// Bytes of the document's text where the name stands; empty where unknown.
    pub range: Range<u32>,
}

impl StagedEntity {
    /// An entity by its name and type, without a description and a place.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the name.
    pub fn new(name: &str, kind: &str) -> Result<Self, String> {
        let key_text = name::name_key_text(name);
        if key_text.is_empty() {
            return Err(format!(
                "an entity must have a name: letters or digits that are no article alone, and has {name:?}"
            ));
        }
        let (key, name, kind) = (Key::of_entity(&key_text), name.trim().to_owned(), kind.to_owned());
        Ok(Self { key, name, kind, description: String::new(), range: 0..0 })
    }

    /// How the entity is written there.
    pub(super) fn spelling(&self) -> (Key, &str, &str) {
        (self.key, &self.name, &self.kind)
    }

    fn check(&self) -> Result<(), String> {
        within("a name", self.name.len(), limits::NAME_BYTES)?;
        within("a type", self.kind.len(), limits::NAME_BYTES)?;
        within("a description", self.description.len(), limits::NAME_BYTES)?;
        let key_text = name::name_key_text(&self.name);
        if key_text.is_empty() || Key::of_entity(&key_text) != self.key || self.range.start > self.range.end {
            return Err(format!("the entity {:?} has no name, or another key or place than it may", self.name));
        }
        Ok(())
    }
}

impl StagedExtraction {
    /// Whether it can be written.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        within("the name of an extractor", self.extractor.len(), limits::NAME_BYTES)?;
        within("the name of a model", self.model.len(), limits::NAME_BYTES)?;
        if self.extractor.is_empty() {
            return Err("an extraction has no name of an extractor".to_owned());
        }
        let mut keys = BTreeSet::new();
        for entity in &self.entities {
            entity.check()?;
            if !keys.insert(entity.key) {
                return Err(format!("an extraction has the entity {:?} twice", entity.name));
            }
        }
        self.relations.iter().try_for_each(StagedRelation::check)
    }

    /// The same extraction with its entities and relations in an order of their own.
    pub(crate) fn in_order(mut self) -> Self {
        let end = |relation: &StagedRelation| {
            let StagedRelation { subject, predicate, object, weight, range } = relation.clone();
            let numbers = (weight.to_bits(), range.start, range.end);
            (subject.name, subject.kind, predicate, object.name, object.kind, numbers)
        };
        self.entities.sort_by_key(|entity| entity.key);
        self.relations.sort_by_cached_key(end);
        self
    }

    /// Bytes that staging it takes, roughly.
    pub(crate) fn staged_bytes(&self) -> usize {
        let described: usize = self.entities.iter().map(|entity| entity.description.len()).sum();
        self.entities.len() * 128 + self.relations.len() * 256 + described + 128
    }
}

/// An extraction of a segment that is built, with the ids of its chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<'a> {
    pub document: u32,
    pub chunk: u32,
    pub extraction: &'a StagedExtraction,
}

/// All extractions of a segment in the order of their rows.
pub(super) fn placed(content: &Content) -> Vec<Placed<'_>> {
    let mut all = Vec::new();
    for numbered in &content.documents {
        for (chunk, staged) in (numbered.first_chunk.0..).zip(&numbered.document.chunks) {
            let document = numbered.id.0;
            all.extend(staged.extractions.iter().map(|extraction| Placed { document, chunk, extraction }));
        }
    }
    all.extend(content.overlay.extractions.iter().map(|found| Placed {
        document: found.document.0,
        chunk: found.chunk.0,
        extraction: &found.extraction,
    }));
    all.sort_by_key(|placed| (placed.chunk, &placed.extraction.extractor));
    all
}

/// The sections of extractions; nothing where there are none.
pub(super) fn sections(
    placed: &[Placed<'_>],
    numbers: &Numbers<'_>,
    strings: &mut Strings,
) -> Result<Vec<(SectionKind, Vec<u8>)>, FormatError> {
    let (mut rows, mut extracted) = (Vec::new(), Vec::new());
    count(placed.len(), "the number of extractions")?;
    for (number, Placed { chunk, extraction, .. }) in (0_u32..).zip(placed) {
        let (extractor, model) = (strings.place(&extraction.extractor)?, strings.place(&extraction.model)?);
        ExtractionRow { chunk: *chunk, extractor, model }.encode(&mut rows);
        extracted.extend(extraction.entities.iter().map(|entity| (numbers.entity(entity.key), number, entity)));
    }
    extracted.sort_by_key(|(slot, number, _)| (*slot, *number));
    if extracted.is_empty() {
        return Ok(vec![(SectionKind::Extractions, rows)]);
    }
    let mut extracted_rows = Vec::new();
    for (_, extraction, entity) in &extracted {
        let StagedEntity { description, range, .. } = entity;
        let (spelling, description) = (numbers.spelling(entity.spelling()), strings.place(description)?);
        ExtractedRow { extraction: *extraction, spelling, description, start: range.start, end: range.end }
            .encode(&mut extracted_rows);
    }
    let by_entity = offsets(numbers.lengths(extracted.iter().map(|(slot, _, _)| *slot)).into_iter())?;
    Ok(vec![
        (SectionKind::Extractions, rows),
        (SectionKind::ExtractedOffsets, by_entity),
        (SectionKind::Extracted, extracted_rows),
    ])
}

/// The section of extractions of earlier segments that no longer count.
pub(super) fn dead_section(content: &Content, strings: &mut Strings) -> Result<Vec<u8>, FormatError> {
    let mut dead: Vec<&(String, ChunkId)> = content.overlay.dead_extractions.iter().collect();
    dead.sort_unstable();
    let mut rows = Vec::new();
    for (extractor, chunk) in dead {
        DeadExtractionRow { extractor: strings.place(extractor)?, chunk: chunk.0 }.encode(&mut rows);
    }
    Ok(rows)
}

/// An extraction of an older chunk.
#[derive(Clone, Debug)]
pub struct OverlayExtraction {
    /// The chunk's document.
    pub document: DocumentId,
    /// The chunk.
    pub chunk: ChunkId,
    /// The extraction.
    pub extraction: StagedExtraction,
}

/// A row of an extraction, and the names in it.
#[derive(Clone, Copy, Debug)]
pub struct ExtractionView<'a> {
    /// The chunk.
    pub chunk: ChunkId,
    /// Name of the extractor.
    pub extractor: &'a str,
    /// Identity of the model.
    pub model: &'a str,
}

impl Segment {
    /// Number of its extractions.
    ///
    /// # Errors
    /// [`Damage`], as for everything below.
    pub fn extractions(&self) -> Result<usize, Damage> {
        Ok(self.rows::<ExtractionRow>(SectionKind::Extractions)?.len())
    }

    /// An extraction by its row.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn extraction(&self, row: usize) -> Result<ExtractionView<'_>, Damage> {
        let found: ExtractionRow = self.row(SectionKind::Extractions, row)?;
        let (extractor, model) = (self.string(found.extractor)?, self.string(found.model)?);
        Ok(ExtractionView { chunk: ChunkId(found.chunk), extractor, model })
    }

    /// The rows of a chunk's extractions; found by halving.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn extractions_of(&self, chunk: ChunkId) -> Result<Range<usize>, Damage> {
        let rows: Rows<'_, ExtractionRow> = self.rows(SectionKind::Extractions)?;
        let first = |wanted: Ordering| {
            let (mut low, mut high) = (0, rows.len());
            while low < high {
                let middle = low.midpoint(high);
                let order = rows.get(middle).map_or(Ordering::Greater, |row| row.chunk.cmp(&chunk.0));
                if order < wanted {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            low
        };
        Ok(first(Ordering::Equal)..first(Ordering::Greater))
    }

    /// All entities of extractions, by entity.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn extracted(&self) -> Result<Rows<'_, ExtractedRow>, Damage> {
        self.rows(SectionKind::Extracted)
    }

    /// What extractions say of an entity.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn extracted_of(&self, entity: EntitySlot) -> Result<impl Iterator<Item = ExtractedRow>, Damage> {
        let range = self.u32s(SectionKind::ExtractedOffsets)?.row(entity.index());
        Ok(self.extracted()?.range(range))
    }

    /// Extractions of earlier segments that its commit replaced: extractor and chunk.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn dead_extractions(&self) -> Result<Vec<(&str, ChunkId)>, Damage> {
        let rows: Rows<'_, DeadExtractionRow> = self.rows(SectionKind::DeadExtractions)?;
        rows.iter().map(|row| Ok((self.string(row.extractor)?, ChunkId(row.chunk)))).collect()
    }
}
