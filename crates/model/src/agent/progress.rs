//! The changes of an agent from record to record: it enters states, waits, is held, and begins again.
//!
//! The number of turns that an agent has had in each state.

use std::fmt;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::agent::{Agent, AgentSpec, AgentWait, AskedQuestion, StepStage, TurnHold};
use crate::approval::StepApprovals;
use crate::evaluation::TransitionProposal;
use crate::graph_execution::WaitResult;
use crate::id::{AgentId, MessageId, SessionId, StateName};
use crate::join::{PendingJoin, UnjoinedChildren};
use crate::money::Usd;
use crate::session::KeptSession;
use crate::session::Session;
use crate::time::Timestamp;
use crate::transition::Variables;
use crate::turn::FailureCause;

impl Agent {
    /// Enters a state: a new step, with its own variables.
    pub(crate) fn enter(
        &mut self,
        state: StateName,
        session: Session,
        variables: Variables,
        at: Timestamp,
    ) {
        self.current_state = state;
        self.session = session;
        self.variables = variables;
        self.execution.leave();
        self.next_step(at);
    }

    /// Begins a new step in the same state.
    pub(crate) fn next_step(&mut self, at: Timestamp) {
        self.step = self.step.saturating_add(1);
        self.turn = 0;
        self.reminders = 0;
        self.reminder = None;
        self.edited_prompt = None;
        self.approvals = StepApprovals::default();
        self.stage = StepStage::default();
        self.retry_point = None;
        self.end_timed_hold();
        self.since = at;
    }

    /// Restarts at its first state, and counts that as a restart at `at`.
    pub(crate) fn restart(&mut self, session: SessionId, not_before: Timestamp, at: Timestamp) {
        let AgentSpec { state, variables, .. } = (*self.spec).clone();
        self.scope = None;
        self.enter(state, Session::fresh(session), variables, at);
        self.stage = StepStage::first(self.spec.task.as_deref());
        self.unjoined = UnjoinedChildren::default();
        self.hold = Some(TurnHold::Backoff { until: not_before });
        self.restarts.push(at);
    }

    /// Waits for the answer to a question.
    pub(crate) fn wait_for_answer(&mut self, asked: AskedQuestion) {
        self.stage = StepStage::Waiting(AgentWait::Answer(Box::new(asked)));
    }

    /// Waits for the end of another agent.
    pub(crate) fn wait_for_agent(&mut self, other: AgentId) {
        self.stage = StepStage::Waiting(AgentWait::Agent(other));
    }

    /// Waits for agents it has forked.
    pub(crate) fn wait_for_join(&mut self, join: PendingJoin) {
        self.stage = StepStage::Waiting(AgentWait::Join(Box::new(join)));
    }

    /// Ends its wait with a result for its graph or program.
    pub(crate) fn end_wait(&mut self, result: WaitResult) {
        self.stage = StepStage::WaitOver(Box::new(result));
    }

    /// Ends its join: its state's prompt is due, with the outcomes of the agents it joined, or its graph is to be
    /// given them.
    pub(crate) fn end_join(&mut self, results: Arc<str>) {
        if self.execution.takes_results() {
            let list = serde_json::from_str(&results).unwrap_or_default();
            return self.end_wait(WaitResult::Done(list));
        }
        self.stage = StepStage::State { results: Some(results) };
    }

    /// Has the state's evaluator check a transition, in the next turn of the step.
    pub(crate) fn evaluate(&mut self, proposal: TransitionProposal) {
        let results = self.results().cloned();
        self.stage = StepStage::Evaluation { proposal: Box::new(proposal), results };
        self.turn = self.turn.saturating_add(1);
        self.reminder = None;
        self.end_timed_hold();
    }

    /// Holds its next turn back for a plug-in, at least as long as it is held already. A wait for a person stays.
    pub(crate) fn hold_for_plugin(&mut self, by: String, until: Timestamp) {
        if self.parked_reason().is_none() {
            let until = self.not_before().map_or(until, |earlier| earlier.max(until));
            self.hold = Some(TurnHold::Plugin { by, until });
        }
    }

    /// Holds a turn that failed back until it is run again; `None` for at once. A wait for a person stays.
    pub(crate) fn back_off(&mut self, until: Option<Timestamp>) {
        if self.parked_reason().is_none() {
            self.hold = until.map(|until| TurnHold::Backoff { until });
        }
    }

    /// Holds its next turn back until a person resumes the run.
    pub(crate) fn park(&mut self, reason: String) {
        self.hold = Some(TurnHold::Person { reason });
    }

    /// Ends a hold until a time; a wait for a person stays.
    pub(crate) fn end_timed_hold(&mut self) {
        self.hold.take_if(|hold| hold.until().is_some());
    }

    /// Lets an agent that waits for a person continue, with all its restarts.
    pub(crate) fn unpark(&mut self) {
        if self.parked_reason().is_some() {
            self.hold = None;
            self.restarts.clear();
        }
    }

    /// Notes the last message of its turn. An evaluator's message is not of the agent's own session.
    pub(crate) fn note_reply(&mut self, message: Option<MessageId>) {
        if self.proposal().is_none() {
            self.session = self.session.after_turn(message);
        }
    }

    /// Notes that an engine keeps a session, if it is one that the agent can still continue.
    pub(crate) fn note_kept(&mut self, kept: &KeptSession) {
        self.session.note_kept(kept);
        self.stack.iter_mut().for_each(|frame| frame.note_kept(kept));
    }

