//! Programs: executions that start and advance, requests to their roles, answers, and facts.

use std::collections::{BTreeMap, VecDeque};

use super::money::{EstimateUpdate, begin_share, spend};
use super::{ApplyError, due};
use crate::agent::{Agent, AgentExecution, AgentSpec, StepStage};
use crate::apply::Effect;
use crate::event::{
    ProgramDefined, ProgramProgress, ProgramStarted, RoleDelegated, RoleRequested, RoleResponded,
};
use crate::fact::FactChange;
use crate::id::AgentId;
use crate::program_execution::{
    LostRequest, ProgramExecution, ProgramPosition, RequestBody, RequestEntry, RequestStatus,
    RoleMailbox, RoleRequest,
};
use crate::run::Run;
use crate::time::Timestamp;
use crate::working_dir::WorkingDir;

pub(super) fn program_defined(run: &mut Run, event: &ProgramDefined) -> Vec<Effect> {
    run.definitions.insert(event.program.clone(), event.clone());
    Vec::new()
}

pub(super) fn program_started(
    run: &mut Run,
    event: &ProgramStarted,
) -> Result<Vec<Effect>, ApplyError> {
    if !run.definitions.contains_key(&event.program) {
        return Err(program_error("its program is not defined"));
    }
    let agent = due(run, &event.turn)?;
    if !agent.runs_program() || agent.program().is_some() {
        return Err(program_error("it begins no program"));
    }
    agent.execution = AgentExecution::Program(Box::new(ProgramExecution {
        program: event.program.clone(),
        name: event.name.clone(),
        id: format!("{}#{}", event.turn.agent, event.turn.step),
        label: event.label.clone(),
        branch: event.branch.clone(),
        context: event.context.clone(),
        position: ProgramPosition { current: event.start.clone(), ..ProgramPosition::default() },
        requests: BTreeMap::new(),
        handles: BTreeMap::new(),
        answers: BTreeMap::new(),
        bindings: BTreeMap::new(),
        bases: BTreeMap::new(),
        answer: None,
    }));
    Ok(Vec::new())
}

/// Gives an agent the position in its program that an advance has reached.
pub(super) fn advance_program(
    agent: &mut Agent,
    progress: &ProgramProgress,
) -> Result<(), ApplyError> {
    let execution = agent.execution.program_mut().ok_or_else(no_program)?;
    execution.position = progress.position.clone();
    execution.answer = None;
    execution.requests.values_mut().for_each(|asked| asked.lost = None);
    execution.bindings.extend(progress.bindings.clone());
    execution
        .bases
        .extend(progress.bases.iter().flatten().map(|(at, base)| (at.clone(), base.clone())));
    Ok(())
}

/// Drops the requests that the roles of a failed program have not begun. A retry makes them again.
pub(super) fn drop_requests(run: &mut Run, id: &AgentId) {
    let execution = run.agents.get(id).and_then(Agent::program);
    for role in execution.map(roles_of).unwrap_or_default() {
        let agent = run.agents.get_mut(&role);
        let Some(mailbox) = agent.and_then(|role| role.execution.mailbox_mut()) else { continue };
        let dropped = std::mem::take(&mut mailbox.queue);
        let failed = run.agents.get_mut(id).and_then(|agent| agent.retry_point.as_deref_mut());
        let Some(execution) = failed.and_then(|agent| agent.execution.program_mut()) else {
            continue;
        };
        for request in dropped {
            if let Some(asked) = execution.requests.get_mut(&request.name) {
                let agent = role.clone();
                asked.lost = Some(Box::new(LostRequest { agent, request, delegated_to: None }));
            }
        }
    }
}

pub(super) fn facts_seen(run: &mut Run, changes: &[FactChange]) -> Vec<Effect> {
    for change in changes {
        run.facts.change(change);
    }
    wake(run, changes)
}

/// Wakes the waiting executions whose programs read the changed facts.
fn wake(run: &Run, changes: &[FactChange]) -> Vec<Effect> {
    if changes.is_empty() {
        return Vec::new();
    }
    let looks = |agent: &Agent| {
        let execution = agent.program().filter(|execution| execution.position.wait.is_some());
        let labels = execution.and_then(|execution| run.definitions.get(&execution.program));
        labels.is_some_and(|definition| {
            changes.iter().any(|change| definition.labels.iter().any(|own| own == change.label()))
        })
    };
    let mut woken: Vec<&Agent> = run.agents.unordered().filter(|agent| looks(agent)).collect();
    woken.sort_unstable_by(|one, other| one.id.cmp_by_number(&other.id));
    woken.into_iter().map(|agent| Effect::Proceed(agent.id.clone())).collect()
}

