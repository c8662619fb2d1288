//! One document of a segment that may be damaged: whole, without some of its mentions, relations and vectors, or lost.

use crate::index::terms::analysis::Analyzer;
use crate::index::terms::counts;
use crate::maintain::salvage::extras::{Extras, Sourced};
use crate::maintain::salvage::lists::Lists;
use crate::maintain::salvage::part::{Part, index};
use crate::maintain::salvage::{Lost, is_named, mark_incomplete};
use crate::segment::{StagedChunk, StagedDocument, StagedMention};
use hedgerow_format::section::SectionKind;
use hedgerow_format::segment::{ChunkRow, DocumentRow, EntityRow, MentionRow, RangeRow, SpellingRow};
use hedgerow_format::{Key, name};

/// What one document is read with.
pub(super) struct Readings<'p> {
    pub parts: &'p [Part],
    pub part: &'p Part,
    pub slot: usize,
    pub lists: &'p Lists,
    pub analyzer: &'p mut Analyzer,
}

impl Readings<'_> {
    /// The document, unless it is lost. What it lacks is added to `lost`.
    pub fn document(
        mut self,
        relations: Vec<Sourced>,
        extras: &Extras,
        lost: &mut Vec<Lost>,
    ) -> Option<StagedDocument> {
        let file = self.part.wreck.name().to_string();
        let row = self.part.row(self.slot);
        let key = row.and_then(|row| Some((self.part.wreck.string(row.name)?, row.key)));
        let key = key.filter(|(name, key)| is_named(name, *key)).map(|(name, _)| name.to_owned());
        let mut lose =
            |what, reason: String| lost.push(Lost { file: file.clone(), document: key.clone(), what, reason });
        let read = match row {
            Some(row) => self.core(&row).map(|document| (row, document)),
            None => Err("its row"),
        };
        let (row, mut document) = match read {
            Ok(read) => read,
            Err(what) => {
                let number =
                    self.part.document_id(self.slot).map_or_else(String::new, |id| format!(" (document {id})"));
                lose("document", format!("{what}{number} cannot be read"));
                return None;
            }
        };
        let bare = document.clone();
        let mentions = self.add_mentions(&row, &mut document);
        let ids: Vec<Option<u32>> = Self::chunk_slots(&row).map(|slot| self.part.chunk_id(slot)).collect();
        let missing = [
            ("mentions", mentions),
            ("relations", Extras::add_relations(&ids, relations, &mut document)),
            ("edges", self.lists.add_to(self.part, self.slot, &mut document)),
            ("vectors", extras.add_vectors(self.parts, &ids, &mut document)),
        ];
        extras.extractions.add_to(&ids, &mut document);
        for (what, count) in missing.into_iter().filter(|(_, count)| *count > 0) {
            lose(what, format!("{count} of its {what} cannot be read"));
            mark_incomplete(&mut document);
        }
        if extras.is_doubtful(&file) {
            mark_incomplete(&mut document);
        }
        match document.check() {
            Ok(()) => Some(document),
            Err(reason) => {
                lose("mentions", format!("all mentions, relations, edges, vectors and extractions: {reason}"));
                let mut document = bare;
                mark_incomplete(&mut document);
                Some(document)
            }
        }
    }

    fn chunk_slots(row: &DocumentRow) -> std::ops::Range<usize> {
        let first = index(row.first_chunk);
        first..first.saturating_add(index(row.chunks))
    }

    /// Text, chunks, terms, and what its rows say; or what of that cannot be read.
    fn core(&mut self, row: &DocumentRow) -> Result<StagedDocument, &'static str> {
        let wreck = &self.part.wreck;
        let string = |place| wreck.string(place).map(str::to_owned);
        let name = string(row.name).filter(|name| is_named(name, row.key)).ok_or("the name")?;
        let title = string(row.title).ok_or("the title")?;
        let end = row.text_offset.checked_add(u64::from(row.text_bytes)).ok_or("the text")?;
        let text = wreck.text(row.text_offset..end).ok_or("the text")?;
        let mut counted_title = counts::Title::new(&title);
        let mut chunks = Vec::new();
        for (ordinal, slot) in (0..).zip(Self::chunk_slots(row)) {
            let chunk: ChunkRow = wreck.row(SectionKind::Chunks, slot).ok_or("a chunk")?;
            let belongs = index(chunk.document) == self.slot && chunk.ordinal == ordinal;
            let range = index(chunk.start)..index(chunk.end);
            let body = text.get(range).filter(|_| belongs).ok_or("a chunk")?;
            let (terms, length) = counts::of_chunk(self.analyzer, &mut counted_title, body);
            chunks.push(StagedChunk {
                range: chunk.start..chunk.end,
                kind: chunk.kind,
                heading: string(chunk.heading).ok_or("a heading")?,
                metadata: string(chunk.metadata).ok_or("metadata")?,
                terms,
                length,
                ..StagedChunk::default()
            });
        }
        let document = StagedDocument {
            name,
            fingerprint: row.fingerprint,
            title,
            source: string(row.source).ok_or("the source")?,
            media_type: string(row.media_type).ok_or("the media type")?,
            metadata: string(row.metadata).ok_or("metadata")?,
            text,
            chunks,
            ..StagedDocument::default()
        };
        if document.check().is_ok() { Ok(document) } else { Err("a row that makes sense") }
    }

    /// Adds the mentions of all chunks; says how many are lost, a chunk whose mentions cannot be counted being one.
    fn add_mentions(&self, row: &DocumentRow, document: &mut StagedDocument) -> usize {
        let wreck = &self.part.wreck;
        if wreck.count(SectionKind::MentionOffsets) == 0 {
            return 0;
        }
        let mut lost = 0;
        for (slot, chunk) in Self::chunk_slots(row).zip(&mut document.chunks) {
            let bound = |slot| wreck.number(SectionKind::MentionOffsets, slot).map(index);
            let Some((start, end)) = bound(slot).zip(bound(slot + 1)) else {
                lost += 1;
                continue;
            };
            for mention in start..end {
                match self.mention(mention, row.text_bytes) {
                    Some(mention) => chunk.mentions.push(mention),
                    None => lost += 1,
                }
            }
        }
        lost
    }

    fn mention(&self, row: usize, text_bytes: u32) -> Option<StagedMention> {
        let wreck = &self.part.wreck;
        let mention: MentionRow = wreck.row(SectionKind::Mentions, row)?;
        let (key, name, kind) = spelling(self.part, mention.spelling)?;
        let first = index(mention.first_range);
        let mut ranges = Vec::new();
        for row in first..first.checked_add(usize::from(mention.ranges))? {
            let range: RangeRow = wreck.row(SectionKind::MentionRanges, row)?;
            ranges.push(range.start..range.end);
        }
        let is_placed = ranges.iter().all(|range| range.start < range.end && range.end <= text_bytes);
        is_placed.then_some(StagedMention { key, name, kind, flags: mention.flags, ranges })
    }
}

/// An entity's key, and its name and type as one source writes them.
pub(super) fn spelling(part: &Part, row: u32) -> Option<(Key, String, String)> {
    let wreck = &part.wreck;
    let spelling: SpellingRow = wreck.row(SectionKind::Spellings, index(row))?;
    let entity: EntityRow = wreck.row(SectionKind::Entities, index(spelling.entity))?;
    let (name, kind) = (wreck.string(spelling.name)?, wreck.string(spelling.kind)?);
    let key = Key(entity.key);
    (Key::of_entity(&name::name_key_text(name)) == key).then(|| (key, name.to_owned(), kind.to_owned()))
}
