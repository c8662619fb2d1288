//! The figures of an evaluation, as `--json` prints them.

use std::collections::BTreeMap;
use std::time::Duration;

use hedgerow::{Cancelled, Control};
use serde::Serialize;

use crate::command::eval::bootstrap::{Interval, intervals};
use crate::command::eval::measures::{COMPARED, Figures, Means, mean};
use crate::command::eval::misses::Misses;
use crate::command::eval::questions::{FIELDS, Record};

/// What one strategy made of the questions.
#[derive(Debug, Default)]
pub(super) struct Answers {
    pub strategy: String,
    /// One a question.
    pub figures: Vec<Figures>,
    /// One a question.
    pub latencies: Vec<Duration>,
    pub misses: Option<Misses>,
}

/// All figures. Those of the first strategy stand by themselves, the others beside their difference to it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub questions: usize,
    #[serde(flatten)]
    pub first: Measured,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Other>,
}

/// The figures of a strategy.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    pub strategy: String,
    #[serde(flatten)]
    pub means: Means,
    pub latency_ms: Latency,
    pub groups: Vec<Group>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misses: Option<Misses>,
}

/// Milliseconds of a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Latency {
    pub median: f64,
    pub p99: f64,
}

/// The questions that have the same value of a field.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Group {
    pub field: &'static str,
    pub value: String,
    pub questions: usize,
    #[serde(flatten)]
    pub means: Means,
}

/// A strategy beside the first one.
#[derive(Debug, Serialize)]
pub(super) struct Other {
    #[serde(flatten)]
    pub measured: Measured,
    pub differences: Vec<Difference>,
}

/// This strategy minus the first one in one measure.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Difference {
    pub measure: &'static str,
    pub mean: f64,
    /// Ends of the 95 % interval.
    pub low: f64,
    pub high: f64,
    /// Questions.
    pub better: usize,
    pub same: usize,
    pub worse: usize,
}

impl Report {
    /// Sums up; the first of the answers is what the others are compared with.
    ///
    /// # Errors
    /// When the work was cancelled.
    pub(super) fn of(records: &[Record], answers: Vec<Answers>, control: &dyn Control) -> Result<Self, Cancelled> {
        let mut answers = answers.into_iter();
        let first = answers.next().unwrap_or_default();
        let mut others = Vec::new();
        for other in answers {
            let differences = differences(&first.figures, &other.figures, control)?;
            others.push(Other { differences, measured: Measured::of(records, other) });
        }
        Ok(Report { questions: records.len(), first: Measured::of(records, first), others })
    }

    /// The figures of every strategy, in the order in which they were named.
    pub(super) fn all(&self) -> impl Iterator<Item = &Measured> + Clone {
        std::iter::once(&self.first).chain(self.others.iter().map(|other| &other.measured))
    }
}

impl Measured {
    fn of(records: &[Record], answers: Answers) -> Self {
        let Answers { strategy, figures, mut latencies, misses } = answers;
        latencies.sort_unstable();
        let [median, p99] = [50, 99].map(|percent| percentile(&latencies, percent).as_secs_f64() * 1e3);
        let latency_ms = Latency { median, p99 };
        Measured { strategy, means: Means::of(&figures), latency_ms, groups: groups(records, &figures), misses }
    }
}

/// By field, then by value.
fn groups(records: &[Record], figures: &[Figures]) -> Vec<Group> {
    let mut by: BTreeMap<(usize, String), Vec<Figures>> = BTreeMap::new();
    for (record, figures) in records.iter().zip(figures.iter().copied()) {
        for (field, value) in record.fields().into_iter().enumerate() {
            if let Some(value) = value {
                by.entry((field, value)).or_default().push(figures);
            }
        }
    }
    let group = |((field, value), figures): ((usize, String), Vec<Figures>)| Group {
        field: FIELDS.get(field).copied().unwrap_or_default(),
        value,
        questions: figures.len(),
        means: Means::of(&figures),
    };
    by.into_iter().map(group).collect()
}

