//! Answers as people read them: passages, how each was reached, and the trace.

pub mod layout;

use std::io::{self, Write};

use hedgerow::{Context, Legs, LinkTrace, Passage, Role, Step};

use crate::command::render::layout::{columns, counted, cut, decimal, grouped, padded, plain, width, wrap};

/// Prints an answer: the question, its passages and a short trace.
///
/// # Errors
/// When the output cannot be written.
pub fn context(out: &mut dyn Write, context: &Context) -> io::Result<()> {
    writeln!(out, "{}", headline(context))?;
    if context.passages.is_empty() {
        writeln!(out, "\nNothing in the store answers this.")?;
    }
    for (passage, number) in context.passages.iter().zip(1..) {
        writeln!(out)?;
        passage_block(out, context, passage, number)?;
    }
    writeln!(out)?;
    trace(out, context)
}

/// How a passage was reached, in words, such as
/// `via ‘Fruit Chan’, mentioned in ‘The Midnight After’ [1]: definition link, idf .81`; the number is that of the passage
/// in the same answer.
pub fn path_within(passage: &Passage, context: &Context) -> String {
    match passage.path.as_slice() {
        [seed, Step { node, weight, .. }, _] => format!(
            "via ‘{}’, mentioned in {}: definition link, idf {}",
            bare(node),
            cited(bare(&seed.node), context),
            decimal(*weight, 2)
        ),
        [Step { node, .. }, _] => format!("defines ‘{}’, which the question names", bare(node)),
        _ if passage.legs.vector <= 0.0 => "found by its terms".to_owned(),
        _ if passage.legs.terms <= 0.0 => "found by its vector".to_owned(),
        _ => "found by its terms and vector".to_owned(),
    }
}

/// The title of a passage's document, or its key where it has none.
pub fn name_of(passage: &Passage) -> &str {
    if passage.title.trim().is_empty() { &passage.document } else { &passage.title }
}

/// A line with a heading, as wide as all that is printed.
///
/// # Errors
/// When the output cannot be written.
pub fn rule(out: &mut dyn Write, heading: &str) -> io::Result<()> {
    let heading = cut(heading, width() - 8);
    let line = "─".repeat(width().saturating_sub(columns(&heading) + 4));
    writeln!(out, "── {heading} {line}")
}

/// A named value over as many lines as it needs, under each other from the same column on.
///
/// # Errors
/// When the output cannot be written.
pub fn field(out: &mut dyn Write, name: &str, value: &str) -> io::Result<()> {
    let mut name = name;
    for line in wrap(value, width() - FIELD_INDENT) {
        writeln!(out, "  {} {line}", padded(name, FIELD_INDENT - 3))?;
        name = "";
    }
    Ok(())
}

const FIELD_INDENT: usize = 16;
const TEXT_INDENT: usize = 4;
/// A chunk of the default size fits; a whole document that was imported as one chunk does not flood the terminal.
const TEXT_LINES_MAX: usize = 14;
/// Links that are listed; all are in the JSON.
const LINKS_MAX: usize = 5;

fn headline(context: &Context) -> String {
    let passages = context.passages.len() as u64;
    format!(
        "{}\n{} · {} · {}",
        wrap(&context.question, width()).join("\n"),
        context.strategy,
        counted(passages, "passage", "passages"),
        counted(context.tokens as u64, "token", "tokens"),
    )
}

fn passage_block(out: &mut dyn Write, context: &Context, passage: &Passage, number: usize) -> io::Result<()> {
    let score = decimal(passage.score, 3);
    let title = cut(name_of(passage), width() - TEXT_INDENT - columns(&score) - 2);
    let title = padded(&title, width() - TEXT_INDENT - columns(&score));
    writeln!(out, "{number:>2}  {title}{score}")?;
    let mut place =
        format!("{} · bytes {}–{}", passage.key, grouped(passage.start.into()), grouped(passage.end.into()));
    if !passage.source.is_empty() && passage.source != passage.document {
        place = format!("{place} · from {}", passage.source);
    }
    let role = match passage.role {
        Role::Seed => "seed",
        Role::Match => "match",
        Role::Neighbour => "neighbour",
    };
    let score = format!("{role} · {}", legs(&passage.legs));
    for line in [place, score, path_within(passage, context)] {
        indented(out, &line)?;
    }
    writeln!(out)?;
    text(out, passage)
}

