//! The runner that answers the prompts of a run (Claude Code, a script or a cassette); and Claude Code for `attach`.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::error::Error;
use super::graphs::working_dirs;
use super::recording;
use crate::actor::runner::StepRunner;
use crate::actor::scripted::{ScriptedPlaces, ScriptedRunner};
use crate::domain::agent::Agent;
use crate::domain::id::{RunId, SessionId, StateName};
use crate::domain::run::Run;
use crate::domain::settings::{AnswererKind, Settings};
use crate::domain::turn_options::EnvValue;
use crate::language::replies::ScriptedReplies;
use crate::language::source::WorkflowSource;
use crate::language::{prompt, replies, source};
use crate::plain_file;
use crate::process::ancestry::ATTACHED_TO;
use crate::process::attach::ForegroundProgram;
use crate::process::claude::arguments::interactive_arguments;
use crate::process::claude::program::ClaudeCode;
use crate::process::claude::session_files::{
    CONFIG_DIR, SessionMessages, config_dir, find_session, messages, session_path,
};
use crate::process::command::{EnvironmentMarker, ProtectedFolders, WorkflowFolders, locate};
use crate::process::config_files::CopyCheck;
use crate::process::process_runner::ProcessRunner;
use crate::process::working_dirs::REPOSITORY;
use crate::proof::StepProofs;
use crate::runtime::error::VisitError;
use crate::store::layout::RunsRoot;
use crate::store::user_state::UserState;
use crate::store::workflow::WorkflowDir;

/// Builds the runner for a run's settings; the files of its turns go into `steps`. A cassette that answers only the
/// first part of the run stands before the runner of the rest.
///
/// # Errors
/// [`Error`] if there is no such program, no script, or no cassette, or if the journal of the run cannot be read.
pub fn build_runner(
    settings: &Settings,
    scope: &WorkflowDir,
    steps: PathBuf,
    root: &RunsRoot,
    run: &RunId,
    state: &UserState,
    proofs: StepProofs,
) -> Result<Rc<dyn StepRunner>, Error> {
    let runner = build_answerer(settings, scope, steps.clone(), root, run, state, proofs)?;
    if settings.replayed_part().is_none() {
        return Ok(runner);
    }
    Ok(recording::until_runner(settings, root, run, steps, runner)?)
}

/// Builds the runner of the turns that no cassette answers, or of all if one answers all.
///
/// # Errors
/// [`Error`] if there is no such program, no script, or no cassette.
pub(super) fn build_answerer(
    settings: &Settings,
    scope: &WorkflowDir,
    steps: PathBuf,
    root: &RunsRoot,
    run: &RunId,
    state: &UserState,
    proofs: StepProofs,
) -> Result<Rc<dyn StepRunner>, Error> {
    match settings.answerer {
        AnswererKind::Scripted => {
            let (path, yaml) = script(scope)?;
            let replies = ScriptedReplies::parse(&path, &yaml)?;
            let working_dirs = working_dirs(root, run, settings);
            let kept = vec![root.path().to_owned(), scope.live_root()];
            let places = ScriptedPlaces { working_dirs, kept };
            Ok(Rc::new(ScriptedRunner::new(path, replies, steps, settings.max_procs, places)))
        }
        AnswererKind::Replay => Ok(recording::runner(settings, root, run, steps)?),
        AnswererKind::Claude => {
            let path = claude(settings)?;
            let marker = EnvironmentMarker { run: run.clone(), dir: root.path().to_owned() };
            let working_dirs = working_dirs(root, run, settings);
            let runner = ProcessRunner::new(
                Rc::new(ClaudeCode),
                path,
                settings.clone(),
                working_dirs,
                steps,
                marker,
            );
            let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
            let protected = ProtectedFolders {
                all_runs: root.path().to_owned(),
                user_state: state.path().to_owned(),
            };
            let (pinned, live) = (scope.root().to_owned(), scope.live_root());
            let folders = WorkflowFolders { pinned, live, protected: Some(protected) };
            let scope = scope.clone();
            let check = CopyCheck::new(move || scope.check_copy().map_err(|why| why.to_string()));
            let runner = runner.with_folders(folders).with_inherited(names.collect());
            Ok(Rc::new(runner.with_checks(proofs, check)))
        }
    }
}

/// Checks that the turns of a run that is to begin can be answered.
///
/// # Errors
/// As [`build_answerer`].
pub(super) fn check_answerer(
    settings: &Settings,
    scope: &WorkflowDir,
    root: &RunsRoot,
    run: &RunId,
    state: &UserState,
) -> Result<(), Error> {
    let (steps, proofs) = (PathBuf::new(), StepProofs::default());
    build_answerer(settings, scope, steps, root, run, state, proofs).map(drop)
}

/// The variable that names another script than the workflow's, for a run that tests it.
pub const OTHER_SCRIPT: &str = "RAYMOND_REPLIES";

