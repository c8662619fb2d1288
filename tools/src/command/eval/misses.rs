//! Why gold is not among the first ten: sorted by how the store connects it with where the walk starts.

use std::collections::BTreeMap;

use hedgerow::{
    Context, Description, Direction, EdgeKind, ExpandOptions, Node, PathEdge, QueryError, Reached, Snapshot,
};
use serde::Serialize;

use crate::command::eval::measures::{Gold, TOP};
use crate::command::eval::questions::Record;
use crate::command::expand::arrow;
use crate::command::render::layout::plain;

/// Passages that are ranked to tell the rank of what was missed.
pub(super) const DEPTH: usize = 1000;
/// A strategy without seeds of its own is taken to start from its first passages.
const SEEDS: usize = 5;
/// A name that more chunks mention connects nothing by being shared.
const MENTIONS_MAX: u64 = 50;
/// Bounds of a walk; what lies beyond counts as not connected.
const NODES_MAX: usize = 20_000;
const FAN_OUT: usize = 1024;

/// How a missed gold key is connected with the seeds; the first that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Cause {
    /// The store does not have it.
    Absent,
    /// It is a seed itself.
    Seed,
    /// A seed mentions what it defines.
    Link,
    /// Two steps lead to it, each a definition link, one over a relation, or the next chunk.
    Steps,
    /// It mentions what a seed defines.
    Back,
    /// It mentions a name that a seed mentions.
    Name,
    /// At most three edges lead to it, similarity edges among them.
    Similar,
    /// None of these.
    Unconnected,
}

impl Cause {
    /// What it is called.
    pub(super) fn words(self) -> &'static str {
        match self {
            Cause::Absent => "not in the store",
            Cause::Seed => "a seed, and outranked",
            Cause::Link => "one definition link from a seed, and outranked",
            Cause::Steps => "two steps from a seed",
            Cause::Back => "mentions what a seed defines: a link the other way",
            Cause::Name => "shares a rare name with a seed",
            Cause::Similar => "connected only through similarity edges",
            Cause::Unconnected => "not connected",
        }
    }
}

/// The gold keys that a strategy missed.
#[derive(Debug, Default, Serialize)]
pub(super) struct Misses {
    /// All of them.
    pub count: u64,
    /// Questions that miss any.
    pub questions: u64,
    /// How many of each cause.
    pub causes: BTreeMap<Cause, u64>,
    /// Those that the deeper ranking has nevertheless.
    pub ranked: u64,
    /// The first of each cause.
    pub examples: Vec<Example>,
}

/// One missed gold key.
#[derive(Debug, Serialize)]
pub(super) struct Example {
    /// Id of the question.
    pub question: String,
    pub text: String,
    pub gold: String,
    pub title: String,
    pub cause: Cause,
    /// From 1, and its score; none beyond the deeper ranking.
    pub rank: Option<usize>,
    pub score: Option<f32>,
    /// Score of the tenth.
    pub tenth: Option<f32>,
    /// The nearest path from a seed.
    pub path: Vec<PathEdge>,
    /// The path with titles.
    #[serde(skip)]
    pub told: String,
}

impl Misses {
    /// Sorts what one answer missed; `deeper` is the same answer with more passages, and `examples` how many of each cause
    /// are kept.
    pub(super) fn add(
        &mut self,
        snapshot: &Snapshot,
        record: &Record,
        missed: &[&Gold],
        deeper: &Context,
        examples: usize,
    ) -> Result<(), QueryError> {
        self.questions += 1;
        let mut around = Around::of(snapshot, deeper)?;
        for gold in missed {
            let (cause, path) = around.cause(gold)?;
            let (rank, score) = ranked(gold, deeper);
            self.count += 1;
            self.ranked += u64::from(rank.is_some());
            let count = self.causes.entry(cause).or_default();
            *count += 1;
            if *count <= examples as u64 {
                self.examples.push(Example {
                    question: record.id.clone(),
                    text: record.question.clone(),
                    gold: gold.key().to_owned(),
                    title: title(snapshot, gold.key())?,
                    cause,
                    rank,
                    score,
                    tenth: deeper.passages.get(TOP - 1).map(|passage| passage.score),
                    told: told(snapshot, &path)?,
                    path,
                });
            }
        }
        Ok(())
    }
}

