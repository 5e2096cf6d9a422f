//! `raymond branch`, `rewind`, `retry` and `recover`: branch off a run, retry failed agents, find runs to resume.
//!
//! A branch is a run that shares the records of another, and continues differently.

use serde::Serialize;

use super::args::branch::{BranchArgs, RetryArgs, RewindArgs};
use super::args::{NewRunArgs, RecoverArgs};
use super::background::supervise_here;
use super::exit::{CliExitCode, Error};
use super::list::ListedRun;
use super::options::RunOptions;
use super::output::counted;
use super::run::{graph_setup, prepared_to_resume};
use super::{background, engine, list, output, settings};
use crate::cli::run;
use crate::cli::settings::RunAccess;
use crate::domain::agent::Agent;
use crate::domain::event::RunCommand;
use crate::domain::id::{AgentId, RunId, StateName};
use crate::domain::join::JoinOutcome;
use crate::domain::money::Usd;
use crate::domain::retry::{
    ContinuedParent, PlannedRetry, RetryError, RetryPlan, RetrySelection, plan_retry,
};
use crate::domain::run::Run;
use crate::plugin::sentence::first_and_more;
use crate::runtime::branch::{
    BranchRequest, FoundBranch, branch as branch_off, check_branch, find_branch,
};
use crate::runtime::command_name::next_command_name;
use crate::runtime::observing::agent_entries::load_with_inbox;
use crate::runtime::{check_retry, directories, seals};
use crate::store::inbox;
use crate::store::layout::RunsRoot;
use crate::store::view::{RunView, load_view};

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
    let id = settings::chosen(&args.named, &root)?;
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
    let id = settings::chosen(&args.named, &root)?;
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
        let plan = BranchPlan::of(found, request, differences);
        return if options.json {
            output::print_json(&plan)
        } else {
            output::print(&plan.text(found, request))
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
    let verb = if live == 1 { "lives" } else { "live" };
    let agents = format!("{} {verb}", counted(live, "agent"));
    let kept = match found.kept() {
        0 => String::new(),
        kept => format!(" with {}", counted(kept, "later record")),
    };
    format!(
        "{id} branches off {source} after record {}{kept}: {agents} there, {} spent so far",
        cut.seq, cut.run.total_cost_usd
    )
}

/// The consequences of a branch.
#[derive(Serialize)]
struct BranchPlan<'found> {
    run: &'found RunId,
    seq: u64,
    /// The number of later records that stay.
    kept: u64,
    left_out: u64,
    agents: Vec<BranchedAgent<'found>>,
    spent_usd: Usd,
    /// The differences of the files that are edited; absent if none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    edited: Option<Vec<String>>,
}

/// An agent of a branch, and its next move.
#[derive(Serialize)]
struct BranchedAgent<'found> {
    agent: &'found AgentId,
    step: u64,
    state: StateName,
    next: NextMove,
}

impl<'found> BranchPlan<'found> {
    fn of(found: &'found FoundBranch, request: &BranchRequest, edited: Vec<String>) -> Self {
        let agent = |agent: &'found Agent| BranchedAgent {
            agent: &agent.id,
            step: agent.step,
            state: agent.place(),
            next: NextMove::of(agent, found, request),
        };
        Self {
            run: &found.source,
            seq: found.cut.seq,
            kept: found.kept(),
            left_out: found.left_out(),
            agents: found.cut.run.agents.values().map(agent).collect(),
            spent_usd: found.cut.run.total_cost_usd,
            edited: (!request.edited.is_empty()).then_some(edited),
        }
    }

    fn text(&self, found: &FoundBranch, request: &BranchRequest) -> String {
        let mut lines = self.edited.clone().unwrap_or_default();
        lines.push(shared(found, request.id.as_ref().map_or("the new run", RunId::as_str)));
        let verb = if self.seq == 1 { "is" } else { "are" };
        lines.push(format!(
            "{} {verb} shared; {} of the later records stay and {} are dropped",
            counted(self.seq, "record"),
            self.kept,
            self.left_out
        ));
        if request.takes_label {
            lines.push(format!("it takes over the label {}", found.cut.run.label()));
        }
        lines.extend(first_and_more(&self.agents, MAX_SHOWN, agent_line));
        lines.join("\n") + "\n"
    }
}

