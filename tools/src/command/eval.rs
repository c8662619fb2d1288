//! `hedgerow eval`: how much of what answers known questions is found, and how fast.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hedgerow::{Context, Control, Models, Question, Snapshot, Space, Strategy};
use serde::{Deserialize, Serialize};

use crate::command::ask::{strategies, weight};
use crate::command::render::layout::{counted, decimal};
use crate::embed::StaticTable;
use crate::extract::Patterns;
use crate::failure::{Failure, Outcome};
use crate::read::lines::{LineError, Lines, json_fault};
use crate::read::npy::Matrix;
use crate::session::{RejectedRecord, Session};

/// Measure recall over questions whose answers are known
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each line of QUESTIONS is {\"id\", \"question\", \"gold\": [document keys]}; 10 + 10 passages are asked for.

Example:
  hedgerow eval wiki.hedgerow questions.jsonl --strategy flat")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// Questions, one JSON object a line
    questions: PathBuf,
    /// flat: by terms and vectors; graph: then along definition links
    #[arg(long, default_value = "graph", value_parser = strategies())]
    strategy: Strategy,
    /// The questions' own vectors, a row a question
    #[arg(long, value_name = "F.npy")]
    query_vectors: Option<PathBuf>,
    /// Vector space [default: the one of the built-in embedder, or the one that the query vectors fit]
    #[arg(long, value_name = "NAME")]
    space: Option<String>,
    /// How much vectors count beside terms, 0 to 1 [default: .2 for the built-in table, .4 for imported vectors]
    #[arg(long, value_name = "W", value_parser = weight)]
    vector_weight: Option<f32>,
}

/// Runs the command. Questions are asked one after the other, so that the latency is that of one reader alone.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let snapshot = session.open(&args.store)?;
    let records = Records::read(&args.questions)?;
    let vectors = Vectors::of(args, &snapshot, records.lines)?;
    let embedder = StaticTable::default();
    let models = Models { embedder: Some(&embedder), extractor: Some(&Patterns) };
    let progress = session.progress("questions");
    let mut tally = Tally::default();
    let mut incomplete = BTreeSet::new();
    for (record, done) in records.good.iter().zip(0..) {
        if progress.cancelled() {
            return Err(Failure::Interrupted);
        }
        progress.advance(done, records.good.len() as u64);
        let question = Question {
            strategy: args.strategy,
            seeds: PASSAGES,
            neighbours: PASSAGES,
            tokens_max: usize::MAX,
            space: vectors.space.clone(),
            vector: vectors.rows.get(record.row).cloned(),
            vector_weight: args.vector_weight,
            ..Question::new(record.question.as_str())
        };
        let start = Instant::now();
        let mut context = snapshot.ask(&question, models)?;
        tally.latencies.push(start.elapsed());
        incomplete.append(&mut context.incomplete.drain(..).collect());
        tally.add(&record.gold, &ranked_documents(&context));
        for key in &record.gold {
            if snapshot.find_document(key)?.is_none() {
                tally.miss(key, &record.id);
            }
        }
    }
    drop(progress);
    let missing = tally.missing_in_words();
    let rejected = records.rejected.iter().map(ToString::to_string);
    for line in incomplete.into_iter().chain(missing).chain(rejected) {
        session.note(line);
    }
    let report = tally.report(args.strategy);
    session.print(&report, |out| human(out, &report, &tally.latencies))?;
    Ok(Outcome::unless_rejected(records.rejected.len() as u64))
}

/// k and k′ each.
const PASSAGES: usize = 10;
const CUTS: [usize; 3] = [5, 10, 20];

/// What `--json` prints.
#[derive(Debug, PartialEq, Serialize)]
struct Report {
    questions: usize,
    strategy: &'static str,
    recall: AtCuts,
    all: AtCuts,
    mrr: f64,
}

/// A measure over the first 5, 10 and 20 documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct AtCuts {
    #[serde(rename = "5")]
    five: f64,
    #[serde(rename = "10")]
    ten: f64,
    #[serde(rename = "20")]
    twenty: f64,
}

impl AtCuts {
    fn of(values: [f64; 3]) -> Self {
        let [five, ten, twenty] = values;
        AtCuts { five, ten, twenty }
    }
}

/// A line of the file.
#[derive(Debug, Deserialize)]
struct Record {
    id: String,
    question: String,
    gold: Vec<String>,
    /// Position among all lines, refused ones included: the row of its vector.
    #[serde(skip)]
    row: usize,
}

