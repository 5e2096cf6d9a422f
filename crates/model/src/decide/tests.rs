//! Decisions by table: the events that each kind of report leads to.
//! Here are replies, reminders and plain failures; policies of restarts are in `supervision`, limits of the API in `limits`.

mod advice;
mod approvals;
mod forks;
mod graph;
mod limits;
mod programs;
mod supervision;
mod usage;

use super::*;
use crate::apply::Effect;
use crate::event::{AgentFailed, TurnFailed};
use crate::refusal::{ToolRefusal, ToolRefusals};
use crate::run::{PauseReason, RunStatus};
use crate::session::Session;
use crate::supervision::{OnExhausted, SupervisionOverrides, SupervisionPolicy};
use crate::tests::scene::{CENT, Scene, agent_id, goto, message, result, session, state, tag};
use crate::transition::TagName;
use crate::turn::TurnCost;
use crate::usage::{ModelUse, UsageByModel};

const NOW: Timestamp = Timestamp(100_000);

fn chosen() -> NondeterministicInputs {
    NondeterministicInputs { now: NOW, session: session(77), ready: None, chance: 0.5 }
}

fn report(scene: &Scene, judgement: TurnJudgement) -> TurnReport {
    report_of(scene, "main", judgement)
}

fn report_of(scene: &Scene, agent: &str, judgement: TurnJudgement) -> TurnReport {
    TurnReport {
        turn: scene.turn(agent),
        cost: cost(),
        message: Some(message(9)),
        judgement,
        ..TurnReport::empty(scene.turn(agent))
    }
}

fn cost() -> TurnCost {
    TurnCost {
        amount: Usd::from_dollars(0.25),
        estimated: false,
        usage: usage(0.25),
        refused_tools: refused_tools(),
        duration_ms: Some(1234),
    }
}

fn refused_tools() -> ToolRefusals {
    let input = serde_json::json!({ "command": "curl a" });
    let call = ToolRefusal::new("Bash", &input, "This command requires approval");
    ToolRefusals { calls: vec![call], more: 1 }
}

fn usage(dollars: f64) -> UsageByModel {
    let cost_usd = Usd::from_dollars(dollars);
    let used = ModelUse { output_tokens: 12, cost_usd, ..ModelUse::default() };
    UsageByModel::from_iter([("opus".to_owned(), used)])
}

fn accepted(transition: Transition) -> TurnJudgement {
    TurnJudgement::Accepted(AcceptedTransition { transition, implicit: false, overruled: None })
}

fn violated(reminder: Option<&str>) -> TurnJudgement {
    TurnJudgement::Violated {
        violation: "the reply has no transition tag".to_owned(),
        reminder: reminder.map(str::to_owned),
    }
}

fn failed_by(cause: FailureCause) -> TurnJudgement {
    TurnJudgement::Failed(TurnFailure::new(cause, "it said no"))
}

/// Returns the one event that follows from a report of the agent `main`.
fn single_event(scene: &Scene, judgement: TurnJudgement) -> Event {
    let mut events = decide(&scene.run, &report(scene, judgement), chosen());
    assert_eq!(events.len(), 1, "{events:?}");
    events.remove(0)
}

fn turn_failed(scene: &Scene, cause: FailureCause) -> TurnFailed {
    match single_event(scene, failed_by(cause)) {
        Event::TurnFailed(event) => event,
        other => panic!("{cause}: {other:?}"),
    }
}

fn agent_failed(scene: &Scene, judgement: TurnJudgement) -> AgentFailed {
    match single_event(scene, judgement) {
        Event::AgentFailed(event) => event,
        other => panic!("{other:?}"),
    }
}

#[test]
fn accepted_transition_records_all_turn_fields() {
    let mut scene = Scene::begin();
    scene.take("main", goto("B.md"));
    let judgement = TurnJudgement::Accepted(AcceptedTransition {
        transition: goto("C.md"),
        implicit: true,
        overruled: None,
    });
    let expected = StepFinished {
        turn: scene.turn("main"),
        state: state("B.md"),
        transition: goto("C.md"),
        implicit: true,
        overruled: None,
        without_turn: false,
        evaluator: None,
        cost: cost(),
        session_id: session(1),
        message: Some(message(9)),
        shown: Vec::new(),
        new_session: None,
        options: Box::default(),
        children: Vec::new(),
        call_budget_usd: None,
        restarted: None,
    };
    assert_eq!(single_event(&scene, judgement), Event::StepFinished(expected));
}

