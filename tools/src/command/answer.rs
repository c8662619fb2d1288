//! `hedgerow answer`: an answer in words, by a model that is shown the passages and reports of `ask`, with what it cites.

use std::io::{self, Write};

use hedgerow::{Bounded, Context, Passage, ReportPassage};
use serde::Serialize;
use serde_json::Value;

use crate::command::ask::{Asking, Chosen};
use crate::command::find;
use crate::command::models::LlmOptions;
use crate::command::render;
use crate::command::render::layout::{counted, cut, grouped, plain, width, wrap};
use crate::command::render::{name_of, name_or_key, rule};
use crate::failure::{Failure, Outcome};
use crate::llm::answer::{Shown, answer};
use crate::llm::{Endpoint, Usage, keywords};
use crate::session::Session;

/// Answer a question in words from the passages of the store, by a model, with citations
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The model is shown the passages that `ask` finds, numbered, and told to answer from them alone; reports of communities, which \
--strategy reports and combined find, are numbered after them. What it cites is listed below the answer; numbers that nothing \
has are said. Without --llm the passages are printed, as by `ask`.

Passages are shown to the model as material between lines that they cannot hold themselves; a model may still be misled \
by what a document says, so read what it cites.

Examples:
  hedgerow answer notes.hedgerow \"Who owns the gate scheduler?\" --llm http://localhost:11434 --model qwen3:8b
  hedgerow answer notes.hedgerow \"Who owns the gate scheduler?\" --tokens 2000")]
pub struct Args {
    /// The question and its budget.
    #[command(flatten)]
    pub asking: Asking,
    /// How passages are found.
    #[command(flatten)]
    chosen: Chosen,
    /// The model.
    #[command(flatten)]
    llm: LlmOptions,
    /// Let the model name words to search for first
    #[arg(long, requires = "url")]
    keywords: bool,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let endpoint = args.llm.endpoint(1)?;
    let snapshot = session.open(&args.asking.store)?;
    let searcher = endpoint.as_ref().filter(|_| args.keywords);
    let (question, context) = args.asking.ask(&snapshot, session, args.chosen.strategy, searcher)?;
    for lack in &context.incomplete {
        session.note(lack);
    }
    let mut answered = Answered { question: context.question.clone(), ..Answered::default() };
    let shown = shown(&context);
    if let Some(endpoint) = endpoint.as_ref().filter(|_| !shown.is_empty()) {
        let _watch = session.watch();
        let answer = answer(endpoint, &context.question, &shown)?;
        let bounded = snapshot.bounded(hedgerow::QueryLimits::default());
        for number in answer.cited {
            answered.citations.extend(Citation::of(&bounded, number, &context)?);
        }
        answered.unknown = answer.unknown;
        answered.answer = Some(answer.text);
        for number in &answered.unknown {
            session.note(format_args!("the answer cites [{number}], and there is no such passage or report"));
        }
    }
    answered.usage = endpoint.as_ref().map(Endpoint::usage).unwrap_or_default();
    let found = Found { answered, context: &context };
    session.print(&found, |out| match &found.answered.answer {
        Some(answer) => human(out, answer, &found),
        None => render::context(out, &question, &context),
    })?;
    Ok(Outcome::Done)
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Found<'c> {
    #[serde(flatten)]
    answered: Answered,
    context: &'c Context,
}

#[derive(Debug, Default, Serialize)]
struct Answered {
    question: String,
    answer: Option<String>,
    citations: Vec<Citation>,
    unknown: Vec<usize>,
    #[serde(flatten)]
    usage: Usage,
}

/// Passages, and after them reports: the numbers of passages are those of `ask`.
fn shown(context: &Context) -> Vec<Shown<'_>> {
    let passages = context.passages.iter();
    let passages = passages.map(|passage| Shown { title: name_of(passage), text: &passage.text, is_report: false });
    let reports = context.reports.iter();
    passages.chain(reports.map(|report| Shown { title: &report.title, text: &report.text, is_report: true })).collect()
}

/// What the answer cites.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Citation {
    Passage(PassageCitation),
    Report(ReportCitation),
}

/// The report of a community.
#[derive(Debug, Serialize)]
struct ReportCitation {
    number: usize,
    key: String,
    title: String,
    level: u32,
    model: String,
    stale: bool,
}

