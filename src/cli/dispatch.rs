//! The way from arguments to a command, and from its result to an exit code.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use super::args::{Cli, CliCommand, DirArgs};
use super::color::{self, ColorChoice, option_values};
use super::exit::{CliExitCode, Error};
use super::{
    agent_orders, answer, branch, check, clean, costs, diagnostics, diff, engine, facts, help,
    hosts, import, list, log, new, output, person, record, run, runnable, schema, serve, show,
    status, test, tips, top, tree, trust, visited_agent, worker, workflow, worktrees,
};
use crate::cli::completions;
use crate::domain::id::AgentId;
use crate::process::host::too_few_open_files;
use crate::process::plugin_process::NamedVariables;
use crate::process::{ancestry, registry};
use crate::runtime;

/// The exit code of a launcher whose program cannot be started, as that of a shell.
const NOT_STARTED: u8 = 127;

/// The place of the program among the arguments of a launcher.
const PROGRAM_AT: usize = 6;

/// Runs a command line, program name included, and returns its exit code.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    if arguments.get(1).is_some_and(|first| first == registry::LAUNCH) {
        return launch(arguments);
    }
    if let Some(answered) = completions::answer(&arguments) {
        return answered;
    }
    if !ancestry::follow(std::env::var(ancestry::VARIABLE).ok().as_deref()) {
        return CliExitCode::Interrupted.into();
    }
    let colours = ColorChoice::in_arguments(&arguments);
    colours.apply();
    let given = arguments.clone();
    let words = words_of(&given);
    if words.is_empty() && runnable::show(&DirArgs::without_options().root()) {
        return CliExitCode::Success.into();
    }
    if let Some(overview) = help::overview(&Cli::command(), &words) {
        let printed = output::print(&overview).unwrap_or_else(|error| error.exit());
        return if words.is_empty() { CliExitCode::Usage.into() } else { printed.into() };
    }
    let cli = match read(arguments, colours) {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => {
            output::print_help(&error);
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            let advice = help::misspelling(&Cli::command(), &words);
            let advice = advice.or_else(|| help::late_command(&words));
            if let Some(advice) = advice.or_else(|| unknown_command(&words, &error)) {
                output::complain(&advice);
                return CliExitCode::Usage.into();
            }
            output::print_help(&error);
            return CliExitCode::Usage.into();
        }
    };
    let exit =
        prepare(&cli.command).and_then(|()| on_engine(cli.command)).unwrap_or_else(|error| {
            match &error {
                Error::Runtime(runtime::Error::Check(found)) => check::complain_of(found),
                _ => output::complain(&error.to_string()),
            }
            error.exit()
        });
    diagnostics::flush();
    exit.into()
}

/// Enters this process in the registry and executes a program in its place. Returns only if it cannot be executed.
fn launch(arguments: Vec<OsString>) -> ExitCode {
    let program = arguments.get(PROGRAM_AT).cloned().unwrap_or_default();
    let error = registry::launch(arguments.into_iter().skip(2).collect());
    output::complain(&format!("{} could not be started: {error}", program.display()));
    ExitCode::from(NOT_STARTED)
}

/// Returns the error for a first word that is neither a command nor a path, and not the id of a run.
fn unknown_command(words: &[&str], error: &clap::Error) -> Option<String> {
    let grammar = Cli::command();
    let word = *words.first().filter(|word| !word.starts_with('-') && !word.is_empty())?;
    let is_known = word == "help"
        || grammar.find_subcommand(word).is_some()
        || Path::new(word).symlink_metadata().is_ok()
        || DirArgs::without_options().is_run(word);
    if is_known {
        return None;
    }
    let meant = help::meant_command(&grammar, word);
    if meant.is_none() && !help::is_second_word(error) {
        // It may be a run that is elsewhere, and the mistake an option.
        return None;
    }
    let advice = meant.map_or_else(
        || "`raymond help --all` lists the commands".to_owned(),
        |command| format!("did you mean `raymond {command}`?"),
    );
    Some(format!("{word}: no such command, file or run; {advice}"))
}

/// Parses the command line by a grammar that is made only once, because it is large.
fn read(arguments: Vec<OsString>, colours: ColorChoice) -> Result<Cli, clap::Error> {
    let mut grammar = help::fitted(Cli::command()).color(colours.of_grammar());
    let first = color::first_other(&arguments);
    let is_local = std::env::var_os("RAYMOND_ENGINE").is_none()
        && !words_of(&arguments).iter().any(|word| word.starts_with("--engine"));
    let arguments = if is_local { with_last_run(arguments, first) } else { arguments };
    let given = arguments.clone();
    let words = words_of(&given);
    let arguments = if help::asks_for_all(&words) {
        vec!["raymond".into(), "--help".into()]
    } else {
        help::help_request(&grammar, with_default_command(&grammar, arguments), first)
    };
    let mut matches = match grammar.try_get_matches_from_mut(arguments) {
        Ok(matches) => matches,
        Err(error) => return Err(tips::with_tips(error, &grammar, &words)),
    };
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut grammar))
}

/// Returns the words after the option for colours.
fn words_of(arguments: &[OsString]) -> Vec<&str> {
    let words = arguments.iter().skip(color::first_other(arguments));
    words.filter_map(|word| word.to_str()).collect()
}

/// The commands with words after RUN, so that `--last` has to stand for it.
const WITH_WORDS: [&str; 10] =
    ["answer", "attach", "edit", "hold", "log", "release", "retry", "show", "stop", "tell"];

