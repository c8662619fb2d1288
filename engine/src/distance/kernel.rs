//! The bodies of the similarity, written once and compiled for each instruction set; the only SIMD of the engine.
//!
//! Every `unsafe` here calls a function compiled for instructions that were just detected, or an intrinsic inside
//! such a function. The scalar form is the oracle of the others.
#![expect(unsafe_code, reason = "vector instructions, behind safe functions; the scalar twin is their oracle")]
#![expect(clippy::inline_always, reason = "a body must be compiled for the instructions of the function around it")]

use crate::distance::round;
use crate::distance::rows::Numbered;
#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::{float64x2_t, vcvt_f64_f32, vdupq_n_f64, vfmaq_f64, vld1_f32, vst1q_f64};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m256d, __m512d, _mm_loadu_ps, _mm256_cvtps_pd, _mm256_fmadd_pd, _mm256_loadu_ps, _mm256_set1_pd,
    _mm256_storeu_pd, _mm512_cvtps_pd, _mm512_fmadd_pd, _mm512_set1_pd, _mm512_storeu_pd,
};

/// Number of lanes of the definition.
const LANES: usize = 16;

/// The inner product before its rounding.
pub fn dot<C: Component>(a: &[f32], b: &[C]) -> f64 {
    match Level::detected() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX-512F, AVX2 and FMA.
        Level::Avx512 => unsafe { dot_avx512(a, b) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2 and FMA.
        Level::Avx2 => unsafe { dot_avx2(a, b) },
        #[cfg(target_arch = "aarch64")]
        Level::Neon => dot_body::<float64x2_t, C, 2, 8>(a, b),
        Level::Scalar => dot_body::<[f64; 2], C, 2, 8>(a, b),
    }
}

