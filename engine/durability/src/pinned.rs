//! Snapshots that are kept while a writer goes on, also on systems that remove no open file; and catalogs that are behind.

use crate::check::{Life, named_files};
use crate::disk::Disk;
use crate::life::live;
use crate::numbers::Numbers;
use crate::scenarios::{Tried, acknowledged};
use hedgerow::{FileName, Snapshot, Store};
use hedgerow_format::file::FileKind;
use hedgerow_format::head::Head;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Steps that a writer goes on for while snapshots are kept.
const STEPS_KEPT: usize = 4;

impl Life {
    /// A writer goes on from the beginning of a step while every snapshot is kept. None of them ever says anything else,
    /// and when they are let go, no file is left that nothing names. The power is cut at a moment in between.
    pub(crate) fn pinned(&self, moment: usize, seed: u64, tried: &mut Tried) -> Result<(), String> {
        let mut numbers = Numbers(seed);
        let (mut disk, known) = self.beginning(moment);
        if numbers.chance(50) {
            disk = disk.as_windows();
        }
        disk.record();
        disk.mark(known as u64);
        let store = self.opened(&disk, seed)?;
        let first = self.position(&store.snapshot(), known.saturating_sub(1), known)?;
        let mut kept: Vec<(Arc<Snapshot>, usize)> = Vec::new();
        for at in first..=first + STEPS_KEPT {
            disk.mark(at as u64 + 1);
            let reader = Snapshot::open_in(&disk).map_err(|error| format!("S7: a reader cannot open: {error}"))?;
            kept.extend([(store.snapshot(), at), (Arc::new(reader), at)]);
            let Some(step) = self.steps.get(at) else { break };
            live(&store, &self.held[at], step).map_err(|error| format!("S7: {step:?} fails: {error}"))?;
        }
        for (snapshot, position) in &kept {
            self.position(snapshot, *position, *position).map_err(|found| format!("I7, pinned: {found}"))?;
        }
        tried.readers += kept.len() as u64;
        drop(kept);
        drop(store);
        let recorded = disk.recorded();
        drop(self.opened(&disk, seed + 1)?);
        named_files(&disk.now(), true).map_err(|found| format!("after all readers: {found}"))?;
        let (state, mark) = &recorded[numbers.below(recorded.len())];
        tried.states += 1;
        let checked = self.check(&state.cut(numbers.draw()), acknowledged(*mark), seed + 2);
        checked.map(|_| ()).map_err(|found| format!("snapshots are kept, then a crash: {found}"))
    }

    /// The catalog is put back to an older copy. What is published whole is made true again; where it is damaged, what is
    /// opened is an older state that is whole, and the number of the damaged generation is not given again.
    pub(crate) fn behind(&self, moment: usize, seed: u64, tried: &mut Tried) -> Result<(), String> {
        let (state, mark) = &self.recorded[moment];
        let mut numbers = Numbers(seed);
        let made = self.recorded.iter().position(|(_, mark)| *mark > 0).unwrap_or(moment);
        if moment <= made {
            return Ok(());
        }
        let disk = state.killed();
        // Half of the time the copy is from the step before, whose files are all there still.
        let begun = self.recorded.iter().position(|(_, other)| other == mark).unwrap_or(moment);
        let back =
            if numbers.chance(50) { numbers.below(moment - made) } else { moment - begun + 1 + numbers.below(20) };
        let back = back.min(moment - made);
        let (older, _) = &self.recorded[moment - back];
        disk.put_back(older, &FileName::Catalog);
        tried.states += 1;
        let damaged =
            if numbers.chance(50) { Self::damage_one(&disk, &older.names().collect(), &mut numbers) } else { None };
        let Some(damaged) = damaged else {
            let checked = self.check(&disk, acknowledged(*mark), seed).map(|_| ());
            return checked.map_err(|found| format!("the catalog is {back} calls behind: {found}"));
        };
        self.damaged_behind(&disk, seed)
            .map_err(|found| format!("{damaged}, the catalog is {back} calls behind: {found}"))
    }

    /// Flips a bit of a file that the older state does not have.
    fn damage_one(disk: &Disk, older: &BTreeSet<FileName>, numbers: &mut Numbers) -> Option<String> {
        let state = disk.now();
        // A damaged projection is left out and said, which is another matter.
        let newer = |name: &FileName| {
            matches!(name, FileName::Numbered { kind: FileKind::Segment | FileKind::Manifest, .. })
                && !older.contains(name)
        };
        let newer: Vec<FileName> = state.names().filter(newer).collect();
        let name = newer.get(numbers.below(newer.len()))?;
        let at = numbers.below(state.bytes(name)?.len());
        disk.flip(name, at, u32::try_from(numbers.below(8)).unwrap_or(0));
        Some(format!("byte {at} of {name} is damaged"))
    }

    /// Opens what may be damaged: it is refused, or all that is opened is whole.
    fn damaged_behind(&self, disk: &Disk, seed: u64) -> Result<(), String> {
        let head = disk.now().bytes(&FileName::Head).and_then(|bytes| Head::from_bytes(bytes).ok());
        let published = head.map_or(0, |head| head.generation);
        let Ok(store) = Store::open_in(self.env(disk, seed)) else { return Ok(()) };
        let before = store.snapshot();
        let at =
            self.position(&before, 0, self.steps.len()).map_err(|found| format!("opened all the same: {found}"))?;
        let Some(step) = self.steps.get(at) else { return Ok(()) };
        live(&store, &self.held[at], step).map_err(|error| format!("{step:?} fails: {error}"))?;
        let (old, new) = (before.generation(), store.snapshot().generation());
        let said = self.position(&store.snapshot(), at + 1, at + 1);
        said.map_err(|found| format!("after {step:?}: {found}"))?;
        // What is opened may be the published generation, where the damage is in none of its files.
        let reused = new != old && old < published && new <= published;
        if reused { Err(format!("generation {new} is given again, after {published} was published")) } else { Ok(()) }
    }
}
