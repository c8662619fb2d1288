//! The links projection: which mentions count, and which chunk defines which entity.

use crate::error::Damage;
use crate::projection::Opened;
use crate::segment::Strings;
use hedgerow_format::file::{FileBuilder, FileIdentity, Finished};
use hedgerow_format::projection::{LinkEntityRow, links_findings, validate_links};
use hedgerow_format::section::{SectionKind, Sections};
use hedgerow_format::{ChunkId, EntitySlot, FormatError, Key, Record, Rows, TextRef, U32s};
use std::io::{self, Write};
use std::ops::Deref;

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
    pub entities: Vec<LinkEntity>,
    /// Chunk and entity slot of every mention that counts, sorted.
    pub mentions: Vec<(u32, u32)>,
    /// Entity slot and chunk of every definition link, sorted.
    pub definitions: Vec<(u32, u32)>,
    /// One above the highest chunk id.
    pub chunks_end: u32,
}

/// A live entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkEntity {
    /// Its key.
    pub key: Key,
    /// Its name.
    pub name: String,
    /// Its type; may be empty.
    pub kind: String,
    /// `link_flags`.
    pub flags: u32,
}

impl Links {
    /// The projection in an open file.
    #[must_use]
    pub fn new(opened: Opened) -> Self {
        Self(opened)
    }

    /// All entities, ascending by key.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn entities(&self) -> Result<Rows<'_, LinkEntityRow>, Damage> {
        self.file.rows(SectionKind::LinkEntities).map_err(|error| self.file.damage(error))
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
        let valid = || validate_links(&self.file, self.entry.chunks_end).map_err(|error| self.file.damage(error));
        self.conclude(self.file.check_all().and_then(|()| valid()))
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
    let (mut strings, mut rows) = (Strings::default(), Vec::new());
    for entity in &data.entities {
        let name = strings.place(&entity.name).map_err(invalid)?;
        let kind = strings.place(&entity.kind).map_err(invalid)?;
        LinkEntityRow { key: entity.key.0, name, kind, flags: entity.flags }.encode(&mut rows);
    }
    file.section(SectionKind::Strings, &strings.into_bytes())?;
    file.section(SectionKind::LinkEntities, &rows)?;
    let turn = |pairs: &[(u32, u32)]| {
        let mut turned: Vec<(u32, u32)> = pairs.iter().map(|(row, target)| (*target, *row)).collect();
        turned.sort_unstable();
        turned
    };
    let (chunks, entities) = (usize::try_from(data.chunks_end).unwrap_or(usize::MAX), data.entities.len());
    for (offset_kind, target_kind, pairs, rows) in [
        (SectionKind::LinkMentionOffsets, SectionKind::LinkMentions, data.mentions.clone(), chunks),
        (SectionKind::LinkMentioningOffsets, SectionKind::LinkMentioning, turn(&data.mentions), entities),
        (SectionKind::DefinitionOffsets, SectionKind::Definitions, data.definitions.clone(), entities),
        (SectionKind::DefiningOffsets, SectionKind::Defining, turn(&data.definitions), chunks),
    ] {
        let (offsets, targets) = crate::segment::csr(&pairs, rows).map_err(invalid)?;
        file.section(offset_kind, &offsets)?;
        file.section(target_kind, &targets)?;
    }
    file.finish()
}
