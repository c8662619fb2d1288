//! What must hold after every crash: the invariants of a recovered store.

use crate::answers::{answers, compare};
use crate::disk::{Disk, State};
use crate::life::{Model, Step, live, steps};
use crate::numbers::Numbers;
use crate::sloppy::{Sloppy, SloppyDisk};
use hedgerow::{Env, FileName, Merging, OpenError, Quiet, Snapshot, Store, verify};
use hedgerow_format::file::{FileKind, Whole};
use hedgerow_format::head::Head;
use hedgerow_format::manifest::Manifest;
use hedgerow_format::section::{SectionKind, Sections};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A life that went well: its steps, and what is said and held after each of them.
#[derive(Debug)]
pub struct Life {
    /// What the lives of a run are told apart by.
    pub seed: u64,
    pub(crate) steps: Vec<Step>,
    /// What a store says after creation and after each step.
    pub(crate) said: Vec<String>,
    /// What it holds then.
    pub(crate) held: Vec<Model>,
    /// The disk before every call that changes or syncs something, and how many states were acknowledged by then.
    pub(crate) recorded: Vec<(Arc<State>, u64)>,
    /// What its programs leave out.
    pub(crate) sloppy: Option<Sloppy>,
}

/// An environment whose names follow from a seed, and in which segments are merged and vectors indexed early.
fn environment(disk: &Disk, seed: u64, sloppy: Option<Sloppy>) -> Env {
    let disk = disk.clone();
    let mut env = match sloppy {
        Some(sloppy) => Env::seeded(Arc::new(SloppyDisk { disk, sloppy }), seed),
        None => Env::seeded(Arc::new(disk), seed),
    };
    env.merging = Merging { fanout: 3, ..Merging::default() };
    env.index_from = 2;
    env
}

impl Life {
    /// Lives the life of a seed on a sound disk, and checks by plain means that what is said is right.
    ///
    /// # Errors
    /// What is wrong even without a fault.
    pub fn undisturbed(seed: u64, disk: &Disk) -> Result<Self, String> {
        let steps = steps(seed);
        disk.record();
        let store = Store::open_or_create_in(environment(disk, seed, None)).map_err(|error| error.to_string())?;
        let (mut said, mut held) = (Vec::new(), vec![Model::new()]);
        let mut edges = false;
        for position in 0..=steps.len() {
            let snapshot = store.snapshot();
            let model = &held[position];
            compare(&snapshot, model, edges).map_err(|fault| format!("step {position}: {fault}"))?;
            said.push(answers(&snapshot).map_err(|error| error.to_string())?);
            disk.mark(position as u64 + 1);
            let Some(step) = steps.get(position) else { break };
            edges |= *step == Step::Edges && !model.is_empty();
            held.push(live(&store, model, step).map_err(|error| format!("step {position}: {error}"))?);
        }
        drop(store);
        Ok(Self { seed, steps, said, held, recorded: disk.recorded(), sloppy: None })
    }

    /// Lives the same life again with programs that leave something out, or have a fault put in.
    ///
    /// # Errors
    /// What is wrong even without a crash.
    pub(crate) fn again(&self, sloppy: Option<Sloppy>) -> Result<Self, String> {
        let disk = Disk::default();
        disk.record();
        let store =
            Store::open_or_create_in(environment(&disk, self.seed, sloppy)).map_err(|error| error.to_string())?;
        for (position, said) in self.said.iter().enumerate() {
            let found = answers(&store.snapshot()).map_err(|error| error.to_string())?;
            if found != *said {
                return Err(format!("step {position}: something else is said without any crash"));
            }
            disk.mark(position as u64 + 1);
            let Some(step) = self.steps.get(position) else { break };
            live(&store, &self.held[position], step).map_err(|error| format!("step {position}: {error}"))?;
        }
        drop(store);
        let Self { seed, steps, said, held, .. } = self;
        let (steps, said, held) = (steps.clone(), said.clone(), held.clone());
        Ok(Self { seed: *seed, steps, said, held, recorded: disk.recorded(), sloppy })
    }

    pub(crate) fn env(&self, disk: &Disk, seed: u64) -> Env {
        // Names that were given in the recorded life are not given again.
        environment(disk, Numbers(!seed).draw(), self.sloppy)
    }

    /// As [`Life::position`]; none where the store says that it cannot answer, because a call fails.
    pub(crate) fn position_if_said(
        &self,
        snapshot: &Snapshot,
        least: usize,
        most: usize,
    ) -> Result<Option<usize>, String> {
        if answers(snapshot).is_err() { Ok(None) } else { self.position(snapshot, least, most).map(Some) }
    }