pub(super) fn role_requested(
    run: &mut Run,
    event: &RoleRequested,
    at: Timestamp,
) -> Result<Vec<Effect>, ApplyError> {
    let RoleRequested { turn, file, handle, request, new_session, cwd } = event;
    let asks = due(run, turn)?.program().ok_or_else(no_program)?;
    let known = asks.handles.get(handle).cloned();
    if known.is_none() && new_session.is_none() {
        return Err(ApplyError::NoSession);
    }
    if let Some(role) = known.as_ref().filter(|role| !run.agents.contains_key(role)) {
        return Err(ApplyError::NoAgent(role.clone()));
    }
    let agent = due(run, turn)?;
    let (folder, working_dir) = (agent.folder(), agent.spec.working_dir.without_home());
    let children = agent.forked_count.saturating_add(1);
    let child = agent.id.child(children);
    let execution = agent.execution.program_mut().ok_or_else(no_program)?;
    let before = execution.requests.get(&request.name).map_or(0, |before| before.number);
    let number = before.saturating_add(1);
    let asked = RequestEntry {
        number,
        role: request.role.clone(),
        status: RequestStatus::Pending,
        ended: None,
        lost: None,
    };
    execution.requests.insert(request.name.clone(), asked);
    let mailbox = RoleMailbox {
        execution: execution.id.clone(),
        handle: handle.clone(),
        role: request.role.clone(),
        current: None,
        queue: VecDeque::new(),
        answered: 0,
        released: false,
    };
    if let Some(role) = known {
        let role = run.agents.get_mut(&role).ok_or_else(|| ApplyError::NoAgent(role.clone()))?;
        let began = role.take_request(request.clone(), at);
        return Ok(began.then(|| Effect::Proceed(role.id.clone())).into_iter().collect());
    }
    execution.handles.insert(handle.clone(), child.clone());
    agent.forked_count = children;
    let working_dir = WorkingDir { cwd: cwd.clone().or(working_dir.cwd), ..working_dir };
    let spec = AgentSpec { folder, working_dir, ..AgentSpec::plain(file.clone()) };
    let session = new_session.clone().ok_or(ApplyError::NoSession)?;
    let mut role = Agent::from_spec(child.clone(), spec, session, at);
    role.execution = AgentExecution::Role(Box::new(mailbox));
    role.take_request(request.clone(), at);
    begin_share(run, &child, None);
    run.agents.insert(role);
    Ok(vec![Effect::Proceed(child)])
}

impl Agent {
    /// Takes a request as a role; returns whether it begins with it at once.
    pub(super) fn take_request(&mut self, request: RoleRequest, at: Timestamp) -> bool {
        let Some(mailbox) = self.execution.mailbox_mut() else { return false };
        if mailbox.current.is_some() {
            mailbox.queue.push_back(request);
            return false;
        }
        self.since = at;
        self.stage = match &request.body {
            RequestBody::Prompt(task) => StepStage::Task(task.clone()),
            RequestBody::Folder { .. } => StepStage::default(),
        };
        mailbox.role.clone_from(&request.role);
        mailbox.current = Some(Box::new(request));
        true
    }
}

pub(super) fn role_delegated(
    run: &mut Run,
    event: &RoleDelegated,
    at: Timestamp,
) -> Result<Vec<Effect>, ApplyError> {
    let role = due(run, &event.turn)?;
    if !role.mailbox().is_some_and(|mailbox| mailbox.is_at(&event.request)) {
        return Err(program_error("it was not asked that"));
    }
    role.next_step(at);
    role.forked_count = role.forked_count.saturating_add(1);
    let id = role.id.child(role.forked_count);
    role.wait_for_agent(id.clone());
    begin_share(run, &id, event.spec.options.budget_usd);
    let child =
        Agent::from_spec(id.clone(), AgentSpec::clone(&event.spec), event.new_session.clone(), at);
    run.agents.insert(child);
    Ok(vec![Effect::Proceed(id)])
}

