//! Writes a segment from staged documents and from rows about older ones.

use crate::planted::{Planted, planted};
use crate::segment::extraction;
use crate::segment::graph::Graph;
use crate::segment::lists::ListRows;
use crate::segment::{Numbered, OverlayExtraction, StagedChunk, StagedRelation, Strings};
use hedgerow_format::file::{FileBuilder, FileIdentity, Finished};
use hedgerow_format::section::SectionKind;
use hedgerow_format::segment::{ChunkRow, DeadVectorRow, DocumentRow, SegmentShape, SpaceRow, TermRow};
use hedgerow_format::text::{Codec, TEXT_BLOCK_BYTES, TextBlock, pack_block};
use hedgerow_format::{ChunkId, DocumentId, FormatError, Key, Record, limits};
use rayon::prelude::*;
use roaring::RoaringBitmap;
use std::io::{self, Write};

/// What a segment is to hold.
#[derive(Debug, Default)]
pub struct Content {
    /// Ids that its rows may have, and how many rows there are.
    pub shape: SegmentShape,
    /// Its documents, ascending by id, each key once.
    pub documents: Vec<Numbered>,
    /// Rows about documents of earlier segments.
    pub overlay: Overlay,
    /// How its text is written.
    pub codec: Codec,
}

impl Content {
    /// Whether there is nothing to hold.
    pub(crate) fn is_empty(&self) -> bool {
        self.documents.is_empty() && self.overlay.is_empty()
    }

    fn chunks(&self) -> impl Iterator<Item = &StagedChunk> {
        self.documents.iter().flat_map(|numbered| &numbered.document.chunks)
    }

    /// Chunks with their ids.
    fn numbered_chunks(&self) -> impl Iterator<Item = (u32, &StagedChunk)> {
        self.documents.iter().flat_map(|numbered| (numbered.first_chunk.0..).zip(&numbered.document.chunks))
    }
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
    /// Extractions of older chunks.
    pub extractions: Vec<OverlayExtraction>,
    /// Extractions that no longer count: extractor and chunk.
    pub dead_extractions: Vec<(String, ChunkId)>,
}

impl Overlay {
    /// Whether it says nothing.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { dead_documents, relations, vectors, dead_vectors, extractions, dead_extractions } = self;
        let no_vectors = vectors.is_empty() && dead_vectors.is_empty();
        let no_extractions = extractions.is_empty() && dead_extractions.is_empty();
        dead_documents.is_empty() && relations.is_empty() && no_vectors && no_extractions
    }
}

/// A relation found in an older document.
#[derive(Clone, Debug)]
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

/// Writes a segment to `out`.
///
/// The text is compressed block by block on the thread pool and written in order, so memory holds the rows and a few
/// blocks, and the bytes don't depend on the number of threads.
///
/// # Errors
/// Those of `out`; [`FormatError::Limit`] inside [`io::ErrorKind::InvalidInput`] when there is too much for one segment.
pub fn build<W: Write>(out: W, identity: FileIdentity, content: &Content) -> io::Result<(Finished, W)> {
    let mut file = FileBuilder::new(out, identity)?;
    let rows = Rows::of(content).map_err(invalid)?;
    file.section(SectionKind::Strings, &rows.strings)?;
    file.section(SectionKind::Documents, &rows.documents)?;
    file.section(SectionKind::Chunks, &rows.chunks)?;
    write_text(&mut file, content)?;
    for (kind, bytes) in &rows.graph {
        file.section(*kind, bytes)?;
    }
    write_terms(&mut file, content)?;
    file.section(SectionKind::Spaces, &rows.spaces)?;
    file.section(SectionKind::VectorChunks, &rows.vector_chunks)?;
    if !rows.vectors.is_empty() {
        file.begin(SectionKind::Vectors)?;
    }
    for (_, _, components) in &rows.vectors {
        let bytes: Vec<u8> = components.iter().flat_map(|component| component.to_le_bytes()).collect();
        file.put(&bytes)?;
    }
    if !content.overlay.dead_documents.is_empty() && !planted(Planted::TombstonesLost) {
        let mut bytes = Vec::new();
        content.overlay.dead_documents.serialize_into(&mut bytes)?;
        file.section(SectionKind::DeadDocuments, &bytes)?;
    }
    file.section(SectionKind::DeadVectors, &rows.dead_vectors)?;
    write_ids(&mut file, content)?;
    for (kind, bytes) in &rows.last {
        file.section(*kind, bytes)?;
    }
    rows.lists.write(&mut file, content)?;
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
    /// From spellings on.
    last: Vec<(SectionKind, Vec<u8>)>,
    lists: ListRows,
    spaces: Vec<u8>,
    vector_chunks: Vec<u8>,
    /// Space, chunk id, components: in the order of the sections.
    vectors: Vec<(&'a str, u32, &'a [f32])>,
    dead_vectors: Vec<u8>,
}

