//! Runs turns without any model: the replies come from the workflow's own script.
//!
//! Each turn leaves a stream, as one of Claude Code does.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::watch;

use super::runner::{LocalFuture, StepRunner, StopLevel, TurnNotice, TurnNoticeHandler};
use crate::domain::capacity;
use crate::domain::id::AgentId;
use crate::domain::settings::MaxProcs;
use crate::domain::turn::{FailureCause, TurnFailure, TurnId, TurnInput, TurnOutcome, TurnReply};
use crate::language::output::placeholder;
use crate::language::replies::ScriptedReplies;
use crate::language::template;
use crate::process::cancellation::CancellationTokens;
use crate::process::host;
use crate::process::scripted_stream::ScriptedStream;

/// A script, as a run uses it.
#[derive(Debug)]
pub struct ScriptedRunner {
    path: String,
    replies: ScriptedReplies,
    /// The directory for the streams of the turns.
    steps: PathBuf,
    capacity: usize,
    stops: CancellationTokens,
}

impl ScriptedRunner {
    /// Returns the replies of a workflow. `path` is named when they run out; `max_procs` turns may run at the same
    /// time, and leave their streams in `steps`.
    #[must_use]
    pub fn new(
        path: String,
        replies: ScriptedReplies,
        steps: PathBuf,
        max_procs: MaxProcs,
    ) -> Self {
        let capacity = match max_procs {
            MaxProcs::Auto => capacity::processes(host::cores(), None),
            MaxProcs::Count(count) => count,
        };
        Self { path, replies, steps, capacity, stops: CancellationTokens::default() }
    }

    /// Answers a turn, and writes its stream.
    async fn take_turn(&self, input: &TurnInput) -> TurnOutcome {
        let begun = ScriptedStream::begin(&self.steps, &input.turn, &input.prompt);
        let stream = match begun {
            Ok(stream) => stream,
            Err(failure) => return TurnOutcome::Failed(failure),
        };
        match self.answer(input).await {
            TurnOutcome::Replied(reply) => match stream.end(&reply) {
                Ok(()) => TurnOutcome::Replied(reply),
                Err(failure) => TurnOutcome::Failed(failure),
            },
            failed @ TurnOutcome::Failed(_) => failed,
        }
    }

    async fn answer(&self, input: &TurnInput) -> TurnOutcome {
        let folder = input.folder.as_ref();
        let scripted = match self.replies.reply(&self.path, folder, &input.state, input.visit) {
            Ok(scripted) => scripted,
            Err(error) => {
                return TurnOutcome::Failed(TurnFailure::new(
                    FailureCause::Workflow,
                    error.to_string(),
                ));
            }
        };
        let mut stop = self.stops.of_turn(&input.turn.agent);
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(scripted.delay_ms)), if scripted.delay_ms > 0 => {}
            () = wait_for_stop(&mut stop, input.limits.shutdown_ms), if scripted.delay_ms > 0 => {
                let message = "the turn was ended because the run was stopped";
                return TurnOutcome::Failed(TurnFailure::new(FailureCause::Interrupted, message));
            }
            () = std::future::ready(()), if scripted.delay_ms == 0 => {}
        }
        let filled = template::fill(&scripted.text, |name| placeholder(&input.values, name));
        TurnOutcome::Replied(TurnReply {
            text: filled.text,
            cost: scripted.cost,
            duration_ms: scripted.delay_ms,
            ..TurnReply::default()
        })
    }
}

/// Waits until the turn is to end: at once, or when its grace is over.
async fn wait_for_stop(stop: &mut watch::Receiver<StopLevel>, grace_ms: u64) {
    let _ = stop.wait_for(|&level| level != StopLevel::None).await;
    let grace = Duration::from_millis(grace_ms);
    let _ = tokio::time::timeout(grace, stop.wait_for(|&level| level > StopLevel::Patiently)).await;
}

impl StepRunner for ScriptedRunner {
    fn run(
        self: Rc<Self>,
        input: TurnInput,
        notices: TurnNoticeHandler,
    ) -> LocalFuture<TurnOutcome> {
        Box::pin(async move {
            notices(TurnNotice::Active("a script answers it"));
            let outcome = self.take_turn(&input).await;
            self.stops.forget(&input.turn.agent);
            outcome
        })
    }

    /// Returns none: a turn that was interrupted is answered again, and has not begun until then.
    fn begun_turns(&self, turns: Vec<TurnId>) -> Vec<TurnId> {
        ScriptedStream::discard(&self.steps, &turns);
        Vec::new()
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn stop(&self, agent: &AgentId) {
        self.stops.stop(agent);
    }

    fn stop_all(&self, how: StopLevel) {
        self.stops.stop_all(how);
    }

    fn sweep(self: Rc<Self>, _keep: Vec<TurnId>) -> LocalFuture<usize> {
        Box::pin(std::future::ready(0))
    }
}
