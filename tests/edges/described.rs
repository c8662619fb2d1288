//! Documents with all that signals are about, and their edges by the definition, computed pair by pair.

use crate::edges::naive::{NAMES, Pairs, Row, direction, entities, name, ordered, sharing};
use crate::stores::Numbers;
use hedgerow::{Cap, EdgeRules, PairKind, Signal, SignalKind, StagedDocument, StagedVector, dot};
use hedgerow_format::Key;
use std::collections::{BTreeMap, BTreeSet};

/// Of the space.
const DIMENSIONS: usize = 5;

/// A document of one chunk with everything that signals are about.
#[derive(Clone, Debug)]
pub struct Described {
    pub row: Row,
    title: String,
    text: String,
    /// Its vector in another space.
    pub other: Option<Vec<f32>>,
}

impl Described {
    pub fn random(row: usize, numbers: &mut Numbers) -> Self {
        let words = |numbers: &mut Numbers, of: &str, most: usize| {
            let words = (0..numbers.below(most)).map(|_| format!("{of}{}", numbers.below(7)));
            words.collect::<Vec<_>>().join(" ")
        };
        let table = numbers.below(3) == 0;
        let cell = |numbers: &mut Numbers| format!("w{} {}", numbers.below(7), words(numbers, "w", 3));
        let line = |numbers: &mut Numbers| [(); 3].map(|()| cell(numbers)).join(" | ");
        let text = if table {
            (0..=numbers.below(3)).map(|_| line(numbers)).collect::<Vec<_>>().join("\n")
        } else {
            words(numbers, "w", 9)
        };
        let other = (numbers.below(4) > 0).then(|| other(numbers));
        let row = Row { key: name(row), table, vector: direction(numbers, DIMENSIONS), entities: entities(numbers) };
        // No text has the words of a title or a name, or it would mention it.
        Self { row, title: words(numbers, "t", 4), text: format!("{text}."), other }
    }

    pub fn staged(&self) -> StagedDocument {
        let mut document = self.row.staged();
        document.title.clone_from(&self.title);
        document.text.clone_from(&self.text);
        let hash = |text: &str| text.bytes().fold(7, |hash: u8, byte| hash.wrapping_mul(31).wrapping_add(byte));
        document.fingerprint[9] = hash(&self.title);
        document.fingerprint[10] = hash(&self.text);
        document.fingerprint[11..15].copy_from_slice(&self.row.vector[1].to_le_bytes());
        let chunk = &mut document.chunks[0];
        chunk.range.end = u32::try_from(self.text.len()).expect("it is short");
        let other = self.other.iter().cloned();
        chunk.vectors.extend(other.map(|components| StagedVector { space: "o".into(), model: "m".into(), components }));
        document
    }

    /// The columns of a table, each with its words.
    fn columns(&self) -> Vec<BTreeSet<String>> {
        if !self.row.table {
            return Vec::new();
        }
        let mut columns = vec![BTreeSet::new(); 3];
        for line in self.text.lines() {
            for (column, cell) in columns.iter_mut().zip(line.split(" | ")) {
                column.extend(words(cell));
            }
        }
        columns.retain(|column| !column.is_empty());
        columns
    }
}

/// A vector of the other space.
pub fn other(numbers: &mut Numbers) -> Vec<f32> {
    direction(numbers, DIMENSIONS - 2)
}

