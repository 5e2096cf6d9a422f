//! How a turn gets its process: one that waits for it, a new one, or the one it had before.
//!
//! Before a turn is asked its files are there, so that it counts as begun from then on; a process
//! that has read nothing of it when the runtime dies ends by itself, because its pipe is closed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinError, spawn_blocking};
use uuid::Uuid;

use super::claude::{Claude, Turn};
use super::command::arguments;
use super::follow::{Stop, stopped};
use super::leftover;
use super::message;
use super::owned::{Process, Start};
use super::pool::Slot;
use super::stream::Stream;
use super::transcript::{ProcessFiles, TurnFiles};
use super::worker::{Rest, Worker};
use crate::domain::id::{AgentId, MessageId, SessionId};
use crate::domain::passage::Passage;
use crate::domain::session::Session;
use crate::domain::settings::Model;
use crate::domain::turn::{Cause, Failure, StepInput, TurnId};
use crate::fault::point;

/// The system's number for a file that is not a program it can run, `ENOEXEC`.
const NOT_A_PROGRAM: i32 = 8;

type StopReceiver = watch::Receiver<Stop>;

/// What a process is started for.
struct Launch<'launch> {
    name: String,
    slot: Option<Slot>,
    agent: Option<&'launch AgentId>,
    session: &'launch Session,
    model: Option<Model>,
    /// What it reads; absent, if it is told things.
    prompt: Option<&'launch str>,
}

impl Claude {
    /// Begins a turn: in the process that waits for it, or in a new one.
    pub(super) async fn begin(
        &self,
        input: &StepInput,
        files: &TurnFiles,
        stop: &mut StopReceiver,
    ) -> Result<Turn, Failure> {
        self.refuse_if_stopped()?;
        let turn = match self.pool.take(&input.session) {
            Some(worker) if stays(input, self.settings.warm) => {
                self.go_on(worker, input, files, stop).await?
            }
            Some(worker) => {
                worker.rest(&self.marker, stop, Rest::Patiently).await;
                None
            }
            None => None,
        };
        let turn = match turn {
            Some(turn) => turn,
            None => self.start(input, stop).await?,
        };
        self.start_ahead().await;
        Ok(turn)
    }

    /// Begins a turn again in a new process, of which the one that was to serve it has heard nothing.
    pub(super) async fn replace(
        &self,
        input: &StepInput,
        files: &TurnFiles,
        stop: &mut StopReceiver,
    ) -> Result<Turn, Failure> {
        forget(files)?;
        self.refuse_if_stopped()?;
        self.start(input, stop).await
    }

    /// Asks a turn of a process that has waited; nothing, if it has died meanwhile.
    async fn go_on(
        &self,
        mut worker: Worker,
        input: &StepInput,
        files: &TurnFiles,
        stop: &mut StopReceiver,
    ) -> Result<Option<Turn>, Failure> {
        if worker.process.has_ended() {
            worker.rest(&self.marker, stop, Rest::Soon).await;
            return Ok(None);
        }
        let passage = Passage {
            process: worker.files.name.clone(),
            from: worker.follower.position(),
            spent_usd: worker.spent,
            message: new_message(),
        };
        files.note(&passage).map_err(|(path, error)| unwritable(&path, &error))?;
        point("passage.noted");
        let mut said = String::new();
        if let Some(model) = input.model.filter(|&model| worker.model != Some(model)) {
            said.push_str(&message::set_model(&new_message(), model));
            worker.model = Some(model);
        }
        said.push_str(&message::prompt(&passage.message, &input.prompt));
        let told = worker.tell(&said, stop, patience(input)).await;
        point("passage.asked");
        if !told && worker.process.has_ended() {
            worker.rest(&self.marker, stop, Rest::Soon).await;
            forget(files)?;
            return Ok(None);
        }
        let stream = Stream::answer_to(passage.message, worker.spent);
        Ok(Some(Turn { worker, stream, took_over: true, attached: false }))
    }

    /// Starts a process for a turn.
    async fn start(&self, input: &StepInput, stop: &mut StopReceiver) -> Result<Turn, Failure> {
        let told = input.prompt.len() <= message::LONGEST_PROMPT;
        let slot = tokio::select! {
            slot = self.pool.slot(|worker| self.retire(worker)) => slot,
            () = stopped(stop) => None,
        };
        self.refuse_if_stopped()?;
        let launch = Launch {
            name: input.turn.stem(),
            slot,
            agent: Some(&input.turn.agent),
            session: &input.session,
            model: input.model,
            prompt: (!told).then_some(&input.prompt),
        };
        let mut worker = self.launch(launch).await?;
        point("spawn.after");
        let mut stream = Stream::default();
        if told {
            let id = new_message();
            worker.tell(&message::prompt(&id, &input.prompt), stop, patience(input)).await;
            point("spawn.asked");
            stream = Stream::answer_to(id, worker.spent);
        }
        if !self.settings.warm {
            drop(worker.stdin.take());
        }
        Ok(Turn { worker, stream, took_over: false, attached: false })
    }

