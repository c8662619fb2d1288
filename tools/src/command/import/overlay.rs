//! Batches of records about documents that are in the store already: triples and vectors.

use hedgerow::{Batch, Control, Store};
use serde::Serialize;

use crate::command::import::Committed;
use crate::command::intake::Rejections;
use crate::failure::Failure;
use crate::session::{Progress, RejectedRecord, Session};

/// Where the records go.
#[derive(Debug)]
pub(super) struct Overlay<'a> {
    /// What they are.
    pub kind: Kind,
    pub store: &'a Store,
    pub session: &'a Session,
    pub progress: &'a Progress,
    /// Records of a batch at most.
    pub batch_max: usize,
}

/// What is imported into documents that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Triples,
    Vectors,
}

/// What became of the records.
#[derive(Debug, Default, Serialize)]
pub struct OverlayTally {
    /// Those that are new.
    pub added: u64,
    /// Those that were there just so.
    pub unchanged: u64,
}

/// Bytes of a batch at most, roughly.
const BATCH_BYTES: usize = 16 << 20;

/// A batch that fills up.
#[derive(Debug, Default)]
pub(super) struct Filling {
    /// What is committed when it is full.
    pub batch: Batch,
    records: u64,
    last: String,
    tally: OverlayTally,
}

impl Filling {
    /// So many records were put into the batch; `last` names the last one.
    pub fn added(&mut self, records: u64, last: &str) {
        self.records += records;
        last.clone_into(&mut self.last);
    }

    /// What became of the records that are committed.
    pub fn into_tally(self) -> OverlayTally {
        self.tally
    }
}

impl Overlay<'_> {
    /// Commits the batch if it is full. Every record passes here, and learns that it should stop.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn commit_if_full(&self, filling: &mut Filling) -> Result<(), Failure> {
        if self.progress.cancelled() {
            return Err(Failure::Interrupted);
        }
        let count = usize::try_from(filling.records).unwrap_or(usize::MAX);
        let is_full = count >= self.batch_max || filling.batch.staged_bytes() > BATCH_BYTES;
        if is_full { self.commit(filling) } else { Ok(()) }
    }

    /// Commits what is there, and says so if it changed the store.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn commit(&self, filling: &mut Filling) -> Result<(), Failure> {
        let records = std::mem::take(&mut filling.records);
        let committed = self.store.commit(std::mem::take(&mut filling.batch))?;
        let added = committed.relations + committed.vectors;
        self.acknowledge(filling, committed.generation, added, records)
    }

    /// Counts `records`, of which `added` were new, and says so if any was.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn acknowledge(&self, filling: &mut Filling, generation: u64, added: u64, records: u64) -> Result<(), Failure> {
        filling.tally.added += added;
        filling.tally.unchanged += records.saturating_sub(added);
        if added == 0 {
            return Ok(());
        }
        let mut committed =
            Committed { generation, total: filling.tally.added, last: &filling.last, ..Committed::default() };
        match self.kind {
            Kind::Triples => committed.triples = Some(added),
            Kind::Vectors => committed.vectors = Some(added),
        }
        committed.acknowledge(self.session, self.progress)
    }

    /// Lists a record that was not taken.
    pub fn reject(&self, rejections: &mut Rejections, record: RejectedRecord) {
        rejections.add(self.session, self.progress, record);
    }
}
