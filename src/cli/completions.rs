//! `raymond completions`: the script that makes a shell ask this program for completions, and the answers to it.
//!
//! The shell calls the program with `COMPLETE=SHELL`, and with the words of the line behind `--`. The
//! candidates are looked up then.
//!
//! `raymond man`: the manual pages, one for each command.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{CompleteEnv, Shells};
use clap_mangen::Man;

use super::runs_dir::DirArgs;
use super::table;
use crate::actor::context::now;
use crate::cli::args::Cli;
use crate::cli::args::readers::ManArgs;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::output;
use crate::domain::agent::Agent;
use crate::domain::id::{AgentId, RunId};
use crate::store::dataspace::Dataspace;
use crate::store::layout::RunsRoot;
use crate::store::snapshot::{RunView, ids_beginning, is_held, load_view, newest_first};

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

/// Runs `raymond man`.
///
/// # Errors
/// [`Error::Io`] if a page cannot be written, [`Error::Usage`] if they are to be written into a file.
pub fn man(args: &ManArgs) -> Result<CliExitCode, Error> {
    if args.dir.exists() && !args.dir.is_dir() {
        return Err(Error::Usage(format!(
            "{}: this is a file; name a directory, into which the pages are written",
            args.dir.display()
        )));
    }
    let failed =
        |error| Error::Io { doing: "write the manual pages in", path: args.dir.clone(), error };
    std::fs::create_dir_all(&args.dir).map_err(failed)?;
    let mut grammar = Cli::command().disable_help_subcommand(true);
    grammar.build();
    write_pages(&grammar, &args.dir).map_err(failed)?;
    let first = args.dir.join("raymond.1");
    output::tell(&format!("the pages are written; read the first: man {}", first.display()));
    Ok(CliExitCode::Success)
}

/// Writes the page of a command and those of its subcommands.
fn write_pages(command: &Command, dir: &Path) -> io::Result<()> {
    let page = Man::new(command.clone());
    std::fs::write(dir.join(page.get_filename()), text_of(command, &page)?)?;
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    below.into_iter().try_for_each(|below| write_pages(below, dir))
}

/// Returns the text of a page, with the values of options and the mark of repeatable arguments in its synopsis, and its notes under their usual heading.
fn text_of(command: &Command, page: &Man) -> io::Result<String> {
    let mut text = Vec::new();
    page.render(&mut text)?;
    let mut text = String::from_utf8_lossy(&text).replace(".SH EXTRA", ".SH NOTES");
    let options = command.get_arguments().filter(|option| option.get_action().takes_values());
    for option in options {
        if let (Some(long), Some(values)) = (option.get_long(), option.get_value_names()) {
            let shown = format!("\\-\\-{}\\fR]", long.replace('-', "\\-"));
            let values = values.join(" ");
            let complete = shown.replace("\\fR]", &format!("\\fR \\fI{values}\\fR]"));
            text = text.replacen(&shown, &complete, 1);
        }
    }
    for several in command
        .get_positionals()
        .filter(|one| one.get_num_args().is_some_and(|count| count.max_values() > 1))
    {
        for name in several.get_value_names().unwrap_or_default() {
            let shown = format!("[\\fI{name}\\fR]");
            text = text.replacen(&shown, &format!("{shown}..."), 1);
        }
    }
    Ok(text)
}

// The candidates of completions: runs, agents of the run on the line, and defined programs.
//
// A directory or a run that cannot be read has no candidates.

/// The most agents that are offered.
const MAX_AGENTS: usize = 1000;

/// The most runs that are read to tell whether a command takes them.
const MAX_READ_RUNS: usize = 100;

/// Returns the runs that begin with a text and that the command on the line takes, the newest first.
pub(super) fn complete_runs(beginning: &OsStr) -> Vec<CompletionCandidate> {
    let line = CommandLine::of_process();
    if line.has_run() {
        return complete_agents(beginning);
    }
    let beginning = beginning.to_string_lossy();
    let root = line.root();
    let taken = TakenRuns::of(line.command());
    let runs = newest_first(&root).unwrap_or_default();
    let named = runs.into_iter().filter(|(id, _)| id.as_str().starts_with(&*beginning));
    let most = if taken == TakenRuns::All { usize::MAX } else { MAX_READ_RUNS };
    let named = named.take(most).filter(|(id, _)| taken.has(&root, id));
    let candidate = |(order, (id, started)): (usize, (RunId, _))| {
        let age = format!("started {} ago", table::text(now().since(started)));
        CompletionCandidate::new(id.as_str()).help(Some(age.into())).display_order(Some(order))
    };
    named.enumerate().map(candidate).collect()
}

