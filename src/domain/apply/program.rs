//! Programs: executions that start and advance, requests to their roles, answers, and facts.

use std::collections::{BTreeMap, VecDeque};

use super::money::{EstimateUpdate, begin_share, spend};
use super::{ApplyError, due};
use crate::domain::agent::{Agent, AgentExecution, AgentSpec, StepStage};
use crate::domain::effect::Effect;
use crate::domain::event::{
    ProgramAdvanced, ProgramDefined, ProgramStarted, ProgramStatus, RoleDelegated, RoleRequested,
    RoleResponded,
};
use crate::domain::fact::FactChange;
use crate::domain::id::AgentId;
use crate::domain::program_execution::{
    ProgramExecution, ProgramPosition, RequestBody, RequestEntry, RequestStatus, RoleMailbox,
    RoleRequest,
};
use crate::domain::run::Run;
use crate::domain::time::Timestamp;
use crate::domain::working_dir::WorkingDir;

pub(super) fn program_defined(run: &mut Run, event: &ProgramDefined) -> Vec<Effect> {
    run.definitions.insert(event.program.clone(), event.clone());
    Vec::new()
}

pub(super) fn program_started(
    run: &mut Run,
    event: &ProgramStarted,
) -> Result<Vec<Effect>, ApplyError> {
    if !run.definitions.contains_key(&event.program) {
        return Err(misfit("its program is not defined"));
    }
    let agent = due(run, &event.turn)?;
    if !agent.runs_program() || agent.program().is_some() {
        return Err(misfit("it begins no program"));
    }
    agent.execution = AgentExecution::Program(Box::new(ProgramExecution {
        program: event.program.clone(),
        name: event.name.clone(),
        id: format!("{}#{}", event.turn.agent, event.turn.step),
        label: event.label.clone(),
        branch: event.branch.clone(),
        context: event.context.clone(),
        stand: ProgramPosition { current: event.start.clone(), ..ProgramPosition::default() },
        requests: BTreeMap::new(),
        handles: BTreeMap::new(),
        answers: BTreeMap::new(),
        bound: BTreeMap::new(),
        bases: BTreeMap::new(),
    }));
    Ok(Vec::new())
}

pub(super) fn program_advanced(
    run: &mut Run,
    event: &ProgramAdvanced,
    at: Timestamp,
) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    if agent.program().is_none() {
        return Err(no_program());
    }
    agent.next_step(at);
    let instance = agent.execution.program_mut().ok_or_else(no_program)?;
    instance.stand = event.stand.clone();
    instance.bound.extend(event.bound.clone());
    instance
        .bases
        .extend(event.bases.iter().flatten().map(|(at, base)| (at.clone(), base.clone())));
    let effects = vec![Effect::Proceed(event.turn.agent.clone())];
    if event.status == ProgramStatus::Failed {
        let roles: Vec<AgentId> = roles_of(instance);
        for role in roles {
            let role = run.agents.get_mut(&role);
            if let Some(mailbox) = role.and_then(|role| role.execution.mailbox_mut()) {
                mailbox.queue.clear();
            }
        }
    }
    Ok(effects)
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
        let instance = agent.program().filter(|instance| instance.stand.wait.is_some());
        let labels = instance.and_then(|instance| run.definitions.get(&instance.program));
        labels.is_some_and(|definition| {
            changes.iter().any(|change| definition.labels.iter().any(|own| own == change.label()))
        })
    };
    let woken = run.agents.values().filter(|agent| looks(agent));
    woken.map(|agent| Effect::Proceed(agent.id.clone())).collect()
}

pub(super) fn role_requested(
    run: &mut Run,
    event: &RoleRequested,
    at: Timestamp,
) -> Result<Vec<Effect>, ApplyError> {
    let RoleRequested { turn, file, handle, asking, new_session, cwd } = event;
    let asks = due(run, turn)?.program().ok_or_else(no_program)?;
    let known = asks.handles.get(handle).cloned();
    if known.is_none() && new_session.is_none() {
        return Err(ApplyError::NoSession);
    }
    if let Some(role) = known.as_ref().filter(|role| !run.agents.contains_key(role)) {
        return Err(ApplyError::NoAgent(role.clone()));
    }
    let agent = due(run, turn)?;
    let (folder, home) = (agent.birth.folder.clone(), agent.birth.home.clone());
    let children = agent.children.saturating_add(1);
    let child = agent.id.child(children);
    let instance = agent.execution.program_mut().ok_or_else(no_program)?;
    let before = instance.requests.get(&asking.name).map_or(0, |before| before.number);
    let number = before.saturating_add(1);
    let asked = RequestEntry {
        number,
        role: asking.role.clone(),
        status: RequestStatus::Pending,
        ended: None,
    };
    instance.requests.insert(asking.name.clone(), asked);
    let service = RoleMailbox {
        instance: instance.id.clone(),
        handle: handle.clone(),
        role: asking.role.clone(),
        current: None,
        queue: VecDeque::new(),
        answered: 0,
        released: false,
    };
    if let Some(role) = known {
        let role = run.agents.get_mut(&role).ok_or_else(|| ApplyError::NoAgent(role.clone()))?;
        let began = role.is_asked(asking.clone(), at);
        return Ok(began.then(|| Effect::Proceed(role.id.clone())).into_iter().collect());
    }
    instance.handles.insert(handle.clone(), child.clone());
    agent.children = children;
    let home = WorkingDir { cwd: cwd.clone().or(home.cwd), ..home };
    let birth = AgentSpec { folder, home, ..AgentSpec::plain(file.clone()) };
    let session = new_session.clone().ok_or(ApplyError::NoSession)?;
    let mut role = Agent::born(child.clone(), birth, session, at);
    role.execution = AgentExecution::Role(Box::new(service));
    role.is_asked(asking.clone(), at);
    begin_share(run, &child, None);
    run.agents.insert(role);
    Ok(vec![Effect::Proceed(child)])
}

