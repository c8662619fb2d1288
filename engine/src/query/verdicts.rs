//! What the signals of edges say of one pair of chunks.

use crate::error::QueryError;
use crate::index::edges::composite::{Combination, Composition, Voice, agrees};
use crate::index::edges::{EdgeRules, Signal, SignalKind};
use crate::query::explain::Reason;
use crate::snapshot::{Bounded, Signals};
use hedgerow_format::ChunkId;
use hedgerow_format::edges::PairKind;

/// What a signal says of a pair.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Verdict {
    /// The signal.
    pub signal: Signal,
    /// How similar the two are by it.
    pub similarity: f32,
    /// Its threshold, when the edges were made; none where it takes no part in pairs of this kind.
    pub threshold: Option<f32>,
    /// Whether the pair reaches it, and has something in common where the signal is none of vectors; false where it takes no part.
    pub agrees: bool,
}

impl Bounded<'_> {
    /// What each signal of some rules says of a pair, and the weight that comes of those that take part, if any does. `chunks` are
    /// those that occur in pairs of the kind.
    pub(super) fn verdicts(
        &self,
        pair: [ChunkId; 2],
        (space, kind): (&str, PairKind),
        (rules, thresholds): (&EdgeRules, &[f32]),
        chunks: &[ChunkId],
    ) -> Result<(Vec<Verdict>, Option<f32>), QueryError> {
        let mentions = |chunk| -> Result<Vec<u32>, QueryError> {
            let Some(links) = self.links() else { return Ok(Vec::new()) };
            let mentions = links.mentions(chunk)?;
            self.guard.hold::<u32>(mentions.len())?;
            Ok(mentions.iter().collect())
        };
        let step = || self.guard.poll();
        let source = Signals { snapshot: self, space, mentions: &mentions, step: &step };
        // How rare an entity is, all chunks tell; of the rest the two are enough. They come first.
        let others = chunks.iter().copied().filter(|chunk| !pair.contains(chunk));
        let all: Vec<ChunkId> = pair.into_iter().chain(others).collect();
        let rows = |what: &SignalKind| if *what == SignalKind::RareEntities { &all[..] } else { &all[..2] };
        let signals = rules.signals.iter().map(|signal| source.of(&signal.what, rows(&signal.what)));
        let signals = signals.collect::<Result<Vec<_>, QueryError>>()?;
        let (mut verdicts, mut voices) = (Vec::new(), Vec::new());
        let thresholds = thresholds.iter().copied().chain(std::iter::repeat(0.0));
        for ((signal, rule), threshold) in signals.iter().zip(&rules.signals).zip(thresholds) {
            let similarity = signal.similarity(0, 1);
            let threshold = rule.what.takes_part(kind).then_some(threshold);
            let agrees = threshold.is_some_and(|threshold| agrees(signal.as_ref(), similarity, threshold));
            verdicts.push(Verdict { signal: rule.clone(), similarity, threshold, agrees });
            if threshold.is_some() {
                let (percentile, weight) = (rule.percentile, f64::from(rule.weight));
                voices.push(Voice { signal: signal.as_ref(), percentile, weight });
            }
        }
        let combination = if rules.weighted { Combination::Weighted } else { Combination::Agree };
        let weight = (!voices.is_empty()).then(|| Composition::new(&voices, combination).weight(0, 1));
        Ok((verdicts, weight))
    }
}

/// What decided about a pair by its signals and the threshold of its weight; `stands` says that it is an edge by them as things are
/// now.
pub(super) fn reason(
    rules: &EdgeRules,
    threshold: f32,
    (verdicts, weight): (&[Verdict], Option<f32>),
    stands: bool,
) -> Reason {
    let mut taking_part = verdicts.iter().filter(|verdict| verdict.threshold.is_some());
    match weight {
        None => Reason::NotAgreed,
        Some(_) if !rules.weighted && taking_part.any(|verdict| !verdict.agrees) => Reason::NotAgreed,
        Some(weight) if rules.weighted && weight < threshold => Reason::BelowThreshold,
        Some(weight) if rules.least.is_some_and(|least| weight < least) => Reason::BelowLeast,
        Some(_) if stands => Reason::Kept,
        Some(_) => Reason::NotKept,
    }
}
