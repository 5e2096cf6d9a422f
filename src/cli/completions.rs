//! `raymond completions`: the script that makes a shell ask this program for completions, and the answers to it.
//!
//! The shell calls the program with `COMPLETE=SHELL`, and with the words of the line behind `--`. The
//! [candidates](super::candidates) are looked up then.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::env::{CompleteEnv, Shells};

use super::args::Cli;
use super::exit::{CliExitCode, Error};
use super::output;

/// The variable by which a shell asks for completions.
const VARIABLE: &str = "COMPLETE";

/// The name of the program in the scripts.
const PROGRAM: &str = "raymond";

/// Answers a shell that asks for completions; returns `None` if none does.
pub(super) fn answer(arguments: &[OsString]) -> Option<ExitCode> {
    let shell = std::env::var(VARIABLE).ok()?;
    Shells::builtins().completer(&shell)?;
    let here = std::env::current_dir().ok();
    let complete = CompleteEnv::with_factory(Cli::command).var(VARIABLE).bin(PROGRAM);
    match complete.try_complete(arguments.to_vec(), here.as_deref()) {
        Ok(true) => Some(ExitCode::SUCCESS),
        Ok(false) => None,
        Err(error) => {
            output::print_help(&error);
            Some(CliExitCode::Usage.into())
        }
    }
}

/// Prints the script for a shell.
///
/// # Errors
/// [`Error::Io`] if it cannot be written.
pub(super) fn print_script(shell: clap_complete::Shell) -> Result<CliExitCode, Error> {
    let mut script = Vec::new();
    let asks = Shells::builtins().completer(&shell.to_string()).is_some_and(|completer| {
        completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script).is_ok()
    });
    if !asks {
        clap_complete::generate(shell, &mut Cli::command(), PROGRAM, &mut script);
    }
    output::print_exactly(&String::from_utf8_lossy(&script))
}