pub(super) fn role_responded(
    run: &mut Run,
    event: &RoleResponded,
    at: Timestamp,
) -> Result<Vec<Effect>, ApplyError> {
    let role = due(run, &event.turn)?;
    if !role.mailbox().is_some_and(|mailbox| mailbox.is_at(&event.request)) {
        return Err(program_error("it was not asked that"));
    }
    if !event.without_turn {
        role.count_turn(event.cost.amount);
        role.note_reply(event.message.clone());
    }
    let delegated_to = role.wait_result().map(|_| role.id.child(role.forked_count));
    role.next_step(at);
    let mut asked = None;
    if let Some(mailbox) = role.execution.mailbox_mut() {
        if matches!(event.response, RequestStatus::Answer(_)) {
            mailbox.answered = mailbox.answered.saturating_add(1);
        }
        asked = mailbox.current.take().map(|request| (mailbox.execution.clone(), request));
        if let Some(next) = mailbox.queue.pop_front() {
            role.take_request(next, at);
        }
    }
    let goes_on = role.mailbox().is_some_and(|own| own.current.is_some() || own.released);
    let id = event.turn.agent.clone();
    if !event.without_turn {
        spend(run, &id, &event.state, event.cost.amount, EstimateUpdate::Yes);
    }
    let told = asked.and_then(|(execution, request)| {
        let outcome = RequestOutcome { status: &event.response, ended: Some(at), delegated_to };
        record_outcome(run, &id, &execution, &request, outcome)
    });
    Ok(told.into_iter().chain(goes_on.then_some(id)).map(Effect::Proceed).collect())
}

/// The outcome of a request.
struct RequestOutcome<'event> {
    status: &'event RequestStatus,
    /// The time of the answer.
    ended: Option<Timestamp>,
    /// The agent that the role delegated the request to.
    delegated_to: Option<AgentId>,
}

/// Tells an execution the outcome of a request; returns its agent, if it still exists.
fn record_outcome(
    run: &mut Run,
    role: &AgentId,
    execution: &str,
    request: &RoleRequest,
    RequestOutcome { status, ended, delegated_to }: RequestOutcome<'_>,
) -> Option<AgentId> {
    let program_agent = AgentId::parse(role.parent()?).ok()?;
    let agent = run.agents.get_mut(&program_agent)?;
    let own = agent.execution.program_mut().filter(|own| own.id == execution)?;
    if let RequestStatus::Answer(text) = status {
        own.answers.insert(request.role.clone(), text.clone());
    }
    let id = own.id.as_str();
    let asked = own.requests.get_mut(&request.name);
    if let Some(asked) =
        asked.filter(|asked| request.id == format!("{id}/{}/{}", request.name, asked.number))
    {
        asked.status = status.clone();
        asked.ended = ended;
        let lost = || {
            let (agent, request) = (role.clone(), request.clone());
            Box::new(LostRequest { agent, request, delegated_to })
        };
        asked.lost = matches!(status, RequestStatus::Failed(_)).then(lost);
    }
    Some(program_agent)
}

/// Fails all requests of a role that has failed. Returns the execution's agent, if it still exists; a later
/// request gets another agent.
pub(super) fn fail_requests_of(run: &mut Run, role: &Agent, error: &str) -> Option<AgentId> {
    let mailbox = role.mailbox()?;
    let asked = mailbox.current.as_deref().into_iter().chain(&mailbox.queue);
    let mut told = None;
    for request in asked {
        let failed = RequestStatus::Failed(error.to_owned());
        let outcome = RequestOutcome { status: &failed, ended: None, delegated_to: None };
        told = record_outcome(run, &role.id, &mailbox.execution, request, outcome).or(told);
    }
    let program_agent = AgentId::parse(role.id.parent()?).ok()?;
    let own = run.agents.get_mut(&program_agent).and_then(|agent| agent.execution.program_mut());
    if let Some(own) = own.filter(|own| own.id == mailbox.execution) {
        own.handles.retain(|_, agent| *agent != role.id);
    }
    told
}

/// Releases the roles of a program that has ended: idle roles end now, busy ones after their queue.
pub(super) fn release(run: &mut Run, execution: &ProgramExecution) -> Vec<Effect> {
    let mut effects = Vec::new();
    for id in roles_of(execution) {
        let mailbox = run.agents.get_mut(&id).and_then(|role| role.execution.mailbox_mut());
        let Some(mailbox) = mailbox else { continue };
        mailbox.released = true;
        if mailbox.is_over() {
            effects.push(Effect::Proceed(id));
        }
    }
    effects
}

fn roles_of(execution: &ProgramExecution) -> Vec<AgentId> {
    execution.handles.values().cloned().collect()
}

fn no_program() -> ApplyError {
    program_error("it is in no program")
}

fn program_error(why: &str) -> ApplyError {
    ApplyError::Program(why.to_owned())
}
