//! Agents that advance in their states by themselves, and agents that are awaited.

use std::sync::Arc;

use super::money::{EstimateUpdate, begin_share, spend};
use super::program::{advance_program, drop_requests};
use super::{ApplyError, due};
use crate::agent::{Agent, AgentExecution, AgentSpec, AskedQuestion, QuestionTimeout, StepStage};
use crate::apply::Effect;
use crate::apply::transitions::result_value;
use crate::event::{AdvanceView, AdvancedTo, GraphAdvanced, NextAction, ProgramStatus};
use crate::fact::{Fact, FactChange};
use crate::graph_execution::{GraphExecution, GraphState, NodeCursor, WaitResult};
use crate::id::{AgentId, SessionId};
use crate::join::PendingJoin;
use crate::run::{AgentEnding, Run};
use crate::session::Session;
use crate::time::Timestamp;

pub(super) fn advanced(
    run: &mut Run,
    event: &AdvanceView<'_>,
    at: Timestamp,
) -> Result<Vec<Effect>, ApplyError> {
    let taken = kept_fact_of(run, event);
    let agent = due(run, event.turn)?;
    let opened = match (&*event.next_action, event.new_session) {
        (NextAction::Task(_) | NextAction::Agent { .. }, None) => {
            return Err(ApplyError::NoSession);
        }
        (_, opened) => opened.cloned(),
    };
    let retry_point =
        matches!(*event.next_action, NextAction::Nothing).then(|| Box::new(agent.clone()));
    match event.position {
        AdvancedTo::Graph(progress) => {
            let state = advanced_state(agent, progress).map_err(ApplyError::Graph)?;
            enter_graph_state(agent, progress, state);
        }
        AdvancedTo::Other(position) => {
            agent.execution = AgentExecution::Other(Box::new(position.clone()));
        }
        AdvancedTo::Program(progress) => {
            let before = agent.program().map(|own| own.position.committed_usd());
            let after = progress.position.committed_usd();
            advance_program(agent, progress)?;
            run.given_usd =
                run.given_usd.saturating_add(after).saturating_sub(before.unwrap_or_default());
        }
    }
    if let Some(Fact { label, key, .. }) = taken {
        run.facts.change(&FactChange::Retracted { label, key });
    }
    let agent = due(run, event.turn)?;
    if let Some(paid) = event.task {
        agent.count_turn(paid.cost.amount);
        agent.note_reply(paid.message.clone());
    }
    agent.next_step(at);
    agent.retry_point = retry_point;
    let child = wait_for(agent, &event.next_action, opened, at);
    let id = event.turn.agent.clone();
    if let Some(paid) = event.task {
        spend(run, &id, &paid.prompt, paid.cost.amount, EstimateUpdate::Yes);
    }
    let mut effects = match *event.next_action {
        NextAction::Nothing => Vec::new(),
        NextAction::Question(_) => vec![Effect::Ask(id.clone())],
        NextAction::Walk
        | NextAction::Operation(_)
        | NextAction::Task(_)
        | NextAction::Agent { .. }
        | NextAction::Join(_)
        | NextAction::Wait => vec![Effect::Proceed(id.clone())],
    };
    if let AdvancedTo::Program(progress) = event.position
        && progress.status == ProgramStatus::Failed
    {
        drop_requests(run, &id);
    }
    if let Some(child) = child {
        let id = child.id.clone();
        begin_share(run, &id, child.spec.options.budget_usd);
        run.agents.insert(child);
        effects.push(Effect::Proceed(id));
    }
    Ok(effects)
}

/// Returns the fact that a program has taken with this advance, if it is one that only its run still has. The dataspace
/// does not tell its end.
fn kept_fact_of(run: &Run, event: &AdvanceView<'_>) -> Option<Fact> {
    let program = run.agents.get(&event.turn.agent)?.program()?;
    run.kept_fact(program.position.activity.as_ref()?)
}

