//! Strategies over communities: which ones a question is about, their reports, and the chunks that they hold together.

use crate::distance;
use crate::error::QueryError;
use crate::projection::{Communities, Links};
use crate::query::Node;
use crate::query::answer::ReportPassage;
use crate::query::ask::plan::Plan;
use crate::query::rank;
use hedgerow_format::{ChunkId, EntitySlot, Key};
use std::collections::BTreeMap;

/// Best chunks by terms and vectors that tell which communities a question is about.
const TELLING: usize = 100;
/// Members that a chunk must mention, to speak of a community.
const MEMBERS_MIN: usize = 2;
/// A community is as good as the mean of so many of its best chunks.
const CHUNKS_COUNTED: usize = 3;
/// What a chunk that speaks of the best community gets of the best score.
const MEMBER_SHARE: f32 = 0.3;
/// Members beyond so many that a chunk mentions don't count.
const MOST: u8 = 4;
/// Where passages follow, reports have at most one of so many tokens.
const REPORTS_PART: usize = 4;
const NO_COMMUNITIES: &str = "there are no communities: `hedgerow communities STORE --build` finds them";
const BY_CHUNKS: &str = "chunks alone rank them; `hedgerow communities STORE --build` with the embedder makes vectors";

/// A community that the question is about.
#[derive(Clone, Debug)]
pub(super) struct Told {
    row: usize,
    score: f32,
    /// The chunks that tell so, best first.
    chunks: Vec<ChunkId>,
}

/// Through which community a chunk was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub row: u32,
    pub score: f32,
    /// What the chunk gets for it.
    pub value: f32,
}

