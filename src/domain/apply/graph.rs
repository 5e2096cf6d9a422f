//! Agents in graphs, and questions to people: executed nodes, answers, agents that are awaited.

use std::sync::Arc;

use super::forks::result_value;
use super::money::{EstimateUpdate, begin_share, spend};
use super::{ApplyError, due};
use crate::domain::agent::{Agent, AgentSpec, AskedQuestion};
use crate::domain::effect::Effect;
use crate::domain::event::{
    GraphAdvanced, GraphEntry, NextAction, QuestionAnswered, QuestionTimedOut,
};
use crate::domain::graph::{GraphExecution, GraphState, NodeCursor, WaitResult};
use crate::domain::id::{AgentId, SessionId};
use crate::domain::run::{AgentEnding, Run};
use crate::domain::session::Session;
use crate::domain::time::Timestamp;

pub(super) fn graph_advanced(
    run: &mut Run,
    event: &GraphAdvanced,
    at: Timestamp,
) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    let opened = match (&event.due, &event.new_session) {
        (NextAction::Task(_) | NextAction::Agent { .. }, None) => {
            return Err(ApplyError::NoSession);
        }
        (_, opened) => opened.clone(),
    };
    let state = walked(agent, event).map_err(ApplyError::Graph)?;
    let memory = match (&event.entered, agent.graph.take()) {
        (Some(entered), _) => Box::new(begin(entered, state)),
        (None, Some(memory)) => Box::new(GraphExecution { state: Arc::new(state), ..*memory }),
        (None, None) => return Err(ApplyError::Graph("it is in no graph".to_owned())),
    };
    if let Some(paid) = &event.task {
        agent.count_turn(paid.cost.amount);
        agent.heard(paid.message.clone());
    }
    agent.graph = Some(memory);
    if let Some(memory) = &mut agent.graph {
        memory.history.extend(event.visits.iter().cloned());
    }
    agent.next_step(at);
    let born = wait_for(agent, &event.due, opened, at);
    let id = event.turn.agent.clone();
    if let Some(paid) = &event.task {
        spend(run, &id, &paid.prompt, paid.cost.amount, EstimateUpdate::Yes);
    }
    let mut effects = match event.due {
        NextAction::Nothing => Vec::new(),
        NextAction::Question(_) => vec![Effect::Ask(id)],
        _ => vec![Effect::Proceed(id)],
    };
    if let Some(child) = born {
        let born = child.id.clone();
        begin_share(run, &born, child.birth.terms.budget_usd);
        run.agents.insert(child);
        effects.push(Effect::Proceed(born));
    }
    Ok(effects)
}

fn begin(entered: &GraphEntry, state: GraphState) -> GraphExecution {
    GraphExecution {
        workflow_name: entered.workflow_name.clone(),
        workflow_version: entered.workflow_version.clone(),
        state: Arc::new(state),
        history: Vec::new(),
    }
}

/// Returns the graph state after the event.
fn walked(agent: &Agent, event: &GraphAdvanced) -> Result<GraphState, String> {
    let mut state = match (&event.entered, &agent.graph) {
        (Some(entered), _) => GraphState {
            program: Arc::clone(&entered.program),
            current_node: Arc::clone(&event.node),
            previous_node: None,
            executed: 0,
            fields: entered.fields.clone(),
            checkpoints: std::collections::BTreeMap::new(),
            cursor: NodeCursor::default(),
        },
        (None, Some(memory)) => (*memory.state).clone(),
        (None, None) => return Err("it is in no graph".to_owned()),
    };
    for change in &event.changes {
        state.change(change)?;
    }
    if let Some(program) = &event.migrated {
        state.program = Arc::clone(program);
    }
    if let Some(last) = event.visits.last() {
        state.previous_node = Some(Arc::clone(&last.node));
    }
    state.executed += event.visits.len() as u64;
    state.current_node = Arc::clone(&event.node);
    state.cursor = event.cursor.clone();
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
            agent.task = Some(task.clone());
            None
        }
        (NextAction::Question(question), _) => {
            agent.asked = Some(Box::new(AskedQuestion {
                question: (**question).clone(),
                since: at,
                late: None,
            }));
            None
        }
        (NextAction::Agent { birth, background }, Some(session)) => {
            agent.children = agent.children.saturating_add(1);
            let id = agent.id.child(agent.children);
            if *background {
                agent.heard = Some(Box::new(WaitResult::Done(id.as_str().into())));
            } else {
                agent.awaits = Some(id.clone());
            }
            Some(Agent::born(id, AgentSpec::clone(birth), session, at))
        }
        _ => None,
    }
}

pub(super) fn question_answered(
    run: &mut Run,
    event: &QuestionAnswered,
) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    if agent.asked.take().is_none() {
        return Err(ApplyError::NotAsked(event.turn.agent.clone()));
    }
    if agent.graph.is_some() {
        agent.heard = Some(Box::new(WaitResult::Answered(event.answer.clone())));
    } else {
        agent.variables.insert(ANSWER.to_owned(), event.answer.raw.clone());
    }
    if let Some(used) = event.ahead {
        run.answered.insert(event.node.clone(), used);
    }
    Ok(vec![Effect::Proceed(event.turn.agent.clone())])
}

/// The variable that holds a person's answer in the state a prompt's question leads to.
const ANSWER: &str = "answer";

pub(super) fn question_timed_out(
    run: &mut Run,
    event: &QuestionTimedOut,
) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    if agent.asked.take().is_none() {
        return Err(ApplyError::NotAsked(event.turn.agent.clone()));
    }
    agent.current_state = event.late.clone();
    Ok(vec![Effect::Proceed(event.turn.agent.clone())])
}

/// Tells the agent that waits for another one the outcome; returns its id, if there is one.
pub(super) fn told_of_end(
    run: &mut Run,
    ended: &AgentId,
    ending: &AgentEnding,
    structured: bool,
) -> Option<AgentId> {
    let parent = AgentId::parse(ended.parent()?).ok()?;
    let waiting = run.agents.get_mut(&parent)?;
    if waiting.awaits.as_ref() != Some(ended) {
        return None;
    }
    waiting.awaits = None;
    waiting.heard = Some(Box::new(match ending {
        AgentEnding::Result(payload) => WaitResult::Done(result_value(payload, structured)),
        AgentEnding::Error(error) => WaitResult::Failed(error.clone()),
    }));
    Some(parent)
}
