//! Decisions that follow from an advance of a graph.
//!
//! An ending is a result like a prompt's: it goes back to the caller, and so does an error. An error fails the
//! agent only if there is no caller.

use super::failure::FailedTurn;
use super::fork::no_room;
use super::questions::prepared_answer;
use super::{NondeterministicInputs, TurnReport, step_finished};
use crate::domain::agent::{Agent, StepStage};
use crate::domain::event::{Event, FinishedTask, GraphAdvanced, NextAction};
use crate::domain::graph_advance::{GraphAdvance, GraphNext};
use crate::domain::policy::AcceptedTransition;
use crate::domain::run::Run;
use crate::domain::transition::{Transition, Variables};
use crate::domain::turn::{FailureCause, TurnId};
use crate::domain::turn_cost::TurnCost;

/// Returns the events of an advance of a graph: the advance itself, and its immediate consequences.
pub(super) fn graph_advanced(
    run: &Run,
    agent: &Agent,
    advance: &GraphAdvance,
    report: &TurnReport,
    chosen: NondeterministicInputs,
) -> Vec<Event> {
    let next = TurnId { step: agent.step.saturating_add(1), turn: 0, ..report.turn.clone() };
    if let GraphNext::Agent { .. } = &advance.next
        && let Some(pause) = no_room(run, 1)
    {
        return vec![Event::RunPaused { pause }];
    }
    let done = record(agent, advance, report, &chosen);
    // A copy of the agent takes as long as its history, so it is made only where the walk ends.
    let after = |next: &TurnId| Agent {
        step: next.step,
        turn: 0,
        stage: StepStage::default(),
        ..agent.clone()
    };
    let then = match &advance.next {
        GraphNext::Question(question) => {
            prepared_answer(run, question, &next, &agent.current_state).into_iter().collect()
        }
        GraphNext::End { error: Some(error), .. } if agent.stack.is_empty() => {
            vec![fail(next.clone(), &after(&next), FailureCause::Ending, error)]
        }
        GraphNext::Fail(why) => {
            vec![fail(next.clone(), &after(&next), FailureCause::Workflow, why)]
        }
        GraphNext::End { payload, .. } => {
            let transition = Transition::Result {
                payload: payload.clone(),
                variables: Variables::new(),
                structured: false,
            };
            let accepted = AcceptedTransition { transition, implicit: false, overruled: None };
            let after = after(&next);
            let report =
                TurnReport { judgement: report.judgement.clone(), ..TurnReport::empty(next) };
            step_finished(run, &after, &accepted, &report, chosen)
        }
        GraphNext::Walk
        | GraphNext::Operation(_)
        | GraphNext::Task(_)
        | GraphNext::Agent { .. } => Vec::new(),
    };
    let mut events = vec![Event::GraphAdvanced(Box::new(done))];
    events.extend(then);
    events
}

fn record(
    agent: &Agent,
    advance: &GraphAdvance,
    report: &TurnReport,
    chosen: &NondeterministicInputs,
) -> GraphAdvanced {
    let next_action = match &advance.next {
        GraphNext::Walk => NextAction::Walk,
        GraphNext::Operation(kind) => NextAction::Operation(kind.clone()),
        GraphNext::Task(task) => NextAction::Task(task.clone()),
        GraphNext::Question(question) => NextAction::Question(question.clone()),
        GraphNext::Agent { spec, background } => {
            NextAction::Agent { spec: spec.clone(), background: *background }
        }
        GraphNext::End { .. } | GraphNext::Fail(_) => NextAction::Nothing,
    };
    let new_session = match &next_action {
        NextAction::Task(_) => Some(chosen.ready.clone().unwrap_or_else(|| chosen.session.clone())),
        NextAction::Agent { .. } => Some(chosen.session.clone()),
        NextAction::Walk
        | NextAction::Operation(_)
        | NextAction::Question(_)
        | NextAction::Nothing => None,
    };
    let task = agent.task().map(|task| {
        Box::new(FinishedTask {
            prompt: task.name.clone(),
            cost: report.cost.clone(),
            session_id: agent.session.id.clone(),
            message: report.message.clone(),
        })
    });
    GraphAdvanced {
        turn: report.turn.clone(),
        state: agent.current_state.clone(),
        entered: advance.entered.clone(),
        migrated: advance.migrated.clone(),
        visits: advance.visits.clone(),
        changes: advance.changes.clone(),
        shown: advance.shown.clone(),
        node: advance.node.clone(),
        cursor: advance.cursor.clone(),
        next_action,
        task,
        new_session,
    }
}

fn fail(turn: TurnId, agent: &Agent, cause: FailureCause, why: &str) -> Event {
    FailedTurn {
        turn,
        state: agent.current_state.clone(),
        cause,
        cost: TurnCost::default(),
        why: why.to_owned(),
    }
    .fail(false)
}
