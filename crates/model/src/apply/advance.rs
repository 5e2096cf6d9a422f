//! The reducer for agents that advance by themselves, awaited agents, programs, transitions and forks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::{ApplyError, EstimateUpdate, begin_share, due, spend};
use crate::agent::{
    Agent, AgentExecution, AgentSpec, AskedQuestion, QuestionTimeout, ReturnFrame, StepStage,
    TurnHold,
};
use crate::apply::Effect;
use crate::budget::CallBudget;
use crate::event::{
    AdvanceView, AdvancedTo, GraphAdvanced, NextAction, PermanentRestart, ProgramDefined,
    ProgramProgress, ProgramStarted, ProgramStatus, RoleDelegated, RoleRequested, RoleResponded,
    StepFinished,
};
use crate::fact::{Fact, FactChange};
use crate::graph_execution::{
    GraphExecution, GraphState, LostRequest, NodeCursor, ProgramExecution, ProgramPosition,
    RequestBody, RequestEntry, RequestStatus, RoleMailbox, RoleRequest, WaitResult,
};
use crate::id::{AgentId, Folder, SessionId, StateName};
use crate::join::PendingJoin;
use crate::question::Question;
use crate::run::{AgentEnding, Run};
use crate::session::Session;
use crate::settings::{ChildSpec, ForkGroup};
use crate::time::Timestamp;
use crate::transition::{Transition, Variables};
use crate::worktree_snapshot::WorkingDir;

pub(super) fn advanced(
    run: &mut Run,
    event: &AdvanceView<'_>,
    at: Timestamp,
) -> Result<Vec<Effect>, ApplyError> {
    // The dataspace does not report the end of a fact that only this run still has.
    let taken = run.kept_fact_of(&event.turn.agent);
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
            let before = agent.program().map(|program| program.position.committed_usd());
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
        (None, _) => {}
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
            let until = agent.program().and_then(|program| program.position.due_wait()?.until);
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

/// Gives the outcome of an agent to the agent that waits for it. Returns the id of the waiting agent, if any.
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

// Programs: executions that start and advance, requests to their roles, answers, and facts.

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
    let roles: Vec<AgentId> =
        run.agents.get(id).into_iter().flat_map(Agent::roles).cloned().collect();
    for role in roles {
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
            changes
                .iter()
                .any(|change| definition.labels.iter().any(|label| label == change.label()))
        })
    };
    let mut woken: Vec<&Agent> = run.agents.unordered().filter(|agent| looks(agent)).collect();
    woken.sort_unstable_by(|left, right| left.id.cmp_by_number(&right.id));
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
    let goes_on =
        role.mailbox().is_some_and(|mailbox| mailbox.current.is_some() || mailbox.released);
    let id = event.turn.agent.clone();
    if !event.without_turn {
        spend(run, &id, &event.state, event.cost.amount, EstimateUpdate::Yes);
    }
    let program_agent = asked.and_then(|(execution, request)| {
        let outcome = RequestOutcome { status: &event.response, ended: Some(at), delegated_to };
        record_outcome(run, &id, &execution, &request, outcome)
    });
    Ok(program_agent.into_iter().chain(goes_on.then_some(id)).map(Effect::Proceed).collect())
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
    let program = served_program(run, role, execution)?;
    if let RequestStatus::Answer(text) = status {
        program.answers.insert(request.role.clone(), text.clone());
    }
    let asked = program.requests.get_mut(&request.name);
    if let Some(asked) =
        asked.filter(|asked| request.id == format!("{execution}/{}/{}", request.name, asked.number))
    {
        asked.status = status.clone();
        asked.ended = ended;
        let lost = || {
            let (agent, request) = (role.clone(), request.clone());
            Box::new(LostRequest { agent, request, delegated_to })
        };
        asked.lost = matches!(status, RequestStatus::Failed(_)).then(lost);
    }
    AgentId::parse(role.parent()?).ok()
}

/// Returns the execution that a role serves, if it still exists.
fn served_program<'run>(
    run: &'run mut Run,
    role: &AgentId,
    execution: &str,
) -> Option<&'run mut ProgramExecution> {
    let agent = run.agents.get_mut(&AgentId::parse(role.parent()?).ok()?)?;
    agent.execution.program_mut().filter(|program| program.id == execution)
}

