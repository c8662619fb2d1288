//! `hedgerow ask`: the passages that answer a question, each with the path that led to it.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use hedgerow::{Context, Embed, Filter, Models, Question, Snapshot, Strategy};

use crate::command::answer::searched;
use crate::command::bounds::Bounds;
use crate::command::models::{EmbedderChoice, LlmOptions};
use crate::command::recipe::Constant;
use crate::command::render;
use crate::command::render::layout::{columns, plain};
use crate::extract::Patterns;
use crate::failure::{Failure, Outcome};
use crate::llm::Endpoint;
use crate::session::Session;

/// Ask a question: passages with their scores and the path to each
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The walk goes from what a passage mentions to the passages that define or share it, and along similarity edges and to \
neighbouring chunks where these add to the question. Relations serve `expand` and `show`.

Examples:
  hedgerow ask notes.hedgerow \"Which rock opera was released by the band formed in 1965?\"
  hedgerow ask notes.hedgerow \"Who owns the gate scheduler?\" -k 3 --neighbours 3 \\
      --filter 'metadata.year = 2020'")]
pub struct Args {
    /// The question and its budget.
    #[command(flatten)]
    pub asking: Asking,
    /// How it is answered.
    #[command(flatten)]
    chosen: Chosen,
    /// A model that names words to search for, beside those of the question.
    #[command(flatten)]
    llm: LlmOptions,
}

/// How a question is answered
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Chosen {
    /// flat: by terms and vectors; neighbours: with the chunks next to the best; graph: along definition links and shared
    /// entities; sage: with what similarity edges join to the best; reports: by reports of communities and what tells of them; subgraph: with
    /// what mentions several members of a community; combined: graph, with reports beside it
    #[arg(long, default_value = "graph", value_parser = strategies())]
    pub strategy: Strategy,
}

/// What `ask`, `answer` and `compare` have in common.
#[derive(Debug, clap::Args)]
pub struct Asking {
    /// Folder of the store
    pub store: PathBuf,
    /// The question, in quotes
    question: String,
    /// Passages that terms and vectors give; the walk starts from up to three of them
    #[arg(short, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u16).range(..=PASSAGES_MAX))]
    k: u16,
    /// Passages beside them; flat gets as many more, so that both have the same budget
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(..=PASSAGES_MAX))]
    neighbours: u16,
    /// Tokens of all passages together, a quarter of their bytes
    #[arg(long, value_name = "N", default_value_t = 4000)]
    tokens: u32,
    /// Which chunks may answer, such as 'metadata.year >= 2020 and not title ~ "draft"': = != < <= > >= ~ (contains),
    /// in [A, B] and exists; and, or, not, ( ); over key, source, title, kind, `media_type`, metadata.NAME. Or what some hops
    /// reach: 'within 2 of "entity:Queen"'
    #[arg(long, value_name = "EXPR", value_parser = filter)]
    filter: Option<Filter>,
    /// What gives the question its vector: static, none, minilm:FOLDER or URL#MODEL, as it gave the chunks theirs
    #[arg(long, value_name = "EMBEDDER", default_value = "static", value_parser = EmbedderChoice::parse)]
    embedder: EmbedderChoice,
    /// Vector space [default: the one of the embedder, or else the first]. Imported vectors whose model is no --embedder
    /// can be asked only through `eval --query-vectors` or the library
    #[arg(long, value_name = "NAME")]
    space: Option<String>,
    /// How much vectors count beside terms, 0 to 1 [default: .2]. Of imported vectors see --space
    #[arg(long, value_name = "W", value_parser = weight)]
    vector_weight: Option<f32>,
    /// Level of the communities whose reports are read [default: all]
    #[arg(long, value_name = "N")]
    level: Option<u32>,
    /// A constant of the strategy, such as similar=0; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = Constant::parse)]
    constant: Vec<Constant>,
    /// Time and memory.
    #[command(flatten)]
    pub bounds: Bounds,
}

