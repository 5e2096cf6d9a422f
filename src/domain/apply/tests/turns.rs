//! The reducer and turns that do not end a step: reminders, failures, restarts, and their costs.

use super::*;
use crate::domain::event::TransitionProposed;
use crate::domain::turn_cost::TurnCost;

#[test]
fn the_last_message_flows_into_frames_and_branches() {
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
fn a_rejected_turn_is_followed_by_a_reminder_in_the_same_step() {
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
fn a_failed_turn_is_run_again_from_where_its_session_stood() {
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
    assert_eq!(main.session, Session::resumed(session(5), Some(message(6))));
    assert_eq!((main.turn, main.not_before()), (0, None));
}

#[test]
fn a_turn_that_is_gone_on_with_keeps_its_name_and_its_session() {
    let mut scene = Scene::begin();
    let (turn, before) = (scene.turn("main"), scene.agent("main").session.clone());
    let mut failure = scene.failure("main");
    (failure.cause, failure.session) = (FailureCause::Panic, None);
    assert_eq!(scene.happens(Event::TurnFailed(failure)), [proceed("main")]);
    assert_eq!((scene.turn("main"), &scene.agent("main").session), (turn, &before));
    assert_eq!(scene.agent("main").restarts, [Timestamp(2000)]);
}

#[test]
fn a_failed_turn_costs_but_is_no_visit_and_keeps_the_reminder() {
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
fn restarts_are_counted_and_forgotten_after_the_period() {
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
fn an_agent_that_fails_leaves_its_siblings_alone() {
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
fn the_purse_knows_the_sum_and_the_costliest_turn_of_each_state() {
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
fn who_is_moved_on_before_a_first_turn_leaves_no_session_that_is_not_there() {
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
        new_session: session(scene.next()),
    }))
}

#[test]
fn an_evaluator_is_asked_its_own_prompt_also_after_a_reminder() {
    let mut scene = Scene::begin();
    let rejected = rejection(&scene);
    scene.happens(Event::TurnRejected(rejected));
    scene.happens(proposal(&scene));
    let main = scene.agent("main");
    assert_eq!((main.prompt().as_str(), main.reminder.as_deref()), ("CHECK.md", None));
    assert_eq!((main.turn, main.reminders), (2, 1));
}
