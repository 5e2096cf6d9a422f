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

A running turn gets the message with its next request to the model. Otherwise, raymond appends it to the agent's next
prompt. The message survives a stop of the run. The log shows when it was given and delivered.

--json prints { run, agent, command, is_live }.";

pub(super) const HOLD_HELP: &str = "Examples:
  raymond hold RUN main.2                main.2 starts nothing new until it is released
  raymond hold RUN 'main.2.*'            main.2 and its descendants
  raymond release RUN main.2

A running turn ends as usual. A hold survives a stop and resume of the run.

--json prints { run, agent, command, is_live }.";

pub(super) const EDIT_HELP: &str = "Examples:
  raymond edit RUN main.2                opens the next prompt of main.2 in $VISUAL or $EDITOR
  EDITOR='code --wait' raymond edit RUN main.2

raymond waits for a running turn of the agent, and holds the agent until the editor exits. The agent then gets the saved
text instead of its prompt. An empty or unchanged text changes nothing.";

pub(super) const ATTACH_HELP: &str = "Examples:
  raymond attach RUN main.2              opens the session of main.2 in Claude Code

raymond waits for a running turn of the agent, and holds the agent until you exit. Claude Code runs in the agent's
directory, in a branch of its session, and asks before it uses a tool. The agent then continues with what was said. If
nothing was said, nothing changes.";

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
