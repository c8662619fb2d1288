//! The definition of similarity edges, computed pair by pair.

use crate::stores::Numbers;
use hedgerow::{
    Cap, EdgeRules, PairKind, StagedChunk, StagedDocument, StagedEntity, StagedExtraction, StagedVector, dot,
};
use hedgerow_format::Key;
use std::collections::{BTreeMap, BTreeSet};

/// Pairs of chunk keys, the lower first, with their similarity.
pub type Pairs = BTreeMap<(String, String), f32>;

/// A document of one chunk with a vector.
#[derive(Clone, Debug)]
pub struct Row {
    pub key: String,
    pub table: bool,
    pub vector: Vec<f32>,
    /// At most two of [`NAMES`].
    pub entities: BTreeSet<usize>,
}

/// Names of entities.
pub const NAMES: [&str; 8] = ["Amber", "Birch", "Cedar", "Dahlia", "Elm", "Fern", "Ginkgo", "Hazel"];

pub fn entities(numbers: &mut Numbers) -> BTreeSet<usize> {
    (0..numbers.below(3)).map(|_| numbers.below(NAMES.len()).min(numbers.below(NAMES.len()))).collect()
}

impl Row {
    pub fn staged(&self) -> StagedDocument {
        let vector = StagedVector { space: "v".into(), model: "m".into(), components: self.vector.clone() };
        let kind = u32::from(self.table);
        let named = self.entities.iter().flat_map(|entity| StagedEntity::new(NAMES[*entity], "thing"));
        let (extractor, model, entities) = ("x".into(), "m".into(), named.collect());
        let extraction = StagedExtraction { extractor, model, entities, relations: Vec::new() };
        let (range, vectors, extractions) = (0..4, vec![vector], vec![extraction]);
        let chunk = StagedChunk { range, kind, vectors, extractions, ..StagedChunk::default() };
        let mut fingerprint = [1 + u8::from(self.table); 16];
        self.entities.iter().for_each(|entity| fingerprint[*entity] += 2);
        let (name, text) = (self.key.clone(), "text".into());
        StagedDocument { name, text, fingerprint, chunks: vec![chunk], ..StagedDocument::default() }
    }
}

pub fn name(row: usize) -> String {
    format!("document {row}")
}

pub fn direction(numbers: &mut Numbers, dimensions: usize) -> Vec<f32> {
    let mut vector: Vec<f32> = (0..dimensions).map(|_| numbers.component()).collect();
    vector[0] += 2.0;
    hedgerow::normalise(&mut vector).expect("it has a direction");
    vector
}

pub struct Expected {
    pub edges: Pairs,
    /// Those by similarity, and those for entities.
    pub similar: BTreeSet<(String, String)>,
    pub shared: BTreeSet<(String, String)>,
    /// Of all pairs.
    pub similarities: Vec<f32>,
    pub pairs: u64,
    pub passed: u64,
    pub threshold: f32,
}

