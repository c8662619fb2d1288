//! Writes a segment from staged documents and from rows about older ones.

use crate::segment::{StagedDocument, StagedEnd, StagedMention, StagedRelation, Strings};
use hedgerow_format::file::{FileBuilder, FileIdentity, Finished};
use hedgerow_format::section::SectionKind;
use hedgerow_format::segment::{
    ChunkRow, DeadVectorRow, DocumentRow, EntityRow, EvidenceRow, MentionRow, NO_CHUNK, RangeRow, RelationRow,
    SpaceRow, TermRow, mention_flags,
};
use hedgerow_format::text::{TEXT_BLOCK_BYTES, TextBlock, compress};
use hedgerow_format::{ChunkId, DocumentId, FormatError, Key, Record, limits, name};
use rayon::prelude::*;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;

/// Where a segment's ids begin.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Id of its first document.
    pub first_document: u32,
    /// Id of its first chunk.
    pub first_chunk: u32,
}

/// Rows about documents of earlier segments.
#[derive(Debug, Default)]
pub struct Overlay {
    /// Documents that no longer count.
    pub dead_documents: RoaringBitmap,
    /// Relations found in older chunks.
    pub relations: Vec<OverlayRelation>,
    /// Vectors of older chunks.
    pub vectors: Vec<OverlayVector>,
    /// Vectors that no longer count: space and chunk.
    pub dead_vectors: Vec<(String, ChunkId)>,
}

/// A relation found in an older document.
#[derive(Debug)]
pub struct OverlayRelation {
    /// The relation.
    pub relation: StagedRelation,
    /// The document.
    pub document: DocumentId,
    /// The chunk, unless the whole document is the source.
    pub chunk: Option<ChunkId>,
}

/// A vector of an older chunk.
#[derive(Debug)]
pub struct OverlayVector {
    /// Name of the space.
    pub space: String,
    /// Identity of the model.
    pub model: String,
    /// The chunk.
    pub chunk: ChunkId,
    /// Its components, normalised.
    pub components: Vec<f32>,
}

/// Writes a segment to `out`. `documents` ascend by key and are different.
///
/// The text is compressed block by block on the thread pool and written in order, so memory holds the rows and a few
/// blocks, and the bytes don't depend on the number of threads.
///
/// # Errors
/// Those of `out`; [`FormatError::Limit`] inside [`io::ErrorKind::InvalidInput`] when there is too much for one segment.
pub fn build<W: Write>(
    out: W,
    identity: FileIdentity,
    place: Place,
    documents: &[StagedDocument],
    overlay: &Overlay,
) -> io::Result<(Finished, W)> {
    let mut file = FileBuilder::new(out, identity)?;
    let rows = Rows::of(place, documents, overlay).map_err(invalid)?;
    file.section(SectionKind::Strings, &rows.strings)?;
    file.section(SectionKind::Documents, &rows.documents)?;
    file.section(SectionKind::Chunks, &rows.chunks)?;
    write_text(&mut file, documents)?;
    for (kind, bytes) in &rows.graph {
        file.section(*kind, bytes)?;
    }
    write_terms(&mut file, documents)?;
    file.section(SectionKind::Spaces, &rows.spaces)?;
    file.section(SectionKind::VectorChunks, &rows.vector_chunks)?;
    if !rows.vectors.is_empty() {
        file.begin(SectionKind::Vectors)?;
    }
    for (_, _, components) in &rows.vectors {
        let bytes: Vec<u8> = components.iter().flat_map(|component| component.to_le_bytes()).collect();
        file.put(&bytes)?;
    }
    if !overlay.dead_documents.is_empty() {
        let mut bytes = Vec::new();
        overlay.dead_documents.serialize_into(&mut bytes)?;
        file.section(SectionKind::DeadDocuments, &bytes)?;
    }
    file.section(SectionKind::DeadVectors, &rows.dead_vectors)?;
    file.finish()
}

