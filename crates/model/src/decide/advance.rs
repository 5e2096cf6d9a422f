//! Decisions on advances of graphs, programs and other languages, on beginnings of programs, and on roles.
//!
//! The end of a graph, a program or another state is a result like a prompt's: it goes back to the caller, and so does
//! an error. An error fails the agent only if the agent has no caller.

use std::collections::{BTreeMap, BTreeSet};

use super::failure::FailedTurn;
use super::join::prepared_answer;
use super::{NondeterministicInputs, TurnJudgement, TurnReport, step_finished};
use crate::advance::{Advance, AdvanceNext, AdvanceOutput};
use crate::agent::{Agent, AgentOptions, AgentSpec, StepStage};
use crate::decide::join::no_room;
use crate::event::{
    AdvancePosition, Event, FinishedTask, GraphAdvanced, GraphProgress, LanguageAdvanced,
    NextAction, ProgramAdvanced, ProgramLogged, ProgramStarted, RoleDelegated, RoleRequested,
    RoleResponded, StepFinished,
};
use crate::graph_execution::{
    ProgramExecution, ProgramSource, RequestBody, RequestStatus, RoleMailbox, RoleRequest,
    WaitResult,
};
use crate::id::SessionId;
use crate::policy::AcceptedTransition;
use crate::run::Run;
use crate::transition::{Transition, Variables};
use crate::turn::{FailureCause, TurnCost, TurnId};

/// Returns the events of an advance: its outputs, the advance itself, and its immediate consequences. None if
/// nothing changed.
pub(super) fn advanced(
    run: &Run,
    agent: &Agent,
    advance: &Advance,
    report: &TurnReport,
    chosen: NondeterministicInputs,
) -> Vec<Event> {
    if is_unchanged(agent, advance) {
        return Vec::new();
    }
    if let AdvanceNext::Action(NextAction::Agent { .. }) = &advance.next
        && let Some(pause) = no_room(run, 1)
    {
        return vec![Event::RunPaused { pause }];
    }
    let mut events =
        agent.program().map_or_else(Vec::new, |program| outputs(agent, program, advance));
    events.push(record(agent, advance, report, &chosen));
    events.extend(consequences(run, agent, advance, report, chosen));
    events
}

/// Returns whether a program still waits where it waited.
fn is_unchanged(agent: &Agent, advance: &Advance) -> bool {
    let (Some(execution), AdvancePosition::Program(progress)) =
        (agent.program(), &advance.position)
    else {
        return false;
    };
    advance.outputs.is_empty()
        && progress.bindings.is_empty()
        && progress.bases.is_none()
        && !matches!(
            advance.next,
            AdvanceNext::End { .. } | AdvanceNext::Action(NextAction::Question(_))
        )
        && progress.position == execution.position
}

/// Returns the events of the log lines and requests of a program.
fn outputs(agent: &Agent, execution: &ProgramExecution, advance: &Advance) -> Vec<Event> {
    let requests = execution.requests.iter();
    let mut numbers: BTreeMap<&str, u64> =
        requests.map(|(name, request)| (name.as_str(), request.number)).collect();
    let mut handles: BTreeSet<&str> = execution.handles.keys().map(String::as_str).collect();
    let mut events = Vec::with_capacity(advance.outputs.len() + 1);
    for output in &advance.outputs {
        match output {
            AdvanceOutput::Shown(_) => {}
            AdvanceOutput::Log { text, warning } => {
                events.push(Event::ProgramLogged(ProgramLogged {
                    turn: agent.turn_id(),
                    file: agent.current_state.clone(),
                    text: text.clone(),
                    warning: *warning,
                }));
            }
            AdvanceOutput::Request { role, handle, cwd, name, body, session } => {
                let number = numbers.entry(name).or_default();
                *number += 1;
                let is_new = handles.insert(handle);
                events.push(Event::RoleRequested(Box::new(RoleRequested {
                    turn: agent.turn_id(),
                    file: agent.current_state.clone(),
                    handle: handle.clone(),
                    request: RoleRequest {
                        id: format!("{}/{name}/{number}", execution.id),
                        name: name.clone(),
                        role: role.clone(),
                        body: body.clone(),
                    },
                    new_session: session.clone().filter(|_| is_new),
                    cwd: cwd.clone().filter(|_| is_new),
                })));
            }
        }
    }
    events
}

