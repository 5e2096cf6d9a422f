//! The arguments of orders to single agents: `tell`, `hold` and `release`.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::runs::DirArgs;
use crate::cli::agent_selector::AgentSelector;
use crate::cli::candidates::{complete_agents, complete_runs};
use crate::domain::id::{AgentId, RunId};

pub(super) const TELL_HELP: &str = "Examples:
  raymond tell RUN main.2 \"Leave the tests alone.\"
  git diff | raymond tell RUN main.2 -   the message is read from stdin

A running turn reads the message with its next request to the model; otherwise it stands at the end of the agent's next prompt.
It is kept if the run is stopped, and the log shows when it was given and told.

--json prints { run, agent, command, is_live }.";

pub(super) const HOLD_HELP: &str = "Examples:
  raymond hold RUN main.2                nothing of main.2 begins until it is released
  raymond hold RUN 'main.2.*'            nor of the agents that descend from it
  raymond release RUN main.2

A running turn ends as usual. A hold is kept if the run is stopped and resumed.

--json prints { run, agent, command, is_live }.";

pub(super) const EDIT_HELP: &str = "Examples:
  raymond edit RUN main.2                opens the prompt that is due in $VISUAL or $EDITOR
  EDITOR='code --wait' raymond edit RUN main.2

The agent is held meanwhile: a running turn is waited for. It is asked the text as it was saved, instead of its prompt; an empty
text, or one that is as before, changes nothing.";

pub(super) const ATTACH_HELP: &str = "Examples:
  raymond attach RUN main.2              opens the session of main.2 in Claude Code

The agent is held meanwhile: a running turn is waited for. Claude Code runs in the agent's directory, in a branch of its session,
and asks before it uses a tool. After it the agent goes on with what was said there. If nothing was said, nothing changes.";

/// Options of `tell`.
#[derive(Debug, Clone, Args)]
pub struct TellArgs {
    /// The run's id, or the beginning of one
    #[arg(value_name = "RUN", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub run: RunId,
    /// The agent's id, as in `main.2`
    #[arg(value_name = "AGENT", value_parser = AgentId::parse, add = ArgValueCompleter::new(complete_agents))]
    pub agent: AgentId,
    /// The message; `-` reads it from stdin
    #[arg(value_name = "TEXT")]
    pub text: String,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `edit` and `attach`.
#[derive(Debug, Clone, Args)]
pub struct VisitArgs {
    /// The run's id, or the beginning of one
    #[arg(value_name = "RUN", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub run: RunId,
    /// The agent's id, as in `main.2`
    #[arg(value_name = "AGENT", value_parser = AgentId::parse, add = ArgValueCompleter::new(complete_agents))]
    pub agent: AgentId,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
}

/// Options of `hold` and `release`.
#[derive(Debug, Clone, Args)]
pub struct HoldArgs {
    /// The run's id, or the beginning of one
    #[arg(value_name = "RUN", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub run: RunId,
    /// The agent's id, as in `main.2`, or `main.2.*` for it and its descendants
    #[arg(value_name = "AGENT", value_parser = AgentSelector::parse, add = ArgValueCompleter::new(complete_agents))]
    pub agent: AgentSelector,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
