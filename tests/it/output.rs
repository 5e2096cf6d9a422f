//! Answers that are objects, end to end: the arguments of Claude Code, the transitions that depend on a
//! field, the reminders, and the commands that show an answer.

use serde_json::{Value, json};

use crate::support::{Test, always, when};

const SCHEMA: &str = r#"{"type":"object","properties":{"verdict":{"enum":["approve","revise"]},"score":{"type":"integer"}},"required":["verdict","score"]}"#;

const APPROVED: &str = r#"{"score":9,"verdict":"approve"}"#;
const TO_REVISE: &str = r#"{"score":3,"verdict":"revise"}"#;

/// Returns a workflow in which START gives a verdict, and leads to FIX or to a result.
fn judging() -> Test {
    let start = "\
---
output: verdict.schema.json
allowed_transitions:
  - { tag: goto, target: FIX.md, when: { verdict: revise } }
  - { tag: result, when: { verdict: approve } }
---
judge";
    Test::new()
        .prompt("verdict.schema.json", SCHEMA)
        .prompt("START.md", start)
        .prompt("FIX.md", "fix what has {{result.score}} of {{result}}, not {{result.nothing}}")
}

#[test]
fn schema_is_passed_only_for_turns_of_its_state() {
    let test = judging()
        .rule(when("judge").reply(TO_REVISE))
        .rule(when("fix").reply("<result>fixed</result>"));
    let outcome = test.run(&["START.md"]);
    outcome.ok().ended("main", "fixed").stderr_has("{{result.nothing}} has no value");

    let [judge, fix] = &test.calls()[..] else { panic!("{:#?}", test.calls()) };
    assert_eq!(judge.flag("--json-schema"), Some(SCHEMA));
    assert!(!fix.has("--json-schema"), "{fix:#?}");
    assert_ne!(judge.pid, fix.pid, "a process has its schema for all its turns");
    fix.assert_resumes(judge);
    let prompt = format!("fix what has 3 of {TO_REVISE}, not {{{{result.nothing}}}}");
    assert_eq!(fix.prompt.trim(), prompt);
    let taken = &test.events("step_finished")[0]["transition"];
    assert_eq!(taken["variables"]["result"], TO_REVISE);
}

#[test]
fn reminder_names_path_and_rule_of_a_schema_violation() {
    let test = judging()
        .rule(when("judge").once().reply("I approve of it."))
        .rule(when("is not one JSON object").once().reply(r#"{"verdict":"maybe","score":1}"#))
        .rule(when("at /verdict").reply(APPROVED));
    test.run(&["START.md"]).ok().ended("main", APPROVED);

    let calls = test.calls();
    assert_eq!(calls.len(), 3);
    calls[1].assert_continues(&calls[0]);
    calls[2].assert_continues(&calls[1]);
    assert!(calls[2].prompt.contains("(rule /properties/verdict/enum)"), "{}", calls[2].prompt);
    assert!(calls[2].prompt.contains(SCHEMA), "{}", calls[2].prompt);
    assert_eq!(test.events("turn_rejected").len(), 2);
    assert_eq!(test.events("step_finished")[0]["transition"]["structured"], true);
}

#[test]
fn agent_fails_after_three_reminders() {
    let test = judging().rule(always().reply("<goto>FIX.md</goto>"));
    let outcome = test.run(&["START.md"]);
    outcome.code(1).failed("main");
    assert_eq!(test.calls().len(), 4);
    outcome.says("still so after 3 reminders");
}

#[test]
fn fields_of_a_function_result_fill_placeholders() {
    let judge = format!("---\noutput: {SCHEMA}\n---\njudge");
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("JUDGE.md", &judge)
        .prompt("BACK.md", "it is {{result.verdict}} with {{result.score}}")
        .rule(when("start").reply(r#"<function return="BACK.md">JUDGE.md</function>"#))
        .rule(when("judge").reply(APPROVED))
        .rule(when("it is approve with 9").reply("<result>done</result>"));
    test.run(&["START.md"]).ok().ended("main", "done");
}

#[test]
fn join_gets_checked_results_as_objects_and_others_as_text() {
    let worker = format!("---\noutput: {SCHEMA}\n---\nwork on {{{{item}}}}");
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("WORKER.md", &worker)
        .prompt("OTHER.md", "talk")
        .prompt("JOIN.md", "---\njoin: all\n---\nmerge {{results}} best {{results.0.result.score}}")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply(r#"<fork next="NEXT.md" each='["a","b"]'>WORKER.md</fork>"#))
        .rule(when("next").reply(r#"<fork next="JOIN.md">OTHER.md</fork>"#))
        .rule(when("work on a").reply(APPROVED))
        .rule(when("work on b").reply(TO_REVISE))
        .rule(when("talk").reply("<result>{\"score\":1}</result>"))
        .rule(when("merge").reply("<result>merged</result>"));
    test.run(&["START.md", "--stagger", "0s"]).ok().ended("main", "merged");

    let prompt = &test.calls_with("merge")[0].prompt;
    let (list, best) = prompt
        .trim()
        .trim_start_matches("merge ")
        .rsplit_once(" best ")
        .expect("the results, and the best");
    let results: Value = serde_json::from_str(list).expect("JSON");
    let results: Vec<&Value> =
        results.as_array().into_iter().flatten().map(|one| &one["result"]).collect();
    let [approved, to_revise] =
        [APPROVED, TO_REVISE].map(|text| serde_json::from_str::<Value>(text).expect("JSON"));
    let plain = json!("{\"score\":1}");
    assert_eq!(results, [&approved, &to_revise, &plain], "only what was checked is an object");
    assert_eq!(best, "9");
}

#[test]
fn killed_run_takes_transition_of_adopted_answer() {
    let test = judging()
        .rule(when("judge").hold_before("go").reply(TO_REVISE))
        .rule(when("fix").reply("<result>fixed</result>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    live.kill9();
    test.release("go");
    test.resume(&[]).ok().ended("main", "fixed");
    assert_eq!(test.calls_with("judge").len(), 1, "it is asked once");
}

#[test]
fn scripted_replies_are_checked_against_the_schema() {
    let replies = json!({
        "START.md": ["Fine.", format!("```json\n{TO_REVISE}\n```")],
        "FIX.md": ["<result>{{result.score}}</result>"],
    });
    let test = judging().file("replies.yaml", replies.to_string().as_bytes());
    test.run(&["START.md", "--agent", "scripted"]).ok().ended("main", "3");
    assert_eq!(test.events("turn_rejected").len(), 1);
}

#[test]
fn invalid_schema_is_reported_before_the_run_starts() {
    let test = judging().prompt("verdict.schema.json", "{\n  \"type\": \"object\",\n}");
    let outcome = test.run(&["START.md"]);
    outcome.code(65).stderr_has("verdict.schema.json:3:1: RF501 this is not valid JSON");
    assert!(test.calls().is_empty());
}
