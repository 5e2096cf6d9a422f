//! Makes a run that shares the records of another up to a place, and continues differently.
//!
//! The other run may be live: only its durable records are shared, and it is not changed. The workflow's files are
//! those it was started with, with the named ones as they are now.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::error::Error;
use super::graphs::GraphSetup;
use super::seals;
use super::trust::RunStarter;
use crate::actor::context::now;
use crate::actor::supervisor::SupervisorStart;
use crate::domain::apply::apply;
use crate::domain::branch::{BranchOrigin, GivenReply, HiddenChange};
use crate::domain::causal_cut::CutSeed;
use crate::domain::event::{Event, Record, RunBranched};
use crate::domain::fact::{FactChange, FactSelection};
use crate::domain::id::{AgentId, Folder, RunId, SessionId, StateKind, StateName};
use crate::domain::killed_run::{branched_agents, copied_sessions};
use crate::domain::run::Run;
use crate::domain::sealed_terms::{PinDifference, RunSeal, is_prompt_path, is_test_path};
use crate::domain::settings::{AnswererKind, Settings};
use crate::domain::time::Timestamp;
use crate::domain::turn_options::EnvValue;
use crate::process::claude::session_files::{CONFIG_DIR, missing_sessions};
use crate::proof::ProofKey;
use crate::runtime::check::refuse_errors_of_states;
use crate::runtime::checked_workflow::CapturedWorkflow;
use crate::runtime::create::PreparedRun;
use crate::runtime::error::BranchError;
use crate::runtime::graphs::{waited_for, world_of_run};
use crate::runtime::root_capture::difference_of;
use crate::runtime::run_facts::publish_label;
use crate::runtime::supervise::{check_given_reply, live_scope};
use crate::runtime::trust;
use crate::runtime::trust::ExaminedFolder;
use crate::runtime::workflow::Workflow;
use crate::store::capture::WorkflowCapture;
use crate::store::dataspace::{Dataspace, DataspaceWatcher};
use crate::store::journal_cut::{CutSearch, JournalCut, find_causal_cut, find_cut};
use crate::store::layout::{RunDir, RunsRoot};
use crate::store::lock::RunLock;
use crate::store::run_store::{LockedRun, NewBranch, check_place, pinned_workflow};
use crate::store::user_state::sealed_terms;
use crate::store::view::load_view;
use crate::store::{Error as StoreError, lock, pinned};
use crate::world::context::note_repository;

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
    let terms = sealed_terms(&present.settings, pins.as_ref());
    seals::check(starter, root, present, &cut.first_session, &terms)?;
    let workflow = branch_workflow(root, found, request, &settings, &graphs)?;
    if let Some(examined) = &workflow.examined {
        settings.consent.trusts_workflow = false;
        examined.admit(&mut settings, starter)?;
    }
    let BranchWorkflow { capture, differences, .. } = workflow;
    settings.label = request.takes_label.then(|| cut.run.label().to_owned());
    let key = starter.state.key()?;
    let hidden = hidden_changes(root, &cut.run, present, cut.at, &key)?;
    let (record, run) = branched_run(root, found, request, &settings, &capture, hidden)?;
    let pins = capture.pins();
    let seal = RunSeal {
        run: run.workflow_id.clone(),
        directory: root.path().display().to_string(),
        scope_dir: run.scope_dir.clone(),
        first_session: cut.first_session.clone(),
        terms: vec![sealed_terms(&settings, Some(&pins))],
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
    run: &Run,
    present: &Run,
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
    // The branch sees a fact that already held there, even if no program of the run had reached it.
    let is_later = |change: &&FactChange| match change {
        FactChange::Asserted(fact) => fact.at > at,
        FactChange::Retracted { .. } => true,
    };
    let later = changes.iter().filter(is_later);
    Ok(later.map(|change| HiddenChange::of(change, &run.facts)).collect())
}

// A branch before anything of it is made: its workflow, its first record, and the checks that it can begin.

/// The workflow of a branch.
pub(super) struct BranchWorkflow {
    /// Its files: those of the other run, and the edited ones as they are now.
    pub(super) capture: WorkflowCapture,
    /// The folder as it is now, if any of its files are taken.
    pub(super) examined: Option<ExaminedFolder>,
    /// The differences of the edited files.
    pub(super) differences: Vec<String>,
}

