//! `hedgerow import`: documents, triples, edges and vectors that are already made, in batches that are acknowledged one by one.

mod asserted;
mod edges;
mod overlay;
mod triples;
mod vectors;

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ArgGroup;
use hedgerow::{Chunking, Embed, Store};
use serde::Serialize;

use crate::command::chunking::ChunkArgs;
use crate::command::import::edges::EdgesTally;
pub use crate::command::import::edges::numbered_graph;
use crate::command::import::overlay::{Kind, Overlay, OverlayTally};
use crate::command::import::vectors::VectorFiles;
use crate::command::intake::{Feed, Intake, Rejections, Tally, files};
use crate::command::models::{self, EmbedderChoice};
use crate::command::pipeline;
use crate::command::render::layout::{counted, grouped};
use crate::failure::{Failure, Outcome};
use crate::read::lines::Lines;
use crate::session::{Progress, Session};

/// Put records into a store, which is made if it is not there: documents, triples, edges, vectors
#[derive(Debug, clap::Args)]
#[command(
    group = ArgGroup::new("input").required(true).multiple(true).args(["documents", "triples", "edges", "vectors"]),
    after_help = "\
Documents are {\"key\" or \"id\", \"title\", \"text\", \"metadata\", \"chunks\"?: [{\"text\", \"metadata\"}]}, one a line; \
other fields become metadata. Each is one chunk, unless it brings chunks or --chunk is given, or another option that begins so.

