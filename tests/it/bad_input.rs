//! Broken workflows, files and directories. The message names the problem, its place, its reason and the fix,
//! and nothing is lost.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::{RaymondOutcome, Test, always, when};

fn answering() -> Test {
    Test::new().rule(always().reply("<result>ok</result>"))
}

/// Checks that a prompt with this frontmatter is refused before any turn.
#[track_caller]
fn refused(frontmatter: &str, parts: &[&str]) {
    let test = answering().prompt("START.md", &format!("---\n{frontmatter}\n---\nstart"));
    let outcome = test.run(&["START.md"]);
    outcome.code(65);
    for part in parts {
        outcome.stderr_has(part);
    }
    outcome.assert(test.calls().is_empty(), "no call");
}

#[test]
fn missing_scope_is_error() {
    answering().run(&["nowhere/START.md"]).code_in(&[64, 65]).stderr_has("nowhere/START.md");
}

#[test]
fn missing_start_file_is_error_with_suggestion() {
    let test = answering().prompt("START.md", "start");
    test.run(&["STRAT.md"]).code_in(&[64, 65]).stderr_has("STRAT.md").stderr_has("START.md");
}

#[test]
fn folder_without_start_is_error() {
    let test = answering().prompt("empty/NOTE.md", "note");
    test.run(&["empty"]).code_in(&[64, 65]).stderr_has("empty").stderr_has("START.md");
}

#[test]
fn unknown_run_is_error_with_hint() {
    let test = answering().prompt("START.md", "start");
    test.raymond(&["run", "nosuch"]).code_in(&[64, 65]).stderr_has("nosuch");
    for command in ["status", "log", "stop", "resume"] {
        test.raymond(&[command, "nosuch"])
            .code_in(&[64, 65])
            .stderr_has("nosuch")
            .stderr_has("raymond list");
    }
}

#[test]
fn target_with_invalid_name_fails_agent() {
    for target in [r"sub\NEXT.md", "../SECRET.md", "/etc/passwd", "..", ".", "", "A\0B.md"] {
        let test = Test::new()
            .prompt("START.md", "start")
            .prompt("sub/NEXT.md", "leaked")
            .rule(when("start").reply(&format!("<goto>{target}</goto>")));
        let outcome = test.run(&["START.md"]);
        outcome.code(1).failed("main");
        outcome.assert(test.calls().len() == 1, &format!("no call beyond {target:?}"));
        if target.len() > 2 && !target.contains('\0') {
            // An absolute path is named by its folder.
            outcome.stdout_has(target.trim_end_matches("/passwd"));
        }
    }
}

#[test]
fn symlink_out_of_scope_fails_agent() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(when("start").reply("<goto>NEXT.md</goto>"))
        .rule(always().reply("<result>leaked</result>"));
    fs::write(test.root().join("secret.md"), "secret").expect("it is written");
    symlink("../secret.md", test.flow().join("NEXT.md")).expect("it is linked");
    let outcome = test.run(&["START.md"]);
    outcome.code(1).says("NEXT.md").says("scope").failed("main");
    assert!(test.calls_with("secret").is_empty());
}

#[test]
fn symlink_within_scope_is_followed() {
    let test = answering().prompt("REAL.md", "start");
    symlink("REAL.md", test.flow().join("START.md")).expect("it is linked");
    test.run(&["START.md"]).ok();
}