/// Returns the workflow of a branch; the folder is not trusted with anything yet.
///
/// # Errors
/// [`Error`] if the other run has no copy of its files, or the edited ones cannot be taken.
pub(super) fn branch_workflow(
    root: &RunsRoot,
    found: &FoundBranch,
    request: &BranchRequest,
    settings: &Settings,
    graphs: &GraphSetup,
) -> Result<BranchWorkflow, Error> {
    let dir = root.run(&found.source);
    let gone = || Error::NoCopy { path: dir.workflow() };
    let capture = match pinned::load(&dir.pins())? {
        Some(pins) => pinned_workflow(&dir, &pins)?.ok_or_else(gone)?,
        None => WorkflowCapture::of(&dir.workflow(), Path::new(""))?,
    };
    let mut branched = BranchWorkflow { capture, examined: None, differences: Vec::new() };
    if !request.edited.is_empty() {
        branched.take_edited(root, &found.cut, request, settings, graphs)?;
    }
    Ok(branched)
}

impl BranchWorkflow {
    /// Takes the edited files as they are now.
    fn take_edited(
        &mut self,
        root: &RunsRoot,
        cut: &JournalCut,
        request: &BranchRequest,
        settings: &Settings,
        graphs: &GraphSetup,
    ) -> Result<(), Error> {
        let run = &cut.run;
        live_scope(run, settings)?;
        let mut workflow = Workflow::of_run(Path::new(&run.scope_dir), run.folder.as_ref())?;
        workflow.entry = cut.first_state.clone().unwrap_or(workflow.entry);
        let mut untrusted = settings.clone();
        untrusted.consent.trusts_workflow = false;
        let files = CapturedWorkflow::read(root, workflow)?;
        let examined = trust::examine(&files, &untrusted, graphs.vocabulary())?;
        for file in &request.edited {
            if !files.capture.files.contains_key(file) {
                let (file, folder) = (file.clone(), run.scope_dir.clone());
                return Err(BranchError::NoFile { file, folder }.into());
            }
        }
        let CapturedWorkflow { workflow, capture: now } = files;
        let began = (run.folder.clone(), workflow.entry);
        let edited = request.edited.iter().filter_map(|file| edited_state(file));
        let states = [began].into_iter().chain(edited);
        refuse_errors_of_states(&workflow.root, states, &untrusted, graphs.vocabulary())?;
        let others = other_changes(&self.capture, &now, &request.edited);
        if !others.is_empty() {
            let (folder, run) = (run.scope_dir.clone(), run.workflow_id.clone());
            let (changed, removed) =
                others.into_iter().partition(|file| now.files.contains_key(file));
            return Err(BranchError::OtherChanges { changed, removed, folder, run }.into());
        }
        for file in &request.edited {
            let difference = difference_of(file, &self.capture, &now);
            let unchanged = || format!("{file}: the run already has this version");
            self.differences.push(difference.unwrap_or_else(unchanged));
            let edited = now.files.get(file).cloned();
            self.capture.files.extend(edited.map(|edited| (file.clone(), edited)));
        }
        self.examined = Some(examined);
        Ok(())
    }
}

/// Returns the files that would have to be taken with the edited files, because a workflow's files are trusted
/// together. A prompt only talks, so it may stay as it was. The branch does not use added files, or files that only
/// tests read.
fn other_changes(
    before: &WorkflowCapture,
    now: &WorkflowCapture,
    edited: &[String],
) -> Vec<String> {
    let is_test = |path: &str| {
        is_test_path(path) && before.files.get(path).is_some_and(|file| !file.is_executable)
    };
    let is_used = |path: &String, how: PinDifference| match how {
        PinDifference::Added => false,
        PinDifference::Changed | PinDifference::Removed => !is_prompt_path(path) && !is_test(path),
    };
    let differences = before.pins().differences(&now.pins()).into_iter();
    let others = differences.filter(|(path, how)| is_used(path, *how) && !edited.contains(path));
    others.map(|(path, _)| path).collect()
}