impl<'a> Rows<'a> {
    fn of(content: &'a Content) -> Result<Self, FormatError> {
        let mut strings = Strings::default();
        let (document_rows, chunk_rows) = documents_and_chunks(&mut strings, &content.documents)?;
        let (graph, mut last, lists) = Graph::of(content).sections(content, &mut strings)?;
        let (spaces, vector_chunks, vectors) = spaces(content, &mut strings)?;
        let mut dead: Vec<&(String, ChunkId)> = content.overlay.dead_vectors.iter().collect();
        dead.sort_unstable();
        let mut dead_vectors = Vec::new();
        for (space, chunk) in dead {
            DeadVectorRow { space: strings.place(space)?, chunk: chunk.0 }.encode(&mut dead_vectors);
        }
        last.push((SectionKind::DeadExtractions, extraction::dead_section(content, &mut strings)?));
        Ok(Self {
            strings: strings.into_bytes(),
            documents: document_rows,
            chunks: chunk_rows,
            graph,
            last,
            lists,
            spaces,
            vector_chunks,
            vectors,
            dead_vectors,
        })
    }
}

fn documents_and_chunks(strings: &mut Strings, documents: &[Numbered]) -> Result<(Vec<u8>, Vec<u8>), FormatError> {
    let (mut document_rows, mut chunk_rows) = (Vec::new(), Vec::new());
    let (mut text_offset, mut first_chunk) = (0_u64, 0_u32);
    for (slot, Numbered { document, .. }) in (0_u32..).zip(documents) {
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

pub(super) fn limit(what: &'static str, limit: u64) -> FormatError {
    FormatError::Limit { what, limit }
}

pub(super) fn count(length: usize, what: &'static str) -> Result<u32, FormatError> {
    u32::try_from(length).map_err(|_| limit(what, u64::from(u32::MAX)))
}

/// Cuts the documents' texts into blocks across their borders and writes them packed.
fn write_text<W: Write>(file: &mut FileBuilder<W>, content: &Content) -> io::Result<()> {
    let mut raw: Vec<Vec<u8>> = vec![Vec::with_capacity(TEXT_BLOCK_BYTES)];
    for mut bytes in content.documents.iter().map(|numbered| numbered.document.text.as_bytes()) {
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
    let packed: Result<Vec<Vec<u8>>, FormatError> =
        raw.par_iter().map(|block| pack_block(block, content.codec)).collect();
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

fn write_terms<W: Write>(file: &mut FileBuilder<W>, content: &Content) -> io::Result<()> {
    let mut postings: Vec<(&str, u32, u16)> = (0_u32..)
        .zip(content.chunks())
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
    let lengths: Vec<u8> = content.chunks().flat_map(|chunk| chunk.length.to_le_bytes()).collect();
    file.section(SectionKind::ChunkLengths, &lengths)
}

/// Lists ids where the range has gaps, and the order of keys where it is not that of ids.
fn write_ids<W: Write>(file: &mut FileBuilder<W>, content: &Content) -> io::Result<()> {
    let Content { shape, documents, .. } = content;
    if shape.documents_end - shape.first_document != shape.documents {
        let ids: Vec<u8> = documents.iter().flat_map(|numbered| numbered.id.0.to_le_bytes()).collect();
        file.section(SectionKind::DocumentIds, &ids)?;
    }
    if shape.chunks_end - shape.first_chunk != shape.chunks {
        let ids: Vec<u8> = content.numbered_chunks().flat_map(|(id, _)| id.to_le_bytes()).collect();
        file.section(SectionKind::ChunkIds, &ids)?;
    }
    let mut order: Vec<(Key, u32)> =
        documents.iter().map(|numbered| Key::of_document(&numbered.document.name)).zip(0..).collect();
    if order.is_sorted() {
        return Ok(());
    }
    order.sort_unstable();
    let order: Vec<u8> = order.into_iter().flat_map(|(_, slot)| slot.to_le_bytes()).collect();
    file.section(SectionKind::DocumentOrder, &order)
}

type SpaceSections<'a> = (Vec<u8>, Vec<u8>, Vec<(&'a str, u32, &'a [f32])>);

fn spaces<'a>(content: &'a Content, strings: &mut Strings) -> Result<SpaceSections<'a>, FormatError> {
    let mut vectors: Vec<(&str, u32, &[f32], &str)> = Vec::new();
    for (id, chunk) in content.numbered_chunks() {
        vectors.extend(chunk.vectors.iter().map(|v| (v.space.as_str(), id, v.components.as_slice(), v.model.as_str())));
    }
    vectors.extend(
        content
            .overlay
            .vectors
            .iter()
            .map(|v| (v.space.as_str(), v.chunk.0, v.components.as_slice(), v.model.as_str())),
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
