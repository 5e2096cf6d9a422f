//! The reducer: the changes that an event makes to a run, and the effects that follow.
//!
//! Live runs and replay share this one path. It checks first and changes afterwards, so a refused event leaves the run
//! as it was. No event makes it panic.

use std::collections::BTreeMap;

use crate::agent::{Agent, AgentSpec};
use crate::apply::advance::{
    TransitionEffect, advanced, count_end_at_parent, end_wait_of_parent, facts_seen,
    fail_requests_of, program_defined, program_started, release, role_delegated, role_requested,
    role_responded, take_transition,
};
use crate::apply::join::{
    approval_answered, approval_asked, join_begun, join_finished, limit_reached, question_answered,
    question_timed_out, run_paused, run_resumed, turn_suspended,
};
use crate::apply::retry::{agents_retried, command_received, messages_taken, run_branched};
use crate::approval::ApprovalVerdict;
use crate::budget::{BudgetShare, EndedCall};
use crate::event::{
    AgentFailed, AgentParked, Event, Record, RunStarted, StepFinished, TransitionProposed,
    TurnFailed, TurnHeld, TurnRejected,
};
use crate::fact::KnownFacts;
use crate::host::PlacedAgent;
use crate::id::{AgentId, InvalidName, MessageId, StateName, StepMode};
use crate::money::Usd;
use crate::refusal::{NAMED_PER_RUN, ToolRefusals};
use crate::run::{AgentEnding, FinishedAgent, Run, RunStatus, SNAPSHOT_VERSION, UnbilledTurn};
use crate::session::Session;
use crate::time::Timestamp;
use crate::transition::{Transition, TransitionProposal};
use crate::turn::{FailureCause, TurnId};

mod advance;
mod join;
mod retry;

/// The reason an event cannot happen to a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The record is not the next record of the run.
    #[error("record {found} cannot follow record {last}")]
    OutOfOrder {
        /// The last record of the run.
        last: u64,
        /// The record that was offered.
        found: u64,
    },
    /// The first record has to start the run, and no other may.
    #[error("a run starts once, with its first record")]
    Start,
    /// There is no such live agent.
    #[error("no live agent {0}")]
    NoAgent(AgentId),
    /// The agent has moved on since: a late or repeated answer changes nothing.
    #[error("{offered} is not the next turn: {due} is")]
    Stale {
        /// The turn the event is about.
        offered: TurnId,
        /// The pending turn.
        due: TurnId,
    },
    /// The event is about a graph, but the agent is in none, or the event does not fit its graph execution.
    #[error("the event does not fit the agent: {0}")]
    Graph(String),
    /// The event is about a program, and does not fit the agent.
    #[error("the event does not fit the agent: {0}")]
    Program(String),
    /// The event is about a join, and does not fit the agent.
    #[error("the event does not fit the agent: {0}")]
    Join(String),
    /// The transition leads to a folder that there cannot be.
    #[error("the event does not fit the run: {0}")]
    Scope(InvalidName),
    /// The agent has not ended in a way that allows a retry.
    #[error("{0} cannot be retried")]
    NotRetryable(AgentId),
    /// No question waits for this answer.
    #[error("{0} waits for no answer")]
    NotAsked(AgentId),
    /// The transition opens a session, but the event does not name one.
    #[error("the event names no session for a transition that opens one")]
    NoSession,
}