impl Plan<'_, '_> {
    /// The communities that the best chunks speak of, best first, none inside another.
    ///
    /// A community has the mean of the scores of its three best chunks, among the hundred best of all, times how few of all entities are its
    /// members: ln((n + 1) / (members + 1)) / ln(n + 1); and the cosine of its report, by the share that vectors have in scores.
    pub fn communities(&mut self) -> Result<Vec<Told>, QueryError> {
        let (Some(links), Some(communities)) = (self.snapshot.links(), self.snapshot.communities()) else {
            self.lacks(NO_COMMUNITIES);
            return Ok(Vec::new());
        };
        let best = rank::top(self.snapshot, &self.heads()?, self.allowed.as_ref(), TELLING)?;
        let mut by_row: BTreeMap<usize, Vec<ChunkId>> = BTreeMap::new();
        for (chunk, score) in &best {
            if *score > 0.0 {
                for row in self.spoken_of(links, communities, *chunk)? {
                    by_row.entry(row).or_default().push(*chunk);
                }
            }
        }
        let rows = communities.communities()?;
        let entities = links.entities()?.len();
        let cosines = self.report_cosines(communities, by_row.keys().copied())?;
        let mut told = Vec::with_capacity(by_row.len());
        for (row, chunks) in by_row {
            let Some(community) = rows.get(row) else { continue };
            if self.question.level.is_some_and(|level| level != community.level) {
                continue;
            }
            let counted = chunks.iter().take(CHUNKS_COUNTED).map(|chunk| self.flat(*chunk)).sum::<f32>();
            let few = few(entities, community.members);
            #[expect(clippy::cast_precision_loss, reason = "a few chunks")]
            let by_chunks = few * counted / CHUNKS_COUNTED as f32;
            let score = by_chunks + cosines.get(&row).copied().unwrap_or_default();
            told.push(Told { row, score, chunks });
        }
        told.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.row.cmp(&b.row)));
        let mut apart: Vec<(Told, std::ops::Range<u32>)> = Vec::new();
        for one in told {
            let Some(community) = rows.get(one.row) else { continue };
            let members = community.first_member..community.first_member.saturating_add(community.members);
            let overlaps = |other: &std::ops::Range<u32>| other.start < members.end && members.start < other.end;
            if apart.len() < self.question.seeds && !apart.iter().any(|(_, other)| overlaps(other)) {
                apart.push((one, members));
            }
        }
        Ok(apart.into_iter().map(|(told, _)| told).collect())
    }

    /// The rows of the communities of which a chunk mentions two members or more.
    fn spoken_of(&self, links: &Links, communities: &Communities, chunk: ChunkId) -> Result<Vec<usize>, QueryError> {
        self.snapshot.guard.poll()?;
        let mut rows = Vec::new();
        for slot in links.mentions(chunk)?.iter().map(EntitySlot) {
            rows.extend(communities.of_entity(Key(links.entity(slot)?.key))?);
        }
        self.snapshot.guard.hold::<usize>(rows.len())?;
        rows.sort_unstable();
        let several = rows.chunk_by(|a, b| a == b).filter(|same| same.len() >= MEMBERS_MIN);
        Ok(several.filter_map(|same| same.first().copied()).collect())
    }

    /// The cosines of reports with the question, the highest scaled to the weight of vectors.
    fn report_cosines(
        &mut self,
        communities: &Communities,
        rows: impl Iterator<Item = usize>,
    ) -> Result<BTreeMap<usize, f32>, QueryError> {
        let mut cosines = BTreeMap::new();
        let settings = communities.settings()?;
        let (Some(vector), Some(trace)) = (&self.vector, &self.trace.vector) else { return Ok(cosines) };
        let (space, model) = (communities.text(settings.space)?, communities.text(settings.model)?);
        // Whoever wanted no vectors need not be told that there are none.
        if space.is_empty() {
            return Ok(cosines);
        }
        if (space, model) != (trace.space.as_str(), trace.model.as_str()) {
            let lack = format!("reports of communities have no vectors in the space {}: {BY_CHUNKS}", trace.space);
            self.lacks(&lack);
            return Ok(cosines);
        }
        let (mut read, mut without) = (0, 0);
        for row in rows {
            self.snapshot.guard.poll()?;
            let report = communities.vector(row)?;
            read += 1;
            if report.len() == vector.len() {
                cosines.insert(row, distance::dot(&report, vector).max(0.0));
            } else {
                without += 1;
            }
        }
        let most = cosines.values().copied().fold(0.0, f32::max);
        if most > 0.0 {
            for cosine in cosines.values_mut() {
                *cosine *= trace.weight / most;
            }
        }
        if without > 0 {
            self.lacks(&format!("{without} of {read} reports of communities have no vector yet: {BY_CHUNKS}"));
        }
        Ok(cosines)
    }

    /// The reports of communities, as many as fit; those of several models and levels alike.
    pub fn report(&mut self, told: &[Told], part: usize) -> Result<(), QueryError> {
        let Some(communities) = self.snapshot.communities() else { return Ok(()) };
        let room = self.question.tokens_max / part.max(1);
        let stale = communities.entry().facts != self.snapshot.manifest().facts;
        for one in told {
            let Ok(row) = u32::try_from(one.row) else { continue };
            let report = communities.report(one.row)?;
            let (_, community) = self.snapshot.community(row)?;
            let tokens = (report.title.len() + report.text.len()).div_ceil(4);
            self.snapshot.guard.hold_bytes(tokens as u64 * 4)?;
            if self.reports.iter().map(|report| report.tokens).sum::<usize>() + tokens > room {
                continue;
            }
            self.reports.push(ReportPassage {
                key: self.snapshot.key_of(Node::Community(row))?,
                level: community.level,
                title: report.title,
                text: report.text,
                model: report.model,
                tokens,
                score: one.score,
                stale,
            });
        }
        Ok(())
    }

    /// The best chunks by themselves, of which those that tell of communities have a share of the best score beside that, by how good the
    /// community is.
    pub fn reported(&mut self, told: &[Told]) -> Result<Vec<(ChunkId, f32)>, QueryError> {
        let shares = told.iter().flat_map(|one| one.chunks.iter().map(move |chunk| (one, *chunk, 1.0)));
        self.raised(told, shares.collect())
    }

    /// Likewise, of which those that mention several members of a community have that share, by how many of them, at most four.
    pub fn subgraph(&mut self, told: &[Told]) -> Result<Vec<(ChunkId, f32)>, QueryError> {
        let (Some(links), Some(communities)) = (self.snapshot.links(), self.snapshot.communities()) else {
            return self.raised(told, Vec::new());
        };
        let (rows, mut shares, mut pace) = (communities.communities()?, Vec::new(), self.snapshot.guard.pace());
        for one in told {
            let Some(community) = rows.get(one.row) else { continue };
            let mut mentioned: BTreeMap<ChunkId, u8> = BTreeMap::new();
            for member in communities.members(&community)? {
                let Some(slot) = links.find(member)? else { continue };
                for chunk in links.mentioning(slot)?.iter().map(ChunkId) {
                    pace.step()?;
                    self.snapshot.guard.hold::<[(&Told, ChunkId, f32); 2]>(1)?;
                    let count = mentioned.entry(chunk).or_default();
                    *count = count.saturating_add(1);
                }
            }
            mentioned.retain(|chunk, count| usize::from(*count) >= MEMBERS_MIN && self.may_choose(*chunk));
            shares.extend(
                mentioned.into_iter().map(|(chunk, count)| (one, chunk, f32::from(count.min(MOST)) / f32::from(MOST))),
            );
        }
        self.raised(told, shares)
    }

    /// The best chunks by themselves and by shares that communities give them, none of which lifts a chunk above the best.
    fn raised(&mut self, told: &[Told], shares: Vec<(&Told, ChunkId, f32)>) -> Result<Vec<(ChunkId, f32)>, QueryError> {
        let best = rank::top(self.snapshot, &self.heads()?, self.allowed.as_ref(), self.count())?;
        let most = best.first().map_or(0.0, |best| best.1);
        let first = told.first().map_or(1.0, |first| first.score.max(f32::MIN_POSITIVE));
        let mut scored: BTreeMap<ChunkId, f32> = best.into_iter().collect();
        for (one, chunk, share) in shares {
            let (head, Ok(row)) = (self.head(chunk), u32::try_from(one.row)) else { continue };
            let value = (MEMBER_SHARE * most * share * one.score / first).min(most - head).max(0.0);
            if value > self.held.get(&chunk).map_or(0.0, |held| held.value) {
                scored.insert(chunk, head + value);
                self.held.insert(chunk, Held { row, score: one.score, value });
            }
        }
        rank::best(self.snapshot, scored.into_iter().collect(), self.count())
    }

    /// Reports beside passages.
    pub fn report_beside(&mut self) -> Result<(), QueryError> {
        let told = self.communities()?;
        self.report(&told, REPORTS_PART)
    }
}

/// How few of all entities some are: 1 for none, 0 for all.
fn few(entities: usize, members: u32) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "a ratio of counts")]
    let all = entities as f64 + 1.0;
    #[expect(clippy::cast_possible_truncation, reason = "a number from 0 to 1")]
    let few = (libm::log(all / (f64::from(members) + 1.0)) / libm::log(all.max(2.0))).clamp(0.0, 1.0) as f32;
    few
}
