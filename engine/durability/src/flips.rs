//! Bit flips, truncations, swapped blocks and exchanged files, exhaustively: never another answer, never a panic.

mod battery;
mod change;
mod check;
mod stores;

pub use change::Sort;
pub use stores::Kind;

use crate::flips::check::{Depth, Outcome, Subject};
use crate::image::Image;
use hedgerow::{Planted, plant};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Once, mpsc};
use std::time::{Duration, Instant};

/// Changes that a thread makes before it looks for more work.
const UNIT: u64 = 512;
/// Failures that are told one by one.
const TOLD: usize = 20;
/// One in so many changes is looked at by a writer too, whatever file it is in.
const WRITTEN: u64 = 32;
/// One in so many of the writer's files is committed to.
const COMMITTED: u64 = 64;
/// Threads that change files are called this, so that their panics are kept quiet.
const THREAD: &str = "flips";
/// What the clock of a thread without work says.
const DONE: u64 = u64::MAX;

/// What is changed, and for how long.
#[derive(Clone, Debug)]
pub struct FlipOptions {
    /// Kinds of stores.
    pub kinds: Vec<Kind>,
    /// Stops then; none for never.
    pub time: Option<Duration>,
    /// At most so many changes of every sort in every file; none for all.
    pub sample: Option<u64>,
    /// Which changes a sample has.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
    /// One change takes no longer than this, or it hangs.
    pub hang: Duration,
    /// The process takes no more memory than this, in bytes; looked at where the system tells (Linux).
    pub memory: u64,
    /// A fault that is put into the engine, so that these checks can be seen to find it.
    pub planted: Option<Planted>,
    /// Only this change.
    pub only: Option<Case>,
}

impl Default for FlipOptions {
    fn default() -> Self {
        Self {
            kinds: Kind::ALL.to_vec(),
            time: None,
            sample: None,
            seed: 1,
            threads: 1,
            hang: Duration::from_secs(30),
            memory: 1 << 30,
            planted: None,
            only: None,
        }
    }
}

/// What became of all changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlipReport {
    /// By kind of store and ending of the file.
    pub files: BTreeMap<(Kind, String), Tally>,
    /// All together.
    pub total: Tally,
    /// Changes that were asked for.
    pub planned: u64,
    /// The first failures, each with the case that replays it.
    pub failures: Vec<String>,
}

/// Counts of changes and of what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Bits flipped.
    pub bits: u64,
    /// Lengths cut or grown.
    pub truncations: u64,
    /// Runs and blocks swapped.
    pub swaps: u64,
    /// Files exchanged or gone.
    pub exchanges: u64,
    /// Told by an error, by `incomplete`, or by `verify`.
    pub detected: u64,
    /// All answers as before, and `verify` finds nothing: free pages of the catalog.
    pub harmless: u64,
    /// Another answer without a word, or `verify` silent on a file that the generation names.
    pub wrong: u64,
    /// Panics.
    pub panics: u64,
    /// Changes after which something did not come to an end.
    pub hangs: u64,
}

impl Tally {
    /// Changes that were made.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.bits + self.truncations + self.swaps + self.exchanges
    }

    fn count(&mut self, sort: Sort, outcome: &Looked) {
        let outcome = match outcome {
            Looked::At(Outcome::Void) => return,
            Looked::At(Outcome::Detected) => &mut self.detected,
            Looked::At(Outcome::Harmless) => &mut self.harmless,
            Looked::Wrong(_) => &mut self.wrong,
            Looked::Panicked(_) => &mut self.panics,
        };
        *outcome += 1;
        *match sort {
            Sort::Bit => &mut self.bits,
            Sort::Length => &mut self.truncations,
            Sort::Run | Sort::Block => &mut self.swaps,
            Sort::Exchange => &mut self.exchanges,
        } += 1;
    }

    fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.bits, other.bits),
            (&mut self.truncations, other.truncations),
            (&mut self.swaps, other.swaps),
            (&mut self.exchanges, other.exchanges),
            (&mut self.detected, other.detected),
            (&mut self.harmless, other.harmless),
            (&mut self.wrong, other.wrong),
            (&mut self.panics, other.panics),
            (&mut self.hangs, other.hangs),
        ] {
            *sum += more;
        }
    }
}

/// One change: what a failure says, and what replays it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Kind of the store.
    pub kind: Kind,
    /// The file, relative to the store.
    pub file: String,
    /// The sort of change.
    pub sort: Sort,
    /// Which of its sort: the bit, the length, the pair, the other file.
    pub place: u64,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.kind, self.file, self.sort, self.place)
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let parts: Vec<&str> = line.split_whitespace().collect();
        let [kind, file, sort, place] = parts[..] else {
            return Err(format!("a case is KIND FILE CHANGE NUMBER, and not {line:?}"));
        };
        let place = place.parse().map_err(|error| format!("{place}: {error}"))?;
        Ok(Self { kind: kind.parse()?, file: file.to_owned(), sort: sort.parse()?, place })
    }
}