/// A file of questions, as far as it can be read.
#[derive(Debug, Default)]
struct Records {
    good: Vec<Record>,
    rejected: Vec<RejectedRecord>,
    lines: usize,
}

impl Records {
    fn read(path: &Path) -> Result<Self, Failure> {
        let lines = Lines::open(path).map_err(Failure::io("read", path))?;
        let mut records = Records::default();
        for (line, row) in lines.zip(0..) {
            records.lines += 1;
            let (line, parsed) = match line {
                Ok(line) => (line.number, Record::from_json(&line.text, row)),
                Err(LineError::Io { source, .. }) => {
                    return Err(Failure::io("read", path)(source));
                }
                Err(error @ (LineError::TooLong { line } | LineError::NotText { line, .. })) => {
                    (line, Err(error.to_string()))
                }
            };
            match parsed {
                Ok(record) => records.good.push(record),
                Err(reason) => {
                    records.rejected.push(RejectedRecord {
                        file: path.display().to_string(),
                        line: Some(line),
                        reason,
                    });
                }
            }
        }
        Ok(records)
    }
}

impl Record {
    fn from_json(line: &str, row: usize) -> Result<Self, String> {
        let record: Record = serde_json::from_str(line).map_err(|error| {
            let found = json_fault(&error);
            format!("expected {{\"id\", \"question\", \"gold\": [document keys]}}, found {found}")
        })?;
        if record.gold.is_empty() {
            return Err("\"gold\" names no document; give it at least one key".to_owned());
        }
        Ok(Record { row, ..record })
    }
}

/// The questions' own vectors and the space that they belong to.
#[derive(Debug, Default)]
struct Vectors {
    space: Option<String>,
    rows: Vec<Vec<f32>>,
}

impl Vectors {
    fn of(args: &Args, snapshot: &Snapshot, questions: usize) -> Result<Self, Failure> {
        let mut space = args.space.clone();
        let Some(path) = &args.query_vectors else {
            let rows = Vec::new();
            return Ok(Vectors { space, rows });
        };
        let matrix = Matrix::open(path)?;
        if matrix.row_count() < questions as u64 {
            let found = counted(matrix.row_count(), "row", "rows");
            let questions = counted(questions as u64, "question", "questions");
            return Err(Failure::Usage(format!(
                "{} has {found} for {questions}; each question needs its own",
                path.display()
            )));
        }
        if space.is_none() {
            let columns = matrix.columns();
            let spaces = snapshot.spaces()?.iter();
            let fitting: Vec<&Space> = spaces.filter(|space| space.dimensions == columns).collect();
            space = match fitting.as_slice() {
                [one] => Some(one.name.clone()),
                _ => {
                    return Err(Failure::Usage(format!(
                        "{} of {columns} components in this store; name one with --space",
                        counted(fitting.len() as u64, "space", "spaces")
                    )));
                }
            };
        }
        let mut rows = Vec::with_capacity(questions);
        for (row, number) in matrix.rows().take(questions).zip(1..) {
            let row = row?;
            if let Err(fault) = hedgerow::normalise(&mut row.clone()) {
                return Err(Failure::Usage(format!("{}, row {number}: {fault}", path.display())));
            }
            rows.push(row);
        }
        Ok(Vectors { space, rows })
    }
}

/// Keys of the documents of an answer, by their best chunk.
fn ranked_documents(context: &Context) -> Vec<&str> {
    let mut seen = HashSet::new();
    let documents = context.passages.iter().map(|passage| passage.document.as_str());
    documents.filter(|document| seen.insert(*document)).collect()
}

/// Sums over questions.
#[derive(Debug, Default)]
struct Tally {
    latencies: Vec<Duration>,
    recall: [f64; 3],
    all: [f64; 3],
    reciprocal_rank: f64,
    missing: u64,
    /// Key of a document and id of its question.
    first_missing: Option<(String, String)>,
}

#[expect(clippy::cast_precision_loss, reason = "counts of questions and documents, far below 2^53")]
impl Tally {
    fn add(&mut self, gold: &[String], ranked: &[&str]) {
        let gold: BTreeSet<&str> = gold.iter().map(String::as_str).collect();
        for (position, cut) in CUTS.into_iter().enumerate() {
            let found = ranked.iter().take(cut).filter(|key| gold.contains(*key)).count();
            self.recall[position] += found as f64 / gold.len().max(1) as f64;
            self.all[position] += if found == gold.len() { 1.0 } else { 0.0 };
        }
        if let Some(position) = ranked.iter().position(|key| gold.contains(key)) {
            self.reciprocal_rank += 1.0 / (position + 1) as f64;
        }
    }