fn invalid(error: FormatError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

/// The sections that are small enough to be made in memory.
struct Rows<'a> {
    strings: Vec<u8>,
    documents: Vec<u8>,
    chunks: Vec<u8>,
    graph: Vec<(SectionKind, Vec<u8>)>,
    spaces: Vec<u8>,
    vector_chunks: Vec<u8>,
    /// Space, chunk id, components: in the order of the sections.
    vectors: Vec<(&'a str, u32, &'a [f32])>,
    dead_vectors: Vec<u8>,
}

impl<'a> Rows<'a> {
    fn of(place: Place, documents: &'a [StagedDocument], overlay: &'a Overlay) -> Result<Self, FormatError> {
        let mut strings = Strings::default();
        let (document_rows, chunk_rows) = documents_and_chunks(&mut strings, documents)?;
        let graph = Graph::of(place, documents, overlay).sections(&mut strings)?;
        let (spaces, vector_chunks, vectors) = spaces(place, documents, overlay, &mut strings)?;
        let mut dead: Vec<&(String, ChunkId)> = overlay.dead_vectors.iter().collect();
        dead.sort_unstable();
        let mut dead_vectors = Vec::new();
        for (space, chunk) in dead {
            DeadVectorRow { space: strings.place(space)?, chunk: chunk.0 }.encode(&mut dead_vectors);
        }
        Ok(Self {
            strings: strings.into_bytes(),
            documents: document_rows,
            chunks: chunk_rows,
            graph,
            spaces,
            vector_chunks,
            vectors,
            dead_vectors,
        })
    }
}

fn documents_and_chunks(
    strings: &mut Strings,
    documents: &[StagedDocument],
) -> Result<(Vec<u8>, Vec<u8>), FormatError> {
    let (mut document_rows, mut chunk_rows) = (Vec::new(), Vec::new());
    let (mut text_offset, mut first_chunk) = (0_u64, 0_u32);
    for (slot, document) in (0_u32..).zip(documents) {
        let chunks = count(document.chunks.len(), "the number of chunks")?;
        let text_bytes = count(document.text.len(), "the length of a document")?;
        DocumentRow {
            key: Key::of_document(&document.name).0,
            fingerprint: document.fingerprint,
            name: strings.place(&document.name)?,
            title: strings.place(&document.title)?,
            source: strings.place(&document.source)?,
            media_type: strings.place(&document.media_type)?,
            metadata: strings.place(&document.metadata)?,
            text_offset,
            text_bytes,
            first_chunk,
            chunks,
            reserved: 0,
        }
        .encode(&mut document_rows);
        for (ordinal, chunk) in (0..).zip(&document.chunks) {
            ChunkRow {
                document: slot,
                ordinal,
                start: chunk.range.start,
                end: chunk.range.end,
                kind: chunk.kind,
                reserved: 0,
                heading: strings.place(&chunk.heading)?,
                metadata: strings.place(&chunk.metadata)?,
            }
            .encode(&mut chunk_rows);
        }
        text_offset += u64::from(text_bytes);
        first_chunk =
            first_chunk.checked_add(chunks).ok_or_else(|| limit("the number of chunks", u64::from(u32::MAX)))?;
    }
    if text_offset > limits::SEGMENT_TEXT_BYTES {
        return Err(limit("the length of a segment's text", limits::SEGMENT_TEXT_BYTES));
    }
    Ok((document_rows, chunk_rows))
}

fn limit(what: &'static str, limit: u64) -> FormatError {
    FormatError::Limit { what, limit }
}

fn count(length: usize, what: &'static str) -> Result<u32, FormatError> {
    u32::try_from(length).map_err(|_| limit(what, u64::from(u32::MAX)))
}

