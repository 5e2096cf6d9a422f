//! The runner that answers the prompts of a run: Claude Code, a script, or a cassette.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::error::Error;
use super::graphs::working_dirs;
use super::replay;
use crate::actor::runner::StepRunner;
use crate::actor::scripted::{ScriptedPlaces, ScriptedRunner};
use crate::domain::id::{RunId, StateName};
use crate::domain::settings::{AnswererKind, Settings};
use crate::language::prompt;
use crate::language::replies::{self, ScriptedReplies};
use crate::language::source::{self, WorkflowSource};
use crate::plain_file;
use crate::process::claude::ClaudeRunner;
use crate::process::command::{EnvironmentMarker, locate};
use crate::process::said_in_session::CopyCheck;
use crate::process::turn_arguments::ProtectedFolders;
use crate::process::turn_arguments::WorkflowFolders;
use crate::proof::StepProofs;
use crate::store::layout::RunsRoot;
use crate::store::user_state::UserState;
use crate::store::workflow::WorkflowDir;

/// Builds the runner for a run's settings; the files of its turns go into `steps`. A cassette that answers only the first
/// part of the run stands before the runner of the rest.
///
/// # Errors
/// [`Error`] if there is no such program, no script, or no cassette, or if the journal of the run cannot be read.
pub fn build_runner(
    settings: &Settings,
    scope: &WorkflowDir,
    steps: PathBuf,
    (root, run): (&RunsRoot, &RunId),
    proven: (&UserState, StepProofs),
) -> Result<Rc<dyn StepRunner>, Error> {
    let runner = build_answerer(settings, scope, steps.clone(), (root, run), proven)?;
    if settings.replayed_part().is_none() {
        return Ok(runner);
    }
    Ok(replay::until_runner(settings, (root, run), steps, runner)?)
}

/// Builds the runner of the turns that no cassette answers, or of all if one answers all.
///
/// # Errors
/// [`Error`] if there is no such program, no script, or no cassette.
pub(super) fn build_answerer(
    settings: &Settings,
    scope: &WorkflowDir,
    steps: PathBuf,
    (root, run): (&RunsRoot, &RunId),
    (state, proofs): (&UserState, StepProofs),
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
        AnswererKind::Replay => Ok(replay::runner(settings, (root, run), steps)?),
        AnswererKind::Claude => {
            let search: Option<OsString> = std::env::var_os("PATH");
            let program = locate(&settings.claude, search.as_deref())
                .ok_or_else(|| no_claude(&settings.claude))?;
            let program = std::path::absolute(&program).unwrap_or(program);
            let marker = EnvironmentMarker { run: run.clone(), dir: root.path().to_owned() };
            let working_dirs = working_dirs(root, run, settings);
            let claude = ClaudeRunner::new(program, settings.clone(), working_dirs, steps, marker);
            let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
            let protected = ProtectedFolders {
                all_runs: root.path().to_owned(),
                user_state: state.path().to_owned(),
            };
            let (pinned, live) = (scope.root().to_owned(), scope.live_root());
            let claude =
                claude.with_folders(WorkflowFolders { pinned, live, protected: Some(protected) });
            let scope = scope.clone();
            let check = CopyCheck::new(move || scope.check_copy().map_err(|why| why.to_string()));
            Ok(Rc::new(claude.with_inherited(names.collect()).with_checks(proofs, check)))
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
    place: (&RunsRoot, &RunId),
    state: &UserState,
) -> Result<(), Error> {
    build_answerer(settings, scope, PathBuf::new(), place, (state, StepProofs::default())).map(drop)
}

/// The variable that names another script than the workflow's, for a run that tests it.
pub const OTHER_SCRIPT: &str = "RAYMOND_REPLIES";

/// Returns the script of a run, with its path: the workflow's, or the one that the environment names.
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

pub(super) fn no_claude(program: &str) -> Error {
    if program.contains('/') && Path::new(program).exists() {
        return Error::NotAProgram { program: program.to_owned() };
    }
    Error::NoClaude { program: program.to_owned() }
}
