//! Evaluators that check a fork of many agents, or choose one.

use serde_json::json;

use super::{answering, births, each, joins, outcomes, payload, place, play, scripted, spawn};
use crate::support::when;

#[test]
fn evaluator_keeps_fan_out_or_replaces_its_list() {
    let start = "---\nevaluator: { prompt: CHECK.md }\n---\nstart";
    for (answer, expected) in
        [("Fine.", vec!["did a", "did b"]), (&*each("[\"c\"]"), vec!["did c"])]
    {
        let others = json!({"CHECK.md": [answer]});
        let test = answering(place("join: all"), &each("items.txt"), &others)
            .prompt("START.md", start)
            .prompt("CHECK.md", "check {{transition}}")
            .file("items.txt", b"a\nb\n");
        let ended = play(&test, &[]);
        let results = outcomes(&payload(ended.ok(), "main"));
        let seen: Vec<_> =
            results.iter().filter_map(|one| Some(one.split_once(" result ")?.1)).collect();
        assert_eq!(seen, expected, "{answer}");
        assert_eq!(births(&test), [expected.len()]);
    }
}

#[test]
fn matching_pattern_triggers_fan_out() {
    let start = "---\nallowed_transitions:\n  - { tag: result }\n  - { tag: fork, target: WORKER.md, next: JOIN.md, each: items.txt }\nevaluator:\n  pattern: READY\n  then: { tag: fork, target: WORKER.md, next: JOIN.md, each: items.txt }\n---\nstart";
    let test = scripted("join: all", "READY <result>done</result>")
        .prompt("START.md", start)
        .file("items.txt", b"a\nb\n");
    play(&test, &[]).ok();
    assert_eq!(births(&test), [2]);
    assert_eq!(joins(&test), ["main met 2 2 0"]);
}

#[test]
fn evaluator_prompt_contains_join_results() {
    let test = place("join: all\nevaluator: { prompt: CHECK.md }")
        .prompt("CHECK.md", "check {{results}} against {{output}}")
        .rule(when("start").reply(&each("[\"a\"]")))
        .rule(when("work").reply("<result>honey</result>"))
        .rule(when("merge").reply("sweet <result>merged</result>"))
        .rule(when("check").reply("fine"));
    spawn(&test, &[]).wait().ok().ended("main", "merged");
    let check = &test.calls_with("check")[0].prompt;
    assert!(check.contains(r#""result":"honey""#) && check.contains("sweet"), "{check}");
    assert_eq!(joins(&test).len(), 1);
}
