//! `raymond import`: makes a folder of prompts of a workflow that is kept in one file, YAML or zip.
//!
//! Everything is read and checked before the first file is written. The folder has to be new, so that nothing is
//! ever overwritten, and gets its name once all files are in it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Cursor, Read as _, Write as _};
use std::path::{Path, PathBuf};

use zip::ZipArchive;

use super::exit::{CliExitCode, Error};
use super::output;
use crate::cli::args::workflows::ImportArgs;
use crate::domain::id::StateName;
use crate::domain::privilege::obeyed_name;
use crate::domain::tool_call::printable_line;
use crate::language::import::{ImportedFolder, REFUSED_NAME, import as take_apart};
use crate::plain_file;
use crate::store::draft::DirectoryDraft;

/// The longest file that is imported, in bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Runs `raymond import`.
///
/// # Errors
/// [`Error`] if the file is not a workflow, or the folder cannot be created.
pub(super) fn import(args: &ImportArgs) -> Result<CliExitCode, Error> {
    let path = &args.file;
    let bytes =
        plain_file::read(path, MAX_FILE_BYTES).map_err(Error::io("read the workflow", path))?;
    let read = if bytes.starts_with(b"PK") { files(bytes) } else { of_yaml(path, bytes) };
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
        write(&file, bytes).map_err(Error::io("write this file", &folder.join(name)))?;
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

// The files of a zip: read into memory within limits, and refused if one could be written elsewhere.

/// The most entries of a zip, folders included.
const MAX_ENTRIES: usize = 2000;
/// The longest file, and the most of all files together, in bytes. What an entry says of itself does not count.
const MAX_ENTRY_BYTES: u64 = 16 * 1024 * 1024;
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The most folders within each other.
const MAX_DEPTH: usize = 8;

/// Returns the files of a zip. A single folder at the top that holds all others is left out.
///
/// # Errors
/// The reason that it is refused.
fn files(bytes: Vec<u8>) -> Result<FilesAndNotes, String> {
    let mut archive = ZipArchive::new(Cursor::new(bytes))
        .map_err(|error| format!("this zip cannot be read: {error}"))?;
    if archive.len() > MAX_ENTRIES {
        return Err(format!("this zip has {} entries; {MAX_ENTRIES} are read", archive.len()));
    }
    let mut found: Vec<(Vec<String>, Vec<u8>)> = Vec::new();
    let mut names = BTreeSet::new();
    let mut rest = MAX_BYTES;
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| format!("entry {index}: {error}"))?;
        let name = entry.name().map_err(|error| format!("entry {index}: {error}"))?.into_owned();
        let refuse = |why: &str| Err(format!("{name}: {why}; nothing was imported"));
        let Some(path) = parts(&name) else {
            return refuse("this path leads out of the folder, or is none");
        };
        if obeyed_name(&path.iter().collect::<PathBuf>()).is_some() {
            return refuse(REFUSED_NAME);
        }
        if entry.is_dir() {
            continue;
        }
        if !entry.is_file() || entry.is_symlink() {
            return refuse("this is not a regular file");
        }
        if !names.insert(name.to_lowercase()) {
            return refuse("two entries would be this file");
        }
        let mut content = Vec::new();
        let limit = MAX_ENTRY_BYTES.min(rest);
        if let Err(error) = entry.take(limit + 1).read_to_end(&mut content) {
            return refuse(&error.to_string());
        }
        rest = match rest.checked_sub(content.len() as u64) {
            Some(rest) if content.len() as u64 <= limit => rest,
            _ => return refuse("this is too long to be a part of a workflow"),
        };
        found.push((path, content));
    }
    if let Some((path, _)) = found.iter().find(|(path, _)| {
        let folders = (1..path.len()).map(|depth| path[..depth].join("/").to_lowercase());
        folders.into_iter().any(|folder| names.contains(&folder))
    }) {
        let name = path.join("/");
        return Err(format!(
            "{name}: another entry is a file with the name of its folder; nothing was imported"
        ));
    }
    if found.is_empty() {
        return Err("this zip has no files".to_owned());
    }
    let first = found[0].0[0].clone();
    let has_top = found.iter().all(|(path, _)| path.len() > 1 && path[0] == first);
    let below = usize::from(has_top);
    let files = found
        .into_iter()
        .map(|(path, content)| (path[below..].iter().collect::<PathBuf>(), content));
    Ok((files.collect(), Vec::new()))
}

/// Returns the parts of a path that stays below its start; a part is a bare file name.
fn parts(name: &str) -> Option<Vec<String>> {
    let path: Vec<String> = name.trim_end_matches('/').split('/').map(str::to_owned).collect();
    let is_bare = |part: &String| {
        part != "." && StateName::parse(part).is_ok_and(|name| name.as_str() == part)
    };
    (path.len() <= MAX_DEPTH && path.iter().all(is_bare)).then_some(path)
}
