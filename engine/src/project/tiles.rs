//! Edges that are computed in shares, on several machines that hold the same store, and joined.

use crate::error::{CommitError, EdgeError, RulesError, TilesFault};
use crate::index::control::{Cancelled, Control};
use crate::index::edges::{EdgeRules, EdgeShare, Forgotten, Identity, Part, Unfinished};
use crate::project::edges::Task;
use crate::project::{EdgesBuilt, check_signals, has_space, mentioned};
use crate::writer::Store;
use std::sync::Mutex;

impl Store {
    /// Compares one of several shares of the pairs that [`Store::build_edges`] would compare, and tells what it saw: about 8 ·
    /// (`top_m` + 16) bytes a vector. The shares of all numbers, computed from stores that hold the same documents and vectors,
    /// are joined by [`Store::join_edges`].
    ///
    /// Where there are signals, pairs are compared in several passes, of which each follows from those before. `before` holds the
    /// shares of all passes that were done, and a share is one of the next pass; without any, of the first. Who joins the shares
    /// does whatever is left, so that none but the first has to be shared.
    ///
    /// # Errors
    /// [`EdgeError`]; [`EdgeError::Share`] where there is no share of this number, [`EdgeError::Part`] and
    /// [`EdgeError::NotJoined`] as of [`Store::join_edges`], [`EdgeError::NothingLeft`] where no pass is left to be shared.
    pub fn edge_share(
        &self,
        space: &str,
        rules: &EdgeRules,
        share: EdgeShare,
        before: &[Vec<u8>],
        control: &dyn Control,
    ) -> Result<Vec<u8>, EdgeError> {
        if share.number == 0 || share.number > share.of {
            return Err(EdgeError::Share { number: share.number, of: share.of });
        }
        if rules.signals.is_empty() && !before.is_empty() {
            return Err(EdgeError::NothingLeft);
        }
        let joined = if before.is_empty() { None } else { Some(Joined::of(before)?) };
        let snapshot = self.snapshot();
        check_signals(&snapshot, space, rules)?;
        has_shares(space, rules)?;
        has_space(&snapshot, space)?;
        let links = if rules.reads_mentions() { self.links_behind(&snapshot, control)? } else { None };
        let mentioned = mentioned(&snapshot, links.as_deref(), std::iter::once(rules))?;
        let (mentioned, scratch) = (mentioned.as_ref(), self.scratch(&snapshot));
        let unfinished: &dyn Unfinished = joined.as_ref().map_or(&Forgotten, |joined| joined);
        let memory = scratch.memory().less(unfinished.bytes());
        let task = Task { snapshot: &snapshot, space, rules, follow: false, unfinished, mentioned, memory, control };
        let parts = match (task.tiles(share), joined.and_then(Joined::fault)) {
            (_, Some(reason)) => return Err(EdgeError::NotJoined { reason }),
            (parts, None) => parts?,
        };
        if parts.is_empty() {
            return Err(EdgeError::NothingLeft);
        }
        let mut bytes = Vec::new();
        for part in &parts {
            part.write(&mut bytes);
        }
        Ok(bytes)
    }

    /// Builds the edges that [`Store::build_edges`] would build, from the shares of all numbers; where there are signals, of one
    /// pass after the other, and compares what is left.
    ///
    /// # Errors
    /// [`EdgeError`]; [`EdgeError::Part`] where a share can't be read, [`EdgeError::NotJoined`] where shares are not of these
    /// vectors and rules, one is missing, or one is there twice.
    pub fn join_edges(
        &self,
        space: &str,
        rules: &EdgeRules,
        shares: &[Vec<u8>],
        control: &dyn Control,
    ) -> Result<Vec<EdgesBuilt>, EdgeError> {
        check_signals(&self.snapshot(), space, rules)?;
        has_shares(space, rules)?;
        let joined = Joined::of(shares)?;
        let built = self.build_kinds(space, rules, &joined, control);
        match joined.fault() {
            Some(reason) => Err(EdgeError::NotJoined { reason }),
            None => built,
        }
    }
}

/// Whether edges of these rules can be computed in shares.
fn has_shares(space: &str, rules: &EdgeRules) -> Result<(), CommitError> {
    if rules.indexed {
        return Err(CommitError::Rules { space: space.to_owned(), source: RulesError::Whole });
    }
    Ok(())
}

/// The parts of all shares, each joined with those of its build.
struct Joined {
    parts: Vec<Part>,
    /// Bytes of the shares, which the caller holds.
    shares: u64,
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
        let held = shares.iter().map(|share| share.len() as u64).sum();
        Ok(Self { parts, shares: held, fault: Mutex::new(None) })
    }

    /// Why what is there did not do.
    fn fault(self) -> Option<&'static str> {
        self.fault.into_inner().ok().flatten()
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

    fn later(&self, identity: &Identity) -> Result<Option<Part>, Cancelled> {
        if self.parts.iter().any(|part| part.identity == *identity) { self.last(identity) } else { Ok(None) }
    }

    fn bytes(&self) -> u64 {
        // Parts are gone on with as copies.
        self.shares + self.parts.iter().map(Part::bytes).sum::<u64>() * 2
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
