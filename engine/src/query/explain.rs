//! Explain: why a similarity edge between two chunks is there, or is not.

use crate::distance::rows::Rows;
use crate::error::QueryError;
use crate::index::control::{Cancelled, Control};
use crate::index::edges::{Cap, EdgeRules, Population, below};
use crate::index::guard::Guard;
use crate::projection::Edges;
use crate::query::legs::Vectors;
use crate::query::verdicts::{self, Verdict};
use crate::snapshot::{Bounded, Space};
use hedgerow_format::edges::PairKind;
use hedgerow_format::projection::edge_origins;
use hedgerow_format::{ChunkId, EntitySlot, Key};
use std::collections::BTreeSet;

/// What is known of a pair of chunks in a vector space.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// How similar they are; none where one of them has no vector in the space.
    pub similarity: Option<f32>,
    /// What the two are.
    pub kind: PairKind,
    /// Chunks that have a vector in the space.
    pub chunks: usize,
    /// How many partners of this kind the first has, and the second; none where one of them has no vector, or edges are made
    /// by signals. So is what follows, down to the pairs.
    pub partners: Option<[usize; 2]>,
    /// The place of the second among these partners of the first, from 1, and of the first among those of the second; among
    /// equals the first by document key and ordinal comes first.
    pub ranks: Option<[usize; 2]>,
    /// Pairs of this kind in the space, and how many of them are less similar; none where one has no vector.
    pub pairs: Option<(u64, u64)>,
    /// How the edges of this kind were made; none where the space has none.
    pub rules: Option<EdgeRule>,
    /// What each signal of the rules says of the pair, in their order; none where the similarity alone makes edges, or one of
    /// the two has no vector.
    pub signals: Vec<Verdict>,
    /// What they make of it together, the weight that an edge has: the similarity by the first one, or the score; none likewise,
    /// and where none takes part.
    pub weight: Option<f32>,
    /// The edge's weight, if there is an edge.
    pub edge: Option<f32>,
    /// Whether the edge is one by similarity.
    pub by_similarity: bool,
    /// Whether the edge is one for entities that both mention.
    pub by_entities: bool,
    /// What decided whether it is an edge by similarity.
    pub reason: Reason,
    /// Entities that both mention, those of fewest chunks first: name, and how many chunks mention it.
    pub shared: Vec<(String, usize)>,
}

/// The rules that edges of a kind were made by, and the threshold that came of them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EdgeRule {
    /// Share of pairs of the kind below the threshold, in thousandths of a per cent.
    pub percentile: u32,
    /// The rules.
    pub rules: EdgeRules,
    /// The similarity from which on pairs pass; with signals, that of the first, or the score.
    pub threshold: f32,
    /// Whether the edges are in step with what is live; if not, ranks are those of now and the edge is of then.
    pub in_step: bool,
}

/// Why there is an edge by similarity, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// One of them has no vector in the space.
    NoVector,
    /// The space has no edges, or they can't be read.
    NotBuilt,
    /// It is below the threshold.
    BelowThreshold,
    /// It is below the least similarity.
    BelowLeast,
    /// A signal does not agree, or none takes part in pairs of this kind.
    NotAgreed,
    /// It passes by all signals, and is no edge under the cap.
    NotKept,
    /// It passes by all signals, and is an edge under the cap.
    Kept,
    /// It passes, and neither is among the nearest of the other.
    NotNearest,
    /// It passes, and neither is among the top of the other.
    NotChosen,
    /// It passes, and only one is among the top of the other where both must be.
    ChosenByOne,
    /// It passes, and an index did not find one among the nearest of the other, or it is not among the top of what it found.
    NotFound,
    /// It passes, and an index found one among the nearest of the other, and it is among the top of what it found.
    Found,
    /// The first chose the second.
    ChosenByFirst,
    /// The second chose the first.
    ChosenBySecond,
    /// Both chose each other.
    ChosenByBoth,
}

impl Reason {
    /// As a sentence.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::NoVector => "one of them has no vector in the space",
            Self::NotBuilt => "the space has no edges: `hedgerow edges` builds them",
            Self::BelowThreshold => "it is below the threshold",
            Self::BelowLeast => "it is below the least similarity that an edge may have",
            Self::NotAgreed => "not every signal agrees",
            Self::NotKept => {
                "it passes by its signals, and is not among the nearest or the top of the other that it has to be"
            }
            Self::Kept => "it passes by its signals, and is among the top of the other",
            Self::NotNearest => "neither is among the nearest of the other",
            Self::ChosenByOne => "only one of them is among the top of the other, and both must be",
            Self::NotChosen => "it passes the threshold, and neither is among the top of the other",
            Self::NotFound => "it is not among the nearest that an index found, or not among the top of these",
            Self::Found => "it is among the nearest that an index found, and among the top of these",
            Self::ChosenByFirst => "the second is among the top of the first",
            Self::ChosenBySecond => "the first is among the top of the second",
            Self::ChosenByBoth => "each is among the top of the other",
        }
    }
}

