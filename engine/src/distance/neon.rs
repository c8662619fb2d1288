//! Sums of products of codes by NEON, which every aarch64 has, and by its dot product, which most have.
//!
//! Every `unsafe` here calls an intrinsic of these instructions, or is the one instruction that has no stable intrinsic.
#![expect(unsafe_code, reason = "vector instructions, behind safe functions; the scalar twin is their oracle")]
#![expect(clippy::inline_always, reason = "a body must be compiled for the instructions of the function around it")]

use std::arch::aarch64::{
    int8x16_t, int32x4_t, uint32x4_t, vaddq_s32, vaddvq_u32, vandq_u32, vcgtq_s32, vdupq_n_s32, vdupq_n_u8,
    vdupq_n_u32, veorq_u8, vget_low_s8, vld1q_s8, vld1q_s32, vld1q_u8, vld1q_u32, vminq_s32, vmull_high_s8, vmull_s8,
    vornq_u32, vpadalq_s16, vpaddq_s16, vreinterpretq_s8_u8, vreinterpretq_u8_u32, vst1q_s32, vsubq_s32,
};
use std::arch::{asm, is_aarch64_feature_detected};

use crate::distance::fine::{Fine, mixed_body};
use crate::distance::near::{CodeRows, Probe, products_body as near_body};
use crate::distance::tile::{Left, Line, Products, Right, Sums, TILE_COLUMNS, TILE_ROWS, products_body};

/// [`products`](crate::distance::tile::products) by the best instructions of this processor.
pub fn products(
    left: &[[Left; TILE_ROWS]],
    right: &[[Right; TILE_COLUMNS]],
    bias: &[i32; TILE_COLUMNS],
    out: &mut Products,
) {
    if is_aarch64_feature_detected!("dotprod") {
        // SAFETY: the processor was just asked; the standard library remembers what it said.
        unsafe { products_dot(left, right, bias, out) }
    } else {
        products_body::<Neon, 4, 2, 8>(left, right, bias, out);
    }
}

