//! `hedgerow compare`: a question by both strategies, side by side.

use std::io::{self, Write};

use hedgerow::{Comparison, Context, Models, Passage, Question, Strategy};

use crate::command::ask::Asking;
use crate::command::render::layout::{columns, counted, cut, decimal, padded, width, wrap};
use crate::command::render::{name_of, path_within, rule, why_empty};
use crate::embed::StaticTable;
use crate::extract::Patterns;
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Answer a question flat and by graph, with the same number of passages
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  hedgerow compare notes.hedgerow \"Which rock opera was released by the band formed in 1965?\" -k 2 --neighbours 2")]
pub struct Args {
    /// The question and its budget.
    #[command(flatten)]
    pub asking: Asking,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let snapshot = session.open(&args.asking.store)?;
    let embedder = StaticTable::default();
    let models = Models { embedder: Some(&embedder), extractor: Some(&Patterns) };
    let question = args.asking.question(Strategy::Graph);
    let comparison = args.asking.bounds.run(&snapshot, session, |store| Ok(store.compare(&question, models)?))?;
    for lack in &comparison.graph.incomplete {
        session.note(lack);
    }
    session.print(&comparison, |out| side_by_side(out, &question, &comparison))?;
    Ok(Outcome::Done)
}

/// Prints both answers beside each other, then what only one of them found.
///
/// # Errors
/// When the output cannot be written.
fn side_by_side(out: &mut dyn Write, question: &Question, comparison: &Comparison) -> io::Result<()> {
    let Comparison { flat, graph } = comparison;
    for line in wrap(&graph.question, width()) {
        writeln!(out, "{line}")?;
    }
    let heading = |name: &str, context: &Context| {
        let tokens = counted(context.tokens as u64, "token", "tokens");
        padded(&format!("     {name} · {tokens}"), half_width())
    };
    let (left, right) = (heading("flat", flat), heading("graph", graph));
    writeln!(out, "\n{}", format!("{left}{BETWEEN}{right}").trim_end())?;
    for position in 0..flat.passages.len().max(graph.passages.len()) {
        let left = half(flat, position, graph, '−');
        let right = half(graph, position, flat, '+');
        writeln!(out, "{}", format!("{left}{BETWEEN}{right}").trim_end())?;
    }
    if flat.passages.is_empty() && graph.passages.is_empty() {
        return writeln!(out, "\n{}", why_empty(question, graph));
    }
    if flat.passages.iter().map(|passage| &passage.key).eq(graph.passages.iter().map(|passage| &passage.key)) {
        return writeln!(out, "\nBoth found the same passages.");
    }
    let is_same = flat.passages.iter().all(|passage| has(graph, passage))
        && graph.passages.iter().all(|passage| has(flat, passage));
    if is_same {
        return writeln!(out, "\nBoth found the same passages in another order.");
    }
    only(out, "only graph found", '+', graph, flat)?;
    only(out, "only flat found", '−', flat, graph)
}

const BETWEEN: &str = "  │ ";
/// Columns of each side.
fn half_width() -> usize {
    (width() - 4) / 2
}

/// A passage on half a line; marked where the other answer does not have it.
fn half(context: &Context, position: usize, other: &Context, mark: char) -> String {
    let Some(passage) = context.passages.get(position) else {
        return " ".repeat(half_width());
    };
    let mark = if has(other, passage) { ' ' } else { mark };
    let score = decimal(passage.score, 3);
    let room = half_width() - 5 - columns(&score) - 1;
    let title = padded(&cut(name_of(passage), room), room);
    format!("{:>2} {mark} {title} {score}", position + 1)
}

fn has(context: &Context, passage: &Passage) -> bool {
    context.passages.iter().any(|other| other.key == passage.key)
}

fn only(out: &mut dyn Write, heading: &str, mark: char, context: &Context, other: &Context) -> io::Result<()> {
    let passages = context.passages.iter().zip(1..);
    let passages: Vec<(&Passage, usize)> = passages.filter(|(passage, _)| !has(other, passage)).collect();
    writeln!(out)?;
    rule(out, &format!("{heading}: {}", passages.len()))?;
    for (passage, number) in passages {
        let title = format!("{} · {}", name_of(passage), passage.key);
        writeln!(out, "{number:>2} {mark} {}", cut(&title, width() - 5))?;
        for line in wrap(&path_within(passage, context), width() - 5) {
            writeln!(out, "     {line}")?;
        }
    }
    Ok(())
}