/// The inner products, rounded, of a query with listed rows, all as long as the query; a row that is not there gives 0.
pub fn dots<C: Component, N: Numbered<C>>(query: &[f32], rows: &N, listed: &[u32], out: &mut Vec<f32>) {
    match Level::detected() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX-512F, AVX2 and FMA.
        Level::Avx512 => unsafe { dots_avx512(query, rows, listed, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2 and FMA.
        Level::Avx2 => unsafe { dots_avx2(query, rows, listed, out) },
        #[cfg(target_arch = "aarch64")]
        Level::Neon => dots_body::<float64x2_t, C, N, 2, 8, 2>(query, rows, listed, out),
        Level::Scalar => dots_body::<[f64; 2], C, N, 2, 8, 1>(query, rows, listed, out),
    }
}

/// The inner products, rounded, of pairs of rows; where a row is not there, 0.
pub fn pair_dots<C: Component, N: Numbered<C>>(rows: &N, pairs: &[[u32; 2]], out: &mut Vec<f32>) {
    match Level::detected() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX-512F, AVX2 and FMA.
        Level::Avx512 => unsafe { pair_dots_avx512(rows, pairs, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2 and FMA.
        Level::Avx2 => unsafe { pair_dots_avx2(rows, pairs, out) },
        #[cfg(target_arch = "aarch64")]
        Level::Neon => pair_dots_body::<float64x2_t, C, N, 2, 8, 2>(rows, pairs, out),
        Level::Scalar => pair_dots_body::<[f64; 2], C, N, 2, 8, 1>(rows, pairs, out),
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
    #[cfg(target_arch = "aarch64")]
    Neon,
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
        #[cfg(target_arch = "aarch64")]
        if cfg!(target_endian = "little") {
            return Self::Neon;
        }
        Self::Scalar
    }
}

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
fn dots_avx512<C: Component, N: Numbered<C>>(query: &[f32], rows: &N, listed: &[u32], out: &mut Vec<f32>) {
    dots_body::<__m512d, C, N, 8, 2, 4>(query, rows, listed, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn dots_avx2<C: Component, N: Numbered<C>>(query: &[f32], rows: &N, listed: &[u32], out: &mut Vec<f32>) {
    dots_body::<__m256d, C, N, 4, 4, 2>(query, rows, listed, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
fn pair_dots_avx512<C: Component, N: Numbered<C>>(rows: &N, pairs: &[[u32; 2]], out: &mut Vec<f32>) {
    pair_dots_body::<__m512d, C, N, 8, 2, 4>(rows, pairs, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn pair_dots_avx2<C: Component, N: Numbered<C>>(rows: &N, pairs: &[[u32; 2]], out: &mut Vec<f32>) {
    pair_dots_body::<__m256d, C, N, 4, 4, 1>(rows, pairs, out);
}

/// The lanes of `R` rows as `K` vectors of `W` each, with one query for all of them or one for each. A last block is filled
/// up with zeros, which change no sum: a lane starts at +0 and so is never -0.
#[inline(always)]
fn lanes_body<
    V: Vector<W>,
    A: Component,
    C: Component,
    const W: usize,
    const K: usize,
    const Q: usize,
    const R: usize,
>(
    queries: [&[A]; Q],
    rows: [&[C]; R],
) -> [f64; R] {
    let len = queries[0].len();
    let (whole, rest) = (len / LANES, len % LANES);
    let mut lefts = [[].as_slice(); Q];
    for q in 0..Q {
        lefts[q] = &queries[q].as_chunks::<LANES>().0[..whole];
    }
    let mut blocks = [[].as_slice(); R];
    for r in 0..R {
        blocks[r] = &rows[r].as_chunks::<LANES>().0[..whole];
    }
    let mut sums = [[V::splat(0.0); K]; R];
    for at in 0..whole {
        let mut x = [[V::splat(0.0); K]; Q];
        for q in 0..Q {
            x[q] = widened::<V, A, W, K>(&lefts[q][at]);
        }
        for r in 0..R {
            sums[r] = added::<V, W, K>(sums[r], x[r % Q], widened::<V, C, W, K>(&blocks[r][at]));
        }
    }
    if rest > 0 {
        for r in 0..R {
            let x = widened::<V, f32, W, K>(&filled_up(&queries[r % Q][len - rest..len]));
            let y = widened::<V, f32, W, K>(&filled_up(&rows[r][len - rest..len]));
            sums[r] = added::<V, W, K>(sums[r], x, y);
        }
    }
    let mut products = [0.0; R];
    for r in 0..R {
        products[r] = tree::<V, W, K>(sums[r]);
    }
    products
}

/// The last components of a row and zeros.
#[inline(always)]
fn filled_up<C: Component>(rest: &[C]) -> [f32; LANES] {
    let mut lanes = [0.0; LANES];
    for (lane, component) in lanes.iter_mut().zip(rest) {
        *lane = component.value();
    }
    lanes
}

// No closures from here on: the compiler doesn't compile them for the instructions of the function around them.

#[inline(always)]
fn widened<V: Vector<W>, C: Component, const W: usize, const K: usize>(block: &[C; LANES]) -> [V; K] {
    let mut values = [0.0; LANES];
    for (value, component) in values.iter_mut().zip(block) {
        *value = component.value();
    }
    let mut wide = [V::splat(0.0); K];
    for (wide, values) in wide.iter_mut().zip(values.as_chunks::<W>().0) {
        *wide = V::widen(values);
    }
    wide
}

#[inline(always)]
fn added<V: Vector<W>, const W: usize, const K: usize>(mut sums: [V; K], x: [V; K], y: [V; K]) -> [V; K] {
    for k in 0..K {
        sums[k] = y[k].multiply_add(x[k], sums[k]);
    }
    sums
}

/// The fixed tree over the lanes.
#[inline(always)]
fn tree<V: Vector<W>, const W: usize, const K: usize>(sums: [V; K]) -> f64 {
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
fn dot_body<V: Vector<W>, C: Component, const W: usize, const K: usize>(a: &[f32], b: &[C]) -> f64 {
    let dimensions = a.len().min(b.len());
    lanes_body::<V, f32, C, W, K, 1, 1>([&a[..dimensions]], [&b[..dimensions]])[0]
}

/// Rows are taken `R` at a time, so that one need not wait for the sums of another.
#[inline(always)]
fn dots_body<V: Vector<W>, C: Component, N: Numbered<C>, const W: usize, const K: usize, const R: usize>(
    query: &[f32],
    rows: &N,
    listed: &[u32],
    out: &mut Vec<f32>,
) {
    let nothing = rows.any();
    if nothing.len() != query.len() {
        return out.resize(out.len() + listed.len(), 0.0);
    }
    for numbers in listed.chunks(R) {
        // For rows that are not there or not listed another one stands in, and is not put out, or as zero.
        let mut group = [nothing; R];
        let mut there = [false; R];
        for (at, number) in numbers.iter().enumerate() {
            if let Some(row) = rows.row(*number) {
                (group[at], there[at]) = (row, true);
            }
        }
        let products = lanes_body::<V, f32, C, W, K, 1, R>([query], group);
        for at in 0..numbers.len() {
            out.push(if there[at] { round(products[at]) } else { 0.0 });
        }
    }
}

/// Pairs are taken `R` at a time, so that one need not wait for the memory of another.
#[inline(always)]
fn pair_dots_body<V: Vector<W>, C: Component, N: Numbered<C>, const W: usize, const K: usize, const R: usize>(
    rows: &N,
    pairs: &[[u32; 2]],
    out: &mut Vec<f32>,
) {
    let nothing = rows.any();
    for pairs in pairs.chunks(R) {
        let (mut lefts, mut rights) = ([nothing; R], [nothing; R]);
        let mut there = [false; R];
        for (at, [left, right]) in pairs.iter().enumerate() {
            if let (Some(left), Some(right)) = (rows.row(*left), rows.row(*right)) {
                (lefts[at], rights[at], there[at]) = (left, right, true);
            }
        }
        let products = lanes_body::<V, C, C, W, K, R, R>(lefts, rights);
        for at in 0..pairs.len() {
            out.push(if there[at] { round(products[at]) } else { 0.0 });
        }
    }
}

/// A few f64 side by side.
trait Vector<const W: usize>: Copy {
    fn splat(value: f64) -> Self;
    fn widen(values: &[f32; W]) -> Self;
    fn store(self, values: &mut [f64; W]);
    /// `self * factor + sum`.
    fn multiply_add(self, factor: Self, sum: Self) -> Self;
}

impl Vector<2> for [f64; 2] {
    #[inline(always)]
    fn splat(value: f64) -> Self {
        [value; 2]
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
    fn multiply_add(self, factor: Self, sum: Self) -> Self {
        [self[0] * factor[0] + sum[0], self[1] * factor[1] + sum[1]]
    }
}

/// Implements [`Vector`] by the intrinsics of one register type.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! vector_by_intrinsics {
    ($register:ty, $width:literal, $splat:ident, $load_half:ident, $widen:ident, $store:ident, $multiply_add:ident) => {
        impl Vector<$width> for $register {
            #[inline(always)]
            fn splat(value: f64) -> Self {
                // SAFETY: only inlined into functions that are compiled for, and reached by, these instructions.
                unsafe { $splat(value) }
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
            fn multiply_add(self, factor: Self, sum: Self) -> Self {
                // SAFETY: as above.
                unsafe { $multiply_add(self, factor, sum) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
vector_by_intrinsics!(__m512d, 8, _mm512_set1_pd, _mm256_loadu_ps, _mm512_cvtps_pd, _mm512_storeu_pd, _mm512_fmadd_pd);
#[cfg(target_arch = "x86_64")]
vector_by_intrinsics!(__m256d, 4, _mm256_set1_pd, _mm_loadu_ps, _mm256_cvtps_pd, _mm256_storeu_pd, _mm256_fmadd_pd);
#[cfg(target_arch = "aarch64")]
vector_by_intrinsics!(float64x2_t, 2, vdupq_n_f64, vld1_f32, vcvt_f64_f32, vst1q_f64, fused_neon);

/// `a * b + sum`, in the order of the others.
#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
fn fused_neon(a: float64x2_t, b: float64x2_t, sum: float64x2_t) -> float64x2_t {
    vfmaq_f64(sum, a, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::rows::Together;

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
    fn listed_rows_give_the_bits_of_the_definition() {
        let mut seed = 11;
        for (n, dimensions) in [(1, 1), (8, 16), (33, 17), (31, 70), (16, 384), (3, 31)] {
            let query: Vec<f32> = (0..dimensions).map(|_| hard(&mut seed)).collect();
            let rows: Vec<f32> = (0..n * dimensions).map(|_| hard(&mut seed)).collect();
            let listed: Vec<u32> = (0..40).map(|i| u32::try_from(i * 7 % n).unwrap()).chain([u32::MAX]).collect();
            let row = |at: &u32| rows.chunks(dimensions).nth(*at as usize);
            let expected: Vec<u32> =
                listed.iter().map(|at| row(at).map_or(0, |row| round(oracle(&query, row)).to_bits())).collect();
            let rows = Together { components: &rows, dimensions };
            let check = |compute: &dyn Fn(&mut Vec<f32>)| {
                let mut out = Vec::new();
                compute(&mut out);
                assert_eq!(out.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), expected);
            };
            check(&|out| dots(&query, &rows, &listed, out));
            check(&|out| dots_body::<[f64; 2], _, _, 2, 8, 1>(&query, &rows, &listed, out));
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                // SAFETY: the processor was just asked.
                check(&|out| unsafe { dots_avx2(&query, &rows, &listed, out) });
            }
        }
    }
    #[test]
    fn pairs_of_rows_give_the_bits_of_the_definition() {
        let mut seed = 13;
        for (n, dimensions) in [(1, 1), (8, 16), (33, 17), (16, 384)] {
            let rows: Vec<f32> = (0..n * dimensions).map(|_| hard(&mut seed)).collect();
            let place = |i: usize| u32::try_from(i * 7 % n).unwrap();
            let pairs: Vec<[u32; 2]> =
                (0..41).map(|i| [place(i), place(i + i / 7)]).chain([[0, u32::MAX], [u32::MAX, 0]]).collect();
            let row = |at: u32| rows.chunks(dimensions).nth(at as usize);
            let product = |pair: &[u32; 2]| Some(round(oracle(row(pair[0])?, row(pair[1])?)).to_bits());
            let expected: Vec<u32> = pairs.iter().map(|pair| product(pair).unwrap_or(0)).collect();
            let rows = Together { components: &rows, dimensions };
            let check = |compute: &dyn Fn(&mut Vec<f32>)| {
                let mut out = Vec::new();
                compute(&mut out);
                assert_eq!(out.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), expected);
            };
            check(&|out| pair_dots(&rows, &pairs, out));
            check(&|out| pair_dots_body::<[f64; 2], _, _, 2, 8, 1>(&rows, &pairs, out));
            #[cfg(target_arch = "aarch64")]
            check(&|out| pair_dots_body::<float64x2_t, _, _, 2, 8, 2>(&rows, &pairs, out));
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                // SAFETY: the processor was just asked.
                check(&|out| unsafe { pair_dots_avx2(&rows, &pairs, out) });
            }
        }
    }
}