/// Returns the first record of a branch, and the run after it, if all is there that its agents begin with.
///
/// # Errors
/// [`BranchError`] if the given reply would not be accepted, or a session or a snapshot is gone; [`Error::Branched`] if
/// the run cannot branch off there, [`Error::Io`].
pub(super) fn branched_run(
    root: &RunsRoot,
    found: &FoundBranch,
    request: &BranchRequest,
    settings: &Settings,
    capture: &WorkflowCapture,
    hidden: Vec<HiddenChange>,
) -> Result<(Record, Run), Error> {
    let reply = given_reply(found, request)?;
    if let Some(reply) = &reply {
        check_given_reply(&found.source, &found.cut.run, reply, settings, capture)?;
    }
    let record = branch_record(found, request, settings, reply, hidden);
    let mut run = found.cut.run.clone();
    apply(&mut run, &record).map_err(|refused| Error::Branched(refused.to_string()))?;
    check_sessions(&run, settings)?;
    check_snapshots(root, &run)?;
    Ok((record, run))
}

/// Returns the reply that a person gives instead of the turn before which the run branches off.
fn given_reply(
    found: &FoundBranch,
    request: &BranchRequest,
) -> Result<Option<GivenReply>, BranchError> {
    match (&request.reply, &found.step) {
        (None, _) => Ok(None),
        (Some(_), None) => Err(BranchError::ReplyWithoutStep),
        (Some(text), Some((agent, step))) => {
            Ok(Some(GivenReply { agent: agent.clone(), step: *step, text: text.clone() }))
        }
    }
}

