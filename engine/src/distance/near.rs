//! Products of one row of codes with listed others, as a walk through a graph asks for them; compiled for each instruction set.
//!
//! Every `unsafe` here calls a function compiled for instructions that were just detected, asks for memory ahead of time, or reads a
//! row whose length was just compared.
#![expect(unsafe_code, reason = "vector instructions, and no checks between them; the scalar twin is the oracle")]
#![expect(clippy::inline_always, reason = "a body must be compiled for the instructions of the function around it")]

pub use crate::distance::coded::width_of;
use crate::distance::fine::{CODE_MAX, Scales, encode};
use crate::distance::rows::Rows;
use crate::distance::tile::{Left, Level, Right, Sums};
#[cfg(target_arch = "x86_64")]
use crate::distance::x86::{Ymm, YmmVnni, Zmm};
use rayon::prelude::*;

/// What a row that is not there gives.
pub const NOWHERE: i32 = i32::MIN;

/// Rows of codes, each plus 128, one after another; each is filled up with 128 to a multiple of 64 bytes.
#[derive(Clone, Copy, Debug)]
pub struct CodeRows<'c> {
    codes: &'c [u8],
    width: usize,
}

impl<'c> CodeRows<'c> {
    /// Rows of so many dimensions; what is left over at the end is no row.
    pub fn new(codes: &'c [u8], dimensions: usize) -> Self {
        Self { codes, width: width_of(dimensions).max(1) }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.codes.len() / self.width
    }

    /// Bytes of each.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The codes of a row; none of one that is not there.
    pub fn row(&self, row: u32) -> &'c [u8] {
        self.find(row).unwrap_or_default()
    }

    #[inline(always)]
    fn find(&self, row: u32) -> Option<&'c [u8]> {
        let start = (row as usize).checked_mul(self.width)?;
        self.codes.get(start..start.checked_add(self.width)?)
    }

    /// The square of a row's length, in units of a product.
    pub fn square(&self, row: u32) -> i32 {
        self.row(row).iter().map(|code| (i32::from(*code) - 128) * (i32::from(*code) - 128)).sum()
    }
}

/// Rows that are asked for at once: those of a list of neighbours.
const FETCHED_TOGETHER: usize = 64;

/// Writes the codes of a vector and what fills them up; `codes` is as wide as its row. Gives the square of the length of what they
/// leave.
pub fn encode_row(vector: &[f32], scales: Scales, codes: &mut [u8], rests: &mut Vec<i8>) -> f64 {
    rests.clear();
    rests.resize(vector.len(), 0);
    let (own, rest) = codes.split_at_mut(vector.len().min(codes.len()));
    rest.fill(128);
    encode(vector, scales, own, rests)[1]
}

/// The codes of rows, by a scale, and how far each row lies from what its codes stand for, rounded up; on the current rayon pool.
pub fn encode_rows(rows: &Rows<'_>, scale: f64) -> (Vec<u8>, Vec<f32>) {
    let (scales, width) = (Scales::new(scale, 1.0), width_of(rows.dimensions()).max(1));
    let mut codes = vec![0; rows.count() * width];
    let of_rows = codes.par_chunks_exact_mut(width).zip(0_u32..u32::try_from(rows.count()).unwrap_or(u32::MAX));
    let encode = |(room, rests): &mut (Vec<f32>, Vec<i8>), (codes, row): (&mut [u8], u32)| {
        above(encode_row(rows.read(row, room), scales, codes, rests).sqrt())
    };
    let errors = of_rows.map_init(Default::default, encode).collect();
    (codes, errors)
}

/// The number, rounded up.
#[expect(clippy::cast_possible_truncation, reason = "rounded up by the factor")]
fn above(number: f64) -> f32 {
    (number * (1.0 + 1e-6)) as f32
}

/// The codes that others are compared with.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    codes: Vec<i8>,
    /// 128 times their sum.
    bias: i32,
}

impl Probe {
    /// A row of codes.
    pub fn of_row(row: &[u8]) -> Self {
        let mut probe = Self::default();
        probe.take_row(row);
        probe
    }

    /// A row of codes in place of those that were there.
    pub fn take_row(&mut self, row: &[u8]) {
        self.codes.clear();
        self.codes.extend(row.iter().map(|code| (code ^ 128).cast_signed()));
        self.weigh();
    }

    /// The codes of a vector, whose largest component becomes 127, with the scale of their own: what a code of one stands for, and
    /// the length of what they leave.
    pub fn of_vector(vector: &[f32]) -> (Self, f64, f64) {
        let largest = vector.iter().map(|x| f64::from(x.abs())).fold(0.0, f64::max);
        let scales = Scales::new(if largest > 0.0 { largest / CODE_MAX } else { 1.0 }, 1.0);
        let mut codes = vec![0; width_of(vector.len())];
        let left = encode_row(vector, scales, &mut codes, &mut Vec::new());
        (Self::of_row(&codes), scales.coarse, left.sqrt())
    }

    fn weigh(&mut self) {
        self.bias = 128 * self.codes.iter().map(|code| i32::from(*code)).sum::<i32>();
    }
}

