//! Files and directories: read, written as a whole, made and removed; and the workspace of operations.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use raymond_agents::command::EnvironmentMarker;
use raymond_agents::working_dirs::WorkingDirs;
use raymond_model::allowed_address::AllowedAddress;
use raymond_store::plain_file::FileReplacement;
use raymond_store::proof::StepProofs;

use super::gate::NameLookup;
use super::outcome::OperationError;
use crate::custom_types::CustomTypeRegistry;
use crate::glob::{FileAccess, resolve, shown};

/// The largest file that is read, in bytes: its text becomes a part of the run's state.
pub(super) const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The mode of a new file, before the user's mask.
const MODE: u32 = 0o644;

/// Returns whether a file exists.
pub(super) fn is_file(root: &Path, given: &str) -> Result<bool, String> {
    Ok(resolve(root, given, FileAccess::Read)?.is_file())
}

/// Returns whether a directory exists.
pub(super) fn is_directory(root: &Path, given: &str) -> Result<bool, String> {
    Ok(resolve(root, given, FileAccess::Read)?.is_dir())
}

/// Returns the text of a file.
pub(super) fn read(root: &Path, given: &str) -> Result<String, String> {
    read_at_most(root, given, MAX_FILE_BYTES)
}

/// Returns the text of a file of at most `max_bytes` bytes. `given` is its path below `root`, which it may not leave.
///
/// # Errors
/// A sentence with the file and the reason.
pub fn read_at_most(root: &Path, given: &str, max_bytes: u64) -> Result<String, String> {
    let path = resolve(root, given, FileAccess::Read)?;
    match text_at(&path, max_bytes) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(format!("no file `{given}` in {}", root.display())),
        Err(why) => Err(format!("cannot read `{given}` in {}: {why}", root.display())),
    }
}

/// Returns the text of a file; `None` if it does not exist.
pub(super) fn read_at(path: &Path) -> Result<Option<String>, String> {
    text_at(path, MAX_FILE_BYTES)
}

fn text_at(path: &Path, max_bytes: u64) -> Result<Option<String>, String> {
    let found = match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
        Ok(found) => found,
    };
    // A pipe or a device might never come to an end.
    if !found.is_file() {
        return Err(
            if found.is_dir() { "it is a directory" } else { "it is not a file" }.to_owned()
        );
    }
    let mut bytes =
        Vec::with_capacity(usize::try_from(found.len().min(max_bytes)).unwrap_or(0) + 1);
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(max_bytes.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > max_bytes {
        return Err(format!("it is larger than {}", size(max_bytes)));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        format!("it is not UTF-8 text: byte {valid} belongs to no character")
    })?;
    Ok(Some(text))
}

/// Returns a number of bytes for people.
fn size(bytes: u64) -> String {
    match bytes {
        mebi if mebi > 0 && mebi.trailing_zeros() >= 20 => format!("{} MiB", mebi >> 20),
        kibi if kibi > 0 && kibi.trailing_zeros() >= 10 => format!("{} KiB", kibi >> 10),
        few => format!("{few} bytes"),
    }
}

/// Writes a file, and makes its directories. `stem` names the draft, which the next try replaces.
pub(super) fn write(
    root: &Path,
    given: &str,
    content: &str,
    stem: &str,
) -> Result<(), OperationError> {
    let path = resolve(root, given, FileAccess::Write)?;
    replace(&path, content.as_bytes(), stem).map_err(|error| unwritten(root, given, &error))
}

/// Returns the error for a file that could not be written.
fn unwritten(root: &Path, given: &str, error: &std::io::Error) -> OperationError {
    let why = format!("cannot write `{given}` in {}: {error}", root.display());
    OperationError::unwritten(why, error)
}

/// Replaces a file atomically: a reader sees either the old or the new content, also after a
/// power cut. An existing file keeps its mode.
pub(super) fn replace(path: &Path, content: &[u8], stem: &str) -> std::io::Result<()> {
    Ok(replacement(path, stem)?.write(content)?)
}

/// Returns the replacement of a file, whose directories are made. `stem` names the draft.
pub(super) fn replacement<'a>(path: &'a Path, stem: &str) -> std::io::Result<FileReplacement<'a>> {
    let old = permissions(path)?;
    let parent = path.parent().ok_or(ErrorKind::InvalidInput)?;
    std::fs::create_dir_all(parent)?;
    let new = FileReplacement::of(path).with_draft(format!(".raymond-{stem}.draft"));
    Ok(match old {
        Some(old) => new.with_permissions(old),
        None => new.with_mode(MODE),
    })
}

/// Returns the permissions of a file that is to be replaced, if it exists and may be replaced.
fn permissions(path: &Path) -> std::io::Result<Option<Permissions>> {
    let refused = |why: &str| std::io::Error::other(why.to_owned());
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(found) if found.is_dir() => Err(refused("a directory has that name")),
        Ok(found) if !found.is_file() => Err(refused("it is not a file")),
        Ok(found) if found.permissions().readonly() => {
            Err(refused("it is read-only: allow writing with chmod u+w"))
        }
        Ok(found) => Ok(Some(Permissions::from_mode(found.permissions().mode() & 0o7777))),
    }
}

/// Makes a directory with its parents.
pub(super) fn create_directory(root: &Path, given: &str) -> Result<(), OperationError> {
    let path = resolve(root, given, FileAccess::Read)?;
    if path.is_dir() {
        return Ok(());
    }
    let path = resolve(root, given, FileAccess::Write)?;
    std::fs::create_dir_all(&path).map_err(|error| {
        let (shown, root) = (shown(root, &path), root.display());
        let why = format!("cannot make the directory `{shown}` in {root}: {error}");
        OperationError::unwritten(why, &error)
    })
}

