//! Answers that are objects: the schema that reaches the model, and the effect of its answers.

use serde_json::{Value, json};

use crate::api::on;

use super::machine::TestMachine;

const SCHEMA: &str = r#"{"type":"object","properties":{"why":{"type":"string"},"verdict":{"enum":["approve","revise"]}},"required":["why","verdict"],"additionalProperties":false}"#;

/// Returns a machine on which START gives a verdict, and leads to FIX or to a result.
fn judging() -> TestMachine {
    let machine = TestMachine::new();
    machine.prompt("verdict.schema.json", SCHEMA);
    machine.prompt(
        "START.md",
        "\
---
output: verdict.schema.json
allowed_transitions:
  - { tag: goto, target: FIX.md, when: { verdict: revise } }
  - { tag: result, when: { verdict: approve } }
---
ALPHA: judge it.",
    );
    machine.prompt("FIX.md", "BRAVO: fix it, because {{result.why}}.");
    machine
}

fn answer(verdict: &str) -> Value {
    json!({"why": "it is so", "verdict": verdict})
}

#[test]
fn schema_is_offered_as_tool_and_answer_field_selects_transition() {
    let machine = judging();
    machine.api.script([
        on("ALPHA").tool("StructuredOutput", answer("revise")),
        on("BRAVO").reply("<result>POSITIVE</result>"),
    ]);

    machine.run(&[]).exits(0).prints(super::POSITIVE);

    let judge = machine.api.request("ALPHA");
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    assert_eq!(judge.output_schema, schema, "{:?}", judge.tools);
    let fix = machine.api.request("BRAVO");
    assert_eq!(fix.output_schema, Value::Null, "another state has no such tool");
    assert_eq!(fix.newest, "BRAVO: fix it, because it is so.");
    assert_eq!(fix.session, judge.session);
    assert!(fix.sees("ALPHA"), "{fix:#?}");
    assert_eq!(machine.transitions(), ["main#1 goto FIX.md", "main#2 result"]);
    assert_eq!(machine.api.requests().len(), 2, "a valid call ends the turn");
}

#[test]
fn plain_text_answer_is_reminded_until_it_is_object() {
    let machine = judging();
    machine.api.script([
        on("cannot be used").tool("StructuredOutput", answer("approve")),
        on("").reply("I approve of it."),
    ]);

    let ended = machine.run(&[]).exits(0);

    let start = "Agent main terminated with result: ";
    let payload = ended.stdout.trim().trim_start_matches(start);
    let payload: Value = serde_json::from_str(payload).expect("JSON");
    assert_eq!(payload, answer("approve"));
    assert_eq!(machine.records("turn_rejected").len(), 1);
    let reminder = machine.api.request("cannot be used");
    assert!(reminder.newest.contains("the answer is not one JSON object"), "{reminder:?}");
    assert_eq!(reminder.session, machine.api.requests()[0].session);
}

#[test]
fn structured_output_that_never_matches_gets_reminder() {
    let machine = judging();
    machine.api.script([
        on("cannot be used").tool("StructuredOutput", answer("approve")),
        on("").tool("StructuredOutput", json!({"verdict": "maybe"})),
    ]);

    machine.run(&[]).exits(0);

    assert_eq!(machine.records("turn_rejected").len(), 1);
    assert!(machine.records("turn_failed").is_empty());
}

#[test]
fn join_receives_structured_results_of_workers() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: send two.");
    machine.prompt("WORKER.md", &format!("---\noutput: {SCHEMA}\n---\nBRAVO: judge {{{{item}}}}."));
    machine.prompt("JOIN.md", "---\njoin: all\n---\nCHARLIE: merge {{results}}");
    machine.api.script([
        on("ALPHA").reply(r#"<fork next="JOIN.md" each='["one", "two"]'>WORKER.md</fork>"#),
        on("judge one").tool("StructuredOutput", answer("approve")),
        on("judge two").tool("StructuredOutput", answer("revise")),
        on("CHARLIE").reply("<result>POSITIVE</result>"),
    ]);

    machine.run(&["--stagger", "0s"]).exits(0);

    let merge = machine.api.request("CHARLIE");
    let results = merge.newest.trim().trim_start_matches("CHARLIE: merge ");
    let results: Vec<Value> = serde_json::from_str(results).expect("a list of results");
    let objects: Vec<Value> = results.iter().map(|one| one["result"].clone()).collect();
    assert_eq!(objects, [answer("approve"), answer("revise")]);
}
