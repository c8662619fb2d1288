//! Publish, pin and sweep within a process under many schedules, with the store's own code; every thread is the checker's.
//!
//! The checker switches between threads at every lock, every flag and every call of the disk.

use hedgerow::{
    Access, Batch, Document, Env, FileName, Folder, Mapping, Pipeline, Planted, Quiet, Snapshot, Store, VFile, Vfs,
    plant,
};
use shuttle::scheduler::PctScheduler;
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::{Config, Runner, thread};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Schedules of each model, where `HEDGEROW_SCHEDULES` names no other number.
const SCHEDULES: usize = 200;
const KEYS: [&str; 2] = ["left", "right"];

type Bytes = Arc<Mutex<Vec<u8>>>;

/// Files in memory. A file that is removed stays whole for those who have it open.
#[derive(Debug, Default)]
struct Memory {
    files: Mutex<BTreeMap<FileName, Bytes>>,
}

#[derive(Debug)]
struct MemoryFile(Bytes);

impl Vfs for Memory {
    fn describe(&self) -> String {
        "memory".into()
    }

    fn create_new(&self, name: &FileName) -> io::Result<Box<dyn VFile>> {
        let mut files = self.files.lock().expect("no thread panicked");
        if files.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let bytes = Bytes::default();
        files.insert(*name, Arc::clone(&bytes));
        Ok(Box::new(MemoryFile(bytes)))
    }

    fn open(&self, name: &FileName, _access: Access) -> io::Result<Box<dyn VFile>> {
        let files = self.files.lock().expect("no thread panicked");
        let bytes = files.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(MemoryFile(Arc::clone(bytes))))
    }

    fn remove(&self, name: &FileName) -> io::Result<()> {
        let removed = self.files.lock().expect("no thread panicked").remove(name);
        removed.map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &FileName, to: &FileName) -> io::Result<()> {
        let mut files = self.files.lock().expect("no thread panicked");
        let bytes = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(*to, bytes);
        Ok(())
    }

    fn list(&self, folder: Folder) -> io::Result<Vec<String>> {
        let files = self.files.lock().expect("no thread panicked");
        let mut names: Vec<String> = files.keys().filter(|name| name.folder() == folder).map(FileName::name).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn make_folder(&self, _folder: Folder) -> io::Result<()> {
        Ok(())
    }

    fn sync_folder(&self, _folder: Folder) -> io::Result<()> {
        drop(self.files.lock());
        Ok(())
    }

    fn try_lock(&self, _name: &FileName) -> io::Result<Option<Box<dyn Debug + Send + Sync>>> {
        Ok(Some(Box::new(())))
    }
}

impl VFile for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().expect("no thread panicked").len() as u64)
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = self.0.lock().expect("no thread panicked");
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let part = bytes.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(part);
        Ok(())
    }

    fn write_at(&self, new: &[u8], offset: u64) -> io::Result<()> {
        let mut bytes = self.0.lock().expect("no thread panicked");
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start + new.len();
        let length = bytes.len().max(end);
        bytes.resize(length, 0);
        bytes[start..end].copy_from_slice(new);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).map_err(io::Error::other)?;
        self.0.lock().expect("no thread panicked").resize(length, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        drop(self.0.lock());
        Ok(())
    }

    fn map(&self) -> io::Result<Mapping> {
        Ok(Mapping::Heap(self.0.lock().expect("no thread panicked").clone()))
    }
}

/// Runs a model under many schedules, with a fault or without.
fn try_schedules(fault: Option<Planted>, model: fn()) {
    let count = std::env::var("HEDGEROW_SCHEDULES").map_or(SCHEDULES, |count| count.parse().expect("it is a number"));
    let mut config = Config::new();
    // The store's own calls need more than the checker gives.
    config.stack_size = 4 << 20;
    let scheduler = PctScheduler::new_from_seed(1848, 3, count);
    plant(fault);
    Runner::new(scheduler, config).run(model);
    plant(None);
}

/// The model holds for the code as it is, and is broken by a fault: else it would look at nothing.
fn check(model: fn(), faults: &[Planted]) {
    try_schedules(None, model);
    for fault in faults {
        let found = catch_unwind(AssertUnwindSafe(|| try_schedules(Some(*fault), model)));
        plant(None);
        assert!(found.is_err(), "no schedule shows {fault:?}");
    }
}

/// A batch of documents that all say the same; the pipeline's own threads read nothing of a store that is empty.
fn batch(empty: &Snapshot, keys: &[&str], stamp: u64) -> Batch {
    let mut batch = Batch::default();
    let documents = keys.iter().map(|key| Document::new(*key).text(format!("It is of stamp {stamp}."))).collect();
    Pipeline::default().stage(empty, documents, &mut batch, &Quiet).expect("no one cancels");
    batch
}

