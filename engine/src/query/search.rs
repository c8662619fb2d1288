//! The two legs of retrieval by themselves: BM25 and exact nearest neighbours, each with filters.

use crate::distance;
use crate::error::QueryError;
use crate::query::filter::Filter;
use crate::query::legs::{self, Vectors};
use crate::query::{node, rank};
use crate::snapshot::{Bounded, Space};
use hedgerow_format::ChunkId;
use serde::Serialize;

/// A chunk that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// Key of the chunk.
    pub key: String,
    /// Its score: BM25 or cosine.
    pub score: f32,
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
        filter: Option<&Filter>,
        count: usize,
    ) -> Result<Vec<Found>, QueryError> {
        self.guard.scope(|| {
            let space = self.space(space)?;
            let mut vector = vector.to_vec();
            unit(space, &mut vector)?;
            let mut cosines = Vectors::of(self, space)?.cosines(self, space, &vector)?;
            if let Some(filter) = filter {
                let allowed = node::allowed(self, filter)?;
                cosines.retain(|(chunk, _)| allowed.contains(chunk.0));
            }
            self.found(rank::best(self, cosines, count)?)
        })
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

/// Gives a question's vector length 1.
pub(super) fn unit(space: &Space, vector: &mut [f32]) -> Result<(), QueryError> {
    distance::normalise(vector).map_err(|fault| QueryError::Vector {
        space: space.name.clone(),
        expected: "a vector with a direction".into(),
        found: fault.to_string(),
    })
}
