//! `hedgerow durability`: crashes, failing calls and flipped bits on a simulated disk, on the user's own machine.

use std::io::{self, Write};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use hedgerow_durability::flips::{FlipOptions, Tally, run as flip};
use hedgerow_durability::{Campaign, Report, Scenario};
use serde::Serialize;

use crate::command::render::layout::{counted, grouped};
use crate::command::render::{field, rule};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Check on this machine that no crash, failing call or flipped bit loses or changes anything
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Stores live on a disk that is simulated in memory: no file is touched. Any failure prints the line that replays it, and the \
exit code is 4. SECURITY.md says what is simulated and what must hold.

Examples:
  hedgerow durability --seconds 60
  hedgerow durability --scenario recovery --seed 7 --moment 1312")]
pub struct Args {
    /// How long scenarios happen, and flips as long again; planted bugs take some seconds more
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Seed of the first life
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One scenario alone: no flips, no planted bugs
    #[arg(long, value_parser = PossibleValuesParser::new(Scenario::ALL.map(Scenario::name)).map(|name| scenario(&name)))]
    scenario: Option<Scenario>,
    /// One moment of one life: what a failure says
    #[arg(long, requires = "scenario")]
    moment: Option<usize>,
}

fn scenario(name: &str) -> Scenario {
    Scenario::ALL.into_iter().find(|scenario| scenario.name() == name).unwrap_or(Scenario::Crash)
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Damaged`] where an invariant does not hold or a planted bug survives.
pub fn run(args: &Args, session: &Session) -> Result<Outcome, Failure> {
    let progress = session.progress("flipping bits");
    let Args { seed, scenario, moment, .. } = *args;
    let time = Duration::from_secs(args.seconds);
    // First, since they watch how much memory the process takes.
    let flips = scenario.is_none().then(|| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        flip(&FlipOptions { time: Some(time), seed, threads, ..FlipOptions::default() })
    });
    // That the checks find faults is a part of what they say.
    let hunting = scenario.is_none();
    let campaign = Campaign { time, seed, scenario, moment, hunting, ..Campaign::default() };
    progress.say("breaking");
    let report = campaign.run(&progress).map_err(Failure::Damaged)?;
    drop(progress);
    let total = flips.as_ref().map_or_else(Tally::default, |flips| flips.total);
    let table = Table {
        states: report.tried.states,
        planted: report.planted,
        caught: report.caught,
        wrong: report.wrong + total.wrong + total.hangs,
        panics: report.panics + total.panics,
        bits: total.bits,
        truncations: total.truncations,
        swaps: total.swaps,
        exchanges: total.exchanges,
        detected: total.detected,
        harmless: total.harmless,
        failures: report.failures.iter().map(|failure| format!("{}: {}", failure.replay(), failure.found)).collect(),
        flip_failures: flips.map(|flips| flips.failures).unwrap_or_default(),
        campaign: report,
    };
    session.print(&table, |out| table.human(out))?;
    let survivors = table.campaign.planted - table.campaign.caught;
    if table.wrong + table.panics + survivors == 0 && table.flip_failures.is_empty() {
        return Ok(Outcome::Done);
    }
    let wrong = counted(table.wrong, "invariant", "invariants");
    let panics = counted(table.panics, "panic", "panics");
    let (bugs, files) =
        (counted(survivors, "bug", "bugs"), counted(table.flip_failures.len() as u64, "change", "changes"));
    Err(Failure::Damaged(format!("{wrong} did not hold, {panics}, {bugs} not caught, {files} of files not borne")))
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Table {
    states: u64,
    planted: u64,
    caught: u64,
    wrong: u64,
    panics: u64,
    bits: u64,
    truncations: u64,
    swaps: u64,
    exchanges: u64,
    detected: u64,
    harmless: u64,
    failures: Vec<String>,
    flip_failures: Vec<String>,
    campaign: Report,
}

impl Table {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let Report { seconds, lives, crash_points, tried, planted, caught, .. } = &self.campaign;
        rule(out, &format!("durability · {seconds:.0} s"))?;
        field(
            out,
            "lives",
            &format!("{}, {}", grouped(*lives), counted(*crash_points, "crash point", "crash points")),
        )?;
        let again = format!("{} after a second crash, {} after a third", grouped(tried.double), grouped(tried.triple));
        field(out, "states", &format!("{} recovered and checked, {again}", grouped(tried.states)))?;
        let syncs = counted(tried.failed_syncs, "failed sync", "failed syncs");
        field(out, "faults", &format!("{} failing calls, {syncs} among them", grouped(tried.faults)))?;
        field(out, "readers", &format!("{} opened beside a writer", grouped(tried.readers)))?;
        if self.bits > 0 {
            let flips = (grouped(self.bits), grouped(self.truncations), grouped(self.swaps), grouped(self.exchanges));
            let (bits, cuts, swaps, exchanges) = flips;
            field(
                out,
                "files",
                &format!("{bits} bits flipped, {cuts} cut, {swaps} blocks swapped, {exchanges} exchanged"),
            )?;
            field(out, "", &format!("{} detected, {} harmless", grouped(self.detected), grouped(self.harmless)))?;
        }
        if *planted > 0 {
            field(out, "planted", &format!("{caught} of {planted} bugs caught"))?;
            for hunted in self.campaign.hunted.iter().filter(|hunted| hunted.caught.is_none()) {
                field(out, "", &format!("not caught: {}", hunted.bug))?;
            }
        }
        field(out, "wrong", &format!("{}; {}", grouped(self.wrong), counted(self.panics, "panic", "panics")))?;
        self.failures.iter().chain(&self.flip_failures).try_for_each(|failure| writeln!(out, "  ✗ {failure}"))
    }
}