fn indented(out: &mut dyn Write, paragraph: &str) -> io::Result<()> {
    for line in wrap(paragraph, width() - TEXT_INDENT) {
        writeln!(out, "{:TEXT_INDENT$}{line}", "")?;
    }
    Ok(())
}

fn text(out: &mut dyn Write, passage: &Passage) -> io::Result<()> {
    let lines = wrap(&passage.text, width() - TEXT_INDENT - 2);
    let shown = if lines.len() > TEXT_LINES_MAX { TEXT_LINES_MAX - 1 } else { lines.len() };
    for line in lines.iter().take(shown) {
        writeln!(out, "{}", format!("{:TEXT_INDENT$}│ {line}", "").trim_end())?;
    }
    if lines.len() > shown {
        let more = counted((lines.len() - shown) as u64, "more line", "more lines");
        writeln!(out, "{:TEXT_INDENT$}┆ {more}", "")?;
    }
    Ok(())
}

/// The parts of a score that count, as a sum.
fn legs(legs: &Legs) -> String {
    let parts = [("terms", legs.terms), ("vector", legs.vector), ("named", legs.named), ("link", legs.link)];
    let parts = parts.iter().filter(|(_, value)| *value != 0.0);
    let parts: Vec<String> = parts.map(|(name, value)| format!("{name} {}", decimal(*value, 3))).collect();
    parts.join(" + ")
}

/// What an entity or chunk is called without its kind.
fn bare(node: &str) -> &str {
    node.strip_prefix("entity:").or_else(|| node.strip_prefix("chunk:")).unwrap_or(node)
}

/// Title and number of a passage of the answer, or the key of a chunk that is not in it.
fn cited(key: &str, context: &Context) -> String {
    let mut numbered = context.passages.iter().zip(1..);
    match numbered.find(|(passage, _)| passage.key == key) {
        Some((passage, number)) => format!("‘{}’ [{number}]", name_of(passage)),
        None => key.to_owned(),
    }
}

fn trace(out: &mut dyn Write, context: &Context) -> io::Result<()> {
    let trace = &context.trace;
    let of = format!("trace: generation {}, {}", grouped(trace.generation), counted(trace.chunks, "chunk", "chunks"));
    rule(out, &of)?;
    let terms = trace.terms.iter();
    let terms = terms.map(|term| format!("{} {}", term.term, grouped(term.chunks)));
    field(out, "terms", &listed(&terms.collect::<Vec<_>>(), "none stands in the index"))?;
    if let Some(vector) = &trace.vector {
        let weight = decimal(vector.weight, 2);
        let compared = counted(vector.compared, "vector", "vectors");
        let space = format!("{} ({})", vector.space, vector.model);
        field(out, "vector", &format!("{space}, weight {weight}, {compared} compared"))?;
    }
    if context.strategy == "graph" {
        walk(out, context)?;
    }
    let dropped = trace.dropped.chunk_by(|a, b| a.reason == b.reason).map(|chunks| {
        let keys: Vec<String> =
            chunks.iter().map(|chunk| format!("{} {}", plain(&chunk.key), decimal(chunk.score, 3))).collect();
        let reason = chunks.first().map_or("", |chunk| chunk.reason);
        format!("{}: {reason}", keys.join(" · "))
    });
    field(out, "dropped", &lines_or(&dropped.collect::<Vec<_>>(), "nothing"))
}

