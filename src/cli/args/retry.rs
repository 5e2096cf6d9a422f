//! The arguments of `retry`.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::{DirArgs, NamedRunArgs};
use crate::cli::candidates::complete_agents;
use crate::cli::options::RunOptions;
use crate::domain::id::{AgentId, StateName};
use crate::domain::retry::RetrySelection;
use crate::domain::turn::FailureCause;
use crate::language::hint::closest;

pub(super) const RETRY_HELP: &str = "Examples:
  raymond retry RUN --dry-run            which agents would be retried, and what follows
  raymond retry --last                   all failed agents of the most recently started run
  raymond retry RUN main.3               this agent, and those that failed with it
  raymond retry RUN --state TEST.md --prompts
                                         agents that failed there, with the current workflow files
  raymond retry RUN --cause budget --budget 5

A retried agent continues where it failed, in the session of its last finished turn, with a fresh budget of restarts
and reminders. The finished work of other agents stays. An agent that continued after the failure does not see the new
result. --dry-run lists such agents.

--dry-run --json prints { run, agents, continued, estimated_cost_usd }.";

/// Options of `retry`.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate switch")]
pub struct RetryArgs {
    /// The run.
    #[command(flatten)]
    pub named: NamedRunArgs,

    /// Retry all failed agents; this is the default
    #[arg(long, conflicts_with_all = ["agent", "agent_options", "state", "cause"])]
    pub failed: bool,

    /// Retry these agents, and those that failed with them
    #[arg(value_name = "AGENT", value_parser = AgentId::parse, add = ArgValueCompleter::new(complete_agents))]
    pub agent: Vec<AgentId>,

    /// The same, as an option
    #[arg(long = "agent", value_name = "AGENT", hide = true, value_parser = AgentId::parse, add = ArgValueCompleter::new(complete_agents))]
    pub agent_options: Vec<AgentId>,

    /// Retry the agents that failed in this state, such as TEST.md or flow.yaml#node; repeatable
    #[arg(long, value_name = "STATE", value_parser = StateName::parse)]
    pub state: Vec<StateName>,

    /// Retry the agents that failed for this cause, such as crash, timeout or protocol; repeatable
    #[arg(long, value_name = "CAUSE", value_parser = cause)]
    pub cause: Vec<FailureCause>,

    /// Show which agents would be retried, what follows and the estimated cost, and change nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Use the current workflow files, including replies.yaml, and show the differences; the same as --migrate
    #[arg(long)]
    pub prompts: bool,

    /// Leave the terminal's session before anything else
    #[arg(long, hide = true)]
    pub detached: bool,

    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,

    /// The options that each resume may change.
    #[command(flatten)]
    pub options: RunOptions,
}

impl RetryArgs {
    /// Returns the agents that are chosen.
    pub fn selection(&self) -> RetrySelection {
        let Self { agent, agent_options, state, cause, .. } = self;
        let agents = [agent.as_slice(), agent_options].concat();
        RetrySelection { agents, states: state.clone(), causes: cause.clone() }
    }
}

/// Reads a kind of failure, by the word that `status` and `log --json` show.
fn cause(text: &str) -> Result<FailureCause, String> {
    let words = || FailureCause::ALL.iter().map(|cause| (cause.to_string(), *cause));
    let found = words().find(|(word, _)| word == text).map(|(_, cause)| cause);
    // As `log --json` writes it, too: usage_limit.
    if let Some(cause) = found.or_else(|| serde_json::from_value(text.into()).ok()) {
        return Ok(cause);
    }
    let word = |cause: &FailureCause| {
        let value = serde_json::to_value(cause).ok()?;
        value.as_str().map(str::to_owned)
    };
    let all: Vec<String> = FailureCause::ALL.iter().filter_map(word).collect();
    let meant = closest(text, all.iter().map(String::as_str));
    let meant = meant.map(|word| format!("did you mean {word}? ")).unwrap_or_default();
    Err(format!("{meant}The causes are {}", all.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cause_is_read_by_its_word() {
        assert_eq!(cause("crash"), Ok(FailureCause::Crash));
        assert_eq!(cause("usage limit"), Ok(FailureCause::UsageLimit));
        assert_eq!(cause("usage_limit"), Ok(FailureCause::UsageLimit));
        let error = cause("crush").expect_err("unknown");
        assert!(error.starts_with("did you mean crash? The causes are crash, "), "{error}");
    }
}
