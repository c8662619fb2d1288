//! Numbers that follow from a seed, so that every run can be replayed.

/// `SplitMix64` (Steele, Lea and Flood 2014).
#[derive(Clone, Copy, Debug)]
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.draw() % end.max(1) as u64).unwrap_or(0)
    }

    /// A number from -1 to 1, in steps of 2⁻¹⁵.
    pub fn component(&mut self) -> f32 {
        let steps = u16::try_from(self.draw() >> 48).unwrap_or(0);
        f32::from(steps) / 32_768.0 - 1.0
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.draw() % 100 < percent
    }
}