#[test]
fn new_session_is_recorded_only_if_transition_opens_session() {
    let table = [
        (goto("B.md"), None),
        (result("done"), None),
        (tag(TagName::Reset, "", "B.md"), Some(session(77))),
        (tag(TagName::Call, "R.md", "B.md"), Some(session(77))),
        (tag(TagName::Function, "R.md", "B.md"), Some(session(77))),
        (tag(TagName::Fork, "N.md", "B.md"), Some(session(77))),
    ];
    for (transition, new_session) in table {
        match single_event(&Scene::begin(), accepted(transition.clone())) {
            Event::StepFinished(event) => {
                assert_eq!(event.new_session, new_session, "{transition}");
            }
            other => panic!("{transition}: {other:?}"),
        }
    }
}

#[test]
fn prestarted_session_is_used_only_without_history() {
    let table = [
        (tag(TagName::Reset, "", "B.md"), session(88)),
        (tag(TagName::Call, "R.md", "B.md"), session(77)),
        (tag(TagName::Function, "R.md", "B.md"), session(88)),
        (tag(TagName::Fork, "N.md", "B.md"), session(88)),
    ];
    for (transition, opened) in table {
        let scene = Scene::begin();
        let report = report(&scene, accepted(transition.clone()));
        let chosen = NondeterministicInputs { ready: Some(session(88)), ..chosen() };
        let events = decide(&scene.run, &report, chosen);
        assert_eq!(events[0].new_session(), Some(&opened), "{transition}");
    }
}

#[test]
fn agent_fails_after_three_reminders() {
    let mut scene = Scene::begin();
    for number in 0..3 {
        let event = single_event(&scene, violated(Some("end with a tag")));
        let Event::TurnRejected(rejected) = &event else { panic!("{number}: {event:?}") };
        assert_eq!(rejected.turn, scene.turn("main"));
        assert_eq!(rejected.reminder, "end with a tag");
        assert_eq!(
            (rejected.cost.amount, &rejected.message),
            (Usd::from_dollars(0.25), &Some(message(9)))
        );
        scene.happens(event);
    }
    let failure = agent_failed(&scene, violated(Some("end with a tag")));
    assert_eq!(failure.cause, FailureCause::Protocol);
    assert_eq!(
        failure.error,
        "in A.md: the reply has no transition tag (still so after 3 reminders)"
    );
    assert_eq!(failure.cost.amount, Usd::from_dollars(0.25));
}

#[test]
fn transition_resets_reminder_count() {
    let mut scene = Scene::begin();
    for _ in 0..3 {
        scene.happens(single_event(&scene, violated(Some("end with a tag"))));
    }
    scene.happens(single_event(&scene, accepted(goto("A.md"))));
    assert!(matches!(
        single_event(&scene, violated(Some("end with a tag"))),
        Event::TurnRejected(_)
    ));
}

#[test]
fn reminders_and_restarts_are_counted_separately() {
    let mut scene = Scene::begin();
    for _ in 0..3 {
        scene.happens(single_event(&scene, violated(Some("end with a tag"))));
    }
    assert!(turn_failed(&scene, FailureCause::Crash).counts);
    assert!(scene.agent("main").restarts.is_empty());
    scene.happens(single_event(&scene, failed_by(FailureCause::Crash)));
    assert_eq!(scene.agent("main").reminders, 3);
}

#[test]
fn violation_without_policy_fails_agent_with_hint() {
    let failure = agent_failed(&Scene::begin(), violated(None));
    assert_eq!(failure.cause, FailureCause::Protocol);
    assert_eq!(
        failure.error,
        "in A.md: the reply has no transition tag; list allowed_transitions in the frontmatter of A.md and the agent is reminded of them"
    );
}

/// Columns: cause; if it counts as a restart; the wait; if the turn gets another session.
#[test]
fn each_retryable_cause_sets_backoff_and_session() {
    let soon = Some(NOW.plus(1000));
    let table = [
        (FailureCause::Crash, true, soon, true),
        (FailureCause::Timeout, true, soon, true),
        (FailureCause::Stall, true, soon, true),
        (FailureCause::Throttle, false, soon, true),
        (FailureCause::Panic, true, soon, false),
        (FailureCause::Interrupted, false, None, true),
        (FailureCause::Lost, false, None, true),
    ];
    for (cause, counts, not_before, new_session) in table {
        let scene = Scene::begin();
        let event = turn_failed(&scene, cause);
        assert_eq!((event.counts, event.not_before), (counts, not_before), "{cause}");
        assert_eq!(event.session, new_session.then(|| session(77)), "{cause}");
        assert_eq!((event.cause, event.message.as_str()), (cause, "it said no"));
        assert_eq!((event.turn, event.cost.amount), (scene.turn("main"), Usd::from_dollars(0.25)));
    }
}

