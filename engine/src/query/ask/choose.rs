//! The last choice: the best passages one after the other, each also for what it adds to those before and what joins it to them.

use crate::error::QueryError;
use crate::projection::Links;
use crate::query::ask::plan::Plan;
use crate::query::ask::walk::CANDIDATES;
use hedgerow_format::{ChunkId, EntitySlot};
use std::collections::BTreeMap;

/// Places that are filled one after the other; those behind keep the order of their scores.
const PLACES_MAX: usize = 20;

/// Who speaks of an entity, as positions in a list of chunks.
#[derive(Default)]
struct Speakers {
    mentioning: Vec<usize>,
    defining: Vec<usize>,
}

impl Plan<'_, '_> {
    /// The passages in the order of choice, as many as are told of.
    pub fn chosen(&mut self) -> Result<Vec<(ChunkId, f32)>, QueryError> {
        let count = self.count();
        let ranked = self.ranked(count.max(CANDIDATES))?;
        let mut chosen = self.choose(ranked)?;
        chosen.truncate(count);
        Ok(chosen)
    }

    /// From the order of scores to the order of choice: the first place stays, and each next goes to what has the most of F
    /// and, by the first passage's F and gate, of what it adds to the passages before it and what joins it to them.
    ///
    /// No score passes the one before: whatever takes a place had the most of all that were left.
    fn choose(&mut self, mut ranked: Vec<(ChunkId, f32)>) -> Result<Vec<(ChunkId, f32)>, QueryError> {
        let (Some(links), Some((first, most))) = (self.snapshot.links(), ranked.first().copied()) else {
            return Ok(ranked);
        };
        let worth = most * self.need(first)?;
        if worth <= 0.0 {
            return Ok(ranked);
        }
        let rest = ranked.split_off(ranked.len().min(CANDIDATES));
        let joined = self.joined(links, &ranked)?;
        let recipe = self.question.recipe;
        let (mut left, mut chosen) = ((1..ranked.len()).collect::<Vec<usize>>(), vec![(first, most)]);
        let mut strongest = joined[0].clone();
        let (mut covered, mut bound) = (self.coverage.terms(first), most);
        while chosen.len() < PLACES_MAX && !left.is_empty() {
            let gain = |position: usize| {
                let adds = self.coverage.beyond(ranked[position].0, covered);
                worth * (recipe.adds * adds + recipe.joins * strongest[position])
            };
            let mut next = (0, f32::NEG_INFINITY);
            for (place, position) in left.iter().enumerate() {
                let score = ranked[*position].1 + gain(*position);
                if score > next.1 {
                    next = (place, score);
                }
            }
            let position = left.remove(next.0);
            let (chunk, score) = ranked[position];
            bound = next.1.min(bound).max(score);
            self.choice.insert(chunk, bound - score);
            chosen.push((chunk, bound));
            covered |= self.coverage.terms(chunk);
            for (known, link) in strongest.iter_mut().zip(&joined[position]) {
                *known = known.max(*link);
            }
        }
        chosen.extend(left.into_iter().map(|position| ranked[position]));
        chosen.extend(rest);
        Ok(chosen)
    }

    /// For each two of some chunks, the idf of the strongest entity that one mentions and the other mentions or defines.
    fn joined(&self, links: &Links, chunks: &[(ChunkId, f32)]) -> Result<Vec<Vec<f32>>, QueryError> {
        let corpus = self.corpus(links)?;
        let mut by_entity: BTreeMap<EntitySlot, Speakers> = BTreeMap::new();
        for (position, (chunk, _)) in chunks.iter().enumerate() {
            let (mentions, defines) = (links.mentions(*chunk)?, links.defining(*chunk)?);
            self.snapshot.guard.poll()?;
            self.snapshot.guard.hold::<[(EntitySlot, Speakers); 2]>(mentions.len() + defines.len())?;
            for slot in mentions.iter().map(EntitySlot) {
                by_entity.entry(slot).or_default().mentioning.push(position);
            }
            for slot in defines.iter().map(EntitySlot) {
                by_entity.entry(slot).or_default().defining.push(position);
            }
        }
        let mut joined = vec![vec![0.0_f32; chunks.len()]; chunks.len()];
        by_entity.retain(|_, speakers| !speakers.mentioning.is_empty());
        for (slot, Speakers { mentioning, defining }) in by_entity {
            if mentioning.len() + defining.len() < 2 {
                continue;
            }
            let idf = self.idf_of(&corpus, slot)?;
            for one in &mentioning {
                for other in mentioning.iter().chain(&defining) {
                    joined[*one][*other] = joined[*one][*other].max(idf);
                    joined[*other][*one] = joined[*other][*one].max(idf);
                }
            }
        }
        Ok(joined)
    }
}
