//! The files of cassettes: made as a whole or not at all, read within bounds, and copied into a run.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::draft::DirectoryDraft;
use super::{Error, files};
use crate::plain_file;
use raymond_lang::source::checksum;
use raymond_model::cassette::{CassetteHeader, HEADER_FILE, TURNS_FILE};

/// The longest header, in bytes.
const MAX_HEADER_BYTES: u64 = 1024 * 1024;

/// The longest file of turns, in bytes.
const MAX_TURNS_BYTES: u64 = 1024 * 1024 * 1024;

/// The two files of a cassette, as they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CassetteFiles {
    pub header: Vec<u8>,
    pub turns: Vec<u8>,
}

impl CassetteFiles {
    /// Reads a cassette.
    ///
    /// # Errors
    /// The path that cannot be read, and the error of the system.
    pub fn read(dir: &Path) -> Result<Self, (PathBuf, std::io::Error)> {
        let file = |name: &str, limit| {
            let path = dir.join(name);
            plain_file::read(&path, limit).map_err(|error| (path, error))
        };
        Ok(Self {
            header: file(HEADER_FILE, MAX_HEADER_BYTES)?,
            turns: file(TURNS_FILE, MAX_TURNS_BYTES)?,
        })
    }

    /// Returns the checksum of both files.
    pub fn checksum(&self) -> String {
        checksum(format!("{} {}", checksum(&self.header), checksum(&self.turns)))
    }

    /// Writes the files into a new directory of a run that nobody sees yet.
    pub(super) fn write(&self, dir: &Path) -> Result<(), Error> {
        files::make_draft_dir(dir)?;
        files::create(&dir.join(HEADER_FILE), &self.header)?;
        files::create(&dir.join(TURNS_FILE), &self.turns)?;
        files::sync_dir(dir)
    }
}

/// A cassette that is being written. It is a draft beside its place until it is finished; if it is not, nothing is
/// left.
#[derive(Debug)]
pub struct CassetteDraft {
    dir: PathBuf,
    draft: DirectoryDraft,
    replaces: bool,
    turns: BufWriter<File>,
}

impl CassetteDraft {
    /// Begins a cassette. A directory that is there is replaced only if it `may_replace`, and if it is a cassette.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn begin(dir: &Path, may_replace: bool) -> Result<Self, Error> {
        let dir = std::path::absolute(dir).map_err(Error::io("make the directory", dir))?;
        let replaces = dir.symlink_metadata().is_ok();
        let refused = |why: &str| {
            let error = std::io::Error::other(why.to_owned());
            Err(Error::io("make the cassette", &dir)(error))
        };
        if replaces && !is_replaceable(&dir) {
            return refused("it exists, but it is not a cassette; name another directory");
        }
        if replaces && !may_replace {
            return refused("it exists; name another directory, or replace it with --force");
        }
        if let Some(parent) = dir.parent() {
            files::make_dir(parent)?;
        }
        let draft = DirectoryDraft::begin(&dir, 0o700)?;
        let path = draft.path().join(TURNS_FILE);
        let turns = files::private().write(true).create_new(true).open(&path);
        let turns = BufWriter::new(turns.map_err(Error::io("write", &path))?);
        Ok(Self { dir, draft, replaces, turns })
    }

    /// Adds a turn, a line of JSON without its end.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn add(&mut self, line: &str) -> Result<(), Error> {
        let path = self.draft.path().join(TURNS_FILE);
        writeln!(self.turns, "{line}").map_err(Error::io("write", &path))
    }

    /// Writes the header, and puts the cassette in its place.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(mut self, header: &[u8]) -> Result<(), Error> {
        let path = self.draft.path().join(TURNS_FILE);
        let flushed = self.turns.flush().and_then(|()| self.turns.get_ref().sync_all());
        flushed.map_err(Error::io("write", &path))?;
        files::create(&self.draft.path().join(HEADER_FILE), header)?;
        files::sync_dir(self.draft.path())?;
        if self.replaces {
            // The cassette that was replaced is the draft then, and removed as one.
            exchange(self.draft.path(), &self.dir)?;
        } else {
            self.draft.publish(&self.dir)?;
        }
        self.dir.parent().map_or(Ok(()), files::sync_dir)
    }
}

