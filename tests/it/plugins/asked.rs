//! The records and the consultations that a plug-in gets, and the effect of its verdicts.

use serde_json::{Value, json};

use super::{LOOKS_ON, count, says, told, with};
use crate::support::{Test, always, when};

#[test]
fn plugin_receives_every_record_without_journal_only_fields() {
    let test = with(LOOKS_ON, "");
    test.run(&["START.md"]).ok().stderr_lacks("warning");
    let hello = &told(&test, "hello")[0];
    assert_eq!(hello["version"], 2);
    assert_eq!((&hello["run"], &hello["plugin"]), (&json!("t"), &json!("p")));
    assert_eq!((&hello["seq"], &hello["start"]), (&json!(0), &json!(1)));
    assert_eq!(hello["journal"], test.journal_file().to_str().expect("text"));
    let mut journal = test.journal();
    for record in &mut journal {
        let record = record.as_object_mut().expect("a record");
        for of_the_journal in ["format", "more", "proof", "crc"] {
            record.remove(of_the_journal);
        }
    }
    let records = told(&test, "record");
    assert_eq!(
        records.iter().map(|told| &told["record"]).collect::<Vec<_>>(),
        journal.iter().collect::<Vec<_>>()
    );
    assert!(records.iter().all(|told| told["missed"] == 0));
    assert_eq!(records.last().map(|told| &told["total_cost_usd"]), Some(&json!(0.03)));
    assert_eq!(told(&test, "finish").len(), 1);
    assert!(told(&test, "consult").is_empty());
    test.assert_no_survivors();
}

#[test]
fn plugin_is_consulted_only_on_subscribed_hook_points() {
    let test = with(&says("transition", "verdict='proceed'"), "");
    test.run(&["START.md"]).ok().ended("main", "well").stderr_lacks("warning");
    let asked: Vec<Value> =
        told(&test, "consult").iter().map(|told| told["question"].clone()).collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert_eq!(asked[0]["question"], "transition");
    assert_eq!(asked[0]["transition"], json!({"tag": "goto", "target": "NEXT.md"}));
    assert_eq!((&asked[0]["agent"], &asked[0]["state"]), (&json!("main"), &json!("START.md")));
    assert_eq!(asked[1]["transition"]["tag"], "result");
    assert_eq!(asked[1]["agent_cost_usd"], 0.02);
}

#[test]
fn stop_verdict_fails_the_agent_or_pauses_the_run() {
    let test = with(&says("transition", "verdict='stop', reason='enough'"), "");
    test.run(&["START.md"]).code(1).failed("main");
    let failed = &test.events("agent_failed")[0];
    assert_eq!(failed["cause"], "stopped");
    assert!(
        failed["error"]
            .as_str()
            .is_some_and(|why| why.contains("p did not let it take its transition: enough")),
        "{failed}"
    );

    let test = with(&says("start", "verdict='stop', scope='run', reason='night'"), "");
    test.run(&["START.md"]).code(75).stderr_has("the plug-in p: night");
    assert!(test.calls().is_empty());
    test.resume(&["--no-plugins"]).ok().ended("main", "well");
}

#[test]
fn override_verdict_takes_its_transition_without_a_turn() {
    let script = says(
        "start",
        "verdict='override', transition={'tag': 'result', 'payload': 'mine'}, reason='cheaper'",
    );
    let test = with(&script, "");
    test.run(&["START.md"]).ok().ended("main", "mine");
    assert!(test.calls().is_empty(), "Claude Code was not asked");
    let step = &test.events("step_finished")[0];
    assert_eq!(step["overruled"], json!({"by": "the plug-in p", "reason": "cheaper"}));
}

#[test]
fn override_to_a_missing_state_is_ignored_with_a_warning() {
    let script =
        says("transition", "verdict='override', transition={'tag': 'goto', 'target': 'GONE.md'}");
    let test = with(&script, "");
    let outcome = test.run(&["START.md"]);
    outcome.ok().ended("main", "well").stderr_has("GONE.md").stderr_has("which is ignored");
    assert!(test.events("step_finished").iter().all(|step| step.get("overruled").is_none()));
}

#[test]
fn hold_verdict_delays_the_turn_and_asks_again() {
    let script = "hello('start')
held = False
for message in told():
    if message['type'] == 'consult':
        if held:
            answer(message, verdict='proceed')
        else:
            held = True
            answer(message, verdict='hold', reason='a moment', **{'for': '10ms'})
";
    let test = with(script, "");
    test.run(&["START.md"]).ok().ended("main", "well");
    let [held] = &test.events("turn_held")[..] else { panic!("one is held") };
    assert_eq!((&held["by"], &held["reason"]), (&json!("p"), &json!("a moment")));
    let time = |value: &Value| value.as_str().and_then(|at| at.parse::<jiff::Timestamp>().ok());
    assert!(time(&held["until"]) > time(&held["at"]), "{held}");
    assert_eq!(told(&test, "consult").len(), 3, "it is asked again");
}

#[test]
fn invalid_plugin_answer_counts_as_none() {
    let test = with(&says("start", "verdict='hold'"), "");
    let outcome = test.run(&["START.md"]);
    outcome.ok().ended("main", "well").stderr_has("either `until` or `for`");
    assert_eq!(count(&outcome.stderr, "cannot be understood"), 1, "{}", outcome.stderr);
    let test = with(&says("start", "verdict='maybe'"), "required: true");
    test.run(&["START.md"]).code(75).stderr_has("its answer cannot be understood");
}

#[test]
fn each_turn_of_concurrent_agents_is_consulted_on_once() {
    let test = with(&says("start", "verdict='proceed'"), "")
        .prompt("WORKER.md", "work")
        .rule(always().reply("unused"));
    test.script(&[
        when("start").times(20).reply(r#"<fork next="START.md">WORKER.md</fork>"#),
        when("start").reply("<result>led</result>"),
        always().reply("<result>worked</result>"),
    ]);
    test.run(&["START.md", "--max-procs", "4"]).ok();
    assert_eq!(told(&test, "consult").len(), 41);
    assert_eq!(test.events("step_finished").len(), 41);
}

#[test]
fn stricter_verdict_of_two_plugins_wins() {
    let test = Test::new()
        .file("p.py", format!("{}{}", super::PRELUDE, says("start", "verdict='proceed'")).as_bytes())
        .file("q.py", format!("{}{}", super::PRELUDE, says("start", "verdict='stop', reason='q'")).as_bytes())
        .file("raymond.yaml", b"plugins:\n  - { command: python3 ./p.py, deadline: 1m }\n  - { command: python3 ./q.py, deadline: 1m }\n")
        .prompt("START.md", "start")
        .rule(always().reply("<result>well</result>"));
    test.run(&["START.md"]).code(1).failed("main");
    let error = test.events("agent_failed")[0]["error"].to_string();
    assert!(error.contains("the plug-in q did not let its turn start: q"), "{error}");
}