/// Returns the events that follow from an advance at once: an answer given ahead of time, or the end.
fn consequences(
    run: &Run,
    agent: &Agent,
    advance: &Advance,
    report: &TurnReport,
    chosen: NondeterministicInputs,
) -> Vec<Event> {
    let next = TurnId { step: agent.step.saturating_add(1), turn: 0, ..report.turn.clone() };
    // A copy of the agent takes as long as its history, so it is made only where the advance ends.
    let after = |next: &TurnId| Agent {
        step: next.step,
        turn: 0,
        stage: StepStage::default(),
        ..agent.clone()
    };
    match &advance.next {
        AdvanceNext::Action(NextAction::Question(question)) => {
            prepared_answer(run, question, &next, &agent.current_state).into_iter().collect()
        }
        AdvanceNext::End { error: Some(error), .. } if agent.stack.is_empty() => {
            vec![fail(next.clone(), &after(&next), FailureCause::Ending, error)]
        }
        AdvanceNext::Fail(why) => {
            vec![fail(next.clone(), &after(&next), FailureCause::Workflow, why)]
        }
        AdvanceNext::End { payload, .. } => {
            let accepted =
                AcceptedTransition { implicit: false, ..AcceptedTransition::plain_result(payload) };
            let after = after(&next);
            step_finished(run, &after, &accepted, &TurnReport::empty(next), chosen)
        }
        AdvanceNext::Action(_) => Vec::new(),
    }
}