/// Exchanges two directories at once, or one after another where the system cannot.
fn exchange(draft: &Path, dir: &Path) -> Result<(), Error> {
    if renameat_with(CWD, draft, CWD, dir, RenameFlags::EXCHANGE).is_ok() {
        return Ok(());
    }
    let old = draft.with_extension("old");
    std::fs::rename(dir, &old).map_err(Error::io("replace", dir))?;
    if let Err(error) = std::fs::rename(draft, dir) {
        let _ = std::fs::rename(&old, dir);
        return Err(Error::io("replace", dir)(error));
    }
    let _ = std::fs::remove_dir_all(&old);
    Ok(())
}

/// Returns whether a directory is a cassette and nothing else, or empty: all in it is removed.
fn is_replaceable(dir: &Path) -> bool {
    let is_dir = dir.symlink_metadata().is_ok_and(|found| found.is_dir());
    let Ok(entries) = std::fs::read_dir(dir) else { return false };
    let names: Vec<OsString> = entries.flatten().map(|entry| entry.file_name()).collect();
    let is_of_cassette = |name: &OsString| name == HEADER_FILE || name == TURNS_FILE;
    is_dir && names.iter().all(is_of_cassette) && (names.is_empty() || has_header(dir))
}

fn has_header(dir: &Path) -> bool {
    let header = plain_file::read(&dir.join(HEADER_FILE), MAX_HEADER_BYTES);
    header.is_ok_and(|text| serde_json::from_slice::<CassetteHeader>(&text).is_ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(dir: &Path) -> Vec<OsString> {
        let entries = std::fs::read_dir(dir).expect("read");
        entries.map(|entry| entry.expect("an entry").file_name()).collect()
    }

    const HEADER: &[u8] =
        br#"{"format":1,"raymond":"0","workflow":{"name":"w","entry":"A.md"},"turns":1}"#;

    fn make(dir: &Path, may_replace: bool, line: &str) -> Result<(), Error> {
        let mut draft = CassetteDraft::begin(dir, may_replace)?;
        draft.add(line)?;
        draft.finish(HEADER)
    }

    #[test]
    fn cassette_appears_as_a_whole_and_is_private() {
        let kept = tempfile::tempdir().expect("a directory");
        let dir = kept.path().join("a/c");
        let mut draft = CassetteDraft::begin(&dir, false).expect("begun");
        draft.add("1").expect("written");
        assert!(!dir.exists());
        drop(draft);
        assert!(names(&kept.path().join("a")).is_empty(), "nothing half made");
        make(&dir, false, "1").expect("made");
        let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
        assert_eq!(
            (mode(&dir), mode(&dir.join(HEADER_FILE)), mode(&dir.join(TURNS_FILE))),
            (0o700, 0o600, 0o600)
        );
        let read = CassetteFiles::read(&dir).expect("read");
        assert_eq!((&*read.header, &*read.turns), (HEADER, &b"1\n"[..]));
    }

    #[test]
    fn only_a_cassette_is_replaced_and_only_if_it_may_be() {
        let kept = tempfile::tempdir().expect("a directory");
        let dir = kept.path().join("c");
        make(&dir, false, "1").expect("made");
        let why = make(&dir, false, "2").expect_err("refused").to_string();
        assert!(why.contains("--force"), "{why}");
        make(&dir, true, "2").expect("replaced");
        assert_eq!(CassetteFiles::read(&dir).expect("read").turns, b"2\n");
        assert_eq!(names(kept.path()), ["c"]);
        let other = kept.path().join("mine");
        std::fs::create_dir(&other).expect("made");
        std::fs::write(other.join("work"), "x").expect("written");
        let why = make(&other, true, "2").expect_err("refused").to_string();
        assert!(why.contains("it is not a cassette"), "{why}");
        std::fs::write(other.join(HEADER_FILE), HEADER).expect("written");
        make(&other, true, "2").expect_err("something else is in it");
        assert!(other.join("work").is_file());
        std::fs::remove_file(other.join("work")).expect("removed");
        std::fs::write(other.join(HEADER_FILE), "{}").expect("written");
        make(&other, true, "2").expect_err("it is another file of that name");
    }
}
