//! The arguments of the commands that show the state, the history and the costs of a run's agents, and their help.

use clap::Args;

use super::{DirArgs, OneRunArgs};
use crate::cli::agent_selector::AgentSelector;
use crate::domain::id::{AgentId, RunId};

pub(super) const TREE_HELP: &str = "Examples:
  raymond tree RUN                       who forked whom, where each is, what it cost and waits for
  raymond tree RUN --all                 each agent in a line of its own
  raymond tree RUN --json | jq '.agents[] | select(.keeps.by == \"person\") | .id'

More than twelve agents that were forked by the same one, or by those of one line, and began in the same
state are one line, which tells how many of them do what. Those of them that wait for a person or have
failed have lines of their own below it, the first twelve of each.

--json prints { workflow_id, status, total_cost_usd, agents }: all agents, each after its parent, with
id, parent, live, cost_usd, cost_with_descendants_usd, descendants; those that live with state, step
and keeps (by: at_work, permit, due, backoff, stagger, plug_in, usage_limit, person, answer, agent, join,
program, nothing or run; a join with more, of, done and failed), the others with result, or error and cause.";

pub(super) const SHOW_HELP: &str = "Examples:
  raymond show RUN main                  each step of an agent: what it was asked, answered, cost
  raymond show RUN main.2 --step 3       one step, with its texts whole
  raymond show RUN main --json | jq -r '.steps[].turns[].answer'

--json prints { workflow_id, agent, parent, live, cost_usd, scripted, steps }, and result, or error and
cause; a step has step, state, since, cost_usd and turns. A turn is its record as `raymond log --json`
has it, with session_id, prompt and answer, and evaluator, if its evaluator was asked; the turn that is
due has the event `due`.";

pub(super) const COSTS_HELP: &str = "Examples:
  raymond costs RUN                      by state, by model, and by agent, the dearest first
  raymond costs RUN --all                every agent, not only the dearest
  raymond costs RUN --json | jq '.states[] | {state, cost_usd, share}'

--json prints { workflow_id, status, total_cost_usd, budget_usd, scripted, owing, total, states, models,
agents }. A line has turns, failed, reminders, untold, the tokens, cost_usd, estimated_usd and share (of
the whole, 0 to 1). `untold` are turns that ended before they told a cost, `estimated_usd` is what is
counted for them; `owing` are agents that ended with the run and may have been at a turn. Under the
states are the prompts of evaluators, too. A turn that used two models counts for both; what no model
is known for has the model null.";

pub(super) const LOG_HELP: &str = "Examples:
  raymond log RUN --follow               what happened, and what happens
  raymond log RUN --agent main.2         only an agent's own records
  raymond log RUN --agent 'main.2.*'     the same, and those of all its descendants
  raymond log RUN --json                 the records as the journal has them, a line each";

pub(super) const TOP_HELP: &str = "The stuck come first, then those that run. More than twelve agents that were forked by the same one and
began in the same state are one row: Enter opens it, and o opens all such rows. Keys: arrows choose, Enter
shows an agent's last messages, / filters, s stops the run after a question, ? tells all of them, q leaves.
It only reads, so it works on a run that nobody holds, too.";

/// Options of `log`.
#[derive(Debug, Clone, Args)]
pub struct LogArgs {
    /// The run.
    #[command(flatten)]
    pub one: OneRunArgs,
    /// Stay, and show what happens until the run ends or holds still
    #[arg(long, short)]
    pub follow: bool,
    /// Only the records of this agent; with `.*` at the end, of its descendants too
    #[arg(long, value_parser = AgentSelector::parse)]
    pub agent: Option<AgentSelector>,
}

/// Options of `top`.
#[derive(Debug, Clone, Args)]
pub struct TopArgs {
    /// The run's id [default: the run that goes on, or the newest]
    #[arg(value_name = "RUN", value_parser = RunId::parse)]
    pub run: Option<RunId>,
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
    /// Show each agent in a line of its own
    #[arg(long)]
    pub all: bool,
}

/// Options of `show`.
#[derive(Debug, Clone, Args)]
pub struct ShowArgs {
    /// The run.
    #[command(flatten)]
    pub one: OneRunArgs,
    /// The agent's id, as in `main.2`
    #[arg(value_parser = AgentId::parse)]
    pub agent: AgentId,
    /// Only this step, with its texts whole
    #[arg(long, value_name = "N")]
    pub step: Option<u64>,
}

/// Options of `costs`.
#[derive(Debug, Clone, Args)]
pub struct CostsArgs {
    /// The run.
    #[command(flatten)]
    pub one: OneRunArgs,
    /// Show each agent, not only the dearest
    #[arg(long)]
    pub all: bool,
}
