//! A full disk, few open files, and a home that cannot be used: errors with a remedy, after which nothing is lost or done twice.

use std::fs;

use crate::bad_input::on_a_small_disk;
use crate::support::{Test, always};

/// Returns a test whose turns all end with a result.
fn answering() -> Test {
    Test::new().rule(always().reply("<result>ok</result>"))
}

#[test]
fn command_that_fills_the_disk_runs_once_and_its_outcome_is_kept() {
    let command = "echo paid >> ../out/count; head -c 50000 /dev/zero | tr '\\\\0' x; dd if=/dev/zero of=$RAYMOND_DIR/fill bs=1k 2> /dev/null; true";
    let graph = format!(
        r#"
name: flow
version: "1.0.0"
description: Runs a command that fills the disk.
entry_preconditions: []
initial_state: {{ flags: {{}}, computed: {{}} }}
start_node: a
nodes:
  a:
    type: action
    actions:
      - {{ type: bash_exec, command: "{command}", once: true, store_as: computed.said }}
      - {{ type: write_file, path: said.txt, content: "${{computed.said.stdout}}" }}
    on_success: done
    on_failure: failed
endings:
  done: {{ type: success, message: Done }}
  failed: {{ type: error, message: "${{computed.last_error}}" }}
"#
    );
    let test = Test::new().file("workflow.yaml", graph.as_bytes());
    let script = r#"
        "$0" run workflow.yaml --id t; echo "first: $?"
        rm "$RAYMOND_DIR/fill"
        exec "$0" run t"#;
    if let Some(outcome) = on_a_small_disk(&test, "size=2m", script) {
        outcome.ok();
        let read = |name: &str| fs::read_to_string(test.root().join(name)).expect("it is there");
        assert_eq!(read("out/count"), "paid\n");
        assert_eq!(read("flow/said.txt"), "x".repeat(50000));
    }
}

#[test]
fn file_that_the_workspace_has_no_room_for_pauses_the_run() {
    let graph = r#"
name: flow
version: "1.0.0"
description: Writes a large file.
entry_preconditions: []
initial_state: { flags: {}, computed: {} }
start_node: a
nodes:
  a:
    type: action
    actions:
      - { type: bash_exec, command: "head -c 3000000 /dev/zero | tr '\\0' x > large", idempotent: true }
      - { type: read_file, path: large, store_as: computed.text }
      - { type: write_file, path: small/note, content: "${computed.text}" }
    on_success: done
    on_failure: failed
endings:
  done: { type: success, message: Done }
  failed: { type: error, message: "${computed.last_error}" }
"#;
    let test = Test::new().file("workflow.yaml", graph.as_bytes());
    let script = r#"
        mkdir small && mount -t tmpfs -o size=1m none small || exit 99
        "$0" run workflow.yaml --id t; echo "first: $?"
        mount -o remount,size=8m small
        "$0" run t || exit
        exec wc -c small/note"#;
    if let Some(outcome) = on_a_small_disk(&test, "size=64m", script) {
        outcome.ok().stdout_has("first: 74").says("No space left on device");
        outcome.stdout_has("3000000 small/note");
    }
}

#[test]
fn too_few_open_files_are_an_error_with_the_remedy() {
    for limit in [8, 12, 20, 30, 63] {
        let test = answering().prompt("START.md", "start");
        let outcome =
            test.shell(&format!(r#"ulimit -n {limit}; exec "$0" run START.md --id t"#)).wait();
        outcome.code(74).stderr_has(&format!("may open {limit} files")).stderr_has("ulimit -n");
        assert!(!test.run_dir().exists(), "nothing has begun");
    }
    let test = answering().prompt("START.md", "start");
    test.shell(r#"ulimit -n 64; exec "$0" run START.md --id t"#).wait().ok();
}

#[test]
fn home_that_cannot_be_used_names_the_variable_that_helps() {
    let replies = b"START.md: ['<result>well</result>']\n";
    let test = Test::new().prompt("START.md", "start").file("replies.yaml", replies);
    let test = test.env("HOME", "/dev/null/home");
    let scripted = ["START.md", "--agent", "scripted"];
    test.run(&scripted).code(74).stderr_has("/dev/null/home").stderr_has("XDG_STATE_HOME");
    let state = test.root().join("state");
    test.env("XDG_STATE_HOME", state).run(&scripted).ok();
    let script = r#"mount -t tmpfs -o ro none "$HOME"; exec "$0" run START.md --id t"#;
    let test = answering().prompt("START.md", "start");
    if let Some(outcome) = on_a_small_disk(&test, "size=8m", script) {
        outcome.code(74).stderr_has("XDG_STATE_HOME");
    }
}