/// Returns the record with which the run branches off.
fn branch_record(
    found: &FoundBranch,
    request: &BranchRequest,
    settings: &Settings,
    reply: Option<GivenReply>,
    hidden: Vec<HiddenChange>,
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

/// Returns an id for a branch: `tour-20260115-143022-1a2b-b3c4d5e6`. Of a long one the end is left out.
fn branch_id(source: &RunId) -> RunId {
    let unique = &Uuid::new_v4().simple().to_string()[..7];
    source.with_suffix(&format!("-b{unique}"))
}

/// The wishes for a branch.
#[derive(Debug, Clone, Default)]
pub struct BranchRequest {
    /// The id of the new run; `None` for a new one.
    pub id: Option<RunId>,
    /// The files of the workflow that are taken as they are now, by their paths below its folder.
    pub edited: Vec<String>,
    /// The reply of the step before which it branches off, instead of a turn.
    pub reply: Option<String>,
    /// True if it takes the label of the other run.
    pub takes_label: bool,
    /// Values for the placeholders of every state.
    pub variables: Vec<(String, String)>,
}

/// Returns the state in a file of a workflow, with its folder below the root; `None` for another file.
pub fn edited_state(file: &str) -> Option<(Option<Folder>, StateName)> {
    let (folder, name) = match file.rsplit_once('/') {
        Some((folder, name)) => (Some(Folder::parse(folder).ok()?), name),
        None => (None, file),
    };
    let state = StateName::parse(name).ok()?;
    StateKind::of(&state)?;
    Some((folder, state))
}

// The sessions that a branch continues: Claude Code has to have them on this machine.

/// Checks that Claude Code still has the sessions that the branch copies.
pub(super) fn check_sessions(run: &Run, settings: &Settings) -> Result<(), Error> {
    let sessions = copied_sessions(run).map(|(_, session)| session.clone());
    let Some(missing) = missing(settings, sessions)? else { return Ok(()) };
    match copied_sessions(run).find(|(_, session)| missing.ids.contains(*session)) {
        None => Ok(()),
        Some((agent, session)) => Err(BranchError::SessionGone {
            agent: agent.clone(),
            session: session.clone(),
            folder: missing.folder.display().to_string(),
            more: missing.ids.len() - 1,
        }
        .into()),
    }
}

/// The sessions that Claude Code does not have.
#[derive(Debug)]
pub struct MissingSessions {
    /// Claude Code's own directory, where they were looked for.
    pub folder: PathBuf,
    /// Their ids.
    pub ids: BTreeSet<SessionId>,
}

/// Returns those of the sessions that Claude Code does not have; `None` if that cannot be known, because a run has no
/// Claude Code, or names another directory for it.
///
/// # Errors
/// [`Error::Io`].
pub fn missing(
    settings: &Settings,
    sessions: impl IntoIterator<Item = SessionId>,
) -> Result<Option<MissingSessions>, Error> {
    let is_set = |env: &BTreeMap<String, EnvValue>| {
        [CONFIG_DIR, "HOME"].iter().any(|name| env.contains_key(*name))
    };
    if settings.answerer != AnswererKind::Claude
        || settings.options.env.as_ref().is_some_and(is_set)
    {
        return Ok(None);
    }
    let given = std::env::var_os(CONFIG_DIR).map(PathBuf::from);
    let Some(folder) = given.or_else(|| Some(std::env::home_dir()?.join(".claude"))) else {
        return Ok(None);
    };
    match missing_sessions(&folder, sessions) {
        Ok(ids) => Ok(Some(MissingSessions { folder, ids })),
        Err(error) => Err(Error::Io { doing: "look for sessions in", path: folder, error }),
    }
}

// The worktrees of a branch's agents: each begins with the last snapshot that the run had of it where it branched off.

/// Checks that the worktrees of a branch's live agents can begin with their snapshots.
///
/// # Errors
/// [`BranchError::Worktree`] if a snapshot was not made, or is gone.
pub(super) fn check_snapshots(root: &RunsRoot, run: &Run) -> Result<(), Error> {
    let agents = worktrees_with_snapshots(run);
    if agents.is_empty() {
        return Ok(());
    }
    let world = world_of_run(root, run);
    let agents: Vec<&AgentId> = agents.into_iter().collect();
    let checked = waited_for(async { world.check_snapshots(&agents).await });
    let why = match checked {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(why) => why,
    };
    Err(BranchError::Worktree { why }.into())
}

/// Has refs of a branch keep the snapshots that its worktrees begin with, also if the other run is removed before they
/// are made, and gives agents that have ended their git branches under the new run's id. Making a worktree does the
/// former, too, so a failure is not one of the branch.
pub(super) fn keep_snapshots(root: &RunsRoot, run: &Run) {
    if run.worktrees.is_empty() {
        return;
    }
    let agents = worktrees_with_snapshots(run);
    let world = world_of_run(root, run);
    let kept = waited_for(async {
        for agent in run.worktrees.keys().filter(|owner| !agents.contains(owner)) {
            if let Err(why) = world.keep_branch(agent).await {
                tracing::warn!(%agent, "its work is only on the branch of the other run: {why}");
            }
        }
        for agent in agents {
            if let Err(why) = world.keep_snapshot(agent).await {
                tracing::warn!(%agent, "git may still prune the snapshot of its worktree: {why}");
            }
        }
    });
    if let Err(why) = kept {
        tracing::warn!("git may still prune the snapshots of worktrees: {why}");
    }
}

/// Returns the owners of the worktrees that live agents work in, as far as the run has snapshots of them.
fn worktrees_with_snapshots(run: &Run) -> BTreeSet<&AgentId> {
    let trees = run.agents.unordered().filter_map(|agent| agent.spec.working_dir.tree.as_ref());
    trees.filter(|tree| run.worktrees.contains_key(*tree)).collect()
}

// The place where a run branches off, and what of the other run stays there.

/// The place where a run branches off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchPoint {
    /// After the last durable record.
    Now,
    /// After the record with this number.
    Record(u64),
    /// Before an agent's step, without what follows from it.
    Step {
        /// The agent whose step it is. It may have ended since.
        agent: AgentId,
        /// The number of the step, from 1.
        step: u64,
    },
    /// Before the first step in one of these states, without what follows from it.
    States {
        /// The agent; `None` for each.
        agent: Option<AgentId>,
        /// The names of the states. The first step in any of them counts.
        states: Vec<String>,
    },
}

/// The place where a run branches off, as it was found.
#[derive(Debug)]
pub struct FoundBranch {
    /// The run that is branched off.
    pub source: RunId,
    /// The place.
    pub cut: JournalCut,
    /// The agent before whose step it branches off, and the number of the step.
    pub step: Option<(AgentId, u64)>,
    /// The run as it is by now.
    pub present: Run,
}