/// Replaces `--last` with the id of the most recent run, if the command may have words after it. If a run is named,
/// too, the words stay as they are, and the grammar refuses them.
fn with_last_run(mut arguments: Vec<OsString>, first: usize) -> Vec<OsString> {
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let words: Vec<&str> = arguments[..end].iter().filter_map(|word| word.to_str()).collect();
    let is_wanted = words.len() == end && WITH_WORDS.contains(words.get(first).unwrap_or(&""));
    let last = words.iter().position(|word| *word == "--last");
    let Some(last) = last.filter(|_| is_wanted) else { return arguments };
    let dir = option_values(words.iter().copied(), "--dir").next();
    let runs = DirArgs::without_options().or_dir(dir);
    // Later words may be a text, which may look like a run.
    let named = words.iter().skip(first + 1).find(|word| !word.starts_with('-'));
    let is_run = named.is_some_and(|word| AgentId::parse(word).is_err() && runs.is_run(word));
    if let Some(run) = runs.last_run().filter(|_| !is_run) {
        arguments.remove(last);
        arguments.insert(first + 1, run.as_str().into());
    }
    arguments
}

/// Puts `run` in front of a command line that begins with a target or an option of `run`.
fn with_default_command(grammar: &clap::Command, mut arguments: Vec<OsString>) -> Vec<OsString> {
    let at = color::first_other(&arguments);
    let first = arguments.get(at).and_then(|first| first.to_str()).unwrap_or("--help").to_owned();
    let known = grammar.find_subcommand(&first).is_some()
        || ["help", "-h", "--help", "-V", "--version"].contains(&first.as_str());
    if !known {
        arguments.insert(at, "run".into());
    }
    arguments
}

/// Checks who gives a command and what a command that runs something needs of the machine, prepares the log and checks
/// the `--on-event` command, before the command does anything.
fn prepare(command: &CliCommand) -> Result<(), Error> {
    person::may_give(command)?;
    let runs_elsewhere =
        matches!(command, CliCommand::Test(_) | CliCommand::Worker(_) | CliCommand::Serve(_));
    if (runs_elsewhere || command.reports().is_some())
        && let Some(limit) = too_few_open_files()
    {
        return Err(Error::FewFiles(limit));
    }
    let Some((logging, on_event)) = command.reports() else { return Ok(()) };
    diagnostics::begin(logging)?;
    on_event.map_or(Ok(()), |on_event| on_event.program(&NamedVariables::default()).map(drop))
}

/// Runs a command on the runs of this machine, or of the engine that it names.
fn on_engine(mut command: CliCommand) -> Result<CliExitCode, Error> {
    let mirror = engine::prepare(&mut command)?;
    let exit = dispatch(command)?;
    mirror.map_or(Ok(()), engine::CommandMirror::finish)?;
    Ok(exit)
}

fn dispatch(command: CliCommand) -> Result<CliExitCode, Error> {
    match command {
        CliCommand::New(args) => new::new(&args),
        CliCommand::Run(args) => run::run(&args),
        CliCommand::Resume(args) => run::resume(&args),
        CliCommand::Retry(args) => branch::retry(&args),
        CliCommand::Branch(args) => branch::branch(&args),
        CliCommand::Rewind(args) => branch::rewind(&args),
        CliCommand::Start(args) => run::start(&args),
        CliCommand::Answer(args) => answer::answer(&args),
        CliCommand::Rules(args) => check::rules(&args),
        CliCommand::Signal(args) => agent_orders::signal(&args),
        CliCommand::Facts(args) => facts::facts(&args),
        CliCommand::Status(args) => status::status(&args),
        CliCommand::List(args) => list::list(&args),
        CliCommand::Tell(args) => agent_orders::tell(&args),
        CliCommand::Hold(args) => agent_orders::hold(&args),
        CliCommand::Release(args) => agent_orders::release(&args),
        CliCommand::Edit(args) => visited_agent::edit(&args),
        CliCommand::Attach(args) => visited_agent::attach(&args),
        CliCommand::Pending(args) => list::pending(&args),
        CliCommand::Log(args) => log::log(&args),
        CliCommand::Tree(args) => tree::tree(&args),
        CliCommand::Show(args) => show::show(&args),
        CliCommand::Costs(args) => costs::costs(&args),
        CliCommand::Diff(args) => diff::diff(&args),
        CliCommand::Record(args) => record::record(&args),
        CliCommand::Worktrees(args) => worktrees::worktrees(&args),
        CliCommand::Clean(args) => clean::clean(&args),
        CliCommand::Stop(args) => agent_orders::stop(&args),
        CliCommand::Top(args) => top::top(&args),
        CliCommand::Serve(args) => serve::serve(&args),
        CliCommand::Recover(args) => branch::recover(&args),
        CliCommand::Worker(args) => worker::worker(&args),
        CliCommand::Hosts(args) => hosts::hosts(&args),
        CliCommand::Trust(args) => trust::trust(&args),
        CliCommand::Check(args) => check::check(&args),
        CliCommand::Test(args) => test::test(&args),
        CliCommand::Graph(args) => check::graph(&args),
        CliCommand::Import(args) => import::import(&args),
        CliCommand::Workflow(command) => workflow::workflow(command),
        CliCommand::Schema(args) => schema::print(&args),
        CliCommand::Completions { shell } => completions::print_script(shell),
        CliCommand::Man(args) => completions::man(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_without_command_implies_run() {
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
        assert_eq!(shown("raymond --color never list"), "raymond --color never list");
        assert_eq!(shown("raymond --color=never w"), "raymond --color=never run w");
        assert_eq!(shown("raymond --help"), "raymond --help");
        assert_eq!(shown("raymond"), "raymond");
    }
}
