//! Gets a process for a turn: an idle process, a new process, or the process that already serves it.
//!
//! The files of a turn exist before its prompt is sent, so the turn counts as begun from then on. If the runtime dies
//! before the process has read the prompt, the process ends by itself, because its pipe is closed.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::sync::watch;
use uuid::Uuid;

use crate::background::BackgroundTasks;
use crate::claude::session_recap::has_lost_writes;
use crate::dialogue::DialogueStart;
use crate::launch::WorkerLaunch;
use crate::process_runner::{ProcessRunner, WorkerTurn, first_output_timeout};
use crate::registry;
use crate::transcript::{TurnFiles, unwritable};
use crate::worker::{ShutdownMode, StopLevel, Worker, WriteTimeouts, stopped};
use raymond_model::id::MessageId;
use raymond_model::session::SessionOrigin;
use raymond_model::settings::{OptionSwitch, ProcessOptions, ProcessSwitch, switch_options};
use raymond_model::turn::{FailureCause, TurnFailure, TurnInput, TurnOffset};
use raymond_model::turn_options::TurnOptions;
use raymond_model::usage::ProcessSpending;
use raymond_model::widening::effective_permission;
use raymond_store::fault::FaultPoint;

type StopReceiver = watch::Receiver<StopLevel>;

impl ProcessRunner {
    /// Begins a turn, in the idle process of its session or in a new process.
    pub(super) async fn begin(
        &self,
        input: &TurnInput,
        files: &TurnFiles,
        stop: &mut StopReceiver,
    ) -> Result<WorkerTurn, TurnFailure> {
        self.refuse_if_stopped()?;
        let turn = match self.pool.take_for(&input.session) {
            Some(worker) => {
                if let Some(switches) = self.switches(&worker, input) {
                    self.continue_in(worker, &switches, input, files, stop).await?
                } else {
                    worker.shut_down(&self.marker, stop, ShutdownMode::Patiently).await;
                    None
                }
            }
            None => None,
        };
        let turn = if let Some(turn) = turn {
            turn
        } else {
            if let Some(session) = input.session.history()
                && has_lost_writes(&*self.program, &self.steps, input, session)?
            {
                let why = format!(
                    "{} could not save all of the session, because the disk was full; `raymond retry` continues in a fresh session that begins with the prompts and answers so far",
                    self.program.name()
                );
                return Err(TurnFailure::new(FailureCause::SessionLost, why));
            }
            self.start(input, stop).await?
        };
        self.start_ahead().await;
        Ok(turn)
    }

    /// Begins a turn again in a new process, because the first process has not received it.
    pub(super) async fn replace(
        &self,
        input: &TurnInput,
        files: &TurnFiles,
        stop: &mut StopReceiver,
    ) -> Result<WorkerTurn, TurnFailure> {
        forget(files)?;
        self.refuse_if_stopped()?;
        self.start(input, stop).await
    }

    /// Sends a turn to an idle process; `None` if it has died meanwhile, or did not take the options of the turn.
    async fn continue_in(
        &self,
        mut worker: Worker,
        switches: &[ProcessSwitch],
        input: &TurnInput,
        files: &TurnFiles,
        stop: &mut StopReceiver,
    ) -> Result<Option<WorkerTurn>, TurnFailure> {
        if worker.process.has_ended() {
            worker.shut_down(&self.marker, stop, ShutdownMode::Soon).await;
            return Ok(None);
        }
        let turn_offset = TurnOffset {
            process: worker.files.name.clone(),
            from: worker.follower.position(),
            spent: worker.spent.clone(),
            message: new_message(),
        };
        worker.turn_from = turn_offset.from;
        if let Err((path, error)) = files.note(&turn_offset, &self.proofs) {
            self.retire(worker);
            return Err(unwritable(&path, &error));
        }
        FaultPoint::PassageNoted.reach();
        let timeouts =
            WriteTimeouts { longest: first_output_timeout(input), ..write_timeouts(input) };
        let start = DialogueStart::Asked {
            message: turn_offset.message,
            spent: turn_offset.spent,
            tasks: worker.background.left_running(),
        };
        let mut dialogue = self.program.dialogue(input, start);
        let is_switched = worker.switch(switches, &mut *dialogue, stop, timeouts).await;
        if !is_switched || self.stops.run_level() != StopLevel::None {
            worker.shut_down(&self.marker, stop, ShutdownMode::Soon).await;
            forget(files)?;
            return self.refuse_if_stopped().map(|()| None);
        }
        if input.session.origin == SessionOrigin::Fresh
            && let Some(group) = worker.process.group()
        {
            registry::give(group.leader(), &input.turn.agent);
        }
        let model = input.model.clone().or(worker.options.model);
        worker.options = ProcessOptions { model, turn: input.options.clone() };
        let is_written = worker.write(&dialogue.prompt_line(input), stop, timeouts).await;
        FaultPoint::PassageAsked.reach();
        if !is_written && worker.process.has_ended() {
            worker.shut_down(&self.marker, stop, ShutdownMode::Soon).await;
            forget(files)?;
            return Ok(None);
        }
        Ok(Some(WorkerTurn { worker, dialogue, took_over: true, attached: false }))
    }

