//! Cassettes: `raymond record` and `--agent replay:DIR`.

mod continued;
mod random;
mod refused;
mod until;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{Test, always, when};

/// Returns the records of a run.
fn journal(test: &Test, run: &str) -> Vec<Value> {
    let path = test.dir().join("runs").join(run).join("journal.jsonl");
    let records = std::fs::read_to_string(path).expect("the run has a journal");
    records.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Returns what each agent came to in a run: the ends of its turns, with transitions, causes and costs.
fn story(test: &Test, run: &str) -> BTreeMap<String, Vec<Value>> {
    let mut story: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for record in journal(test, run) {
        let Some(agent) = record["agent"].as_str() else { continue };
        let keys = [
            "event",
            "step",
            "turn",
            "state",
            "transition",
            "cause",
            "cost_usd",
            "usage",
            "error",
            "violation",
            "refused_tools",
        ];
        let seen: serde_json::Map<String, Value> =
            keys.iter().map(|&key| (key.to_owned(), record[key].clone())).collect();
        story.entry(agent.to_owned()).or_default().push(seen.into());
    }
    story
}

fn cassette(test: &Test) -> PathBuf {
    test.root().join("cassette")
}

/// Returns the turns of the recorded cassette.
fn turns(test: &Test) -> Vec<Value> {
    let lines = std::fs::read_to_string(cassette(test).join("turns.jsonl")).expect("a cassette");
    lines.lines().map(|line| serde_json::from_str(line).expect("a turn")).collect()
}

/// Records the run `t`.
fn record(test: &Test, options: &[&str]) -> crate::support::RaymondOutcome {
    let path = cassette(test).display().to_string();
    test.raymond(&[&["record", "t", "-o", &path], options].concat())
}

/// Replays the cassette as another run, without Claude Code.
fn replay(test: &Test, run: &str, options: &[&str]) -> crate::support::RaymondOutcome {
    let agent = format!("replay:{}", cassette(test).display());
    let always = ["START.md", "--id", run, "--agent", &agent, "--claude", "/nowhere/claude"];
    test.run(&[&always, options].concat())
}

const POLICY: &str =
    "---\nallowed_transitions:\n  - { tag: goto, target: NEXT.md }\n  - { tag: result }\n---\n";

/// Returns a workflow with a crash, a refused reply, a refused tool, a fork, a call, an evaluator and a failure.
fn eventful() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("WORK.md", "work on {{item}}")
        .prompt("NEXT.md", &format!("{POLICY}next in {{{{cwd}}}}"))
        .prompt("SUB.md", "---\nevaluator: { prompt: CHECK.md }\n---\nsub")
        .prompt("CHECK.md", "check {{transition}}")
        .prompt("BACK.md", &format!("{POLICY}back with {{{{result}}}}"))
        .rule(when("start").reply(r#"<fork next="NEXT.md" item="bees">WORK.md</fork>"#).cost(0.01))
        .rule(when("work on bees").reply("<goto>NOWHERE.md</goto>").cost(0.02))
        .rule(when("next in").once().exit(3))
        .rule(when("next in").once().reply("no tag").cost(0.03))
        .rule(when("check").reply("fine").cost(0.002))
        .rule(when("sub").reply("<result>found</result>").takes("opus", [10, 20, 30, 40], 0.04))
        .rule(
            when("back with found")
                .reply("<result>over</result>")
                .refused("Bash", &json!({ "command": "make" }), "no")
                .cost(0.05),
        )
}

#[test]
fn recorded_run_replays_with_the_same_transitions_failures_and_costs() {
    let mut test = eventful();
    // A policy that allows two ways refuses a reply without a tag; the reminder leads on.
    std::fs::write(
        test.flow().join("NEXT.md"),
        "---\nallowed_transitions:\n  - { tag: call, target: SUB.md, return: BACK.md }\n  - { tag: result }\n---\nnext in",
    )
    .expect("written");
    test = test.rule(always().reply(r#"<call return="BACK.md">SUB.md</call>"#).cost(0.06));
    test.run(&["START.md"]).code(1);
    record(&test, &[]).ok().stdout_has("turns of t in ").stdout_has("bearer: 0");
    let calls = test.calls().len();
    let replayed = replay(&test, "u", &["--strict-replay"]);
    replayed.code(1).stdout_has("over").stderr_has("answered by a cassette: no model is called");
    assert_eq!(story(&test, "u"), story(&test, "t"));
    assert_eq!(test.calls().len(), calls, "Claude Code was not started");
    let status =
        |run: &str| test.raymond(&["status", run, "--json"]).json()["total_cost_usd"].clone();
    assert_eq!(status("u"), status("t"));
    test.raymond(&["costs", "u"])
        .ok()
        .stdout_has("the costs are the recorded ones")
        .stdout_has("opus");
    test.raymond(&["show", "u", "main"]).ok().stdout_has("back with found");
}

#[test]
fn cassette_names_each_turn_with_its_texts_and_numbers_of_sessions() {
    let test = Test::new()
        .prompt("START.md", "start {{input}} in run {{workflow_id}}")
        .prompt("NEXT.md", "next")
        .rule(
            when("start").reply("<goto>NEXT.md</goto>").takes("opus", [1, 2, 3, 4], 0.5).cost(0.5),
        )
        .rule(when("next").reply("<result>ok</result>").cost(0.25));
    test.run(&["START.md", "--input", "x"]).ok();
    let told = record(&test, &["--json"]).ok().json();
    assert_eq!((&told["turns"], &told["workflow"]["entry"]), (&json!(2), &json!("START.md")));
    let turns = turns(&test);
    let first = &turns[0];
    for (key, value) in [
        ("agent", json!("main")),
        ("step", json!(1)),
        ("turn", json!(0)),
        ("state", json!("START.md")),
        ("visit", json!(0)),
        ("session", json!(1)),
        ("session_turn", json!(1)),
        ("model", json!("opus")),
        ("outcome", json!("replied")),
        ("answer", json!("<goto>NEXT.md</goto>")),
        ("cost_usd", json!(0.5)),
    ] {
        assert_eq!(first[key], value, "{key} of {first}");
    }
    assert!(first["prompt_hash"].as_str().is_some_and(|hash| hash.starts_with("sha256:")));
    assert_eq!((&turns[1]["session"], &turns[1]["session_turn"]), (&json!(1), &json!(2)));
    assert!(!turns.iter().any(|turn| turn.to_string().contains("session_id")));
}

#[test]
fn changed_prompt_shows_its_difference_and_fails_a_strict_replay() {
    let test = Test::new()
        .prompt("START.md", "one\ntwo\nthree")
        .rule(when("two").reply("<result>ok</result>").cost(0.1));
    test.run(&["START.md"]).ok();
    record(&test, &[]).ok();
    std::fs::write(test.flow().join("START.md"), "one\nTWO\nthree").expect("written");
    replay(&test, "u", &[])
        .ok()
        .stderr_has(
            "the prompt differs from the recorded one; answered with the reply to START.md of main (same agent, state and visit): (agent main)\n  --- recorded\n",
        )
        .stderr_has("-two")
        .stderr_has("+TWO");
    let strict = replay(&test, "v", &["--strict-replay"]);
    strict.code(1).stderr_has("the prompt differs from the recorded one").stderr_has("+TWO");
    replay(&test, "w", &["--strict"]).ok();
    test.raymond(&["run", "START.md", "--strict-replay"])
        .code(64)
        .stderr_has("goes with --agent replay:DIR");
    test.raymond(&["resume", "u", "--agent", "scripted"]).code(64);
}

#[test]
fn secrets_are_not_in_the_cassette_and_the_replay_still_fits() {
    let key = "sk-ant-api03-abcdefghijklmnop";
    let test = Test::new()
        .prompt("START.md", &format!("use {key} and acme-17 and {{{{input}}}}"))
        .env("DEPLOY", "hush-hush")
        .rule(when("use").reply("<result>acme-18 password=hunter22</result>"));
    test.run(&["START.md", "--input", "hush-hush"]).ok();
    record(&test, &["--scrub", "acme-[0-9]+", "--scrub-env", "DEPLOY"])
        .ok()
        .stdout_has("anthropic-key: 1")
        .stdout_has("env:DEPLOY: 1")
        .stdout_has("password: 1")
        .stdout_has("scrub-1: 2");
    for file in ["cassette.json", "turns.jsonl"] {
        let content = std::fs::read_to_string(cassette(&test).join(file)).expect("there");
        for secret in [key, "acme-1", "hush-hush", "hunter22"] {
            assert!(!content.contains(secret), "{secret} in {content}");
        }
    }
    let turn = &turns(&test)[0];
    assert_eq!(
        turn["prompt"],
        "use [scrubbed:anthropic-key] and [scrubbed:scrub-1] and [scrubbed:env:DEPLOY]"
    );
    replay(&test, "u", &["--strict-replay", "--input", "hush-hush"])
        .ok()
        .ended("main", "[scrubbed:scrub-1] password=[scrubbed:password]");
    record(&test, &["--force", "--scrub-env", "NOT_SET"]).code(64).stderr_has("is not set");
    record(&test, &["--force", "--scrub", "("]).code(64);
}

/// Adds calls of tools to the stream of a turn, before its last line.
pub(crate) fn use_tools(test: &Test, turn: &str, calls: &[(&str, Value)]) {
    let path = test.run_dir().join("steps").join(format!("{turn}.jsonl"));
    let stream = std::fs::read_to_string(&path).expect("a stream");
    let at = stream.rfind("{\"").filter(|_| stream.contains("\"result\"")).expect("a result");
    let at = stream[..at]
        .rfind('\n')
        .map_or(0, |end| end + 1)
        .max(stream[..stream.len() - 1].rfind('\n').map_or(0, |end| end + 1));
    let mut lines = Vec::new();
    for (number, (tool, input)) in calls.iter().enumerate() {
        let id = format!("toolu_{number}");
        let call = json!({ "type": "tool_use", "id": id, "name": tool, "input": input });
        let answer = json!({ "type": "tool_result", "tool_use_id": id, "content": "done" });
        for (kind, block) in [("assistant", call), ("user", answer)] {
            let line = json!({ "type": kind, "parent_tool_use_id": null, "message": { "content": [block] } });
            lines.push(format!("{line}\n"));
        }
    }
    std::fs::write(&path, format!("{}{}{}", &stream[..at], lines.concat(), &stream[at..]))
        .expect("written");
}

#[test]
fn recorded_changes_of_files_are_made_again_below_the_working_directory() {
    let test = Test::new()
        .prompt("START.md", "start")
        .file("old.txt", b"a b")
        .rule(when("start").reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    let inside = |name: &str| test.flow().join(name).display().to_string();
    use_tools(
        &test,
        "main-1-0",
        &[
            (
                "Write",
                json!({ "file_path": inside("new/a.txt"), "content": format!("in {}", test.flow().display()) }),
            ),
            (
                "Edit",
                json!({ "file_path": inside("old.txt"), "old_string": "b", "new_string": "bb" }),
            ),
            (
                "Edit",
                json!({ "file_path": inside("gone.txt"), "old_string": "b", "new_string": "c" }),
            ),
            (
                "Write",
                json!({ "file_path": test.root().join("outside").display().to_string(), "content": "x" }),
            ),
            ("Write", json!({ "file_path": inside("../outside"), "content": "x" })),
            ("Bash", json!({ "command": "touch x" })),
        ],
    );
    record(&test, &[])
        .ok()
        .stdout_has("2 changes of files outside the working directory")
        .stdout_has("1 command (Bash) was run: what it changed is not known");
    let paths: Vec<Value> = turns(&test)[0]["files"]
        .as_array()
        .expect("files")
        .iter()
        .map(|file| file["path"].clone())
        .collect();
    assert_eq!(paths, ["new/a.txt", "old.txt", "gone.txt"]);
    replay(&test, "u", &[]).ok().stderr_has("there is no `gone.txt`");
    let read = |name: &str| std::fs::read_to_string(test.flow().join(name)).expect("there");
    assert_eq!(read("new/a.txt"), format!("in {}", test.flow().display()));
    assert_eq!(read("old.txt"), "a bb");
    assert!(!test.root().join("outside").exists());
    replay(&test, "v", &["--strict-replay"])
        .code(1)
        .stderr_has("a recorded change of a file cannot be made");
}

#[test]
fn replay_that_is_killed_resumes_with_its_copy_of_the_cassette() {
    let test = eventful().rule(always().reply("<result>left</result>").cost(0.06));
    test.run(&["START.md"]).code(1);
    record(&test, &[]).ok();
    let whole = story(&test, "t");
    for (number, point) in
        ["append.after:1", "append.after:3", "effect.before:2"].iter().enumerate()
    {
        let run = format!("u{number}");
        let path = cassette(&test);
        let killed = test.shell(&format!(
            "RAYMOND_FAILPOINT={point} exec \"$0\" run START.md --id {run} --backoff 1ms..5ms --agent replay:{}",
            path.display()
        ));
        assert!(killed.wait().killed(), "{point}");
        let moved = test.root().join("moved");
        std::fs::rename(&path, &moved).expect("moved");
        test.raymond(&["resume", &run]).code(1);
        std::fs::rename(&moved, &path).expect("moved back");
        assert_eq!(story(&test, &run), whole, "{point}");
    }
    let turns = test.dir().join("runs/u0/cassette/turns.jsonl");
    assert!(turns.is_file());
}

#[test]
fn live_run_is_recorded_without_the_turn_that_runs() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply("<goto>NEXT.md</goto>"))
        .rule(when("next").hold_before("go").reply("<result>ok</result>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_for("the held turn", |test| test.calls_with("next").len() == 1);
    live.wait_event("step_finished", 1);
    record(&test, &[]).ok().stdout_has("recorded 1 turn of t").stdout_has("the run has not ended");
    test.release("go");
    live.wait().ok();
    replay(&test, "u", &[])
        .code(1)
        .stderr_has("this cassette has no turn 1 of an agent in NEXT.md");
}
