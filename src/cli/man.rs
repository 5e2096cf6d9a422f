//! `raymond man`: the manual pages, one for each command.

use std::io;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use super::args::Cli;
use super::args::clean::ManArgs;
use super::exit::{CliExitCode, Error};
use super::output;

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

#[cfg(test)]
mod tests {
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