/// Place among passages from 1, and score.
fn ranked(gold: &Gold, deeper: &Context) -> (Option<usize>, Option<f32>) {
    let is_it = |key: &str, document: &str| match gold {
        Gold::Document(gold) => gold == document,
        Gold::Chunk(gold) => gold == key,
        Gold::Absent(_) => false,
    };
    let mut passages = deeper.passages.iter().zip(1..);
    let found = passages.find(|(passage, _)| is_it(&passage.key, &passage.document));
    (found.map(|(_, rank)| rank), found.map(|(passage, _)| passage.score))
}

/// What lies around the seeds of one answer, by key.
struct Around<'s> {
    snapshot: &'s Snapshot,
    seeds: Vec<Node>,
    linked: BTreeMap<String, Reached>,
    /// What the seeds define.
    defined: BTreeMap<String, Reached>,
    /// Made when it is first needed: it is by far the largest.
    similar: Option<BTreeMap<String, Reached>>,
}

impl<'s> Around<'s> {
    fn of(snapshot: &'s Snapshot, context: &Context) -> Result<Self, QueryError> {
        let told = &context.trace.seeds;
        let keys: Vec<&str> = if told.is_empty() {
            context.passages.iter().take(SEEDS).map(|passage| passage.key.as_str()).collect()
        } else {
            told.iter().map(String::as_str).collect()
        };
        let seeds =
            keys.into_iter().map(|key| snapshot.find(&format!("chunk:{key}"))).collect::<Result<Vec<_>, _>>()?;
        let edges = [EdgeKind::Mentions, EdgeKind::Relations, EdgeKind::Defines, EdgeKind::Next];
        // Out of a chunk, two definition links are four edges; a definition link over a relation is three.
        let linked = reach(snapshot, &seeds, &edges, Direction::Out, 4)?;
        let defined = reach(snapshot, &seeds, &[EdgeKind::Defines], Direction::In, 1)?;
        Ok(Self { snapshot, seeds, linked, defined, similar: None })
    }

    /// The cause, and the nearest path.
    fn cause(&mut self, gold: &Gold) -> Result<(Cause, Vec<PathEdge>), QueryError> {
        let chunks = match gold {
            Gold::Absent(_) => return Ok((Cause::Absent, Vec::new())),
            Gold::Chunk(key) => vec![format!("chunk:{key}")],
            Gold::Document(key) => chunks_of(self.snapshot, key)?,
        };
        if let Some(reached) = nearest(&self.linked, &chunks) {
            let cause = match reached.path.as_slice() {
                [] => Cause::Seed,
                [first, second] if (first.edge, second.edge) == (EdgeKind::Mentions, EdgeKind::Defines) => Cause::Link,
                _ => Cause::Steps,
            };
            return Ok((cause, reached.path.clone()));
        }
        let nodes = chunks.iter().map(|key| self.snapshot.find(key)).collect::<Result<Vec<_>, _>>()?;
        let mentions = reach(self.snapshot, &nodes, &[EdgeKind::Mentions], Direction::Out, 1)?;
        for (cause, names) in [(Cause::Back, &self.defined), (Cause::Name, &self.linked)] {
            if let Some(path) = self.shared_name(names, &mentions)? {
                return Ok((cause, path));
            }
        }
        if self.similar.is_none() {
            let edges = [EdgeKind::Similar, EdgeKind::Mentions, EdgeKind::Defines, EdgeKind::Next];
            self.similar = Some(reach(self.snapshot, &self.seeds, &edges, Direction::Out, 3)?);
        }
        match self.similar.as_ref().and_then(|similar| nearest(similar, &chunks)) {
            Some(reached) => Ok((Cause::Similar, reached.path.clone())),
            None => Ok((Cause::Unconnected, Vec::new())),
        }
    }