    /// Makes the files of a process and starts it: on a thread of its own while others run, because
    /// the start waits for the program to be loaded; else here, because handing over takes time too.
    async fn launch(&self, launch: Launch<'_>) -> Result<Worker, Failure> {
        let number = launch.slot.as_ref().map_or(usize::MAX, Slot::number);
        let files = ProcessFiles::named(&self.steps, &launch.name).in_slot(&self.steps, number);
        let told = launch.prompt.is_none();
        let start = Start {
            program: self.program.clone(),
            arguments: arguments(launch.session, launch.model, &self.settings, told),
            cwd: PathBuf::from(&self.settings.cwd),
            environment: self.marker.variables(&launch.name, launch.agent),
        };
        let started = if self.pool.is_busy() {
            let (files, prompt) = (files.clone(), launch.prompt.map(str::to_owned));
            let start = move || start_with(&files, prompt.as_deref(), start);
            let lost = |error: JoinError| Err(Unstarted::Process(error.into()));
            spawn_blocking(start).await.unwrap_or_else(lost)
        } else {
            start_with(&files, launch.prompt, start)
        };
        let process = started.map_err(|unstarted| match unstarted {
            Unstarted::Files(path, error) => unwritable(&path, &error),
            Unstarted::Process(error) => self.not_started(&error),
        })?;
        let stream = files.stream.clone();
        let mut worker =
            Worker::new(process, files, 0).map_err(|error| unwritable(&stream, &error))?;
        worker.slot = launch.slot;
        worker.model = launch.model;
        worker.life = Some(self.census.born());
        Ok(worker)
    }

    /// Starts processes ahead of fresh turns, where there is room for them.
    async fn start_ahead(&self) {
        if !self.settings.warm || self.starts_ahead.replace(true) {
            return;
        }
        while self.pool.ahead() < self.settings.prestart && self.start_one_ahead().await {}
        self.starts_ahead.set(false);
    }

    /// Starts one, and tells whether it could.
    async fn start_one_ahead(&self) -> bool {
        let Some(slot) = self.pool.free_slot() else { return false };
        let id = SessionId::new(&Uuid::new_v4().to_string());
        let session = Session::fresh(id.clone());
        let launch = Launch {
            name: format!("ahead-{id}"),
            slot: Some(slot),
            agent: None,
            session: &session,
            model: self.settings.model,
            prompt: None,
        };
        match self.launch(launch).await {
            Ok(worker) => {
                self.pool.keep_ahead(worker, id);
                true
            }
            // The turn that is due will meet the same obstacle, and say so.
            Err(_) => false,
        }
    }

    fn refuse_if_stopped(&self) -> Result<(), Failure> {
        if *self.told.borrow() == Stop::No {
            return Ok(());
        }
        let message = "the turn was not started because the run was told to stop";
        Err(Failure::new(Cause::Interrupted, message))
    }

    /// A program that is not there keeps every agent from working; a machine that is full does not.
    fn not_started(&self, error: &std::io::Error) -> Failure {
        let (program, cwd) = (self.program.display(), &self.settings.cwd);
        let lasting = matches!(
            error.kind(),
            ErrorKind::NotFound
                | ErrorKind::PermissionDenied
                | ErrorKind::NotADirectory
                | ErrorKind::InvalidInput
        ) || error.raw_os_error() == Some(NOT_A_PROGRAM);
        if lasting {
            let hint = "install Claude Code, or name it with --claude or RAYMOND_CLAUDE";
            Failure::new(
                Cause::Unavailable,
                format!(
                    "{program} cannot be run in {cwd}: {error}; if it is a script, see that its interpreter is there; else {hint}"
                ),
            )
        } else {
            Failure::new(Cause::Crash, format!("{program} could not be started in {cwd}: {error}"))
        }
    }

    /// A turn that was started before, with its process, if that still runs: the first of those that
    /// bear its mark, lead a group and write into its stream.
    pub(super) async fn attach(&self, turn: &TurnId, files: &TurnFiles) -> Result<Turn, Failure> {
        let passage = files.passage();
        let name = passage.as_ref().map_or_else(|| turn.stem(), |passage| passage.process.clone());
        let process_files = ProcessFiles::named(&self.steps, &name);
        let stream_file = process_files.stream.clone();
        let marker = self.marker.clone();
        let found = spawn_blocking(move || leftover::find(&marker)).await.unwrap_or_default();
        let process = found
            .into_iter()
            .filter(|leftover| leftover.leads && leftover.process == name)
            .filter(|leftover| leftover::writes_to(leftover, &stream_file))
            .min_by_key(|leftover| leftover.started)
            .map_or(Process::Gone, Process::Adopted);
        let from = passage.as_ref().map_or(0, |passage| passage.from);
        let mut worker = Worker::new(process, process_files, from)
            .map_err(|error| unwritable(&stream_file, &error))?;
        worker.slot = self.pool.free_slot();
        worker.life = Some(self.census.born());
        let stream = passage.map_or_else(Stream::default, |passage| {
            worker.spent = passage.spent_usd;
            Stream::answer_to(passage.message, passage.spent_usd)
        });
        Ok(Turn { worker, stream, took_over: false, attached: true })
    }
}

/// Why there is no process.
enum Unstarted {
    Files(PathBuf, std::io::Error),
    Process(std::io::Error),
}

fn start_with(
    files: &ProcessFiles,
    prompt: Option<&str>,
    start: Start,
) -> Result<Process, Unstarted> {
    point("spawn.before");
    let opened = files.create(prompt).map_err(|(path, error)| Unstarted::Files(path, error))?;
    Process::start(start, opened).map_err(Unstarted::Process)
}

/// Whether a turn's process may serve further ones.
fn stays(input: &StepInput, warm: bool) -> bool {
    warm && input.prompt.len() <= message::LONGEST_PROMPT
}

/// How long a process may take to read what it is told.
fn patience(input: &StepInput) -> Duration {
    Duration::from_millis(input.limits.idle_timeout_ms)
}

fn new_message() -> MessageId {
    MessageId::new(&Uuid::new_v4().to_string())
}

fn forget(files: &TurnFiles) -> Result<(), Failure> {
    match std::fs::remove_file(&files.passage) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(unwritable(&files.passage, &error))
        }
        _ => Ok(()),
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let path: PathBuf = path.to_owned();
    Failure::new(Cause::Storage, format!("{}: cannot be written: {error}", path.display()))
}