/// Gives an agent the graph state after the event, in a new execution if it enters the graph.
fn enter_graph_state(agent: &mut Agent, progress: &GraphAdvanced, state: GraphState) {
    let state = Arc::new(state);
    match (&progress.entered, &mut agent.execution) {
        (Some(entered), execution) => {
            *execution = AgentExecution::Graph(Box::new(GraphExecution {
                workflow_name: entered.workflow_name.clone(),
                workflow_version: entered.workflow_version.clone(),
                state,
                history: progress.visits.clone(),
            }));
        }
        (None, AgentExecution::Graph(graph)) => {
            graph.state = state;
            graph.history.extend(progress.visits.iter().cloned());
        }
        (
            None,
            AgentExecution::Prompts
            | AgentExecution::Program(_)
            | AgentExecution::Other(_)
            | AgentExecution::Role(_),
        ) => {}
    }
}

/// Returns the graph state after the event.
fn advanced_state(agent: &Agent, progress: &GraphAdvanced) -> Result<GraphState, String> {
    let mut state = match (&progress.entered, agent.graph()) {
        (Some(entered), _) => GraphState {
            program: Arc::clone(&entered.program),
            current_node: Arc::clone(&progress.node),
            previous_node: None,
            executed: 0,
            fields: entered.fields.clone(),
            checkpoints: std::collections::BTreeMap::new(),
            cursor: NodeCursor::default(),
        },
        (None, Some(graph)) => (*graph.state).clone(),
        (None, None) => return Err("it is in no graph".to_owned()),
    };
    for change in &progress.changes {
        state.change(change)?;
    }
    if let Some(program) = &progress.migrated {
        state.program = Arc::clone(program);
    }
    if let Some(last) = progress.visits.last() {
        state.previous_node = Some(Arc::clone(&last.node));
    }
    state.executed += progress.visits.len() as u64;
    state.current_node = Arc::clone(&progress.node);
    state.cursor = progress.cursor.clone();
    Ok(state)
}

/// Makes an agent wait for the next action; returns the agent that is created for it, if any.
fn wait_for(
    agent: &mut Agent,
    due: &NextAction,
    opened: Option<SessionId>,
    at: Timestamp,
) -> Option<Agent> {
    match (due, opened) {
        (NextAction::Task(task), Some(session)) => {
            agent.session = Session::fresh(session);
            agent.stage = StepStage::Task(task.clone());
            None
        }
        (NextAction::Question(question), _) => {
            let question = (**question).clone();
            let until = agent.program().and_then(|own| own.position.due_wait()?.until);
            // A program continues in itself, and finds that the time is over.
            let state = agent.current_state.clone();
            let late = until.map(|at| QuestionTimeout { at, state });
            agent.wait_for_answer(AskedQuestion { question, since: at, late });
            None
        }
        (NextAction::Join(join), _) => {
            agent.wait_for_join(PendingJoin { join: (**join).clone(), since: at });
            None
        }
        (NextAction::Agent { spec, background, joined }, Some(session)) => {
            agent.forked_count = agent.forked_count.saturating_add(1);
            let id = agent.id.child(agent.forked_count);
            if *joined {
                let depth = agent.join_depth();
                agent.unjoined.add(agent.forked_count, depth);
            }
            if *background || *joined {
                agent.end_wait(WaitResult::Done(id.as_str().into()));
            } else {
                agent.wait_for_agent(id.clone());
            }
            Some(Agent::from_spec(id, AgentSpec::clone(spec), session, at))
        }
        (
            NextAction::Walk | NextAction::Operation(_) | NextAction::Wait | NextAction::Nothing,
            _,
        )
        // Decisions always bring a session for these.
        | (NextAction::Task(_) | NextAction::Agent { .. }, None) => None,
    }
}

/// Tells the agent that waits for another one the outcome; returns its id, if there is one.
pub(super) fn end_wait_of_parent(
    run: &mut Run,
    ended: &AgentId,
    ending: &AgentEnding,
    structured: bool,
) -> Option<AgentId> {
    let parent = AgentId::parse(ended.parent()?).ok()?;
    let waiting = run.agents.get_mut(&parent)?;
    if waiting.awaited_agent() != Some(ended) {
        return None;
    }
    waiting.end_wait(match ending {
        AgentEnding::Result(payload) => WaitResult::Done(result_value(payload, structured)),
        AgentEnding::Error(error) => WaitResult::Failed(error.clone()),
    });
    Some(parent)
}
