//! Crashes while a store is copied into a pack, restored from it, and repaired.

use crate::check::Life;
use crate::disk::{Disk, State};
use crate::numbers::Numbers;
use crate::scenarios::{Tried, acknowledged};
use hedgerow::{
    BackupError, BackupOptions, Env, FileName, Folder, OpenError, PackDisk, Quiet, Snapshot, Store, Vfs, verify,
};
use std::sync::Arc;

/// Crashes of each kind at a moment.
const CRASHES: usize = 3;

impl Life {
    /// What is there is copied into a pack over that of an older moment, and restored from it; both are interrupted.
    pub(crate) fn copied(&self, moment: usize, seed: u64, tried: &mut Tried) -> Result<(), String> {
        let mut numbers = Numbers(seed);
        let Some((snapshot, new)) = self.read(moment)? else { return Ok(()) };
        let older = self.read(numbers.below(moment + 1))?;
        let disk = Disk::default();
        if let Some((older, _)) = &older {
            back_up(older, &self.env(&disk, seed))?;
        }
        disk.record();
        back_up(&snapshot, &self.env(&disk, seed + 1))?;
        disk.mark(1);
        let (recorded, older) = (disk.recorded(), older.map(|(_, position)| position));
        for _ in 0..CRASHES {
            let (left, done) = interrupted(&recorded, &mut numbers);
            tried.states += 1;
            let copied = self.packed(&left, if done { Some(new) } else { older }, new);
            copied.map_err(|found| format!("a backup is interrupted: {found}"))?;
        }
        self.restored(&disk, new, seed, tried).map_err(|found| format!("a restore is interrupted: {found}"))
    }

    /// What a reader finds at a moment, and the position of that; none where the store is not made yet.
    fn read(&self, moment: usize) -> Result<Option<(Snapshot, usize)>, String> {
        let (state, mark) = &self.recorded[moment];
        let known = acknowledged(*mark);
        match Snapshot::open_in(&state.killed()) {
            Ok(snapshot) => {
                let position = self.position(&snapshot, known.saturating_sub(1), known)?;
                Ok(Some((snapshot, position)))
            }
            Err(OpenError::NotFound { .. }) if known == 0 => Ok(None),
            Err(error) => Err(format!("I1: a reader cannot open: {error}")),
        }
    }

    /// A pack is the old one or the new one, whole; none where there was none.
    fn packed(&self, disk: &Disk, old: Option<usize>, new: usize) -> Result<(), String> {
        let pack = match PackDisk::open(disk, FileName::Pack) {
            Ok(pack) => pack,
            Err(_) if old.is_none() && disk.now().bytes(&FileName::Pack).is_none() => return Ok(()),
            Err(fault) => return Err(format!("I1: the pack cannot be opened: {}", OpenError::from(fault))),
        };
        let snapshot = Snapshot::open_in(&pack).map_err(|error| format!("I1: the pack cannot be read: {error}"))?;
        let said = |position| self.position(&snapshot, position, position);
        if let Err(found) = said(new) {
            old.map_or(Err(found), said)?;
        }
        sound(&Env::new(Arc::new(pack)))
    }

    /// A restore of a pack is interrupted, done again and interrupted, and done; then life goes on.
    fn restored(&self, pack: &Disk, expected: usize, seed: u64, tried: &mut Tried) -> Result<(), String> {
        let mut numbers = Numbers(seed);
        let pack = PackDisk::open(pack, FileName::Pack).map_err(|fault| OpenError::from(fault).to_string())?;
        let snapshot = Snapshot::open_in(&pack).map_err(|error| error.to_string())?;
        let mut disk = Disk::default();
        for depth in 0..2 {
            disk.record();
            match snapshot.restore_in(&self.env(&disk, seed + depth), &Quiet) {
                Ok(_) => disk.mark(1),
                // It came to its end before the power was cut.
                Err(BackupError::NotEmpty { .. }) if Snapshot::open_in(&disk).is_ok() => {}
                Err(error) => return Err(format!("at depth {depth}: {error}")),
            }
            let (left, done) = interrupted(&disk.recorded(), &mut numbers);
            (tried.states, tried.double) = (tried.states + 1, tried.double + depth);
            match Snapshot::open_in(&left) {
                Ok(snapshot) => drop(self.position(&snapshot, expected, expected)?),
                Err(OpenError::NotFound { .. } | OpenError::Unfinished { .. } | OpenError::NoHead { .. }) if !done => {}
                Err(error) => return Err(format!("I1: a reader cannot open what is restored: {error}")),
            }
            disk = left;
        }
        match snapshot.restore_in(&self.env(&disk, seed + 2), &Quiet) {
            Err(BackupError::NotEmpty { .. }) if Snapshot::open_in(&disk).is_ok() => {}
            restored => drop(restored.map_err(|error| format!("the third time: {error}"))?),
        }
        self.check(&disk, expected + 1, seed + 3).map(|_| ())
    }

