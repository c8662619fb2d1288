//! `hedgerow extract`: a model reads the chunks that it has not read yet, and what they state becomes entities and relations.

mod round;
mod similar;
mod writing;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use hedgerow::{ChunkId, Control, Snapshot};
use serde::Serialize;

use crate::command::extract::round::{Failed, Filled, Named, Round};
use crate::command::extract::similar::Similar;
use crate::command::models::{self, LlmOptions};
use crate::command::render::layout::{counted, grouped};
use crate::failure::{Failure, Outcome};
use crate::llm::extraction::{ANSWER_TOKENS, Extractor};
use crate::llm::{Fault, Ontology, Usage};
use crate::session::{Progress, Session};

/// Let a model read chunks, and put the entities and relations that they speak of into the store
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Chunks that this model has read with this prompt and ontology are passed over, also those that gave nothing; the rest is \
asked about, batch by batch in the order of import. A line is printed as soon as a batch is durable: whatever ends the run, \
no more than one batch is asked again. What was found belongs to the chunk: it goes with its document, and a document that \
is replaced is read anew.

A chunk has one extraction of each --name. When it is read with another model, prompt or ontology, the new extraction \
takes the place of the one before, with all its entities and relations; another --name keeps both.

An entity or a relation is left out unless its names stand in the chunk, its title or its heading.

The store is held for writing only while a batch is committed. Another writer is waited for; chunks that it removes are \
passed over.

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
    /// Name of the extraction: a new one takes the place of the one that a chunk has by this name
    #[arg(long, value_name = "NAME", default_value = "llm", value_parser = name)]
    name: String,
    /// Chunks to read at most [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Calls at the same time; the result does not depend on it
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    concurrency: u16,
    /// Chunks that become visible together
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    batch: u16,
    /// Tokens that an answer may have
    #[arg(long, value_name = "N", default_value_t = ANSWER_TOKENS, value_parser = clap::value_parser!(u32).range(16..=1_000_000))]
    answer_tokens: u32,
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
    let extractor = Extractor::new(endpoint, ontology).with_answer_tokens(args.answer_tokens);
    let progress = session.progress("reading");
    // What cannot be written is refused before a model is asked.
    let snapshot = writing::open(&args.store, &progress)?.snapshot();
    let named = Named { extractor: &args.name, model: extractor.identity() };
    let (mut pending, mut read) = (Vec::new(), HashSet::new());
    for id in snapshot.chunk_ids() {
        if named.in_chunk(&snapshot, id)? == Some(true) {
            read.insert(snapshot.chunk(id)?.key()?);
        } else {
            pending.push(id);
        }
    }
    let limit = args.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let asked = pending.get(..limit.min(pending.len())).unwrap_or_default();
    let summary = Summary {
        generation: snapshot.generation(),
        extractor: args.name.clone(),
        model: extractor.identity().to_owned(),
        known: read.len() as u64,
        ..Summary::default()
    };
    let (known, similar) = (summary.known, Similar::of(snapshot, &read)?);
    let mut run = Run { args, session, progress, extractor: &extractor, similar, summary, silent: None };
    run.all(asked)?;
    let Run { progress, mut summary, .. } = run;
    summary.remaining = (pending.len() as u64).saturating_sub(summary.chunks + summary.gone + (summary.known - known));
    if summary.chunks > 0 {
        progress.say("linking");
        let store = writing::open(&args.store, &progress)?;
        models::refresh(&store, None, &progress)?;
        summary.generation = store.close()?;
    }
    drop(progress);
    summary.usage = extractor.endpoint().usage();
    summary.seconds = start.elapsed().as_secs_f64();
    session.print(&summary, |out| summary.human(out))?;
    Ok(Outcome::unless_rejected(summary.failed_count))
}

/// The engine takes a name of up to 4,096 bytes; whoever types more has made a mistake.
fn name(given: &str) -> Result<String, String> {
    if given.trim().is_empty() || given.len() > 100 || given.chars().any(char::is_control) {
        return Err("expected a name of at most 100 bytes".to_owned());
    }
    Ok(given.trim().to_owned())
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
    progress: Progress,
    extractor: &'a Extractor,
    similar: Similar,
    summary: Summary,
    /// How often in a row the server gave nothing, and what it did last.
    silent: Option<(u32, Fault)>,
}

