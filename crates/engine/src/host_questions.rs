//! Questions to hosts about a run, of whoever looks at it. They need no lease, and no supervisor sees them.

use super::EngineError;
use super::host_mailbox::HostRequest;

/// The beginning of the key of a question, which no id of a run has.
pub const QUESTION: &str = "?";

/// Questions to hosts.
pub trait HostQuestions {
    /// Asks a host, which gets it like any other request. Its key begins with [`QUESTION`].
    ///
    /// # Errors
    /// [`EngineError::NoSuchRun`].
    fn ask(&self, question: &HostRequest) -> Result<(), EngineError>;

    /// Returns the reply to a question, if there is one yet.
    ///
    /// # Errors
    /// [`EngineError`] if the engine cannot be asked.
    fn question_reply(&self, key: &str) -> Result<Option<String>, EngineError>;

    /// Removes a question, and its reply.
    ///
    /// # Errors
    /// [`EngineError`] if the engine cannot be asked.
    fn end_question(&self, key: &str) -> Result<(), EngineError>;
}