/// The product of a probe with each of the listed rows; [`NOWHERE`] for one that is not there. Asks for many of them before it
/// waits for the first.
pub fn products(probe: &Probe, rows: CodeRows<'_>, listed: &[u32], out: &mut Vec<i32>) {
    out.clear();
    match Level::detected() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX-512F and its VNNI.
        Level::Avx512Vnni => unsafe { products_avx512(probe, rows, listed, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2 and AVX-VNNI.
        Level::AvxVnni => unsafe { products_avx_vnni(probe, rows, listed, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2.
        Level::Avx2 => unsafe { products_avx2(probe, rows, listed, out) },
        #[cfg(target_arch = "aarch64")]
        Level::Neon => crate::distance::neon::near_products(probe, rows, listed, out),
        Level::Scalar => products_body::<[i32; 4], 4, 2>(probe, rows, listed, out),
    }
}

/// Compiles the body of [`products`] for some instructions.
#[cfg(target_arch = "x86_64")]
macro_rules! compiled_for {
    ($features:literal, $sums:ty, $width:literal, $products:ident) => {
        #[target_feature(enable = $features)]
        fn $products(probe: &Probe, rows: CodeRows<'_>, listed: &[u32], out: &mut Vec<i32>) {
            products_body::<$sums, $width, 4>(probe, rows, listed, out);
        }
    };
}

#[cfg(target_arch = "x86_64")]
compiled_for!("avx512f,avx512vnni,popcnt", Zmm, 16, products_avx512);
#[cfg(target_arch = "x86_64")]
compiled_for!("avx2,avxvnni,popcnt", YmmVnni, 8, products_avx_vnni);
#[cfg(target_arch = "x86_64")]
compiled_for!("avx2,popcnt", Ymm, 8, products_avx2);

// No closures in the bodies: the compiler doesn't compile them for the instructions of the function around them.

/// The body of [`products`].
#[inline(always)]
pub fn products_body<V: Sums<W>, const W: usize, const R: usize>(
    probe: &Probe,
    rows: CodeRows<'_>,
    listed: &[u32],
    out: &mut Vec<i32>,
) {
    let right: &[[Right; W]] = probe.codes.as_chunks::<4>().0.as_chunks::<W>().0;
    let bias = if V::BIASED { probe.bias } else { 0 };
    let first: &[[Left; W]] = rows.row(0).as_chunks::<4>().0.as_chunks::<W>().0;
    if first.len() != right.len() {
        out.resize(listed.len(), NOWHERE);
        return;
    }
    for (at, numbers) in listed.chunks(R).enumerate() {
        if (at * R).is_multiple_of(FETCHED_TOGETHER) {
            for row in &listed[at * R..listed.len().min(at * R + FETCHED_TOGETHER)] {
                fetch(rows.row(*row));
            }
        }
        // For rows that are not there the first one of all stands in, and is not put out.
        let mut group = [first; R];
        let mut there = [false; R];
        for (at, number) in numbers.iter().enumerate() {
            if let Some(row) = rows.find(*number) {
                let row = row.as_chunks::<4>().0.as_chunks::<W>().0;
                there[at] = row.len() == right.len();
                if there[at] {
                    group[at] = row;
                }
            }
        }
        let mut sums = [V::start(&[0; W]); R];
        for (step, codes) in right.iter().enumerate() {
            let codes = V::columns(codes);
            for at in 0..R {
                // SAFETY: each row of the group was just seen to have as many steps as the right side.
                let left = unsafe { group[at].get_unchecked(step) };
                sums[at] = sums[at].add(V::codes(left), codes);
            }
        }
        for at in 0..numbers.len() {
            out.push(if there[at] { sums[at].total().wrapping_sub(bias) } else { NOWHERE });
        }
    }
}

/// Asks for the lines of the cache that bytes lie in, before they are read.
#[inline(always)]
pub fn fetch(row: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in row.chunks(64) {
        // SAFETY: a hint; it reads nothing.
        unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::tile::tests::code;

    #[test]
    fn every_instruction_set_gives_the_same_products() {
        let mut seed = 5;
        for dimensions in [1, 64, 100, 384] {
            let (rows, width) = (9, width_of(dimensions));
            let mut codes = vec![128; rows * width];
            for row in codes.chunks_mut(width) {
                row[..dimensions].fill_with(|| code(&mut seed).cast_unsigned() ^ 128);
            }
            let rows = CodeRows::new(&codes, dimensions);
            let probe = Probe::of_row(rows.row(4));
            let listed = [2, 5, 9, 3, 8, 4, u32::MAX, 7, 11, 12, 13, 14];
            let signed = |code: &u8| i32::from(*code) - 128;
            let dot = |a: &[u8], b: &[u8]| -> i32 { a.iter().zip(b).map(|(a, b)| signed(a) * signed(b)).sum() };
            let one = |at: &u32| if *at < 9 { dot(rows.row(4), rows.row(*at)) } else { NOWHERE };
            let expected: Vec<i32> = listed.iter().map(one).collect();
            let check = |compute: &dyn Fn(&mut Vec<i32>)| {
                let mut out = Vec::new();
                compute(&mut out);
                assert_eq!(out, expected);
            };
            check(&|out| products(&probe, rows, &listed, out));
            check(&|out| products_body::<[i32; 4], 4, 2>(&probe, rows, &listed, out));
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor was just asked.
                check(&|out| unsafe { products_avx2(&probe, rows, &listed, out) });
                if is_x86_feature_detected!("avxvnni") {
                    // SAFETY: the processor was just asked.
                    check(&|out| unsafe { products_avx_vnni(&probe, rows, &listed, out) });
                }
            }
            assert_eq!(rows.square(4), dot(rows.row(4), rows.row(4)));
        }
    }

    #[test]
    fn a_vector_of_its_own_scale_lies_where_its_codes_say() {
        let vector: Vec<f32> = (0..70u8).map(|i| f32::from(i).sin() / 9.0).collect();
        let (probe, scale, left) = Probe::of_vector(&vector);
        let square: f64 =
            vector.iter().zip(&probe.codes).map(|(x, code)| (f64::from(*x) - scale * f64::from(*code)).powi(2)).sum();
        assert!((square.sqrt() - left).abs() < 1e-9 && left < scale * 0.5 * 70_f64.sqrt());
        assert_eq!(probe.codes.iter().map(|code| code.unsigned_abs()).max(), Some(127));
    }
}
