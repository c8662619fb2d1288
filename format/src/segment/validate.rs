//! The numbered invariants of a segment (`S-…` in `SPEC.md`), checked.

use crate::record::to_usize;
use crate::section::{SectionKind, Sections};
use crate::segment::{
    ChunkRow, DeadExtractionRow, DeadVectorRow, DocumentRow, EntityRow, EvidenceRow, ExtractedRow, ExtractionRow,
    MentionRow, NO_CHUNK, NO_EXTRACTION, RangeRow, RelationRow, SegmentShape, SpaceRow, SpellingRow, TermRow, Terms,
    ids, lists, mention_flags,
};
use crate::text::{TEXT_BLOCK_BYTES, TextBlock, TextView};
use crate::{FormatError, Rows, TextRef, limits};

/// Bytes of text that are read at once, unless one document has more.
const TEXT_READ_BYTES: u64 = 1 << 20;

/// Checks every invariant of a segment, including that all text decompresses.
///
/// # Errors
/// The first that is broken, with its number and row. Time and memory are linear in the file's length.
pub fn validate<S: Sections>(segment: &S, shape: SegmentShape) -> Result<(), FormatError> {
    checks().into_iter().try_for_each(|check| check(segment, shape))
}

/// What is wrong with each group of sections: documents and chunks, ids, text, mentions, relations, extractions, terms,
/// vectors, tombstones, edge lists.
/// The first finding of each group, so that damage in one does not hide what is wrong with another.
pub fn findings<S: Sections>(segment: &S, shape: SegmentShape) -> Vec<FormatError> {
    checks().into_iter().filter_map(|check| check(segment, shape).err()).collect()
}

type Check<S> = fn(&S, SegmentShape) -> Result<(), FormatError>;

fn checks<S: Sections>() -> [Check<S>; 10] {
    let (ids, text): (Check<S>, Check<S>) = (ids::validate, |file, _| text(file));
    let lists: Check<S> = |file, _| lists::validate(file);
    [documents_and_chunks, ids, text, entities_and_mentions, relations, extractions, terms, vectors, tombstones, lists]
}

fn broken(section: SectionKind, rule: &'static str, row: usize) -> FormatError {
    FormatError::Invariant { section: section.name(), rule, row: row as u64 }
}

fn require(holds: bool, section: SectionKind, rule: &'static str, row: usize) -> Result<(), FormatError> {
    if holds { Ok(()) } else { Err(broken(section, rule, row)) }
}

fn json<S: Sections>(file: &S, place: TextRef) -> Result<bool, FormatError> {
    let text = file.string(place)?;
    Ok(text.is_empty() || (text.starts_with('{') && text.ends_with('}') && text.len() <= limits::METADATA_BYTES))
}

fn documents_and_chunks<S: Sections>(file: &S, shape: SegmentShape) -> Result<(), FormatError> {
    let documents = file.rows::<DocumentRow>(SectionKind::Documents)?;
    let chunks = file.rows::<ChunkRow>(SectionKind::Chunks)?;
    require(documents.len() == to_usize(shape.documents), SectionKind::Documents, "S-DOC-1", documents.len())?;
    require(chunks.len() == to_usize(shape.chunks), SectionKind::Chunks, "S-CHK-1", chunks.len())?;
    let (mut next_chunk, mut next_byte) = (0_usize, 0_u64);
    for (row, document) in documents.iter().enumerate() {
        let holds = |holds, rule| require(holds, SectionKind::Documents, rule, row);
        let name = file.string(document.name)?;
        holds(crate::Key::of_document(name).0 == document.key, "S-DOC-3")?;
        holds(to_usize(document.first_chunk) == next_chunk && document.text_offset == next_byte, "S-DOC-4")?;
        for place in [document.title, document.source, document.media_type] {
            file.string(place)?;
        }
        holds(json(file, document.metadata)? && document.reserved == 0, "S-DOC-5")?;
        holds(name.len() <= limits::NAME_BYTES && to_usize(document.text_bytes) <= limits::DOCUMENT_BYTES, "S-DOC-6")?;
        let mut start = 0;
        for ordinal in 0..document.chunks {
            let chunk = chunks.get(next_chunk).ok_or_else(|| broken(SectionKind::Documents, "S-DOC-4", row))?;
            let holds = |holds, rule| require(holds, SectionKind::Chunks, rule, next_chunk);
            holds(to_usize(chunk.document) == row && chunk.ordinal == ordinal, "S-CHK-2")?;
            holds(chunk.start >= start && chunk.start < chunk.end && chunk.end <= document.text_bytes, "S-CHK-3")?;
            holds(chunk.kind <= 2 && chunk.reserved == 0 && json(file, chunk.metadata)?, "S-CHK-4")?;
            file.string(chunk.heading)?;
            start = chunk.start;
            next_chunk = next_chunk.saturating_add(1);
        }
        next_byte = next_byte.saturating_add(u64::from(document.text_bytes));
    }
    require(next_chunk == chunks.len(), SectionKind::Chunks, "S-CHK-2", next_chunk)
}

