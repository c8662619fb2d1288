//! The graph sections of a segment: entities, how they are spelt, mentions and relations.

use crate::segment::build::{Content, count, limit};
use crate::segment::extraction::{self, Placed};
use crate::segment::lists::ListRows;
use crate::segment::{Numbered, StagedEnd, StagedEntity, StagedMention, StagedRelation, Strings};
use hedgerow_format::section::SectionKind;
use hedgerow_format::segment::{
    EntityRow, EvidenceRow, MentionRow, NO_CHUNK, NO_EXTRACTION, RangeRow, RelationRow, SpellingRow, mention_flags,
};
use hedgerow_format::{DocumentId, FormatError, Key, Record, name};
use rayon::prelude::*;
use std::ops::Range;

/// A source of a relation, with ids.
struct Source<'a> {
    relation: &'a StagedRelation,
    document: u32,
    chunk: u32,
    /// Row of its extraction.
    extraction: u32,
}

/// Sections with their bytes, ascending by kind.
type Sections = Vec<(SectionKind, Vec<u8>)>;

/// Entities, mentions and relations of a segment.
#[derive(Default)]
pub(super) struct Graph<'a> {
    /// Every spelling of every entity: name and type, in any order and as often as it was met.
    spellings: Vec<(Key, &'a str, &'a str)>,
    /// One list a chunk, ascending by key.
    mentions: Vec<Vec<&'a StagedMention>>,
    sources: Vec<Source<'a>>,
    /// In the order of their rows.
    extractions: Vec<Placed<'a>>,
}

impl<'a> Graph<'a> {
    pub(super) fn of(content: &'a Content) -> Self {
        let mut graph = Self::default();
        for Numbered { id: DocumentId(document), first_chunk, document: staged } in &content.documents {
            let document = *document;
            for relation in &staged.relations {
                graph.add_source(Source { relation, document, chunk: NO_CHUNK, extraction: NO_EXTRACTION });
            }
            let nodes = staged.edge_lists.iter().flat_map(|list| &list.nodes);
            graph.spellings.extend(nodes.map(StagedEnd::spelling));
            for (chunk_id, chunk) in (first_chunk.0..).zip(&staged.chunks) {
                graph.spellings.extend(chunk.mentions.iter().map(StagedMention::spelling));
                let mut mentions: Vec<&StagedMention> = chunk.mentions.iter().collect();
                mentions.sort_by_key(|mention| mention.key);
                graph.mentions.push(mentions);
                for relation in &chunk.relations {
                    graph.add_source(Source { relation, document, chunk: chunk_id, extraction: NO_EXTRACTION });
                }
            }
        }
        for found in &content.overlay.relations {
            let chunk = found.chunk.map_or(NO_CHUNK, |chunk| chunk.0);
            let document = found.document.0;
            graph.add_source(Source { relation: &found.relation, document, chunk, extraction: NO_EXTRACTION });
        }
        graph.extractions = extraction::placed(content);
        for (row, Placed { document, chunk, extraction }) in (0_u32..).zip(graph.extractions.clone()) {
            graph.spellings.extend(extraction.entities.iter().map(StagedEntity::spelling));
            for relation in &extraction.relations {
                graph.add_source(Source { relation, document, chunk, extraction: row });
            }
        }
        graph
    }

    fn add_source(&mut self, source: Source<'a>) {
        let StagedRelation { subject, object, .. } = source.relation;
        self.spellings.extend([subject.spelling(), object.spelling()]);
        self.sources.push(source);
    }