Triples are {\"subject\", \"predicate\", \"object\", \"chunk\"? or \"document\"?, \"weight\"?, \"subject_type\"?, \
\"object_type\"?}, where a chunk is KEY#N. Of a document, the first chunk that names both ends is the evidence, else \
its first chunk. Triples with neither belong to a document without text, import:HASH, named by the file's BLAKE3: \
importing the file again changes nothing, and `rm` of that document removes them.

Edges are a directed graph that the file as a whole states, so they take few bytes. Either lines of names between tabs: \
subject and object, with a label between them or one from --predicate, and a weight as the last column if there is one. Or a \
matrix of integers in .npy with two columns, subject and object, whose nodes are called by line N + 1 of --names or else by \
their numbers. Lines that begin with `# ` are passed over. Edges that are there more than once become one with the sum of \
their weights. They belong to a document without text, import:HASH, as triples do.

Vectors are a matrix in .npy: f32 or f16, little-endian, C order. Line N of --ids is the key of the document or chunk \
of row N; a blank line passes over its row, and the matrix may have more rows than there are lines. A document must \
have exactly one chunk.

Documents come first, then triples, edges and vectors. A line is printed as soon as a batch is durable.

Examples:
  hedgerow import wiki.hedgerow --documents passages.jsonl
  hedgerow import web.hedgerow --edges links.npy --predicate \"links to\" --names pages.txt
  hedgerow import wiki.hedgerow --vectors v.npy --ids keys.txt --space minilm --model MiniLM-L6"
)]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// Documents, one JSON object a line
    #[arg(long, value_name = "F.jsonl")]
    documents: Option<PathBuf>,
    /// Relations between entities, one JSON object a line
    #[arg(long, value_name = "F.jsonl")]
    triples: Option<PathBuf>,
    #[command(flatten)]
    edges: edges::EdgeArgs,
    /// Vectors, one a row
    #[arg(long, value_name = "F.npy", requires = "ids")]
    vectors: Option<PathBuf>,
    /// Keys of the documents or chunks that the first rows belong to, one a line
    #[arg(long, value_name = "F.txt", requires = "vectors")]
    ids: Option<PathBuf>,
    /// Vector space of the vectors
    #[arg(long, value_name = "NAME", default_value = "imported", requires = "vectors")]
    space: String,
    /// What made the vectors [default: as the space says already, or else its name]
    #[arg(long, value_name = "NAME", requires = "vectors")]
    model: Option<String>,
    /// What gives the documents' chunks their vectors: static (the table that comes with the program), none, minilm:FOLDER (a model in a
    /// folder) or URL#MODEL (a model behind a URL)
    #[arg(long, value_name = "EMBEDDER", default_value = "static", value_parser = EmbedderChoice::parse)]
    embedder: EmbedderChoice,
    /// Cut documents into chunks, as `ingest` does; --chunker, --chunk-size and --chunk-overlap imply it
    #[arg(long)]
    chunk: bool,
    #[command(flatten)]
    chunks: ChunkArgs,
    /// Records that become visible together
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: u32,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`]; the batches that were acknowledged stay.
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let start = Instant::now();
    let chunking = args.chunks.chunking(&args.embedder)?;
    let chunking = (args.chunk || !args.chunks.is_empty()).then_some(chunking);
    // All input is opened before the store is touched.
    let documents = args.documents.as_deref().map(Input::open).transpose()?;
    let triples = args.triples.as_deref().map(Input::open).transpose()?;
    let edges = args.edges.open()?;
    let vectors = args.vectors.as_deref().zip(args.ids.as_deref());
    let vectors = vectors.map(|(matrix, ids)| VectorFiles::open(matrix, ids)).transpose()?;
    let embedder = if documents.is_some() { args.embedder.load()? } else { None };
    let embedder = embedder.as_deref();
    let store = Store::open_or_create(&args.store)?;
    let run = Run { args, chunking, session, store: &store, progress: session.progress("reading") };
    let space = vectors.as_ref().map(|files| run.space(files, embedder)).transpose()?;
    let mut rejections = Rejections::default();
    let mut summary = Summary::default();
    if let Some(input) = documents {
        summary.documents = Some(run.documents(input, embedder, &mut rejections)?);
    }
    if let Some(input) = triples {
        summary.triples = Some(triples::import(&run.overlay(Kind::Triples), input, &mut rejections)?);
    }
    if let Some(files) = edges {
        summary.edges = Some(edges::import(&run, files, &mut rejections)?);
    }
    if let Some((files, space)) = vectors.zip(space) {
        summary.vectors = Some(vectors::import(&run.overlay(Kind::Vectors), files, &space, &mut rejections)?);
    }
    run.progress.say("linking");
    models::refresh(&store, embedder, &run.progress)?;
    drop(run);
    summary.generation = store.close()?;
    summary.rejections = rejections;
    summary.seconds = start.elapsed().as_secs_f64();
    session.print(&summary, |out| summary.human(out))?;
    Ok(Outcome::unless_rejected(summary.rejections.count))
}

const READ_BYTES: usize = 1 << 18;

/// A file of JSON lines that is open.
#[derive(Debug)]
struct Input<'a> {
    path: &'a Path,
    file: File,
    bytes: u64,
}

impl<'a> Input<'a> {
    fn open(path: &'a Path) -> Result<Self, Failure> {
        let file = File::open(path).map_err(Failure::io("open", path))?;
        let bytes = file.metadata().map_err(Failure::io("open", path))?.len();
        Ok(Input { path, file, bytes })
    }
}

/// A batch that is durable.
#[derive(Debug, Default, Serialize)]
struct Committed<'a> {
    generation: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    documents: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    triples: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edges: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vectors: Option<u64>,
    total: u64,
    last: &'a str,
}

impl Committed<'_> {
    /// Prints the line that tells it.
    fn acknowledge(&self, session: &Session, progress: &Progress) -> Result<(), Failure> {
        let counts = [
            (self.documents, ["document", "documents"]),
            (self.triples, ["triple", "triples"]),
            (self.edges, ["edge", "edges"]),
            (self.vectors, ["vector", "vectors"]),
        ];
        let counted = counts.iter().find_map(|(count, words)| Some(((*count)?, *words)));
        let (count, [one, many]) = counted.unwrap_or_default();
        let what = if count == 1 { one } else { many };
        let Committed { generation, total, last, .. } = self;
        progress.pause(|| {
            session.print(self, |out| {
                writeln!(out, "committed generation {generation}: {count} {what} ({total} in all), last {last}")
            })
        })
    }
}

/// What `--json` prints in the last line.
#[derive(Debug, Default, Serialize)]
struct Summary {
    generation: u64,
    documents: Option<Tally>,
    triples: Option<OverlayTally>,
    edges: Option<EdgesTally>,
    vectors: Option<OverlayTally>,
    #[serde(flatten)]
    rejections: Rejections,
    seconds: f64,
}

impl Summary {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(tally) = &self.documents {
            tally.human(out)?;
        }
        let overlay = |out: &mut dyn Write, tally: &Option<OverlayTally>, one, many| match tally {
            Some(tally) => writeln!(out, "{}; {} unchanged", counted(tally.added, one, many), grouped(tally.unchanged)),
            None => Ok(()),
        };
        overlay(out, &self.triples, "triple", "triples")?;
        self.edges.as_ref().map_or(Ok(()), |tally| tally.human(out))?;
        overlay(out, &self.vectors, "vector", "vectors")?;
        self.rejections.human(out)?;
        writeln!(out, "generation {} after {:.1} s", grouped(self.generation), self.seconds)
    }
}

/// What all parts of an import share.
struct Run<'a> {
    args: &'a Args,
    chunking: Option<Chunking>,
    session: &'a Session,
    store: &'a Store,
    progress: Progress,
}

impl Run<'_> {
    fn batch_max(&self) -> usize {
        usize::try_from(self.args.batch).unwrap_or(usize::MAX)
    }

    fn documents(
        &self,
        input: Input<'_>,
        embedder: Option<&dyn Embed>,
        rejections: &mut Rejections,
    ) -> Result<Tally, Failure> {
        self.progress.say("documents");
        let intake = Intake {
            store: self.store,
            pipeline: pipeline(embedder, self.chunking),
            documents_max: self.batch_max(),
            bytes_total: input.bytes,
            progress: &self.progress,
            session: self.session,
        };
        let Input { path, file, .. } = input;
        let lines = Lines::new(BufReader::with_capacity(READ_BYTES, file));
        let read = move |feed: &mut Feed<'_>| files::read_lines(lines, path, feed);
        intake.run(read, rejections, |batch| {
            let (generation, total, last) = (batch.generation, batch.total, batch.last);
            let committed =
                Committed { generation, documents: Some(batch.documents), total, last, ..Committed::default() };
            committed.acknowledge(self.session, &self.progress)
        })
    }

    fn overlay(&self, kind: Kind) -> Overlay<'_> {
        self.progress.say(if kind == Kind::Triples { "triples" } else { "vectors" });
        Overlay {
            kind,
            store: self.store,
            session: self.session,
            progress: &self.progress,
            batch_max: self.batch_max(),
        }
    }

    /// The space of the vectors, which must fit what the store has or is about to get.
    fn space(&self, files: &VectorFiles<'_>, embedder: Option<&dyn Embed>) -> Result<hedgerow::Space, Failure> {
        let mut spaces = self.store.snapshot().spaces()?.to_vec();
        if self.args.documents.is_some()
            && let Some(embedder) = embedder
        {
            let (name, model) = (embedder.space().to_owned(), embedder.model().to_owned());
            spaces.push(hedgerow::Space { name, model, dimensions: embedder.dimensions(), vectors: 0 });
        }
        files.space(&spaces, &self.args.space, self.args.model.as_deref())
    }
}