    fn miss(&mut self, key: &str, question: &str) {
        self.missing += 1;
        self.first_missing.get_or_insert_with(|| (key.to_owned(), question.to_owned()));
    }

    fn missing_in_words(&self) -> Option<String> {
        let (key, question) = self.first_missing.as_ref()?;
        let missing = counted(
            self.missing,
            "gold key is not in the store and counts as not found: ",
            "gold keys are not in the store and count as not found; the first is ",
        );
        Some(format!("{missing}{key} of question {question}"))
    }

    fn report(&self, strategy: Strategy) -> Report {
        let questions = self.latencies.len();
        let mean = |sum: f64| sum / questions.max(1) as f64;
        Report {
            questions,
            strategy: strategy.name(),
            recall: AtCuts::of(self.recall.map(mean)),
            all: AtCuts::of(self.all.map(mean)),
            mrr: mean(self.reciprocal_rank),
        }
    }
}

fn human(out: &mut dyn Write, report: &Report, latencies: &[Duration]) -> io::Result<()> {
    let questions = counted(report.questions as u64, "question", "questions");
    writeln!(out, "{questions} · {}\n", report.strategy)?;
    writeln!(out, "              @5     @10     @20")?;
    for (name, AtCuts { five, ten, twenty }) in [("recall", report.recall), ("all gold", report.all)] {
        let [five, ten, twenty] = [five, ten, twenty].map(|value| decimal(value, 3));
        writeln!(out, "{name:<9}{five:>7} {ten:>7} {twenty:>7}")?;
    }
    writeln!(out, "{:<9}{:>7}\n", "mrr", decimal(report.mrr, 3))?;
    if latencies.is_empty() {
        return Ok(());
    }
    let mut latencies = latencies.to_vec();
    latencies.sort_unstable();
    let [median, slow] = [50, 99].map(|percent| percentile(&latencies, percent));
    writeln!(out, "latency  median {:.1} ms, p99 {:.1} ms", median.as_secs_f64() * 1e3, slow.as_secs_f64() * 1e3)
}

/// The smallest value that so many per cent of all do not exceed; zero where there is none.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let place = (sorted.len() * percent).div_ceil(100);
    let value = sorted.get(place.saturating_sub(1));
    value.copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hedgerow::Strategy;

    use crate::command::eval::{Record, Tally, percentile};

    #[test]
    fn the_report_has_the_measures_of_the_contract_and_no_others() {
        let mut tally = Tally::default();
        let ranked = ["x", "a", "y", "z", "w", "b"];
        for gold in [["a", "b", "a"], ["q", "q", "x"]] {
            tally.add(&gold.map(str::to_owned), &ranked);
            tally.latencies.push(Duration::ZERO);
        }
        let report = serde_json::to_string(&tally.report(Strategy::Graph)).unwrap();
        assert_eq!(
            report,
            r#"{"questions":2,"strategy":"graph","recall":{"5":0.5,"10":0.75,"20":0.75},"#.to_owned()
                + r#""all":{"5":0.0,"10":0.5,"20":0.5},"mrr":0.75}"#
        );
        let empty = Tally::default().report(Strategy::Flat);
        assert_eq!((empty.questions, empty.mrr), (0, 0.0));
    }

    #[test]
    fn a_malformed_question_says_why() {
        for (line, reason) in [
            ("[1", "expected {"),
            (r#"{"id": "1", "question": "x"}"#, "found missing field `gold` (column 28)"),
            (r#"{"id": "1", "question": "x", "gold": []}"#, "\"gold\" names no document"),
            (
                r#"{"id": "1", "question": 7, "gold": ["a"]}"#,
                "found invalid type: integer `7`, expected a string (column 25)",
            ),
        ] {
            let error = Record::from_json(line, 0).unwrap_err();
            assert!(error.contains(reason), "{line}: {error}");
        }
        let record = Record::from_json(r#"{"id":"1","question":"x","gold":["a"],"src":"y"}"#, 7);
        assert_eq!(record.unwrap().row, 7);
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let sorted: Vec<Duration> = (1..=4).map(Duration::from_millis).collect();
        let found = [50, 99].map(|percent| percentile(&sorted, percent).as_millis());
        assert_eq!(found, [2, 4]);
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }
}
