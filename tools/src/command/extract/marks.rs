//! Which chunks were read, by which model and prompt: each has a vector of one component in a space of that name.
//!
//! A vector is what the engine binds to a chunk: it comes with the commit that holds the relations, goes with the document,
//! and stays through compaction and backup. A space of one dimension ranks nothing.

use std::collections::HashSet;

use hedgerow::{Batch, QueryError, Snapshot, StagedVector, Target};

use crate::failure::Failure;

/// The marks of one model with one prompt.
#[derive(Debug)]
pub(super) struct Marks {
    space: String,
    model: String,
}

impl Marks {
    /// The marks that go by this identity.
    pub fn of(identity: &str) -> Marks {
        Marks { space: format!("extracted {identity}"), model: identity.to_owned() }
    }

    /// Keys of the live chunks that are marked.
    pub fn read(&self, snapshot: &Snapshot) -> Result<HashSet<String>, Failure> {
        match snapshot.search_vectors(&self.space, &[1.0], None, snapshot.chunks_end()) {
            Ok(found) => Ok(found.into_iter().map(|found| found.key).collect()),
            Err(QueryError::UnknownSpace { .. }) => Ok(HashSet::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Marks a chunk.
    pub fn set(&self, batch: &mut Batch, chunk: Target) {
        let (space, model) = (self.space.clone(), self.model.clone());
        batch.set_vector(chunk, StagedVector { space, model, components: vec![1.0] });
    }
}
