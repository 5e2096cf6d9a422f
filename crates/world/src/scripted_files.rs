//! The files that a scripted reply writes and removes in place of an agent's tools.
//!
//! They are confined as those of graphs are, and never lie in the runs or in the workflow's own folder.

use std::path::{Path, PathBuf};

use super::files;
use crate::glob::{FileAccess, resolve};
use raymond_store::plain_file;

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
