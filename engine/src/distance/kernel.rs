//! The bodies of the similarity, written once and compiled for each instruction set; the only SIMD of the engine.
//!
//! Every `unsafe` here calls a function compiled for instructions that were just detected, or an intrinsic inside
//! such a function. The scalar form is the oracle of the others.
#![expect(unsafe_code, reason = "vector instructions, behind safe functions; the scalar twin is their oracle")]
#![expect(clippy::inline_always, reason = "a body must be compiled for the instructions of the function around it")]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m256d, __m512d, _mm_loadu_ps, _mm256_add_pd, _mm256_cvtps_pd, _mm256_fmadd_pd, _mm256_loadu_pd, _mm256_loadu_ps,
    _mm256_set1_pd, _mm256_storeu_pd, _mm512_add_pd, _mm512_cvtps_pd, _mm512_fmadd_pd, _mm512_loadu_pd, _mm512_set1_pd,
    _mm512_storeu_pd,
};

/// Number of lanes of the definition.
const LANES: usize = 16;

/// The lanes in the order in which a depth-first walk of the summation tree meets them.
const TREE_ORDER: [usize; LANES] = [0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15];

/// The inner product before its rounding.
pub fn dot<C: Component>(a: &[f32], b: &[C]) -> f64 {
    match Level::detected() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX-512F, AVX2 and FMA.
        Level::Avx512 => unsafe { dot_avx512(a, b) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2 and FMA.
        Level::Avx2 => unsafe { dot_avx2(a, b) },
        Level::Scalar => dot_body::<[f64; 2], C, 2, 8>(a, b),
    }
}

/// The inner products of every query with every row, in tiles; `dimensions` is not zero.
pub fn dots(queries: &[f32], rows: &[f32], dimensions: usize, out: &mut [f32]) {
    match Level::detected() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX-512F, AVX2 and FMA.
        Level::Avx512 => unsafe { dots_avx512(queries, rows, dimensions, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2 and FMA.
        Level::Avx2 => unsafe { dots_avx2(queries, rows, dimensions, out) },
        Level::Scalar => dots_body::<[f64; 2], 2, 4, 2>(queries, rows, dimensions, out),
    }
}

/// A component as it lies in memory or in a file.
pub trait Component: Copy {
    /// The component as a number.
    fn value(self) -> f32;
}

impl Component for f32 {
    #[inline(always)]
    fn value(self) -> f32 {
        self
    }
}

impl Component for [u8; 4] {
    #[inline(always)]
    fn value(self) -> f32 {
        f32::from_le_bytes(self)
    }
}

/// The instructions that the bodies may use.
#[derive(Clone, Copy)]
enum Level {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Scalar,
}

impl Level {
    /// The best level of this processor; the standard library remembers what it detected.
    #[inline]
    fn detected() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return if is_x86_feature_detected!("avx512f") { Self::Avx512 } else { Self::Avx2 };
        }
        Self::Scalar
    }
}