fn text<S: Sections>(file: &S) -> Result<(), FormatError> {
    let documents = file.rows::<DocumentRow>(SectionKind::Documents)?;
    let chunks = file.rows::<ChunkRow>(SectionKind::Chunks)?;
    let blocks = file.rows::<TextBlock>(SectionKind::TextBlocks)?;
    let view = TextView { blocks, bytes: file.section(SectionKind::Text)? };
    let (mut offset, mut raw) = (0_u64, 0_u64);
    for (row, block) in blocks.iter().enumerate() {
        let last = row.saturating_add(1) == blocks.len();
        let full = to_usize(block.length_raw) == TEXT_BLOCK_BYTES;
        let sized = full || (last && block.length_raw > 0 && to_usize(block.length_raw) < TEXT_BLOCK_BYTES);
        require(block.offset == offset && sized, SectionKind::TextBlocks, "S-TXT-1", row)?;
        offset = offset.saturating_add(u64::from(block.length));
        raw = raw.saturating_add(u64::from(block.length_raw));
    }
    require(offset == view.bytes.len() as u64, SectionKind::Text, "S-TXT-2", blocks.len())?;
    let mut row = 0_usize;
    while let Some(first) = documents.get(row) {
        // Documents are read together, so that a block that holds many of them is decompressed once.
        let end_of = |document: &DocumentRow| document.text_offset.saturating_add(u64::from(document.text_bytes));
        let near = |document: &DocumentRow| end_of(document).saturating_sub(first.text_offset) <= TEXT_READ_BYTES;
        let together = documents.range(row..documents.len()).skip(1).take_while(near).count().saturating_add(1);
        let run: Vec<DocumentRow> = documents.range(row..row.saturating_add(together)).collect();
        let text = view.read(first.text_offset..run.last().map_or(first.text_offset, end_of))?;
        for document in run {
            let start = document.text_offset.saturating_sub(first.text_offset);
            let place = |byte: u32| usize::try_from(start.saturating_add(u64::from(byte))).unwrap_or(usize::MAX);
            let at = to_usize(document.first_chunk);
            let chunks = chunks.range(at..at.saturating_add(to_usize(document.chunks)));
            let mut ends = chunks.flat_map(|chunk| [chunk.start, chunk.end]).chain([0, document.text_bytes]);
            let whole = ends.all(|byte| text.is_char_boundary(place(byte)));
            require(whole, SectionKind::Chunks, "S-CHK-5", row)?;
            row = row.saturating_add(1);
        }
    }
    let end = documents
        .get(documents.len().saturating_sub(1))
        .map_or(0, |last| last.text_offset.saturating_add(u64::from(last.text_bytes)));
    require(end == raw, SectionKind::TextBlocks, "S-TXT-3", blocks.len())
}

