//! `--replay-until SEQ --then claude`: the first part of a run is replayed, the rest is asked.

use raymond::fault::POINTS;
use serde_json::{Value, json};

use super::{cassette, journal, record};
use crate::support::{RaymondOutcome, Test, always, when};

/// Starts the run `u`, whose turns up to a record the cassette answers.
fn until(test: &Test, seq: &str, more: &[&str]) -> RaymondOutcome {
    let agent = format!("replay:{}", cassette(test).display());
    let words = ["START.md", "--id", "u", "--agent", &agent, "--replay-until", seq];
    test.run(&[&words, more].concat())
}

/// Returns a recorded chain of four states, in one session.
fn recorded() -> Test {
    let test = Test::new()
        .prompt("START.md", "first")
        .prompt("A.md", "second")
        .prompt("B.md", "third")
        .prompt("C.md", "fourth")
        .rule(when("fourth").reply("<result>done</result>").cost(0.4))
        .rule(when("third").reply("<goto>C.md</goto>").cost(0.3))
        .rule(when("second").reply("said two <goto>B.md</goto>").cost(0.2))
        .rule(when("first").reply("said one <goto>A.md</goto>").cost(0.1));
    test.run(&["START.md"]).ok();
    record(&test, &[]).ok();
    test
}

fn spent(test: &Test) -> Value {
    test.raymond(&["status", "u", "--json"]).json()["total_cost_usd"].clone()
}

#[test]
fn turns_up_to_the_record_are_replayed_for_nothing_and_the_rest_is_asked() {
    let test = recorded();
    let asked = test.calls().len();
    // What the recorded part cost is more than the whole budget.
    let run = until(&test, "3", &["--then", "claude", "--budget", "1"]);
    run.ok()
        .ended("main", "done")
        .stderr_has("answers up to record 3: 2 turns")
        .stderr_has("$0.30");
    assert_eq!(
        run.stderr.matches("the replayed session does not exist").count(),
        1,
        "{}",
        run.stderr
    );
    let calls = &test.calls()[asked..];
    assert_eq!(calls.len(), 2);
    calls[0].assert_fresh();
    calls[1].assert_continues(&calls[0]);
    let prompt = &calls[0].prompt;
    for part in
        ["[1, prompt]\nfirst", "said one <goto>A.md</goto>", "[2, prompt]\nsecond", "said two"]
    {
        assert!(prompt.contains(part), "{part} in {prompt}");
    }
    assert!(prompt.ends_with("\n\nthird"), "{prompt}");
    assert_eq!(calls[1].prompt, "fourth", "the conversation is given once");
    assert_eq!(spent(&test), json!(0.7));
    let states = |run: &str| -> Vec<Value> {
        journal(&test, run).iter().map(|record| record["transition"].clone()).collect()
    };
    assert_eq!(states("u"), states("t"));
    test.raymond(&["log", "u"])
        .ok()
        .stdout_has("a cassette up to record 3 of its run, then by Claude Code");
    test.assert_no_survivors();
}

#[test]
fn rest_can_be_answered_by_a_script() {
    let test = recorded();
    let asked = test.calls().len();
    let test = test.file("replies.yaml", b"B.md: ['<result>scripted</result>']\n");
    until(&test, "3", &["--then", "scripted"]).ok().ended("main", "scripted");
    assert_eq!(test.calls().len(), asked, "Claude Code was not started");
    let shown = test.raymond(&["show", "u", "main", "--json"]).ok().json();
    let prompt = shown["steps"][2]["turns"][0]["prompt"].as_str().unwrap_or_default().to_owned();
    assert!(prompt.contains("said two") && prompt.ends_with("third"), "{prompt}");
}