impl Bounded<'_> {
    /// See [`Snapshot::explain`](crate::Snapshot::explain).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn explain(&self, pair: [ChunkId; 2], space: &str) -> Result<Explanation, QueryError> {
        self.guard.scope(|| {
            let spaces = self.spaces()?;
            let Some(known) = spaces.iter().find(|known| known.name == space) else {
                let known = spaces.iter().map(|space| space.name.as_str()).collect::<Vec<_>>().join(", ");
                return Err(QueryError::UnknownSpace { space: space.to_owned(), known });
            };
            let vectors = Vectors::of(self, known)?;
            let tables = [self.chunk(pair[0])?.is_table(), self.chunk(pair[1])?.is_table()];
            let kind = PairKind::of(tables);
            let edges = self.edges().find(|edges| edges.space() == space && edges.kind() == kind);
            let rules = edges.map(|edges| self.rule(edges)).transpose()?;
            let by_signals = rules.as_ref().is_some_and(|rule| !rule.rules.signals.is_empty());
            let (similarity, ranked) = self.ranked(pair, tables, known, &vectors)?.unzip();
            let (ranks, partners) = ranked.filter(|_| !by_signals).unzip();
            let (mut edge, mut origins) = (None, 0);
            if let Some(edges) = edges {
                edge = edges.weight(pair[0], pair[1])?;
                origins = edges.origins(pair[0], pair[1])?.unwrap_or(0);
            }
            let in_step = rules.as_ref().is_some_and(|rules| rules.in_step);
            let pairs = match similarity.filter(|_| !by_signals) {
                Some(similarity) => {
                    let known = edges.filter(|_| in_step).map_or(Ok(None), |edges| edges.below(similarity))?;
                    Some(self.below(kind, &vectors, similarity, known)?)
                }
                None => None,
            };
            let [by_similarity, by_entities] =
                [edge_origins::SIMILARITY, edge_origins::SHARED].map(|origin| origins & origin != 0);
            let stands = in_step && by_similarity;
            let (mut signals, mut weight) = (Vec::new(), None);
            let reason = match (edges, &rules) {
                (Some(edges), Some(rule)) if by_signals && similarity.is_some() => {
                    let rows = self.sides(kind, &vectors)?.concat();
                    let of = (&rule.rules, &edges.thresholds()?[..]);
                    (signals, weight) = self.verdicts(pair, (space, kind), of, &rows)?;
                    verdicts::reason(&rule.rules, rule.threshold, (&signals, weight), stands)
                }
                _ => reason(similarity, ranks, rules.as_ref(), stands),
            };
            Ok(Explanation {
                similarity,
                kind,
                chunks: vectors.len(),
                partners,
                ranks,
                pairs,
                rules,
                signals,
                weight,
                edge,
                by_similarity,
                by_entities,
                reason,
                shared: self.shared(pair)?,
            })
        })
    }

    fn rule(&self, edges: &Edges) -> Result<EdgeRule, QueryError> {
        let (entry, report) = (edges.entry(), edges.report()?);
        Ok(EdgeRule {
            percentile: report.percentile_thousandths,
            rules: EdgeRules::of(&entry.settings),
            threshold: report.threshold,
            in_step: entry.facts == self.manifest().facts,
        })
    }

    /// The similarity of a pair, and the rank of each among the partners of the other that are tables as it is, or none,
    /// and how many these are; none where one has no vector.
    #[expect(clippy::type_complexity, reason = "similarity, ranks and partners, used once")]
    fn ranked(
        &self,
        pair: [ChunkId; 2],
        tables: [bool; 2],
        space: &Space,
        vectors: &Vectors<'_>,
    ) -> Result<Option<(f32, ([usize; 2], [usize; 2]))>, QueryError> {
        let (mut ranks, mut partners) = ([0; 2], [0; 2]);
        let mut similarity = 0.0;
        let ends = [(pair[0], pair[1], tables[1]), (pair[1], pair[0], tables[0])];
        for ((chunk, other, table), (rank, partners)) in ends.into_iter().zip(ranks.iter_mut().zip(&mut partners)) {
            let Some(vector) = vectors.components(chunk).filter(|_| vectors.components(other).is_some()) else {
                return Ok(None);
            };
            let scores = vectors.cosines(self, space, &vector)?;
            let of_other = scores.iter().find(|(partner, _)| *partner == other).map_or(0.0, |(_, score)| *score + 0.0);
            similarity = of_other;
            let place = self.place(other)?;
            let mut before = 0;
            for (partner, score) in scores {
                if partner == chunk || self.chunk(partner)?.is_table() != table {
                    continue;
                }
                *partners += 1;
                if partner == other {
                    continue;
                }
                let (score, equal) = (score + 0.0, (score + 0.0).to_bits() == of_other.to_bits());
                before += usize::from(score > of_other || (equal && self.place(partner)? < place));
            }
            *rank = before + 1;
        }
        Ok(Some((similarity, (ranks, partners))))
    }

    /// How many pairs of a kind there are, and how many are less similar; where that is not known, all are compared.
    fn below(
        &self,
        kind: PairKind,
        vectors: &Vectors<'_>,
        similarity: f32,
        known: Option<u64>,
    ) -> Result<(u64, u64), QueryError> {
        let sides = self.sides(kind, vectors)?;
        let (first, rows) = (sides[0].len(), sides.concat());
        let pairs = kind.pairs(rows.len() as u64, first as u64);
        if let Some(known) = known {
            return Ok((pairs, known));
        }
        let population = if kind == PairKind::TableDocument { Population::Across(first) } else { Population::All };
        let matrix = vectors.matrix(self, &rows)?;
        let dimensions = matrix.len().checked_div(rows.len()).unwrap_or(0);
        match below(&Rows::of_matrix(&matrix, dimensions), population, similarity, &Polled(&self.guard)) {
            Ok(below) => Ok((pairs, below)),
            Err(Cancelled) => Err(self.guard.poll().err().unwrap_or(QueryError::Cancelled)),
        }
    }

    /// The chunks that have vectors and occur in pairs of a kind: tables, and the others.
    fn sides(&self, kind: PairKind, vectors: &Vectors<'_>) -> Result<[Vec<ChunkId>; 2], QueryError> {
        let mut sides = [Vec::new(), Vec::new()];
        let mut pace = self.guard.pace();
        self.guard.hold::<ChunkId>(vectors.len())?;
        for chunk in vectors.chunks() {
            pace.step()?;
            let is_table = self.chunk(chunk)?.is_table();
            let occurs = match kind {
                PairKind::DocumentDocument => !is_table,
                PairKind::TableTable => is_table,
                PairKind::TableDocument => true,
            };
            if occurs {
                sides[usize::from(!is_table)].push(chunk);
            }
        }
        Ok(sides)
    }

    /// What orders chunks that are equally similar.
    fn place(&self, chunk: ChunkId) -> Result<(Key, u32), QueryError> {
        let chunk = self.chunk(chunk)?;
        Ok((Key::of_document(chunk.document()?.key()?), chunk.ordinal()))
    }

    /// The entities that both chunks mention.
    fn shared(&self, pair: [ChunkId; 2]) -> Result<Vec<(String, usize)>, QueryError> {
        let Some(links) = self.links() else { return Ok(Vec::new()) };
        let first: BTreeSet<u32> = links.mentions(pair[0])?.iter().collect();
        let mut shared = Vec::new();
        for slot in links.mentions(pair[1])?.iter().filter(|slot| first.contains(slot)).map(EntitySlot) {
            let name = links.string(links.entity(slot)?.name)?;
            self.guard.hold::<(String, usize)>(1)?;
            shared.push((name.to_owned(), links.mentioning(slot)?.len()));
        }
        shared.sort_by(|a, b| a.1.cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
        Ok(shared)
    }
}

