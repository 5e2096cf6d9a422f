//! The reducer: the changes an event makes to a run, and the effects that are due then.
//!
//! Live runs and replay share this one path. It checks first and changes after, so a refused event leaves the run
//! as it was. It never panics, whatever the event.
//!
//! Effects that are due after an event: collected by `apply`, performed by the supervisor.
//!
//! After a crash an effect may be performed a second time. Each is therefore idempotent by the identity of the
//! step it names.

use std::collections::BTreeMap;

use crate::agent::{Agent, AgentSpec};
use crate::apply::advance::advanced;
use crate::apply::approvals::{approval_answered, approval_asked, turn_suspended};
use crate::apply::branch::run_branched;
use crate::apply::ends::{AgentEndDetails, agent_failed, cost_counted, retire};
use crate::apply::join::{join_begun, join_finished};
use crate::apply::money::{EstimateUpdate, begin_share, spend};
use crate::apply::orders::{command_received, messages_taken};
use crate::apply::program::{
    facts_seen, program_defined, program_started, release, role_delegated, role_requested,
    role_responded,
};
use crate::apply::questions::{
    limit_reached, question_answered, question_timed_out, run_paused, run_resumed,
};
use crate::apply::retry::agents_retried;
use crate::apply::transitions::{TransitionEffect, take_transition};
use crate::apply::turns::{
    agent_parked, transition_proposed, turn_failed, turn_held, turn_rejected,
};
use crate::approval::ApprovalVerdict;
use crate::event::{Event, Record, RunStarted, StepFinished};
use crate::fact::KnownFacts;
use crate::host::PlacedAgent;
use crate::id::{AgentId, InvalidName, MessageId, StepMode};
use crate::money::Usd;
use crate::refusal::{NAMED_PER_RUN, ToolRefusals};
use crate::run::{AgentEnding, Run, RunStatus, SNAPSHOT_VERSION};
use crate::time::Timestamp;
use crate::transition::Transition;
use crate::turn::TurnId;

mod advance;
mod approvals;
mod branch;
mod calls;
mod ends;
mod join;
mod money;
mod orders;
mod program;
mod questions;
mod retry;
mod transitions;
mod turns;

/// The reason an event cannot happen to a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The record is not the one that follows.
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
        /// The turn that is due.
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
    /// The agent has not ended in a way that it can live again.
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
        definitions: definition.iter().map(|own| (own.program.clone(), (**own).clone())).collect(),
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
            let live = record.placed.iter().filter(|one| run.agents.contains_key(&one.agent));
            live.map(|one| Effect::Proceed(one.agent.clone())).collect()
        }
        Event::CostCounted { turn, cost } => cost_counted(run, turn, cost.amount)?,
        Event::AgentParked(event) => agent_parked(run, event)?,
        Event::LimitReached { until, .. } => limit_reached(run, *until),
        Event::RunBranched(event) => run_branched(run, event)?,
        Event::RunPaused { pause } => run_paused(run, pause),
        Event::RunResumed { settings } => run_resumed(run, settings),
        Event::CommandReceived { id, command } => command_received(run, (id, command), record.at),
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
    for one in placed {
        if let Some(agent) = run.agents.get_mut(&one.agent) {
            agent.spec.working_dir.home = one.home();
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
    let own = run.settings.supervision.period_ms;
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
    let folder = agent.folder_at(event.transition.own_scope()).map_err(ApplyError::Scope)?;
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
        agent.forget_restarts(agent.spec.options.supervision.period_ms.unwrap_or(own), at);
    }
    let program = agent.execution.take_program();
    let outcome = take_transition(agent, event, opened, folder.as_ref(), at);
    let id = event.turn.agent.clone();
    if !event.without_turn {
        spend(run, &id, event.prompt(), event.cost.amount, EstimateUpdate::Yes);
    }
    let mut released = program.map(|program| release(run, &program)).unwrap_or_default();
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

#[cfg(test)]
pub(crate) mod tests;

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
        /// The agent.
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
