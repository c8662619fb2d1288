//! One batch of chunks: asked about by several threads, taken in the order of the chunks.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{ScopedJoinHandle, scope};

use hedgerow::{Batch, ChunkId, Damage, Snapshot, StagedExtraction, Target};
use serde::Serialize;

use crate::command::extract::similar::{Similar, line};
use crate::failure::Failure;
use crate::llm::Fault;
use crate::llm::extraction::{Extractor, Findings, Passage};

/// What a model said of a chunk.
pub(super) type Answer = Result<Findings, Fault>;

/// A chunk that could not be read.
#[derive(Debug, Serialize)]
pub(super) struct Failed {
    chunk: String,
    kind: &'static str,
    reason: String,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed {}: {}", self.chunk, self.reason)
    }
}

/// Chunks that are asked about together.
#[derive(Debug, Default)]
pub(super) struct Round {
    work: Vec<Work>,
    /// Chunks that are not there any more.
    pub gone: u64,
    /// Chunks that another run has read meanwhile.
    pub known: u64,
}

#[derive(Debug)]
struct Work {
    id: ChunkId,
    fingerprint: [u8; 16],
    key: String,
    target: Target,
    start: u32,
    title: String,
    heading: String,
    text: String,
    similar: Vec<String>,
}

/// A chunk that was read.
#[derive(Debug)]
pub(super) struct Taken<'r> {
    work: &'r Work,
    findings: Findings,
}

/// What a round leaves to be committed.
#[derive(Debug, Default)]
pub(super) struct Filled {
    pub batch: Batch,
    /// Chunks that were read, and those of them that gave neither entities nor relations.
    pub chunks: u64,
    pub empty: u64,
    /// Chunks that another extraction of the same name was replaced in.
    pub replaced: u64,
    /// Chunks that went away while they were asked about.
    pub gone: u64,
    pub triples: u64,
    pub entities: u64,
    pub dropped: u64,
    pub last: String,
}

/// By which name extractions are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'a> {
    pub extractor: &'a str,
    pub model: &'a str,
}

impl Named<'_> {
    /// Whether a chunk has an extraction of this name, and whether it is by this very model and prompt.
    pub fn in_chunk(&self, snapshot: &Snapshot, chunk: ChunkId) -> Result<Option<bool>, Damage> {
        let found = snapshot.extractions(chunk)?.into_iter().find(|found| found.extractor == self.extractor);
        Ok(found.map(|found| found.model == self.model))
    }
}

impl Round {
    /// Reads the chunks. What similar ones gave is looked up here, before any of them is asked about, so that it does not
    /// depend on which answer comes first.
    pub fn of(snapshot: &Snapshot, ids: &[ChunkId], named: Named<'_>, similar: &Similar) -> Result<Round, Failure> {
        let mut round = Round::default();
        for id in ids {
            if !snapshot.is_live(*id) {
                round.gone += 1;
                continue;
            }
            if named.in_chunk(snapshot, *id)? == Some(true) {
                round.known += 1;
                continue;
            }
            let chunk = snapshot.chunk(*id)?;
            let document = chunk.document()?;
            let (key, text) = (chunk.key()?, chunk.text()?);
            let similar = similar.to(&key, &text)?;
            round.work.push(Work {
                id: *id,
                fingerprint: document.fingerprint(),
                key,
                target: Target { document: document.key()?.to_owned(), chunk: Some(chunk.ordinal()) },
                start: chunk.range().start,
                title: document.title()?.to_owned(),
                heading: chunk.heading()?.to_owned(),
                text,
                similar,
            });
        }
        Ok(round)
    }

