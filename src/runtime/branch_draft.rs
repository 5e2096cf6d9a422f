//! A branch before anything of it is made: its workflow, its first record, and the checks that it can begin.

use std::path::Path;

use uuid::Uuid;

use super::branch_error::BranchError;
use super::branch_point::FoundBranch;
use super::branch_request::{BranchRequest, edited_state};
use super::branch_sessions::check_sessions;
use super::branch_worktrees::check_snapshots;
use super::check::refuse_errors_of_states;
use super::error::Error;
use super::file_differences::difference_of;
use super::given_reply::check_given_reply;
use super::graphs::GraphSetup;
use super::supervise::live_scope;
use super::trust::{self, ExaminedFolder};
use super::workflow::Workflow;
use crate::actor::clock::now;
use crate::domain::apply::apply;
use crate::domain::branch::{BranchOrigin, GivenReply, HiddenChange};
use crate::domain::branched_agents::branched_agents;
use crate::domain::event::{Event, Record, RunBranched};
use crate::domain::id::{RunId, SessionId};
use crate::domain::run::Run;
use crate::domain::settings::Settings;
use crate::domain::workflow_pins::{PinDifference, is_prompt_path, is_test_path};
use crate::store::capture::WorkflowCapture;
use crate::store::journal_cut::JournalCut;
use crate::store::layout::RunsRoot;
use crate::store::pinned;
use crate::store::run_store::pinned_workflow;

/// The workflow of a branch.
pub(super) struct BranchWorkflow {
    /// Its files: those of the other run, and the edited ones as they are now.
    pub(super) capture: WorkflowCapture,
    /// The folder as it is now, if files of it are taken.
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
    let mut own = BranchWorkflow { capture, examined: None, differences: Vec::new() };
    if !request.edited.is_empty() {
        own.take_edited(root, &found.cut, request, settings, graphs)?;
    }
    Ok(own)
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
        let examined = trust::examine(root, &workflow, &untrusted, graphs.vocabulary(), None)?;
        for file in &request.edited {
            if !examined.capture.files.contains_key(file) {
                let (file, folder) = (file.clone(), run.scope_dir.clone());
                return Err(BranchError::NoFile { file, folder }.into());
            }
        }
        let began = (run.folder.clone(), workflow.entry.clone());
        let edited = request.edited.iter().filter_map(|file| edited_state(file));
        let states = [began].into_iter().chain(edited);
        refuse_errors_of_states(
            Path::new(&run.scope_dir),
            states,
            &untrusted,
            graphs.vocabulary(),
        )?;
        let others = other_changes(&self.capture, &examined.capture, &request.edited);
        if !others.is_empty() {
            let (folder, run) = (run.scope_dir.clone(), run.workflow_id.clone());
            let files = &examined.capture.files;
            let (changed, removed) = others.into_iter().partition(|file| files.contains_key(file));
            return Err(BranchError::OtherChanges { changed, removed, folder, run }.into());
        }
        for file in &request.edited {
            let difference = difference_of(file, &self.capture, &examined.capture);
            let unchanged = || format!("{file}: the run already has this version");
            self.differences.push(difference.unwrap_or_else(unchanged));
            let now = examined.capture.files.get(file).cloned();
            self.capture.files.extend(now.map(|now| (file.clone(), now)));
        }
        self.examined = Some(examined);
        Ok(())
    }
}

/// Returns the files that would have to be taken with the edited ones: whoever trusts a workflow trusts its files together.
/// A prompt only talks, and may stay as it was; what was added, and what only tests read, the branch does not use.
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
        check_given_reply((&found.source, &found.cut.run), reply, settings, capture)?;
    }
    let record = branch_record(found, request, settings, (reply, hidden));
    let mut run = found.cut.run.clone();
    apply(&mut run, &record).map_err(|refused| Error::Branched(refused.to_string()))?;
    check_sessions(&run, settings)?;
    check_snapshots(root, &run)?;
    Ok((record, run))
}

/// Returns the reply that a person gives in the place of the turn before which the run branches off.
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

/// Returns an id for a branch: `tour-20260115-143022-1a2b-b3c4d5e6`. Of a long one the end is left out.
fn branch_id(source: &RunId) -> RunId {
    let unique = &Uuid::new_v4().simple().to_string()[..7];
    source.with_suffix(&format!("-b{unique}"))
}
