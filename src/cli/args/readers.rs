//! The arguments of `tree`, `show`, `costs`, `log`, `top`, `diff`, `clean`, `man`, `worktrees`, `signal` and `facts`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::cli::agent_selector::AgentSelector;
use crate::cli::args::runs::AgentArg;
use crate::cli::args::{DirArgs, SingleRunArgs};
use crate::cli::candidates::{complete_agents, complete_runs};
use crate::domain::id::{AgentId, RunId};
use crate::domain::time::millis;

const TREE_HELP: &str = "Examples:
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

const SHOW_HELP: &str = "Examples:
  raymond show RUN main                  each step of an agent: prompt, tool calls, answer, cost
  raymond show RUN                       the same for the only agent, or a list of all agents
  raymond show RUN main.2 --step 3       one step in full
  raymond show RUN main --json | jq -r '.steps[].turns[].answer'

--json prints { run, agent, parent, live, cost_usd, scripted, steps }, and result, or error and
cause; a step has step, state, since, cost_usd and turns. A turn is its record as printed by
`raymond log --json`, with session_id, prompt and answer, and evaluator if its evaluator was asked; the next
turn has the event `due`. tool_calls has the turn's calls, if there are any.";

const COSTS_HELP: &str = "Examples:
  raymond costs RUN                      by state, by model and by agent, most expensive first
  raymond costs RUN --all                one row per agent
  raymond costs RUN --json | jq '.states[] | {state, cost_usd, share}'

--json prints { run, status, total_cost_usd, budget_usd, scripted, unbilled_agents, total, states, models,
agents }. A line has turns, failed, reminders, unreported_turns, the tokens, cost_usd, estimated_usd and share
(of the total, 0 to 1). `unreported_turns` counts turns that ended before they reported a cost,
`estimated_usd` is their estimate; `unbilled_agents` counts agents that ended with the run, perhaps during a
turn. The states include the prompts of evaluators. A turn that used two models counts for both; costs of an
unknown model have the model null.";

const LOG_HELP: &str = "Examples:
  raymond log RUN --follow               past and new events
  raymond log --last                     events of the most recently started run
  raymond log RUN main.2                 only records of one agent
  raymond log RUN --agent 'main.2.*'     records of this agent and all its descendants
  raymond log RUN --json                 each record as a line of JSON";

const TOP_HELP: &str = "Examples:
  raymond top                            the live run, or the newest
  raymond top RUN

Stuck agents come first, then running ones. More than twelve agents with the same parent that began in the same
state are one row: Enter opens it, and o opens all such rows. Keys: arrows select, Enter shows an agent's last
messages, / filters, s stops the run after a confirmation, ? lists all keys, q quits. It only reads, and also
works for a run that is not live.";

