//! Checks the reply that a person gives in the place of a turn, before a run is made with it.
//!
//! Reads the prompt that is due of an agent, from the pinned files of its run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Map;

use crate::actor::context::now;
use crate::domain::agent::{Agent, StepStage};
use crate::domain::branch::GivenReply;
use crate::domain::id::{RunId, StepMode};
use crate::domain::run::Run;
use crate::domain::settings::Settings;
use crate::domain::widening::PermissionCeiling;
use crate::domain::working_dir::WorkingDir;
use crate::language::fork_plan::MAX_LIST_BYTES;
use crate::language::prompt::step;
use crate::language::resume::due_prompt::due_prompt as text;
use crate::language::resume::workflow_cache::WorkflowCache;
use crate::language::resume::{ResumeEnvironment, given_reply};
use crate::language::source::WorkflowSource;
use crate::process::working_dirs::WorkingDirs;
use crate::runtime::error::BranchError;
use crate::runtime::error::Error;
use crate::runtime::error::VisitError;
use crate::runtime::supervise::pinned_scope;
use crate::store::capture::WorkflowCapture;
use crate::store::layout::RunDir;
use crate::store::pinned;
use crate::world::files::read_at_most;

/// Checks that the reply can stand in the place of the turn of its step, as the run is there.
///
/// # Errors
/// [`BranchError::NoTurn`] if the step takes no turn there, [`BranchError::WrongReply`] if it would not be accepted.
pub(super) fn check_given_reply(
    (source, run): (&RunId, &Run),
    reply: &GivenReply,
    settings: &Settings,
    capture: &WorkflowCapture,
) -> Result<(), Error> {
    let wrong = |why: String| {
        let (agent, step) = (reply.agent.clone(), reply.step);
        Error::from(BranchError::WrongReply { run: source.clone(), agent, step, why })
    };
    let agent = run.agents.get(&reply.agent).ok_or_else(|| no_turn(source, reply))?;
    let is_asked = agent.current_state.steps() == Some(StepMode::Asked);
    if !is_asked || !agent.stage.is_first() || agent.has_only_tasks() {
        return Err(no_turn(source, reply));
    }
    let files = texts(capture);
    let files: Box<dyn WorkflowSource> = Box::new(files);
    let within = match agent.folder() {
        Some(folder) => Some(files.within(&folder).map_err(|error| wrong(error.to_string()))?),
        None => None,
    };
    let own = within.as_deref().unwrap_or(&*files);
    // The results of a join come before the turn, and change nothing about its rules.
    let mut joined: Agent = agent.clone();
    joined.stage = StepStage::State { results: Some("[]".into()) };
    let list = |file: &str| match &agent.spec.working_dir.tree {
        // Its worktree is made with the branch.
        Some(_) => Ok(None),
        None => directory(settings, &agent.spec.working_dir)
            .and_then(|dir| read_at_most(&dir, file, MAX_LIST_BYTES))
            .map(Some),
    };
    let reading = AgentReading { run, agent: &joined, settings, source: own };
    reading
        .with(String::new(), |environment| given_reply::check(&reply.text, environment, &list))
        .map_err(wrong)
}

/// An agent between its turns, and the files that its next turn is read from.
struct AgentReading<'a> {
    run: &'a Run,
    agent: &'a Agent,
    settings: &'a Settings,
    source: &'a dyn WorkflowSource,
}

impl AgentReading<'_> {
    /// Returns what a function makes of the environment of the agent.
    fn with<T>(&self, results_file: String, of: impl FnOnce(&ResumeEnvironment<'_>) -> T) -> T {
        let Self { run, agent, settings, source } = *self;
        of(&ResumeEnvironment {
            agent,
            run: &run.workflow_id,
            facts: &run.facts,
            settings,
            granted_rules: &run.approval_rules,
            budget_left: run.budget_left(),
            ceiling: &PermissionCeiling::of(settings),
            source,
            workflows: &WorkflowCache::default(),
            builtins: &Map::new(),
            working_dir: None,
            limits: run.supervision_of(agent).limits(),
            results_file,
            now: now(),
        })
    }
}

/// Returns the directory that an agent without a worktree works in.
fn directory(settings: &Settings, working_dir: &WorkingDir) -> Result<PathBuf, String> {
    WorkingDirs::new(&settings.cwd, PathBuf::new()).directory(working_dir)
}

fn no_turn(run: &RunId, reply: &GivenReply) -> Error {
    let (agent, step) = (reply.agent.clone(), reply.step);
    BranchError::NoTurn { run: run.clone(), agent, step }.into()
}

/// Returns the texts of the workflow's files.
fn texts(capture: &WorkflowCapture) -> BTreeMap<String, String> {
    let text = |content: &[u8]| String::from_utf8_lossy(content).into_owned();
    capture.files.iter().map(|(name, file)| (name.clone(), text(&file.content))).collect()
}

/// Returns the text that the next turn of an agent is asked, without the messages of people.
///
/// # Errors
/// [`VisitError::NoPromptDue`], or the pinned files cannot be read.
pub fn due_prompt(dir: &RunDir, run: &Run, agent: &Agent) -> Result<String, Error> {
    let no_prompt =
        |why: String| Error::from(VisitError::NoPromptDue { agent: agent.id.clone(), why });
    let pins = pinned::load(&dir.pins())?;
    let pins = pins.ok_or_else(|| no_prompt("its run has not kept its files".to_owned()))?;
    let scope = pinned_scope(run, &run.settings, dir, (pins, None))?;
    let source = scope.at(agent.folder().as_ref()).map_err(step::Error::from)?;
    let results = format!("{}-{}.json", agent.id.file_name(), agent.step);
    let results_file = dir.results().join(results).display().to_string();
    AgentReading { run, agent, settings: &run.settings, source: &source }
        .with(results_file, text)
        .map_err(no_prompt)
}
