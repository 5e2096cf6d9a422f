//! The transitions of agents: the states, sessions and folders that they enter, and their pending returns.

use super::forks::create_children;
use crate::domain::agent::{Agent, AskedQuestion, QuestionTimeout, ReturnFrame};
use crate::domain::call_budget::CallBudget;
use crate::domain::event::{PermanentRestart, StepFinished};
use crate::domain::id::{Folder, SessionId, StateName};
use crate::domain::question::Question;
use crate::domain::session::Session;
use crate::domain::time::Timestamp;
use crate::domain::transition::{Transition, Variables};

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
