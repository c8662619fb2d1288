//! The commands: one file each, with its arguments and what it does.

mod analysis;
mod answer;
mod ask;
mod backup;
mod bench;
mod bounds;
mod chunking;
mod communities;
mod compact;
mod compare;
mod demo;
mod durability;
mod edges;
mod eval;
mod expand;
mod explain;
mod extract;
mod import;
mod ingest;
mod intake;
mod ls;
mod models;
mod nearest;
mod read_documents;
mod recipe;
mod render;
mod repair;
mod restore;
mod rm;
mod salvage;
mod show;
mod stats;
mod strategies;
mod verify;

pub use crate::command::intake::files::text_document;

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hedgerow::{Bounded, Chunking, Embed, Node, Pipeline, QueryError};

use crate::extract::Patterns;
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Runs the command that the process was started with.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to standard output, errors to standard error; neither can be told about a closed pipe.
            error.print().ok();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let session = Session::new(cli.json).distrusting(cli.untrusted);
    let done = if cli.untrusted && cli.command.writes() {
        Err(Failure::Usage("--untrusted is for commands that read: `hedgerow restore --untrusted` first".to_owned()))
    } else {
        cli.command.run(&session)
    };
    match done {
        Ok(outcome) => ExitCode::from(outcome.exit_code()),
        Err(failure) => {
            session.note(format_args!("hedgerow: {}", failure.message(cli.command.store())));
            ExitCode::from(failure.exit_code())
        }
    }
}

/// An embedded knowledge store: documents, their graph, and answers with the path that led to them
#[derive(Debug, Parser)]
#[command(
    name = "hedgerow",
    version,
    propagate_version = true,
    after_help = "\
Exit codes: 0 done; 1 done with rejected records; 2 wrong usage; 3 not found; 4 store damaged or of another format; \
5 input or output failed; 6 another writer holds the store; 7 a query was stopped by --timeout or --memory, or edges need more than --memory; 130 interrupted.

Start here:
  hedgerow demo"
)]
struct Cli {
    /// Print the result as JSON, for programs
    #[arg(long, global = true)]
    json: bool,
    /// Believe nothing of the store or pack before all of it is checked; for commands that read
    #[arg(long, global = true)]
    untrusted: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Ingest(ingest::Args),
    Import(import::Args),
    Extract(extract::Args),
    Edges(edges::Args),
    Communities(communities::Args),
    Ask(ask::Args),
    Answer(answer::Args),
    Compare(compare::Args),
    Expand(expand::Args),
    Components(analysis::components::Args),
    Pagerank(analysis::pagerank::Args),
    Path(analysis::path::Args),
    Neighbours(analysis::neighbours::Args),
    Nearest(nearest::Args),
    Hubs(analysis::hubs::Args),
    Select(analysis::select::Args),
    Graph(analysis::graph::Args),
    Explain(explain::Args),
    Show(show::Args),
    Ls(ls::Args),
    Eval(eval::Args),
    Rm(rm::Args),
    Compact(compact::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    Stats(stats::Args),
    Verify(verify::Args),
    Bench(bench::Args),
    Durability(durability::Args),
    Repair(repair::Args),
    Salvage(salvage::Args),
    #[command(name = intake::reader::COMMAND, hide = true)]
    ReadDocuments(read_documents::Args),
}

impl Command {
    fn run(&self, session: &Session) -> Result<Outcome, Failure> {
        match self {
            Command::Demo(args) => demo::run(args, session),
            Command::Ingest(args) => ingest::run(args, session),
            Command::Import(args) => import::run(args, session),
            Command::Extract(args) => extract::run(args, session),
            Command::Edges(args) => edges::run(args, session),
            Command::Communities(args) => communities::run(args, session),
            Command::Ask(args) => ask::run(args, session),
            Command::Answer(args) => answer::run(args, session),
            Command::Compare(args) => compare::run(args, session),
            Command::Expand(args) => expand::run(args, session),
            Command::Components(args) => analysis::components::run(args, session),
            Command::Pagerank(args) => analysis::pagerank::run(args, session),
            Command::Path(args) => analysis::path::run(args, session),
            Command::Neighbours(args) => analysis::neighbours::run(args, session),
            Command::Nearest(args) => nearest::run(args, session),
            Command::Hubs(args) => analysis::hubs::run(args, session),
            Command::Select(args) => analysis::select::run(args, session),
            Command::Graph(args) => analysis::graph::run(args, session),
            Command::Explain(args) => explain::run(args, session),
            Command::Show(args) => show::run(args, session),
            Command::Ls(args) => ls::run(args, session),
            Command::Eval(args) => eval::run(args, session),
            Command::Rm(args) => rm::run(args, session),
            Command::Compact(args) => compact::run(args, session),
            Command::Backup(args) => backup::run(args, session),
            Command::Restore(args) => restore::run(args, session),
            Command::Stats(args) => stats::run(args, session),
            Command::Verify(args) => verify::run(args, session),
            Command::Bench(args) => bench::run(args, session),
            Command::Durability(args) => durability::run(args, session),
            Command::Repair(args) => repair::run(args, session),
            Command::Salvage(args) => salvage::run(args, session),
            Command::ReadDocuments(_) => read_documents::run(),
        }
    }

