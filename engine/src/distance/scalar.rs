//! Sums of products of codes by plain arithmetic: what every other form must give.
#![expect(clippy::inline_always, reason = "as the other forms")]

use crate::distance::tile::{Left, Right, Sums};

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
}