/// All changes of one sort in one file, or a sample of them.
#[derive(Clone, Copy, Debug)]
struct Lot {
    subject: usize,
    file: usize,
    sort: Sort,
    count: u64,
    taken: u64,
    /// Coprime to `count`, so that stepping by it comes to every change once.
    stride: u64,
    start: u64,
}

impl Lot {
    fn place(&self, step: u64) -> u64 {
        let place = u128::from(self.start) + u128::from(step) * u128::from(self.stride);
        u64::try_from(place % u128::from(self.count.max(1))).unwrap_or(0)
    }
}

/// What the threads share.
#[derive(Debug)]
struct Work {
    subjects: Vec<Subject>,
    lots: Vec<Lot>,
    /// Lot and first step of every unit: first units of all lots come first, so that a run that is cut short saw all.
    units: Vec<(usize, u64)>,
    next: AtomicUsize,
    stopped: AtomicBool,
    until: Option<Instant>,
    memory: u64,
}

enum Looked {
    At(Outcome),
    Wrong(String),
    Panicked(String),
}

/// What a thread says of one unit.
struct Said {
    lot: usize,
    tally: Tally,
    failures: Vec<String>,
}

/// Where a thread is: the unit, and changes since the run began.
#[derive(Debug, Default)]
struct Clock {
    unit: AtomicUsize,
    step: AtomicU64,
    ticks: AtomicU64,
}

/// Makes the changes, and looks after each. Deterministic but for time: the same options make the same changes.
#[must_use]
pub fn run(options: &FlipOptions) -> FlipReport {
    let mut report = FlipReport::default();
    let subjects: Result<Vec<Subject>, String> =
        options.kinds.iter().map(|kind| Subject::new(*kind, options.seed)).collect();
    let subjects = match subjects {
        Ok(subjects) => subjects,
        Err(error) => {
            report.failures.push(error);
            return report;
        }
    };
    let work = Arc::new(plan(subjects, options));
    report.planned = work.lots.iter().map(|lot| lot.taken).sum();
    keep_quiet();
    let (say, hear) = mpsc::channel();
    let mut clocks = Vec::new();
    let planted = options.planted;
    for _ in 0..options.threads.max(1) {
        let (clock, work, say) = (Arc::new(Clock::default()), Arc::clone(&work), say.clone());
        clocks.push((Arc::clone(&clock), 0, Instant::now()));
        // A pool of one thread: what the engine does in parallel then stays on it.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).thread_name(|_| THREAD.into()).build();
        match pool {
            Ok(pool) => pool.spawn(move || {
                plant(planted);
                labour(&work, &clock, &say);
                plant(None);
                clock.ticks.store(DONE, Ordering::Relaxed);
            }),
            Err(error) => report.failures.push(error.to_string()),
        }
    }
    drop(say);
    loop {
        match hear.recv_timeout(Duration::from_millis(200)) {
            Ok(said) => report.take(&work, said),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        if let Some(case) = hanging(&work, &mut clocks, options.hang) {
            work.stopped.store(true, Ordering::Relaxed);
            report.total.hangs += 1;
            report.failures.push(format!("{case}: no end after {:?}", options.hang));
            break;
        }
    }
    report
}

impl FlipReport {
    /// Whether nothing failed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty()
    }

    fn take(&mut self, work: &Work, said: Said) {
        self.total.add(&said.tally);
        if let Some((kind, ending)) = work.lots.get(said.lot).and_then(|lot| work.ending(lot)) {
            self.files.entry((kind, ending)).or_default().add(&said.tally);
        }
        let room = TOLD.saturating_sub(self.failures.len());
        self.failures.extend(said.failures.into_iter().take(room));
    }
}

impl fmt::Display for FlipReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = ("all".to_owned(), String::new(), &self.total);
        let files = self.files.iter().map(|((kind, ending), tally)| (kind.to_string(), ending.clone(), tally));
        for (kind, ending, tally) in files.chain([all]) {
            let Tally { bits, truncations, swaps, exchanges, detected, harmless, wrong, panics, hangs } = tally;
            write!(f, "{kind:9} {ending:12} {bits:>9} bits, {truncations:>7} lengths, {swaps:>7} swaps, ")?;
            write!(f, "{exchanges:>4} exchanges: detected {detected}, harmless {harmless}, wrong {wrong}, ")?;
            writeln!(f, "panics {panics}, hangs {hangs}")?;
        }
        self.failures.iter().try_for_each(|failure| writeln!(f, "{failure}"))
    }
}

impl Work {
    fn ending(&self, lot: &Lot) -> Option<(Kind, String)> {
        let subject = self.subjects.get(lot.subject)?;
        let (name, _) = subject.files.get(lot.file)?;
        Some((subject.kind(), check::ending(name)))
    }

    fn case(&self, lot: &Lot, step: u64) -> Option<Case> {
        let subject = self.subjects.get(lot.subject)?;
        let (name, _) = subject.files.get(lot.file)?;
        Some(Case { kind: subject.kind(), file: name.to_string(), sort: lot.sort, place: lot.place(step) })
    }
}

