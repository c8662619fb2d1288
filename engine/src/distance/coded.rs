//! Where codes lie: those of columns in panels, those of rows on the left in tiles.

use crate::distance::fine::{FINE_STEP, Fine};
use crate::distance::tile::{Left, Right, TILE_COLUMNS, TILE_ROWS};

/// The codes of rows that follow one another: as right sides of tiles, and to be compared by finer codes.
#[derive(Default)]
pub struct Coded {
    /// The place of the first.
    pub first: usize,
    /// Of each panel, step by step, four codes of every column.
    right: Aligned<i8>,
    bias: Vec<[i32; TILE_COLUMNS]>,
    /// Their finer codes.
    pub fine: FineRows,
}

/// Rows on the left, one after another: the left sides of their tiles, and their finer codes.
pub struct Lefts {
    /// Steps of a tile.
    pub steps: usize,
    /// The tiles, step by step.
    pub packed: Vec<[Left; TILE_ROWS]>,
    /// Places of the rows.
    pub places: Vec<u32>,
    /// Their finer codes, where those of all rows are not in memory.
    pub own: Option<FineRows>,
}

impl Lefts {
    /// The left side of the tile with this number.
    pub fn tile(&self, tile: usize) -> &[[Left; TILE_ROWS]] {
        self.packed.get(tile * self.steps..(tile + 1) * self.steps).unwrap_or_default()
    }
}

/// What [`Fine`] shows.
#[derive(Default)]
pub struct FineRows {
    /// Codes, each plus 128.
    pub codes: Aligned<u8>,
    /// Codes of what they leave.
    pub rests: Aligned<i8>,
    /// For each row 128 times the sum of its rests.
    pub bias: Vec<i32>,
    width: usize,
}

impl FineRows {
    /// For so many rows, all codes zero.
    pub fn zero(&mut self, rows: usize, width: usize) {
        self.codes.fill(128, rows * width);
        self.rests.fill(0, rows * width);
        self.bias.clear();
        self.bias.resize(rows, 0);
        self.width = width;
    }

    /// As [`Fine`], the first being this one.
    pub fn of(&self, first: usize) -> Fine<'_> {
        Fine { codes: &self.codes, rests: &self.rests, bias: &self.bias, width: self.width, first }
    }

    /// The codes of a row, four by four.
    pub fn row(&self, row: usize) -> &[[u8; 4]] {
        self.codes.as_chunks::<4>().0.chunks_exact((self.width / 4).max(1)).nth(row).unwrap_or_default()
    }
}

/// Bytes that begin where a line of the cache does, so that no vector lies in two.
#[derive(Default)]
pub struct Aligned<T> {
    room: Vec<T>,
    start: usize,
    len: usize,
}

/// Bytes of a line of the cache.
const LINE: usize = 64;

impl<T: Copy> Aligned<T> {
    fn fill(&mut self, value: T, len: usize) {
        self.room.clear();
        self.room.resize(len + LINE, value);
        self.start = self.room.as_ptr().align_offset(LINE).min(LINE);
        self.len = len;
    }
}

impl<T> std::ops::Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.room[self.start..self.start + self.len]
    }
}

impl<T> std::ops::DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.room[self.start..self.start + self.len]
    }
}

/// Bytes of a panel's step.
const STEP: usize = 4 * TILE_COLUMNS;

/// A panel of columns that is being encoded.
pub struct Panel<'p> {
    /// Rows of its columns.
    pub listed: &'p [u32],
    /// Their finer codes.
    pub codes: &'p mut [u8],
    /// What these leave.
    pub rests: &'p mut [i8],
    /// The bias of these.
    pub fine_bias: &'p mut [i32],
    /// The right side of the tile.
    pub right: &'p mut [i8],
    /// Its bias.
    pub bias: &'p mut [i32; TILE_COLUMNS],
    /// Where the lengths of the rows go.
    pub measured: &'p mut [Lengths],
}

impl Coded {
    /// Makes room for so many rows, from a place on, and cuts it into panels.
    pub fn panels<'p>(
        &'p mut self,
        (first, listed): (usize, &'p [u32]),
        dimensions: usize,
        measured: &'p mut Vec<Lengths>,
    ) -> impl Iterator<Item = Panel<'p>> {
        let (rows, width, step) = (listed.len(), width_of(dimensions), dimensions.div_ceil(4) * STEP);
        let panels = rows.div_ceil(TILE_COLUMNS);
        self.first = first;
        self.fine.zero(rows, width);
        self.right.fill(0, panels * step);
        self.bias.clear();
        self.bias.resize(panels, [0; TILE_COLUMNS]);
        measured.clear();
        measured.resize(rows, Lengths::default());
        let FineRows { codes, rests, bias: fine_bias, .. } = &mut self.fine;
        let fine = codes.chunks_mut((TILE_COLUMNS * width).max(1)).zip(rests.chunks_mut((TILE_COLUMNS * width).max(1)));
        let fine = fine.zip(fine_bias.chunks_mut(TILE_COLUMNS)).zip(listed.chunks(TILE_COLUMNS));
        let packed = self.right.chunks_mut(step.max(1)).zip(&mut self.bias).zip(measured.chunks_mut(TILE_COLUMNS));
        fine.zip(packed).map(|((((codes, rests), fine_bias), listed), ((right, bias), measured))| Panel {
            listed,
            codes,
            rests,
            fine_bias,
            right,
            bias,
            measured,
        })
    }

    /// The right side of the tile with this number: the rows from `panel · TILE_COLUMNS` on, and their bias.
    pub fn right(&self, panel: usize) -> (&[[Right; TILE_COLUMNS]], &[i32; TILE_COLUMNS]) {
        let panel = panel.wrapping_sub(self.first / TILE_COLUMNS);
        let Some(bias) = self.bias.get(panel) else { return (&[], &[0; TILE_COLUMNS]) };
        let bytes = self.right.chunks_exact((self.right.len() / self.bias.len()).max(1)).nth(panel).unwrap_or_default();
        (bytes.as_chunks::<4>().0.as_chunks().0, bias)
    }
}

/// Bytes of a row of finer codes.
pub fn width_of(dimensions: usize) -> usize {
    dimensions.next_multiple_of(FINE_STEP)
}

/// The lengths of a row, of what its codes leave, of the rests, and of what these leave.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lengths {
    /// Of the row.
    pub whole: f64,
    /// Of what its codes leave.
    pub left: f64,
    /// Of the rests.
    pub rest: f64,
    /// Of what these leave.
    pub last: f64,
}
