//! The edges projection: chunk pairs of one vector space and kind whose similarity survived pruning.

use crate::error::Damage;
use crate::index::edges::image;
use crate::projection::Opened;
use crate::segment::Strings;
use hedgerow_format::edges::PairKind;
use hedgerow_format::file::{FileBuilder, FileIdentity, Finished};
use hedgerow_format::manifest::{EdgeSettings, EdgeSignal};
use hedgerow_format::projection::{
    EdgeCount, EdgeReportRow, EdgeReserveRow, EdgeRow, EdgeSignalRow, EdgeSpare, edge_origins, edges_findings,
    validate_edges,
};
use hedgerow_format::section::{SectionKind, Sections};
use hedgerow_format::{ChunkId, FormatError, Record, Rows, TextRef};
use std::io::{self, Write};
use std::ops::Deref;

/// An open edges projection.
#[derive(Debug)]
pub struct Edges(Opened);

impl Deref for Edges {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.0
    }
}

/// What an edges projection is made of.
#[derive(Debug)]
pub struct EdgesData {
    /// Name of the vector space.
    pub space: String,
    /// The settings of the space.
    pub settings: EdgeSettings,
    /// The kind of the pairs.
    pub kind: PairKind,
    /// How the edges were made; its `space` is filled in.
    pub report: EdgeReportRow,
    /// The edges.
    pub edges: EdgeLists,
    /// Which rules made each of these; empty where all are edges by similarity.
    pub origins: Vec<u8>,
    /// The threshold of each signal of the settings.
    pub thresholds: Vec<f32>,
    /// What following the edges needs; without rows where nothing follows them.
    pub reserve: EdgesReserve,
    /// One above the highest chunk id.
    pub chunks_end: u32,
}

/// Both directions of every edge.
#[derive(Debug, Default)]
pub struct EdgeLists {
    /// Chunks, ascending.
    pub chunks: Vec<u32>,
    /// Where the edges of each chunk start, and at the end their number.
    pub offsets: Vec<u64>,
    /// The other chunk of each, ascending for each chunk.
    pub targets: Vec<u32>,
    /// The similarity of each.
    pub weights: Vec<f32>,
}

/// What following the edges needs.
#[derive(Debug, Default)]
pub struct EdgesReserve {
    /// The chunks that have vectors, ascending.
    pub rows: Vec<EdgeRow>,
    /// The partners that they remember.
    pub spares: Vec<EdgeSpare>,
    /// Pairs of each similarity near the threshold.
    pub counts: Vec<u64>,
    /// What the counts begin with; none without rows.
    pub start: Option<EdgeReserveRow>,
}

impl Edges {
    /// The projection in an open file.
    #[must_use]
    pub fn new(opened: Opened) -> Self {
        Self(opened)
    }

