//! The copy of the workflow in a run's directory: replaced, or made again after it was damaged.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::LockedRun;
use crate::capture::WorkflowCapture;
use crate::layout::RunDir;
use crate::{Error, contents, files, pinned};
use raymond_model::workflow_pins::WorkflowPins;

impl LockedRun {
    /// Replaces the pinned files of the workflow.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn repin(&self, workflow: &WorkflowCapture) -> Result<(), Error> {
        match std::fs::remove_file(self.dir.contents()) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::io("remove", &self.dir.contents())(error));
            }
            _ => {}
        }
        contents::save(&self.dir.contents(), workflow)?;
        self.replace_copy(workflow)?;
        pinned::save(&self.dir.pins(), &workflow.pins())
    }

    /// Makes the copy again if it is not as it was pinned, and its contents are still known; returns whether it did.
    /// A power cut damages the copy, because only its contents are durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn mend_copy(&self, pins: &WorkflowPins) -> Result<bool, Error> {
        let copy = self.dir.workflow();
        if pinned::is_copy_whole(&copy, pins) {
            return Ok(false);
        }
        // A copy may have been replaced half-way.
        let copies = [copy, self.old_copy(), self.new_copy()];
        match contents::load(&self.dir.contents(), &copies, pins)? {
            Some(workflow) => self.replace_copy(&workflow).map(|()| true),
            None => Ok(false),
        }
    }

    /// Replaces the copy. The old one is removed only when the new one is in its place.
    fn replace_copy(&self, workflow: &WorkflowCapture) -> Result<(), Error> {
        let (copy, draft, old) = (self.dir.workflow(), self.new_copy(), self.old_copy());
        remove_dir(&draft)?;
        workflow.write(&draft)?;
        remove_dir(&old)?;
        match std::fs::rename(&copy, &old) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::io("move the directory", &copy)(error));
            }
            _ => {}
        }
        std::fs::rename(&draft, &copy).map_err(Error::io("make the directory", &copy))?;
        files::sync_dir(self.dir.path())?;
        remove_dir(&old)
    }

    /// Returns the path of a copy that is being made.
    fn new_copy(&self) -> PathBuf {
        self.dir.path().join("workflow.new")
    }

    /// Returns the path of a copy that is being replaced.
    fn old_copy(&self) -> PathBuf {
        self.dir.path().join("workflow.old")
    }
}

/// Returns the files of a run's workflow as they were pinned, from its copy or from what is kept beside it; `None` if they
/// are no longer known.
///
/// # Errors
/// [`Error::Io`].
pub fn pinned_workflow(
    dir: &RunDir,
    pins: &WorkflowPins,
) -> Result<Option<WorkflowCapture>, Error> {
    let copy = dir.workflow();
    if pinned::is_copy_whole(&copy, pins) {
        return WorkflowCapture::of(&copy, Path::new("")).map(Some);
    }
    contents::load(&dir.contents(), &[copy], pins)
}

fn remove_dir(path: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::io("remove the directory", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{CapturedFile, LARGE};
    use crate::layout::RunsRoot;
    use crate::run_store::NewRun;
    use raymond_model::event::{Event, Record, RunStarted};
    use raymond_model::id::{RunId, SessionId, StateName};
    use raymond_model::time::Timestamp;

    fn first_record() -> Record {
        let started = RunStarted {
            workflow_id: RunId::parse("r").expect("an id"),
            scope_dir: "w".into(),
            folder: None,
            entry: StateName::parse("A.md").expect("a state"),
            session: SessionId::new("s"),
            definition: None,
            variables: raymond_model::transition::Variables::new(),
            options: raymond_model::agent::AgentOptions::default(),
            settings: raymond_model::settings::Settings::default(),
        };
        Record {
            kept_session: None,
            seq: 1,
            at: Timestamp(1),
            folder: None,
            snapshot: None,
            placed: Vec::new(),
            event: Event::RunStarted(Box::new(started)),
        }
    }

    #[test]
    fn damaged_copy_of_workflow_is_made_again_from_its_contents() {
        let large = vec![b'x'; usize::try_from(LARGE).expect("small")];
        let files =
            [("A.md", &b"one"[..]), ("bin/big", &large), ("empty", b""), ("sub/B.md", b"two")];
        let file = |content: &[u8]| CapturedFile {
            content: content.to_vec(),
            is_executable: false,
            version: None,
        };
        let files = files.into_iter().map(|(name, content)| (name.to_owned(), file(content)));
        let workflow = WorkflowCapture::of_files(files.collect());
        let first = first_record();
        let place = tempfile::tempdir().expect("a directory");
        let root = RunsRoot::new(place.path());
        let parts = NewRun { workflow: Some(&workflow), ..NewRun::default() };
        let (store, _) = LockedRun::create(&root, &first, parts).expect("created");
        let (pins, copy) = (workflow.pins(), store.dir().workflow());
        assert!(!store.mend_copy(&pins).expect("whole"));
        let damage: [&dyn Fn(); 4] = [
            &|| std::fs::remove_file(copy.join("A.md")).expect("removed"),
            &|| std::fs::remove_dir_all(copy.join("sub")).expect("removed"),
            &|| {
                std::fs::remove_file(copy.join("A.md")).expect("removed");
                std::fs::write(copy.join("A.md"), "").expect("written");
            },
            &|| std::fs::write(copy.join("more"), "added").expect("written"),
        ];
        for damage in damage {
            damage();
            assert!(store.mend_copy(&pins).expect("mended"));
            let again = WorkflowCapture::of(&copy, Path::new("/nowhere")).expect("read");
            assert_eq!(again.pins(), pins);
        }
        std::fs::rename(&copy, copy.with_file_name("workflow.old")).expect("renamed");
        assert!(store.mend_copy(&pins).expect("a copy that was being replaced is mended"));
        assert!(!copy.with_file_name("workflow.old").exists());
        std::fs::remove_file(copy.join("bin/big")).expect("removed");
        assert!(!store.mend_copy(&pins).expect("large files are known only from the copy"));
        std::fs::write(store.dir().contents(), "oneXXX").expect("written");
        std::fs::remove_dir_all(&copy).expect("removed");
        assert!(!store.mend_copy(&pins).expect("the contents were changed too"));
        assert!(!copy.exists(), "nothing unproven is made");
    }
}
