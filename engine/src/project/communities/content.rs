//! What each community is made of: its members, their relations, and the chunks that mention several of them.

use crate::error::Damage;
use crate::index::graph::leiden::Undirected;
use crate::model::{CommunityEntity, CommunityPassage, CommunityRelation};
use crate::project::communities::material::Material;
use crate::project::communities::tree::{Placed, Tree};
use crate::projection::Links;
use crate::snapshot::Snapshot;
use hedgerow_format::{ChunkId, EntitySlot, Key};

/// In a list of communities by entity: it is in none.
const NONE: u32 = u32::MAX;

/// Members, relations and chunks that a report is drawn from at most. Each is another thing that a change may replace: of 32,935
/// passages the last hundredth changes what 9 % of reports are drawn from if communities stay as they are, 12 % with 48, 48 and 6.
const ENTITIES_MAX: usize = 12;
const RELATIONS_MAX: usize = 8;
const PASSAGES_MAX: usize = 4;

/// All communities with what they are drawn from.
pub(super) struct Contents<'s> {
    pub snapshot: &'s Snapshot,
    pub links: &'s Links,
    pub graph: &'s Undirected,
    pub tree: &'s Tree,
    /// By entity: the weight of its edges.
    strengths: Vec<f64>,
    /// The weight of all ends of edges.
    total: f64,
    /// By level and entity: the community.
    of: Vec<Vec<u32>>,
    /// By level and community: chunks that mention two members or more, and how many.
    chunks: Vec<Vec<Vec<(ChunkId, u32)>>>,
}

/// A community by its level and place there.
pub(super) type At = (usize, usize);

impl<'s> Contents<'s> {
    pub(super) fn new(
        snapshot: &'s Snapshot,
        links: &'s Links,
        graph: &'s Undirected,
        tree: &'s Tree,
    ) -> Result<Self, Damage> {
        let of = tree.levels.iter().map(|level| {
            let mut of = vec![NONE; graph.nodes()];
            for (number, placed) in (0..).zip(level) {
                let members = &tree.members[placed.members.clone()];
                for member in members {
                    of[EntitySlot(*member).index()] = number;
                }
            }
            of
        });
        let chunks = tree.levels.iter().map(|level| vec![Vec::new(); level.len()]).collect();
        let strength = |node: usize| graph.neighbours(node).map(|(_, weight)| weight).sum();
        let strengths: Vec<f64> = (0..graph.nodes()).map(strength).collect();
        let total = strengths.iter().sum();
        let mut contents = Self { snapshot, links, graph, tree, strengths, total, of: of.collect(), chunks };
        contents.gather()?;
        Ok(contents)
    }

    fn gather(&mut self) -> Result<(), Damage> {
        let mut numbers = Vec::new();
        let chunks = (0..self.links.entry().chunks_end).map(ChunkId);
        for chunk in chunks.filter(|chunk| self.snapshot.is_live(*chunk)) {
            let mentions = self.links.mentions(chunk)?;
            for (of, chunks) in self.of.iter().zip(&mut self.chunks) {
                numbers.clear();
                numbers.extend(
                    mentions.iter().map(|entity| of[EntitySlot(entity).index()]).filter(|number| *number != NONE),
                );
                numbers.sort_unstable();
                for group in numbers.chunk_by(|a, b| a == b).filter(|group| group.len() > 1) {
                    let count = u32::try_from(group.len()).unwrap_or(NONE);
                    chunks[EntitySlot(group[0]).index()].push((chunk, count));
                }
            }
        }
        Ok(())
    }

    fn placed(&self, at: At) -> &Placed {
        &self.tree.levels[at.0][at.1]
    }

    /// The members of a community, ascending.
    fn members(&self, at: At) -> Vec<EntitySlot> {
        let mut members: Vec<EntitySlot> =
            self.tree.members[self.placed(at).members.clone()].iter().copied().map(EntitySlot).collect();
        members.sort_unstable();
        members
    }

    fn is_in(&self, at: At, entity: EntitySlot) -> bool {
        self.of[at.0].get(entity.index()).is_some_and(|number| EntitySlot(*number).index() == at.1)
    }

    /// Relations between members: subject, object, label, weight.
    fn relations(&self, at: At) -> Result<Vec<(EntitySlot, EntitySlot, u32, f32)>, Damage> {
        let mut relations = Vec::new();
        for member in self.members(at) {
            let related = self.links.relations_from(member)?;
            let inside = related.iter().filter(|(other, _, _)| self.is_in(at, *other));
            relations.extend(inside.map(|(other, label, weight)| (member, other, label, weight)));
        }
        Ok(relations)
    }

