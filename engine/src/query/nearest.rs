//! What is nearest to a vector: by walking the index of a space, by comparing codes, and by comparing what no index covers.

use crate::distance::dots;
use crate::distance::near::{Probe, fetch, products};
use crate::distance::rows::Rows;
use crate::error::{Damage, QueryError};
use crate::index::vector::{Graph, Ranked, Until, WIDTH_MAX, Walk};
use crate::planted::{Planted, planted};
use crate::projection::VectorIndex;
use crate::query::legs::Vectors;
use crate::query::{rank, together};
use crate::snapshot::{Bounded, Space, SpaceVectors};
use hedgerow_format::{ChunkId, ChunkSlot, F32s, U32s};
use rayon::prelude::*;
use roaring::RoaringBitmap;

/// How much of what is nearest a search is to find. What it finds it scores exactly, and the rows that no index covers are always compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recall {
    /// All of it.
    Exact,
    /// 95 of 100, as the index found when it asked itself.
    At95,
    /// 99 of 100, likewise.
    #[default]
    At99,
    /// What is found by looking at the neighbours of so many best chunks.
    Beam(u32),
    /// What is found by looking at all whose squared distance is not above that of the last one found by more than so many
    /// thousandths of it.
    Slack(u32),
}

/// Codes that one task compares.
const COMPARED_TOGETHER: usize = 4096;
/// Nodes that are kept before those are left out that cannot be among the nearest, at least.
const ROOM: usize = 256;
/// A node that a walk sees costs as much as so many that are compared one after another.
const STRAY: usize = 3;
/// Nodes that a walk sees for each that it keeps, and at least.
const SEEN: usize = 30;
const SEEN_LEAST: usize = 400;
/// A walk's answer is chosen among one and a quarter times as many as are wanted, and so many more.
const SPARE: usize = 4;

/// A search in the index of a space.
pub(super) struct Search<'q> {
    pub bounded: &'q Bounded<'q>,
    pub graph: Graph<'q>,
    chunks: U32s<'q>,
    errors: F32s<'q>,
    /// What the product of a code of one and the question's is.
    unit: f64,
    /// What a code of one stands for.
    pub scale: f64,
    pub question: &'q [f32],
    probe: Probe,
    /// How far the question lies from what its codes stand for.
    left: f64,
    vectors: SpaceVectors<'q>,
    allowed: Option<&'q RoaringBitmap>,
    /// Chunks that have their vectors in segments which the index doesn't cover, so that it tells nothing of them.
    newer: &'q RoaringBitmap,
    pub count: usize,
}

/// What an index does not cover.
struct Outside<'s> {
    /// The vectors, which are compared.
    vectors: Vectors<'s>,
    /// Their chunks, of which the index tells nothing.
    chunks: RoaringBitmap,
}

/// What is asked: a question's vector, among which chunks, and how many of the nearest.
type Asked<'q> = (&'q [f32], Option<&'q RoaringBitmap>, usize);

impl Bounded<'_> {
    /// The nearest chunks to a question's vector, with cosines, in no order; more than `count` perhaps.
    pub(super) fn nearest(
        &self,
        space: &Space,
        asked: Asked<'_>,
        recall: Recall,
    ) -> Result<Vec<(ChunkId, f32)>, QueryError> {
        let index = self.vector_index(&space.name);
        self.nearest_beside(space, (index, &self.outside(space, index)?), asked, recall)
    }

    /// As [`Bounded::nearest`], of each of some questions: side by side, and exact ones tile by tile.
    pub(super) fn nearest_of_all(
        &self,
        space: &Space,
        questions: &[Vec<f32>],
        (allowed, count): (Option<&RoaringBitmap>, usize),
        recall: Recall,
    ) -> Result<Vec<Vec<(ChunkId, f32)>>, QueryError> {
        let index = self.vector_index(&space.name);
        let outside = self.outside(space, index)?;
        let nearest =
            |question: &Vec<f32>| self.nearest_beside(space, (index, &outside), (question, allowed, count), recall);
        let Some(index) = index else {
            // Each compares on all threads.
            return questions.iter().map(|question| self.guard.scope(|| nearest(question))).collect();
        };
        if recall != Recall::Exact || count == 0 {
            return questions.par_iter().map(nearest).collect();
        }
        let (mut searches, mut found) = (Vec::new(), Vec::new());
        for question in questions {
            let asked = (question.as_slice(), allowed, count);
            searches.push(Search::new(self, space, (index, &outside), asked)?);
            found.push(self.found_outside(space, &outside, asked)?);
        }
        for (found, indexed) in found.iter_mut().zip(together::compare(&searches)?) {
            found.extend(indexed);
        }
        Ok(found)
    }

    fn nearest_beside(
        &self,
        space: &Space,
        (index, outside): (Option<&VectorIndex>, &Outside<'_>),
        asked: Asked<'_>,
        recall: Recall,
    ) -> Result<Vec<(ChunkId, f32)>, QueryError> {
        let mut found = self.found_outside(space, outside, asked)?;
        if let Some(index) = index.filter(|_| asked.2 > 0) {
            found.extend(Search::new(self, space, (index, outside), asked)?.search(index, recall)?);
        }
        Ok(found)
    }

    /// The nearest of what an index does not cover.
    fn found_outside(
        &self,
        space: &Space,
        outside: &Outside<'_>,
        (question, allowed, count): Asked<'_>,
    ) -> Result<Vec<(ChunkId, f32)>, QueryError> {
        let mut found = outside.vectors.cosines(self, space, question)?;
        found.retain(|(chunk, _)| allowed.is_none_or(|allowed| allowed.contains(chunk.0)));
        rank::cut(&mut found, count);
        Ok(found)
    }

    /// What the index of a space does not cover; all, where there is none.
    fn outside(&self, space: &Space, index: Option<&VectorIndex>) -> Result<Outside<'_>, QueryError> {
        let mut covered = Vec::with_capacity(self.segments().len());
        for segment in self.segments() {
            let number = segment.entry().file.number;
            covered.push(index.map_or(Ok(false), |index| index.covers(number))?);
        }
        if index.is_some() && planted(Planted::UncoveredSkipped) {
            covered.fill(true);
        }
        let vectors = Vectors::outside(self, space, &covered)?;
        let chunks = vectors.chunks().filter(|_| !planted(Planted::ReplacedCount)).map(|chunk| chunk.0).collect();
        Ok(Outside { vectors, chunks })
    }
}

