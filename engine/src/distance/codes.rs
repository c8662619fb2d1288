//! Vectors as codes of eight bits with one scale, and how far a product of codes can lie from the similarity.

use crate::distance::fine::{CODE_MAX, FINE_STEP, Fine, Scales, Squares, encode, mixed};
use crate::distance::tile::{Left, Right, TILE_COLUMNS, TILE_ROWS};
use rayon::prelude::*;

/// The codes of a matrix.
///
/// A component `x` has the code `round(x / scale)`, at most 127 in magnitude. With `x̂ = scale · code` and
/// `e = x − x̂`, the inner products of two rows differ by
///
/// `|x·y − x̂·ŷ| = |e·y + x̂·f| ≤ ‖e‖ ‖y‖ + (‖x‖ + ‖e‖) ‖f‖ ≤ ‖e‖ · reach + ‖f‖ · reach`,
///
/// where `f` is the error of `y` and `reach` bounds `‖z‖ + ‖error of z‖` of every row `z` (Cauchy–Schwarz).
///
/// What a code leaves has a code of its own, `round((x − x̂) / (scale / 254))`. With the rests `r` and `s` that these stand
/// for, and `g` and `h`, what they leave of `x` and `y`,
///
/// `|x·y − (x̂·ŷ + x̂·s + r·ŷ)| = |r·s + g·y + (x̂ + r)·h| ≤ (‖r‖² + ‖s‖²) / 2 + ‖g‖ · reach + ‖h‖ · reach`.
///
/// What the [similarity](crate::distance::dot) rounds is below [`SLACK`] · reach² and counts as an error of both rows.
pub struct Codes {
    rows: usize,
    steps: usize,
    scale: f64,
    /// One divided by what a product of one is; what it is rounded by, the slack of errors covers.
    per_unit: f64,
    reach: f64,
    /// For each row how far it moves similarities from products, in units of a product, and from estimates, in units of an
    /// estimate; rounded up.
    errors: Vec<(i32, i64)>,
    /// Of each panel, step by step, four codes of every column.
    right: Aligned<i8>,
    bias: Vec<[i32; TILE_COLUMNS]>,
    fine: FineRows,
}

/// The left sides of tiles.
pub struct Lefts {
    steps: usize,
    packed: Vec<[Left; TILE_ROWS]>,
}

impl Lefts {
    /// That of the tile with this number.
    pub fn tile(&self, tile: usize) -> &[[Left; TILE_ROWS]] {
        self.packed.get(tile * self.steps..(tile + 1) * self.steps).unwrap_or_default()
    }
}

/// What [`Fine`] shows.
struct FineRows {
    codes: Aligned<u8>,
    rests: Aligned<i8>,
    bias: Vec<i32>,
    width: usize,
}

/// Bytes that begin where a line of the cache does, so that no vector lies in two.
struct Aligned<T> {
    room: Vec<T>,
    start: usize,
    len: usize,
}

/// Bytes of a line of the cache.
const LINE: usize = 64;

