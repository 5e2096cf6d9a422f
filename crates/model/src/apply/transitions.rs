//! The transitions of agents: the states, sessions and folders that they enter, and their pending returns.
//!
//! Forked agents: their creation, and the report of their ends to the parent.

use serde_json::Value;

use crate::agent::{Agent, AgentSpec, AskedQuestion, QuestionTimeout, ReturnFrame, TurnHold};
use crate::budget::CallBudget;
use crate::event::{PermanentRestart, StepFinished};
use crate::id::{AgentId, Folder, SessionId, StateName};
use crate::question::Question;
use crate::run::{AgentEnding, Run};
use crate::session::Session;
use crate::settings::{ChildSpec, ForkGroup};
use crate::time::Timestamp;
use crate::transition::{Transition, Variables};

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
