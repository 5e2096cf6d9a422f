//! The cost of a long loop: one record and one sync for many nodes.

use serde_json::{Value, json};

use super::{graph, node, payload, route, run, test};
use crate::support::Test;

/// The most nodes that a graph executes by default.
const NODES: usize = 10_000;

/// The number of nodes after which there is a record.
const SLICE: usize = 512;

fn counting() -> Test {
    let count = json!([{"type": "compute", "expression": "n + 1", "store_as": "n"}]);
    let more = json!({"type": "evaluate_expression", "expression": format!("n < {}", NODES / 2)});
    let mut counting = graph(json!({
        "start": node(count, "more"),
        "more": {"type": "conditional", "condition": more, "branches": {"true": "start", "false": "done"}},
    }));
    counting["initial_state"] = json!({"n": 0});
    counting["endings"]["done"]["summary"] = json!({"n": "${n}"});
    test(&counting)
}

#[test]
fn long_loop_writes_one_record_per_slice() {
    let place = counting();
    let outcome = run(&place, &[]);
    assert_eq!(payload(outcome.ok(), "main")["summary"]["n"], json!(NODES / 2));
    assert_eq!(route(&place, "main").len(), NODES);
    let walks = place.events("graph_advanced");
    let lengths: Vec<usize> =
        walks.iter().map(|walk| walk["visits"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(lengths.len(), NODES.div_ceil(SLICE));
    assert!(lengths[..lengths.len() - 1].iter().all(|&length| length == SLICE), "{lengths:?}");
    let kinds: Vec<Value> = place.journal().iter().map(|record| record["event"].clone()).collect();
    assert_eq!(kinds.len(), lengths.len() + 2, "{kinds:?}");
    assert_eq!(
        (&kinds[0], &kinds[kinds.len() - 1]),
        (&json!("run_started"), &json!("step_finished"))
    );
}

#[test]
fn long_loop_syncs_once_per_record() {
    let walks = NODES.div_ceil(SLICE);
    let at = |count: usize| counting().env("RAYMOND_FAILPOINT", format!("sync.after:{count}"));
    let died = run(&at(walks), &[]);
    died.assert(died.killed(), "each walk to be synced");
    run(&at(walks + 2), &[]).ok();
}
