//! Starts processes: for a turn, or ahead of one; and the failures to start one.

use std::cell::Cell;
use std::ffi::OsString;
use std::future::pending;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, spawn_blocking};
use uuid::Uuid;

use crate::captured_output::ProcessSpec;
use crate::child::cgroup::{ProcessCgroup, RunGroups};
use crate::command;
use crate::config_files::{ConfigFiles, take_out_configs};
use crate::dialogue::ProgramLaunch;
use crate::process_runner::ProcessRunner;
use crate::transcript::{ProcessFiles, unwritable};
use crate::worker::{Worker, WorkerProcess, WorkerSpec};
use crate::worker_slot::WorkerSlot;
use raymond_model::id::{AgentId, SessionId};
use raymond_model::money::Usd;
use raymond_model::session::Session;
use raymond_model::settings::ProcessOptions;
use raymond_model::turn::{FailureCause, TurnFailure};
use raymond_model::worktree_snapshot::WorkingDir;
use raymond_store::fault::FaultPoint;
use raymond_store::plain_file;
use raymond_store::proof::StepProofs;

/// The parameters of a process that is started.
pub(super) struct WorkerLaunch<'launch> {
    pub(super) name: String,
    pub(super) slot: Option<WorkerSlot>,
    pub(super) agent: Option<&'launch AgentId>,
    pub(super) session: &'launch Session,
    pub(super) options: ProcessOptions,
    /// Its working directory.
    pub(super) working_dir: WorkingDir,
    /// True if it may read the results of joins, from any working directory.
    pub(super) reads_results: bool,
    /// The schema that its answers are checked against.
    pub(super) output: Option<&'launch Arc<str>>,
    /// Its spending limit.
    pub(super) spending_limit: Option<Usd>,
    /// Its stdin; `None` if it reads messages from a pipe.
    pub(super) prompt: Option<&'launch str>,
}

/// Marks that processes are being started ahead, until this is dropped.
struct StartsAhead<'claude>(&'claude Cell<bool>);

impl Drop for StartsAhead<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl ProcessRunner {
    /// Creates the files of a process and starts it. While other processes run, this happens on a separate thread,
    /// because the start waits until the program is loaded. Otherwise it happens here, because a handover takes time
    /// too.
    pub(super) async fn launch(&self, launch: WorkerLaunch<'_>) -> Result<Worker, TurnFailure> {
        let number = launch.slot.as_ref().map_or(usize::MAX, WorkerSlot::number);
        let files = ProcessFiles::named(&self.steps, &launch.name).in_slot(&self.steps, number);
        let reads_messages = launch.prompt.is_none();
        let cwd = self.working_dirs.directory(&launch.working_dir);
        let cwd = cwd.map_err(|why| TurnFailure::new(FailureCause::Workflow, why))?;
        if launch.options.turn.names_files() {
            self.copy_check
                .ask()
                .await
                .map_err(|why| TurnFailure::new(FailureCause::Workflow, why))?;
        }
        let mut options = launch.options.clone();
        let configs = take_out_configs(&mut options.turn, &self.steps.join(&launch.name));
        let configs =
            ConfigFiles::write(&configs).map_err(|(path, error)| unwritable(&path, &error))?;
        let is_set = |name: &str| self.inherited.contains(name);
        let mut environment = command::environment(&launch.options.turn, is_set)
            .map_err(|name| TurnFailure::new(FailureCause::Workflow, not_set(&name)))?;
        let command_line = self.program.command_line(&ProgramLaunch {
            session: launch.session,
            options: &options,
            settings: &self.settings,
            folders: &self.folders,
            reads_messages,
            spending_limit: launch.spending_limit,
            results: launch
                .reads_results
                .then(|| self.steps.with_file_name("results").display().to_string()),
            output: launch.output,
            is_set: &|name| is_set(name) || environment.iter().any(|(set, _)| set == name),
        });
        environment.extend(command_line.variables);
        let marks = self.marker.variables(&launch.name, launch.agent);
        environment.extend(marks.map(|(name, value)| (name.to_owned(), value)));
        let start = WorkerSpec {
            program: self.path.clone(),
            arguments: command_line.arguments,
            in_tree: launch.working_dir.tree.is_some(),
            cwd: cwd.clone(),
            environment,
        };
        // A process that is started ahead does not serve a turn yet.
        let proofs = launch.agent.map(|_| self.proofs.clone()).unwrap_or_default();
        let groups = Arc::clone(&self.groups);
        let started = if self.pool.is_busy() {
            let (files, prompt) = (files.clone(), launch.prompt.map(str::to_owned));
            let start = move || start_with(&files, &proofs, prompt.as_deref(), start, &groups);
            let lost = |error: JoinError| Err(LaunchError::Process(error.into()));
            spawn_blocking(start).await.unwrap_or_else(lost)
        } else {
            start_with(&files, &proofs, launch.prompt, start, &groups)
        };
        let (process, group) = started.map_err(|unstarted| match unstarted {
            LaunchError::Files(path, error) => unwritable(&path, &error),
            LaunchError::Process(error) => {
                not_started(&self.path, &cwd, &error, self.program.advice_if_missing())
            }
        })?;
        let stream = files.stream.clone();
        let mut worker = Worker::new(process, files, launch.session.id.clone(), 0)
            .map_err(|error| unwritable(&stream, &error))?;
        worker.configs = configs.leave();
        worker.cgroup = group;
        worker.slot = launch.slot;
        worker.options = launch.options;
        worker.reads_results = launch.reads_results;
        worker.output = launch.output.cloned();
        worker.life = Some(self.process_counts.add());
        Ok(worker)
    }