    /// The catalog or `HEAD` is lost or damaged, is repaired, and the power is cut meanwhile; once repaired, nothing that
    /// was acknowledged is given up again.
    pub(crate) fn repaired(&self, moment: usize, seed: u64, tried: &mut Tried) -> Result<(), String> {
        let (state, mark) = &self.recorded[moment];
        let (mut numbers, known) = (Numbers(seed), acknowledged(*mark));
        if known == 0 {
            return Ok(());
        }
        let (mut disk, what) = spoilt(state, &mut numbers)?;
        let named = |found: String| format!("{what}: {found}");
        let mut least = known - 1;
        for depth in 0..3 {
            disk.record();
            disk.mark(least as u64);
            let env = self.env(&disk, seed + depth);
            let (store, _) = Store::repair_in(env, &Quiet).map_err(|error| named(format!("depth {depth}: {error}")))?;
            let found = self.position(&store.snapshot(), least, known).map_err(named)?;
            disk.mark(found as u64);
            drop(store);
            tried.states += 1;
            (tried.double, tried.triple) = (tried.double + u64::from(depth == 1), tried.triple + u64::from(depth == 2));
            if depth == 2 {
                return self.check(&disk.now().killed(), found + 1, seed + depth).map(|_| ()).map_err(named);
            }
            let recorded = disk.recorded();
            let (state, mark) = &recorded[numbers.below(recorded.len())];
            (disk, least) = (state.cut(numbers.draw()), acknowledged(*mark));
        }
        Ok(())
    }
}

fn back_up(snapshot: &Snapshot, env: &Env) -> Result<(), String> {
    let done = snapshot.backup_in(env, BackupOptions { replace: true }, &Quiet);
    done.map(|_| ()).map_err(|error| format!("what is whole cannot be copied: {error}"))
}

/// What is left after a crash at any call that was recorded, and whether all was acknowledged by then.
fn interrupted(recorded: &[(Arc<State>, u64)], numbers: &mut Numbers) -> (Disk, bool) {
    let (state, mark) = &recorded[numbers.below(recorded.len())];
    let left = if numbers.chance(20) { state.killed() } else { state.cut(numbers.draw()) };
    (left, *mark == 1)
}

fn sound(env: &Env) -> Result<(), String> {
    let verified = verify(env, &Quiet).map_err(|error| format!("I3: {error}"))?;
    if verified.problems.is_empty() { Ok(()) } else { Err(format!("I3: {}", verified.problems.join("; "))) }
}

/// The catalog or `HEAD` is gone, or a bit of it is flipped.
fn spoilt(state: &State, numbers: &mut Numbers) -> Result<(Disk, String), String> {
    let disk = state.killed();
    let name = if numbers.chance(60) { FileName::Catalog } else { FileName::Head };
    let bytes = state.bytes(&name).map_or(0, <[u8]>::len);
    if numbers.chance(40) {
        let removed = disk.remove(&name).and_then(|()| disk.sync_folder(Folder::Root));
        removed.map_err(|error| error.to_string())?;
        return Ok((disk, format!("{name} is lost")));
    }
    let (byte, bit) = (numbers.below(bytes), u32::try_from(numbers.below(8)).unwrap_or(0));
    disk.flip(&name, byte, bit);
    Ok((disk, format!("bit {bit} of byte {byte} of {name} is flipped")))
}
