//! The arguments of `branch`, `rewind` and `retry`, and their help.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::runs::AgentArg;
use super::{DirArgs, NamedRunArgs, variable};
use crate::cli::candidates::complete_agents;
use crate::cli::options::RunOptions;
use crate::domain::id::{AgentId, RunId, StateName};
use crate::domain::retry::RetrySelection;
use crate::domain::turn::FailureCause;
use crate::language::hint::closest;
use crate::runtime::branch::{BranchPoint, edited_state};

const BRANCH_HELP: &str = "Examples:
  raymond branch RUN --edit REVIEW.md        again from the first step in REVIEW.md, with its current text
  raymond branch RUN --at main.2#5           again from the fifth step of main.2
  raymond branch RUN main.2 --at 5           the same
  raymond branch RUN --at 120 --model opus   again from after record 120, with another model
  raymond branch RUN --at 120 --var tone=dry --id second-try
  raymond branch RUN --at main.2#5 --reply '<goto>DONE.md</goto>'
                                             with your reply instead of the turn of the fifth step
  raymond branch RUN --at main.2#5 --dry-run
                                             what would be shared, dropped and asked first

The new run shares the records of RUN up to that point, and does not repeat earlier turns. Branching before a step of an
agent drops only what follows from that step: other agents keep their work. Branching after a record drops all later
records. Agents that were live at that point are live in the new run. Each gets a separate session that begins at the
last message before the branch, and a turn that was running there starts again. RUN does not change, and may be live.
`raymond log RUN --json` shows the numbers of records, `raymond show RUN AGENT` the numbers of steps.

--dry-run checks everything except trust. With --json it prints { run, seq, kept, left_out, agents, spent_usd, edited }.";

const REWIND_HELP: &str = "Examples:
  raymond rewind RUN --to 120        a run that continues after record 120 and replaces RUN
  raymond rewind RUN --to main#5     … before the fifth step of main

A rewind is a branch that takes over the label of RUN. Programs read it as @label, and facts published under it now
concern the new run. RUN stays as it is, under its id. Unlike `raymond branch`, a rewind requires that RUN is stopped
(raymond stop RUN --wait), and does not accept --edit, --reply and --var.";

/// Options of `branch`.
#[derive(Debug, Clone, Args)]
#[command(after_help = BRANCH_HELP)]
pub struct BranchArgs {
    /// The run.
    #[command(flatten)]
    pub named: NamedRunArgs,

    /// The agent before whose step the run branches.
    #[command(flatten)]
    pub agent: AgentArg,

    /// Branch after this record or before this step: 120, or main.2#5; with AGENT, the number of a step [default:
    /// with --edit before the first step in that state, else now]
    #[arg(long, value_name = "RECORD|AGENT#STEP", value_parser = point)]
    pub at: Option<BranchPoint>,

    /// Use the current version of this workflow file; repeatable
    #[arg(long, value_name = "FILE", value_parser = file)]
    pub edit: Vec<String>,

    /// Text for {{KEY}} in the new run, unless a tag or fork gave an agent its own value; repeatable
    #[arg(long = "var", value_name = "KEY=VALUE", value_parser = variable)]
    pub variables: Vec<(String, String)>,

    /// Use this text as the reply of the step, instead of a turn
    #[arg(long, value_name = "TEXT")]
    pub reply: Option<String>,

    /// Show what would be shared, dropped and asked first, and create nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Name the new run instead of letting raymond choose an id
    #[arg(long, value_parser = RunId::parse)]
    pub id: Option<RunId>,

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

impl BranchArgs {
    /// Returns the place where the run branches off.
    ///
    /// # Errors
    /// A sentence, if the options do not name one.
    pub fn point(&self) -> Result<BranchPoint, String> {
        let point = match (&self.at, self.agent.get()) {
            (Some(BranchPoint::Record(step)), Some(agent)) => {
                BranchPoint::Step { agent: agent.clone(), step: *step }
            }
            (Some(_), Some(agent)) => {
                return Err(format!(
                    "with the agent {agent}, write --at STEP: the number of a step, such as 5"
                ));
            }
            (Some(point), None) => point.clone(),
            (None, agent) if !self.edit.is_empty() => self.edited_states(agent)?,
            (None, Some(agent)) => {
                let other = if self.named.last { "--last" } else { "RUN" };
                let run = self.named.run.as_ref().map_or(other, RunId::as_str);
                return Err(format!(
                    "give a step of {agent} to branch before: --at STEP; `raymond show {run} {agent}` lists the steps"
                ));
            }
            (None, None) => BranchPoint::Now,
        };
        Ok(point)
    }

    fn edited_states(&self, agent: Option<&AgentId>) -> Result<BranchPoint, String> {
        let is_state = |file: &&String| edited_state(file).is_some();
        let states: Vec<String> = self.edit.iter().filter(is_state).cloned().collect();
        if states.is_empty() {
            return Err(format!(
                "{} is not a state, so say where to branch off: --at RECORD, or --at AGENT#STEP",
                self.edit.join(", ")
            ));
        }
        Ok(BranchPoint::States { agent: agent.cloned(), states })
    }
}

/// Options of `rewind`.
#[derive(Debug, Clone, Args)]
#[command(after_help = REWIND_HELP)]
pub struct RewindArgs {
    /// The run.
    #[command(flatten)]
    pub named: NamedRunArgs,

    /// Continue after this record, or before this step: 120, or main.2#5
    #[arg(long, value_name = "RECORD|AGENT#STEP", value_parser = point)]
    pub to: BranchPoint,

    /// Show what would be shared, dropped and asked first, and create nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Name the new run instead of letting raymond choose an id
    #[arg(long, value_parser = RunId::parse)]
    pub id: Option<RunId>,

    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,

    /// The options that each resume may change.
    #[command(flatten)]
    pub options: RunOptions,
}

/// Reads the path of a file, without `./` before it.
fn file(text: &str) -> Result<String, String> {
    let mut path = text;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    if path.is_empty() {
        return Err("name a file of the workflow, by its path below its folder".to_owned());
    }
    Ok(path.to_owned())
}

/// Reads a place: the number of a record, or an agent and its step.
fn point(text: &str) -> Result<BranchPoint, String> {
    if let Ok(seq) = text.parse::<u64>() {
        return if seq > 0 { Ok(BranchPoint::Record(seq)) } else { Err(wrong_point()) };
    }
    let (agent, step) = text.split_once('#').ok_or_else(wrong_point)?;
    let agent = AgentId::parse(agent).map_err(|error| error.to_string())?;
    let step = step.parse().ok().filter(|&step| step > 0).ok_or_else(wrong_point)?;
    Ok(BranchPoint::Step { agent, step })
}

fn wrong_point() -> String {
    "write the number of a record, such as 120, or an agent and its step, such as main.2#5"
        .to_owned()
}

// The arguments of `retry`.

const RETRY_HELP: &str = "Examples:
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
#[command(after_help = RETRY_HELP)]
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
    fn place_is_record_or_step_of_agent() {
        assert_eq!(point("120"), Ok(BranchPoint::Record(120)));
        let agent = AgentId::parse("main.2").expect("an id");
        assert_eq!(point("main.2#5"), Ok(BranchPoint::Step { agent, step: 5 }));
        for wrong in ["0", "main.2", "x#5", "main#0", "main#", ""] {
            assert!(point(wrong).is_err(), "{wrong}");
        }
    }
}

#[cfg(test)]
mod retry_tests {
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
