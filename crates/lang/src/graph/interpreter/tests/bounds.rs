//! The bounds of a graph: steps, slices, and the nesting depth of its values.

use serde_json::{Value, json};

use super::stage::{Stage, node};
use crate::graph::interpreter::MAX_NODES_PER_ADVANCE;
use raymond_model::advance::AdvanceNext;
use raymond_model::event::NextAction;

fn looping(actions: Value) -> Stage {
    Stage::new(json!({"start": node(actions, "start")}))
}

/// Returns a graph that counts to a number, one per node, and ends.
fn counting(to: usize) -> Stage {
    let count = json!([{"type": "compute", "expression": "n + 1", "store_as": "n"}]);
    let more = json!({"type": "evaluate_expression", "expression": format!("n < {to}")});
    Stage::new(json!({
        "start": node(count, "more"),
        "more": {"type": "conditional", "condition": more, "branches": {"true": "start", "false": "done"}},
    }))
    .beginning(json!({"n": 0}))
}

#[test]
fn endless_loop_fails_at_step_limit() {
    let played = looping(json!([])).with("max_steps", json!(700)).play();
    let why = "in flow.yaml: node start: WF501 step limit: 700 nodes were executed, the most that max_steps allows; if the loop is intended, raise max_steps in the graph";
    assert_eq!(played.error(), why);
    assert_eq!(played.visits.len(), 700);
    assert!(looping(json!([])).play().error().contains("WF501 step limit: 10000 nodes"));
}

#[test]
fn last_allowed_step_may_reach_ending() {
    let stage = counting(5).with("max_steps", json!(10));
    assert_eq!(stage.play().payload()["message"], "done");
    assert!(counting(5).with("max_steps", json!(9)).play().error().contains("WF501"));
}

#[test]
fn long_execution_is_split_at_node_limit_without_loss() {
    let (played, log) = counting(1000).play_and_die(usize::MAX);
    assert_eq!((played.at("n"), played.state.executed), (json!(1000), 2000));
    assert_eq!(log.records.len(), 2000_usize.div_ceil(MAX_NODES_PER_ADVANCE));
    let (last, slices) = log.records.split_last().expect("records");
    assert!(slices.iter().all(|record| record.visits.len() == MAX_NODES_PER_ADVANCE));
    assert_eq!(last.visits.len(), 2000 % MAX_NODES_PER_ADVANCE);
    assert!(
        log.wanted[..slices.len()]
            .iter()
            .all(|then| *then == AdvanceNext::Action(NextAction::Walk))
    );
}

#[test]
fn expensive_execution_is_split_before_node_limit() {
    let slow = json!([{"type": "compute", "expression": "list.map(x => list.map(y => x + y).length).length", "store_as": "n"}]);
    let list: Vec<u32> = (0..300).collect();
    let nodes = json!({"start": node(slow.clone(), "b"), "b": node(slow.clone(), "c"), "c": node(slow.clone(), "d"), "d": node(slow, "done")});
    let (played, log) =
        Stage::new(nodes).beginning(json!({"n": 0, "list": list})).play_and_die(usize::MAX);
    assert_eq!(played.route().len(), 4);
    assert!((2..=4).contains(&log.records.len()), "{}", log.records.len());
}

#[test]
fn long_foreach_is_split_within_its_node() {
    let inner = json!({"type": "foreach", "items": "${list}", "as": "y", "actions": [
        {"type": "compute", "expression": "n + 1", "store_as": "n"},
    ]});
    let outer = json!([{"type": "foreach", "items": "${list}", "as": "x", "actions": [inner]}]);
    let list: Vec<u32> = (0..400).collect();
    let stage = Stage::doing(outer).beginning(json!({"n": 0, "list": list}));
    let (played, log) = stage.play_and_die(usize::MAX);
    assert_eq!(
        (played.at("n"), played.route()),
        (json!(160_000), vec!["start success".to_owned()])
    );
    assert!(log.records.len() > 1, "it is cut within the node");
    assert!(log.records[0].cursor.levels.len() > 1 && log.records[0].visits.is_empty());
}

#[test]
fn value_over_nesting_limit_fails_action() {
    let deeper = json!([{"type": "set_state", "field": "computed.a.b", "value": "${computed.a}"}]);
    let stage = looping(deeper).beginning(json!({"computed": {"a": {}}}));
    let played = stage.play();
    assert!(
        played
            .failure()
            .starts_with("set_state: computed.a.b would nest more than 64 lists and maps"),
        "{}",
        played.failure()
    );
    assert_eq!(&played.route()[played.route().len() - 1], "start failure");
    let path = vec!["a"; 200].join(".");
    for kind in ["set_state", "append_state"] {
        let action = json!([{"type": kind, "field": format!("computed.{path}"), "value": 1}]);
        assert!(Stage::doing(action).play().failure().contains("more than 64 lists and maps"));
    }
}

#[test]
fn text_over_length_limit_fails_action() {
    let twice = json!([{"type": "compute", "expression": "text + text", "store_as": "text"}]);
    let played = looping(twice).beginning(json!({"text": "0123456789abcdef"})).play();
    let last = played.failure();
    assert!(
        last.starts_with("compute: WF403 ") && last.contains("longer than 1048576 bytes"),
        "{last}"
    );
}

#[test]
fn step_with_several_operations_is_counted_once() {
    let stage = Stage::new(json!({
        "start": {
            "type": "validation_gate",
            "validations": [{"type": "config_exists"}, {"type": "index_exists"}],
            "on_valid": "done", "on_invalid": "failed",
        },
    }));
    let stage = stage.with("max_steps", json!(1)).world(|_| Ok(true.into()));
    assert_eq!((stage.play().state.executed, stage.log().records.len()), (1, 1));
}
