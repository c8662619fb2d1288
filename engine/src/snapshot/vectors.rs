//! The vectors of a generation: all that count, or those of a few chunks.

use crate::error::Damage;
use crate::segment::SpaceView;
use crate::snapshot::{Snapshot, Space};
use hedgerow_format::ChunkId;
use std::collections::BTreeMap;
use std::ops::Range;

/// The vectors of one space, looked up by chunk.
#[derive(Debug)]
pub struct SpaceVectors<'s> {
    snapshot: &'s Snapshot,
    /// By position of the segment.
    views: Vec<(usize, SpaceView<'s>)>,
    replaced: Option<&'s BTreeMap<ChunkId, usize>>,
}

impl Snapshot {
    /// The vector spaces of live chunks, by name.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn spaces(&self) -> Result<&[Space], Damage> {
        if let Some(known) = self.spaces.get() {
            return Ok(known);
        }
        let mut spaces: BTreeMap<String, Space> = BTreeMap::new();
        for (position, segment) in self.segments.iter().enumerate() {
            for view in segment.spaces()? {
                let space = spaces.entry(view.name.to_owned()).or_insert_with(|| Space {
                    name: view.name.to_owned(),
                    model: view.model.to_owned(),
                    dimensions: view.dimensions,
                    vectors: 0,
                });
                space.vectors +=
                    view.chunks.iter().filter(|chunk| self.counts(position, &view, ChunkId(*chunk))).count() as u64;
            }
        }
        spaces.retain(|_, space| space.vectors > 0);
        Ok(self.spaces.get_or_init(|| spaces.into_values().collect()))
    }

    /// Calls `visit` with every vector that counts, of one space or of all: the view it lies in, its chunk, its
    /// little-endian components.
    pub(crate) fn for_each_vector<'s>(
        &'s self,
        space: Option<&str>,
        visit: impl FnMut(&SpaceView<'s>, ChunkId, &'s [u8]),
    ) -> Result<(), Damage> {
        self.for_each_vector_of(0..self.segments.len(), space, visit)
    }

    /// Calls `visit` with every vector of a space that files still hold, whether it counts or not: its chunk, its
    /// little-endian components.
    pub(crate) fn for_each_vector_held<'s>(
        &'s self,
        space: &str,
        mut visit: impl FnMut(ChunkId, &'s [u8]),
    ) -> Result<(), Damage> {
        for segment in &self.segments {
            for view in segment.spaces()?.into_iter().filter(|view| view.name == space) {
                view.chunks.iter().zip(view.vectors()?).for_each(|(chunk, row)| visit(ChunkId(chunk), row));
            }
        }
        Ok(())
    }

    /// As [`Snapshot::for_each_vector`], of the vectors that lie in some of the segments.
    pub(crate) fn for_each_vector_of<'s>(
        &'s self,
        run: Range<usize>,
        space: Option<&str>,
        mut visit: impl FnMut(&SpaceView<'s>, ChunkId, &'s [u8]),
    ) -> Result<(), Damage> {
        for (position, segment) in run.clone().zip(self.segments.get(run).unwrap_or_default()) {
            for view in segment.spaces()? {
                if space.is_some_and(|space| space != view.name) {
                    continue;
                }
                for (chunk, row) in view.chunks.iter().map(ChunkId).zip(view.vectors()?) {
                    if self.counts(position, &view, chunk) {
                        visit(&view, chunk, row);
                    }
                }
            }
        }
        Ok(())
    }

    /// How many vectors of a space the segment at a position holds, whether they count or not.
    pub(crate) fn vectors_in(&self, position: usize, space: &str) -> Result<usize, Damage> {
        let Some(segment) = self.segments.get(position) else { return Ok(0) };
        Ok(segment.spaces()?.iter().filter(|view| view.name == space).map(|view| view.chunks.len()).sum())
    }

    /// Whether a vector of the segment at a position counts: its chunk is live, and no later segment replaced it.
    fn counts(&self, position: usize, view: &SpaceView<'_>, chunk: ChunkId) -> bool {
        let dead = self.dead_vectors.get(view.name);
        let replaced = dead.and_then(|dead| dead.get(&chunk)).is_some_and(|before| position < *before);
        self.is_live(chunk) && !replaced
    }

    /// The vectors of a space.
    pub(crate) fn vectors_of(&self, space: &str) -> Result<SpaceVectors<'_>, Damage> {
        let mut views = Vec::new();
        for (position, segment) in self.segments.iter().enumerate() {
            views.extend(segment.spaces()?.into_iter().filter(|view| view.name == space).map(|view| (position, view)));
        }
        Ok(SpaceVectors { snapshot: self, views, replaced: self.dead_vectors.get(space) })
    }
}

impl<'s> SpaceVectors<'s> {
    /// The vector of a chunk that counts, as little-endian `f32`; none where there is none.
    pub fn of(&self, chunk: ChunkId) -> Result<Option<&'s [u8]>, Damage> {
        if !self.snapshot.is_live(chunk) {
            return Ok(None);
        }
        let from = self.replaced.and_then(|replaced| replaced.get(&chunk)).copied().unwrap_or_default();
        for (_, view) in self.views.iter().rev().take_while(|(position, _)| *position >= from) {
            if let Some(row) = view.row_of(chunk) {
                return view.vector(row).map(Some);
            }
        }
        Ok(None)
    }
}
