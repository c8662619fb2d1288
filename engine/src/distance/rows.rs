//! The rows of a matrix, wherever they lie.

use hedgerow_format::element::{Element, scale_and_codes};
use std::marker::PhantomData;
use std::ops::Range;
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
    Apart(Element, Vec<&'r [u8]>),
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

/// A row of one type, for the kernels.
#[derive(Clone, Copy)]
pub struct Row<'r, C> {
    /// Its components.
    pub components: &'r [C],
    /// What a code of one stands for, where they are codes.
    pub scale: f32,
}

/// A type of components that rows of files have.
pub trait Stored: Sized {
    /// A row as it lies in a file.
    fn row(bytes: &[u8]) -> Row<'_, Self>;
}

/// Rows of one type, for the kernels.
pub trait Numbered<C> {
    /// A row, if it is there: all are as long.
    fn row(&self, number: u32) -> Option<Row<'_, C>>;
    /// Some row, to stand in for one that is not there; empty where there is none.
    fn any(&self) -> Row<'_, C>;
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
pub struct Apart<'a, C> {
    rows: &'a [&'a [u8]],
    dimensions: usize,
    components: PhantomData<C>,
}

/// What the kernels read.
pub enum Typed<'t> {
    /// Numbers.
    Together(Together<'t>),
    /// Little-endian numbers.
    F32(Apart<'t, [u8; 4]>),
    /// Halves.
    F16(Apart<'t, [u8; 2]>),
    /// Codes.
    I8(Apart<'t, u8>),
}

impl<'r> Rows<'r> {
    /// The rows of a row-major matrix; what is left over at its end is no row.
    pub fn of_matrix(components: &'r [f32], dimensions: usize) -> Self {
        Self { dimensions, lie: Lie::Together(components) }
    }

    /// Rows as they lie in files. One that has not as many components is not there.
    pub fn of_files(rows: impl IntoIterator<Item = &'r [u8]>, element: Element, dimensions: usize) -> Self {
        Self { dimensions, lie: Lie::Apart(element, rows.into_iter().collect()) }
    }

    /// These and, behind them, more rows of files; where these lie in a matrix, only these.
    #[must_use]
    pub fn and(&self, more: impl IntoIterator<Item = &'r [u8]>) -> Self {
        let mut all = self.clone();
        if let Lie::Apart(_, rows) = &mut all.lie {
            rows.extend(more);
        }
        all
    }

    /// How many.
    pub fn count(&self) -> usize {
        match &self.lie {
            Lie::Together(components) => components.len().checked_div(self.dimensions).unwrap_or(0),
            Lie::Apart(_, rows) => rows.len(),
        }
    }

    /// Components of each.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The components of a row, which are put into `room` where they don't lie as numbers; none of a row that is not there.
    pub fn read<'o>(&'o self, row: u32, room: &'o mut Vec<f32>) -> &'o [f32] {
        match &self.lie {
            Lie::Together(components) => {
                Together { components, dimensions: self.dimensions }.components(row).unwrap_or_default()
            }
            Lie::Apart(element, rows) => {
                room.clear();
                let row = rows.get(row as usize).filter(|row| row.len() == element.row_bytes(self.dimensions));
                element.read(row.copied().unwrap_or_default(), room);
                room
            }
        }
    }

    /// The rows as the kernels read them.
    pub fn typed(&self) -> Typed<'_> {
        let dimensions = self.dimensions;
        match &self.lie {
            Lie::Together(components) => Typed::Together(Together { components, dimensions }),
            Lie::Apart(Element::F32, rows) => Typed::F32(Apart { rows, dimensions, components: PhantomData }),
            Lie::Apart(Element::F16, rows) => Typed::F16(Apart { rows, dimensions, components: PhantomData }),
            Lie::Apart(Element::I8, rows) => Typed::I8(Apart { rows, dimensions, components: PhantomData }),
        }
    }
}

#[expect(
    clippy::inline_always,
    reason = "the kernels must be compiled for the instructions of the function around them"
)]
impl<'r, C> Row<'r, C> {
    /// Components that no scale is about.
    #[inline(always)]
    pub fn of(components: &'r [C]) -> Self {
        Self { components, scale: 1.0 }
    }

