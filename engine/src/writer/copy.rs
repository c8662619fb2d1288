//! Copies the live content of a snapshot into a new store, in the order of keys.

use crate::error::{CommitError, Damage};
use crate::index::control::Control;
use crate::snapshot::Snapshot;
use crate::writer::{Batch, Store};
use hedgerow_format::{DocumentId, Key};
use std::collections::BTreeSet;

/// Bytes of text that are copied together, unless one document has more.
const COPIED_TOGETHER: u64 = 16 << 20;

impl Store {
    /// Puts everything that is live in a snapshot into this store, in the order of keys and in batches of about 16 MiB of
    /// text, so that the same content makes the same commits. Projections are behind afterwards.
    ///
    /// # Errors
    /// [`CommitError`]; what was committed until then stays.
    pub fn copy_of(&self, snapshot: &Snapshot, control: &dyn Control) -> Result<(), CommitError> {
        let mut order: Vec<(Key, DocumentId, u64)> = Vec::new();
        for id in snapshot.document_ids() {
            let document = snapshot.document(id)?;
            order.push((Key::of_document(document.key()?), id, u64::from(document.text_bytes())));
        }
        order.sort_unstable();
        let mut copied = 0;
        while copied < order.len() {
            control.advance(copied as u64, order.len() as u64);
            if control.cancelled() {
                return Err(CommitError::Cancelled);
            }
            let mut bytes = 0;
            let more = order[copied..].iter().take_while(|(_, _, text)| {
                bytes += text;
                bytes <= COPIED_TOGETHER
            });
            let end = copied + more.count().max(1);
            let wanted: BTreeSet<DocumentId> = order[copied..end].iter().map(|(_, id, _)| *id).collect();
            self.commit(batch_of(snapshot, &wanted)?)?;
            copied = end;
        }
        Ok(())
    }
}

fn batch_of(snapshot: &Snapshot, wanted: &BTreeSet<DocumentId>) -> Result<Batch, Damage> {
    let restage = snapshot.restage(0..snapshot.segments().len())?;
    let mut batch = Batch::default();
    for position in 0..snapshot.segments().len() {
        for numbered in restage.chosen(position, |id| wanted.contains(&id))? {
            batch.put(numbered.document);
        }
    }
    Ok(batch)
}
