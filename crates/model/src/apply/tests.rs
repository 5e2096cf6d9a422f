//! Tests of the reducer by tables.
//!
//! They cover the effect of each tag on session, stack and siblings, what follows failures and pauses, and events that
//! are refused and change nothing.
//!
//! `laws` holds the invariants.

mod calls;
mod laws;
mod orders;
mod pauses;
mod refusals;
mod retry;
mod scopes;
mod shares;
mod turns;

use super::*;
use crate::agent::ReturnFrame;
use crate::event::{TurnFailed, TurnRejected};
use crate::id::{MessageId, SessionId};
use crate::run::FinishedAgent;
use crate::session::{Session, SessionOrigin};
use crate::tests::scene::{
    self, CENT, Scene, agent_id, goto, message, result, session, state, tag, variables,
};
use crate::transition::{TagName, Variables};
use crate::turn::FailureCause;

fn proceed(id: &str) -> Effect {
    Effect::Proceed(agent_id(id))
}

fn retire_effect(id: &str) -> Effect {
    Effect::Retire(agent_id(id))
}

fn branch(id: u64, from: u64, at: Option<MessageId>) -> Session {
    let origin = SessionOrigin::Branch { from: session(from), at };
    Session {
        kept: None,
        id: session(id),
        origin,
        checkpoint: None,
        ancestors: vec![session(from)],
    }
}

/// The session of a call from the first session, after a turn.
fn in_call(id: u64, checkpoint: u64) -> Session {
    let ancestors = vec![session(1)];
    Session { ancestors, ..Session::resumed(session(id), Some(message(checkpoint))) }
}

/// A frame of the first session, or of one that continues it.
fn frame(caller: u64, return_to: &str, checkpoint: u64) -> ReturnFrame {
    ReturnFrame {
        kept: None,
        ancestors: (1..caller).map(session).collect(),
        unbegun: None,
        scope: None,
        session: session(caller),
        state: state(return_to),
        checkpoint: Some(message(checkpoint)),
        budget: None,
    }
}

fn with(transition: Transition, pairs: &[(&str, &str)]) -> Transition {
    let mut transition = transition;
    match &mut transition {
        Transition::Goto { variables, .. }
        | Transition::Reset { variables, .. }
        | Transition::Call { variables, .. }
        | Transition::Function { variables, .. }
        | Transition::Fork { variables, .. }
        | Transition::Ask { variables, .. }
        | Transition::Result { variables, .. } => *variables = scene::variables(pairs),
    }
    transition
}

#[test]
fn run_starts_with_main_agent_at_first_turn() {
    let (run, effects) = begin(&scene::first()).expect("a start");
    assert_eq!(effects, [proceed("main")]);
    assert_eq!((run.seq, run.status, run.total_cost_usd), (1, RunStatus::Running, Usd::ZERO));
    let main = &run.agents[&AgentId::main()];
    assert_eq!(main.session, Session::fresh(session(1)));
    assert_eq!((main.step, main.turn, main.stack.len()), (1, 0, 0));
}

/// Each tag that keeps its agent alive, taken once from a first step.
#[test]
fn each_tag_sets_session_stack_and_state() {
    let gone_on = Session::resumed(session(1), Some(message(2)));
    let called = vec![frame(1, "R.md", 2)];
    let table = [
        (tag(TagName::Goto, "", "B.md"), gone_on.clone(), vec![], "B.md"),
        (tag(TagName::Reset, "", "B.md"), Session::fresh(session(2)), vec![], "B.md"),
        (
            tag(TagName::Call, "R.md", "B.md"),
            branch(2, 1, Some(message(2))),
            called.clone(),
            "B.md",
        ),
        (tag(TagName::Function, "R.md", "B.md"), Session::fresh(session(2)), called, "B.md"),
        (tag(TagName::Fork, "N.md", "W.md"), gone_on, vec![], "N.md"),
    ];
    for (transition, session, stack, enters) in table {
        let mut scene = Scene::begin();
        let effects = scene.take("main", transition.clone());
        let main = scene.agent("main");
        assert_eq!(main.session, session, "{transition}");
        assert_eq!(main.stack, stack, "{transition}");
        assert_eq!(main.current_state, state(enters), "{transition}");
        assert_eq!((main.step, main.turn, main.since), (2, 0, Timestamp(2000)), "{transition}");
        assert_eq!(effects[0], proceed("main"), "{transition}");
        assert_eq!(effects.len(), scene.run.agents.len(), "{transition}");
    }
}

