//! What the report of one community is drawn from, with the hash of just that.

use crate::model::{CommunityContent, CommunityEntity, CommunityPassage, CommunityRelation};
use hedgerow_format::Key;

/// What a report is drawn from; hashed as it is put together, so that nothing reaches a report that its hash doesn't cover.
pub(super) struct Material {
    pub content: CommunityContent,
    /// Keys of the documents of the chunks, and their places there.
    pub citations: Vec<(Key, u32)>,
    hasher: blake3::Hasher,
}

impl Material {
    /// Of a community of a level, with nothing in it yet.
    pub(super) fn new(level: usize, more: bool) -> Self {
        let level = u32::try_from(level).unwrap_or(u32::MAX);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&level.to_le_bytes()).update(&[u8::from(more)]);
        Self { content: CommunityContent { level, more, ..CommunityContent::default() }, citations: Vec::new(), hasher }
    }

    fn text(&mut self, text: &str) {
        self.hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }

    /// Adds a member that has a key.
    pub(super) fn entity(&mut self, key: [u8; 16], entity: CommunityEntity) {
        self.hasher.update(b"member").update(&key);
        self.text(&entity.name);
        self.text(&entity.kind);
        self.hasher.update(&entity.weight.to_bits().to_le_bytes());
        self.content.entities.push(entity);
    }

    /// Adds a relation.
    pub(super) fn relation(&mut self, relation: CommunityRelation) {
        self.hasher.update(b"relation");
        self.text(&relation.subject);
        self.text(&relation.predicate);
        self.text(&relation.object);
        self.hasher.update(&relation.weight.to_bits().to_le_bytes());
        self.content.relations.push(relation);
    }

    /// Adds a chunk.
    pub(super) fn passage(&mut self, (document, ordinal): (Key, u32), passage: CommunityPassage) {
        self.hasher.update(b"chunk").update(&document.0).update(&ordinal.to_le_bytes());
        self.text(&passage.key);
        self.text(&passage.text);
        self.content.passages.push(passage);
        self.citations.push((document, ordinal));
    }

    /// The hash of all of it.
    pub(super) fn hash(&self) -> [u8; 16] {
        *self.hasher.finalize().as_bytes().first_chunk().unwrap_or(&[0; 16])
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{CommunityEntity, CommunityPassage, CommunityRelation};
    use crate::project::communities::material::Material;
    use hedgerow_format::Key;
    use std::collections::BTreeSet;

    #[test]
    fn whatever_reaches_a_report_shows_in_its_hash() {
        let entity = |name: &str, weight| CommunityEntity { name: name.into(), kind: "person".into(), weight };
        let relation =
            |subject: &str, weight| CommunityRelation { subject: subject.into(), weight, ..Default::default() };
        let passage = |text: &str| CommunityPassage { key: "a#0".into(), text: text.into() };
        let made = |level, more, (name, weight), (subject, heavy), text| {
            let mut material = Material::new(level, more);
            material.entity([1; 16], entity(name, weight));
            material.relation(relation(subject, heavy));
            material.passage((Key([2; 16]), 0), passage(text));
            material.hash()
        };
        let first = made(0, false, ("Ada", 1.0), ("Ada", 1.0), "Ada wrote.");
        assert_eq!(made(0, false, ("Ada", 1.0), ("Ada", 1.0), "Ada wrote."), first);
        let others = [
            made(1, false, ("Ada", 1.0), ("Ada", 1.0), "Ada wrote."),
            made(0, true, ("Ada", 1.0), ("Ada", 1.0), "Ada wrote."),
            made(0, false, ("Eva", 1.0), ("Ada", 1.0), "Ada wrote."),
            made(0, false, ("Ada", 2.0), ("Ada", 1.0), "Ada wrote."),
            made(0, false, ("Ada", 1.0), ("Eva", 1.0), "Ada wrote."),
            made(0, false, ("Ada", 1.0), ("Ada", 2.0), "Ada wrote."),
            made(0, false, ("Ada", 1.0), ("Ada", 1.0), "Ada read."),
        ];
        assert_eq!(BTreeSet::from(others).len(), 7);
        assert!(!others.contains(&first));
    }
}