impl<'q> Search<'q> {
    fn new(
        bounded: &'q Bounded<'q>,
        space: &Space,
        (index, outside): (&'q VectorIndex, &'q Outside<'_>),
        (question, allowed, count): Asked<'q>,
    ) -> Result<Self, Damage> {
        let (probe, scale, left) = Probe::of_vector(question);
        Ok(Self {
            bounded,
            graph: index.graph()?,
            chunks: index.chunks()?,
            errors: index.errors()?,
            unit: scale * index.row()?.scale,
            scale: index.row()?.scale,
            question,
            probe,
            left,
            vectors: bounded.vectors_of(&space.name)?,
            allowed,
            newer: &outside.chunks,
            count,
        })
    }

    fn search(&self, index: &VectorIndex, recall: Recall) -> Result<Vec<(ChunkId, f32)>, QueryError> {
        let nodes = self.chunks.len();
        let among = self.allowed.map_or(nodes, |allowed| usize::try_from(allowed.len()).unwrap_or(nodes).min(nodes));
        if let Some(until) = self.until(index, recall)?
            && among > self.count
        {
            let kept = if until.slack.is_finite() { self.count } else { until.width };
            let seen = kept.saturating_mul(SEEN).saturating_mul(nodes) / among;
            if seen.saturating_add(SEEN_LEAST).saturating_mul(STRAY) < among {
                let found = self.walk(until)?;
                if found.len() >= self.count {
                    return Ok(found);
                }
            }
        }
        self.compare()
    }

    /// How long the index found that a walk must be; none where only comparing all does.
    fn until(&self, index: &VectorIndex, recall: Recall) -> Result<Option<Until>, Damage> {
        let walks = index.walks()?;
        let finds = |least| walks.iter().find(|walk| walk.found >= least).map(|walk| walk.slack);
        let slack = match recall {
            Recall::Exact => None,
            Recall::Beam(width) => return Ok(Some(Until::width(ChunkSlot(width).index().max(self.count)))),
            Recall::Slack(slack) => Some(slack),
            Recall::At95 => finds(9_500),
            Recall::At99 => finds(9_900),
        };
        Ok(slack.map(|slack| Until {
            width: WIDTH_MAX.max(self.count.saturating_mul(4)),
            nearest: self.count,
            slack: f64::from(slack) / 1000.0,
            one: 1.0 / self.unit,
        }))
    }

    /// The nodes of some chunks.
    fn nodes(&self, allowed: &RoaringBitmap) -> Vec<u32> {
        let first = self.chunks.get(0).unwrap_or_default();
        let node = |chunk: u32| {
            let guess = chunk.checked_sub(first)?;
            if self.chunks.get(ChunkSlot(guess).index()) == Some(chunk) {
                return Some(guess);
            }
            self.chunks.position_of(chunk).and_then(|node| u32::try_from(node).ok())
        };
        allowed.iter().filter_map(node).collect()
    }

    pub fn is_wanted(&self, node: u32) -> bool {
        let Some(chunk) = self.chunks.get(ChunkSlot(node).index()) else { return false };
        self.bounded.is_live(ChunkId(chunk))
            && !self.newer.contains(chunk)
            && self.allowed.is_none_or(|allowed| allowed.contains(chunk))
    }

    fn walk(&self, until: Until) -> Result<Vec<(ChunkId, f32)>, QueryError> {
        let guard = &self.bounded.guard;
        guard.hold_bytes((self.chunks.len() as u64 / 8).saturating_add(64_u64.saturating_mul(until.width as u64)))?;
        let (mut walk, mut pace) = (Walk::default(), guard.pace());
        let picky = self.allowed.is_some() || self.bounded.has_dead() || !self.newer.is_empty();
        let is_wanted = |node: u32| self.is_wanted(node);
        let wanted: Option<&dyn Fn(u32) -> bool> = if picky { Some(&is_wanted) } else { None };
        walk.walk(&self.graph, &self.probe, until, wanted, || pace.steps(SEEN))?;
        let most = (self.count / 4).saturating_add(self.count).saturating_add(SPARE);
        self.scored(walk.found().take(most).map(Ranked::node))
    }

    /// The cosines of some nodes.
    pub fn scored(&self, nodes: impl Iterator<Item = u32>) -> Result<Vec<(ChunkId, f32)>, QueryError> {
        let (mut chunks, mut rows, mut pace) = (Vec::new(), Vec::new(), self.bounded.guard.pace());
        for node in nodes {
            pace.step()?;
            let Some(chunk) = self.chunks.get(ChunkSlot(node).index()).map(ChunkId) else { continue };
            if let Some(row) = self.vectors.of(chunk)? {
                fetch(row);
                chunks.push(chunk);
                rows.push(row);
            }
        }
        let listed: Vec<u32> = (0..).take(rows.len()).collect();
        let mut cosines = Vec::with_capacity(rows.len());
        dots(self.question, &Rows::of_bytes(rows, self.question.len()), &listed, &mut cosines);
        Ok(chunks.into_iter().zip(cosines).collect())
    }

    /// Compares the codes of all nodes or of some, and the vectors of those that their codes don't rule out.
    fn compare(&self) -> Result<Vec<(ChunkId, f32)>, QueryError> {
        let guard = &self.bounded.guard;
        let nodes = self.comparable();
        guard.hold::<Bounds>(nodes.len().saturating_mul(2))?;
        let near: Result<Vec<Vec<Bounds>>, QueryError> = nodes
            .par_chunks(COMPARED_TOGETHER)
            .map_init(Vec::new, |products, nodes| {
                guard.poll()?;
                Ok(self.near(nodes, products))
            })
            .collect();
        self.scored(Contest::all(&near?, self.count))
    }

    /// The nodes that may be wanted.
    pub fn comparable(&self) -> Vec<u32> {
        let all = || (0..).take(self.chunks.len()).collect();
        self.allowed.map_or_else(all, |allowed| self.nodes(allowed))
    }

    /// Those of some nodes that may be among the nearest of them.
    fn near(&self, nodes: &[u32], scores: &mut Vec<i32>) -> Vec<Bounds> {
        let mut contest = Contest::new(self.count, ROOM);
        products(&self.probe, self.graph.rows, nodes, scores);
        for (node, product) in nodes.iter().zip(scores) {
            // The vector and the question have length one: see `Codes` for the bound.
            let error = self.error(*node);
            let error = error + self.left * (1.0 + error) + ROUNDING;
            let estimate = f64::from(*product) * self.unit;
            if estimate + error >= contest.line && self.is_wanted(*node) {
                contest.enter(Bounds { least: estimate - error, most: estimate + error, node: *node });
            }
        }
        contest.rule_out();
        contest.bounds
    }

    /// How far the vector of a node lies from what its codes stand for.
    pub fn error(&self, node: u32) -> f64 {
        f64::from(self.errors.get(ChunkSlot(node).index()).unwrap_or(f32::MAX))
    }
}

/// More than what a cosine and the figures here are rounded by.
pub(super) const ROUNDING: f64 = 1e-5;

/// Between what a node's cosine lies.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub least: f64,
    pub most: f64,
    pub node: u32,
}