impl Asking {
    /// The question with its budget.
    pub fn question(&self, strategy: Strategy) -> Question {
        let mut question = Question {
            strategy,
            seeds: self.k.into(),
            neighbours: self.neighbours.into(),
            tokens_max: usize::try_from(self.tokens).unwrap_or(usize::MAX),
            filter: self.filter.clone(),
            space: self.space.clone(),
            vector_weight: self.vector_weight,
            level: self.level,
            ..Question::new(self.question.as_str())
        };
        Constant::set_all(&self.constant, &mut question);
        question
    }

    /// What gives the question its vector.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn embedder(&self) -> Result<Option<Box<dyn Embed>>, Failure> {
        self.embedder.load()
    }

    /// Asks the question; with words that a model names, if there is one, which only its terms and names have, not its
    /// vector.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn ask(
        &self,
        snapshot: &Snapshot,
        session: &Session,
        strategy: Strategy,
        searcher: Option<&Endpoint>,
    ) -> Result<(Question, Context), Failure> {
        let embedder = self.embedder()?;
        let models = Models { embedder: embedder.as_deref(), extractor: Some(&Patterns) };
        let mut question = self.question(strategy);
        let words = searched(searcher, &self.question, session);
        if !words.is_empty() {
            question.vector = own_vector(snapshot, embedder.as_deref(), &question)?;
            question.text = format!("{} {}", question.text, words.join(" "));
        }
        let mut context = self.bounds.run(snapshot, session, |store| Ok(store.ask(&question, models)?))?;
        context.question.clone_from(&self.question);
        Ok((question, context))
    }
}

/// The vector of the question as it was asked, if the store has vectors of the embedder.
fn own_vector(
    snapshot: &Snapshot,
    embedder: Option<&dyn Embed>,
    question: &Question,
) -> Result<Option<Vec<f32>>, Failure> {
    let Some(embedder) = embedder else { return Ok(None) };
    let is_asked = |space: &&hedgerow::Space| {
        let named = question.space.as_ref().is_none_or(|name| *name == space.name);
        named && space.name == embedder.space() && space.model == embedder.model()
    };
    if snapshot.spaces()?.iter().find(is_asked).is_none() {
        return Ok(None);
    }
    let made = embedder.embed(&[&question.text]).map_err(hedgerow::QueryError::from)?;
    Ok(made.into_iter().next().flatten())
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let snapshot = session.open(&args.asking.store)?;
    let searcher = args.llm.endpoint(1)?;
    let (question, context) = args.asking.ask(&snapshot, session, args.chosen.strategy, searcher.as_ref())?;
    for lack in &context.incomplete {
        session.note(lack);
    }
    session.print(&context, |out| render::context(out, &question, &context))?;
    Ok(Outcome::Done)
}

/// Reads the name of a strategy.
pub fn strategies() -> impl TypedValueParser<Value = Strategy> {
    let names = PossibleValuesParser::new(Strategy::ALL.map(Strategy::name));
    names.map(|name| Strategy::ALL.into_iter().find(|strategy| strategy.name() == name).unwrap_or_default())
}

/// Reads a share.
///
/// # Errors
/// When it is no number from 0 to 1.
pub fn weight(text: &str) -> Result<f32, String> {
    let weight = text.parse().ok();
    weight.filter(|weight| (0.0..=1.0).contains(weight)).ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

const PASSAGES_MAX: i64 = 10_000;

/// Reads a filter; an error shows the place under the expression.
fn filter(expression: &str) -> Result<Filter, String> {
    Filter::parse(expression).map_err(|error| {
        let before = expression.get(..error.position).unwrap_or(expression);
        let caret = " ".repeat(columns(&plain(before)));
        format!("{error}\n\n  {}\n  {caret}^", plain(expression))
    })
}

#[cfg(test)]
mod tests {
    use crate::command::ask::{filter, weight};

    #[test]
    fn an_error_in_a_filter_points_at_the_place() {
        let error = filter("metadata.jahr = 2020 oder").unwrap_err();
        let lines: Vec<&str> = error.lines().skip(2).collect();
        assert_eq!(lines, ["  metadata.jahr = 2020 oder", &format!("  {}^", " ".repeat(21))]);
    }

    #[test]
    fn a_weight_is_a_share() {
        assert_eq!(weight(".25"), Ok(0.25));
        for text in ["1.5", "-0.1", "NaN", "x"] {
            assert!(weight(text).is_err(), "{text}");
        }
    }
}
