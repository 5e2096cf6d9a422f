//! Commands and their options: exactly those that each command takes.

use std::collections::BTreeSet;

use clap::CommandFactory;
use raymond::cli::args::Cli;
use raymond::cli::exit::CliExitCode;

use super::page::{listed, section, section_about, spans, words};
use super::reference;

/// Returns the sections that a command takes according to its text, by their headings.
fn taken<'page>(page: &'page str, text: &str) -> Vec<&'page str> {
    let headings = page.lines().filter_map(|line| line.strip_prefix("### "));
    let anchor = |heading: &str| format!("(#{})", heading.to_lowercase().replace(' ', "-"));
    headings.filter(|heading| text.contains(&anchor(heading))).collect()
}

/// Returns the options that the page gives to a command.
fn options(page: &str, command: &str) -> BTreeSet<String> {
    let own = section_about(page, command).unwrap_or_else(|| panic!("there is no {command}"));
    let run = section(page, "`run`");
    let of_run = || taken(page, &run).into_iter().map(|heading| section(page, heading));
    let is_of_new_run = |text: &String| text.starts_with("### Options of a new run");
    let shared: Vec<String> = if own.contains("Takes the options of `run`") {
        of_run().chain([run.clone()]).collect()
    } else if own.contains("Takes all options of `run` but those of a [new run]") {
        of_run().filter(|text| !is_of_new_run(text)).chain([run.clone()]).collect()
    } else {
        taken(page, &own).into_iter().map(|heading| section(page, heading)).collect()
    };
    // A sentence such as "Takes `--dir`, `--json`" names options as well.
    let said = |text: &str| -> Vec<String> {
        let takes = text.split("Takes").skip(1).filter_map(|rest| rest.split(". ").next());
        takes.flat_map(|takes| spans(takes).map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    let texts = || shared.iter().chain([&own]);
    let all = texts().flat_map(|text| listed(text)).chain(texts().flat_map(|text| said(text)));
    all.filter(|name| name.starts_with("--") && name.len() > 2).collect()
}

/// Returns the commands that do something themselves, each under its whole name.
fn commands(of: &clap::Command, before: &str) -> Vec<(String, clap::Command)> {
    let own = of.get_subcommands().flat_map(|command| {
        let name = format!("{before}{}", command.get_name());
        let mut found = commands(command, &format!("{name} "));
        if !command.is_subcommand_required_set() {
            found.push((name, command.clone()));
        }
        found
    });
    own.collect()
}

#[test]
fn commands_lists_the_options_of_each_command() {
    let page = reference("commands.md");
    let mut wrong = Vec::new();
    for (name, command) in commands(&Cli::command(), "") {
        let mut told = options(&page, &name);
        let arguments = command.get_arguments().filter(|option| option.get_long().is_some());
        for option in arguments.filter(|option| option.get_long() != Some("help")) {
            let mut names = option.get_long_and_visible_aliases().unwrap_or_default();
            names.extend(option.get_all_aliases().unwrap_or_default());
            let long = names.iter().map(|name| format!("--{name}"));
            let long: Vec<String> = long.collect();
            let was_told = told.contains(&long[0]);
            told.retain(|name| !long.contains(name));
            if !was_told && !option.is_hide_set() {
                wrong.push(format!("{name} takes {}, which is not listed", long[0]));
            }
        }
        wrong.extend(told.into_iter().map(|option| format!("{name} takes no {option}")));
    }
    assert!(wrong.is_empty(), "commands.md: {wrong:#?}");
}

#[test]
fn commands_lists_the_words_that_each_option_takes() {
    let page = reference("commands.md");
    let mut missing = Vec::new();
    for (name, command) in commands(&Cli::command(), "") {
        let own = section_about(&page, &name).unwrap_or_default();
        let shared = section(&page, "Shared options");
        let known: BTreeSet<&str> = words(&own).union(&words(&shared)).copied().collect();
        for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
            let values = option.get_possible_values();
            let values = values.iter().filter(|value| !value.is_hide_set());
            let names = values.map(clap::builder::PossibleValue::get_name);
            let unknown =
                names.filter(|value| !["true", "false"].contains(value) && !known.contains(*value));
            missing.extend(unknown.map(|value| format!("{name} {} {value}", option.get_id())));
        }
    }
    assert!(missing.is_empty(), "commands.md does not list {missing:?}");
}

#[test]
fn help_lists_each_exit_code() {
    let help = Cli::command().render_help().to_string();
    let codes = help.split("Exit codes:").nth(1).expect("it lists exit codes");
    let numbers: BTreeSet<&str> = codes.split(|c: char| !c.is_ascii_digit()).collect();
    let missing: Vec<u8> = CliExitCode::ALL
        .iter()
        .map(|code| code.code())
        .filter(|code| !numbers.contains(code.to_string().as_str()))
        .collect();
    assert!(missing.is_empty(), "`raymond --help` does not list {missing:?}");
}
