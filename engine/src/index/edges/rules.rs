//! The rules by which pairs of chunks become edges.

use crate::error::RulesError;
use crate::index::edges::image::{image, score};
use crate::index::edges::{Population, Pruning};
use hedgerow_format::edges::PairKind;
use hedgerow_format::limits;
use hedgerow_format::manifest::{EdgeSettings, EdgeSignal};

/// Which pairs of chunks become edges. Each kind of pairs has a threshold and edges of its own, and a chunk chooses among
/// the partners of each kind apart.
///
/// A pair is a candidate if one end is among the `nearest` of the other, and passes if it is at or above both the threshold,
/// the order statistic of all pairs of its kind at the percentile, and `least`. Of the candidates that pass each chunk
/// chooses the `top_m` most similar, and a pair stays if either end, or both, chose it. Pairs that share a rare entity are
/// added to those.
///
/// Where there are signals, they take the place of the similarity alone. Either a pair passes if it reaches the threshold of
/// every signal, its own percentile among all pairs, and has something in common by those that aren't vectors; the similarity by
/// the first signal is its weight. Or, `weighted`, the mean of the similarities by their weights is its weight and reaches the
/// percentile of the kind. The weight is at or above `least`; the `nearest` are those by the first signal.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeRules {
    /// The share of pairs that lie below the threshold, in thousandths of a per cent; at most 100,000.
    pub percentile: u32,
    /// The same for pairs of two tables, where it is another.
    pub percentile_tables: Option<u32>,
    /// The same for pairs of a table and a chunk that is none, where it is another.
    pub percentile_across: Option<u32>,
    /// How many partners of a kind a chunk chooses; at most 1,024.
    pub top_m: u32,
    /// Whose choice a pair needs.
    pub cap: Cap,
    /// How many of the nearest chunks are candidates, 1 to 1,024; none for all. As far as either end's choice is enough
    /// and there are no signals, no more of them than `top_m` change anything.
    pub nearest: Option<u32>,
    /// Whether the nearest are those that walks through an index find, which is made for it: nearly all of them. Then pairs are
    /// compared for a percentile above 0 alone. There are no signals.
    pub indexed: bool,
    /// The similarity that a pair must have at least; none for any.
    pub least: Option<f32>,
    /// Which entities join chunks whatever their similarity; none for no entity.
    pub shared: Option<Shared>,
    /// What tells how alike chunks are, at most 16; where there is none, the similarity of the space's vectors alone.
    pub signals: Vec<Signal>,
    /// Whether signals are weighted, by weights of which one is not zero, or must all agree.
    pub weighted: bool,
}

/// Whose choice a pair needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cap {
    /// That of either end.
    #[default]
    Either,
    /// That of both.
    Both,
}

/// Entities that join the chunks which mention them, whatever their similarity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    /// Chunks that may mention such an entity, 1 to 1,024: it is a rare one.
    pub chunks_max: u32,
    /// How many partners of a kind a chunk chooses, at most 1,024: those with the most idf of such entities in common, among
    /// equals the most similar. A pair is joined if either end chose it.
    pub top_m: u32,
}

/// A signal of how alike two chunks are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// What is compared.
    pub what: SignalKind,
    /// The share of pairs that lie below its threshold, in thousandths of a per cent; at most 100,000.
    pub percentile: u32,
    /// Its weight, in thousandths, where signals are weighted; at most 1,000,000.
    pub weight: u32,
}

/// What a signal compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignalKind {
    /// The vectors of the space.
    Content,
    /// The vectors of another space, such as one of titles.
    Vectors(String),
    /// The entities that both mention.
    Entities,
    /// Likewise, by how rare they are.
    RareEntities,
    /// The columns of tables, in pairs of two tables alone.
    Columns,
    /// The words.
    Words,
    /// The words of the titles of their documents.
    Titles,
}

impl Default for EdgeRules {
    fn default() -> Self {
        Self::new(95_000, 16)
    }
}

