//! Codes of a row and of what they leave: how they are made, and how they mix; compiled for each instruction set.
//!
//! Every `unsafe` here calls a function compiled for instructions that were just detected. What decides about bounds is added
//! up in eight lanes, in order, by every form.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "vector instructions; the scalar twin is the oracle"))]
#![expect(clippy::inline_always, reason = "a body must be compiled for the instructions of the function around it")]

use crate::distance::tile::{Left, Level, Right, Sums};
#[cfg(target_arch = "x86_64")]
use crate::distance::x86::{Ymm, YmmVnni, Zmm};

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
    /// The number of the first.
    pub first: usize,
}

/// Rows of [`Fine`] are whole multiples of this.
pub const FINE_STEP: usize = 64;

/// The mixed products `Σ code · rest' + rest · code'` of a row with listed others; what is not there gives 0.
pub fn mixed((own, row): (Fine<'_>, usize), others: Fine<'_>, listed: &[u32], out: &mut Vec<i32>) {
    out.clear();
    match Level::detected() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX-512F and its VNNI.
        Level::Avx512Vnni => unsafe { mixed_avx512((own, row), others, listed, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2 and AVX-VNNI.
        Level::AvxVnni => unsafe { mixed_avx_vnni((own, row), others, listed, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2.
        Level::Avx2 => unsafe { mixed_avx2((own, row), others, listed, out) },
        #[cfg(target_arch = "aarch64")]
        Level::Neon => crate::distance::neon::mixed((own, row), others, listed, out),
        Level::Scalar => mixed_body::<[i32; 4], 4, 2>((own, row), others, listed, out),
    }
}

/// The scales of codes and of rests, and their inverses.
#[derive(Clone, Copy, Debug)]
pub struct Scales {
    /// What a code of one stands for.
    pub coarse: f64,
    fine: f64,
    inverse: f64,
    fine_inverse: f64,
}

impl Scales {
    /// Rests are codes of `coarse / rest_steps`.
    pub fn new(coarse: f64, rest_steps: f64) -> Self {
        let fine = coarse / rest_steps;
        Self { coarse, fine, inverse: 1.0 / coarse, fine_inverse: 1.0 / fine }
    }
}

/// The squares of the lengths of a row, of what its codes leave, of the rests, and of what these leave.
pub type Squares = [f64; 4];

/// The largest magnitude of a code.
pub const CODE_MAX: f64 = 127.0;

/// Writes the codes of a row, each plus 128, and those of what they leave, and measures them. All slices are as long.
pub fn encode(row: &[f32], scales: Scales, codes: &mut [u8], rests: &mut [i8]) -> Squares {
    match Level::detected() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX-512F and its VNNI.
        Level::Avx512Vnni => unsafe { encode_avx512(row, scales, codes, rests) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2.
        Level::AvxVnni | Level::Avx2 => unsafe { encode_avx2(row, scales, codes, rests) },
        _ => encode_body(row, scales, codes, rests),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn encode_avx512(row: &[f32], scales: Scales, codes: &mut [u8], rests: &mut [i8]) -> Squares {
    encode_body(row, scales, codes, rests)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn encode_avx2(row: &[f32], scales: Scales, codes: &mut [u8], rests: &mut [i8]) -> Squares {
    encode_body(row, scales, codes, rests)
}

/// Compiles the body of [`mixed`] for some instructions.
#[cfg(target_arch = "x86_64")]
macro_rules! compiled_for {
    ($features:literal, $sums:ty, $width:literal, $mixed:ident) => {
        #[target_feature(enable = $features)]
        fn $mixed((own, row): (Fine<'_>, usize), others: Fine<'_>, listed: &[u32], out: &mut Vec<i32>) {
            mixed_body::<$sums, $width, 4>((own, row), others, listed, out);
        }
    };
}

#[cfg(target_arch = "x86_64")]
compiled_for!("avx512f,avx512vnni,popcnt", Zmm, 16, mixed_avx512);
#[cfg(target_arch = "x86_64")]
compiled_for!("avx2,avxvnni,popcnt", YmmVnni, 8, mixed_avx_vnni);
#[cfg(target_arch = "x86_64")]
compiled_for!("avx2,popcnt", Ymm, 8, mixed_avx2);

// No closures in the bodies: the compiler doesn't compile them for the instructions of the function around them.

/// Components that are encoded side by side.
const LANES: usize = 8;

#[inline(always)]
fn encode_body(row: &[f32], scales: Scales, codes: &mut [u8], rests: &mut [i8]) -> Squares {
    let mut sums = [[0.0; LANES]; 4];
    let (whole, last) = row.as_chunks::<LANES>();
    let (codes, last_codes) = codes.as_chunks_mut::<LANES>();
    let (rests, last_rests) = rests.as_chunks_mut::<LANES>();
    for ((components, codes), rests) in whole.iter().zip(codes).zip(rests) {
        encode_lanes(components, scales, codes, rests, &mut sums);
    }
    let (mut components, mut codes, mut rests) = ([0.0; LANES], [0; LANES], [0; LANES]);
    components[..last.len()].copy_from_slice(last);
    encode_lanes(&components, scales, &mut codes, &mut rests, &mut sums);
    for at in 0..last.len().min(last_codes.len()).min(last_rests.len()) {
        (last_codes[at], last_rests[at]) = (codes[at], rests[at]);
    }
    let mut squares = [0.0; 4];
    for part in 0..4 {
        for lane in sums[part] {
            squares[part] += lane;
        }
    }
    squares
}

#[inline(always)]
fn encode_lanes(
    components: &[f32; LANES],
    scales: Scales,
    codes: &mut [u8; LANES],
    rests: &mut [i8; LANES],
    sums: &mut [[f64; LANES]; 4],
) {
    for lane in 0..LANES {
        let value = f64::from(components[lane]);
        let (whole, code) = rounded(value * scales.inverse);
        let left = value - scales.coarse * whole;
        let (part, rest) = rounded(left * scales.fine_inverse);
        let fine = scales.fine * part;
        sums[0][lane] += value * value;
        sums[1][lane] += left * left;
        sums[2][lane] += fine * fine;
        sums[3][lane] += (left - fine) * (left - fine);
        codes[lane] = code.cast_unsigned() ^ 128;
        rests[lane] = rest;
    }
}

/// The nearest whole number, as a number and as a code, of one that is at most [`CODE_MAX`] in magnitude once it is
/// limited.
#[expect(clippy::cast_possible_truncation, reason = "the lowest eight bits of the sum are the code")]
#[inline(always)]
fn rounded(value: f64) -> (f64, i8) {
    // At this size a unit in the last place is 1, and the lowest bits count from it.
    const ONES: f64 = 6_755_399_441_055_744.0;
    let sum = value.clamp(-CODE_MAX, CODE_MAX) + ONES;
    (sum - ONES, sum.to_bits() as i8)
}

/// The body of [`mixed`].
#[inline(always)]
pub fn mixed_body<V: Sums<W>, const W: usize, const R: usize>(
    (own, row): (Fine<'_>, usize),
    others: Fine<'_>,
    listed: &[u32],
    out: &mut Vec<i32>,
) {
    let Some((codes, rests, bias)) = own.row::<W>(row) else { return out.resize(listed.len(), 0) };
    for numbers in listed.chunks(R) {
        let mut group = [(codes, rests, bias); R];
        let mut there = [false; R];
        for (at, number) in numbers.iter().enumerate() {
            if let Some(other) = others.row::<W>(*number as usize) {
                (group[at], there[at]) = (other, true);
            }
        }
        let mut sums = [V::start(&[0; W]); R];
        for step in 0..codes.len().min(rests.len()) {
            let (code, rest) = (V::codes(&codes[step]), V::columns(&rests[step]));
            for at in 0..R {
                let (codes, rests, _) = group[at];
                sums[at] = sums[at].add(code, V::columns(&rests[step]));
                sums[at] = sums[at].add(V::codes(&codes[step]), rest);
            }
        }
        for at in 0..numbers.len() {
            let off = if V::BIASED { bias.wrapping_add(group[at].2) } else { 0 };
            out.push(if there[at] { sums[at].total().wrapping_sub(off) } else { 0 });
        }
    }
}

/// The codes of a row and what they leave, in steps of `W` times four, and its bias.
type FineRow<'f, const W: usize> = (&'f [[Left; W]], &'f [[Right; W]], i32);

impl<'f> Fine<'f> {
    #[inline(always)]
    fn row<const W: usize>(&self, row: usize) -> Option<FineRow<'f, W>> {
        let row = row.wrapping_sub(self.first);
        let range = row.saturating_mul(self.width)..row.saturating_add(1).saturating_mul(self.width);
        let codes = self.codes.get(range.clone())?.as_chunks::<4>().0.as_chunks::<W>().0;
        let rests = self.rests.get(range)?.as_chunks::<4>().0.as_chunks::<W>().0;
        Some((codes, rests, *self.bias.get(row)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "aarch64")]
    use crate::distance::neon::Neon;
    use crate::distance::tile::tests::code;

    #[test]
    fn every_instruction_set_encodes_alike() {
        let mut seed = 17;
        for dimensions in [1, 7, 8, 31, 384] {
            let row: Vec<f32> = (0..dimensions).map(|_| f32::from(code(&mut seed)) / 311.7).collect();
            let scales = Scales::new(0.002, 254.0);
            let run = |encode: &dyn Fn(&mut [u8], &mut [i8]) -> Squares| {
                let (mut codes, mut rests) = (vec![0; dimensions], vec![0; dimensions]);
                let squares = encode(&mut codes, &mut rests);
                (codes, rests, squares.map(f64::to_bits))
            };
            let expected = run(&|codes, rests| encode_body(&row, scales, codes, rests));
            assert_eq!(run(&|codes, rests| encode(&row, scales, codes, rests)), expected);
            for ((component, code), rest) in row.iter().zip(&expected.0).zip(&expected.1) {
                let coarse = f64::from((*code ^ 128).cast_signed()) * 0.002;
                let stands_for = coarse + f64::from(*rest) * 0.002 / 254.0;
                // Half a step of the finer scale, where neither is cut off.
                let is_cut = component.abs() > 0.25;
                assert!(is_cut || (f64::from(*component) - stands_for).abs() < 4.1e-6, "{component} {stands_for}");
            }
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor was just asked.
                assert_eq!(run(&|codes, rests| unsafe { encode_avx2(&row, scales, codes, rests) }), expected);
            }
        }
    }

    #[test]
    fn every_instruction_set_mixes_alike() {
        let mut seed = 5;
        let width = 2 * FINE_STEP;
        let rows = 9;
        let codes: Vec<u8> = (0..rows * width).map(|_| code(&mut seed).cast_unsigned() ^ 128).collect();
        let rests: Vec<i8> = (0..rows * width).map(|_| code(&mut seed)).collect();
        let sum = |row: &[i8]| 128 * row.iter().map(|rest| i32::from(*rest)).sum::<i32>();
        let bias: Vec<i32> = rests.chunks(width).map(sum).collect();
        let fine = Fine { codes: &codes, rests: &rests, bias: &bias, width, first: 0 };
        let dot = |codes: &[u8], rests: &[i8]| -> i32 {
            codes.iter().zip(rests).map(|(code, rest)| (i32::from(*code) - 128) * i32::from(*rest)).sum()
        };
        let row = |at: usize| (&codes[at * width..][..width], &rests[at * width..][..width]);
        let listed = [2, 5, 3, 8, 9, 4, 7];
        let expected: Vec<i32> = listed
            .iter()
            .map(|at| match *at as usize {
                at if at < rows => dot(row(4).0, row(at).1) + dot(row(at).0, row(4).1),
                _ => 0,
            })
            .collect();
        let check = |compute: &dyn Fn(&mut Vec<i32>)| {
            let mut out = Vec::new();
            compute(&mut out);
            assert_eq!(out, expected);
        };
        check(&|out| mixed((fine, 4), fine, &listed, out));
        check(&|out| mixed_body::<[i32; 4], 4, 2>((fine, 4), fine, &listed, out));
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor was just asked.
            check(&|out| unsafe { mixed_avx2((fine, 4), fine, &listed, out) });
            if is_x86_feature_detected!("avxvnni") {
                // SAFETY: the processor was just asked.
                check(&|out| unsafe { mixed_avx_vnni((fine, 4), fine, &listed, out) });
            }
        }
        #[cfg(target_arch = "aarch64")]
        {
            check(&|out| mixed_body::<Neon, 4, 4>((fine, 4), fine, &listed, out));
        }
    }
}
