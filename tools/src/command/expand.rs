//! `hedgerow expand`: what lies around a node, hop by hop, with the best path to each.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use hedgerow::{Bounded, Direction, EdgeKind, ExpandOptions, Expansion, PathEdge, Reached, Returned};

use crate::command::analysis::directions;
use crate::command::bounds::Bounds;
use crate::command::find;
use crate::command::render::layout::{columns, counted, decimal, plain, width};
use crate::command::render::rule;
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Walk from a document, chunk or entity along its edges
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hedgerow expand notes.hedgerow \"entity:Pink Floyd\" --hops 2 --edge relations --edge defines
  hedgerow expand notes.hedgerow 'chunk:music/floyd.md#0' --edge similar --weight-min .5
  hedgerow expand notes.hedgerow entity:libc6 --hops 3 --edge relations --predicate depends --direction in --counts")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// doc:KEY, chunk:KEY#N, entity:NAME, community:ID, or a bare key
    key: String,
    /// Edges between the start and the farthest node
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(..=16))]
    hops: u8,
    /// Kind of edges that are followed; may be given several times [default: all]
    #[arg(long, value_name = "KIND", value_parser = edge_kinds())]
    edge: Vec<EdgeKind>,
    /// Label of relations that are followed; may be given several times [default: all]
    #[arg(long, value_name = "LABEL")]
    predicate: Vec<String>,
    /// Which way edges are followed
    #[arg(long, default_value = "both", value_parser = directions())]
    direction: Direction,
    /// Edges that are followed out of one node, the heaviest first [default: 64; with --counts all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=LIMIT_MAX))]
    fan_out: Option<u32>,
    /// A node with more edges than this is reached, but not walked through
    #[arg(long, value_name = "N")]
    degree_max: Option<u32>,
    /// Let a node count for less the more edges it has
    #[arg(long)]
    idf: bool,
    /// Edges below this weight are passed over
    #[arg(long, value_name = "W", default_value_t = 0.0, value_parser = weight_min)]
    weight_min: f32,
    /// Nodes that are returned
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(..=LIMIT_MAX))]
    limit: u32,
    /// Tell only how many nodes each hop reaches, without a limit of nodes
    #[arg(long, conflicts_with_all = ["subgraph", "limit"])]
    counts: bool,
    /// Tell every edge between the nodes as well
    #[arg(long)]
    subgraph: bool,
    /// Edges that are told with --subgraph, those that are followed first [default: all]
    #[arg(long, value_name = "N", requires = "subgraph")]
    edge_limit: Option<u32>,
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
    let options = args.options();
    let walk = |store: &Bounded<'_>| Ok(store.expand(&[find(store, &args.key)?], &options)?);
    let expansion = args.bounds.run(&snapshot, session, walk)?;
    for lack in &expansion.incomplete {
        session.note(lack);
    }
    session.print(&expansion, |out| human(out, &expansion))?;
    Ok(Outcome::Done)
}

impl Args {
    fn options(&self) -> ExpandOptions {
        let number = |given: u32| usize::try_from(given).unwrap_or(usize::MAX);
        let defaults = ExpandOptions::default();
        let fan_out = if self.counts { usize::MAX } else { defaults.fan_out };
        ExpandOptions {
            edges: if self.edge.is_empty() { defaults.edges } else { self.edge.clone() },
            predicates: self.predicate.clone(),
            direction: self.direction,
            hops: self.hops.into(),
            fan_out: self.fan_out.map_or(fan_out, number),
            degree_max: self.degree_max.map_or(defaults.degree_max, number),
            idf: self.idf,
            weight_min: self.weight_min,
            limit: number(self.limit),
            edge_limit: self.edge_limit.map_or(defaults.edge_limit, number),
            returned: match (self.counts, self.subgraph) {
                (true, _) => Returned::Counts,
                (false, true) => Returned::Subgraph,
                (false, false) => Returned::Nodes,
            },
        }
    }
}

const LIMIT_MAX: i64 = 1_000_000;
const SCORE_COLUMNS: usize = 7;