/// Offsets of a CSR: one more than rows, from zero, never falling, up to the number of targets.
fn offsets<S: Sections>(
    file: &S,
    kind: SectionKind,
    rule: &'static str,
    rows: usize,
    targets: usize,
) -> Result<(), FormatError> {
    let offsets = file.u32s(kind)?;
    if offsets.is_empty() {
        return require(targets == 0, kind, rule, 0);
    }
    require(offsets.len() == rows.saturating_add(1), kind, rule, offsets.len())?;
    let mut before = 0;
    for (row, offset) in offsets.iter().enumerate() {
        require(offset >= before && (row > 0 || offset == 0), kind, rule, row)?;
        before = offset;
    }
    require(to_usize(before) == targets, kind, rule, rows)
}

fn entities_and_mentions<S: Sections>(file: &S, shape: SegmentShape) -> Result<(), FormatError> {
    let entities = file.rows::<EntityRow>(SectionKind::Entities)?;
    let spellings = spellings(file)?;
    let mentions = file.rows::<MentionRow>(SectionKind::Mentions)?;
    let ranges = file.rows::<RangeRow>(SectionKind::MentionRanges)?;
    let mentioning = file.u32s(SectionKind::Mentioning)?;
    let documents = file.rows::<DocumentRow>(SectionKind::Documents)?;
    let chunk_rows = file.rows::<ChunkRow>(SectionKind::Chunks)?;
    let mut before = None;
    for (row, entity) in entities.iter().enumerate() {
        let holds = |holds, rule| require(holds, SectionKind::Entities, rule, row);
        holds(before.is_none_or(|before| before < entity.key), "S-ENT-1")?;
        before = Some(entity.key);
        let name = crate::name::name_key_text(file.string(entity.name)?);
        holds(crate::Key::of_entity(&name).0 == entity.key, "S-ENT-2")?;
        file.string(entity.kind)?;
    }
    let chunks = to_usize(shape.chunks);
    offsets(file, SectionKind::MentionOffsets, "S-MEN-1", chunks, mentions.len())?;
    offsets(file, SectionKind::MentioningOffsets, "S-MEN-1", entities.len(), mentioning.len())?;
    require(mentioning.len() == mentions.len(), SectionKind::Mentioning, "S-MEN-4", mentioning.len())?;
    let by_chunk = file.u32s(SectionKind::MentionOffsets)?;
    let by_entity = file.u32s(SectionKind::MentioningOffsets)?;
    let mut next_range = 0_usize;
    for chunk in 0..chunks {
        let mut before = None;
        let document = chunk_rows.get(chunk).and_then(|row| documents.get(to_usize(row.document)));
        let text_bytes = document.map_or(0, |document| document.text_bytes);
        for row in by_chunk.row(chunk) {
            let mention = mentions.get(row).ok_or_else(|| broken(SectionKind::Mentions, "S-MEN-1", row))?;
            let holds = |holds, rule| require(holds, SectionKind::Mentions, rule, row);
            holds(to_usize(mention.entity) < entities.len() && before < Some(mention.entity), "S-MEN-2")?;
            before = Some(mention.entity);
            holds(spells(spellings, mention.spelling, mention.entity), "S-MEN-6")?;
            holds(mention.flags != 0 && mention.flags & !mention_flags::ALL == 0, "S-MEN-3")?;
            holds(to_usize(mention.first_range) == next_range, "S-MEN-3")?;
            next_range = next_range.saturating_add(usize::from(mention.ranges));
            let first = to_usize(mention.first_range);
            for range in ranges.range(first..first.saturating_add(usize::from(mention.ranges))) {
                holds(range.start < range.end && range.end <= text_bytes, "S-MEN-5")?;
            }
            let back = mentioning.slice(by_entity.row(to_usize(mention.entity)));
            holds(u32::try_from(chunk).is_ok_and(|chunk| back.position_of(chunk).is_some()), "S-MEN-4")?;
        }
    }
    require(next_range == ranges.len(), SectionKind::MentionRanges, "S-MEN-3", next_range)
}

