//! The help: the common commands and options at first, all of them with `--all`, at the width of the terminal.

use std::ffi::OsString;
use std::fmt::Write;
use std::io::{IsTerminal, stdout};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command, CommandFactory};

use super::args::Cli;
use crate::language::hint::{closest, closest_slip};

/// The width without a terminal, in columns.
const PLAIN_WIDTH: usize = 120;

/// The option that shows all of the help.
const ALL: &str = "--all";

/// The commands that a new user needs.
const COMMON_COMMANDS: [&str; 9] =
    ["new", "run", "status", "answer", "resume", "retry", "stop", "show", "serve"];

/// The other commands by subject.
const GROUPS: [(&str, &str); 6] = [
    (
        "runs",
        "start, list, log, tree, top, costs, diff, record, branch, rewind, recover, worktrees, clean",
    ),
    ("workflows", "check, test, graph, import, trust, workflow, schema"),
    ("agents", "tell, hold, release, edit, attach"),
    ("people", "pending, rules, signal, facts"),
    ("machines", "worker, hosts"),
    ("shell", "completions, man"),
];

/// The number of options from which the help of a command shows only the common ones.
const MANY_OPTIONS: usize = 25;

/// The options that the short help of a command with many options shows.
const COMMON_OPTIONS: &str = "answer agent at budget cwd dry_run id input json last max_procs model permissions quiet to \
    trust variables verbose";

/// Returns a grammar whose help is as wide as the terminal.
pub(super) fn fitted(grammar: Command) -> Command {
    let grammar = with_whole_paragraphs(with_short_help_of_commands(grammar));
    if stdout().is_terminal() { grammar } else { grammar.term_width(PLAIN_WIDTH) }
}

fn with_short_help_of_commands(grammar: Command) -> Command {
    grammar.mut_subcommands(|command| with_short_help(command, ""))
}