impl FoundBranch {
    /// Returns the agent before whose step it branches off, if it is one.
    pub fn replied_agent(&self) -> Option<&AgentId> {
        self.step.as_ref().map(|(agent, _)| agent)
    }

    /// Returns the number of later records that stay.
    pub fn kept(&self) -> u64 {
        self.cut.kept.iter().map(|batch| batch.len() as u64).sum()
    }

    /// Returns the number of records that are left out.
    pub fn left_out(&self) -> u64 {
        self.present.seq.saturating_sub(self.cut.seq + self.kept())
    }
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
    if present.workflow_id != *source {
        // Its seal is that of the other run, so nothing says what a person has confirmed here.
        let (id, of) = (source.clone(), present.workflow_id);
        return Err(StoreError::Copied { id, of }.into());
    }
    let cut = match search(&root.run(source), point)? {
        CutSearch::Found(cut) => *cut,
        CutSearch::Missing { last } => return Err(missing_point(&present, point, last).into()),
        CutSearch::Refused { seq, refused } => {
            let why = refused.to_string();
            return Err(BranchError::Refused { run: source.clone(), seq, why }.into());
        }
    };
    let (run, here) = (source.clone(), cut.seq);
    if let BranchPoint::Record(seq) = point
        && here != *seq
    {
        return Err(BranchError::WithinStep { run, seq: *seq, after: here }.into());
    }
    if cut.run.agents.is_empty() {
        return Err(BranchError::NothingLives { run, seq: here }.into());
    }
    let step = match point {
        BranchPoint::Step { agent, step } => Some((agent.clone(), *step)),
        BranchPoint::Now | BranchPoint::Record(_) | BranchPoint::States { .. } => None,
    };
    Ok(FoundBranch { source: run, cut, step, present })
}

fn search(dir: &RunDir, point: &BranchPoint) -> Result<CutSearch, Error> {
    let at = |seq: u64| move |run: &Run| run.seq >= seq;
    let search = match point {
        BranchPoint::Now => {
            let mut last = 0;
            find_cut(dir, |run| {
                last = run.seq;
                false
            })?;
            find_cut(dir, at(last))
        }
        BranchPoint::Record(seq) => find_cut(dir, at(*seq)),
        BranchPoint::Step { agent, step } => {
            find_causal_cut(dir, vec![CutSeed::Step { agent: agent.clone(), step: *step }])
        }
        BranchPoint::States { agent, states } => {
            let seed =
                |state: &String| CutSeed::State { agent: agent.clone(), state: state.clone() };
            find_causal_cut(dir, states.iter().map(seed).collect())
        }
    };
    Ok(search?)
}

/// Returns the error for a place that is not there; `last` is the last record.
fn missing_point(present: &Run, point: &BranchPoint, last: u64) -> BranchError {
    let run = present.workflow_id.clone();
    match point {
        BranchPoint::Now => BranchError::NothingLives { run, seq: last },
        BranchPoint::Record(seq) => BranchError::NoRecord { run, seq: *seq, last },
        BranchPoint::Step { agent, .. } if !has_lived(present, agent) => {
            BranchError::NoAgent { run, agent: agent.clone() }
        }
        BranchPoint::Step { agent, step } => {
            BranchError::NoStep { run, agent: agent.clone(), step: *step }
        }
        BranchPoint::States { agent, states } => {
            let folder = Path::new(&present.scope_dir);
            if let Some(file) = states.iter().find(|state| !folder.join(state).exists()) {
                let folder = present.scope_dir.clone();
                return BranchError::NoFile { file: file.clone(), folder };
            }
            let agents = match agent {
                Some(agent) => format!("{agent} of {run} was never"),
                None => format!("no agent of {run} was"),
            };
            BranchError::NoState { agents, states: states.join(", ") }
        }
    }
}

fn has_lived(run: &Run, agent: &AgentId) -> bool {
    run.agents.contains_key(agent) || run.finished.iter().any(|ended| ended.id == *agent)
}
