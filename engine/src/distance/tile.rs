//! Inner products of codes in tiles, and what becomes of them; compiled for each instruction set.
//!
//! Every `unsafe` here calls a function compiled for instructions that were just detected, or an intrinsic inside
//! such a function. Whole numbers have no rounding, so every form gives the same; the scalar form is the oracle.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "vector instructions; the scalar twin is the oracle"))]
#![expect(clippy::inline_always, reason = "a body must be compiled for the instructions of the function around it")]

#[cfg(target_arch = "x86_64")]
use crate::distance::x86::{Ymm, YmmVnni, Zmm};

/// Rows on the left of a tile.
pub const TILE_ROWS: usize = 14;

/// Rows on the right of a tile.
pub const TILE_COLUMNS: usize = 32;

/// Four codes of a row on the left, each plus 128.
pub type Left = [u8; 4];

/// Four codes of a row on the right.
pub type Right = [i8; 4];

/// The inner products of a tile.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub struct Products(pub [[i32; TILE_COLUMNS]; TILE_ROWS]);

/// What the products of a line must exceed; errors are in units of a product.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    /// To be perhaps at or above the bracket: less the error of the row, and that of the column is to be subtracted.
    pub perhaps: i32,
    /// To be certainly above it: with the error of the row, and that of the column is to be added.
    pub above: i32,
    /// To be perhaps chosen by the row: less its error, and that of the column is to be subtracted.
    pub chosen: i32,
    /// The error of the row.
    pub error: i32,
    /// The columns that it is compared with, a bit each.
    pub counted: u32,
}

/// What is known of the columns of a tile.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// The place of the first.
    pub first: u32,
    /// The error of each.
    pub errors: [i32; TILE_COLUMNS],
    /// What products must exceed to be perhaps chosen by the column: less its error, and that of the row is to be subtracted.
    pub chosen: [i32; TILE_COLUMNS],
}

/// The columns of a line whose products do not decide.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    columns: Vec<u32>,
    products: Vec<i32>,
    len: usize,
}

impl Listed {
    /// Places of columns.
    pub fn columns(&self) -> &[u32] {
        &self.columns[..self.len]
    }

    /// The product of each.
    pub fn products(&self) -> &[i32] {
        &self.products[..self.len]
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Where the next ones go: as many as a tile has columns fit, of which the first `len` will count.
    #[inline(always)]
    pub fn room(&mut self) -> (&mut [u32], &mut [i32], &mut usize) {
        let wanted = self.len + 2 * TILE_COLUMNS;
        if self.columns.len() < wanted {
            self.columns.resize(wanted, 0);
            self.products.resize(wanted, 0);
        }
        (&mut self.columns, &mut self.products, &mut self.len)
    }
}

/// How many pairs were seen, and how many of them lie below the bracket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sifted {
    /// Pairs that count.
    pub seen: u64,
    /// Those certainly below.
    pub below: u64,
}

