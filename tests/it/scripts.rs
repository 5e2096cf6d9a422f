//! Scripts as states: they run without Claude Code, their last line is the tag, and a crash repeats none that has ended.

mod executables;

use raymond::fault::POINTS;
use serde_json::json;

use crate::support::{Test, wait_until, when};

/// Returns the transitions of a run, as `agent state tag target`.
fn steps(test: &Test) -> Vec<String> {
    let step = |step: &serde_json::Value| {
        let said = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let transition = &step["transition"];
        format!(
            "{} {} {} {}",
            said(&step["agent"]),
            said(&step["state"]),
            said(&transition["tag"]),
            said(&transition["target"])
        )
    };
    test.events("step_finished").iter().map(step).collect()
}

fn file(test: &Test, name: &str) -> String {
    std::fs::read_to_string(test.flow().join(name)).unwrap_or_default()
}

/// Returns a workflow of two scripts and a prompt between them.
fn place() -> Test {
    Test::new()
        .file(
            "BUILD.sh",
            b"echo built >> log.txt\necho \"noise <b>\"\necho \"<goto word=\\\"$RAYMOND_VAR_input\\\">REVIEW</goto>\"\n\n",
        )
        .prompt("REVIEW.md", "review {{word}}, then <goto>PUBLISH</goto>")
        .file(
            "PUBLISH",
            b"#!/usr/bin/env python3\nimport os\nopen('log.txt', 'a').write('published\\n')\nprint('<result>' + os.environ['RAYMOND_VAR_verdict'] + '</result>')\n",
        )
        .rule(when("review bees").reply(r#"<goto verdict="good">PUBLISH</goto>"#).cost(0.01))
}

const START: [&str; 3] = ["BUILD.sh", "--input", "bees"];

#[test]
fn scripts_and_prompts_lead_to_one_another() {
    let test = place();
    let outcome = test.run(&START);
    outcome.ok();
    outcome.assert(
        outcome.stdout.contains("Agent main terminated with result: good"),
        "the result of the last script",
    );
    assert_eq!(
        steps(&test),
        ["main BUILD.sh goto REVIEW.md", "main REVIEW.md goto PUBLISH", "main PUBLISH result "]
    );
    assert_eq!(file(&test, "log.txt"), "built\npublished\n");
    assert_eq!(test.calls().len(), 1, "scripts take no turn");
    assert_eq!(test.status()["total_cost_usd"], json!(0.01));
}

#[test]
fn script_forks_calls_and_returns() {
    let test = Test::new()
        .file("START.sh", b"echo '<fork next=\"SUM.sh\" item=\"a\">WORK.sh</fork>'\n")
        .file("SUM.sh", b"echo '<call return=\"END.sh\">WORK.sh</call>'\n")
        .file("WORK.sh", b"echo \"<result>did ${RAYMOND_VAR_item:-none}</result>\"\n")
        .file("END.sh", b"echo \"<result>sum of $RAYMOND_VAR_result</result>\"\n");
    let outcome = test.run(&["START.sh"]);
    outcome.ok();
    for line in [
        "Agent main.1 terminated with result: did a",
        "main terminated with result: sum of did none",
    ] {
        outcome.assert(outcome.stdout.contains(line), line);
    }
    assert!(test.calls().is_empty());
}

#[test]
fn failed_script_names_itself_exit_and_last_lines() {
    let test = Test::new().file("BUILD.sh", b"echo broken >&2\nexit 3\n").file(
        "raymond.yaml",
        b"supervision: { max_restarts: 1, backoff: { min: 1ms, max: 1ms } }\n",
    );
    let outcome = test.run(&["BUILD.sh"]);
    outcome.assert(outcome.status.code() == Some(1), "exit code 1");
    let failed = test.events("agent_failed");
    let error = failed[0]["error"].as_str().unwrap_or_default().to_owned();
    for part in ["BUILD.sh", "3", "broken"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert_eq!(test.events("turn_failed").len(), 1, "it was restarted once");
}

#[test]
fn last_line_without_tag_fails_without_restart() {
    let test = Test::new().file("BUILD.sh", b"echo '<goto>GONE.md</goto>'\n");
    let outcome = test.run(&["BUILD.sh", "--no-check"]);
    outcome.assert(outcome.status.code() == Some(1), "exit code 1");
    outcome.assert(outcome.stderr.contains("BUILD.sh: the end of a script's output"), "the reason");
    outcome.assert(outcome.stderr.contains("GONE.md"), "the missing state");
    let test = Test::new().file("BUILD.sh", b"echo done\n");
    let outcome = test.run(&["BUILD.sh"]);
    outcome.assert(outcome.status.code() == Some(1), "exit code 1");
    outcome.assert(outcome.stderr.contains("its last line is `done`"), "the line");
    assert!(test.events("turn_failed").is_empty());
}

#[test]
fn script_needs_trust_and_is_not_run_without() {
    let test = place().env("RAYMOND_TRUST", "");
    let outcome = test.run(&START);
    outcome.assert(outcome.status.code() == Some(77), "exit code 77");
    outcome.assert(outcome.stderr.contains("BUILD.sh:1:1"), "the place");
    outcome.assert(outcome.stderr.contains("PUBLISH:1:1"), "the other script");
    assert_eq!(file(&test, "log.txt"), "");
}

#[test]
fn script_that_only_agent_names_is_refused_without_trust() {
    let test = Test::new()
        .prompt("START.md", "start")
        .file("helper.sh", b"touch ran\n")
        .rule(when("start").reply("<goto>helper.sh</goto>").cost(0.01))
        .env("RAYMOND_TRUST", "");
    let outcome = test.run(&["START.md"]);
    outcome.assert(outcome.status.code() == Some(1), "exit code 1");
    outcome.assert(outcome.stderr.contains("without trust in the workflow's folder"), "the reason");
    assert!(!test.flow().join("ran").exists());
    assert!(test.events("turn_failed").is_empty(), "it is not tried again");
}

#[test]
fn changed_script_runs_as_it_was_when_run_began() {
    let test = Test::new()
        .file(
            "START.sh",
            b"echo 'echo \"<result>evil</result>\"' > NEXT.sh; echo '<goto>NEXT.sh</goto>'\n",
        )
        .file("NEXT.sh", b"echo '<result>honest</result>'\n");
    let outcome = test.run(&["START.sh"]);
    outcome.ok();
    outcome.assert(outcome.stdout.contains("terminated with result: honest"), "the old script");
}

/// Kills raymond the `count`-th time a failpoint is reached; returns whether it was reached that often.
fn is_killed_at(point: &str, count: u32) -> bool {
    let context = format!("killed at {point}, time {count}");
    let test = place().env("RAYMOND_FAILPOINT", format!("{point}:{count}"));
    let first = test.run(&START);
    let died = first.killed();
    first.assert(died || first.status.code() == Some(0), &context);
    let test = test.env("RAYMOND_FAILPOINT", "none:1");
    let last = if test.run_dir().exists() { test.resume(&[]) } else { test.run(&START) };
    last.assert(last.status.code() == Some(0), &format!("{context}: exit code 0"));
    last.assert(last.stdout.contains("terminated with result: good"), &context);
    assert_eq!(file(&test, "log.txt"), "built\npublished\n", "{context}");
    assert_eq!(test.calls().len(), 1, "{context}: the turn was asked once");
    wait_until(&format!("{context}: no process is left behind"), || test.survivors().is_empty());
    died
}

#[test]
fn scripts_killed_at_any_point_run_once() {
    let dies = |point: &&str| (1..=3).take_while(|&count| is_killed_at(point, count)).count();
    let deaths: Vec<(&str, usize)> = POINTS.iter().map(|point| (*point, dies(point))).collect();
    for point in ["operation.before", "operation.after", "commit.before", "effect.after"] {
        let times = deaths.iter().find(|(name, _)| *name == point).map(|(_, times)| *times);
        assert!(times >= Some(2), "{point} was reached: {deaths:?}");
    }
}

#[test]
fn example_of_page_leads_where_make_says() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/scripts.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let block = page.split("```sh BUILD.sh\n").nth(1).and_then(|rest| rest.split("```").next());
    let script = block.expect("the example");
    let place = |make: &str| {
        let test = Test::new()
            .file("BUILD.sh", script.as_bytes())
            .prompt("REVIEW.md", "review")
            .prompt("FIX.md", "fix {{error}}")
            .file("make", format!("#!/bin/sh\n{make}\n").as_bytes())
            .rule(when("review").reply("<result>reviewed</result>").cost(0.01))
            .rule(when("fix no rule").reply("<result>fixed</result>").cost(0.01));
        let make = test.flow().join("make");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(make, mode).expect("allowed");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", test.flow().display());
        test.env("PATH", path)
    };
    for (make, result) in [("true", "reviewed"), ("echo 'no rule'; exit 2", "fixed")] {
        let outcome = place(make).run(&["BUILD.sh"]);
        outcome.assert(outcome.stdout.contains(&format!("result: {result}")), result);
    }
}

#[test]
fn check_names_scripts_and_reports_file_without_interpreter() {
    let test = Test::new()
        .prompt("START.md", "<goto>BUILD</goto> or <goto>notes.rb</goto>")
        .file("BUILD.sh", b"echo '<result>x</result>'\n")
        .file("notes.rb", b"puts 1\n");
    let outcome = test.raymond(&["check", ".", "--level", "info"]);
    outcome.assert(outcome.status.code() == Some(65), "exit code 65");
    for line in ["BUILD.sh:1:1: ", "RF603", "notes.rb:1:1: ", "RF001"] {
        outcome.assert(outcome.stdout.contains(line) || outcome.stderr.contains(line), line);
    }
}

#[test]
fn script_of_another_folder_is_called_and_needs_trust() {
    let place = || {
        Test::new()
            .prompt("START.md", "start, then <call return=\"END.md\">./review/LINT.sh</call>")
            .prompt("END.md", "end with {{result}}")
            .file("review/LINT.sh", b"echo \"<result>linted $RAYMOND_VAR_item</result>\"\n")
            .rule(
                when("start")
                    .reply(r#"<call return="END.md" item="all">./review/LINT.sh</call>"#)
                    .cost(0.01),
            )
            .rule(when("end with linted all").reply("<result>ok</result>").cost(0.01))
    };
    let outcome = place().run(&["START.md"]);
    outcome.ok();
    outcome.assert(outcome.stdout.contains("terminated with result: ok"), "the result");
    let outcome = place().env("RAYMOND_TRUST", "").run(&["START.md"]);
    outcome.assert(outcome.status.code() == Some(77), "exit code 77");
    outcome.assert(outcome.stderr.contains("review/LINT.sh:1:1"), "the place");
}

#[test]
fn script_whose_copy_is_changed_while_it_runs_does_not_decide() {
    let test = Test::new().file(
        "START.sh",
        b"chmod -R u+w \"$(dirname \"$0\")\"; echo 'echo \"<result>evil</result>\"' >> \"$0\"; echo '<result>honest</result>'\n",
    );
    let outcome = test.run(&["START.sh"]);
    outcome.assert(outcome.status.code() == Some(1), "exit code 1");
    outcome.assert(
        outcome.stderr.contains("the run's copy of the workflow was changed"),
        "the reason",
    );
    outcome.assert(!outcome.stdout.contains("terminated with result"), "no result");
}

#[test]
fn script_of_a_run_gives_no_trust() {
    let test = Test::new()
        .file("START.sh", b"RAYMOND_TRUST=true \"$RAYMOND_VAR_program\" run inner/N.sh >&2; echo \"<result>code $?</result>\"\n")
        .file("inner/N.sh", b"touch ran; echo '<result>x</result>'\n");
    let program = env!("CARGO_BIN_EXE_raymond");
    let outcome = test.run(&["START.sh", "--var", &format!("program={program}")]);
    outcome.ok();
    outcome.assert(outcome.stdout.contains("terminated with result: code 77"), "exit code 77");
    assert!(!test.flow().join("ran").exists() && !test.flow().join("inner/ran").exists());
}

#[test]
fn file_that_script_names_is_trusted_with_it() {
    let test = Test::new()
        .file("START.sh", b". \"$(dirname \"$0\")/steps.txt\"; echo '<result>x</result>'\n")
        .file("steps.txt", b"true\n");
    test.run(&["START.sh", "--trust"]).ok();
    std::fs::write(test.flow().join("steps.txt"), "touch evil\n").expect("written");
    let again = test.env("RAYMOND_TRUST", "").start(&["run", "START.sh", "--id", "again"]).wait();
    again.assert(again.status.code() == Some(77), "exit code 77");
}

#[test]
fn show_has_output_exit_code_and_tag_of_a_script() {
    let script = "echo noise\nfor i in 1 2 3 4 5 6 7 8 9; do echo line $i; done\necho oops >&2\necho '<result>x</result>'\n";
    let test = Test::new().file("BUILD.sh", script.as_bytes());
    test.run(&["BUILD.sh"]).ok();
    let shown = test.raymond(&["show", "t", "main"]);
    shown.ok();
    for part in
        ["    stdout\n", "<result>x</result>", "line 9", "    stderr\n      oops", "exit code 0"]
    {
        shown.stdout_has(part);
    }
    shown.assert(!shown.stdout.contains("noise"), "the end only");
    test.raymond(&["show", "t", "main", "--step", "1"]).ok().stdout_has("noise");
    let json: serde_json::Value = test.raymond(&["show", "t", "main", "--json"]).ok().json();
    let script = &json["steps"][0]["turns"][0]["script"];
    assert_eq!((&script["exit_code"], &script["stderr"]), (&json!(0), &json!("oops\n")));
}

#[test]
fn status_after_a_kill_says_that_a_script_is_run_again() {
    let test = Test::new().file(
        "BUILD.sh",
        b"echo $$ > running\nwhile [ ! -e go ]; do sleep 0.05; done\necho '<result>x</result>'\n",
    );
    let live = test.spawn(&["BUILD.sh"]);
    wait_until("the script runs", || !file(&test, "running").is_empty());
    live.kill9();
    test.raymond(&["status", "t"]).ok().stdout_has(
        "1 of its scripts still run; `raymond resume t` ends them and runs them again, according to the restart policy",
    );
    std::fs::write(test.flow().join("go"), "").expect("written");
    test.resume(&[]).ok().ended("main", "x");
}

#[test]
fn picture_has_the_transitions_of_scripts() {
    let test = Test::new()
        .prompt("START.md", "---\nallowed_transitions:\n  - { tag: goto, target: A.sh }\n---\nGo.")
        .file("A.sh", b"echo \"<goto>B.md</goto>\"\n")
        .prompt("B.md", "<result>x</result>");
    let drawn = test.raymond(&["graph", ".", "--format", "mermaid"]);
    let arrows = drawn.ok().stdout.lines().filter(|line| line.contains("->")).count();
    drawn.assert(arrows >= 4, "start, A.sh, B.md and the end");
}

#[test]
fn join_leads_to_a_script_after_a_failure() {
    let test = Test::new()
        .prompt("START.md", "start <fork next=\"ALL.md\">WORK.md</fork>")
        .prompt("WORK.md", "work <result>x</result>")
        .prompt("ALL.md", "---\njoin: all\non_failure: FIX.sh\n---\nall <result>x</result>")
        .file("FIX.sh", b"echo '<result>fixed</result>'\n")
        .rule(when("start").reply("<fork next=\"ALL.md\">WORK.md</fork>"))
        .rule(when("work").reply("no tag"));
    test.run(&["START.md"]).ended("main", "fixed");
}