#[test]
fn result_without_caller_ends_agent() {
    let mut scene = Scene::begin();
    assert_eq!(scene.take("main", result(" as it\nstands ")), [retire_effect("main"), Effect::End]);
    assert!(scene.run.agents.is_empty());
    assert_eq!(
        scene.run.finished,
        [FinishedAgent {
            id: AgentId::main(),
            state: Some(state("A.md")),
            folder: None,
            failed_in: None,
            failed_folder: None,
            ending: AgentEnding::Result(" as it\nstands ".into()),
            structured: false,
            cause: None,
            cost_usd: Usd::from_dollars(CENT),
            unbilled_turn: None,
            variables: None,
            parent_notified: false,
            untold: Vec::new(),
            retryable: None,
        }]
    );
    assert_eq!(scene.run.status, RunStatus::Completed);
}

#[test]
fn result_resumes_caller_at_its_checkpoint() {
    for kind in [TagName::Call, TagName::Function] {
        let mut scene = Scene::begin();
        scene.take("main", goto("B.md"));
        scene.take("main", tag(kind, "R.md", "C.md"));
        scene.take("main", goto("D.md"));
        assert_eq!(scene.agent("main").stack, [frame(1, "R.md", 3)], "{kind}");
        assert_eq!(scene.take("main", result("42")), [proceed("main")], "{kind}");
        let main = scene.agent("main");
        assert_eq!(main.current_state, state("R.md"), "{kind}");
        assert_eq!(main.session, Session::resumed(session(1), Some(message(3))), "{kind}");
        assert_eq!(main.variables, variables(&[("result", "42")]), "{kind}");
        assert!(main.stack.is_empty(), "{kind}");
    }
}

#[test]
fn nested_result_returns_to_innermost_caller_first() {
    let mut scene = Scene::begin();
    scene.take("main", tag(TagName::Call, "R1.md", "B.md"));
    scene.take("main", tag(TagName::Function, "R2.md", "C.md"));
    assert_eq!(scene.agent("main").stack, [frame(1, "R1.md", 2), frame(2, "R2.md", 3)]);
    scene.take("main", result("inner"));
    assert_eq!(scene.agent("main").current_state, state("R2.md"));
    assert_eq!(scene.agent("main").session, in_call(2, 3));
    scene.take("main", result("outer"));
    assert_eq!(scene.agent("main").current_state, state("R1.md"));
    assert_eq!(scene.agent("main").session, Session::resumed(session(1), Some(message(2))));
    assert_eq!(scene.take("main", result("end")), [retire_effect("main"), Effect::End]);
}

#[test]
fn reset_drops_pending_returns_with_warning() {
    for (calls, words) in [(1, "dropped 1 pending return:"), (2, "dropped 2 pending returns:")] {
        let mut scene = Scene::begin();
        for _ in 0..calls {
            scene.take("main", tag(TagName::Call, "R.md", "B.md"));
        }
        let opened = scene.next();
        let effects = scene.take("main", tag(TagName::Reset, "", "C.md"));
        let [Effect::Warn { agent, text }, next] = effects.as_slice() else {
            panic!("not a warning and the next step: {effects:?}")
        };
        assert_eq!((agent, next), (&AgentId::main(), &proceed("main")));
        assert!(text.contains("<reset> in B.md") && text.contains(words), "{text}");
        assert!(scene.agent("main").stack.is_empty());
        assert_eq!(scene.agent("main").session, Session::fresh(session(opened)));
        assert_eq!(scene.take("main", result("end")), [retire_effect("main"), Effect::End]);
    }
}