/// Nodes that may be among the nearest.
pub(super) struct Contest {
    pub bounds: Vec<Bounds>,
    /// The cosine that so many have at least as are wanted.
    pub line: f64,
    count: usize,
    /// So many are kept before some are left out.
    room: usize,
}

impl Contest {
    pub fn new(count: usize, room: usize) -> Self {
        Self { bounds: Vec::new(), line: f64::NEG_INFINITY, count, room: count.saturating_mul(2).max(room) }
    }

    /// How many it keeps before some are left out.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Whether the line rose.
    pub fn enter(&mut self, bounds: Bounds) -> bool {
        self.bounds.push(bounds);
        let full = self.bounds.len() >= self.room;
        if full {
            self.rule_out();
            self.room = self.room.max(2 * self.bounds.len());
        }
        full
    }

    /// Leaves out those that as many others as are wanted are certainly nearer than.
    fn rule_out(&mut self) {
        if self.count == 0 || self.bounds.len() < self.count {
            return;
        }
        let mut least: Vec<f64> = self.bounds.iter().map(|bounds| bounds.least).collect();
        let (_, line, _) = least.select_nth_unstable_by(self.count - 1, |a, b| b.total_cmp(a));
        self.bounds.retain(|bounds| bounds.most >= *line);
        self.line = *line;
    }

    /// The nodes that are left of several contests.
    pub fn all(parts: &[Vec<Bounds>], count: usize) -> impl Iterator<Item = u32> {
        let mut contest = Self { bounds: parts.concat(), ..Self::new(count, 0) };
        contest.rule_out();
        contest.bounds.into_iter().map(|bounds| bounds.node)
    }
}
