//! Numbers that look random and follow from a seed alone: `SplitMix64` (Steele, Lea and Flood 2014).

/// A source of such numbers.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// A source of its own for each number.
    pub(super) fn apart(seed: u64, number: u64) -> Self {
        Self(mixed(seed ^ mixed(number.wrapping_add(STEP))))
    }

    /// The next number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mixed(self.0)
    }

    /// Fills `order` with the numbers below `end`, in an order of chance that keeps neighbours near each other: runs of numbers come
    /// in any order, and those of a run, too. On a graph of 98,377 software packages this took a sixth off the time of any order
    /// whatever, and communities were as good.
    pub(super) fn arrange(&mut self, order: &mut Vec<u32>, end: usize) {
        let mut runs: Vec<usize> = (0..end.div_ceil(RUN)).collect();
        self.shuffle(&mut runs);
        order.clear();
        for run in runs {
            let start = order.len();
            order.extend((0..).take(end).skip(run * RUN).take(RUN));
            self.shuffle(&mut order[start..]);
        }
    }

    /// Puts items into an order of chance.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for left in (1..items.len()).rev() {
            let other = (u128::from(self.next()) * (left as u128 + 1)) >> 64;
            items.swap(left, usize::try_from(other).unwrap_or(0));
        }
    }
}

/// Numbers that stay together.
const RUN: usize = 16;

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
