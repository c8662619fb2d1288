//! `hedgerow edges`: similarity edges between chunks, exact and pruned.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use hedgerow::{EdgeReport, EdgeRules, Snapshot, Store};
use serde::Serialize;

use crate::command::render::field;
use crate::command::render::layout::{counted, decimal, grouped};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Build the similarity edges between chunks, in place of those that are there
#[derive(Debug, clap::Args)]
#[command(after_help = "\
All pairs of chunks are compared. A pair becomes an edge if it reaches the percentile of all pairs and is among the \
top m of either chunk. `expand` and `show` follow them, and `ask` where they add what a passage lacks. `ingest`, `import` and `rm` keep the edges in step afterwards, with the same settings.

Example:
  hedgerow edges notes.hedgerow --percentile 99.5 --top-m 8")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// Share of pairs that lie below the threshold, 0 to 100 with up to three decimals
    #[arg(long, value_name = "P", default_value = "95", value_parser = percentile)]
    percentile: u32,
    /// How many partners each chunk may choose
    #[arg(long, value_name = "M", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    top_m: u32,
    /// Vector space [default: the only one]
    #[arg(long, value_name = "NAME")]
    space: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let store = Store::open(&args.store)?;
    let space = match &args.space {
        Some(space) => space.clone(),
        None => only_space(&store.snapshot())?,
    };
    let progress = session.progress("comparing all pairs");
    let start = Instant::now();
    let rules = EdgeRules { percentile: args.percentile, top_m: args.top_m };
    let report = store.build_edges(&space, rules, &progress)?;
    drop(progress);
    let built = Built::of(space, &report, start.elapsed().as_secs_f64());
    session.print(&built, |out| human(out, &built))?;
    Ok(Outcome::Done)
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Built {
    space: String,
    percentile: f64,
    top_m: u32,
    chunks: u64,
    pairs: u64,
    threshold: f32,
    passed: u64,
    kept: u64,
    degree_mean: f64,
    degree_max: u32,
    components: u32,
    seconds: f64,
}

impl Built {
    #[expect(clippy::cast_precision_loss, reason = "a figure to read; exact up to 2⁵³ edges")]
    fn of(space: String, report: &EdgeReport, seconds: f64) -> Built {
        Built {
            space,
            percentile: f64::from(report.percentile_thousandths) / 1000.0,
            top_m: report.top_m,
            chunks: report.rows,
            pairs: report.pairs,
            threshold: report.threshold,
            passed: report.passed,
            kept: report.kept,
            degree_mean: (report.kept * 2) as f64 / report.rows.max(1) as f64,
            degree_max: report.degree_max,
            components: report.components,
            seconds,
        }
    }
}

/// Reads a percentile exactly, in thousandths of a per cent.
///
/// # Errors
/// What was expected.
pub fn percentile(text: &str) -> Result<u32, String> {
    let fault = || "expected a number from 0 to 100 with at most three decimals, such as 99.5".to_owned();
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    let has_digits = !whole.is_empty() || !decimals.is_empty();
    if !has_digits || whole.len() > 3 || decimals.len() > 3 || !is_number(whole) || !is_number(decimals) {
        return Err(fault());
    }
    let thousandths: u32 = format!("{whole}{decimals:0<3}").parse().map_err(|_| fault())?;
    if thousandths > 100_000 { Err(fault()) } else { Ok(thousandths) }
}

/// The space of a store that has one.
///
/// # Errors
/// [`Failure`] where it has none or several.
pub fn only_space(snapshot: &Snapshot) -> Result<String, Failure> {
    let mut spaces: Vec<String> = snapshot.spaces()?.iter().map(|space| space.name.clone()).collect();
    match spaces.len() {
        0 => Err(Failure::NotFound(
            "this store has no vectors: ingest with --embedder static, or import some with --vectors".to_owned(),
        )),
        1 => Ok(spaces.remove(0)),
        _ => Err(Failure::Usage(format!(
            "this store has several vector spaces; name one by --space: {}",
            spaces.join(", ")
        ))),
    }
}

fn human(out: &mut dyn Write, built: &Built) -> io::Result<()> {
    let percentile = format!("{} per cent of the pairs lie below it", built.percentile);
    for (name, value) in [
        ("space", format!("{}, {}", built.space, counted(built.chunks, "chunk", "chunks"))),
        ("pairs", grouped(built.pairs)),
        ("threshold", format!("{}: {percentile}", decimal(built.threshold, 4))),
        ("passed", grouped(built.passed)),
        ("kept", format!("{}: among the top {} of either chunk", grouped(built.kept), built.top_m)),
        ("degree", format!("{:.1} on average, {} at most", built.degree_mean, grouped(built.degree_max.into()))),
        ("components", grouped(built.components.into())),
        ("time", format!("{:.1} s", built.seconds)),
    ] {
        field(out, name, &value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::command::edges::percentile;

    #[test]
    fn a_percentile_is_read_exactly() {
        for (text, thousandths) in [
            ("95", 95_000),
            ("99.5", 99_500),
            ("99.999", 99_999),
            ("0", 0),
            ("100.000", 100_000),
            (".5", 500),
            ("7.", 7000),
        ] {
            assert_eq!(percentile(text), Ok(thousandths), "{text}");
        }
        for text in ["", ".", "-1", "+5", "100.001", "101", "9.1234", "1e2", "NaN", "95%", "0095"] {
            assert!(percentile(text).is_err(), "{text}");
        }
    }
}
