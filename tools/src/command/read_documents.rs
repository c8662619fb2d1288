//! `hedgerow read-documents`: the process in which `ingest` reads documents; it takes a request a line and answers a line.

use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use crate::command::intake::reader::{Answer, Request};
use crate::failure::{Failure, Outcome};
use crate::read::document::FILE_BYTES_MAX;

/// Reads documents for `ingest`
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Address space of the process, where the system holds to it: some files unpack to all the memory that there is.
#[cfg(unix)]
const MEMORY_BYTES: u64 = 2 << 30;

/// Stack of the thread that reads: what nests deeply ends the process, not the store.
const STACK_BYTES: usize = 64 << 20;

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run() -> Result<Outcome, Failure> {
    // A system that does not know the limit reads without it; the deadline holds everywhere.
    #[cfg(unix)]
    rlimit::setrlimit(rlimit::Resource::AS, MEMORY_BYTES, MEMORY_BYTES).ok();
    let serving = thread::Builder::new().stack_size(STACK_BYTES).spawn(serve);
    let served = serving.map_err(Failure::Output)?.join();
    served.unwrap_or_else(|_| Err(io::Error::other("the thread that reads broke off"))).map_err(Failure::Output)?;
    Ok(Outcome::Done)
}

fn serve() -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let answer = catch_unwind(AssertUnwindSafe(|| answer(&line)));
        let answer = answer.unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
            Answer::Refused(format!("its reader gave up, as it is damaged or hostile: {said}"))
        });
        serde_json::to_writer(&mut output, &answer)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(())
}

fn answer(line: &str) -> Answer {
    let request: Request<'_> = match serde_json::from_str(line) {
        Ok(request) => request,
        Err(error) => return Answer::Refused(format!("the request is no JSON: {error}")),
    };
    match read(&request) {
        Ok(answer) => answer,
        Err(reason) => Answer::Refused(reason),
    }
}

fn read(request: &Request<'_>) -> Result<Answer, String> {
    let unreadable = |error: io::Error| format!("the file cannot be read: {error}");
    let file = File::open(request.path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("a file of this format has at most {FILE_BYTES_MAX} bytes; split it"));
    }
    let parsed = request.format.read(&bytes, request.name, request.password).map_err(|refusal| refusal.to_string())?;
    Ok(parsed.into())
}