/// Removes a file, or the link of that name; a missing one is fine.
pub(super) fn delete(root: &Path, given: &str) -> Result<(), String> {
    let path = resolve(root, given, FileAccess::Remove)?;
    let failed = |why: &dyn std::fmt::Display| {
        Err(format!("cannot remove `{given}` in {}: {why}", root.display()))
    };
    if std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
        return failed(&"it is a directory, and only files are removed");
    }
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(())
        }
        Err(error) => failed(&error),
    }
}

// The workspace of operations, and its equipment.

/// The parameters of a [`WorkspaceExecutor`](super::perform::WorkspaceExecutor).
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The working directories of the agents: the workspace, and their worktrees. An operation never reads or
    /// writes outside its agent's own.
    pub working_dirs: WorkingDirs,
    /// The environment of the programs it runs, and of its requests' proxies: see
    /// [`passed_on`](raymond_agents::plugin_process::passed_on).
    pub environment: Vec<(OsString, OsString)>,
    /// The run's directory for files of single steps, where the notes of operations are kept.
    pub steps: PathBuf,
    /// The proofs of the notes.
    pub proofs: StepProofs,
    /// The mark by which its programs are found.
    pub marker: EnvironmentMarker,
    /// The addresses that pages may be fetched from besides the public internet.
    pub allowed_addresses: Vec<AllowedAddress>,
    /// The lookup of the names of hosts.
    pub lookup: NameLookup,
    /// True if the workflow may write files that programs obey.
    pub is_trusted: bool,
    /// The types that a program using the library has added.
    pub custom_types: CustomTypeRegistry,
}

impl Workspace {
    /// Returns the search path of programs.
    pub fn path(&self) -> Option<&OsStr> {
        self.variable("PATH")
    }

    /// Returns a variable of the environment.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn ground() -> (tempfile::TempDir, std::path::PathBuf) {
        let kept = tempfile::tempdir().expect("a directory");
        let root = kept.path().canonicalize().expect("it is there");
        (kept, root)
    }

    #[test]
    fn write_creates_directories_and_preserves_mode() {
        let (_kept, root) = &ground();
        write(root, "a/b/run.sh", "one", "s").expect("written");
        let path = root.join("a/b/run.sh");
        assert_eq!(path.metadata().expect("there").permissions().mode() & 0o133, 0);
        std::fs::set_permissions(&path, Permissions::from_mode(0o751)).expect("set");
        std::fs::write(root.join("a/b/.raymond-s.draft"), "half").expect("a try that died");
        write(root, "a/b/run.sh", "two", "s").expect("written");
        assert_eq!(read(root, "a/b/run.sh"), Ok("two".to_owned()));
        assert_eq!(path.metadata().expect("there").permissions().mode() & 0o7777, 0o751);
        let names = std::fs::read_dir(root.join("a/b")).expect("read").count();
        assert_eq!(names, 1, "no draft is left");
    }

    #[test]
    fn reading_non_text_file_is_an_error_with_reason() {
        let (_kept, root) = &ground();
        std::fs::write(root.join("bytes"), b"ab\xff").expect("written");
        std::fs::create_dir(root.join("dir")).expect("made");
        File::create(root.join("large")).and_then(|f| f.set_len(MAX_FILE_BYTES + 1)).expect("made");
        let refusal = |given: &str| read(root, given).expect_err("refused");
        assert!(refusal("bytes").ends_with("it is not UTF-8 text: byte 2 belongs to no character"));
        assert!(refusal("dir").ends_with("it is a directory"));
        assert!(refusal("large").ends_with("it is larger than 16 MiB"));
        assert!(refusal("none").starts_with("no file `none` in /"));
        assert!(refusal("bytes/x").contains("cannot read `bytes/x`"));
    }

    #[test]
    fn refused_write_leaves_target_unchanged() {
        let (_kept, root) = &ground();
        std::fs::create_dir(root.join("dir")).expect("made");
        std::fs::write(root.join("fixed"), "old").expect("written");
        let fixed = root.join("fixed");
        std::fs::set_permissions(&fixed, Permissions::from_mode(0o444)).expect("set");
        let why = write(root, "dir", "x", "s").expect_err("refused").to_string();
        assert!(why.ends_with("a directory has that name"), "{why}");
        let why = write(root, "fixed", "x", "s").expect_err("refused").to_string();
        assert!(why.ends_with("it is read-only: allow writing with chmod u+w"), "{why}");
        assert!(write(root, "fixed/x", "x", "s").is_err());
        assert_eq!(read(root, "fixed"), Ok("old".to_owned()));
    }

    #[test]
    fn write_follows_inside_link_and_delete_removes_the_link() {
        let (_kept, root) = &ground();
        std::fs::write(root.join("real"), "old").expect("written");
        symlink("real", root.join("link")).expect("linked");
        write(root, "link", "new", "s").expect("written");
        assert_eq!(read(root, "real"), Ok("new".to_owned()));
        delete(root, "link").expect("removed");
        delete(root, "link").expect("there is none");
        delete(root, "no/such/file").expect("there is none");
        assert_eq!(is_file(root, "real"), Ok(true));
        assert_eq!(is_directory(root, "real"), Ok(false));
    }

    #[test]
    fn directories_are_created_but_never_deleted() {
        let (_kept, root) = &ground();
        create_directory(root, "x/y").expect("made");
        create_directory(root, "x/y").expect("it is there");
        create_directory(root, ".").expect("it is there");
        assert_eq!(is_directory(root, "x/y"), Ok(true));
        let why = delete(root, "x").expect_err("refused");
        assert!(why.contains("it is a directory, and only files are removed"), "{why}");
        std::fs::write(root.join("file"), "").expect("written");
        assert!(create_directory(root, "file").is_err());
    }
}
