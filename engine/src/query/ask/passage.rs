//! What is told of a chunk that was chosen: its text, the parts of its score, and how it was reached.

use crate::error::{Damage, QueryError};
use crate::query::answer::{Legs, Passage, Role, Step};
use crate::query::ask::beside::Beside;
use crate::query::ask::links::LinkKind;
use crate::query::ask::plan::Plan;
use crate::query::node;
use hedgerow_format::{ChunkId, EntitySlot};

/// Bytes that a passage takes beside its text: two blocks of text, fields and path.
const PASSAGE_BYTES: u64 = 40 << 10;

impl Plan<'_, '_> {
    pub fn passage(&self, id: ChunkId, score: f32) -> Result<Passage, QueryError> {
        let chunk = self.snapshot.chunk(id)?;
        let document = chunk.document()?;
        self.snapshot.guard.poll()?;
        self.snapshot.guard.hold_bytes(chunk.range().len() as u64 + PASSAGE_BYTES)?;
        let text = chunk.text()?;
        let walk = self.walked.get(&id).map_or(0.0, |share| share.value);
        let choice = self.choice.get(&id).copied().unwrap_or_default();
        let community = self.held.get(&id).map_or(0.0, |held| held.value);
        let legs = Legs {
            terms: self.terms.get(id),
            vector: self.cosines.get(id),
            named: self.named.get(&id).map_or(0.0, |named| named.0),
            link: score - self.head(id) - walk - choice - community,
            walk,
            choice,
            community,
        };
        let (role, path) = self.path(id, &legs)?;
        let metadata = node::object(chunk.metadata()?);
        let page = |field: &str| metadata.get(field).and_then(serde_json::Value::as_u64);
        Ok(Passage {
            key: chunk.key()?,
            document: document.key()?.to_owned(),
            title: document.title()?.to_owned(),
            source: document.source()?.to_owned(),
            heading: chunk.heading()?.to_owned(),
            page: page("page"),
            page_last: page("page_last"),
            start: chunk.range().start,
            end: chunk.range().end,
            tokens: text.len().div_ceil(4),
            text,
            role,
            score,
            legs,
            path,
        })
    }

    /// The reason for a passage: a link from a seed or the walk (for another seed only if that is the largest part of its
    /// score), a name in the question, or terms and vector.
    fn path(&self, id: ChunkId, legs: &Legs) -> Result<(Role, Vec<Step>), QueryError> {
        let is_seed = self.is_seed(id);
        let (own, reached) = if is_seed { (Role::Seed, Role::Seed) } else { (Role::Match, Role::Neighbour) };
        let flat = self.flat(id);
        if let Some(Beside { seed, by, weight }) = self.beside.get(&id) {
            let step = Step { by, node: self.node(id)?, weight: *weight };
            return Ok((Role::Neighbour, vec![self.by_itself(*seed)?, step]));
        }
        if let Some(held) = self.held.get(&id) {
            let community = self.snapshot.community_key(held.row)?;
            let steps =
                [("community", community, held.score), ("tells of it", self.node(id)?, self.head(id) + held.value)];
            let role = if held.value > self.head(id) { Role::Neighbour } else { own };
            return Ok((role, steps.into_iter().map(|(by, node, weight)| Step { by, node, weight }).collect()));
        }
        if let Some(link) = self.strongest(id)
            && self.by_link(id, link) - self.head(id) > if is_seed { legs.named.max(flat).max(legs.walk) } else { 0.0 }
        {
            let before = self.steps_to(link.seed)?;
            return Ok((reached, self.steps(before, (link.entity, link.idf), link.kind, (id, link.value))?));
        }
        if let Some(share) = self.walked.get(&id)
            && share.value > legs.named.max(flat)
        {
            let before = share.seed.map_or(Ok(Vec::new()), |seed| self.steps_to(seed))?;
            let entity = (Some(share.entity), share.idf);
            return Ok((reached, self.steps(before, entity, share.kind, (id, share.value))?));
        }
        match self.named.get(&id) {
            Some((value, entity)) if legs.named > 0.0 => {
                let entity = (Some(*entity), *value);
                Ok((own, self.steps(Vec::new(), entity, LinkKind::Definition, (id, self.head(id)))?))
            }
            _ => Ok((own, vec![self.by_itself(id)?])),
        }
    }

    /// How a link's start was reached: a seed by itself, else by the link that led from a seed to it.
    fn steps_to(&self, start: ChunkId) -> Result<Vec<Step>, Damage> {
        match self.linked.get(&start) {
            Some(link) if !self.is_seed(start) => {
                let before = vec![self.by_itself(link.seed)?];
                self.steps(before, (link.entity, link.idf), link.kind, (start, link.value))
            }
            _ => Ok(vec![self.by_itself(start)?]),
        }
    }

    /// On from there, or from the question where there is nothing, by an entity to a chunk.
    fn steps(
        &self,
        mut steps: Vec<Step>,
        (entity, weight): (Option<EntitySlot>, f32),
        kind: LinkKind,
        (chunk, value): (ChunkId, f32),
    ) -> Result<Vec<Step>, Damage> {
        if entity.is_some() {
            let by = if steps.is_empty() { "names" } else { "mentions" };
            steps.push(Step { by, node: format!("entity:{}", self.name_of(entity)?), weight });
        }
        let weight = if entity.is_some() { value } else { weight };
        steps.push(Step { by: kind.step(), node: self.node(chunk)?, weight });
        Ok(steps)
    }

    fn by_itself(&self, chunk: ChunkId) -> Result<Step, Damage> {
        let by = match (self.terms.get(chunk) > 0.0, self.cosines.get(chunk) > 0.0) {
            (true, true) => "terms and vector",
            (true, false) => "terms",
            (false, true) => "vector",
            (false, false) => "filter",
        };
        Ok(Step { by, node: self.node(chunk)?, weight: self.head(chunk) })
    }

    fn node(&self, chunk: ChunkId) -> Result<String, Damage> {
        Ok(format!("chunk:{}", self.snapshot.chunk(chunk)?.key()?))
    }
}
