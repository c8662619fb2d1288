//! A caller whose calls fail and who goes on in the same process: what it is told is true, and what it holds stays.

use crate::check::Life;
use crate::disk::{Disk, Fault, FaultKind};
use crate::life::{Step, live};
use crate::numbers::Numbers;
use crate::scenarios::{Tried, acknowledged};
use hedgerow::{CommitError, OpenError, Snapshot, Store};

/// Steps that a caller tries after the one in which a call failed.
const STEPS_ONWARD: usize = 2;

/// A caller in the middle of a life.
struct Caller<'l> {
    life: &'l Life,
    disk: Disk,
    /// The state that the store says it is in.
    at: usize,
    /// The state that a new process may find beyond it, where the outcome is unknown.
    most: usize,
}

/// How a step went.
enum Went {
    On,
    Refused,
    Poisoned,
}

impl Life {
    /// A call of a step fails, once or for ever. Errors before the commit point change nothing, and the same step works
    /// when the disk does; after one at the commit point nothing is written until the store is opened again. Then a new
    /// process goes on with what is in memory, and the power is cut at a moment after that.
    pub(crate) fn carry_on(&self, moment: usize, seed: u64, error: FaultKind, tried: &mut Tried) -> Result<(), String> {
        let mut numbers = Numbers(seed);
        let (disk, known) = self.beginning(moment);
        let store = self.opened(&disk, seed)?;
        let at = self.position(&store.snapshot(), known.saturating_sub(1), known)?;
        let pinned = store.snapshot();
        let fault = Fault {
            at: numbers.below(self.changes_of_a_step(moment) * 3 / 2) as u64,
            for_ever: numbers.chance(30),
            error,
        };
        disk.fail(fault);
        tried.faults += 1;
        let mut caller = Caller { life: self, disk, at, most: at };
        let went = caller.outcome(&store, fault);
        tried.failed_syncs += u64::from(caller.disk.failed_a_sync());
        self.position(&pinned, at, at).map_err(|found| format!("{fault:?}: I7, pinned: {found}"))?;
        drop((store, pinned));
        went.and_then(|()| caller.new_process(seed, &mut numbers, tried)).map_err(|found| format!("{fault:?}: {found}"))
    }

    pub(crate) fn opened(&self, disk: &Disk, seed: u64) -> Result<Store, String> {
        Store::open_or_create_in(self.env(disk, seed)).map_err(|error| format!("I1: it cannot be opened: {error}"))
    }

    /// A reader's calls fail one after another, each once: it says what is true, or that it cannot.
    pub(crate) fn reader_faults(&self, moment: usize, seed: u64, tried: &mut Tried) -> Result<(), String> {
        let (state, mark) = &self.recorded[moment];
        let (error, known) = (FaultKind::ALL[Numbers(seed).below(FaultKind::ALL.len())], acknowledged(*mark));
        let disk = state.killed();
        for at in 0.. {
            let fault = Fault { at, for_ever: seed.is_multiple_of(2), error };
            disk.fail(fault);
            let said =
                Snapshot::open_in(&disk).map(|snapshot| self.position(&snapshot, known.saturating_sub(1), known));
            tried.faults += 1;
            match said {
                Ok(Err(found)) => return Err(format!("{fault:?}: S7: {found}")),
                Err(OpenError::Damaged(damage)) => return Err(format!("{fault:?}: taken for damage: {damage}")),
                Err(OpenError::NotFound { .. }) if known > 0 => return Err(format!("{fault:?}: taken for no store")),
                _ => {}
            }
            if disk.calls() <= at {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Caller<'_> {
    /// Tries steps while a call fails, and once more when the disk works again.
    fn outcome(&mut self, store: &Store, fault: Fault) -> Result<(), String> {
        let last = (self.at + STEPS_ONWARD).min(self.life.steps.len());
        let mut mended = false;
        while self.at < last {
            match self.step(store)? {
                Went::On => {}
                Went::Poisoned => return self.stays_poisoned(store),
                Went::Refused if mended => return Err("the step fails though the disk works again".into()),
                Went::Refused => {
                    // A fault that lasts shows itself again; then the disk is mended.
                    mended = !fault.for_ever || matches!(self.step(store)?, Went::Refused);
                    self.disk.mend();
                }
            }
        }
        self.disk.mend();
        Ok(())
    }

    /// Tries the next step; the store then says what it should.
    fn step(&mut self, store: &Store) -> Result<Went, String> {
        let Some(step) = self.life.steps.get(self.at) else { return Ok(Went::On) };
        let went = match live(store, &self.life.held[self.at], step) {
            Ok(_) => {
                self.at += 1;
                self.most = self.at;
                Went::On
            }
            Err(CommitError::Unknown { .. }) => {
                self.most = self.at + 1;
                Went::Poisoned
            }
            // Merging after the step before may have had an unknown outcome.
            Err(CommitError::Poisoned { .. }) => Went::Poisoned,
            Err(CommitError::Storage(_)) => Went::Refused,
            Err(error) => return Err(format!("{step:?} gives another error: {error}")),
        };
        if matches!(went, Went::Refused) {
            self.nothing_changed().map_err(|found| format!("a reader, after {step:?} was refused: {found}"))?;
        }
        let said = self.life.position(&store.snapshot(), self.at, self.at);
        said.map(|_| went).map_err(|found| format!("the same process, after {step:?}: {found}"))
    }

    /// A step that was refused is seen by no reader either.
    fn nothing_changed(&self) -> Result<(), String> {
        let reader =
            Snapshot::open_in(&self.disk.now().killed()).map_err(|error| format!("it cannot open: {error}"))?;
        self.life.position(&reader, self.at, self.at).map(|_| ())
    }

    /// After an unknown outcome nothing is written until the store is opened again, also when the disk works.
    fn stays_poisoned(&self, store: &Store) -> Result<(), String> {
        self.disk.mend();
        let later = self.life.steps.iter().enumerate().skip(self.at);
        for (position, step) in later.filter(|(_, step)| matches!(step, Step::Commit(_) | Step::Compact)) {
            match live(store, &self.life.held[position], step) {
                Err(CommitError::Poisoned { .. }) => {}
                Ok(_) => return Err(format!("after an unknown outcome {step:?} is done all the same")),
                Err(error) => return Err(format!("after an unknown outcome {step:?} gives another error: {error}")),
            }
        }
        Ok(())
    }

    /// A new process opens what is in memory, goes on, and the power is cut.
    fn new_process(self, seed: u64, numbers: &mut Numbers, tried: &mut Tried) -> Result<(), String> {
        let Self { life, disk, at, most } = self;
        let disk = disk.now().killed();
        disk.record();
        disk.mark(at as u64 + 1);
        let store = life.opened(&disk, seed + 1)?;
        let mut found =
            life.position(&store.snapshot(), at, most).map_err(|found| format!("a new process: {found}"))?;
        disk.mark(found as u64 + 1);
        for _ in 0..STEPS_ONWARD {
            let Some(step) = life.steps.get(found) else { break };
            live(&store, &life.held[found], step).map_err(|error| format!("a new process cannot go on: {error}"))?;
            found += 1;
            disk.mark(found as u64 + 1);
        }
        drop(store);
        let recorded = disk.recorded();
        let (state, mark) = &recorded[numbers.below(recorded.len())];
        tried.states += 1;
        let checked = life.check(&state.cut(numbers.draw()), acknowledged(*mark), seed + 2);
        checked.map(|_| ()).map_err(|found| format!("a new process, then a crash: {found}"))
    }
}