/// Computes a tile from codes that lie step by step: of every row of the tile four codes, then the next four.
///
/// `bias` is for each column 128 times the sum of its codes. Steps that one side lacks count as zero.
pub fn products(
    left: &[[Left; TILE_ROWS]],
    right: &[[Right; TILE_COLUMNS]],
    bias: &[i32; TILE_COLUMNS],
    out: &mut Products,
) {
    match Level::detected() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX-512F and its VNNI.
        Level::Avx512Vnni => unsafe { products_avx512(left, right, bias, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2 and AVX-VNNI.
        Level::AvxVnni => unsafe { products_avx_vnni(left, right, bias, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2.
        Level::Avx2 => unsafe { products_avx2(left, right, bias, out) },
        #[cfg(target_arch = "aarch64")]
        Level::Neon => crate::distance::neon::products(left, right, bias, out),
        Level::Scalar => products_body::<[i32; 4], 4, 2, 8>(left, right, bias, out),
    }
}

/// Counts the pairs of a tile that lie below the bracket, and lists those that may lie in it or be chosen.
pub fn sift(
    products: &Products,
    lines: &[Line; TILE_ROWS],
    columns: &Columns,
    listed: &mut [Listed; TILE_ROWS],
) -> Sifted {
    match Level::detected() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX-512F.
        Level::Avx512Vnni => unsafe { sift_avx512(products, lines, columns, listed) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2 and AVX-VNNI.
        Level::AvxVnni => unsafe { sift_avx_vnni(products, lines, columns, listed) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2.
        Level::Avx2 => unsafe { sift_avx2(products, lines, columns, listed) },
        #[cfg(target_arch = "aarch64")]
        Level::Neon => sift_body::<crate::distance::neon::Neon, 4>(products, lines, columns, listed),
        Level::Scalar => sift_body::<[i32; 4], 4>(products, lines, columns, listed),
    }
}

/// The instructions that the bodies may use.
#[derive(Clone, Copy)]
pub enum Level {
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "aarch64")]
    Neon,
    Scalar,
}

impl Level {
    /// The best level of this processor; the standard library remembers what it detected.
    #[inline]
    pub fn detected() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vnni")
            && is_x86_feature_detected!("popcnt")
        {
            return Self::Avx512Vnni;
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
            return if is_x86_feature_detected!("avxvnni") { Self::AvxVnni } else { Self::Avx2 };
        }
        #[cfg(target_arch = "aarch64")]
        if cfg!(target_endian = "little") {
            return Self::Neon;
        }
        Self::Scalar
    }
}

/// Compiles both bodies for some instructions.
#[cfg(target_arch = "x86_64")]
macro_rules! compiled_for {
    ($features:literal, $sums:ty, $width:literal, $rows:literal, $columns:literal, $products:ident, $sift:ident) => {
        #[target_feature(enable = $features)]
        fn $products(
            left: &[[Left; TILE_ROWS]],
            right: &[[Right; TILE_COLUMNS]],
            bias: &[i32; TILE_COLUMNS],
            out: &mut Products,
        ) {
            products_body::<$sums, $width, $rows, $columns>(left, right, bias, out);
        }

        #[target_feature(enable = $features)]
        fn $sift(
            products: &Products,
            lines: &[Line; TILE_ROWS],
            columns: &Columns,
            listed: &mut [Listed; TILE_ROWS],
        ) -> Sifted {
            sift_body::<$sums, $width>(products, lines, columns, listed)
        }
    };
}

#[cfg(target_arch = "x86_64")]
compiled_for!("avx512f,avx512vnni,popcnt", Zmm, 16, 14, 2, products_avx512, sift_avx512);
#[cfg(target_arch = "x86_64")]
compiled_for!("avx2,avxvnni,popcnt", YmmVnni, 8, 2, 4, products_avx_vnni, sift_avx_vnni);
#[cfg(target_arch = "x86_64")]
compiled_for!("avx2,popcnt", Ymm, 8, 2, 4, products_avx2, sift_avx2);

// No closures in the bodies: the compiler doesn't compile them for the instructions of the function around them.

/// The body of [`sift`].
#[inline(always)]
fn sift_body<V: Sums<W>, const W: usize>(
    products: &Products,
    lines: &[Line; TILE_ROWS],
    columns: &Columns,
    listed: &mut [Listed; TILE_ROWS],
) -> Sifted {
    let mut sifted = Sifted::default();
    for ((values, line), listed) in products.0.iter().zip(lines).zip(listed) {
        let (mut perhaps, mut open) = (0, 0);
        let (errors, chosen) = (columns.errors.as_chunks::<W>().0, columns.chosen.as_chunks::<W>().0);
        for (place, values) in values.as_chunks::<W>().0.iter().enumerate() {
            let marks = V::sift(values, &errors[place], &chosen[place], *line);
            perhaps |= marks[0] << (place * W);
            open |= marks[1] << (place * W);
        }
        sifted.seen += u64::from(line.counted.count_ones());
        sifted.below += u64::from((line.counted & !perhaps).count_ones());
        if open & line.counted != 0 {
            V::pick(values, columns.first, open & line.counted, listed);
        }
    }
    sifted
}

/// A few sums of products side by side, one a column.
pub trait Sums<const W: usize>: Copy {
    /// Four codes on the left for each place: those of one row for every column.
    type Row: Copy;
    /// Four codes of each column.
    type Columns: Copy;
    /// Whether codes on the left count with 128 added, less the bias.
    const BIASED: bool;
    /// No product yet, less the bias.
    fn start(bias: &[i32; W]) -> Self;
    /// Four codes on the left for each place.
    fn codes(left: &[Left; W]) -> Self::Row;
    /// Those of one row for every place.
    fn row(left: Left) -> Self::Row;
    /// Four codes of each column.
    fn columns(right: &[Right; W]) -> Self::Columns;
    /// Adds to every column the inner product of four codes.
    fn add(self, left: Self::Row, right: Self::Columns) -> Self;
    /// The sums as numbers.
    fn store(self, out: &mut [i32; W]);
    /// All places together.
    #[inline(always)]
    fn total(self) -> i32 {
        let mut values = [0; W];
        self.store(&mut values);
        let mut total = 0_i32;
        for value in values {
            total = total.wrapping_add(value);
        }
        total
    }
    /// A bit for each product that is perhaps at or above the bracket, and for each of these that is not certainly above it
    /// or perhaps chosen.
    #[inline(always)]
    fn sift(values: &[i32; W], errors: &[i32; W], chosen: &[i32; W], line: Line) -> [u32; 2] {
        let (mut perhaps, mut open) = (0, 0);
        for place in 0..W {
            let (value, error) = (values[place], errors[place]);
            let is_perhaps = value > line.perhaps - error;
            let is_above = value > line.above + error;
            let is_chosen = value > (line.chosen - error).min(chosen[place] - line.error);
            perhaps |= u32::from(is_perhaps) << place;
            open |= u32::from(is_perhaps && (!is_above || is_chosen)) << place;
        }
        [perhaps, open]
    }
    /// Lists the columns of a line that have a bit, with their products.
    #[inline(always)]
    fn pick(values: &[i32; TILE_COLUMNS], first: u32, bits: u32, listed: &mut Listed) {
        let (columns, products, len) = listed.room();
        let mut bits = bits;
        while bits != 0 {
            let place = bits.trailing_zeros();
            bits &= bits - 1;
            columns[*len] = first + place;
            products[*len] = values[place as usize];
            *len += 1;
        }
    }
}

/// Computes `M` rows by `N` vectors of `W` columns at a time, so that their sums stay in registers.
#[inline(always)]
pub fn products_body<V: Sums<W>, const W: usize, const M: usize, const N: usize>(
    left: &[[Left; TILE_ROWS]],
    right: &[[Right; TILE_COLUMNS]],
    bias: &[i32; TILE_COLUMNS],
    out: &mut Products,
) {
    let mut started = [V::start(&[0; W]); N];
    for (start, bias) in started.iter_mut().zip(bias.as_chunks::<W>().0) {
        *start = V::start(bias);
    }
    for (group, lines) in out.0.as_chunks_mut::<M>().0.iter_mut().enumerate() {
        let mut sums = [started; M];
        for (left, right) in left.iter().zip(right) {
            let left = &left.as_chunks::<M>().0[group];
            let right = &right.as_chunks::<W>().0.as_chunks::<N>().0[0];
            let mut columns = [V::columns(&right[0]); N];
            for n in 1..N {
                columns[n] = V::columns(&right[n]);
            }
            for m in 0..M {
                let row = V::row(left[m]);
                for n in 0..N {
                    sums[m][n] = sums[m][n].add(row, columns[n]);
                }
            }
        }
        for (line, sums) in lines.iter_mut().zip(sums) {
            for (out, sum) in line.as_chunks_mut::<W>().0.iter_mut().zip(sums) {
                sum.store(out);
            }
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    #[cfg(target_arch = "aarch64")]
    use crate::distance::neon::Neon;

    /// Codes that look random, the extremes among them.
    pub fn code(seed: &mut u64) -> i8 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match *seed >> 61 {
            0 => 127,
            1 => -127,
            _ => i8::try_from((*seed >> 33) % 255).unwrap_or_default().wrapping_sub(127).max(-127),
        }
    }

    type Compute = fn(&[[Left; TILE_ROWS]], &[[Right; TILE_COLUMNS]], &[i32; TILE_COLUMNS], &mut Products);
    type Sift = fn(&Products, &[Line; TILE_ROWS], &Columns, &mut [Listed; TILE_ROWS]) -> Sifted;

    /// All forms that this processor can run.
    fn forms() -> Vec<(Compute, Sift)> {
        let mut forms: Vec<(Compute, Sift)> = vec![(products, sift)];
        forms.push((products_body::<[i32; 4], 4, 2, 8>, sift_body::<[i32; 4], 4>));
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
            forms.push((
                // SAFETY: the processor was just asked.
                |l, r, b, o| unsafe { products_avx2(l, r, b, o) },
                // SAFETY: as above.
                |p, l, c, o| unsafe { sift_avx2(p, l, c, o) },
            ));
            if is_x86_feature_detected!("avxvnni") {
                forms.push((
                    // SAFETY: the processor was just asked.
                    |l, r, b, o| unsafe { products_avx_vnni(l, r, b, o) },
                    // SAFETY: as above.
                    |p, l, c, o| unsafe { sift_avx_vnni(p, l, c, o) },
                ));
            }
        }
        #[cfg(target_arch = "aarch64")]
        forms.push((products_body::<Neon, 4, 2, 8>, sift_body::<Neon, 4>));
        forms
    }

    #[test]
    fn every_instruction_set_gives_the_products_of_the_definition() {
        let mut seed = 3;
        for steps in [1, 2, 7, 96, 1024] {
            let left: Vec<Vec<i8>> =
                (0..TILE_ROWS).map(|_| (0..steps * 4).map(|_| code(&mut seed)).collect()).collect();
            let right: Vec<Vec<i8>> =
                (0..TILE_COLUMNS).map(|_| (0..steps * 4).map(|_| code(&mut seed)).collect()).collect();
            let dot = |a: &[i8], b: &[i8]| a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum::<i32>();
            let packed_left: Vec<[Left; TILE_ROWS]> = (0..steps)
                .map(|step| {
                    std::array::from_fn(|row| std::array::from_fn(|i| left[row][step * 4 + i].cast_unsigned() ^ 0x80))
                })
                .collect();
            let packed_right: Vec<[Right; TILE_COLUMNS]> = (0..steps)
                .map(|step| std::array::from_fn(|row| std::array::from_fn(|i| right[row][step * 4 + i])))
                .collect();
            let bias = std::array::from_fn(|row| 128 * right[row].iter().map(|code| i32::from(*code)).sum::<i32>());
            for (products, _) in forms() {
                let mut out = Products::default();
                products(&packed_left, &packed_right, &bias, &mut out);
                for (row, line) in out.0.iter().enumerate() {
                    for (column, value) in line.iter().enumerate() {
                        assert_eq!(*value, dot(&left[row], &right[column]));
                    }
                }
            }
        }
    }

    #[test]
    fn every_instruction_set_sifts_by_the_definition() {
        let small = |seed: &mut u64| i32::from(code(seed)) / 8;
        let mut seed = 11;
        for round in 0..200 {
            let products = Products(std::array::from_fn(|_| std::array::from_fn(|_| small(&mut seed))));
            let columns = Columns {
                first: 64,
                errors: std::array::from_fn(|_| small(&mut seed).abs() / 4),
                chosen: std::array::from_fn(|_| if round % 3 == 0 { 1 << 28 } else { small(&mut seed) }),
            };
            let lines: [Line; TILE_ROWS] = std::array::from_fn(|_| Line {
                perhaps: small(&mut seed),
                above: small(&mut seed),
                chosen: if round % 5 == 0 { 1 << 28 } else { small(&mut seed) },
                error: small(&mut seed).abs() / 4,
                counted: (u32::from(code(&mut seed).cast_unsigned()) * 0x0101_0101) | u32::from(round % 2 == 0),
            });
            let mut expected = Sifted::default();
            let mut left_open: [Vec<(u32, i32)>; TILE_ROWS] = Default::default();
            for ((line, values), left_open) in lines.iter().zip(&products.0).zip(&mut left_open) {
                for (column, value) in values.iter().enumerate().filter(|(column, _)| line.counted >> column & 1 == 1) {
                    let (error, chosen) = (columns.errors[column], columns.chosen[column]);
                    expected.seen += 1;
                    if *value <= line.perhaps - error {
                        expected.below += 1;
                    } else if *value <= line.above + error
                        || *value > line.chosen - error
                        || *value > chosen - line.error
                    {
                        left_open.push((64 + u32::try_from(column).unwrap(), *value));
                    }
                }
            }
            for (_, sift) in forms() {
                let mut listed: [Listed; TILE_ROWS] = Default::default();
                assert_eq!(sift(&products, &lines, &columns, &mut listed), expected);
                for (listed, left_open) in listed.iter().zip(&left_open) {
                    let found = listed.columns().iter().copied().zip(listed.products().iter().copied());
                    assert_eq!(&found.collect::<Vec<_>>(), left_open);
                }
            }
        }
    }
}
