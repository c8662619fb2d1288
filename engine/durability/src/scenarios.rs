//! What can happen to a store: crashes, crashes while recovering from crashes, failing calls, readers beside a writer.

use crate::check::Life;
use crate::disk::{Disk, Fault, FaultKind, State};
use crate::life::live;
use crate::numbers::Numbers;
use crate::playback::Playback;
use hedgerow::{Snapshot, Store};
use serde::Serialize;
use std::sync::Arc;

/// A kind of misfortune.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scenario {
    /// The power is cut before a call, any one of a whole life, creation and compaction included.
    Crash,
    /// Likewise, and again while recovering and going on, up to three times in all.
    Recovery,
    /// Likewise, while names are being changed: of every few changes of names that were not synced, any may survive.
    Names,
    /// A call fails, once or for ever; then the process ends or the power is cut.
    Fault,
    /// A call fails once, the caller goes on, and later the power is cut.
    Onward,
    /// A sync fails; a new process goes on with what is in memory; later the power is cut.
    Sync,
    /// A reader opens while a writer commits and sweeps; calls of a reader fail; snapshots are kept while a writer goes
    /// on, also where the system keeps open files.
    Reader,
    /// A bit of any file flips.
    Rot,
    /// The catalog is an older copy than what is published, and what is published may be damaged.
    Behind,
    /// The power is cut while a store is copied into a pack, and while that is restored.
    Backup,
    /// The catalog or what is published is lost or damaged, and the power is cut while it is repaired.
    Repair,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Crash,
        Self::Recovery,
        Self::Names,
        Self::Fault,
        Self::Onward,
        Self::Sync,
        Self::Reader,
        Self::Rot,
        Self::Behind,
        Self::Backup,
        Self::Repair,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Recovery => "recovery",
            Self::Names => "names",
            Self::Fault => "fault",
            Self::Onward => "onward",
            Self::Sync => "sync",
            Self::Reader => "reader",
            Self::Rot => "rot",
            Self::Behind => "behind",
            Self::Backup => "backup",
            Self::Repair => "repair",
        }
    }
}

/// What was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// States that were recovered and checked.
    pub states: u64,
    /// Those after a second crash.
    pub double: u64,
    /// Those after a third.
    pub triple: u64,
    /// Calls that were made to fail.
    pub faults: u64,
    /// Syncs among them.
    pub failed_syncs: u64,
    /// Readers beside a working writer.
    pub readers: u64,
    /// Bits that were flipped.
    pub bits: u64,
}

impl Tried {
    /// Adds what another part of the run tried.
    pub fn add(&mut self, other: Self) {
        self.states += other.states;
        self.double += other.double;
        self.triple += other.triple;
        self.faults += other.faults;
        self.failed_syncs += other.failed_syncs;
        self.readers += other.readers;
        self.bits += other.bits;
    }
}

pub(crate) fn acknowledged(mark: u64) -> usize {
    usize::try_from(mark).unwrap_or(usize::MAX)
}

impl Life {
    /// Moments at which something can happen.
    #[must_use]
    pub fn moments(&self) -> usize {
        self.recorded.len()
    }

    /// Lets a scenario happen at a moment. What is drawn follows from the life's seed and the moment.
    ///
    /// # Errors
    /// The invariant that does not hold afterwards.
    pub fn suffer(&self, scenario: Scenario, moment: usize, tried: &mut Tried) -> Result<(), String> {
        let seed = self.seed.wrapping_mul(0x1_0000).wrapping_add(moment as u64);
        match scenario {
            Scenario::Crash => self.crash(moment, seed, tried),
            Scenario::Recovery => self.recovery(moment, seed, tried),
            Scenario::Names => self.names(moment, seed, tried),
            Scenario::Fault => self.fault(moment, seed, tried),
            Scenario::Onward => self.carry_on(moment, seed, FaultKind::ALL[Numbers(seed).below(6)], tried),
            Scenario::Sync => self.carry_on(moment, seed, FaultKind::Sync, tried),
            Scenario::Reader => {
                self.reader(moment, seed, tried)?;
                self.reader_faults(moment, seed, tried)?;
                self.pinned(moment, seed, tried)
            }
            Scenario::Rot => self.rot(moment, seed, tried),
            Scenario::Behind => self.behind(moment, seed, tried),
            Scenario::Backup => self.copied(moment, seed, tried),
            Scenario::Repair => self.repaired(moment, seed, tried),
        }
    }

    fn crash(&self, moment: usize, seed: u64, tried: &mut Tried) -> Result<(), String> {
        let (state, mark) = &self.recorded[moment];
        // The lowest bits choose what survives: eight in a row try all of that.
        for variant in 0..8 {
            tried.states += 1;
            let checked = self.check(&state.cut(seed * 8 + variant), acknowledged(*mark), seed + variant);
            checked.map_err(|found| format!("variant {variant}: {found}"))?;
        }
        self.check(&state.killed(), acknowledged(*mark), seed).map_err(|found| format!("a kill: {found}"))?;
        tried.states += 1;
        Ok(())
    }

