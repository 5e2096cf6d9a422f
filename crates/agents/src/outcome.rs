//! Decides the outcome of a turn, from the end of following and the stream, and ends the turn.
//!
//! A turn that was cancelled or took too long may still have answered. An error after the cancel is ignored. A result
//! does not count as an answer while background work runs that the turn waits for.

use std::fmt::Write as _;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use raymond_model::id::AgentId;
use raymond_model::supervision::TurnTimeouts;
use raymond_model::time::format_duration;
use raymond_model::turn::{FailureCause, SuspendedTurn, TurnFailure, TurnInput, TurnOutcome};
use raymond_model::turn_options::BackgroundWork;
use raymond_model::usage::ProcessSpending;
use raymond_store::fault::FaultPoint;
use tokio::sync::watch;
use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::background::TurnRemainder;
use crate::child::ProcessExit;
use crate::dialogue::{Dialogue, ZonedTime};
use crate::follow::FollowEnd;
use crate::host::{is_disk_full, timestamp};
use crate::process_runner::{ProcessRunner, WorkerTurn};
use crate::runner::TurnNotice;
use crate::transcript::{ProcessFiles, TurnFiles};
use crate::turn_progress::{TurnProgress, TurnResult};
use crate::worker::{ShutdownMode, StopLevel, Worker, stopped, write_within};

/// Returns the outcome of a turn; a failure names the process's stream among the `files`.
pub(super) fn outcome(
    end: FollowEnd,
    dialogue: &dyn Dialogue,
    files: &ProcessFiles,
    limits: TurnTimeouts,
) -> TurnOutcome {
    let mut outcome = judged(end, dialogue, files, limits);
    if let TurnOutcome::Failed(failure) = &mut outcome {
        let _ = write!(failure.message, "; see {}", files.stream.display());
        failure.refused_tools = dialogue.progress().refused.refusals();
        failure.unsettled = dialogue.progress().has_unknown_cost();
    }
    outcome
}

fn judged(
    end: FollowEnd,
    dialogue: &dyn Dialogue,
    files: &ProcessFiles,
    limits: TurnTimeouts,
) -> TurnOutcome {
    let (program, progress) = (dialogue.program_name(), dialogue.progress());
    let is_answer = |result: &TurnResult| !result.is_error && result.is_finished();
    let has_answer = progress.result.as_ref().is_some_and(is_answer);
    let unanswered = progress.approvals.unanswered();
    if !unanswered.is_empty() && !matches!(end, FollowEnd::Unreadable(_) | FollowEnd::Unauthorized)
    {
        return suspended(progress, unanswered);
    }
    let answered = has_answer && is_complete(&end, progress);
    let waited = progress.awaited_tasks();
    let failed = |cause, message: String| {
        let ProcessSpending { cost, usage } = progress.taken().clone();
        let waited = waited.as_deref().map(|tasks| format!("; it waited for {tasks}"));
        let message = message + &waited.unwrap_or_default();
        TurnOutcome::Failed(TurnFailure { cost, usage, ..TurnFailure::new(cause, message) })
    };
    match end {
        FollowEnd::Unreadable(error) => {
            failed(FailureCause::Output, format!("{program} cannot be followed: {error}"))
        }
        FollowEnd::Stopped if !answered => failed(
            FailureCause::Interrupted,
            "the turn was ended because the run was stopped".to_owned(),
        ),
        FollowEnd::TimedOut if !answered => {
            let longest = format_duration(limits.timeout_ms);
            let message =
                format!("{program} gave no result within {longest}; allow more with --timeout");
            failed(FailureCause::Timeout, message)
        }
        FollowEnd::Stalled if !answered => {
            let longest = format_duration(limits.idle_timeout_ms);
            let message =
                format!("{program} made no progress for {longest}; allow more with --idle-timeout");
            failed(FailureCause::Stall, message)
        }
        FollowEnd::NoOutput if !answered => {
            failed(FailureCause::Stall, format!("{program} did not acknowledge its prompt"))
        }
        FollowEnd::Exited(exit) if has_answer && !answered => {
            let cause =
                if exit == ProcessExit::Unseen { FailureCause::Lost } else { FailureCause::Crash };
            failed(cause, format!("{program} {exit} before its background work had ended"))
        }
        FollowEnd::Unauthorized if !answered => {
            let (cause, advice) = dialogue.refused_access();
            let message = "credentials (401 or 403, several times in a row)";
            failed(cause, format!("the API does not accept {program}'s {message}{advice}"))
        }
        FollowEnd::Exited(exit) => dialogue.judge(exit, &moment(progress), &|| files.stderr_tail()),
        FollowEnd::Result
        | FollowEnd::Stopped
        | FollowEnd::Parked
        | FollowEnd::TimedOut
        | FollowEnd::Stalled
        | FollowEnd::NoOutput
        | FollowEnd::Unauthorized => {
            dialogue.judge(ProcessExit::Unseen, &moment(progress), &|| files.stderr_tail())
        }
    }
}