#[test]
fn missing_return_state_fails_agent_before_call() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("CHILD.md", "child")
        .rule(always().reply(r#"<call return="NOWHERE.md">CHILD.md</call>"#));
    test.run(&["START.md"]).code(1).says("NOWHERE.md").failed("main");
    assert_eq!(test.calls().len(), 1);
}

#[test]
fn state_removed_mid_run_fails_agent_without_retry() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("CHILD.md", "child")
        .prompt("BACK.md", "back")
        .rule(when("start").reply(r#"<call return="BACK.md">CHILD.md</call>"#))
        .rule(when("child").hold_before("go").reply("<result>x</result>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(2);
    fs::remove_file(test.flow().join("BACK.md")).expect("it was there");
    test.release("go");
    live.wait().code(1).says("BACK.md").failed("main");
    assert_eq!(test.calls().len(), 2, "a missing file is not tried again");
}

#[test]
fn invalid_yaml_frontmatter_is_rejected() {
    refused("model: sonnet\nallowed_transitions: [", &["START.md:"]);
}

#[test]
fn unknown_frontmatter_key_is_rejected_with_suggestion() {
    refused("modle: sonnet", &["START.md:2:1", "modle", "model"]);
}

#[test]
fn frontmatter_value_of_wrong_type_is_rejected() {
    refused("allowed_transitions: goto", &["START.md:2:"]);
}

#[test]
fn unknown_policy_tag_is_rejected_with_suggestion() {
    refused(
        "allowed_transitions:\n  - { tag: gotoo, target: NEXT.md }",
        &["START.md:3:", "gotoo", "goto"],
    );
}

#[test]
fn invalid_model_name_is_rejected() {
    refused("model: two words", &["START.md:2:", "two words", "sonnet"]);
}

#[test]
fn path_as_policy_target_is_rejected() {
    refused(
        "allowed_transitions:\n  - { tag: goto, target: ../NEXT.md }",
        &["START.md:3:", "../NEXT.md"],
    );
}

#[test]
fn policy_without_required_attribute_is_rejected() {
    refused(
        "allowed_transitions:\n  - { tag: call, target: CHILD.md }",
        &["START.md:3:", "return"],
    );
}

#[test]
fn unterminated_frontmatter_is_rejected() {
    let test = answering().prompt("START.md", "---\nmodel: sonnet\nstart");
    test.run(&["START.md"]).code(65).stderr_has("START.md:").stderr_has("---");
}

#[test]
fn bad_frontmatter_of_later_state_is_error() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "---\nmodel: [\n---\nnext")
        .rule(when("start").reply("<goto>NEXT.md</goto>"));
    test.run(&["START.md"]).code_in(&[1, 65]).says("NEXT.md:");
}

#[test]
fn prompt_larger_than_argument_limit_is_sent_whole() {
    let body = format!("start {}", "y".repeat(200 << 10));
    let test = answering().prompt("START.md", &body);
    test.run(&["START.md"]).ok();
    assert_eq!(test.calls()[0].prompt.trim_end().len(), body.len());
}

#[test]
fn non_utf8_prompt_is_rejected() {
    let test = answering().file("START.md", b"start \xff here");
    test.run(&["START.md"]).code(65).stderr_has("START.md").stderr_has("UTF-8");
    assert!(test.calls().is_empty());
}

#[test]
fn empty_prompt_is_rejected() {
    let test = answering().prompt("START.md", "---\nmodel: sonnet\n---\n\n");
    let outcome = test.run(&["START.md"]);
    outcome.code_in(&[1, 65]).says("START.md").says("empty");
    assert!(test.calls().is_empty(), "Claude Code would say nothing to it");
}

#[test]
fn run_directory_that_cannot_be_created_is_error() {
    let test = answering().prompt("START.md", "start").file("in-the-way", b"");
    let test = test.env("RAYMOND_DIR", "in-the-way");
    let outcome = test.run(&["START.md"]);
    outcome.code(74).stderr_has("in-the-way").stderr_has("--dir");
    assert!(test.calls().is_empty());
}

/// Runs the script with a file system of this size as `RAYMOND_DIR`, in namespaces of its own. Returns `None`
/// if the system forbids namespaces; CI must allow them.
pub(crate) fn on_a_small_disk(test: &Test, options: &str, script: &str) -> Option<RaymondOutcome> {
    if !test.run_in_namespaces("mount -t tmpfs none /tmp").status.success() {
        assert!(std::env::var_os("CI").is_none(), "CI must allow `unshare -rm`");
        return None;
    }
    let mount = format!("mkdir -p $RAYMOND_DIR && mount -t tmpfs -o {options} none $RAYMOND_DIR");
    Some(test.run_in_namespaces(&format!("{mount} || exit 99\n{script}")))
}

#[test]
fn read_only_run_directory_is_error() {
    let test = answering().prompt("START.md", "start");
    let script = r#"exec "$0" run START.md --id t"#;
    if let Some(outcome) = on_a_small_disk(&test, "ro", script) {
        outcome.code(74).stderr_has("ray");
        assert!(test.calls().is_empty());
    }
}

#[test]
fn resume_after_full_disk_repeats_no_paid_turn() {
    let megabyte = "z".repeat(1 << 20);
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(always().reply(&format!("<result>{megabyte}</result>")));
    // The transcript of the turn (2 MB) fits, but its record (1 MB) fits only after the filler is removed.
    let script = r#"
        head -c 8M /dev/zero > "$RAYMOND_DIR/filler"
        "$0" run START.md --id t; echo "first: $?"
        rm "$RAYMOND_DIR/filler"
        exec "$0" run t"#;
    if let Some(outcome) = on_a_small_disk(&test, "size=10752k", script) {
        outcome
            .stdout_has("first: 74")
            .says("No space left on device")
            .stderr_has("raymond resume t");
        outcome.ok().stdout_has("Agent main terminated with result: zzz");
        assert_eq!(test.calls().len(), 1, "what was paid for is not paid for again");
    }
}

#[test]
fn turn_with_lost_transcript_is_retried_and_its_cost_estimated() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(always().once().cost(0.5).reply("<goto>START.md</goto>"))
        .rule(always().once().cost(0.5).hold_before("go").reply("<result>lost</result>"))
        .rule(always().cost(0.25).reply("<result>ok</result>"));
    let script = r#"
        calls="$FAKE_CLAUDE/calls.jsonl" runs="$RAYMOND_DIR/runs" journal="$RAYMOND_DIR/runs/t/journal.jsonl"
        "$0" run START.md --id t --no-warm --backoff 1s..1s & raymond=$!
        until [ "$(grep -c '"prompt"' "$calls")" = 2 ]; do sleep 0.01; done
        for stream in "$RAYMOND_DIR"/runs/t/steps/main-2-*.jsonl; do : > "$stream"; done
        dd if=/dev/zero of="$RAYMOND_DIR/filler" bs=1k 2> "$FAKE_CLAUDE/dd"
        touch "$FAKE_CLAUDE/go"
        until grep -q turn_failed "$journal" || ! kill -0 $raymond; do sleep 0.01; done
        rm "$RAYMOND_DIR/filler"
        wait $raymond || "$0" run t || exit
        exec "$0" costs t --json > "$FAKE_CLAUDE/costs""#;
    if let Some(outcome) = on_a_small_disk(&test, "size=2m", script) {
        outcome.ok().stdout_has("Agent main terminated with result: ok");
        let costs = fs::read(test.fake().join("costs")).expect("the costs");
        let costs: serde_json::Value = serde_json::from_slice(&costs).expect("JSON");
        assert_eq!(costs["total"]["estimated_usd"], 0.5, "as the turn before it: {costs:#}");
        assert_eq!(costs["total_cost_usd"], 1.25, "{costs:#}");
    }
}

#[test]
fn full_disk_during_transcript_is_reported() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(always().pad(4 << 20).reply("<result>ok</result>"));
    let script = r#"exec "$0" run START.md --id t --backoff 1ms..5ms"#;
    if let Some(outcome) = on_a_small_disk(&test, "size=2m", script) {
        outcome.code_in(&[1, 74]).says("No space left on device");
    }
}

