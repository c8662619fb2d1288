//! One process of many on a store: the writer, or one of the readers that must not notice it.

mod content;
mod progress;
mod reader;
mod writer;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// `hedgerow-soak write STORE SECONDS`, or `hedgerow-soak read STORE SECONDS NUMBER`.
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let end = |seconds: &str| seconds.parse().map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let done = match arguments[..] {
        ["write", store, seconds] => {
            end(seconds).map_err(|error| error.to_string()).and_then(|end| writer::write(Path::new(store), end))
        }
        ["read", store, seconds, number] => end(seconds)
            .map_err(|error| error.to_string())
            .and_then(|end| reader::read(Path::new(store), end, number.parse().unwrap_or_default())),
        _ => Err("it is told neither to write nor to read".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", arguments.join(" "));
            ExitCode::FAILURE
        }
    }
}
