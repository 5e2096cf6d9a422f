//! The execution of an agent: its steps without a turn, its pending returns, its folder, and how records change it.
//!
//! An agent executes prompts alone, a graph or a program, or it is a role of a program.

use std::fmt;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::agent::{Agent, AgentSpec, AgentWait, AskedQuestion, StepStage, TurnHold};
use crate::approval::StepApprovals;
use crate::budget::CallBudget;
use crate::graph_execution::{
    GraphExecution, LanguagePosition, ProgramExecution, ProgramWait, RoleMailbox, RoleRequest,
    WaitResult,
};
use crate::id::{
    AgentId, Folder, InvalidName, MessageId, ScopePath, SessionId, StateKind, StateName, StepMode,
};
use crate::join::{PendingJoin, UnjoinedChildren};
use crate::money::Usd;
use crate::session::{KeptSession, Session, SessionOrigin};
use crate::time::Timestamp;
use crate::transition::{TransitionProposal, Variables};
use crate::turn::FailureCause;

/// The execution that an agent is in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentExecution {
    /// Its turns are asked prompts. A graph or a program that it has entered has not begun yet.
    #[default]
    Prompts,
    /// It executes a graph.
    Graph(Box<GraphExecution>),
    /// It executes a program.
    Program(Box<ProgramExecution>),
    /// It executes a state of another language.
    Other(Box<LanguagePosition>),
    /// It is a role of a program, and answers its requests.
    Role(Box<RoleMailbox>),
}

impl AgentExecution {
    /// Returns whether it is of prompts alone.
    pub fn is_prompts(&self) -> bool {
        matches!(self, Self::Prompts)
    }

    /// Returns the program's execution, to be changed.
    pub(crate) fn program_mut(&mut self) -> Option<&mut ProgramExecution> {
        if let Self::Program(program) = self { Some(program) } else { None }
    }

    /// Returns the mailbox of a role, to be changed.
    pub(crate) fn mailbox_mut(&mut self) -> Option<&mut RoleMailbox> {
        if let Self::Role(mailbox) = self { Some(mailbox) } else { None }
    }

    /// Returns whether its interpreter is given the results of waits, and continues where it waited.
    pub fn takes_results(&self) -> bool {
        match self {
            Self::Graph(_) | Self::Other(_) => true,
            Self::Prompts | Self::Program(_) | Self::Role(_) => false,
        }
    }

    /// Ends the execution of a state. A role stays a role.
    pub(crate) fn leave(&mut self) {
        match self {
            Self::Graph(_) | Self::Program(_) | Self::Other(_) => *self = Self::Prompts,
            Self::Prompts | Self::Role(_) => {}
        }
    }
}

impl Agent {
    /// Returns the execution of its graph, if that has begun.
    pub fn graph(&self) -> Option<&GraphExecution> {
        if let AgentExecution::Graph(graph) = &self.execution { Some(graph) } else { None }
    }

    /// Returns the execution of its program, if that has begun.
    pub fn program(&self) -> Option<&ProgramExecution> {
        if let AgentExecution::Program(program) = &self.execution { Some(program) } else { None }
    }

    /// Returns the agents that are roles of its program.
    pub fn roles(&self) -> impl Iterator<Item = &AgentId> {
        self.program().into_iter().flat_map(|program| program.handles.values())
    }

    /// Returns the wait of its program.
    pub fn program_wait(&self) -> Option<&ProgramWait> {
        self.program()?.position.wait.as_ref()
    }

    /// Returns its mailbox, if it is a role of a program.
    pub fn mailbox(&self) -> Option<&RoleMailbox> {
        if let AgentExecution::Role(mailbox) = &self.execution { Some(mailbox) } else { None }
    }

    /// Returns the request that it answers as a role.
    pub fn role_request(&self) -> Option<&RoleRequest> {
        self.mailbox()?.current.as_deref()
    }
}

// The work of an agent that raymond does itself: the steps of graphs, programs and scripts.
//
// A prompt whose reply a person has given is such a step, too.

impl Agent {
    /// Returns the kind of the state whose step is next, if raymond takes that itself, without a turn of Claude Code.
    /// An agent whose program waits has such a step, too.
    pub fn current_execution(&self) -> Option<StateKind> {
        if self.mailbox().is_some() {
            return None;
        }
        let is_free = || self.task().is_none() && self.proposal().is_none() && !self.waits();
        StateKind::of(&self.current_state).filter(|kind| match kind.steps() {
            StepMode::Asked => self.given_reply.is_some() && is_free(),
            StepMode::Executed | StepMode::Tagged => is_free(),
            StepMode::Watching => true,
        })
    }

    /// Returns the commit at which its worktree begins, if it has its own worktree and the fork named a commit.
    pub fn worktree_base(&self) -> Option<String> {
        let is_root = self.spec.working_dir.tree.as_ref() == Some(&self.id);
        self.spec.base.clone().filter(|_| is_root)
    }

    /// Returns whether its next step runs a script, which takes no turn.
    pub fn runs_script(&self) -> bool {
        self.current_execution() == Some(StateKind::Script)
    }

    /// Returns whether it runs a program, also while that waits.
    pub fn runs_program(&self) -> bool {
        self.current_execution() == Some(StateKind::Program)
    }

    /// Returns whether its state is looked at again at once, also while it waits.
    pub fn watches(&self) -> bool {
        self.current_execution().is_some_and(|kind| kind.steps() == StepMode::Watching)
    }

    /// Returns whether its next step is performed by raymond itself, without a turn of Claude Code.
    pub fn advances_itself(&self) -> bool {
        self.current_execution().is_some()
    }

