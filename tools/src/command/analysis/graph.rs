//! `hedgerow graph`: all entities and relations, in a form that other programs read.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::ValueEnum;
use hedgerow::{Bounded, GraphPart, JoinedPart};
use serde::Serialize;

use crate::command::bounds::Bounds;
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Write the graph of entities and relations for other programs
#[derive(Debug, clap::Args)]
#[command(after_help = "\
json is one object of nodes and links, as NetworkX and D3 read it; dot is for Graphviz; edges are lines of subject, predicate, \
object and weight between tabs, as `hedgerow import --edges` reads them. --joined is the graph that communities are found in: each pair \
of entities that relations join, or chunks that mention both, once, with the weight of all that joins them.

Examples:
  hedgerow graph notes.hedgerow --format dot | dot -Tsvg -o notes.svg
  hedgerow graph notes.hedgerow --format edges > edges.tsv
  hedgerow graph notes.hedgerow --format json --limit 1000
  hedgerow graph notes.hedgerow --joined > joined.tsv")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// What is written [default: edges; with --json json]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Label of relations that are written; may be given several times [default: all]
    #[arg(long, value_name = "LABEL")]
    predicate: Vec<String>,
    /// Write what joins entities where communities are found, without directions
    #[arg(long, conflicts_with_all = ["predicate", "limit"])]
    joined: bool,
    /// Relations that are written, with their ends [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Time and memory.
    #[command(flatten)]
    bounds: Bounds,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Json,
    Dot,
    Edges,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let format = match (args.format, session.json()) {
        (Some(Format::Dot | Format::Edges), true) => {
            return Err(Failure::Usage("--json is --format json, and another format is asked for".to_owned()));
        }
        (Some(format), _) => format,
        (None, true) => Format::Json,
        (None, false) => Format::Edges,
    };
    let snapshot = session.open(&args.store)?;
    let limit = args.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let write = |store: &Bounded<'_>| {
        session.stream(|out| {
            let mut writer = Writer { out, format, joined: args.joined, began: false, links: false, failed: None };
            writer.head().map_err(Failure::Output)?;
            let dumped = if args.joined {
                store.dump_joined(&mut |part| writer.part(joined(part))).map(|dumped| (dumped.incomplete, false))
            } else {
                let dumped = store.dump_graph(&args.predicate, limit, &mut |part| writer.part(part));
                dumped.map(|dumped| (dumped.incomplete, dumped.truncated))
            };
            if let Some(error) = writer.failed.take() {
                return Err(Failure::Output(error));
            }
            let dumped = dumped?;
            writer.tail().map_err(Failure::Output)?;
            Ok(dumped)
        })
    };
    if let Some((incomplete, truncated)) = args.bounds.run(&snapshot, session, write)? {
        for lack in incomplete {
            session.note(lack);
        }
        if truncated {
            session.note("The limit left relations out: see --limit.");
        }
    }
    Ok(Outcome::Done)
}

/// A part of the graph of joined entities as one of relations, which all have this label.
fn joined(part: JoinedPart<'_>) -> GraphPart<'_> {
    match part {
        JoinedPart::Entity { name, kind } => GraphPart::Entity { name, kind },
        #[expect(clippy::cast_possible_truncation, reason = "weights are written as those of relations")]
        JoinedPart::Pair { one, other, weight } => {
            GraphPart::Relation { subject: one, predicate: "joined", object: other, weight: weight as f32 }
        }
    }
}

/// Writes a graph part by part.
struct Writer<'o> {
    out: &'o mut dyn Write,
    format: Format,
    /// Whether edges have no direction, and each stands once.
    joined: bool,
    /// Whether the list that is being written has an element.
    began: bool,
    /// Whether that list is the one of links.
    links: bool,
    failed: Option<io::Error>,
}

impl Writer<'_> {
    fn head(&mut self) -> io::Result<()> {
        match self.format {
            Format::Json => {
                write!(self.out, r#"{{"directed":{0},"multigraph":{0},"nodes":["#, !self.joined)
            }
            Format::Dot if self.joined => writeln!(self.out, "graph {{"),
            Format::Dot => writeln!(self.out, "digraph {{"),
            Format::Edges => Ok(()),
        }
    }

    fn tail(&mut self) -> io::Result<()> {
        match self.format {
            Format::Json if self.links => writeln!(self.out, "]}}"),
            Format::Json => writeln!(self.out, r#"],"links":[]}}"#),
            Format::Dot => writeln!(self.out, "}}"),
            Format::Edges => Ok(()),
        }
    }

    fn part(&mut self, part: GraphPart<'_>) -> ControlFlow<()> {
        let written = match self.format {
            Format::Json => self.json(part),
            Format::Dot => self.dot(part),
            Format::Edges => self.edge(part),
        };
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn json(&mut self, part: GraphPart<'_>) -> io::Result<()> {
        let element = match part {
            GraphPart::Entity { name, kind } => Element::Node { id: name, kind },
            GraphPart::Relation { subject, predicate, object, weight } => {
                if !self.links {
                    write!(self.out, r#"],"links":["#)?;
                    (self.links, self.began) = (true, false);
                }
                Element::Link { source: subject, target: object, predicate, weight }
            }
        };
        if std::mem::replace(&mut self.began, true) {
            write!(self.out, ",")?;
        }
        serde_json::to_writer(&mut *self.out, &element).map_err(io::Error::from)
    }

    fn dot(&mut self, part: GraphPart<'_>) -> io::Result<()> {
        match part {
            GraphPart::Entity { name, .. } => writeln!(self.out, "  {};", quoted(name)),
            GraphPart::Relation { subject, predicate, object, weight } => {
                let [subject, object, label] = [subject, object, predicate].map(quoted);
                let to = if self.joined { "--" } else { "->" };
                writeln!(self.out, "  {subject} {to} {object} [label={label}, weight=\"{weight}\"];")
            }
        }
    }

    fn edge(&mut self, part: GraphPart<'_>) -> io::Result<()> {
        let GraphPart::Relation { subject, predicate, object, weight } = part else { return Ok(()) };
        let [subject, predicate, object] = [subject, predicate, object].map(cell);
        // A line that begins with # and a space is a comment; spaces around names are none of theirs.
        let before = if subject.starts_with("# ") { " " } else { "" };
        writeln!(self.out, "{before}{subject}\t{predicate}\t{object}\t{weight}")
    }
}

/// An element of a list in JSON.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Element<'g> {
    Node {
        id: &'g str,
        #[serde(rename = "type")]
        kind: &'g str,
    },
    Link {
        source: &'g str,
        target: &'g str,
        predicate: &'g str,
        weight: f32,
    },
}

/// A text as Graphviz takes it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(letter);
            }
            '\0'..' ' | '\u{7f}' => quoted.push(' '),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// A text between tabs; names that differ in spaces alone are the same.
fn cell(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use crate::command::analysis::graph::{cell, quoted};

    #[test]
    fn names_cannot_end_what_quotes_or_separates_them() {
        assert_eq!(quoted("a \"b\\\n"), r#""a \"b\\ ""#);
        assert_eq!(cell("a\tb\nc"), "a b c");
    }
}
