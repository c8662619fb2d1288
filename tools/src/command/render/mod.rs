//! Answers as people read them: passages, how each was reached, and the trace.

pub mod layout;

use std::io::{self, Write};

use hedgerow::{Context, Legs, LinkTrace, Passage, Question, ReportPassage, Role, Step};

use crate::command::render::layout::{columns, counted, cut, decimal, grouped, padded, plain, width, wrap};

/// Prints an answer: the question, its passages and a short trace.
///
/// # Errors
/// When the output cannot be written.
pub fn context(out: &mut dyn Write, question: &Question, context: &Context) -> io::Result<()> {
    writeln!(out, "{}", headline(context))?;
    for report in &context.reports {
        self::report(out, report)?;
    }
    if context.passages.is_empty() {
        writeln!(out, "\n{}", why_empty(question, context))?;
    }
    for (passage, number) in context.passages.iter().zip(1..) {
        writeln!(out)?;
        passage_block(out, context, passage, number)?;
    }
    writeln!(out)?;
    trace(out, context)
}

/// The report of a community, with its key and title above it.
fn report(out: &mut dyn Write, report: &ReportPassage) -> io::Result<()> {
    let stale = if report.stale { "; the store has changed since" } else { "" };
    writeln!(out, "\n{} ({}, level {}{stale})", plain(&report.title), plain(&report.key), report.level)?;
    for line in report.text.lines().flat_map(|line| wrap(line, width() - TEXT_INDENT - 2)) {
        writeln!(out, "{}", format!("{:TEXT_INDENT$}│ {line}", "").trim_end())?;
    }
    Ok(())
}

/// Why an answer has no passage.
pub fn why_empty(question: &Question, context: &Context) -> String {
    let trace = &context.trace;
    if question.seeds.saturating_add(question.neighbours) == 0 {
        "No passages were asked for: -k and --neighbours are 0.".to_owned()
    } else if trace.chunks == 0 && question.filter.is_some() {
        "The filter matches no chunk.".to_owned()
    } else if trace.chunks == 0 {
        "The store holds no text.".to_owned()
    } else if trace.dropped.iter().any(|dropped| dropped.reason.contains("budget")) {
        let budget = counted(question.tokens_max as u64, "token", "tokens");
        format!("Nothing fits into the budget of {budget}; --tokens allows more.")
    } else if !question.text.contains(char::is_alphanumeric) {
        "The question has no words.".to_owned()
    } else {
        "Nothing in the store answers this.".to_owned()
    }
}

/// How a chunk follows from an entity that it defines; else it mentions it.
const DEFINED: &str = "defined by";
/// How an entity follows from a passage.
const MENTIONED: &str = "mentions";

/// How a passage was reached, in words, such as
/// `via ‘Fruit Chan’, mentioned in ‘The Midnight After’ [1]: definition link, idf .81`; the number is that of the passage
/// in the same answer.
pub fn path_within(passage: &Passage, context: &Context) -> String {
    match passage.path.as_slice() {
        // Where links were followed more than once, the last one: the passage before it tells its own.
        [.., seed, Step { by: MENTIONED, node, weight }, last] => {
            // The walk starts from a seed and yet may owe most of its score to a link from another one.
            let itself = if passage.role == Role::Seed { own_reason(passage) + ", above all " } else { String::new() };
            let seed = cited(bare(&seed.node), context);
            let place =
                if last.by == DEFINED { format!("{seed}: definition link") } else { format!("{seed} and here:") };
            let link = if last.by == DEFINED { ", idf" } else { " idf" };
            format!("{itself}via ‘{}’, mentioned in {place}{link} {}", bare(node), decimal(*weight, 2))
        }
        [.., seed, Step { by: "similar to" | "next to", node: _, weight }] => {
            let by = passage.path.last().map_or("", |last| last.by);
            let itself = if passage.role == Role::Seed { own_reason(passage) + ", above all " } else { String::new() };
            let likeness = if by == "similar to" { format!(", {}", decimal(*weight, 2)) } else { String::new() };
            format!("{itself}{by} {}{likeness}", cited(bare(&seed.node), context))
        }
        [Step { by: "community", node, .. }, _] => format!("{}; tells of {node}", own_reason(passage)),
        [Step { node, .. }, last] if last.by != DEFINED => {
            format!("{}; mentions ‘{}’, which the question names", own_reason(passage), bare(node))
        }
        [Step { node, .. }, _] if passage.legs.named >= passage.legs.terms + passage.legs.vector => {
            format!("defines ‘{}’, which the question names", bare(node))
        }
        [Step { node, .. }, _] => {
            format!("{}; defines ‘{}’, which the question names", own_reason(passage), bare(node))
        }
        _ => own_reason(passage),
    }
}

