//! The figures of an evaluation, as people read them.

use std::io::{self, Write};

use crate::command::eval::measures::{COMPARED, Means};
use crate::command::eval::misses::{Example, Misses};
use crate::command::eval::questions::FIELDS;
use crate::command::eval::report::{Measured, Other, Report};
use crate::command::render::layout::{Side, Table, counted, cut, decimal, grouped, width, wrap};
use crate::command::render::{name_or_key, rule};

/// Values of a field that are listed; all are in the JSON.
const GROUPS_MAX: usize = 24;

/// Prints a table of all strategies, their differences, the groups and what was missed.
///
/// # Errors
/// When the output cannot be written.
pub(super) fn print(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    writeln!(out, "{}, 10 + 10 passages each\n", counted(report.questions as u64, "question", "questions"))?;
    means(out, report)?;
    for other in &report.others {
        differences(out, other, &report.first.strategy)?;
    }
    for field in FIELDS {
        groups(out, report, field)?;
    }
    for measured in report.all() {
        if let Some(found) = &measured.misses {
            misses(out, &measured.strategy, found)?;
        }
    }
    Ok(())
}

type Row = (&'static str, fn(&Means) -> f64);
const ROWS: [Row; 8] = [
    ("recall@5", |means| means.recall.five),
    ("recall@10", |means| means.recall.ten),
    ("recall@20", |means| means.recall.twenty),
    ("all@5", |means| means.all.five),
    ("all@10", |means| means.all.ten),
    ("all@20", |means| means.all.twenty),
    ("mrr", |means| means.mrr),
    ("ndcg@10", |means| means.ndcg.ten),
];

fn means(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let mut heading = vec![("", Side::Left)];
    heading.extend(report.all().map(|measured| (measured.strategy.as_str(), Side::Right)));
    let mut table = Table::new(&heading);
    let mut add = |name: &str, of: &dyn Fn(&Measured) -> String| {
        table.add(std::iter::once(name.to_owned()).chain(report.all().map(of)));
    };
    for (name, of) in ROWS {
        add(name, &|measured| decimal(of(&measured.means), 3));
    }
    add("median ms", &|measured| format!("{:.1}", measured.latency_ms.median));
    add("p99 ms", &|measured| format!("{:.1}", measured.latency_ms.p99));
    table.print(out, 0)
}

fn differences(out: &mut dyn Write, other: &Other, first: &str) -> io::Result<()> {
    writeln!(out)?;
    rule(out, &format!("{} − {first}", other.measured.strategy))?;
    let names = ["difference", "95 % from", "to", "better", "same", "worse"];
    let mut heading = vec![("", Side::Left)];
    heading.extend(names.map(|name| (name, Side::Right)));
    let mut table = Table::new(&heading);
    for difference in &other.differences {
        let shares = [difference.mean, difference.low, difference.high].map(|value| decimal(value, 3));
        let counts = [difference.better, difference.same, difference.worse].map(|count| grouped(count as u64));
        table.add(std::iter::once(difference.measure.to_owned()).chain(shares).chain(counts));
    }
    table.print(out, 0)
}

/// The first and third of the compared measures, by the values of a field.
fn groups(out: &mut dyn Write, report: &Report, field: &str) -> io::Result<()> {
    let of = |measured: &'_ Measured| -> Vec<Vec<String>> {
        let groups = measured.groups.iter().filter(|group| group.field == field);
        let cells = groups.map(|group| [group.means.recall.five, group.means.all.ten].map(|value| decimal(value, 3)));
        cells.map(|cells| cells.to_vec()).collect()
    };
    let first: Vec<_> = report.first.groups.iter().filter(|group| group.field == field).collect();
    if first.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    rule(out, &format!("by {field}"))?;
    let [five, _, all, ..] = COMPARED;
    let names: Vec<String> =
        report.all().flat_map(|measured| [five, all].map(|name| format!("{name} {}", measured.strategy))).collect();
    let mut heading = vec![("", Side::Left), ("questions", Side::Right)];
    heading.extend(names.iter().map(|name| (name.as_str(), Side::Right)));
    let mut table = Table::new(&heading);
    let columns: Vec<Vec<Vec<String>>> = report.all().map(of).collect();
    for (place, group) in first.iter().enumerate().take(GROUPS_MAX) {
        let cells = columns.iter().filter_map(|groups| groups.get(place)).flatten().cloned();
        table.add([group.value.clone(), grouped(group.questions as u64)].into_iter().chain(cells));
    }
    table.print(out, 0)?;
    match first.len().checked_sub(GROUPS_MAX) {
        Some(more) if more > 0 => writeln!(out, "… {}", counted(more as u64, "more value", "more values")),
        _ => Ok(()),
    }
}

fn misses(out: &mut dyn Write, strategy: &str, misses: &Misses) -> io::Result<()> {
    writeln!(out)?;
    let keys = counted(misses.count, "gold key", "gold keys");
    let questions = counted(misses.questions, "question", "questions");
    rule(out, &format!("not among the first 10 of {strategy}: {keys} of {questions}"))?;
    for (cause, count) in &misses.causes {
        writeln!(out, "{:>6}  {}", grouped(*count), cause.words())?;
    }
    let ranked = counted(misses.ranked, "stands", "stand");
    writeln!(out, "{ranked} among the first 1,000 passages.")?;
    for cause in misses.causes.keys() {
        let mut examples = misses.examples.iter().filter(|example| example.cause == *cause).peekable();
        if examples.peek().is_some() {
            writeln!(out, "\n{}:", cause.words())?;
        }
        for example in examples {
            told(out, example)?;
        }
    }
    Ok(())
}

const INDENT: usize = 4;

fn told(out: &mut dyn Write, example: &Example) -> io::Result<()> {
    writeln!(out, "  {}", cut(&example.text, width() - 2))?;
    let place = match (example.rank, example.score, example.tenth) {
        (Some(rank), Some(score), Some(tenth)) => {
            format!(" · passage {}, {} (the tenth {})", grouped(rank as u64), decimal(score, 3), decimal(tenth, 3))
        }
        (Some(rank), ..) => format!(" · passage {}", grouped(rank as u64)),
        (None, ..) => String::new(),
    };
    let missed = format!("misses ‘{}’ · {}{place}", name_or_key(&example.title, &example.gold), example.gold);
    for line in wrap(&missed, width() - INDENT).into_iter().chain(wrap(&example.told, width() - INDENT)) {
        writeln!(out, "{:INDENT$}{line}", "")?;
    }
    Ok(())
}
