//! The vectors of a segment, space by space. Their components are checked as a whole, or a few rows at a time.

use crate::error::Damage;
use crate::segment::Segment;
use hedgerow_format::section::SectionKind;
use hedgerow_format::segment::SpaceRow;
use hedgerow_format::{ChunkId, ChunkSlot, FormatError, Rows, U32s};

/// The vectors of a space.
#[derive(Clone, Copy, Debug)]
pub struct SpaceView<'a> {
    /// Name of the space.
    pub name: &'a str,
    /// Identity of the model.
    pub model: &'a str,
    /// Components of a vector.
    pub dimensions: usize,
    /// Chunk ids, ascending.
    pub chunks: U32s<'a>,
    segment: &'a Segment,
    /// Where the first one's components begin in their section.
    start: usize,
}

impl Segment {
    /// The vector spaces that the segment has vectors in.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn spaces(&self) -> Result<Vec<SpaceView<'_>>, Damage> {
        let rows: Rows<'_, SpaceRow> = self.rows(SectionKind::Spaces)?;
        let (chunks, held) = (self.u32s(SectionKind::VectorChunks)?, self.file().section_bytes(SectionKind::Vectors));
        rows.iter()
            .map(|row| {
                let first = usize::try_from(row.first_vector).unwrap_or(usize::MAX);
                let last = first.saturating_add(usize::try_from(row.vectors).unwrap_or(usize::MAX));
                let dimensions = usize::try_from(row.dimensions).unwrap_or(usize::MAX);
                let start = usize::try_from(row.first_component).ok().and_then(|first| first.checked_mul(4));
                let chunks = chunks.slice(first..last);
                let bytes = dimensions.checked_mul(4).and_then(|row| row.checked_mul(last.saturating_sub(first)));
                let end = start.zip(bytes).and_then(|(start, bytes)| start.checked_add(bytes));
                let fits = end.is_some_and(|end| end <= held);
                let shape = || FormatError::Invariant { section: "vectors", rule: "S-VEC-3", row: 0 };
                Ok(SpaceView {
                    name: self.string(row.name)?,
                    model: self.string(row.model)?,
                    dimensions,
                    chunks,
                    segment: self,
                    start: start.filter(|_| fits).ok_or_else(|| self.file().damage(shape()))?,
                })
            })
            .collect()
    }
}

impl<'a> SpaceView<'a> {
    /// The vectors beside the chunks, little-endian `f32`: all of them.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn vectors(&self) -> Result<impl ExactSizeIterator<Item = &'a [u8]> + use<'a>, Damage> {
        let bytes = self.row_bytes();
        let end = self.start.saturating_add(bytes.saturating_mul(self.chunks.len()));
        let components = self.segment.section(SectionKind::Vectors)?.get(self.start..end).unwrap_or_default();
        Ok(components.chunks_exact(bytes.max(1)))
    }

    /// One of the vectors.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn vector(&self, row: usize) -> Result<&'a [u8], Damage> {
        let start = self.start.saturating_add(row.saturating_mul(self.row_bytes()));
        self.segment.file().part(SectionKind::Vectors, start..start.saturating_add(self.row_bytes()))
    }

    /// Which row is a chunk's. Tries where it is in a segment all of whose chunks have vectors first.
    #[must_use]
    pub fn row_of(&self, chunk: ChunkId) -> Option<usize> {
        let first = self.chunks.get(0)?;
        let guess = ChunkSlot(chunk.0.checked_sub(first)?).index();
        if self.chunks.get(guess) == Some(chunk.0) { Some(guess) } else { self.chunks.position_of(chunk.0) }
    }

    fn row_bytes(&self) -> usize {
        self.dimensions.saturating_mul(4)
    }
}