    /// The sections from entities to evidence, those from spellings on, between which others stand, and the rows of edge
    /// lists.
    pub(super) fn sections(
        mut self,
        content: &Content,
        strings: &mut Strings,
    ) -> Result<(Sections, Sections, ListRows), FormatError> {
        let numbers = Numbers::of(std::mem::take(&mut self.spellings));
        count(numbers.spellings.len(), "the number of spellings")?;
        let (mut entity_rows, mut spelling_rows) = (Vec::new(), Vec::new());
        for (entity, group) in (0_u32..).zip(numbers.spellings.chunk_by(|a, b| a.0 == b.0)) {
            // Of several spellings and types the better ones count, so that the order of documents does not matter.
            let Some(best) = group.iter().copied().reduce(|best, spelling| {
                (best.0, name::better_spelling(best.1, spelling.1), name::better_kind(best.2, spelling.2))
            }) else {
                continue;
            };
            let (name, kind) = (strings.place(best.1)?, strings.place(best.2)?);
            EntityRow { key: best.0.0, name, kind }.encode(&mut entity_rows);
            for (_, name, kind) in group {
                SpellingRow { entity, name: strings.place(name)?, kind: strings.place(kind)? }
                    .encode(&mut spelling_rows);
            }
        }
        let mut sections = vec![(SectionKind::Entities, entity_rows)];
        sections.extend(self.mention_sections(&numbers)?);
        let sources = std::mem::take(&mut self.sources);
        sections.extend(relation_sections(sources, &numbers, strings)?);
        let mut last = vec![(SectionKind::Spellings, spelling_rows)];
        last.extend(extraction::sections(&self.extractions, &numbers, strings)?);
        let lists = ListRows::of(content, &numbers, strings)?;
        Ok((sections, last, lists))
    }

    fn mention_sections(&self, numbers: &Numbers<'_>) -> Result<Sections, FormatError> {
        let (mut rows, mut ranges, mut first_range) = (Vec::new(), Vec::new(), 0_u32);
        let mut pairs = Vec::new();
        for (chunk, mentions) in (0_u32..).zip(&self.mentions) {
            for mention in mentions {
                let entity = numbers.entity(mention.key);
                let spelling = numbers.spelling(mention.spelling());
                let kept = u16::try_from(mention.ranges.len()).unwrap_or(u16::MAX);
                for range in mention.ranges.iter().take(usize::from(kept)) {
                    RangeRow { start: range.start, end: range.end }.encode(&mut ranges);
                }
                let flags = mention.flags & mention_flags::ALL;
                MentionRow { entity, spelling, first_range, ranges: kept, flags }.encode(&mut rows);
                first_range = first_range
                    .checked_add(u32::from(kept))
                    .ok_or_else(|| limit("the number of mentions", u64::from(u32::MAX)))?;
                pairs.push((entity, chunk));
            }
        }
        let lengths = self.mentions.iter().map(Vec::len);
        let mut sections = vec![(SectionKind::MentionOffsets, offsets(lengths)?)];
        sections.push((SectionKind::Mentions, rows));
        sections.push((SectionKind::MentionRanges, ranges));
        pairs.sort_unstable();
        let (by_entity, targets) = csr(&pairs, numbers.entities.len())?;
        sections.push((SectionKind::MentioningOffsets, by_entity));
        sections.push((SectionKind::Mentioning, targets));
        Ok(sections)
    }
}

/// Slots of entities and rows of spellings.
pub(super) struct Numbers<'a> {
    /// Ascending.
    entities: Vec<Key>,
    /// Ascending.
    spellings: Vec<(Key, &'a str, &'a str)>,
}

impl<'a> Numbers<'a> {
    fn of(mut spellings: Vec<(Key, &'a str, &'a str)>) -> Self {
        spellings.par_sort_unstable();
        spellings.dedup();
        let mut entities: Vec<Key> = spellings.iter().map(|spelling| spelling.0).collect();
        entities.dedup();
        Self { entities, spellings }
    }

    pub(super) fn entity(&self, key: Key) -> u32 {
        number(self.entities.binary_search(&key))
    }

    /// How many of `slots` name each entity.
    pub(super) fn lengths(&self, slots: impl Iterator<Item = u32>) -> Vec<usize> {
        lengths(slots, self.entities.len())
    }

    pub(super) fn spelling(&self, spelling: (Key, &str, &str)) -> u32 {
        number(self.spellings.binary_search(&spelling))
    }
}

