//! `hedgerow show`: one node with its fields, its edges and where it comes from.

use std::io::{self, Write};
use std::path::PathBuf;

use hedgerow::{Bounded, CommunityDescription, Description, DescriptionLine, EntityEdges, EntityLine, MentionLine};
use serde_json::{Map, Value};

use crate::command::bounds::Bounds;
use crate::command::find;
use crate::command::render::layout::{counted, decimal, grouped, plain, width, wrap};
use crate::command::render::{field, rule};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Show a document, chunk, entity or community: its fields, its edges, where it comes from
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hedgerow show notes.hedgerow music/floyd.md
  hedgerow show notes.hedgerow 'chunk:music/floyd.md#0'
  hedgerow show notes.hedgerow \"entity:Pink Floyd\"")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// doc:KEY, chunk:KEY#N, entity:NAME, community:ID, or a bare key
    key: String,
    /// Entries of each list
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Time and memory.
    #[command(flatten)]
    bounds: Bounds,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let snapshot = session.open(&args.store)?;
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let look = |store: &Bounded<'_>| Ok(store.describe(find(store, &args.key)?, limit)?);
    let description = args.bounds.run(&snapshot, session, look)?;
    session.print(&description, |out| human(out, &description, limit))?;
    Ok(Outcome::Done)
}

const PLACES_MAX: usize = 3;

fn human(out: &mut dyn Write, description: &Description, limit: usize) -> io::Result<()> {
    match description {
        Description::Document { key, title, source, media_type, metadata, bytes, fingerprint, chunks } => {
            rule(out, &format!("document {}", plain(key)))?;
            given(out, "title", title)?;
            given(out, "source", source)?;
            given(out, "media type", media_type)?;
            self::metadata(out, metadata)?;
            field(out, "text", &counted((*bytes).into(), "byte", "bytes"))?;
            field(out, "fingerprint", fingerprint)?;
            list(out, "chunks", chunks, limit)
        }
        Description::Chunk {
            key,
            document,
            kind,
            heading,
            metadata,
            start,
            end,
            text,
            mentions,
            defines,
            similar,
            extractions,
        } => {
            rule(out, &format!("chunk {}", plain(key)))?;
            let place = format!("{document}, bytes {}–{}", grouped((*start).into()), grouped((*end).into()));
            field(out, "document", &place)?;
            field(out, "kind", kind)?;
            given(out, "heading", heading)?;
            self::metadata(out, metadata)?;
            list(out, "defines", defines, limit)?;
            let mentions: Vec<String> = mentions.iter().map(mention).collect();
            list(out, "mentions", &mentions, limit)?;
            let mut similar: Vec<_> = similar.iter().collect();
            similar.sort_by(|a, b| b.1.total_cmp(&a.1));
            let similar = similar.into_iter();
            let similar: Vec<String> = similar.map(|(key, weight)| format!("{} {key}", decimal(*weight, 2))).collect();
            list(out, "similar", &similar, limit)?;
            let read = extractions.iter().map(|read| format!("{} ({})", read.extractor, read.model));
            list(out, "read by", &read.collect::<Vec<_>>(), limit)?;
            writeln!(out)?;
            for line in wrap(text, width() - 2) {
                writeln!(out, "{}", format!("│ {line}").trim_end())?;
            }
            Ok(())
        }
        Description::Community(community) => self::community(out, community, limit),
        Description::Entity { entity, descriptions, edges } => self::entity(out, entity, descriptions, edges, limit),
    }
}

fn entity(
    out: &mut dyn Write,
    entity: &EntityLine,
    descriptions: &[DescriptionLine],
    edges: &EntityEdges,
    limit: usize,
) -> io::Result<()> {
    rule(out, &format!("entity {}", plain(&entity.name)))?;
    given(out, "type", &entity.kind)?;
    let mut name = "it is";
    for description in descriptions {
        field(out, name, &format!("{} ({})", plain(&description.text), plain(&description.chunk)))?;
        name = "";
    }
    let mentions = counted(entity.mentions, "chunk mentions it", "chunks mention it");
    let definitions = counted(entity.definitions, "defines it", "define it");
    field(out, "counts", &format!("{mentions}, {definitions}"))?;
    list(out, "defined by", &edges.defined_by, limit)?;
    list(out, "mentioned in", &edges.mentioned_in, limit)?;
    let mut name = "relations";
    for relation in &edges.relations {
        let [subject, predicate, object] =
            [&relation.subject, &relation.predicate, &relation.object].map(|part| plain(part));
        let weight = decimal(relation.weight, 2);
        let evidence = relation.evidence.join(", ");
        let line = format!("{subject} —{predicate}→ {object} (weight {weight}; {evidence})");
        field(out, name, &line)?;
        name = "";
    }
    Ok(())
}

fn community(out: &mut dyn Write, community: &CommunityDescription, limit: usize) -> io::Result<()> {
    let CommunityDescription { line, text, citations, parent, parts, entities } = community;
    rule(out, &format!("community {}", line.id))?;
    field(out, "title", &line.title)?;
    let members = counted(line.members, "member", "members");
    field(out, "level", &format!("{}, {members}, rank {}", line.level, decimal(line.rank, 3)))?;
    given(out, "part of", parent.as_deref().unwrap_or_default())?;
    let parts: Vec<String> = parts.iter().map(|part| format!("{} {}", part.id, part.title)).collect();
    given(out, "divided into", &parts.iter().map(|part| plain(part)).collect::<Vec<_>>().join("\n"))?;
    list(out, "members", entities, limit)?;
    given(out, "report by", &line.model)?;
    given(
        out,
        "stale",
        if line.stale {
            "the store has changed since; `hedgerow communities STORE --build` makes it again"
        } else {
            ""
        },
    )?;
    list(out, "drawn from", citations, limit)?;
    writeln!(out)?;
    for line in text.lines().flat_map(|line| wrap(line, width() - 2)) {
        writeln!(out, "{}", format!("│ {line}").trim_end())?;
    }
    Ok(())
}

/// A name with the first places where it stands.
fn mention(line: &MentionLine) -> String {
    let places = line.ranges.iter().take(PLACES_MAX);
    let mut places: Vec<String> = places.map(|(start, end)| format!("{start}–{end}")).collect();
    if line.ranges.len() > places.len() {
        places.push("…".to_owned());
    }
    if places.is_empty() { line.entity.clone() } else { format!("{} ({})", line.entity, places.join(", ")) }
}

/// A field that may be empty, and is then left out.
fn given(out: &mut dyn Write, name: &str, value: &str) -> io::Result<()> {
    if value.trim().is_empty() {
        return Ok(());
    }
    field(out, name, value)
}

fn metadata(out: &mut dyn Write, metadata: &Map<String, Value>) -> io::Result<()> {
    let lines = metadata.iter();
    let lines: Vec<String> = lines.map(|(name, value)| format!("{} = {value}", plain(name))).collect();
    given(out, "metadata", &lines.join("\n"))
}

fn list(out: &mut dyn Write, name: &str, entries: &[String], limit: usize) -> io::Result<()> {
    let mut text = entries.iter().map(|entry| plain(entry)).collect::<Vec<_>>().join(" · ");
    if entries.len() == limit && limit > 0 {
        text.push_str("\n(--limit shows more, if there are more)");
    }
    given(out, name, &text)
}
