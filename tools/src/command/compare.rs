//! `hedgerow compare`: a question by several strategies, side by side.

use std::collections::BTreeSet;
use std::io::{self, Write};

use hedgerow::{Bounded, Context, Models, Passage, Question, Strategy};
use serde::{Serialize, Serializer};

use crate::command::ask::Asking;
use crate::command::render::layout::{columns, counted, cut, decimal, padded, width, wrap};
use crate::command::render::{name_of, path_within, rule, why_empty};
use crate::command::strategies::{Named, distinct, named};
use crate::extract::Patterns;
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Answer a question by several strategies, with the same number of passages
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  hedgerow compare notes.hedgerow \"Which rock opera was released by the band formed in 1965?\" -k 2 --neighbours 2")]
pub struct Args {
    /// The question and its budget.
    #[command(flatten)]
    pub asking: Asking,
    /// Strategies, two or more with commas between them; the others are compared with the first
    #[arg(long, value_name = "NAMES", default_value = "flat,graph", value_delimiter = ',', value_parser = named())]
    strategy: Vec<Named>,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    distinct(&args.strategy)?;
    if args.strategy.len() < 2 {
        return Err(Failure::Usage("one strategy has nothing to be compared with; name two or more".to_owned()));
    }
    let snapshot = session.open(&args.asking.store)?;
    let embedder = args.asking.embedder()?;
    let models = Models { embedder: embedder.as_deref(), extractor: Some(&Patterns) };
    let questions = args.strategy.iter().map(|named| args.asking.question(named.strategy));
    let ask = |store: &Bounded<'_>| {
        let contexts = questions.map(|question| Ok(store.ask(&question, models)?));
        contexts.collect::<Result<Vec<Context>, Failure>>()
    };
    let contexts = args.asking.bounds.run(&snapshot, session, ask)?;
    let lacks: BTreeSet<&String> = contexts.iter().flat_map(|context| &context.incomplete).collect();
    for lack in lacks {
        session.note(lack);
    }
    let names = args.strategy.iter().map(|named| named.name.as_str());
    let answers = Answers(names.zip(&contexts).collect());
    let question = args.asking.question(Strategy::default());
    session.print(&answers, |out| side_by_side(out, &question, &answers))?;
    Ok(Outcome::Done)
}

/// The answers by strategy, in the order in which they were named; at least two.
struct Answers<'a>(Vec<(&'a str, &'a Context)>);

impl Serialize for Answers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

/// Prints the answers beside each other, as many as the width allows and the first in every block, then what only one of
/// two found.
///
/// # Errors
/// When the output cannot be written.
fn side_by_side(out: &mut dyn Write, question: &Question, answers: &Answers<'_>) -> io::Result<()> {
    let Some(((name, first), others)) = answers.0.split_first() else { return Ok(()) };
    for line in wrap(&first.question, width()) {
        writeln!(out, "{line}")?;
    }
    for others in others.chunks(columns_max() - 1) {
        writeln!(out)?;
        block(out, &[&[(*name, *first)], others].concat())?;
    }
    if answers.0.iter().all(|(_, context)| context.passages.is_empty()) {
        return writeln!(out, "\n{}", why_empty(question, first));
    }
    for (other_name, other) in others {
        let both = if others.len() == 1 { "Both".to_owned() } else { format!("{name} and {other_name}") };
        if first.passages.iter().map(|passage| &passage.key).eq(other.passages.iter().map(|passage| &passage.key)) {
            writeln!(out, "\n{both} found the same passages.")?;
            continue;
        }
        let is_same = first.passages.iter().all(|passage| has(other, passage))
            && other.passages.iter().all(|passage| has(first, passage));
        if is_same {
            writeln!(out, "\n{both} found the same passages in another order.")?;
            continue;
        }
        let only_found = |one: &str, of: &str| match others.len() {
            1 => format!("only {one} found"),
            _ => format!("{one} found and {of} did not"),
        };
        only(out, &only_found(other_name, name), '+', other, first)?;
        only(out, &only_found(name, other_name), '−', first, other)?;
    }
    Ok(())
}

const BETWEEN: &str = "  │ ";
/// Below this a title says too little.
const COLUMN_MIN: usize = 26;

/// Answers beside each other.
fn columns_max() -> usize {
    ((width() + columns(BETWEEN)) / (COLUMN_MIN + columns(BETWEEN))).max(2)
}

