//! The copy of the workflow in a run's directory: replaced, or made again after it was damaged.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::LockedRun;
use crate::domain::workflow_pins::WorkflowPins;
use crate::store::capture::WorkflowCapture;
use crate::store::{Error, contents, files, pinned};

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

fn remove_dir(path: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::io("remove the directory", path)(error))
        }
        _ => Ok(()),
    }
}
