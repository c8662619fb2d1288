//! `hedgerow demo`: the built-in samples in a store on disk, and two questions, flat beside graph.

mod samples;
mod story;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use hedgerow::{Chunking, Comparison, EdgeRules, Embed, Models, Question, Stats, Store};
use serde::Serialize;

use crate::command::demo::samples::{STORIES, Story};
use crate::command::intake::{Intake, Rejections};
use crate::command::pipeline;
use crate::command::render::layout::{counted, width, wrap};
use crate::embed::StaticTable;
use crate::extract::Patterns;
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// See two questions answered that no single document answers, from a store on disk
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing is left behind unless --keep names a folder for the store.

Example:
  hedgerow demo --keep demo.hedgerow
  hedgerow show demo.hedgerow \"Gate Scheduler\"")]
pub struct Args {
    /// Keep the store in this folder
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let start = Instant::now();
    let progress = session.progress("reading the samples");
    let folder = match &args.keep {
        Some(folder) => StoreFolder { path: folder.clone(), is_temporary: false },
        None => StoreFolder::temporary()?,
    };
    let store = Store::open_or_create(&folder.path)?;
    let table = StaticTable::default();
    let intake = Intake {
        store: &store,
        pipeline: pipeline(Some(&table), Some(Chunking::default())),
        documents_max: 1000,
        bytes_total: 0,
        progress: &progress,
        session,
    };
    let mut rejections = Rejections::default();
    intake.run(samples::read, &mut rejections, |_| Ok(()))?;
    store.refresh(&progress)?;
    store.build_edges(table.space(), &EdgeRules::default(), &progress)?;
    let snapshot = store.snapshot();
    let built = Built { stats: snapshot.stats()?, seconds: start.elapsed().as_secs_f64() };
    let models = Models { embedder: Some(&table), extractor: Some(&Patterns) };
    let mut told = Vec::new();
    for story in &STORIES {
        let question = Question { seeds: SEEDS, neighbours: NEIGHBOURS, ..Question::new(story.question) };
        told.push((story, snapshot.compare(&question, models)?));
    }
    drop((store, progress));
    let answers: Vec<Told<'_>> = told.iter().map(|(story, comparison)| Told::of(story, comparison)).collect();
    session.print(&answers, |out| human(out, &built, &told, args.keep.as_deref()))?;
    Ok(Outcome::unless_rejected(rejections.count))
}

const SEEDS: usize = 2;
const NEIGHBOURS: usize = 2;

/// What `--json` prints, one a question.
#[derive(Debug, Serialize)]
struct Told<'a> {
    question: &'a str,
    answer: &'a str,
    flat: Vec<&'a str>,
    graph: Vec<&'a str>,
}

impl<'a> Told<'a> {
    fn of(story: &'a Story, comparison: &'a Comparison) -> Told<'a> {
        let Comparison { flat, graph } = comparison;
        let [flat, graph] =
            [flat, graph].map(|context| context.passages.iter().map(|passage| passage.document.as_str()).collect());
        Told { question: story.question, answer: story.answer_key, flat, graph }
    }
}

/// What the store holds, and how long that took.
struct Built {
    stats: Stats,
    seconds: f64,
}

/// Where the store is; a temporary one goes when this is dropped.
struct StoreFolder {
    path: PathBuf,
    is_temporary: bool,
}

impl StoreFolder {
    fn temporary() -> Result<StoreFolder, Failure> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let path = std::env::temp_dir().join(format!("hedgerow-demo-{}-{time}", std::process::id()));
        // Refuses a folder that is there: whoever made it may have put something in it.
        fs::create_dir(&path).map_err(Failure::io("create", &path))?;
        Ok(StoreFolder { path, is_temporary: true })
    }
}

impl Drop for StoreFolder {
    fn drop(&mut self) {
        if self.is_temporary {
            fs::remove_dir_all(&self.path).ok();
        }
    }
}

fn human(out: &mut dyn Write, built: &Built, told: &[(&Story, Comparison)], kept: Option<&Path>) -> io::Result<()> {
    writeln!(out, "{}", wrap(INTRODUCTION, width()).join("\n"))?;
    let Built { stats, seconds } = built;
    let edges: u64 = stats.edges.iter().map(|edges| edges.kept).sum();
    let counts = [
        counted(stats.documents, "document", "documents"),
        counted(stats.entities, "entity", "entities"),
        counted(stats.mentions, "mention", "mentions"),
        counted(stats.definitions, "definition link", "definition links"),
        counted(edges, "similarity edge", "similarity edges"),
    ];
    writeln!(out, "\n  {}; {seconds:.2} s", counts.join(", "))?;
    for (number, (story, comparison)) in (1..).zip(told) {
        story::tell(out, number, story, comparison)?;
    }
    match kept {
        Some(folder) => {
            let folder = folder.display();
            writeln!(out, "\nThe store is kept. Go on with:\n  hedgerow show {folder} \"Gate Scheduler\"")?;
            writeln!(out, "  hedgerow ask {folder} \"Who is paged when two aircraft are booked on one stand?\"")
        }
        None => writeln!(out, "\nThe store was temporary. Keep one: hedgerow demo --keep demo.hedgerow"),
    }
}

const INTRODUCTION: &str = "\
Hedgerow keeps documents and the graph of what they speak of in one folder. Search by words and vectors (flat) finds \
documents that resemble a question. The graph goes on from there: what a found document mentions leads to the document \
that defines it. Each question below needs both; flat and graph may each return four passages.";
