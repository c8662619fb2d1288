//! The links projection: which mentions count, which chunk defines which entity, and how entities are related.

use crate::error::Damage;
use crate::index::graph::Adjacency;
use crate::projection::{Opened, RelationList, relations};
use crate::segment::Strings;
use crate::storage::{FileName, VerifiedFile};
use hedgerow_format::file::{FileBuilder, FileIdentity, FileKind, Finished};
use hedgerow_format::manifest::ProjectionEntry;
use hedgerow_format::projection::{
    LinkEntityRow, LinkLeadRow, LinkWordRow, LinkWords, links_findings, validate_link_entities, validate_link_lists,
};
use hedgerow_format::section::{SectionKind, Sections};
use hedgerow_format::{ChunkId, EntitySlot, FormatError, Key, Record, Rows, TextRef, U32s};
use rayon::prelude::*;
use std::io::{self, Write};
use std::ops::Deref;

/// Entities that one thread checks at a time.
const CHECKED_TOGETHER: usize = 4096;

/// An open links projection.
#[derive(Debug)]
pub struct Links(Opened);

impl Deref for Links {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.0
    }
}

/// What a links projection is made of.
#[derive(Debug, Default)]
pub struct LinksData {
    /// Live entities, ascending by key.
    pub entities: EntityList,
    /// Chunk and entity slot of every mention that counts, sorted.
    pub mentions: Vec<(u32, u32)>,
    /// Entity slot and chunk of every definition link, sorted.
    pub definitions: Vec<(u32, u32)>,
    /// Every word of the corpus with its counts.
    pub words: WordList,
    /// Key of every phrase that a chunk begins with, and the chunk, sorted.
    pub leads: Vec<(Key, u32)>,
    /// Relations between entities.
    pub relations: RelationList,
    /// One above the highest chunk id.
    pub chunks_end: u32,
}

/// Live entities, as they lie in a file.
#[derive(Debug, Default)]
pub struct EntityList {
    strings: Strings,
    rows: Vec<u8>,
    /// The type that was placed last, and where.
    kind: (String, TextRef),
}

impl EntityList {
    /// Room for so many entities.
    #[must_use]
    pub fn with_capacity(entities: usize) -> Self {
        Self { rows: Vec::with_capacity(entities * LinkEntityRow::SIZE), ..Self::default() }
    }

    /// Appends an entity, above all that are there by its key: key, name, type, flags. `is_kind` says whether the name may
    /// be some entity's type or a label of relations as well.
    ///
    /// # Errors
    /// [`FormatError::Limit`] when there is no room for more names.
    pub fn push(&mut self, key: Key, (name, kind): (&str, &str), flags: u32, is_kind: bool) -> Result<(), FormatError> {
        // Names of different keys are different: only a type may be the same string.
        let name = if is_kind { self.strings.place(name) } else { self.strings.append(name) }?;
        if self.kind.0 != kind {
            self.kind = (kind.to_owned(), self.strings.place(kind)?);
        }
        let kind = self.kind.1;
        LinkEntityRow { key: key.0, name, kind, flags }.encode(&mut self.rows);
        Ok(())
    }

    /// The place of a label of relations among the names.
    ///
    /// # Errors
    /// [`FormatError::Limit`] when there is no room for more names.
    pub fn label(&mut self, label: &str) -> Result<TextRef, FormatError> {
        self.strings.place(label)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len() / LinkEntityRow::SIZE
    }
}

/// Words with their counts, as they lie in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordList {
    text: Vec<u8>,
    rows: Vec<u8>,
}

impl WordList {
    /// Room for so many words and bytes of them.
    #[must_use]
    pub fn with_capacity(words: usize, bytes: usize) -> Self {
        Self { text: Vec::with_capacity(bytes), rows: Vec::with_capacity(words * LinkWordRow::SIZE) }
    }

    /// Appends a word, above all that are there in byte order, and how often it is in lower case and with a capital.
    pub fn push(&mut self, word: &[u8], lower: u32, capital: u32) {
        // A list that is longer is refused when it is written.
        let text = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        LinkWordRow { text, lower, capital }.encode(&mut self.rows);
        self.text.extend_from_slice(word);
    }
}

impl Links {
    /// The projection in an open file.
    #[must_use]
    pub fn new(opened: Opened) -> Self {
        Self(opened)
    }