fn record(
    agent: &Agent,
    advance: &Advance,
    report: &TurnReport,
    chosen: &NondeterministicInputs,
) -> Event {
    let next_action = match &advance.next {
        AdvanceNext::Action(action) => action.clone(),
        AdvanceNext::End { .. } | AdvanceNext::Fail(_) => NextAction::Nothing,
    };
    let new_session = match &next_action {
        NextAction::Task(_) => Some(chosen.ready.clone().unwrap_or_else(|| chosen.session.clone())),
        NextAction::Agent { .. } => Some(chosen.session.clone()),
        NextAction::Walk
        | NextAction::Operation(_)
        | NextAction::Question(_)
        | NextAction::Join(_)
        | NextAction::Wait
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
    let shown = advance.outputs.iter().filter_map(|output| match output {
        AdvanceOutput::Shown(text) => Some(text.clone()),
        AdvanceOutput::Log { .. } | AdvanceOutput::Request { .. } => None,
    });
    let shown = shown.collect();
    let (turn, file) = (report.turn.clone(), agent.current_state.clone());
    match &advance.position {
        AdvancePosition::Graph(progress) => {
            let GraphProgress { entered, migrated, visits, changes, node, cursor } =
                GraphProgress::clone(progress);
            Event::GraphAdvanced(Box::new(GraphAdvanced {
                turn,
                file,
                entered,
                migrated,
                visits,
                changes,
                shown,
                node,
                cursor,
                next_action,
                task,
                new_session,
            }))
        }
        AdvancePosition::Program(progress) => {
            let next_action = Some(next_action).filter(|next| *next != progress.next_action());
            let progress = (**progress).clone();
            Event::ProgramAdvanced(Box::new(ProgramAdvanced {
                turn,
                file,
                progress,
                shown,
                next_action,
                task,
                new_session,
            }))
        }
        AdvancePosition::Other(reached) => {
            let reached = (**reached).clone();
            Event::LanguageAdvanced(Box::new(LanguageAdvanced {
                turn,
                file,
                reached,
                shown,
                next_action,
                task,
                new_session,
            }))
        }
    }
}

fn fail(turn: TurnId, agent: &Agent, cause: FailureCause, why: &str) -> Event {
    FailedTurn {
        turn,
        state: agent.current_state.clone(),
        folder: agent.folder(),
        cause,
        cost: TurnCost::default(),
        why: why.to_owned(),
    }
    .fail(false)
}

// Decisions on the beginning of a program, and on the answers of its roles.

/// Returns the events with which the execution of an agent begins. The program's text is recorded with its first
/// execution; that of the run's first program is in the run's first record too.
pub fn program_started(
    run: &Run,
    agent: &Agent,
    definition: ProgramSource,
    started: ProgramStarted,
) -> Vec<Event> {
    let is_known = run.definitions.contains_key(&definition.program);
    let is_recorded = is_known && run.first_definition(agent).is_none();
    let defined = (!is_recorded).then(|| Event::ProgramDefined(Box::new(definition)));
    defined.into_iter().chain([Event::ProgramStarted(Box::new(started))]).collect()
}

/// Returns the event of a role's answer: the payload of its turn's result.
pub(super) fn role_responded(
    agent: &Agent,
    mailbox: &RoleMailbox,
    accepted: &AcceptedTransition,
    report: &TurnReport,
) -> Event {
    let (Transition::Result { payload, .. }, Some(request)) =
        (&accepted.transition, mailbox.current.as_deref())
    else {
        return FailedTurn {
            turn: report.turn.clone(),
            state: agent.prompt().clone(),
            folder: agent.folder(),
            cause: FailureCause::Protocol,
            cost: report.cost.clone(),
            why: format!(
                "a role of a program answers, it takes no transition: {}",
                accepted.transition
            ),
        }
        .fail(false);
    };
    answer(agent, request, RequestStatus::Answer(payload.as_str().into()), report)
}

fn answer(
    agent: &Agent,
    request: &RoleRequest,
    response: RequestStatus,
    report: &TurnReport,
) -> Event {
    let state = agent.task().map_or_else(|| agent.place(), |task| task.name.clone());
    Event::RoleResponded(Box::new(RoleResponded {
        turn: report.turn.clone(),
        state,
        request: request.id.clone(),
        name: request.name.clone(),
        response,
        cost: report.cost.clone(),
        session_id: agent.session.id.clone(),
        message: report.message.clone(),
        without_turn: matches!(report.judgement, TurnJudgement::NotStarted),
    }))
}

/// Returns the next event of a role that takes no turn: its end, the answer of the agent it delegated to, or the
/// delegation of its request.
pub fn role_event(agent: &Agent, options: AgentOptions, new_session: SessionId) -> Option<Event> {
    role_stopped(agent)
        .or_else(|| delegated_answer(agent))
        .or_else(|| role_delegated(agent, options, new_session))
}

/// Returns the role's answer once the agent it delegated to has ended.
pub(super) fn delegated_answer(agent: &Agent) -> Option<Event> {
    let request = agent.role_request()?;
    let response = match agent.wait_result()? {
        WaitResult::Done(value) => RequestStatus::Answer(
            value.as_str().map_or_else(|| value.to_string(), str::to_owned).into(),
        ),
        WaitResult::Failed(why) => RequestStatus::Failed(why.clone()),
        WaitResult::Answered(answer) => RequestStatus::Answer(answer.raw.as_str().into()),
    };
    Some(answer(agent, request, response, &TurnReport::empty(agent.turn_id())))
}

/// Returns the event that delegates a role's request to a further agent, if it is a folder's work; `options` are the
/// settings of the folder's first state.
pub(super) fn role_delegated(
    agent: &Agent,
    options: AgentOptions,
    new_session: SessionId,
) -> Option<Event> {
    let request = agent.role_request()?;
    let RequestBody::Folder { folder, start, input } = &request.body else { return None };
    if !agent.stage.is_first() {
        return None;
    }
    let spec = AgentSpec {
        folder: folder.clone().or_else(|| agent.folder()),
        working_dir: agent.spec.working_dir.without_home(),
        variables: [("input".to_owned(), input.clone())].into(),
        options,
        ..AgentSpec::plain(start.clone())
    };
    Some(Event::RoleDelegated(Box::new(RoleDelegated {
        turn: agent.turn_id(),
        state: agent.place(),
        request: request.id.clone(),
        spec: Box::new(spec),
        new_session,
    })))
}

/// Ends a role when its program has ended and its queue is empty.
pub(super) fn role_stopped(agent: &Agent) -> Option<Event> {
    let mailbox = agent.mailbox().filter(|mailbox| mailbox.is_over())?;
    let payload = mailbox.outcome();
    Some(Event::StepFinished(StepFinished {
        turn: agent.turn_id(),
        state: agent.place(),
        transition: Transition::Result { payload, variables: Variables::new(), structured: false },
        implicit: false,
        overruled: None,
        without_turn: true,
        evaluator: None,
        cost: TurnCost::default(),
        session_id: agent.session.id.clone(),
        message: None,
        shown: Vec::new(),
        new_session: None,
        options: Box::default(),
        children: Vec::new(),
        call_budget_usd: None,
        restarted: None,
    }))
}

#[cfg(test)]
mod tests;