/// What a passage has by itself, the larger part first.
fn own_reason(passage: &Passage) -> String {
    let Legs { terms, vector, named, .. } = passage.legs;
    let found = match (terms > 0.0, vector > 0.0) {
        (true, true) if terms >= vector => "found by its terms and vector",
        (true, true) => "found by its vector and terms",
        (true, false) => "found by its terms",
        (false, true) => "found by its vector",
        (false, false) if named > 0.0 => "defines what the question names",
        (false, false) => "nothing but the filter lets it through",
    };
    found.to_owned()
}

/// The title of a passage's document, or its key where it has none.
pub fn name_of(passage: &Passage) -> &str {
    name_or_key(&passage.title, &passage.document)
}

/// A title, or the key of what has none.
pub fn name_or_key<'t>(title: &'t str, key: &'t str) -> &'t str {
    if title.trim().is_empty() { key } else { title }
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

/// The page that something stands on, or the first and the last of them.
pub fn pages(first: u64, last: Option<u64>) -> String {
    match last {
        Some(last) => format!("pages {}–{}", grouped(first), grouped(last)),
        None => format!("page {}", grouped(first)),
    }
}

fn passage_block(out: &mut dyn Write, context: &Context, passage: &Passage, number: usize) -> io::Result<()> {
    let score = decimal(passage.score, 3);
    let title = cut(name_of(passage), width() - TEXT_INDENT - columns(&score) - 2);
    let title = padded(&title, width() - TEXT_INDENT - columns(&score));
    writeln!(out, "{number:>2}  {title}{score}")?;
    let mut place =
        format!("{} · bytes {}–{}", passage.key, grouped(passage.start.into()), grouped(passage.end.into()));
    if let Some(page) = passage.page {
        place = format!("{place} · {}", pages(page, passage.page_last));
    }
    if !passage.heading.is_empty() {
        place = format!("{place} · under {}", passage.heading);
    }
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
    let parts = [
        ("terms", legs.terms),
        ("vector", legs.vector),
        ("named", legs.named),
        ("link", legs.link),
        ("walk", legs.walk),
        ("choice", legs.choice),
        ("community", legs.community),
    ];
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
    use hedgerow::{Context, Dropped, Filter, Legs, Passage, Question, Role, Step, Trace};

    use crate::command::render::layout::{columns, width};
    use crate::command::render::{context, path_within, why_empty};

    fn passage(key: &str, title: &str, path: &[(&'static str, &str, f32)]) -> Passage {
        let steps = path.iter().map(|(by, node, weight)| Step { by, node: (*node).to_owned(), weight: *weight });
        Passage {
            key: format!("{key}#0"),
            document: key.to_owned(),
            title: title.to_owned(),
            source: String::new(),
            heading: String::new(),
            page: None,
            page_last: None,
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

    fn answer(passages: Vec<Passage>) -> Context {
        let (incomplete, trace) = (Vec::new(), Trace::default());
        Context {
            question: "Who?".to_owned(),
            strategy: "graph",
            reports: Vec::new(),
            passages,
            tokens: 960,
            incomplete,
            trace,
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
        let mut answer = answer(vec![first, second]);
        answer.trace.seeds.push("films.md#0".to_owned());
        let mut out = Vec::new();
        context(&mut out, &Question::new("Who directed it?"), &answer).unwrap();
        let printed = String::from_utf8(out).unwrap();
        assert!(
            printed.contains("mentioned in ‘The Midnight After’ [1]: definition link, idf .81")
                && printed.contains("[1]\n"),
            "{printed}"
        );
        assert!(printed.lines().all(|line| columns(line) <= width()), "{printed}");
    }

    #[test]
    fn a_passage_is_told_by_what_counts_most() {
        let link = [("terms", "chunk:a#0", 0.9), ("mentions", "entity:B", 0.8), ("defined by", "chunk:b#0", 0.7)];
        let named = [("names", "entity:B", 0.3), ("defined by", "chunk:b#0", 0.5)];
        let shared = [("terms", "chunk:a#0", 0.9), ("mentions", "entity:B", 0.8), ("mentioned in", "chunk:b#0", 0.7)];
        let walked = [("names", "entity:B", 0.3), ("mentioned in", "chunk:b#0", 0.5)];
        let next = [("terms", "chunk:a#0", 0.9), ("next to", "chunk:b#0", 1.0)];
        let similar = [("terms", "chunk:a#0", 0.9), ("similar to", "chunk:b#0", 0.7)];
        let again = [
            ("terms", "chunk:a#0", 0.9),
            ("mentions", "entity:B", 0.8),
            ("defined by", "chunk:c#0", 0.7),
            ("mentions", "entity:D", 0.4),
            ("mentioned in", "chunk:b#0", 0.3),
        ];
        let own = [("vector", "chunk:b#0", 0.4)];
        let of = |terms, vector, named| Legs { terms, vector, named, ..Legs::default() };
        for (path, role, legs, told) in [
            (&link[..], Role::Neighbour, of(0.1, 0.0, 0.0), "via ‘B’, mentioned in a#0: definition link, idf .80"),
            (
                &link[..],
                Role::Seed,
                of(0.1, 0.0, 0.0),
                "found by its terms, above all via ‘B’, mentioned in a#0: definition link, idf .80",
            ),
            (&shared[..], Role::Neighbour, of(0.1, 0.0, 0.0), "via ‘B’, mentioned in a#0 and here: idf .80"),
            (&walked[..], Role::Match, of(0.1, 0.0, 0.0), "found by its terms; mentions ‘B’, which the question names"),
            (&named[..], Role::Match, of(0.1, 0.1, 0.3), "defines ‘B’, which the question names"),
            (&named[..], Role::Seed, of(0.4, 0.0, 0.3), "found by its terms; defines ‘B’, which the question names"),
            (&next[..], Role::Neighbour, of(0.1, 0.0, 0.0), "next to a#0"),
            (&again[..], Role::Neighbour, of(0.1, 0.0, 0.0), "via ‘D’, mentioned in c#0 and here: idf .40"),
            (&similar[..], Role::Neighbour, of(0.1, 0.0, 0.0), "similar to a#0, .70"),
            (&own[..], Role::Match, of(0.1, 0.3, 0.0), "found by its vector and terms"),
            (&own[..], Role::Match, of(0.0, 0.3, 0.0), "found by its vector"),
            (&own[..], Role::Match, of(0.0, 0.0, 0.0), "nothing but the filter lets it through"),
        ] {
            let passage = Passage { role, legs, ..passage("b", "", path) };
            assert_eq!(path_within(&passage, &answer(Vec::new())), told);
        }
    }

    #[test]
    fn an_answer_without_passages_says_why() {
        let question = Question::new("Who?");
        let mut empty = answer(Vec::new());
        let none = Question { seeds: 0, neighbours: 0, ..question.clone() };
        assert!(why_empty(&none, &empty).starts_with("No passages were asked for"));
        let filtered = Question { filter: Some(Filter::parse("title = \"x\"").unwrap()), ..question.clone() };
        assert_eq!(why_empty(&filtered, &empty), "The filter matches no chunk.");
        assert_eq!(why_empty(&question, &empty), "The store holds no text.");
        empty.trace.chunks = 1;
        assert_eq!(why_empty(&question, &empty), "Nothing in the store answers this.");
        assert_eq!(why_empty(&Question::new("?!"), &empty), "The question has no words.");
        let reason = "does not fit into the budget of tokens";
        empty.trace.dropped.push(Dropped { key: "a#0".to_owned(), score: 0.5, reason });
        let told = why_empty(&Question { tokens_max: 1, ..question }, &empty);
        assert_eq!(told, "Nothing fits into the budget of 1 token; --tokens allows more.");
    }
}
