//! Removes the directory of a run, and nothing outside of it.
//!
//! Agents may have put links into it, or exchange a directory for a link meanwhile. So each directory is opened below
//! the one before it, without following links, and only what lies in an open directory is removed. The run's directory
//! is first renamed to a name that no run can have: a removal that is cut short leaves no half of a run.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;

use super::layout::RunsRoot;
use super::{Error, files};
use crate::domain::id::RunId;

/// The beginning of the names of directories that are being removed. No run's id begins with a dot.
const PREFIX: &str = ".removed-";

/// The greatest depth of directories in that of a run.
const MAX_DEPTH: usize = 64;

/// Returns the number of bytes of the files in a run's directory.
///
/// # Errors
/// [`Error::Io`].
pub fn size(root: &RunsRoot, id: &RunId) -> Result<u64, Error> {
    let failed = |error: Errno| Error::io("read", root.run(id).path())(error.into());
    let runs = open(CWD, root.runs()).map_err(failed)?;
    walk(&runs, &name(id.as_str()), MAX_DEPTH, false).map_err(failed)
}

/// Removes the directory of a run that the caller has locked, and returns the number of bytes of its files.
///
/// # Errors
/// [`Error::Io`]; what is left then is no longer a run, and [`remove_leftovers`] removes it.
pub fn remove(root: &RunsRoot, id: &RunId) -> Result<u64, Error> {
    let failed = |error: Errno| Error::io("remove", root.run(id).path())(error.into());
    let runs = open(CWD, root.runs()).map_err(failed)?;
    let renamed = name(&format!("{PREFIX}{id}"));
    match walk(&runs, &renamed, MAX_DEPTH, true) {
        Ok(_) | Err(Errno::NOENT) => {}
        Err(error) => return Err(failed(error)),
    }
    renameat(&runs, name(id.as_str()), &runs, &renamed).map_err(failed)?;
    files::sync_dir(&root.runs())?;
    walk(&runs, &renamed, MAX_DEPTH, true).map_err(failed)
}

/// Removes what an earlier removal has left that was cut short.
///
/// # Errors
/// [`Error::Io`].
pub fn remove_leftovers(root: &RunsRoot) -> Result<(), Error> {
    let failed = |error: Errno| Error::io("remove what is left in", &root.runs())(error.into());
    let runs = match open(CWD, root.runs()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened.map_err(failed)?,
    };
    for name in entries(&runs).map_err(failed)? {
        if name.to_bytes().starts_with(PREFIX.as_bytes()) {
            walk(&runs, &name, MAX_DEPTH, true).map_err(failed)?;
        }
    }
    Ok(())
}

fn name(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

fn open(parent: impl AsFd, path: impl Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, path, flags, Mode::empty())
}

/// Goes through a file or a directory and all below it, and returns the number of bytes of the files. Removes them if
/// it is to.
fn walk(parent: &OwnedFd, name: &CString, depth: usize, removes: bool) -> Result<u64, Errno> {
    let found = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let unlink = |flags| if removes { unlinkat(parent, name, flags) } else { Ok(()) };
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
        unlink(AtFlags::empty())?;
        return Ok(u64::try_from(found.st_size).unwrap_or_default());
    }
    let Some(depth) = depth.checked_sub(1) else { return Err(Errno::LOOP) };
    let directory = open(parent, name.as_c_str())?;
    let mut bytes: u64 = 0;
    for entry in entries(&directory)? {
        bytes = bytes.saturating_add(walk(&directory, &entry, depth, removes)?);
    }
    unlink(AtFlags::REMOVEDIR)?;
    Ok(bytes)
}

fn entries(directory: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_owned();
        if ![&b"."[..], b".."].contains(&name.to_bytes()) {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn run() -> (tempfile::TempDir, RunsRoot, RunId) {
        let place = tempfile::tempdir().expect("a directory");
        let root = RunsRoot::new(place.path().join("ray"));
        let id = RunId::parse("r").expect("an id");
        std::fs::create_dir_all(root.run(&id).steps()).expect("made");
        std::fs::write(root.run(&id).journal(), "12345").expect("written");
        std::fs::write(root.run(&id).steps().join("x"), "678").expect("written");
        (place, root, id)
    }

    #[test]
    fn removal_follows_no_link() {
        let (place, root, id) = run();
        let outside = place.path().join("outside");
        std::fs::create_dir(&outside).expect("made");
        std::fs::write(outside.join("mine"), "mine").expect("written");
        symlink(&outside, root.run(&id).steps().join("out")).expect("linked");
        symlink(outside.join("mine"), root.run(&id).state()).expect("linked");
        assert!(size(&root, &id).expect("read") >= 8);
        assert!(root.run(&id).journal().exists());
        remove(&root, &id).expect("removed");
        assert!(!root.run(&id).path().exists());
        assert!(outside.join("mine").exists());

        std::fs::rename(root.runs(), place.path().join("elsewhere")).expect("moved");
        symlink(&outside, root.runs()).expect("linked");
        std::fs::create_dir(outside.join("r")).expect("made");
        assert!(remove(&root, &id).is_err(), "the directory of the runs is a link");
        assert!(outside.join("r").exists());
    }

    #[test]
    fn removal_counts_bytes_and_finishes_earlier_one() {
        let (_place, root, id) = run();
        let left = root.runs().join(".removed-r/steps");
        std::fs::create_dir_all(&left).expect("made");
        std::fs::write(left.join("old"), "old").expect("written");
        assert_eq!(size(&root, &id).expect("read"), 8);
        assert_eq!(remove(&root, &id).expect("removed"), 8);
        std::fs::create_dir_all(root.runs().join(".removed-s")).expect("made");
        remove_leftovers(&root).expect("removed");
        assert_eq!(std::fs::read_dir(root.runs()).expect("read").count(), 0);
    }
}
