//! The results of a join, as a state sees them: `{{results}}`, and the file with the same content.

use serde_json::{Value, json};

use super::{answering, each, joins, outcomes, payload, place, play, scripted, spawn, wait_end};
use crate::support::when;

#[test]
fn results_are_in_fork_order() {
    let test = place("join: all\non_failure: keep")
        .rule(when("start").reply(&each("[\"a\", \"b\", \"c\"]")))
        .rule(when("work on a").hold_before("a").reply("<result>did a</result>"))
        .rule(when("work on b").hold_before("b").reply("no tag"))
        .rule(when("work on c").reply("<result>did <b>c</b> &amp; \"more\"\nof it</result>"))
        .rule(when("merge").reply("<result>merged</result>"));
    let mut live = spawn(&test, &["--max-procs", "8"]);
    wait_end(&mut live, "main.3");
    test.release("b");
    live.wait_event("agent_failed", 1);
    test.release("a");
    live.wait().ok().ended("main", "merged");
    let prompt = &test.calls_with("merge")[0].prompt;
    let results: Value =
        serde_json::from_str(prompt.trim().trim_start_matches("merge ")).expect("JSON");
    let [a, b, c] = &results.as_array().expect("a list")[..] else { panic!("{results}") };
    assert_eq!(
        *a,
        json!({"id": "main.1", "state": "WORKER.md", "status": "result", "result": "did a", "variables": {"item": "a"}})
    );
    assert_eq!((&b["status"], &b["variables"]), (&json!("error"), &json!({"item": "b"})));
    assert!(b["error"].as_str().is_some_and(|why| why.contains("no transition tag")), "{b}");
    assert_eq!(c["result"], "did <b>c</b> &amp; \"more\"\nof it");
}

#[test]
fn results_file_matches_results_on_every_retry() {
    let test = place("join: all")
        .prompt("JOIN.md", "---\njoin: all\nallowed_transitions: [{ tag: result }]\n---\nmerge {{results}} of {{results_file}}")
        .rule(when("start").reply(&each("[\"a\", \"b\"]")))
        .rule(when("work on").reply("<result>did it</result>"))
        .rule(when("merge").once().exit(3))
        .rule(when("merge").once().reply("I forgot."))
        .rule(when("cannot be used").once().exit(3))
        .rule(when("cannot be used").hold_before("go").reply("<result>merged</result>"));
    let mut live = spawn(&test, &[]);
    live.wait_calls(7);
    let prompts = test.prompts();
    assert_eq!(prompts[3], prompts[4], "it is asked the same again");
    let (list, file) = prompts[4]
        .trim_start_matches("merge ")
        .rsplit_once(" of ")
        .expect("the results, and where they are");
    assert_eq!(outcomes(&serde_json::from_str(list).expect("JSON")).len(), 2);
    assert_eq!(std::fs::read_to_string(file).expect("a file"), list);
    assert!(std::path::Path::new(file).is_absolute(), "{file}");
    test.release("go");
    live.wait().ok().ended("main", "merged");
    assert_eq!(joins(&test), ["main met 2 2 0"]);
}

#[test]
fn large_results_are_written_to_results_file() {
    let items: Vec<String> = (0..300).map(|item| format!("item {item}")).collect();
    let long = "x".repeat(2000);
    let others = json!({
        "WORKER.md": [format!("<result>{{{{item}}}} {long}</result>")],
        "JOIN.md": ["<result>{{results_file}}</result>"],
    });
    let test = answering(place("join: all"), &each("items.json"), &others)
        .file("items.json", json!(items).to_string().as_bytes());
    let ended = play(&test, &[]);
    let line = ended
        .ok()
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("Agent main terminated with result: "));
    let written = std::fs::read(line.expect("a path")).expect("a file");
    let results: Value = serde_json::from_slice(&written).expect("JSON");
    let results = results.as_array().expect("a list");
    assert_eq!(results.len(), 300);
    assert_eq!(results[299]["id"], "main.300");
    assert_eq!(results[299]["result"], json!(format!("item 299 {long}")));
}

#[test]
fn results_are_filled_only_in_joining_state() {
    let others =
        json!({"JOIN.md": ["<goto>NEXT.md</goto>"], "NEXT.md": ["<result>{{results}}</result>"]});
    let test =
        answering(place("join: all"), &each("[1]"), &others).prompt("NEXT.md", "next {{results}}");
    play(&test, &[]).ok().ended("main", "{{results}}").stderr_has("{{results}} has no value");
}

#[test]
fn variable_named_results_does_not_replace_join_results() {
    let others = json!({
        "START.md": [each("[1]")],
        "JOIN.md": ["<goto results=\"mine\" results_file=\"none\">NEXT.md</goto>", "<result>{{results}}</result>"],
        "NEXT.md": ["<goto results=\"mine\">JOIN.md</goto>"],
    });
    let test = answering(place("join: all"), "", &others).prompt("NEXT.md", "next {{results}}");
    let ended = play(&test, &[]);
    assert_eq!(payload(ended.ok(), "main"), json!([]));
}

#[test]
fn join_needing_more_workers_than_forked_fails() {
    for (join, verdict) in [("all", "met"), ("any", "missed"), ("2", "missed")] {
        let test = scripted(&format!("join: {join}"), "<goto>JOIN.md</goto>");
        let ended = play(&test, &[]);
        assert_eq!(joins(&test), [format!("main {verdict} 0 0 0")]);
        if join == "all" {
            assert_eq!(payload(ended.ok(), "main"), json!([]));
        } else {
            let why = format!(
                "it waits for {join} of its forked agents, but has forked none; fork them first, or use join: all"
            );
            assert!(ended.code(1).failed("main").contains(&why));
        }
    }
    let test = scripted("join: 5", &each("[1, 2]"));
    let why = "it waits for 5 of its forked agents, but has forked only 2; fork them first, or use join: all";
    assert!(play(&test, &[]).code(1).failed("main").contains(why));
}