/// Starts a run from its first record.
///
/// # Errors
/// [`ApplyError`] if the record is not a start this program understands.
pub fn begin(record: &Record) -> Result<(Run, Vec<Effect>), ApplyError> {
    let Event::RunStarted(started) = &record.event else { return Err(ApplyError::Start) };
    let RunStarted {
        workflow_id,
        scope_dir,
        folder,
        entry,
        session,
        variables,
        definition,
        options,
        settings,
    } = &**started;
    if record.seq != 1 {
        return Err(ApplyError::OutOfOrder { last: 0, found: record.seq });
    }
    let spec = AgentSpec {
        folder: folder.clone(),
        variables: variables.clone(),
        options: options.clone(),
        ..AgentSpec::plain(entry.clone())
    };
    let main = Agent::from_spec(AgentId::main(), spec, session.clone(), record.at);
    let effects = vec![Effect::Proceed(main.id.clone())];
    let mut run = Run {
        version: SNAPSHOT_VERSION,
        seq: 1,
        workflow_id: workflow_id.clone(),
        scope_dir: scope_dir.clone(),
        folder: folder.clone(),
        status: RunStatus::Running,
        pause: None,
        limited_until: None,
        total_cost_usd: Usd::ZERO,
        given_usd: Usd::ZERO,
        refused_tools: ToolRefusals::default(),
        max_turn_costs_usd: BTreeMap::new(),
        shares: BTreeMap::new(),
        closed_shares: BTreeMap::new(),
        ended_calls: Vec::new(),
        settings: settings.clone(),
        branch: None,
        agents: [main].into_iter().collect(),
        used_answers: BTreeMap::new(),
        approvals_asked: 0,
        approval_rules: Vec::new(),
        worktrees: BTreeMap::new(),
        definitions: definition
            .iter()
            .map(|source| (source.program.clone(), (**source).clone()))
            .collect(),
        facts: KnownFacts::default(),
        finished: Vec::new(),
    };
    begin_share(&mut run, &AgentId::main(), options.budget_usd);
    take_homes(&mut run, &record.placed);
    Ok((run, effects))
}

/// Applies one more record to a run.
///
/// # Errors
/// [`ApplyError`] if it cannot happen now; the run is then as it was.
pub fn apply(run: &mut Run, record: &Record) -> Result<Vec<Effect>, ApplyError> {
    if run.seq.checked_add(1) != Some(record.seq) {
        return Err(ApplyError::OutOfOrder { last: run.seq, found: record.seq });
    }
    let effects = match &record.event {
        Event::RunStarted(_) => return Err(ApplyError::Start),
        Event::StepFinished(event) => step_finished(run, event, record.at)?,
        Event::TransitionProposed(event) => transition_proposed(run, event)?,
        Event::GraphAdvanced(event) => advanced(run, &event.view(), record.at)?,
        Event::ProgramAdvanced(event) => advanced(run, &event.view(), record.at)?,
        Event::LanguageAdvanced(event) => advanced(run, &event.view(), record.at)?,
        Event::QuestionAnswered(event) => question_answered(run, event)?,
        Event::QuestionTimedOut(event) => question_timed_out(run, event)?,
        Event::ApprovalAsked(event) => approval_asked(run, event, record.at)?,
        Event::ApprovalAnswered(event) => approval_answered(run, event)?,
        Event::TurnSuspended(event) => turn_suspended(run, event)?,
        Event::ProgramDefined(event) => program_defined(run, event),
        Event::ProgramStarted(event) => program_started(run, event)?,
        Event::ProgramLogged(event) => due(run, &event.turn).map(|_| Vec::new())?,
        Event::RoleRequested(event) => role_requested(run, event, record.at)?,
        Event::RoleResponded(event) => role_responded(run, event, record.at)?,
        Event::RoleDelegated(event) => role_delegated(run, event, record.at)?,
        Event::JoinBegun(event) => join_begun(run, event, record.at)?,
        Event::JoinFinished(event) => join_finished(run, event)?,
        Event::FactsSeen { changes } => facts_seen(run, changes),
        Event::TurnHeld(event) => turn_held(run, event)?,
        Event::TurnRejected(event) => turn_rejected(run, event)?,
        Event::TurnFailed(event) => turn_failed(run, event, record.at)?,
        Event::AgentFailed(event) => agent_failed(run, event)?,
        Event::AgentsRetried { agents } => agents_retried(run, agents, record.at)?,
        Event::AgentsPlaced { .. } => {
            let live =
                record.placed.iter().filter(|placement| run.agents.contains_key(&placement.agent));
            live.map(|placement| Effect::Proceed(placement.agent.clone())).collect()
        }
        Event::CostCounted { turn, cost } => cost_counted(run, turn, cost.amount)?,
        Event::AgentParked(event) => agent_parked(run, event)?,
        Event::LimitReached { until, .. } => limit_reached(run, *until),
        Event::RunBranched(event) => run_branched(run, event)?,
        Event::RunPaused { pause } => run_paused(run, pause),
        Event::RunResumed { settings } => run_resumed(run, settings),
        Event::CommandReceived { id, command } => command_received(run, id, command, record.at),
        Event::MessagesTaken { turn, message } => messages_taken(run, turn, message.as_ref())?,
    };
    if let Some(cost) = record.event.cost() {
        run.refused_tools.add_all(&cost.refused_tools, NAMED_PER_RUN);
        let agent = record.event.agent().and_then(|agent| run.agents.get_mut(agent));
        if let Some(agent) = agent {
            agent.last_turn_ended = Some(record.at);
            agent.given_reply = None;
            if !matches!(record.event, Event::TurnFailed(_)) {
                agent.orders.forget_taken();
            }
        }
    }
    if let Some(kept) = &record.kept_session
        && let Some(agent) = record.event.agent().and_then(|agent| run.agents.get_mut(agent))
    {
        agent.note_kept(kept);
    }
    if let Some(snapshot) = &record.snapshot {
        run.worktrees.insert(snapshot.tree.clone(), snapshot.outcome.clone());
    }
    take_homes(run, &record.placed);
    run.seq = record.seq;
    Ok(effects)
}