/// Returns the outcome of a turn in which calls were left without an answer. It goes on after the answer, even if the
/// model has replied: it could only reply that it was not allowed to work.
fn suspended(progress: &TurnProgress, calls: Vec<String>) -> TurnOutcome {
    let ProcessSpending { cost, usage } = progress.taken().clone();
    let suspended = SuspendedTurn { calls, unsure: false, message: progress.message.clone() };
    TurnOutcome::Failed(TurnFailure {
        cost,
        usage,
        suspended: Some(Box::new(suspended)),
        ..TurnFailure::new(
            FailureCause::Unapproved,
            "the turn was ended while tool calls needed approval",
        )
    })
}

/// Returns whether a turn that has a result is complete. A process that has ended by itself begins no further turn,
/// even if it has announced one.
fn is_complete(end: &FollowEnd, progress: &TurnProgress) -> bool {
    match (end, progress.remainder()) {
        (FollowEnd::Result, Some(_))
        | (_, Some(TurnRemainder::Nothing))
        | (FollowEnd::Exited(_), Some(TurnRemainder::Announced)) => true,
        (_, None | Some(TurnRemainder::Announced | TurnRemainder::Turn | TurnRemainder::Tasks)) => {
            false
        }
    }
}

/// Returns the time at which the result was written, which may be long before it is read, in the local zone.
fn moment(progress: &TurnProgress) -> ZonedTime {
    let now = timestamp(SystemTime::now());
    let written = progress.result_written.filter(|written| *written <= now);
    ZonedTime { now: written.unwrap_or(now), zone: jiff::tz::TimeZone::system() }
}

// The end of a turn: its last costs are read, its process is kept or ended, its outcome is returned.
//
// A turn that is cut off is interrupted first, so that Claude Code reports its cost. Background tasks that
// still run are ended with the turn, or live on in the process, as the state says; only a
// process that waits with nothing to do can be given up for another.

/// The longest time to wait for the cost of a turn that is cut off.
const COST_TIMEOUT: Duration = Duration::from_secs(2);

