//! Vectors as codes of eight bits with one scale, and how far a product of codes can lie from the similarity.

pub use crate::distance::coded::{Coded, Lefts};
use crate::distance::coded::{FineRows, Lengths, Panel, width_of};
use crate::distance::fine::{CODE_MAX, Scales, Squares, encode, mixed};
use crate::distance::rows::{LetGo, Rows};
use crate::distance::tile::{Left, TILE_COLUMNS, TILE_ROWS};
use rayon::prelude::*;
use std::ops::Range;

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
pub struct Codes<'r> {
    rows: &'r Rows<'r>,
    /// Which of the rows.
    listed: Vec<u32>,
    scales: Scales,
    /// One divided by what a product of one is; what it is rounded by, the slack of errors covers.
    per_unit: f64,
    reach: f64,
    /// For each row how far it moves similarities from products, in units of a product, and from estimates, in units of an
    /// estimate; rounded up.
    errors: Vec<(i32, i64)>,
    /// The codes of all rows; none where they are made again whenever they are needed.
    held: Option<Coded>,
    /// Who is told of the vectors that are read.
    let_go: Option<LetGo<'r>>,
}

/// Bytes of codes for each component, and for what fills dimensions up to a multiple of 64.
pub const CODED_BYTES: u64 = 3;

/// Whether codes stay in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// Those of all rows do.
    All,
    /// Those of a row are made again whenever it is compared with a stripe of others.
    None,
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

/// Rows that the scale is chosen by.
const SCALE_ROWS: usize = 512;

/// Scales tried, each less than the one before it by a twelfth root of two.
const SCALE_STEPS: u32 = 24;

impl<'r> Codes<'r> {
    /// Codes of the listed rows, of finite components, in the order of the list; a row that is not there counts as zero. Costs
    /// one pass over them, on the current rayon pool. Whenever vectors are read, `let_go` is told.
    pub fn new(rows: &'r Rows<'r>, listed: Vec<u32>, keeping: Keeping, let_go: Option<LetGo<'r>>) -> Self {
        let scales = fitting(rows);
        let mut codes =
            Self { rows, listed, scales, per_unit: 0.0, reach: 0.0, errors: Vec::new(), held: None, let_go };
        let mut measured = Vec::new();
        match keeping {
            Keeping::All => {
                let mut held = Coded::default();
                let panels: Vec<Panel<'_>> =
                    held.panels((0, &codes.listed), rows.dimensions(), &mut measured).collect();
                panels.into_par_iter().for_each_init(Vec::new, |room, panel| codes.encode(panel, room));
                codes.held = Some(held);
            }
            Keeping::None => {
                let chunks = codes.listed.par_chunks(TILE_COLUMNS);
                let of_chunk = |(room, coded): &mut (Vec<f32>, Coded), listed: &[u32]| {
                    let mut measured = Vec::new();
                    for panel in coded.panels((0, listed), rows.dimensions(), &mut measured) {
                        codes.encode(panel, room);
                    }
                    measured
                };
                measured = chunks.map_init(Default::default, of_chunk).collect::<Vec<_>>().concat();
            }
        }
        let unit = codes.unit();
        let reach = measured.iter().map(|lengths| lengths.whole + lengths.left).fold(0.0, f64::max) * (1.0 + SLACK);
        let errors = measured.iter().map(|lengths| lengths.errors(reach, unit)).collect();
        Self { per_unit: 1.0 / unit, reach, errors, ..codes }
    }

    /// Fills a panel.
    fn encode(&self, panel: Panel<'_>, room: &mut Vec<f32>) {
        let width = width_of(self.rows.dimensions()).max(1);
        let Panel { listed, codes, rests, fine_bias, right, bias, measured } = panel;
        self.were_read(listed.len());
        let packed = right.as_chunks_mut::<4>().0.as_chunks_mut::<TILE_COLUMNS>().0;
        let lines = codes.chunks_mut(width).zip(rests.chunks_mut(width)).zip(fine_bias).zip(measured);
        for (at, ((((codes, rests), fine_bias), measured), row)) in lines.zip(listed).enumerate() {
            *measured = self.encode_row(*row, codes, rests, fine_bias, room);
            for (packed, codes) in packed.iter_mut().zip(codes.as_chunks::<4>().0) {
                packed[at] = codes.map(|code| (code ^ 128).cast_signed());
                bias[at] += 128 * packed[at].iter().map(|code| i32::from(*code)).sum::<i32>();
            }
        }
    }

