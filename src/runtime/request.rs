//! The request for a new run: its inputs besides the settings.

use crate::domain::git_exchange::ExchangeName;
use crate::domain::id::RunId;
use crate::domain::settings::Settings;
use crate::domain::transition::Variables;
use crate::runtime::sharing::RunEngine;

/// The inputs of a new run besides its settings.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// Its id; one is chosen if absent.
    pub id: Option<RunId>,
    /// The text for `{{input}}` in its first state.
    pub input: Option<String>,
    /// True to start it though `raymond check` finds errors.
    pub no_check: bool,
    /// The engine that gets its log; `None` for a run on this machine alone.
    pub engine: Option<RunEngine>,
    /// The repository by which its hosts exchange work.
    pub git_exchange: Option<ExchangeName>,
}

impl RunRequest {
    /// Returns the variables of the first state: the input, unless one is given as a variable for all states.
    pub(super) fn first_variables(&self, settings: &Settings) -> Variables {
        let is_given = self.input.is_some() || !settings.variables.contains_key("input");
        let input = || ("input".to_owned(), self.input.clone().unwrap_or_default());
        is_given.then(input).into_iter().collect()
    }
}
