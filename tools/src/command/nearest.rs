//! `hedgerow nearest`: the chunks whose vectors are nearest to a chunk's or to that of a text.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use hedgerow::{Bounded, Filter, Found, Node, QueryError, Recall, VectorSearch};
use serde::Serialize;

use crate::command::bounds::Bounds;
use crate::command::models::EmbedderChoice;
use crate::command::render::layout::{Side, Table, decimal};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// List the chunks whose vectors are nearest to that of a chunk, or of a text
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Where the space has an index, it is walked until so much of what is nearest is found as --recall says; cosines are exact.

Examples:
  hedgerow nearest notes.hedgerow 'band.md#0'
  hedgerow nearest notes.hedgerow --text 'rock operas of the seventies' --count 5 --recall exact
  hedgerow nearest notes.hedgerow 'band.md#0' --filter 'metadata.year < 1980'")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// Key of a chunk, such as band.md#0; it is not among those that are told
    #[arg(required_unless_present = "text", conflicts_with = "text")]
    key: Option<String>,
    /// A text instead, which --embedder gives a vector
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Vector space [default: that of the embedder for a text, else the first that the chunk has a vector in]
    #[arg(long, value_name = "NAME")]
    space: Option<String>,
    /// Chunks that are told
    #[arg(long, value_name = "N", default_value_t = 10)]
    count: u16,
    /// How much of what is nearest is to be found, as the index measured it on itself
    #[arg(long, value_enum, default_value_t = Share::P99)]
    recall: Share,
    /// Look at the neighbours of so many best chunks instead
    #[arg(long, value_name = "N", conflicts_with = "recall")]
    beam: Option<u16>,
    /// Which chunks may be told, as of `ask`
    #[arg(long, value_name = "EXPR", value_parser = Filter::parse)]
    filter: Option<Filter>,
    /// What gives a text its vector: static, minilm:FOLDER or URL#MODEL, as it gave the chunks theirs
    #[arg(long, value_name = "EMBEDDER", default_value = "static", value_parser = EmbedderChoice::parse)]
    embedder: EmbedderChoice,
    /// Time and memory.
    #[command(flatten)]
    bounds: Bounds,
}

/// A share of what is nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Share {
    /// 95 of 100
    #[value(name = "0.95")]
    P95,
    /// 99 of 100
    #[value(name = "0.99")]
    P99,
    /// All
    Exact,
}

/// What is told.
#[derive(Debug, Serialize)]
struct Told {
    space: String,
    nearest: Vec<Found>,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let snapshot = session.open(&args.store)?;
    let told = args.bounds.run(&snapshot, session, |store| {
        let (space, vector) = match (&args.text, &args.key) {
            (Some(text), _) => of_text(args, store, text)?,
            (None, key) => of_chunk(args, store, key.as_deref().unwrap_or_default())?,
        };
        let count = usize::from(args.count);
        let recall = match (args.beam, args.recall) {
            (Some(width), _) => Recall::Beam(width.into()),
            (None, Share::P95) => Recall::At95,
            (None, Share::P99) => Recall::At99,
            (None, Share::Exact) => Recall::Exact,
        };
        // One more, in place of the chunk itself.
        let wanted = count + usize::from(args.key.is_some());
        let search = VectorSearch { recall, filter: args.filter.as_ref(), ..VectorSearch::new(wanted) };
        let mut nearest = store.search_vectors(&space, &vector, &search)?;
        nearest.retain(|found| args.key.as_ref() != Some(&found.key));
        nearest.truncate(count);
        Ok(Told { space, nearest })
    })?;
    session.print(&told, |out| human(out, &told))?;
    Ok(Outcome::Done)
}

/// The space of the embedder and the vector that it gives a text.
fn of_text(args: &Args, store: &Bounded<'_>, text: &str) -> Result<(String, Vec<f32>), Failure> {
    let nothing = || Failure::Usage("--text: expected an --embedder that gives it a vector, found none".to_owned());
    let embedder = args.embedder.load()?.ok_or_else(nothing)?;
    let name = args.space.as_deref().unwrap_or(embedder.space());
    let spaces = store.spaces().map_err(QueryError::from)?;
    let Some(space) = spaces.iter().find(|space| space.name == name) else {
        let known: Vec<&str> = spaces.iter().map(|space| space.name.as_str()).collect();
        return Err(QueryError::UnknownSpace { space: name.to_owned(), known: known.join(", ") }.into());
    };
    if space.model != embedder.model() {
        let (expected, found) = (&space.model, embedder.model());
        let what = format!("expected the model of the space {name}, {expected}, found {found}");
        return Err(Failure::Usage(format!("--embedder: {what}; name the one that made its vectors")));
    }
    let made = embedder.embed(&[text]).map_err(QueryError::from)?.into_iter().next().flatten();
    Ok((space.name.clone(), made.ok_or_else(nothing)?))
}

/// A space that a chunk has a vector in, and that vector.
fn of_chunk(args: &Args, store: &Bounded<'_>, key: &str) -> Result<(String, Vec<f32>), Failure> {
    let Node::Chunk(chunk) = store.find(&format!("chunk:{key}"))? else {
        return Err(Failure::NotFound(format!("no chunk {key}")));
    };
    for space in store.spaces().map_err(QueryError::from)? {
        if args.space.as_ref().is_none_or(|name| *name == space.name)
            && let Some(vector) = store.vector(&space.name, chunk)?
        {
            return Ok((space.name.clone(), vector));
        }
    }
    let within = args.space.as_ref().map(|name| format!(" in the space {name}")).unwrap_or_default();
    Err(Failure::NotFound(format!("the chunk {key} has no vector{within}")))
}

fn human(out: &mut dyn Write, told: &Told) -> io::Result<()> {
    let mut table = Table::new(&[("cosine", Side::Right), ("chunk", Side::Left)]);
    for found in &told.nearest {
        table.add([decimal(found.score, 4), found.key.clone()]);
    }
    table.print(out, 0)
}