    /// So many vectors were read, or will be.
    pub fn were_read(&self, rows: usize) {
        if let Some(let_go) = &self.let_go {
            let_go.read((rows * self.rows.dimensions() * 4) as u64);
        }
    }

    /// Keeps codes no longer: from now on they are made whenever they are needed.
    pub fn forget(&mut self) {
        self.held = None;
    }

    fn encode_row(&self, row: u32, codes: &mut [u8], rests: &mut [i8], bias: &mut i32, room: &mut Vec<f32>) -> Lengths {
        let row = self.rows.read(row, room);
        let squares = encode(row, self.scales, &mut codes[..row.len()], &mut rests[..row.len()]);
        *bias = 128 * rests.iter().map(|rest| i32::from(*rest)).sum::<i32>();
        Lengths::of(squares)
    }

    /// The rows of which these are the codes.
    pub fn vectors(&self) -> &'r Rows<'r> {
        self.rows
    }

    /// Which of them has each place.
    pub fn order(&self) -> &[u32] {
        &self.listed
    }

    /// Places.
    pub fn rows(&self) -> usize {
        self.listed.len()
    }

    /// The codes of the places of a range, which begins with a panel, and perhaps of others; put into `room` where they are not
    /// in memory.
    pub fn columns<'c>(&'c self, places: Range<usize>, room: &'c mut Coded) -> &'c Coded {
        let Some(held) = &self.held else {
            let listed = self.listed.get(places.clone()).unwrap_or_default();
            let (mut measured, mut components) = (Vec::new(), Vec::new());
            for panel in room.panels((places.start, listed), self.rows.dimensions(), &mut measured) {
                self.encode(panel, &mut components);
            }
            return room;
        };
        // Those of pairs that codes can't decide.
        self.were_read(places.len());
        held
    }

