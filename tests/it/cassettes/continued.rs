//! Cassettes of runs that were continued: retried ones, and branches with a reply of a person.

use super::{POLICY, cassette, record, replay, turns};
use crate::support::{Test, always, when};

#[test]
fn retried_run_is_replayed_without_the_failures_that_were_retried() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("WORK.md", &format!("{POLICY}work"))
        .prompt("NEXT.md", "next")
        .rule(when("start").reply("<goto>WORK.md</goto>").cost(0.5))
        .rule(when("work").times(2).exit(1))
        .rule(always().times(4).reply("I do not know how to end").cost(0.25))
        .rule(always().reply("<result>worked</result>").cost(0.5));
    test.run(&["START.md", "--max-restarts", "0"]).code(1).failed("main");
    test.raymond(&["retry", "t"]).code(1).failed("main");
    test.raymond(&["retry", "t"]).code(1).stderr_has("WORK.md").failed("main");
    test.raymond(&["retry", "t"]).ok().stdout_has("worked");
    record(&test, &[]).ok();
    let calls = test.calls().len();
    let replayed = replay(&test, "u", &["--strict-replay", "--max-restarts", "0"]);
    replayed.ok().stdout_has("worked");
    assert_eq!(test.calls().len(), calls, "Claude Code was not started");
    let spent =
        |run: &str| test.raymond(&["status", run, "--json"]).json()["total_cost_usd"].clone();
    assert_eq!(spent("u"), spent("t"), "the cost of what was retried stays");
    let edited = test.prompt("WORK.md", &format!("{POLICY}other words"));
    let told = replay(&edited, "v", &["--max-restarts", "0"]);
    told.ok().stdout_has("worked").stderr_has("(same agent, state and visit)");
}

#[test]
fn reply_of_a_person_is_in_the_cassette_and_compared_with_no_prompt() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("WORK.md", "work on {{item}}")
        .prompt("GATHER.md", "gather {{result}}")
        .rule(
            when("start")
                .reply(r#"<fork next="GATHER.md" each='["a", "b", "c"]' as="item">WORK.md</fork>"#),
        )
        .rule(when("work").reply("<result>asked</result>").cost(0.25))
        .rule(always().reply("<result>gathered</result>").cost(0.25));
    test.run(&["START.md"]).ok();
    let reply = ["--at", "main.2#1", "--reply", "<result>given by me</result>"];
    test.raymond(&[&["branch", "t", "--id", "b"], &reply[..]].concat()).ok();
    let path = cassette(&test).display().to_string();
    test.raymond(&["record", "b", "-o", &path]).ok().stdout_lacks("no texts");
    let given: Vec<_> = turns(&test).into_iter().filter(|turn| turn["given"] == true).collect();
    assert_eq!(given.len(), 1, "{given:?}");
    assert_eq!(
        (&given[0]["agent"], &given[0]["answer"], &given[0]["cost_usd"]),
        (&"main.2".into(), &"<result>given by me</result>".into(), &0.0.into())
    );
    let replayed = replay(&test, "u", &["--strict-replay"]);
    replayed.ok().ended("main.2", "given by me").ended("main.1", "asked");
    let spent =
        |run: &str| test.raymond(&["status", run, "--json"]).json()["total_cost_usd"].clone();
    assert_eq!(spent("u"), spent("b"));
}

#[test]
fn branch_with_failures_is_replayed_turn_by_turn() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(always().times(2).exit(1))
        .rule(always().reply("<result>ok</result>").cost(0.25));
    test.run(&["START.md"]).ok();
    let test = test.rule(always().times(1).exit(1));
    test.raymond(&["branch", "t", "--at", "main#1", "--id", "b", "--backoff", "1ms..1ms"]).ok();
    let path = cassette(&test).display().to_string();
    test.raymond(&["record", "b", "-o", &path]).ok();
    replay(&test, "u", &["--strict-replay"]).ok();
    test.raymond(&["diff", "b", "u"]).ok();
}

#[test]
fn failed_turn_is_replayed_once_up_to_its_record() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(always().times(1).exit(1))
        .rule(always().reply("<result>recorded</result>"));
    test.run(&["START.md"]).ok();
    record(&test, &[]).ok();
    let test = test.rule(always().reply("<result>live</result>"));
    let live = ["--replay-until", "2", "--then", "scripted", "--max-restarts", "1"];
    std::fs::write(test.flow().join("replies.yaml"), "START.md: [<result>live</result>]\n")
        .expect("written");
    replay(&test, "u", &live).ok().stdout_has("live");
}

#[test]
fn reply_of_a_person_is_checked_by_no_prompt_when_it_is_replayed() {
    let test = Test::new()
        .prompt("START.md", "---\nevaluator: { prompt: JUDGE.md }\n---\nstart")
        .prompt("JUDGE.md", "judge {{transition}}")
        .rule(when("judge").reply("<approve></approve>"))
        .rule(always().reply("<result>asked</result>"));
    test.run(&["START.md"]);
    let given = ["--at", "main#1", "--reply", "<result>given</result>"];
    test.raymond(&[&["branch", "t", "--id", "b"], &given[..]].concat()).ok();
    let path = cassette(&test).display().to_string();
    test.raymond(&["record", "b", "-o", &path]).ok();
    replay(&test, "u", &["--strict-replay"]).ok().stdout_has("given");
}