/// Checks the spellings, and that each entity is called by the best of its own.
fn spellings<S: Sections>(file: &S) -> Result<Rows<'_, SpellingRow>, FormatError> {
    let entities = file.rows::<EntityRow>(SectionKind::Entities)?;
    let spellings = file.rows::<SpellingRow>(SectionKind::Spellings)?;
    let (mut before, mut next) = (None, 0_usize);
    for (slot, entity) in entities.iter().enumerate() {
        let mut best: Option<(&str, &str)> = None;
        while let Some(row) = spellings.get(next).filter(|row| to_usize(row.entity) == slot) {
            let (name, kind) = (file.string(row.name)?, file.string(row.kind)?);
            let order = Some((row.entity, name, kind));
            let named = crate::Key::of_entity(&crate::name::name_key_text(name)).0 == entity.key;
            require(before < order && named, SectionKind::Spellings, "S-SPL-1", next)?;
            before = order;
            best = Some(best.map_or((name, kind), |best| {
                (crate::name::better_spelling(best.0, name), crate::name::better_kind(best.1, kind))
            }));
            next = next.saturating_add(1);
        }
        let called = Some((file.string(entity.name)?, file.string(entity.kind)?));
        require(best == called, SectionKind::Entities, "S-ENT-3", slot)?;
    }
    require(next == spellings.len(), SectionKind::Spellings, "S-SPL-1", next)?;
    Ok(spellings)
}

/// Whether a row of `spellings` is one of this entity.
fn spells(spellings: Rows<'_, SpellingRow>, row: u32, entity: u32) -> bool {
    spellings.get(to_usize(row)).is_some_and(|spelling| spelling.entity == entity)
}

fn relations<S: Sections>(file: &S, shape: SegmentShape) -> Result<(), FormatError> {
    let entities = file.rows::<EntityRow>(SectionKind::Entities)?;
    let relations = file.rows::<RelationRow>(SectionKind::Relations)?;
    let evidence = file.rows::<EvidenceRow>(SectionKind::Evidence)?;
    let spellings = file.rows::<SpellingRow>(SectionKind::Spellings)?;
    let relating = file.u32s(SectionKind::Relating)?;
    offsets(file, SectionKind::RelationOffsets, "S-REL-1", entities.len(), relations.len())?;
    offsets(file, SectionKind::RelatingOffsets, "S-REL-1", entities.len(), relating.len())?;
    require(relating.len() == relations.len(), SectionKind::Relating, "S-REL-3", relating.len())?;
    let by_subject = file.u32s(SectionKind::RelationOffsets)?;
    let by_object = file.u32s(SectionKind::RelatingOffsets)?;
    let (mut before, mut next_evidence) = (None, 0_usize);
    for (row, relation) in relations.iter().enumerate() {
        let holds = |holds, rule| require(holds, SectionKind::Relations, rule, row);
        let order = Some((relation.subject, file.string(relation.predicate)?, relation.object));
        holds(before < order && to_usize(relation.object) < entities.len(), "S-REL-2")?;
        before = order;
        holds(by_subject.row(to_usize(relation.subject)).contains(&row), "S-REL-1")?;
        let back = relating.slice(by_object.row(to_usize(relation.object)));
        holds(u32::try_from(row).is_ok_and(|row| back.position_of(row).is_some()), "S-REL-3")?;
        holds(relation.evidence > 0 && to_usize(relation.first_evidence) == next_evidence, "S-REL-4")?;
        let end = next_evidence.saturating_add(to_usize(relation.evidence));
        for source in evidence.range(next_evidence..end) {
            let subject = spells(spellings, source.subject_spelling, relation.subject);
            holds(subject && spells(spellings, source.object_spelling, relation.object), "S-REL-6")?;
        }
        next_evidence = end;
    }
    require(next_evidence == evidence.len(), SectionKind::Evidence, "S-REL-4", next_evidence)?;
    let extractions = file.rows::<ExtractionRow>(SectionKind::Extractions)?;
    let SegmentShape { documents_end, chunks_end, .. } = shape;
    for (row, source) in evidence.iter().enumerate() {
        let known = source.document < documents_end && (source.chunk < chunks_end || source.chunk == NO_CHUNK);
        let weighed = source.weight.is_finite() && source.weight > 0.0 && source.start <= source.end;
        require(known && weighed, SectionKind::Evidence, "S-REL-5", row)?;
        let extraction = extractions.get(to_usize(source.extraction));
        let found_there = extraction.is_some_and(|extraction| extraction.chunk == source.chunk);
        require(source.extraction == NO_EXTRACTION || found_there, SectionKind::Evidence, "S-REL-7", row)?;
    }
    Ok(())
}