    /// Some of its components; none where the range is not one of it.
    #[inline(always)]
    pub fn slice(self, range: Range<usize>) -> Self {
        Self { components: self.components.get(range).unwrap_or_default(), ..self }
    }
}

#[expect(clippy::inline_always, reason = "as above")]
impl Stored for [u8; 4] {
    #[inline(always)]
    fn row(bytes: &[u8]) -> Row<'_, Self> {
        Row::of(bytes.as_chunks().0)
    }
}

#[expect(clippy::inline_always, reason = "as above")]
impl Stored for [u8; 2] {
    #[inline(always)]
    fn row(bytes: &[u8]) -> Row<'_, Self> {
        Row::of(bytes.as_chunks().0)
    }
}

#[expect(clippy::inline_always, reason = "as above")]
impl Stored for u8 {
    #[inline(always)]
    fn row(bytes: &[u8]) -> Row<'_, Self> {
        let (scale, components) = scale_and_codes(bytes);
        Row { components, scale }
    }
}

impl<'t> Together<'t> {
    #[expect(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    fn components(&self, number: u32) -> Option<&'t [f32]> {
        let start = (number as usize).saturating_mul(self.dimensions);
        self.components.get(start..start.saturating_add(self.dimensions))
    }
}

#[expect(clippy::inline_always, reason = "as above")]
impl Numbered<f32> for Together<'_> {
    #[inline(always)]
    fn row(&self, number: u32) -> Option<Row<'_, f32>> {
        self.components(number).map(Row::of)
    }

    fn any(&self) -> Row<'_, f32> {
        Row::of(self.components.get(..self.dimensions).unwrap_or_default())
    }
}

#[expect(clippy::inline_always, reason = "as above")]
impl<C: Stored> Numbered<C> for Apart<'_, C> {
    #[inline(always)]
    fn row(&self, number: u32) -> Option<Row<'_, C>> {
        let row = C::row(self.rows.get(number as usize)?);
        if row.components.len() == self.dimensions { Some(row) } else { None }
    }

    fn any(&self) -> Row<'_, C> {
        let rows = self.rows.iter().map(|row| C::row(row));
        rows.into_iter().find(|row| row.components.len() == self.dimensions).unwrap_or(Row::of(&[]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::{dot, dots, pair_dots};
    use hedgerow_format::element::{Metric, SpaceKind};

    #[test]
    fn rows_of_files_are_as_similar_as_those_of_a_matrix() {
        for (dimensions, kind) in [1, 7, 16, 61].into_iter().flat_map(|n| kinds().map(move |kind| (n, kind))) {
            let given: Vec<f32> =
                (0..5 * dimensions).map(|at| f32::from(u8::try_from(at % 251).unwrap()).sin()).collect();
            let (mut matrix, mut bytes) = (Vec::new(), Vec::new());
            for row in given.chunks(dimensions) {
                let mut rounded = row.to_vec();
                kind.round(&mut rounded);
                kind.write(row, &mut bytes);
                matrix.extend(rounded);
            }
            let short = [0; 2];
            let placed = bytes.chunks(kind.element.row_bytes(dimensions)).chain([short.as_slice()]);
            let short_is_one = kind.element.row_bytes(dimensions) == short.len();
            let apart = Rows::of_files(placed.take(if short_is_one { 5 } else { 6 }), kind.element, dimensions);
            let together = Rows::of_matrix(&matrix, dimensions);
            assert_eq!(together.count(), 5);
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

    fn kinds() -> impl Iterator<Item = SpaceKind> {
        Element::ALL.into_iter().map(|element| SpaceKind { element, metric: Metric::L2 })
    }
}
