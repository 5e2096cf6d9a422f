//! The reducer and turns that do not end a step: reminders, failures, restarts, and their costs.

use super::*;
use crate::event::TransitionProposed;
use crate::turn::TurnCost;

#[test]
fn turn_message_becomes_checkpoint_of_frame_and_branch() {
    let mut scene = Scene::begin();
    let mut rejected = rejection(&scene);
    rejected.message = Some(message(2));
    scene.happens(Event::TurnRejected(rejected));
    assert_eq!(scene.agent("main").session, Session::resumed(session(1), Some(message(2))));
    let mut unmarked = scene.step("main", tag(TagName::Call, "R.md", "B.md"));
    unmarked.message = None;
    scene.happens(Event::StepFinished(unmarked));
    let main = scene.agent("main");
    assert_eq!(main.session, branch(3, 1, None), "a turn without a mark leaves no older one");
    assert_eq!(main.stack[0].checkpoint, None);
}

fn rejection(scene: &Scene) -> TurnRejected {
    TurnRejected {
        turn: scene.turn("main"),
        state: scene.agent("main").current_state.clone(),
        violation: "no tag".to_owned(),
        reminder: "end with a tag".to_owned(),
        cost: TurnCost { amount: Usd::from_dollars(CENT), ..TurnCost::default() },
        message: None,
    }
}

#[test]
fn rejected_turn_sets_reminder_in_same_step() {
    let mut scene = Scene::begin();
    for turn in 1..=2 {
        let rejected = rejection(&scene);
        assert_eq!(scene.happens(Event::TurnRejected(rejected)), [proceed("main")]);
        let main = scene.agent("main");
        assert_eq!((main.step, main.turn, main.reminders, main.visit()), (1, turn, turn, turn));
        assert_eq!(main.reminder.as_deref(), Some("end with a tag"));
    }
    scene.take("main", goto("A.md"));
    let main = scene.agent("main");
    assert_eq!((main.step, main.turn, main.reminders), (2, 0, 0));
    assert_eq!((main.reminder.as_deref(), main.visit()), (None, 3));
}

#[test]
fn failed_turn_retries_from_last_checkpoint() {
    let mut scene = Scene::begin();
    scene.happens(Event::TurnFailed(scene.failure("main")));
    assert_eq!(scene.agent("main").session, Session::fresh(session(2)));
    scene.take("main", goto("B.md"));
    for again in [4, 5] {
        scene.happens(Event::TurnFailed(scene.failure("main")));
        assert_eq!(scene.agent("main").session, branch(again, 2, Some(message(3))));
    }
    let main = scene.agent("main");
    assert_eq!((main.step, main.turn, main.not_before()), (2, 2, Some(Timestamp(5500))));
    scene.take("main", goto("C.md"));
    let main = scene.agent("main");
    let continued = Session::resumed(session(5), Some(message(6)));
    assert_eq!(main.session, Session { ancestors: vec![session(2)], ..continued });
    assert_eq!((main.turn, main.not_before()), (0, None));
}

#[test]
fn panicked_turn_retries_with_same_turn_id_and_session() {
    let mut scene = Scene::begin();
    let (turn, before) = (scene.turn("main"), scene.agent("main").session.clone());
    let mut failure = scene.failure("main");
    (failure.cause, failure.session) = (FailureCause::Panic, None);
    assert_eq!(scene.happens(Event::TurnFailed(failure)), [proceed("main")]);
    assert_eq!((scene.turn("main"), &scene.agent("main").session), (turn, &before));
    assert_eq!(scene.agent("main").restarts, [Timestamp(2000)]);
}

#[test]
fn failed_turn_adds_cost_but_no_visit_and_retains_reminder() {
    let mut scene = Scene::begin();
    let rejected = rejection(&scene);
    scene.happens(Event::TurnRejected(rejected));
    scene.happens(Event::TurnFailed(scene.failure("main")));
    let main = scene.agent("main");
    assert_eq!(main.cost_usd, Usd::from_dollars(2.0 * CENT));
    assert_eq!((main.visit(), main.reminders), (1, 1));
    assert_eq!(main.reminder.as_deref(), Some("end with a tag"));
}

