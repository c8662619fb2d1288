//! The graph of entities: joined by relations, and by chunks that mention both.

use crate::error::Damage;
use crate::index::graph::leiden::Undirected;
use crate::projection::Links;
use crate::snapshot::Snapshot;
use hedgerow_format::{ChunkId, EntitySlot, FormatError};

/// Entities of one chunk that are joined: in a list of more, standing together says little.
const MENTIONS_MAX: usize = 64;
/// An entity that one chunk mentions alone says no more than that chunk; one that more than a part of all chunks mention, and more
/// than a few, stands beside everything.
const CHUNKS_MIN: usize = 2;
const CHUNKS_MAX: usize = 20;
const CHUNKS_PART: u64 = 100;

/// Joins entities by the weights of their relations, whatever their labels and directions; and, where `co_mentions`, by each chunk
/// that mentions both, which gives each of its k entities a weight of 1, shared among the k - 1 others: of those with a letter in
/// their names that neither one chunk alone nor very many mention.
///
/// Takes k · (k - 1) / 2 edges of 12 bytes for each chunk that mentions k entities.
pub(super) fn entity_graph(snapshot: &Snapshot, links: &Links, co_mentions: bool) -> Result<Undirected, Damage> {
    let entities = links.entities()?.len();
    let nodes = u32::try_from(entities).unwrap_or(u32::MAX);
    let mut edges = Vec::new();
    for entity in (0..nodes).map(EntitySlot) {
        let related = links.relations_from(entity)?;
        edges.extend(
            related.iter().filter(|related| related.0 != entity).map(|(other, _, weight)| (entity.0, other.0, weight)),
        );
    }
    let part = usize::try_from(snapshot.statistics()?.chunks / CHUNKS_PART).unwrap_or(usize::MAX);
    let mut joins = Vec::with_capacity(entities);
    for entity in (0..nodes).map(EntitySlot) {
        let some = (CHUNKS_MIN..=CHUNKS_MAX.max(part)).contains(&links.mentioning(entity)?.len());
        // A year or another number stands beside anything.
        joins.push(some && links.string(links.entity(entity)?.name)?.chars().any(char::is_alphabetic));
    }
    let mut mentions = Vec::new();
    for chunk in (0..links.entry().chunks_end).map(ChunkId).filter(|chunk| co_mentions && snapshot.is_live(*chunk)) {
        mentions.clear();
        mentions.extend(links.mentions(chunk)?.iter().filter(|entity| joins[EntitySlot(*entity).index()]));
        let others = mentions.len().saturating_sub(1);
        if others == 0 || others >= MENTIONS_MAX {
            continue;
        }
        #[expect(clippy::cast_precision_loss, reason = "below the limit")]
        let weight = 1.0 / others as f32;
        for (place, entity) in mentions.iter().enumerate() {
            edges.extend(mentions[place + 1..].iter().map(|other| (*entity, *other, weight)));
        }
    }
    Undirected::from_edges(nodes, edges).map_err(|fault| {
        let (expected, found) = ("edges that make a graph".into(), fault.to_string());
        Damage {
            file: "the links projection".into(),
            source: FormatError::Value { what: "a relation", expected, found },
        }
    })
}
