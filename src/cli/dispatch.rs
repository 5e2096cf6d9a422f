//! From arguments to a command, and from what it came to to an exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use super::args::{self, Cli, Command};
use super::exit::{Error, Exit};
use super::{
    answer, check, costs, diagnostics, facts, graph, list, log, output, recover, run, schema, show,
    signal, start, status, stop, top, tree, workflow, worktrees,
};

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
    let exit = prepare(&cli.command).and_then(|()| dispatch(cli.command)).unwrap_or_else(|error| {
        output::complain(&error.to_string());
        error.exit()
    });
    diagnostics::flush();
    exit.into()
}

/// Sees to what a command says besides what it does, before it does anything.
fn prepare(command: &Command) -> Result<(), Error> {
    let Some((logging, on_event)) = command.reports() else { return Ok(()) };
    diagnostics::begin(logging)?;
    on_event.map_or(Ok(()), |on_event| on_event.program().map(drop))
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
        Command::Check(args) => check::check(&args),
        Command::Graph(args) => graph::graph(&args),
        Command::Workflow(command) => workflow::workflow(command),
        Command::Schema(args) => schema::print(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "raymond", &mut script);
            output::print(&String::from_utf8_lossy(&script))
        }
    }
}
