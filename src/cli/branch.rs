//! `raymond branch` and `raymond rewind`: a run that shares the records of another, and continues differently.

use serde::Serialize;
use serde_json::{Value, json};

use super::args::NewRunArgs;
use super::args::branch::{BranchArgs, RewindArgs};
use super::exit::{CliExitCode, Error};
use super::foreground::supervise_here;
use super::options::RunOptions;
use super::run::graph_setup;
use super::{background, output, run_choice, settings};
use crate::cli::run;
use crate::domain::agent::Agent;
use crate::domain::id::RunId;
use crate::domain::join::JoinOutcome;
use crate::runtime::branch::{branch as branch_off, check_branch};
use crate::runtime::branch_draft::BranchRequest;
use crate::runtime::branch_point::{FoundBranch, find_branch};
use crate::store::layout::RunsRoot;

/// The most agents that a plan names.
const MAX_SHOWN: usize = 40;

/// Runs `raymond branch`.
///
/// # Errors
/// [`Error`] if there is no such place, or the new run cannot begin.
pub(super) fn branch(args: &BranchArgs) -> Result<CliExitCode, Error> {
    if args.detached {
        background::detach()?;
    }
    let root = args.dir.real_root()?;
    let id = run_choice::chosen(&args.named, &root)?;
    let point = args.point().map_err(Error::Usage)?;
    let found = find_branch(&root, &id, &point)?;
    let request = BranchRequest {
        id: args.id.clone(),
        edited: args.edit.clone(),
        reply: args.reply.clone(),
        takes_label: false,
        variables: args.variables.clone(),
    };
    branch_at(&root, &found, &request, &args.options, args.dry_run)
}

/// Runs `raymond rewind`: a branch that takes the label of a run which has been stopped, or has ended.
///
/// # Errors
/// As [`branch`], and if the run is live.
pub(super) fn rewind(args: &RewindArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.real_root()?;
    let id = run_choice::chosen(&args.named, &root)?;
    let found = find_branch(&root, &id, &args.to)?;
    let request =
        BranchRequest { id: args.id.clone(), takes_label: true, ..BranchRequest::default() };
    branch_at(&root, &found, &request, &args.options, args.dry_run)
}

fn branch_at(
    root: &RunsRoot,
    found: &FoundBranch,
    request: &BranchRequest,
    options: &RunOptions,
    dry_run: bool,
) -> Result<CliExitCode, Error> {
    if options.answers.migrate {
        let why = "--migrate is for resume and retry; a branch uses the current version of each file that you name: raymond branch RUN --edit FILE";
        return Err(Error::Usage(why.to_owned()));
    }
    let before = found.cut.run.settings.clone();
    let mut settings = settings::for_resume(&NewRunArgs::default(), options, before)?;
    settings.variables.extend(request.variables.iter().cloned());
    settings::check_budget(options.budget, &settings, &found.cut.run)?;
    if dry_run {
        let differences = check_branch(root, found, request, &settings, &graph_setup(None))?;
        return if options.json {
            output::print_json(&as_json(found, request, &differences))
        } else {
            let edits = differences.iter().map(|difference| format!("{difference}\n"));
            output::print(&(edits.collect::<String>() + &as_text(found, request)))
        };
    }
    let prepared = run::confirmed(options, |starter| {
        branch_off(root, found, request, settings.clone(), graph_setup(None), starter)
    })?;
    if !options.json {
        output::tell(&shared(found, prepared.id().as_str()));
    }
    supervise_here(options, root, prepared)
}

/// Returns what a branch shares with the run that it branches off.
fn shared(found: &FoundBranch, id: &str) -> String {
    let FoundBranch { source, cut, .. } = found;
    let live = cut.run.agents.len();
    let agents = if live == 1 { "1 agent lives".to_owned() } else { format!("{live} agents live") };
    let kept = match found.kept() {
        0 => String::new(),
        1 => " with 1 later record".to_owned(),
        kept => format!(" with {kept} later records"),
    };
    format!(
        "{id} branches off {source} after record {}{kept}: {agents} there, {} spent so far",
        cut.seq, cut.run.total_cost_usd
    )
}

/// Returns what would follow from a branch.
fn as_text(found: &FoundBranch, request: &BranchRequest) -> String {
    let name = request.id.as_ref().map_or("the new run", RunId::as_str);
    let mut lines = vec![shared(found, name)];
    let shared_records = match found.cut.seq {
        1 => "1 record is shared".to_owned(),
        seq => format!("{seq} records are shared"),
    };
    lines.push(format!(
        "{shared_records}; {} of the later records stay and {} are dropped",
        found.kept(),
        found.left_out()
    ));
    if request.takes_label {
        lines.push(format!("it takes over the label {}", found.cut.run.label()));
    }
    let agents = found.cut.run.agents.values();
    lines.extend(agents.take(MAX_SHOWN).map(|agent| agent_line(agent, found, request)));
    let more = found.cut.run.agents.len().saturating_sub(MAX_SHOWN);
    lines.extend((more > 0).then(|| format!("and {more} more agents")));
    lines.join("\n") + "\n"
}

fn agent_line(agent: &Agent, found: &FoundBranch, request: &BranchRequest) -> String {
    let next = match NextMove::of(agent, found, request) {
        NextMove::Asked => "is asked next",
        NextMove::Given => "has its reply from you",
        NextMove::Waits => "waits",
        NextMove::Misses => {
            "misses its join, because others that it waits for have failed; retry those first, then branch"
        }
        NextMove::Continues => "continues by itself",
    };
    format!("{}#{} in {} {next}", agent.id, agent.step, agent.place())
}

/// Returns whether an agent waits for others of which too many have failed.
fn misses_its_join(agent: &Agent) -> bool {
    let tally = || agent.unjoined.tally(agent.join_depth());
    let outcome = agent.pending_join().and_then(|pending| pending.join.outcome(tally()));
    outcome == Some(JoinOutcome::Missed)
}

/// The next move of an agent of a branch.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum NextMove {
    /// A person has given the reply of its turn.
    Given,
    /// It waits.
    Waits,
    /// Its join can no longer be met.
    Misses,
    /// raymond takes its step.
    Continues,
    /// Its turn is asked.
    Asked,
}

impl NextMove {
    fn of(agent: &Agent, found: &FoundBranch, request: &BranchRequest) -> Self {
        if request.reply.is_some() && found.replied_agent() == Some(&agent.id) {
            Self::Given
        } else if misses_its_join(agent) {
            Self::Misses
        } else if agent.waits() {
            Self::Waits
        } else if agent.advances_itself() {
            Self::Continues
        } else {
            Self::Asked
        }
    }
}

fn as_json(found: &FoundBranch, request: &BranchRequest, differences: &[String]) -> Value {
    let agent = |agent: &Agent| {
        json!({
            "agent": agent.id,
            "step": agent.step,
            "state": agent.place(),
            "next": NextMove::of(agent, found, request),
        })
    };
    let mut plan = json!({
        "run": found.source,
        "seq": found.cut.seq,
        "kept": found.kept(),
        "left_out": found.left_out(),
        "agents": found.cut.run.agents.values().map(agent).collect::<Vec<_>>(),
        "spent_usd": found.cut.run.total_cost_usd,
    });
    if !request.edited.is_empty() {
        plan["edited"] = json!(differences);
    }
    plan
}
