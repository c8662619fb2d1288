//! Bugs that are planted on purpose, one at a time, to see that the scenarios catch every one of them.

use crate::campaign::{alone, suffered};
use crate::check::Life;
use crate::disk::Disk;
use crate::scenarios::{Scenario, Tried};
use crate::sloppy::Sloppy;
use hedgerow::{Control, Planted, plant};
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Lives in which a bug may show itself; one that shows itself in none of them is not caught.
const LIVES: u64 = 12;
/// In so many of them misfortunes happen; in the others a bug shows itself without any, or not.
const LIVES_SUFFERED: usize = 3;
/// A bug that did not show itself in so many states is not caught.
const STATES_MAX: u64 = 20_000;
/// Moments of a life are tried in steps of this many, which has no factor in common with their number, or few.
const STRIDE: usize = 37;

/// A bug: in the engine, or in what it asks of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    Engine(Planted),
    Calls(Sloppy),
}

/// What became of a planted bug.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hunted {
    /// Its name.
    pub bug: String,
    /// The scenario that caught it, or `life` where no misfortune was needed; none where it was not caught.
    pub caught: Option<&'static str>,
    /// What was found.
    pub found: String,
    /// States that were recovered and checked until then.
    pub states: u64,
}

/// Plants every bug, one at a time, and lets scenarios happen until one of them catches it.
///
/// # Errors
/// What is wrong in a life without any bug.
pub(crate) fn hunt(seed: u64, threads: usize, control: &dyn Control) -> Result<Vec<Hunted>, String> {
    let engine = Planted::ALL.into_iter().map(Bug::Engine);
    let bugs: Vec<Bug> = engine.chain(Sloppy::ALL.into_iter().map(Bug::Calls)).collect();
    let lives = (seed..).take(usize::try_from(LIVES).unwrap_or(1));
    // Only what they say is needed; what is recorded of them is large.
    let without_record = |life: Life| Life { recorded: Vec::new(), ..life };
    let lives: Vec<Life> =
        lives.map(|seed| Life::undisturbed(seed, &Disk::default()).map(without_record)).collect::<Result<_, _>>()?;
    let next = AtomicUsize::new(0);
    let work = || {
        let mut hunted = Vec::new();
        loop {
            let position = next.fetch_add(1, Ordering::Relaxed);
            match bugs.get(position) {
                Some(bug) if !control.cancelled() => hunted.push((position, bug.hunt(&lives))),
                _ => return hunted,
            }
        }
    };
    let mut hunted = thread::scope(|scope| -> Result<Vec<(usize, Hunted)>, String> {
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(|| alone(work))).collect();
        let mut all = Vec::new();
        for thread in started {
            all.extend(thread.join().unwrap_or_else(|_| Err("the hunt panicked".into()))?);
        }
        Ok(all)
    })?;
    hunted.sort_by_key(|(position, _)| *position);
    Ok(hunted.into_iter().map(|(_, hunted)| hunted).collect())
}

impl Bug {
    fn name(self) -> String {
        match self {
            Self::Engine(bug) => format!("{bug:?}"),
            Self::Calls(bug) => format!("{bug:?}"),
        }
    }

    /// The scenario that it most likely shows itself in: it is tried first, which changes nothing but the time.
    fn hint(self) -> Scenario {
        match self {
            Self::Engine(Planted::AdoptUnverified | Planted::GenerationReused) => Scenario::Behind,
            Self::Engine(Planted::ChecksumIgnored) => Scenario::Rot,
            Self::Engine(Planted::EarlyUnlink | Planted::UnlinkBeforePublish) => Scenario::Reader,
            Self::Engine(Planted::PublishBeforeCommit | Planted::OnePhase | Planted::PoisonIgnored)
            | Self::Calls(Sloppy::SyncErrorIgnored) => Scenario::Sync,
            Self::Calls(Sloppy::NameReused) => Scenario::Names,
            Self::Engine(_) | Self::Calls(_) => Scenario::Crash,
        }
    }

    fn hunt(self, lives: &[Life]) -> Hunted {
        let mut tried = Tried::default();
        if let Self::Engine(bug) = self {
            plant(Some(bug));
        }
        let caught = self.hunt_in(lives, &mut tried);
        plant(None);
        let (caught, found) = caught.map_or((None, String::new()), |(scenario, found)| (Some(scenario), found));
        Hunted { bug: self.name(), caught, found, states: tried.states }
    }

    /// Lives all lives again with the bug in it, then lets everything happen to them.
    fn hunt_in(self, lives: &[Life], tried: &mut Tried) -> Option<(&'static str, String)> {
        let sloppy = match self {
            Self::Engine(_) => None,
            Self::Calls(sloppy) => Some(sloppy),
        };
        let mut suffering = Vec::new();
        for life in lives {
            match life.again(sloppy) {
                Err(found) => return Some(("life", found)),
                Ok(again) if suffering.len() < LIVES_SUFFERED => suffering.push(again),
                Ok(_) => {}
            }
        }
        let lives = suffering;
        let hinted = lives.iter().find_map(|life| happen(life, &[self.hint()], tried));
        hinted.or_else(|| lives.iter().find_map(|life| happen(life, &Scenario::ALL, tried)))
    }
}

/// Lets scenarios happen at all moments of a life, until one finds something.
fn happen(life: &Life, scenarios: &[Scenario], tried: &mut Tried) -> Option<(&'static str, String)> {
    let moments = life.moments();
    for moment in (0..STRIDE).flat_map(|first| (first..moments).step_by(STRIDE)) {
        if tried.states > STATES_MAX {
            return None;
        }
        for scenario in scenarios {
            if let Some((found, _)) = suffered(life, *scenario, moment, tried) {
                return Some((scenario.name(), found));
            }
        }
    }
    None
}
