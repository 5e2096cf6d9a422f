//! The help texts at the width of the terminal.

use std::io::{IsTerminal, stdout};

use clap::Command;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_paragraph_are_joined_and_examples_are_kept() {
        let text = "Examples:\n  one    first\n  two\n\nA long\nparagraph.\n\nCodes:\n  X";
        let whole = "Examples:\n  one    first\n  two\n\nA long paragraph.\n\nCodes:\n  X";
        assert_eq!(joined(text), whole);
    }
}