    /// Starts processes ahead of fresh turns, as long as there is room for them.
    pub(super) async fn start_ahead(&self) {
        if !self.settings.warm || self.starts_ahead.replace(true) {
            return;
        }
        let _starts = StartsAhead(&self.starts_ahead);
        while self.pool.prestarted_count() < self.settings.prestart && self.prestart_next().await {}
    }

    /// Starts one, and returns whether it could.
    async fn prestart_next(&self) -> bool {
        if self.refuse_if_stopped().is_err() {
            return false;
        }
        if self.memory_probe.memory().is_some_and(|memory| memory.room() <= 1) {
            return false;
        }
        let Some(slot) = self.pool.free_slot() else { return false };
        let id = SessionId::new(&Uuid::new_v4().to_string());
        let session = Session::fresh(id.clone());
        let rules = self.settings.consent.every_state.iter().cloned();
        let launch = WorkerLaunch {
            name: format!("ahead-{id}"),
            slot: Some(slot),
            agent: None,
            session: &session,
            options: ProcessOptions {
                model: self.settings.model.clone(),
                turn: self.settings.options.clone().with_allowed_tools(rules),
            },
            working_dir: WorkingDir::default(),
            reads_results: false,
            output: None,
            spending_limit: self.settings.budget_usd,
            prompt: None,
        };
        match self.launch(launch).await {
            Ok(worker) => {
                self.pool.keep_ahead(worker, id);
                true
            }
            // The next turn will meet the same obstacle, and report it.
            Err(_) => false,
        }
    }
}

/// The reason why a process could not be started.
enum LaunchError {
    Files(PathBuf, std::io::Error),
    Process(std::io::Error),
}

/// Makes the files of a process, starts it, and puts it into a control group; returns that too, if there can be one.
fn start_with(
    files: &ProcessFiles,
    proofs: &StepProofs,
    prompt: Option<&str>,
    start: WorkerSpec,
    groups: &Arc<RunGroups>,
) -> Result<(WorkerProcess, Option<ProcessCgroup>), LaunchError> {
    FaultPoint::SpawnBefore.reach();
    files.prove_start(proofs).map_err(|(path, error)| LaunchError::Files(path, error))?;
    let opened = files.create(prompt).map_err(|(path, error)| LaunchError::Files(path, error))?;
    let process = WorkerProcess::start(start, opened).map_err(LaunchError::Process)?;
    let group = process.group().and_then(|group| groups.put(group));
    Ok((process, group))
}

// The failures of turns whose process cannot be started. Pure.

/// The system's number for a file that is not a program it can run, `ENOEXEC`.
const NOT_A_PROGRAM: i32 = 8;

/// Returns the message for a variable that a state passes on and that is not set.
pub(super) fn not_set(name: &str) -> String {
    format!(
        "`env` passes {name}, which is not set where raymond was started; set it, or write {{ {name}: value }}"
    )
}

/// Returns the failure for a process that could not be started. A missing program keeps every agent from working, and
/// so does a machine on which no further file can be opened; too many processes do not.
pub(super) fn not_started(
    program: &Path,
    cwd: &Path,
    error: &std::io::Error,
    hint: &str,
) -> TurnFailure {
    let (program, cwd) = (program.display(), cwd.display());
    let lasting = matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::NotADirectory
            | ErrorKind::InvalidInput
    ) || error.raw_os_error() == Some(NOT_A_PROGRAM);
    if lasting {
        TurnFailure::new(
            FailureCause::Unavailable,
            format!(
                "{program} cannot be run in {cwd}: {error}; if it is a script, check that its interpreter exists; else {hint}"
            ),
        )
    } else {
        let is_out_of_room = plain_file::is_out_of_room(error);
        TurnFailure::new(
            if is_out_of_room { FailureCause::Storage } else { FailureCause::Crash },
            format!("{program} could not be started in {cwd}: {error}"),
        )
    }
}

// The version of Claude Code on this machine, as the program says it.

/// The time for the answer; the program only prints it.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The number of bytes that are kept of the answer.
const KEPT: usize = 200;

/// Returns the version that a program says of itself in this environment, such as `2.1.330`; `None` if there is no such
/// program, or it says nothing.
pub async fn claude_version(
    program: &str,
    environment: Vec<(OsString, OsString)>,
) -> Option<String> {
    let asked = ProcessSpec {
        path: program.into(),
        arguments: vec!["--version".into()],
        cwd: "/".into(),
        environment,
        longest: ANSWER_LIMIT,
        kept: KEPT,
    };
    let output = asked.run(pending()).await.ok()?;
    first_word(&output.stdout.text())
}

fn first_word(text: &str) -> Option<String> {
    let word = text.split_whitespace().next()?;
    word.starts_with(|first: char| first.is_ascii_digit()).then(|| word.chars().take(40).collect())
}

#[cfg(test)]
mod claude_version_tests {
    use super::*;

    #[test]
    fn version_is_the_first_word() {
        assert_eq!(first_word("2.1.330 (Claude Code)\n").as_deref(), Some("2.1.330"));
        for other in ["", "claude 2", "  \n"] {
            assert_eq!(first_word(other), None, "{other:?}");
        }
    }

    #[tokio::test]
    async fn program_that_is_not_there_has_no_version() {
        assert_eq!(claude_version("/no/such/program", Vec::new()).await, None);
        let shell = claude_version("/bin/sh", Vec::new()).await;
        assert_eq!(shell, None, "an error is no version");
    }
}
