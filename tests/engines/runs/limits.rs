//! The limits of a run hold for all its hosts together, and are changed from any machine.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::cluster::{Cluster, RUN};
use super::fake::{answers, holds};
use super::flows::{TURNS, fork, three};

/// Returns a rule with a cost in US dollars.
fn priced(mut rule: Value, cost: f64) -> Value {
    rule["cost"] = cost.into();
    rule
}

#[track_caller]
fn assert_on_both(cluster: &Cluster) {
    for machine in ["a", "b"] {
        let calls = cluster.calls();
        assert!(calls.iter().any(|call| call.is_on(machine)), "{machine}: {calls:?}");
    }
}

#[test]
fn spent_budget_stops_all_hosts_and_a_third_machine_raises_it() {
    let cluster = three(Cluster::new());
    cluster.script(&[
        priced(answers("start", &fork()), 0.01),
        priced(answers("work", "<goto>REST.md</goto>"), 0.05),
        priced(answers("rest", "<result>done</result>"), 0.05),
        priced(answers("sum up", "<result>all done</result>"), 0.01),
    ]);
    let root = cluster.root().to_str().expect("a path");
    let shared = ["--shared-dir", root];
    let _workers = ["a", "b"].map(|name| cluster.machine(name).worker(3, &shared));
    let supervisor = cluster.machine("s").run(&[&shared[..], &["--budget", "0.2"]].concat());
    supervisor.wait().code(75).says("budget").says("0.2").says("--budget");
    // One turn and four of the six that cost more: the last of them begins while there is money left.
    let calls = cluster.calls();
    assert_eq!((calls.len(), cluster.finished()), (5, 5), "{calls:?}");
    assert_on_both(&cluster);
    let third = cluster.machine("c");
    let status = third.raymond(&["status", RUN, "--json"]).ok().json();
    assert_eq!(status["pause"]["reason"], "budget", "{status}");
    assert_eq!(status["total_cost_usd"], 0.21, "{status}");
    third.raymond(&["resume", RUN]).code(75).says("budget");
    assert_eq!(cluster.calls().len(), calls.len(), "the budget is still spent");
    third.raymond(&["resume", RUN, "--budget", "1"]).ok().says("all done");
    cluster.wait_end();
    cluster.assert_paid_once();
    assert_eq!(cluster.calls().len(), TURNS);
    let status = third.raymond(&["status", RUN, "--json"]).ok().json();
    assert_eq!(status["total_cost_usd"], 0.32, "{status}");
    cluster.assert_nothing_left();
}

/// Returns the time after so many seconds, in seconds since 1970.
fn ahead(seconds: u64) -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() + seconds
}

fn moment(time: &Value) -> jiff::Timestamp {
    time.as_str().and_then(|time| time.parse().ok()).expect("a time")
}

#[test]
fn usage_limit_at_one_host_holds_all() {
    let cluster = three(Cluster::new());
    cluster.script(&[holds("start", "begin", &fork())]);
    let root = cluster.root().to_str().expect("a path");
    let shared = ["--shared-dir", root];
    let _workers = ["a", "b"].map(|name| cluster.machine(name).worker(3, &shared));
    let options = [&shared[..], &["--max-restarts", "0"]].concat();
    let mut supervisor = cluster.machine("s").run(&options);
    cluster.wait_calls(1);
    let said = "You've hit your limit";
    let limit = json!({ "resets": ahead(6), "text": said, "event": true });
    cluster.script(&[
        json!({ "when": "work a", "times": 1, "hold_before": "limit", "limit": limit }),
        answers("work a", "<goto>REST.md</goto>"),
        holds("work", "go", "<goto>REST.md</goto>"),
        answers("rest", "<result>done</result>"),
        answers("sum up", "<result>all done</result>"),
    ]);
    cluster.release("begin");
    cluster.wait_calls(4);
    assert_on_both(&cluster);
    cluster.release("limit");
    cluster.wait_events("limit_reached", 1);
    supervisor.wait_stderr("no turn starts before");
    cluster.release("go");
    supervisor.wait().ok().says(said);
    cluster.wait_end();
    let [limit] = &cluster.events("limit_reached")[..] else {
        panic!("the limit is recorded once")
    };
    let until = moment(&limit["until"]);
    let steps = cluster.events("step_finished");
    let later = |step: &&Value| step["state"] == "REST.md" || step["state"] == "JOIN.md";
    let later: Vec<&Value> = steps.iter().filter(later).collect();
    assert_eq!(later.len(), 4, "{steps:?}");
    for step in later {
        assert!(moment(&step["at"]) >= until, "a turn did not wait until {until}: {step}");
    }
    let [failed] = &cluster.events("turn_failed")[..] else { panic!("one turn met the limit") };
    assert_eq!((&failed["cause"], &failed["counts"]), (&"usage_limit".into(), &false.into()));
    assert_eq!(cluster.calls().len(), TURNS + 1, "only the turn that met the limit is repeated");
    let repeated = cluster.calls().iter().filter(|call| call.prompt == "work a").count();
    assert_eq!(repeated, 2);
    cluster.assert_nothing_left();
}