/// [`mixed`](crate::distance::fine::mixed) by the best instructions of this processor.
pub fn mixed((own, row): (Fine<'_>, usize), others: Fine<'_>, listed: &[u32], out: &mut Vec<i32>) {
    if is_aarch64_feature_detected!("dotprod") {
        // SAFETY: the processor was just asked.
        unsafe { mixed_dot((own, row), others, listed, out) }
    } else {
        mixed_body::<Neon, 4, 4>((own, row), others, listed, out);
    }
}

/// [`products`](crate::distance::near::products) by the best instructions of this processor.
pub fn near_products(probe: &Probe, rows: CodeRows<'_>, listed: &[u32], out: &mut Vec<i32>) {
    if is_aarch64_feature_detected!("dotprod") {
        // SAFETY: the processor was just asked.
        unsafe { near_products_dot(probe, rows, listed, out) }
    } else {
        near_body::<Neon, 4, 4>(probe, rows, listed, out);
    }
}

#[target_feature(enable = "dotprod")]
fn products_dot(
    left: &[[Left; TILE_ROWS]],
    right: &[[Right; TILE_COLUMNS]],
    bias: &[i32; TILE_COLUMNS],
    out: &mut Products,
) {
    products_body::<NeonDot, 4, 2, 8>(left, right, bias, out);
}

#[target_feature(enable = "dotprod")]
fn near_products_dot(probe: &Probe, rows: CodeRows<'_>, listed: &[u32], out: &mut Vec<i32>) {
    near_body::<NeonDot, 4, 4>(probe, rows, listed, out);
}

#[target_feature(enable = "dotprod")]
fn mixed_dot((own, row): (Fine<'_>, usize), others: Fine<'_>, listed: &[u32], out: &mut Vec<i32>) {
    mixed_body::<NeonDot, 4, 4>((own, row), others, listed, out);
}

/// Pairs of products, at most 2 · 127 · 127 in magnitude, fit 16 bits.
#[inline(always)]
fn add_pairs(sums: int32x4_t, left: int8x16_t, right: int8x16_t) -> int32x4_t {
    // SAFETY: aarch64 has NEON.
    unsafe {
        let low = vmull_s8(vget_low_s8(left), vget_low_s8(right));
        let high = vmull_high_s8(left, right);
        vpadalq_s16(sums, vpaddq_s16(low, high))
    }
}

/// One instruction in place of four; its intrinsic is not stable.
#[inline(always)]
fn add_dots(sums: int32x4_t, left: int8x16_t, right: int8x16_t) -> int32x4_t {
    let mut sums = sums;
    // SAFETY: only inlined into functions that are compiled for, and reached by, the dot product; it reads and writes
    // these registers alone.
    unsafe {
        asm!(
            "sdot {0:v}.4s, {1:v}.16b, {2:v}.16b",
            inout(vreg) sums, in(vreg) left, in(vreg) right,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

/// A bit for each place that is not zero.
#[inline(always)]
fn bits(marks: uint32x4_t) -> u32 {
    let places = [1, 2, 4, 8];
    // SAFETY: aarch64 has NEON; the array is as wide as the register.
    unsafe { vaddvq_u32(vandq_u32(marks, vld1q_u32(places.as_ptr()))) }
}

/// Implements [`Sums`] by a way to add products.
macro_rules! sums_by_neon {
    ($name:ident, $add:ident) => {
        #[doc = concat!("Sums by `", stringify!($add), "`.")]
        #[derive(Clone, Copy)]
        pub struct $name(int32x4_t);

        impl Sums<4> for $name {
            type Row = int8x16_t;
            type Columns = int8x16_t;
            const BIASED: bool = false;
            #[inline(always)]
            fn start(_: &[i32; 4]) -> Self {
                // SAFETY: aarch64 has NEON.
                Self(unsafe { vdupq_n_s32(0) })
            }
            #[inline(always)]
            fn codes(left: &[Left; 4]) -> int8x16_t {
                // SAFETY: as above; the array is as wide as the register, and any alignment is allowed.
                unsafe { vreinterpretq_s8_u8(veorq_u8(vld1q_u8(left.as_ptr().cast()), vdupq_n_u8(0x80))) }
            }
            #[inline(always)]
            fn row(left: Left) -> int8x16_t {
                let codes = u32::from_le_bytes(left) ^ 0x8080_8080;
                // SAFETY: as above.
                unsafe { vreinterpretq_s8_u8(vreinterpretq_u8_u32(vdupq_n_u32(codes))) }
            }
            #[inline(always)]
            fn columns(right: &[Right; 4]) -> int8x16_t {
                // SAFETY: as above.
                unsafe { vld1q_s8(right.as_ptr().cast()) }
            }
            #[inline(always)]
            fn add(self, left: int8x16_t, right: int8x16_t) -> Self {
                Self($add(self.0, left, right))
            }
            #[inline(always)]
            fn store(self, out: &mut [i32; 4]) {
                // SAFETY: as above.
                unsafe { vst1q_s32(out.as_mut_ptr(), self.0) }
            }
            #[inline(always)]
            fn sift(values: &[i32; 4], errors: &[i32; 4], chosen: &[i32; 4], line: Line) -> [u32; 2] {
                // SAFETY: as above.
                unsafe {
                    let [values, errors, chosen] = [values, errors, chosen].map(|x| vld1q_s32(x.as_ptr()));
                    let perhaps = vcgtq_s32(values, vsubq_s32(vdupq_n_s32(line.perhaps), errors));
                    let above = vcgtq_s32(values, vaddq_s32(vdupq_n_s32(line.above), errors));
                    let by_row = vsubq_s32(vdupq_n_s32(line.chosen), errors);
                    let by_column = vsubq_s32(chosen, vdupq_n_s32(line.error));
                    let chosen = vcgtq_s32(values, vminq_s32(by_row, by_column));
                    [perhaps, vandq_u32(perhaps, vornq_u32(chosen, above))].map(bits)
                }
            }
        }
    };
}

sums_by_neon!(Neon, add_pairs);
sums_by_neon!(NeonDot, add_dots);
