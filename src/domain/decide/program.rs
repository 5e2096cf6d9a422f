//! Decisions that follow from an advance of a program, and from the answers of its roles.
//!
//! The end of an execution is a result like a prompt's: it goes back to the caller, and so does a failure. A
//! failure fails the agent only if there is no caller.

use super::failure::FailedTurn;
use super::{NondeterministicInputs, TurnJudgement, TurnReport, step_finished};
use crate::domain::agent::{Agent, AgentOptions, AgentSpec};
use crate::domain::event::{
    Event, ProgramAdvanced, ProgramLogged, ProgramStarted, ProgramStatus, RoleDelegated,
    RoleRequested, RoleResponded, StepFinished,
};
use crate::domain::graph_execution::WaitResult;
use crate::domain::id::SessionId;
use crate::domain::policy::AcceptedTransition;
use crate::domain::program_advance::{ProgramAdvance, ProgramCommand, ProgramNext};
use crate::domain::program_execution::{
    ProgramExecution, ProgramSource, RequestBody, RequestStatus, RoleMailbox, RoleRequest,
};
use crate::domain::run::Run;
use crate::domain::transition::{Transition, Variables};
use crate::domain::turn::{FailureCause, TurnId};
use crate::domain::turn_cost::TurnCost;

/// The inputs with which an execution begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramStart {
    /// The program.
    pub definition: ProgramSource,
    /// The state it begins in.
    pub start: std::sync::Arc<str>,
    /// `@label`
    pub label: String,
    /// `@branch`
    pub branch: Option<String>,
    /// `@context/x`
    pub context: Variables,
}

/// Returns the events with which an execution begins. The program's text is recorded with its first execution;
/// that of the run's first program is in the run's first record too.
#[must_use]
pub fn program_started(run: &Run, agent: &Agent, beginning: ProgramStart) -> Vec<Event> {
    let ProgramStart { definition, start, label, branch, context } = beginning;
    let begun = Event::ProgramStarted(Box::new(ProgramStarted {
        turn: agent.turn_id(),
        state: agent.current_state.clone(),
        program: definition.program.clone(),
        name: definition.name.clone(),
        label,
        branch,
        context,
        start,
    }));
    let is_known = run.definitions.contains_key(&definition.program);
    let is_recorded = is_known && run.first_definition(agent).is_none();
    let defined = (!is_recorded).then(|| Event::ProgramDefined(Box::new(definition)));
    defined.into_iter().chain([begun]).collect()
}

/// Returns the events for one advance of a program, or none if nothing changed. `sessions` must hold one id per
/// request; each role's first request takes one.
#[must_use]
pub fn program_advanced(
    run: &Run,
    agent: &Agent,
    advance: &ProgramAdvance,
    sessions: Vec<SessionId>,
    chosen: NondeterministicInputs,
) -> Vec<Event> {
    let Some(execution) = agent.program() else { return Vec::new() };
    if is_unchanged(execution, advance) {
        return Vec::new();
    }
    let mut events = commands(agent, execution, advance, sessions);
    events.push(advanced(agent, advance));
    let ProgramNext::End { payload, error } = &advance.next else { return events };
    let turn = TurnId { step: agent.step.saturating_add(1), turn: 0, ..agent.turn_id() };
    let after = Agent { step: turn.step, turn: 0, ..agent.clone() };
    match error {
        Some(why) if agent.stack.is_empty() => events.push(
            FailedTurn {
                turn,
                state: agent.current_state.clone(),
                cause: FailureCause::Ending,
                cost: TurnCost::default(),
                why: why.clone(),
            }
            .fail(false),
        ),
        _ => {
            let transition = Transition::Result {
                payload: payload.clone(),
                variables: Variables::new(),
                structured: false,
            };
            let accepted = AcceptedTransition { transition, implicit: false, overruled: None };
            events.extend(step_finished(run, &after, &accepted, &TurnReport::empty(turn), chosen));
        }
    }
    events
}

fn is_unchanged(execution: &ProgramExecution, advance: &ProgramAdvance) -> bool {
    advance.commands.is_empty()
        && advance.bindings.is_empty()
        && advance.bases.is_none()
        && !matches!(advance.next, ProgramNext::End { .. })
        && advance.position == execution.position
}

fn commands(
    agent: &Agent,
    execution: &ProgramExecution,
    advance: &ProgramAdvance,
    sessions: Vec<SessionId>,
) -> Vec<Event> {
    let mut sessions = sessions.into_iter();
    let mut asked: Vec<(&str, u64)> = Vec::new();
    let mut opened: Vec<&str> = Vec::new();
    let mut events = Vec::with_capacity(advance.commands.len() + 1);
    for command in &advance.commands {
        events.push(match command {
            ProgramCommand::Log { text, warning } => Event::ProgramLogged(ProgramLogged {
                turn: agent.turn_id(),
                file: agent.current_state.clone(),
                text: text.clone(),
                warning: *warning,
            }),
            ProgramCommand::Request { role, handle, cwd, name, body } => {
                let now =
                    asked.iter().rev().find(|(own, _)| own == name).map(|(_, number)| *number);
                let before = execution.requests.get(name).map(|request| request.number);
                let number = now.or(before).unwrap_or(0) + 1;
                asked.push((name, number));
                let is_new =
                    !execution.handles.contains_key(handle) && !opened.contains(&handle.as_str());
                if is_new {
                    opened.push(handle);
                }
                let id = format!("{}/{name}/{number}", execution.id);
                Event::RoleRequested(Box::new(RoleRequested {
                    turn: agent.turn_id(),
                    file: agent.current_state.clone(),
                    handle: handle.clone(),
                    request: RoleRequest {
                        id,
                        name: name.clone(),
                        role: role.clone(),
                        body: body.clone(),
                    },
                    new_session: if is_new { sessions.next() } else { None },
                    cwd: cwd.clone().filter(|_| is_new),
                }))
            }
        });
    }
    events
}

fn advanced(agent: &Agent, advance: &ProgramAdvance) -> Event {
    let ProgramAdvance { position, bindings, bases, next, .. } = advance;
    let status = match next {
        ProgramNext::Wait => ProgramStatus::Waiting,
        ProgramNext::Activity => ProgramStatus::Running,
        ProgramNext::End { error: None, .. } => ProgramStatus::Completed,
        ProgramNext::End { error: Some(_), .. } => ProgramStatus::Failed,
    };
    Event::ProgramAdvanced(Box::new(ProgramAdvanced {
        turn: agent.turn_id(),
        file: agent.current_state.clone(),
        state: position.current.clone(),
        status,
        awaiting: position.wait.as_ref().map(|wait| wait.awaiting.clone()),
        iteration: position.cursor.iter().rev().find_map(|level| level.round),
        position: position.clone(),
        bindings: bindings.clone(),
        bases: bases.clone(),
    }))
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

/// Returns the role's answer once the agent it delegated to has ended.
#[must_use]
pub fn delegated_answer(agent: &Agent) -> Option<Event> {
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
#[must_use]
pub fn role_delegated(
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
        folder: folder.clone().or_else(|| agent.spec.folder.clone()),
        working_dir: agent.spec.working_dir.clone(),
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
#[must_use]
pub fn role_stopped(agent: &Agent) -> Option<Event> {
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
        new_session: None,
        options: Box::default(),
        children: Vec::new(),
        call_budget_usd: None,
        restarted: None,
    }))
}
