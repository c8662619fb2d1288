//! What a small commit costs: its syncs, counted and timed one by one, beside the machine's own sync.

use hedgerow::{Access, Batch, Document, Env, FileName, Folder, Mapping, Pipeline, Quiet, RealDisk, Store, VFile, Vfs};
use hedgerow_benches::{Scratch, median, sync_ms, timed};
use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Mutex};

type Log = Arc<Mutex<Vec<String>>>;

/// The real disk, with every sync written down.
#[derive(Debug)]
struct Counted {
    disk: RealDisk,
    log: Log,
}

#[derive(Debug)]
struct CountedFile {
    file: Box<dyn VFile>,
    name: String,
    log: Log,
}

fn note(log: &Log, what: String) {
    log.lock().expect("the log").push(what);
}

impl Counted {
    fn wrap(&self, file: Box<dyn VFile>, name: &FileName) -> Box<dyn VFile> {
        // Names hold random digits; the kind of file is what matters here.
        let name = format!("{}/{}", name.folder().path(), name.name().rsplit('.').next().unwrap_or_default());
        Box::new(CountedFile { file, name, log: Arc::clone(&self.log) })
    }
}

impl Vfs for Counted {
    fn describe(&self) -> String {
        self.disk.describe()
    }
    fn create_new(&self, name: &FileName) -> io::Result<Box<dyn VFile>> {
        Ok(self.wrap(self.disk.create_new(name)?, name))
    }
    fn open(&self, name: &FileName, access: Access) -> io::Result<Box<dyn VFile>> {
        Ok(self.wrap(self.disk.open(name, access)?, name))
    }
    fn remove(&self, name: &FileName) -> io::Result<()> {
        self.disk.remove(name)
    }
    fn rename(&self, from: &FileName, to: &FileName) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn list(&self, folder: Folder) -> io::Result<Vec<String>> {
        self.disk.list(folder)
    }
    fn make_folder(&self, folder: Folder) -> io::Result<()> {
        self.disk.make_folder(folder)
    }
    fn sync_folder(&self, folder: Folder) -> io::Result<()> {
        note(&self.log, format!("folder {}", folder.path()));
        self.disk.sync_folder(folder)
    }
    fn try_lock(&self, name: &FileName) -> io::Result<Option<Box<dyn Debug + Send + Sync>>> {
        self.disk.try_lock(name)
    }
}

impl VFile for CountedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(out, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(bytes, offset)
    }
    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }
    fn sync(&self) -> io::Result<()> {
        note(&self.log, format!("file {}", self.name));
        self.file.sync()
    }
    fn map(&self) -> io::Result<Mapping> {
        self.file.map()
    }
}

fn main() {
    let scratch = Scratch::new("commit");
    let log = Log::default();
    let disk = Counted { disk: RealDisk::new(&scratch.0.join("store")), log: Arc::clone(&log) };
    let store = Store::open_or_create_in(Env::new(Arc::new(disk))).expect("a store");
    let (mut times, mut counts, mut most) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..101 {
        let document = Document::new(format!("note-{number}")).text("A hedgerow is a pruned row of interwoven plants.");
        let mut batch = Batch::default();
        Pipeline::default().stage(&store.snapshot(), vec![document], &mut batch, &Quiet).expect("staged");
        log.lock().expect("the log").clear();
        let (seconds, committed) = timed(|| store.commit(batch));
        committed.expect("a commit");
        let syncs = std::mem::take(&mut *log.lock().expect("the log"));
        times.push(seconds * 1e3);
        counts.push(u32::try_from(syncs.len()).expect("few syncs"));
        if syncs.len() > most.len() {
            most = syncs;
        }
    }
    let sync = sync_ms(&scratch.0);
    counts.sort_unstable();
    let (count, worst) = (counts[counts.len() / 2], counts[counts.len() - 1]);
    let bound = 1.3 * f64::from(count) * sync + 3.0;
    println!("101 commits of one small document, without projections");
    println!("syncs: median {count}, most {worst}: {}", most.join(", "));
    println!(
        "time: median {:.2} ms; one sync of this machine {sync:.2} ms; 1.3 × {count} × {sync:.2} + 3 = {bound:.2} ms",
        median(times)
    );
}
