//! A document and a chunk as a snapshot shows them.

use crate::error::Damage;
use crate::segment::Segment;
use hedgerow_format::segment::{ChunkRow, DocumentRow};
use hedgerow_format::{ChunkId, DocumentId, Key};
use std::ops::Range;

/// A document of a generation.
#[derive(Clone, Copy, Debug)]
pub struct DocumentView<'a> {
    segment: &'a Segment,
    id: DocumentId,
    row: DocumentRow,
}

impl<'a> DocumentView<'a> {
    pub(crate) fn of(segment: &'a Segment, id: DocumentId) -> Result<Self, Damage> {
        Ok(Self { segment, id, row: segment.document(id)? })
    }

    pub(crate) fn id(&self) -> DocumentId {
        self.id
    }

    /// Its key.
    pub(crate) fn hash_key(&self) -> Key {
        Key(self.row.key)
    }

    /// Hash over the document as it was given and the identity of what read it.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 16] {
        self.row.fingerprint
    }

    /// The caller's key.
    ///
    /// # Errors
    /// [`Damage`], as for everything below.
    pub fn key(&self) -> Result<&'a str, Damage> {
        self.segment.string(self.row.name)
    }

    /// Its title; may be empty.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn title(&self) -> Result<&'a str, Damage> {
        self.segment.string(self.row.title)
    }

    /// Where it came from; may be empty.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn source(&self) -> Result<&'a str, Damage> {
        self.segment.string(self.row.source)
    }

    /// Its media type.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn media_type(&self) -> Result<&'a str, Damage> {
        self.segment.string(self.row.media_type)
    }

    /// Its metadata, a JSON object, or empty for none.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn metadata(&self) -> Result<&'a str, Damage> {
        self.segment.string(self.row.metadata)
    }

    /// Bytes of its text.
    #[must_use]
    pub fn text_bytes(&self) -> u32 {
        self.row.text_bytes
    }

    /// Its whole text, decompressed.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn text(&self) -> Result<String, Damage> {
        self.segment.text(&self.row, 0..self.row.text_bytes)
    }

    /// Ids of its chunks, in order.
    pub fn chunks(&self) -> impl Iterator<Item = ChunkId> + use<> {
        self.segment.chunks_of(&self.row).map(ChunkId)
    }
}

/// Key of a chunk: the document's, `#` and its ordinal.
pub(crate) fn chunk_key(document: &str, ordinal: u32) -> String {
    format!("{document}#{ordinal}")
}

/// A chunk of a generation.
#[derive(Clone, Copy, Debug)]
pub struct ChunkView<'a> {
    segment: &'a Segment,
    row: ChunkRow,
}

impl<'a> ChunkView<'a> {
    pub(crate) fn of(segment: &'a Segment, id: ChunkId) -> Result<Self, Damage> {
        Ok(Self { segment, row: segment.chunk(id)? })
    }

    pub(crate) fn segment(&self) -> &'a Segment {
        self.segment
    }

    /// The document that it belongs to.
    ///
    /// # Errors
    /// [`Damage`], as for everything below.
    pub fn document(&self) -> Result<DocumentView<'a>, Damage> {
        DocumentView::of(self.segment, self.segment.document_of(&self.row)?)
    }

    /// Its key: the document's, `#` and its ordinal.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn key(&self) -> Result<String, Damage> {
        Ok(chunk_key(self.document()?.key()?, self.row.ordinal))
    }

    /// Its position among the document's chunks, from 0.
    #[must_use]
    pub fn ordinal(&self) -> u32 {
        self.row.ordinal
    }

    /// Its bytes of the document's text.
    #[must_use]
    pub fn range(&self) -> Range<u32> {
        self.row.start..self.row.end
    }

    /// `text`, `table` or `record`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.row.kind {
            0 => "text",
            1 => "table",
            _ => "record",
        }
    }

    /// Whether it is a table.
    #[must_use]
    pub fn is_table(&self) -> bool {
        self.row.kind == 1
    }

    /// Heading path; may be empty.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn heading(&self) -> Result<&'a str, Damage> {
        self.segment.string(self.row.heading)
    }

    /// Its metadata, a JSON object, or empty for none.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn metadata(&self) -> Result<&'a str, Damage> {
        self.segment.string(self.row.metadata)
    }

    /// Its text, decompressed.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn text(&self) -> Result<String, Damage> {
        let document = self.segment.document(self.segment.document_of(&self.row)?)?;
        self.segment.text(&document, self.range())
    }
}
