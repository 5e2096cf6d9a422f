//! The help texts at the width of the terminal.

use std::io::{IsTerminal, stdout};

use clap::Command;

use crate::language::hint::{closest, closest_slip};

/// The width where there is no terminal, in columns.
const PLAIN_WIDTH: usize = 120;

/// Returns a grammar whose help is as wide as the terminal.
pub(super) fn fitted(grammar: Command) -> Command {
    let grammar = with_whole_paragraphs(grammar);
    if stdout().is_terminal() { grammar } else { grammar.term_width(PLAIN_WIDTH) }
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
        whole.push_str(line);
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
        let similar = closest(word, known.get_subcommands().map(Command::get_name));
        let tip = match similar {
            Some(similar) => format!("did you mean `raymond help{path} {similar}`?"),
            None => format!("`raymond{path} --help` lists all"),
        };
        return Some(format!("{word}: there is no such command; {tip}"));
    }
    None
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

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
            ("help zzz", "zzz: there is no such command; `raymond --help` lists all"),
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
    fn lines_of_paragraph_are_joined_and_examples_are_kept() {
        let text = "Examples:\n  one    first\n  two\n\nA long\nparagraph.\n\nCodes:\n  X";
        let whole = "Examples:\n  one    first\n  two\n\nA long paragraph.\n\nCodes:\n  X";
        assert_eq!(joined(text), whole);
    }
}
