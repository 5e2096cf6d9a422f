//! Turns that are no answers, as the real program ends them: hooks, commands, refused switches.

use std::fs;

use serde_json::{Value, json};

use crate::api::{on, otherwise};

use super::POSITIVE;
use super::machine::TestMachine;

/// Writes a file into the directory that agents work in.
fn work_file(machine: &TestMachine, name: &str, text: &str) {
    let path = machine.path("work").join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("written");
}

/// Sets a hook for the working directory.
fn hook(machine: &TestMachine, event: &str, command: &str) {
    let hooks: Value = json!([{ "hooks": [{ "type": "command", "command": command }] }]);
    let settings = json!({ "hooks": { (event): hooks } });
    work_file(machine, ".claude/settings.json", &settings.to_string());
}

fn says(json: &str) -> String {
    format!("echo '{json}'")
}

const ONLY_NEXT: &str = "---\nallowed_transitions: [{ tag: goto, target: NEXT.md }]\n---\n";

#[test]
fn prompt_that_a_hook_blocks_or_stops_fails_the_agent_and_names_the_hook() {
    for (command, words) in [
        ("echo NOT-TODAY >&2; exit 2".to_owned(), "NOT-TODAY"),
        (says(r#"{"decision":"block","reason":"NOT-TODAY"}"#), "NOT-TODAY"),
        (says(r#"{"continue":false,"stopReason":"HALT"}"#), "HALT"),
        (says(r#"{"continue":false}"#), "a hook stopped the prompt"),
    ] {
        let machine = TestMachine::new();
        hook(&machine, "UserPromptSubmit", &command);
        machine.prompt("START.md", "ALPHA: work. End with <result>POSITIVE</result>");
        machine.api.script([otherwise().reply("<result>NEGATIVE</result>")]);

        let ended = machine.run(&[]).exits(1);

        assert!(ended.stdout.contains("hook") && ended.stdout.contains(words), "{ended:?}");
        assert_eq!(machine.api.turns("ALPHA"), 0);
        assert!(machine.transitions().is_empty());
        assert_eq!(machine.records("turn_failed").len(), 0, "it is not asked again");
    }
}

#[test]
fn hook_that_ends_a_turn_fails_the_agent() {
    for event in ["PreToolUse", "PostToolUse"] {
        let machine = TestMachine::new();
        hook(&machine, event, &says(r#"{"continue":false,"stopReason":"HALT"}"#));
        machine.prompt("START.md", &format!("{ONLY_NEXT}ALPHA: work."));
        machine.prompt("NEXT.md", "BRAVO: end.");
        let path = machine.path("work/x.txt");
        let write = json!({ "file_path": path, "content": "x" });
        machine.api.script([
            on("ALPHA").tool("Write", write),
            otherwise().reply("<result>NEGATIVE</result>"),
        ]);

        let ended = machine.run(&[]).exits(1);

        assert!(ended.stdout.contains("a hook ended the turn"), "{event}: {ended:?}");
        assert_eq!(machine.api.turns("BRAVO"), 0);
    }
}

#[test]
fn answer_counts_if_a_stop_hook_blocks_it_until_the_program_gives_up() {
    let machine = TestMachine::new();
    hook(&machine, "Stop", "echo x >> stops; echo NOT-GREEN >&2; exit 2");
    machine.prompt("START.md", &format!("{ONLY_NEXT}ALPHA: work."));
    machine.prompt("NEXT.md", "BRAVO: end.");
    machine.api.script([
        on("BRAVO").reply("<result>POSITIVE</result>"),
        on("ALPHA").reply("<goto>NEXT.md</goto>"),
        otherwise().times(8).reply("<goto>NEXT.md</goto>"),
        otherwise().reply("<result>POSITIVE</result>"),
    ]);
    machine.run(&[]).exits(0).prints(POSITIVE);

    let machine = TestMachine::new();
    hook(&machine, "Stop", "echo NOT-GREEN >&2; exit 2");
    machine.prompt("START.md", "ALPHA: work.");
    machine.api.script([otherwise().reply("I do not know the tags.")]);
    let ended = machine.run(&[]).exits(1);
    assert!(ended.stdout.contains("NOT-GREEN"), "the hook is named: {ended:?}");
}

#[test]
fn empty_answer_is_reminded() {
    let machine = TestMachine::new();
    machine.prompt("START.md", &format!("{ONLY_NEXT}ALPHA: work."));
    machine.prompt("NEXT.md", "BRAVO: end.");
    machine.api.script([
        on("the reply is empty").reply("done"),
        on("BRAVO").reply("<result>POSITIVE</result>"),
        otherwise().reply(""),
    ]);
    machine.run(&[]).exits(0).prints(POSITIVE);
    assert_eq!(machine.records("turn_rejected").len(), 1);
}

#[test]
fn prompt_that_begins_with_a_command_is_asked() {
    for command in
        ["/clear", "/compact now", "/model opus", "/cost", "/context", "/review", "/deploy"]
    {
        let machine = TestMachine::new();
        machine.prompt("START.md", "ALPHA: begin.");
        machine.prompt("NEXT.md", &format!("{command} {{{{input}}}}"));
        machine.prompt("LAST.md", "{{input}}");
        machine.api.script([
            on("ALPHA").reply(r#"<goto input="BRAVO">NEXT.md</goto>"#),
            on("BRAVO").reply(&format!(r#"<goto input="{command} CHARLIE">LAST.md</goto>"#)),
            on("CHARLIE").reply("<result>POSITIVE</result>"),
        ]);
        machine.run(&[]).exits(0).prints(POSITIVE);

        let [first, last] = ["ALPHA", "CHARLIE"].map(|marker| machine.api.request(marker));
        assert!(last.sees("ALPHA") && last.sees(command), "{command}: {last:#?}");
        assert_eq!(first.model, last.model, "{command}");
    }
}

#[test]
fn state_that_says_so_runs_a_command_of_the_user() {
    let machine = TestMachine::new();
    work_file(&machine, ".claude/commands/ship.md", "ALPHA: ship $ARGUMENTS.");
    machine.prompt("START.md", "---\nrun_command: true\n---\n\n/ship it");
    machine.api.script([
        on("ALPHA: ship it").reply("<result>POSITIVE</result>"),
        otherwise().reply("<result>NEGATIVE</result>"),
    ]);
    machine.run(&[]).exits(0).prints(POSITIVE);
}

#[test]
fn refused_change_of_the_model_never_leaves_the_turn_to_the_old_model() {
    for (status, message) in [(429, "slow down"), (529, "busy"), (500, "oops"), (403, "forbidden")]
    {
        let machine = TestMachine::new();
        machine.prompt("START.md", "ALPHA: begin.");
        machine.prompt("NEXT.md", "---\nmodel: claude-opus-4-5\n---\nBRAVO: go on.");
        machine.api.script([
            on("ALPHA").reply("<goto>NEXT.md</goto>"),
            on("BRAVO").reply("<result>POSITIVE</result>"),
        ]);
        machine.api.refuse_models(status, message);
        machine.run(&[]).exits(0).prints(POSITIVE);

        let asked = machine.api.request("BRAVO");
        assert_eq!((asked.model.as_str(), machine.api.turns("BRAVO")), ("claude-opus-4-5", 1));
        assert!(asked.sees("ALPHA"), "{status}: {asked:#?}");
    }
}

#[test]
fn unknown_model_of_a_later_state_fails_the_agent() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "---\nmodel: claude-nonsense-9\n---\nBRAVO: go on.");
    machine.api.script([
        on("ALPHA").reply("<goto>NEXT.md</goto>"),
        on("BRAVO").error(404, "model: claude-nonsense-9"),
    ]);
    machine.api.refuse_models(404, "model: claude-nonsense-9");
    let ended = machine.run(&[]).exits(1);
    assert!(ended.stdout.contains("name a model"), "{ended:?}");
}
