//! `hedgerow communities`: finds groups of entities with a report of each, and lists them.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use hedgerow::{Bounded, CommunitiesBuilt, CommunityRules, Extractive, Listing, Store, Summarize};
use serde::Serialize;

use crate::command::bounds::Bounds;
use crate::command::ls;
use crate::command::models::{EmbedderChoice, LlmOptions};
use crate::command::render::layout::{counted, decimal, grouped};
use crate::failure::{Failure, Outcome};
use crate::llm::Reporter;
use crate::session::Session;

/// List the communities of entities, or find them and make a report of each
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A community is a group of entities that relations, and chunks that mention several of them, hold together more than the rest. Large \
ones are divided into smaller ones, level by level; level 0 is the coarsest. A report says what a community is about: without --llm \
it is drawn from names, relations and sentences of the store. Reports are kept as long as nothing changes that they are made \
of; `ingest`, `import` and `rm` keep communities in step.

Examples:
  hedgerow communities notes.hedgerow --build
  hedgerow communities notes.hedgerow --level 0
  hedgerow communities notes.hedgerow --build --llm http://localhost:11434 --model qwen3:8b
  hedgerow show notes.hedgerow community:3fa1c2")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// Find communities anew and make the reports that are missing or out of date
    #[arg(long)]
    pub build: bool,
    /// List this level only
    #[arg(long, value_name = "N", conflicts_with = "build")]
    level: Option<u32>,
    /// Communities that are listed
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Communities with more members are divided
    #[arg(long, value_name = "N", default_value_t = 32, requires = "build", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    members_max: u32,
    /// Of modularity: more gives smaller communities
    #[arg(long, value_name = "R", default_value_t = 1.0, requires = "build", value_parser = resolution)]
    resolution: f64,
    /// Levels at most
    #[arg(long, value_name = "N", default_value_t = 8, requires = "build", value_parser = clap::value_parser!(u32).range(1..=32))]
    levels_max: u32,
    /// Let relations alone join entities, not the chunks that mention both
    #[arg(long, requires = "build")]
    relations_only: bool,
    /// What gives reports their vectors: static, none, minilm:FOLDER or URL#MODEL
    #[arg(long, value_name = "WHAT", default_value = "static", value_parser = EmbedderChoice::parse)]
    embedder: EmbedderChoice,
    /// The model that writes the reports.
    #[command(flatten)]
    llm: LlmOptions,
    /// Time and memory.
    #[command(flatten)]
    bounds: Bounds,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    if args.build {
        return build(args, session);
    }
    let snapshot = session.open(&args.store)?;
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let list = |store: &Bounded<'_>| Ok(store.list_communities(args.level, limit)?);
    let listing = args.bounds.run(&snapshot, session, list)?;
    session.print(&listing, |out| {
        let Listing::Communities(lines) = &listing else { return Ok(()) };
        if lines.is_empty() {
            return writeln!(out, "There are no communities: `hedgerow communities STORE --build` finds them.");
        }
        ls::communities(lines).print(out, 0)
    })?;
    Ok(Outcome::Done)
}

/// Calls to a model at the same time.
const CONCURRENCY: u16 = 4;

fn build(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let start = Instant::now();
    let rules = CommunityRules {
        members_max: args.members_max,
        resolution: thousandths(args.resolution),
        levels_max: args.levels_max,
        co_mentions: !args.relations_only,
    };
    let reporter = args.llm.endpoint(CONCURRENCY)?.map(Reporter::new);
    let summarize: &dyn Summarize = reporter.as_ref().map_or(&Extractive, |reporter| reporter);
    let embedder = args.embedder.load()?;
    let store = Store::open(&args.store)?;
    let progress = session.progress("finding communities");
    let built = store.build_communities(&rules, summarize, embedder.as_deref(), &progress)?;
    drop(progress);
    for reason in built.failed.iter().take(FAILED_SHOWN) {
        session.note(reason);
    }
    let report = Report::of(&built, store.snapshot().generation(), start.elapsed().as_secs_f64());
    session.print(&report, |out| human(out, &report))?;
    Ok(Outcome::unless_rejected(report.failed))
}

const FAILED_SHOWN: usize = 5;

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    generation: u64,
    entities: u64,
    levels: Vec<LevelReport>,
    reports_kept: u64,
    reports_made: u64,
    failed: u64,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct LevelReport {
    communities: u64,
    modularity: f64,
}

impl Report {
    fn of(built: &CommunitiesBuilt, generation: u64, seconds: f64) -> Self {
        let levels = built.levels.iter();
        Report {
            generation,
            entities: built.entities,
            levels: levels
                .map(|(communities, modularity)| LevelReport { communities: *communities, modularity: *modularity })
                .collect(),
            reports_kept: built.kept,
            reports_made: built.made,
            failed: built.failed.len() as u64,
            seconds,
        }
    }
}

fn human(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    writeln!(out, "{} in communities", counted(report.entities, "entity", "entities"))?;
    for (number, level) in report.levels.iter().enumerate() {
        let communities = counted(level.communities, "community", "communities");
        #[expect(clippy::cast_possible_truncation, reason = "a few digits are shown")]
        let modularity = decimal(level.modularity as f32, 3);
        writeln!(out, "level {number}: {communities}, modularity {modularity}")?;
    }
    let (kept, made) = (grouped(report.reports_kept), grouped(report.reports_made));
    writeln!(out, "reports: {made} made, {kept} kept; generation {}", grouped(report.generation))
}

fn resolution(text: &str) -> Result<f64, String> {
    let given = text.parse().ok();
    let known = given.filter(|given: &f64| (0.001..=1000.0).contains(given));
    known.ok_or_else(|| "expected a number from 0.001 to 1000".to_owned())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn thousandths(resolution: f64) -> u32 {
    (resolution * 1000.0).round() as u32
}