fn extractions<S: Sections>(file: &S, shape: SegmentShape) -> Result<(), FormatError> {
    let entities = file.rows::<EntityRow>(SectionKind::Entities)?;
    let spellings = file.rows::<SpellingRow>(SectionKind::Spellings)?;
    let extractions = file.rows::<ExtractionRow>(SectionKind::Extractions)?;
    let extracted = file.rows::<ExtractedRow>(SectionKind::Extracted)?;
    let mut before = None;
    for (row, extraction) in extractions.iter().enumerate() {
        let extractor = file.string(extraction.extractor)?;
        file.string(extraction.model)?;
        let order = Some((extraction.chunk, extractor));
        let known = extraction.chunk < shape.chunks_end && !extractor.is_empty();
        require(before < order && known, SectionKind::Extractions, "S-EXT-1", row)?;
        before = order;
    }
    offsets(file, SectionKind::ExtractedOffsets, "S-EXT-2", entities.len(), extracted.len())?;
    let by_entity = file.u32s(SectionKind::ExtractedOffsets)?;
    for (slot, entity) in (0_u32..).zip(0..entities.len()) {
        let mut before = None;
        for row in by_entity.row(entity) {
            let holds = |holds, rule| require(holds, SectionKind::Extracted, rule, row);
            let found = extracted.get(row).ok_or_else(|| broken(SectionKind::Extracted, "S-EXT-2", row))?;
            let known = to_usize(found.extraction) < extractions.len();
            holds(before < Some(found.extraction) && known, "S-EXT-2")?;
            before = Some(found.extraction);
            holds(spells(spellings, found.spelling, slot) && found.start <= found.end, "S-EXT-3")?;
            file.string(found.description)?;
        }
    }
    Ok(())
}

fn terms<S: Sections>(file: &S, shape: SegmentShape) -> Result<(), FormatError> {
    let terms = Terms::of(file)?;
    let rows = file.rows::<TermRow>(SectionKind::Terms)?;
    let text = file.section(SectionKind::TermText)?;
    let chunks = file.u32s(SectionKind::PostingChunks)?;
    let frequencies = file.u16s(SectionKind::PostingFrequencies)?;
    let lengths = file.u32s(SectionKind::ChunkLengths)?;
    require(lengths.len() == to_usize(shape.chunks), SectionKind::ChunkLengths, "S-TRM-1", lengths.len())?;
    require(chunks.len() == frequencies.len(), SectionKind::PostingFrequencies, "S-TRM-2", frequencies.len())?;
    let ends = rows.get(terms.len()).map_or((0, 0), |last| (to_usize(last.text), to_usize(last.first_posting)));
    let starts = rows.get(0).is_none_or(|first| first.text == 0 && first.first_posting == 0);
    let whole = starts && ends == (text.len(), chunks.len()) && rows.len() != 1;
    require(whole, SectionKind::Terms, "S-TRM-3", terms.len())?;
    let mut before: &[u8] = &[];
    for row in 0..terms.len() {
        let holds = |holds, rule| require(holds, SectionKind::Terms, rule, row);
        let (term, postings) = terms.get(row).ok_or_else(|| broken(SectionKind::Terms, "S-TRM-3", row))?;
        holds(before < term && std::str::from_utf8(term).is_ok(), "S-TRM-4")?;
        holds(postings.start < postings.end && postings.end <= chunks.len(), "S-TRM-3")?;
        before = term;
        let mut last = None;
        for posting in postings {
            let chunk = chunks.get(posting).ok_or_else(|| broken(SectionKind::Terms, "S-TRM-3", row))?;
            let counted = frequencies.get(posting).is_some_and(|frequency| frequency > 0);
            let holds = last < Some(chunk) && to_usize(chunk) < lengths.len() && counted;
            require(holds, SectionKind::PostingChunks, "S-TRM-5", posting)?;
            last = Some(chunk);
        }
    }
    Ok(())
}

