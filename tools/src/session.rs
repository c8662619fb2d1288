//! One run of the program: where its results, its progress and its warnings go, and whether it was asked to stop.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use hedgerow::{Control, Limits, OpenError, Snapshot};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::failure::Failure;

/// What every command gets beside its arguments.
#[derive(Debug)]
pub struct Session {
    json: bool,
    untrusted: bool,
}

impl Session {
    /// Begins a run. From here on the first Ctrl-C stops long work cleanly, and the second one the process.
    #[must_use]
    pub fn new(json: bool) -> Session {
        static HANDLER: Once = Once::new();
        // Without a handler the system ends the process, which the store survives as well.
        HANDLER.call_once(|| drop(ctrlc::set_handler(interrupt)));
        Session { json, untrusted: false }
    }

    /// The same run, which may read what a stranger made.
    #[must_use]
    pub fn distrusting(self, untrusted: bool) -> Session {
        Session { untrusted, ..self }
    }

    /// Whether results are JSON.
    #[must_use]
    pub fn json(&self) -> bool {
        self.json
    }

    /// Whether what is read may have been made by a stranger.
    #[must_use]
    pub fn untrusted(&self) -> bool {
        self.untrusted
    }

    /// Opens a store, or a pack, for reading.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(&self, path: &Path) -> Result<Snapshot, OpenError> {
        if self.untrusted { Snapshot::open_untrusted(path, &Limits::default()) } else { Snapshot::open(path) }
    }

    /// Begins work without a bar that Ctrl-C stops.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch::new()
    }

    /// Begins a piece of long work: a bar on standard error if that is a terminal, else nothing.
    #[must_use]
    pub fn progress(&self, what: &str) -> Progress {
        Progress::new(what)
    }

    /// Writes a result to standard output: with `--json` as one line of JSON, else as `human` writes it.
    ///
    /// # Errors
    /// When it cannot be written; a reader that has gone away is no error.
    pub fn print<T: Serialize>(
        &self,
        value: &T,
        human: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        let written = if self.json { write_json(&mut out, value) } else { human(&mut out) };
        unless_closed(written.and_then(|()| out.flush()))
    }

    /// Writes a result to standard output as it comes; none where its reader has gone away.
    ///
    /// # Errors
    /// When it cannot be written, and those of `write`.
    pub fn stream<T>(&self, write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>) -> Result<Option<T>, Failure> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        let written = write(&mut out).and_then(|result| {
            out.flush().map_err(Failure::Output)?;
            Ok(result)
        });
        match written {
            Err(Failure::Output(error)) => unless_closed(Err(error)).map(|()| None),
            written => written.map(Some),
        }
    }

    /// Says something beside the result, on standard error.
    pub fn note(&self, message: impl fmt::Display) {
        // There is no one left to tell that standard error is gone.
        writeln!(io::stderr().lock(), "{message}").ok();
    }
}

/// A record that was not taken: where it stands and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RejectedRecord {
    /// The file, as it was named.
    pub file: String,
    /// The line or row in it, from 1; none for the file as a whole.
    pub line: Option<u64>,
    /// What was expected and what was found.
    pub reason: String,
}

impl fmt::Display for RejectedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "rejected {}:{line}: {}", self.file, self.reason),
            None => write!(f, "rejected {}: {}", self.file, self.reason),
        }
    }
}

/// While it lives, Ctrl-C asks the work to stop instead of ending the process.
#[derive(Debug)]
pub struct Watch(());

impl Watch {
    fn new() -> Watch {
        WORKING.fetch_add(1, Ordering::SeqCst);
        Watch(())
    }
}

impl Control for Watch {
    fn advance(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        INTERRUPTED.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        WORKING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Progress of one piece of work, which Ctrl-C stops.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    watch: Watch,
}

impl Progress {
    fn new(what: &str) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let progress = Progress { bar, watch: Watch::new() };
        // Before anything is drawn, so that the bar has its style from the first frame on.
        progress.say(what);
        if io::stderr().is_terminal() {
            progress.bar.set_draw_target(ProgressDrawTarget::stderr());
            progress.bar.enable_steady_tick(Duration::from_millis(200));
        }
        progress
    }

    /// Goes on with another part of the work, whose size is not known yet.
    pub fn say(&self, what: &str) {
        self.style("{spinner} {msg}");
        self.bar.set_message(what.to_owned());
        self.bar.unset_length();
        self.bar.set_position(0);
    }

    /// Lets `write` write to the terminal without the bar in between.
    pub fn pause<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    fn style(&self, template: &str) {
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("━╸─"));
        }
    }
}

impl Control for Progress {
    fn advance(&self, done: u64, total: u64) {
        if self.bar.is_hidden() || total == 0 {
            return;
        }
        if self.bar.length().is_none() {
            self.style("{spinner} {msg} {bar:30} {percent:>3} %  {eta} left");
        }
        self.bar.set_length(total);
        // Values may arrive out of order; a bar that jumps back looks broken.
        self.bar.set_position(done.max(self.bar.position()).min(total));
    }

    fn cancelled(&self) -> bool {
        self.watch.cancelled()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Whether the user has asked for an end: for work that has no progress at hand.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static WORKING: AtomicUsize = AtomicUsize::new(0);

/// A commit in flight when the process ends here is found whole or not at all at the next open.
fn interrupt() {
    let was_asked = INTERRUPTED.swap(true, Ordering::SeqCst);
    if was_asked || WORKING.load(Ordering::SeqCst) == 0 {
        process::exit(130);
    }
    writeln!(io::stderr().lock(), "\nstopping; press Ctrl-C again to stop at once").ok();
}

fn write_json<T: Serialize>(out: &mut impl Write, value: &T) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)
}

fn unless_closed(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use crate::session::{unless_closed, write_json};

    #[test]
    fn json_is_one_line() {
        let mut out = Vec::new();
        write_json(&mut out, &["a\nb"]).unwrap();
        assert_eq!(out, b"[\"a\\nb\"]\n");
    }

    #[test]
    fn only_a_reader_that_has_gone_away_is_no_error() {
        assert!(unless_closed(Ok(())).is_ok());
        assert!(unless_closed(Err(io::ErrorKind::BrokenPipe.into())).is_ok());
        assert_eq!(unless_closed(Err(io::ErrorKind::StorageFull.into())).unwrap_err().exit_code(), 5);
    }
}