/// Cuts the documents' texts into blocks across their borders and writes them compressed.
fn write_text<W: Write>(file: &mut FileBuilder<W>, documents: &[StagedDocument]) -> io::Result<()> {
    let mut raw: Vec<Vec<u8>> = vec![Vec::with_capacity(TEXT_BLOCK_BYTES)];
    for mut bytes in documents.iter().map(|document| document.text.as_bytes()) {
        while !bytes.is_empty() {
            if raw.last().is_none_or(|block| block.len() == TEXT_BLOCK_BYTES) {
                raw.push(Vec::with_capacity(TEXT_BLOCK_BYTES));
            }
            let Some(block) = raw.last_mut() else { break };
            let (now, later) = bytes.split_at(bytes.len().min(TEXT_BLOCK_BYTES - block.len()));
            block.extend_from_slice(now);
            bytes = later;
        }
    }
    raw.retain(|block| !block.is_empty());
    let packed: Result<Vec<Vec<u8>>, FormatError> = raw.par_iter().map(|block| compress(block)).collect();
    let packed = packed.map_err(invalid)?;
    let (mut rows, mut offset) = (Vec::new(), 0_u64);
    for (raw, packed) in raw.iter().zip(&packed) {
        let length = count(packed.len(), "the length of a block").map_err(invalid)?;
        let length_raw = count(raw.len(), "the length of a block").map_err(invalid)?;
        TextBlock { offset, length, length_raw }.encode(&mut rows);
        offset += u64::from(length);
    }
    file.section(SectionKind::TextBlocks, &rows)?;
    if !packed.is_empty() {
        file.begin(SectionKind::Text)?;
    }
    packed.iter().try_for_each(|block| file.put(block))
}

/// What a segment may have too much of.
const TERMS: &str = "the number of terms and postings";

fn write_terms<W: Write>(file: &mut FileBuilder<W>, documents: &[StagedDocument]) -> io::Result<()> {
    let chunks = || documents.iter().flat_map(|document| &document.chunks);
    let mut postings: Vec<(&str, u32, u16)> = (0_u32..)
        .zip(chunks())
        .flat_map(|(slot, chunk)| chunk.terms.iter().map(move |(term, frequency)| (term.as_str(), slot, *frequency)))
        .collect();
    postings.par_sort_unstable();
    count(postings.len(), TERMS).map_err(invalid)?;
    let (mut rows, mut text, mut first_posting) = (Vec::new(), Vec::new(), 0_u32);
    for group in postings.chunk_by(|a, b| a.0 == b.0) {
        TermRow { text: count(text.len(), TERMS).map_err(invalid)?, first_posting }.encode(&mut rows);
        text.extend_from_slice(group.first().map_or("", |posting| posting.0).as_bytes());
        first_posting += count(group.len(), TERMS).map_err(invalid)?;
    }
    if !rows.is_empty() {
        TermRow { text: count(text.len(), TERMS).map_err(invalid)?, first_posting }.encode(&mut rows);
    }
    let chunk_slots: Vec<u8> = postings.iter().flat_map(|posting| posting.1.to_le_bytes()).collect();
    let frequencies: Vec<u8> = postings.iter().flat_map(|posting| posting.2.to_le_bytes()).collect();
    file.section(SectionKind::TermText, &text)?;
    file.section(SectionKind::Terms, &rows)?;
    file.section(SectionKind::PostingChunks, &chunk_slots)?;
    file.section(SectionKind::PostingFrequencies, &frequencies)?;
    let lengths: Vec<u8> = chunks().flat_map(|chunk| chunk.length.to_le_bytes()).collect();
    file.section(SectionKind::ChunkLengths, &lengths)
}

type SpaceSections<'a> = (Vec<u8>, Vec<u8>, Vec<(&'a str, u32, &'a [f32])>);