/// Whether the baseline of the target has a fused multiply-add; elsewhere `mul_add` would be a slow library call.
const NATIVE_FUSED: bool = cfg!(target_arch = "aarch64");

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
fn dot_avx512<C: Component>(a: &[f32], b: &[C]) -> f64 {
    dot_body::<__m512d, C, 8, 2>(a, b)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn dot_avx2<C: Component>(a: &[f32], b: &[C]) -> f64 {
    dot_body::<__m256d, C, 4, 4>(a, b)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
fn dots_avx512(queries: &[f32], rows: &[f32], dimensions: usize, out: &mut [f32]) {
    dots_body::<__m512d, 8, 12, 2>(queries, rows, dimensions, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn dots_avx2(queries: &[f32], rows: &[f32], dimensions: usize, out: &mut [f32]) {
    dots_body::<__m256d, 4, 6, 2>(queries, rows, dimensions, out);
}

/// The lanes as `K` vectors of `W`; a last block is filled up with zeros, which change no sum (see [`packed`]).
#[inline(always)]
fn dot_body<V: Vector<W>, C: Component, const W: usize, const K: usize>(a: &[f32], b: &[C]) -> f64 {
    let dimensions = a.len().min(b.len());
    let (a_blocks, a_rest) = a[..dimensions].as_chunks::<LANES>();
    let (b_blocks, b_rest) = b[..dimensions].as_chunks::<LANES>();
    let mut sums = [V::splat(0.0); K];
    for (x, y) in a_blocks.iter().zip(b_blocks) {
        add_block::<V, W, K>(&mut sums, x, &y.map(C::value));
    }
    if !a_rest.is_empty() {
        let (mut x, mut y) = ([0.0; LANES], [0.0; LANES]);
        x[..a_rest.len()].copy_from_slice(a_rest);
        y.iter_mut().zip(b_rest).for_each(|(y, component)| *y = component.value());
        add_block::<V, W, K>(&mut sums, &x, &y);
    }
    let mut lanes = [0.0; LANES];
    for (vector, values) in sums.into_iter().zip(lanes.as_chunks_mut::<W>().0) {
        vector.store(values);
    }
    for half in [8, 4, 2, 1] {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
    }
    lanes[0]
}

#[inline(always)]
fn add_block<V: Vector<W>, const W: usize, const K: usize>(sums: &mut [V; K], x: &[f32; LANES], y: &[f32; LANES]) {
    let (x, y) = (x.as_chunks::<W>().0, y.as_chunks::<W>().0);
    for k in 0..K {
        sums[k] = V::widen(&x[k]).multiply_add(V::widen(&y[k]), sums[k]);
    }
}

/// A few f64 side by side: in tiles each belongs to a row of its own, so lanes follow one another in time.
trait Vector<const W: usize>: Copy {
    fn splat(value: f64) -> Self;
    fn load(values: &[f64; W]) -> Self;
    fn widen(values: &[f32; W]) -> Self;
    fn store(self, values: &mut [f64; W]);
    fn add(self, other: Self) -> Self;
    /// `self * factor + sum`.
    fn multiply_add(self, factor: Self, sum: Self) -> Self;
}

/// Computes tiles of `M` queries by `N` vectors of `W` rows from packed panels.
#[inline(always)]
fn dots_body<V: Vector<W>, const W: usize, const M: usize, const N: usize>(
    queries: &[f32],
    rows: &[f32],
    dimensions: usize,
    out: &mut [f32],
) {
    let width = N * W;
    let n = rows.len() / dimensions;
    let steps = dimensions.div_ceil(LANES);
    let packed_queries = packed(queries, dimensions, M);
    let packed_rows = packed(rows, dimensions, width);
    let mut sums = vec![0.0; M * width];
    for (panel, columns) in packed_rows.chunks_exact(steps * LANES * width).zip((0..n).step_by(width)) {
        let tiles = packed_queries.chunks_exact(steps * LANES * M);
        for (query_panel, lines) in tiles.zip(out.chunks_mut(M * n)) {
            tile_body::<V, W, M, N>(query_panel, panel, steps, &mut sums);
            for (line, values) in lines.chunks_mut(n).zip(sums.chunks_exact(width)) {
                for (value, sum) in line.iter_mut().skip(columns).zip(values) {
                    *value = crate::distance::round(*sum);
                }
            }
        }
    }
}

/// Rows as panels of `width` rows in f64: for each lane in tree order, for each of its components, one value a row.
/// What is missing is zero, which changes no sum: a lane starts at +0 and so is never -0.
#[inline(always)]
fn packed(rows: &[f32], dimensions: usize, width: usize) -> Vec<f64> {
    let steps = dimensions.div_ceil(LANES);
    let panels = (rows.len() / dimensions).div_ceil(width);
    let mut packed = vec![0.0; panels * steps * LANES * width];
    let blocks = rows.chunks(width * dimensions).zip(packed.chunks_exact_mut(steps * LANES * width));
    for (block, panel) in blocks {
        for (row, values) in block.chunks_exact(dimensions).enumerate() {
            for (position, lane) in TREE_ORDER.into_iter().enumerate() {
                let components = values.iter().skip(lane).step_by(LANES);
                for (step, value) in components.enumerate() {
                    panel[(position * steps + step) * width + row] = f64::from(*value);
                }
            }
        }
    }
    packed
}

/// One tile: every lane's sum, folded into the tree as soon as it is complete.
#[inline(always)]
fn tile_body<V: Vector<W>, const W: usize, const M: usize, const N: usize>(
    queries: &[f64],
    rows: &[f64],
    steps: usize,
    sums: &mut [f64],
) {
    let zero = [[V::splat(0.0); N]; M];
    let mut waiting = [zero; 4];
    for position in 0..LANES {
        let queries = &queries[position * steps * M..][..steps * M];
        let rows = &rows[position * steps * N * W..][..steps * N * W];
        let mut lane = lane_body::<V, W, M, N>(queries, rows);
        // As in a binary counter: after lane p of the walk, as many subtrees end as p + 1 has trailing zeros.
        let mut level = 0;
        while (position + 1) >> level & 1 == 0 {
            for m in 0..M {
                for n in 0..N {
                    lane[m][n] = waiting[level][m][n].add(lane[m][n]);
                }
            }
            level += 1;
        }
        if level < waiting.len() {
            waiting[level] = lane;
        } else {
            let lines = sums.as_chunks_mut::<W>().0.as_chunks_mut::<N>().0;
            for m in 0..M {
                for n in 0..N {
                    lane[m][n].store(&mut lines[m][n]);
                }
            }
        }
    }
}

/// The sums of one lane, for all pairs of a tile; apart from the tree so that they stay in registers.
#[inline(always)]
fn lane_body<V: Vector<W>, const W: usize, const M: usize, const N: usize>(
    queries: &[f64],
    rows: &[f64],
) -> [[V; N]; M] {
    let mut sums = [[V::splat(0.0); N]; M];
    for (query, row) in queries.as_chunks::<M>().0.iter().zip(rows.as_chunks::<W>().0.as_chunks::<N>().0) {
        let mut vectors = [V::splat(0.0); N];
        for n in 0..N {
            vectors[n] = V::load(&row[n]);
        }
        for m in 0..M {
            let factor = V::splat(query[m]);
            for n in 0..N {
                sums[m][n] = vectors[n].multiply_add(factor, sums[m][n]);
            }
        }
    }
    sums
}

impl Vector<2> for [f64; 2] {
    #[inline(always)]
    fn splat(value: f64) -> Self {
        [value; 2]
    }
    #[inline(always)]
    fn load(values: &[f64; 2]) -> Self {
        *values
    }
    #[inline(always)]
    fn widen(values: &[f32; 2]) -> Self {
        values.map(f64::from)
    }
    #[inline(always)]
    fn store(self, values: &mut [f64; 2]) {
        *values = self;
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        [self[0] + other[0], self[1] + other[1]]
    }
    #[inline(always)]
    fn multiply_add(self, factor: Self, sum: Self) -> Self {
        if NATIVE_FUSED {
            [self[0].mul_add(factor[0], sum[0]), self[1].mul_add(factor[1], sum[1])]
        } else {
            [self[0] * factor[0] + sum[0], self[1] * factor[1] + sum[1]]
        }
    }
}

/// Implements [`Vector`] by the intrinsics of one register type.
#[cfg(target_arch = "x86_64")]
macro_rules! vector_by_intrinsics {
    ($register:ty, $width:literal, $splat:ident, $load:ident, $load_half:ident, $widen:ident, $store:ident,
     $add:ident, $multiply_add:ident) => {
        impl Vector<$width> for $register {
            #[inline(always)]
            fn splat(value: f64) -> Self {
                // SAFETY: only inlined into functions that are compiled for, and reached by, these instructions.
                unsafe { $splat(value) }
            }
            #[inline(always)]
            fn load(values: &[f64; $width]) -> Self {
                // SAFETY: as above; the array is as wide as the register, and any alignment is allowed.
                unsafe { $load(values.as_ptr()) }
            }
            #[inline(always)]
            fn widen(values: &[f32; $width]) -> Self {
                // SAFETY: as above; the array is as wide as the half register, and any alignment is allowed.
                unsafe { $widen($load_half(values.as_ptr())) }
            }
            #[inline(always)]
            fn store(self, values: &mut [f64; $width]) {
                // SAFETY: as above; the array is as wide as the register, and any alignment is allowed.
                unsafe { $store(values.as_mut_ptr(), self) }
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: as above.
                unsafe { $add(self, other) }
            }
            #[inline(always)]
            fn multiply_add(self, factor: Self, sum: Self) -> Self {
                // SAFETY: as above.
                unsafe { $multiply_add(self, factor, sum) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
vector_by_intrinsics!(
    __m512d,
    8,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm256_loadu_ps,
    _mm512_cvtps_pd,
    _mm512_storeu_pd,
    _mm512_add_pd,
    _mm512_fmadd_pd
);
#[cfg(target_arch = "x86_64")]
vector_by_intrinsics!(
    __m256d,
    4,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm_loadu_ps,
    _mm256_cvtps_pd,
    _mm256_storeu_pd,
    _mm256_add_pd,
    _mm256_fmadd_pd
);

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, word for word.
    fn oracle(a: &[f32], b: &[f32]) -> f64 {
        let mut lanes = [0f64; LANES];
        for (i, (x, y)) in a.iter().zip(b).enumerate() {
            lanes[i % LANES] += f64::from(*x) * f64::from(*y);
        }
        let s: Vec<f64> = (0..8).map(|i| lanes[i] + lanes[i + 8]).collect();
        let t: Vec<f64> = (0..4).map(|i| s[i] + s[i + 4]).collect();
        (t[0] + t[2]) + (t[1] + t[3])
    }

    /// Numbers whose sums depend on the order in which they are added.
    fn hard(seed: &mut u64) -> f32 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = u32::try_from(*seed >> 32).unwrap();
        match bits % 8 {
            0 => 0.0,
            1 => -0.0,
            2 => f32::from_bits(bits & 0x807f_ffff),
            3 => f32::from_bits(bits & 0xbfff_ffff),
            4 => f32::MAX.copysign(f32::from_bits(bits << 3)),
            _ => f32::from_bits(bits & 0x81ff_ffff | 0x3e00_0000),
        }
    }

    #[test]
    fn every_instruction_set_gives_the_bits_of_the_definition() {
        let mut seed = 7;
        for dimensions in (1..=70).chain([256, 384, 1000]) {
            for _ in 0..40 {
                let a: Vec<f32> = (0..dimensions).map(|_| hard(&mut seed)).collect();
                let b: Vec<f32> = (0..dimensions).map(|_| hard(&mut seed)).collect();
                let expected = oracle(&a, &b).to_bits();
                assert_eq!(dot_body::<[f64; 2], f32, 2, 8>(&a, &b).to_bits(), expected);
                assert_eq!(dot(&a, &b).to_bits(), expected);
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the processor was just asked.
                    assert_eq!(unsafe { dot_avx2(&a, &b) }.to_bits(), expected);
                }
            }
        }
    }

    #[test]
    fn tiles_of_every_instruction_set_give_the_bits_of_the_definition() {
        let mut seed = 11;
        for (m, n, dimensions) in [(1, 1, 1), (4, 8, 16), (13, 33, 17), (25, 31, 70), (12, 16, 384), (5, 3, 31)] {
            let a: Vec<f32> = (0..m * dimensions).map(|_| hard(&mut seed)).collect();
            let b: Vec<f32> = (0..n * dimensions).map(|_| hard(&mut seed)).collect();
            let expected: Vec<u32> = a
                .chunks(dimensions)
                .flat_map(|x| b.chunks(dimensions).map(|y| crate::distance::round(oracle(x, y)).to_bits()))
                .collect();
            let bits = |out: &[f32]| out.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            let mut out = vec![f32::NAN; m * n];
            dots_body::<[f64; 2], 2, 4, 2>(&a, &b, dimensions, &mut out);
            assert_eq!(bits(&out), expected);
            out.fill(f32::NAN);
            dots(&a, &b, dimensions, &mut out);
            assert_eq!(bits(&out), expected);
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                out.fill(f32::NAN);
                // SAFETY: the processor was just asked.
                unsafe { dots_avx2(&a, &b, dimensions, &mut out) };
                assert_eq!(bits(&out), expected);
            }
        }
    }
}
