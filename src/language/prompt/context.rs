//! The state of an agent when its prompt is rendered, and the values of all placeholders.

use std::sync::Arc;

use crate::domain::id::{AgentId, RunId, StateName};
use crate::domain::transition::Variables;

/// The placeholders that the runtime fills itself; no variable can take their names.
pub const RESERVED: [&str; 3] = ["workflow_id", "agent_id", "state"];

/// The placeholder for the run's id; `workflow_id` is its older name.
pub const RUN_ID: &str = "run_id";

/// Adds the placeholders that the runtime fills itself. A workflow's own `run_id` comes first.
pub fn add_own(values: &mut Variables, run: &RunId, agent: &AgentId, state: &StateName) {
    if values.get(RUN_ID).is_none() {
        values.insert(RUN_ID.to_owned(), run.to_string());
    }
    let own = [run.as_str(), agent.as_str(), state.as_str()];
    values.extend(RESERVED.map(str::to_owned).into_iter().zip(own.map(str::to_owned)));
}

/// The placeholder for the results of the agents that a state has waited for.
pub const RESULTS: &str = "results";

/// The placeholder for the path of the file with the results.
pub const RESULTS_FILE: &str = "results_file";

/// The results of the agents that a state has waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinResults {
    /// The list itself, for `{{results}}`.
    pub list: Arc<str>,
    /// The path of the file with the list, for `{{results_file}}`.
    pub file: String,
}

/// The state of an agent when it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptContext {
    /// The run, for `{{run_id}}`.
    pub workflow: RunId,
    /// The agent, for `{{agent_id}}`.
    pub agent: AgentId,
    /// The state, for `{{state}}`.
    pub state: StateName,
    /// The agent's own variables, overridden by those the state was entered with.
    pub variables: Variables,
    /// The results of the agents that it has waited for.
    pub results: Option<JoinResults>,
    /// The values the run was started with; those of the agent come first.
    pub run_variables: Variables,
}

impl PromptContext {
    /// Returns all placeholders' values: the run's, then the agent's, then the runtime's. Later ones override.
    pub fn values(&self) -> Variables {
        let mut values = self.run_variables.clone();
        values.extend(self.variables.clone());
        if let Some(JoinResults { list, file }) = &self.results {
            values.insert(RESULTS.to_owned(), list.to_string());
            values.insert(RESULTS_FILE.to_owned(), file.clone());
        }
        add_own(&mut values, &self.workflow, &self.agent, &self.state);
        values
    }
}