/// Gives agents the hosts that a record says.
pub fn take_homes(run: &mut Run, placed: &[PlacedAgent]) {
    for placement in placed {
        if let Some(agent) = run.agents.get_mut(&placement.agent) {
            agent.spec.working_dir.home = placement.home();
        }
    }
}

/// Returns the agent of a turn, if that turn is still due.
fn due<'run>(run: &'run mut Run, turn: &TurnId) -> Result<&'run mut Agent, ApplyError> {
    let agent =
        run.agents.get_mut(&turn.agent).ok_or_else(|| ApplyError::NoAgent(turn.agent.clone()))?;
    let due = agent.turn_id();
    if due == *turn { Ok(agent) } else { Err(ApplyError::Stale { offered: turn.clone(), due }) }
}

fn step_finished(
    run: &mut Run,
    event: &StepFinished,
    at: Timestamp,
) -> Result<Vec<Effect>, ApplyError> {
    let period_of_run = run.settings.supervision.period_ms;
    let agent = due(run, &event.turn)?;
    let opened = match (&event.transition, &event.new_session) {
        (Transition::Result { .. }, Some(session)) if event.restarted.is_some() => {
            Some(session.clone())
        }
        (Transition::Goto { .. } | Transition::Ask { .. }, _) => None,
        (Transition::Fork { .. }, None) if !event.children.is_empty() => None,
        (Transition::Result { .. }, _) if event.restarted.is_none() => None,
        (_, None) => return Err(ApplyError::NoSession),
        (_, Some(session)) => Some(session.clone()),
    };
    let folder = agent.folder_at(event.transition.named_scope()).map_err(ApplyError::Scope)?;
    for group in &event.children {
        agent.folder_at(group.scope.as_ref()).map_err(ApplyError::Scope)?;
    }
    if !event.without_turn {
        agent.count_turn(event.cost.amount);
        agent.note_reply(event.message.clone());
    }
    if event.without_turn && event.state.steps() == Some(StepMode::Tagged) {
        agent.script_steps = agent.script_steps.saturating_add(1);
    }
    if event.restarted.is_some() {
        agent.script_steps = 0;
        agent
            .forget_restarts(agent.spec.options.supervision.period_ms.unwrap_or(period_of_run), at);
    }
    let roles = agent.roles().cloned().collect();
    agent.execution.leave();
    let outcome = take_transition(agent, event, opened, folder.as_ref(), at);
    let id = event.turn.agent.clone();
    if !event.without_turn {
        spend(run, &id, event.prompt(), event.cost.amount, EstimateUpdate::Yes);
    }
    let mut released = release(run, roles);
    let effects = match outcome {
        TransitionEffect::GoesOn => vec![Effect::Proceed(id)],
        TransitionEffect::Asked => vec![Effect::Ask(id)],
        TransitionEffect::Dropped(frames) => {
            let text = format!(
                "<reset> in {} dropped {frames} pending return{}: the callers get no answer",
                event.state,
                if frames == 1 { "" } else { "s" },
            );
            vec![Effect::Warn { agent: id.clone(), text }, Effect::Proceed(id)]
        }
        TransitionEffect::Forked(children) => {
            let mut effects = vec![Effect::Proceed(id)];
            for child in children {
                begin_share(run, &child.id, child.spec.options.budget_usd);
                effects.push(Effect::Proceed(child.id.clone()));
                run.agents.insert(child);
            }
            effects
        }
        TransitionEffect::Ended { payload, structured } => retire(
            run,
            id,
            AgentEnding::Result(payload),
            AgentEndDetails { cause: None, failed_in: None, structured },
        ),
    };
    released.extend(effects);
    Ok(released)
}

