//! Inner products of codes in tiles, and how they compare with thresholds; compiled for each instruction set.
//!
//! Every `unsafe` here calls a function compiled for instructions that were just detected, or an intrinsic inside
//! such a function. Whole numbers have no rounding, so every form gives the same; the scalar form is the oracle.
#![expect(unsafe_code, reason = "vector instructions, behind safe functions; the scalar twin is their oracle")]
#![expect(clippy::inline_always, reason = "a body must be compiled for the instructions of the function around it")]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m256i, __m512i, _mm256_abs_epi8, _mm256_add_epi32, _mm256_castsi256_ps, _mm256_cmpgt_epi32,
    _mm256_dpbusd_avx_epi32, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_movemask_ps,
    _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_sign_epi8,
    _mm256_storeu_si256, _mm256_xor_si256, _mm512_cmpgt_epi32_mask, _mm512_dpbusd_epi32, _mm512_loadu_si512,
    _mm512_set1_epi32, _mm512_storeu_si512,
};

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

/// Which columns of a line lie above each of three thresholds: a bit a column.
pub type Marks = [u32; 3];

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
        Level::Scalar => products_body::<[i32; 4], 4, 2, 8>(left, right, bias, out),
    }
}

/// Compares every line of a tile with three thresholds of its own.
pub fn compare(products: &Products, thresholds: &[[i32; 3]; TILE_ROWS], out: &mut [Marks; TILE_ROWS]) {
    match Level::detected() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX-512F.
        Level::Avx512Vnni => unsafe { compare_avx512(products, thresholds, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2 and AVX-VNNI.
        Level::AvxVnni => unsafe { compare_avx_vnni(products, thresholds, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2.
        Level::Avx2 => unsafe { compare_avx2(products, thresholds, out) },
        Level::Scalar => compare_body::<[i32; 4], 4>(products, thresholds, out),
    }
}

/// Rows of codes and of what they leave, one after another, each filled up to whole [`FINE_STEP`]s.
#[derive(Clone, Copy)]
pub struct Fine<'f> {
    /// The codes, each plus 128.
    pub codes: &'f [u8],
    /// Codes of what they leave, by a finer scale.
    pub rests: &'f [i8],
    /// For each row 128 times the sum of its rests.
    pub bias: &'f [i32],
    /// Bytes of a row.
    pub width: usize,
}

/// Rows of [`Fine`] are whole multiples of this.
pub const FINE_STEP: usize = 64;

/// The mixed products `Σ code · rest' + rest · code'` of a row with some of the rows from `first` on; what is not there
/// gives 0.
pub fn mixed(fine: Fine<'_>, row: usize, first: usize, listed: &[(u16, i32)], out: &mut Vec<i32>) {
    out.clear();
    match Level::detected() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX-512F and its VNNI.
        Level::Avx512Vnni => unsafe { mixed_avx512(fine, row, first, listed, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2 and AVX-VNNI.
        Level::AvxVnni => unsafe { mixed_avx_vnni(fine, row, first, listed, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2.
        Level::Avx2 => unsafe { mixed_avx2(fine, row, first, listed, out) },
        Level::Scalar => mixed_body::<[i32; 4], 4, 2>(fine, row, first, listed, out),
    }
}

/// The instructions that the bodies may use.
#[derive(Clone, Copy)]
enum Level {
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Scalar,
}

impl Level {
    /// The best level of this processor; the standard library remembers what it detected.
    #[inline]
    fn detected() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni") {
            return Self::Avx512Vnni;
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            return if is_x86_feature_detected!("avxvnni") { Self::AvxVnni } else { Self::Avx2 };
        }
        Self::Scalar
    }
}

/// Compiles the three bodies for some instructions.
#[cfg(target_arch = "x86_64")]
macro_rules! compiled_for {
    ($features:literal, $sums:ty, $width:literal, $rows:literal, $columns:literal, $products:ident, $compare:ident, $mixed:ident) => {
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
        fn $compare(products: &Products, thresholds: &[[i32; 3]; TILE_ROWS], out: &mut [Marks; TILE_ROWS]) {
            compare_body::<$sums, $width>(products, thresholds, out);
        }

        #[target_feature(enable = $features)]
        fn $mixed(fine: Fine<'_>, row: usize, first: usize, listed: &[(u16, i32)], out: &mut Vec<i32>) {
            mixed_body::<$sums, $width, 4>(fine, row, first, listed, out);
        }
    };
}

#[cfg(target_arch = "x86_64")]
compiled_for!("avx512f,avx512vnni", Zmm, 16, 14, 2, products_avx512, compare_avx512, mixed_avx512);
#[cfg(target_arch = "x86_64")]
compiled_for!("avx2,avxvnni", YmmVnni, 8, 2, 4, products_avx_vnni, compare_avx_vnni, mixed_avx_vnni);
#[cfg(target_arch = "x86_64")]
compiled_for!("avx2", Ymm, 8, 2, 4, products_avx2, compare_avx2, mixed_avx2);

// No closures in the bodies: the compiler doesn't compile them for the instructions of the function around them.

#[inline(always)]
fn mixed_body<V: Sums<W>, const W: usize, const R: usize>(
    fine: Fine<'_>,
    row: usize,
    first: usize,
    listed: &[(u16, i32)],
    out: &mut Vec<i32>,
) {
    let Some((codes, rests, bias)) = fine.row::<W>(row) else { return out.resize(listed.len(), 0) };
    for numbers in listed.chunks(R) {
        let mut others = [(codes, rests, bias); R];
        let mut there = [false; R];
        for (at, (number, _)) in numbers.iter().enumerate() {
            if let Some(other) = fine.row::<W>(first + usize::from(*number)) {
                (others[at], there[at]) = (other, true);
            }
        }
        let mut sums = [V::start(&[0; W]); R];
        for step in 0..codes.len().min(rests.len()) {
            let (code, rest) = (V::codes(&codes[step]), V::columns(&rests[step]));
            for at in 0..R {
                let (codes, rests, _) = others[at];
                sums[at] = sums[at].add(code, V::columns(&rests[step]));
                sums[at] = sums[at].add(V::codes(&codes[step]), rest);
            }
        }
        for at in 0..numbers.len() {
            let off = if V::BIASED { bias.wrapping_add(others[at].2) } else { 0 };
            out.push(if there[at] { sums[at].total().wrapping_sub(off) } else { 0 });
        }
    }
}

/// The codes of a row and what they leave, in steps of `W` times four, and its bias.
type FineRow<'f, const W: usize> = (&'f [[Left; W]], &'f [[Right; W]], i32);

impl<'f> Fine<'f> {
    #[inline(always)]
    fn row<const W: usize>(&self, row: usize) -> Option<FineRow<'f, W>> {
        let range = row * self.width..(row + 1) * self.width;
        let codes = self.codes.get(range.clone())?.as_chunks::<4>().0.as_chunks::<W>().0;
        let rests = self.rests.get(range)?.as_chunks::<4>().0.as_chunks::<W>().0;
        Some((codes, rests, *self.bias.get(row)?))
    }
}

#[inline(always)]
fn compare_body<V: Sums<W>, const W: usize>(
    products: &Products,
    thresholds: &[[i32; 3]; TILE_ROWS],
    out: &mut [Marks; TILE_ROWS],
) {
    for ((line, thresholds), marks) in products.0.iter().zip(thresholds).zip(out) {
        *marks = Marks::default();
        for (place, values) in line.as_chunks::<W>().0.iter().enumerate() {
            let shift = place * W;
            for which in 0..3 {
                marks[which] |= V::above(values, thresholds[which]) << shift;
            }
        }
    }
}

/// A few sums of products side by side, one a column.
trait Sums<const W: usize>: Copy {
    /// Four codes on the left for each place: those of one row for every column.
    type Row: Copy;
    /// Four codes of each column.
    type Columns: Copy;
    /// Whether codes on the left count with 128 added, less the bias.
    const BIASED: bool;
    fn start(bias: &[i32; W]) -> Self;
    /// Four codes on the left for each place.
    fn codes(left: &[Left; W]) -> Self::Row;
    fn row(left: Left) -> Self::Row;
    fn columns(right: &[Right; W]) -> Self::Columns;
    /// Adds to every column the inner product of four codes.
    fn add(self, left: Self::Row, right: Self::Columns) -> Self;
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
    /// A bit for each value above the threshold.
    fn above(values: &[i32; W], threshold: i32) -> u32;
}

/// Computes `M` rows by `N` vectors of `W` columns at a time, so that their sums stay in registers.
#[inline(always)]
fn products_body<V: Sums<W>, const W: usize, const M: usize, const N: usize>(
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

impl Sums<4> for [i32; 4] {
    type Row = [Left; 4];
    type Columns = [Right; 4];
    const BIASED: bool = false;
    #[inline(always)]
    fn start(_: &[i32; 4]) -> Self {
        [0; 4]
    }
    #[inline(always)]
    fn codes(left: &[Left; 4]) -> [Left; 4] {
        *left
    }
    #[inline(always)]
    fn row(left: Left) -> [Left; 4] {
        [left; 4]
    }
    #[inline(always)]
    fn columns(right: &[Right; 4]) -> [Right; 4] {
        *right
    }
    #[inline(always)]
    fn add(self, left: [Left; 4], right: [Right; 4]) -> Self {
        let mut sums = self;
        for ((sum, left), right) in sums.iter_mut().zip(left).zip(right) {
            for (a, b) in left.iter().zip(right) {
                *sum += (i32::from(*a) - 128) * i32::from(b);
            }
        }
        sums
    }
    #[inline(always)]
    fn store(self, out: &mut [i32; 4]) {
        *out = self;
    }
    #[inline(always)]
    fn above(values: &[i32; 4], threshold: i32) -> u32 {
        let mut mask = 0;
        for (place, value) in values.iter().enumerate() {
            mask |= u32::from(*value > threshold) << place;
        }
        mask
    }
}

/// Sums by an instruction that multiplies codes without a sign on the left, so with 128 added, and less the bias.
#[cfg(target_arch = "x86_64")]
macro_rules! sums_by_vnni {
    ($name:ident, $register:ty, $width:literal, $load:ident, $spread:ident, $add:ident, $store:ident, $above:ident) => {
        #[derive(Clone, Copy)]
        struct $name($register);

        impl Sums<$width> for $name {
            type Row = $register;
            type Columns = $register;
            const BIASED: bool = true;
            #[inline(always)]
            fn start(bias: &[i32; $width]) -> Self {
                let negative = bias.map(i32::wrapping_neg);
                // SAFETY: only inlined into functions that are compiled for, and reached by, these instructions; the
                // array is as wide as the register, and any alignment is allowed.
                Self(unsafe { $load(negative.as_ptr().cast()) })
            }
            #[inline(always)]
            fn codes(left: &[Left; $width]) -> $register {
                // SAFETY: as above.
                unsafe { $load(left.as_ptr().cast()) }
            }
            #[inline(always)]
            fn row(left: Left) -> $register {
                // SAFETY: as above.
                unsafe { $spread(i32::from_le_bytes(left)) }
            }
            #[inline(always)]
            fn columns(right: &[Right; $width]) -> $register {
                // SAFETY: as above.
                unsafe { $load(right.as_ptr().cast()) }
            }
            #[inline(always)]
            fn add(self, left: $register, right: $register) -> Self {
                // SAFETY: as above.
                Self(unsafe { $add(self.0, left, right) })
            }
            #[inline(always)]
            fn store(self, out: &mut [i32; $width]) {
                // SAFETY: as above.
                unsafe { $store(out.as_mut_ptr().cast(), self.0) }
            }
            #[inline(always)]
            fn above(values: &[i32; $width], threshold: i32) -> u32 {
                // SAFETY: as above.
                unsafe { $above($load(values.as_ptr().cast()), $spread(threshold)) }
            }
        }
    };
}

/// A bit for each value above the threshold.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn mask_avx512(values: __m512i, thresholds: __m512i) -> u32 {
    u32::from(_mm512_cmpgt_epi32_mask(values, thresholds))
}

/// A bit for each value above the threshold.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn mask_avx2(values: __m256i, thresholds: __m256i) -> u32 {
    _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(values, thresholds))).cast_unsigned()
}

