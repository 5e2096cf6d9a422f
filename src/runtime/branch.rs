//! Makes a run that shares the records of another up to a place, and continues differently.
//!
//! The other run may be live: only its durable records are shared, and it is not changed. The workflow's files are those
//! it was started with, with the named ones as they are now.

use std::path::Path;

use uuid::Uuid;

use super::RunRequest;
use super::branch_error::BranchError;
use super::branch_worktrees::{check_snapshots, keep_snapshots};
use super::check::refuse_errors;
use super::error::Error;
use super::graphs::GraphSetup;
use super::prepared_run::PreparedRun;
use super::seals;
use super::trust::{self, RunStarter};
use super::workflow::Workflow;
use crate::actor::clock::now;
use crate::actor::supervisor::SupervisorStart;
use crate::domain::agent::Agent;
use crate::domain::apply::apply;
use crate::domain::branch::{BranchOrigin, HiddenChange};
use crate::domain::branched_agents::branched_agents;
use crate::domain::event::{Event, Record, RunBranched};
use crate::domain::fact::FactSelection;
use crate::domain::id::{AgentId, RunId, SessionId};
use crate::domain::run::Run;
use crate::domain::sealed_terms::{RunSeal, SealedTerms};
use crate::domain::settings::Settings;
use crate::proof::ProofKey;
use crate::store::capture::WorkflowCapture;
use crate::store::dataspace::{Dataspace, DataspaceWatcher};
use crate::store::journal_cut::{CutSearch, JournalCut, find_cut};
use crate::store::layout::RunsRoot;
use crate::store::pinned;
use crate::store::run_store::{LockedRun, NewBranch};
use crate::store::seal::pins_checksum;
use crate::store::view::load_view;

/// The place where a run branches off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchPoint {
    /// After the last durable record.
    Now,
    /// After the record with this number.
    Record(u64),
    /// Before an agent's step.
    Step {
        /// The agent.
        agent: AgentId,
        /// The number of the step, from 1.
        step: u64,
    },
    /// Before the first step in one of these states.
    States(Vec<String>),
}

/// The place where a run branches off, as it was found.
#[derive(Debug)]
pub struct FoundBranch {
    /// The run that is branched off.
    pub source: RunId,
    /// The place.
    pub cut: JournalCut,
    /// The run as it is by now.
    pub present: Run,
}

/// The wishes for a branch.
#[derive(Debug, Clone, Default)]
pub struct BranchRequest {
    /// The id of the new run; `None` for a new one.
    pub id: Option<RunId>,
    /// The files of the workflow that are taken as they are now, by their paths below its folder.
    pub edited: Vec<String>,
}

/// Finds the place where a run branches off.
///
/// # Errors
/// [`BranchError`] if there is none, or the run cannot be read.
pub fn find_branch(
    root: &RunsRoot,
    source: &RunId,
    point: &BranchPoint,
) -> Result<FoundBranch, Error> {
    let present = load_view(root, source)?.run;
    let dir = root.run(source);
    let at = |seq: u64| move |run: &Run| run.seq >= seq;
    let search = match point {
        BranchPoint::Now => {
            let mut last = 0;
            find_cut(&dir, |run| {
                last = run.seq;
                false
            })?;
            find_cut(&dir, at(last))
        }
        BranchPoint::Record(seq) => find_cut(&dir, at(*seq)),
        BranchPoint::Step { agent, step } => {
            find_cut(&dir, |run| run.agents.get(agent).is_some_and(|own| own.step == *step))
        }
        BranchPoint::States(states) => find_cut(&dir, |run| {
            let is_there = |agent: &Agent| states.contains(&agent.shown_state().to_string());
            run.agents.unordered().any(is_there)
        }),
    }?;
    let run = || source.clone();
    let cut = match (search, point) {
        (CutSearch::Found(cut), _) => *cut,
        (CutSearch::Missing { last }, BranchPoint::Record(seq)) => {
            return Err(BranchError::NoRecord { run: run(), seq: *seq, last }.into());
        }
        (CutSearch::Missing { .. }, BranchPoint::Step { agent, step }) => {
            return Err(
                BranchError::NoStep { run: run(), agent: agent.clone(), step: *step }.into()
            );
        }
        (CutSearch::Missing { .. }, BranchPoint::States(states)) => {
            return Err(BranchError::NoState { run: run(), states: states.join(", ") }.into());
        }
        (CutSearch::Missing { last }, BranchPoint::Now) => {
            return Err(BranchError::NothingLives { run: run(), seq: last }.into());
        }
    };
    let here = cut.run.seq;
    if let BranchPoint::Record(seq) = point
        && here != *seq
    {
        return Err(BranchError::WithinStep { run: run(), seq: *seq, after: here }.into());
    }
    if cut.run.agents.is_empty() {
        return Err(BranchError::NothingLives { run: run(), seq: here }.into());
    }
    Ok(FoundBranch { source: run(), cut, present })
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
    let FoundBranch { source, cut, present } = found;
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
    let id = request.id.clone().unwrap_or_else(|| branch_id(source));
    let agents = branched_agents(&cut.run, || SessionId::new(&Uuid::new_v4().to_string()));
    let key = starter.state.key()?;
    let hidden = hidden_changes(root, &cut.run, &key)?;
    let origin = BranchOrigin { run: source.clone(), seq: cut.run.seq, hidden };
    let event = RunBranched { run: id, origin, agents, settings: settings.clone() };
    let record = Record::next(&cut.run, now(), Event::RunBranched(Box::new(event)));
    let mut run = cut.run.clone();
    apply(&mut run, &record).map_err(|refused| Error::Branched(refused.to_string()))?;
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
    let store = LockedRun::branch(root, &dir, cut, &parts)?;
    keep_snapshots(root, &run);
    Ok(PreparedRun {
        store,
        run,
        start: SupervisorStart::Resume(Box::new(settings), None),
        warnings: Vec::new(),
        graphs,
        user_state: starter.state.clone(),
        pins,
        capture: Some(capture),
        notes,
        believes_unproven_steps: false,
    })
}

/// Returns the changes of facts since the cut, which the branch does not see.
fn hidden_changes(root: &RunsRoot, run: &Run, key: &ProofKey) -> Result<Vec<HiddenChange>, Error> {
    let labels = run.definitions.values().flat_map(|definition| &definition.labels);
    let selection = FactSelection::of_labels(labels);
    if selection.is_empty() {
        return Ok(Vec::new());
    }
    let mut watcher = DataspaceWatcher::new(Dataspace::of(root).with_key(key));
    let changes = watcher.changes(&selection, &run.facts)?.changes;
    Ok(changes.iter().map(HiddenChange::of).collect())
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