impl Agent {
    /// Takes a request as a role; returns whether it begins with it at once.
    fn is_asked(&mut self, asking: RoleRequest, at: Timestamp) -> bool {
        let Some(service) = self.execution.mailbox_mut() else { return false };
        if service.current.is_some() {
            service.queue.push_back(asking);
            return false;
        }
        self.since = at;
        self.stage = match &asking.work {
            RequestBody::Prompt(task) => StepStage::Task(task.clone()),
            RequestBody::Folder { .. } => StepStage::default(),
        };
        service.role.clone_from(&asking.role);
        service.current = Some(Box::new(asking));
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
        return Err(misfit("it was not asked that"));
    }
    role.next_step(at);
    role.children = role.children.saturating_add(1);
    let id = role.id.child(role.children);
    role.wait_for_agent(id.clone());
    begin_share(run, &id, event.birth.terms.budget_usd);
    let child =
        Agent::born(id.clone(), AgentSpec::clone(&event.birth), event.new_session.clone(), at);
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
        return Err(misfit("it was not asked that"));
    }
    if !event.without_turn {
        role.count_turn(event.cost.amount);
        role.note_reply(event.message.clone());
    }
    role.next_step(at);
    let mut asked = None;
    if let Some(service) = role.execution.mailbox_mut() {
        if matches!(event.response, RequestStatus::Answer(_)) {
            service.answered = service.answered.saturating_add(1);
        }
        asked = service.current.take().map(|asking| (service.instance.clone(), asking));
        if let Some(next) = service.queue.pop_front() {
            role.is_asked(next, at);
        }
    }
    let goes_on = role.mailbox().is_some_and(|own| own.current.is_some() || own.released);
    let id = event.turn.agent.clone();
    if !event.without_turn {
        spend(run, &id, &event.state, event.cost.amount, EstimateUpdate::Yes);
    }
    let told = asked.and_then(|(instance, asking)| {
        tell(run, &id, &instance, &asking, (&event.response, Some(at)))
    });
    Ok(told.into_iter().chain(goes_on.then_some(id)).map(Effect::Proceed).collect())
}

/// Tells an execution the outcome of a request; returns its agent, if it still exists.
fn tell(
    run: &mut Run,
    role: &AgentId,
    instance: &str,
    asking: &RoleRequest,
    (response, ended): (&RequestStatus, Option<Timestamp>),
) -> Option<AgentId> {
    let conductor = AgentId::parse(role.parent()?).ok()?;
    let agent = run.agents.get_mut(&conductor)?;
    let own = agent.execution.program_mut().filter(|own| own.id == instance)?;
    if let RequestStatus::Answer(text) = response {
        own.answers.insert(asking.role.clone(), text.clone());
    }
    let id = own.id.as_str();
    let asked = own.requests.get_mut(&asking.name);
    if let Some(asked) =
        asked.filter(|asked| asking.id == format!("{id}/{}/{}", asking.name, asked.number))
    {
        asked.status = response.clone();
        asked.ended = ended;
    }
    Some(conductor)
}

/// Fails all requests of a role that has failed. Returns the execution's agent, if it still exists; a later
/// request gets another agent.
pub(super) fn fail_requests_of(run: &mut Run, role: &Agent, error: &str) -> Option<AgentId> {
    let service = role.mailbox()?;
    let asked = service.current.as_deref().into_iter().chain(&service.queue);
    let mut told = None;
    for asking in asked {
        let failed = RequestStatus::Failed(error.to_owned());
        told = tell(run, &role.id, &service.instance, asking, (&failed, None)).or(told);
    }
    let conductor = AgentId::parse(role.id.parent()?).ok()?;
    let own = run.agents.get_mut(&conductor).and_then(|agent| agent.execution.program_mut());
    if let Some(own) = own.filter(|own| own.id == service.instance) {
        own.handles.retain(|_, agent| *agent != role.id);
    }
    told
}

/// Releases the roles of a program that has ended: idle roles end now, busy ones after their queue.
pub(super) fn release(run: &mut Run, instance: &ProgramExecution) -> Vec<Effect> {
    let mut effects = Vec::new();
    for id in roles_of(instance) {
        let service = run.agents.get_mut(&id).and_then(|role| role.execution.mailbox_mut());
        let Some(service) = service else { continue };
        service.released = true;
        if service.is_over() {
            effects.push(Effect::Proceed(id));
        }
    }
    effects
}

fn roles_of(instance: &ProgramExecution) -> Vec<AgentId> {
    instance.handles.values().cloned().collect()
}

fn no_program() -> ApplyError {
    misfit("it is in no program")
}

fn misfit(why: &str) -> ApplyError {
    ApplyError::Program(why.to_owned())
}
