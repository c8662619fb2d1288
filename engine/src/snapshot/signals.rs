//! Signals of chunks: how similar they are by their vectors, words, titles and columns, and by the entities that they mention.

use crate::error::Damage;
use crate::index::edges::SignalKind;
use crate::index::signals::{ColumnsBuilder, Dense, Overlap, SetsBuilder, Signal, Weighing, columns_of};
use crate::snapshot::{ChunkView, Snapshot};
use hedgerow_format::ChunkId;

/// What signals are read from.
pub(crate) struct Signals<'s, E> {
    pub snapshot: &'s Snapshot,
    /// The space whose vectors are the content.
    pub space: &'s str,
    /// Slots of the entities that a chunk mentions; they ascend as the keys do.
    pub mentions: &'s dyn Fn(ChunkId) -> Result<Vec<u32>, E>,
    /// Asked for each chunk whether to go on.
    pub step: &'s dyn Fn() -> Result<(), E>,
}

impl<E: From<Damage>> Signals<'_, E> {
    /// How similar some chunks are by a signal, one row a chunk. Reads what it is about, of each chunk once. A chunk without a
    /// vector of the signal's space is similar to none by it.
    pub(crate) fn of(&self, kind: &SignalKind, chunks: &[ChunkId]) -> Result<Box<dyn Signal>, E> {
        Ok(match kind {
            SignalKind::Content => Box::new(self.vectors(self.space, chunks)?),
            SignalKind::Vectors(space) => Box::new(self.vectors(space, chunks)?),
            SignalKind::Entities => Box::new(self.entities(chunks, Weighing::Equal)?),
            SignalKind::RareEntities => Box::new(self.entities(chunks, Weighing::Rarity)?),
            SignalKind::Columns => {
                let mut columns = ColumnsBuilder::default();
                self.for_each(chunks, |chunk| {
                    columns.push(if chunk.is_table() { columns_of(&chunk.text()?) } else { Vec::new() });
                    Ok(())
                })?;
                Box::new(columns.finish())
            }
            SignalKind::Words => Box::new(self.words(chunks, |words, chunk| {
                words.push_words(&chunk.text()?);
                Ok(())
            })?),
            SignalKind::Titles => Box::new(self.words(chunks, |words, chunk| {
                words.push_words(chunk.document()?.title()?);
                Ok(())
            })?),
        })
    }

    fn vectors(&self, space: &str, chunks: &[ChunkId]) -> Result<Dense<'static>, E> {
        let mut order: Vec<(ChunkId, usize)> = chunks.iter().copied().zip(0..).collect();
        order.sort_unstable();
        let (mut matrix, mut columns) = (Vec::new(), 0);
        self.snapshot.for_each_vector(Some(space), |view, chunk, row| {
            let Ok(at) = order.binary_search_by_key(&chunk, |known| known.0) else { return };
            if matrix.is_empty() {
                columns = view.dimensions;
                matrix.resize(chunks.len() * columns, 0.0);
            }
            let components = matrix.chunks_exact_mut(columns.max(1)).nth(order[at].1).unwrap_or_default();
            for (component, bytes) in components.iter_mut().zip(row.as_chunks().0) {
                *component = f32::from_le_bytes(*bytes);
            }
        })?;
        Ok(Dense::new(matrix, columns))
    }

    fn entities(&self, chunks: &[ChunkId], weighing: Weighing) -> Result<Overlap, E> {
        let mut sets = SetsBuilder::default();
        for chunk in chunks {
            (self.step)()?;
            // The order of these bytes is that of the slots, which is that of the keys: no history changes it.
            sets.push((self.mentions)(*chunk)?.into_iter().map(u32::to_be_bytes));
        }
        Ok(Overlap::new(sets.finish(), weighing))
    }

    fn words(
        &self,
        chunks: &[ChunkId],
        push: impl Fn(&mut SetsBuilder, &ChunkView<'_>) -> Result<(), Damage>,
    ) -> Result<Overlap, E> {
        let mut words = SetsBuilder::default();
        self.for_each(chunks, |chunk| push(&mut words, chunk))?;
        Ok(Overlap::new(words.finish(), Weighing::Equal))
    }

    fn for_each(
        &self,
        chunks: &[ChunkId],
        mut visit: impl FnMut(&ChunkView<'_>) -> Result<(), Damage>,
    ) -> Result<(), E> {
        for chunk in chunks {
            (self.step)()?;
            visit(&self.snapshot.chunk(*chunk)?)?;
        }
        Ok(())
    }
}