#[test]
fn children_and_subroutines_have_the_conversation_of_their_line() {
    let test = Test::new()
        .prompt("START.md", "first")
        .prompt("SUB.md", "aside")
        .prompt("BACK.md", "back with {{result}}")
        .rule(when("back with").reply("<result>done</result>"))
        .rule(when("aside").reply("<result>beside</result>"))
        .rule(when("first").reply(r#"said one <call return="BACK.md">SUB.md</call>"#));
    test.run(&["START.md"]).ok();
    record(&test, &[]).ok();
    let asked = test.calls().len();
    until(&test, "2", &["--then", "claude"]).ok().ended("main", "done");
    let calls = &test.calls()[asked..];
    assert_eq!(calls.len(), 2);
    for call in calls {
        // The subroutine has a copy of the caller's session, and the caller returns to its own: nobody has either.
        call.assert_fresh();
        assert!(call.prompt.contains("said one") && !call.prompt.contains("beside</result>"));
    }
    assert!(calls[1].prompt.ends_with("back with beside"));
}

#[test]
fn edited_prompt_after_the_record_is_asked() {
    let test = recorded();
    let test = test.prompt("B.md", "third, again");
    until(&test, "3", &["--then", "claude"]).ok();
    assert_eq!(test.calls_with("third, again").len(), 1);
    let outcome = test.raymond(&["diff", "t", "u"]);
    outcome.code(1).stdout_has("+ third, again").stdout_has("main#3").stdout_lacks("said two");
}

#[test]
fn run_of_which_a_part_was_replayed_equals_its_source_and_can_be_recorded() {
    let test = recorded();
    until(&test, "3", &["--then", "claude"]).ok();
    let difference = test.raymond(&["diff", "t", "u", "--json"]).ok().json();
    assert_eq!(difference["equal"], true, "{difference}");
    let path = test.root().join("second").display().to_string();
    test.raymond(&["record", "u", "-o", &path]).ok();
    let asked = test.calls().len();
    let agent = format!("replay:{path}");
    test.run(&["START.md", "--id", "v", "--agent", &agent, "--strict-replay"]).ok();
    assert_eq!(test.calls().len(), asked);
}

#[test]
fn branch_and_retry_of_such_a_run_keep_its_switch() {
    let test = recorded();
    until(&test, "3", &["--then", "claude"]).ok();
    for (id, step, turns) in [("early", "main#2", 2), ("late", "main#3", 2), ("last", "main#4", 1)]
    {
        let asked = test.calls().len();
        test.raymond(&["branch", "u", "--at", step, "--id", id]).ok().ended("main", "done");
        let calls = &test.calls()[asked..];
        assert_eq!(calls.len(), turns, "{id}");
        assert_eq!(calls[0].prompt.contains("said two"), turns == 2, "{id}: {}", calls[0].prompt);
    }
}

#[test]
fn loop_in_the_live_part_is_not_answered_by_its_recorded_rounds() {
    let test = Test::new()
        .prompt("START.md", "again")
        .rule(when("again").times(3).reply("<goto>START.md</goto>"))
        .rule(always().reply("<result>done</result>"));
    test.run(&["START.md"]).ok();
    record(&test, &[]).ok();
    let asked = test.calls().len();
    test.script(&[
        when("again").times(5).reply("<goto>START.md</goto>"),
        always().reply("<result>over</result>"),
    ]);
    until(&test, "3", &["--then", "claude"]).ok().ended("main", "over");
    assert_eq!(test.calls().len() - asked, 6, "two rounds are replayed, six asked");
}

#[test]
fn killed_run_continues_at_the_same_switch() {
    let mut killed = 0;
    for point in POINTS {
        for time in 1..=4 {
            let test = recorded();
            let asked = test.calls().len();
            let test = test.env("RAYMOND_FAILPOINT", format!("{point}:{time}"));
            let first = until(&test, "3", &["--then", "claude"]);
            if !first.killed() {
                first.ok();
                break;
            }
            killed += 1;
            let test = test.env("RAYMOND_FAILPOINT", "none:1");
            let last = if test.dir().join("runs/u").exists() {
                test.raymond(&["resume", "u"])
            } else {
                until(&test, "3", &["--then", "claude"])
            };
            last.ok().ended("main", "done");
            let prompts: Vec<String> =
                test.calls()[asked..].iter().map(|call| call.prompt.clone()).collect();
            assert_eq!(prompts.len(), 2, "{point} {time}: {prompts:?}");
            assert!(prompts[0].contains("[2, prompt]\nsecond"), "{point} {time}: {prompts:?}");
            assert_eq!(spent(&test), json!(0.7), "{point} {time}");
        }
    }
    assert!(killed > 10, "only {killed} kills");
}

#[test]
fn wrong_parts_are_refused_before_anything_is_made() {
    let test = recorded();
    let refused = |seq: &str, more: &[&str], code: i32, why: &str| {
        until(&test, seq, more).code(code).stderr_has(why);
        assert!(!test.dir().join("runs/u").exists(), "{why}");
    };
    refused("6", &["--then", "claude"], 65, "it was recorded up to record 5, and has no record 6");
    refused("0", &["--then", "claude"], 64, "0");
    refused("3", &[], 64, "--then");
    test.run(&["START.md", "--replay-until", "3", "--then", "claude"])
        .code(64)
        .stderr_has("--replay-until goes with --agent replay:DIR");
    test.run(&["START.md", "--then", "claude"]).code(64);
    let turns = cassette(&test).join("turns.jsonl");
    let old =
        std::fs::read_to_string(&turns).expect("a cassette").replace("\"record\":", "\"other\":");
    std::fs::write(&turns, old).expect("written");
    refused("3", &["--then", "claude"], 65, "an older raymond recorded it");
    std::fs::remove_dir_all(cassette(&test)).expect("removed");
    refused("3", &["--then", "claude"], 65, "cannot read");
    test.raymond(&["resume", "t", "--replay-until", "3", "--then", "claude"]).code(64);
}
