//! The space of runs in an engine: commands from any machine, and large contents by their checksum.

use super::EngineError;
use super::shared_log::RunLease;
use crate::domain::id::RunId;

/// A command that waits for the supervisor of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCommand {
    /// Its name, which is that of a file in an inbox.
    pub name: String,
    /// Its content.
    pub content: Vec<u8>,
}

/// Commands and contents.
pub trait RunSpace {
    /// Leaves a command for a run; it is durable when this returns. The same name again changes nothing.
    ///
    /// # Errors
    /// [`EngineError::NoSuchRun`].
    fn leave_command(&self, run: &RunId, command: &SharedCommand) -> Result<(), EngineError>;

    /// Returns the commands that wait, in the order of their names.
    ///
    /// # Errors
    /// [`EngineError::NoSuchRun`].
    fn commands(&self, run: &RunId) -> Result<Vec<SharedCommand>, EngineError>;

    /// Removes a command that a record of the run holds by now.
    ///
    /// # Errors
    /// [`EngineError::TakenOver`] if the lease is not the newest.
    fn remove_command(&self, lease: &RunLease, name: &str) -> Result<(), EngineError>;

    /// Keeps a content under its SHA-256 checksum, in hexadecimal digits. The same content again changes nothing.
    ///
    /// # Errors
    /// [`EngineError`] if it cannot be kept.
    fn put_blob(&self, sha256: &str, content: &[u8]) -> Result<(), EngineError>;

    /// Returns the content with a checksum. One of more than `most` bytes is not loaded.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] if it is larger, [`EngineError`] if the engine cannot be asked.
    fn blob(&self, sha256: &str, most: u64) -> Result<Option<Vec<u8>>, EngineError>;
}

/// Returns why a content is not loaded.
#[cfg(any(feature = "postgres", feature = "restate"))]
pub(super) fn too_large(bytes: u64, most: u64) -> String {
    format!("it has at least {bytes} bytes, and at most {most} are loaded")
}
