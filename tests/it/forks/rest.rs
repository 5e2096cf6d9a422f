//! The agents that a join does not need: they continue, or are ended with all their descendants.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{each, joins, place, spawn, wait_end};
use crate::support::{Test, alive, always, wait_until, when};

/// Returns a workflow in which one worker ends when `quick` is released. By then the others work: one at a
/// turn that is held, and one that has forked another agent and waits for it.
fn busy(rest: &str) -> Test {
    place(&format!("join: any\nrest: {rest}"))
        .prompt("INNER.md", "inner")
        .prompt("WAIT.md", "---\njoin: all\n---\nwait {{results}}")
        .rule(when("merge").reply("<result>merged</result>").cost(0.01))
        .rule(when("wait").reply("<result>deep</result>").cost(0.01))
        .rule(when("start").reply(&each("[\"quick\", \"slow\", \"deep\"]")).cost(0.01))
        .rule(when("work on quick").hold_before("quick").reply("<result>quick</result>").cost(0.02))
        .rule(
            when("work on slow")
                .tool("Bash")
                .hold_tool("go")
                .reply("<result>slow</result>")
                .cost(0.25),
        )
        .rule(when("work on deep").reply(r#"<fork next="WAIT.md">INNER.md</fork>"#).cost(0.01))
        .rule(when("inner").hold_before("go").reply("<result>inner</result>").cost(0.25))
}

/// Returns an agent of `raymond tree`.
fn ended(test: &Test, agent: &str) -> Value {
    let tree = test.raymond(&["tree", "t", "--json"]).ok().json();
    let agents = tree["agents"].as_array().cloned().unwrap_or_default();
    agents.into_iter().find(|one| one["id"] == agent).unwrap_or_default()
}

#[test]
fn rest_stop_ends_running_workers_and_their_descendants() {
    for options in [&["--max-procs", "8"][..], &["--max-procs", "8", "--no-warm"]] {
        let test = busy("stop");
        let mut live = spawn(&test, options);
        live.wait_calls(5).wait_event("join_begun", 2);
        let pids: Vec<i32> =
            ["work on slow", "inner"].iter().map(|prompt| test.calls_with(prompt)[0].pid).collect();
        assert!(pids.iter().all(|&pid| alive(pid)));
        test.release("quick");
        live.wait().ok().ended("main", "merged").ended("main.1", "quick");
        wait_until("their processes are gone", || pids.iter().all(|&pid| !alive(pid)));
        test.assert_no_survivors();
        let mut stopped =
            test.events("joined")[0]["stopped"].as_array().cloned().unwrap_or_default();
        stopped.sort_by_key(ToString::to_string);
        assert_eq!(
            json!(stopped),
            json!([
                {"agent": "main.2", "at_work": true},
                {"agent": "main.3"},
                {"agent": "main.3.1", "at_work": true},
            ])
        );
        assert_eq!(joins(&test), ["main met 3 1 0"]);
        let why = "stopped in WORKER.md: main continues without it (rest: stop)";
        assert_eq!(
            (&ended(&test, "main.2")["error"], &ended(&test, "main.2")["cause"]),
            (&json!(why), &json!("unneeded"))
        );
        assert_eq!(test.status()["status"], "completed");
        let shown = test.raymond(&["show", "t", "main.2", "--json"]).ok().json();
        assert_eq!(shown["status"], "unneeded");
        test.raymond(&["tree", "t"]).ok().stdout_has("unneeded");
        let prompt = &test.calls_with("merge")[0].prompt;
        assert!(
            prompt.contains(r#""id":"main.3","state":"WORKER.md","status":"stopped""#),
            "{prompt}"
        );
        assert!(!prompt.contains("main.3.1"), "{prompt}");
    }
}

#[test]
fn stopped_turn_is_charged_highest_known_cost_of_its_state() {
    let test = busy("stop");
    let mut live = spawn(&test, &["--max-procs", "8"]);
    live.wait_calls(5).wait_event("join_begun", 2);
    test.release("quick");
    live.wait().ok();
    let counted = test.events("cost_counted");
    let slow: Vec<&Value> = counted.iter().filter(|counted| counted["agent"] == "main.2").collect();
    assert_eq!(slow.len(), 1, "{counted:?}");
    assert_eq!((&slow[0]["estimated"], &slow[0]["cost_usd"]), (&json!(true), &json!(0.02)));
    assert_eq!(ended(&test, "main.2")["cost_usd"], json!(0.02));
}

#[test]
fn stopped_turn_that_ignores_sigterm_is_killed() {
    let test = place("join: any\nrest: stop")
        .rule(when("start").reply(&each("[\"quick\", \"deaf\"]")))
        .rule(when("work on quick").hold_before("quick").reply("<result>quick</result>"))
        .rule(when("work on deaf").ignore_term().helper().hang())
        .rule(always().reply("<result>merged</result>"));
    let mut live = spawn(&test, &[]);
    live.wait_calls(3).wait_for("its helper", |test| test.helpers().len() == 1);
    test.release("quick");
    live.wait().ok().ended("main", "merged");
    test.assert_no_survivors();
}

#[test]
fn rest_stop_ends_script_and_command_with_their_descendants() {
    let slow = b"sleep 600 & echo $! > \"$0.pid\"; mv \"$0.pid\" slow.pid; wait\n";
    let graph = r#"{"name": "slow", "version": "1.0.0", "description": "d", "entry_preconditions": [],
        "initial_state": {}, "start_node": "s",
        "nodes": {"s": {"type": "action", "on_success": "e", "on_failure": "e", "actions": [
            {"type": "bash_exec", "command": "sh ./wait.sh", "store_as": "computed.o"}]}},
        "endings": {"e": {"type": "success", "message": "done"}}}"#;
    for (worker, text) in [("WORKER.sh", &slow[..]), ("WORKER.yaml", graph.as_bytes())] {
        let start = "echo '<fork next=\"MORE.sh\">QUICK.sh</fork>'\n";
        let more = format!("echo '<fork next=\"JOIN.md\">{worker}</fork>'\n");
        let quick = b"until [ -s slow.pid ]; do sleep 0.02; done; echo '<result>quick</result>'\n";
        let test = place("join: any\nrest: stop")
            .file("START.sh", start.as_bytes())
            .file("MORE.sh", more.as_bytes())
            .file("QUICK.sh", quick)
            .file("wait.sh", slow)
            .file(worker, text)
            .rule(when("merge").reply("<result>merged</result>"));
        test.run(&["START.sh", "--stagger", "0s", "--trust"]).ok().ended("main", "merged");
        let pid = std::fs::read_to_string(test.flow().join("slow.pid")).expect("the slow worker");
        let pid: i32 = pid.trim().parse().expect("a process id");
        assert!(!alive(pid), "{worker}: its command runs on");
        test.assert_no_survivors();
        assert_eq!(joins(&test), ["main met 2 1 0"]);
        assert_eq!(ended(&test, "main.2")["cause"], json!("unneeded"));
    }
}

#[test]
fn cost_and_permit_of_stopped_graph_come_back_while_it_reads() {
    let graph = r#"{"name": "slow", "version": "1.0.0", "description": "d", "entry_preconditions": [],
        "initial_state": {}, "start_node": "s",
        "nodes": {
            "s": {"type": "reference", "doc": "d.md", "next_node": "c"},
            "c": {"type": "action", "on_success": "e", "on_failure": "e", "actions": [
                {"type": "bash_check", "command": "sh ./wait.sh", "store_as": "computed.o"}]}},
        "endings": {"e": {"type": "success", "message": "done"}}}"#;
    let quick = b"until [ -s slow.pid ]; do sleep 0.02; done; echo '<result>quick</result>'\n";
    let test = place("join: any\nrest: stop")
        .file("START.sh", b"echo '<fork next=\"MORE.sh\">QUICK.sh</fork>'\n")
        .file("MORE.sh", b"echo '<fork next=\"JOIN.md\">WORKER.yaml</fork>'\n")
        .file("QUICK.sh", quick)
        .file("wait.sh", b"sleep 600 & echo $! > \"$0.pid\"; mv \"$0.pid\" slow.pid; wait\n")
        .file("d.md", b"do it well\n")
        .file("WORKER.yaml", graph.as_bytes())
        .rule(
            when("do it well")
                .reply("<result>{\"status\": \"ok\", \"outputs\": {}}</result>")
                .cost(0.5),
        )
        .rule(when("merge").reply("<result>merged</result>").cost(0.25));
    // The only permit is that of the graph's turn.
    test.run(&["START.sh", "--stagger", "0s", "--trust", "--max-procs", "1"])
        .ok()
        .ended("main", "merged");
    test.assert_no_survivors();
    assert_eq!(test.status()["total_cost_usd"], json!(0.75));
}

#[test]
fn rest_stop_keeps_queued_workers_from_starting() {
    let test = place("join: any\nrest: stop")
        .rule(when("start").reply(&each("[1, 2, 3, 4, 5, 6]")))
        .rule(when("work").reply("<result>done</result>"))
        .rule(when("merge").reply("<result>merged</result>"));
    spawn(&test, &["--max-procs", "1"]).wait().ok().ended("main", "merged");
    let ended =
        test.events("step_finished").iter().filter(|step| step["state"] == "WORKER.md").count();
    let stopped = test.events("joined")[0]["stopped"].as_array().map_or(0, Vec::len);
    assert_eq!(ended + stopped, 6, "{ended} {stopped}");
    assert!(stopped >= 4);
    test.assert_no_survivors();
    let costs = test.raymond(&["costs", "t", "--json"]).ok().json();
    assert_eq!(costs["unbilled_agents"], 0, "of no turn it is unknown what it has cost: {costs}");
    let test = place("join: any\nrest: stop")
        .rule(when("start").reply(&each("[1, 2, 3]")))
        .rule(when("work").reply("<result>done</result>"))
        .rule(when("merge").reply("<result>merged</result>"));
    test.run(&["START.md", "--stagger", "1h"]).ok().ended("main", "merged");
    assert_eq!(test.calls_with("work").len(), 1, "the others wait for the stagger");
}

#[test]
fn rest_leave_lets_workers_finish_before_run_ends() {
    for (reply, code) in [("<result>slow</result>", 0), ("no tag", 1)] {
        let test = busy("leave");
        test.script(&[
            when("start").reply(&each("[\"quick\", \"slow\"]")),
            when("work on quick").reply("<result>quick</result>"),
            when("work on slow").hold_before("go").reply(reply),
            when("merge").reply("<result>merged</result>"),
        ]);
        let mut live = spawn(&test, &[]);
        wait_end(&mut live, "main");
        test.release("go");
        live.wait().code(code);
        assert_eq!(joins(&test), ["main met 2 1 0"]);
        assert_eq!(test.events("joined")[0].get("stopped"), None);
    }
}

#[test]
fn resume_after_kill_ends_turns_stopped_by_join() {
    // The twelfth effect and the next ones are those of the join; the one before leads to it.
    for effect in [11, 12, 13, 14] {
        let test = busy("stop").env("RAYMOND_FAILPOINT", format!("effect.before:{effect}"));
        let mut live = spawn(&test, &["--max-procs", "8"]);
        live.wait_calls(5).wait_event("join_begun", 2);
        let slow = test.calls_with("work on slow")[0].pid;
        test.release("quick");
        let died = live.wait();
        died.assert(died.killed(), "to be killed");
        assert_eq!(joins(&test).len(), usize::from(effect > 11));
        let test = test.env("RAYMOND_FAILPOINT", "none:1");
        test.resume(&[]).ok().ended("main", "merged");
        wait_until("its process is gone", || !alive(slow));
        test.assert_no_survivors();
        assert_eq!(joins(&test), ["main met 3 1 0"]);
        let counted = test.events("cost_counted");
        let counted: Vec<_> = counted.iter().map(|counted| &counted["agent"]).collect();
        assert!(
            counted.len() == 2
                && counted.contains(&&json!("main.2"))
                && counted.contains(&&json!("main.3.1")),
            "{counted:?}"
        );
    }
}

#[test]
fn run_interrupted_while_stopping_workers_can_be_resumed() {
    let test = place("join: any\nrest: stop")
        .rule(when("start").reply(&each("[\"quick\", \"deaf\"]")))
        .rule(when("work on quick").hold_before("quick").reply("<result>quick</result>"))
        .rule(when("work on deaf").ignore_term().hang())
        .rule(always().hold_before("go").reply("<result>merged</result>"));
    let mut live = spawn(&test, &[]);
    live.wait_calls(3);
    test.release("quick");
    live.wait_event("joined", 1);
    live.signal(Signal::INT).signal(Signal::INT);
    live.interrupt_until_it_ends().code(130);
    test.release("go");
    test.resume(&[]).ok().ended("main", "merged");
    test.assert_no_survivors();
    assert_eq!(joins(&test), ["main met 2 1 0"]);
}