    fn recovery(&self, moment: usize, seed: u64, tried: &mut Tried) -> Result<(), String> {
        let (state, mark) = &self.recorded[moment];
        let mut numbers = Numbers(seed);
        let mut disk = if numbers.chance(30) { state.killed() } else { state.cut(numbers.draw()) };
        let mut known = acknowledged(*mark);
        for depth in 0..3 {
            disk.record();
            self.check(&disk, known, seed + depth).map_err(|fault| format!("at depth {depth}: {fault}"))?;
            tried.states += 1;
            tried.double += u64::from(depth == 1);
            tried.triple += u64::from(depth == 2);
            let recorded = disk.recorded();
            let (state, mark) = &recorded[numbers.below(recorded.len())];
            (disk, known) = (state.cut(numbers.draw()), acknowledged(*mark));
        }
        Ok(())
    }

    /// A crash; one while recovering that leaves a new name whose bytes are lost; and one before a folder is synced in
    /// which something was renamed, with every choice of what survives.
    fn names(&self, moment: usize, seed: u64, tried: &mut Tried) -> Result<(), String> {
        let mut numbers = Numbers(seed);
        let (state, mark) = &self.recorded[moment];
        let recorded = self.recovered(&state.cut(numbers.draw()), *mark, seed, tried)?;
        let unsynced: Vec<_> = recorded.iter().filter(|(state, _)| state.unsynced_names() > 0).collect();
        let Some((state, mark)) = unsynced.get(numbers.below(unsynced.len())) else { return Ok(()) };
        tried.double += 1;
        let recorded = self.recovered(&state.cut_names(u32::MAX), *mark, seed + 1, tried)?;
        for (state, mark) in recorded.iter().filter(|(state, _)| state.has_unsynced_rename()) {
            for kept in 0..1 << state.unsynced_names().min(4) {
                (tried.states, tried.triple) = (tried.states + 1, tried.triple + 1);
                self.check(&state.cut_names(kept), acknowledged(*mark), seed + 2)
                    .map_err(|found| format!("of the names that were not synced {kept:#b} survive: {found}"))?;
            }
        }
        Ok(())
    }

    /// Checks what is left on a disk; gives the states while that was done.
    fn recovered(
        &self,
        disk: &Disk,
        mark: u64,
        seed: u64,
        tried: &mut Tried,
    ) -> Result<Vec<(Arc<State>, u64)>, String> {
        disk.record();
        tried.states += 1;
        self.check(disk, acknowledged(mark), seed)?;
        Ok(disk.recorded())
    }

    /// The disk and the number of acknowledged states at the beginning of the step in which a moment lies.
    pub(crate) fn beginning(&self, moment: usize) -> (Disk, usize) {
        let mark = self.recorded[moment].1;
        let first = self.recorded.iter().position(|(_, other)| *other == mark).unwrap_or(moment);
        (self.recorded[first].0.killed(), acknowledged(mark))
    }

    /// Opens what is on a disk and does the next step; says how many states are acknowledged then.
    fn go_on_from(&self, disk: &Disk, known: usize, seed: u64) -> Result<usize, String> {
        let Ok(store) = Store::open_or_create_in(self.env(disk, seed)) else { return Ok(known) };
        // What was opened was published, and so acknowledged.
        let Some(found) = self.position_if_said(&store.snapshot(), known.saturating_sub(1), known)? else {
            return Ok(known);
        };
        let done = self.steps.get(found).is_some_and(|step| live(&store, &self.held[found], step).is_ok());
        Ok(found + 1 + usize::from(done))
    }

    fn fault(&self, moment: usize, seed: u64, tried: &mut Tried) -> Result<(), String> {
        let mut numbers = Numbers(seed);
        let (disk, known) = self.beginning(moment);
        // Opening takes up to about 120 calls.
        let calls = self.changes_of_a_step(moment) * 2 + 120;
        let fault = Fault {
            at: numbers.below(calls) as u64,
            for_ever: numbers.chance(50),
            error: FaultKind::ALL[numbers.below(6)],
        };
        disk.fail(fault);
        let named = |what: &str, found: String| format!("{fault:?}, then {what}: {found}");
        let known = self.go_on_from(&disk, known, seed).map_err(|found| named("the next step", found))?;
        tried.faults += 1;
        tried.failed_syncs += u64::from(disk.failed_a_sync());
        tried.states += 2;
        self.check(&disk.now().killed(), known, seed + 1).map_err(|found| named("a new process", found))?;
        self.check(&disk.now().cut(seed), known, seed + 1).map_err(|found| named("a crash", found))?;
        Ok(())
    }

    /// Calls of a step that change or sync something; there are fewer others.
    pub(crate) fn changes_of_a_step(&self, moment: usize) -> usize {
        let mark = self.recorded[moment].1;
        self.recorded.iter().filter(|(_, other)| *other == mark).count()
    }

    fn reader(&self, moment: usize, seed: u64, tried: &mut Tried) -> Result<(), String> {
        let first = self.recorded.iter().position(|(_, mark)| *mark > 0).unwrap_or(0);
        let playback = Playback::new(&self.recorded, moment.max(first), seed);
        let least = playback.acknowledged().saturating_sub(1);
        let snapshot = Snapshot::open_in(&playback).map_err(|error| format!("S7: a reader cannot open: {error}"))?;
        tried.readers += 1;
        self.position(&snapshot, least, playback.acknowledged()).map(|_| ()).map_err(|fault| format!("S7: {fault}"))
    }
}
