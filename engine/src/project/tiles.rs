//! Edges that are computed in shares, on several machines that hold the same store, and joined.

use crate::error::{CommitError, EdgeError, RulesError, TilesFault};
use crate::index::control::{Cancelled, Control};
use crate::index::edges::{EdgeRules, Forgotten, Identity, Part, Unfinished};
use crate::project::edges::Task;
use crate::project::{EdgeShare, EdgesBuilt, has_space};
use crate::writer::Store;
use std::sync::Mutex;

impl Store {
    /// Compares one of several shares of the pairs that [`Store::build_edges`] would compare, and tells what it saw: about 8 ·
    /// (`top_m` + 16) bytes a vector. The shares of all numbers, computed from stores that hold the same documents and vectors,
    /// are joined by [`Store::join_edges`].
    ///
    /// # Errors
    /// [`EdgeError`]; [`EdgeError::Share`] where there is no share of this number; [`RulesError::Signals`] where the rules have
    /// signals.
    pub fn edge_share(
        &self,
        space: &str,
        rules: &EdgeRules,
        share: EdgeShare,
        control: &dyn Control,
    ) -> Result<Vec<u8>, EdgeError> {
        if share.number == 0 || share.number > share.of {
            return Err(EdgeError::Share { number: share.number, of: share.of });
        }
        has_shares(space, rules)?;
        let snapshot = self.snapshot();
        has_space(&snapshot, space)?;
        let scratch = self.scratch(&snapshot);
        let (unfinished, memory) = (&Forgotten, scratch.memory());
        let task =
            Task { snapshot: &snapshot, space, rules, follow: false, unfinished, mentioned: None, memory, control };
        Ok(task.tiles(share)?)
    }

    /// Builds the edges that [`Store::build_edges`] would build, from the shares of all numbers.
    ///
    /// # Errors
    /// [`EdgeError`]; [`EdgeError::Part`] where a share can't be read, [`EdgeError::NotJoined`] where shares are not of these
    /// vectors and rules, one is missing, or one is there twice; [`RulesError::Signals`] where the rules have signals.
    pub fn join_edges(
        &self,
        space: &str,
        rules: &EdgeRules,
        shares: &[Vec<u8>],
        control: &dyn Control,
    ) -> Result<Vec<EdgesBuilt>, EdgeError> {
        has_shares(space, rules)?;
        let joined = Joined::of(shares)?;
        let built = self.build_kinds(space, rules, &joined, control);
        match joined.fault.into_inner() {
            Ok(Some(reason)) => Err(EdgeError::NotJoined { reason }),
            _ => built,
        }
    }
}

/// Whether edges of these rules can be computed in shares.
fn has_shares(space: &str, rules: &EdgeRules) -> Result<(), CommitError> {
    if rules.indexed {
        return Err(CommitError::Rules { space: space.to_owned(), source: RulesError::Whole });
    }
    if rules.signals.is_empty() {
        return Ok(());
    }
    Err(CommitError::Rules { space: space.to_owned(), source: RulesError::Signals })
}

/// The parts of all shares, each joined with those of its build.
struct Joined {
    parts: Vec<Part>,
    /// Why what is there does not do.
    fault: Mutex<Option<&'static str>>,
}

impl Joined {
    fn of(shares: &[Vec<u8>]) -> Result<Self, EdgeError> {
        let mut parts: Vec<Part> = Vec::new();
        for (share, bytes) in shares.iter().enumerate() {
            let read = Part::read_all(bytes).map_err(|source| EdgeError::Part { share, source })?;
            for part in read {
                let Some(known) = parts.iter_mut().find(|known| known.identity == part.identity) else {
                    parts.push(part);
                    continue;
                };
                if !known.join(&part) {
                    return Err(EdgeError::NotJoined { reason: "a share is there twice, or was cut differently" });
                }
            }
        }
        Ok(Self { parts, fault: Mutex::new(None) })
    }

    fn lacking(&self, reason: &'static str) -> Result<Option<Part>, Cancelled> {
        if let Ok(mut fault) = self.fault.lock() {
            *fault = Some(reason);
        }
        Err(Cancelled)
    }
}

impl Unfinished for Joined {
    fn last(&self, identity: &Identity) -> Result<Option<Part>, Cancelled> {
        match self.parts.iter().find(|part| part.identity == *identity) {
            Some(part) if part.is_whole() => Ok(Some(part.clone())),
            Some(_) => self.lacking("a share is missing"),
            None => self.lacking("the shares were computed from other vectors, other documents or with other settings"),
        }
    }

    fn keep(&self, _: &Part) {}

    fn keeps(&self) -> bool {
        false
    }
}

/// A build that is kept as bytes by whoever builds, so that the next one goes on with it.
pub struct UnfinishedEdges<'k> {
    parts: Mutex<Vec<Part>>,
    keep: &'k (dyn Fn(&[u8]) + Sync),
}

impl<'k> UnfinishedEdges<'k> {
    /// Goes on with the bytes that were given to `keep` last, if these can be read; gives `keep` others from time to time, and
    /// when it is cancelled.
    ///
    /// # Errors
    /// [`TilesFault`] where there are bytes that are none of a build.
    pub fn new(last: &[u8], keep: &'k (dyn Fn(&[u8]) + Sync)) -> Result<Self, TilesFault> {
        let parts = if last.is_empty() { Vec::new() } else { Part::read_all(last)? };
        Ok(Self { parts: Mutex::new(parts), keep })
    }
}

impl Unfinished for UnfinishedEdges<'_> {
    fn last(&self, identity: &Identity) -> Result<Option<Part>, Cancelled> {
        let mut parts = self.parts.lock().map_err(|_| Cancelled)?;
        let place = parts.iter().position(|part| part.identity == *identity);
        // It is kept again as soon as more of it is done.
        Ok(place.map(|place| parts.remove(place)))
    }

    fn keep(&self, part: &Part) {
        let Ok(parts) = self.parts.lock() else { return };
        let mut bytes = Vec::new();
        for part in parts.iter().filter(|known| known.identity != part.identity).chain([part]) {
            part.write(&mut bytes);
        }
        (self.keep)(&bytes);
    }

    fn note(&self, part: &Part) {
        let Ok(mut parts) = self.parts.lock() else { return };
        parts.retain(|known| known.identity != part.identity);
        parts.push(part.clone());
    }
}