    /// Returns whether its turns answer tasks of another agent: it is a role, or a graph has started it for one.
    pub fn has_only_tasks(&self) -> bool {
        self.mailbox().is_some() || (self.task().is_some() && !self.execution.takes_results())
    }

    /// Returns whether the prompt of its state is due, and nothing has been asked or waited for there yet.
    pub fn has_untouched_prompt(&self) -> bool {
        self.results().is_none()
            && self.task().is_none()
            && self.proposal().is_none()
            && self.reminder.is_none()
            && self.edited_prompt.is_none()
    }
}

// Pending returns: where callers go on once they get a `<result>`.

/// A pending return: the caller that gets the `<result>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnFrame {
    /// The caller's session.
    pub session: SessionId,
    /// The state the caller resumes in.
    pub state: StateName,
    /// The folder that the caller had gone to, from the run's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopePath>,
    /// The caller's last message, to which its session can be cut back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<MessageId>,
    /// The origin of that session, if the caller has had no turn in it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbegun: Option<SessionOrigin>,
    /// The checksum of the manifest under which an engine keeps the history of that session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Arc<str>>,
    /// The sessions whose history that session begins with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<SessionId>,
    /// The budget of the call, if the called state gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<CallBudget>,
}

impl ReturnFrame {
    /// Creates the return to a caller that resumes in a state, in its current session.
    pub(crate) fn of(caller: &Agent, state: StateName, budget: Option<CallBudget>) -> Self {
        let Session { id, origin, checkpoint, kept, ancestors } = caller.session.clone();
        let unbegun = (origin != SessionOrigin::Resumed).then_some(origin);
        let scope = caller.scope.clone();
        Self { session: id, state, scope, checkpoint, unbegun, kept, ancestors, budget }
    }

    /// Returns the caller's session as it is resumed.
    pub(crate) fn back(self) -> Session {
        let origin = self.unbegun.unwrap_or(SessionOrigin::Resumed);
        let Self { session: id, checkpoint, kept, ancestors, .. } = self;
        Session { id, origin, checkpoint, kept, ancestors }
    }

    /// Notes that an engine keeps a session, if that session is the caller's history.
    pub(crate) fn note_kept(&mut self, kept: &KeptSession) {
        let history = match &self.unbegun {
            None => Some(&self.session),
            Some(SessionOrigin::Branch { from, .. }) => Some(from),
            Some(SessionOrigin::Fresh | SessionOrigin::Rebuilt | SessionOrigin::Resumed) => None,
        };
        if history == Some(&kept.session_id) {
            self.kept = Some(Arc::clone(&kept.manifest));
        }
    }
}

// The folder of an agent's state, which is a separate scope.

impl Agent {
    /// Returns the folder of its state below the run's root, if it is not the root itself.
    pub fn folder(&self) -> Option<Folder> {
        match &self.scope {
            None => self.spec.folder.clone(),
            Some(scope) => scope.seen_from(None).ok().flatten(),
        }
    }

    /// Returns the folder that a path leads to from its state.
    ///
    /// # Errors
    /// [`InvalidName::BeyondRoot`].
    pub fn folder_at(&self, path: Option<&ScopePath>) -> Result<Option<Folder>, InvalidName> {
        let here = self.folder();
        path.map_or(Ok(here.clone()), |path| path.seen_from(here.as_ref()))
    }

    /// Returns its place, for people: its folder, if that is not the run's root, and its state there.
    pub fn shown_place(&self) -> StateName {
        self.place().shown_in(self.folder().as_ref())
    }

    /// Returns the name under which people see its state.
    pub fn shown_state(&self) -> StateName {
        self.current_state.shown_in(self.folder().as_ref())
    }

    /// Returns whether its result leaves the folder of its state: it ends the agent, or goes to a caller elsewhere.
    pub fn result_leaves_folder(&self) -> bool {
        self.stack.last().is_none_or(|frame| frame.scope != self.scope)
    }

    /// Goes to another folder.
    pub(crate) fn go_to(&mut self, folder: Option<&Folder>) {
        let is_first = folder == self.spec.folder.as_ref();
        self.scope = (!is_first).then(|| ScopePath::from_root(folder));
    }

    /// Returns the name under which the turns in a state are counted. Two folders can have states of one name.
    pub(super) fn visited(&self, state: &StateName) -> StateName {
        let Some(scope) = &self.scope else { return state.clone() };
        let name = format!("{}#{state}", scope.as_str().replace('/', "#").replace("..", ""));
        StateName::parse(&name).unwrap_or_else(|_| state.clone())
    }
}

// The changes of an agent from record to record: it enters states, waits, is held, and begins again.

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

    /// Notes that an engine keeps a session, if the agent can still continue that session.
    pub(crate) fn note_kept(&mut self, kept: &KeptSession) {
        self.session.note_kept(kept);
        self.stack.iter_mut().for_each(|frame| frame.note_kept(kept));
    }

    /// Prepares a retry of its turn, in a session that begins where the turn did.
    pub(crate) fn retry_turn(&mut self, session: SessionId) {
        let current = self.turn_session_mut();
        *current = current.branched(session);
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
        let session = self.turn_session_mut();
        *session = session.lost();
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

    /// Adds a cost of the agent itself, also to its calls that have not returned.
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

// The number of turns that an agent has had in each state.

/// The numbers of turns, sorted by state. There are few states, and thousands of agents: a list of the exact length
/// takes a third of the memory of a tree.
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

    /// Returns whether no turns were counted.
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
                counts.dedup_by(|later, earlier| later.0 == earlier.0);
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
