//! `raymond import`: makes a folder of prompts of a workflow that is kept in one file, YAML or zip.
//!
//! Everything is read and checked before the first file is written. The folder has to be new, so that nothing is
//! ever overwritten, and gets its name once all files are in it.

mod archive;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::exit::{CliExitCode, Error};
use super::output;
use crate::cli::args::workflows::ImportArgs;
use crate::domain::printable::printable_line;
use crate::language::import::{ImportedFolder, import as take_apart};
use crate::plain_file;
use crate::store::draft::DirectoryDraft;

/// The longest file that is imported, in bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Runs `raymond import`.
///
/// # Errors
/// [`Error`] if the file is no workflow, or the folder cannot be made.
pub(super) fn import(args: &ImportArgs) -> Result<CliExitCode, Error> {
    let path = &args.file;
    let fail = |doing, path: &Path, error| Error::Io { doing, path: path.to_owned(), error };
    let bytes = plain_file::read(path, MAX_FILE_BYTES)
        .map_err(|error| fail("read the workflow", path, error))?;
    let read = if bytes.starts_with(b"PK") { archive::files(bytes) } else { of_yaml(path, bytes) };
    let (files, notes) = match read {
        Ok(read) => read,
        Err(why) => {
            output::complain(&printable_line(&why));
            return Ok(CliExitCode::Invalid);
        }
    };
    let folder = match &args.output {
        Some(folder) => folder.clone(),
        None => path.file_stem().map(PathBuf::from).unwrap_or_default(),
    };
    must_be_new(&folder)?;
    make_folder(&folder, &files)?;
    for note in notes {
        output::warn(&printable_line(&note));
    }
    output::tell(&format!(
        "{} files; `raymond check {}` finds what else is to be done",
        files.len(),
        folder.display()
    ));
    output::print(&format!("{}\n", printable_line(&folder.display().to_string())))
}

/// Refuses a folder that is there already.
///
/// # Errors
/// [`Error::Usage`] that says so.
pub(super) fn must_be_new(folder: &Path) -> Result<(), Error> {
    if folder.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{} exists, and raymond overwrites nothing; choose another name",
        folder.display()
    )))
}

/// Makes a folder with these files. It gets its name once all of them are in it.
///
/// # Errors
/// [`Error`] if a file cannot be written.
pub(super) fn make_folder(folder: &Path, files: &[(PathBuf, Vec<u8>)]) -> Result<(), Error> {
    let draft = DirectoryDraft::begin(folder, 0o777)?;
    for (name, bytes) in files {
        let file = draft.path().join(name);
        let path = folder.join(name);
        write(&file, bytes).map_err(|error| Error::Io { doing: "write this file", path, error })?;
    }
    Ok(draft.publish(folder)?)
}

/// The files of a folder with their paths, and the notes about them.
type FilesAndNotes = (Vec<(PathBuf, Vec<u8>)>, Vec<String>);

fn of_yaml(path: &Path, bytes: Vec<u8>) -> Result<FilesAndNotes, String> {
    let shown = path.display().to_string();
    let text = String::from_utf8(bytes)
        .map_err(|_| format!("{shown}: this is neither a zip nor YAML in UTF-8"))?;
    let ImportedFolder { files, notes, .. } =
        take_apart(&shown, &text).map_err(|error| error.to_string())?;
    let files =
        files.into_iter().map(|(name, text)| (PathBuf::from(name.as_str()), text.into_bytes()));
    Ok((files.collect(), notes))
}

/// Writes a new file, and makes its folders.
fn write(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::OpenOptions::new().write(true).create_new(true).open(file)?.write_all(bytes)
}
