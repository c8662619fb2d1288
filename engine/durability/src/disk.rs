//! A simulated POSIX disk: what was not synced may be lost, kept, torn, reordered, or replaced by stale bytes.

mod handle;

use crate::damage::{Damage, Torn};
use crate::disk::handle::Handle;
use crate::numbers::Numbers;
use hedgerow::{Access, FileName, Folder, VFile, Vfs};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A disk; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<State>>);

/// What a call does. Calls are counted together, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// It changes bytes or names.
    Change,
    /// It makes bytes or names durable.
    Sync,
    /// It changes nothing: opening, reading, mapping, listing.
    Read,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// At which call.
    pub at: u64,
    /// All later calls of its kind fail too.
    pub for_ever: bool,
    /// What the system says.
    pub error: FaultKind,
}

/// What the system says, and what it has done until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Input or output failed; nothing was done. A sync that fails has dropped what it was to write, and says so once.
    Io,
    /// The disk is full; of a write the first half was done. Reading and removing still work.
    Full,
    /// Too many files are open; only opening and creating fail.
    TooManyFiles,
    /// The call was interrupted; the caller of the system tries again, and so does this disk's file layer.
    Interrupted,
    /// A write wrote its first half and said so; the caller writes the rest.
    ShortWrite,
    /// The first sync from that call on fails, of a file or of a folder: see [`FaultKind::Io`].
    Sync,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Io, Self::Full, Self::TooManyFiles, Self::Interrupted, Self::ShortWrite, Self::Sync];
}

/// Everything on the disk.
#[derive(Clone, Debug, Default)]
pub struct State {
    files: Vec<File>,
    folders: BTreeMap<Folder, Names>,
    fault: Option<Fault>,
    calls: u64,
    locked: bool,
    windows: bool,
    failed_a_sync: bool,
    mark: u64,
    recording: Option<Vec<(Arc<State>, u64)>>,
}

/// A file as the running system sees it, as it surely is on the disk, and what was written in between.
#[derive(Debug, Default)]
struct File {
    live: Arc<Vec<u8>>,
    durable: Arc<Vec<u8>>,
    pending: Vec<Write>,
    /// How many handles and maps there are, for systems that don't remove open files.
    open: Arc<()>,
}

/// Something that was done to a file.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    /// Bytes were written.
    At(usize, Arc<[u8]>),
    /// It was cut, or made longer with zeros.
    Length(usize),
}

/// A folder, likewise.
#[derive(Clone, Debug, Default)]
struct Names {
    live: BTreeMap<FileName, usize>,
    durable: BTreeMap<FileName, usize>,
    pending: Vec<Change>,
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Link(FileName, usize),
    Unlink(FileName),
    Rename(FileName, FileName, usize),
}

/// A copy of a disk has no handles.
impl Clone for File {
    fn clone(&self) -> Self {
        let (live, durable) = (Arc::clone(&self.live), Arc::clone(&self.durable));
        Self { live, durable, pending: self.pending.clone(), open: Arc::default() }
    }
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
}

impl Change {
    /// `by_name`: a rename that is done again moves whatever has the old name then, as a journal of calls would.
    fn apply(self, names: &mut BTreeMap<FileName, usize>, by_name: bool) {
        match self {
            Self::Link(name, file) => drop(names.insert(name, file)),
            Self::Unlink(name) => drop(names.remove(&name)),
            Self::Rename(from, to, file) => {
                let moved = names.remove(&from);
                let moved = if by_name { moved } else { Some(file) };
                moved.and_then(|file| names.insert(to, file));
            }
        }
    }
}

impl State {
    /// What a new process finds after the power was cut: all that was synced, and of the rest what `seed` says.
    #[must_use]
    pub fn cut(&self, seed: u64) -> Disk {
        let mut numbers = Numbers(seed);
        let damage = Damage::draw(seed, &mut numbers);
        let mut files = Vec::with_capacity(self.files.len());
        for file in &self.files {
            let mut durable = Arc::clone(&file.durable);
            if !file.pending.is_empty() {
                damage.survive(&file.pending, Arc::make_mut(&mut durable), &mut numbers);
            }
            files.push(File { live: Arc::clone(&durable), durable, ..File::default() });
        }
        let mut folders = BTreeMap::new();
        for (folder, names) in &self.folders {
            let mut durable = names.durable.clone();
            for change in names.pending.iter().filter(|_| numbers.chance(damage.names)) {
                change.apply(&mut durable, damage.by_name);
            }
            folders.insert(*folder, Names { live: durable.clone(), durable, pending: Vec::new() });
        }
        Disk::of(Self { files, folders, windows: self.windows, ..Self::default() })
    }