    /// Asks about all of them, and tells `advance` how many are answered.
    pub fn ask(&self, extractor: &Extractor, concurrency: usize, advance: impl Fn(u64) + Sync) -> Vec<Answer> {
        let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
        let ask_next = || {
            let mut answers = Vec::new();
            loop {
                let position = next.fetch_add(1, Ordering::Relaxed);
                let Some(work) = self.work.get(position) else { return answers };
                let Work { title, heading, text, similar, .. } = work;
                answers.push((position, extractor.read(&Passage { title, heading, text, similar })));
                advance(done.fetch_add(1, Ordering::Relaxed) + 1);
            }
        };
        let mut answers: Vec<(usize, Answer)> = scope(|threads| {
            let count = concurrency.clamp(1, self.work.len().max(1));
            let threads: Vec<_> = (0..count).map(|_| threads.spawn(ask_next)).collect();
            let joined = threads.into_iter().map(ScopedJoinHandle::join);
            joined.flat_map(|answers| answers.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        answers.sort_by_key(|(position, _)| *position);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    /// Tells what was read from what failed. `silent` says how often in a row the server gave nothing, and what it did last.
    pub fn take(&self, answers: Vec<Answer>, silent: &mut Option<(u32, Fault)>) -> (Vec<Taken<'_>>, Vec<Failed>) {
        let (mut taken, mut failed) = (Vec::new(), Vec::new());
        for (work, answer) in self.work.iter().zip(answers) {
            match answer {
                Ok(findings) => {
                    *silent = None;
                    taken.push(Taken { work, findings });
                }
                // The user knows, and the chunk is asked about the next time.
                Err(Fault::Interrupted) => {}
                Err(fault) => {
                    let (kind, reason) = (fault.kind(), fault.to_string());
                    failed.push(Failed { chunk: work.key.clone(), kind, reason });
                    // Who writes nonsense is there.
                    let is_there = matches!(fault, Fault::Content(_) | Fault::TooLarge { .. });
                    let before = silent.take().map_or(0, |(count, _)| count);
                    *silent = (!is_there).then_some((before + 1, fault));
                }
            }
        }
        (taken, failed)
    }
}

impl Taken<'_> {
    /// Puts what was read into a batch, if the chunk is still there as it was asked about.
    pub fn fill(
        self,
        snapshot: &Snapshot,
        named: Named<'_>,
        similar: &mut Similar,
        filled: &mut Filled,
    ) -> Result<(), Failure> {
        let Taken { work, findings } = self;
        if !work.is_in(snapshot)? {
            filled.gone += 1;
            return Ok(());
        }
        filled.chunks += 1;
        filled.replaced += u64::from(named.in_chunk(snapshot, work.id)?.is_some());
        filled.empty += u64::from(findings.relations.is_empty() && findings.entities.is_empty());
        filled.triples += findings.relations.len() as u64;
        filled.entities += findings.entities.len() as u64;
        filled.dropped += findings.dropped;
        filled.last.clone_from(&work.key);
        let (mut entities, mut relations): (Vec<_>, _) =
            (findings.entities.into_values().collect(), findings.relations);
        for entity in &mut entities {
            entity.range = work.placed(entity.range.clone());
        }
        for relation in &mut relations {
            relation.range = work.placed(relation.range.clone());
            similar.add(work.key.clone(), line(&relation.subject.name, &relation.predicate, &relation.object.name));
        }
        let (extractor, model) = (named.extractor.to_owned(), named.model.to_owned());
        let extraction = StagedExtraction { extractor, model, entities, relations };
        filled.batch.set_extraction(work.target.clone(), extraction);
        Ok(())
    }
}

impl Work {
    /// A place in the chunk as one in the document; an empty one is unknown.
    fn placed(&self, range: Range<u32>) -> Range<u32> {
        if range.start == range.end { 0..0 } else { range.start + self.start..range.end + self.start }
    }

    /// Whether a store has the chunk that was asked about, and no other in its place. Ids are given once in a store; another
    /// store may have come to stand at its path.
    fn is_in(&self, snapshot: &Snapshot) -> Result<bool, Failure> {
        if self.id.index() >= snapshot.chunks_end() || !snapshot.is_live(self.id) {
            return Ok(false);
        }
        let chunk = snapshot.chunk(self.id)?;
        Ok(chunk.key()? == self.key && chunk.document()?.fingerprint() == self.fingerprint)
    }
}
