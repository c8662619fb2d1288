//! What an answer found of its gold, and means of that over many answers.

use std::collections::{BTreeSet, HashSet};

use hedgerow::{Context, QueryError, Snapshot};
use serde::Serialize;

const CUTS: [usize; 3] = [5, 10, 20];
/// Places that nDCG looks at, and that a gold key has to be among so as not to be missed.
pub(super) const TOP: usize = 10;

/// A key that answers a question.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gold {
    /// Of a document.
    Document(String),
    /// Of a chunk.
    Chunk(String),
    /// Of nothing in the store.
    Absent(String),
}

impl Gold {
    /// Tells what each key stands for; of the same key given twice one counts.
    pub(super) fn of(snapshot: &Snapshot, keys: &[String]) -> Result<Vec<Gold>, QueryError> {
        let distinct: BTreeSet<&String> = keys.iter().collect();
        let is_there = |node: String| match snapshot.find(&node) {
            Ok(_) => Ok(true),
            Err(QueryError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        };
        let gold = |key: &String| {
            if is_there(format!("doc:{key}"))? {
                return Ok(Gold::Document(key.clone()));
            }
            let is_chunk = is_there(format!("chunk:{key}"))?;
            Ok(if is_chunk { Gold::Chunk(key.clone()) } else { Gold::Absent(key.clone()) })
        };
        distinct.into_iter().map(gold).collect()
    }

    /// The key.
    pub(super) fn key(&self) -> &str {
        let (Gold::Document(key) | Gold::Chunk(key) | Gold::Absent(key)) = self;
        key
    }
}

/// The place of each gold key in an answer, from 0. Where all of them are documents, documents have places, by their best
/// chunk; else passages have.
pub(super) fn places(gold: &[Gold], context: &Context) -> Vec<Option<usize>> {
    let has_chunks = gold.iter().any(|gold| matches!(gold, Gold::Chunk(_)));
    let mut seen = HashSet::new();
    let passages = context.passages.iter();
    let ranked: Vec<(&str, &str)> = passages
        .map(|passage| (passage.document.as_str(), passage.key.as_str()))
        .filter(|(document, _)| has_chunks || seen.insert(*document))
        .collect();
    let place = |gold: &Gold| match gold {
        Gold::Document(key) => ranked.iter().position(|(document, _)| document == key),
        Gold::Chunk(key) => ranked.iter().position(|(_, chunk)| chunk == key),
        Gold::Absent(_) => None,
    };
    gold.iter().map(place).collect()
}

/// The figures of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figures {
    recall: [f64; 3],
    all: [f64; 3],
    reciprocal_rank: f64,
    gain: f64,
}

/// The figures by which strategies are compared.
pub(super) const COMPARED: [&str; 5] = ["recall@5", "recall@10", "all@10", "mrr", "ndcg@10"];

#[expect(clippy::cast_precision_loss, reason = "counts of questions and documents, far below 2^53")]
impl Figures {
    /// Of an answer whose gold has these places.
    pub(super) fn of(places: &[Option<usize>]) -> Self {
        let count = places.len().max(1);
        let among = |cut: usize| places.iter().flatten().filter(|place| **place < cut).count();
        let worth = |place: usize| 1.0 / ((place + 2) as f64).log2();
        let mut top: Vec<usize> = places.iter().flatten().copied().filter(|place| *place < TOP).collect();
        // In the order of the best, so that the best is 1 to the last bit.
        top.sort_unstable();
        let gain = top.into_iter().fold(0.0, |sum, place| sum + worth(place));
        let best: f64 = (0..count.min(TOP)).map(worth).sum();
        Figures {
            recall: CUTS.map(|cut| among(cut) as f64 / count as f64),
            all: CUTS.map(|cut| if among(cut) == count { 1.0 } else { 0.0 }),
            reciprocal_rank: places.iter().flatten().min().map_or(0.0, |first| 1.0 / (first + 1) as f64),
            // A document and its own chunk may both be gold and share a place.
            gain: (gain / best).min(1.0),
        }
    }

