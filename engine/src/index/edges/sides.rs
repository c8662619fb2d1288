//! Which pairs there are, and which of them a pass compares.

use crate::distance::tile::TILE_COLUMNS;
use std::ops::Range;

/// Which pairs of rows there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Population {
    /// All.
    All,
    /// Those of one of the first so many rows, in the order of keys, with one of the others.
    Across(usize),
}

impl Population {
    /// How many pairs so many rows have.
    pub fn count(self, rows: usize) -> u64 {
        match self {
            Self::All => pairs_of(rows),
            Self::Across(firsts) => (firsts.min(rows) as u64).saturating_mul(rows.saturating_sub(firsts) as u64),
        }
    }

    /// Where pairs join two sides, which places are of the first.
    pub fn firsts(self, rows: usize) -> Option<Vec<bool>> {
        match self {
            Self::All => None,
            Self::Across(firsts) => Some((0..rows).map(|place| place < firsts).collect()),
        }
    }
}

/// Rows on the left, to be compared with all rows: each pair once, and none with what is skipped.
pub struct Sides {
    /// Places of the rows on the left, ascending.
    pub left: Vec<u32>,
    /// Pairs in all.
    pub pairs: u64,
    /// For each panel of columns which of them are on the left too, and which are not compared at all.
    panels: Vec<(u32, u32)>,
}

impl Sides {
    /// All pairs of so many rows.
    pub fn all(rows: usize, pairs: Population) -> Self {
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        match pairs {
            Population::All => Self::new(rows as usize, (0..rows).collect(), []),
            Population::Across(firsts) => {
                let firsts = u32::try_from(firsts).unwrap_or(u32::MAX).min(rows);
                Self::new(rows as usize, (0..firsts).collect(), 0..firsts)
            }
        }
    }

    /// Of so many rows the pairs of some with each other and with the other rows, apart from skipped ones, which are none of them.
    /// Where pairs join two sides, `firsts` says which places are of the first, and there is one of these for each side: its
    /// rows have no other left of them, so that the first of a tile has most columns.
    pub fn of_some(rows: usize, some: &[u32], skipped: &[u32], firsts: Option<&[bool]>) -> Vec<Self> {
        let Some(firsts) = firsts else { return vec![Self::new(rows, some.to_vec(), skipped.iter().copied())] };
        let is_first = |place: u32| firsts.get(place as usize).copied().unwrap_or_default();
        let on = |side: bool| some.iter().copied().filter(move |place| is_first(*place) == side);
        let places = || (0..u32::MAX).take(rows);
        let of_firsts = skipped.iter().copied().chain(places().filter(|place| is_first(*place)));
        let of_others = skipped.iter().copied().chain(places().filter(|place| !is_first(*place))).chain(on(true));
        vec![Self::new(rows, on(true).collect(), of_firsts), Self::new(rows, on(false).collect(), of_others)]
    }

    /// Those of rows on the left with each other and with the other rows. All or none of the left are among the skipped.
    fn new(rows: usize, left: Vec<u32>, skipped: impl IntoIterator<Item = u32>) -> Self {
        let mut panels = vec![(0, 0); rows.div_ceil(TILE_COLUMNS)];
        let bit = |place: u32| (place as usize / TILE_COLUMNS, 1_u32 << (place as usize % TILE_COLUMNS));
        for (panel, bit) in left.iter().map(|place| bit(*place)) {
            panels[panel].0 |= bit;
        }
        for (panel, bit) in skipped.into_iter().map(bit) {
            panels[panel].1 |= bit;
        }
        let count = |bits: fn(&(u32, u32)) -> u32| panels.iter().map(|panel| u64::from(bits(panel).count_ones())).sum();
        let (skipped, within): (u64, u64) = (count(|panel| panel.1), count(|panel| panel.0 & !panel.1));
        let others = (rows as u64).saturating_sub(skipped + within);
        let pairs = left.len() as u64 * others + within * within.saturating_sub(1) / 2;
        Self { left, pairs, panels }
    }

    /// Whether any row on the left from a position on, before the next `LEFT_ROWS`, is compared with a column of a range that begins
    /// with a panel.
    pub fn meet(&self, position: usize, columns: &Range<usize>) -> bool {
        // A later row is compared with no column that an earlier one is not.
        let Some(place) = self.left.get(position) else { return false };
        let panels = columns.clone().step_by(TILE_COLUMNS);
        let end = |first: usize| (columns.end - first).min(TILE_COLUMNS);
        panels.into_iter().any(|first| self.counted(*place as usize, first / TILE_COLUMNS, end(first)) > 0)
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
fn pairs_of(rows: usize) -> u64 {
    rows as u64 * (rows as u64).saturating_sub(1) / 2
}

/// A bit for each of the first places, at most 32.
fn below(place: usize) -> u32 {
    u32::try_from((1_u64 << place) - 1).unwrap_or(u32::MAX)
}