    /// What a new process finds after the power was cut: all that was synced, of other bytes nothing, and of other names
    /// in the store's folder those whose bit in `kept` is set, done again by name.
    #[must_use]
    pub fn cut_names(&self, kept: u32) -> Disk {
        let synced = |file: &File| {
            let bytes = Arc::clone(&file.durable);
            File { live: Arc::clone(&bytes), durable: bytes, ..File::default() }
        };
        let mut folders = BTreeMap::new();
        for (folder, names) in &self.folders {
            let mut durable = names.durable.clone();
            for (bit, change) in names.pending.iter().enumerate() {
                if *folder == Folder::Root && kept.checked_shr(u32::try_from(bit).unwrap_or(0)).unwrap_or(0) & 1 == 1 {
                    change.apply(&mut durable, true);
                }
            }
            folders.insert(*folder, Names { live: durable.clone(), durable, pending: Vec::new() });
        }
        let files = self.files.iter().map(synced).collect();
        Disk::of(Self { files, folders, windows: self.windows, ..Self::default() })
    }

    fn unsynced(&self) -> &[Change] {
        self.folders.get(&Folder::Root).map_or(&[], |names| &names.pending)
    }

    /// Changes of names in the store's folder that were not synced.
    pub(crate) fn unsynced_names(&self) -> usize {
        self.unsynced().len()
    }

    /// Whether a rename is among them.
    pub(crate) fn has_unsynced_rename(&self) -> bool {
        self.unsynced().iter().any(|change| matches!(change, Change::Rename(..)))
    }

    /// What a new process finds after this one was killed: everything, synced or not.
    #[must_use]
    pub fn killed(&self) -> Disk {
        let (files, folders) = (self.files.clone(), self.folders.clone());
        Disk::of(Self { files, folders, windows: self.windows, ..Self::default() })
    }

    /// Names of all files.
    pub fn names(&self) -> impl Iterator<Item = FileName> {
        self.folders.values().flat_map(|names| names.live.keys().copied())
    }

    /// The bytes of a file.
    #[must_use]
    pub fn bytes(&self, name: &FileName) -> Option<&[u8]> {
        let file = self.folders.get(&name.folder())?.live.get(name)?;
        self.files.get(*file).map(|file| file.live.as_slice())
    }
}

impl Disk {
    fn of(state: State) -> Self {
        Self(Arc::new(Mutex::new(state)))
    }

    /// A disk whose system removes and replaces no file that is open, and syncs no folders.
    #[must_use]
    pub fn windows() -> Self {
        Self::of(State { windows: true, ..State::default() })
    }

    /// Calls until now, or since [`Disk::fail`].
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Something will go wrong; calls are counted from now.
    pub fn fail(&self, fault: Fault) {
        let mut state = self.state();
        (state.fault, state.calls, state.failed_a_sync) = (Some(fault), 0, false);
    }

    /// Whether the fault hit a sync.
    #[must_use]
    pub fn failed_a_sync(&self) -> bool {
        self.state().failed_a_sync
    }

    /// From now on the system removes and replaces no file that is open, and syncs no folders.
    #[must_use]
    pub fn as_windows(self) -> Self {
        self.state().windows = true;
        self
    }

    /// Whether the system removes no file that is open.
    #[must_use]
    pub fn is_windows(&self) -> bool {
        self.state().windows
    }

    /// Nothing goes wrong any more.
    pub fn mend(&self) {
        self.state().fault = None;
    }

    /// From now on the state before every change and sync is kept, with the mark of that moment.
    pub fn record(&self) {
        self.state().recording = Some(Vec::new());
    }

    /// Marks what happens from now on: how much was acknowledged.
    pub fn mark(&self, mark: u64) {
        self.state().mark = mark;
    }

