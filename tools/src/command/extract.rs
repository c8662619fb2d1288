//! `hedgerow extract`: a model reads the chunks that it has not read yet, and what they state becomes relations.

mod marks;
mod round;
mod similar;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use hedgerow::{ChunkId, Control, Snapshot, Store};
use serde::Serialize;

use crate::command::extract::marks::Marks;
use crate::command::extract::round::{Failed, Round};
use crate::command::extract::similar::Similar;
use crate::command::models::LlmOptions;
use crate::command::render::layout::{counted, grouped};
use crate::failure::{Failure, Outcome};
use crate::llm::extraction::Extractor;
use crate::llm::{Fault, Ontology, Usage};
use crate::session::{Progress, Session};

/// Let a model read chunks, and put the relations that they state into the store
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Chunks that this model has read with this prompt and ontology are passed over, also those that gave nothing; the rest is \
asked about, batch by batch in the order of import. The relations have the chunk as evidence. A line is printed as \
soon as a batch is durable: whatever ends the run, no more than one batch is asked again. A document that is removed takes \
its relations and marks with it; one that is replaced is read anew. The store is held for writing meanwhile.

A relation is left out unless both ends stand in the chunk, its title or its heading.

The file of --ontology has a line `type NAME` or `predicate NAME` each for what is allowed.