/// Fails all requests of a role that has failed. Returns the execution's agent, if it still exists; a later
/// request gets another agent.
pub(super) fn fail_requests_of(run: &mut Run, role: &Agent, error: &str) -> Option<AgentId> {
    let mailbox = role.mailbox()?;
    let asked = mailbox.current.as_deref().into_iter().chain(&mailbox.queue);
    let mut program_agent = None;
    for request in asked {
        let failed = RequestStatus::Failed(error.to_owned());
        let outcome = RequestOutcome { status: &failed, ended: None, delegated_to: None };
        program_agent = record_outcome(run, &role.id, &mailbox.execution, request, outcome);
    }
    if let Some(program) = served_program(run, &role.id, &mailbox.execution) {
        program.handles.retain(|_, agent| *agent != role.id);
    }
    program_agent
}

/// Releases the roles of a program that has ended: idle roles end now, busy ones after their queue.
pub(super) fn release(run: &mut Run, roles: Vec<AgentId>) -> Vec<Effect> {
    let mut effects = Vec::new();
    for id in roles {
        let mailbox = run.agents.get_mut(&id).and_then(|role| role.execution.mailbox_mut());
        let Some(mailbox) = mailbox else { continue };
        mailbox.released = true;
        if mailbox.is_over() {
            effects.push(Effect::Proceed(id));
        }
    }
    effects
}

fn no_program() -> ApplyError {
    program_error("it is in no program")
}

fn program_error(why: &str) -> ApplyError {
    ApplyError::Program(why.to_owned())
}

// The transitions of agents: the states, sessions and folders that they enter, and their pending returns.

/// The outcome of a transition for its agent.
pub(super) enum TransitionEffect {
    GoesOn,
    Asked,
    Dropped(usize),
    Forked(Vec<Agent>),
    Ended { payload: String, structured: bool },
}

/// Returns the pending return of a call that a step makes.
fn return_frame(
    event: &StepFinished,
    target: &StateName,
    caller: &Agent,
    return_to: &StateName,
) -> ReturnFrame {
    let budget = event.call_budget_usd.map(|limit| CallBudget::of(target.clone(), limit));
    ReturnFrame::of(caller, return_to.clone(), budget)
}

/// Applies a transition to an agent; `opened` is the id of the new session, if the transition opens one.
pub(super) fn take_transition(
    agent: &mut Agent,
    event: &StepFinished,
    opened: Option<SessionId>,
    folder: Option<&Folder>,
    at: Timestamp,
) -> TransitionEffect {
    let here = agent.session.clone();
    let opened = opened.unwrap_or_else(|| here.id.clone());
    match &event.transition {
        Transition::Goto { target, variables, .. } => {
            agent.go_to(folder);
            agent.enter(target.clone(), here, variables.clone(), at);
            TransitionEffect::GoesOn
        }
        Transition::Reset { target, keeps_stack: true, variables, .. } => {
            agent.go_to(folder);
            agent.enter(target.clone(), Session::fresh(opened), variables.clone(), at);
            TransitionEffect::GoesOn
        }
        Transition::Reset { target, keeps_stack: false, variables, .. } => {
            agent.go_to(folder);
            let dropped = std::mem::take(&mut agent.stack).len();
            agent.unjoined.hand_to_caller(0);
            agent.enter(target.clone(), Session::fresh(opened), variables.clone(), at);
            if dropped == 0 { TransitionEffect::GoesOn } else { TransitionEffect::Dropped(dropped) }
        }
        Transition::Call { target, return_to, variables, .. } => {
            let frame = return_frame(event, target, agent, return_to);
            agent.stack.push(frame);
            agent.go_to(folder);
            agent.enter(target.clone(), here.branched(opened), variables.clone(), at);
            TransitionEffect::GoesOn
        }
        Transition::Function { target, return_to, variables, .. } => {
            let frame = return_frame(event, target, agent, return_to);
            agent.stack.push(frame);
            agent.go_to(folder);
            agent.enter(target.clone(), Session::fresh(opened), variables.clone(), at);
            TransitionEffect::GoesOn
        }
        Transition::Fork { next, .. } => {
            let children = create_children(agent, event, opened, at);
            agent.enter(next.clone(), here, Variables::new(), at);
            TransitionEffect::Forked(children)
        }
        Transition::Ask { next, timeout, variables, .. } => {
            agent.enter(next.clone(), here, variables.clone(), at);
            let late = timeout.as_ref().map(|timeout| QuestionTimeout::after(timeout, at));
            if let Some((question, _)) = Question::of(&event.transition) {
                agent.wait_for_answer(AskedQuestion { question, since: at, late });
            }
            TransitionEffect::Asked
        }
        Transition::Result { payload, variables, structured } => match agent.stack.pop() {
            None => match event.restarted {
                Some(PermanentRestart { not_before }) => {
                    agent.restart(opened, not_before, at);
                    TransitionEffect::GoesOn
                }
                None => {
                    TransitionEffect::Ended { payload: payload.clone(), structured: *structured }
                }
            },
            Some(frame) => {
                agent.unjoined.hand_to_caller(agent.stack.len());
                let mut variables = variables.clone();
                variables.insert("result".to_owned(), payload.clone());
                agent.scope.clone_from(&frame.scope);
                agent.enter(frame.state.clone(), frame.back(), variables, at);
                TransitionEffect::GoesOn
            }
        },
    }
}