#[test]
fn counted_restarts_expire_after_period() {
    let mut scene = Scene::begin();
    scene.run.settings.supervision.period_ms = 2000;
    let restarts = |scene: &Scene| scene.agent("main").restarts.clone();
    let seconds = |list: &[u64]| list.iter().map(|&s| Timestamp(s * 1000)).collect::<Vec<_>>();
    scene.happens(Event::TurnFailed(scene.failure("main")));
    scene.happens(Event::TurnFailed(scene.failure("main")));
    assert_eq!(restarts(&scene), seconds(&[2, 3]));
    scene.happens(Event::TurnFailed(scene.failure("main")));
    assert_eq!(restarts(&scene), seconds(&[3, 4]));
    let mut uncounted = scene.failure("main");
    uncounted.counts = false;
    scene.happens(Event::TurnFailed(uncounted));
    assert_eq!(restarts(&scene), seconds(&[4]));
    scene.take("main", goto("B.md"));
    assert_eq!(restarts(&scene), seconds(&[4]), "a step that ends well buys no new restarts");
}

#[test]
fn failed_agent_does_not_affect_other_agents() {
    let mut scene = Scene::begin();
    scene.take("main", tag(TagName::Fork, "N.md", "W.md"));
    let sibling = scene.agent("main").clone();
    let failed = Event::AgentFailed(scene.end_badly("main.1"));
    assert_eq!(scene.happens(failed), [retire_effect("main.1")]);
    let parent = scene.agent("main");
    assert_eq!(parent.unjoined.tally(0).failed, 1);
    assert_eq!(*parent, Agent { unjoined: parent.unjoined.clone(), ..sibling });
    assert_eq!(scene.run.status, RunStatus::Running);
    assert_eq!(scene.run.finished[0].cause, Some(FailureCause::Output));
    assert_eq!(scene.run.finished[0].ending, AgentEnding::Error("unusable".into()));
    assert_eq!(scene.take("main", result("")), [retire_effect("main"), Effect::End]);
    assert_eq!(scene.run.status, RunStatus::Failed);
}

#[test]
fn budget_tracks_total_and_max_turn_cost_per_state() {
    let mut scene = Scene::begin();
    assert!(scene.run.budget().max_turn_costs.is_empty());
    let mut dear = scene.step("main", goto("B.md"));
    dear.cost.amount = Usd::from_dollars(0.5);
    scene.happens(Event::StepFinished(dear));
    scene.take("main", goto("C.md"));
    let dearest = scene.run.budget().max_turn_costs.values().max().copied();
    assert_eq!(
        (scene.run.budget().max_turn_costs.len(), dearest),
        (2, Some(Usd::from_dollars(0.5)))
    );
    assert_eq!(scene.run.total_cost_usd, Usd::from_dollars(0.51));
    assert_eq!(scene.agent("main").cost_usd, Usd::from_dollars(0.51));
}

#[test]
fn step_before_first_turn_leaves_session_fresh() {
    let mut scene = Scene::begin();
    for called in [TagName::Call, TagName::Function] {
        let mut step = scene.step("main", tag(called, "R.md", "B.md"));
        (step.without_turn, step.message) = (true, None);
        scene.happens(Event::StepFinished(step));
        assert_eq!(
            scene.agent("main").session.origin,
            SessionOrigin::Fresh,
            "there is no history to copy"
        );
    }
    scene.take("main", result("done"));
    assert_eq!(scene.agent("main").session.origin, SessionOrigin::Fresh, "nor one to go on with");
    scene.take("main", result("done"));
    assert_eq!(scene.agent("main").session, Session::fresh(session(1)));
}

fn proposal(scene: &Scene) -> Event {
    let step = scene.step("main", goto("A.md"));
    Event::TransitionProposed(Box::new(TransitionProposed {
        turn: step.turn,
        state: step.state,
        transition: step.transition,
        implicit: false,
        output: "<goto>A.md</goto>".to_owned(),
        evaluator: state("CHECK.md"),
        cost: TurnCost { amount: step.cost.amount, ..TurnCost::default() },
        session_id: step.session_id,
        message: step.message,
        shown: Vec::new(),
        new_session: session(scene.next()),
    }))
}

#[test]
fn evaluator_turn_uses_own_prompt_after_reminder() {
    let mut scene = Scene::begin();
    let rejected = rejection(&scene);
    scene.happens(Event::TurnRejected(rejected));
    scene.happens(proposal(&scene));
    let main = scene.agent("main");
    assert_eq!((main.prompt().as_str(), main.reminder.as_deref()), ("CHECK.md", None));
    assert_eq!((main.turn, main.reminders), (2, 1));
}