/// Options of `log`.
#[derive(Debug, Clone, Args)]
#[command(after_help = LOG_HELP)]
pub struct LogArgs {
    /// The run.
    #[command(flatten)]
    pub target: SingleRunArgs,
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
#[command(after_help = TOP_HELP)]
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
#[command(after_help = TREE_HELP)]
pub struct TreeArgs {
    /// The run.
    #[command(flatten)]
    pub target: SingleRunArgs,
    /// Show one line for each agent
    #[arg(long)]
    pub all: bool,
}

/// Options of `show`.
#[derive(Debug, Clone, Args)]
#[command(after_help = SHOW_HELP)]
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
#[command(after_help = COSTS_HELP)]
pub struct CostsArgs {
    /// The run.
    #[command(flatten)]
    pub target: SingleRunArgs,
    /// Show one row per agent, not only the most expensive
    #[arg(long, short = 'v', visible_alias = "verbose")]
    pub all: bool,
}

// The arguments of `diff`, and its help.

const DIFF_HELP: &str = "Examples:
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
#[command(after_help = DIFF_HELP)]
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

// The arguments of `clean` and `man`, and their help.

/// The milliseconds of a day.
const DAY: u64 = 24 * 60 * 60 * 1000;

const CLEAN_HELP: &str = "Examples:
  raymond clean --older-than 7d --dry-run
                                         show the runs that ended more than a week ago, and their size
  raymond clean --older-than 7d          remove them, after asking
  raymond clean RUN --yes                remove one run without asking

Removes only runs that have ended: the run's directory and its seal. A run stays if it has worktrees, which
`raymond worktrees RUN --prune` removes, or if some of its processes are left. The age of a run counts from its last
event. A run that is selected by age also stays if its directory does not prove that it has ended.

--json prints { dry_run, bytes, removed, kept }: a removed run has run, status and bytes, a kept one run and why.";

const MAN_HELP: &str = "Examples:
  raymond man ~/.local/share/man/man1    then: man raymond-run
  raymond man pages && man pages/raymond.1";

/// Options of `clean`.
#[derive(Debug, Clone, Args)]
#[command(after_help = CLEAN_HELP)]
pub struct CleanArgs {
    /// The runs to remove: ids, or the beginnings of ids
    #[arg(value_name = "RUN", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub runs: Vec<RunId>,
    /// Only runs that ended longer ago than this: 12h, 7d, 4w
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub older_than: Option<u64>,
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Remove without asking
    #[arg(long, short)]
    pub yes: bool,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `man`.
#[derive(Debug, Clone, Args)]
#[command(after_help = MAN_HELP)]
pub struct ManArgs {
    /// The directory to write the pages to; created if missing
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Reads an age as milliseconds: a duration, also in days and weeks.
fn age(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let days = text.strip_suffix('d').map(|days| (days, 1));
    let weeks = || text.strip_suffix('w').map(|weeks| (weeks, 7));
    let Some((number, days)) = days.or_else(weeks) else {
        let read = (!text.ends_with(|c: char| c.is_ascii_digit())).then(|| millis(text).ok());
        return read.flatten().ok_or_else(|| wrong(text));
    };
    let number = number.trim().parse::<u64>().map_err(|_| wrong(text))?;
    Ok(number.saturating_mul(days * DAY))
}

fn wrong(text: &str) -> String {
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()) {
        return format!("`{text}` has no unit; write {text}d for days (s, m, h, d or w)");
    }
    format!("`{text}` is not an age; write a number with s, m, h, d or w, such as 12h, 7d or 4w")
}

// The arguments of `worktrees`, and its help.

const WORKTREES_HELP: &str = "Examples:
  raymond worktrees RUN                  each worktree: agent, changes, whether it is merged
  raymond worktrees RUN --prune          remove clean and merged worktrees of ended agents
  raymond worktrees RUN --prune --all    remove all worktrees of ended agents; their work is kept
  raymond worktrees RUN --json | jq -r '.worktrees[] | select(.merged | not) | .branch'

An agent that begins in a state with `worktree: true` works on the branch raymond/RUN/AGENT, in
.raymond/worktrees/RUN/AGENT. Merge a branch like any other: git merge raymond/RUN/main.1

--prune removes a worktree and its branch if everything is committed and another branch or the run's working
directory has the commits; ignored files are removed with it. With --all, uncommitted changes first become a
commit under refs/raymond/kept/RUN/AGENT, and unmerged branches stay: `git show REF` shows the commit, and
`git worktree add DIR BRANCH` restores a branch. Locked worktrees, and those of live agents, always stay.

--json prints { run, worktrees }; one has agent, live, branch, directory, base, head, condition
(present, missing, incomplete or removal_begun), and if known ahead, unmerged, uncommitted, merged, merged_into,
locked, error. With --prune one has agent, branch, directory, removed, kept (a ref, or null), branch_kept,
why (it was kept).";

/// Options of `worktrees`.
#[derive(Debug, Clone, Args)]
#[command(after_help = WORKTREES_HELP)]
pub struct WorktreesArgs {
    /// The run.
    #[command(flatten)]
    pub target: SingleRunArgs,
    /// Remove clean and merged worktrees of ended agents
    #[arg(long)]
    pub prune: bool,
    /// Remove all worktrees of ended agents; uncommitted work is kept as a commit, unmerged work as a branch
    #[arg(long, requires = "prune")]
    pub all: bool,
}

// The arguments of the commands about facts, `signal` and `facts`, and their help.

const SIGNAL_HELP: &str = "Examples:
  raymond signal plan/ready --key feature-42     satisfies `(signal plan/ready :key @workflow-id)` in the run feature-42
  raymond signal plan/summary --key feature-42 --value - < summary.md
                                         with a payload, from stdin
  raymond signal job --value one --append        one of several values, taken in order
  raymond signal plan/ready --key feature-42 --retract
                                         retract the fact

A fact holds from its assertion until it is retracted or a program takes it (`:consume`), even if no run is live: a
program that begins to wait later sees it. It is stored when this command returns. A label and key have one value, the
last. Asserting the same value again changes nothing. With --append the value is queued behind the values that no
program has taken yet: `:consume` takes the oldest, and then the next one holds.

Programs usually use their run's id, which --id sets, as the key. `(signal LABEL)` without :key accepts any key,
even the empty one. raymond warns if the value replaces a value that no program has taken, and if no live or defined
program reads the label. Inside an agent's turn, the directory is that of its run, and the agent is the source. With
--engine, all runs of the engine on all machines share the fact, and agents cannot change it.

--json prints { label, key, changed, fact, replaced }: whether anything changed, the current fact, and the replaced
fact or null; with --append also `before`, the number of values before this one.";

const FACTS_HELP: &str = "Examples:
  raymond facts                          all current facts with their sources, values shortened
  raymond facts RUN                      the facts that a run's program has seen
  raymond facts --label plan/ready       only the facts with this label
  raymond facts --prune --older-than 168h
                                         retract the facts asserted more than a week ago
  raymond facts RUN --prune              retract the facts that have this run as their key, or that it asserted
  raymond facts --json | jq -r '.[] | select(.label == \"plan/summary\") | .value'

--json prints an array of { label, key, value, seq, at, source }; a later assertion has a higher seq. With
--prune, the array has the retracted facts.";

/// Options of `signal`.
#[derive(Debug, Clone, Args)]
#[command(after_help = SIGNAL_HELP)]
pub struct SignalArgs {
    /// The label of the fact, such as plan/ready
    pub label: String,

