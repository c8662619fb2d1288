//! The command, as a process that the tests can start, kill and read from.

use std::process::ExitCode;

fn main() -> ExitCode {
    hedgerow_cli::main()
}