/// Returns the agents of the run on the line that begin with a text, in the order of their numbers.
pub(super) fn complete_agents(beginning: &OsStr) -> Vec<CompletionCandidate> {
    let beginning = beginning.to_string_lossy();
    let typed = CommandLine::of_process();
    let root = typed.root();
    let view = typed.run(&root).and_then(|id| load_view(&root, &id).ok());
    let Some(view) = view else { return Vec::new() };
    let live = view.run.agents.values().map(|agent| (&agent.id, Some(&agent.current_state)));
    let ended = view.run.finished.iter().map(|agent| (&agent.id, agent.state.as_ref()));
    let mut agents: Vec<(&AgentId, _)> =
        live.chain(ended).filter(|(id, _)| id.as_str().starts_with(&*beginning)).collect();
    agents.sort_by(|(one, _), (other, _)| one.cmp_by_number(other));
    let candidate = |(order, (id, state)): (usize, (&AgentId, Option<&_>))| {
        let state = state.map(|state| format!("{state}").into());
        CompletionCandidate::new(id.as_str()).help(state).display_order(Some(order))
    };
    agents.into_iter().take(MAX_AGENTS).enumerate().map(candidate).collect()
}

/// Returns the targets that begin with a text: files and folders, and either runs or defined programs.
pub(super) fn complete_targets(beginning: &OsStr) -> Vec<CompletionCandidate> {
    let mut targets = if CommandLine::of_process().is_about_programs() {
        defined_programs(beginning)
    } else {
        complete_runs(beginning)
    };
    targets.extend(PathCompleter::any().complete(beginning));
    targets
}

/// Returns the defined programs whose name begins with a text.
fn defined_programs(beginning: &OsStr) -> Vec<CompletionCandidate> {
    let beginning = beginning.to_string_lossy();
    let defined = Dataspace::of(&CommandLine::of_process().root()).all_defined();
    let defined = defined.map(|listing| listing.defined).unwrap_or_default();
    let named = defined.into_iter().filter(|one| one.name.starts_with(&*beginning));
    named.map(|one| CompletionCandidate::new(one.name)).collect()
}

/// The runs that a command takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TakenRuns {
    /// All runs.
    All,
    /// Those that a raymond has locked.
    Live,
    /// Those that can be resumed.
    Resumable,
    /// Those that have ended.
    Ended,
    /// Those with a question that waits for an answer.
    Asking,
}

impl TakenRuns {
    /// Returns the runs that a command takes: others it would refuse, or find nothing to do for.
    fn of(command: &str) -> Self {
        match command {
            "stop" => Self::Live,
            "run" | "resume" | "start" => Self::Resumable,
            "clean" => Self::Ended,
            "answer" => Self::Asking,
            _ => Self::All,
        }
    }

    /// Returns whether a run is one of them. A run that cannot be read is not.
    fn has(self, root: &RunsRoot, id: &RunId) -> bool {
        match self {
            Self::All => true,
            Self::Live => is_held(root, id).unwrap_or(false),
            _ => load_view(root, id).is_ok_and(|view| self.takes(&view)),
        }
    }

    fn takes(self, view: &RunView) -> bool {
        match self {
            Self::All => true,
            Self::Live => view.held,
            Self::Resumable => !view.held && view.run.can_resume(),
            Self::Ended => !view.held && !view.run.can_resume(),
            Self::Asking => {
                let asks = |agent: &Agent| {
                    agent.question().is_some() || agent.open_approvals().next().is_some()
                };
                view.run.agents.values().any(asks)
            }
        }
    }
}

/// The words of the line that a shell completes.
#[derive(Debug)]
struct CommandLine(Vec<String>);

impl CommandLine {
    /// Returns the words that the shell has passed to this process.
    fn of_process() -> Self {
        let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        Self(words.skip_while(|word| word != "--").skip(1).collect())
    }

