//! The index of a vector space, in step with its vectors: made anew, or grown from the one that there is.

use crate::distance::codes::fitting;
use crate::distance::fine::Scales;
use crate::distance::near::{CodeRows, encode_row, width_of};
use crate::distance::rows::Rows;
use crate::error::Damage;
use crate::index::control::Control;
use crate::index::vector::{DEGREE, Former, Graph, Growth, NOBODY, calibrate, grow};
use crate::project::{Fault, chunks_end};
use crate::projection::{VectorIndex, VectorIndexData};
use crate::snapshot::{Snapshot, Space};
use hedgerow_format::projection::VectorIndexRow;
use hedgerow_format::{ChunkId, EntitySlot, TextRef};
use rayon::prelude::*;

/// What is to be indexed: the vectors of a space, ascending by chunk.
struct Vectors<'v> {
    space: &'v Space,
    chunks: Vec<u32>,
    rows: Vec<&'v [u8]>,
}

/// Codes of vectors.
struct Coded {
    scale: f64,
    codes: Vec<u8>,
    errors: Vec<f32>,
}

/// Whether the index of a space is about all of its vectors as they are.
pub(super) fn is_in_step(snapshot: &Snapshot, space: &Space, index: &VectorIndex) -> Result<bool, Fault> {
    let mut covered = u64::from(index.row()?.nodes) == space.vectors;
    for segment in segments(snapshot, space)? {
        covered = covered && index.covers(segment)?;
    }
    Ok(covered)
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
    let order = vectors.order(snapshot)?;
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
        chunks: vectors.chunks,
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
        let mut found: Vec<(u32, &[u8])> = Vec::new();
        snapshot.for_each_vector(Some(&space.name), |_, chunk, row| found.push((chunk.0, row)))?;
        found.sort_unstable_by_key(|(chunk, _)| *chunk);
        let (chunks, rows) = found.into_iter().unzip();
        Ok(Self { space, chunks, rows })
    }

    /// The order in which they are linked: it follows from keys, and is as good as random.
    fn order(&self, snapshot: &Snapshot) -> Result<Vec<u32>, Fault> {
        let mut order = Vec::with_capacity(self.chunks.len());
        for (row, chunk) in (0_u32..).zip(&self.chunks) {
            let chunk = snapshot.chunk(ChunkId(*chunk))?;
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

    /// Their codes, by a scale that is given or else fits them.
    fn coded(&self, scale: Option<f64>) -> Coded {
        let rows = Rows::of_bytes(self.rows.iter().copied(), self.space.dimensions);
        let scale = scale.unwrap_or_else(|| fitting(&rows).coarse);
        let scales = Scales::new(scale, 1.0);
        let width = width_of(self.space.dimensions).max(1);
        let mut codes = vec![0; self.rows.len() * width];
        let errors = codes.par_chunks_exact_mut(width).zip(0_u32..u32::try_from(self.rows.len()).unwrap_or(u32::MAX));
        let encode = |(room, rests): &mut (Vec<f32>, Vec<i8>), (codes, row): (&mut [u8], u32)| {
            let square = encode_row(rows.read(row, room), scales, codes, rests);
            above(square.sqrt())
        };
        let errors = errors.map_init(Default::default, encode).collect();
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
            let row = self.chunks.binary_search(&chunk).ok().and_then(|row| u32::try_from(row).ok());
            row.filter(|row| now.row(*row) == before.row(node)).inspect(|_| kept += 1).unwrap_or(NOBODY)
        };
        let rows: Vec<u32> = (0_u32..).zip(former.chunks()?.iter()).map(same).collect();
        Ok((kept * 2 >= self.rows.len() && kept > 0).then_some((coded, rows)))
    }
}

/// The number, rounded up.
#[expect(clippy::cast_possible_truncation, reason = "rounded up by the factor")]
fn above(number: f64) -> f32 {
    (number * (1.0 + 1e-6)) as f32
}
