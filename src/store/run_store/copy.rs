//! The copy of the workflow in a run's directory: replaced, or made again after it was damaged.

use std::io::ErrorKind;

use super::LockedRun;
use crate::domain::workflow_pins::WorkflowPins;
use crate::store::capture::WorkflowCapture;
use crate::store::{Error, contents, pinned};

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
        match contents::load(&self.dir.contents(), &copy, pins)? {
            Some(workflow) => self.replace_copy(&workflow).map(|()| true),
            None => Ok(false),
        }
    }

    fn replace_copy(&self, workflow: &WorkflowCapture) -> Result<(), Error> {
        let (copy, draft) = (self.dir.workflow(), self.dir.path().join("workflow.new"));
        for path in [&draft, &copy] {
            match std::fs::remove_dir_all(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Error::io("remove the directory", path)(error));
                }
                _ => {}
            }
            if *path == draft {
                workflow.write(&draft)?;
            }
        }
        std::fs::rename(&draft, &copy).map_err(Error::io("make the directory", &copy))
    }
}
