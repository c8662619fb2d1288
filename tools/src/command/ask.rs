//! `hedgerow ask`: the passages that answer a question, each with the path that led to it.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use hedgerow::{Filter, Models, Question, Strategy};

use crate::command::bounds::Bounds;
use crate::command::render;
use crate::command::render::layout::{columns, plain};
use crate::embed::StaticTable;
use crate::extract::Patterns;
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Ask a question: passages with their scores and the path to each
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The walk goes from what a passage mentions to the passages that define it. For now it follows these definition links \
only; similarity edges and relations serve `expand` and `show`.

Examples:
  hedgerow ask notes.hedgerow \"Which rock opera was released by the band formed in 1965?\"
  hedgerow ask notes.hedgerow \"Who owns the gate scheduler?\" -k 3 --neighbours 3 \\
      --filter 'metadata.year = 2020'")]
pub struct Args {
    /// The question and its budget.
    #[command(flatten)]
    pub asking: Asking,
    /// flat: by terms and vectors; graph: then along definition links
    #[arg(long, default_value = "graph", value_parser = strategies())]
    strategy: Strategy,
}

/// What `ask` and `compare` have in common.
#[derive(Debug, clap::Args)]
pub struct Asking {
    /// Folder of the store
    pub store: PathBuf,
    /// The question, in quotes
    question: String,
    /// Passages that terms and vectors give; the walk starts from the best five of them
    #[arg(short, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u16).range(..=PASSAGES_MAX))]
    k: u16,
    /// Passages beside them; flat gets as many more, so that both have the same budget
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(..=PASSAGES_MAX))]
    neighbours: u16,
    /// Tokens of all passages together, a quarter of their bytes
    #[arg(long, value_name = "N", default_value_t = 4000)]
    tokens: u32,
    /// Which chunks may answer, such as 'metadata.year = 2020'
    #[arg(long, value_name = "EXPR", value_parser = filter)]
    filter: Option<Filter>,
    /// Vector space [default: the one of the built-in embedder, or else the first]. Imported vectors can be asked only
    /// through `eval --query-vectors` or the library, as this program cannot run their model
    #[arg(long, value_name = "NAME")]
    space: Option<String>,
    /// How much vectors count beside terms, 0 to 1 [default: .2]. Of imported vectors see --space
    #[arg(long, value_name = "W", value_parser = weight)]
    vector_weight: Option<f32>,
    /// Time and memory.
    #[command(flatten)]
    pub bounds: Bounds,
}

impl Asking {
    /// The question with its budget.
    pub fn question(&self, strategy: Strategy) -> Question {
        Question {
            strategy,
            seeds: self.k.into(),
            neighbours: self.neighbours.into(),
            tokens_max: usize::try_from(self.tokens).unwrap_or(usize::MAX),
            filter: self.filter.clone(),
            space: self.space.clone(),
            vector_weight: self.vector_weight,
            ..Question::new(self.question.as_str())
        }
    }
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let snapshot = session.open(&args.asking.store)?;
    let embedder = StaticTable::default();
    let models = Models { embedder: Some(&embedder), extractor: Some(&Patterns) };
    let question = args.asking.question(args.strategy);
    let context = args.asking.bounds.run(&snapshot, session, |store| Ok(store.ask(&question, models)?))?;
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
        let error = filter("metadata.jahr = 2020 or").unwrap_err();
        let lines: Vec<&str> = error.lines().skip(2).collect();
        assert_eq!(lines, ["  metadata.jahr = 2020 or", &format!("  {}^", " ".repeat(21))]);
    }

    #[test]
    fn a_weight_is_a_share() {
        assert_eq!(weight(".25"), Ok(0.25));
        for text in ["1.5", "-0.1", "NaN", "x"] {
            assert!(weight(text).is_err(), "{text}");
        }
    }
}
