//! One batch of chunks: asked about by several threads, taken in the order of the chunks.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{ScopedJoinHandle, scope};

use hedgerow::{Batch, ChunkId, Snapshot, Target};
use serde::Serialize;

use crate::command::extract::marks::Marks;
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
#[derive(Debug)]
pub(super) struct Round(Vec<Work>);

#[derive(Debug)]
struct Work {
    key: String,
    target: Target,
    start: u32,
    title: String,
    heading: String,
    text: String,
    similar: Vec<String>,
}

/// What a round leaves to be committed.
#[derive(Debug, Default)]
pub(super) struct Filled {
    pub batch: Batch,
    /// Chunks that were read, and those of them that gave no relation.
    pub chunks: u64,
    pub empty: u64,
    pub dropped: u64,
    pub last: String,
    pub failed: Vec<Failed>,
    /// The last fault, if the server gave nothing since: how often in a row.
    pub silent: Option<(u32, Fault)>,
}

impl Round {
    /// Reads the chunks. What similar ones gave is looked up here, before any of them is asked about, so that it does not
    /// depend on which answer comes first.
    pub fn of(snapshot: &Snapshot, ids: &[ChunkId], similar: &Similar) -> Result<Round, Failure> {
        let work = ids.iter().map(|id| {
            let chunk = snapshot.chunk(*id)?;
            let document = chunk.document()?;
            let (key, text) = (chunk.key()?, chunk.text()?);
            let similar = similar.to(&key, &text)?;
            let target = Target { document: document.key()?.to_owned(), chunk: Some(chunk.ordinal()) };
            let (title, heading) = (document.title()?.to_owned(), chunk.heading()?.to_owned());
            Ok(Work { key, target, start: chunk.range().start, title, heading, text, similar })
        });
        Ok(Round(work.collect::<Result<_, Failure>>()?))
    }

    /// Asks about all of them, and tells `advance` how many are answered.
    pub fn ask(&self, extractor: &Extractor, concurrency: usize, advance: impl Fn(u64) + Sync) -> Vec<Answer> {
        let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
        let ask_next = || {
            let mut answers = Vec::new();
            loop {
                let position = next.fetch_add(1, Ordering::Relaxed);
                let Some(work) = self.0.get(position) else { return answers };
                let Work { title, heading, text, similar, .. } = work;
                answers.push((position, extractor.read(&Passage { title, heading, text, similar })));
                advance(done.fetch_add(1, Ordering::Relaxed) + 1);
            }
        };
        let mut answers: Vec<(usize, Answer)> = scope(|threads| {
            let count = concurrency.clamp(1, self.0.len().max(1));
            let threads: Vec<_> = (0..count).map(|_| threads.spawn(ask_next)).collect();
            let joined = threads.into_iter().map(ScopedJoinHandle::join);
            joined.flat_map(|answers| answers.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        answers.sort_by_key(|(position, _)| *position);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    /// Puts the answers into a batch, each chunk that was read with its mark.
    /// `silent` is what the rounds before ended with.
    pub fn fill(
        &self,
        answers: Vec<Answer>,
        marks: &Marks,
        similar: &mut Similar,
        silent: Option<(u32, Fault)>,
    ) -> Filled {
        let mut filled = Filled { silent, ..Filled::default() };
        for (work, answer) in self.0.iter().zip(answers) {
            let findings = match answer {
                Ok(findings) => findings,
                // The user knows, and the chunk is asked about the next time.
                Err(Fault::Interrupted) => continue,
                Err(fault) => {
                    let (kind, reason) = (fault.kind(), fault.to_string());
                    filled.failed.push(Failed { chunk: work.key.clone(), kind, reason });
                    // Who writes nonsense is there.
                    let is_there = matches!(fault, Fault::Content(_) | Fault::TooLarge { .. });
                    let before = filled.silent.take().map_or(0, |(count, _)| count);
                    filled.silent = (!is_there).then_some((before + 1, fault));
                    continue;
                }
            };
            filled.silent = None;
            filled.chunks += 1;
            filled.dropped += findings.dropped;
            filled.empty += u64::from(findings.relations.is_empty());
            filled.last.clone_from(&work.key);
            for mut relation in findings.relations {
                similar.add(work.key.clone(), line(&relation.subject.name, &relation.predicate, &relation.object.name));
                if !relation.range.is_empty() {
                    relation.range = relation.range.start + work.start..relation.range.end + work.start;
                }
                filled.batch.relate(work.target.clone(), relation);
            }
            marks.set(&mut filled.batch, work.target.clone());
        }
        filled
    }
}