#[cfg(target_arch = "x86_64")]
sums_by_vnni!(
    Zmm,
    __m512i,
    16,
    _mm512_loadu_si512,
    _mm512_set1_epi32,
    _mm512_dpbusd_epi32,
    _mm512_storeu_si512,
    mask_avx512
);
#[cfg(target_arch = "x86_64")]
sums_by_vnni!(
    YmmVnni,
    __m256i,
    8,
    _mm256_loadu_si256,
    _mm256_set1_epi32,
    _mm256_dpbusd_avx_epi32,
    _mm256_storeu_si256,
    mask_avx2
);

/// Sums by AVX2: the left one's sign moves to the right, so that pairs of products, at most 2 · 127 · 127, fit 16 bits.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Ymm(__m256i);

#[cfg(target_arch = "x86_64")]
impl Sums<8> for Ymm {
    type Row = __m256i;
    type Columns = __m256i;
    const BIASED: bool = false;
    #[inline(always)]
    fn codes(left: &[Left; 8]) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_xor_si256(_mm256_loadu_si256(left.as_ptr().cast()), _mm256_set1_epi8(-128)) }
    }
    #[inline(always)]
    fn start(_: &[i32; 8]) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm256_setzero_si256() })
    }
    #[inline(always)]
    fn row(left: Left) -> __m256i {
        let codes = left.map(|code| code ^ 0x80);
        // SAFETY: as above.
        unsafe { _mm256_set1_epi32(i32::from_le_bytes(codes)) }
    }
    #[inline(always)]
    fn columns(right: &[Right; 8]) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_loadu_si256(right.as_ptr().cast()) }
    }
    #[inline(always)]
    fn add(self, left: __m256i, right: __m256i) -> Self {
        // SAFETY: as above.
        unsafe {
            let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(left), _mm256_sign_epi8(right, left));
            Self(_mm256_add_epi32(self.0, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))))
        }
    }
    #[inline(always)]
    fn store(self, out: &mut [i32; 8]) {
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), self.0) }
    }
    #[inline(always)]
    fn above(values: &[i32; 8], threshold: i32) -> u32 {
        // SAFETY: as above.
        unsafe { mask_avx2(_mm256_loadu_si256(values.as_ptr().cast()), _mm256_set1_epi32(threshold)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes that look random, the extremes among them.
    fn code(seed: &mut u64) -> i8 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match *seed >> 61 {
            0 => 127,
            1 => -127,
            _ => i8::try_from((*seed >> 33) % 255).unwrap_or_default().wrapping_sub(127).max(-127),
        }
    }

    type Compute = fn(&[[Left; TILE_ROWS]], &[[Right; TILE_COLUMNS]], &[i32; TILE_COLUMNS], &mut Products);
    type Compare = fn(&Products, &[[i32; 3]; TILE_ROWS], &mut [Marks; TILE_ROWS]);

    /// All forms that this processor can run.
    fn forms() -> Vec<(Compute, Compare)> {
        let mut forms: Vec<(Compute, Compare)> = vec![(products, compare)];
        forms.push((products_body::<[i32; 4], 4, 2, 8>, compare_body::<[i32; 4], 4>));
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor was just asked.
            forms.push((|l, r, b, o| unsafe { products_avx2(l, r, b, o) }, compare));
            if is_x86_feature_detected!("avxvnni") {
                // SAFETY: the processor was just asked.
                forms.push((|l, r, b, o| unsafe { products_avx_vnni(l, r, b, o) }, compare));
            }
        }
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
            for (products, compare) in forms() {
                let mut out = Products::default();
                products(&packed_left, &packed_right, &bias, &mut out);
                let thresholds: [[i32; 3]; TILE_ROWS] = std::array::from_fn(|row| [out.0[row][3], 0, i32::MIN]);
                let mut marks = [Marks::default(); TILE_ROWS];
                compare(&out, &thresholds, &mut marks);
                for (row, line) in out.0.iter().enumerate() {
                    for (column, value) in line.iter().enumerate() {
                        assert_eq!(*value, dot(&left[row], &right[column]));
                        assert_eq!(marks[row][0] >> column & 1 == 1, *value > line[3]);
                        assert_eq!(marks[row][1] >> column & 1 == 1, *value > 0);
                        assert_eq!(marks[row][2] >> column & 1 == 1, *value > i32::MIN);
                    }
                }
            }
        }
    }

    #[test]
    fn every_instruction_set_marks_and_mixes_alike() {
        let mut seed = 5;
        let width = 2 * FINE_STEP;
        let rows = 9;
        let codes: Vec<u8> = (0..rows * width).map(|_| code(&mut seed).cast_unsigned() ^ 128).collect();
        let rests: Vec<i8> = (0..rows * width).map(|_| code(&mut seed)).collect();
        let sum = |row: &[i8]| 128 * row.iter().map(|rest| i32::from(*rest)).sum::<i32>();
        let bias: Vec<i32> = rests.chunks(width).map(sum).collect();
        let fine = Fine { codes: &codes, rests: &rests, bias: &bias, width };
        let dot = |codes: &[u8], rests: &[i8]| -> i32 {
            codes.iter().zip(rests).map(|(code, rest)| (i32::from(*code) - 128) * i32::from(*rest)).sum()
        };
        let row = |at: usize| (&codes[at * width..][..width], &rests[at * width..][..width]);
        let listed: Vec<(u16, i32)> = [0, 3, 1, 6, 7, 2, 5].map(|at| (at, 0)).to_vec();
        let expected: Vec<i32> = listed
            .iter()
            .map(|(at, _)| match usize::from(*at) + 2 {
                at if at < rows => dot(row(4).0, row(at).1) + dot(row(at).0, row(4).1),
                _ => 0,
            })
            .collect();
        let check = |compute: &dyn Fn(&mut Vec<i32>)| {
            let mut out = Vec::new();
            compute(&mut out);
            assert_eq!(out, expected);
        };
        check(&|out| mixed(fine, 4, 2, &listed, out));
        check(&|out| mixed_body::<[i32; 4], 4, 2>(fine, 4, 2, &listed, out));
        let products = Products(std::array::from_fn(|row| {
            std::array::from_fn(|column| i32::try_from(row * column % 23).unwrap() - 11)
        }));
        let thresholds: [[i32; 3]; TILE_ROWS] =
            std::array::from_fn(|row| [i32::try_from(row).unwrap() - 7, i32::MAX, 0]);
        let mut expected = [Marks::default(); TILE_ROWS];
        compare_body::<[i32; 4], 4>(&products, &thresholds, &mut expected);
        let same = |compute: &dyn Fn(&mut [Marks; TILE_ROWS])| {
            let mut out = [Marks::default(); TILE_ROWS];
            compute(&mut out);
            assert_eq!(out, expected);
        };
        same(&|out| compare(&products, &thresholds, out));
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor was just asked.
            check(&|out| unsafe { mixed_avx2(fine, 4, 2, &listed, out) });
            // SAFETY: the processor was just asked.
            same(&|out| unsafe { compare_avx2(&products, &thresholds, out) });
            if is_x86_feature_detected!("avxvnni") {
                // SAFETY: the processor was just asked.
                check(&|out| unsafe { mixed_avx_vnni(fine, 4, 2, &listed, out) });
                // SAFETY: the processor was just asked.
                same(&|out| unsafe { compare_avx_vnni(&products, &thresholds, out) });
            }
        }
    }
}
