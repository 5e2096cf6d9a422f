//! Programs whose roles are Claude Code: the facts they assert in a turn, their sessions, models, directories
//! and work, and a kill in the middle.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::api::on;
use crate::graph::git;

use super::machine::TestMachine;

fn machine(roles: &str, states: &str) -> TestMachine {
    let machine = TestMachine::new();
    machine.prompt("p.lisp", &format!("(workflow w (roles {roles}) {states})"));
    machine
}

fn ask(role: &str, template: &str, id: &str) -> String {
    format!(
        "(action (send-prompt :agent {role} :template \"{template}\" :request-id {id})
           (await (transcript-response :request-id {id})))"
    )
}

#[test]
fn fact_asserted_in_role_turn_is_visible_to_next_branch() {
    let states = format!(
        "(state s {}
           (branch (on (signal ready :key @workflow-id) (terminal :result (signal ready :key @workflow-id)))
                   (otherwise (terminal :result missed))))",
        ask("a", "ALPHA: look.", "r")
    );
    let mut machine = machine("(a)", &states);
    let programs = Path::new(env!("CARGO_BIN_EXE_raymond")).parent().expect("a directory");
    machine.set("PATH", &format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display()));
    let command = "raymond signal ready --key \"$RAYMOND_RUN\" --value \"told by $RAYMOND_AGENT\"";
    machine.api.script([
        on("ALPHA").tool("Bash", json!({"command": command, "description": "tell"})),
        on("is asserted").reply("I have told them."),
    ]);
    let ended = machine.start_at("p.lisp", &["--dangerously-skip-permissions"]).wait().exits(0);
    assert!(
        ended.stdout.contains("Agent main terminated with result: told by main.1\n"),
        "{ended:?}"
    );
}

#[test]
fn role_keeps_its_session_model_and_directory() {
    let states = format!(
        "(state s {} {} {} {})",
        ask("a", "ALPHA: begin.", "r1"),
        ask("b", "BRAVO: write.", "r2"),
        ask("c", "CHARLIE: judge.", "r3"),
        ask("a", "DELTA: go on.", "r4"),
    );
    let machine =
        machine("(a :model sonnet :cwd one) (b :handle-ref pair) (c :handle-ref pair)", &states);
    fs::create_dir(machine.path("work/one")).expect("made");
    let command = json!({"command": "basename \"$PWD\" > where", "description": "measure"});
    machine.api.script([
        on("ALPHA").reply("Begun."),
        on("BRAVO").reply("Written."),
        on("CHARLIE").reply("Judged."),
        on("DELTA").tool("Bash", command),
        on("").reply("Done."),
    ]);
    machine.start_at("p.lisp", &["--dangerously-skip-permissions"]).wait().exits(0);
    let [alpha, bravo, charlie, delta] =
        ["ALPHA", "BRAVO", "CHARLIE", "DELTA"].map(|name| machine.api.request(name));
    assert_eq!(alpha.session, delta.session);
    assert!(
        delta.sees("ALPHA: begin.") && delta.sees("Begun.") && !delta.sees("BRAVO"),
        "{delta:#?}"
    );
    assert_eq!(bravo.session, charlie.session);
    assert!(charlie.sees("Written.") && !charlie.sees("ALPHA"), "{charlie:#?}");
    assert!(delta.model.contains("sonnet") && charlie.model.contains("haiku"), "{}", delta.model);
    let place = fs::read_to_string(machine.path("work/one/where"));
    assert_eq!(place.expect("the command has run"), "one\n");
}

#[test]
fn role_artifact_contains_only_its_changes() {
    let states = format!(
        "(state s {} {})",
        ask("a", "ALPHA: write.", "r1"),
        "(action (send-prompt :agent b :template \"BRAVO: review\\n~a\" :args ((artifact a)) :request-id r2)
           (await (transcript-response :request-id r2)))",
    );
    let machine = machine("(a) (b)", &states);
    let work = machine.path("work");
    git(&work, &["init", "-q", "-b", "main"]);
    fs::write(work.join("old"), "tulips\n").expect("written");
    git(&work, &["add", "."]);
    git(&work, &["commit", "-q", "-m", "one"]);
    machine.api.script([
        on("ALPHA").tool("Write", json!({"file_path": work.join("poem"), "content": "roses\n"})),
        on("BRAVO").reply("Fine."),
        on("").reply("I have written it."),
    ]);
    machine.start_at("p.lisp", &[]).wait().exits(0);
    let asked = machine.api.request("BRAVO");
    assert!(asked.sees("+roses") && asked.sees("poem"), "{asked:#?}");
    assert!(!asked.sees("tulips") && !asked.sees("journal.jsonl"), "{asked:#?}");
}

#[test]
fn role_turn_is_adopted_or_retried_after_kill() {
    for claude_dies in [false, true] {
        let states =
            format!("(state s {} (terminal :result (response r)))", ask("a", "ALPHA: work.", "r"));
        let machine = machine("(a)", &states);
        machine.api.script([on("ALPHA").reply("POSITIVE").hold()]);
        let run = machine.start_at("p.lisp", &[]);
        machine.api.wait_for("ALPHA", 1);
        run.kill();
        if claude_dies {
            machine.kill_claude();
        }
        machine.api.release("ALPHA");
        let ended = machine.resume(&["--backoff", "1ms..5ms"]).wait().exits(0);
        assert!(ended.stdout.contains(super::POSITIVE), "{ended:?}");
        let times = if claude_dies { 2 } else { 1 };
        assert_eq!(machine.api.turns("ALPHA"), times, "no turn is paid for twice");
        assert_eq!(machine.records("role_requested").len(), 1);
        assert_eq!(machine.records("role_responded").len(), 1);
    }
}
