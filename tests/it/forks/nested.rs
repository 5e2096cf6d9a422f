//! Nested joins: workers that fork, subroutines, loops, and the agents that each join waits for.

use serde_json::json;

use super::{answering, each, joins, outcomes, payload, place, play, spawn, wait_end};
use crate::support::{Test, when};

#[test]
fn worker_joins_its_forks() {
    let others = json!({
        "WORKER.md": [r#"<fork next="MID.md" each="[1, 2]" as="n" of="{{item}}">LEAF.md</fork>"#],
        "LEAF.md": ["<result>{{of}}{{n}}</result>"],
        "MID.md": ["<result>{{results}}</result>"],
    });
    let test = answering(place("join: all"), &each("[\"a\", \"b\"]"), &others)
        .prompt("MID.md", "---\njoin: all\n---\nmid {{results}}")
        .prompt("LEAF.md", "leaf");
    let ended = play(&test, &[]);
    let results = payload(ended.ok(), "main");
    for (index, name) in ["a", "b"].iter().enumerate() {
        let inner = results[index]["result"].as_str().expect("a text");
        let inner = serde_json::from_str(inner).expect("JSON");
        let id = format!("main.{}", index + 1);
        let expected = [1, 2].map(|n| format!("{id}.{n} result {name}{n}"));
        assert_eq!(outcomes(&inner), expected);
    }
    assert_eq!(joins(&test).last().map(String::as_str), Some("main met 2 2 0"));
    assert_eq!(joins(&test).len(), 3);
}

#[test]
fn join_in_loop_takes_only_new_workers() {
    let others = json!({
        "JOIN.md": [each("[\"c\"]"), "<goto>JOIN.md</goto>", each("[\"d\", \"e\"]"), "<result>{{results}}</result>"],
    });
    let test = answering(place("join: all"), &each("[\"a\", \"b\"]"), &others);
    let ended = play(&test, &[]);
    assert_eq!(
        outcomes(&payload(ended.ok(), "main")),
        ["main.4 result did d", "main.5 result did e"]
    );
    assert_eq!(
        joins(&test),
        ["main met 2 2 0", "main met 1 1 0", "main met 0 0 0", "main met 2 2 0"]
    );
}

#[test]
fn workers_finished_before_join_count() {
    let test = place("join: all")
        .prompt("MID.md", "mid")
        .rule(when("start").reply(&each("[\"a\", \"b\"]").replace("JOIN", "MID")))
        .rule(when("work").reply("<result>did it</result>"))
        .rule(when("mid").hold_before("go").reply("<goto>JOIN.md</goto>"))
        .rule(when("merge").reply("<result>merged</result>"));
    let mut live = spawn(&test, &[]);
    wait_end(&mut live, "main.1");
    wait_end(&mut live, "main.2");
    assert!(test.events("join_begun").is_empty());
    test.release("go");
    live.wait().ok().ended("main", "merged");
    assert_eq!(joins(&test), ["main met 2 2 0"]);
    let prompt = &test.calls_with("merge")[0].prompt;
    assert_eq!(prompt.matches("did it").count(), 2, "{prompt}");
}

/// Returns a workflow in which START forks a worker that is held at `go`, and calls SUB; at the end JOIN
/// waits for all.
fn calling() -> Test {
    place("join: all")
        .prompt("CALL.md", "call")
        .prompt("SUB.md", "sub")
        .prompt("INNER.md", "inner {{item}}")
        .prompt("WAIT.md", "---\njoin: all\n---\nwait {{results}}")
        .prompt("LEFT.md", "left")
        .prompt("BACK.md", "back with {{result}}")
        .rule(when("merge").reply("<result>merged</result>"))
        .rule(when("back with").reply("<goto>JOIN.md</goto>"))
        .rule(when("wait").reply("<result>waited</result>"))
        .rule(when("start").reply(r#"<fork next="CALL.md" item="own">WORKER.md</fork>"#))
        .rule(when("work on own").hold_before("go").reply("<result>own</result>"))
}

#[test]
fn subroutine_joins_only_its_own_workers() {
    for tag in ["call", "function"] {
        let test = calling()
            .rule(when("call").reply(&format!("<{tag} return=\"BACK.md\">SUB.md</{tag}>")))
            .rule(when("sub").reply(r#"<fork next="WAIT.md" each="[1, 2]">INNER.md</fork>"#))
            .rule(when("inner").reply("<result>inner</result>"));
        let mut live = spawn(&test, &[]);
        live.wait_event("join_begun", 2);
        assert_eq!(joins(&test), ["main met 2 2 0"], "the caller's own is still at work");
        let prompt = &test.calls_with("wait")[0].prompt;
        assert!(!prompt.contains("\"main.1\"") && prompt.contains("\"main.3\""), "{prompt}");
        test.release("go");
        live.wait().ok().ended("main", "merged");
        assert_eq!(joins(&test), ["main met 2 2 0", "main met 1 1 0"]);
        assert!(test.calls_with("merge")[0].prompt.contains("\"result\":\"own\""));
    }
}

#[test]
fn workers_left_by_subroutine_are_joined_by_caller() {
    let test = calling()
        .rule(when("call").reply(r#"<call return="BACK.md">SUB.md</call>"#))
        .rule(when("sub").reply(r#"<fork next="LEFT.md" each="[1, 2]">INNER.md</fork>"#))
        .rule(when("inner").reply("<result>inner</result>"))
        .rule(when("left").reply("<result>left</result>"));
    test.release("go");
    spawn(&test, &[]).wait().ok().ended("main", "merged");
    assert_eq!(joins(&test), ["main met 3 3 0"]);
}

#[test]
fn workers_left_by_subroutine_are_not_joined_by_next_subroutine() {
    let inner =
        |next: &str, item: &str| format!(r#"<fork next="{next}" item="{item}">INNER.md</fork>"#);
    for route in [r#"<call return="NEXT.md">SUB.md</call>"#, "<goto>NEXT.md</goto>"] {
        let leaves =
            if route.contains("call") { "<result>left</result>" } else { "<reset>NEXT.md</reset>" };
        let first =
            route.replace("<goto>NEXT.md</goto>", r#"<call return="BACK.md">SUB.md</call>"#);
        let test = calling()
            .prompt("NEXT.md", "next")
            .prompt("OTHER.md", "other")
            .rule(when("call").reply(&first))
            .rule(when("sub").reply(&inner("LEFT.md", "held")))
            .rule(when("left").reply(leaves))
            .rule(when("next").reply(r#"<call return="BACK.md">OTHER.md</call>"#))
            .rule(when("other").reply(&inner("WAIT.md", "quick")))
            .rule(when("inner held").hold_before("go").reply("<result>held</result>"))
            .rule(when("inner quick").reply("<result>quick</result>"));
        let mut live = spawn(&test, &["--max-procs", "8"]);
        live.wait_event("join_begun", 2);
        assert_eq!(joins(&test), ["main met 1 1 0"], "{leaves}");
        assert!(test.calls_with("wait")[0].prompt.contains("\"result\":\"quick\""));
        test.release("go");
        live.wait().ok().ended("main", "merged");
        assert_eq!(joins(&test), ["main met 1 1 0", "main met 2 2 0"], "{leaves}");
    }
}

#[test]
fn stopping_worker_also_stops_its_own_workers() {
    let test = place("join: any\nrest: stop")
        .rule(when("merge").reply("<result>merged</result>"))
        .prompt("MID.md", "---\njoin: all\n---\nmid {{results}}")
        .prompt("INNER.md", "inner")
        .rule(when("start").reply(&each("[\"a\", \"b\"]")))
        .rule(when("work on a").hold_before("quick").reply("<result>quick</result>"))
        .rule(when("work on b").reply(r#"<fork next="MID.md" each="[1, 2]">INNER.md</fork>"#))
        .rule(when("inner").hold_before("never").reply("<result>inner</result>"));
    let mut live = spawn(&test, &["--max-procs", "8"]);
    live.wait_event("join_begun", 2).wait_calls(5);
    test.release("quick");
    live.wait().ok().ended("main", "merged");
    assert_eq!(joins(&test), ["main met 2 1 0"]);
    assert_eq!(test.events("joined")[0]["stopped"].as_array().map(Vec::len), Some(3));
    test.assert_no_survivors();
}
