//! `hedgerow eval`: how much of what answers known questions is found, and how fast.

mod bootstrap;
mod measures;
mod misses;
mod questions;
mod report;
mod table;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

use hedgerow::{Context, Control, Models, Question, Snapshot};

use crate::command::ask::weight;
use crate::command::eval::measures::{Figures, Gold, TOP, places};
use crate::command::eval::misses::{DEPTH, Misses};
use crate::command::eval::questions::{Record, Records, Vectors};
use crate::command::eval::report::{Answers, Report};
use crate::command::models::EmbedderChoice;
use crate::command::recipe::Constant;
use crate::command::render::layout::counted;
use crate::command::strategies::{Named, distinct, named};
use crate::extract::Patterns;
use crate::failure::{Failure, Outcome};
use crate::session::{Progress, Session};

/// Measure recall over questions whose answers are known
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each line of QUESTIONS is {\"id\", \"question\", \"gold\": [keys of documents or chunks]}, with \"type\" and \"src\" if \
figures shall be told apart by them; 10 + 10 passages are asked for.

Examples:
  hedgerow eval wiki.hedgerow questions.jsonl --strategy flat,graph
  hedgerow eval wiki.hedgerow questions.jsonl --misses")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// Questions, one JSON object a line
    questions: PathBuf,
    /// Strategies to measure, with commas between them; the others are compared with the first
    #[arg(long, value_name = "NAMES", default_value = "graph", value_delimiter = ',', value_parser = named())]
    strategy: Vec<Named>,
    /// Sort what is not among the first ten by what keeps it away, with N examples of each [default: 3]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "3")]
    misses: Option<u16>,
    /// The questions' own vectors, a row a question
    #[arg(long, value_name = "F.npy")]
    query_vectors: Option<PathBuf>,
    /// What gives the questions their vectors: static, none, minilm:FOLDER or URL#MODEL
    #[arg(long, value_name = "EMBEDDER", default_value = "static", value_parser = EmbedderChoice::parse)]
    embedder: EmbedderChoice,
    /// Vector space [default: the one of the embedder, or the one that the query vectors fit]
    #[arg(long, value_name = "NAME")]
    space: Option<String>,
    /// How much vectors count beside terms, 0 to 1 [default: .2 for the built-in table, .4 for imported vectors]
    #[arg(long, value_name = "W", value_parser = weight)]
    vector_weight: Option<f32>,
    /// A constant of the strategies, such as similar=0; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = Constant::parse)]
    constant: Vec<Constant>,
}

/// Runs the command. Questions are asked one after the other, so that the latency is that of one reader alone.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    distinct(&args.strategy)?;
    let snapshot = session.open(&args.store)?;
    let records = Records::read(&args.questions)?;
    let (path, space) = (args.query_vectors.as_deref(), args.space.as_deref());
    let vectors = Vectors::read(path, space, &snapshot, records.lines)?;
    let embedder = args.embedder.load()?;
    let models = Models { embedder: embedder.as_deref(), extractor: Some(&Patterns) };
    let progress = session.progress("questions");
    let mut asking = Asking::of(args, &snapshot, &vectors, models);
    for (record, done) in records.good.iter().zip(0..) {
        progress.advance(done, records.good.len() as u64);
        asking.ask(record, &progress)?;
    }
    progress.say("summing up");
    let report = Report::of(&records.good, asking.answers, &progress)?;
    drop(progress);
    let rejected = records.rejected.iter().map(ToString::to_string);
    for line in asking.incomplete.into_iter().chain(asking.absent.in_words()).chain(rejected) {
        session.note(line);
    }
    session.print(&report, |out| table::print(out, &report))?;
    Ok(Outcome::unless_rejected(records.rejected.len() as u64))
}

/// k and k′ each.
const PASSAGES: usize = 10;

/// All strategies at the same questions.
struct Asking<'a> {
    args: &'a Args,
    snapshot: &'a Snapshot,
    vectors: &'a Vectors,
    models: Models<'a>,
    /// One a strategy.
    answers: Vec<Answers>,
    incomplete: BTreeSet<String>,
    absent: Absent,
}

impl<'a> Asking<'a> {
    fn of(args: &'a Args, snapshot: &'a Snapshot, vectors: &'a Vectors, models: Models<'a>) -> Self {
        let answers = args.strategy.iter().map(|named| Answers {
            strategy: named.name.clone(),
            misses: args.misses.map(|_| Misses::default()),
            ..Answers::default()
        });
        let (incomplete, absent) = (BTreeSet::new(), Absent::default());
        Self { args, snapshot, vectors, models, answers: answers.collect(), incomplete, absent }
    }

    /// Puts one question to every strategy.
    fn ask(&mut self, record: &Record, progress: &Progress) -> Result<(), Failure> {
        let gold = Gold::of(self.snapshot, &record.gold)?;
        self.absent.add(&gold, record);
        let count = self.args.strategy.len();
        // What one strategy has read is warm for the next: each of them comes first in its turn.
        let first = self.answers.first().map_or(0, |answers| answers.figures.len());
        for place in (0..count).map(|turn| (first + turn) % count) {
            if progress.cancelled() {
                return Err(Failure::Interrupted);
            }
            let start = Instant::now();
            let mut context = self.context(record, place, PASSAGES)?;
            let latency = start.elapsed();
            self.incomplete.extend(context.incomplete.drain(..));
            let places = places(&gold, &context);
            let is_missed = |place: &Option<usize>| place.is_none_or(|place| place >= TOP);
            let missed = gold.iter().zip(&places).filter(|(_, place)| is_missed(place)).map(|(gold, _)| gold);
            let missed: Vec<&Gold> = missed.collect();
            let deeper = match self.args.misses {
                Some(examples) if !missed.is_empty() => {
                    Some((examples, self.context(record, place, DEPTH - PASSAGES)?))
                }
                _ => None,
            };
            let Some(answers) = self.answers.get_mut(place) else { continue };
            answers.latencies.push(latency);
            answers.figures.push(Figures::of(&places));
            if let (Some(misses), Some((examples, deeper))) = (&mut answers.misses, deeper) {
                misses.add(self.snapshot, record, &missed, &deeper, examples.into())?;
            }
        }
        Ok(())
    }

    fn context(&self, record: &Record, place: usize, neighbours: usize) -> Result<Context, Failure> {
        let strategy = self.args.strategy.get(place).map(|named| named.strategy).unwrap_or_default();
        let mut question = Question {
            strategy,
            seeds: PASSAGES,
            neighbours,
            tokens_max: usize::MAX,
            space: self.vectors.space.clone(),
            vector: self.vectors.rows.get(record.row).cloned(),
            vector_weight: self.args.vector_weight,
            ..Question::new(record.question.as_str())
        };
        Constant::set_all(&self.args.constant, &mut question);
        Ok(self.snapshot.ask(&question, self.models)?)
    }
}

/// Gold keys that the store does not have.
#[derive(Debug, Default)]
struct Absent {
    count: u64,
    /// Key, and id of its question.
    first: Option<(String, String)>,
}

impl Absent {
    fn add(&mut self, gold: &[Gold], record: &Record) {
        for gold in gold.iter().filter(|gold| matches!(gold, Gold::Absent(_))) {
            self.count += 1;
            self.first.get_or_insert_with(|| (gold.key().to_owned(), record.id.clone()));
        }
    }

    fn in_words(&self) -> Option<String> {
        let (key, question) = self.first.as_ref()?;
        let count = counted(
            self.count,
            "gold key is not in the store and counts as not found: ",
            "gold keys are not in the store and count as not found; the first is ",
        );
        Some(format!("{count}{key} of question {question}"))
    }
}
