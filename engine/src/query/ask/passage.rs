//! What is told of a chunk that was chosen: its text, the parts of its score, and how it was reached.

use crate::error::{Damage, QueryError};
use crate::query::answer::{Legs, Passage, Role, Step};
use crate::query::ask::beside::Beside;
use crate::query::ask::plan::Plan;
use crate::query::ask::walk::LinkKind;
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
        let legs = Legs {
            terms: self.terms.get(id),
            vector: self.cosines.get(id),
            named: self.named.get(&id).map_or(0.0, |named| named.0),
            link: score - self.head(id) - self.walked.get(&id).map_or(0.0, |share| share.value),
            walk: self.walked.get(&id).map_or(0.0, |share| share.value),
        };
        let (role, path) = self.path(id, &legs)?;
        Ok(Passage {
            key: chunk.key()?,
            document: document.key()?.to_owned(),
            title: document.title()?.to_owned(),
            source: document.source()?.to_owned(),
            heading: chunk.heading()?.to_owned(),
            page: node::object(chunk.metadata()?).get("page").and_then(serde_json::Value::as_u64),
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
    fn path(&self, id: ChunkId, legs: &Legs) -> Result<(Role, Vec<Step>), Damage> {
        let is_seed = self.seeds.iter().any(|seed| seed.0 == id);
        let (own, reached) = if is_seed { (Role::Seed, Role::Seed) } else { (Role::Match, Role::Neighbour) };
        let flat = self.flat(id);
        if let Some(Beside { seed, by, weight }) = self.beside.get(&id) {
            let step = Step { by, node: self.node(id)?, weight: *weight };
            return Ok((Role::Neighbour, vec![self.by_itself(*seed)?, step]));
        }
        if let Some(link) = self.linked.get(&id)
            && legs.link > if is_seed { legs.named.max(flat).max(legs.walk) } else { 0.0 }
        {
            return Ok((reached, self.steps(Some(link.seed), (link.entity, link.idf), link.kind, (id, link.value))?));
        }
        if let Some(share) = self.walked.get(&id)
            && share.value > legs.named.max(flat)
        {
            return Ok((reached, self.steps(share.seed, (share.entity, share.idf), share.kind, (id, share.value))?));
        }
        match self.named.get(&id) {
            Some((value, entity)) if legs.named > 0.0 => {
                Ok((own, self.steps(None, (*entity, *value), LinkKind::Definition, (id, self.head(id)))?))
            }
            _ => Ok((own, vec![self.by_itself(id)?])),
        }
    }

    /// From a seed, or from the question where there is none, by an entity to a chunk.
    fn steps(
        &self,
        seed: Option<ChunkId>,
        (entity, weight): (EntitySlot, f32),
        kind: LinkKind,
        (chunk, value): (ChunkId, f32),
    ) -> Result<Vec<Step>, Damage> {
        let name = match self.snapshot.links() {
            Some(links) => links.string(links.entity(entity)?.name)?,
            None => "",
        };
        let mut steps = Vec::with_capacity(3);
        if let Some(seed) = seed {
            steps.push(self.by_itself(seed)?);
        }
        let by = if seed.is_some() { "mentions" } else { "names" };
        steps.push(Step { by, node: format!("entity:{name}"), weight });
        steps.push(Step { by: kind.step(), node: self.node(chunk)?, weight: value });
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
