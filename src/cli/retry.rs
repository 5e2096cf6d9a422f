//! `raymond retry`: failed agents of a run live again, in this process or in the one that holds the run.

use serde::Serialize;

use super::args::NewRunArgs;
use super::args::retry::RetryArgs;
use super::exit::{CliExitCode, Error};
use super::foreground::supervise_here;
use super::run::{graph_setup, prepared_to_resume};
use super::{background, engine, output, run_choice, settings};
use crate::cli::run_choice::RunAccess;
use crate::domain::event::RunCommand;
use crate::domain::id::RunId;
use crate::domain::retry::{
    ContinuedParent, PlannedRetry, RetryError, RetryPlan, RetrySelection, plan_retry,
};
use crate::domain::run::Run;
use crate::runtime::command_name::next_command_name;
use crate::runtime::observing::inbox_view::load_with_inbox;
use crate::runtime::{check_retry, directories, seals};
use crate::store::inbox;
use crate::store::layout::RunsRoot;
use crate::store::view::{RunView, load_view};

/// The most agents that a plan names.
const MAX_SHOWN: usize = 40;

/// Runs `raymond retry`.
///
/// # Errors
/// [`Error::Usage`] if no failed agent is chosen, else as `resume`.
pub(super) fn retry(args: &RetryArgs) -> Result<CliExitCode, Error> {
    if args.detached {
        background::detach()?;
    }
    let root = args.dir.real_root()?;
    let id = run_choice::chosen(&args.named, &root)?;
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
        return output::print(&(edits_text(edited.as_deref()) + &as_text(&id, &plan)));
    }
    engine::must_be_named(&args.dir, &root, &id)?;
    if held {
        if takes_files || changes_settings(args, &run)? {
            return Err(Error::Usage(format!(
                "{id} is running, with its files and its options; leave them out, or stop it first: raymond stop {id} --wait"
            )));
        }
        return ask_holder(&root, &id, &RunCommand::Retry(selection), (&plan, args.options.json));
    }
    let access = RunAccess::of(&args.dir, &root)?;
    let mut opened = access.open(&id)?;
    let plan = plan_retry(&opened.recovered.run, &selection).map_err(|error| usage(&id, &error))?;
    opened.recovered.retry = Some(selection);
    let mut options = args.options.clone();
    options.answers.migrate = takes_files;
    let before = opened.recovered.run.settings.clone();
    let settings = settings::for_resume(&NewRunArgs::default(), &options, before)?;
    let prepared = prepared_to_resume(&options, (&root, &access), &settings, opened)?;
    if !options.json {
        output::tell_lines(as_text(&id, &plan).trim_end());
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

/// Asks the raymond that holds a run to retry agents; it is durable when this returns.
fn ask_holder(
    root: &RunsRoot,
    id: &RunId,
    command: &RunCommand,
    (plan, json): (&RetryPlan, bool),
) -> Result<CliExitCode, Error> {
    put(root, id, command)?;
    if json {
        let (run, plan) = (id.clone(), plan.clone());
        return output::print_json(&RetryDocument { run, plan, edited: None });
    }
    let plan = as_text(id, plan);
    output::print(&format!("{plan}{id} is running, and retries them: raymond log {id} --follow\n"))
}

/// Returns the edits of the workflow's files that a retry would take up.
fn edits_text(edited: Option<&[String]>) -> String {
    match edited {
        None => String::new(),
        Some([]) => "the workflow's files are those of the run\n".to_owned(),
        Some(edited) => edited.join("\n") + "\n",
    }
}

fn as_text(id: &RunId, plan: &RetryPlan) -> String {
    let mut lines: Vec<String> = plan.agents.iter().take(MAX_SHOWN).map(planned_line).collect();
    let more = plan.agents.len().saturating_sub(MAX_SHOWN);
    lines.extend((more > 0).then(|| format!("and {more} more agents")));
    lines.extend(plan.continued.iter().take(MAX_SHOWN).map(continued_line));
    let more = plan.continued.len().saturating_sub(MAX_SHOWN);
    lines.extend((more > 0).then(|| format!("and {more} more results that no agent waits for")));
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