fn differences(first: &[Figures], other: &[Figures], control: &dyn Control) -> Result<Vec<Difference>, Cancelled> {
    let minus = |(first, other): (&Figures, &Figures)| {
        let (first, mut other) = (first.compared(), other.compared());
        other.iter_mut().zip(first).for_each(|(other, first)| *other -= first);
        other
    };
    let rows: Vec<[f64; COMPARED.len()]> = first.iter().zip(other).map(minus).collect();
    let intervals = intervals(&rows, control)?;
    let difference = |(place, (measure, interval)): (usize, (&'static str, Interval))| {
        let column = || rows.iter().filter_map(move |row| row.get(place).copied());
        let Interval { low, high } = interval;
        let better = column().filter(|value| *value > 0.0).count();
        let worse = column().filter(|value| *value < 0.0).count();
        Difference { measure, mean: mean(column()), low, high, better, same: rows.len() - better - worse, worse }
    };
    Ok(COMPARED.into_iter().zip(intervals).enumerate().map(difference).collect())
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

    use hedgerow::Quiet;

    use crate::command::eval::measures::Figures;
    use crate::command::eval::questions::Record;
    use crate::command::eval::report::{Answers, Report, percentile};

    fn answers(strategy: &str, places: &[[Option<usize>; 2]]) -> Answers {
        let figures = places.iter().map(|places| Figures::of(places)).collect();
        let latencies = vec![Duration::from_millis(2); places.len()];
        Answers { strategy: strategy.to_owned(), figures, latencies, misses: None }
    }

    fn records(lines: &str) -> Vec<Record> {
        lines.lines().map(|line| Record::from_json(line, 0).unwrap()).collect()
    }

    #[test]
    fn the_report_of_one_strategy_begins_with_its_means() {
        let records = records(concat!(
            "{\"id\":\"1\",\"question\":\"x\",\"gold\":[\"a\",\"b\"],\"type\":\"hop\"}\n",
            "{\"id\":\"2\",\"question\":\"y\",\"gold\":[\"q\",\"x\"],\"type\":\"hop\",\"src\":\"s\"}\n",
        ));
        let graph = answers("graph", &[[Some(1), Some(5)], [None, Some(0)]]);
        let report = Report::of(&records, vec![graph], &Quiet).unwrap();
        let text = serde_json::to_string(&report).unwrap();
        let means =
            r#""recall":{"5":0.5,"10":0.75,"20":0.75},"all":{"5":0.0,"10":0.5,"20":0.5},"mrr":0.75,"ndcg":{"10":"#;
        assert!(text.starts_with(&format!("{{\"questions\":2,\"strategy\":\"graph\",{means}")), "{text}");
        assert!(
            text.contains(r#""latency_ms":{"median":2.0,"p99":2.0},"groups":[{"field":"type","value":"hop","#),
            "{text}"
        );
        assert!(text.contains(r#"{"field":"src","value":"s","questions":1,"recall":{"5":0.5,"#), "{text}");
        let empty = Report::of(&[], vec![answers("flat", &[])], &Quiet).unwrap();
        assert_eq!((empty.questions, empty.first.means.mrr), (0, 0.0));
    }

    #[test]
    fn another_strategy_is_told_by_its_difference_to_the_first() {
        let line = "{\"id\":\"1\",\"question\":\"x\",\"gold\":[\"a\",\"b\"]}\n";
        let records = records(&line.repeat(3));
        let flat = answers("flat", &[[Some(0), None], [Some(0), Some(1)], [Some(3), None]]);
        let graph = answers("graph", &[[Some(0), Some(1)], [Some(1), Some(2)], [Some(3), None]]);
        let report = Report::of(&records, vec![flat, graph], &Quiet).unwrap();
        let [graph] = report.others.as_slice() else { panic!("one other") };
        let [recall, _, _, mrr, _] = graph.differences.as_slice() else { panic!("five measures") };
        assert_eq!((recall.measure, recall.better, recall.same, recall.worse), ("recall@5", 1, 2, 0));
        assert!((recall.mean - 0.5 / 3.0).abs() < 1e-12 && recall.low <= recall.mean && recall.mean <= recall.high);
        assert_eq!((mrr.measure, mrr.better, mrr.same, mrr.worse), ("mrr", 0, 2, 1));
        assert_eq!(report.all().map(|measured| measured.strategy.as_str()).collect::<Vec<_>>(), ["flat", "graph"]);
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let sorted: Vec<Duration> = (1..=4).map(Duration::from_millis).collect();
        let found = [50, 99].map(|percent| percentile(&sorted, percent).as_millis());
        assert_eq!(found, [2, 4]);
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }
}