/// The edges of one kind, by the definition.
pub fn expected(rows: &[Row], rules: &EdgeRules, kind: PairKind) -> Expected {
    let joins = |a: usize, b: usize| a != b && PairKind::of([rows[a].table, rows[b].table]) == kind;
    let all: Vec<(usize, usize)> =
        (0..rows.len()).flat_map(|a| (a + 1..rows.len()).map(move |b| (a, b))).filter(|(a, b)| joins(*a, *b)).collect();
    let similarity = |a: usize, b: usize| dot(&rows[a].vector, &rows[b].vector) + 0.0;
    let mut similarities: Vec<f32> = all.iter().map(|(a, b)| similarity(*a, *b)).collect();
    similarities.sort_by(f32::total_cmp);
    let index = all.len() * rules.percentile_of(kind) as usize / 100_000;
    let threshold = similarities.get(index.min(all.len().saturating_sub(1))).copied().unwrap_or_default();
    let passes =
        |a: usize, b: usize| similarity(a, b) >= threshold && rules.least.is_none_or(|least| similarity(a, b) >= least);
    // For each row all partners, best first.
    let key = |row: usize| Key::of_document(&rows[row].key);
    let orders: Vec<Vec<usize>> = (0..rows.len())
        .map(|row| {
            let mut order: Vec<usize> = (0..rows.len()).filter(|other| joins(row, *other)).collect();
            order.sort_by(|a, b| similarity(row, *b).total_cmp(&similarity(row, *a)).then(key(*a).cmp(&key(*b))));
            order
        })
        .collect();
    let near = |a: usize, b: usize| {
        let most = rules.nearest.map_or(rows.len(), |nearest| nearest as usize);
        orders[a].iter().take(most).any(|other| *other == b)
    };
    let choice = |row: usize| -> Vec<usize> {
        let candidates = orders[row].iter().copied().filter(|other| near(row, *other) || near(*other, row));
        candidates.filter(|other| passes(row, *other)).take(rules.top_m as usize).collect()
    };
    let choices: Vec<Vec<usize>> = (0..rows.len()).map(choice).collect();
    let by_entities: Vec<Vec<usize>> = (0..rows.len()).map(|row| sharing(rows, rules, row, &orders[row])).collect();
    let either = |choices: &[Vec<usize>], a: usize, b: usize| choices[a].contains(&b) || choices[b].contains(&a);
    let both = |a: usize, b: usize| choices[a].contains(&b) && choices[b].contains(&a);
    let names = |a: usize, b: usize| ordered(format!("{}#0", rows[a].key), format!("{}#0", rows[b].key));
    let of = |kept: &dyn Fn(usize, usize) -> bool| -> BTreeSet<(String, String)> {
        all.iter().filter(|(a, b)| kept(*a, *b)).map(|(a, b)| names(*a, *b)).collect()
    };
    let similar = of(&|a, b| if rules.cap == Cap::Both { both(a, b) } else { either(&choices, a, b) });
    let shared = of(&|a, b| either(&by_entities, a, b));
    let weights: Pairs = all.iter().map(|(a, b)| (names(*a, *b), similarity(*a, *b))).collect();
    let edges = weights.into_iter().filter(|(pair, _)| similar.contains(pair) || shared.contains(pair)).collect();
    let passed = similarities.iter().filter(|similarity| **similarity >= threshold).count() as u64;
    Expected { edges, similar, shared, similarities, pairs: all.len() as u64, passed, threshold }
}

/// The partners that a row chooses for rare entities, of some, best first by similarity.
pub fn sharing(rows: &[Row], rules: &EdgeRules, row: usize, order: &[usize]) -> Vec<usize> {
    let Some(shared) = rules.shared else { return Vec::new() };
    let mentioning = |entity: usize| rows.iter().filter(|row| row.entities.contains(&entity)).count();
    let common = |other: usize| -> Vec<usize> {
        let entities = rows[row].entities.intersection(&rows[other].entities);
        let mut counts: Vec<usize> = entities.map(|entity| mentioning(*entity)).collect();
        counts.retain(|count| *count <= shared.chunks_max as usize);
        counts.sort_unstable();
        counts
    };
    #[expect(clippy::cast_precision_loss, reason = "they are few")]
    let weight = |counts: &[usize]| -> f64 {
        let idf = |count: usize| (1.0 + ((rows.len() - count) as f64 + 0.5) / (count as f64 + 0.5)).ln();
        counts.iter().map(|count| idf(*count)).sum()
    };
    let mut partners: Vec<(f64, usize)> = order.iter().map(|other| (weight(&common(*other)), *other)).collect();
    partners.retain(|(_, other)| !common(*other).is_empty());
    // Stable, so that among equals the more similar comes first.
    partners.sort_by(|a, b| b.0.total_cmp(&a.0));
    partners.into_iter().take(shared.top_m as usize).map(|(_, other)| other).collect()
}

/// The edges of all kinds.
pub fn all_expected(rows: &[Row], rules: &EdgeRules) -> Pairs {
    PairKind::ALL.into_iter().flat_map(|kind| expected(rows, rules, kind).edges).collect()
}

pub fn ordered(a: String, b: String) -> (String, String) {
    if a < b { (a, b) } else { (b, a) }
}
