//! The agent that a retry begins with: as it was before the turn or the advance that failed it.
//!
//! Some of its counts begin anew, others stay.

use super::{Agent, AgentExecution, AgentWait, StepStage};
use crate::approval::StepApprovals;
use crate::graph_execution::WaitResult;
use crate::id::{AgentId, SessionId};
use crate::program_execution::LostRequest;
use crate::time::Timestamp;
use crate::turn::FailureCause;

impl Agent {
    /// Keeps the agent as it is for a retry, unless an earlier record has done so.
    pub(crate) fn keep_for_retry(&mut self) {
        if self.retry_point.is_none() {
            self.retry_point = Some(Box::new(self.clone()));
        }
    }

    /// Returns the agent that a retry begins with: where it failed, or idle if it was a role. `None` for any other
    /// that ended well.
    pub(crate) fn take_for_retry(&mut self, has_failed: bool) -> Option<Box<Self>> {
        let mut kept = match self.retry_point.take() {
            Some(kept) if has_failed => kept,
            _ if self.mailbox().is_some() => Box::new(self.clone()),
            _ => return None,
        };
        // The identities up to here are used, and what was spent in open calls stays spent.
        (kept.step, kept.turn) = (self.step, self.turn);
        kept.cost_usd = self.cost_usd;
        kept.stack.clone_from(&self.stack);
        kept.last_turn_ended = self.last_turn_ended;
        Some(kept)
    }

    /// Makes the agent live again. Its restarts, its reminders and the turns of its step are counted from zero, and its
    /// session begins where its turn did.
    pub(crate) fn live_again(&mut self, session: SessionId, at: Timestamp) {
        self.restarts.clear();
        self.throttles = 0;
        if self.last_failure == Some(FailureCause::SessionLost) {
            self.lose_session();
        }
        self.script_steps = 0;
        // The step starts over, so raymond does not count the turns whose replies it refused.
        if matches!(self.stage, StepStage::State { .. }) {
            self.visits.take_back(&self.visited(self.prompt()), self.reminders);
        }
        self.reminders = 0;
        self.reminder = None;
        self.approvals = StepApprovals::default();
        self.hold = None;
        self.orders.is_ending = false;
        // It was over when the agent failed, or ends without effect.
        self.orders.visit = None;
        self.retry_point = None;
        self.since = at;
        self.retry_turn(session);
        if let StepStage::Waiting(AgentWait::Join(pending)) = &mut self.stage {
            pending.since = at;
        }
        match &mut self.execution {
            AgentExecution::Program(program) => {
                if program.position.ending.take().is_some() {
                    program.position.activity = None;
                }
            }
            AgentExecution::Role(mailbox) => mailbox.released = false,
            AgentExecution::Prompts | AgentExecution::Graph(_) | AgentExecution::Other(_) => {}
        }
    }

    /// Returns the number of the child that failed it, if it waited for a single one.
    pub fn failed_wait(&self) -> Option<u32> {
        let has_failed = matches!(self.wait_result(), Some(WaitResult::Failed(_)));
        (has_failed && self.mailbox().is_none()).then_some(self.forked_count)
    }

    /// Returns the requests of its program that came to nothing since its last advance.
    pub fn lost_requests(&self) -> impl Iterator<Item = &LostRequest> {
        let requests = self.program().into_iter().flat_map(|own| own.requests.values());
        requests.filter_map(|asked| asked.lost.as_deref())
    }

    /// Returns whether it failed together with that child, so that neither is retried alone.
    pub fn failed_with(&self, child: &AgentId) -> bool {
        if child.parent() != Some(self.id.as_str()) {
            return false;
        }
        let number = child.number();
        let joins = self.pending_join().is_some()
            && self.unjoined.numbers(self.join_depth()).any(|own| own == number);
        joins
            || self.failed_wait() == Some(number)
            || self.lost_requests().any(|lost| lost.agent == *child)
    }
}
