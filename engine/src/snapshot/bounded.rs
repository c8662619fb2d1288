//! A snapshot whose queries are held to limits.

use crate::index::guard::{Guard, QueryLimits};
use crate::snapshot::Snapshot;
use std::ops::Deref;

/// A snapshot for queries that share one deadline and one budget of memory: each gives the same answer as the
/// snapshot's own, or an error that names the limit. One query at a time; what one has counted is free for the next.
/// Everything else of the snapshot can be reached through it, without limits.
#[derive(Debug)]
pub struct Bounded<'a> {
    snapshot: &'a Snapshot,
    pub(crate) guard: Guard<'a>,
}

impl Snapshot {
    /// Holds the queries that are put through the result to limits.
    #[must_use]
    pub fn bounded<'a>(&'a self, limits: QueryLimits<'a>) -> Bounded<'a> {
        Bounded { snapshot: self, guard: Guard::new(limits) }
    }
}

impl Deref for Bounded<'_> {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        self.snapshot
    }
}
