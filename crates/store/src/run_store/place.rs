//! The place of a new run, looked at before the run is made.

use std::io::ErrorKind;
use std::path::Path;

use rustix::fs::{Access, access};

use crate::Error;
use crate::layout::RunsRoot;
use raymond_model::id::RunId;

/// Checks that a run can be made, without making anything.
///
/// # Errors
/// [`Error::Exists`] if the id is taken, [`Error::Io`] if the directory of the runs cannot be made or written.
pub fn check_place(root: &RunsRoot, id: Option<&RunId>) -> Result<(), Error> {
    if let Some(id) = id.filter(|id| root.run(id).path().exists()) {
        return Err(Error::Exists { id: id.clone() });
    }
    let runs = root.runs();
    let Some(nearest) = runs.ancestors().find(|path| path.symlink_metadata().is_ok()) else {
        return Ok(());
    };
    let refused = |error: std::io::Error| Err(Error::io("make the directory", &runs)(error));
    if !nearest.is_dir() {
        return refused(ErrorKind::NotADirectory.into());
    }
    match access(writable(nearest), Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Ok(()),
        Err(error) => refused(error.into()),
    }
}

/// Returns the path for a question about permissions: the current directory for an empty one.
fn writable(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_ids_and_files_in_the_way_are_found_and_nothing_is_made() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = RunsRoot::new(dir.path().join("new/ray"));
        let id = RunId::parse("t").expect("an id");
        check_place(&root, Some(&id)).expect("it can be made");
        assert!(!dir.path().join("new").exists());
        std::fs::create_dir_all(root.run(&id).path()).expect("made");
        assert!(matches!(check_place(&root, Some(&id)), Err(Error::Exists { .. })));
        check_place(&root, None).expect("another id");
        std::fs::write(dir.path().join("file"), "").expect("written");
        let blocked = RunsRoot::new(dir.path().join("file/ray"));
        let error = check_place(&blocked, None).expect_err("a file is in the way").to_string();
        assert!(error.contains("choose another directory"), "{error}");
    }
}
