//! The rows of a matrix, wherever they lie.

use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of equally many components: those of a matrix in memory, or each where a file has it.
#[derive(Clone, Debug)]
pub struct Rows<'r> {
    dimensions: usize,
    lie: Lie<'r>,
}

#[derive(Clone, Debug)]
enum Lie<'r> {
    Together(&'r [f32]),
    Apart(Vec<&'r [[u8; 4]]>),
}

/// Calls somebody whenever so many bytes of rows were read, who may take them out of memory.
pub struct LetGo<'l> {
    after: u64,
    read: AtomicU64,
    call: Box<dyn Fn() + Sync + 'l>,
}

impl<'l> LetGo<'l> {
    /// After so many bytes.
    pub fn new(after: u64, call: impl Fn() + Sync + 'l) -> Self {
        Self { after, read: AtomicU64::new(0), call: Box::new(call) }
    }

    /// So many bytes more were read.
    pub fn read(&self, bytes: u64) {
        if self.read.fetch_add(bytes, Ordering::Relaxed) + bytes >= self.after {
            self.read.store(0, Ordering::Relaxed);
            (self.call)();
        }
    }
}

/// Rows of one type, for the kernels.
pub trait Numbered<C> {
    /// A row, if it is there: all are as long.
    fn row(&self, number: u32) -> Option<&[C]>;
    /// Some row, to stand in for one that is not there; empty where there is none.
    fn any(&self) -> &[C];
}

/// Rows one after another.
#[derive(Clone, Copy)]
pub struct Together<'t> {
    /// The matrix, row by row.
    pub components: &'t [f32],
    /// Components of a row.
    pub dimensions: usize,
}

/// Rows here and there.
#[derive(Clone, Copy)]
pub struct Apart<'a> {
    rows: &'a [&'a [[u8; 4]]],
    dimensions: usize,
}

/// What the kernels read.
pub enum Typed<'t> {
    /// Numbers.
    Together(Together<'t>),
    /// Little-endian numbers.
    Apart(Apart<'t>),
}

impl<'r> Rows<'r> {
    /// The rows of a row-major matrix; what is left over at its end is no row.
    pub fn of_matrix(components: &'r [f32], dimensions: usize) -> Self {
        Self { dimensions, lie: Lie::Together(components) }
    }

    /// Rows of little-endian f32. One that has not as many is not there.
    pub fn of_bytes(rows: impl IntoIterator<Item = &'r [u8]>, dimensions: usize) -> Self {
        let row = |row: &'r [u8]| row.as_chunks::<4>().0;
        Self { dimensions, lie: Lie::Apart(rows.into_iter().map(row).collect()) }
    }

    /// These and, behind them, rows of little-endian f32; where these lie in a matrix, only these.
    #[must_use]
    pub fn and(&self, more: impl IntoIterator<Item = &'r [u8]>) -> Self {
        let mut all = self.clone();
        if let Lie::Apart(rows) = &mut all.lie {
            rows.extend(more.into_iter().map(|row| row.as_chunks::<4>().0));
        }
        all
    }

    /// How many.
    pub fn count(&self) -> usize {
        match &self.lie {
            Lie::Together(components) => components.len().checked_div(self.dimensions).unwrap_or(0),
            Lie::Apart(rows) => rows.len(),
        }
    }

    /// Components of each.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The components of a row, which are put into `room` where they don't lie as numbers; none of a row that is not there.
    pub fn read<'o>(&'o self, row: u32, room: &'o mut Vec<f32>) -> &'o [f32] {
        match self.typed() {
            Typed::Together(rows) => rows.components(row).unwrap_or_default(),
            Typed::Apart(rows) => {
                room.clear();
                room.extend(rows.row(row).into_iter().flatten().map(|bytes| f32::from_le_bytes(*bytes)));
                room
            }
        }
    }

    /// The rows as the kernels read them.
    pub fn typed(&self) -> Typed<'_> {
        let dimensions = self.dimensions;
        match &self.lie {
            Lie::Together(components) => Typed::Together(Together { components, dimensions }),
            Lie::Apart(rows) => Typed::Apart(Apart { rows, dimensions }),
        }
    }
}

impl<'t> Together<'t> {
    #[expect(
        clippy::inline_always,
        reason = "the kernels must be compiled for the instructions of the function around them"
    )]
    #[inline(always)]
    fn components(&self, number: u32) -> Option<&'t [f32]> {
        let start = (number as usize).saturating_mul(self.dimensions);
        self.components.get(start..start.saturating_add(self.dimensions))
    }
}

#[expect(clippy::inline_always, reason = "as above")]
impl Numbered<f32> for Together<'_> {
    #[inline(always)]
    fn row(&self, number: u32) -> Option<&[f32]> {
        self.components(number)
    }

    fn any(&self) -> &[f32] {
        self.components.get(..self.dimensions).unwrap_or_default()
    }
}

#[expect(clippy::inline_always, reason = "as above")]
impl Numbered<[u8; 4]> for Apart<'_> {
    #[inline(always)]
    fn row(&self, number: u32) -> Option<&[[u8; 4]]> {
        match self.rows.get(number as usize) {
            Some(row) if row.len() == self.dimensions => Some(row),
            _ => None,
        }
    }

    fn any(&self) -> &[[u8; 4]] {
        self.rows.iter().find(|row| row.len() == self.dimensions).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::{dot, dots, pair_dots};

    #[test]
    fn rows_of_files_are_as_similar_as_those_of_a_matrix() {
        for dimensions in [1, 7, 16, 61] {
            let matrix: Vec<f32> =
                (0..5 * dimensions).map(|at| f32::from(u8::try_from(at % 251).unwrap()).sin()).collect();
            let bytes: Vec<u8> = matrix.iter().flat_map(|x| x.to_le_bytes()).collect();
            let short = [0; 2];
            let placed = bytes.chunks(dimensions * 4).chain([short.as_slice()]);
            let (together, apart) = (Rows::of_matrix(&matrix, dimensions), Rows::of_bytes(placed, dimensions));
            assert_eq!((together.count(), apart.count()), (5, 6));
            let pairs: Vec<[u32; 2]> = (0..7).flat_map(|a| (0..7).map(move |b| [a, b])).collect();
            let row = |row: u32| matrix.get(row as usize * dimensions..(row as usize + 1) * dimensions);
            let expected: Vec<f32> =
                pairs.iter().map(|[a, b]| row(*a).zip(row(*b)).map_or(0.0, |(a, b)| dot(a, b))).collect();
            for rows in [together, apart] {
                let mut out = Vec::new();
                pair_dots(&rows, &pairs, &mut out);
                assert_eq!(out, expected);
                let mut room = Vec::new();
                dots(rows.read(3, &mut room), &rows, &[0, 1, 2, 3, 4, 5, 6], &mut out);
                assert_eq!(out, expected[21..28]);
            }
        }
    }
}
