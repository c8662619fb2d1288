//! `hedgerow edges`: similarity edges between chunks, exact and pruned.

pub mod memory;
mod parts;
pub mod signals;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use hedgerow::{Cap, EdgeRules, EdgesBuilt, PairKind, Shared, Signal, Snapshot};
use serde::Serialize;

use crate::command::bench::peak::Peak;
use crate::command::edges::parts::{Done, Parts};
use crate::command::edges::signals::SignalTold;
use crate::command::render::layout::{decimal, grouped};
use crate::command::render::{field, rule};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Build the similarity edges between chunks, in place of those that are there
#[derive(Debug, clap::Args)]
#[command(after_help = "\
All pairs of chunks are compared. There are three kinds of them: document-document (neither chunk is a table), table-table \
and table-document. A pair becomes an edge if it reaches the percentile of all pairs of its kind and is among the top m \
of either chunk, or of both, counted for each kind apart; shared entities join chunks beside that. Signals take the place of \
the vectors: a pair reaches the threshold of every one, or, with --weighted, that of their weighted mean. `expand` and `show` follow them, and `ask` where they add what a passage lacks. `ingest`, `import` and `rm` keep the edges in step afterwards, with the same settings. A build that is interrupted goes on when the same command is \
given again. With --memory, a build that does not fit takes longer, and its edges are the same. Machines that hold the same store can share a build: each computes shares, one merges them. \
With --signal a build has several passes over the pairs, each of which follows from the one before: give --tiles the files of all passes that are \
done with --merge, and it computes a share of the next one. Sharing the first is enough: what is left is done by the machine that merges.

Examples:
  hedgerow edges notes.hedgerow --percentile 99.5 --kind-percentile table-table=90 --top-m 8
  hedgerow edges notes.hedgerow --signal content=0.40 --signal rare-entities=0.35 --signal titles=0.25 --weighted
  hedgerow edges notes.hedgerow --percentile 0 --least 0.5 --nearest 32 --indexed
  hedgerow edges notes.hedgerow --memory 512M
  hedgerow edges notes.hedgerow --tiles 1/2 --to first.tiles
  hedgerow edges notes.hedgerow --merge first.tiles second.tiles
  hedgerow edges notes.hedgerow --signal content --signal words --tiles 1/2 --merge first.tiles second.tiles --to third.tiles")]
pub struct Args {
    /// Folder of the store
    pub store: PathBuf,
    /// Share of pairs that lie below the threshold, 0 to 100 with up to three decimals
    #[arg(long, value_name = "P", default_value = "95", value_parser = percentile)]
    percentile: u32,
    /// The same for one kind of pairs; may be given for each
    #[arg(long = "kind-percentile", value_name = "KIND=P", value_parser = kind_percentile)]
    kind_percentiles: Vec<(PairKind, u32)>,
    /// How many partners of each kind a chunk may choose
    #[arg(long, value_name = "M", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    top_m: u32,
    /// Whose choice a pair needs
    #[arg(long, value_enum, default_value_t = CapName::Either)]
    cap: CapName,
    /// Only pairs of which one is among so many nearest of the other are candidates [default: all pairs]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1024))]
    nearest: Option<u32>,
    /// Find the nearest by walks through an index, which finds nearly all of them: pairs are compared only for a percentile above 0
    #[arg(long, requires = "nearest")]
    indexed: bool,
    /// Similarity that a pair must have at least, beside the threshold
    #[arg(long, value_name = "S", value_parser = least, allow_negative_numbers = true)]
    least: Option<f32>,
    /// Entities that at most DF chunks mention join them whatever their similarity, each with M partners at most [M: 16]
    #[arg(long, value_name = "DF[:M]", value_parser = shared_entities)]
    shared_entities: Option<(u32, u32)>,
    /// What makes chunks similar in place of vectors alone: content, vectors:SPACE, entities, rare-entities, columns, words or
    /// titles; with a weight [1] and a percentile [95]; may be given often
    #[arg(long = "signal", value_name = "WHAT[=WEIGHT][@P]", value_parser = signals::signal)]
    signals: Vec<Signal>,
    /// Weigh signals instead of asking that all agree
    #[arg(long)]
    weighted: bool,
    /// Vector space [default: the only one]
    #[arg(long, value_name = "NAME")]
    space: Option<String>,
    /// Memory that the build may take, with K, M or G behind it, or in MiB; what does not fit is made again or put into a file
    /// [default: 2G, or what it needs at least]
    #[arg(long, value_name = "SIZE", value_parser = memory::memory)]
    memory: Option<u64>,
    /// A part of the build.
    #[command(flatten)]
    parts: Parts,
}