impl<T: Copy> Aligned<T> {
    fn filled(value: T, len: usize) -> Self {
        let room = vec![value; len + LINE];
        let start = room.as_ptr().align_offset(LINE).min(LINE);
        Self { room, start, len }
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

/// The share of `‖x‖ ‖y‖` that the rounding of a similarity and of the figures here stays below, several times over:
/// the one rounding to f32 is 2⁻²⁴.
const SLACK: f64 = 1e-6;

/// Steps of the finer scale in one of the other: a rest, at most half a step, fits a code.
const REST_STEPS: f64 = 2.0 * CODE_MAX;

/// The same as a whole number.
const REST_STEPS_WHOLE: i64 = 254;

/// What no product of codes reaches: with 4096 dimensions they stay below a fourth of it.
pub const NEVER: i32 = 1 << 28;

/// Limits less errors of two rows stay far from where numbers of 32 bits end; and an error as large lets every product count.
const ERROR_MAX: i32 = NEVER / 2;

/// What no estimate reaches.
pub const FINE_NEVER: i64 = 1 << 48;

/// Bytes of a panel's step.
const STEP: usize = 4 * TILE_COLUMNS;

/// Rows that the scale is chosen by.
const SCALE_ROWS: usize = 512;

/// Scales tried, each less than the one before it by a twelfth root of two.
const SCALE_STEPS: u32 = 24;

impl Codes {
    /// Codes of the listed rows of a row-major matrix of finite components, in the order of the list; a row that is not
    /// there counts as zero. Costs one pass over them, on the current rayon pool.
    pub fn new(matrix: &[f32], dimensions: usize, listed: &[u32]) -> Self {
        let rows = listed.len();
        let vector = |row: u32| matrix.chunks_exact(dimensions.max(1)).nth(row as usize).unwrap_or_default();
        let steps = dimensions.div_ceil(4);
        let scales = fitting(matrix, dimensions);
        let scale = scales.coarse;
        let width = dimensions.next_multiple_of(FINE_STEP);
        let (codes, rests) = (Aligned::filled(128, rows * width), Aligned::filled(0, rows * width));
        let mut fine = FineRows { codes, rests, bias: vec![0; rows], width };
        let places = fine.codes.par_chunks_mut(width.max(1)).zip(fine.rests.par_chunks_mut(width.max(1)));
        let lines = places.zip(&mut fine.bias).zip(listed);
        let measured: Vec<Lengths> = lines
            .map(|(((codes, rests), bias), row)| {
                let row = vector(*row);
                let squares = encode(row, scales, &mut codes[..row.len()], &mut rests[..row.len()]);
                *bias = 128 * rests.iter().map(|rest| i32::from(*rest)).sum::<i32>();
                Lengths::of(squares)
            })
            .collect();
        let reach = measured.iter().map(|lengths| lengths.whole + lengths.left).fold(0.0, f64::max) * (1.0 + SLACK);
        let errors = measured.iter().map(|lengths| lengths.errors(reach, scale * scale)).collect();
        let row =
            |row: usize| fine.codes.as_chunks::<4>().0.chunks_exact((width / 4).max(1)).nth(row).unwrap_or_default();
        let panels = rows.div_ceil(TILE_COLUMNS);
        let (mut right, mut bias) = (Aligned::filled(0, panels * steps * STEP), vec![[0; TILE_COLUMNS]; panels]);
        right.par_chunks_mut((steps * STEP).max(1)).zip(&mut bias).enumerate().for_each(|(panel, (packed, bias))| {
            let packed = packed.as_chunks_mut::<4>().0.as_chunks_mut::<TILE_COLUMNS>().0;
            for at in 0..TILE_COLUMNS {
                for (packed, codes) in packed.iter_mut().zip(row(panel * TILE_COLUMNS + at)) {
                    packed[at] = codes.map(|code| (code ^ 128).cast_signed());
                    bias[at] += 128 * packed[at].iter().map(|code| i32::from(*code)).sum::<i32>();
                }
            }
        });
        Self { rows, steps, scale, per_unit: 1.0 / (scale * scale), reach, errors, right, bias, fine }
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The left sides of tiles of listed rows.
    pub fn lefts(&self, listed: &[u32]) -> Lefts {
        let width = self.fine.width / 4;
        let row = |row: u32| self.fine.codes.as_chunks::<4>().0.chunks_exact(width.max(1)).nth(row as usize);
        let mut packed = vec![[[128; 4]; TILE_ROWS]; listed.len().div_ceil(TILE_ROWS) * self.steps];
        packed.par_chunks_mut(self.steps.max(1)).zip(listed.par_chunks(TILE_ROWS)).for_each(|(packed, listed)| {
            for (at, number) in listed.iter().enumerate() {
                for (packed, codes) in packed.iter_mut().zip(row(*number).unwrap_or_default()) {
                    packed[at] = *codes;
                }
            }
        });
        Lefts { steps: self.steps, packed }
    }

    /// The right side of the tile with this number: the rows from `panel · TILE_COLUMNS` on, and their bias.
    pub fn right(&self, panel: usize) -> (&[[Right; TILE_COLUMNS]], &[i32; TILE_COLUMNS]) {
        let bytes = self.right.get(panel * self.steps * STEP..(panel + 1) * self.steps * STEP).unwrap_or_default();
        (bytes.as_chunks::<4>().0.as_chunks().0, self.bias.get(panel).unwrap_or(&[0; TILE_COLUMNS]))
    }

    /// How far a row moves similarities from products of its codes, rounded up to units of such a product.
    pub fn error(&self, row: usize) -> i32 {
        self.errors.get(row).map_or(0, |error| error.0)
    }

    /// Pairs with a higher product have a higher similarity; the errors of both rows are to be added.
    pub fn certainly_above(&self, similarity: f32) -> i32 {
        whole(f64::from(similarity) * self.per_unit).saturating_add(1).clamp(-NEVER, NEVER)
    }

    /// Pairs with this similarity or a higher one have a higher product; the errors of both rows are to be subtracted.
    pub fn perhaps_at_least(&self, similarity: f32) -> i32 {
        whole(f64::from(similarity) * self.per_unit).saturating_sub(2).clamp(-NEVER, NEVER)
    }

    /// The similarities of a row and listed ones, of which the products of codes are given, as the finer codes estimate them:
    /// in units of [`Codes::fine_unit`].
    pub fn narrow(&self, row: usize, listed: &[u32], products: &[i32], scratch: &mut Vec<i32>, out: &mut Vec<i64>) {
        let FineRows { codes, rests, bias, width } = &self.fine;
        mixed(Fine { codes, rests, bias, width: *width }, row, listed, scratch);
        out.clear();
        let estimates = products.iter().zip(scratch);
        out.extend(estimates.map(|(product, mixed)| i64::from(*product) * REST_STEPS_WHOLE + i64::from(*mixed)));
    }

    /// How far a row moves similarities from these estimates, rounded up.
    pub fn fine_error(&self, row: usize) -> i64 {
        self.errors.get(row).map_or(0, |error| error.1)
    }

    /// What an estimate of one is as a similarity.
    pub fn fine_unit(&self) -> f64 {
        self.unit() / REST_STEPS
    }

    /// An estimate that is not above a similarity, and by less than two units below it.
    pub fn fine_floor(&self, similarity: f32) -> i64 {
        long(f64::from(similarity) * self.per_unit * REST_STEPS).saturating_sub(1).clamp(-FINE_NEVER, FINE_NEVER)
    }

    /// What an estimate says.
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "an estimate")]
    pub fn estimated(&self, estimate: i64) -> f32 {
        (estimate as f64 * self.fine_unit()) as f32
    }

    /// How far from an estimate a similarity may lie with an error of so many units.
    #[expect(clippy::cast_precision_loss, reason = "rounded up by the last factor")]
    pub fn reach_of(&self, error: i64) -> f64 {
        error as f64 * self.fine_unit() * (1.0 + SLACK)
    }

    /// How far an estimate lies from a similarity at most, for all pairs but those of few rows, in units of
    /// [`Codes::fine_unit`]: where it may lie further away, the errors of the pair's rows say so.
    pub fn usual_error(&self) -> i64 {
        let mut errors: Vec<i64> = (0..self.rows).map(|row| self.fine_error(row)).collect();
        errors.sort_unstable();
        2 * errors.get(errors.len() * 19 / 20).copied().unwrap_or_default()
    }

    /// No product is larger in magnitude.
    pub fn product_max(&self) -> i32 {
        whole((self.reach * self.reach / self.unit()).ceil())
    }

    /// What a product of one is as a similarity.
    pub fn unit(&self) -> f64 {
        self.scale * self.scale
    }
}

/// The scale under which the errors of some rows are least: rounding grows with it, cutting off shrinks.
fn fitting(matrix: &[f32], dimensions: usize) -> Scales {
    let rows = matrix.len().checked_div(dimensions).unwrap_or(0);
    let step = rows.div_ceil(SCALE_ROWS).max(1);
    let sample = || matrix.chunks_exact(dimensions.max(1)).step_by(step);
    let largest = sample().flatten().map(|x| f64::from(x.abs())).fold(0.0, f64::max);
    let full = Scales::new(if largest > 0.0 { largest / CODE_MAX } else { 1.0 }, REST_STEPS);
    let (mut codes, mut rests) = (vec![0; dimensions], vec![0; dimensions]);
    #[expect(clippy::cast_precision_loss, reason = "a few rows")]
    let mut total = |scales: Scales| {
        let left: Vec<f64> = sample().map(|row| encode(row, scales, &mut codes, &mut rests)[1].sqrt()).collect();
        // A row counts by its own error, and a panel of columns by its highest.
        let highest = left.chunks(TILE_COLUMNS).map(|panel| panel.iter().fold(0.0, |a: f64, b| a.max(*b)));
        let panels = left.len() as f64 / left.len().div_ceil(TILE_COLUMNS).max(1) as f64;
        left.iter().sum::<f64>() + highest.sum::<f64>() * panels
    };
    let (mut best, mut least) = (full, total(full));
    for step in 1..SCALE_STEPS {
        let candidate = Scales::new(full.coarse * libm::exp2(-f64::from(step) / 12.0), REST_STEPS);
        let error = total(candidate);
        if error < least {
            (best, least) = (candidate, error);
        }
    }
    best
}

/// The lengths of a row, of what its codes leave, of the rests, and of what these leave.
#[derive(Clone, Copy, Debug, Default)]
struct Lengths {
    whole: f64,
    left: f64,
    rest: f64,
    last: f64,
}

impl Lengths {
    fn of(squares: Squares) -> Self {
        let [whole, left, rest, last] = squares.map(f64::sqrt);
        Self { whole, left, rest, last }
    }

