//! A campaign: scenarios on lives of many seeds, on all threads, until the time is over; every failure can be replayed.

use crate::check::Life;
use crate::disk::Disk;
use crate::hunt::{Hunted, hunt};
use crate::scenarios::{Scenario, Tried};
use hedgerow::Control;
use serde::Serialize;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The moments of a life are dealt out in so many parts, so that a short campaign sees all of it.
const PARTS: u64 = 16;
/// Lives that are kept at once; threads are never far apart.
const LIVES_KEPT: usize = 4;
/// Failures that are kept in full.
const FAILURES_KEPT: usize = 20;

/// What is to be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Campaign {
    /// How long; what is replayed by [`Campaign::moment`] is done whole.
    pub time: Duration,
    /// Seed of the first life; the next ones have the numbers after it.
    pub seed: u64,
    /// One scenario; all of them where none is given.
    pub scenario: Option<Scenario>,
    /// One moment of one life: what a failure says.
    pub moment: Option<usize>,
    /// Whether planted bugs are hunted as well, which takes as long as it takes.
    pub hunting: bool,
    /// Threads; one for each core where it is 0.
    pub threads: usize,
}

impl Default for Campaign {
    fn default() -> Self {
        Self { time: Duration::from_mins(1), seed: 0, scenario: None, moment: None, hunting: true, threads: 0 }
    }
}

/// What a campaign did and found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// How long it took.
    pub seconds: f64,
    /// Lives that were lived.
    pub lives: u64,
    /// Moments at which something happened.
    pub crash_points: u64,
    /// What was tried, over all scenarios.
    #[serde(flatten)]
    pub tried: Tried,
    /// What was tried, and found, by scenario.
    pub scenarios: Vec<ScenarioReport>,
    /// Bugs that were planted.
    pub planted: u64,
    /// Those that were caught.
    pub caught: u64,
    /// Each of them, and how it was caught.
    pub hunted: Vec<Hunted>,
    /// Invariants that did not hold.
    pub wrong: u64,
    /// Panics.
    pub panics: u64,
    /// The first failures.
    pub failures: Vec<Failure>,
}

/// What was tried in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ScenarioReport {
    /// Which one.
    pub scenario: Scenario,
    /// What was tried.
    #[serde(flatten)]
    pub tried: Tried,
    /// Invariants that did not hold.
    pub wrong: u64,
    /// Panics.
    pub panics: u64,
}

/// An invariant that did not hold, or a panic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// In which scenario.
    pub scenario: Scenario,
    /// In the life of which seed.
    pub seed: u64,
    /// At which moment of it.
    pub moment: usize,
    /// What was expected and what was found.
    pub found: String,
    /// Whether it was a panic.
    pub panicked: bool,
}

impl Failure {
    /// What the command `hedgerow` is given to see it again.
    #[must_use]
    pub fn replay(&self) -> String {
        format!("hedgerow durability --scenario {} --seed {} --moment {}", self.scenario.name(), self.seed, self.moment)
    }
}

/// What the threads of a campaign share.
struct Run<'c> {
    campaign: &'c Campaign,
    control: &'c dyn Control,
    begun: Instant,
    next: AtomicU64,
    lives: Mutex<Vec<Arc<Life>>>,
    report: Mutex<Report>,
}

impl Campaign {
    /// Runs the campaign. Simulated disks are in memory: no file is touched. A cancellation ends it early.
    ///
    /// # Errors
    /// What is wrong in a life without any misfortune.
    pub fn run(&self, control: &dyn Control) -> Result<Report, String> {
        let scenarios = Scenario::ALL.into_iter().filter(|scenario| self.scenario.is_none_or(|only| only == *scenario));
        let row = |scenario| ScenarioReport { scenario, tried: Tried::default(), wrong: 0, panics: 0 };
        let report = Report { scenarios: scenarios.map(row).collect(), ..Report::default() };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = if self.threads == 0 { cores } else { self.threads };
        let threads = if self.moment.is_some() { 1 } else { threads };
        let run = Run {
            campaign: self,
            control,
            begun: Instant::now(),
            next: AtomicU64::new(0),
            lives: Mutex::default(),
            report: Mutex::new(report),
        };
        let outcomes: Vec<Result<(), String>> = thread::scope(|scope| {
            let started: Vec<_> = (0..threads).map(|_| scope.spawn(|| alone(|| run.work()).flatten())).collect();
            started.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| Err(message(&*panic)))).collect()
        });
        outcomes.into_iter().collect::<Result<(), String>>()?;
        let mut report = run.report.into_inner().unwrap_or_else(PoisonError::into_inner);
        if self.hunting && self.moment.is_none() {
            report.hunt(self.seed, threads, control)?;
        }
        report.seconds = run.begun.elapsed().as_secs_f64();
        Ok(report)
    }
}