    /// The left sides of tiles of some places.
    pub fn lefts(&self, places: Vec<u32>) -> Lefts {
        let steps = self.rows.dimensions().div_ceil(4);
        let mut packed = vec![[[128; 4]; TILE_ROWS]; places.len().div_ceil(TILE_ROWS) * steps];
        let tiles = packed.par_chunks_mut(steps.max(1)).zip(places.par_chunks(TILE_ROWS));
        let pack = |packed: &mut [[Left; TILE_ROWS]], at: usize, codes: &[Left]| {
            for (packed, codes) in packed.iter_mut().zip(codes) {
                packed[at] = *codes;
            }
        };
        if let Some(held) = &self.held {
            tiles.for_each(|(packed, places)| {
                (0..).zip(places).for_each(|(at, place)| pack(packed, at, held.fine.row(*place as usize)));
            });
            return Lefts { steps, packed, places, own: None };
        }
        let width = width_of(self.rows.dimensions());
        let mut own = FineRows::default();
        own.zero(places.len(), width);
        let tile = (TILE_ROWS * width).max(1);
        let fine = own.codes.par_chunks_mut(tile).zip(own.rests.par_chunks_mut(tile));
        let fine = fine.zip(own.bias.par_chunks_mut(TILE_ROWS));
        tiles.zip(fine).for_each_init(Vec::new, |room, ((packed, places), ((codes, rests), bias))| {
            self.were_read(places.len());
            let lines = codes.chunks_mut(width.max(1)).zip(rests.chunks_mut(width.max(1))).zip(bias);
            for (at, (((codes, rests), bias), place)) in lines.zip(places).enumerate() {
                let row = self.listed.get(*place as usize).copied().unwrap_or(u32::MAX);
                self.encode_row(row, codes, rests, bias, room);
                pack(packed, at, codes.as_chunks().0);
            }
        });
        Lefts { steps, packed, places, own: Some(own) }
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

    /// The similarities of a row, one of those on the left, and listed columns, of which the products of codes are given, as the
    /// finer codes estimate them: in units of [`Codes::fine_unit`].
    pub fn narrow(
        &self,
        (lefts, number): (&Lefts, usize),
        (columns, listed): (&Coded, &[u32]),
        products: &[i32],
        scratch: &mut Vec<i32>,
        out: &mut Vec<i64>,
    ) {
        let own = match (&lefts.own, &self.held) {
            (Some(own), _) => (own.of(0), number),
            (None, held) => {
                let place = lefts.places.get(number).copied().unwrap_or(u32::MAX);
                (held.as_ref().unwrap_or(columns).fine.of(0), place as usize)
            }
        };
        mixed(own, columns.fine.of(columns.first), listed, scratch);
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
        let mut errors: Vec<i64> = (0..self.rows()).map(|row| self.fine_error(row)).collect();
        errors.sort_unstable();
        2 * errors.get(errors.len() * 19 / 20).copied().unwrap_or_default()
    }

    /// No product is larger in magnitude.
    pub fn product_max(&self) -> i32 {
        whole((self.reach * self.reach / self.unit()).ceil())
    }

    /// What a product of one is as a similarity.
    pub fn unit(&self) -> f64 {
        self.scales.coarse * self.scales.coarse
    }
}

/// The scale under which the errors of some rows are least: rounding grows with it, cutting off shrinks.
pub fn fitting(rows: &Rows<'_>) -> Scales {
    let dimensions = rows.dimensions();
    let step = rows.count().div_ceil(SCALE_ROWS).max(1);
    let (mut some, mut room) = (Vec::new(), Vec::new());
    for row in (0..u32::MAX).take(rows.count()).step_by(step) {
        some.extend_from_slice(rows.read(row, &mut room));
    }
    let sample = || some.chunks_exact(dimensions.max(1));
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
        let shapes = [(70, 3), (70, 16), (90, 61), (90, 384), (33, 1000)];
        for ((rows, dimensions), keeping) in shapes.into_iter().zip([Keeping::All, Keeping::None].into_iter().cycle()) {
            let matrix = vectors(rows, dimensions);
            let listed: Vec<u32> = (0..u32::try_from(rows).unwrap()).rev().collect();
            let placed = Rows::of_matrix(&matrix, dimensions);
            let codes = Codes::new(&placed, listed.clone(), keeping, None);
            let mut room = Coded::default();
            let columns = codes.columns(0..rows, &mut room);
            let vector = |row: usize| &matrix[listed[row] as usize * dimensions..][..dimensions];
            let lefts = codes.lefts((0..u32::try_from(rows).unwrap()).collect());
            let mut tightest = 0;
            for left in 0..rows {
                let (mut others, mut coarse) = (Vec::new(), Vec::new());
                for panel in 0..rows.div_ceil(TILE_COLUMNS) {
                    let mut out = Products::default();
                    let (right, bias) = columns.right(panel);
                    products(lefts.tile(left / TILE_ROWS), right, bias, &mut out);
                    for (column, product) in (panel * TILE_COLUMNS..rows).zip(out.0[left % TILE_ROWS]) {
                        let similarity = dot(vector(left), vector(column));
                        let errors = codes.error(left) + codes.error(column);
                        assert!(product <= codes.certainly_above(similarity) + errors);
                        assert!(product > codes.perhaps_at_least(similarity) - errors);
                        assert!(product.abs() <= codes.product_max());
                        others.push(u32::try_from(column).unwrap());
                        coarse.push(product);
                    }
                }
                let mut estimates = Vec::new();
                codes.narrow((&lefts, left), (columns, &others), &coarse, &mut Vec::new(), &mut estimates);
                for (column, estimate) in others.iter().zip(&estimates) {
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
            let placed = Rows::of_matrix(&matrix, dimensions);
            let codes = Codes::new(&placed, vec![0, 1, 7], Keeping::All, None);
            assert!(codes.error(0) >= 0 && codes.product_max() >= 0);
            assert_eq!(codes.columns(0..3, &mut Coded::default()).right(9).0.len(), 0);
            for similarity in [f32::NEG_INFINITY, f32::MIN, 0.0, f32::MAX, f32::INFINITY, f32::NAN] {
                assert!(codes.perhaps_at_least(similarity) <= codes.certainly_above(similarity));
                assert!(codes.fine_floor(similarity).abs() <= FINE_NEVER);
            }
        }
    }
}