    /// The states before every change and sync since [`Disk::record`], and the last.
    #[must_use]
    pub fn recorded(&self) -> Vec<(Arc<State>, u64)> {
        let mut state = self.state();
        let mut recorded = state.recording.take().unwrap_or_default();
        recorded.push((Arc::new(state.clone()), state.mark));
        recorded
    }

    /// What is on the disk now.
    #[must_use]
    pub fn now(&self) -> State {
        State { recording: None, ..self.state().clone() }
    }

    /// Puts a file's bytes back as they were on an older state.
    pub fn put_back(&self, older: &State, name: &FileName) {
        if let Some(bytes) = older.bytes(name) {
            self.put(name, bytes.to_vec());
        }
    }

    /// Flips a bit of a file, on the disk and in memory.
    pub fn flip(&self, name: &FileName, byte: usize, bit: u32) {
        let Some(mut bytes) = self.state().bytes(name).map(<[u8]>::to_vec) else { return };
        if let Some(byte) = bytes.get_mut(byte) {
            *byte ^= 1_u8.rotate_left(bit);
        }
        self.put(name, bytes);
    }

    /// Gives a file other bytes, on the disk and in memory.
    fn put(&self, name: &FileName, bytes: Vec<u8>) {
        let mut state = self.state();
        let file = state.folders.get(&name.folder()).and_then(|names| names.live.get(name)).copied();
        let bytes = Arc::new(bytes);
        if let Some(file) = file.and_then(|file| state.files.get_mut(file)) {
            *file = File { live: Arc::clone(&bytes), durable: bytes, ..File::default() };
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One call: the state to carry it out on, and what goes wrong with it.
    fn call(&self, call: Call) -> (MutexGuard<'_, State>, Option<FaultKind>) {
        let mut state = self.state();
        let now = state.calls;
        state.calls += 1;
        if call != Call::Read && state.recording.is_some() {
            let before = State { recording: None, ..state.clone() };
            let mark = state.mark;
            state.recording.iter_mut().for_each(|recorded| recorded.push((Arc::new(before.clone()), mark)));
        }
        let later = |fault: &Fault| fault.for_ever || fault.error == FaultKind::Sync;
        let fault = state.fault.filter(|fault| now == fault.at || (later(fault) && now > fault.at));
        let failed_a_sync = state.failed_a_sync;
        let applies = |fault: &Fault| match fault.error {
            FaultKind::Sync => call == Call::Sync && (fault.for_ever || !failed_a_sync),
            FaultKind::Full => call != Call::Read,
            FaultKind::ShortWrite => call == Call::Change && !fault.for_ever,
            FaultKind::Interrupted => !fault.for_ever,
            FaultKind::Io | FaultKind::TooManyFiles => true,
        };
        let fault = fault.filter(applies).map(|fault| fault.error);
        (state, fault)
    }

    /// A call on names or whole files.
    fn name_call(&self, call: Call, opens: bool, grows: bool) -> io::Result<MutexGuard<'_, State>> {
        match self.call(call) {
            (_, Some(FaultKind::Io)) => Err(io::Error::other("the disk failed")),
            (_, Some(FaultKind::Full)) if grows => Err(ErrorKind::StorageFull.into()),
            (_, Some(FaultKind::TooManyFiles)) if opens => Err(io::Error::other("too many open files")),
            (state, _) => Ok(state),
        }
    }
}
#[derive(Debug)]
struct Lock(Disk);

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.state().locked = false;
    }
}

impl State {
    fn handle(&self, disk: &Disk, file: usize) -> Box<dyn VFile> {
        Box::new(Handle { disk: disk.clone(), file, _open: Arc::clone(&self.files[file].open) })
    }

    /// Whether the system refuses to take this name from its file.
    fn refuses(&self, name: &FileName) -> bool {
        let file = self.folders.get(&name.folder()).and_then(|names| names.live.get(name));
        self.windows && file.is_some_and(|file| Arc::strong_count(&self.files[*file].open) > 1)
    }
}

impl Vfs for Disk {
    fn describe(&self) -> String {
        "the simulated disk".into()
    }