    fn errors(&self, reach: f64, unit: f64) -> (i32, i64) {
        let slack = SLACK * reach * reach;
        let fine = self.rest * self.rest / 2.0 + self.last * reach;
        let [error, fine] = [self.left * reach, fine].map(|error| error * (1.0 + SLACK) + slack);
        (whole((error / unit).ceil()).min(ERROR_MAX), long((fine / unit * REST_STEPS).ceil()).min(FINE_NEVER))
    }
}

/// A whole number as it fits.
#[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
fn long(value: f64) -> i64 {
    value as i64
}

/// A whole number as it fits.
#[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
fn whole(value: f64) -> i32 {
    value as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::tile::{Products, products};
    use crate::distance::{dot, normalise};

    fn vectors(rows: usize, dimensions: usize) -> Vec<f32> {
        let mut seed = 9_u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from(u16::try_from(seed >> 16).unwrap_or(0)) / 65_536.0 - 0.5
        };
        let mut matrix: Vec<f32> = (0..rows * dimensions).map(|_| next()).collect();
        for (row, vector) in matrix.chunks_mut(dimensions).enumerate() {
            // Some with one large component, which codes cut off; some that are nearly one direction.
            if row % 7 == 3 {
                vector[row % dimensions] = 40.0;
            }
            if row % 5 == 1 {
                for x in vector.iter_mut() {
                    *x = 0.3 + *x / 50.0;
                }
            }
            normalise(vector).unwrap();
        }
        matrix
    }