// The effects of an event: `apply` collects them, and the supervisor performs them.
//
// After a crash an effect may be performed a second time. Each is therefore idempotent by the identity of the step it
// names.

/// An action of the supervisor once a record is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Make sure that this agent has an actor, and let it take its next turn.
    Proceed(AgentId),
    /// This agent waits for a person's answer.
    Ask(AgentId),
    /// The turn of this agent was ended, and goes on after a person has approved its calls.
    AwaitApproval(AgentId),
    /// Tell a running turn whether a tool call may run, or that a person is asked about it.
    TellApproval {
        /// The agent whose turn runs.
        agent: AgentId,
        /// The id of the call.
        call: String,
        /// The answer; `None` if a person is asked.
        verdict: Option<ApprovalVerdict>,
    },
    /// Tell the turn of an agent something, if it runs. Otherwise its next prompt does.
    TellMessage {
        agent: AgentId,
        /// The id by which the turn shows that it has read it.
        id: MessageId,
        /// The text, as the model gets it.
        text: String,
    },
    /// This agent has ended: stop its actor.
    Retire(AgentId),
    /// This agent was ended early: stop its processes and its actor.
    Discard(AgentId),
    /// A person ends this agent: stop what runs of it, and then record its end.
    StopAgent(AgentId),
    /// Warn people.
    Warn {
        /// The agent it is about.
        agent: AgentId,
        /// The warning: the event, and the reason it is probably a mistake.
        text: String,
    },
    /// The run is paused: start no turn, let running ones finish.
    Hold,
    /// A pause was requested: as above, and turns that still run after a while are cancelled.
    Stop,
    /// No turn starts before the usage limit resets.
    AwaitLimit,
    /// All agents have ended because one failed: cancel what still runs.
    Abort,
    /// The last agent has ended.
    End,
}

// Calls with a budget: what is spent in them, and what is kept of them when their callers end.

/// Keeps the calls of an agent that has ended for the agents it leaves, and forgets those that no live agent is in.
fn keep_calls(run: &mut Run, ended: &Agent) {
    run.ended_calls.extend(EndedCall::left_by(ended));
    let agents = &run.agents;
    run.ended_calls.retain(|call| agents.unordered().any(|agent| call.counts(&agent.id)));
}

/// Counts what an agent has spent to the calls of the agents it descends from. To its own calls it has counted it
/// itself, before the transition that may end one of them.
fn count_to_calls_of_ancestors(run: &mut Run, agent: &AgentId, cost: Usd) {
    let mut child = None;
    for id in agent.lineage() {
        if let Some(below) = child
            && let Some(caller) = run.agents.named_mut(id)
        {
            caller.count_to_calls(caller.depth_of(below), cost);
        }
        child = Some(id);
    }
    for call in run.ended_calls.iter_mut().filter(|call| call.counts(agent)) {
        call.budget.spent_usd += cost;
    }
}

// Ends of agents: with a result, with an error, or with an error that ends the run.

fn agent_failed(run: &mut Run, event: &AgentFailed) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    agent.note_failure(event.cause);
    agent.keep_for_retry();
    agent.count_turn(event.cost.amount);
    let estimate = EstimateUpdate::of_failed_turn(event.cost.estimated, event.cost.amount);
    spend(run, &event.turn.agent, &event.state, event.cost.amount, estimate);
    let ending = AgentEnding::Error(event.error.clone());
    let failed_in = Some(event.state.clone());
    let retirement = AgentEndDetails { cause: Some(event.cause), failed_in, structured: false };
    let mut effects = retire(run, event.turn.agent.clone(), ending, retirement);
    if event.ends_run {
        end_all(run, &event.turn.agent);
        effects.push(Effect::Abort);
    }
    Ok(effects)
}