/// The first answer with others; `−` marks what only it has, `+` what it does not have.
fn block(out: &mut dyn Write, answers: &[(&str, &Context)]) -> io::Result<()> {
    let Some(((_, first), others)) = answers.split_first() else { return Ok(()) };
    let room = (width() + columns(BETWEEN)) / answers.len() - columns(BETWEEN);
    let line = |out: &mut dyn Write, cells: Vec<String>| writeln!(out, "{}", cells.join(BETWEEN).trim_end());
    let headings = answers.iter().map(|(name, context)| {
        let tokens = counted(context.tokens as u64, "token", "tokens");
        padded(&cut(&format!("     {name} · {tokens}"), room), room)
    });
    line(out, headings.collect())?;
    let rows = answers.iter().map(|(_, context)| context.passages.len()).max().unwrap_or_default();
    for position in 0..rows {
        let is_alone = |passage: &Passage| !others.iter().any(|(_, other)| has(other, passage));
        let mut cells = vec![cell(first, position, room, '−', is_alone)];
        cells.extend(others.iter().map(|(_, other)| cell(other, position, room, '+', |passage| !has(first, passage))));
        line(out, cells)?;
    }
    Ok(())
}

/// A passage in its column.
fn cell(context: &Context, position: usize, room: usize, mark: char, is_marked: impl Fn(&Passage) -> bool) -> String {
    let Some(passage) = context.passages.get(position) else {
        return " ".repeat(room);
    };
    let mark = if is_marked(passage) { mark } else { ' ' };
    let score = decimal(passage.score, 3);
    let room = room - 5 - columns(&score) - 1;
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

#[cfg(test)]
mod tests {
    use hedgerow::{Context, Legs, Passage, Question, Role, Trace};

    use crate::command::compare::{Answers, columns_max, side_by_side};
    use crate::command::render::layout::{columns, width};

    /// An answer of passages with these keys.
    fn answer(strategy: &'static str, keys: &[&str]) -> Context {
        let passage = |key: &&str| Passage {
            key: format!("{key}#0"),
            document: (*key).to_owned(),
            title: format!("The {key} of a title that is longer than any column has room for"),
            source: String::new(),
            heading: String::new(),
            page: None,
            page_last: None,
            start: 0,
            end: 9,
            text: "A passage".to_owned(),
            tokens: 3,
            role: Role::Match,
            score: 0.5,
            legs: Legs { terms: 0.5, ..Legs::default() },
            path: Vec::new(),
        };
        let passages: Vec<Passage> = keys.iter().map(passage).collect();
        let (question, incomplete, trace) = ("Who?".to_owned(), Vec::new(), Trace::default());
        Context { question, strategy, tokens: 3 * passages.len(), reports: Vec::new(), passages, incomplete, trace }
    }

    fn printed(answers: &[Context]) -> String {
        let answers = Answers(answers.iter().map(|context| (context.strategy, context)).collect());
        let mut out = Vec::new();
        side_by_side(&mut out, &Question::new("Who?"), &answers).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn two_answers_stand_beside_each_other_with_marks_at_what_only_one_has() {
        let printed = printed(&[answer("flat", &["a", "b"]), answer("graph", &["b", "c"])]);
        assert!(printed.contains(" 1 − The a of") && printed.contains("│  2 + The c of"), "{printed}");
        assert!(printed.contains("only graph found: 1") && printed.contains("only flat found: 1"), "{printed}");
    }

    #[test]
    fn more_answers_than_fit_stand_in_blocks_that_all_begin_with_the_first() {
        let names = ["flat", "one", "two", "three", "four", "five"];
        let answers: Vec<Context> = names.iter().map(|name| answer(name, &["a", name])).collect();
        let printed = printed(&answers);
        let headings = printed.lines().filter(|line| line.starts_with("     flat · 6 tokens"));
        assert_eq!(headings.count(), (names.len() - 1).div_ceil(columns_max() - 1), "{printed}");
        assert!(printed.contains("five found and flat did not: 1"), "{printed}");
        assert!(printed.lines().all(|line| columns(line) <= width()), "{printed}");
    }

    #[test]
    fn answers_that_hold_the_same_are_not_listed() {
        let same = printed(&[answer("flat", &["a", "b"]), answer("graph", &["a", "b"])]);
        assert!(same.contains("Both found the same passages."), "{same}");
        let turned = printed(&[answer("flat", &["a", "b"]), answer("graph", &["b", "a"])]);
        assert!(turned.contains("Both found the same passages in another order."), "{turned}");
        let empty = printed(&[answer("flat", &[]), answer("graph", &[])]);
        assert!(empty.contains("The store holds no text."), "{empty}");
    }
}
