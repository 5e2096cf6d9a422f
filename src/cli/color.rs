//! The decision whether there are colours: an option, the usual variables, or else a terminal.

use std::ffi::OsString;
use std::io::{IsTerminal, stderr, stdout};

use clap::{Args, ValueEnum};

/// The option for colours.
#[derive(Debug, Clone, Default, Args)]
pub struct ColorArgs {
    /// When there are colours [default: auto: on a terminal, unless `NO_COLOR` or `FORCE_COLOR` says otherwise]
    #[arg(long, value_enum, value_name = "WHEN", global = true, hide_possible_values = true)]
    #[arg(help = "When to use colours: auto (default), always or never")]
    pub color: Option<ColorChoice>,
}

/// The wish for colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless a variable says otherwise
    #[default]
    Auto,
    /// Also in a pipe or a file
    Always,
    /// Nowhere
    Never,
}

/// The name of the option on the command line.
const OPTION: &str = "--color";

impl ColorChoice {
    /// Returns the choice in arguments that are not parsed yet; an invalid one is reported when they are.
    pub(super) fn in_arguments(arguments: &[OsString]) -> Self {
        let words = arguments.iter().map(|argument| argument.to_str().unwrap_or_default());
        let value = option_values(words.take_while(|word| *word != "--"), OPTION).last();
        Self::from_str(value.unwrap_or_default(), false).unwrap_or_default()
    }

    /// Makes all output of this process follow the choice.
    pub(super) fn apply(self) {
        console::set_colors_enabled(self.has_colours(variable, stdout().is_terminal()));
        console::set_colors_enabled_stderr(self.has_colours(variable, stderr().is_terminal()));
    }

    /// Returns the choice for the messages of the command line's grammar, which has to follow it too.
    pub(super) fn of_grammar(self) -> clap::ColorChoice {
        match (self.has_colours(variable, true), self.has_colours(variable, false)) {
            (_, true) => clap::ColorChoice::Always,
            (true, false) => clap::ColorChoice::Auto,
            (false, false) => clap::ColorChoice::Never,
        }
    }

    /// Returns whether there are colours on a stream; an option goes before `NO_COLOR`, and that before the others.
    fn has_colours(self, variable: impl Fn(&str) -> Option<String>, is_terminal: bool) -> bool {
        let value = |name: &str| variable(name).filter(|value| !value.is_empty());
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if value("NO_COLOR").is_some() => false,
            Self::Auto => match (value("FORCE_COLOR"), value("CLICOLOR_FORCE")) {
                (Some(force), _) | (None, Some(force)) if force != "0" && force != "false" => true,
                (Some(_), _) => false,
                _ => {
                    let is_dumb = value("TERM").is_some_and(|terminal| terminal == "dumb");
                    is_terminal && !is_dumb && value("CLICOLOR").is_none_or(|value| value != "0")
                }
            },
        }
    }
}

/// Returns the values of an option in arguments that are not parsed yet.
pub(super) fn option_values<'words>(
    words: impl Iterator<Item = &'words str> + Clone,
    option: &str,
) -> impl Iterator<Item = &'words str> {
    let next = words.clone().skip(1).chain(std::iter::once(""));
    words.zip(next).filter_map(move |(word, next)| {
        if word == option { Some(next) } else { word.strip_prefix(option)?.strip_prefix('=') }
    })
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns the place of the first argument that is not the option for colours.
pub(super) fn first_other(arguments: &[OsString]) -> usize {
    let mut at = 1;
    while let Some(text) = arguments.get(at).and_then(|argument| argument.to_str()) {
        match text {
            OPTION => at += 2,
            _ if text.starts_with("--color=") => at += 1,
            _ => break,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    type SetVariables<'table> = &'table [(&'table str, &'table str)];

    #[test]
    fn option_goes_before_variables_and_those_before_terminal() {
        use ColorChoice::{Always, Auto, Never};
        let table: [(ColorChoice, SetVariables<'_>, bool, bool); 14] = [
            (Auto, &[], true, true),
            (Auto, &[], false, false),
            (Auto, &[("NO_COLOR", "1")], true, false),
            (Auto, &[("NO_COLOR", "")], true, true),
            (Auto, &[("NO_COLOR", "1"), ("FORCE_COLOR", "1")], true, false),
            (Auto, &[("FORCE_COLOR", "1")], false, true),
            (Auto, &[("FORCE_COLOR", "0")], true, false),
            (Auto, &[("CLICOLOR_FORCE", "1")], false, true),
            (Auto, &[("CLICOLOR_FORCE", "0")], true, true),
            (Auto, &[("CLICOLOR", "0")], true, false),
            (Auto, &[("TERM", "dumb")], true, false),
            (Always, &[("NO_COLOR", "1")], false, true),
            (Never, &[("FORCE_COLOR", "1")], true, false),
            (Auto, &[("TERM", "xterm")], true, true),
        ];
        for (choice, variables, is_terminal, expected) in table {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let has = choice.has_colours(variable, is_terminal);
            assert_eq!(has, expected, "{choice:?} {variables:?} {is_terminal}");
        }
    }

    #[test]
    fn choice_is_found_in_arguments_before_they_are_parsed() {
        let arguments = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let table = [
            ("raymond list", ColorChoice::Auto, 1),
            ("raymond --color never list", ColorChoice::Never, 3),
            ("raymond --color=always list", ColorChoice::Always, 2),
            ("raymond list --color=always", ColorChoice::Always, 1),
            ("raymond list --color never", ColorChoice::Never, 1),
            ("raymond run w -- --color never", ColorChoice::Auto, 1),
            ("raymond list --color blue", ColorChoice::Auto, 1),
            ("raymond --color", ColorChoice::Auto, 3),
        ];
        for (line, choice, first) in table {
            assert_eq!(ColorChoice::in_arguments(&arguments(line)), choice, "{line}");
            assert_eq!(first_other(&arguments(line)), first, "{line}");
        }
    }
}
