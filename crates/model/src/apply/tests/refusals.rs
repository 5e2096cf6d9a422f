//! Events the reducer refuses, after which the run is unchanged.

use super::*;
use crate::event::AgentFailed;
use crate::run::PauseReason;
use crate::turn::TurnCost;

/// Creates a run in the middle of things: a pending return, a child, a child that has ended.
fn busy() -> Scene {
    let mut scene = Scene::begin();
    scene.take("main", tag(TagName::Fork, "N.md", "W.md"));
    scene.take("main", tag(TagName::Fork, "N.md", "W.md"));
    scene.take("main.2", result("gone"));
    scene.take("main", tag(TagName::Call, "R.md", "B.md"));
    scene
}

/// Returns the four events that are about a turn.
fn about(scene: &Scene, turn: &TurnId) -> [Event; 4] {
    let rejected = TurnRejected {
        turn: turn.clone(),
        state: state("A.md"),
        violation: "no tag".to_owned(),
        reminder: "end with a tag".to_owned(),
        cost: TurnCost { amount: Usd::from_dollars(CENT), ..TurnCost::default() },
        message: None,
    };
    [
        Event::StepFinished(StepFinished {
            turn: turn.clone(),
            ..scene.step("main", goto("B.md"))
        }),
        Event::TurnRejected(rejected),
        Event::TurnFailed(TurnFailed { turn: turn.clone(), ..scene.failure("main") }),
        Event::AgentFailed(AgentFailed { turn: turn.clone(), ..scene.end_badly("main") }),
    ]
}

fn refused(scene: &mut Scene, event: &Event) -> ApplyError {
    let before = scene.run.clone();
    let refused = scene.offer(event.clone()).expect_err("an event that cannot happen");
    assert_eq!(scene.run, before, "{event:?} was refused and left a trace");
    refused
}

#[test]
fn event_for_turn_that_is_not_due_is_refused() {
    let mut scene = busy();
    let due = scene.turn("main");
    assert_eq!((due.step, due.turn), (4, 0));
    for (step, turn) in [(4, 1), (3, 0), (5, 0), (0, 0), (u64::MAX, u32::MAX)] {
        let offered = TurnId { agent: AgentId::main(), step, turn };
        for event in about(&scene, &offered) {
            let stale = ApplyError::Stale { offered: offered.clone(), due: due.clone() };
            assert_eq!(refused(&mut scene, &event), stale);
        }
    }
}

#[test]
fn already_applied_event_is_refused() {
    for pick in 0..4 {
        let mut scene = busy();
        scene.take("main.1", goto("X.md"));
        let turn = scene.turn("main.1");
        let event = about(&scene, &turn)[pick].clone();
        scene.happens(event.clone());
        assert!(matches!(
            refused(&mut scene, &event),
            ApplyError::Stale { .. } | ApplyError::NoAgent(_)
        ));
    }
}

#[test]
fn event_for_unknown_or_ended_agent_is_refused() {
    let mut scene = busy();
    for name in ["main.2", "main.3", "main.1.1", "main.01"] {
        let agent = agent_id(name);
        for event in about(&scene, &TurnId { agent: agent.clone(), step: 1, turn: 0 }) {
            assert_eq!(refused(&mut scene, &event), ApplyError::NoAgent(agent.clone()));
        }
    }
}

#[test]
fn transition_without_required_session_is_refused() {
    let mut scene = busy();
    for kind in [TagName::Reset, TagName::Call, TagName::Function, TagName::Fork] {
        let mut step = scene.step("main", tag(kind, "N.md", "W.md"));
        step.new_session = None;
        assert_eq!(
            refused(&mut scene, &Event::StepFinished(step)),
            ApplyError::NoSession,
            "{kind}"
        );
    }
}

#[test]
fn unneeded_new_session_is_ignored() {
    let mut scene = busy();
    let mut step = scene.step("main", goto("B.md"));
    step.new_session = Some(session(99));
    let stays = scene.agent("main").session.id.clone();
    scene.happens(Event::StepFinished(step));
    assert_eq!(scene.agent("main").session.id, stays);
}

#[test]
fn out_of_order_record_is_refused() {
    let mut scene = busy();
    let before = scene.run.clone();
    let last = before.seq;
    for found in [0, 1, last - 1, last, last + 2, u64::MAX] {
        let event = Event::StepFinished(scene.step("main", goto("B.md")));
        let record = Record {
            kept_session: None,
            seq: found,
            at: Timestamp(9000),
            folder: None,
            snapshot: None,
            placed: Vec::new(),
            event,
        };
        assert_eq!(apply(&mut scene.run, &record), Err(ApplyError::OutOfOrder { last, found }));
        assert_eq!(scene.run, before);
    }
}

#[test]
fn second_run_start_is_refused() {
    let mut scene = busy();
    let start = scene::first().event;
    assert_eq!(refused(&mut scene, &start), ApplyError::Start);
}

#[test]
fn first_record_other_than_run_start_is_refused() {
    let other =
        Record { event: Event::RunPaused { pause: PauseReason::Stopped }, ..scene::first() };
    assert_eq!(begin(&other), Err(ApplyError::Start));
    let late = Record { seq: 2, ..scene::first() };
    assert_eq!(begin(&late), Err(ApplyError::OutOfOrder { last: 0, found: 2 }));
}