/// Ends all other agents because one failed.
fn end_all(run: &mut Run, culprit: &AgentId) {
    let others = run.agents.drain();
    run.shares.clear();
    run.ended_calls.clear();
    run.finished.extend(others.into_iter().map(|agent| FinishedAgent {
        retryable: Some(Box::new(agent.clone())),
        ending: AgentEnding::Error(format!(
            "ended in {} because {culprit} failed, which ends the run (on_exhausted: fail-run)",
            agent.shown_state()
        )),
        unbilled_turn: Some(UnbilledTurn::of(&agent)),
        failed_folder: agent.folder(),
        untold: agent.orders.untold(),
        id: agent.id,
        state: Some(agent.spec.first_place().clone()),
        folder: agent.spec.folder,
        failed_in: Some(agent.current_state),
        cause: Some(FailureCause::Interrupted),
        structured: false,
        variables: None,
        parent_notified: false,
        cost_usd: agent.cost_usd,
    }));
    run.update_status();
}

/// Counts the cost of a turn that was ended with the run.
fn cost_counted(run: &mut Run, turn: &TurnId, cost: Usd) -> Result<Vec<Effect>, ApplyError> {
    let owing = run
        .finished
        .iter_mut()
        .find(|ended| ended.unbilled_turn.as_ref().is_some_and(|unbilled| unbilled.turn == *turn));
    let ended = owing.ok_or_else(|| ApplyError::NoAgent(turn.agent.clone()))?;
    let unbilled = ended.unbilled_turn.take();
    ended.cost_usd += cost;
    if let Some(unbilled) = unbilled {
        spend(run, &turn.agent, &unbilled.state, cost, EstimateUpdate::No);
    }
    Ok(Vec::new())
}

/// Further facts about an agent's end.
struct AgentEndDetails {
    /// The kind of failure, if it was one.
    cause: Option<FailureCause>,
    /// The state it failed in, if it did.
    failed_in: Option<StateName>,
    /// The result is an object that was checked.
    structured: bool,
}

fn retire(
    run: &mut Run,
    id: AgentId,
    ending: AgentEnding,
    AgentEndDetails { cause, failed_in, structured }: AgentEndDetails,
) -> Vec<Effect> {
    let mut agent = run.agents.remove(&id);
    close_shares(run, &id);
    if let Some(agent) = &agent {
        keep_calls(run, agent);
    }
    let failed = match (&agent, &ending) {
        (Some(agent), AgentEnding::Error(error)) => fail_requests_of(run, agent, error),
        _ => None,
    };
    let notified = end_wait_of_parent(run, &id, &ending, structured).or(failed);
    let (variables, joins) = count_end_at_parent(run, agent.as_ref(), &ending);
    let has_failed = matches!(ending, AgentEnding::Error(_));
    run.finished.push(FinishedAgent {
        id: id.clone(),
        state: agent.as_ref().map(|agent| agent.spec.first_place().clone()),
        folder: agent.as_ref().and_then(|agent| agent.spec.folder.clone()),
        failed_folder: agent.as_ref().filter(|_| failed_in.is_some()).and_then(Agent::folder),
        failed_in,
        ending,
        structured,
        cause,
        cost_usd: agent.as_ref().map_or(Usd::ZERO, |agent| agent.cost_usd),
        unbilled_turn: None,
        variables,
        parent_notified: notified.is_some(),
        untold: agent.as_ref().map(|agent| agent.orders.untold()).unwrap_or_default(),
        retryable: None,
    });
    let kept = agent.as_mut().and_then(|agent| agent.take_for_retry(has_failed));
    if let Some(ended) = run.finished.last_mut() {
        ended.retryable = kept;
    }
    let mut effects = vec![Effect::Retire(id)];
    effects.extend(agent.iter().flat_map(Agent::warns_of_untold));
    let roles = agent.iter().flat_map(Agent::roles).cloned().collect();
    effects.extend(notified.into_iter().chain(joins).map(Effect::Proceed));
    effects.extend(release(run, roles));
    run.update_status();
    if run.agents.is_empty() {
        effects.push(Effect::End);
    }
    effects
}

// Accounting: a cost counts to the run, to the state it was spent in, and to every share and call it belongs to.

/// The choice whether a cost updates the estimate for turns in its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EstimateUpdate {
    Yes,
    No,
}

impl EstimateUpdate {
    /// Returns `No` for a failed turn if its cost is zero or was itself estimated.
    fn of_failed_turn(estimated: bool, cost: Usd) -> Self {
        if estimated || cost == Usd::ZERO { Self::No } else { Self::Yes }
    }
}

