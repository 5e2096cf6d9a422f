//! What a turn took of each model is in whatever record it comes to.

use super::*;

/// What the records say was taken.
fn taken(events: &[Event]) -> Usage {
    let mut sum = Usage::default();
    for event in events {
        match event {
            Event::StepFinished(StepFinished { usage, .. })
            | Event::TurnRejected(TurnRejected { usage, .. })
            | Event::TurnFailed(TurnFailed { usage, .. })
            | Event::AgentFailed(AgentFailed { usage, .. }) => sum += usage,
            _ => {}
        }
    }
    sum
}

#[test]
fn it_is_recorded_once_whatever_came_of_the_turn() {
    let scene = Scene::begin();
    let verdicts = [
        accepted(goto("A.md")),
        accepted(result("done")),
        violated(Some("end with a tag")),
        violated(None),
    ];
    for verdict in Cause::ALL.map(failed_by).into_iter().chain(verdicts) {
        let report = report(&scene, verdict);
        let events = decide(&scene.run, &report, chosen());
        assert_eq!(taken(&events), report.usage, "{events:?}");
    }
    let failure = Failure { usage: usage(0.5), ..Failure::new(Cause::Crash, "") };
    assert_eq!(Report::failed(scene.turn("main"), failure).usage, usage(0.5));
}

#[test]
fn a_record_without_it_is_read_and_written_as_before() {
    let old = r#"{"event":"agent_failed","agent":"main","step":2,"turn":0,"state":"A.md","cause":"crash","error":"e","cost_usd":0.25}"#;
    let event: Event = serde_json::from_str(old).expect("an old record");
    assert!(taken(std::slice::from_ref(&event)).is_empty());
    assert_eq!(serde_json::to_string(&event).expect("it is JSON"), old);
}

#[test]
fn a_record_keeps_it() {
    let scene = Scene::begin();
    let event = one(&scene, violated(Some("end with a tag")));
    let text = serde_json::to_string(&event).expect("it is JSON");
    assert_eq!(serde_json::from_str::<Event>(&text).expect("it reads back"), event);
}
