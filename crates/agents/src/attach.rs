//! Attaches a turn that was begun before to its process, if that still runs, and runs programs in the foreground.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use tokio::process::Command;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;

use crate::child::orphans;
use crate::claude::partial_message_removal;
use crate::dialogue::DialogueStart;
use crate::process_runner::{ProcessRunner, WorkerTurn};
use crate::transcript::{ProcessFiles, TurnFiles, unwritable};
use crate::worker::{Worker, WorkerProcess};
use raymond_model::turn::{FailureCause, TurnFailure, TurnInput};

impl ProcessRunner {
    /// Refuses a turn that seems to have begun but has no proof of it, so that another turn takes its place.
    pub(super) fn refuse_if_unproven(
        &self,
        input: &TurnInput,
        files: &TurnFiles,
    ) -> Result<(), TurnFailure> {
        if files.are_proven(&self.proofs) {
            return Ok(());
        }
        let stem = input.turn.stem();
        let message =
            format!("ignoring the stream of the turn {stem}: no proof that raymond began it");
        Err(TurnFailure::new(FailureCause::Lost, message))
    }

    /// Attaches to a turn that was started before, and to its process if it still runs. That is the oldest process
    /// that bears the turn's mark, leads a group and writes into the turn's stream.
    pub(super) async fn attach(
        &self,
        input: &TurnInput,
        files: &TurnFiles,
    ) -> Result<WorkerTurn, TurnFailure> {
        let turn = &input.turn;
        let turn_offset = files.turn_offset();
        let name = turn_offset
            .as_ref()
            .map_or_else(|| turn.stem(), |turn_offset| turn_offset.process.clone());
        let process_files = ProcessFiles::named(&self.steps, &name);
        let stream_file = process_files.stream.clone();
        let marker = self.marker.clone();
        let mut found = spawn_blocking(move || orphans::find(&marker)).await.unwrap_or_default();
        found.retain(|orphan| orphan.process == name);
        let group = found.iter().find_map(|orphan| self.groups.find(orphan.pid));
        let process = found
            .into_iter()
            .filter(|orphan| orphan.leads)
            .filter(|orphan| orphans::writes_to(orphan, &stream_file))
            .min_by_key(|orphan| orphan.started)
            .map_or(WorkerProcess::Gone, WorkerProcess::Adopted);
        let from = turn_offset.as_ref().map_or(0, |turn_offset| turn_offset.from);
        partial_message_removal::recover(&stream_file, from)
            .map_err(|error| unwritable(&stream_file, &error))?;
        let mut worker = Worker::new(process, process_files, input.session.id.clone(), from)
            .map_err(|error| unwritable(&stream_file, &error))?;
        worker.is_widened = input.options.asks_for_approval();
        worker.cgroup = group;
        worker.slot = self.pool.free_slot();
        worker.life = Some(self.process_counts.add());
        if let Some(turn_offset) = &turn_offset {
            worker.spent = turn_offset.spent.clone();
        }
        let mut dialogue = self.program.dialogue(input, DialogueStart::Attached(turn_offset));
        if files.is_marked_unkept() {
            dialogue.progress_mut().set_was_asked();
        }
        Ok(WorkerTurn { worker, dialogue, took_over: false, attached: true })
    }
}

/// A program that a person uses on the terminal of this process: an editor, or the interactive Claude Code.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ForegroundProgram {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// The directory it works in, if not that of this process.
    pub directory: Option<PathBuf>,
    /// The variables that it gets on top of those of this process.
    pub added: Vec<(String, String)>,
    /// The variables of this process that it does not get.
    pub removed: Vec<&'static str>,
}

impl ForegroundProgram {
    /// Runs it to its end. Signals of the terminal are meant for the program, so this process does not end by them.
    ///
    /// # Errors
    /// The system's error if it cannot be started.
    pub fn run(self) -> io::Result<ExitStatus> {
        let Self { program, arguments, directory, added, removed } = self;
        let mut command = Command::new(program);
        command.args(arguments).envs(added);
        if let Some(directory) = directory {
            command.current_dir(directory);
        }
        for name in removed {
            command.env_remove(name);
        }
        Builder::new_current_thread().enable_all().build()?.block_on(async {
            // A signal that has a listener is not passed on to the program as ignored.
            let kinds = [SignalKind::interrupt(), SignalKind::quit(), SignalKind::hangup()];
            let listeners: io::Result<Vec<_>> = kinds.into_iter().map(signal).collect();
            let _listeners = listeners?;
            command.spawn()?.wait().await
        })
    }
}