#[test]
fn mistake_in_later_state_is_warned_of_at_start() {
    let policy = "---\nallowed_transitions:\n  - { tag: goto, target: NEXT.md }\n  - { tag: result }\n---\nstart";
    let test =
        answering().prompt("START.md", policy).prompt("NEXT.md", "---\nmodle: opus\n---\nnext");
    test.run(&["START.md", "--no-check"])
        .ok()
        .stderr_has("warning: ")
        .stderr_has("NEXT.md:2:1: RF002 unknown key `modle`");
    let started = test.raymond(&["start", "START.md", "--id", "u", "--no-check"]);
    started.ok().stderr_has("NEXT.md:2:1: RF002 unknown key `modle`");
}

#[test]
fn value_that_no_state_reads_is_reported_at_the_start() {
    let test = Test::new()
        .prompt("START.md", "Say {{topic}}. End with <result>x</result>")
        .file("replies.yaml", b"START.md: <result>x</result>\nSTRAT.md: <result>y</result>\n");
    let unused = ["--var", "topci=x", "--input", "hi", "--context", "a=b", "--var", "topic=y"];
    let said = test.run(&[&["START.md", "--agent", "scripted"], &unused[..]].concat());
    said.ok()
        .stderr_has("--input has no effect: no state contains {{input}}")
        .stderr_has("--var topci has no effect: no state contains {{topci}}")
        .stderr_has("--context a has no effect without a program")
        .stderr_has("RF005 unknown prompt STRAT.md; did you mean START.md?")
        .stderr_lacks("--var topic has");
}

#[test]
fn value_that_no_graph_or_program_reads_is_reported_at_the_start() {
    let graph = |text: &str| {
        format!(
            "name: flow\nversion: 1.0.0\ndescription: x\nentry_preconditions: []\ninitial_state: {{ topic: x }}\nstart_node: a\nnodes:\n  a: {{ type: action, actions: [{{ type: compute, expression: \"1\", store_as: n }}], on_success: done, on_failure: done }}\nendings:\n  done: {{ type: success, message: \"{text}\" }}\n"
        )
    };
    let program = "(workflow f (roles (a)) (state s (action (log \"~a\" @context/topic) (send-prompt :agent a :template \"hi\" :request-id r) (await (transcript-response :request-id r)))))";
    let given = ["--agent", "scripted", "--input", "hi", "--var", "topic=x", "--var", "topci=y"];
    let unread = Test::new().file("workflow.yaml", graph("{{input}} on {{topic}}").as_bytes());
    unread
        .run(&[&["workflow.yaml"], &given[..]].concat())
        .ok()
        .stderr_has("--input has no effect: this graph does not use ${arguments}")
        .stderr_has("--var topci has no effect: this graph does not use ${topci}")
        .stderr_lacks("--var topic has");
    unread
        .raymond(&["check", "."])
        .says("is plain text in a graph; write `${arguments}`")
        .says("is plain text in a graph; write `${topic}`");
    let read = Test::new().file("workflow.yaml", graph("${arguments} ${topic} {{x}}").as_bytes());
    read.run(&["workflow.yaml", "--agent", "scripted", "--input", "hi"])
        .ok()
        .stderr_lacks("has no effect");
    read.raymond(&["check", "."]).stderr_lacks("plain text");
    let wrong = Test::new().file("workflow.yaml", graph("${input}").as_bytes());
    wrong.raymond(&["check", "."]).says("the text of --input is `${arguments}`");
    let test = Test::new()
        .file("workflow.lisp", program.as_bytes())
        .file("replies.yaml", b"workflow.lisp#a: hello\n");
    let given = [&["workflow.lisp"], &given[..]].concat();
    test.run(&given)
        .ok()
        .stderr_has("--input has no effect: this program does not use @context/input")
        .stderr_has("--var topci has no effect: this program does not use @context/topci")
        .stderr_lacks("--var topic has");
}
