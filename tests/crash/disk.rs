//! A simulated POSIX disk: what was not synced may be lost, kept, torn or reordered.

use hedgerow::{Access, FileName, Folder, Mapping, VFile, Vfs};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes that a disk writes whole or not at all.
const SECTOR: usize = 512;

/// A disk; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<State>>);

/// What goes wrong; operations that change something are counted from 0.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// From this operation on nothing happens any more.
    Crash { at: u64 },
    /// This reading operation fails once; they are counted by themselves.
    Read { at: u64 },
    /// This operation fails, and all later ones too if `for_ever`.
    Call { at: u64, for_ever: bool, full: bool },
}

#[derive(Clone, Debug, Default)]
struct State {
    files: Vec<Bytes>,
    folders: BTreeMap<Folder, Names>,
    fault: Option<Fault>,
    operations: u64,
    reads: u64,
    locked: bool,
}

/// A file as the running system sees it, as it surely is on the disk, and what was written in between.
#[derive(Clone, Debug, Default)]
struct Bytes {
    live: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Write>,
}

#[derive(Clone, Debug)]
enum Write {
    At(usize, Vec<u8>),
    Length(usize),
}

/// A folder, likewise.
#[derive(Clone, Debug, Default)]
struct Names {
    live: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Link(String, usize),
    Unlink(String),
    Rename(String, String, usize),
}

impl Write {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Length(length) => bytes.resize(*length, 0),
            Self::At(start, written) => {
                let end = start + written.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[*start..end].copy_from_slice(written);
            }
        }
    }

    /// The parts that reach the disk each by itself.
    fn sectors(&self) -> Vec<Self> {
        let Self::At(start, bytes) = self else { return vec![self.clone()] };
        let mut parts = Vec::new();
        let mut done = 0;
        while done < bytes.len() {
            let position = start + done;
            let length = (SECTOR - position % SECTOR).min(bytes.len() - done);
            parts.push(Self::At(position, bytes[done..done + length].to_vec()));
            done += length;
        }
        parts
    }
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Link(name, file) => drop(names.insert(name.clone(), *file)),
            Self::Unlink(name) => drop(names.remove(name)),
            Self::Rename(from, to, file) => {
                names.remove(from);
                names.insert(to.clone(), *file);
            }
        }
    }
}

impl Disk {
    /// Operations until now that change something.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Operations until now that change nothing.
    pub fn reads(&self) -> u64 {
        self.state().reads
    }

    /// Puts a file's bytes back as they were on an older state of this disk.
    pub fn put_back(&self, older: &Self, name: &FileName) {
        let older = older.state();
        let file = older.folders[&name.folder()].live[&name.name()];
        self.state().files[file] = older.files[file].clone();
    }

    /// Something will go wrong, counted from now.
    pub fn fail(&self, fault: Fault) {
        let mut state = self.state();
        (state.fault, state.operations, state.reads) = (Some(fault), 0, 0);
    }

    /// What a new process finds after this one was killed: everything, synced or not.
    pub fn killed(&self) -> Self {
        let state = State { fault: None, operations: 0, locked: false, ..self.state().clone() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// What a new process finds after the power was cut: all that was synced, and of the rest what `seed` says.
    pub fn cut(&self, seed: u64) -> Self {
        let mut state = self.killed().state().clone();
        let mut random = seed;
        // Of names and of data none, all, or some survive.
        let shares = [(0, 0), (100, 0), (0, 100), (100, 100), (50, 50), (80, 20), (20, 80), (95, 95)];
        let (names, data) = shares[usize::try_from(seed % 8).unwrap_or(0)];
        for file in &mut state.files {
            let parts = file.pending.drain(..).flat_map(|write| write.sectors());
            for part in parts.filter(|_| chance(&mut random, data)).collect::<Vec<_>>() {
                part.apply(&mut file.durable);
            }
            file.live = file.durable.clone();
        }
        for folder in state.folders.values_mut() {
            for change in folder.pending.drain(..).filter(|_| chance(&mut random, names)).collect::<Vec<_>>() {
                change.apply(&mut folder.durable);
            }
            folder.live = folder.durable.clone();
        }
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// One operation: the state to carry it out on, unless it fails. Reading after a crash fails too.
    fn operate(&self, changes: bool) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        let (now, read) = (state.operations, state.reads);
        state.operations += u64::from(changes);
        state.reads += u64::from(!changes);
        match state.fault {
            Some(Fault::Crash { at }) if now > at || (changes && now == at) => {
                Err(io::Error::other("the power is off"))
            }
            Some(Fault::Call { at, for_ever, full }) if changes && (now == at || (for_ever && now > at)) => {
                Err(if full { ErrorKind::StorageFull.into() } else { io::Error::other("the disk failed") })
            }
            Some(Fault::Read { at }) if !changes && read == at => Err(io::Error::other("the disk is busy")),
            _ => Ok(state),
        }
    }
}

/// `SplitMix64`, as a share of a hundred.
fn chance(random: &mut u64, percent: u64) -> bool {
    *random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut bits = *random;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ (bits >> 31)) % 100 < percent
}

#[derive(Debug)]
struct Handle {
    disk: Disk,
    file: usize,
}

#[derive(Debug)]
struct Lock(Disk);

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.state().locked = false;
    }
}

