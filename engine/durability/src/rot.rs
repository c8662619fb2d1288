//! A bit that flips in a file: it is told, or it makes no difference.

use crate::check::Life;
use crate::numbers::Numbers;
use crate::scenarios::{Tried, acknowledged};
use hedgerow::{FileName, Snapshot, Store};

/// Bits that flip at a moment, each by itself.
const BITS: usize = 8;

impl Life {
    /// Bits of any files flip, one at a time: a reader and a writer say what they said before, or that something is
    /// damaged.
    pub(crate) fn rot(&self, moment: usize, seed: u64, tried: &mut Tried) -> Result<(), String> {
        let (state, mark) = &self.recorded[moment];
        let mut numbers = Numbers(seed);
        let names: Vec<FileName> = state.names().filter(|name| *name != FileName::Lock).collect();
        for _ in 0..BITS {
            let Some(name) = names.get(numbers.below(names.len())) else { return Ok(()) };
            let bytes = state.bytes(name).map_or(0, <[u8]>::len);
            let (byte, bit) = (numbers.below(bytes), u32::try_from(numbers.below(8)).unwrap_or(0));
            let disk = state.killed();
            disk.flip(name, byte, bit);
            tried.bits += 1;
            let named = |who: &str, found| format!("bit {bit} of byte {byte} of {name} is flipped: {who}: {found}");
            let known = acknowledged(*mark);
            if let Ok(snapshot) = Snapshot::open_in(&disk) {
                self.says_or_tells(&snapshot, known).map_err(|found| named("a reader", found))?;
            }
            if let Ok(store) = Store::open_in(self.env(&disk, seed)) {
                self.says_or_tells(&store.snapshot(), known).map_err(|found| named("a writer", found))?;
            }
        }
        Ok(())
    }

    fn says_or_tells(&self, snapshot: &Snapshot, known: usize) -> Result<(), String> {
        // What a damaged projection would have said is missing, and that is said.
        if snapshot.incomplete().iter().any(|lack| lack.starts_with("a projection cannot be read")) {
            return Ok(());
        }
        self.position_if_said(snapshot, known.saturating_sub(1), known).map(|_| ())
    }
}