#[test]
fn fork_advances_parent_and_starts_child_in_one_record() {
    let mut scene = Scene::begin();
    scene.take("main", tag(TagName::Call, "R.md", "B.md"));
    let fork = with(tag(TagName::Fork, "N.md", "W.md"), &[("item", "x")]);
    assert_eq!(scene.take("main", fork), [proceed("main"), proceed("main.1")]);
    assert_eq!(scene.run.seq, 3);

    let parent = scene.agent("main");
    assert_eq!((parent.current_state.as_str(), parent.step, parent.forked_count), ("N.md", 3, 1));
    assert_eq!(parent.session, in_call(2, 3));
    assert_eq!(parent.stack, [frame(1, "R.md", 2)]);
    assert_eq!(parent.variables, Variables::new());

    let child = scene.agent("main.1");
    let spec =
        AgentSpec { variables: variables(&[("item", "x")]), ..AgentSpec::plain(state("W.md")) };
    let born = Agent::from_spec(agent_id("main.1"), spec, session(3), Timestamp(3000));
    assert_eq!(*child, born);
}

#[test]
fn child_id_extends_parent_id_and_is_never_reused() {
    let mut scene = Scene::begin();
    let fork = || tag(TagName::Fork, "N.md", "W.md");
    scene.take("main", fork());
    scene.take("main", fork());
    scene.take("main.2", fork());
    scene.take("main.1", result("gone"));
    scene.take("main", fork());
    let live: Vec<&str> = scene.run.agents.keys().map(AgentId::as_str).collect();
    assert_eq!(live, ["main", "main.2", "main.2.1", "main.3"]);
}

#[test]
fn attributes_become_variables_of_entered_state_only() {
    let given = [("item", "x"), ("n", "1")];
    for kind in [TagName::Goto, TagName::Reset, TagName::Call, TagName::Function] {
        let mut scene = Scene::begin();
        scene.take("main", with(tag(kind, "R.md", "B.md"), &given));
        assert_eq!(scene.agent("main").variables, variables(&given), "{kind}");
        scene.take("main", goto("C.md"));
        assert_eq!(scene.agent("main").variables, Variables::new(), "{kind}");
    }
}

#[test]
fn result_payload_overrides_attribute_named_result() {
    let mut scene = Scene::begin();
    scene.take("main", tag(TagName::Call, "R.md", "B.md"));
    scene.take("main", with(result("payload"), &[("result", "attribute"), ("n", "1")]));
    let expected = variables(&[("n", "1"), ("result", "payload")]);
    assert_eq!(scene.agent("main").variables, expected);
}

#[test]
fn spawn_variables_stay_unless_state_is_entered_with_others() {
    let given = [("item", "x"), ("kind", "k"), ("result", "of the fork"), ("answer", "none")];
    for kind in [TagName::Goto, TagName::Reset, TagName::Call, TagName::Function] {
        let mut scene = Scene::begin();
        scene.take("main", with(tag(TagName::Fork, "N.md", "W.md"), &given));
        let values = |scene: &Scene| scene.agent("main.1").placeholder_values();
        assert_eq!(values(&scene), variables(&given), "{kind}");
        scene.take("main.1", with(tag(kind, "R.md", "B.md"), &[("kind", "other"), ("n", "1")]));
        let entered = variables(&[("item", "x"), ("kind", "other"), ("n", "1")]);
        assert_eq!(values(&scene), entered, "{kind}");
        scene.take("main.1", goto("C.md"));
        assert_eq!(values(&scene), variables(&[("item", "x"), ("kind", "k")]), "{kind}");
        scene.take("main.1", tag(TagName::Fork, "D.md", "V.md"));
        assert!(scene.agent("main.1.1").placeholder_values().is_empty(), "{kind}");
        assert!(scene.agent("main").placeholder_values().is_empty(), "{kind}");
    }
}

#[test]
fn returned_result_is_value_of_one_state_only() {
    let mut scene = Scene::begin();
    scene.take("main", with(tag(TagName::Fork, "N.md", "W.md"), &[("item", "x")]));
    scene.take("main.1", tag(TagName::Call, "R.md", "B.md"));
    scene.take("main.1", result("42"));
    let values = |scene: &Scene| scene.agent("main.1").placeholder_values();
    assert_eq!(values(&scene), variables(&[("item", "x"), ("result", "42")]));
    scene.take("main.1", goto("C.md"));
    assert_eq!(values(&scene), variables(&[("item", "x")]));
}