    /// The rarest name that lies beside both a seed and what was missed, unless many chunks mention it.
    fn shared_name(
        &self,
        names: &BTreeMap<String, Reached>,
        mentions: &BTreeMap<String, Reached>,
    ) -> Result<Option<Vec<PathEdge>>, QueryError> {
        let mut best: Option<(u64, Vec<PathEdge>)> = None;
        for (name, mention) in mentions {
            let of_seed = names.get(name).filter(|reached| reached.hop == 1);
            let (Some(from), Some(to)) = (of_seed.and_then(|seed| seed.path.first()), mention.path.first()) else {
                continue;
            };
            let Description::Entity { entity, .. } = self.snapshot.describe(self.snapshot.find(name)?, 0)? else {
                continue;
            };
            let mentions = entity.mentions;
            if mentions <= MENTIONS_MAX && best.as_ref().is_none_or(|(fewest, _)| mentions < *fewest) {
                let back = PathEdge { from: to.to.clone(), to: to.from.clone(), reversed: true, ..to.clone() };
                best = Some((mentions, vec![from.clone(), back]));
            }
        }
        Ok(best.map(|(_, path)| path))
    }
}

/// Every node within so many edges of the seeds, by key.
fn reach(
    snapshot: &Snapshot,
    seeds: &[Node],
    edges: &[EdgeKind],
    direction: Direction,
    hops: usize,
) -> Result<BTreeMap<String, Reached>, QueryError> {
    let edges = edges.to_vec();
    let options =
        ExpandOptions { edges, direction, hops, fan_out: FAN_OUT, limit: NODES_MAX, ..ExpandOptions::default() };
    let nodes = snapshot.expand(seeds, &options)?.nodes.into_iter();
    Ok(nodes.map(|reached| (reached.key.clone(), reached)).collect())
}

/// The chunk with the shortest path, among equals the one with the best.
fn nearest<'r>(reached: &'r BTreeMap<String, Reached>, chunks: &[String]) -> Option<&'r Reached> {
    let found = chunks.iter().filter_map(|key| reached.get(key));
    found.min_by(|a, b| a.hop.cmp(&b.hop).then_with(|| b.score.total_cmp(&a.score)))
}

fn chunks_of(snapshot: &Snapshot, document: &str) -> Result<Vec<String>, QueryError> {
    let Some(found) = snapshot.find_document(document)? else { return Ok(Vec::new()) };
    found.chunks().map(|chunk| Ok(format!("chunk:{}", snapshot.chunk(chunk)?.key()?))).collect()
}

/// The title of a document, by its key or that of one of its chunks; empty where there is none.
fn title(snapshot: &Snapshot, key: &str) -> Result<String, QueryError> {
    let mut found = snapshot.find_document(key)?;
    if let (None, Some((document, _))) = (&found, key.rsplit_once('#')) {
        found = snapshot.find_document(document)?;
    }
    Ok(found.map(|document| document.title()).transpose()?.unwrap_or_default().to_owned())
}

/// A path with the titles of chunks in place of their keys, where they have one.
fn told(snapshot: &Snapshot, path: &[PathEdge]) -> Result<String, QueryError> {
    let name = |node: &str| -> Result<String, QueryError> {
        let Some(key) = node.strip_prefix("chunk:") else {
            return Ok(plain(node.strip_prefix("entity:").unwrap_or(node)));
        };
        let title = title(snapshot, key)?;
        Ok(if title.is_empty() { plain(key) } else { format!("‘{}’", plain(&title)) })
    };
    let mut told = path.first().map(|edge| name(&edge.from)).transpose()?.unwrap_or_default();
    for edge in path {
        told = format!("{told} {} {}", arrow(edge), name(&edge.to)?);
    }
    Ok(told)
}