fn walk(out: &mut dyn Write, context: &Context) -> io::Result<()> {
    let trace = &context.trace;
    let names = trace.names.iter().map(|name| {
        let mentions = counted(name.mentions, "mention", "mentions");
        let definitions = counted(name.definitions, "definition", "definitions");
        let passed = if name.followed { "" } else { ", too many to follow" };
        let idf = decimal(name.idf, 2);
        format!("‘{}’ idf {idf}, {mentions}, {definitions}{passed}", plain(&name.entity))
    });
    field(out, "names", &lines_or(&names.collect::<Vec<_>>(), "none in the question"))?;
    let seeds: Vec<String> = trace.seeds.iter().map(|key| number_of(key, context)).collect();
    field(out, "seeds", &listed(&seeds, "none"))?;
    let kept =
        if trace.links.is_empty() { "none of them raised a score" } else { "the strongest that raised a score:" };
    let mut lines = vec![format!("{} read, {kept}", grouped(trace.links_read))];
    lines.extend(trace.links.iter().take(LINKS_MAX).map(|link| link_in_words(link, context)));
    field(out, "links", &lines.join("\n"))
}

fn link_in_words(link: &LinkTrace, context: &Context) -> String {
    let [seed, target] = [&link.seed, &link.target].map(|key| number_of(key, context));
    let value = decimal(link.value, 2);
    format!("{seed} —mentions→ ‘{}’ —defined by→ {target}, worth {value}", plain(&link.entity))
}

/// The number of a passage of the answer, or the key of a chunk that is not in it.
fn number_of(key: &str, context: &Context) -> String {
    let position = context.passages.iter().position(|passage| passage.key == key);
    position.map_or_else(|| plain(key), |position| format!("[{}]", position + 1))
}

fn listed(parts: &[String], none: &str) -> String {
    if parts.is_empty() { none.to_owned() } else { parts.join(" · ") }
}

fn lines_or(lines: &[String], none: &str) -> String {
    if lines.is_empty() { none.to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use hedgerow::{Context, Legs, Passage, Role, Step, Trace};

    use crate::command::render::context;
    use crate::command::render::layout::{columns, width};

    fn passage(key: &str, title: &str, path: &[(&'static str, &str, f32)]) -> Passage {
        let steps = path.iter().map(|(by, node, weight)| Step { by, node: (*node).to_owned(), weight: *weight });
        Passage {
            key: format!("{key}#0"),
            document: key.to_owned(),
            title: title.to_owned(),
            source: String::new(),
            start: 0,
            end: 1200,
            text: "A hedgerow is a line of shrubs. ".repeat(60),
            tokens: 480,
            role: if path.len() == 1 { Role::Seed } else { Role::Neighbour },
            score: 0.9,
            legs: Legs { terms: 0.5, link: 0.4, ..Legs::default() },
            path: steps.collect(),
        }
    }

    #[test]
    fn a_neighbour_says_which_passage_led_to_it() {
        let first = passage("films.md", "The Midnight After", &[("terms and vector", "chunk:films.md#0", 0.9)]);
        let path = [
            ("terms and vector", "chunk:films.md#0", 0.9),
            ("mentions", "entity:Fruit Chan", 0.81),
            ("defined by", "chunk:chan.md#0", 0.7),
        ];
        let second = passage("chan.md", "", &path);
        let answer = Context {
            question: "Who directed it?".to_owned(),
            strategy: "graph",
            passages: vec![first, second],
            tokens: 960,
            incomplete: Vec::new(),
            trace: Trace { seeds: vec!["films.md#0".to_owned()], ..Trace::default() },
        };
        let mut out = Vec::new();
        context(&mut out, &answer).unwrap();
        let printed = String::from_utf8(out).unwrap();
        assert!(
            printed.contains("mentioned in ‘The Midnight After’ [1]: definition link, idf .81")
                && printed.contains("[1]\n"),
            "{printed}"
        );
        assert!(printed.lines().all(|line| columns(line) <= width()), "{printed}");
    }
}