fn plan(subjects: Vec<Subject>, options: &FlipOptions) -> Work {
    let mut lots = Vec::new();
    for (position, subject) in subjects.iter().enumerate() {
        for (file, (name, before)) in subject.files.iter().enumerate() {
            for sort in Sort::ALL {
                let count = before.count(sort);
                let taken = options.sample.unwrap_or(count).min(count);
                let stride = stride(count, options.seed);
                let lot = Lot { subject: position, file, sort, count, taken, stride, start: 0 };
                match &options.only {
                    None => lots.push(Lot { start: options.seed.checked_rem(count).unwrap_or(0), ..lot }),
                    Some(only) if (only.kind, only.sort) == (subject.kind(), sort) && only.file == name.to_string() => {
                        lots.push(Lot { start: only.place, taken: 1, ..lot });
                    }
                    Some(_) => {}
                }
            }
        }
    }
    let starts = |(position, lot): (usize, &Lot)| {
        (0..lot.taken.div_ceil(UNIT)).map(move |unit| (unit, position, unit * UNIT)).collect::<Vec<_>>()
    };
    let mut units: Vec<(u64, usize, u64)> = lots.iter().enumerate().flat_map(starts).collect();
    units.sort_unstable();
    Work {
        subjects,
        lots,
        units: units.into_iter().map(|(_, lot, step)| (lot, step)).collect(),
        next: AtomicUsize::new(0),
        stopped: AtomicBool::new(false),
        until: options.time.map(|time| Instant::now() + time),
        memory: options.memory,
    }
}

/// A number near the golden section of `count`, without a divisor in common with it.
fn stride(count: u64, seed: u64) -> u64 {
    let divisor = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let first = (count / 8 * 5 + seed % 97).max(1);
    (first..=u64::MAX).find(|stride| divisor(*stride, count) == 1).unwrap_or(1)
}

/// Takes units until there are none.
fn labour(work: &Work, clock: &Clock, say: &mpsc::Sender<Said>) {
    let mut images: BTreeMap<usize, Image> = BTreeMap::new();
    loop {
        let unit = work.next.fetch_add(1, Ordering::Relaxed);
        let late = work.until.is_some_and(|until| Instant::now() > until);
        let Some((position, first)) = work.units.get(unit).copied().filter(|_| !late) else { return };
        let Some(lot) = work.lots.get(position) else { return };
        let Some(subject) = work.subjects.get(lot.subject) else { return };
        let image = images.entry(lot.subject).or_insert_with(|| subject.fork());
        clock.unit.store(unit, Ordering::Relaxed);
        let mut said = Said { lot: position, tally: Tally::default(), failures: Vec::new() };
        for step in first..lot.taken.min(first + UNIT) {
            clock.step.store(step, Ordering::Relaxed);
            clock.ticks.fetch_add(1, Ordering::Relaxed);
            let looked = look(subject, image, lot, step);
            said.tally.count(lot.sort, &looked);
            if let (Looked::Wrong(why) | Looked::Panicked(why), Some(case)) = (looked, work.case(lot, step)) {
                said.failures.push(format!("{case}: {why}"));
            }
        }
        let taken = memory_taken();
        if let Some(case) = work.case(lot, first).filter(|_| taken > work.memory) {
            said.failures.push(format!("{case} and the next {UNIT}: the process took {taken} bytes of memory"));
            work.stopped.store(true, Ordering::Relaxed);
        }
        if say.send(said).is_err() || work.stopped.load(Ordering::Relaxed) {
            return;
        }
    }
}

fn look(subject: &Subject, image: &Image, lot: &Lot, step: u64) -> Looked {
    let at = lot.place(step);
    let depth = Depth { write: at.is_multiple_of(WRITTEN), commit: at.is_multiple_of(COMMITTED) };
    let Ok(place) = usize::try_from(at) else { return Looked::At(Outcome::Void) };
    let check = || subject.check(image, lot.file, lot.sort, place, depth);
    let looked = match panic::catch_unwind(AssertUnwindSafe(check)) {
        Ok(Ok(outcome)) => Looked::At(outcome),
        Ok(Err(why)) => Looked::Wrong(why),
        Err(_) => Looked::Panicked(PANIC.take()),
    };
    subject.put_back(image, lot.file, lot.sort, place);
    looked
}

/// The most memory that the process ever took, in bytes; 0 where the system does not tell.
fn memory_taken() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps the panics of this module's threads for its report; those of all other threads go where they went.
fn keep_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if std::thread::current().name() == Some(THREAD) {
                PANIC.set(format!("a panic: {info}"));
            } else {
                before(info);
            }
        }));
    });
}

/// The case of a thread that has stood still for too long.
fn hanging(work: &Work, clocks: &mut [(Arc<Clock>, u64, Instant)], hang: Duration) -> Option<Case> {
    for (clock, seen, since) in clocks {
        let now = clock.ticks.load(Ordering::Relaxed);
        if now == DONE {
            continue;
        }
        if now != *seen {
            (*seen, *since) = (now, Instant::now());
        } else if since.elapsed() > hang && now > 0 {
            let (lot, _) = work.units.get(clock.unit.load(Ordering::Relaxed))?;
            return work.case(work.lots.get(*lot)?, clock.step.load(Ordering::Relaxed));
        }
    }
    None
}
