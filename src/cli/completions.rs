//! `raymond completions`: a shell's completion script, and the answers to it; and `raymond man`: the manual pages.
//!
//! The shell calls the program with `COMPLETE=SHELL`, and with the words of the line behind `--`. The candidates are
//! looked up then.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::env::{CompleteEnv, Shells};
use clap_mangen::Man;

use crate::cli::args::Cli;
use crate::cli::args::readers::ManArgs;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::output;

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

// `raymond man`: the manual pages, one for each command.

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
    let failed = Error::io("write the manual pages in", &args.dir);
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

/// Returns the text of a page, with the values of options and the mark of repeatable arguments in its synopsis, and its
/// notes under their usual heading.
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
        .filter(|argument| argument.get_num_args().is_some_and(|count| count.max_values() > 1))
    {
        for name in several.get_value_names().unwrap_or_default() {
            let shown = format!("[\\fI{name}\\fR]");
            text = text.replacen(&shown, &format!("{shown}..."), 1);
        }
    }
    Ok(text)
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