fn number(found: Result<usize, usize>) -> u32 {
    found.ok().and_then(|number| u32::try_from(number).ok()).unwrap_or(u32::MAX)
}

fn relation_sections(
    mut sources: Vec<Source<'_>>,
    numbers: &Numbers<'_>,
    strings: &mut Strings,
) -> Result<Sections, FormatError> {
    // Slots ascend by key, so the order by keys is the order by slots.
    let order = |source: &Source<'_>| {
        let relation = source.relation;
        (
            relation.subject.key,
            relation.predicate.clone(),
            relation.object.key,
            source.document,
            source.chunk,
            (relation.range.start, relation.range.end, relation.weight.to_bits()),
            (numbers.spelling(relation.subject.spelling()), numbers.spelling(relation.object.spelling())),
            source.extraction,
        )
    };
    sources.sort_by_cached_key(order);
    let same = |a: &Source<'_>, b: &Source<'_>| {
        let (a, b) = (a.relation, b.relation);
        a.subject.key == b.subject.key && a.predicate == b.predicate && a.object.key == b.object.key
    };
    let (mut rows, mut evidence, mut first_evidence) = (Vec::new(), Vec::new(), 0_u32);
    let (mut out, mut back) = (Vec::new(), Vec::new());
    for (row, group) in (0_u32..).zip(sources.chunk_by(same)) {
        let Some(first) = group.first() else { continue };
        let (subject, object) = (numbers.entity(first.relation.subject.key), numbers.entity(first.relation.object.key));
        let predicate = strings.place(&first.relation.predicate)?;
        let length = count(group.len(), "the sources of a relation")?;
        RelationRow { subject, object, predicate, first_evidence, evidence: length }.encode(&mut rows);
        first_evidence += length;
        for source in group {
            let Range { start, end } = source.relation.range.clone();
            let weight = source.relation.weight;
            let subject_spelling = numbers.spelling(source.relation.subject.spelling());
            let object_spelling = numbers.spelling(source.relation.object.spelling());
            let Source { document, chunk, extraction, .. } = *source;
            EvidenceRow { document, chunk, weight, start, end, subject_spelling, object_spelling, extraction }
                .encode(&mut evidence);
        }
        out.push((subject, row));
        back.push((object, row));
    }
    back.sort_unstable();
    let (by_subject, _) = csr(&out, numbers.entities.len())?;
    let (by_object, relating) = csr(&back, numbers.entities.len())?;
    Ok(vec![
        (SectionKind::RelationOffsets, by_subject),
        (SectionKind::Relations, rows),
        (SectionKind::RelatingOffsets, by_object),
        (SectionKind::Relating, relating),
        (SectionKind::Evidence, evidence),
    ])
}

/// Offsets of a CSR from the lengths of its rows.
pub(super) fn offsets(lengths: impl Iterator<Item = usize>) -> Result<Vec<u8>, FormatError> {
    let (mut bytes, mut end) = (0_u32.to_le_bytes().to_vec(), 0_usize);
    for length in lengths {
        end += length;
        bytes.extend(count(end, "the number of mentions or relations")?.to_le_bytes());
    }
    Ok(bytes)
}

/// A CSR of sorted pairs: offsets over `rows` rows, and targets.
pub(crate) fn csr(pairs: &[(u32, u32)], rows: usize) -> Result<(Vec<u8>, Vec<u8>), FormatError> {
    let lengths = lengths(pairs.iter().map(|(row, _)| *row), rows);
    let targets = pairs.iter().flat_map(|pair| pair.1.to_le_bytes()).collect();
    Ok((offsets(lengths.into_iter())?, targets))
}

/// How often each of `rows` rows is named.
fn lengths(named: impl Iterator<Item = u32>, rows: usize) -> Vec<usize> {
    let mut lengths = vec![0; rows];
    for row in named {
        if let Some(length) = usize::try_from(row).ok().and_then(|row| lengths.get_mut(row)) {
            *length += 1;
        }
    }
    lengths
}
