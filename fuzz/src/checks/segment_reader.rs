//! Reads all that a segment holds, as its users do.

use hedgerow_format::file::Whole;
use hedgerow_format::section::{SectionKind, Sections};
use hedgerow_format::segment::{
    self, ChunkRow, DeadExtractionRow, DeadVectorRow, DocumentRow, EdgeLists, EntityRow, EvidenceRow, ExtractedRow,
    ExtractionRow, MentionRow, NO_CHUNK, NO_EXTRACTION, RangeRow, RelationRow, SegmentShape, SpaceRow, SpellingRow,
    Terms,
};
use hedgerow_format::text::TextView;
use hedgerow_format::{FormatError, Record, Rows, TextRef};

/// What reads a part of a segment.
type Part = fn(&Whole<'_>, SegmentShape) -> Result<(), Unread>;

/// Reads everything; an error says what cannot be read.
pub fn read(file: &Whole<'_>, shape: SegmentShape) -> Result<(), String> {
    let parts: [Part; 9] = [documents, ids, entities, relations, extractions, terms, vectors, dead, lists];
    // Each is read, whatever the ones before say.
    let read: Vec<Result<(), Unread>> = parts.iter().map(|part| part(file, shape)).collect();
    read.into_iter().collect::<Result<(), Unread>>().map_err(|Unread(reason)| reason)
}

struct Unread(String);

impl From<FormatError> for Unread {
    fn from(error: FormatError) -> Self {
        Self(error.to_string())
    }
}

fn there<T>(found: Option<T>, what: &str) -> Result<T, Unread> {
    found.ok_or_else(|| Unread(format!("{what} is not there")))
}

fn strings<const N: usize>(file: &Whole<'_>, places: [TextRef; N]) -> Result<(), Unread> {
    Ok(places.into_iter().try_for_each(|place| file.string(place).map(|_| ()))?)
}

fn documents(file: &Whole<'_>, _: SegmentShape) -> Result<(), Unread> {
    let rows = file.rows::<DocumentRow>(SectionKind::Documents)?;
    let chunks = file.rows::<ChunkRow>(SectionKind::Chunks)?;
    let view = TextView { blocks: file.rows(SectionKind::TextBlocks)?, bytes: file.section(SectionKind::Text)? };
    for row in rows.iter() {
        let mut encoded = Vec::new();
        row.encode(&mut encoded);
        assert_eq!(encoded.len(), DocumentRow::SIZE, "a record has one size");
        strings(file, [row.name, row.title, row.source, row.media_type, row.metadata])?;
        let end = row.text_offset.saturating_add(u64::from(row.text_bytes.min(1 << 20)));
        let text = view.read(row.text_offset..end)?;
        assert!(text.len() as u64 == end - row.text_offset, "as many bytes are read as were asked for");
        let first = row.first_chunk as usize;
        for chunk in chunks.range(first..first.saturating_add(row.chunks as usize)) {
            strings(file, [chunk.heading, chunk.metadata])?;
            there(text.get(chunk.start as usize..chunk.end as usize), "the text of a chunk")?;
        }
    }
    Ok(())
}

fn ids(file: &Whole<'_>, shape: SegmentShape) -> Result<(), Unread> {
    for (ids, count) in [(shape.document_ids(file)?, shape.documents), (shape.chunk_ids(file)?, shape.chunks)] {
        ids.check()?;
        for slot in 0..count as usize {
            let id = there(ids.get(slot), "the id of a slot")?;
            assert_eq!(ids.position(id), Some(slot), "an id has one slot");
        }
        let counted = ids.ranges().map(|range| u64::from(range.end - range.start)).sum::<u64>();
        assert_eq!((ids.iter().count(), counted), (count as usize, u64::from(count)), "every slot has an id");
    }
    let slots = segment::in_key_order(file)?;
    let rows = file.rows::<DocumentRow>(SectionKind::Documents)?;
    for place in 0..rows.len() {
        there(slots(place).and_then(|slot| rows.get(slot)), "a document in the order of keys")?;
    }
    Ok(())
}

fn spelled(spellings: &Rows<'_, SpellingRow>, row: u32) -> Result<(), Unread> {
    there(spellings.get(row as usize), "a spelling").map(|_| ())
}

fn entities(file: &Whole<'_>, shape: SegmentShape) -> Result<(), Unread> {
    let rows = file.rows::<EntityRow>(SectionKind::Entities)?;
    rows.iter().try_for_each(|row| strings(file, [row.name, row.kind]))?;
    let spellings = file.rows::<SpellingRow>(SectionKind::Spellings)?;
    spellings.iter().try_for_each(|row| strings(file, [row.name, row.kind]))?;
    let mentions = file.rows::<MentionRow>(SectionKind::Mentions)?;
    let ranges = file.rows::<RangeRow>(SectionKind::MentionRanges)?;
    let by_chunk = file.u32s(SectionKind::MentionOffsets)?;
    for chunk in 0..shape.chunks as usize {
        for row in by_chunk.row(chunk) {
            let mention = there(mentions.get(row), "a mention")?;
            there(rows.get(mention.entity as usize), "the entity of a mention")?;
            spelled(&spellings, mention.spelling)?;
            let (first, count) = (mention.first_range as usize, usize::from(mention.ranges));
            let found = ranges.range(first..first.saturating_add(count)).count();
            there((found == count).then_some(()), "a place of a mention")?;
        }
    }
    let (by_entity, mentioning) = (file.u32s(SectionKind::MentioningOffsets)?, file.u32s(SectionKind::Mentioning)?);
    let chunks = (0..rows.len()).flat_map(|entity| mentioning.slice(by_entity.row(entity)).iter());
    let known = chunks.filter(|chunk| *chunk < shape.chunks).count();
    there((known == mentions.len()).then_some(()), "a mention by its entity")
}

fn extractions(file: &Whole<'_>, shape: SegmentShape) -> Result<(), Unread> {
    let rows = file.rows::<ExtractionRow>(SectionKind::Extractions)?;
    for row in rows.iter() {
        strings(file, [row.extractor, row.model])?;
        there((row.chunk < shape.chunks_end).then_some(()), "the chunk of an extraction")?;
    }
    let spellings = file.rows::<SpellingRow>(SectionKind::Spellings)?;
    let extracted = file.rows::<ExtractedRow>(SectionKind::Extracted)?;
    for row in extracted.iter() {
        strings(file, [row.description])?;
        spelled(&spellings, row.spelling)?;
        there(rows.get(row.extraction as usize), "the extraction of an entity")?;
    }
    let entities = file.rows::<EntityRow>(SectionKind::Entities)?.len();
    let by_entity = file.u32s(SectionKind::ExtractedOffsets)?;
    let seen: usize = (0..entities).map(|entity| by_entity.row(entity).len()).sum();
    there((seen == extracted.len()).then_some(()), "an extracted entity by its entity")?;
    for source in file.rows::<EvidenceRow>(SectionKind::Evidence)?.iter() {
        let known = source.extraction == NO_EXTRACTION || rows.get(source.extraction as usize).is_some();
        there(known.then_some(()), "the extraction of a source")?;
    }
    Ok(())
}

fn relations(file: &Whole<'_>, shape: SegmentShape) -> Result<(), Unread> {
    let entities = file.rows::<EntityRow>(SectionKind::Entities)?;
    let spellings = file.rows::<SpellingRow>(SectionKind::Spellings)?;
    let (rows, evidence) =
        (file.rows::<RelationRow>(SectionKind::Relations)?, file.rows::<EvidenceRow>(SectionKind::Evidence)?);
    for row in rows.iter() {
        strings(file, [row.predicate])?;
        there(entities.get(row.subject as usize).zip(entities.get(row.object as usize)), "an end of a relation")?;
        let (first, count) = (row.first_evidence as usize, row.evidence as usize);
        let sources: Vec<EvidenceRow> = evidence.range(first..first.saturating_add(count)).collect();
        there((sources.len() == count).then_some(()), "a source of a relation")?;
        for source in sources {
            spelled(&spellings, source.subject_spelling)?;
            spelled(&spellings, source.object_spelling)?;
            let known = source.chunk == NO_CHUNK || source.chunk < shape.chunks_end;
            there((known && source.document < shape.documents_end).then_some(()), "what a source names")?;
        }
    }
    for (offsets, targets) in
        [(SectionKind::RelatingOffsets, Some(SectionKind::Relating)), (SectionKind::RelationOffsets, None)]
    {
        let offsets = file.u32s(offsets)?;
        let targets = targets.map(|kind| file.u32s(kind)).transpose()?;
        let mut seen = 0;
        for place in (0..entities.len()).flat_map(|entity| offsets.row(entity)) {
            let row = targets.map_or(Some(place), |targets| targets.get(place).map(|row| row as usize));
            there(row.and_then(|row| rows.get(row)), "a relation of an entity")?;
            seen += 1;
        }
        there((seen == rows.len()).then_some(()), "a relation by its entity")?;
    }
    Ok(())
}

fn lists(file: &Whole<'_>, shape: SegmentShape) -> Result<(), Unread> {
    let lists = EdgeLists::of(file)?;
    let mut seen = 0;
    for row in 0..lists.len() {
        let list = lists.get(row)?;
        there((list.document < shape.documents as usize).then_some(()), "the document of an edge list")?;
        assert!(lists.of_document(list.document).len() <= lists.len(), "a document has no more lists than there are");
        let mut edges = 0;
        for node in 0..list.nodes.len() {
            let entity = there(list.entity(node), "the entity of a node")?;
            there((list.node_of(entity) == Some(node)).then_some(()), "a node by its entity")?;
            for edge in list.edges_from(node) {
                let target = there(list.targets.get(edge), "an edge")?;
                there(list.entity(target as usize), "the entity that an edge leads to")?;
                there((list.source_of(edge) == node).then_some(()), "the node that an edge starts from")?;
                let weight = list.weight(edge);
                there((weight.is_finite() && weight > 0.0).then_some(()), "the weight of an edge")?;
                edges += 1;
            }
        }
        there((edges == list.targets.len()).then_some(()), "an edge by its node")?;
        seen += edges;
    }
    let edges = file.u32s(SectionKind::ListTargets)?.len();
    there((seen == edges).then_some(()), "the list of an edge")
}

fn terms(file: &Whole<'_>, shape: SegmentShape) -> Result<(), Unread> {
    let terms = Terms::of(file)?;
    let (chunks, frequencies) = (file.u32s(SectionKind::PostingChunks)?, file.u16s(SectionKind::PostingFrequencies)?);
    for row in 0..terms.len() {
        let (text, postings) = there(terms.get(row), "a term")?;
        let text = there(std::str::from_utf8(text).ok(), "the text of a term")?;
        there((terms.find(text) == Some(postings.clone())).then_some(()), "a term by its text")?;
        let found = chunks.slice(postings.clone());
        let known = found.len() == postings.len() && found.iter().all(|chunk| chunk < shape.chunks);
        there((known && frequencies.slice(postings).len() == found.len()).then_some(()), "a posting")?;
    }
    there(
        terms.find("hedgerow").is_none_or(|postings| postings.start <= postings.end).then_some(()),
        "a term's postings",
    )?;
    let lengths = file.u32s(SectionKind::ChunkLengths)?;
    there((lengths.len() == shape.chunks as usize).then_some(()), "the length of a chunk")
}

fn vectors(file: &Whole<'_>, shape: SegmentShape) -> Result<(), Unread> {
    let chunks = file.u32s(SectionKind::VectorChunks)?;
    let components = file.u32s(SectionKind::Vectors)?;
    for space in file.rows::<SpaceRow>(SectionKind::Spaces)?.iter() {
        strings(file, [space.name, space.model])?;
        let (first, count) = (space.first_vector as usize, space.vectors as usize);
        let found = chunks.slice(first..first.saturating_add(count));
        let known = found.len() == count && found.iter().all(|chunk| chunk < shape.chunks_end);
        there(known.then_some(()), "the chunk of a vector")?;
        let start = usize::try_from(space.first_component).unwrap_or(usize::MAX);
        let length = count.saturating_mul(space.dimensions as usize);
        let found = components.slice(start..start.saturating_add(length));
        let known = found.len() == length && found.iter().all(|bits| f32::from_bits(bits).is_finite());
        there(known.then_some(()), "a vector")?;
    }
    Ok(())
}

fn dead(file: &Whole<'_>, shape: SegmentShape) -> Result<(), Unread> {
    let dead = segment::dead_documents(file)?;
    there(dead.max().is_none_or(|last| last < shape.first_document).then_some(()), "a dead document")?;
    for row in file.rows::<DeadVectorRow>(SectionKind::DeadVectors)?.iter() {
        strings(file, [row.space])?;
    }
    for row in file.rows::<DeadExtractionRow>(SectionKind::DeadExtractions)?.iter() {
        strings(file, [row.extractor])?;
    }
    Ok(())
}