    /// Prepares a retry of its turn, in a session that begins where the turn did.
    pub(crate) fn retry_turn(&mut self, session: SessionId) {
        match &mut self.stage {
            StepStage::Evaluation { proposal, .. } => {
                proposal.session = proposal.session.branched(session);
            }
            StepStage::State { .. }
            | StepStage::Task(_)
            | StepStage::Waiting(_)
            | StepStage::WaitOver(_) => self.session = self.session.branched(session),
        }
        self.approvals.fail_turn(self.turn);
        self.turn = self.turn.saturating_add(1);
    }

    /// Notes the cause with which a turn failed. A turn that was ended or lost says nothing about the cause before it.
    /// One over which raymond itself fell says nothing, and leaves nothing.
    pub(crate) fn note_failure(&mut self, cause: FailureCause) {
        if cause == FailureCause::Panic {
            return;
        }
        let is_telling = !matches!(cause, FailureCause::Interrupted | FailureCause::Lost);
        if is_telling || self.last_failure.is_none() {
            self.throttles = self.failures_of(cause).saturating_add(1);
            self.last_failure = Some(cause);
        }
    }

    /// Returns the number of turns in a row that failed with a cause.
    pub fn failures_of(&self, cause: FailureCause) -> u32 {
        if self.last_failure == Some(cause) { self.throttles } else { 0 }
    }

    /// Notes that the session its next turn would continue no longer exists.
    pub(crate) fn lose_session(&mut self) {
        match &mut self.stage {
            StepStage::Evaluation { proposal, .. } => proposal.session = proposal.session.lost(),
            StepStage::State { .. }
            | StepStage::Task(_)
            | StepStage::Waiting(_)
            | StepStage::WaitOver(_) => self.session = self.session.lost(),
        }
    }

    /// Forgets the restarts that are older than the period in which they count.
    pub(crate) fn forget_restarts(&mut self, period_ms: u64, at: Timestamp) {
        self.restarts.retain(|&restart| at.since(restart) < period_ms);
    }

    /// Counts a turn that has ended, and its cost.
    pub(crate) fn count_turn(&mut self, cost: Usd) {
        let prompt = self.visited(self.prompt());
        self.visits.add(&prompt);
        self.script_steps = 0;
        (self.throttles, self.last_failure) = (0, None);
        self.count_cost(cost);
    }

    /// Counts a cost of its own, also to its calls that have not returned.
    pub(crate) fn count_cost(&mut self, cost: Usd) {
        self.cost_usd += cost;
        self.count_to_calls(self.stack.len(), cost);
    }

    /// Counts a cost to the outermost `depth` of its calls that have not returned.
    pub(crate) fn count_to_calls(&mut self, depth: usize, cost: Usd) {
        let budgets = self.stack.iter_mut().take(depth).filter_map(|frame| frame.budget.as_mut());
        budgets.for_each(|budget| budget.spent_usd += cost);
    }
}

/// The numbers of turns, sorted by state. There are few states, and thousands of agents: a list of the exact length takes
/// a third of the memory of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VisitCounts(Vec<(StateName, u32)>);

impl VisitCounts {
    /// Returns the number of turns in a state.
    pub fn of(&self, state: &StateName) -> u32 {
        self.place(state).map_or(0, |place| self.0[place].1)
    }

    /// Returns the states, sorted.
    pub fn states(&self) -> impl Iterator<Item = &StateName> {
        self.0.iter().map(|(state, _)| state)
    }

    /// Counts one more turn in a state.
    pub(crate) fn add(&mut self, state: &StateName) {
        match self.place(state) {
            Ok(place) => self.0[place].1 = self.0[place].1.saturating_add(1),
            Err(place) => {
                self.0.reserve_exact(1);
                self.0.insert(place, (state.clone(), 1));
            }
        }
    }

    /// Counts fewer turns in a state.
    pub(crate) fn take_back(&mut self, state: &StateName, turns: u32) {
        if let Ok(place) = self.place(state) {
            self.0[place].1 = self.0[place].1.saturating_sub(turns);
        }
    }

    /// Returns whether there was no turn.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn place(&self, state: &StateName) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.cmp(state))
    }
}

impl Serialize for VisitCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(state, count)| (state, count)))
    }
}

impl<'de> Deserialize<'de> for VisitCounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct VisitCountsVisitor;

        impl<'de> Visitor<'de> for VisitCountsVisitor {
            type Value = VisitCounts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of states to numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<VisitCounts, A::Error> {
                let mut counts = Vec::new();
                while let Some(entry) = map.next_entry::<StateName, u32>()? {
                    counts.push(entry);
                }
                counts.sort();
                counts.dedup_by(|one, other| one.0 == other.0);
                counts.shrink_to_fit();
                Ok(VisitCounts(counts))
            }
        }

        deserializer.deserialize_map(VisitCountsVisitor)
    }
}

#[cfg(test)]
mod visit_counts_tests {
    use super::*;

    #[test]
    fn counts_are_kept_by_state_and_read_back() {
        let state = |name: &str| StateName::parse(name).expect("a state");
        let mut counts = VisitCounts::default();
        assert!(counts.is_empty());
        for name in ["C.md", "A.md", "B.md", "A.md"] {
            counts.add(&state(name));
        }
        let of = |name: &str| counts.of(&state(name));
        assert_eq!([of("A.md"), of("B.md"), of("C.md"), of("D.md")], [2, 1, 1, 0]);
        let json = serde_json::to_string(&counts).expect("JSON");
        assert_eq!(json, r#"{"A.md":2,"B.md":1,"C.md":1}"#);
        assert_eq!(serde_json::from_str::<VisitCounts>(&json).expect("read"), counts);
    }
}
