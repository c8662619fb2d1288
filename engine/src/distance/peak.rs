//! How fast the processor adds products of codes in registers: no tile can be faster.
//!
//! Every `unsafe` here calls a function compiled for instructions that were just detected.
#![cfg_attr(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    expect(unsafe_code, reason = "vector instructions, behind a safe function")
)]
#![expect(clippy::inline_always, reason = "a body must be compiled for the instructions of the function around it")]

#[cfg(target_arch = "aarch64")]
use std::arch::is_aarch64_feature_detected;
use std::hint::black_box;

#[cfg(target_arch = "aarch64")]
use crate::distance::neon::{Neon, NeonDot};
use crate::distance::tile::{Level, Sums};
#[cfg(target_arch = "x86_64")]
use crate::distance::x86::{Ymm, YmmVnni, Zmm};

/// Multiplies and adds eight-bit numbers on the calling thread, by the instructions that compare vectors for similarity
/// edges, as often as `rounds` says, and tells how many pairs of numbers that were.
///
/// It reads and writes next to no memory, so that its speed is the most that edges could reach on this processor. Costs a
/// few billionths of a second a round.
#[must_use]
pub fn multiply_adds(rounds: u32) -> u64 {
    match Level::detected() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX-512F and its VNNI.
        Level::Avx512Vnni => unsafe { adds_avx512(rounds) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2 and AVX-VNNI.
        Level::AvxVnni => unsafe { adds_avx_vnni(rounds) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the processor has AVX2.
        Level::Avx2 => unsafe { adds_avx2(rounds) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the processor was just asked.
        Level::Neon if is_aarch64_feature_detected!("dotprod") => unsafe { adds_neon_dot(rounds) },
        #[cfg(target_arch = "aarch64")]
        Level::Neon => adds_body::<Neon, 4, 8, 8>(rounds),
        Level::Scalar => adds_body::<[i32; 4], 4, 4, 4>(rounds),
    }
}

/// Compiles the body for some instructions.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! compiled_for {
    ($features:literal, $sums:ty, $width:literal, $many:literal, $columns:literal, $name:ident) => {
        #[target_feature(enable = $features)]
        fn $name(rounds: u32) -> u64 {
            adds_body::<$sums, $width, $many, $columns>(rounds)
        }
    };
}

#[cfg(target_arch = "x86_64")]
compiled_for!("avx512f,avx512vnni", Zmm, 16, 24, 2, adds_avx512);
#[cfg(target_arch = "x86_64")]
compiled_for!("avx2,avxvnni", YmmVnni, 8, 12, 2, adds_avx_vnni);
#[cfg(target_arch = "x86_64")]
compiled_for!("avx2", Ymm, 8, 6, 6, adds_avx2);
#[cfg(target_arch = "aarch64")]
compiled_for!("dotprod", NeonDot, 4, 24, 2, adds_neon_dot);

/// Adds to `N` sums that don't wait for one another; what is multiplied stays in registers. Where several instructions
/// make one sum, there are as many columns as sums, or else the compiler would multiply once for all of them.
#[inline(always)]
fn adds_body<V: Sums<W>, const W: usize, const N: usize, const C: usize>(rounds: u32) -> u64 {
    let mut columns = [V::columns(&[[0; 4]; W]); C];
    for (code, column) in (1..).zip(&mut columns) {
        // Four products add up to zero, so that no number of rounds overflows.
        *column = V::columns(&black_box([[code, -code, 100, -100]; W]));
    }
    let row = V::row([255; 4]);
    let mut sums = [V::start(&[0; W]); N];
    for _ in 0..rounds {
        // Hidden, so that no product is carried from one round into the next.
        let row = black_box(row);
        for n in 0..N {
            sums[n] = sums[n].add(row, columns[n % C]);
        }
    }
    for sum in sums {
        black_box(sum.total());
    }
    u64::from(rounds) * (N * W * 4) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_multiplies_and_adds_as_often() {
        let once = multiply_adds(1);
        assert!(once >= 64 && once.is_multiple_of(16));
        assert_eq!(multiply_adds(100_000), 100_000 * once);
        assert_eq!(adds_body::<[i32; 4], 4, 4, 4>(100_000), 6_400_000);
    }
}