    /// Whether it opens its store for writing.
    fn writes(&self) -> bool {
        match self {
            Command::Demo(_)
            | Command::Ingest(_)
            | Command::Import(_)
            | Command::Extract(_)
            | Command::Edges(_)
            | Command::Rm(_)
            | Command::Compact(_)
            | Command::Repair(_) => true,
            Command::Communities(args) => args.build,
            Command::Ask(_)
            | Command::Answer(_)
            | Command::Compare(_)
            | Command::Expand(_)
            | Command::Components(_)
            | Command::Pagerank(_)
            | Command::Path(_)
            | Command::Neighbours(_)
            | Command::Nearest(_)
            | Command::Hubs(_)
            | Command::Select(_)
            | Command::Graph(_)
            | Command::Explain(_)
            | Command::Show(_)
            | Command::Ls(_)
            | Command::Eval(_)
            | Command::Backup(_)
            | Command::Restore(_)
            | Command::Stats(_)
            | Command::Verify(_)
            | Command::Bench(_)
            | Command::Durability(_)
            | Command::Salvage(_)
            | Command::ReadDocuments(_) => false,
        }
    }

    /// The store as it was named; none where the command makes a temporary one.
    fn store(&self) -> Option<&Path> {
        match self {
            Command::Demo(args) => args.keep.as_deref(),
            Command::Ingest(args) => Some(&args.store),
            Command::Import(args) => Some(&args.store),
            Command::Edges(args) => Some(&args.store),
            Command::Communities(args) => Some(&args.store),
            Command::Ask(args) => Some(&args.asking.store),
            Command::Answer(args) => Some(&args.asking.store),
            Command::Extract(args) => Some(&args.store),
            Command::Compare(args) => Some(&args.asking.store),
            Command::Expand(args) => Some(&args.store),
            Command::Components(args) => Some(&args.store),
            Command::Pagerank(args) => Some(&args.store),
            Command::Path(args) => Some(&args.store),
            Command::Neighbours(args) => Some(&args.store),
            Command::Nearest(args) => Some(&args.store),
            Command::Hubs(args) => Some(&args.store),
            Command::Select(args) => Some(&args.store),
            Command::Graph(args) => Some(&args.store),
            Command::Explain(args) => Some(&args.store),
            Command::Show(args) => Some(&args.store),
            Command::Ls(args) => Some(&args.store),
            Command::Eval(args) => Some(&args.store),
            Command::Rm(args) => Some(&args.store),
            Command::Compact(args) => Some(&args.store),
            Command::Backup(args) => Some(&args.store),
            Command::Restore(args) => Some(&args.file),
            Command::Stats(args) => Some(&args.store),
            Command::Verify(args) => Some(&args.store),
            Command::Bench(_) | Command::Durability(_) | Command::ReadDocuments(_) => None,
            Command::Repair(args) => Some(&args.store),
            Command::Salvage(args) => Some(&args.store),
        }
    }
}

/// The node that a key stands for.
fn find(snapshot: &Bounded<'_>, key: &str) -> Result<Node, Failure> {
    snapshot.find(key).map_err(|error| match error {
        QueryError::NotFound { .. } => Failure::NotFound(format!("{error}; a chunk is KEY#N, counted from 0")),
        other => other.into(),
    })
}

/// How the commands read documents.
fn pipeline(embedder: Option<&dyn Embed>, chunking: Option<Chunking>) -> Pipeline<'_> {
    Pipeline { chunking, embedder, extractor: Some(&Patterns) }
}
