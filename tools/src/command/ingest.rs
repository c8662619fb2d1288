//! `hedgerow ingest`: files and folders become documents, cut into chunks.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use hedgerow::Store;
use serde::Serialize;

use crate::command::chunking::ChunkArgs;
use crate::command::intake::files::Files;
use crate::command::intake::{Feed, Intake, Rejections, Tally};
use crate::command::models::{self, EmbedderChoice};
use crate::command::pipeline;
use crate::command::render::layout::{counted, grouped};
use crate::failure::{Failure, Outcome};
use crate::read::folder::{self, Listing};
use crate::session::{RejectedRecord, Session};

/// Put files and folders into a store, which is made if it is not there
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Folders are read with all folders in them; hidden files and folders, whose names begin with a dot, are passed over \
unless they are PATH themselves. Read are .txt .md .rst .org .html .pdf .docx .odt .pptx .epub .eml .rtf .csv .tsv; a \
file is a document, and its key is its path from the folder that holds PATH on, so `hedgerow ingest s docs/guide` gives \
guide/start.md. A .jsonl file holds a document a line: {\"key\" or \"id\", \"title\", \"text\", \"metadata\", \
\"chunks\"?: [{\"text\", \"metadata\"}]}; other fields become metadata.

Chunks keep their headings and pages. Tables become segments of ten rows that repeat the header. Front matter is no \
text; it is kept as metadata. Of a page of HTML the main content counts. Scanned PDF files have no text and are \
rejected, as is what breaks its format; a file that makes its reader fail, hang or run out of memory harms nothing else.

Text is cut at sections, paragraphs, sentences or words into chunks of at most 1,000 characters that overlap by 100, \
unless --chunker, --chunk-size or --chunk-overlap say otherwise. What is in the store just so is not read again. Documents whose files are gone stay until `hedgerow rm` removes them.

Example:
  hedgerow ingest notes.hedgerow ~/notes handbook.pdf")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// Files and folders to read
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// What gives chunks their vectors: static (the table that comes with the program), none, minilm:FOLDER (a model in a
    /// folder) or URL#MODEL (a model behind a URL)
    #[arg(long, value_name = "EMBEDDER", default_value = "static", value_parser = EmbedderChoice::parse)]
    embedder: EmbedderChoice,
    #[command(flatten)]
    chunks: ChunkArgs,
    /// What encrypted PDF files open with; without it the empty password is tried
    #[arg(long, value_name = "PASSWORD")]
    password: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let start = Instant::now();
    let chunking = args.chunks.chunking(&args.embedder)?;
    let listing = listed(args)?;
    let embedder = args.embedder.load()?;
    let store = Store::open_or_create(&args.store)?;
    let progress = session.progress("reading");
    let mut rejections = Rejections::default();
    for entry in listing.rejected {
        let file = entry.path.to_string_lossy().into_owned();
        rejections.add(session, &progress, RejectedRecord { file, line: None, reason: entry.reason });
    }
    let intake = Intake {
        store: &store,
        pipeline: pipeline(embedder.as_deref(), Some(chunking)),
        documents_max: DOCUMENTS_MAX,
        bytes_total: listing.files.iter().filter_map(|file| fs::metadata(&file.path).ok()).map(|file| file.len()).sum(),
        progress: &progress,
        session,
    };
    let mut files = Files { password: args.password.clone(), ..Files::default() };
    let read = |feed: &mut Feed<'_>| listing.files.iter().try_for_each(|file| files.read(file, feed));
    let tally = intake.run(read, &mut rejections, |_| Ok(()))?;
    progress.say("linking");
    models::refresh(&store, embedder.as_deref(), &progress)?;
    let generation = store.close()?;
    drop(progress);
    let summary = Summary {
        generation,
        tally,
        skipped: listing.skipped as u64,
        rejections,
        seconds: start.elapsed().as_secs_f64(),
    };
    session.print(&summary, |out| human(out, &summary))?;
    Ok(Outcome::unless_rejected(summary.rejections.count))
}

/// Documents that become visible together.
const DOCUMENTS_MAX: usize = 1000;

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Summary {
    generation: u64,
    #[serde(flatten)]
    tally: Tally,
    skipped: u64,
    #[serde(flatten)]
    rejections: Rejections,
    seconds: f64,
}

/// All paths are looked at before the store is touched.
fn listed(args: &Args) -> Result<Listing, Failure> {
    let mut all = Listing::default();
    for path in &args.paths {
        let listing = folder::files(path).map_err(Failure::io("read", path))?;
        all.files.extend(listing.files);
        all.rejected.extend(listing.rejected);
        all.skipped += listing.skipped;
    }
    Ok(all)
}

fn human(out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
    summary.tally.human(out)?;
    if summary.skipped > 0 {
        writeln!(out, "{} passed over: hidden, or of another kind", counted(summary.skipped, "entry", "entries"))?;
    }
    summary.rejections.human(out)?;
    writeln!(out, "generation {} after {:.1} s", grouped(summary.generation), summary.seconds)
}
