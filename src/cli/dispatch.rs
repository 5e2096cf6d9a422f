//! From arguments to a command, and from what it came to to an exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use super::args::{self, Cli, Command};
use super::exit::{Error, Exit};
use super::{costs, list, log, output, recover, run, show, start, status, stop, tree};

/// Runs a command line, program name included, and gives its exit code.
#[must_use]
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args::with_default_command(arguments)) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { ExitCode::SUCCESS };
        }
    };
    match dispatch(cli.command) {
        Ok(exit) => exit.into(),
        Err(error) => {
            output::complain(&error.to_string());
            error.exit().into()
        }
    }
}

fn dispatch(command: Command) -> Result<Exit, Error> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Resume(args) => run::resume(&args),
        Command::Start(args) => start::start(&args),
        Command::Status(args) => status::status(&args),
        Command::List(args) => list::list(&args),
        Command::Log(args) => log::log(&args),
        Command::Tree(args) => tree::tree(&args),
        Command::Show(args) => show::show(&args),
        Command::Costs(args) => costs::costs(&args),
        Command::Stop(args) => stop::stop(&args),
        Command::Recover(args) => recover::recover(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "raymond", &mut script);
            output::print(&String::from_utf8_lossy(&script))
        }
    }
}