/// From so many seconds on the time is compared with what the processor could do.
const PEAK_FROM: f64 = 1.0;

/// Whose choice a pair needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CapName {
    /// That of either chunk
    Either,
    /// That of both
    Both,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let store = memory::open(&args.store, args.memory)?;
    let space = match &args.space {
        Some(space) => space.clone(),
        None => only_space(&store.snapshot())?,
    };
    let progress = session.progress("comparing all pairs");
    let start = Instant::now();
    let rules = args.rules();
    let done = args.parts.build(&store, &args.store, (&space, &rules), session, &progress)?;
    drop(progress);
    match done {
        Done::Share(written) => session.print(&written, |out| written.human(out))?,
        Done::Edges(built) => {
            let seconds = start.elapsed().as_secs_f64();
            let spaces = store.snapshot().spaces()?.to_vec();
            let dimensions = spaces.iter().find(|known| known.name == space).map_or(0, |known| known.dimensions);
            let mut built = Built::of(space, &rules, &built, seconds);
            // Of what takes no time a share tells nothing, and signals are compared otherwise.
            if seconds >= PEAK_FROM && rules.signals.is_empty() {
                built.measure_share(dimensions);
            }
            session.print(&built, |out| human(out, &built))?;
        }
    }
    Ok(Outcome::Done)
}

impl Args {
    fn rules(&self) -> EdgeRules {
        let of = |kind: PairKind| {
            self.kind_percentiles.iter().rev().find(|(other, _)| *other == kind).map(|(_, percentile)| *percentile)
        };
        let percentile = of(PairKind::DocumentDocument).unwrap_or(self.percentile);
        let (chunks_max, top_m) = self.shared_entities.unwrap_or_default();
        EdgeRules {
            cap: if self.cap == CapName::Both { Cap::Both } else { Cap::Either },
            nearest: self.nearest,
            indexed: self.indexed,
            least: self.least,
            shared: self.shared_entities.map(|_| Shared { chunks_max, top_m }),
            signals: self.signals.clone(),
            weighted: self.weighted,
            percentile_tables: Some(of(PairKind::TableTable).unwrap_or(self.percentile)),
            percentile_across: Some(of(PairKind::TableDocument).unwrap_or(self.percentile)),
            ..EdgeRules::new(percentile, self.top_m)
        }
    }
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Built {
    space: String,
    #[serde(flatten)]
    rules: RulesTold,
    kinds: Vec<OfKind>,
    seconds: f64,
    pairs_per_s: f64,
    /// Of the products of eight-bit numbers that the processor could compute meanwhile; none where it was not measured.
    share_of_peak: Option<f64>,
}

/// Rules as `--json` prints them, percentiles apart.
#[derive(Debug, Serialize)]
pub struct RulesTold {
    /// How many partners a chunk chooses.
    pub top_m: u32,
    /// Whose choice a pair needs.
    pub cap: &'static str,
    /// How many of the nearest are candidates.
    pub nearest: Option<u32>,
    /// Whether an index found them.
    pub indexed: bool,
    /// The least similarity.
    pub least: Option<f32>,
    /// Chunks that may mention an entity that joins.
    pub shared_chunks_max: Option<u32>,
    /// How many partners a chunk chooses for entities.
    pub shared_top_m: Option<u32>,
    /// Whether signals are weighted.
    pub weighted: bool,
}

impl RulesTold {
    /// What is told of rules.
    pub fn of(rules: &EdgeRules) -> Self {
        Self {
            top_m: rules.top_m,
            cap: if rules.cap == Cap::Both { "both" } else { "either" },
            nearest: rules.nearest,
            indexed: rules.indexed,
            least: rules.least,
            shared_chunks_max: rules.shared.map(|shared| shared.chunks_max),
            shared_top_m: rules.shared.map(|shared| shared.top_m),
            weighted: rules.weighted,
        }
    }
}

/// The edges of one kind of pairs.
#[derive(Debug, Serialize)]
struct OfKind {
    kind: &'static str,
    percentile: f64,
    chunks: u64,
    tables: u64,
    pairs: u64,
    threshold: f32,
    signals: Vec<SignalTold>,
    passed: u64,
    kept: u64,
    shared: u64,
    degree_mean: f64,
    degree_max: u32,
    components: u32,
    similarities: Spread,
    passes: u32,
    memory: Option<memory::Told>,
}

/// How similar pairs are.
#[derive(Debug, Serialize)]
struct Spread {
    low: f32,
    high: f32,
    counts: Vec<u64>,
    /// Whether `counts` are of all pairs or of a sample.
    of: &'static str,
}

impl Built {
    #[expect(clippy::cast_precision_loss, reason = "a figure to read; exact up to 2⁵³ pairs")]
    fn of(space: String, rules: &EdgeRules, built: &[EdgesBuilt], seconds: f64) -> Self {
        let pairs: u64 = built.iter().map(|built| built.report.pairs).sum();
        Self {
            space,
            rules: RulesTold::of(rules),
            kinds: built.iter().map(|built| OfKind::of(rules, built)).collect(),
            seconds,
            pairs_per_s: pairs as f64 / seconds,
            share_of_peak: None,
        }
    }

