//! The end of a turn: its last costs are read, its process is kept or ended, its outcome is returned.
//!
//! A turn that is cut off is interrupted first, so that Claude Code reports its cost. Background tasks that
//! still run are ended with the turn, or live on in the process, as the state says; only a
//! process that waits with nothing to do can be given up for another.

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::claude::{ClaudeRunner, WorkerTurn};
use super::follow::FollowEnd;
use super::host::is_disk_full;
use super::message;
use super::no_answer::why_no_answer;
use super::outcome::outcome;
use super::stream::{StreamParser, TurnResult};
use super::transcript::TurnFiles;
use super::worker::Worker;
use super::worker_process::ShutdownMode;
use crate::claude::TurnNotice;
use crate::worker_process::{StopLevel, stopped};
use raymond_model::id::AgentId;
use raymond_model::turn::{FailureCause, TurnFailure, TurnInput, TurnOutcome};
use raymond_model::turn_options::BackgroundWork;
use raymond_store::fault::point;

/// The longest time to wait for the cost of a turn that is cut off.
const COST_TIMEOUT: Duration = Duration::from_secs(2);

impl ClaudeRunner {
    /// Keeps the process for the next turn, or ends it, and returns the outcome of the turn.
    pub(super) async fn end_turn(
        &self,
        turn: WorkerTurn,
        end: FollowEnd,
        (input, notices): (&TurnInput, &impl Fn(TurnNotice<'_>)),
        stop: &watch::Receiver<StopLevel>,
    ) -> TurnOutcome {
        let WorkerTurn { mut worker, mut stream, attached, .. } = turn;
        point("rest.before");
        if matches!(end, FollowEnd::Result) {
            stream.finish_answer();
            read_cost_of_tasks(&mut worker, &mut stream, stop).await;
        } else if !matches!(end, FollowEnd::Exited(_)) {
            stream.cut_off();
            // After an interrupt, Claude Code would answer a message that waits.
            if !stream.messages.are_on_the_way() {
                interrupt(&mut worker, &mut stream, stop).await;
            }
        }
        for notice in stream.traces.notices() {
            tracing::warn!("{}: {notice}", input.turn);
        }
        let has_tasks = !stream.background.running().is_empty();
        worker.may_leave_others |= attached || stream.used_tools || has_tasks;
        worker.spent = stream.total().clone();
        if stream.background_work != BackgroundWork::End {
            worker.background = stream.background.left_running();
        }
        if self.may_serve_again(&worker, &stream, &end, stop) {
            worker.cut_back_stderr();
            let files = worker.files.clone();
            if stream.partials > 0 {
                worker.compact();
            }
            self.keep_for_next(worker, input, &stream);
            return outcome(end, &stream, &files, input.limits);
        }
        if is_settled(&worker, &stream, &end, stop) {
            let files = worker.files.clone();
            worker.note_ending();
            self.end_beside(worker, Some(input.turn.agent.clone()));
            return outcome(end, &stream, &files, input.limits);
        }
        let how = match end {
            FollowEnd::Result if has_tasks => ShutdownMode::Now,
            FollowEnd::Result => ShutdownMode::Patiently,
            _ => ShutdownMode::Soon,
        };
        worker.end(&self.marker, stop, how).await;
        let end = match worker.follower.read_to_end(&mut stream).await {
            Err(error) if stream.result.is_none() => FollowEnd::Unreadable(error),
            _ => end,
        };
        // Those that were read before are known already; to tell them again changes nothing.
        for message in stream.messages.read_since(0) {
            notices(TurnNotice::MessageRead(message));
        }
        if stream.partials > 0 {
            worker.compact();
        }
        if stream.result.is_none() && is_disk_full(&worker.files.stream) {
            stream.set_was_asked();
            // If the outcome cannot be recorded either, a later attempt learns of this by the mark.
            TurnFiles::of(&self.steps, &input.turn).mark_unkept();
        }
        // Who started the process may have told it an answer that it has not repeated any more.
        let unsure = attached && stream.results == 0;
        with_doubt(outcome(end, &stream, &worker.files, input.limits), unsure)
    }

    /// Returns whether a process can serve another turn: it has answered well, its stdin is open, and it
    /// runs only tasks that are to live on.
    fn may_serve_again(
        &self,
        worker: &Worker,
        stream: &StreamParser,
        end: &FollowEnd,
        stop: &watch::Receiver<StopLevel>,
    ) -> bool {
        let has_tasks = stream.background.has_running();
        let is_needed = match stream.background_work {
            // With `Wait`, the turn has waited for its own tasks: a task that still runs was kept by an earlier turn.
            BackgroundWork::Keep | BackgroundWork::Wait => self.settings.warm || has_tasks,
            BackgroundWork::End => self.settings.warm && !has_tasks,
        };
        is_needed
            && matches!(end, FollowEnd::Result)
            && has_answered(stream)
            && worker.stdin.is_some()
            && !stream.messages.are_on_the_way()
            && *stop.borrow() == StopLevel::None
    }

    /// Ends a process in a task of its own.
    pub(super) fn retire(&self, mut worker: Worker) {
        worker.note_ending();
        self.end_beside(worker, None);
    }

    /// Ends a process in a task of its own. The next turn of `agent` waits for its end, and so does whoever continues
    /// its session.
    pub(super) fn end_beside(&self, worker: Worker, agent: Option<AgentId>) {
        let (marker, stop) = (self.marker.clone(), self.stops.of_run());
        let session = worker.session.clone();
        let end = async move { worker.shut_down(&marker, &stop, ShutdownMode::Patiently).await };
        self.ending.end(session, agent, end);
    }

    /// Waits until no process that is being ended can interfere with a turn.
    pub(super) async fn wait_for_ending_processes(
        &self,
        input: &TurnInput,
        stop: &mut watch::Receiver<StopLevel>,
    ) -> Result<(), TurnFailure> {
        tokio::select! {
            biased;
            () = self.ending.ended(&input.session, &input.turn.agent) => Ok(()),
            () = stopped(stop) => {
                let why = "the turn was not started because it was stopped";
                Err(TurnFailure::new(FailureCause::Interrupted, why))
            }
        }
    }

    fn keep_for_next(&self, mut worker: Worker, input: &TurnInput, stream: &StreamParser) {
        worker.is_widened |= stream.approvals.has_given_rules;
        let session = input.session.after_turn(stream.message.clone());
        let agent = &input.turn.agent;
        let is_held = worker.background.has_running();
        match self.pool.keep(worker, agent, &session) {
            Ok(_) if is_held => {}
            Ok(number) => {
                let (pool, marker) = (Rc::clone(&self.pool), self.marker.clone());
                let ending = Rc::clone(&self.ending);
                let stop = self.stops.of_run();
                let longest = Duration::from_millis(self.settings.warm_for_ms);
                spawn_local(async move {
                    sleep(longest).await;
                    if let Some(worker) = pool.take_expired(number) {
                        ending.end(worker.session.clone(), None, async move {
                            worker.shut_down(&marker, &stop, ShutdownMode::Patiently).await;
                        });
                    }
                });
            }
            Err(worker) => self.retire(*worker),
        }
    }
}

/// Returns whether a turn has an answer.
fn has_answered(stream: &StreamParser) -> bool {
    let is_answer =
        |result: &TurnResult| !result.is_error && why_no_answer(stream, result).is_none();
    stream.result.as_ref().is_some_and(is_answer)
}

/// Returns the outcome of a turn. If it is `unsure` which answers its calls had, a suspended one says so.
fn with_doubt(mut outcome: TurnOutcome, unsure: bool) -> TurnOutcome {
    if let TurnOutcome::Failed(TurnFailure { suspended: Some(suspended), .. }) = &mut outcome {
        suspended.unsure = unsure;
    }
    outcome
}

/// Returns whether nothing that a process still does can matter: its answer is complete, and it has nothing running.
fn is_settled(
    worker: &Worker,
    stream: &StreamParser,
    end: &FollowEnd,
    stop: &watch::Receiver<StopLevel>,
) -> bool {
    matches!(end, FollowEnd::Result)
        && has_answered(stream)
        && !worker.may_leave_others
        && !stream.background.has_running()
        && stream.partials == 0
        && !stream.messages.are_on_the_way()
        && *stop.borrow() == StopLevel::None
}

/// Reads the cost of background tasks that end with the turn. They are not stopped one by one, because Claude Code
/// would begin a turn for each to tell the model. Their process is ended at once.
async fn read_cost_of_tasks(
    worker: &mut Worker,
    stream: &mut StreamParser,
    stop: &watch::Receiver<StopLevel>,
) {
    if stream.background_work != BackgroundWork::End || !stream.background.has_running() {
        return;
    }
    if worker.command(&message::get_usage(message::FINAL_USAGE), COST_TIMEOUT).await {
        worker.read_until(stream, stop, COST_TIMEOUT, StreamParser::has_final_cost).await;
    }
}

/// Interrupts a turn that is cut off, and reads its cost.
async fn interrupt(
    worker: &mut Worker,
    stream: &mut StreamParser,
    stop: &watch::Receiver<StopLevel>,
) {
    if stream.events == 0 || worker.process.has_ended() {
        return;
    }
    let lines = message::interrupt() + &message::get_usage(message::FINAL_USAGE);
    if *stop.borrow() != StopLevel::Now && worker.command(&lines, COST_TIMEOUT).await {
        let is_refused =
            |stream: &StreamParser| stream.answered_requests.refusal(message::INTERRUPT).is_some();
        let is_done = |stream: &StreamParser| stream.has_settled() || is_refused(stream);
        worker.read_until(stream, stop, COST_TIMEOUT, is_done).await;
    }
}