    /// The projection that is about to be written, before it is.
    ///
    /// # Errors
    /// [`Damage`] where it is too much for one file.
    pub fn in_memory(data: &LinksData) -> Result<Self, Damage> {
        let identity = FileIdentity { kind: FileKind::Links, store: [0; 16], number: 0, random: 0 };
        let name = FileName::Numbered { kind: FileKind::Links, number: 0, random: 0 };
        let (finished, mut bytes) = build_links(Vec::new(), identity, data).map_err(|error| {
            let (expected, found) = ("links that fit into a file".into(), error.to_string());
            Damage { file: name.to_string(), source: FormatError::Value { what: "the links", expected, found } }
        })?;
        if let Some(header) = bytes.get_mut(..finished.header.len()) {
            header.copy_from_slice(&finished.header);
        }
        let entry = ProjectionEntry { chunks_end: data.chunks_end, ..ProjectionEntry::default() };
        Ok(Self(Opened::new(VerifiedFile::in_memory(name, FileKind::Links, bytes)?, entry)))
    }

    /// All entities, ascending by key.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn entities(&self) -> Result<Rows<'_, LinkEntityRow>, Damage> {
        self.file.rows(SectionKind::LinkEntities).map_err(|error| self.file.damage(error))
    }

    /// The words of the corpus that it was made from.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn words(&self) -> Result<LinkWords<'_>, Damage> {
        LinkWords::of(&self.file).map_err(|error| self.file.damage(error))
    }

    /// The phrases that chunks begin with, ascending by key and chunk.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn leads(&self) -> Result<Rows<'_, LinkLeadRow>, Damage> {
        self.file.rows(SectionKind::LinkLeads).map_err(|error| self.file.damage(error))
    }

    /// Slot of the entity with this key.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn find(&self, key: Key) -> Result<Option<EntitySlot>, Damage> {
        let rows = self.entities()?;
        let found = crate::segment::find_key(rows.len(), key, |slot| rows.get(slot).map(|row| Key(row.key)));
        Ok(found.and_then(|slot| u32::try_from(slot).ok()).map(EntitySlot))
    }

    /// An entity's row.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn entity(&self, slot: EntitySlot) -> Result<LinkEntityRow, Damage> {
        let shape = || FormatError::Shape {
            section: SectionKind::LinkEntities.name(),
            expected: format!("an entity {}", slot.0),
            found: "a slot that is not there".into(),
        };
        self.entities()?.get(slot.index()).ok_or_else(|| self.file.damage(shape()))
    }

    /// A string that a row refers to.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn string(&self, place: TextRef) -> Result<&str, Damage> {
        self.file.string(place).map_err(|error| self.file.damage(error))
    }

    /// Slots of the entities in a chunk, ascending.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn mentions(&self, chunk: ChunkId) -> Result<U32s<'_>, Damage> {
        self.row(SectionKind::LinkMentionOffsets, SectionKind::LinkMentions, chunk.index())
    }

    /// Ids of the chunks that mention an entity, ascending.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn mentioning(&self, entity: EntitySlot) -> Result<U32s<'_>, Damage> {
        self.row(SectionKind::LinkMentioningOffsets, SectionKind::LinkMentioning, entity.index())
    }

    /// Ids of the chunks that define an entity, ascending.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn definitions(&self, entity: EntitySlot) -> Result<U32s<'_>, Damage> {
        self.row(SectionKind::DefinitionOffsets, SectionKind::Definitions, entity.index())
    }

    /// Slots of the entities that a chunk defines, ascending.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn defining(&self, chunk: ChunkId) -> Result<U32s<'_>, Damage> {
        self.row(SectionKind::DefiningOffsets, SectionKind::Defining, chunk.index())
    }

    /// What joins chunks and entities, by chunk and then by entity: mentions first, then definition links.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn chunks_and_entities(&self) -> Result<[[Adjacency<'_>; 2]; 2], Damage> {
        let section = |kind| self.file.u32s(kind).map_err(|error| self.file.damage(error));
        let adjacency =
            |offsets, targets| Ok::<_, Damage>(Adjacency::new(section(offsets)?, section(targets)?, U32s::default()));
        let [offsets, targets, offsets_back, targets_back] = MENTION_SECTIONS;
        let mentions = [adjacency(offsets, targets)?, adjacency(offsets_back, targets_back)?];
        let [offsets, targets, offsets_back, targets_back] = DEFINITION_SECTIONS;
        let definitions = [adjacency(offsets_back, targets_back)?, adjacency(offsets, targets)?];
        Ok([mentions, definitions])
    }

    /// Everything that is wrong with its bytes, and the first broken invariant of each group of its sections.
    #[must_use]
    pub fn findings(&self) -> Vec<FormatError> {
        let broken = links_findings(&self.file, self.entry.chunks_end).into_iter();
        let broken = broken.filter(|error| !matches!(error, FormatError::Block { .. }));
        self.file.faults().into_iter().chain(broken).collect()
    }

    /// Checks every byte and every invariant. One that fails does not count from then on.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn verify(&self) -> Result<(), Damage> {
        self.conclude(self.file.check_all().and_then(|()| self.validate().map_err(|error| self.file.damage(error))))
    }

    /// Checks the invariants; those of entities, whose keys are hashes of their names, in parts on all threads.
    fn validate(&self) -> Result<(), FormatError> {
        let entities = self.file.rows::<LinkEntityRow>(SectionKind::LinkEntities)?.len();
        let parts = (0..entities).into_par_iter().step_by(CHECKED_TOGETHER);
        let (entities, lists) = rayon::join(
            || {
                parts
                    .map(|first| validate_link_entities(&self.file, first..first + CHECKED_TOGETHER))
                    .find_first(Result::is_err)
            },
            || validate_link_lists(&self.file, self.entry.chunks_end),
        );
        entities.unwrap_or(Ok(())).and(lists)
    }

    fn row(&self, offsets: SectionKind, targets: SectionKind, row: usize) -> Result<U32s<'_>, Damage> {
        let place = |error| self.file.damage(error);
        let range = self.file.u32s(offsets).map_err(place)?.row(row);
        Ok(self.file.u32s(targets).map_err(place)?.slice(range))
    }
}