fn agent_line(BranchedAgent { agent, step, state, next }: &BranchedAgent<'_>) -> String {
    let next = match next {
        NextMove::Asked => "is asked next",
        NextMove::Given => "has its reply from you",
        NextMove::Waits => "waits",
        NextMove::Misses => {
            "misses its join, because others that it waits for have failed; retry those first, then branch"
        }
        NextMove::Continues => "continues by itself",
    };
    format!("{agent}#{step} in {state} {next}")
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

// `raymond retry`: retries failed agents of a run, in this process or in the process that holds the run.

/// Runs `raymond retry`.
///
/// # Errors
/// [`Error::Usage`] if no failed agent is chosen, else as `resume`.
pub(super) fn retry(args: &RetryArgs) -> Result<CliExitCode, Error> {
    if args.detached {
        background::detach()?;
    }
    let root = args.dir.real_root()?;
    let id = settings::chosen(&args.named, &root)?;
    let RunView { run, held, .. } = load_view(&root, &id)?;
    let selection = args.selection();
    let plan = plan_retry(&run, &selection).map_err(|error| refused(&root, &id, error))?;
    let takes_files = args.prompts || args.options.answers.migrate;
    if args.dry_run {
        let mut edited = None;
        if takes_files {
            let mut graphs = graph_setup(None);
            graphs.migrate = true;
            check_retry(&root, &run, &selection, &graphs, &directories::user_state()?)?;
            edited = Some(seals::edited_files(&root, &run)?);
        }
        if args.options.json {
            return output::print_json(&RetryDocument { run: id, plan, edited });
        }
        return output::print(&(edits_text(edited.as_deref()) + &retry_text(&id, &plan)));
    }
    engine::must_be_named(&args.dir, &root, &id)?;
    if held {
        if takes_files || changes_settings(args, &run)? {
            return Err(Error::Usage(format!(
                "{id} is running, with its files and its options; leave them out, or stop it first: raymond stop {id} --wait"
            )));
        }
        put(&root, &id, &RunCommand::Retry(selection))?;
        if args.options.json {
            return output::print_json(&RetryDocument { run: id, plan, edited: None });
        }
        let plan = retry_text(&id, &plan);
        return output::print(&format!(
            "{plan}{id} is running, and retries them: raymond log {id} --follow\n"
        ));
    }
    let access = RunAccess::of(&args.dir, &root)?;
    let mut opened = access.open(&id)?;
    let plan = plan_retry(&opened.recovered.run, &selection).map_err(|error| usage(&id, &error))?;
    opened.recovered.retry = Some(selection);
    let mut options = args.options.clone();
    options.answers.migrate = takes_files;
    let before = opened.recovered.run.settings.clone();
    let settings = settings::for_resume(&NewRunArgs::default(), &options, before)?;
    let prepared = prepared_to_resume(&options, &access, &settings, opened)?;
    if !options.json {
        output::tell_lines(retry_text(&id, &plan).trim_end());
    }
    supervise_here(&options, &root, prepared)
}

/// Returns whether options are given that a run which is live does not take.
fn changes_settings(args: &RetryArgs, run: &Run) -> Result<bool, Error> {
    let now = settings::for_resume(&NewRunArgs::default(), &args.options, run.settings.clone())?;
    Ok(now != run.settings)
}

fn usage(id: &RunId, error: &RetryError) -> Error {
    Error::Usage(format!("{id}: {error}"))
}

/// Returns the error about a retry. The order that ends an agent may still lie in the inbox.
fn refused(root: &RunsRoot, id: &RunId, error: RetryError) -> Error {
    let is_ended_by_inbox = |agent| {
        load_with_inbox(root, id)
            .is_ok_and(|view| view.run.agents.get(agent).is_none_or(|agent| agent.orders.is_ending))
    };
    match error {
        RetryError::Lives(agent) if is_ended_by_inbox(&agent) => {
            usage(id, &RetryError::IsEnding(agent))
        }
        error => usage(id, &error),
    }
}

/// Retries agents of a run that a raymond holds, as `raymond retry` does; returns what it tells as JSON.
///
/// # Errors
/// [`Error::Usage`] if no failed agent is chosen.
pub(super) fn retry_held(
    root: &RunsRoot,
    run: &Run,
    selection: RetrySelection,
) -> Result<RetryDocument, Error> {
    let id = &run.workflow_id;
    let plan = plan_retry(run, &selection).map_err(|error| refused(root, id, error))?;
    put(root, id, &RunCommand::Retry(selection))?;
    Ok(RetryDocument { run: id.clone(), plan, edited: None })
}

/// Returns what a retry would do, as `raymond retry --dry-run` does.
///
/// # Errors
/// [`Error::Usage`] if no failed agent is chosen.
pub(super) fn planned(run: &Run, selection: &RetrySelection) -> Result<RetryDocument, Error> {
    let id = &run.workflow_id;
    let plan = plan_retry(run, selection).map_err(|error| usage(id, &error))?;
    Ok(RetryDocument { run: id.clone(), plan, edited: None })
}

/// Puts a command into the inbox of a run; it is durable when this returns.
fn put(root: &RunsRoot, id: &RunId, command: &RunCommand) -> Result<(), Error> {
    let key = directories::user_state()?.key()?;
    let inbox = root.run(id).inbox();
    let name = next_command_name(&inbox, &key);
    Ok(inbox::put(&inbox, &name, command, &key)?)
}

/// Returns the text about the edits of the workflow's files that a retry would use.
fn edits_text(edited: Option<&[String]>) -> String {
    match edited {
        None => String::new(),
        Some([]) => "the workflow's files are those of the run\n".to_owned(),
        Some(edited) => edited.join("\n") + "\n",
    }
}

fn retry_text(id: &RunId, plan: &RetryPlan) -> String {
    let mut lines = first_and_more(&plan.agents, MAX_SHOWN, planned_line);
    lines.extend(first_and_more(&plan.continued, MAX_SHOWN, continued_line));
    let (count, cost) = (plan.agents.len(), plan.estimated_cost);
    let agents = if count == 1 { "agent continues" } else { "agents continue" };
    lines.push(format!(
        "{count} {agents} in {id}; the next turns cost up to about {cost}, judging by the most expensive turns so far"
    ));
    lines.join("\n") + "\n"
}

fn planned_line(planned: &PlannedRetry) -> String {
    let PlannedRetry { id, place, cause, needed_by } = planned;
    let cause = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
    let reason = needed_by
        .as_ref()
        .map(|other| format!(", because the retry of {other} needs it"))
        .unwrap_or_default();
    format!("{id} continues at {place}{cause}{reason}")
}

fn continued_line(continued: &ContinuedParent) -> String {
    let ContinuedParent { parent, child, place } = continued;
    let place = match place {
        Some(place) => format!("is at {place}"),
        None => "has ended".to_owned(),
    };
    format!(
        "{parent} continued after the failure of {child} and {place}: it does not see the new result"
    )
}

/// A retry for programs.
#[derive(Debug, Serialize)]
pub(super) struct RetryDocument {
    run: RunId,
    #[serde(flatten)]
    plan: RetryPlan,
    #[serde(skip_serializing_if = "Option::is_none")]
    edited: Option<Vec<String>>,
}

// `raymond recover`: the runs that can be resumed after a crash, a stop or a pause.
//
// With `--all`, each run is resumed in a separate process, and this process waits for them. If it is interrupted, they
// continue.

/// Runs `raymond recover`.
///
/// # Errors
/// [`Error`] if the directory cannot be read, or a run cannot be resumed.
pub fn recover(args: &RecoverArgs) -> Result<CliExitCode, Error> {
    let root = args.all_runs.dir.real_root()?;
    let mut runs = list::all(&root)?;
    runs.retain(|run| match &run.view {
        Ok(view) => !view.held && view.run.can_resume(),
        Err(_) => false,
    });
    if args.all && !runs.is_empty() {
        return resume_all(args, &root, &runs);
    }
    list::show(&root, &args.all_runs, &runs, "no run can be resumed")
}

/// Resumes runs, and shows how they ended; the exit code is the worst of theirs. A run whose budget is used up
/// needs a larger one first.
fn resume_all(
    args: &RecoverArgs,
    root: &RunsRoot,
    runs: &[ListedRun],
) -> Result<CliExitCode, Error> {
    let mut further = args.logging.arguments();
    if let Some(command) = &args.on_event {
        further.extend(["--on-event".into(), command.text().into()]);
    }
    let mut going = Vec::new();
    for ListedRun { id, view, .. } in runs {
        if view.as_ref().is_ok_and(|view| view.run.budget().is_empty()) {
            output::tell(&format!("{id} needs a larger budget: raymond resume {id} --budget USD"));
            continue;
        }
        going.push((id, background::resume_detached(root, id, &further)?));
        output::tell(&format!("{id} is resumed; `raymond log {id} --follow` shows it"));
    }
    if !going.is_empty() {
        output::tell("waiting for them; they continue if this command is interrupted");
    }
    let mut worst = CliExitCode::Success;
    for (id, process) in going {
        let code = process.wait(root, id)?;
        let exit = CliExitCode::ALL.iter().copied().find(|exit| code == Some(exit.code().into()));
        if exit == Some(CliExitCode::NotTrusted) {
            output::tell(&format!(
                "{id} is not resumed before you confirm what it would execute: raymond resume {id}"
            ));
        }
        worst = worst.max(exit.unwrap_or(CliExitCode::Io));
    }
    let ids: Vec<_> = runs.iter().map(|run| &run.id).collect();
    let mut after = list::all(root)?;
    after.retain(|run| ids.contains(&&run.id));
    list::show(root, &args.all_runs, &after, "")?;
    Ok(worst)
}