fn vectors<S: Sections>(file: &S, shape: SegmentShape) -> Result<(), FormatError> {
    let spaces: Rows<SpaceRow> = file.rows(SectionKind::Spaces)?;
    let chunks = file.u32s(SectionKind::VectorChunks)?;
    let components = file.section(SectionKind::Vectors)?;
    require(spaces.len() <= limits::SPACES, SectionKind::Spaces, "S-VEC-1", spaces.len())?;
    let (mut before, mut next_vector, mut next_component) = (None, 0_usize, 0_u64);
    for (row, space) in spaces.iter().enumerate() {
        let holds = |holds, rule| require(holds, SectionKind::Spaces, rule, row);
        let name = Some(file.string(space.name)?);
        file.string(space.model)?;
        holds(before < name, "S-VEC-1")?;
        before = name;
        let dimensions = to_usize(space.dimensions);
        holds((1..=limits::DIMENSIONS).contains(&dimensions) && space.metric == 0 && space.element == 0, "S-VEC-2")?;
        holds(to_usize(space.first_vector) == next_vector && space.first_component == next_component, "S-VEC-3")?;
        let end = next_vector.saturating_add(to_usize(space.vectors));
        let mut last = None;
        for vector in next_vector..end {
            let chunk = chunks.get(vector).ok_or_else(|| broken(SectionKind::Spaces, "S-VEC-3", row))?;
            require(last < Some(chunk) && chunk < shape.chunks_end, SectionKind::VectorChunks, "S-VEC-4", vector)?;
            last = Some(chunk);
        }
        next_vector = end;
        let added = u64::from(space.vectors).saturating_mul(u64::from(space.dimensions));
        next_component = next_component.saturating_add(added);
    }
    require(next_vector == chunks.len(), SectionKind::VectorChunks, "S-VEC-3", next_vector)?;
    require(next_component.saturating_mul(4) == components.len() as u64, SectionKind::Vectors, "S-VEC-3", 0)?;
    let finite = |bytes: &[u8; 4]| f32::from_le_bytes(*bytes).is_finite();
    match components.as_chunks().0.iter().position(|bytes| !finite(bytes)) {
        Some(component) => Err(broken(SectionKind::Vectors, "S-VEC-5", component)),
        None => Ok(()),
    }
}

fn tombstones<S: Sections>(file: &S, shape: SegmentShape) -> Result<(), FormatError> {
    let dead = crate::segment::dead_documents(file)?;
    let earlier = dead.max().is_none_or(|last| last < shape.first_document);
    require(earlier, SectionKind::DeadDocuments, "S-DEL-1", 0)?;
    for (row, dead) in file.rows::<DeadVectorRow>(SectionKind::DeadVectors)?.iter().enumerate() {
        file.string(dead.space)?;
        require(dead.chunk < shape.first_chunk, SectionKind::DeadVectors, "S-DEL-2", row)?;
    }
    for (row, dead) in file.rows::<DeadExtractionRow>(SectionKind::DeadExtractions)?.iter().enumerate() {
        file.string(dead.extractor)?;
        require(dead.chunk < shape.first_chunk, SectionKind::DeadExtractions, "S-DEL-3", row)?;
    }
    Ok(())
}
