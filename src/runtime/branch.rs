//! Makes a run that shares the records of another up to a place, and continues differently.
//!
//! The other run may be live: only its durable records are shared, and it is not changed. The workflow's files are those
//! it was started with, with the named ones as they are now.

use std::path::Path;

use uuid::Uuid;

use super::RunRequest;
use super::branch_error::BranchError;
use super::branch_point::FoundBranch;
use super::branch_sessions::check_sessions;
use super::branch_worktrees::{check_snapshots, keep_snapshots};
use super::check::refuse_errors;
use super::error::Error;
use super::given_reply::check_given_reply;
use super::graphs::GraphSetup;
use super::prepared_run::PreparedRun;
use super::published_label::publish_label;
use super::seals;
use super::trust::{self, RunStarter};
use super::workflow::Workflow;
use crate::actor::clock::now;
use crate::actor::supervisor::SupervisorStart;
use crate::domain::apply::apply;
use crate::domain::branch::{BranchOrigin, GivenReply, HiddenChange};
use crate::domain::branched_agents::branched_agents;
use crate::domain::event::{Event, Record, RunBranched};
use crate::domain::fact::{FactChange, FactSelection};
use crate::domain::id::{RunId, SessionId};
use crate::domain::run::Run;
use crate::domain::sealed_terms::{RunSeal, SealedTerms};
use crate::domain::settings::Settings;
use crate::domain::time::Timestamp;
use crate::proof::ProofKey;
use crate::store::capture::WorkflowCapture;
use crate::store::dataspace::{Dataspace, DataspaceWatcher};
use crate::store::journal_cut::JournalCut;
use crate::store::layout::RunsRoot;
use crate::store::pinned;
use crate::store::run_store::{LockedRun, NewBranch};
use crate::store::seal::pins_checksum;

/// The wishes for a branch.
#[derive(Debug, Clone, Default)]
pub struct BranchRequest {
    /// The id of the new run; `None` for a new one.
    pub id: Option<RunId>,
    /// The files of the workflow that are taken as they are now, by their paths below its folder.
    pub edited: Vec<String>,
    /// The reply of the step that it branches off before, in the place of a turn.
    pub reply: Option<String>,
    /// True if it takes the label of the other run.
    pub takes_label: bool,
    /// Values for the placeholders of every state.
    pub variables: Vec<(String, String)>,
}

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
    let pins = pinned::load(&dir.pins())?;
    let terms =
        SealedTerms { settings: present.settings.clone(), pins: pins_checksum(pins.as_ref()) };
    seals::check(starter, root, (present, &cut.first_session), &terms)?;
    let mut capture = WorkflowCapture::of(&dir.workflow(), Path::new(""))?;
    if pins.is_some_and(|pins| pins != capture.pins()) {
        return Err(Error::NoCopy { path: dir.workflow() });
    }
    let notes = take_edited(root, cut, request, &mut settings, &mut capture, &graphs, starter)?;
    settings.label = request.takes_label.then(|| cut.run.label().to_owned());
    let key = starter.state.key()?;
    let hidden = hidden_changes(root, (&cut.run, present), cut.at, &key)?;
    let reply = given_reply(found, request);
    if let Some(reply) = &reply {
        check_given_reply((source, &cut.run), reply, &settings, &capture)?;
    }
    let record = branch_record(found, request, &settings, (reply, hidden));
    let mut run = cut.run.clone();
    apply(&mut run, &record).map_err(|refused| Error::Branched(refused.to_string()))?;
    check_sessions(&run, &settings)?;
    check_snapshots(root, &run)?;
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
        capture: Some(capture),
        notes,
        believes_unproven_steps: false,
    })
}

/// Returns the reply that a person gives in the place of the turn before which the run branches off.
fn given_reply(found: &FoundBranch, request: &BranchRequest) -> Option<GivenReply> {
    let (text, (agent, step)) = request.reply.as_ref().zip(found.step.as_ref())?;
    Some(GivenReply { agent: agent.clone(), step: *step, text: text.clone() })
}

/// Returns the record with which the run branches off.
fn branch_record(
    found: &FoundBranch,
    request: &BranchRequest,
    settings: &Settings,
    (reply, hidden): (Option<GivenReply>, Vec<HiddenChange>),
) -> Record {
    let FoundBranch { source, cut, .. } = found;
    let origin =
        BranchOrigin { run: source.clone(), seq: cut.seq, kept: found.kept(), reply, hidden };
    let event = RunBranched {
        run: request.id.clone().unwrap_or_else(|| branch_id(source)),
        origin,
        agents: branched_agents(&cut.run, || SessionId::new(&Uuid::new_v4().to_string())),
        settings: settings.clone(),
    };
    Record::next(&cut.run, now(), Event::RunBranched(Box::new(event)))
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

/// Takes the edited files as they are now, if the workflow is trusted with them; returns the differences.
fn take_edited(
    root: &RunsRoot,
    cut: &JournalCut,
    request: &BranchRequest,
    settings: &mut Settings,
    capture: &mut WorkflowCapture,
    graphs: &GraphSetup,
    starter: &RunStarter,
) -> Result<Vec<String>, Error> {
    if request.edited.is_empty() {
        return Ok(Vec::new());
    }
    let scope_dir = Path::new(&cut.run.scope_dir);
    let workflow = Workflow::of_run(scope_dir, cut.run.folder.as_ref())?;
    settings.consent.trusts_workflow = false;
    let examined = trust::examine(root, &workflow, settings, graphs.vocabulary(), None)?;
    examined.admit(settings, starter)?;
    refuse_errors(&workflow, &RunRequest::default(), settings, graphs.vocabulary())?;
    // Whoever trusts a workflow trusts its files together. A prompt only talks, and may stay as it was.
    let is_prompt = |file: &str| Path::new(file).extension().is_some_and(|own| own == "md");
    for (file, _) in capture.pins().differences(&examined.capture.pins()) {
        if !is_prompt(&file) && !request.edited.contains(&file) {
            let (folder, run) = (cut.run.scope_dir.clone(), cut.run.workflow_id.clone());
            return Err(BranchError::OtherChange { file, folder, run }.into());
        }
    }
    let mut notes = Vec::new();
    for file in &request.edited {
        let Some(now) = examined.capture.files.get(file) else {
            let folder = scope_dir.display().to_string();
            return Err(BranchError::NoFile { file: file.clone(), folder }.into());
        };
        notes.extend(seals::file_difference(capture, &examined.capture, file));
        capture.files.insert(file.clone(), now.clone());
    }
    Ok(notes)
}

/// Returns an id for a branch: `tour-20260115-143022-1a2b-b3c4d5e6`.
fn branch_id(source: &RunId) -> RunId {
    let unique = &Uuid::new_v4().simple().to_string()[..7];
    RunId::parse(&format!("{source}-b{unique}")).unwrap_or_else(|_| {
        let short: String = source.as_str().chars().take(32).collect();
        RunId::parse(&format!("{short}-b{unique}")).unwrap_or_else(|_| source.clone())
    })
}