fn human(out: &mut dyn Write, expansion: &Expansion) -> io::Result<()> {
    for hop in expansion.nodes.chunk_by(|a, b| a.hop == b.hop) {
        let Some(first) = hop.first() else { continue };
        let nodes = counted(hop.len() as u64, "node", "nodes");
        match first.hop {
            0 => rule(out, &format!("start: {nodes}"))?,
            number => rule(out, &format!("hop {number}: {nodes}"))?,
        }
        for reached in hop {
            path(out, reached)?;
        }
    }
    if expansion.nodes.is_empty() {
        for (hop, reached) in expansion.reached.iter().enumerate() {
            writeln!(out, "hop {hop}: {}", counted(*reached, "node", "nodes"))?;
        }
    }
    if !expansion.edges.is_empty() {
        rule(out, &counted(expansion.edges.len() as u64, "edge", "edges"))?;
        for edge in &expansion.edges {
            writeln!(out, "{} {} {}", plain(&edge.from), arrow(edge), plain(&edge.to))?;
        }
    }
    if expansion.truncated {
        writeln!(out, "\nA limit cut the walk short: see --limit and --fan-out.")?;
    }
    Ok(())
}

/// A node as the last of its path; a long path breaks before an edge.
fn path(out: &mut dyn Write, reached: &Reached) -> io::Result<()> {
    let score = if reached.hop == 0 { String::new() } else { decimal(reached.score, 3) };
    let first = reached.path.first().map_or(&reached.key, |edge| &edge.from);
    let mut line = format!("{score:>5}  {}", plain(first));
    for edge in &reached.path {
        let step = format!("{} {}", arrow(edge), plain(&edge.to));
        if columns(&line) + 1 + columns(&step) > width() {
            writeln!(out, "{line}")?;
            line = format!("{:SCORE_COLUMNS$} ", "");
        }
        line.push(' ');
        line.push_str(&step);
    }
    writeln!(out, "{line}")
}

/// An edge as it is drawn between its ends.
pub fn arrow(edge: &PathEdge) -> String {
    let label = if edge.label.is_empty() { edge.edge.name().to_owned() } else { plain(&edge.label) };
    match (edge.edge, edge.reversed) {
        (EdgeKind::Similar, _) => format!("—{label} {}—", decimal(edge.weight, 2)),
        (_, true) => format!("←{label}—"),
        (_, false) => format!("—{label}→"),
    }
}

fn edge_kinds() -> impl TypedValueParser<Value = EdgeKind> {
    let names = PossibleValuesParser::new(EdgeKind::ALL.map(EdgeKind::name));
    names.try_map(|name| EdgeKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or(name))
}

fn weight_min(text: &str) -> Result<f32, String> {
    let weight = text.parse().ok();
    weight.filter(|weight: &f32| weight.is_finite()).ok_or_else(|| "expected a number".to_owned())
}

#[cfg(test)]
mod tests {
    use hedgerow::{EdgeKind, PathEdge, Reached};

    use crate::command::expand::path;

    fn edge(from: &str, edge: EdgeKind, label: &str, reversed: bool, to: &str) -> PathEdge {
        let (from, label, to) = (from.to_owned(), label.to_owned(), to.to_owned());
        PathEdge { from, edge, label, reversed, to, weight: 0.5 }
    }

    #[test]
    fn a_path_is_drawn_along_and_against_its_edges() {
        let edges = vec![
            edge("entity:B", EdgeKind::Relations, "owned by", true, "entity:A"),
            edge("entity:A", EdgeKind::Defines, "", false, "chunk:a#0"),
            edge("chunk:a#0", EdgeKind::Similar, "", false, "chunk:c#0"),
        ];
        let key = "chunk:c#0".to_owned();
        let mut out = Vec::new();
        let reached = Reached { key, hop: 3, score: 0.25, path: edges };
        path(&mut out, &reached).unwrap();
        let drawn = String::from_utf8(out).unwrap();
        assert_eq!(drawn, " .250  entity:B ←owned by— entity:A —defines→ chunk:a#0 —similar .50— chunk:c#0\n");
    }
}
