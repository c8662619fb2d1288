//! Which pairs a pass compares.

use crate::distance::codes::{Codes, Lefts};
use crate::distance::tile::TILE_COLUMNS;

/// Rows on the left, to be compared with all rows: each pair once, and none with what is skipped.
pub struct Sides {
    /// Places of the rows on the left, ascending.
    pub left: Vec<u32>,
    /// Their codes.
    pub lefts: Lefts,
    /// Pairs in all.
    pub pairs: u64,
    /// For each panel of columns which of them are on the left too, and which are not compared at all.
    panels: Vec<(u32, u32)>,
}

impl Sides {
    /// All pairs of the rows of which these are the codes.
    pub fn all(codes: &Codes) -> Self {
        Self::new(codes, (0..u32::MAX).take(codes.rows()).collect(), &[])
    }

    /// Those of rows on the left with each other and with the other rows, apart from skipped ones, which are not on the left.
    pub fn new(codes: &Codes, left: Vec<u32>, skipped: &[u32]) -> Self {
        let rows = codes.rows();
        let mut panels = vec![(0, 0); rows.div_ceil(TILE_COLUMNS)];
        let bit = |place: u32| (place as usize / TILE_COLUMNS, 1_u32 << (place as usize % TILE_COLUMNS));
        for (panel, bit) in left.iter().map(|place| bit(*place)) {
            panels[panel].0 |= bit;
        }
        for (panel, bit) in skipped.iter().map(|place| bit(*place)) {
            panels[panel].1 |= bit;
        }
        let others = (rows - skipped.len()).saturating_sub(left.len()) as u64;
        let pairs = left.len() as u64 * others + pairs_of(left.len());
        Self { lefts: codes.lefts(&left), left, pairs, panels }
    }

    /// Which columns of a panel a row on the left is compared with, of the first `end`.
    #[inline]
    pub fn counted(&self, place: usize, panel: usize, end: usize) -> u32 {
        let (left, skipped) = self.panels.get(panel).copied().unwrap_or_default();
        let before = (place + 1).saturating_sub(panel * TILE_COLUMNS).min(TILE_COLUMNS);
        below(end) & !skipped & !(left & below(before))
    }
}

/// Pairs among so many rows.
pub fn pairs_of(rows: usize) -> u64 {
    rows as u64 * (rows as u64).saturating_sub(1) / 2
}

/// A bit for each of the first places, at most 32.
fn below(place: usize) -> u32 {
    u32::try_from((1_u64 << place) - 1).unwrap_or(u32::MAX)
}
