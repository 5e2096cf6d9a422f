//! The turn of an agent that was ended while tool calls needed approval, and goes on after the answers.

use super::{Agent, StepStage};
use crate::domain::approval::PendingApproval;
use crate::domain::id::MessageId;

impl Agent {
    /// Returns the approvals that wait for an answer: of the turn that runs, or of one that was ended.
    pub fn open_approvals(&self) -> impl Iterator<Item = &PendingApproval> {
        self.approvals.open(self.turn)
    }

    /// Returns whether its next turn waits for the approval of tool calls.
    pub fn awaits_approval(&self) -> bool {
        self.approvals.hold_next_turn()
    }

    /// Ends its turn, which goes on in the next one in the same session. These calls had no answer; if that is `unsure`,
    /// those that were allowed may have run.
    pub(in crate::domain) fn suspend_turn(
        &mut self,
        message: Option<MessageId>,
        calls: &[String],
        unsure: bool,
    ) {
        let turn_session = match &mut self.stage {
            StepStage::Evaluation { proposal, .. } => &mut proposal.session,
            StepStage::State { .. }
            | StepStage::Task(_)
            | StepStage::Waiting(_)
            | StepStage::WaitOver(_) => &mut self.session,
        };
        *turn_session = turn_session.after_turn(message);
        self.approvals.suspend(self.turn, calls, unsure);
        self.turn = self.turn.saturating_add(1);
        self.end_timed_hold();
    }

    /// Lets the turn that was ended go on, with the answers in its prompt.
    pub(in crate::domain) fn resume_suspended(&mut self) {
        self.reminder = Some(self.approvals.resume());
    }
}