/// Returns the script of a run, with its path: the script that the environment names, or else the workflow's.
fn script(scope: &WorkflowDir) -> Result<(String, String), Error> {
    if let Some(path) = std::env::var_os(OTHER_SCRIPT).map(PathBuf::from) {
        let unreadable =
            |error| Error::Io { doing: "read the replies in", path: path.clone(), error };
        let text = plain_file::text(&path).map_err(unreadable)?;
        return Ok((path.display().to_string(), text));
    }
    let file = StateName::parse(replies::FILE)?;
    let path = scope.path(&file);
    let yaml = scope.read(&file).map_err(|error| match error {
        source::Error::Missing { path, .. } => Error::NoScript { path },
        error => prompt::step::Error::from(error).into(),
    })?;
    Ok((path, yaml))
}

/// Returns the path of Claude Code.
fn claude(settings: &Settings) -> Result<PathBuf, Error> {
    let search = std::env::var_os("PATH");
    let program =
        locate(&settings.claude, search.as_deref()).ok_or_else(|| no_claude(&settings.claude))?;
    Ok(std::path::absolute(&program).unwrap_or(program))
}

pub(super) fn no_claude(program: &str) -> Error {
    if program.contains('/') && Path::new(program).exists() {
        return Error::NotAProgram { program: program.to_owned() };
    }
    Error::NoClaude { program: program.to_owned() }
}

// The interactive Claude Code that a person opens in the session of an agent.
//
// It runs in a branch of the session, so that the agent can go on without it if nothing is said, or if it cannot be
// recorded.

/// An interactive process that is to be started.
#[derive(Debug, PartialEq, Eq)]
pub struct SessionAttachment {
    /// The process.
    pub program: ForegroundProgram,
    /// The session of the agent.
    pub from: SessionId,
    /// The branch that the person speaks in.
    pub session: SessionId,
    origin_file: PathBuf,
    session_file: PathBuf,
}

impl SessionAttachment {
    /// Prepares the process for an agent that has nothing running. `session` is the id of the branch.
    ///
    /// # Errors
    /// [`VisitError::NotAttachable`], or [`Error::NoClaude`] if Claude Code is not found.
    pub fn prepare(
        root: &RunsRoot,
        user_state: &Path,
        run: &Run,
        agent: &Agent,
        session: SessionId,
    ) -> Result<Self, Error> {
        let wrong =
            |why: String| Error::from(VisitError::NotAttachable { agent: agent.id.clone(), why });
        let settings = &run.settings;
        if settings.answerer != AnswererKind::Claude {
            return Err(wrong("its run is answered by a script, not by Claude Code".to_owned()));
        }
        let Some(from) = agent.session.history().cloned() else {
            let why = "its next turn begins a new one; `raymond tell` adds to the prompt, and `raymond edit` changes it";
            return Err(wrong(why.to_owned()));
        };
        let working_dir = &agent.spec.working_dir;
        let directory =
            working_dirs(root, &run.workflow_id, settings).directory(working_dir).map_err(wrong)?;
        let variables = settings.options.env.as_ref();
        let inherited = std::env::var_os(CONFIG_DIR).map(PathBuf::from);
        let config = config_dir(variables, inherited, std::env::home_dir())
            .ok_or_else(|| wrong("no home directory to look for it".to_owned()))?;
        let origin_file = find_session(&config, &directory, &from).ok_or_else(|| {
            let config = config.display();
            wrong(format!("Claude Code has no session {from} in {config} any more"))
        })?;
        let branch = agent.session.branched(session.clone());
        let session_file = session_path(&config, &directory, &session).unwrap_or_default();
        let program = claude(settings)?;
        let set = variables.into_iter().flatten().filter_map(|(name, value)| match value {
            EnvValue::Set(text) => Some((name.clone(), text.clone())),
            EnvValue::Pass => None,
        });
        let mut added: Vec<(String, String)> = set.collect();
        // What its model does is done by the agent, not by the person.
        added.push((ATTACHED_TO.to_owned(), format!("{}/{}", run.workflow_id, agent.id)));
        let in_tree = working_dir.tree.is_some();
        if in_tree {
            added.push(("PWD".to_owned(), directory.display().to_string()));
        }
        let all_runs = root.path().to_owned();
        let protected = ProtectedFolders { all_runs, user_state: user_state.to_owned() };
        let arguments = interactive_arguments(&branch, settings.model.as_ref(), &protected);
        Ok(Self {
            program: ForegroundProgram {
                program: program.into_os_string(),
                arguments: arguments.into_iter().map(Into::into).collect(),
                directory: Some(directory),
                added,
                removed: if in_tree { REPOSITORY.to_vec() } else { Vec::new() },
            },
            from,
            session,
            origin_file,
            session_file,
        })
    }

    /// Returns what was said in it.
    ///
    /// # Errors
    /// The system's error for the files of the sessions.
    pub fn messages(&self) -> std::io::Result<SessionMessages> {
        messages(&self.session_file, &self.origin_file)
    }

    /// Returns the file of the branch, for messages.
    pub fn session_file(&self) -> &Path {
        &self.session_file
    }
}
