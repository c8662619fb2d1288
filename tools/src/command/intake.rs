//! From records to committed documents: reading, staging and committing overlap, each at most one batch ahead of the next.

mod feed;
pub mod files;
pub mod reader;

use std::collections::{HashSet, VecDeque};
use std::io::{self, Write};
use std::panic::resume_unwind;
use std::thread::{ScopedJoinHandle, scope};

use crossbeam::channel::{Receiver, Sender, bounded, unbounded};
use hedgerow::{Batch, Control, Pipeline, Store};
use serde::Serialize;

use crate::command::intake::feed::Incoming;
pub use crate::command::intake::feed::{Feed, Origin};
use crate::command::render::layout::{counted, grouped};
use crate::failure::Failure;
use crate::session::{Progress, RejectedRecord, Session};

/// Where documents go, and how.
#[derive(Debug)]
pub struct Intake<'a> {
    /// The store.
    pub store: &'a Store,
    /// How documents are read.
    pub pipeline: Pipeline<'a>,
    /// Documents of a batch at most; their bytes are bounded as well.
    pub documents_max: usize,
    /// Bytes of all input, for the progress.
    pub bytes_total: u64,
    /// Who shows the progress and cancels.
    pub progress: &'a Progress,
    /// Who hears of rejected records.
    pub session: &'a Session,
}

/// A batch that is committed.
#[derive(Debug)]
pub struct Acknowledged<'a> {
    /// The generation that holds it.
    pub generation: u64,
    /// Documents that it added or replaced.
    pub documents: u64,
    /// Documents that this run has added or replaced until now.
    pub total: u64,
    /// Key of the last one.
    pub last: &'a str,
}

/// What became of all documents.
#[derive(Debug, Default, Serialize)]
pub struct Tally {
    /// Documents that were not there before.
    pub added: u64,
    /// Documents that took the place of an older one.
    pub replaced: u64,
    /// Documents that were there just so.
    pub unchanged: u64,
    /// Chunks that were written.
    pub chunks: u64,
    /// Documents whose key stood again further on in the same batch; the last one counts.
    pub duplicates: u64,
}

impl Tally {
    /// Documents that this run has added or replaced.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.added + self.replaced
    }

    /// Says it in a line or two.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let documents = counted(self.written(), "document", "documents");
        let chunks = counted(self.chunks, "chunk", "chunks");
        let (added, replaced) = (grouped(self.added), grouped(self.replaced));
        writeln!(
            out,
            "{documents} in {chunks}: {added} new, {replaced} replaced; {} unchanged",
            grouped(self.unchanged)
        )?;
        if self.duplicates > 0 {
            writeln!(out, "{} given again in the same batch, listed above", counted(self.duplicates, "key", "keys"))?;
        }
        Ok(())
    }
}

