//! The program `raymond`: passes its arguments to `raymond::cli::main`.

use std::process::ExitCode;

fn main() -> ExitCode {
    raymond::cli::main(std::env::args_os().collect())
}