/// Counts the cost of a turn.
fn spend(run: &mut Run, agent: &AgentId, state: &StateName, cost: Usd, estimate: EstimateUpdate) {
    run.total_cost_usd += cost;
    count_to_calls_of_ancestors(run, agent, cost);
    for_each_share(run, agent, |share| share.spent_usd += cost);
    if estimate == EstimateUpdate::Yes {
        let most = run.max_turn_costs_usd.entry(state.clone()).or_default();
        *most = cost.max(*most);
    }
}

/// Counts a new agent in every share of its ancestors, and opens its own share if it is given one.
fn begin_share(run: &mut Run, child: &AgentId, limit: Option<Usd>) {
    if let Some(limit_usd) = limit {
        run.shares.insert(child.clone(), BudgetShare { limit_usd, spent_usd: Usd::ZERO, live: 0 });
    }
    for_each_share(run, child, |share| share.live = share.live.saturating_add(1));
}

/// Counts an agent's end; a share in which no agent lives any more is closed.
fn close_shares(run: &mut Run, ended: &AgentId) {
    for_each_share(run, ended, |share| share.live = share.live.saturating_sub(1));
    if !run.shares.is_empty() {
        for owner in ended.lineage() {
            if run.shares.get(owner).is_some_and(|share| share.live == 0) {
                let closed = run.shares.remove_entry(owner);
                run.closed_shares.extend(closed);
            }
        }
    }
}

fn for_each_share(run: &mut Run, agent: &AgentId, change: impl Fn(&mut BudgetShare)) {
    if run.shares.is_empty() {
        return;
    }
    for owner in agent.lineage() {
        if let Some(share) = run.shares.get_mut(owner) {
            change(share);
        }
    }
}

// Turns that do not end a step: reminded, retried, held back, or passed to an evaluator.

fn transition_proposed(
    run: &mut Run,
    event: &TransitionProposed,
) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    agent.count_turn(event.cost.amount);
    agent.note_reply(event.message.clone());
    agent.evaluate(TransitionProposal {
        transition: event.transition.clone(),
        implicit: event.implicit,
        output: event.output.clone(),
        evaluator: event.evaluator.clone(),
        session: Session::fresh(event.new_session.clone()),
    });
    spend(run, &event.turn.agent, &event.state, event.cost.amount, EstimateUpdate::Yes);
    Ok(vec![Effect::Proceed(event.turn.agent.clone())])
}

fn turn_held(run: &mut Run, event: &TurnHeld) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    let by = match event.reason.as_str() {
        "" => event.by.clone(),
        reason => format!("{}: {reason}", event.by),
    };
    agent.hold_for_plugin(by, event.until);
    Ok(vec![Effect::Proceed(event.turn.agent.clone())])
}

fn turn_rejected(run: &mut Run, event: &TurnRejected) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    agent.count_turn(event.cost.amount);
    agent.note_reply(event.message.clone());
    agent.turn = agent.turn.saturating_add(1);
    agent.reminders = agent.reminders.saturating_add(1);
    agent.reminder = Some(event.reminder.clone());
    spend(run, &event.turn.agent, &event.state, event.cost.amount, EstimateUpdate::Yes);
    Ok(vec![Effect::Proceed(event.turn.agent.clone())])
}

fn turn_failed(
    run: &mut Run,
    event: &TurnFailed,
    at: Timestamp,
) -> Result<Vec<Effect>, ApplyError> {
    let period_of_run = run.settings.supervision.period_ms;
    let agent = due(run, &event.turn)?;
    agent.count_cost(event.cost.amount);
    if let Some(session) = &event.session {
        if event.cause == FailureCause::SessionLost {
            agent.lose_session();
        }
        agent.retry_turn(session.clone());
    }
    agent.back_off(event.not_before);
    agent.forget_restarts(agent.spec.options.supervision.period_ms.unwrap_or(period_of_run), at);
    agent.note_failure(event.cause);
    if event.counts {
        agent.restarts.push(at);
    }
    let estimate = EstimateUpdate::of_failed_turn(event.cost.estimated, event.cost.amount);
    spend(run, &event.turn.agent, &event.state, event.cost.amount, estimate);
    Ok(vec![Effect::Proceed(event.turn.agent.clone())])
}

fn agent_parked(run: &mut Run, event: &AgentParked) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    agent.park(event.reason.clone());
    Ok(Vec::new())
}

#[cfg(test)]
pub(crate) mod tests;
