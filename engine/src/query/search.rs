//! The two legs of retrieval by themselves: BM25 and nearest neighbours, each with filters.

use crate::distance;
use crate::error::QueryError;
use crate::query::filter::Filter;
use crate::query::legs::{self, check_length};
use crate::query::nearest::Recall;
use crate::query::{node, rank};
use crate::snapshot::{Bounded, Space, chunk_key};
use hedgerow_format::ChunkId;
use rayon::prelude::*;
use roaring::RoaringBitmap;
use serde::Serialize;
use std::borrow::Cow;

/// Questions whose nearest are looked for together; what is found of more of them at once takes memory.
const TOGETHER: usize = 1024;

/// A chunk that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// Key of the chunk.
    pub key: String,
    /// Its score: BM25 or cosine.
    pub score: f32,
}

/// Chunks that were chosen once, for many searches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChunkSet {
    pub(super) chunks: RoaringBitmap,
}

impl std::ops::BitAnd for &ChunkSet {
    type Output = ChunkSet;

    /// The chunks of both.
    fn bitand(self, other: Self) -> ChunkSet {
        ChunkSet { chunks: &self.chunks & &other.chunks }
    }
}

impl std::ops::BitOr for &ChunkSet {
    type Output = ChunkSet;

    /// The chunks of either.
    fn bitor(self, other: Self) -> ChunkSet {
        ChunkSet { chunks: &self.chunks | &other.chunks }
    }
}

impl std::ops::Sub for &ChunkSet {
    type Output = ChunkSet;

    /// The chunks of one that are not of the other.
    fn sub(self, other: Self) -> ChunkSet {
        ChunkSet { chunks: &self.chunks - &other.chunks }
    }
}

impl ChunkSet {
    /// How many they are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.chunks.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }
}

/// What a search among vectors is to give.
#[derive(Clone, Copy, Debug, Default)]
pub struct VectorSearch<'s> {
    /// How many chunks.
    pub count: usize,
    /// How much of what is nearest.
    pub recall: Recall,
    /// Only chunks that it lets through. It reads the metadata of all chunks: what is asked often is better chosen once, with
    /// [`Snapshot::chunks_where`](crate::Snapshot::chunks_where).
    pub filter: Option<&'s Filter>,
    /// Only these chunks.
    pub within: Option<&'s ChunkSet>,
}

impl VectorSearch<'_> {
    /// So many of all chunks.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { count, ..Self::default() }
    }
}

impl Bounded<'_> {
    /// See [`Snapshot::search_terms`](crate::Snapshot::search_terms).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn search_terms(&self, text: &str, filter: Option<&Filter>, count: usize) -> Result<Vec<Found>, QueryError> {
        self.guard.scope(|| {
            let allowed = filter.map(|filter| node::allowed(self, filter)).transpose()?;
            let mut scores = legs::terms(self, text)?.scores;
            legs::restrict(&mut scores, allowed.as_ref());
            self.found(rank::top(self, &scores, None, count)?)
        })
    }

    /// See [`Snapshot::search_vectors`](crate::Snapshot::search_vectors).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn search_vectors(
        &self,
        space: &str,
        vector: &[f32],
        search: &VectorSearch<'_>,
    ) -> Result<Vec<Found>, QueryError> {
        self.guard.scope(|| {
            let (space, chosen) = (self.space(space)?, self.chosen(search)?);
            let vector = question(space, vector)?;
            let found = self.nearest(space, (&vector, chosen.as_deref(), search.count), search.recall)?;
            self.told(found, search.count)
        })
    }

    /// See [`Snapshot::search_vectors_all`](crate::Snapshot::search_vectors_all).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn search_vectors_all<V: AsRef<[f32]>>(
        &self,
        space: &str,
        vectors: &[V],
        search: &VectorSearch<'_>,
    ) -> Result<Vec<Vec<Found>>, QueryError> {
        self.guard.scope(|| {
            let (space, chosen) = (self.space(space)?, self.chosen(search)?);
            self.guard.hold::<f32>(vectors.len().saturating_mul(space.dimensions))?;
            let questions: Result<Vec<Vec<f32>>, QueryError> =
                vectors.iter().map(|vector| question(space, vector.as_ref())).collect();
            let (questions, among) = (questions?, (chosen.as_deref(), search.count));
            let mut all = Vec::with_capacity(questions.len());
            for some in questions.chunks(TOGETHER) {
                all.extend(self.guard.scope(|| {
                    let found = self.nearest_of_all(space, some, among, search.recall)?;
                    let told = found.into_par_iter().map(|found| self.told(found, search.count));
                    told.collect::<Result<Vec<_>, QueryError>>()
                })?);
            }
            Ok(all)
        })
    }

    /// The chunks that a search is among; none for all.
    fn chosen<'s>(&self, search: &VectorSearch<'s>) -> Result<Option<Cow<'s, RoaringBitmap>>, QueryError> {
        let filtered = search.filter.map(|filter| node::allowed(self, filter)).transpose()?;
        Ok(match (filtered, search.within) {
            (Some(filtered), Some(within)) => Some(Cow::Owned(filtered & &within.chunks)),
            (Some(filtered), None) => Some(Cow::Owned(filtered)),
            (None, within) => within.map(|within| Cow::Borrowed(&within.chunks)),
        })
    }

    /// The best of what was found, by their keys.
    fn told(&self, found: Vec<(ChunkId, f32)>, count: usize) -> Result<Vec<Found>, QueryError> {
        let best = rank::best_named(self, found, count)?;
        let told = |one: rank::Named<'_>| Found { key: chunk_key(one.document, one.ordinal), score: one.score };
        Ok(best.into_iter().map(told).collect())
    }

    /// The vector of a chunk in a space, of length one; none where it has none.
    ///
    /// # Errors
    /// [`QueryError::Damaged`].
    pub fn vector(&self, space: &str, chunk: ChunkId) -> Result<Option<Vec<f32>>, QueryError> {
        let row = self.vectors_of(space)?.of(chunk)?;
        Ok(row.map(|row| row.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()))
    }

    /// See [`Snapshot::chunks_where`](crate::Snapshot::chunks_where).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn chunks_where(&self, filter: &Filter) -> Result<ChunkSet, QueryError> {
        self.guard.scope(|| Ok(ChunkSet { chunks: node::allowed(self, filter)? }))
    }

    /// The vector space with this name.
    pub(crate) fn space(&self, name: &str) -> Result<&Space, QueryError> {
        let spaces = self.spaces()?;
        spaces.iter().find(|space| space.name == name).ok_or_else(|| {
            let known: Vec<&str> = spaces.iter().map(|space| space.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            QueryError::UnknownSpace { space: name.to_owned(), known }
        })
    }

    fn found(&self, ranked: Vec<(ChunkId, f32)>) -> Result<Vec<Found>, QueryError> {
        let mut pace = self.guard.pace();
        let line = |(chunk, score)| {
            pace.step()?;
            Ok(Found { key: self.chunk(chunk)?.key()?, score })
        };
        ranked.into_iter().map(line).collect()
    }
}

/// A question's vector of a space, of length one.
fn question(space: &Space, vector: &[f32]) -> Result<Vec<f32>, QueryError> {
    check_length(space, vector)?;
    let mut vector = vector.to_vec();
    unit(space, &mut vector)?;
    Ok(vector)
}

/// Gives a question's vector length 1.
pub(super) fn unit(space: &Space, vector: &mut [f32]) -> Result<(), QueryError> {
    distance::normalise(vector).map_err(|fault| QueryError::Vector {
        space: space.name.clone(),
        expected: "a vector with a direction".into(),
        found: fault.to_string(),
    })
}
