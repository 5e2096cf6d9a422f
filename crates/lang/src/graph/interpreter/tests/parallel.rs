//! Agents that work at the same time, and the join that waits for them.

use serde_json::{Value, json};

use super::stage::{Log, Stage, done, failed};
use raymond_model::advance::AdvanceNext;
use raymond_model::event::NextAction;
use raymond_model::join::{JoinCondition, UnjoinedPolicy};

fn branches(more: Value) -> Stage {
    let mut start = json!({
        "type": "parallel",
        "branches": [
            {"name": "one", "prompt": "Look at ${what}"},
            {"name": "two", "state": "TWO.md", "variables": {"a": "${what}"}, "input": "in"},
            {"name": "three", "subagent_type": "scout", "prompt": "Third"},
        ],
        "on_success": "done",
        "on_failure": "failed",
    });
    start.as_object_mut().expect("a map").extend(more.as_object().cloned().unwrap_or_default());
    Stage::new(json!({"start": start})).file("TWO.md", "Second").beginning(json!({"what": "docs"}))
}

fn all(join: Value) -> Stage {
    branches(join).hearing([
        done(json!("first")),
        done(json!("a: 1\nb: [x]\n")),
        done(json!("{\"n\":3}")),
    ])
}

/// Returns the number of agents that the records create.
fn started(log: &Log) -> usize {
    let is_start = |action: &NextAction| matches!(action, NextAction::Agent { joined: true, .. });
    log.records.iter().filter(|record| is_start(&record.next_action)).count()
}

#[test]
fn branches_are_started_one_by_one_and_their_results_have_their_names() {
    let stage = all(json!({"rest": "stop"}));
    let (played, log) = (stage.play(), stage.log());
    assert_eq!(played.route(), ["start success"], "{:?}", played.errors);
    assert_eq!(played.at("computed.one"), json!("first"));
    assert_eq!(played.at("computed.two"), json!({"a": 1, "b": ["x"]}), "YAML is data");
    assert_eq!(played.at("computed.three"), json!({"n": 3}));
    let prompt = |at: usize| match &log.wanted[at] {
        AdvanceNext::Action(NextAction::Agent { spec, background: false, joined: true }) => {
            spec.task.as_deref().map(|task| task.prompt.clone())
        }
        other => panic!("{other:?}"),
    };
    assert!(prompt(0).is_some_and(|prompt| prompt.starts_with("Look at docs")));
    assert!(prompt(2).is_some_and(|prompt| prompt.starts_with("You act as the `scout` agent.")));
    let name = |at: usize| match &log.wanted[at] {
        AdvanceNext::Action(NextAction::Agent { spec, .. }) => spec.shown_state(),
        other => panic!("{other:?}"),
    };
    assert_eq!(name(0).as_str(), "flow.yaml#start.one", "each branch has a name of its own");
    assert_eq!((name(1).as_str(), name(2).as_str()), ("TWO.md", "flow.yaml#start.three"));
    let AdvanceNext::Action(NextAction::Agent { spec, .. }) = &log.wanted[1] else {
        panic!("{:?}", log.wanted)
    };
    assert_eq!(spec.state.as_str(), "TWO.md");
    assert_eq!(spec.variables.get("a").map(String::as_str), Some("docs"));
    assert_eq!(spec.variables.get("input").map(String::as_str), Some("in"));
    let AdvanceNext::Action(NextAction::Join(join)) = &log.wanted[3] else {
        panic!("{:?}", log.wanted)
    };
    assert_eq!((join.need, join.rest), (JoinCondition::All, UnjoinedPolicy::Stop));
    assert_eq!(started(&log), 3);
}

#[test]
fn crash_at_any_point_neither_loses_nor_repeats_a_branch() {
    let whole = all(json!({})).play();
    let calls = all(json!({})).log().calls;
    for at in 1..=calls {
        let (played, log) = all(json!({})).play_and_die(at);
        assert_eq!((played.route(), started(&log)), (whole.route(), 3), "died at call {at}");
        assert_eq!(played.state.fields, whole.state.fields, "died at call {at}");
    }
}

#[test]
fn join_decides_how_many_branches_have_to_succeed() {
    let play = |join: Value| {
        let results = [failed("no"), done(json!("second")), done(json!("third"))];
        branches(join).hearing(results).play()
    };
    let missed = play(json!({}));
    assert_eq!(missed.route(), ["start failure"]);
    assert!(
        missed.failure().starts_with("2 of 3 agents have a result (join: all): one: "),
        "{}",
        missed.failure()
    );
    assert_eq!(
        (missed.at("computed.one"), missed.at("computed.two")),
        (json!(null), json!("second"))
    );
    let two = play(json!({"join": {"count": 2}}));
    assert_eq!(
        (two.route(), two.at("computed.three")),
        (vec!["start success".to_owned()], json!("third"))
    );
    let any = play(json!({"join": "any"}));
    assert_eq!(any.route(), ["start success"]);
    assert_eq!((any.at("computed.two"), any.at("computed.three")), (json!("second"), json!(null)));
}

#[test]
fn agents_for_a_list_get_its_items_and_give_a_list() {
    let stage = |items: Value| {
        Stage::doing(json!([{
            "type": "spawn_agents_parallel", "agent_type": "source-scanner", "foreach": "sources",
            "prompt_template": "Scan ${item.id} in ${where}", "collect_as": "computed.results",
        }]))
        .beginning(json!({"sources": items, "where": "docs"}))
    };
    let two = json!([{"id": "a"}, {"id": "b"}]);
    let results = [done(json!("```yaml\nstatus: stale\n```")), done(json!("plain: [ text"))];
    let played = stage(two.clone()).hearing(results);
    let log = played.log();
    let AdvanceNext::Action(NextAction::Agent { spec, .. }) = &log.wanted[1] else {
        panic!("{:?}", log.wanted)
    };
    let task = spec.task.as_deref().expect("a task");
    assert!(
        task.prompt.contains("`source-scanner`") && task.prompt.contains("Scan b in docs"),
        "{task:?}"
    );
    let played = played.play();
    assert_eq!(played.route(), ["start success"], "{:?}", played.errors);
    assert_eq!(played.at("computed.results"), json!([{"status": "stale"}, "plain: [ text"]));
    let missed = stage(two).hearing([done(json!("x")), failed("no")]).play();
    assert!(
        missed
            .failure()
            .starts_with("spawn_agents_parallel: 1 of 2 agents have a result (join: all): b: "),
        "{}",
        missed.failure()
    );
    let none = stage(json!([])).play();
    assert_eq!(
        (none.route(), none.at("computed.results")),
        (vec!["start success".to_owned()], json!([]))
    );
}