    /// Returns the directory of all runs that the line names, or else that a command would use.
    fn root(&self) -> RunsRoot {
        let words = || self.0.iter();
        let apart = words().zip(words().skip(1)).find(|(option, _)| *option == "--dir");
        let joined = || words().find_map(|word| word.strip_prefix("--dir="));
        let given = apart.map(|(_, value)| value.as_str()).or_else(joined).map(PathBuf::from);
        let given = given.map(|dir| DirArgs { dir: Some(dir), engine: None });
        given.unwrap_or_else(DirArgs::without_options).root()
    }

    /// Returns the run that the line names.
    fn run(&self, root: &RunsRoot) -> Option<RunId> {
        if self.0.iter().any(|word| word == "--last") {
            return newest_first(root).ok()?.into_iter().next().map(|(id, _)| id);
        }
        let named = self.0.iter().skip(2).filter_map(|word| RunId::parse(word).ok());
        named.into_iter().find_map(|id| only_run(root, &id))
    }

    /// Returns the command on the line; empty if there is none.
    fn command(&self) -> &str {
        self.0.get(1).map_or("", String::as_str)
    }

    /// Returns whether the line names a run in another way than by a word, so that the first word is an agent.
    fn has_run(&self) -> bool {
        self.command() == "show" && self.0.iter().any(|word| word == "--last")
    }

    /// Returns whether the line is of a command about programs.
    fn is_about_programs(&self) -> bool {
        self.command() == "workflow"
    }
}

/// Returns the run of this id, else the only one whose id begins with it.
fn only_run(root: &RunsRoot, beginning: &RunId) -> Option<RunId> {
    let mut found = ids_beginning(root, beginning).ok()?;
    found.pop().filter(|_| found.is_empty())
}

#[cfg(test)]
mod man_tests {
    use super::*;

    #[test]
    fn synopsis_names_the_values_of_options() {
        let mut grammar = Cli::command();
        grammar.build();
        let clean = grammar.find_subcommand("clean").expect("a command");
        let text = text_of(clean, &Man::new(clean.clone())).expect("rendered");
        let synopsis = text.lines().skip_while(|line| *line != ".SH SYNOPSIS").nth(1);
        let synopsis = synopsis.expect("a synopsis");
        assert!(synopsis.contains(r"[\fB\-\-older\-than\fR \fIAGE\fR]"), "{synopsis}");
        assert!(synopsis.contains(r"[\fB\-\-dry\-run\fR]"), "{synopsis}");
        assert!(synopsis.contains(r"[\fIRUN\fR]..."), "{synopsis}");
        assert!(text.contains(".SH NOTES") && !text.contains("EXTRA"), "{text}");
    }
}

#[cfg(test)]
mod candidates_tests {
    use super::*;
    use crate::domain::run::{Run, RunStatus};
    use crate::domain::tests::scene::Scene;

    #[test]
    fn runs_that_a_command_refuses_are_not_offered() {
        let mut run = Scene::begin().run;
        let offered = |run: &Run, held| {
            let view = RunView {
                run: run.clone(),
                held,
                holder: None,
                times: crate::store::snapshot::RunTimes::default(),
            };
            let commands = ["stop", "resume", "clean", "answer", "status"];
            commands.into_iter().filter(|command| TakenRuns::of(command).takes(&view)).collect()
        };
        let live: Vec<&str> = offered(&run, true);
        assert_eq!(live, ["stop", "status"]);
        let interrupted: Vec<&str> = offered(&run, false);
        assert_eq!(interrupted, ["resume", "status"]);
        run.status = RunStatus::Completed;
        let ended: Vec<&str> = offered(&run, false);
        assert_eq!(ended, ["clean", "status"]);
    }

    #[test]
    fn directory_and_run_are_read_from_the_line() {
        let place = tempfile::tempdir().expect("a directory");
        let root = RunsRoot::new(place.path());
        std::fs::create_dir_all(root.runs().join("tour-1")).expect("made");
        let dir = place.path().display();
        let table = [
            (format!("raymond show --dir {dir} tour-1 ma"), Some("tour-1")),
            (format!("raymond show tour --dir={dir} "), Some("tour-1")),
            (format!("raymond log --last --dir={dir} --agent "), Some("tour-1")),
            (format!("raymond show other --dir={dir} "), None),
        ];
        for (line, run) in table {
            let line = CommandLine(line.split(' ').map(str::to_owned).collect());
            assert_eq!(line.root().path(), place.path(), "{line:?}");
            let found = line.run(&root);
            assert_eq!(found.as_ref().map(RunId::as_str), run, "{line:?}");
            assert!(!line.is_about_programs());
        }
    }
}