    #[test]
    fn similarities_lie_where_the_codes_say() {
        for (rows, dimensions) in [(70, 3), (70, 16), (90, 61), (90, 384), (33, 1000)] {
            let matrix = vectors(rows, dimensions);
            let listed: Vec<u32> = (0..u32::try_from(rows).unwrap()).rev().collect();
            let codes = Codes::new(&matrix, dimensions, &listed);
            let vector = |row: usize| &matrix[listed[row] as usize * dimensions..][..dimensions];
            let lefts = codes.lefts(&(0..u32::try_from(rows).unwrap()).collect::<Vec<_>>());
            let mut tightest = 0;
            for left in 0..rows {
                let (mut columns, mut coarse) = (Vec::new(), Vec::new());
                for panel in 0..rows.div_ceil(TILE_COLUMNS) {
                    let mut out = Products::default();
                    let (right, bias) = codes.right(panel);
                    products(lefts.tile(left / TILE_ROWS), right, bias, &mut out);
                    for (column, product) in (panel * TILE_COLUMNS..rows).zip(out.0[left % TILE_ROWS]) {
                        let similarity = dot(vector(left), vector(column));
                        let errors = codes.error(left) + codes.error(column);
                        assert!(product <= codes.certainly_above(similarity) + errors);
                        assert!(product > codes.perhaps_at_least(similarity) - errors);
                        assert!(product.abs() <= codes.product_max());
                        columns.push(u32::try_from(column).unwrap());
                        coarse.push(product);
                    }
                }
                let mut estimates = Vec::new();
                codes.narrow(left, &columns, &coarse, &mut Vec::new(), &mut estimates);
                for (column, estimate) in columns.iter().zip(&estimates) {
                    let similarity = dot(vector(left), vector(*column as usize));
                    let error = codes.fine_error(left) + codes.fine_error(*column as usize);
                    assert!(estimate - error <= codes.fine_floor(similarity) + 2);
                    assert!(estimate + error >= codes.fine_floor(similarity));
                    let over = codes.fine_floor(similarity) - (estimate - error);
                    tightest = tightest.max(1000 * over / (2 * error));
                }
            }
            // A bound that is never nearly met would hide a mistake in the products.
            assert!(tightest > 500);
            // Bounds as wide as those of the coarser codes would hide a mistake.
            let usual = codes.reach_of(codes.usual_error());
            let coarse = f64::from(codes.error(0)) * codes.unit();
            assert!(usual < coarse / 2.0, "{usual} {coarse}");
        }
    }

    #[test]
    fn vectors_of_any_size_are_safe() {
        for (matrix, dimensions) in [(vec![], 3), (vec![0.0; 6], 3), (vec![1e30; 6], 3), (vec![1e-40; 6], 2)] {
            let codes = Codes::new(&matrix, dimensions, &[0, 1, 7]);
            assert!(codes.error(0) >= 0 && codes.product_max() >= 0);
            assert_eq!(codes.right(9).0.len(), 0);
            for similarity in [f32::NEG_INFINITY, f32::MIN, 0.0, f32::MAX, f32::INFINITY, f32::NAN] {
                assert!(codes.perhaps_at_least(similarity) <= codes.certainly_above(similarity));
                assert!(codes.fine_floor(similarity).abs() <= FINE_NEVER);
            }
        }
    }
}
