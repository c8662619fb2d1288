//! A reader's view of a disk while a writer works: every call sees what the writer has done a little later.

use crate::disk::State;
use crate::numbers::Numbers;
use hedgerow::{Access, FileName, Folder, VFile, Vfs};
use std::fmt::Debug;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};

/// Recorded states of a disk, one after another.
#[derive(Debug)]
pub(crate) struct Playback<'l> {
    recorded: &'l [(Arc<State>, u64)],
    now: Mutex<(usize, Numbers)>,
}

impl<'l> Playback<'l> {
    /// From a state on; how far each call goes on is drawn.
    pub(crate) fn new(recorded: &'l [(Arc<State>, u64)], start: usize, seed: u64) -> Self {
        Self { recorded, now: Mutex::new((start, Numbers(seed))) }
    }

    /// How many states were acknowledged at the call that comes next.
    pub(crate) fn acknowledged(&self) -> usize {
        let (at, _) = *self.now.lock().unwrap_or_else(PoisonError::into_inner);
        usize::try_from(self.recorded[at].1).unwrap_or(0)
    }

    /// The state of this call.
    fn call(&self) -> &State {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = now.0;
        let steps = [0, 1, 3, 40][now.1.below(4)];
        now.0 = (seen + now.1.below(steps + 1)).min(self.recorded.len() - 1);
        &self.recorded[seen].0
    }
}

fn refused() -> io::Error {
    ErrorKind::PermissionDenied.into()
}

/// The calls that readers make; the others are refused.
impl Vfs for Playback<'_> {
    fn describe(&self) -> String {
        "the simulated disk".into()
    }

    fn create_new(&self, _name: &FileName) -> io::Result<Box<dyn VFile>> {
        Err(refused())
    }

    fn open(&self, name: &FileName, access: Access) -> io::Result<Box<dyn VFile>> {
        // What is open stays whole, whatever becomes of its name.
        self.call().killed().open(name, access)
    }

    fn remove(&self, _name: &FileName) -> io::Result<()> {
        Err(refused())
    }

    fn rename(&self, _from: &FileName, _to: &FileName) -> io::Result<()> {
        Err(refused())
    }

    fn list(&self, folder: Folder) -> io::Result<Vec<String>> {
        self.call().killed().list(folder)
    }

    fn make_folder(&self, _folder: Folder) -> io::Result<()> {
        Err(refused())
    }

    fn sync_folder(&self, _folder: Folder) -> io::Result<()> {
        Err(refused())
    }

    fn try_lock(&self, _name: &FileName) -> io::Result<Option<Box<dyn Debug + Send + Sync>>> {
        Err(refused())
    }
}