fn words(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[expect(clippy::cast_precision_loss, reason = "they are few")]
fn real(count: usize) -> f64 {
    count as f64
}

fn overlap<T: Ord>(a: &BTreeSet<T>, b: &BTreeSet<T>, weight: impl Fn(&T) -> f64) -> f64 {
    let all = |set: &BTreeSet<T>| set.iter().map(&weight).sum::<f64>();
    let shared: f64 = a.intersection(b).map(&weight).sum();
    if shared > 0.0 { shared / (all(a) + all(b) - shared) } else { 0.0 }
}

/// How similar two of the rows of a kind are by a signal.
#[expect(clippy::cast_possible_truncation, reason = "the definition's rounding")]
fn similarity(rows: &[&Described], what: &SignalKind, a: usize, b: usize) -> f32 {
    let [a, b] = [rows[a], rows[b]];
    let named = |row: &Described| -> BTreeSet<(Key, usize)> {
        row.row.entities.iter().map(|entity| (Key::of_entity(&NAMES[*entity].to_lowercase()), *entity)).collect()
    };
    let holders = |entity: usize| rows.iter().filter(|row| row.row.entities.contains(&entity)).count();
    let rarity = |n: f64| (1.0 + (real(rows.len()) - n + 0.5) / (n + 0.5)).ln();
    match what {
        SignalKind::Content => dot(&a.row.vector, &b.row.vector) + 0.0,
        SignalKind::Vectors(_) => a.other.iter().zip(&b.other).map(|(a, b)| dot(a, b) + 0.0).next().unwrap_or(0.0),
        SignalKind::Entities => overlap(&named(a), &named(b), |_| 1.0) as f32,
        SignalKind::RareEntities => overlap(&named(a), &named(b), |entity| rarity(real(holders(entity.1)))) as f32,
        SignalKind::Words => overlap(&words(&a.text), &words(&b.text), |_| 1.0) as f32,
        SignalKind::Titles => overlap(&words(&a.title), &words(&b.title), |_| 1.0) as f32,
        SignalKind::Columns => best_columns(&a.columns(), &b.columns()) as f32,
    }
}

/// The mean of the best pairs of columns, up to three.
fn best_columns(left: &[BTreeSet<String>], right: &[BTreeSet<String>]) -> f64 {
    let mut pairs: Vec<(f64, usize, usize)> = (0..left.len())
        .flat_map(|i| (0..right.len()).map(move |j| (overlap(&left[i], &right[j], |_| 1.0), i, j)))
        .filter(|pair| pair.0 > 0.0)
        .collect();
    pairs.sort_by(|a, b| {
        let places = |pair: &(f64, usize, usize)| (pair.1.min(pair.2), pair.1.max(pair.2));
        b.0.total_cmp(&a.0).then_with(|| places(a).cmp(&places(b)))
    });
    let narrower = left.len().min(right.len()).min(3);
    let (mut lefts, mut rights) = (BTreeSet::new(), BTreeSet::new());
    let mut sum = 0.0;
    for (overlap, i, j) in pairs {
        if lefts.len() < narrower && !lefts.contains(&i) && !rights.contains(&j) {
            lefts.insert(i);
            rights.insert(j);
            sum += overlap;
        }
    }
    if narrower == 0 { 0.0 } else { sum / real(narrower) }
}

/// What is to be expected of a kind of pairs.
pub struct Expected {
    pub pairs: u64,
    pub passed: u64,
    pub threshold: f32,
    pub thresholds: Vec<f32>,
    pub edges: Pairs,
    /// Those by signals.
    pub similar: BTreeSet<(String, String)>,
    /// Of all pairs, what the signals say and the weight.
    pub said: BTreeMap<(String, String), (Vec<f32>, Option<f32>)>,
}

fn order_statistic(mut all: Vec<f32>, percentile: u32) -> f32 {
    all.sort_by(f32::total_cmp);
    let index = all.len() * percentile as usize / 100_000;
    all.get(index.min(all.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// The pairs of one kind, and what the signals say of each.
struct Oracle<'o> {
    rules: &'o EdgeRules,
    kind: PairKind,
    rows: Vec<&'o Described>,
    said: BTreeMap<(usize, usize), Vec<f32>>,
    thresholds: Vec<f32>,
    /// Of the weight.
    threshold: f32,
}

impl<'o> Oracle<'o> {
    fn new(described: &'o [Described], rules: &'o EdgeRules, kind: PairKind) -> Self {
        let occurs = |row: &&Described| match kind {
            PairKind::DocumentDocument => !row.row.table,
            PairKind::TableTable => row.row.table,
            PairKind::TableDocument => true,
        };
        let rows = described.iter().filter(occurs).collect();
        let (said, thresholds) = (BTreeMap::new(), Vec::new());
        let mut oracle = Self { rules, kind, rows, said, thresholds, threshold: 0.0 };
        for a in 0..oracle.rows.len() {
            for b in a + 1..oracle.rows.len() {
                let says = |signal: &Signal| similarity(&oracle.rows, &signal.what, a, b);
                if oracle.joins(a, b) {
                    oracle.said.insert((a, b), rules.signals.iter().map(says).collect());
                }
            }
        }
        let all = |at: usize| oracle.said.values().map(|says| says[at]).collect();
        let threshold = |at: usize| {
            if oracle.takes_part(at) { order_statistic(all(at), rules.signals[at].percentile) } else { 0.0 }
        };
        let thresholds: Vec<f32> = (0..rules.signals.len()).map(threshold).collect();
        let weights = oracle.said.values().filter_map(|says| oracle.weight(says)).collect();
        let first = oracle.taking_part().next();
        oracle.threshold = match first {
            Some(first) if !rules.weighted => thresholds[first],
            _ => order_statistic(weights, rules.percentile_of(kind)),
        };
        oracle.thresholds = thresholds;
        oracle
    }

    fn takes_part(&self, signal: usize) -> bool {
        self.rules.signals[signal].what != SignalKind::Columns || self.kind == PairKind::TableTable
    }

    fn taking_part(&self) -> impl Iterator<Item = usize> {
        (0..self.rules.signals.len()).filter(|signal| self.takes_part(*signal))
    }

    fn joins(&self, a: usize, b: usize) -> bool {
        a != b && PairKind::of([self.rows[a].row.table, self.rows[b].row.table]) == self.kind
    }

    fn of(&self, a: usize, b: usize) -> &[f32] {
        &self.said[&(a.min(b), a.max(b))]
    }

    fn weight(&self, says: &[f32]) -> Option<f32> {
        let first = self.taking_part().next()?;
        if !self.rules.weighted {
            return Some(says[first]);
        }
        let weight = |at: usize| f64::from(self.rules.signals[at].weight);
        let sum = self.taking_part().map(|at| weight(at) * f64::from(says[at])).sum::<f64>();
        let score = sum / self.taking_part().map(weight).sum::<f64>();
        #[expect(clippy::cast_possible_truncation, reason = "the definition's rounding")]
        Some(if score.is_finite() { score as f32 } else { 0.0 })
    }

    fn passes(&self, a: usize, b: usize) -> bool {
        let says = self.of(a, b);
        let Some(weight) = self.weight(says) else { return false };
        let is_vectors =
            |at: usize| matches!(self.rules.signals[at].what, SignalKind::Content | SignalKind::Vectors(_));
        let agrees = |at: usize| says[at] >= self.thresholds[at] && (is_vectors(at) || says[at] > 0.0);
        let reaches = if self.rules.weighted { weight >= self.threshold } else { self.taking_part().all(agrees) };
        reaches && self.rules.least.is_none_or(|least| weight >= least)
    }

    /// The partners of a row, the best first.
    fn order(&self, row: usize, by: impl Fn(&[f32]) -> f32) -> Vec<usize> {
        let key = |row: usize| Key::of_document(&self.rows[row].row.key);
        let mut order: Vec<usize> = (0..self.rows.len()).filter(|other| self.joins(row, *other)).collect();
        order.sort_by(|a, b| by(self.of(row, *b)).total_cmp(&by(self.of(row, *a))).then(key(*a).cmp(&key(*b))));
        order
    }

    fn by_weight(&self, row: usize) -> Vec<usize> {
        self.order(row, |says| self.weight(says).unwrap_or(0.0))
    }

    /// Whether two rows pass, and one is among the nearest of the other.
    fn candidates(&self) -> BTreeSet<(usize, usize)> {
        let most = self.rules.nearest.map_or(usize::MAX, |nearest| nearest as usize);
        let nearest = |row: usize| {
            let order = self.order(row, |says| self.taking_part().next().map_or(0.0, |first| says[first]));
            order.into_iter().take(most).map(move |other| (row.min(other), row.max(other)))
        };
        (0..self.rows.len()).flat_map(nearest).filter(|(a, b)| self.passes(*a, *b)).collect()
    }
}

/// The edges of one kind, by the definition.
pub fn expected(described: &[Described], rules: &EdgeRules, kind: PairKind) -> Expected {
    let oracle = Oracle::new(described, rules, kind);
    let candidates = oracle.candidates();
    let is_candidate = |a: usize, b: usize| candidates.contains(&(a.min(b), a.max(b)));
    let choice = |row: usize| -> Vec<usize> {
        let order = oracle.by_weight(row).into_iter().filter(|other| is_candidate(row, *other));
        order.take(rules.top_m as usize).collect()
    };
    let every: Vec<Row> = described.iter().map(|row| row.row.clone()).collect();
    let place = |row: usize| every.iter().position(|one| one.key == oracle.rows[row].row.key).expect("it is there");
    let sharing = |row: usize| -> Vec<usize> {
        let order = oracle.by_weight(row);
        let places: Vec<usize> = order.iter().map(|other| place(*other)).collect();
        let chosen = sharing(&every, rules, place(row), &places);
        order.into_iter().filter(|other| chosen.contains(&place(*other))).collect()
    };
    let choices: Vec<Vec<usize>> = (0..oracle.rows.len()).map(choice).collect();
    let by_entities: Vec<Vec<usize>> = (0..oracle.rows.len()).map(sharing).collect();
    let chosen = |by: &[Vec<usize>], cap: Cap, a: usize, b: usize| match cap {
        Cap::Either => by[a].contains(&b) || by[b].contains(&a),
        Cap::Both => by[a].contains(&b) && by[b].contains(&a),
    };
    let key = |row: usize| format!("{}#0", oracle.rows[row].row.key);
    let (mut edges, mut similar, mut said) = (Pairs::new(), BTreeSet::new(), BTreeMap::new());
    for ((a, b), says) in &oracle.said {
        let (names, weight) = (ordered(key(*a), key(*b)), oracle.weight(says));
        let is_similar = chosen(&choices, rules.cap, *a, *b);
        if is_similar {
            similar.insert(names.clone());
        }
        if is_similar || chosen(&by_entities, Cap::Either, *a, *b) {
            edges.insert(names.clone(), weight.unwrap_or(0.0));
        }
        said.insert(names, (says.clone(), weight));
    }
    let (pairs, passed) = (oracle.said.len() as u64, candidates.len() as u64);
    let Oracle { threshold, thresholds, .. } = oracle;
    Expected { pairs, passed, threshold, thresholds, edges, similar, said }
}