// Forked agents: their creation, and the report of their ends to the parent.

/// Creates the agents a step forks; `opened` is the session of an agent that is forked alone.
pub(super) fn create_children(
    agent: &mut Agent,
    event: &StepFinished,
    opened: SessionId,
    at: Timestamp,
) -> Vec<Agent> {
    let alone: [ForkGroup; 1];
    let groups = if let (true, Transition::Fork { target, scope, variables, .. }) =
        (event.children.is_empty(), &event.transition)
    {
        let agents = vec![ChildSpec { session: opened, cwd: None, variables: variables.clone() }];
        let options = (*event.options).clone();
        let (state, scope) = (target.clone(), scope.clone());
        alone = [ForkGroup { state, scope, options, base: None, not_before: None, agents }];
        &alone[..]
    } else {
        &event.children
    };
    let depth = agent.stack.len();
    let mut children = Vec::with_capacity(crate::settings::agent_count(groups));
    for group in groups {
        let folder = agent.folder_at(group.scope.as_ref()).unwrap_or_else(|_| agent.folder());
        for (index, child) in group.agents.iter().enumerate() {
            agent.forked_count = agent.forked_count.saturating_add(1);
            agent.unjoined.add(agent.forked_count, depth);
            let spec = AgentSpec {
                folder: folder.clone(),
                working_dir: agent.spec.working_dir.without_home().below(child.cwd.as_ref()),
                base: group.base.clone(),
                variables: child.variables.clone(),
                options: group.options.clone(),
                ..AgentSpec::plain(group.state.clone())
            };
            let id = agent.id.child(agent.forked_count);
            let mut child = Agent::from_spec(id, spec, child.session.clone(), at);
            let stagger = group.not_before.filter(|_| index > 0);
            // A circle of scripts that fork each other has a bound, too.
            child.script_steps = agent.script_steps;
            child.hold = stagger.map(|until| TurnHold::Stagger { until });
            children.push(child);
        }
    }
    children
}

/// Counts the end of an agent at its parent, if the parent forked it and lives. Returns the agent's variables
/// then, and the parent's id if its join is decided.
pub(super) fn count_end_at_parent(
    run: &mut Run,
    ended: Option<&Agent>,
    ending: &AgentEnding,
) -> (Option<Variables>, Option<AgentId>) {
    let found = ended.and_then(|agent| Some((agent, AgentId::parse(agent.id.parent()?).ok()?)));
    let Some((agent, parent)) = found else { return (None, None) };
    let number = agent.id.number();
    let Some(parent) = run.agents.get_mut(&parent) else {
        let is_kept = is_joined_by_retry(run, &parent, number);
        return (is_kept.then(|| agent.spec.variables.clone()), None);
    };
    if !parent.unjoined.contains(number) {
        return (None, None);
    }
    parent.unjoined.ended(number, matches!(ending, AgentEnding::Result(_)));
    let forked = agent.spec.variables.clone();
    let tally = parent.unjoined.tally(parent.join_depth());
    let is_decided =
        parent.pending_join().is_some_and(|pending| pending.join.outcome(tally).is_some());
    (Some(forked), is_decided.then(|| parent.id.clone()))
}

/// Returns whether the join of a parent that has failed takes that child if the parent is retried.
fn is_joined_by_retry(run: &Run, parent: &AgentId, number: u32) -> bool {
    let parent = run.finished.iter().rev().find(|ended| ended.id == *parent);
    let kept = parent.and_then(|parent| parent.retryable.as_deref());
    kept.is_some_and(|parent| parent.unjoined.contains(number))
}

/// Returns a result as others see it: an object if it was checked to be one, else the text.
pub(super) fn result_value(result: &str, structured: bool) -> Value {
    let object = structured.then(|| serde_json::from_str(result).ok()).flatten();
    object.unwrap_or_else(|| result.into())
}