impl EdgeRules {
    /// One percentile for all kinds of pairs, in thousandths of a per cent, and how many partners a chunk chooses; either
    /// end's choice is enough.
    #[must_use]
    pub const fn new(percentile: u32, top_m: u32) -> Self {
        Self {
            percentile,
            percentile_tables: None,
            percentile_across: None,
            top_m,
            cap: Cap::Either,
            nearest: None,
            indexed: false,
            least: None,
            shared: None,
            signals: Vec::new(),
            weighted: false,
        }
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

    /// Whether every value is within its limits.
    ///
    /// # Errors
    /// [`RulesError`].
    pub fn check(&self) -> Result<(), RulesError> {
        let percentile = |of: u32| ("a percentile", of, 0, limits::PERCENTILE_MAX);
        let count = |what, of: u32, least: u32| (what, of, least, limits::EDGES_TOP_M);
        let mut values: Vec<(&'static str, u32, u32, u32)> =
            PairKind::ALL.into_iter().map(|kind| percentile(self.percentile_of(kind))).collect();
        values.push(count("top m", self.top_m, 0));
        values.extend(self.nearest.map(|nearest| count("the number of nearest chunks", nearest, 1)));
        if let Some(shared) = self.shared {
            values.push(count("the number of chunks that mention a shared entity", shared.chunks_max, 1));
            values.push(count("the number of partners for shared entities", shared.top_m, 0));
        }
        let number = |of: usize| u32::try_from(of).unwrap_or(u32::MAX);
        let signals = number(self.signals.len());
        values.push(("the number of signals", signals, 0, number(limits::EDGE_SIGNALS)));
        for signal in &self.signals {
            values.push(percentile(signal.percentile));
            values.push(("the weight of a signal", signal.weight, 0, limits::EDGE_SIGNAL_WEIGHT));
            if let SignalKind::Vectors(space) = &signal.what {
                values.push(("the length of a signal's space", number(space.len()), 1, number(limits::NAME_BYTES)));
            }
        }
        if self.weighted && !self.signals.is_empty() {
            let sum = self.signals.iter().fold(0, |sum: u32, signal| sum.saturating_add(signal.weight));
            values.push(("the sum of the weights of signals", sum, 1, u32::MAX));
        }
        if let Some((what, found, least, most)) =
            values.into_iter().find(|(_, found, least, most)| found < least || found > most)
        {
            return Err(RulesError::Beyond { what, found, least, most });
        }
        if self.indexed && (self.nearest.is_none() || !self.signals.is_empty()) {
            return Err(RulesError::Indexed);
        }
        match self.least {
            Some(least) if !least.is_finite() => Err(RulesError::NoNumber { found: least.to_string() }),
            _ => Ok(()),
        }
    }

    /// Whether they are about what chunks mention.
    pub(crate) fn reads_mentions(&self) -> bool {
        let is_entities = |signal: &Signal| matches!(signal.what, SignalKind::Entities | SignalKind::RareEntities);
        self.shared.is_some() || self.signals.iter().any(is_entities)
    }

    /// What a manifest keeps of them.
    #[must_use]
    pub fn settings(&self) -> EdgeSettings {
        let signal = |signal: &Signal| {
            let (what, space) = signal.what.number();
            EdgeSignal { what, space: space.to_owned(), percentile: signal.percentile, weight: signal.weight }
        };
        EdgeSettings {
            percentiles: PairKind::ALL.map(|kind| self.percentile_of(kind)),
            top_m: self.top_m,
            cap: u32::from(self.cap == Cap::Both),
            nearest: self.nearest.unwrap_or(0),
            nearest_by: u32::from(self.indexed),
            least: self.least.map_or(0, image),
            shared_chunks: self.shared.map_or(0, |shared| shared.chunks_max),
            shared_top_m: self.shared.map_or(0, |shared| shared.top_m),
            weighted: u32::from(self.weighted),
            signals: self.signals.iter().map(signal).collect(),
        }
    }

    /// The rules that a manifest keeps, which knows all of its values.
    #[must_use]
    pub fn of(settings: &EdgeSettings) -> Self {
        let [percentile, tables, across] = settings.percentiles;
        let other = |of_kind: u32| Some(of_kind).filter(|of_kind| *of_kind != percentile);
        let EdgeSettings { shared_chunks, shared_top_m, .. } = *settings;
        let signal = |signal: &EdgeSignal| {
            let what = SignalKind::of(signal.what, &signal.space);
            Signal { what, percentile: signal.percentile, weight: signal.weight }
        };
        Self {
            percentile,
            percentile_tables: other(tables),
            percentile_across: other(across),
            top_m: settings.top_m,
            cap: if settings.cap == 0 { Cap::Either } else { Cap::Both },
            nearest: Some(settings.nearest).filter(|nearest| *nearest > 0),
            indexed: settings.nearest_by != 0,
            least: Some(settings.least).filter(|least| *least > 0).map(score),
            shared: (shared_chunks > 0).then_some(Shared { chunks_max: shared_chunks, top_m: shared_top_m }),
            signals: settings.signals.iter().map(signal).collect(),
            weighted: settings.weighted != 0,
        }
    }

    /// What is needed of them for the pairs of one kind.
    pub fn pruning(&self, kind: PairKind, pairs: Population) -> Pruning {
        Pruning {
            pairs,
            percentile: self.percentile_of(kind),
            top_m: self.top_m,
            cap: self.cap,
            nearest: self.nearest,
            least: self.least.map_or(0, image),
            apart: self.cap == Cap::Both || self.nearest.is_some() || self.shared.is_some(),
        }
    }
}

impl SignalKind {
    /// Whether it takes part in pairs of a kind; where it does not, edges are made without it.
    #[must_use]
    pub fn takes_part(&self, kind: PairKind) -> bool {
        *self != Self::Columns || kind == PairKind::TableTable
    }

    /// The number in files, and the name of the other space.
    fn number(&self) -> (u32, &str) {
        match self {
            Self::Content => (0, ""),
            Self::Vectors(space) => (EdgeSignal::VECTORS, space),
            Self::Entities => (2, ""),
            Self::RareEntities => (3, ""),
            Self::Columns => (4, ""),
            Self::Words => (5, ""),
            Self::Titles => (6, ""),
        }
    }

    fn of(number: u32, space: &str) -> Self {
        match number {
            0 => Self::Content,
            EdgeSignal::VECTORS => Self::Vectors(space.to_owned()),
            2 => Self::Entities,
            3 => Self::RareEntities,
            4 => Self::Columns,
            5 => Self::Words,
            _ => Self::Titles,
        }
    }
}