#[test]
fn panic_retries_same_turn_in_same_session() {
    let mut scene = Scene::begin();
    scene.take("main", goto("B.md"));
    let (turn, before) = (scene.turn("main"), scene.agent("main").session.clone());
    scene.happens(single_event(&scene, failed_by(FailureCause::Panic)));
    assert_eq!((scene.turn("main"), &scene.agent("main").session), (turn, &before));
}

#[test]
fn interrupted_and_lost_turns_are_retried_without_limit() {
    let mut scene = Scene::begin();
    for round in 0..20 {
        let cause = if round % 2 == 0 { FailureCause::Interrupted } else { FailureCause::Lost };
        scene.happens(single_event(&scene, failed_by(cause)));
    }
    let main = scene.agent("main");
    assert_eq!((main.turn, main.restarts.len()), (20, 0));
    assert_eq!(main.session, Session::fresh(session(77)));
}

#[test]
fn fourth_crash_within_period_fails_agent() {
    for cause in
        [FailureCause::Crash, FailureCause::Timeout, FailureCause::Stall, FailureCause::Panic]
    {
        let mut scene = Scene::begin();
        for _ in 0..3 {
            scene.happens(single_event(&scene, failed_by(cause)));
        }
        let failure = agent_failed(&scene, failed_by(cause));
        assert_eq!(failure.cause, cause);
        assert_eq!(failure.error, "in A.md: it said no (restarted 3 times within 10m)");
    }
}

#[test]
fn non_retryable_failure_fails_agent_at_once() {
    for cause in [
        FailureCause::Rejected,
        FailureCause::Output,
        FailureCause::Protocol,
        FailureCause::Workflow,
    ] {
        let failure = agent_failed(&Scene::begin(), failed_by(cause));
        assert_eq!((failure.cause, failure.error.as_str()), (cause, "in A.md: it said no"));
    }
}

#[test]
fn run_wide_failure_pauses_run_without_counting_restart() {
    let table = [
        (
            FailureCause::Authentication,
            PauseReason::Authentication { message: "it said no".into() },
        ),
        (FailureCause::Unavailable, PauseReason::Unavailable { message: "it said no".into() }),
        (FailureCause::Storage, PauseReason::Storage { message: "it said no".into() }),
    ];
    for (cause, pause) in table {
        let mut scene = Scene::begin();
        let events = decide(&scene.run, &report(&scene, failed_by(cause)), chosen());
        let [Event::TurnFailed(failure), paused] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!((failure.cause, failure.counts, failure.not_before), (cause, false, None));
        assert_eq!(failure.session, Some(session(77)));
        assert_eq!(*paused, Event::RunPaused { pause: pause.clone() });
        let effects: Vec<Effect> = events.into_iter().flat_map(|e| scene.happens(e)).collect();
        assert_eq!(effects, [Effect::Proceed(agent_id("main")), Effect::Hold]);
        assert_eq!((scene.run.status, scene.run.pause.clone()), (RunStatus::Paused, Some(pause)));
    }
}

#[test]
fn stale_duplicate_or_unknown_report_decides_nothing() {
    let verdicts = [
        accepted(goto("B.md")),
        accepted(result("done")),
        violated(Some("end with a tag")),
        violated(None),
        failed_by(FailureCause::Crash),
        failed_by(FailureCause::Authentication),
        failed_by(FailureCause::Output),
    ];
    for judgement in verdicts {
        let mut scene = Scene::begin();
        let early = report(&scene, judgement.clone());
        scene.take("main", goto("B.md"));
        let due = report(&scene, judgement);
        let other = |agent: &str, step, turn| TurnReport {
            turn: TurnId { agent: agent_id(agent), step, turn },
            ..due.clone()
        };
        for late in [early, other("main", 3, 0), other("main", 2, 1), other("main.1", 1, 0)] {
            assert_eq!(decide(&scene.run, &late, chosen()), [], "{late:?}");
        }
        for event in decide(&scene.run, &due, chosen()) {
            scene.happens(event);
        }
        assert_eq!(decide(&scene.run, &due, chosen()), [], "{due:?} was taken twice");
    }
}