fn spaces<'a>(
    place: Place,
    documents: &'a [StagedDocument],
    overlay: &'a Overlay,
    strings: &mut Strings,
) -> Result<SpaceSections<'a>, FormatError> {
    let mut vectors: Vec<(&str, u32, &[f32], &str)> = Vec::new();
    let chunks = documents.iter().flat_map(|document| &document.chunks);
    for (id, chunk) in (place.first_chunk..).zip(chunks) {
        vectors.extend(chunk.vectors.iter().map(|v| (v.space.as_str(), id, v.components.as_slice(), v.model.as_str())));
    }
    vectors.extend(
        overlay.vectors.iter().map(|v| (v.space.as_str(), v.chunk.0, v.components.as_slice(), v.model.as_str())),
    );
    vectors.sort_by_key(|vector| (vector.0, vector.1));
    let (mut rows, mut first_vector, mut first_component) = (Vec::new(), 0_u32, 0_u64);
    if vectors.chunk_by(|a, b| a.0 == b.0).count() > limits::SPACES {
        return Err(limit("the number of vector spaces", limits::SPACES as u64));
    }
    for group in vectors.chunk_by(|a, b| a.0 == b.0) {
        let Some((name, _, components, model)) = group.first() else { continue };
        let length = count(group.len(), "the number of vectors")?;
        let dimensions = count(components.len(), "the dimensions of a vector")?;
        SpaceRow {
            name: strings.place(name)?,
            model: strings.place(model)?,
            dimensions,
            metric: 0,
            element: 0,
            first_vector,
            vectors: length,
            first_component,
        }
        .encode(&mut rows);
        first_vector += length;
        first_component += u64::from(length) * u64::from(dimensions);
    }
    let vector_chunks = vectors.iter().flat_map(|vector| vector.1.to_le_bytes()).collect();
    Ok((
        rows,
        vector_chunks,
        vectors.into_iter().map(|(space, chunk, components, _)| (space, chunk, components)).collect(),
    ))
}

/// A source of a relation, with ids.
struct Source<'a> {
    relation: &'a StagedRelation,
    document: u32,
    chunk: u32,
}

/// Entities, mentions and relations of a segment.
struct Graph<'a> {
    entities: BTreeMap<Key, (&'a str, &'a str)>,
    /// One list a chunk, ascending by key.
    mentions: Vec<Vec<&'a StagedMention>>,
    sources: Vec<Source<'a>>,
}

impl<'a> Graph<'a> {
    fn of(place: Place, documents: &'a [StagedDocument], overlay: &'a Overlay) -> Self {
        let mut graph = Self { entities: BTreeMap::new(), mentions: Vec::new(), sources: Vec::new() };
        let mut chunk_id = place.first_chunk;
        for (document, staged) in (place.first_document..).zip(documents) {
            for relation in &staged.relations {
                graph.add_source(Source { relation, document, chunk: NO_CHUNK });
            }
            for chunk in &staged.chunks {
                for mention in &chunk.mentions {
                    graph.add_entity(mention.key, &mention.name, &mention.kind);
                }
                let mut mentions: Vec<&StagedMention> = chunk.mentions.iter().collect();
                mentions.sort_by_key(|mention| mention.key);
                graph.mentions.push(mentions);
                for relation in &chunk.relations {
                    graph.add_source(Source { relation, document, chunk: chunk_id });
                }
                chunk_id += 1;
            }
        }
        for found in &overlay.relations {
            let chunk = found.chunk.map_or(NO_CHUNK, |chunk| chunk.0);
            graph.add_source(Source { relation: &found.relation, document: found.document.0, chunk });
        }
        graph
    }

    fn add_source(&mut self, source: Source<'a>) {
        for end in [&source.relation.subject, &source.relation.object] {
            let StagedEnd { key, name, kind } = end;
            self.add_entity(*key, name, kind);
        }
        self.sources.push(source);
    }

    /// Of several spellings and types the better ones stay, so that the order of documents does not matter.
    fn add_entity(&mut self, key: Key, spelling: &'a str, kind: &'a str) {
        let entity = self.entities.entry(key).or_insert((spelling, kind));
        *entity = (name::better_spelling(entity.0, spelling), name::better_kind(entity.1, kind));
    }

    fn sections(mut self, strings: &mut Strings) -> Result<Vec<(SectionKind, Vec<u8>)>, FormatError> {
        count(self.entities.len(), "the number of entities")?;
        let keys: Vec<Key> = self.entities.keys().copied().collect();
        let slot =
            |key: Key| keys.binary_search(&key).ok().and_then(|slot| u32::try_from(slot).ok()).unwrap_or(u32::MAX);
        let mut entity_rows = Vec::new();
        for (key, (name, kind)) in &self.entities {
            let (name, kind) = (strings.place(name)?, strings.place(kind)?);
            EntityRow { key: key.0, name, kind, description: hedgerow_format::TextRef::default() }
                .encode(&mut entity_rows);
        }
        let mut sections = vec![(SectionKind::Entities, entity_rows)];
        sections.extend(self.mention_sections(keys.len(), slot)?);
        let sources = std::mem::take(&mut self.sources);
        sections.extend(relation_sections(sources, keys.len(), slot, strings)?);
        Ok(sections)
    }

