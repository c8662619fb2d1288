//! Which pairs become edges.

use crate::error::RulesError;
use hedgerow_format::edges::PairKind;
use hedgerow_format::limits;
use hedgerow_format::manifest::EdgeSettings;

/// Which pairs of chunks become edges. Each kind of pairs has a threshold of its own, and every chunk chooses among the
/// partners of each kind apart.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeRules {
    /// The share of pairs that lie below the threshold, in thousandths of a per cent; at most 100,000.
    pub percentile: u32,
    /// The same for pairs of two tables, where it is another.
    pub percentile_tables: Option<u32>,
    /// The same for pairs of a table and a chunk that is none, where it is another.
    pub percentile_across: Option<u32>,
    /// How many partners a chunk may choose, at most 1,024; a pair stays if either end chose it.
    pub top_m: u32,
}

impl Default for EdgeRules {
    fn default() -> Self {
        Self::new(95_000, 16)
    }
}

impl EdgeRules {
    /// One percentile for all kinds of pairs, in thousandths of a per cent, and how many partners a chunk may choose.
    #[must_use]
    pub const fn new(percentile: u32, top_m: u32) -> Self {
        Self { percentile, percentile_tables: None, percentile_across: None, top_m }
    }

    /// The percentile for a kind of pairs.
    #[must_use]
    pub fn percentile_of(&self, kind: PairKind) -> u32 {
        match kind {
            PairKind::DocumentDocument => None,
            PairKind::TableTable => self.percentile_tables,
            PairKind::TableDocument => self.percentile_across,
        }
        .unwrap_or(self.percentile)
    }

    /// Whether edges can be made by these rules at all.
    ///
    /// # Errors
    /// [`RulesError`].
    pub fn check(&self) -> Result<(), RulesError> {
        let percentiles = PairKind::ALL.map(|kind| ("a percentile", self.percentile_of(kind), limits::PERCENTILE_MAX));
        let others = [("top m", self.top_m, limits::EDGES_TOP_M)];
        match percentiles.into_iter().chain(others).find(|(_, found, limit)| found > limit) {
            Some((what, found, limit)) => Err(RulesError::TooMuch { what, found, limit }),
            None => Ok(()),
        }
    }

    /// What a manifest keeps of them.
    #[must_use]
    pub fn settings(&self) -> EdgeSettings {
        EdgeSettings { percentiles: PairKind::ALL.map(|kind| self.percentile_of(kind)), top_m: self.top_m }
    }

    /// The rules that a manifest keeps.
    #[must_use]
    pub fn of(settings: &EdgeSettings) -> Self {
        let [percentile, tables, across] = settings.percentiles;
        let other = |of_kind: u32| Some(of_kind).filter(|of_kind| *of_kind != percentile);
        Self { percentile, percentile_tables: other(tables), percentile_across: other(across), top_m: settings.top_m }
    }
}
