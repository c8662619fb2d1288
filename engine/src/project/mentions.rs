//! Which chunks mention which entities, from links that are in step: what rules about shared entities read.

use crate::error::Damage;
use crate::index::edges::{Mentions, Shared};
use crate::index::terms::bm25::idf;
use crate::projection::{Links, LinksData};
use crate::snapshot::Snapshot;
use hedgerow_format::{ChunkId, EntitySlot};

/// The mentions that count: pairs of chunk and entity slot, sorted, and how many chunks mention each entity.
pub(super) struct Mentioned {
    pairs: Vec<(u32, u32)>,
    counts: Vec<u32>,
    /// Chunks that are live.
    chunks: u64,
}

impl Mentioned {
    /// Those of links that are to be committed.
    pub(super) fn made(snapshot: &Snapshot, links: &LinksData) -> Result<Self, Damage> {
        Self::counted(snapshot, links.mentions.clone())
    }

    /// Those of links that are there.
    pub(super) fn open(snapshot: &Snapshot, links: &Links) -> Result<Self, Damage> {
        let mut pairs = Vec::new();
        for chunk in 0..links.entry().chunks_end {
            pairs.extend(links.mentions(ChunkId(chunk))?.iter().map(|entity| (chunk, entity)));
        }
        Self::counted(snapshot, pairs)
    }

    fn counted(snapshot: &Snapshot, pairs: Vec<(u32, u32)>) -> Result<Self, Damage> {
        let entities = pairs.iter().map(|pair| EntitySlot(pair.1).index() + 1).max().unwrap_or(0);
        let mut counts = vec![0; entities];
        for (_, entity) in &pairs {
            counts[EntitySlot(*entity).index()] += 1;
        }
        Ok(Self { pairs, counts, chunks: snapshot.statistics()?.chunks })
    }

    /// Bytes of memory that it takes, and those that edges for shared entities take beside it: the rare ones of each row and the rows
    /// of each, and the partners that rows choose.
    pub(super) fn bytes(&self, shared: Option<Shared>) -> u64 {
        let (mentions, entities) = (self.pairs.len() as u64, self.counts.len() as u64);
        let chosen = |shared: Shared| u64::from(shared.top_m) * 24;
        let beside = shared.map_or(0, |shared| mentions * 16 + entities * 32 + self.chunks * (24 + chosen(shared)));
        mentions * 8 + entities * 4 + beside
    }

    /// The slots of the entities in a chunk, ascending.
    pub(super) fn of(&self, chunk: ChunkId) -> impl Iterator<Item = u32> {
        let start = self.pairs.partition_point(|pair| pair.0 < chunk.0);
        self.pairs[start..].iter().take_while(move |pair| pair.0 == chunk.0).map(|pair| pair.1)
    }

    /// The rare entities in some chunks, one row a chunk.
    pub(super) fn rare(&self, chunks: &[ChunkId], rules: Shared) -> Mentions {
        let is_rare =
            |entity: u32| self.counts.get(EntitySlot(entity).index()).is_some_and(|count| *count <= rules.chunks_max);
        let of_chunk = |chunk: &ChunkId| self.of(*chunk).filter(|entity| is_rare(*entity)).collect();
        Mentions {
            of_rows: chunks.iter().map(of_chunk).collect(),
            weights: self.counts.iter().map(|count| f64::from(idf(self.chunks, u64::from(*count)))).collect(),
        }
    }
}