    /// How the edges were made.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn report(&self) -> Result<EdgeReportRow, Damage> {
        let place = |error| self.file.damage(error);
        let rows: Rows<'_, EdgeReportRow> = self.file.rows(SectionKind::EdgeReport).map_err(place)?;
        rows.get(0).ok_or_else(|| place(FormatError::Missing { section: SectionKind::EdgeReport.name() }))
    }

    /// What following the edges needs.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn reserve(&self) -> Result<EdgesReserve, Damage> {
        let place = |error| self.file.damage(error);
        let starts: Rows<'_, EdgeReserveRow> = self.file.rows(SectionKind::EdgeReserve).map_err(place)?;
        let counts: Rows<'_, EdgeCount> = self.file.rows(SectionKind::EdgeCounts).map_err(place)?;
        Ok(EdgesReserve {
            rows: self.file.rows(SectionKind::EdgeRows).map_err(place)?.iter().collect(),
            spares: self.file.rows(SectionKind::EdgeSpares).map_err(place)?.iter().collect(),
            counts: counts.iter().map(|count| count.pairs).collect(),
            start: starts.get(0),
        })
    }

    /// The vector space that the report names.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn reported_space(&self) -> Result<&str, Damage> {
        let space = self.report()?.space;
        self.file.string(space).map_err(|error| self.file.damage(error))
    }

    /// Name of the vector space.
    #[must_use]
    pub fn space(&self) -> &str {
        &self.entry.space
    }

    /// The kind of its pairs. A manifest with an unknown one is not read.
    #[must_use]
    pub fn kind(&self) -> PairKind {
        PairKind::from_number(self.entry.pairs).unwrap_or(PairKind::DocumentDocument)
    }

    /// The chunks that a chunk is similar to, ascending, with the similarities.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn neighbours(&self, chunk: ChunkId) -> Result<impl Iterator<Item = (ChunkId, f32)>, Damage> {
        let place = |error| self.file.damage(error);
        let range = self.file.u32s(SectionKind::EdgeOffsets).map_err(place)?.row(chunk.index());
        let targets = self.file.u32s(SectionKind::EdgeTargets).map_err(place)?.slice(range.clone());
        let weights = self.file.u32s(SectionKind::EdgeWeights).map_err(place)?.slice(range);
        Ok(targets.iter().zip(weights.iter()).map(|(target, bits)| (ChunkId(target), f32::from_bits(bits))))
    }

    /// How similar a chunk is to another one, if there is an edge. Halves the chunk's edges.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn weight(&self, chunk: ChunkId, other: ChunkId) -> Result<Option<f32>, Damage> {
        let place = |error| self.file.damage(error);
        let range = self.file.u32s(SectionKind::EdgeOffsets).map_err(place)?.row(chunk.index());
        let targets = self.file.u32s(SectionKind::EdgeTargets).map_err(place)?.slice(range.clone());
        let weights = self.file.u32s(SectionKind::EdgeWeights).map_err(place)?.slice(range);
        Ok(targets.position_of(other.0).and_then(|position| weights.get(position)).map(f32::from_bits))
    }

    /// How many pairs of the kind were less similar when the edges were made, where that was counted: near the threshold.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn below(&self, similarity: f32) -> Result<Option<u64>, Damage> {
        let place = |error| self.file.damage(error);
        let starts: Rows<'_, EdgeReserveRow> = self.file.rows(SectionKind::EdgeReserve).map_err(place)?;
        let counts: Rows<'_, EdgeCount> = self.file.rows(SectionKind::EdgeCounts).map_err(place)?;
        let Some(start) = starts.get(0) else { return Ok(None) };
        let over = image(similarity).checked_sub(start.low).and_then(|over| usize::try_from(over).ok());
        let Some(over) = over.filter(|over| *over < counts.len()) else { return Ok(None) };
        Ok(Some(counts.iter().take(over).fold(start.below, |below, count| below.saturating_add(count.pairs))))
    }

    /// How many pairs the threshold may pass on its way down, and on its way up, before all pairs have to be compared again:
    /// those that are counted on either side of it.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn counted_around(&self) -> Result<[u64; 2], Damage> {
        let place = |error| self.file.damage(error);
        let counts: Rows<'_, EdgeCount> = self.file.rows(SectionKind::EdgeCounts).map_err(place)?;
        let starts: Rows<'_, EdgeReserveRow> = self.file.rows(SectionKind::EdgeReserve).map_err(place)?;
        let low = starts.get(0).map_or(0, |start| start.low);
        let threshold = u64::from(image(self.report()?.threshold).saturating_sub(low));
        let mut around = [0_u64; 2];
        for (bin, count) in (0_u64..).zip(counts.iter()) {
            let side = &mut around[usize::from(bin >= threshold)];
            *side = side.saturating_add(count.pairs);
        }
        Ok(around)
    }

    /// Which rules made an edge between two chunks, bits of [`edge_origins`]; none where there is no edge.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn origins(&self, chunk: ChunkId, other: ChunkId) -> Result<Option<u8>, Damage> {
        let place = |error| self.file.damage(error);
        let range = self.file.u32s(SectionKind::EdgeOffsets).map_err(place)?.row(chunk.index());
        let targets = self.file.u32s(SectionKind::EdgeTargets).map_err(place)?.slice(range.clone());
        let origins = self.file.section(SectionKind::EdgeOrigins).map_err(place)?;
        let Some(position) = targets.position_of(other.0) else { return Ok(None) };
        let origin = origins.get(range).and_then(|origins| origins.get(position));
        Ok(Some(origin.copied().unwrap_or(edge_origins::SIMILARITY)))
    }

    /// The settings that the report tells, where those of one kind stand for all; a manifest has them of all kinds.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn reported_settings(&self) -> Result<EdgeSettings, Damage> {
        let place = |error| self.file.damage(error);
        let report = self.report()?;
        let signals: Rows<'_, EdgeSignalRow> = self.file.rows(SectionKind::EdgeSignals).map_err(place)?;
        let signal = |EdgeSignalRow { what, percentile, weight, space, threshold: _ }: EdgeSignalRow| {
            let space = self.file.string(space).map_err(place)?.to_owned();
            Ok(EdgeSignal { what, percentile, weight, space })
        };
        Ok(EdgeSettings {
            percentiles: [report.percentile_thousandths; 3],
            top_m: report.top_m,
            cap: report.cap,
            nearest: report.nearest,
            nearest_by: report.nearest_by,
            least: report.least,
            shared_chunks: report.shared_chunks,
            shared_top_m: report.shared_top_m,
            weighted: report.weighted,
            signals: signals.iter().map(signal).collect::<Result<_, Damage>>()?,
        })
    }

    /// The threshold of each signal of the settings.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn thresholds(&self) -> Result<Vec<f32>, Damage> {
        let signals: Rows<'_, EdgeSignalRow> =
            self.file.rows(SectionKind::EdgeSignals).map_err(|error| self.file.damage(error))?;
        Ok(signals.iter().map(|signal| signal.threshold).collect())
    }

    /// Everything that is wrong with its bytes, and the first broken invariant of each group of its sections.
    #[must_use]
    pub fn findings(&self) -> Vec<FormatError> {
        let broken = edges_findings(&self.file, self.entry.chunks_end).into_iter();
        let broken = broken.filter(|error| !matches!(error, FormatError::Block { .. }));
        self.file.faults().into_iter().chain(broken).collect()
    }

    /// Checks every byte and every invariant. One that fails does not count from then on.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn verify(&self) -> Result<(), Damage> {
        let valid = || validate_edges(&self.file, self.entry.chunks_end).map_err(|error| self.file.damage(error));
        self.conclude(self.file.check_all().and_then(|()| valid()))
    }
}