    /// Measures what this machine could do, for some tenths of a second.
    #[expect(clippy::cast_precision_loss, reason = "a figure to read")]
    fn measure_share(&mut self, dimensions: usize) {
        let mut peak = Peak::new();
        peak.sample();
        self.share_of_peak = Some(2.0 * self.pairs_per_s * dimensions as f64 / peak.median());
    }
}

impl OfKind {
    #[expect(clippy::cast_precision_loss, reason = "a figure to read; exact up to 2⁵³ edges")]
    fn of(rules: &EdgeRules, built: &EdgesBuilt) -> Self {
        let signals = rules.signals.iter().zip(&built.thresholds);
        let told = |(signal, threshold): (&Signal, &f32)| {
            SignalTold::of(signal, signal.what.takes_part(built.kind).then_some(*threshold), rules.weighted)
        };
        let report = &built.report;
        Self {
            kind: built.kind.name(),
            percentile: f64::from(report.percentile_thousandths) / 1000.0,
            chunks: report.rows,
            tables: report.tables,
            pairs: report.pairs,
            threshold: report.threshold,
            signals: signals.map(told).collect(),
            passed: report.passed,
            kept: report.kept,
            shared: report.shared,
            degree_mean: (report.kept * 2) as f64 / report.rows.max(1) as f64,
            degree_max: report.degree_max,
            components: report.components,
            similarities: Spread {
                low: built.similarities.low,
                high: built.similarities.high,
                counts: built.similarities.counts.clone(),
                of: if built.similarities.all { "all pairs" } else { "a sample" },
            },
            passes: built.similarities.passes,
            memory: built.memory.as_ref().map(memory::Told::of),
        }
    }
}

/// Reads a similarity.
fn least(text: &str) -> Result<f32, String> {
    let number = text.parse::<f32>().ok().filter(|number| (-1.0..=1.0).contains(number));
    number.ok_or_else(|| "expected a number from -1 to 1, such as 0.3".to_owned())
}

/// Reads how many chunks may mention an entity, and how many partners they may choose for it.
fn shared_entities(text: &str) -> Result<(u32, u32), String> {
    let (chunks, partners) = text.split_once(':').unwrap_or((text, "16"));
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| (1..=1024).contains(number));
    number(chunks).zip(number(partners)).ok_or_else(|| "expected DF or DF:M, each 1 to 1024, such as 20:8".to_owned())
}

/// Reads a kind of pairs and its percentile.
fn kind_percentile(text: &str) -> Result<(PairKind, u32), String> {
    let (kind, share) = text.split_once('=').unwrap_or((text, ""));
    let known = PairKind::ALL.into_iter().find(|known| known.name() == kind);
    let Some(kind) = known.filter(|_| text.contains('=')) else {
        let names = PairKind::ALL.map(PairKind::name).join(", ");
        return Err(format!("expected KIND=PERCENTILE with one of {names}"));
    };
    Ok((kind, percentile(share)?))
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
    field(out, "space", &built.space)?;
    for kind in &built.kinds {
        rule(out, kind.kind)?;
        for (name, value) in [
            ("chunks", chunks(kind)),
            ("pairs", grouped(kind.pairs)),
            ("threshold", threshold(kind, &built.rules)),
            ("passed", grouped(kind.passed)),
            ("kept", kept(kind, &built.rules)),
            ("degree", format!("{:.1} on average, {} at most", kind.degree_mean, grouped(kind.degree_max.into()))),
            ("components", grouped(kind.components.into())),
        ] {
            field(out, name, &value)?;
        }
        kind.signals.iter().try_for_each(|signal| signal.human(out, None))?;
        if kind.passes > 1 {
            let passes = kind.passes;
            field(
                out,
                "passes",
                &format!("{passes}: the sample misled, or too many similarities lie near the threshold"),
            )?;
        }
        if let Some(memory) = &kind.memory {
            field(out, "memory", &memory.sentence())?;
        }
        spread(out, kind)?;
    }
    rule(out, "all")?;
    let share = built.share_of_peak.map_or_else(String::new, |share| {
        format!(", {:.0} % of the products of eight-bit numbers that this processor could compute", share * 100.0)
    });
    field(out, "time", &format!("{:.1} s, {:.0} million pairs/s{share}", built.seconds, built.pairs_per_s / 1e6))
}

