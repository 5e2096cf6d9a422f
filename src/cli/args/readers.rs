//! The arguments of the commands that show the state, the history and the costs of a run's agents, and their help.
//!
//! The arguments of `diff`, and its help.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::cli::agent_selector::AgentSelector;
use crate::cli::args::runs::AgentArg;
use crate::cli::args::{DirArgs, OneRunArgs};
use crate::cli::candidates::{complete_agents, complete_runs};
use crate::domain::id::{AgentId, RunId};

pub(super) const TREE_HELP: &str = "Examples:
  raymond tree RUN                       parents and forks, states, costs, what each waits for
  raymond tree RUN --all                 one line for each agent
  raymond tree RUN --json | jq '.agents[] | select(.waits_for.kind == \"person\") | .id'

More than twelve agents with the same parent, or with parents folded into one line, that began in the same
state are folded into one line of counts. Below it, up to twelve agents that wait for a person and up to twelve
that failed get separate lines.

--json prints { run, status, total_cost_usd, agents }: all agents, each after its parent, with
id, parent, live, status, cost_usd, cost_with_descendants_usd, descendants; live agents with state, step
and, if they wait, waits_for (kind: permit, backoff, stagger, plugin, usage_limit, person, answer, agent,
join, program, request, run_paused or run_interrupted; a join with more, of, done and failed), the others
with result, or error and cause.";

pub(super) const SHOW_HELP: &str = "Examples:
  raymond show RUN main                  each step of an agent: prompt, tool calls, answer, cost
  raymond show RUN                       the same for the only agent, or a list of all agents
  raymond show RUN main.2 --step 3       one step in full
  raymond show RUN main --json | jq -r '.steps[].turns[].answer'

--json prints { run, agent, parent, live, cost_usd, scripted, steps }, and result, or error and
cause; a step has step, state, since, cost_usd and turns. A turn is its record as printed by
`raymond log --json`, with session_id, prompt and answer, and evaluator if its evaluator was asked; the next
turn has the event `due`. tool_calls has the turn's calls, if there are any.";

pub(super) const COSTS_HELP: &str = "Examples:
  raymond costs RUN                      by state, by model and by agent, most expensive first
  raymond costs RUN --all                one row per agent
  raymond costs RUN --json | jq '.states[] | {state, cost_usd, share}'

--json prints { run, status, total_cost_usd, budget_usd, scripted, unbilled_agents, total, states, models,
agents }. A line has turns, failed, reminders, unreported_turns, the tokens, cost_usd, estimated_usd and share
(of the total, 0 to 1). `unreported_turns` counts turns that ended before they reported a cost,
`estimated_usd` is their estimate; `unbilled_agents` counts agents that ended with the run, perhaps during a
turn. The states include the prompts of evaluators. A turn that used two models counts for both; costs of an
unknown model have the model null.";

pub(super) const LOG_HELP: &str = "Examples:
  raymond log RUN --follow               past and new events
  raymond log --last                     events of the most recently started run
  raymond log RUN main.2                 only records of one agent
  raymond log RUN --agent 'main.2.*'     records of this agent and all its descendants
  raymond log RUN --json                 each record as a line of JSON";

pub(super) const TOP_HELP: &str = "Examples:
  raymond top                            the live run, or the newest
  raymond top RUN

Stuck agents come first, then running ones. More than twelve agents with the same parent that began in the same
state are one row: Enter opens it, and o opens all such rows. Keys: arrows select, Enter shows an agent's last
messages, / filters, s stops the run after a confirmation, ? lists all keys, q quits. It only reads, and also
works for a run that is not live.";

/// Options of `log`.
#[derive(Debug, Clone, Args)]
pub struct LogArgs {
    /// The run.
    #[command(flatten)]
    pub one: OneRunArgs,
    /// Only the records of this agent, such as main.2; `main.2.*` adds its descendants
    #[arg(value_name = "AGENT", value_parser = AgentSelector::parse, add = ArgValueCompleter::new(complete_agents))]
    agent: Option<AgentSelector>,
    /// The same, as an option
    #[arg(long = "agent", hide = true, conflicts_with = "agent", value_parser = AgentSelector::parse, add = ArgValueCompleter::new(complete_agents))]
    agent_option: Option<AgentSelector>,
    /// Show new events until the run ends or stops
    #[arg(long, short)]
    pub follow: bool,
}

impl LogArgs {
    /// Returns the agents whose records are shown, if not all are.
    pub fn agent(&self) -> Option<&AgentSelector> {
        self.agent.as_ref().or(self.agent_option.as_ref())
    }
}

/// Options of `top`.
#[derive(Debug, Clone, Args)]
pub struct TopArgs {
    /// The run's id, or the beginning of one [default: the live run, or the newest]
    #[arg(value_name = "RUN", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub run: Option<RunId>,
    /// Use the most recently started run
    #[arg(long, conflicts_with = "run")]
    pub last: bool,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
}

/// Options of `tree`.
#[derive(Debug, Clone, Args)]
pub struct TreeArgs {
    /// The run.
    #[command(flatten)]
    pub one: OneRunArgs,
    /// Show one line for each agent
    #[arg(long)]
    pub all: bool,
}

/// Options of `show`.
#[derive(Debug, Clone, Args)]
pub struct ShowArgs {
    /// The run's id, or the beginning of one [default: asks on a terminal]
    #[arg(value_name = "RUN", add = ArgValueCompleter::new(complete_runs))]
    pub run: Option<String>,
    /// The agent's id, as in `main.2` [default: the only one, or a list of all]
    #[arg(value_name = "AGENT", value_parser = AgentId::parse, add = ArgValueCompleter::new(complete_agents))]
    pub agent: Option<AgentId>,
    /// Use the most recently started run
    #[arg(long)]
    pub last: bool,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Only this step, with its texts in full
    #[arg(long, value_name = "N")]
    pub step: Option<u64>,
}

/// Options of `costs`.
#[derive(Debug, Clone, Args)]
pub struct CostsArgs {
    /// The run.
    #[command(flatten)]
    pub one: OneRunArgs,
    /// Show one row per agent, not only the most expensive
    #[arg(long, short = 'v', visible_alias = "verbose")]
    pub all: bool,
}

pub(super) const DIFF_HELP: &str = "Examples:
  raymond diff RUN1 RUN2                 where two runs of a workflow first differ, and what followed
  raymond diff BRANCH                    a branch, and the run that it branched from
  raymond diff RUN1 RUN2 main.2  only this agent
  raymond diff RUN1 RUN2 --json | jq .first_difference

Agents are compared step by step: states, prompts, models, replies, failures, tags, answers, results, and the files
that Claude Code's own tools changed. Ids, times, sessions, and failures of the machine or the account do not
count as differences. Costs, inputs and workflow files are shown, but do not make two runs different.

Exit codes: 0 if the runs are equal, 1 if they differ.

--json prints { runs, agent, equal, shared_records, first_difference, steps, results, cost, states, files, commands,
inputs, workflow_files }; values of the first run are under a, those of the second under b.";

/// Options of `diff`.
#[derive(Debug, Clone, Args)]
pub struct DiffArgs {
    /// A run: its id, or the beginning of it
    #[arg(value_name = "RUN1", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub run: RunId,
    /// The other run [default: the run that RUN1 branched from, which then comes first]
    #[arg(value_name = "RUN2", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub other: Option<RunId>,
    /// The agent to compare.
    #[command(flatten)]
    pub agent: AgentArg,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