impl ProcessRunner {
    /// Keeps the process for the next turn, or ends it, and returns the outcome of the turn.
    pub(super) async fn end_turn(
        &self,
        turn: WorkerTurn,
        end: FollowEnd,
        input: &TurnInput,
        notices: &impl Fn(TurnNotice<'_>),
        stop: &watch::Receiver<StopLevel>,
    ) -> TurnOutcome {
        let WorkerTurn { mut worker, mut dialogue, attached, .. } = turn;
        FaultPoint::RestBefore.reach();
        if matches!(end, FollowEnd::Result) {
            dialogue.progress_mut().finish_answer();
            read_cost_of_tasks(&mut worker, &mut *dialogue, stop).await;
        } else if !matches!(end, FollowEnd::Exited(_)) {
            dialogue.progress_mut().cut_off();
            // After an interrupt, Claude Code would answer a message that waits.
            if !dialogue.progress().messages.are_in_flight() {
                interrupt(&mut worker, &mut *dialogue, stop).await;
            }
        }
        let progress = dialogue.progress();
        for notice in &progress.notices {
            tracing::warn!("{}: {notice}", input.turn);
        }
        let has_tasks = !progress.background.running().is_empty();
        worker.may_leave_others |= attached || progress.used_tools || has_tasks;
        worker.spent = progress.total().clone();
        if progress.background_work != BackgroundWork::End {
            worker.background = progress.background.left_running();
        }
        if self.may_serve_again(&worker, &*dialogue, &end, stop) {
            worker.cut_back_stderr();
            let files = worker.files.clone();
            if progress.partials > 0 {
                worker.compact();
            }
            self.keep_for_next(worker, input, progress);
            return outcome(end, &*dialogue, &files, input.limits);
        }
        if is_settled(&worker, &*dialogue, &end, stop) {
            let files = worker.files.clone();
            worker.note_ending();
            self.end_beside(worker, Some(input.turn.agent.clone()));
            return outcome(end, &*dialogue, &files, input.limits);
        }
        let how = match end {
            FollowEnd::Result if has_tasks => ShutdownMode::Now,
            FollowEnd::Result => ShutdownMode::Patiently,
            _ => ShutdownMode::Soon,
        };
        worker.end(&self.marker, stop, how).await;
        let end = match worker.follower.read_to_end(&mut *dialogue).await {
            Err(error) if dialogue.progress().result.is_none() => FollowEnd::Unreadable(error),
            _ => end,
        };
        let progress = dialogue.progress();
        // Those that were read before are known already; to tell them again changes nothing.
        for message in progress.messages.read_since(0) {
            notices(TurnNotice::MessageRead(message));
        }
        if progress.partials > 0 {
            worker.compact();
        }
        if progress.result.is_none() && is_disk_full(&worker.files.stream) {
            dialogue.progress_mut().set_was_asked();
            // If the outcome cannot be recorded either, a later attempt learns of this by the mark.
            TurnFiles::of(&self.steps, &input.turn).mark_unkept();
        }
        // The raymond that started the process may have sent it an answer that it did not get to repeat.
        let unsure = attached && dialogue.progress().results == 0;
        with_doubt(outcome(end, &*dialogue, &worker.files, input.limits), unsure)
    }

    /// Returns whether a process can serve another turn: it has answered well, its stdin is open, and it
    /// runs only tasks that are to live on.
    fn may_serve_again(
        &self,
        worker: &Worker,
        dialogue: &dyn Dialogue,
        end: &FollowEnd,
        stop: &watch::Receiver<StopLevel>,
    ) -> bool {
        let progress = dialogue.progress();
        let has_tasks = progress.background.has_running();
        let is_needed = match progress.background_work {
            // With `Wait`, the turn has waited for its own tasks: a task that still runs was kept by an earlier turn.
            BackgroundWork::Keep | BackgroundWork::Wait => self.settings.warm || has_tasks,
            BackgroundWork::End => self.settings.warm && !has_tasks,
        };
        is_needed
            && matches!(end, FollowEnd::Result)
            && dialogue.has_answer()
            && worker.stdin.is_some()
            && !progress.messages.are_in_flight()
            && *stop.borrow() == StopLevel::None
    }

    /// Ends a process in a separate task.
    pub(super) fn retire(&self, mut worker: Worker) {
        worker.note_ending();
        self.end_beside(worker, None);
    }

    /// Ends a process in a separate task. The next turn of `agent` waits for its end, and so does any turn that
    /// continues its session.
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

    fn keep_for_next(&self, mut worker: Worker, input: &TurnInput, progress: &TurnProgress) {
        worker.is_widened |= progress.approvals.has_given_rules;
        let session = input.session.after_turn(progress.message.clone());
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
    dialogue: &dyn Dialogue,
    end: &FollowEnd,
    stop: &watch::Receiver<StopLevel>,
) -> bool {
    let progress = dialogue.progress();
    matches!(end, FollowEnd::Result)
        && dialogue.has_answer()
        && !worker.may_leave_others
        && !progress.background.has_running()
        && progress.partials == 0
        && !progress.messages.are_in_flight()
        && *stop.borrow() == StopLevel::None
}

/// Reads the cost of background tasks that end with the turn. They are not stopped one by one, because Claude Code
/// would begin a turn for each to tell the model. Their process is ended at once.
async fn read_cost_of_tasks(
    worker: &mut Worker,
    dialogue: &mut dyn Dialogue,
    stop: &watch::Receiver<StopLevel>,
) {
    let progress = dialogue.progress();
    if progress.background_work != BackgroundWork::End || !progress.background.has_running() {
        return;
    }
    if write_within(&mut worker.stdin, &dialogue.cost_request(), COST_TIMEOUT).await {
        let is_done = |dialogue: &dyn Dialogue| dialogue.progress().has_final_cost();
        worker.read_until(dialogue, stop, COST_TIMEOUT, is_done).await;
    }
}

/// Interrupts a turn that is cut off, and reads its cost.
async fn interrupt(
    worker: &mut Worker,
    dialogue: &mut dyn Dialogue,
    stop: &watch::Receiver<StopLevel>,
) {
    if dialogue.progress().events == 0 || worker.process.has_ended() {
        return;
    }
    let lines = dialogue.interrupt();
    if *stop.borrow() != StopLevel::Now
        && write_within(&mut worker.stdin, &lines, COST_TIMEOUT).await
    {
        let is_done = |dialogue: &dyn Dialogue| {
            dialogue.progress().has_settled() || dialogue.is_interrupt_refused()
        };
        worker.read_until(dialogue, stop, COST_TIMEOUT, is_done).await;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::claude::stream::StreamParser;
    use raymond_model::money::Usd;
    use raymond_model::supervision::SupervisionPolicy;

    fn after(end: FollowEnd, line: &str) -> TurnOutcome {
        let mut stream = StreamParser::default();
        stream.feed(line.as_bytes()).expect("a short line");
        let files = ProcessFiles::named(Path::new("steps"), "main-1-0");
        outcome(end, &stream, &files, SupervisionPolicy::default().limits())
    }

    const ANSWER: &str = "{\"type\":\"result\",\"is_error\":false,\"result\":\"hi\"}\n";
    const ERROR: &str = "{\"type\":\"result\",\"is_error\":true,\"subtype\":\"error_during_execution\",\"total_cost_usd\":0.5,\"modelUsage\":{\"opus\":{\"costUSD\":0.5}}}\n";

    #[test]
    fn answered_turn_counts_even_if_stopped_or_timed_out() {
        for end in [
            FollowEnd::Stopped,
            FollowEnd::TimedOut,
            FollowEnd::Stalled,
            FollowEnd::Exited(ProcessExit::Signal(15)),
        ] {
            assert!(matches!(after(end, ANSWER), TurnOutcome::Replied(_)));
        }
    }

    #[test]
    fn refused_credentials_fail_turn_unless_it_has_answered() {
        let TurnOutcome::Failed(failure) = after(FollowEnd::Unauthorized, ERROR) else {
            panic!("an answer")
        };
        assert_eq!(
            (failure.cause, failure.cost),
            (FailureCause::Authentication, Usd::from_dollars(0.5))
        );
        assert!(failure.message.contains("ANTHROPIC_API_KEY"), "{}", failure.message);
        assert!(matches!(after(FollowEnd::Unauthorized, ANSWER), TurnOutcome::Replied(_)));
    }

    #[test]
    fn turn_that_was_cut_off_is_judged_by_what_cut_it_off() {
        let cut = "{\"type\":\"result\",\"is_error\":false,\"result\":\"half\",\"terminal_reason\":\"aborted_streaming\"}\n";
        for (end, cause) in [
            (FollowEnd::Stopped, FailureCause::Interrupted),
            (FollowEnd::TimedOut, FailureCause::Timeout),
            (FollowEnd::Stalled, FailureCause::Stall),
            (FollowEnd::Exited(ProcessExit::Code(0)), FailureCause::Crash),
        ] {
            let TurnOutcome::Failed(failure) = after(end, cut) else { panic!("an answer") };
            assert_eq!(failure.cause, cause);
        }
    }

    #[test]
    fn refused_access_has_the_cause_that_the_program_names() {
        let retry = |error: &str| {
            format!(
                "{{\"type\":\"system\",\"subtype\":\"api_retry\",\"error_status\":403,\"error\":\"{error}\"}}\n"
            )
        };
        let limit = "{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"resetsAt\":1}}\n";
        for (lines, cause) in [
            (retry("authentication_failed"), FailureCause::Authentication),
            (retry("unknown"), FailureCause::Authentication),
            (retry("oauth_org_not_allowed"), FailureCause::Account),
            (retry("account_on_hold"), FailureCause::Account),
            (limit.to_owned() + &retry("unknown"), FailureCause::UsageLimit),
        ] {
            let TurnOutcome::Failed(failure) = after(FollowEnd::Unauthorized, &lines) else {
                panic!("an answer")
            };
            assert_eq!(failure.cause, cause, "{lines}");
        }
    }

    #[test]
    fn error_after_stop_is_billed_but_is_not_crash() {
        for (end, cause) in [
            (FollowEnd::Stopped, FailureCause::Interrupted),
            (FollowEnd::TimedOut, FailureCause::Timeout),
            (FollowEnd::Stalled, FailureCause::Stall),
        ] {
            let TurnOutcome::Failed(failure) = after(end, ERROR) else { panic!("an answer") };
            assert_eq!((failure.cause, failure.cost), (cause, Usd::from_dollars(0.5)));
            assert_eq!(failure.usage.total().cost_usd, failure.cost);
            assert!(failure.message.ends_with("; see steps/main-1-0.jsonl"));
        }
    }
}