    /// In the order of [`COMPARED`].
    pub(super) fn compared(&self) -> [f64; 5] {
        let ([five, ten, _], [_, all, _]) = (self.recall, self.all);
        [five, ten, all, self.reciprocal_rank, self.gain]
    }
}

/// Means of the figures of many answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Means {
    pub recall: AtCuts,
    pub all: AtCuts,
    pub mrr: f64,
    pub ndcg: AtTop,
}

/// A measure over the first 5, 10 and 20 documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct AtCuts {
    #[serde(rename = "5")]
    pub five: f64,
    #[serde(rename = "10")]
    pub ten: f64,
    #[serde(rename = "20")]
    pub twenty: f64,
}

/// A measure over the first 10 documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct AtTop {
    #[serde(rename = "10")]
    pub ten: f64,
}

impl Means {
    /// Zero where there are no answers.
    pub(super) fn of(figures: &[Figures]) -> Self {
        let cuts = |of: fn(&Figures) -> [f64; 3]| {
            let at = |cut: usize| mean(figures.iter().map(|figures| of(figures).get(cut).copied().unwrap_or_default()));
            AtCuts { five: at(0), ten: at(1), twenty: at(2) }
        };
        Means {
            recall: cuts(|figures| figures.recall),
            all: cuts(|figures| figures.all),
            mrr: mean(figures.iter().map(|figures| figures.reciprocal_rank)),
            ndcg: AtTop { ten: mean(figures.iter().map(|figures| figures.gain)) },
        }
    }
}

/// The mean of some values; zero where there is none.
#[expect(clippy::cast_precision_loss, reason = "counts of questions, far below 2^53")]
pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0_u64);
    for value in values {
        sum += value;
        count += 1;
    }
    sum / count.max(1) as f64
}

#[cfg(test)]
mod tests {
    use crate::command::eval::measures::{Figures, Means};

    fn bits(figures: [f64; 5]) -> [u64; 5] {
        figures.map(f64::to_bits)
    }

    #[test]
    fn figures_are_those_of_the_places() {
        let found = Figures::of(&[Some(1), Some(5)]);
        let gain = (1.0 / 3_f64.log2() + 1.0 / 7_f64.log2()) / (1.0 + 1.0 / 3_f64.log2());
        assert_eq!((found.recall, found.all, found.reciprocal_rank), ([0.5, 1.0, 1.0], [0.0, 1.0, 1.0], 0.5));
        assert!((found.gain - gain).abs() < 1e-12, "{}", found.gain);
        let missed = Figures::of(&[None, Some(14)]);
        assert_eq!((missed.recall, missed.all), ([0.0, 0.0, 0.5], [0.0; 3]));
        assert_eq!(bits(missed.compared()), bits([0.0, 0.0, 0.0, 1.0 / 15.0, 0.0]));
        let perfect = Figures::of(&[Some(2), Some(0), Some(1)]);
        assert_eq!(bits(perfect.compared()), bits([1.0; 5]));
    }

    #[test]
    fn more_gold_than_places_can_still_be_ranked_perfectly() {
        let places: Vec<Option<usize>> = (0..30).map(Some).collect();
        let figures = Figures::of(&places);
        assert!((figures.gain - 1.0).abs() < 1e-12, "{figures:?}");
        assert_eq!(figures.all.map(f64::to_bits), [0.0_f64; 3].map(f64::to_bits));
    }

    #[test]
    fn means_of_nothing_are_zero() {
        assert_eq!(Means::of(&[]), Means::default());
        let means = Means::of(&[Figures::of(&[Some(0)]), Figures::of(&[None])]);
        assert_eq!((means.recall.five, means.all.ten, means.mrr, means.ndcg.ten), (0.5, 0.5, 0.5, 0.5));
    }
}
