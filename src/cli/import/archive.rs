//! The files of a zip: read into memory within limits, and refused if one could be written elsewhere.

use std::collections::BTreeSet;
use std::io::{Cursor, Read as _};
use std::path::PathBuf;

use zip::ZipArchive;

use super::FilesAndNotes;
use crate::domain::id::StateName;
use crate::domain::privilege::obeyed_name;
use crate::language::import::REFUSED_NAME;

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
pub(super) fn files(bytes: Vec<u8>) -> Result<FilesAndNotes, String> {
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