    /// All communities, level by level.
    pub(super) fn all(&self) -> impl Iterator<Item = At> {
        let levels = self.tree.levels.iter().enumerate();
        levels.flat_map(|(level, communities)| (0..communities.len()).map(move |number| (level, number)))
    }

    /// A community's share of the weight of all ends of edges.
    pub(super) fn rank(&self, at: At) -> f32 {
        let inside: f64 = self.members(at).iter().map(|member| self.strengths[member.index()]).sum();
        #[expect(clippy::cast_possible_truncation, reason = "a share from 0 to 1")]
        let share = if self.total > 0.0 { (inside / self.total).clamp(0.0, 1.0) as f32 } else { 0.0 };
        share
    }

    /// What a report of a community is drawn from.
    pub(super) fn material(&self, at: At) -> Result<Material, Damage> {
        let members = self.members(at);
        let mut material = Material::new(at.0, members.len() > ENTITIES_MAX);
        let mut weighed = Vec::with_capacity(members.len());
        for member in members {
            let inside =
                |(other, _): &(usize, f64)| u32::try_from(*other).is_ok_and(|other| self.is_in(at, EntitySlot(other)));
            let weight = self.graph.neighbours(member.index()).filter(inside).map(|(_, weight)| weight).sum();
            weighed.push((member, doubling(weight)));
        }
        weighed.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        for (entity, weight) in weighed.into_iter().take(ENTITIES_MAX) {
            let row = self.links.entity(entity)?;
            let (name, kind) = (self.links.string(row.name)?.to_owned(), self.links.string(row.kind)?.to_owned());
            material.entity(row.key, CommunityEntity { name, kind, weight });
        }
        let name = |entity: EntitySlot| -> Result<String, Damage> {
            Ok(self.links.string(self.links.entity(entity)?.name)?.to_owned())
        };
        let mut relations = self.relations(at)?;
        relations.sort_by(|a, b| b.3.total_cmp(&a.3).then_with(|| (a.0, a.1, a.2).cmp(&(b.0, b.1, b.2))));
        for (subject, object, label, weight) in relations.into_iter().take(RELATIONS_MAX) {
            let predicate = self.links.predicate(label)?.to_owned();
            material.relation(CommunityRelation { subject: name(subject)?, predicate, object: name(object)?, weight });
        }
        for (document, ordinal, chunk) in self.central(at)? {
            let view = self.snapshot.chunk(chunk)?;
            material.passage((document, ordinal), CommunityPassage { key: view.key()?, text: view.text()? });
        }
        Ok(material)
    }

    /// The chunks that mention most members, among equals those of lower keys.
    fn central(&self, at: At) -> Result<Vec<(Key, u32, ChunkId)>, Damage> {
        let mut chunks = self.chunks[at.0][at.1].clone();
        chunks.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        // Those that have as many as the last one that may be chosen are told apart by their keys.
        let least = chunks.get(PASSAGES_MAX - 1).map_or(0, |last| last.1);
        let mut keyed = Vec::new();
        for (chunk, count) in chunks.into_iter().take_while(|(_, count)| *count >= least) {
            let view = self.snapshot.chunk(chunk)?;
            keyed.push((std::cmp::Reverse(count), Key::of_document(view.document()?.key()?), view.ordinal(), chunk));
        }
        keyed.sort_unstable();
        Ok(keyed
            .into_iter()
            .take(PASSAGES_MAX)
            .map(|(_, document, ordinal, chunk)| (document, ordinal, chunk))
            .collect())
    }
}

/// The largest power of two that a weight reaches, so that the order of members survives a little more weight; 0 for none.
fn doubling(weight: f64) -> f64 {
    /// Where the exponent stands.
    const EXPONENT: u64 = 0x7ff << 52;
    f64::from_bits(weight.to_bits() & EXPONENT)
}

#[cfg(test)]
mod tests {
    use crate::project::communities::content::doubling;

    #[test]
    fn weights_are_told_in_powers_of_two() {
        let told = [0.0, 0.3, 0.5, 1.0, 1.9, 2.0, 1000.0].map(|weight| doubling(weight).to_bits());
        assert_eq!(told, [0.0, 0.25, 0.5, 1.0, 1.0, 2.0, 512.0].map(f64::to_bits));
    }
}
