//! The index of a vector space, in step with its vectors: made anew, or grown from the one that there is.

use crate::distance::codes::fitting;
use crate::distance::near::{CodeRows, encode_rows};
use crate::distance::rows::Rows;
use crate::error::Damage;
use crate::index::control::Control;
use crate::index::vector::{DEGREE, Former, Graph, Growth, NOBODY, calibrate, grow};
use crate::project::{Fault, chunks_end};
use crate::projection::{VectorIndex, VectorIndexData};
use crate::snapshot::{Snapshot, Space};
use hedgerow_format::projection::VectorIndexRow;
use hedgerow_format::{ChunkId, EntitySlot, TextRef};

/// An index lags that is behind by one of so many of its vectors.
const LAG: u64 = 8;

/// What is to be indexed: the vectors of a space, ascending by chunk.
struct Vectors<'v> {
    space: &'v Space,
    chunks: Vec<ChunkId>,
    rows: Vec<&'v [u8]>,
}

/// Codes of vectors.
struct Coded {
    scale: f64,
    codes: Vec<u8>,
    errors: Vec<f32>,
}

/// Says whether the index of a space is behind.
pub(super) type IsBehind = fn(&Snapshot, &Space, &VectorIndex) -> Result<bool, Damage>;

/// Whether it is not about all of its vectors as they are.
pub(super) fn is_behind(snapshot: &Snapshot, space: &Space, index: &VectorIndex) -> Result<bool, Damage> {
    let mut covered = u64::from(index.row()?.nodes) == space.vectors;
    for segment in segments(snapshot, space)? {
        covered = covered && index.covers(segment)?;
    }
    Ok(!covered)
}

/// Whether an eighth of what it is about, or of what there is, is elsewhere or gone.
pub(super) fn lags(snapshot: &Snapshot, space: &Space, index: &VectorIndex) -> Result<bool, Damage> {
    let (nodes, mut outside) = (u64::from(index.row()?.nodes), 0);
    for (position, segment) in snapshot.segments().iter().enumerate() {
        if !index.covers(segment.entry().file.number)? {
            outside += snapshot.vectors_in(position, &space.name)? as u64;
        }
    }
    let gone = nodes.saturating_add(outside).saturating_sub(space.vectors);
    Ok(outside.max(gone).saturating_mul(LAG) >= nodes.max(space.vectors))
}

/// The numbers of the segments that hold vectors of a space, ascending.
fn segments(snapshot: &Snapshot, space: &Space) -> Result<Vec<u64>, Damage> {
    let mut numbers = Vec::new();
    for (position, segment) in snapshot.segments().iter().enumerate() {
        if snapshot.vectors_in(position, &space.name)? > 0 {
            numbers.push(segment.entry().file.number);
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// The index of a space.
pub(super) fn build(
    snapshot: &Snapshot,
    space: &Space,
    former: Option<&VectorIndex>,
    control: &dyn Control,
) -> Result<VectorIndexData, Fault> {
    let vectors = Vectors::of(snapshot, space)?;
    let order = insertion_order(snapshot, &vectors.chunks)?;
    let taken_over = former.map(|former| vectors.taken_over(former)).transpose()?.flatten();
    let (coded, rows) = taken_over.map_or_else(|| (vectors.coded(None), None), |(coded, rows)| (coded, Some(rows)));
    let code_rows = CodeRows::new(&coded.codes, space.dimensions);
    let former = match (former, &rows) {
        (Some(index), Some(rows)) => Some(Former { graph: index.graph()?, rows }),
        _ => None,
    };
    let grown = grow(Growth { rows: code_rows, order: &order, former }, control)?;
    let graph = Graph::new((&coded.codes, space.dimensions), (&grown.neighbours, DEGREE), &grown.entries);
    let walks = calibrate(&graph, &order, control)?;
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Ok(VectorIndexData {
        space: space.name.clone(),
        model: space.model.clone(),
        row: VectorIndexRow {
            space: TextRef::default(),
            model: TextRef::default(),
            dimensions: count(space.dimensions),
            nodes: count(vectors.rows.len()),
            degree: count(DEGREE),
            reserved: 0,
            scale: coded.scale,
        },
        segments: segments(snapshot, space)?,
        chunks: vectors.chunks.iter().map(|chunk| chunk.0).collect(),
        codes: coded.codes,
        errors: coded.errors,
        neighbours: grown.neighbours,
        entries: grown.entries,
        walks,
        chunks_end: chunks_end(snapshot),
    })
}

impl<'v> Vectors<'v> {
    fn of(snapshot: &'v Snapshot, space: &'v Space) -> Result<Self, Fault> {
        let mut found: Vec<(ChunkId, &[u8])> = Vec::new();
        snapshot.for_each_vector(Some(&space.name), |_, chunk, row| found.push((chunk, row)))?;
        found.sort_unstable_by_key(|(chunk, _)| *chunk);
        let (chunks, rows) = found.into_iter().unzip();
        Ok(Self { space, chunks, rows })
    }

    /// Their codes, by a scale that is given or else fits them.
    fn coded(&self, scale: Option<f64>) -> Coded {
        let rows = Rows::of_bytes(self.rows.iter().copied(), self.space.dimensions);
        let scale = scale.unwrap_or_else(|| fitting(&rows).coarse);
        let (codes, errors) = encode_rows(&rows, scale);
        Coded { scale, codes, errors }
    }

    /// Codes by a former index's scale, and which row each of its nodes is, where most are the same.
    fn taken_over(&self, former: &VectorIndex) -> Result<Option<(Coded, Vec<u32>)>, Fault> {
        let row = former.row()?;
        if EntitySlot(row.dimensions).index() != self.space.dimensions {
            return Ok(None);
        }
        let coded = self.coded(Some(row.scale));
        let (now, before) = (CodeRows::new(&coded.codes, self.space.dimensions), former.graph()?.rows);
        let mut kept = 0;
        let same = |(node, chunk): (u32, u32)| {
            let row = self.chunks.binary_search(&ChunkId(chunk)).ok().and_then(|row| u32::try_from(row).ok());
            row.filter(|row| now.row(*row) == before.row(node)).inspect(|_| kept += 1).unwrap_or(NOBODY)
        };
        let rows: Vec<u32> = (0_u32..).zip(former.chunks()?.iter()).map(same).collect();
        Ok((kept * 2 >= self.rows.len() && kept > 0).then_some((coded, rows)))
    }
}

/// The order in which vectors of chunks are linked in a graph: it follows from keys, and is as good as random.
pub(super) fn insertion_order(snapshot: &Snapshot, chunks: &[ChunkId]) -> Result<Vec<u32>, Damage> {
    let mut order = Vec::with_capacity(chunks.len());
    for (row, chunk) in (0_u32..).zip(chunks) {
        let chunk = snapshot.chunk(*chunk)?;
        let key = chunk.document()?.hash_key();
        let high = u64::from_le_bytes(key.0.first_chunk().copied().unwrap_or_default());
        // The finaliser of MurmurHash3 (Appleby 2008).
        let mut mixed = high ^ u64::from(chunk.ordinal());
        for factor in [0xff51_afd7_ed55_8ccd_u64, 0xc4ce_b9fe_1a85_ec53] {
            mixed = (mixed ^ mixed >> 33).wrapping_mul(factor);
        }
        order.push((mixed ^ mixed >> 33, key, chunk.ordinal(), row));
    }
    order.sort_unstable();
    Ok(order.into_iter().map(|(_, _, _, row)| row).collect())
}
