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
use crate::domain::money::Usd;
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

    /// Begins a turn: begins its stream, and looks up its answer.
    fn begin(&self, input: &TurnInput) -> Result<ScriptedTurn, TurnFailure> {
        let stream = ScriptedStream::begin(&self.steps, &input.turn, &input.prompt)?;
        let folder = input.folder.as_ref();
        let scripted = self
            .replies
            .reply(&self.path, folder, &input.state, input.visit)
            .map_err(|error| TurnFailure::new(FailureCause::Workflow, error.to_string()))?;
        let filled = template::fill(&scripted.text, |name| placeholder(&input.values, name));
        Ok(ScriptedTurn {
            stream,
            text: filled.text,
            cost: scripted.cost,
            delay_ms: scripted.delay_ms,
            grace_ms: input.limits.shutdown_ms,
            stop: self.stops.of_turn(&input.turn.agent),
        })
    }
}

/// A turn that has begun. It does not keep the prompt, because thousands of turns may be waiting for their delays.
struct ScriptedTurn {
    stream: ScriptedStream,
    text: String,
    cost: Usd,
    delay_ms: u64,
    /// The time that the turn has to end by itself when the run is stopped, in milliseconds.
    grace_ms: u64,
    stop: watch::Receiver<StopLevel>,
}

impl ScriptedTurn {
    /// Waits for the delay, and ends the stream with the answer.
    async fn answer(mut self) -> Result<TurnReply, TurnFailure> {
        if self.delay_ms > 0 {
            self.stream.pause();
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(self.delay_ms)) => {}
                () = wait_for_stop(&mut self.stop, self.grace_ms) => {
                    let message = "the turn was ended because the run was stopped";
                    return Err(TurnFailure::new(FailureCause::Interrupted, message));
                }
            }
        }
        let reply = TurnReply {
            text: self.text,
            cost: self.cost,
            duration_ms: self.delay_ms,
            ..TurnReply::default()
        };
        self.stream.end(&reply).map(|()| reply)
    }
}

/// Waits until the turn is to end: at once, or when its grace is over.
pub(super) async fn wait_for_stop(stop: &mut watch::Receiver<StopLevel>, grace_ms: u64) {
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
        notices(TurnNotice::Active("a script answers it"));
        let begun = self.begin(&input);
        let agent = input.turn.agent;
        Box::pin(async move {
            let outcome = match begun {
                Ok(turn) => turn.answer().await,
                Err(failure) => Err(failure),
            };
            self.stops.forget(&agent);
            outcome.map_or_else(TurnOutcome::Failed, TurnOutcome::Replied)
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
