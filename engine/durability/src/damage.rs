//! What a power cut does to bytes that were not synced.

use crate::disk::{Write, parts};
use crate::numbers::Numbers;

/// How a write may be torn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Torn {
    /// Not at all.
    Whole,
    /// Once, between any two bytes.
    Byte,
    /// At every multiple of so many bytes.
    Unit(usize),
}

/// What one power cut does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Damage {
    torn: Torn,
    /// Of a hundred parts of writes so many survive.
    data: u64,
    /// Of a hundred changes of names so many survive.
    pub names: u64,
    /// Where a file grew and its bytes were lost there are stale bytes, not zeros.
    stale: bool,
    /// Renames are done again by name.
    pub by_name: bool,
}

/// Of data and of names none, all, or some survive.
const SHARES: [(u64, u64); 8] = [(0, 0), (0, 100), (100, 0), (100, 100), (50, 50), (20, 80), (80, 20), (95, 95)];
const TORN: [Torn; 4] = [Torn::Unit(512), Torn::Byte, Torn::Unit(4096), Torn::Whole];

impl Damage {
    /// The lowest bits of the seed choose the shares, so that eight seeds in a row have them all.
    pub(crate) fn draw(seed: u64, numbers: &mut Numbers) -> Self {
        let (data, names) = SHARES[usize::try_from(seed % 8).unwrap_or(0)];
        let torn = TORN[numbers.below(TORN.len())];
        let mut often = || numbers.chance(50);
        Self { torn, data, names, stale: often(), by_name: often() }
    }

    /// Does to `durable` what survives of the writes: later ones may survive where earlier ones are lost.
    pub(crate) fn survive(&self, pending: &[Write], durable: &mut Vec<u8>, numbers: &mut Numbers) {
        for write in pending {
            for part in parts(write, self.torn, numbers) {
                if !numbers.chance(self.data) {
                    continue;
                }
                match part {
                    Write::At(start, bytes) => {
                        self.grow(durable, start + bytes.len(), numbers);
                        durable[start..start + bytes.len()].copy_from_slice(&bytes);
                    }
                    Write::Length(end) => {
                        self.grow(durable, end, numbers);
                        durable.truncate(end);
                    }
                }
            }
        }
    }

    fn grow(&self, durable: &mut Vec<u8>, end: usize, numbers: &mut Numbers) {
        while durable.len() < end {
            let stale = numbers.draw().to_le_bytes()[0];
            durable.push(if self.stale { stale } else { 0 });
        }
    }
}