/// Hides the options that few need from the short help of the commands with many.
fn with_short_help(command: Command, above: &str) -> Command {
    let path = format!("{above} {}", command.get_name()).trim().to_owned();
    let command = command.mut_subcommands(|below| with_short_help(below, &path));
    let options = command.get_arguments().filter(|option| !option.is_positional()).count();
    if options < MANY_OPTIONS {
        return command;
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    // The examples come first.
    let examples = after.split("\n\n").next().unwrap_or_default();
    let hint = format!("`raymond help {path} --all` shows all {options} options.");
    let help =
        Arg::new("help").help_heading(None::<&str>).short('h').long("help").action(ArgAction::Help);
    let command = command
        .after_help(format!("{hint}\n\n{examples}"))
        .after_long_help(after)
        .disable_help_flag(true)
        .arg(help.help("Print help; with --all, all options"));
    command.mut_args(|option| {
        let id = option.get_id().as_str();
        let is_common = COMMON_OPTIONS.split(' ').any(|common| common == id);
        let is_common = option.is_positional() || id == "help" || is_common;
        option.hide_short_help(!is_common)
    })
}

/// Returns the arguments for the grammar if they ask for the help of a command: that command and `--help`, or `-h` for
/// the short help of one with many options. `first` is the place of the first argument that is not the option for
/// colours.
pub(super) fn help_request(
    grammar: &Command,
    arguments: Vec<OsString>,
    first: usize,
) -> Vec<OsString> {
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let words: Vec<&str> = arguments
        .get(first..end)
        .unwrap_or_default()
        .iter()
        .filter_map(|word| word.to_str())
        .collect();
    let is_help = words.first() == Some(&"help");
    let has = |option: &str| words.contains(&option);
    if !is_help && !has("--help") && !has("-h") {
        return arguments;
    }
    let mut named = words.iter().skip(usize::from(is_help)).filter(|word| !word.starts_with('-'));
    let mut request = arguments[..first].to_vec();
    let mut command = grammar;
    for name in named.by_ref() {
        match command.find_subcommand(name) {
            Some(below) => {
                request.push(name.into());
                command = below;
            }
            // A word that is not a command is an error for `help`, and an argument of a command.
            None if is_help => return arguments,
            None => break,
        }
    }
    if request.len() == first {
        return arguments;
    }
    let is_short = has_short_help(command) && !has(ALL) || !is_help && !has("--help") && !has(ALL);
    request.push(if is_short { "-h" } else { "--help" }.into());
    request
}

fn has_short_help(command: &Command) -> bool {
    command.get_arguments().any(clap::Arg::is_hide_short_help_set)
}

/// Returns the help of raymond itself, if the words after the program's name ask for no more than the common commands.
pub(super) fn overview(grammar: &Command, words: &[&str]) -> Option<String> {
    if !matches!(words, [] | ["help" | "-h" | "--help"]) {
        return None;
    }
    let about = |name: &str| {
        let command = grammar.find_subcommand(name);
        command.and_then(Command::get_about).map(ToString::to_string).unwrap_or_default()
    };
    let mut text = format!("{}\n\n", grammar.get_about()?);
    text.push_str("Usage: raymond COMMAND [OPTIONS]\n       raymond PATH       the same as `raymond run PATH`\n\nCommands:\n");
    for name in COMMON_COMMANDS {
        let _ = writeln!(text, "  {name:<10} {}", about(name));
    }
    text.push_str("\nMore commands:\n");
    for (group, names) in GROUPS {
        let _ = writeln!(text, "  {group:<10} {names}");
    }
    text.push_str("\n`raymond help COMMAND` shows the options of a command, `raymond help --all` what each command does.\n");
    Some(text)
}

/// Returns whether the words after the program's name ask for all commands.
pub(super) fn asks_for_all(words: &[&str]) -> bool {
    matches!(words, ["help" | "-h" | "--help", ALL] | [ALL, "help" | "-h" | "--help"])
}

/// The commands, with their names in other programs.
const OTHER_NAMES: [(&str, &str); 18] = [
    ("answer", "approve deny"),
    ("check", "lint validate"),
    ("clean", "delete gc prune remove rm"),
    ("costs", "cost"),
    ("graph", "draw"),
    ("hold", "pause"),
    ("list", "ls ps runs"),
    ("log", "history logs"),
    ("new", "init"),
    ("resume", "continue"),
    ("retry", "restart"),
    ("run", "exec execute launch"),
    ("serve", "ui web"),
    ("show", "describe inspect"),
    ("start", "spawn"),
    ("status", "info"),
    ("stop", "abort cancel end kill"),
    ("tell", "message say"),
];

/// Returns the advice for options that stand before the command.
pub(super) fn late_command(words: &[&str]) -> Option<String> {
    words.first().filter(|first| first.starts_with('-'))?;
    let grammar = Cli::command();
    let is_command = |word: &&&str| grammar.find_subcommand(word).is_some();
    let command = words.iter().take_while(|word| **word != "--").find(is_command)?;
    Some(format!("put the command first: raymond {command}, then its options"))
}

/// Returns whether an error is about a word that is not an option and has no place, such as the second of a text
/// without quotes.
pub(super) fn is_second_word(error: &clap::Error) -> bool {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else {
        return false;
    };
    error.kind() == ErrorKind::UnknownArgument && !word.starts_with('-')
}

/// Returns the command that a word means which is not one: by its name in other programs, or as a misspelling.
pub(super) fn meant_command(grammar: &Command, word: &str) -> Option<String> {
    let is_name = |names: &str| names.split(' ').any(|name| name == word);
    let other = OTHER_NAMES.iter().find(|(_, names)| is_name(names)).map(|&(command, _)| command);
    let names = || grammar.get_subcommands().map(Command::get_name);
    let similar = || closest(word, names()).or_else(|| closest_slip(word, names()));
    other.or_else(similar).map(str::to_owned)
}

/// Makes each paragraph after the options of a command and its subcommands one line, which clap wraps.
fn with_whole_paragraphs(command: Command) -> Command {
    let short = command.get_after_help().map(ToString::to_string);
    let long = command.get_after_long_help().map(ToString::to_string);
    let command = match short {
        Some(text) => command.after_help(joined(&text)),
        None => command,
    };
    let command = match long {
        Some(text) => command.after_long_help(joined(&text)),
        None => command,
    };
    command.mut_subcommands(with_whole_paragraphs)
}

/// Joins the lines of each paragraph. An indented line, such as an example, stays a line, and so does a heading.
fn joined(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut before = "";
    for line in text.lines() {
        let continues =
            [before, line].iter().all(|line| !line.is_empty() && !line.starts_with(' '));
        if !whole.is_empty() {
            whole.push(if continues && !before.ends_with(':') { ' ' } else { '\n' });
        }
        let fitted = line.starts_with(' ').then(|| super::output::fitted(line));
        whole.push_str(fitted.as_deref().unwrap_or(line).trim_end());
        before = line;
    }
    whole
}

/// Returns the advice for a command that `help` does not know, or for an option that stands before all commands and is
/// meant for `raymond` itself; `words` are those after the program's name.
pub(super) fn misspelling(grammar: &Command, words: &[&str]) -> Option<String> {
    let Some(help) = words.iter().position(|word| *word == "help").filter(|&at| at < 2) else {
        let first = words.first().filter(|word| word.starts_with("--"))?;
        let meant = closest_slip(first, ["--version", "--help"]).filter(|meant| meant != first)?;
        return Some(format!("{first}: there is no such option; did you mean `raymond {meant}`?"));
    };
    let mut known = grammar;
    let mut path = String::new();
    let named = words.iter().take(help).chain(&words[help + 1..]);
    for word in named.take_while(|word| !word.starts_with('-')) {
        if let Some(below) = known.find_subcommand(word) {
            (known, path) = (below, format!("{path} {word}"));
            continue;
        }
        if !known.has_subcommands() {
            return None;
        }
        let tip =
            match meant_command(known, word).filter(|name| known.find_subcommand(name).is_some()) {
                Some(similar) => format!("did you mean `raymond help{path} {similar}`?"),
                None if path.is_empty() => "`raymond help --all` lists all".to_owned(),
                None => format!("`raymond{path} --help` lists all"),
            };
        return Some(format!("{word}: there is no such command; {tip}"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_command_or_option_is_advised() {
        let advice = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            misspelling(&crate::cli::args::Cli::command(), &words)
        };
        let table = [
            (
                "help stauts",
                "stauts: there is no such command; did you mean `raymond help status`?",
            ),
            (
                "help workflow defin",
                "defin: there is no such command; did you mean `raymond help workflow define`?",
            ),
            (
                "workflow help wacth",
                "wacth: there is no such command; did you mean `raymond help workflow watch`?",
            ),
            ("help zzz", "zzz: there is no such command; `raymond help --all` lists all"),
            ("--verison", "--verison: there is no such option; did you mean `raymond --version`?"),
        ];
        for (line, expected) in table {
            assert_eq!(advice(line).as_deref(), Some(expected), "{line}");
        }
        for line in [
            "help status",
            "help",
            "--model x",
            "run help",
            "--version",
            "status helpme",
            "answer help x=1",
        ] {
            assert_eq!(advice(line), None, "{line}");
        }
    }

    #[test]
    fn overview_names_each_command_once() {
        let grammar = crate::cli::args::Cli::command();
        let mut named: Vec<&str> = COMMON_COMMANDS.to_vec();
        named.extend(GROUPS.iter().flat_map(|(_, names)| names.split(", ")));
        named.sort_unstable();
        let mut known: Vec<&str> = grammar.get_subcommands().map(Command::get_name).collect();
        known.sort_unstable();
        assert_eq!(named, known);
        assert_eq!(late_command(&["run", "-q"]), None);
        let advice = late_command(&["--agent", "scripted", "run", "flow"]).expect("advice");
        assert!(advice.starts_with("put the command first: raymond run"), "{advice}");
        for (command, names) in OTHER_NAMES {
            assert!(grammar.find_subcommand(command).is_some(), "{command} is not a command");
            for name in names.split(' ') {
                assert!(grammar.find_subcommand(name).is_none(), "{name} is a command");
            }
        }
        assert_eq!(meant_command(&grammar, "kill").as_deref(), Some("stop"));
        assert_eq!(meant_command(&grammar, "rnu").as_deref(), Some("run"));
        assert_eq!(meant_command(&grammar, "frobnicate"), None);
    }

    #[test]
    fn command_with_many_options_has_a_short_help_unless_all_is_asked_for() {
        let grammar = with_short_help_of_commands(crate::cli::args::Cli::command());
        let after = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            help_request(&grammar, words, 1).join(&OsString::from(" ")).into_string().expect("text")
        };
        for (line, expected) in [
            ("raymond run --help", "raymond run -h"),
            ("raymond run flow --help", "raymond run -h"),
            ("raymond run -h --all", "raymond run --help"),
            ("raymond help run flow", "raymond help run flow"),
            ("raymond help run -- --help", "raymond run -h"),
            ("raymond help --all run", "raymond run --help"),
            ("raymond help check --all", "raymond check --help"),
            ("raymond help workflow start", "raymond workflow start -h"),
            ("raymond workflow start x --help --all", "raymond workflow start --help"),
            ("raymond tree t --all --help", "raymond tree --help"),
            ("raymond tree t --all", "raymond tree t --all"),
            ("raymond run --help --all", "raymond run --help"),
            ("raymond help run", "raymond run -h"),
            ("raymond help run --all", "raymond run --help"),
            ("raymond check --help", "raymond check --help"),
            ("raymond help check", "raymond check --help"),
            ("raymond help zzz", "raymond help zzz"),
            ("raymond run flow", "raymond run flow"),
            ("raymond run flow -- --help", "raymond run flow -- --help"),
            ("raymond recover --all", "raymond recover --all"),
        ] {
            assert_eq!(after(line), expected, "{line}");
        }
        let run = grammar.find_subcommand("run").expect("a command");
        let shown = run.get_arguments().filter(|option| !option.is_hide_short_help_set()).count();
        assert!(shown < 20, "{shown} options are common");
    }

    #[test]
    fn lines_of_paragraph_are_joined_and_examples_are_kept() {
        let text = "Examples:\n  one    first\n  two\n\nA long\nparagraph.\n\nCodes:\n  X";
        let whole = "Examples:\n  one    first\n  two\n\nA long paragraph.\n\nCodes:\n  X";
        assert_eq!(joined(text), whole);
    }
}