/// A computation under the limits of a query.
struct Polled<'g>(&'g Guard<'g>);

impl Control for Polled<'_> {
    fn advance(&self, _: u64, _: u64) {}

    fn cancelled(&self) -> bool {
        self.0.poll().is_err()
    }
}

/// What decided; `stands` says that it is an edge by similarity as things are now.
fn reason(similarity: Option<f32>, ranks: Option<[usize; 2]>, rules: Option<&EdgeRule>, stands: bool) -> Reason {
    let Some((similarity, ranks)) = similarity.zip(ranks) else { return Reason::NoVector };
    let Some(EdgeRule { rules, threshold, .. }) = rules else { return Reason::NotBuilt };
    if similarity < *threshold {
        return Reason::BelowThreshold;
    }
    if rules.least.is_some_and(|least| similarity < least) {
        return Reason::BelowLeast;
    }
    if rules.indexed {
        return if stands { Reason::Found } else { Reason::NotFound };
    }
    let within = |most: u32| ranks.map(|rank| rank <= most as usize);
    // Each end may choose whom it has among its nearest; with fewer nearest than choices it chooses all of them.
    let chosen = match rules.nearest.filter(|nearest| *nearest < rules.top_m) {
        Some(nearest) if within(nearest) == [false, false] => return Reason::NotNearest,
        Some(nearest) if rules.cap == Cap::Either => within(nearest),
        _ => within(rules.top_m),
    };
    match (rules.cap, chosen) {
        // Candidates are fewer than partners, so that a choice may reach beyond the first of these.
        (Cap::Both, _) if stands => Reason::ChosenByBoth,
        (_, [true, true]) => Reason::ChosenByBoth,
        (_, [false, false]) => Reason::NotChosen,
        (Cap::Both, _) => Reason::ChosenByOne,
        (Cap::Either, [true, false]) => Reason::ChosenByFirst,
        (Cap::Either, [false, true]) => Reason::ChosenBySecond,
    }
}
