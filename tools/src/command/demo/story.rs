//! One question as the demonstration tells it: two answers side by side, the graph's path, the answer.

use std::io::{self, Write};

use hedgerow::{Comparison, Context, Passage, Role};

use crate::command::demo::samples::Story;
use crate::command::render::layout::{columns, cut, decimal, padded, width, wrap};
use crate::command::render::{name_of, path_within, rule};

/// Prints it.
///
/// # Errors
/// When the output cannot be written.
pub(super) fn tell(out: &mut dyn Write, number: usize, story: &Story, comparison: &Comparison) -> io::Result<()> {
    let Comparison { flat, graph } = comparison;
    writeln!(out)?;
    rule(out, &format!("{number}. {}", story.heading))?;
    writeln!(out, "\n{}\n", wrap(story.question, width()).join("\n"))?;
    beside(out, "flat: words and vectors", "graph: words and vectors, then links")?;
    for position in 0..flat.passages.len().max(graph.passages.len()) {
        beside(out, &half(flat, graph, position, story), &half(graph, flat, position, story))?;
    }
    writeln!(out, "\n{}\n", wrap(&verdict(comparison, story), width()).join("\n"))?;
    for (passage, number) in graph.passages.iter().zip(1..) {
        reached(out, graph, passage, number)?;
    }
    writeln!(out, "\nAnswer: {}", story.answer)?;
    for (key, words) in story.evidence {
        quote(out, graph, key, words)?;
    }
    Ok(())
}

const INDENT: usize = 5;
/// Columns of each side.
fn half_width() -> usize {
    (width() - 3) / 2
}

fn beside(out: &mut dyn Write, left: &str, right: &str) -> io::Result<()> {
    writeln!(out, "{}", format!("{} │ {right}", padded(left, half_width())).trim_end())
}

/// A passage on half a line: `+` where only this answer has it, a tick where the answer stands.
fn half(context: &Context, other: &Context, position: usize, story: &Story) -> String {
    let Some(passage) = context.passages.get(position) else { return String::new() };
    let is_shared = other.passages.iter().any(|known| known.key == passage.key);
    let mark = match (passage.document == story.answer_key, is_shared) {
        (true, _) => '✔',
        (false, false) => '+',
        (false, true) => ' ',
    };
    let score = decimal(passage.score, 2);
    let room = half_width() - 5 - columns(&score) - 1;
    format!(" {} {mark} {} {score}", position + 1, padded(&cut(name_of(passage), room), room))
}

/// What the two answers tell about each other.
fn verdict(comparison: &Comparison, story: &Story) -> String {
    let found = |context: &Context| context.passages.iter().any(|passage| passage.document == story.answer_key);
    let Comparison { flat, graph } = comparison;
    let means = match (found(flat), found(graph)) {
        (false, true) => "Only the graph found what answers the question.",
        (true, true) => "Both found what answers the question; the graph also tells how it follows from it.",
        (true, false) => "Only flat found what answers the question.",
        (false, false) => "Neither found what answers the question.",
    };
    format!("✔ holds the answer, + stands on this side alone. {means} Its path to each passage:")
}

/// A passage of the graph with its score, and how it was reached.
fn reached(out: &mut dyn Write, context: &Context, passage: &Passage, number: usize) -> io::Result<()> {
    let score = decimal(passage.score, 2);
    let (room, indent) = (width() - INDENT - columns(&score) - 1, INDENT);
    writeln!(out, "  {number}  {} {score}", padded(&cut(name_of(passage), room), room))?;
    let arrow = if passage.role == Role::Neighbour { "↳ " } else { "" };
    for line in wrap(&format!("{arrow}{}", path_within(passage, context)), room) {
        writeln!(out, "{:indent$}{line}", "")?;
    }
    Ok(())
}

/// The sentence that says it, if the graph found the passage.
fn quote(out: &mut dyn Write, context: &Context, document: &str, words: &str) -> io::Result<()> {
    let mut numbered = context.passages.iter().zip(1..);
    let found = numbered.find(|(passage, _)| passage.document == document && passage.text.contains(words));
    let Some((passage, number)) = found else { return Ok(()) };
    let mut mark = format!(" [{number}]");
    for line in wrap(sentence(&passage.text, words), width() - INDENT) {
        writeln!(out, "{mark} {line}")?;
        mark = " ".repeat(columns(&mark));
    }
    Ok(())
}

/// The sentence of a text that holds the words.
fn sentence<'t>(text: &'t str, words: &str) -> &'t str {
    let Some(at) = text.find(words) else { return "" };
    let (before, after) = text.split_at(at);
    let ends = [". ", ".\n", "\n"];
    let start = ends.iter().filter_map(|end| before.rfind(end).map(|at| at + end.len())).max().unwrap_or(0);
    let end = ends.iter().filter_map(|end| after.find(end)).min().map_or(text.len(), |end| at + end + 1);
    text.get(start..end).unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use crate::command::demo::story::sentence;

    #[test]
    fn a_sentence_is_cut_out_of_its_text() {
        let text = "One. Two is\nhere. Three.";
        for (words, found) in [("One", "One."), ("here", "here."), ("Three", "Three."), ("Two", "Two is"), ("none", "")]
        {
            assert_eq!(sentence(text, words), found, "{words}");
        }
    }
}