impl Run<'_> {
    fn named(&self) -> Named<'_> {
        Named { extractor: &self.args.name, model: self.extractor.identity() }
    }

    /// Reads chunks batch by batch, until the server seems to be gone.
    fn all(&mut self, asked: &[ChunkId]) -> Result<(), Failure> {
        let mut done = 0;
        for ids in asked.chunks(self.args.batch.into()) {
            // Others may have written since the batch before.
            let round = Round::of(&Snapshot::open(&self.args.store)?, ids, self.named(), &self.similar)?;
            let concurrency = self.args.concurrency.into();
            let answers = round.ask(self.extractor, concurrency, |count| {
                self.progress.advance(done + count, asked.len() as u64);
            });
            done += ids.len() as u64;
            self.summary.gone += round.gone;
            self.summary.known += round.known;
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
        let (taken, failed) = round.take(answers, &mut self.silent);
        for failed in failed {
            self.progress.pause(|| self.session.note(&failed));
            self.summary.failed_count += 1;
            if self.summary.failed.len() < FAILED_MAX {
                self.summary.failed.push(failed);
            }
        }
        if taken.is_empty() {
            return Ok(());
        }
        let store = writing::open(&self.args.store, &self.progress)?;
        let (snapshot, mut filled) = (store.snapshot(), Filled::default());
        let named = Named { extractor: &self.args.name, model: self.extractor.identity() };
        for taken in taken {
            taken.fill(&snapshot, named, &mut self.similar, &mut filled)?;
        }
        self.summary.add(&filled);
        if filled.chunks == 0 {
            return Ok(());
        }
        let committed = store.commit(filled.batch)?;
        drop(store);
        let acknowledged = Committed {
            generation: committed.generation,
            chunks: filled.chunks,
            entities: filled.entities,
            triples: filled.triples,
            total: self.summary.chunks,
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
    entities: u64,
    triples: u64,
    total: u64,
    last: String,
}

impl Committed {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let (chunks, found) = (counted(self.chunks, "chunk", "chunks"), found(self.entities, self.triples));
        let Committed { generation, total, last, .. } = self;
        writeln!(out, "committed generation {generation}: {chunks} ({total} in all), {found}, last {last}")
    }
}

fn found(entities: u64, triples: u64) -> String {
    format!("{}, {}", counted(entities, "entity", "entities"), counted(triples, "triple", "triples"))
}

/// What `--json` prints in the last line.
#[derive(Debug, Default, Serialize)]
struct Summary {
    generation: u64,
    extractor: String,
    model: String,
    chunks: u64,
    empty: u64,
    entities: u64,
    triples: u64,
    dropped: u64,
    replaced: u64,
    known: u64,
    gone: u64,
    remaining: u64,
    failed: Vec<Failed>,
    failed_count: u64,
    stopped: Option<String>,
    #[serde(flatten)]
    usage: Usage,
    seconds: f64,
}

impl Summary {
    fn add(&mut self, filled: &Filled) {
        self.chunks += filled.chunks;
        self.empty += filled.empty;
        self.entities += filled.entities;
        self.triples += filled.triples;
        self.dropped += filled.dropped;
        self.replaced += filled.replaced;
        self.gone += filled.gone;
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let (chunks, found) = (counted(self.chunks, "chunk", "chunks"), found(self.entities, self.triples));
        writeln!(out, "{chunks} read by {}: {found}; {} gave none", self.model, grouped(self.empty))?;
        if self.dropped > 0 {
            let dropped = counted(self.dropped, "entity or triple", "entities and triples");
            writeln!(out, "{dropped} left out: not borne out by the chunk")?;
        }
        if self.replaced > 0 {
            writeln!(out, "{} replaced", counted(self.replaced, "older extraction", "older extractions"))?;
        }
        if self.gone > 0 {
            writeln!(out, "{} removed meanwhile", counted(self.gone, "chunk was", "chunks were"))?;
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
