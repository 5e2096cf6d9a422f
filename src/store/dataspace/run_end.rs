//! The end of a run, which leaves nothing beside the facts.

use std::path::PathBuf;
use std::time::Duration;

use super::Dataspace;
use super::entry::LoggedChange;
use super::log_content::ChangeLogContent;
use super::step::STEP_FOLDERS;
use super::writer::FactDecision;
use crate::domain::id::RunId;
use crate::store::Error;

/// The longest time that the end of a run waits for another writer.
const ENDED_TIMEOUT: Duration = Duration::from_secs(5);

impl Dataspace {
    /// Removes the marks and changes of a run that has ended, durably: another run may get its id. Nobody waits if there
    /// are none.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn ended(&self, run: &RunId) -> Result<(), Error> {
        let log = self.changes();
        let is_named = ChangeLogContent::read(&log)?.is_some_and(|log| log.names(run));
        if !is_named && !self.has_files_of(run)? {
            return Ok(());
        }
        if self.shared.is_some() {
            return self.carry_out(|_| {
                let change = LoggedChange::RunEnded { run: run.clone() };
                Ok(FactDecision::change("", "", change, ()))
            });
        }
        self.refuse_copy()?;
        if !log.symlink_metadata().is_ok_and(|found| found.is_file()) {
            return self.clear_run(run);
        }
        let Some(mut writer) = self.write_within(ENDED_TIMEOUT)? else {
            tracing::warn!(
                "the facts are locked by another process, so the end of {run} is not noted there"
            );
            return self.clear_run(run);
        };
        writer.change(String::new(), String::new(), LoggedChange::RunEnded { run: run.clone() })
    }

    fn has_files_of(&self, run: &RunId) -> Result<bool, Error> {
        let agent_file_stem = format!("{run}~");
        let is_of_run = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(&agent_file_stem))
        };
        for folder in STEP_FOLDERS {
            if super::entries(&self.path.join(folder))?.iter().any(is_of_run) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
