//! The index of a vector space: codes of its vectors, and the graph that is walked to what is nearest.

use crate::error::Damage;
use crate::index::vector::Graph;
use crate::projection::Opened;
use crate::segment::Strings;
use hedgerow_format::file::{FileBuilder, FileIdentity, Finished};
use hedgerow_format::projection::{CoveredSegmentRow, VectorIndexRow, WalkRow, validate_vectors, vectors_findings};
use hedgerow_format::section::{SectionKind, Sections};
use hedgerow_format::{EntitySlot, F32s, FormatError, Record, Rows, U32s};
use std::io::{self, Write};
use std::ops::Deref;

/// An open vector index.
#[derive(Debug)]
pub struct VectorIndex(Opened);

impl Deref for VectorIndex {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.0
    }
}

/// What a vector index is made of.
#[derive(Debug)]
pub struct VectorIndexData {
    /// Name of the space.
    pub space: String,
    /// Identity of the model of its vectors.
    pub model: String,
    /// What it is about; names are filled in.
    pub row: VectorIndexRow,
    /// Numbers of the segments whose vectors are all nodes, ascending.
    pub segments: Vec<u64>,
    /// The chunk of each node, ascending.
    pub chunks: Vec<u32>,
    /// Their codes, row after row.
    pub codes: Vec<u8>,
    /// How far each vector lies from what its codes stand for at most.
    pub errors: Vec<f32>,
    /// Their neighbours, list after list.
    pub neighbours: Vec<[u8; 4]>,
    /// Where walks begin.
    pub entries: Vec<[u8; 4]>,
    /// What walks find.
    pub walks: Vec<WalkRow>,
    /// One above the highest chunk id.
    pub chunks_end: u32,
}

impl VectorIndex {
    /// The index in an open file.
    #[must_use]
    pub fn new(opened: Opened) -> Self {
        Self(opened)
    }

    fn rows<R: Record>(&self, kind: SectionKind) -> Result<Rows<'_, R>, Damage> {
        self.file.rows(kind).map_err(|error| self.file.damage(error))
    }

    fn section(&self, kind: SectionKind) -> Result<&[u8], Damage> {
        self.file.section(kind).map_err(|error| self.file.damage(error))
    }

    /// What it is about.
    ///
    /// # Errors
    /// [`Damage`], as for everything below.
    pub fn row(&self) -> Result<VectorIndexRow, Damage> {
        let kind = SectionKind::VectorIndex;
        let shape = || FormatError::Shape { section: kind.name(), expected: "one row".into(), found: "none".into() };
        self.rows(kind)?.get(0).ok_or_else(|| self.file.damage(shape()))
    }

    /// Whether all vectors of the segment with a number are nodes.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn covers(&self, segment: u64) -> Result<bool, Damage> {
        Ok(self.rows::<CoveredSegmentRow>(SectionKind::CoveredSegments)?.iter().any(|row| row.number == segment))
    }

    /// The chunk of each node, ascending.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn chunks(&self) -> Result<U32s<'_>, Damage> {
        self.file.u32s(SectionKind::IndexedChunks).map_err(|error| self.file.damage(error))
    }

    /// The graph.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn graph(&self) -> Result<Graph<'_>, Damage> {
        let row = self.row()?;
        Ok(Graph::new(
            (self.section(SectionKind::IndexCodes)?, EntitySlot(row.dimensions).index()),
            (self.section(SectionKind::IndexNeighbours)?.as_chunks().0, EntitySlot(row.degree).index()),
            self.section(SectionKind::IndexEntries)?.as_chunks().0,
        ))
    }

    /// How far each node's vector lies from what its codes stand for at most.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn errors(&self) -> Result<F32s<'_>, Damage> {
        let kind = SectionKind::IndexErrors;
        F32s::new(kind.name(), self.section(kind)?).map_err(|error| self.file.damage(error))
    }

    /// What walks find, by width of the beam, ascending.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn walks(&self) -> Result<Rows<'_, WalkRow>, Damage> {
        self.rows(SectionKind::IndexWalks)
    }

    /// Everything that is wrong with its bytes, and the first broken invariant of each group of its sections.
    #[must_use]
    pub fn findings(&self) -> Vec<FormatError> {
        let broken = vectors_findings(&self.file).into_iter();
        let broken = broken.filter(|error| !matches!(error, FormatError::Block { .. }));
        self.file.faults().into_iter().chain(broken).collect()
    }

    /// Checks every byte and every invariant. One that fails does not count from then on.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn verify(&self) -> Result<(), Damage> {
        let valid = || validate_vectors(&self.file).map_err(|error| self.file.damage(error));
        self.conclude(self.file.check_all().and_then(|()| valid()))
    }
}

/// Writes a vector index to `out`.
///
/// # Errors
/// Those of `out`; [`FormatError::Limit`] inside when there is too much for one file.
pub fn build_vector_index<W: Write>(
    out: W,
    identity: FileIdentity,
    data: &VectorIndexData,
) -> io::Result<(Finished, W)> {
    let invalid = |error: FormatError| io::Error::new(io::ErrorKind::InvalidInput, error);
    let mut strings = Strings::default();
    let (space, model) =
        strings.place(&data.space).and_then(|space| Ok((space, strings.place(&data.model)?))).map_err(invalid)?;
    let (mut row, mut segments, mut walks) = (Vec::new(), Vec::new(), Vec::new());
    VectorIndexRow { space, model, ..data.row }.encode(&mut row);
    data.segments.iter().for_each(|number| CoveredSegmentRow { number: *number }.encode(&mut segments));
    data.walks.iter().for_each(|walk| walk.encode(&mut walks));
    let errors: Vec<u8> = data.errors.iter().flat_map(|error| error.to_le_bytes()).collect();
    let chunks: Vec<u8> = data.chunks.iter().flat_map(|chunk| chunk.to_le_bytes()).collect();
    let mut file = FileBuilder::new(out, identity)?;
    file.section(SectionKind::Strings, &strings.into_bytes())?;
    file.section(SectionKind::VectorIndex, &row)?;
    file.section(SectionKind::CoveredSegments, &segments)?;
    file.section(SectionKind::IndexedChunks, &chunks)?;
    file.section(SectionKind::IndexCodes, &data.codes)?;
    file.section(SectionKind::IndexNeighbours, data.neighbours.as_flattened())?;
    file.section(SectionKind::IndexEntries, data.entries.as_flattened())?;
    file.section(SectionKind::IndexErrors, &errors)?;
    file.section(SectionKind::IndexWalks, &walks)?;
    file.finish()
}
