//! Makes a run that shares the records of another up to a place, and continues differently.
//!
//! The other run may be live: only its durable records are shared, and it is not changed. The workflow's files are those
//! it was started with, with the named ones as they are now.
//!
//! The wishes for a branch.
//!
//! The worktrees of a branch's agents: each begins with the last snapshot that the run had of it where it branched off.

use std::sync::Arc;

use super::branch_draft::{BranchWorkflow, branch_workflow, branched_run};
use super::branch_point::FoundBranch;
use super::error::Error;
use super::graphs::GraphSetup;
use super::seals;
use super::trust::RunStarter;
use crate::actor::supervisor::SupervisorStart;
use crate::domain::branch::HiddenChange;
use crate::domain::fact::{FactChange, FactSelection};
use crate::domain::id::RunId;
use crate::domain::run::Run;
use crate::domain::sealed_terms::{RunSeal, SealedTerms};
use crate::domain::settings::Settings;
use crate::domain::time::Timestamp;
use crate::proof::ProofKey;
use crate::runtime::branch_draft::BranchRequest;
use crate::runtime::branch_draft::keep_snapshots;
use crate::runtime::create::PreparedRun;
use crate::runtime::error::BranchError;
use crate::runtime::run_facts::publish_label;
use crate::store::Error as StoreError;
use crate::store::dataspace::{Dataspace, DataspaceWatcher};
use crate::store::layout::{RunDir, RunsRoot};
use crate::store::lock::{self, RunLock};
use crate::store::pinned;
use crate::store::run_store::{LockedRun, NewBranch, check_place};
use crate::store::seal::pins_checksum;
use crate::world::git_place::note_repository;

/// Makes the run that branches off.
///
/// # Errors
/// [`Error`] if anything about it is wrong; nothing is left of it then.
pub fn branch(
    root: &RunsRoot,
    found: &FoundBranch,
    request: &BranchRequest,
    mut settings: Settings,
    graphs: GraphSetup,
    starter: &RunStarter,
) -> Result<PreparedRun, Error> {
    let FoundBranch { source, cut, present, .. } = found;
    let dir = root.run(source);
    let _stopped = if request.takes_label { Some(hold_stopped(&dir, source)?) } else { None };
    let pins = pinned::load(&dir.pins())?;
    let terms =
        SealedTerms { settings: present.settings.clone(), pins: pins_checksum(pins.as_ref()) };
    seals::check(starter, root, (present, &cut.first_session), &terms)?;
    let workflow = branch_workflow(root, found, request, &settings, &graphs)?;
    if let Some(examined) = &workflow.examined {
        settings.consent.trusts_workflow = false;
        examined.admit(&mut settings, starter)?;
    }
    let BranchWorkflow { capture, differences, .. } = workflow;
    settings.label = request.takes_label.then(|| cut.run.label().to_owned());
    let key = starter.state.key()?;
    let hidden = hidden_changes(root, (&cut.run, present), cut.at, &key)?;
    let (record, run) = branched_run(root, found, request, &settings, &capture, hidden)?;
    let pins = capture.pins();
    let seal = RunSeal {
        run: run.workflow_id.clone(),
        directory: root.path().display().to_string(),
        scope_dir: run.scope_dir.clone(),
        first_session: cut.first_session.clone(),
        terms: vec![SealedTerms { settings: settings.clone(), pins: pins_checksum(Some(&pins)) }],
        journal: None,
    };
    let parts = NewBranch {
        record,
        run: run.clone(),
        workflow: &capture,
        key,
        seal: (&starter.state, seal),
    };
    let space = Dataspace::of(root).with_key(&parts.key);
    let store = LockedRun::branch(root, &dir, cut, &parts)?;
    note_repository(root.run(&run.workflow_id).path(), settings.cwd.as_ref());
    let unpublished = publish_label(&space, &run, request.takes_label).err();
    let warnings = unpublished
        .map(|error| format!("the states of its programs are not published yet: {error}"));
    keep_snapshots(root, &run);
    Ok(PreparedRun {
        store,
        run,
        start: SupervisorStart::Resume(Box::new(settings), None),
        warnings: warnings.into_iter().collect(),
        graphs,
        user_state: starter.state.clone(),
        pins,
        capture: Some(Arc::new(capture)),
        notes: differences,
        held: None,
        believes_unproven_steps: false,
    })
}

/// Checks all that [`branch`] checks, except the seal of the run and whether the workflow is trusted. Returns the
/// differences of the edited files.
///
/// # Errors
/// [`Error`] if the branch could not begin.
pub fn check_branch(
    root: &RunsRoot,
    found: &FoundBranch,
    request: &BranchRequest,
    settings: &Settings,
    graphs: &GraphSetup,
) -> Result<Vec<String>, Error> {
    if request.takes_label {
        hold_stopped(&root.run(&found.source), &found.source)?;
    }
    check_place(root, request.id.as_ref())?;
    let workflow = branch_workflow(root, found, request, settings, graphs)?;
    branched_run(root, found, request, settings, &workflow.capture, Vec::new())?;
    Ok(workflow.differences)
}

/// Holds a run that has to be stopped while another one takes its place: two runs of one label would publish their
/// states under it in turns.
fn hold_stopped(dir: &RunDir, source: &RunId) -> Result<RunLock, Error> {
    lock::acquire(&dir.lock(), source).map_err(|error| match error {
        StoreError::Held { .. } => BranchError::StillLive { run: source.clone() }.into(),
        other => other.into(),
    })
}

/// Returns the changes of facts since the cut, which the branch does not see.
fn hidden_changes(
    root: &RunsRoot,
    (run, present): (&Run, &Run),
    at: Timestamp,
    key: &ProofKey,
) -> Result<Vec<HiddenChange>, Error> {
    // The programs that the other run has begun since may begin in the branch, too.
    let labels = present.definitions.values().flat_map(|definition| &definition.labels);
    let selection = FactSelection::of_labels(labels);
    if selection.is_empty() {
        return Ok(Vec::new());
    }
    let mut watcher = DataspaceWatcher::new(Dataspace::of(root).with_key(key));
    let changes = watcher.changes(&selection, &run.facts)?.changes;
    // One that held there already is seen, though no program of the run had come to it.
    let is_later = |change: &&FactChange| match change {
        FactChange::Asserted(fact) => fact.at > at,
        FactChange::Retracted { .. } => true,
    };
    let later = changes.iter().filter(is_later);
    Ok(later.map(|change| HiddenChange::of(change, &run.facts)).collect())
}
