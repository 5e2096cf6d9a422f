//! Commands from a machine that neither supervises the run nor hosts its agents.

use serde_json::json;

use super::cluster::{Cluster, RUN};
use super::fake::answers;
use super::flows::{TURNS, held_at_work, three};
use crate::support::wait_until;

#[test]
fn run_is_seen_and_stopped_from_a_third_machine_and_resumed_there() {
    let cluster = three(Cluster::new());
    cluster.script(&held_at_work());
    let _worker = cluster.machine("a").worker(2, &[]);
    let supervisor = cluster.machine("s").run(&["--shutdown", "1m"]);
    cluster.wait_calls(3);
    let third = cluster.machine("c");
    let status = third.raymond(&["status", RUN, "--json"]).ok().json();
    assert_eq!(status["status"], "running", "{status}");
    third.raymond(&["status", RUN]).ok().says("running");
    third.raymond(&["list"]).ok().says(RUN).says("running");
    third.raymond(&["tree", RUN]).ok().says("main.3");
    let stop = third.start(&["stop", RUN, "--wait"]);
    // The running turns may finish, and no other begins.
    wait_until("the stop arrives", || supervisor.stderr().contains("stop"));
    cluster.release("go");
    stop.wait().ok();
    supervisor.wait().code(130);
    let status = third.raymond(&["status", RUN, "--json"]).ok().json();
    assert_eq!(status["status"], "paused", "{status}");
    third.raymond(&["resume", RUN]).ok();
    cluster.wait_end();
    cluster.assert_paid_once();
    assert_eq!(cluster.calls().len(), TURNS);
}

#[test]
fn question_is_answered_from_a_third_machine() {
    let cluster = Cluster::new().file("START.md", "start").file("NEXT.md", "said: {{answer}}");
    cluster.script(&[
        answers("start", r#"<ask next="NEXT.md">Which colour?</ask>"#),
        answers("said: blue", "<result>it is blue</result>"),
    ]);
    let _worker = cluster.machine("a").worker(1, &[]);
    let supervisor = cluster.machine("s").run(&["--on-wait", "stay"]);
    cluster.wait_events("step_finished", 1);
    let third = cluster.machine("c");
    third.raymond(&["answer", RUN]).says("Which colour?");
    third.raymond(&["answer", RUN, "NEXT.md=blue"]).ok();
    supervisor.wait().ok().says("it is blue");
    assert_eq!(cluster.calls().len(), 2);
}

#[test]
fn ended_run_stays_ended_when_somebody_resumes_it() {
    let cluster = three(Cluster::new());
    cluster.script(&held_at_work());
    cluster.release("go");
    let worker = cluster.machine("a").worker(3, &["--takes-runs"]);
    cluster.machine("s").run(&[]).wait().ok();
    cluster.wait_end();
    let third = cluster.machine("c");
    third.raymond(&["resume", RUN]).ok().says("nothing to do");
    third.raymond(&["retry", RUN]).code(64);
    let runs = cluster.engine.runs().expect("runs");
    assert!(runs.iter().all(|run| run.has_ended && !run.is_abandoned), "{runs:?}");
    assert!(!worker.stderr().contains("taken over"), "{}", worker.stderr());
}

#[test]
fn failed_agent_lives_again_by_a_retry_from_a_third_machine() {
    let cluster = three(Cluster::new());
    let mut rules = held_at_work().to_vec();
    rules.insert(0, json!({ "when": "work b", "exit": 3, "times": 1 }));
    cluster.script(&rules);
    cluster.release("go");
    let _worker = cluster.machine("a").worker(3, &[]);
    cluster.machine("s").run(&["--max-restarts", "0"]).wait().code(1);
    let third = cluster.machine("c");
    let retried = third.raymond(&["retry", RUN]);
    retried.ok().says("main.2 continue").lacks("no hosts");
    let status = third.raymond(&["status", RUN, "--json"]).ok().json();
    assert_eq!(status["status"], "completed", "{status}");
}