    /// The key of the fact, usually a run's id [default: the empty key]
    #[arg(long, default_value = "", hide_default_value = true)]
    pub key: String,

    /// The value of the fact; `-` reads it from stdin [default: the empty text]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "retract")]
    pub value: Option<String>,

    /// Queue the value behind values that no program has taken yet, instead of replacing them
    #[arg(long, conflicts_with = "retract")]
    pub append: bool,

    /// Retract the fact
    #[arg(long)]
    pub retract: bool,

    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `facts`.
#[derive(Debug, Clone, Args)]
#[command(after_help = FACTS_HELP)]
pub struct FactsArgs {
    /// The id of a run, or the beginning of it, to show the facts that the run has seen
    #[arg(value_name = "RUN", value_parser = RunId::parse)]
    pub run: Option<RunId>,

    /// Use the most recently started run
    #[arg(long, conflicts_with = "run")]
    pub last: bool,

    /// Only the facts with this label
    #[arg(long)]
    pub label: Option<String>,

    /// Retract the facts that match the given label, run and age
    #[arg(long)]
    pub prune: bool,

    /// With --prune: only the facts asserted longer ago than this, such as 168h
    #[arg(long, value_name = "DURATION", requires = "prune")]
    pub older_than: Option<String>,

    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod clean_tests {
    use super::*;

    #[test]
    fn age_is_parsed_with_days_and_weeks() {
        let ages = ["90s", "12h", "7d", "2w", "0d"].map(age);
        let expected = [90_000, 43_200_000, 7 * DAY, 14 * DAY, 0].map(Ok);
        assert_eq!(ages, expected);
        for bad in ["7", "d", "-1d", "1.5w", "week", ""] {
            assert!(age(bad).is_err(), "{bad:?}");
        }
        assert!(age("7").is_err_and(|text| text.contains("write 7d for days")));
    }
}