impl Intake<'_> {
    /// Commits all documents that `read` puts into the feed, batch by batch, and calls `acknowledge` after each one.
    ///
    /// # Errors
    /// [`Failure`]; the batches that were acknowledged before stay.
    pub fn run(
        &self,
        read: impl FnOnce(&mut Feed) -> Result<(), Failure> + Send,
        rejections: &mut Rejections,
        acknowledge: impl FnMut(&Acknowledged<'_>) -> Result<(), Failure>,
    ) -> Result<Tally, Failure> {
        let (to_stager, from_reader) = bounded(1);
        let (to_committer, from_stager) = bounded(1);
        let (to_say, committed) = unbounded();
        let ahead = Ahead { committed, keys: VecDeque::new() };
        scope(|threads| {
            let reader = threads.spawn(move || {
                let mut feed = Feed::new(to_stager, self.documents_max, self.progress);
                read(&mut feed)?;
                feed.flush()
            });
            let stager = threads.spawn(move || self.stage_all(&from_reader, &to_committer, ahead));
            let committed = self.commit_all(from_stager, &to_say, rejections, acknowledge);
            // Who stops early makes the ones before it stop; its own error is the cause.
            let tally = committed?;
            joined(stager)?;
            joined(reader)?;
            Ok(tally)
        })
    }

    fn stage_all(&self, from: &Receiver<Incoming>, to: &Sender<Sealable>, mut ahead: Ahead) -> Result<(), Failure> {
        for incoming in from {
            let Incoming { documents, origins, mut rejected, duplicates, bytes_read } = incoming;
            let keys: Vec<String> = documents.iter().map(|document| document.key.clone()).collect();
            ahead.wait_for(&keys)?;
            let mut batch = Batch::default();
            let staged = self.pipeline.stage(&self.store.snapshot(), documents, &mut batch, self.progress)?;
            let unread: HashSet<&str> = staged.rejected.iter().map(|rejected| rejected.key.as_str()).collect();
            let last = keys.iter().rev().find(|key| !unread.contains(key.as_str())).cloned().unwrap_or_default();
            rejected.extend(staged.rejected.into_iter().map(|record| match origins.get(&record.key) {
                Some(origin) => origin.rejected(record.reason),
                None => RejectedRecord { file: record.key, line: None, reason: record.reason },
            }));
            rejected.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
            let sealable = Sealable { batch, last, rejected, duplicates, unchanged: staged.unchanged, bytes_read };
            if to.send(sealable).is_err() {
                return Err(Failure::Interrupted);
            }
            ahead.keys.push_back(keys.into_iter().collect());
        }
        Ok(())
    }

    /// Takes the receiver, so that the stager learns that no one listens any more.
    fn commit_all(
        &self,
        from: Receiver<Sealable>,
        to_say: &Sender<()>,
        rejections: &mut Rejections,
        mut acknowledge: impl FnMut(&Acknowledged<'_>) -> Result<(), Failure>,
    ) -> Result<Tally, Failure> {
        let mut tally = Tally::default();
        for Sealable { batch, last, rejected, duplicates, unchanged, bytes_read } in from {
            for record in rejected {
                rejections.add(self.session, self.progress, record);
            }
            tally.duplicates += duplicates.len() as u64;
            self.progress.pause(|| duplicates.iter().for_each(|duplicate| self.session.note(duplicate)));
            if self.progress.cancelled() {
                return Err(Failure::Interrupted);
            }
            let committed = self.store.commit(batch)?;
            // The stager may have come to its end.
            to_say.send(()).ok();
            tally.unchanged += unchanged + committed.unchanged;
            tally.added += committed.added;
            tally.replaced += committed.replaced;
            tally.chunks += committed.chunks;
            let documents = committed.added + committed.replaced;
            if documents > 0 {
                let total = tally.written();
                acknowledge(&Acknowledged { generation: committed.generation, documents, total, last: &last })?;
            }
            self.progress.advance(bytes_read, self.bytes_total);
        }
        Ok(tally)
    }
}

/// Records that were not taken: each is listed on standard error, the first thousand are kept for the summary.
#[derive(Debug, Default, Serialize)]
pub struct Rejections {
    /// The first ones.
    #[serde(rename = "rejected")]
    pub kept: Vec<RejectedRecord>,
    /// All of them.
    #[serde(rename = "rejected_count")]
    pub count: u64,
}

impl Rejections {
    /// Says how many there were, if any.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        writeln!(out, "{} rejected, listed above", counted(self.count, "record", "records"))
    }

    /// Lists one.
    pub fn add(&mut self, session: &Session, progress: &Progress, record: RejectedRecord) {
        progress.pause(|| session.note(&record));
        self.count += 1;
        if self.kept.len() < KEPT_MAX {
            self.kept.push(record);
        }
    }
}

const KEPT_MAX: usize = 1000;

/// Keys of the batches that are staged and may not be committed yet: the store does not show them.
struct Ahead {
    committed: Receiver<()>,
    keys: VecDeque<HashSet<String>>,
}

impl Ahead {
    /// Waits until every batch that holds one of these keys is committed, so that what is unchanged is told by what
    /// came last.
    fn wait_for(&mut self, keys: &[String]) -> Result<(), Failure> {
        while self.committed.try_recv().is_ok() {
            self.keys.pop_front();
        }
        while let Some(last) = self.keys.iter().rposition(|batch| keys.iter().any(|key| batch.contains(key))) {
            for _ in 0..=last {
                self.committed.recv().map_err(|_| Failure::Interrupted)?;
                self.keys.pop_front();
            }
        }
        Ok(())
    }
}

/// A staged batch on its way to the committer.
struct Sealable {
    batch: Batch,
    last: String,
    rejected: Vec<RejectedRecord>,
    duplicates: Vec<String>,
    unchanged: u64,
    bytes_read: u64,
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}