    fn mention_sections(
        &self,
        entities: usize,
        slot: impl Fn(Key) -> u32,
    ) -> Result<Vec<(SectionKind, Vec<u8>)>, FormatError> {
        let (mut rows, mut ranges, mut first_range) = (Vec::new(), Vec::new(), 0_u32);
        let mut pairs = Vec::new();
        for (chunk, mentions) in (0_u32..).zip(&self.mentions) {
            for mention in mentions {
                let entity = slot(mention.key);
                let kept = u16::try_from(mention.ranges.len()).unwrap_or(u16::MAX);
                for range in mention.ranges.iter().take(usize::from(kept)) {
                    RangeRow { start: range.start, end: range.end }.encode(&mut ranges);
                }
                let flags = mention.flags & mention_flags::ALL;
                MentionRow { entity, first_range, ranges: kept, flags }.encode(&mut rows);
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
        let (by_entity, targets) = csr(&pairs, entities)?;
        sections.push((SectionKind::MentioningOffsets, by_entity));
        sections.push((SectionKind::Mentioning, targets));
        Ok(sections)
    }
}

fn relation_sections(
    mut sources: Vec<Source<'_>>,
    entities: usize,
    slot: impl Fn(Key) -> u32,
    strings: &mut Strings,
) -> Result<Vec<(SectionKind, Vec<u8>)>, FormatError> {
    // Slots ascend by key, so the order by keys is the order by slots.
    let order = |source: &Source<'_>| {
        let relation = source.relation;
        (
            relation.subject.key,
            relation.predicate.clone(),
            relation.object.key,
            source.document,
            source.chunk,
            relation.range.start,
            relation.range.end,
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
        let (subject, object) = (slot(first.relation.subject.key), slot(first.relation.object.key));
        let predicate = strings.place(&first.relation.predicate)?;
        let length = count(group.len(), "the sources of a relation")?;
        RelationRow { subject, object, predicate, first_evidence, evidence: length }.encode(&mut rows);
        first_evidence += length;
        for source in group {
            let Range { start, end } = source.relation.range.clone();
            let weight = source.relation.weight;
            EvidenceRow { document: source.document, chunk: source.chunk, weight, start, end }.encode(&mut evidence);
        }
        out.push((subject, row));
        back.push((object, row));
    }
    back.sort_unstable();
    let (by_subject, _) = csr(&out, entities)?;
    let (by_object, relating) = csr(&back, entities)?;
    Ok(vec![
        (SectionKind::RelationOffsets, by_subject),
        (SectionKind::Relations, rows),
        (SectionKind::RelatingOffsets, by_object),
        (SectionKind::Relating, relating),
        (SectionKind::Evidence, evidence),
    ])
}

/// Offsets of a CSR from the lengths of its rows.
fn offsets(lengths: impl Iterator<Item = usize>) -> Result<Vec<u8>, FormatError> {
    let (mut bytes, mut end) = (0_u32.to_le_bytes().to_vec(), 0_usize);
    for length in lengths {
        end += length;
        bytes.extend(count(end, "the number of mentions or relations")?.to_le_bytes());
    }
    Ok(bytes)
}

/// A CSR of sorted pairs: offsets over `rows` rows, and targets.
pub(crate) fn csr(pairs: &[(u32, u32)], rows: usize) -> Result<(Vec<u8>, Vec<u8>), FormatError> {
    let mut lengths = vec![0; rows];
    for (row, _) in pairs {
        if let Some(length) = usize::try_from(*row).ok().and_then(|row| lengths.get_mut(row)) {
            *length += 1;
        }
    }
    let targets = pairs.iter().flat_map(|pair| pair.1.to_le_bytes()).collect();
    Ok((offsets(lengths.into_iter())?, targets))
}
