//! The changes of files that a recorded or a scripted turn makes in the working directory of its agent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use raymond_agents::working_dirs::WorkingDirs;
use raymond_model::cassette::{MAX_PATCHED_BYTES, PatchFailure, RecordedChange};
use raymond_model::hexadecimal::hexadecimal;
use raymond_model::operation::Operation;
use raymond_model::turn::TurnId;
use raymond_model::worktree_snapshot::WorkingDir;
use raymond_store::plain_file;
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use super::files;
use super::gate::check_protected_paths;
use crate::glob::{FileAccess, resolve};

// The changes of files that a recorded turn made, made again in the working directory of the agent that replays it.
//
// A note of the contents that will be comes before the first change. If raymond is killed in between, the turn is
// replayed again, and what is changed already is left as it is.

/// The longest note that is read, in bytes.
const MAX_NOTE_BYTES: u64 = 16 * 1024 * 1024;

/// The most bytes of a part that is not found, for its message.
const MAX_SHOWN_BYTES: usize = 80;

/// The places of a run whose turns are replayed.
#[derive(Debug, Clone)]
pub struct ReplaySite {
    /// The working directories of the agents.
    pub working_dirs: WorkingDirs,
    /// The directory of all runs.
    pub runs: PathBuf,
    /// The run's directory for files of single steps.
    pub steps: PathBuf,
}

/// Makes the changes of a recorded turn; returns what cannot be changed, a text each.
pub async fn make_again(
    site: ReplaySite,
    working_dir: WorkingDir,
    turn: TurnId,
    changes: Vec<RecordedChange>,
) -> Vec<String> {
    let work = move || {
        let root = match root(&site, &working_dir) {
            Ok(root) => root,
            Err(why) => return vec![why],
        };
        make_all(&site, &root, &turn, &changes)
    };
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|error| vec![format!("the recorded changes came to no end: {error}")])
}

fn root(site: &ReplaySite, working_dir: &WorkingDir) -> Result<PathBuf, String> {
    let root = site.working_dirs.directory(working_dir)?;
    root.canonicalize().map_err(|error| format!("{} cannot be used: {error}", root.display()))
}

/// The contents that files will have: paths and their checksums.
type ContentNote = BTreeMap<String, String>;

fn make_all(
    site: &ReplaySite,
    root: &Path,
    turn: &TurnId,
    changes: &[RecordedChange],
) -> Vec<String> {
    let note_path = site.steps.join(format!("{}.patched", turn.stem()));
    let done: ContentNote = plain_file::read(&note_path, MAX_NOTE_BYTES)
        .ok()
        .and_then(|note| serde_json::from_slice(&note).ok())
        .unwrap_or_default();
    let mut problems = Vec::new();
    let mut contents: BTreeMap<&str, String> = BTreeMap::new();
    for path in changes.iter().map(|change| change.path.as_str()) {
        if contents.contains_key(path) {
            continue;
        }
        match content_after(root, &site.runs, path, changes, done.get(path)) {
            Ok(Some(content)) => drop(contents.insert(path, content)),
            Ok(None) => {}
            Err(why) if problems.contains(&why) => {}
            Err(why) => problems.push(why),
        }
    }
    if contents.is_empty() {
        return problems;
    }
    let mut note = done;
    note.extend(contents.iter().map(|(path, text)| ((*path).to_owned(), checksum(text))));
    let noted = serde_json::to_vec(&note).map_err(std::io::Error::from).and_then(|note| {
        plain_file::FileReplacement::of(&note_path).without_sync().write(&note)?;
        Ok(())
    });
    if let Err(error) = noted {
        problems.push(format!("{}: cannot write: {error}", note_path.display()));
        return problems;
    }
    for (path, content) in contents {
        let written = files::write(root, path, &content, &turn.stem());
        problems.extend(written.err().map(|error| error.to_string()));
    }
    problems
}

