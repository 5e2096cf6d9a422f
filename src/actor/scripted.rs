//! Runs turns without any model: the replies come from the workflow's own script.

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::watch;

use super::runner::{Activity, Local, StepRunner, Stop};
use crate::domain::turn::{Cause, Failure, Reply, StepInput, StepOutcome, TurnId};
use crate::language::replies::Replies;
use crate::language::template;

/// A script, as a run uses it.
#[derive(Debug)]
pub struct Scripted {
    path: String,
    replies: Replies,
    stop: watch::Sender<Stop>,
}

impl Scripted {
    /// The replies of a workflow; `path` is named when they run out.
    #[must_use]
    pub fn new(path: String, replies: Replies) -> Self {
        Self { path, replies, stop: watch::Sender::new(Stop::No) }
    }

    async fn answer(&self, input: &StepInput) -> StepOutcome {
        let scripted = match self.replies.reply(&self.path, &input.state, input.visit) {
            Ok(scripted) => scripted,
            Err(error) => {
                return StepOutcome::Failed(Failure::new(Cause::Workflow, error.to_string()));
            }
        };
        let mut stop = self.stop.subscribe();
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(scripted.delay_ms)), if scripted.delay_ms > 0 => {}
            _ = stop.wait_for(|&told| told != Stop::No), if scripted.delay_ms > 0 => {
                let message = "the turn was ended because the run was told to stop";
                return StepOutcome::Failed(Failure::new(Cause::Interrupted, message));
            }
            () = std::future::ready(()), if scripted.delay_ms == 0 => {}
        }
        let filled =
            template::fill(&scripted.text, |name| input.values.get(name).map(String::as_str));
        StepOutcome::Replied(Reply {
            text: filled.text,
            cost: scripted.cost,
            duration_ms: scripted.delay_ms,
            message: None,
        })
    }
}

impl StepRunner for Scripted {
    fn run(self: Rc<Self>, input: StepInput, activity: Activity) -> Local<StepOutcome> {
        Box::pin(async move {
            activity("scripted");
            self.answer(&input).await
        })
    }

    fn begun(&self, _turns: Vec<TurnId>) -> Vec<TurnId> {
        Vec::new()
    }

    fn stop_all(&self, how: Stop) {
        self.stop.send_replace(how);
    }

    fn sweep(self: Rc<Self>, _keep: Vec<TurnId>) -> Local<usize> {
        Box::pin(std::future::ready(0))
    }
}
