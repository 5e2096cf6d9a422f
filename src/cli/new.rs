//! `raymond new`: copies a sample workflow into a new folder.

use std::io::{IsTerminal, stdin, stdout};
use std::path::{Path, PathBuf};

use console::Term;
use include_dir::{Dir, DirEntry, File, include_dir};

use super::exit::{CliExitCode, Error};
use super::import::{make_folder, must_be_new};
use super::output;
use crate::cli::args::workflows::NewArgs;
use crate::domain::tool_call::is_unprintable;
use crate::language::hint::closest;
use crate::runtime::FIRST_STATE;

/// The folder of all samples.
static SAMPLES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/workflows");

/// The sample that is copied unless another one is named.
const DEFAULT: &str = "haiku";

/// The beginning of the line that tells an editor where the schema of a sample's file is in the repository.
const SCHEMA_LINE: &str = "# yaml-language-server: ";

/// Runs `raymond new`.
///
/// # Errors
/// [`Error`] if there is no such sample, or the folder cannot be made.
pub(super) fn new(args: &NewArgs) -> Result<CliExitCode, Error> {
    let asks = args.name.is_none() && stdin().is_terminal() && stdout().is_terminal();
    let folder = match &args.name {
        Some(name) => name.clone(),
        None if asks => PathBuf::from(ask("Name of the new folder", DEFAULT)?),
        None => {
            return Err(Error::Usage("name the new folder: raymond new NAME".to_owned()));
        }
    };
    let sample = match &args.from {
        Some(name) => name.clone(),
        None if asks => {
            output::tell_lines(&format!("Samples: {}", names().collect::<Vec<_>>().join(", ")));
            ask("Sample to copy", DEFAULT)?
        }
        None => DEFAULT.to_owned(),
    };
    if folder.to_string_lossy().contains(is_unprintable) {
        return Err(Error::Usage(
            "the name of the folder may have only printable characters".to_owned(),
        ));
    }
    let files = files(&sample)?;
    must_be_new(&folder)?;
    make_folder(&folder, &files)?;
    let shown = folder.display().to_string();
    let plain = if shown.starts_with('-') { format!("./{shown}") } else { shown.clone() };
    let quoted = shlex::try_quote(&plain).unwrap_or_default();
    let names: Vec<String> = files.iter().map(|(path, _)| path.display().to_string()).collect();
    output::tell_lines(&format!("Created {shown} with {}.", names.join(", ")));
    if names.iter().any(|name| name == FIRST_STATE) {
        output::tell_lines(&format!(
            "Try it without a model: raymond run {quoted} --agent scripted{}",
            if sample == DEFAULT { " --input \"the sea\"" } else { "" }
        ));
    }
    output::tell_lines(&format!("Run its tests: raymond test {quoted}"));
    output::print(&format!("{shown}\n"))
}

fn ask(question: &str, default: &str) -> Result<String, Error> {
    let terminal = Term::stderr();
    let fail = Error::io("ask on", "the terminal");
    terminal.write_str(&format!("{question} [{default}]: ")).map_err(fail)?;
    let answer = terminal.read_line().map_err(fail)?;
    let answer = answer.trim();
    Ok(if answer.is_empty() { default } else { answer }.to_owned())
}

/// Returns the names of all samples.
fn names() -> impl Iterator<Item = &'static str> {
    SAMPLES.dirs().filter_map(|dir| dir.path().to_str())
}

/// Returns the files of a sample with their paths.
fn files(sample: &str) -> Result<Vec<(PathBuf, Vec<u8>)>, Error> {
    let Some(dir) = SAMPLES.dirs().find(|dir| dir.path() == Path::new(sample)) else {
        let hint = closest(sample, names()).map(|name| format!("did you mean {name}?"));
        let all = || format!("the samples are {}", names().collect::<Vec<_>>().join(", "));
        return Err(Error::Usage(format!(
            "no such sample: {sample}; {}",
            hint.unwrap_or_else(all)
        )));
    };
    let mut found: Vec<&File<'static>> = Vec::new();
    let mut dirs = vec![dir];
    while let Some(dir) = dirs.pop() {
        for entry in dir.entries() {
            match entry {
                DirEntry::Dir(below) => dirs.push(below),
                DirEntry::File(file) => found.push(file),
            }
        }
    }
    let copied = |file: &File<'static>| {
        let path = file.path().strip_prefix(sample).unwrap_or(file.path()).to_owned();
        let lines = file.contents().split_inclusive(|&byte| byte == b'\n');
        let kept = lines.filter(|line| !line.starts_with(SCHEMA_LINE.as_bytes()));
        (path, kept.flatten().copied().collect())
    };
    let mut files: Vec<(PathBuf, Vec<u8>)> = found.into_iter().map(copied).collect();
    files.sort();
    Ok(files)
}