/// Returns the content of a file after all changes of it; `None` if it has that already.
fn content_after(
    root: &Path,
    runs: &Path,
    path: &str,
    changes: &[RecordedChange],
    done: Option<&String>,
) -> Result<Option<String>, String> {
    let operation = Operation::WriteFile { path: path.to_owned(), content: String::new() };
    check_protected_paths(root, runs, &operation, true)?;
    let found = resolve(root, path, FileAccess::Write)?;
    let before = files::read_at(&found).map_err(|why| format!("cannot read `{path}`: {why}"))?;
    if before.as_deref().map(checksum).as_ref() == done && done.is_some() {
        return Ok(None);
    }
    let mut text = before;
    for change in changes.iter().filter(|change| change.path == path) {
        let next = change.patch.apply(text.as_deref()).map_err(|failure| {
            let PatchFailure::NoSuchPart(edit) = failure else {
                return format!(
                    "`{path}` would become longer than {MAX_PATCHED_BYTES} bytes, which {} makes of it",
                    change.tool
                );
            };
            let cut = edit.old.floor_char_boundary(MAX_SHOWN_BYTES);
            let part = &edit.old[..cut];
            match &text {
                Some(_) => format!("`{path}` has no part {part:?}, which {} replaces", change.tool),
                None => format!("there is no `{path}`, in which {} replaces {part:?}", change.tool),
            }
        })?;
        text = Some(next);
    }
    Ok(text)
}

fn checksum(text: &str) -> String {
    hexadecimal(Sha256::digest(text))
}

// The files that a scripted reply writes and removes in place of an agent's tools.
//
// They are confined as those of graphs are, and never lie in the runs or in the workflow's own folder.

/// The changes of one scripted turn.
#[derive(Debug, Default)]
pub struct ScriptedFiles {
    /// The files to write, by path, with their texts.
    pub write: Vec<(String, String)>,
    /// The files to remove.
    pub delete: Vec<String>,
}

impl ScriptedFiles {
    /// Returns whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.write.is_empty() && self.delete.is_empty()
    }

    /// Makes the changes below a directory, but for the folders that are `kept`. `stem` names the drafts of files. A
    /// turn that is run again makes them again.
    ///
    /// # Errors
    /// The path that cannot be changed, and the reason.
    pub fn apply(&self, root: &Path, kept: &[PathBuf], stem: &str) -> Result<(), String> {
        let unusable =
            |error| format!("the working directory {} cannot be used: {error}", root.display());
        let root = root.canonicalize().map_err(unusable)?;
        for (path, text) in &self.write {
            check(&root, kept, path, FileAccess::Write)?;
            files::write(&root, path, text, stem).map_err(|error| error.to_string())?;
        }
        for path in &self.delete {
            check(&root, kept, path, FileAccess::Remove)?;
            files::delete(&root, path)?;
        }
        Ok(())
    }
}