/// Does work on a pool of this one thread, so that what it does depends on nothing but its seed, and faults that are
/// planted in this thread are in all of it.
pub(crate) fn alone<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().map_err(|error| error.to_string())?;
    Ok(pool.install(work))
}

impl Run<'_> {
    fn over(&self) -> bool {
        self.control.cancelled() || (self.campaign.moment.is_none() && self.begun.elapsed() >= self.campaign.time)
    }

    /// Takes parts of lives until the time is over.
    fn work(&self) -> Result<(), String> {
        while !self.over() {
            let part = self.next.fetch_add(1, Ordering::Relaxed);
            let life = self.life(self.campaign.seed.wrapping_add(part / PARTS))?;
            if let Some(moment) = self.campaign.moment {
                self.suffer(&life, moment.min(life.moments().saturating_sub(1)));
                return Ok(());
            }
            let first = usize::try_from(part % PARTS).unwrap_or(0);
            let step = usize::try_from(PARTS).unwrap_or(1);
            for moment in (first..life.moments()).step_by(step) {
                self.suffer(&life, moment);
                if self.over() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The life of a seed, lived once.
    fn life(&self, seed: u64) -> Result<Arc<Life>, String> {
        let mut lives = locked(&self.lives);
        if let Some(life) = lives.iter().find(|life| life.seed == seed) {
            return Ok(Arc::clone(life));
        }
        let life = Life::undisturbed(seed, &Disk::default());
        let life =
            Arc::new(life.map_err(|found| format!("without any misfortune, in the life of seed {seed}: {found}"))?);
        if lives.len() == LIVES_KEPT {
            lives.remove(0);
        }
        lives.push(Arc::clone(&life));
        locked(&self.report).lives += 1;
        Ok(life)
    }

    /// Lets every scenario happen at a moment.
    fn suffer(&self, life: &Life, moment: usize) {
        let scenarios: Vec<Scenario> = locked(&self.report).scenarios.iter().map(|row| row.scenario).collect();
        for (row, scenario) in scenarios.into_iter().enumerate() {
            if self.over() {
                return;
            }
            let mut tried = Tried::default();
            let suffered = suffered(life, scenario, moment, &mut tried);
            let mut report = locked(&self.report);
            report.crash_points += 1;
            report.tried.add(tried);
            report.scenarios[row].tried.add(tried);
            if let Some((found, panicked)) = suffered {
                report.fail(row, Failure { scenario, seed: life.seed, moment, found, panicked });
            }
        }
        let done = self.begun.elapsed().as_secs();
        self.control.advance(done, self.campaign.time.as_secs());
    }
}

/// What a scenario at a moment finds, and whether that is a panic.
pub(crate) fn suffered(life: &Life, scenario: Scenario, moment: usize, tried: &mut Tried) -> Option<(String, bool)> {
    match catch_unwind(AssertUnwindSafe(|| life.suffer(scenario, moment, tried))) {
        Ok(Ok(())) => None,
        Ok(Err(found)) => Some((found, false)),
        Err(panic) => Some((message(&*panic), true)),
    }
}

impl Report {
    /// Whether everything held, and every planted bug was caught.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.wrong == 0 && self.panics == 0 && self.caught == self.planted
    }

    fn fail(&mut self, row: usize, failure: Failure) {
        let counted = u64::from(failure.panicked);
        self.panics += counted;
        self.wrong += 1 - counted;
        self.scenarios[row].panics += counted;
        self.scenarios[row].wrong += 1 - counted;
        if self.failures.len() < FAILURES_KEPT {
            self.failures.push(failure);
        }
    }

    fn hunt(&mut self, seed: u64, threads: usize, control: &dyn Control) -> Result<(), String> {
        self.hunted = hunt(seed, threads, control)?;
        self.planted = self.hunted.len() as u64;
        self.caught = self.hunted.iter().filter(|hunted| hunted.caught.is_some()).count() as u64;
        Ok(())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("a panic: {}", text.unwrap_or_else(|| "without words".into()))
}
