//! The sums of tiles in the registers of x86-64.
//!
//! Every `unsafe` here is an intrinsic, or a function of this file, inside what is only inlined into functions compiled for
//! its instructions, which [`tile`](crate::distance::tile) reaches after it detected them.
#![expect(unsafe_code, reason = "vector instructions, behind safe functions; the scalar twin is their oracle")]
#![expect(clippy::inline_always, reason = "a body must be compiled for the instructions of the function around it")]

use crate::distance::tile::{Left, Line, Listed, Right, Sums, TILE_COLUMNS};
use std::arch::x86_64::{
    __m256i, __m512i, _mm256_abs_epi8, _mm256_add_epi32, _mm256_castsi256_ps, _mm256_cmpgt_epi32,
    _mm256_dpbusd_avx_epi32, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_min_epi32,
    _mm256_movemask_ps, _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_sign_epi8,
    _mm256_storeu_si256, _mm256_sub_epi32, _mm256_xor_si256, _mm512_add_epi32, _mm512_cmpgt_epi32_mask,
    _mm512_dpbusd_epi32, _mm512_loadu_si512, _mm512_maskz_compress_epi32, _mm512_min_epi32, _mm512_reduce_add_epi32,
    _mm512_set1_epi32, _mm512_setr_epi32, _mm512_storeu_si512, _mm512_sub_epi32,
};

/// Sums by an instruction that multiplies codes without a sign on the left, so with 128 added, and less the bias.
macro_rules! sums_by_vnni {
    ($name:ident, $register:ty, $width:literal, $load:ident, $spread:ident, $add:ident, $store:ident, {$($more:tt)*}) => {
        /// Sums in one register.
        #[derive(Clone, Copy)]
        pub struct $name($register);

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
            $($more)*
        }
    };
}

sums_by_vnni!(Zmm, __m512i, 16, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_dpbusd_epi32, _mm512_storeu_si512, {
    #[inline(always)]
    fn total(self) -> i32 {
        // SAFETY: as above.
        unsafe { _mm512_reduce_add_epi32(self.0) }
    }
    #[inline(always)]
    fn sift(values: &[i32; 16], errors: &[i32; 16], chosen: &[i32; 16], line: Line) -> [u32; 2] {
        // SAFETY: as above.
        unsafe { sift_avx512(values, errors, chosen, line) }
    }
    #[inline(always)]
    fn pick(values: &[i32; TILE_COLUMNS], first: u32, bits: u32, listed: &mut Listed) {
        // SAFETY: as above.
        unsafe { pick_avx512(values, first, bits, listed) }
    }
});
sums_by_vnni!(
    YmmVnni,
    __m256i,
    8,
    _mm256_loadu_si256,
    _mm256_set1_epi32,
    _mm256_dpbusd_avx_epi32,
    _mm256_storeu_si256,
    {
        #[inline(always)]
        fn sift(values: &[i32; 8], errors: &[i32; 8], chosen: &[i32; 8], line: Line) -> [u32; 2] {
            // SAFETY: as above.
            unsafe { sift_avx2(values, errors, chosen, line) }
        }
    }
);

/// See [`Sums::sift`].
#[target_feature(enable = "avx512f")]
#[inline]
fn sift_avx512(values: &[i32; 16], errors: &[i32; 16], chosen: &[i32; 16], line: Line) -> [u32; 2] {
    // SAFETY: arrays as wide as the register; any alignment is allowed.
    let [values, errors, chosen] = [values, errors, chosen].map(|x| unsafe { _mm512_loadu_si512(x.as_ptr().cast()) });
    let spread = _mm512_set1_epi32;
    let perhaps = _mm512_cmpgt_epi32_mask(values, _mm512_sub_epi32(spread(line.perhaps), errors));
    let above = _mm512_cmpgt_epi32_mask(values, _mm512_add_epi32(spread(line.above), errors));
    let by_row = _mm512_sub_epi32(spread(line.chosen), errors);
    let by_column = _mm512_sub_epi32(chosen, spread(line.error));
    let chosen = _mm512_cmpgt_epi32_mask(values, _mm512_min_epi32(by_row, by_column));
    [perhaps, perhaps & (!above | chosen)].map(u32::from)
}

/// See [`Sums::pick`].
#[target_feature(enable = "avx512f,popcnt")]
#[inline]
fn pick_avx512(values: &[i32; TILE_COLUMNS], first: u32, bits: u32, listed: &mut Listed) {
    let (columns, products, len) = listed.room();
    let counting = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let mut places = _mm512_add_epi32(_mm512_set1_epi32(first.cast_signed()), counting);
    for (values, mask) in values.as_chunks::<16>().0.iter().zip([bits & 0xffff, bits >> 16]) {
        let mask = u16::try_from(mask).unwrap_or(u16::MAX);
        let (Some(columns), Some(products)) =
            (columns[*len..].first_chunk_mut::<16>(), products[*len..].first_chunk_mut::<16>())
        else {
            return;
        };
        // SAFETY: arrays as wide as the register; any alignment is allowed.
        unsafe {
            let packed = _mm512_maskz_compress_epi32(mask, places);
            _mm512_storeu_si512(columns.as_mut_ptr().cast(), packed);
            let packed = _mm512_maskz_compress_epi32(mask, _mm512_loadu_si512(values.as_ptr().cast()));
            _mm512_storeu_si512(products.as_mut_ptr().cast(), packed);
        }
        *len += mask.count_ones() as usize;
        places = _mm512_add_epi32(places, _mm512_set1_epi32(16));
    }
}

/// See [`Sums::sift`].
#[target_feature(enable = "avx2")]
#[inline]
fn sift_avx2(values: &[i32; 8], errors: &[i32; 8], chosen: &[i32; 8], line: Line) -> [u32; 2] {
    // SAFETY: arrays as wide as the register; any alignment is allowed.
    let [values, errors, chosen] = [values, errors, chosen].map(|x| unsafe { _mm256_loadu_si256(x.as_ptr().cast()) });
    let spread = _mm256_set1_epi32;
    let above = |threshold: __m256i| {
        _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(values, threshold))).cast_unsigned()
    };
    let perhaps = above(_mm256_sub_epi32(spread(line.perhaps), errors));
    let certain = above(_mm256_add_epi32(spread(line.above), errors));
    let by_row = _mm256_sub_epi32(spread(line.chosen), errors);
    let chosen = above(_mm256_min_epi32(by_row, _mm256_sub_epi32(chosen, spread(line.error))));
    [perhaps, perhaps & (!certain | chosen)]
}

/// Sums by AVX2: the left one's sign moves to the right, so that pairs of products, at most 2 · 127 · 127, fit 16 bits.
#[derive(Clone, Copy)]
pub struct Ymm(__m256i);

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
    fn sift(values: &[i32; 8], errors: &[i32; 8], chosen: &[i32; 8], line: Line) -> [u32; 2] {
        // SAFETY: as above.
        unsafe { sift_avx2(values, errors, chosen, line) }
    }
}