/// Writes a links projection to `out`.
///
/// # Errors
/// Those of `out`; [`FormatError::Limit`] inside when there is too much for one file.
pub fn build_links<W: Write>(out: W, identity: FileIdentity, data: &LinksData) -> io::Result<(Finished, W)> {
    let invalid = |error: FormatError| io::Error::new(io::ErrorKind::InvalidInput, error);
    let mut file = FileBuilder::new(out, identity)?;
    file.section(SectionKind::Strings, data.entities.strings.bytes())?;
    file.section(SectionKind::LinkEntities, &data.entities.rows)?;
    let (chunks, entities) = (usize::try_from(data.chunks_end).unwrap_or(usize::MAX), data.entities.len());
    for (kinds, pairs, rows, targets) in [
        (MENTION_SECTIONS, &data.mentions, chunks, entities),
        (DEFINITION_SECTIONS, &data.definitions, entities, chunks),
    ] {
        let (offsets, there) = crate::segment::csr(pairs, rows).map_err(invalid)?;
        file.section(kinds[0], &offsets)?;
        file.section(kinds[1], &there)?;
        let (offsets, back) = crate::segment::csr(&turned(pairs, targets), targets).map_err(invalid)?;
        file.section(kinds[2], &offsets)?;
        file.section(kinds[3], &back)?;
    }
    if u32::try_from(data.words.text.len()).is_err() {
        return Err(invalid(FormatError::Limit { what: "the length of all words", limit: u64::from(u32::MAX) }));
    }
    file.section(SectionKind::LinkWordText, &data.words.text)?;
    file.section(SectionKind::LinkWords, &data.words.rows)?;
    let mut rows = Vec::with_capacity(data.leads.len() * LinkLeadRow::SIZE);
    data.leads.iter().for_each(|(key, chunk)| LinkLeadRow { key: key.0, chunk: *chunk }.encode(&mut rows));
    file.section(SectionKind::LinkLeads, &rows)?;
    relations::write(&mut file, &data.relations, entities)?;
    file.finish()
}

/// Sections of an adjacency and of its transpose.
const MENTION_SECTIONS: [SectionKind; 4] = [
    SectionKind::LinkMentionOffsets,
    SectionKind::LinkMentions,
    SectionKind::LinkMentioningOffsets,
    SectionKind::LinkMentioning,
];
const DEFINITION_SECTIONS: [SectionKind; 4] =
    [SectionKind::DefinitionOffsets, SectionKind::Definitions, SectionKind::DefiningOffsets, SectionKind::Defining];

/// Sorted pairs the other way round, sorted, by counting: targets are below `targets`.
fn turned(pairs: &[(u32, u32)], targets: usize) -> Vec<(u32, u32)> {
    let index = |target: u32| usize::try_from(target).unwrap_or(usize::MAX);
    let mut places = vec![0_usize; targets];
    for (_, target) in pairs {
        if let Some(count) = places.get_mut(index(*target)) {
            *count += 1;
        }
    }
    let mut next = 0;
    for place in &mut places {
        next += std::mem::replace(place, next);
    }
    let mut turned = vec![(0, 0); next];
    for (row, target) in pairs {
        if let Some(place) = places.get_mut(index(*target)) {
            turned[*place] = (*target, *row);
            *place += 1;
        }
    }
    turned
}
