//! Documents that are more than plain text are read in a process of their own, which may panic, hang or run out of memory
//! without harm: the file is rejected, and the next one gets a new process.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, RecvTimeoutError, bounded};
use hedgerow::{Part, PartKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::read::document::{Format, Parsed};

/// The name of the command that reads what this one asks for.
pub const COMMAND: &str = "read-documents";

/// How long the reading of one file may take.
const DEADLINE: Duration = Duration::from_mins(2);

/// How often a wait looks whether it was cancelled.
const GLANCE: Duration = Duration::from_millis(50);

/// A file to read: one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request<'r> {
    /// Where it is.
    pub path: &'r str,
    /// What its name says it is.
    pub format: Format,
    /// The title of a document that has none.
    pub name: &'r str,
    /// What an encrypted document opens with.
    pub password: Option<&'r str>,
}

/// What became of it: one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// The document.
    Read {
        /// Its title.
        title: String,
        /// Its text.
        text: String,
        /// First byte, end, heading, page, and whether it is a table, of each part.
        parts: Vec<(usize, usize, String, Option<u32>, bool)>,
        /// Anything else.
        metadata: Map<String, Value>,
        /// Its media type.
        media_type: String,
    },
    /// Why it is none.
    Refused(String),
}

impl From<Parsed> for Answer {
    fn from(parsed: Parsed) -> Self {
        let Parsed { title, text, parts, metadata, media_type } = parsed;
        let part =
            |part: Part| (part.range.start, part.range.end, part.heading, part.page, part.kind == PartKind::Table);
        Answer::Read { title, text, parts: parts.into_iter().map(part).collect(), metadata, media_type }
    }
}

impl Answer {
    fn document(self) -> Result<Parsed, String> {
        match self {
            Answer::Refused(reason) => Err(reason),
            Answer::Read { title, text, parts, metadata, media_type } => {
                let kind = |is_table| if is_table { PartKind::Table } else { PartKind::Text };
                let part = |(start, end, heading, page, is_table)| Part {
                    range: start..end,
                    heading,
                    page,
                    kind: kind(is_table),
                };
                Ok(Parsed { title, text, parts: parts.into_iter().map(part).collect(), metadata, media_type })
            }
        }
    }
}

/// Who reads documents; its process starts with the first of them.
#[derive(Debug)]
pub struct Reader {
    program: io::Result<Command>,
    deadline: Duration,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
}

impl Default for Reader {
    fn default() -> Self {
        let program = std::env::current_exe().map(|path| {
            let mut command = Command::new(path);
            command.arg(COMMAND);
            command
        });
        Reader { program, deadline: DEADLINE, running: None }
    }
}

impl Reader {
    /// Reads a file, or says why it is not read. Whoever is cancelled gets an answer at once that does not count.
    ///
    /// # Errors
    /// A sentence that says why the file is not read.
    pub fn read(&mut self, request: &Request<'_>, is_cancelled: impl Fn() -> bool) -> Result<Parsed, String> {
        let line = serde_json::to_string(request).map_err(|error| error.to_string())?;
        let mut running = match self.running.take() {
            Some(running) => running,
            None => {
                self.start().map_err(|error| format!("the process that reads documents cannot be started: {error}"))?
            }
        };
        let start = Instant::now();
        // Who cannot be written to has ended, which the answer tells.
        running.requests.write_all(format!("{line}\n").as_bytes()).and_then(|()| running.requests.flush()).ok();
        loop {
            match running.answers.recv_timeout(GLANCE) {
                Ok(line) => {
                    let answer: Result<Answer, _> = serde_json::from_str(&line);
                    self.running = Some(running);
                    return answer
                        .map_err(|error| format!("the process that reads documents said: {error}"))?
                        .document();
                }
                Err(RecvTimeoutError::Disconnected) => return Err(ended(running.end())),
                Err(RecvTimeoutError::Timeout) if start.elapsed() > self.deadline => {
                    running.end().ok();
                    let seconds = self.deadline.as_secs();
                    return Err(format!("it was not read within {seconds} s: it is damaged, hostile or far too large"));
                }
                Err(RecvTimeoutError::Timeout) if is_cancelled() => {
                    running.end().ok();
                    return Err("interrupted".to_owned());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn start(&mut self) -> io::Result<Running> {
        let program = self.program.as_mut().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
        let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(requests), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("it has no pipes"));
        };
        let (to, answers) = bounded(1);
        // Ends with the process, or when no one waits for its answers.
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                if to.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Running { child, requests, answers })
    }
}

impl Running {
    fn end(mut self) -> io::Result<ExitStatus> {
        // Whoever has ended by itself cannot be killed, and is waited for just so.
        self.child.kill().ok();
        self.child.wait()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.end().ok();
        }
    }
}

fn ended(status: io::Result<ExitStatus>) -> String {
    let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
    format!("reading it broke off ({how}): it is damaged or hostile, or needs too much memory")
}

/// The title of a document that has none: the last part of its key without its ending.
#[must_use]
pub fn stem(key: &str) -> &str {
    let name = Path::new(key).file_stem().and_then(|stem| stem.to_str());
    name.unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use crate::command::intake::reader::{Reader, Request};
    use crate::read::document::Format;

    const REQUEST: Request<'_> = Request { path: "a.pdf", format: Format::Pdf, name: "a", password: None };

    #[cfg(unix)]
    #[test]
    fn a_process_that_hangs_ends_or_talks_nonsense_rejects_one_file() {
        for (program, said) in
            [("sleep 60", "within 0 s"), ("exit 3", "exit status: 3"), ("kill -6 $$", "signal: 6"), ("cat", "said:")]
        {
            let mut command = Command::new("sh");
            command.args(["-c", program]);
            let mut reader = Reader { program: Ok(command), deadline: Duration::from_millis(300), running: None };
            for _ in 0..2 {
                let reason = reader.read(&REQUEST, || false).unwrap_err();
                assert!(reason.contains(said), "{program}: {reason}");
            }
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let mut reader =
            Reader { program: Ok(Command::new("no such program")), deadline: Duration::from_secs(1), running: None };
        assert!(reader.read(&REQUEST, || false).unwrap_err().contains("cannot be started"));
    }
}
