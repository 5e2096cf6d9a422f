//! From arguments to a command, and from what it came to to an exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use super::args::{Cli, Command};
use super::exit::{Error, Exit};
use super::{
    answer, check, costs, diagnostics, facts, graph, list, log, output, recover, run, schema, show,
    signal, start, status, stop, top, tree, trust, workflow, worktrees,
};
use crate::process::environment::NamedVariables;

/// Runs a command line, program name included, and gives its exit code.
#[must_use]
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let cli = match read(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            output::print_help(&error);
            return if error.use_stderr() { Exit::Usage.into() } else { ExitCode::SUCCESS };
        }
    };
    let exit = prepare(&cli.command).and_then(|()| dispatch(cli.command)).unwrap_or_else(|error| {
        output::complain(&error.to_string());
        error.exit()
    });
    diagnostics::flush();
    exit.into()
}

/// The command line taken apart, by a grammar that is made only once: it is large.
fn read(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut grammar = Cli::command();
    let arguments = with_default_command(&grammar, arguments);
    let mut matches = grammar.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut grammar))
}

/// Puts `run` in front of a command line that begins with a target or an option of `run`.
fn with_default_command(grammar: &clap::Command, mut arguments: Vec<OsString>) -> Vec<OsString> {
    let first = arguments.get(1).and_then(|first| first.to_str()).unwrap_or("--help").to_owned();
    let known = grammar.get_subcommands().any(|known| known.get_name() == first)
        || ["help", "-h", "--help", "-V", "--version"].contains(&first.as_str());
    if !known {
        arguments.insert(1, "run".into());
    }
    arguments
}

/// Sees to what a command says besides what it does, before it does anything.
fn prepare(command: &Command) -> Result<(), Error> {
    let Some((logging, on_event)) = command.reports() else { return Ok(()) };
    diagnostics::begin(logging)?;
    on_event.map_or(Ok(()), |on_event| on_event.program(&NamedVariables::default()).map(drop))
}

fn dispatch(command: Command) -> Result<Exit, Error> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Resume(args) => run::resume(&args),
        Command::Start(args) => start::start(&args),
        Command::Answer(args) => answer::answer(&args),
        Command::Signal(args) => signal::signal(&args),
        Command::Facts(args) => facts::facts(&args),
        Command::Status(args) => status::status(&args),
        Command::List(args) => list::list(&args),
        Command::Log(args) => log::log(&args),
        Command::Tree(args) => tree::tree(&args),
        Command::Show(args) => show::show(&args),
        Command::Costs(args) => costs::costs(&args),
        Command::Worktrees(args) => worktrees::worktrees(&args),
        Command::Stop(args) => stop::stop(&args),
        Command::Top(args) => top::top(&args),
        Command::Recover(args) => recover::recover(&args),
        Command::Trust(args) => trust::trust(&args),
        Command::Check(args) => check::check(&args),
        Command::Graph(args) => graph::graph(&args),
        Command::Workflow(command) => workflow::workflow(command),
        Command::Schema(args) => schema::print(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "raymond", &mut script);
            output::print_exactly(&String::from_utf8_lossy(&script))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_alone_means_run() {
        let shown = |line: &str| {
            let arguments = line.split(' ').map(OsString::from).collect();
            let arguments = with_default_command(&Cli::command(), arguments);
            arguments.join(&OsString::from(" ")).into_string().expect("text")
        };
        assert_eq!(
            shown("raymond w/START.md --model sonnet"),
            "raymond run w/START.md --model sonnet"
        );
        assert_eq!(shown("raymond --model opus w"), "raymond run --model opus w");
        assert_eq!(shown("raymond status x"), "raymond status x");
        assert_eq!(shown("raymond --help"), "raymond --help");
        assert_eq!(shown("raymond"), "raymond");
    }
}