    /// Starts a process for a turn.
    async fn start(
        &self,
        input: &TurnInput,
        stop: &mut StopReceiver,
    ) -> Result<WorkerTurn, TurnFailure> {
        let reads_messages = input.prompt.len() <= self.program.longest_message();
        let start = DialogueStart::Asked {
            message: new_message(),
            spent: ProcessSpending::default(),
            tasks: BackgroundTasks::default(),
        };
        let dialogue = self.program.dialogue(input, start);
        let lines = dialogue.first_lines(input, self.changes_system_prompt(&input.options));
        let slot = tokio::select! {
            slot = self.pool.slot(|worker| self.retire(worker)) => slot,
            () = stopped(stop) => None,
        };
        self.refuse_if_stopped()?;
        let launch = WorkerLaunch {
            name: input.turn.stem(),
            slot,
            agent: Some(&input.turn.agent),
            session: &input.session,
            options: ProcessOptions { model: input.model.clone(), turn: input.options.clone() },
            working_dir: input.working_dir.clone(),
            reads_results: input.reads_results,
            output: input.output.as_ref(),
            spending_limit: input.max_cost,
            prompt: (!reads_messages).then_some(&lines),
        };
        let mut worker = self.launch(launch).await?;
        FaultPoint::SpawnAfter.reach();
        if reads_messages {
            worker.write(&lines, stop, write_timeouts(input)).await;
            FaultPoint::SpawnAsked.reach();
        }
        Ok(WorkerTurn { worker, dialogue, took_over: false, attached: false })
    }

    /// Returns the switches that a process needs to serve a turn; `None` if it cannot serve it. It cannot if the
    /// prompt is too long to be sent, or if the schema of its answers differs.
    fn switches(&self, worker: &Worker, input: &TurnInput) -> Option<Vec<ProcessSwitch>> {
        let sees = worker.reads_results || !input.reads_results;
        if worker.is_widened
            || !sees
            || worker.output != input.output
            || input.prompt.len() > self.program.longest_message()
        {
            return None;
        }
        let ahead = input.session.origin == SessionOrigin::Fresh;
        let needs = ProcessOptions { model: input.model.clone(), turn: input.options.clone() };
        let permission = effective_permission(&self.settings);
        match switch_options(&worker.options, &needs, &permission, ahead) {
            OptionSwitch::Switch(switches) => Some(switches),
            OptionSwitch::Restart => None,
        }
    }

    /// Returns whether the system prompt may differ from the first one of the session: true from the first turn of the
    /// run that changes it. Sending it again invalidates the API's cache, so it is sent only if a state needs it.
    fn changes_system_prompt(&self, options: &TurnOptions) -> bool {
        let is_own = options.append_system_prompt.is_some() || options.system_prompt_file.is_some();
        self.has_system_prompts.set(self.has_system_prompts.get() || is_own);
        self.has_system_prompts.get()
    }

    pub(super) fn refuse_if_stopped(&self) -> Result<(), TurnFailure> {
        if self.stops.run_level() == StopLevel::None {
            return Ok(());
        }
        let message = "the turn was not started because the run was stopped";
        Err(TurnFailure::new(FailureCause::Interrupted, message))
    }
}

/// Returns the timeouts for writing to a process.
fn write_timeouts(input: &TurnInput) -> WriteTimeouts {
    let [longest, grace] =
        [input.limits.idle_timeout_ms, input.limits.shutdown_ms].map(Duration::from_millis);
    WriteTimeouts { longest, grace }
}

fn new_message() -> MessageId {
    MessageId::new(&Uuid::new_v4().to_string())
}

fn forget(files: &TurnFiles) -> Result<(), TurnFailure> {
    match std::fs::remove_file(&files.turn_offset) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(unwritable(&files.turn_offset, &error))
        }
        _ => Ok(()),
    }
}