    fn create_new(&self, name: &FileName) -> io::Result<Box<dyn VFile>> {
        let mut state = self.name_call(Call::Change, true, true)?;
        let file = state.files.len();
        let names = state.folders.entry(name.folder()).or_default();
        if names.live.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        names.live.insert(*name, file);
        names.pending.push(Change::Link(*name, file));
        state.files.push(File::default());
        Ok(state.handle(self, file))
    }

    fn open(&self, name: &FileName, _access: Access) -> io::Result<Box<dyn VFile>> {
        let state = self.name_call(Call::Read, true, false)?;
        let found = state.folders.get(&name.folder()).and_then(|names| names.live.get(name).copied());
        Ok(state.handle(self, found.ok_or(ErrorKind::NotFound)?))
    }

    fn remove(&self, name: &FileName) -> io::Result<()> {
        let mut state = self.name_call(Call::Change, false, false)?;
        if state.refuses(name) {
            return Err(ErrorKind::PermissionDenied.into());
        }
        let names = state.folders.entry(name.folder()).or_default();
        names.live.remove(name).ok_or(ErrorKind::NotFound)?;
        names.pending.push(Change::Unlink(*name));
        Ok(())
    }

    fn rename(&self, from: &FileName, to: &FileName) -> io::Result<()> {
        let mut state = self.name_call(Call::Change, false, false)?;
        if state.refuses(from) || state.refuses(to) {
            return Err(ErrorKind::PermissionDenied.into());
        }
        let names = state.folders.entry(from.folder()).or_default();
        let file = names.live.remove(from).ok_or(ErrorKind::NotFound)?;
        names.live.insert(*to, file);
        names.pending.push(Change::Rename(*from, *to, file));
        Ok(())
    }

    fn list(&self, folder: Folder) -> io::Result<Vec<String>> {
        let state = self.name_call(Call::Read, true, false)?;
        let mut names: Vec<String> =
            state.folders.get(&folder).into_iter().flat_map(|names| names.live.keys().map(FileName::name)).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn make_folder(&self, _folder: Folder) -> io::Result<()> {
        self.name_call(Call::Change, false, true).map(|_| ())
    }

    fn sync_folder(&self, folder: Folder) -> io::Result<()> {
        let (mut state, fault) = self.call(Call::Sync);
        let pending = std::mem::take(&mut state.folders.entry(folder).or_default().pending);
        if matches!(fault, Some(FaultKind::Io | FaultKind::Full | FaultKind::Sync)) {
            // As with a file: the system shows the changes on, and never writes them.
            state.failed_a_sync = true;
            return Err(io::Error::other("the sync failed"));
        }
        if fault == Some(FaultKind::TooManyFiles) {
            // The folder is opened to be synced; nothing was lost by not doing so.
            state.folders.entry(folder).or_default().pending = pending;
            return Err(io::Error::other("too many open files"));
        }
        let names = state.folders.entry(folder).or_default();
        for change in pending {
            change.apply(&mut names.durable, false);
        }
        Ok(())
    }

    fn try_lock(&self, _name: &FileName) -> io::Result<Option<Box<dyn Debug + Send + Sync>>> {
        let mut state = self.name_call(Call::Change, true, false)?;
        if state.locked {
            return Ok(None);
        }
        state.locked = true;
        Ok(Some(Box::new(Lock(self.clone()))))
    }
}

/// The smallest part of a write that is done as a whole.
#[must_use]
pub(crate) fn parts(write: &Write, torn: Torn, numbers: &mut Numbers) -> Vec<Write> {
    let Write::At(start, bytes) = write else { return vec![write.clone()] };
    // The length alone may survive.
    let mut parts = vec![Write::At(start + bytes.len(), [].into())];
    let unit = match torn {
        Torn::Whole => bytes.len().max(1),
        Torn::Byte => {
            let cut = numbers.below(bytes.len() + 1);
            parts.push(Write::At(*start, bytes[..cut].into()));
            parts.push(Write::At(start + cut, bytes[cut..].into()));
            return parts;
        }
        Torn::Unit(unit) => unit,
    };
    let mut done = 0;
    while done < bytes.len() {
        let position = start + done;
        let length = if torn == Torn::Whole { bytes.len() } else { (unit - position % unit).min(bytes.len() - done) };
        parts.push(Write::At(position, bytes[done..done + length].into()));
        done += length;
    }
    parts
}
