//! Usage of models and refused tools of a turn, which each kind of record keeps.

use super::*;
use crate::ledger::cost_of;
use crate::money::Usd;
use crate::turn::TurnReply;
use crate::turn_options::OnDenied;
use crate::usage::UsageByModel;

/// Returns the usage that the events hold.
fn taken(events: &[Event]) -> UsageByModel {
    let mut sum = UsageByModel::default();
    for cost in events.iter().filter_map(Event::cost) {
        sum += &cost.usage;
    }
    sum
}

#[test]
fn turn_usage_is_recorded_once_for_every_outcome() {
    let scene = Scene::begin();
    let verdicts = [
        accepted(goto("A.md")),
        accepted(result("done")),
        violated(Some("end with a tag")),
        violated(None),
    ];
    for verdict in FailureCause::ALL.iter().copied().map(failed_by).chain(verdicts) {
        let report = report(&scene, verdict);
        let events = decide(&scene.run, &report, chosen());
        assert_eq!(taken(&events), report.cost.usage, "{events:?}");
        let refused = events.iter().filter_map(cost_of).map(|charge| &charge.cost.refused_tools);
        let refused: Vec<_> = refused.filter(|refused| !refused.is_empty()).collect();
        assert_eq!(refused, [&refused_tools()], "{events:?}");
    }
    let refused_tools = refused_tools();
    let failure = TurnFailure {
        usage: usage(0.5),
        refused_tools,
        ..TurnFailure::new(FailureCause::Crash, "")
    };
    let report = TurnReport::failed(scene.turn("main"), failure);
    assert_eq!((report.cost.usage, report.cost.refused_tools.count()), (usage(0.5), 2));
}

#[test]
fn run_accumulates_refused_tools_of_all_turns() {
    let mut scene = Scene::begin();
    for _ in 0..3 {
        let event = single_event(&scene, accepted(goto("B.md")));
        scene.happens(event);
    }
    let refused = &scene.run.refused_tools;
    assert_eq!((refused.calls.len(), refused.calls[0].times, refused.more), (1, 3, 3));
    let stored = serde_json::to_value(&scene.run).expect("JSON");
    assert_eq!(stored["refused_tools"]["calls"][0]["allow"][0], "Bash(curl:*)");
}

#[test]
fn refused_tools_fail_agent_only_if_on_denied_is_fail() {
    let reply = TurnReply {
        cost: Usd::from_dollars(0.5),
        usage: usage(0.5),
        refused_tools: refused_tools(),
        ..TurnReply::default()
    };
    let of = |reply: &TurnReply, on_denied| TurnFailure::of_refused_tools(reply, on_denied);
    assert_eq!(of(&reply, OnDenied::Continue), None);
    assert_eq!(of(&TurnReply::default(), OnDenied::Fail), None, "nothing was refused");
    let failure = of(&reply, OnDenied::Fail).expect("a failure");
    assert_eq!((failure.cause, failure.cost), (FailureCause::ToolRefused, reply.cost));
    assert_eq!((&failure.usage, &failure.refused_tools), (&reply.usage, &reply.refused_tools));
    assert!(failure.message.contains("Bash `curl a`"), "{}", failure.message);
    assert!(failure.message.contains("--allow-tool 'Bash(curl:*)'"), "{}", failure.message);
    let scene = Scene::begin();
    let report = TurnReport::failed(scene.turn("main"), failure);
    let events = decide(&scene.run, &report, chosen());
    let [Event::AgentFailed(failed)] = &*events else { panic!("{events:?}") };
    assert_eq!((failed.cause, failed.cost.amount), (FailureCause::ToolRefused, reply.cost));
}