/// Writes an edges projection to `out`.
///
/// # Errors
/// Those of `out`; [`FormatError::Limit`] inside when there is too much for one file.
pub fn build_edges<W: Write>(out: W, identity: FileIdentity, data: &EdgesData) -> io::Result<(Finished, W)> {
    let invalid = |error: FormatError| io::Error::new(io::ErrorKind::InvalidInput, error);
    let mut file = FileBuilder::new(out, identity)?;
    let mut strings = Strings::default();
    let space: TextRef = strings.place(&data.space).map_err(invalid)?;
    let mut signals = Vec::new();
    let thresholds = data.thresholds.iter().copied().chain(std::iter::repeat(0.0));
    for (EdgeSignal { what, percentile, weight, space }, threshold) in data.settings.signals.iter().zip(thresholds) {
        let space = strings.place(space).map_err(invalid)?;
        signals.push(EdgeSignalRow { what: *what, percentile: *percentile, weight: *weight, space, threshold });
    }
    file.section(SectionKind::Strings, &strings.into_bytes())?;
    file.section(SectionKind::EdgeOffsets, &offsets(&data.edges, data.chunks_end).map_err(invalid)?)?;
    let EdgeLists { targets, weights, .. } = &data.edges;
    words(&mut file, SectionKind::EdgeTargets, targets.iter().map(|target| target.to_le_bytes()))?;
    words(&mut file, SectionKind::EdgeWeights, weights.iter().map(|weight| weight.to_le_bytes()))?;
    let mut report = Vec::new();
    told(data, space).encode(&mut report);
    file.section(SectionKind::EdgeReport, &report)?;
    let EdgesReserve { rows, spares, counts, start } = &data.reserve;
    let counts: Vec<EdgeCount> = counts.iter().map(|pairs| EdgeCount { pairs: *pairs }).collect();
    file.section(SectionKind::EdgeRows, &encoded(rows))?;
    file.section(SectionKind::EdgeSpares, &encoded(spares))?;
    file.section(SectionKind::EdgeCounts, &encoded(&counts))?;
    file.section(SectionKind::EdgeReserve, &encoded(start.as_slice()))?;
    file.section(SectionKind::EdgeOrigins, &data.origins)?;
    file.section(SectionKind::EdgeSignals, &encoded(&signals))?;
    file.finish()
}

/// Where the edges of every chunk id start, and at the end their number.
fn offsets(edges: &EdgeLists, chunks_end: u32) -> Result<Vec<u8>, FormatError> {
    let offset = |place: usize| {
        let offset = edges.offsets.get(place).copied().unwrap_or_default();
        let limit = u64::from(u32::MAX);
        u32::try_from(offset).map_err(|_| FormatError::Limit { what: "the number of similarity edges", limit })
    };
    let mut bytes = Vec::with_capacity((chunks_end as usize).saturating_add(1).saturating_mul(4));
    let mut place = 0;
    for chunk in 0..=chunks_end {
        bytes.extend(offset(place)?.to_le_bytes());
        place += usize::from(edges.chunks.get(place) == Some(&chunk));
    }
    Ok(bytes)
}

/// Words that are put into a section together.
const WORDS: usize = 1 << 14;

/// Writes a section, which there is only if it has words.
fn words<W: Write>(
    file: &mut FileBuilder<W>,
    kind: SectionKind,
    words: impl ExactSizeIterator<Item = [u8; 4]>,
) -> io::Result<()> {
    if words.len() == 0 {
        return Ok(());
    }
    file.begin(kind)?;
    let mut bytes = Vec::with_capacity(WORDS * 4);
    for word in words {
        bytes.extend(word);
        if bytes.len() == WORDS * 4 {
            file.put(&bytes)?;
            bytes.clear();
        }
    }
    file.put(&bytes)
}

/// The report with the settings in it.
fn told(data: &EdgesData, space: TextRef) -> EdgeReportRow {
    let EdgeSettings { percentiles: _, top_m, cap, nearest, nearest_by, least, shared_chunks, shared_top_m, .. } =
        data.settings;
    let weighted = data.settings.weighted;
    let report = EdgeReportRow { shared_chunks, shared_top_m, weighted, ..data.report };
    EdgeReportRow { space, top_m, cap, nearest, nearest_by, least, ..report }
}

fn encoded<R: Record>(records: &[R]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        record.encode(&mut bytes);
    }
    bytes
}