/// The stamp that both documents are of.
fn stamp(snapshot: &Snapshot) -> u64 {
    let text = |key| {
        let found = snapshot.find_document(key).expect("it can be looked for");
        found.map(|found| found.text().expect("it can be read"))
    };
    let [left, right] = KEYS.map(text);
    assert_eq!(left, right, "two stamps are mixed in generation {}", snapshot.generation());
    assert!(snapshot.faults().messages.is_empty(), "{:?}", snapshot.faults());
    let digits = left.as_deref().and_then(|text| text.strip_prefix("It is of stamp ")?.strip_suffix('.'));
    digits.map_or(0, |digits| digits.parse().expect("it is a number"))
}

fn readers_see_whole_stamps() {
    let disk = Arc::new(Memory::default());
    let store =
        Arc::new(Store::open_or_create_in(Env::seeded(Arc::clone(&disk) as Arc<dyn Vfs>, 7)).expect("it opens"));
    let batches: Vec<Batch> = (1..4).map(|stamp| batch(&store.snapshot(), &KEYS, stamp)).collect();
    let acknowledged = Arc::new(AtomicU64::new(0));
    let writer = {
        let (store, acknowledged) = (Arc::clone(&store), Arc::clone(&acknowledged));
        thread::spawn(move || {
            for (batch, stamp) in batches.into_iter().zip(1..) {
                store.commit(batch).expect("it is sound");
                acknowledged.store(stamp, Ordering::SeqCst);
            }
            store.compact(&Quiet).expect("it can be compacted");
        })
    };
    let inside = {
        let (store, acknowledged) = (Arc::clone(&store), Arc::clone(&acknowledged));
        thread::spawn(move || {
            let held = store.snapshot();
            let before = stamp(&held);
            for _ in 0..3 {
                let least = acknowledged.load(Ordering::SeqCst);
                assert!(stamp(&store.snapshot()) >= least.max(before), "stamp {least} was acknowledged");
            }
            assert_eq!(stamp(&held), before, "a snapshot changed");
        })
    };
    let outside = thread::spawn(move || {
        for _ in 0..2 {
            let least = acknowledged.load(Ordering::SeqCst);
            let snapshot = Snapshot::open_in(&*disk).expect("it opens at any moment");
            assert!(stamp(&snapshot) >= least, "stamp {least} was acknowledged");
        }
    });
    for thread in [writer, inside, outside] {
        thread.join().expect("it found nothing wrong");
    }
}

#[test]
fn under_any_schedule_readers_see_whole_stamps_and_what_was_acknowledged() {
    check(readers_see_whole_stamps, &[Planted::EarlyUnlink, Planted::TombstonesLost]);
}

fn commits_of_two_threads_are_both_kept() {
    let disk = Arc::new(Memory::default());
    let store = Arc::new(Store::open_or_create_in(Env::seeded(disk, 7)).expect("it opens"));
    let batches = KEYS.map(|key| batch(&store.snapshot(), &[key], 1));
    let writers = batches.map(|batch| {
        let store = Arc::clone(&store);
        thread::spawn(move || store.commit(batch).expect("it is sound").generation)
    });
    let compacting = {
        let store = Arc::clone(&store);
        thread::spawn(move || store.compact(&Quiet).map(drop).expect("it can be compacted"))
    };
    let [first, second] = writers.map(|writer| writer.join().expect("it found nothing wrong"));
    compacting.join().expect("it found nothing wrong");
    assert_ne!(first, second, "two commits are one generation");
    assert_eq!(stamp(&store.snapshot()), 1, "a commit is lost");
}

#[test]
fn under_any_schedule_commits_of_two_threads_are_both_kept() {
    check(commits_of_two_threads_are_both_kept, &[Planted::LockedTooLate]);
}

/// Text that stays large when it is compressed, all of it one word.
fn noise() -> String {
    let digits =
        (0..20_000_u64).map(|number| format!("{:016x}", number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    digits.collect()
}

fn damage_is_shown_to_every_thread() {
    let disk = Arc::new(Memory::default());
    let store = Store::open_or_create_in(Env::seeded(Arc::clone(&disk) as Arc<dyn Vfs>, 7)).expect("it opens");
    let mut batch = Batch::default();
    let documents = vec![Document::new("large").text(noise())];
    Pipeline::default().stage(&store.snapshot(), documents, &mut batch, &Quiet).expect("no one cancels");
    store.commit(batch).expect("it is sound");
    drop(store);
    {
        let files = disk.files.lock().expect("no thread panicked");
        let segment = files.iter().find(|(name, _)| name.folder() == Folder::Segments).expect("there is a segment").1;
        let mut bytes = segment.lock().expect("no thread panicked");
        // Nearly all of the file is text: its middle is in a block that holds nothing else.
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    }
    let snapshot = Arc::new(Snapshot::open_in(&*disk).expect("its text is not read yet"));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let snapshot = Arc::clone(&snapshot);
            thread::spawn(move || {
                let found = snapshot.find_document("large").expect("its row is sound").expect("it is there");
                assert!(found.text().is_err(), "damaged text was believed");
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("it found nothing wrong");
    }
}

#[test]
fn under_any_schedule_damage_is_shown_to_every_thread() {
    check(damage_is_shown_to_every_thread, &[Planted::BelievedTooEarly]);
}
