//! Decisions on the beginning of a program, and on the answers of its roles.

use super::failure::FailedTurn;
use super::{TurnJudgement, TurnReport};
use crate::agent::{Agent, AgentOptions, AgentSpec};
use crate::event::{Event, ProgramStarted, RoleDelegated, RoleResponded, StepFinished};
use crate::graph_execution::WaitResult;
use crate::id::SessionId;
use crate::policy::AcceptedTransition;
use crate::program_execution::{
    ProgramSource, RequestBody, RequestStatus, RoleMailbox, RoleRequest,
};
use crate::run::Run;
use crate::transition::{Transition, Variables};
use crate::turn::FailureCause;
use crate::turn::TurnCost;

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