    /// Position of what a snapshot says among the states that it may be in.
    pub(crate) fn position(&self, snapshot: &Snapshot, least: usize, most: usize) -> Result<usize, String> {
        let said = answers(snapshot).map_err(|error| error.to_string())?;
        // Several states may say the same: the latest counts, which is the one that asks for most.
        let found = (least..=most.min(self.steps.len())).rev().find(|position| self.said[*position] == said);
        found.ok_or_else(|| {
            let other = self.said.iter().position(|other| *other == said);
            let expected = self.said.get(most.min(self.steps.len())).map_or("", String::as_str);
            let lines = said.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
            let (found, expected) = lines.unwrap_or_default();
            format!(
                "it says what it said after step {other:?}, expected {least} to {most}: expected {expected}, found {found}"
            )
        })
    }

    /// Checks all invariants of what is left on a disk, after `acknowledged` states. Recovers, does the next step, and
    /// opens again.
    ///
    /// # Errors
    /// The invariant that does not hold, and how.
    pub(crate) fn check(&self, disk: &Disk, acknowledged: usize, seed: u64) -> Result<usize, String> {
        let (least, most) = (acknowledged.saturating_sub(1), acknowledged);
        let reader = match Snapshot::open_in(disk) {
            Ok(snapshot) => {
                let position = self.position(&snapshot, least, most).map_err(|fault| format!("I2, reader: {fault}"))?;
                Some((snapshot, position))
            }
            Err(OpenError::NotFound { .. }) if acknowledged == 0 => None,
            Err(error) => return Err(format!("I1: a reader cannot open: {error}")),
        };
        disk.mark(acknowledged as u64);
        let store = Store::open_or_create_in(self.env(disk, seed))
            .map_err(|error| format!("I1: it cannot be opened: {error}"))?;
        let found = self.position(&store.snapshot(), least, most).map_err(|fault| format!("I2, writer: {fault}"))?;
        if reader.as_ref().is_some_and(|(_, position)| *position > found) {
            return Err("I2: the writer gave up what a reader has seen".into());
        }
        disk.mark(found as u64 + 1);
        // Where open files are kept, the reader may hold what the sweep would remove.
        named_files(&disk.now(), !disk.is_windows())?;
        let verified = verify(&self.env(disk, seed), &Quiet).map_err(|error| format!("I3: {error}"))?;
        if !verified.problems.is_empty() {
            return Err(format!("I3: {}", verified.problems.join("; ")));
        }
        let next = self.go_on(&store, found)?;
        disk.mark(next as u64 + 1);
        if let Some((snapshot, position)) = reader {
            self.position(&snapshot, position, position).map_err(|fault| format!("I7, pinned: {fault}"))?;
        }
        drop(store);
        let again =
            Store::open_in(self.env(disk, !seed)).map_err(|error| format!("I5: it cannot be opened again: {error}"))?;
        named_files(&disk.now(), true)?;
        self.position(&again.snapshot(), next, next).map_err(|fault| format!("I5: {fault}"))
    }

    /// Does the next step, or the last again where there is none: which state is reached.
    fn go_on(&self, store: &Store, found: usize) -> Result<usize, String> {
        let Some(step) = self.steps.get(found) else {
            store.refresh(&Quiet).map_err(|error| format!("I5: it cannot be refreshed: {error}"))?;
            return Ok(found);
        };
        live(store, &self.held[found], step).map_err(|error| format!("I5: the next step fails: {error}"))?;
        self.position(&store.snapshot(), found + 1, found + 1).map_err(|fault| format!("I5, I8: {fault}"))
    }
}

/// I3 and I4: every file that the published generation names is there; after opening, no other is.
pub(crate) fn named_files(state: &State, swept: bool) -> Result<(), String> {
    let bytes = |name: FileName| state.bytes(&name).ok_or_else(|| format!("I3: {name} is not there"));
    let head = Head::from_bytes(bytes(FileName::Head)?).map_err(|error| format!("I3: HEAD: {error}"))?;
    let numbered = |kind, number, random| FileName::Numbered { kind, number, random };
    let name = numbered(FileKind::Manifest, head.generation, head.random);
    let file = Whole::open(FileKind::Manifest, bytes(name)?).map_err(|error| format!("I3: {name}: {error}"))?;
    let manifest = file.section(SectionKind::Manifest).and_then(Manifest::from_bytes);
    let manifest = manifest.map_err(|error| format!("I3: {name}: {error}"))?;
    let mut named = BTreeSet::from([name, FileName::Head, FileName::Catalog]);
    named.extend(manifest.segments.iter().map(|entry| FileName::of(FileKind::Segment, &entry.file)));
    for entry in &manifest.projections {
        named.extend(FileKind::from_number(entry.kind).map(|kind| FileName::of(kind, &entry.file)));
    }
    for name in &named {
        bytes(*name)?;
    }
    let left = state.names().filter(|name| !named.contains(name) && *name != FileName::Lock);
    match left.into_iter().next().filter(|_| swept) {
        Some(name) => Err(format!("I4: {name} is left over")),
        None => Ok(()),
    }
}