/// Returns the text of a file below a directory; `None` if there is none, or if a link leads out.
pub fn read_text(root: &Path, path: &str, limit: u64) -> Option<String> {
    let path = resolve(&root.canonicalize().ok()?, path, FileAccess::Read).ok()?;
    let bytes = plain_file::read(&path, limit).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns a folder below a directory, under its real name.
///
/// # Errors
/// The reason why it cannot be used: it is none, or a link leads out.
pub fn folder_below(root: &Path, path: &str) -> Result<PathBuf, String> {
    let unusable = |error| format!("{}: {error}", root.display());
    let folder = resolve(&root.canonicalize().map_err(unusable)?, path, FileAccess::Read)?;
    if folder.is_dir() { Ok(folder) } else { Err(format!("no folder `{path}` here")) }
}

/// Refuses a path in a folder that is kept.
fn check(root: &Path, kept: &[PathBuf], given: &str, wanted: FileAccess) -> Result<(), String> {
    let path = resolve(root, given, wanted)?;
    for folder in kept {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        if path.starts_with(&folder) || folder.starts_with(&path) {
            return Err(format!(
                "the path `{given}` is in {}, which no reply may change: write elsewhere, or run in another directory with --cwd",
                folder.display()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use raymond_model::cassette::{FilePatch, TextEdit};
    use raymond_model::id::AgentId;

    struct Ground {
        _kept: tempfile::TempDir,
        root: PathBuf,
        site: ReplaySite,
    }

    fn ground() -> Ground {
        let kept = tempfile::tempdir().expect("a directory");
        let base = kept.path().canonicalize().expect("it is there");
        let (root, steps) = (base.join("work"), base.join("steps"));
        for path in [&root, &steps] {
            std::fs::create_dir(path).expect("made");
        }
        let runs = root.join("own");
        let site = ReplaySite { working_dirs: WorkingDirs::new(&root, "none"), runs, steps };
        Ground { _kept: kept, root, site }
    }

    fn change(file: &str, patch: FilePatch) -> RecordedChange {
        RecordedChange { path: file.to_owned(), tool: "Edit".to_owned(), patch }
    }

    fn edit(old: &str, new: &str) -> FilePatch {
        let edit = TextEdit { old: old.to_owned(), new: new.to_owned(), all: false };
        FilePatch::Edits(vec![edit])
    }

    fn make(ground: &Ground, changes: &[RecordedChange]) -> Vec<String> {
        let turn = TurnId { agent: AgentId::main(), step: 1, turn: 0 };
        make_all(&ground.site, &ground.root, &turn, changes)
    }

    #[test]
    fn changes_made_twice_are_made_once() {
        let ground = ground();
        let path = ground.root.join("a");
        std::fs::write(&path, "x").expect("written");
        let content = FilePatch::Content("new".to_owned());
        let changes =
            [change("a", edit("x", "xx")), change("d/b", content), change("a", edit("xx", "xxx"))];
        for _ in 0..2 {
            assert_eq!(make(&ground, &changes), Vec::<String>::new());
            assert_eq!(std::fs::read_to_string(&path).expect("there"), "xxx");
        }
        // Killed between two files.
        std::fs::remove_file(ground.root.join("d/b")).expect("removed");
        assert_eq!(make(&ground, &changes), Vec::<String>::new());
        assert_eq!(std::fs::read_to_string(ground.root.join("d/b")).expect("there"), "new");
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "xxx");
    }

    #[test]
    fn patches_that_do_not_apply_or_lead_outside_are_reported() {
        let ground = ground();
        std::fs::write(ground.root.join("a"), "y").expect("written");
        let content = || FilePatch::Content("x".to_owned());
        let problems = make(
            &ground,
            &[
                change("a", edit("gone", "x")),
                change("none", edit("gone", "x")),
                change("../b", content()),
                change("own/runs/t/journal.jsonl", content()),
                change(".git/config", content()),
                change("fine", content()),
            ],
        );
        let expected = [
            "`a` has no part \"gone\"",
            "there is no `none`",
            "leads out of the workspace",
            "keeps its runs",
            "is in .git",
        ];
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
        for (problem, expected) in problems.iter().zip(expected) {
            assert!(problem.contains(expected), "{problem}");
        }
        assert!(ground.root.join("fine").is_file() && !ground.root.join("own").exists());
    }
}

#[cfg(test)]
mod scripted_files_tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_written_below_the_working_directory_alone() {
        let ground = tempfile::tempdir().expect("a directory");
        let work = ground.path().join("work");
        std::fs::create_dir_all(work.join("flow")).expect("made");
        std::fs::write(ground.path().join("secret"), "x").expect("written");
        symlink(ground.path(), work.join("out")).expect("linked");
        let kept = [work.join("flow")];
        let write = |path: &str| {
            let write = vec![(path.to_owned(), "text".to_owned())];
            ScriptedFiles { write, delete: Vec::new() }.apply(&work, &kept, "main-1-0")
        };
        assert_eq!(write("notes/a.md"), Ok(()));
        assert_eq!(std::fs::read_to_string(work.join("notes/a.md")).expect("there"), "text");
        for path in ["../x", "out/secret", ".raymond/x", ".git/hooks/x", "flow/START.md", "flow"] {
            assert!(write(path).is_err(), "{path}");
        }
        let delete = |path: &str| {
            let delete = vec![path.to_owned()];
            ScriptedFiles { write: Vec::new(), delete }.apply(&work, &kept, "main-1-0")
        };
        assert_eq!((delete("notes/a.md"), delete("notes/none")), (Ok(()), Ok(())));
        assert!(!work.join("notes/a.md").exists());
        std::fs::write(work.join("b.md"), "b").expect("written");
        assert_eq!(read_text(&work, "b.md", 9).as_deref(), Some("b"));
        for path in ["out/secret", "../secret", "none"] {
            assert_eq!(read_text(&work, path, 9), None, "{path}");
        }
        assert_eq!(folder_below(&work, "flow").ok(), work.join("flow").canonicalize().ok());
        for path in ["out", "none", "b.md"] {
            assert!(folder_below(&work, path).is_err(), "{path}");
        }
        assert!(delete("out/secret").is_err() && delete("flow/START.md").is_err());
        assert!(ground.path().join("secret").exists());
    }
}