/// A passage.
#[derive(Debug, Serialize)]
struct PassageCitation {
    number: usize,
    key: String,
    document: String,
    title: String,
    heading: String,
    page: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page_last: Option<u64>,
    start: u32,
    end: u32,
}

impl Citation {
    /// What has a number; none where nothing has it.
    fn of(snapshot: &Bounded<'_>, number: usize, context: &Context) -> Result<Option<Citation>, Failure> {
        let Some(place) = number.checked_sub(1) else { return Ok(None) };
        if let Some(passage) = context.passages.get(place) {
            return PassageCitation::of(snapshot, number, passage).map(|cited| Some(Citation::Passage(cited)));
        }
        let report = place.checked_sub(context.passages.len()).and_then(|place| context.reports.get(place));
        Ok(report.map(|report| {
            let ReportPassage { key, title, level, model, stale, .. } = report.clone();
            Citation::Report(ReportCitation { number, key, title, level, model, stale })
        }))
    }

    /// Its number, its title, and where it stands.
    fn told(&self) -> (usize, &str, String) {
        match self {
            Citation::Passage(cited) => (cited.number, name_or_key(&cited.title, &cited.document), cited.place()),
            Citation::Report(cited) => {
                let stale = if cited.stale { " · the store has changed since" } else { "" };
                (cited.number, &cited.title, format!("{} · report of level {}{stale}", cited.key, cited.level))
            }
        }
    }
}

impl PassageCitation {
    fn of(snapshot: &Bounded<'_>, number: usize, passage: &Passage) -> Result<PassageCitation, Failure> {
        let node = find(snapshot, &format!("chunk:{}", passage.key))?;
        let hedgerow::Node::Chunk(id) = node else {
            return Err(Failure::NotFound(format!("the chunk {} is not there any more", passage.key)));
        };
        let chunk = snapshot.chunk(id)?;
        let metadata: Value = serde_json::from_str(chunk.metadata()?).unwrap_or_default();
        Ok(PassageCitation {
            number,
            key: passage.key.clone(),
            document: passage.document.clone(),
            title: passage.title.clone(),
            heading: chunk.heading()?.to_owned(),
            page: metadata.get("page").and_then(Value::as_u64),
            page_last: metadata.get("page_last").and_then(Value::as_u64),
            start: passage.start,
            end: passage.end,
        })
    }

    fn place(&self) -> String {
        let mut place = self.key.clone();
        if !self.heading.is_empty() {
            place = format!("{place} · {}", self.heading);
        }
        if let Some(page) = self.page {
            place = format!("{place} · {}", render::pages(page, self.page_last));
        }
        format!("{place} · bytes {}–{}", grouped(self.start.into()), grouped(self.end.into()))
    }
}

fn human(out: &mut dyn Write, answer: &str, found: &Found<'_>) -> io::Result<()> {
    for paragraph in answer.lines() {
        for line in wrap(paragraph, width()) {
            writeln!(out, "{line}")?;
        }
    }
    writeln!(out)?;
    let citations = &found.answered.citations;
    let mut of = counted(found.context.passages.len() as u64, "passage", "passages");
    if !found.context.reports.is_empty() {
        of = format!("{of} and {}", counted(found.context.reports.len() as u64, "report", "reports"));
    }
    rule(out, &format!("{} of {of} cited", citations.len()))?;
    for citation in citations {
        let (number, title, place) = citation.told();
        writeln!(out, "[{number}] {}", cut(&plain(title), width() - 6))?;
        for line in wrap(&place, width() - 4) {
            writeln!(out, "    {line}")?;
        }
    }
    let usage = found.answered.usage;
    writeln!(out, "{} + {} tokens", grouped(usage.prompt_tokens), grouped(usage.completion_tokens))
}

/// The words that a model would search for, if there is one; without an answer of it the question stands alone.
pub fn searched(endpoint: Option<&Endpoint>, question: &str, session: &Session) -> Vec<String> {
    let Some(endpoint) = endpoint else { return Vec::new() };
    let _watch = session.watch();
    match keywords(endpoint, question) {
        Ok(words) => {
            session.note(format_args!("searched as well: {}", words.join(", ")));
            words
        }
        Err(fault) => {
            session.note(format_args!("asked without keywords: {fault}"));
            Vec::new()
        }
    }
}