impl Vfs for Disk {
    fn describe(&self) -> String {
        "the simulated disk".into()
    }

    fn create_new(&self, name: &FileName) -> io::Result<Box<dyn VFile>> {
        let mut state = self.operate(true)?;
        let file = state.files.len();
        let folder = state.folders.entry(name.folder()).or_default();
        if folder.live.contains_key(&name.name()) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        folder.live.insert(name.name(), file);
        folder.pending.push(Change::Link(name.name(), file));
        state.files.push(Bytes::default());
        Ok(Box::new(Handle { disk: self.clone(), file }))
    }

    fn open(&self, name: &FileName, _access: Access) -> io::Result<Box<dyn VFile>> {
        let state = self.operate(false)?;
        let found = state.folders.get(&name.folder()).and_then(|folder| folder.live.get(&name.name()).copied());
        let file = found.ok_or(ErrorKind::NotFound)?;
        Ok(Box::new(Handle { disk: self.clone(), file }))
    }

    fn remove(&self, name: &FileName) -> io::Result<()> {
        let mut state = self.operate(true)?;
        let folder = state.folders.entry(name.folder()).or_default();
        folder.live.remove(&name.name()).ok_or(ErrorKind::NotFound)?;
        folder.pending.push(Change::Unlink(name.name()));
        Ok(())
    }

    fn rename(&self, from: &FileName, to: &FileName) -> io::Result<()> {
        let mut state = self.operate(true)?;
        let folder = state.folders.entry(from.folder()).or_default();
        let file = folder.live.remove(&from.name()).ok_or(ErrorKind::NotFound)?;
        folder.live.insert(to.name(), file);
        folder.pending.push(Change::Rename(from.name(), to.name(), file));
        Ok(())
    }

    fn list(&self, folder: Folder) -> io::Result<Vec<String>> {
        let state = self.operate(false)?;
        Ok(state.folders.get(&folder).map(|folder| folder.live.keys().cloned().collect()).unwrap_or_default())
    }

    fn make_folder(&self, _folder: Folder) -> io::Result<()> {
        self.operate(true).map(|_| ())
    }

    fn sync_folder(&self, folder: Folder) -> io::Result<()> {
        let mut state = self.operate(true)?;
        let names = state.folders.entry(folder).or_default();
        for change in std::mem::take(&mut names.pending) {
            change.apply(&mut names.durable);
        }
        Ok(())
    }

    fn try_lock(&self, _name: &FileName) -> io::Result<Option<Box<dyn Debug + Send + Sync>>> {
        let mut state = self.operate(true)?;
        if state.locked {
            return Ok(None);
        }
        state.locked = true;
        Ok(Some(Box::new(Lock(self.clone()))))
    }
}

impl Handle {
    fn write(&self, write: Write) -> io::Result<()> {
        let mut state = self.disk.operate(true)?;
        let file = &mut state.files[self.file];
        write.apply(&mut file.live);
        file.pending.push(write);
        Ok(())
    }
}

fn place(offset: u64) -> usize {
    usize::try_from(offset).expect("a simulated file is small")
}

impl VFile for Handle {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.operate(false)?.files[self.file].live.len() as u64)
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let state = self.disk.operate(false)?;
        let start = place(offset);
        let bytes = state.files[self.file].live.get(start..start + out.len()).ok_or(ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write(Write::At(place(offset), bytes.to_vec()))
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.write(Write::Length(place(length)))
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.operate(true)?;
        let file = &mut state.files[self.file];
        for write in std::mem::take(&mut file.pending) {
            write.apply(&mut file.durable);
        }
        Ok(())
    }

    fn map(&self) -> io::Result<Mapping> {
        Ok(Mapping::Heap(self.disk.operate(false)?.files[self.file].live.clone()))
    }
}
