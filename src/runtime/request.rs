//! The request for a new run, besides its settings.

use super::sharing::RunEngine;
use crate::domain::git_exchange::ExchangeName;
use crate::domain::id::RunId;

/// The inputs of a new run besides its settings.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// Its id; one is chosen if absent.
    pub id: Option<RunId>,
    /// The text for `{{input}}` in its first state.
    pub input: Option<String>,
    /// The stored text of the program it begins with; `None` for the text of its file.
    pub program: Option<String>,
    /// True to start it though `raymond check` finds errors.
    pub no_check: bool,
    /// The engine that gets its log; `None` for a run on this machine alone.
    pub engine: Option<RunEngine>,
    /// The repository by which its hosts exchange work.
    pub git_exchange: Option<ExchangeName>,
}
