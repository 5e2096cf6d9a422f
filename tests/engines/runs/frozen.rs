//! A host that stands still delays only its own agents.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::cluster::{Cluster, RUN};
use super::fake::{FakeCall, answers};
use crate::support::wait_until;

/// The slots of each host.
const SLOTS: usize = 3;

/// The number of agents that are forked: more than all slots.
const AGENTS: usize = 10;

fn item(call: &FakeCall) -> &str {
    call.prompt.strip_prefix("work ").unwrap_or_default()
}

#[test]
fn frozen_host_slows_no_other_host() {
    let cluster = Cluster::new()
        .file("START.md", "start")
        .file("WORK.md", "work {{item}}")
        .file("REST.md", "rest")
        .file("JOIN.md", "---\njoin: all\n---\nsum up");
    let names: Vec<String> = (0..AGENTS).map(|number| format!("x{number}x")).collect();
    let items: Vec<String> = names.iter().map(|name| format!("&quot;{name}&quot;")).collect();
    let fork =
        format!(r#"<fork next="JOIN.md" each="[{}]" as="item">WORK.md</fork>"#, items.join(","));
    let held = |name: &String| json!({ "when": format!("work {name}"), "reply": "<goto>REST.md</goto>", "hold_before": name });
    let mut rules: Vec<Value> = names.iter().map(held).collect();
    rules.extend([
        answers("start", &fork),
        json!({ "when": "rest", "reply": "<result>done</result>", "hold_before": "rest" }),
        answers("sum up", "<result>all done</result>"),
    ]);
    cluster.script(&rules);
    let root = cluster.root().to_str().expect("a path");
    let shared = ["--shared-dir", root];
    let frozen = cluster.machine("a").worker(SLOTS, &shared);
    let _other = cluster.machine("b").worker(SLOTS, &shared);
    let mut supervisor = cluster.machine("s").run(&shared);
    // All slots of both hosts work.
    cluster.wait_calls(1 + 2 * SLOTS);
    frozen.signal(Signal::STOP);
    let calls = cluster.calls();
    let stuck: Vec<&FakeCall> =
        calls.iter().filter(|call| call.is_on("a") && !item(call).is_empty()).collect();
    assert_eq!(stuck.len(), SLOTS, "{calls:?}");
    supervisor.wait_stderr("host a has been silent");

    // The agents of the other host go on, and those that have begun nothing at the frozen one may come to it.
    for name in &names {
        if !stuck.iter().any(|call| item(call) == name) {
            cluster.release(name);
        }
    }
    let resting = || {
        let calls = cluster.calls();
        calls.iter().filter(|call| call.is_on("b") && call.prompt == "rest").count()
    };
    wait_until("all slots of the other host work", || resting() == SLOTS);
    cluster.release("rest");
    let homes = || {
        let placed =
            cluster.log().into_iter().filter_map(|record| record["placed"].as_array().cloned());
        placed.flatten().filter(|placed| placed["host"] == "b").collect::<Vec<Value>>()
    };
    let ended = |agent: &Value| {
        cluster
            .events("step_finished")
            .iter()
            .any(|step| step["agent"] == *agent && step["state"] == "REST.md")
    };
    wait_until("the agents of the other host end", || {
        homes().iter().all(|home| home["agent"] == "main" || ended(&home["agent"]))
    });
    assert!(resting() > SLOTS, "{:?}", cluster.calls());
    let of_stuck = |step: &Value| stuck.iter().any(|call| step["agent"] == call.agent());
    assert!(!cluster.events("step_finished").iter().any(of_stuck), "the host stands still");

    frozen.signal(Signal::CONT);
    supervisor.wait_stderr("host a responds again");
    for name in &names {
        cluster.release(name);
    }
    supervisor.wait().ok();
    cluster.wait_end();
    cluster.assert_paid_once();
    assert_eq!(cluster.calls().len(), 2 + 2 * AGENTS);
    assert_eq!(
        cluster.machine("c").raymond(&["status", RUN, "--json"]).ok().json()["status"],
        "completed"
    );
}