Examples:
  hedgerow extract notes.hedgerow --llm http://localhost:11434 --model qwen3:8b --limit 100
  HEDGEROW_LLM_KEY=… hedgerow extract notes.hedgerow --llm http://gateway/v1 --model m --ontology music.txt")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// The model.
    #[command(flatten)]
    llm: LlmOptions,
    /// Types and predicates that are allowed, one a line [default: any]
    #[arg(long, value_name = "FILE")]
    ontology: Option<PathBuf>,
    /// Chunks to read at most [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Calls at the same time; the result does not depend on it
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    concurrency: u16,
    /// Chunks that become visible together
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    batch: u16,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`]; [`Failure::Model`] when the model answered nothing at all. The batches that were acknowledged stay.
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let start = Instant::now();
    let Some(endpoint) = args.llm.endpoint(args.concurrency)? else {
        return Err(Failure::Usage("name a model: --llm URL --model NAME".to_owned()));
    };
    let ontology = args.ontology.as_deref().map(ontology).transpose()?.unwrap_or_default();
    let extractor = Extractor::new(endpoint, ontology);
    let store = Store::open(&args.store)?;
    let progress = session.progress("reading");
    let marks = Marks::of(extractor.identity());
    let snapshot = store.snapshot();
    let read = marks.read(&snapshot)?;
    let mut pending = Vec::new();
    for id in snapshot.chunk_ids() {
        if !read.contains(&snapshot.chunk(id)?.key()?) {
            pending.push(id);
        }
    }
    let limit = args.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let asked = pending.get(..limit.min(pending.len())).unwrap_or_default();
    let summary = Summary { model: extractor.identity().to_owned(), known: read.len() as u64, ..Summary::default() };
    let similar = Similar::of(Arc::clone(&snapshot), &read)?;
    let mut run =
        Run { args, session, store: &store, progress, extractor: &extractor, marks, similar, summary, silent: None };
    run.all(&snapshot, asked)?;
    run.summary.remaining = pending.len() as u64 - run.summary.chunks;
    if run.summary.triples > 0 {
        run.progress.say("linking");
        store.refresh(&run.progress)?;
    }
    let mut summary = run.summary;
    drop(run.progress);
    summary.generation = store.close()?;
    summary.usage = extractor.endpoint().usage();
    summary.seconds = start.elapsed().as_secs_f64();
    session.print(&summary, |out| summary.human(out))?;
    Ok(Outcome::unless_rejected(summary.failed_count))
}

const ONTOLOGY_BYTES_MAX: u64 = 1 << 20;

fn ontology(path: &Path) -> Result<Ontology, Failure> {
    let mut text = String::new();
    let file = File::open(path).map_err(Failure::io("open", path))?;
    file.take(ONTOLOGY_BYTES_MAX).read_to_string(&mut text).map_err(Failure::io("read", path))?;
    Ontology::parse(&text).map_err(|reason| Failure::Usage(format!("{}: {reason}", path.display())))
}

/// One run over the chunks of a store.
struct Run<'a> {
    args: &'a Args,
    session: &'a Session,
    store: &'a Store,
    progress: Progress,
    extractor: &'a Extractor,
    marks: Marks,
    similar: Similar,
    summary: Summary,
    /// How often in a row the server gave nothing, and what it did last.
    silent: Option<(u32, Fault)>,
}

impl Run<'_> {
    /// Reads chunks batch by batch, until the server seems to be gone.
    fn all(&mut self, snapshot: &Snapshot, asked: &[ChunkId]) -> Result<(), Failure> {
        let mut done = 0;
        for ids in asked.chunks(self.args.batch.into()) {
            let round = Round::of(snapshot, ids, &self.similar)?;
            let concurrency = self.args.concurrency.into();
            let answers = round.ask(self.extractor, concurrency, |count| {
                self.progress.advance(done + count, asked.len() as u64);
            });
            done += ids.len() as u64;
            self.take(&round, answers)?;
            if self.progress.cancelled() {
                return Err(Failure::Interrupted);
            }
            if let Some((count, fault)) = &self.silent
                && (*count >= SILENT_MAX || is_final(fault))
            {
                if self.summary.chunks == 0 {
                    return Err(Failure::Model(fault.clone()));
                }
                self.summary.stopped = Some(format!("the last {count} calls failed, the last of them: {fault}"));
                return Ok(());
            }
        }
        Ok(())
    }

    /// Commits what a round gave, and says so.
    fn take(&mut self, round: &Round, answers: Vec<round::Answer>) -> Result<(), Failure> {
        let filled = round.fill(answers, &self.marks, &mut self.similar, self.silent.take());
        self.silent = filled.silent;
        for failed in filled.failed {
            self.progress.pause(|| self.session.note(&failed));
            self.summary.failed_count += 1;
            if self.summary.failed.len() < FAILED_MAX {
                self.summary.failed.push(failed);
            }
        }
        if filled.chunks == 0 {
            return Ok(());
        }
        let committed = self.store.commit(filled.batch)?;
        self.summary.chunks += filled.chunks;
        self.summary.empty += filled.empty;
        self.summary.dropped += filled.dropped;
        self.summary.triples += committed.relations;
        let Summary { chunks: total, .. } = self.summary;
        let acknowledged = Committed {
            generation: committed.generation,
            chunks: filled.chunks,
            triples: committed.relations,
            total,
            last: filled.last,
        };
        self.progress.pause(|| self.session.print(&acknowledged, |out| acknowledged.human(out)))
    }
}

const FAILED_MAX: usize = 1000;
/// Calls in a row, each with all its attempts, after which a server is taken for gone.
const SILENT_MAX: u32 = 8;

/// Whether every other call would end so, too: no key, no right, no such model.
fn is_final(fault: &Fault) -> bool {
    matches!(fault, Fault::Status { code: 401 | 403 | 404, .. })
}

/// A batch that is durable.
#[derive(Debug, Serialize)]
struct Committed {
    generation: u64,
    chunks: u64,
    triples: u64,
    total: u64,
    last: String,
}

impl Committed {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let (chunks, triples) = (counted(self.chunks, "chunk", "chunks"), counted(self.triples, "triple", "triples"));
        let Committed { generation, total, last, .. } = self;
        writeln!(out, "committed generation {generation}: {chunks} ({total} in all), {triples}, last {last}")
    }
}

/// What `--json` prints in the last line.
#[derive(Debug, Default, Serialize)]
struct Summary {
    generation: u64,
    model: String,
    chunks: u64,
    empty: u64,
    triples: u64,
    dropped: u64,
    known: u64,
    remaining: u64,
    failed: Vec<Failed>,
    failed_count: u64,
    stopped: Option<String>,
    #[serde(flatten)]
    usage: Usage,
    seconds: f64,
}

impl Summary {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let (chunks, triples) = (counted(self.chunks, "chunk", "chunks"), counted(self.triples, "triple", "triples"));
        writeln!(out, "{chunks} read by {}: {triples}; {} gave none", self.model, grouped(self.empty))?;
        if self.dropped > 0 {
            writeln!(out, "{} left out: not borne out by the chunk", counted(self.dropped, "triple", "triples"))?;
        }
        if self.failed_count > 0 {
            let failed = counted(self.failed_count, "chunk", "chunks");
            writeln!(out, "{failed} failed, listed above; the same command asks about them again")?;
        }
        if let Some(reason) = &self.stopped {
            writeln!(out, "stopped: {reason}")?;
        }
        writeln!(out, "{} read before, {} remain", grouped(self.known), grouped(self.remaining))?;
        let Usage { requests, retries, prompt_tokens, completion_tokens } = self.usage;
        let requests = counted(requests, "request", "requests");
        writeln!(
            out,
            "{requests}, {} of them again; {} + {} tokens; generation {} after {:.1} s",
            grouped(retries),
            grouped(prompt_tokens),
            grouped(completion_tokens),
            grouped(self.generation),
            self.seconds
        )
    }
}