/// Draws how similar pairs are, a bar a range, and marks the one with the threshold.
fn spread(out: &mut dyn Write, kind: &OfKind) -> io::Result<()> {
    let Spread { low, high, counts, of } = &kind.similarities;
    let (most, pairs) = (counts.iter().copied().max().unwrap_or(0), counts.iter().sum::<u64>());
    if most == 0 {
        return Ok(());
    }
    field(out, "spread", &format!("similarities of {of}, by codes of eight bits: {} counted", grouped(pairs)))?;
    #[expect(clippy::cast_precision_loss, reason = "they are few")]
    let bound = |place: usize| low + (high - low) * place as f32 / counts.len() as f32;
    for (place, count) in counts.iter().enumerate() {
        // What is not nothing is seen.
        let length = count.saturating_mul(BAR_COLUMNS).div_ceil(most);
        let bar = "█".repeat(usize::try_from(length).unwrap_or(0));
        let has_threshold = (bound(place)..bound(place + 1)).contains(&kind.threshold);
        let mark = if has_threshold { " ← threshold" } else { "" };
        writeln!(out, "  {:>9} {bar} {}{mark}", decimal(bound(place), 3), grouped(*count))?;
    }
    Ok(())
}

/// Length of the longest bar.
const BAR_COLUMNS: u64 = 40;

fn threshold(kind: &OfKind, rules: &RulesTold) -> String {
    if !kind.signals.is_empty() && !rules.weighted {
        return "that of every signal".to_owned();
    }
    let of = if kind.signals.is_empty() { "" } else { " of the weighted mean" };
    format!("{}{of}: {} per cent of the pairs lie below it", decimal(kind.threshold, 4), kind.percentile)
}

fn kept(kind: &OfKind, rules: &RulesTold) -> String {
    let ends = if rules.cap == "both" { "both chunks" } else { "either chunk" };
    let by = if rules.indexed { " that an index found" } else { "" };
    let near = rules.nearest.map_or_else(String::new, |nearest| format!(", of the {nearest} nearest{by}"));
    let least = rules.least.map_or_else(String::new, |least| format!(", at least {}", decimal(least, 4)));
    let shared = match rules.shared_chunks_max {
        Some(_) => format!("; {} of them only for shared entities", grouped(kind.shared)),
        None => String::new(),
    };
    format!("{}: among the top {} of {ends}{near}{least}{shared}", grouped(kind.kept), rules.top_m)
}

fn chunks(kind: &OfKind) -> String {
    match kind.tables {
        0 => grouped(kind.chunks),
        tables => format!("{}, {} of them tables", grouped(kind.chunks), grouped(tables)),
    }
}

#[cfg(test)]
mod tests {
    use crate::command::edges::{kind_percentile, least, percentile, shared_entities};
    use hedgerow::PairKind;

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
    #[test]
    fn a_percentile_of_a_kind_names_the_kind() {
        assert_eq!(kind_percentile("table-table=99.5"), Ok((PairKind::TableTable, 99_500)));
        assert_eq!(kind_percentile("document-document=0"), Ok((PairKind::DocumentDocument, 0)));
        for text in ["", "table-table", "=5", "table=5", "table-table=", "table-table=101", "document-table=5"] {
            assert!(kind_percentile(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_least_similarity_and_shared_entities_are_bounded() {
        assert_eq!((least("0.3"), least("-1")), (Ok(0.3), Ok(-1.0)));
        assert_eq!((shared_entities("20"), shared_entities("20:8")), (Ok((20, 16)), Ok((20, 8))));
        assert!(["", "nan", "inf", "1.1", "x"].iter().all(|text| least(text).is_err()));
        assert!(
            ["", "0", "1025", "5:", "5:0", "5:1025", "-1", "5:5:5"].iter().all(|text| shared_entities(text).is_err())
        );
    }
}
