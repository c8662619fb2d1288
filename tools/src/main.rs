//! The command `hedgerow`.

use std::process::ExitCode;

fn main() -> ExitCode {
    hedgerow_cli::main()
}
