//! Texts of models, files and programs cannot steer the terminal, hide, or look like other lines, in any
//! command.
//!
//! One text tries all of it, and stands wherever a run can have a text. Each command of the grammar is then
//! run on a terminal. A new command fails here until the test says how to run it.

use std::collections::BTreeSet;
use std::path::Path;

use clap::CommandFactory;
use raymond::cli::args::Cli;
use raymond::domain::tool_call::{is_unprintable, printable_json};
use regex::Regex;
use serde_json::{Value, json};

use crate::support::{Test, when};

const SIZE: (u16, u16) = (50, 200);

/// A text that copies to the clipboard, clears the screen, is coloured, reversed and hidden, and begins lines
/// of its own.
const EVIL: &str = "EVIL\u{1b}]52;c;RVZJTA==\u{7}\u{1b}[2;31;7mx\u{9d}0;t\u{9c}\u{9b}2J\u{202e}\u{2066}\u{200b}\u{7f}\u{2028}\
                    \u{feff}\u{85}\rFORGED\nFORGED line";

/// The arguments of a command, and the keys that are typed when a text is on the screen.
struct CommandInvocation {
    arguments: Vec<String>,
    keys: &'static [(&'static str, &'static str)],
    /// True if the evil text must be shown.
    has_text: bool,
}

impl CommandInvocation {
    fn with(&self, option: &str) -> Self {
        let arguments = [&self.arguments[..], &[option.to_owned()]].concat();
        Self { arguments, keys: self.keys, has_text: false }
    }
}

fn all(line: &str) -> CommandInvocation {
    let arguments = line.split(' ').map(|word| if word == "EVIL" { EVIL } else { word }.to_owned());
    CommandInvocation { arguments: arguments.collect(), keys: &[], has_text: true }
}

fn quiet(line: &str) -> CommandInvocation {
    CommandInvocation { has_text: false, ..all(line) }
}

fn typing(line: &str, keys: &'static [(&'static str, &'static str)]) -> CommandInvocation {
    CommandInvocation { keys, ..all(line) }
}

/// Returns the ways in which a command is run here.
fn invocations(command: &str) -> Vec<CommandInvocation> {
    match command {
        "run" => vec![
            typing("run START.md --id u --plugin sh\u{a0}noisy.sh", &[("leave it open", "\u{4}")]),
            typing("run START.md --id v --no-plugins --on-wait=exit", &[]),
            typing("run graph --id h", &[("leave it open", "\u{4}")]),
            all("run EVIL"),
            all("run t --EVIL"),
        ],
        "resume" => vec![all("resume t --on-wait=exit")],
        "retry" => vec![quiet("retry t --dry-run"), quiet("retry t --dry-run --state EVIL.md")],
        "branch" => vec![quiet("branch t --at 2 --id k --on-wait=exit"), all("branch t --at EVIL")],
        "rewind" => {
            vec![quiet("rewind t --to 2 --id l --on-wait=exit"), all("rewind t --to EVIL")]
        }
        "start" => vec![quiet("start START.md --id s")],
        "answer" => {
            vec![all("answer t"), all("answer g"), all("answer t EVIL=x"), all("answer g ask=EVIL")]
        }
        "rules" => vec![quiet("rules t")],
        "signal" => vec![all("signal label --key EVIL --value EVIL")],
        "facts" => vec![all("facts"), quiet("facts --run p")],
        "status" => vec![all("status t"), all("status g"), all("status p")],
        "list" => vec![all("list")],
        "pending" => vec![all("pending")],
        "log" => vec![all("log t"), all("log g"), all("log p"), all("log t --agent main.1")],
        "tree" => vec![all("tree t --all"), all("tree g")],
        "show" => {
            vec![
                all("show t main"),
                all("show t main.1"),
                all("show t main.2"),
                quiet("show t main.3"),
            ]
        }
        "costs" => vec![quiet("costs t"), quiet("costs p")],
        "diff" => vec![
            all("diff t g"),
            all("diff t p"),
            all("diff g p"),
            quiet("diff t t"),
            all("diff t EVIL"),
        ],
        "record" => vec![quiet("record t -o recorded --force"), all("record EVIL -o recorded")],
        "top" => vec![
            typing("top t", &[("main.2", "\r"), ("last messages", "q"), ("what it does", "q")]),
            typing("top g", &[("main", "q")]),
        ],
        // Its output is an address; `tests/it/in_browser` looks at its texts.
        "serve" => vec![all("serve --listen EVIL")],
        "worktrees" => vec![quiet("worktrees t")],
        "stop" => vec![quiet("stop t"), all("stop t --agent main.EVIL")],
        "tell" => vec![quiet("tell t main EVIL"), all("tell t EVIL x")],
        "hold" => vec![quiet("hold t main.1"), all("hold t EVIL")],
        "release" => vec![quiet("release t main.1"), all("release t EVIL")],
        "edit" => vec![all("edit t EVIL"), quiet("edit t main")],
        "attach" => vec![all("attach t EVIL"), quiet("attach t main")],
        "clean" => vec![quiet("clean t --dry-run")],
        // They need an engine, which has tests of its own.
        "worker" => vec![all("worker --engine EVIL"), all("worker --host EVIL")],
        "hosts" => vec![all("hosts --engine EVIL")],
        "hosts drain" => vec![all("hosts drain EVIL"), all("hosts drain a --engine EVIL")],
        "hosts lost" => vec![all("hosts lost EVIL"), all("hosts lost a --engine EVIL")],
        "hosts remove" => vec![all("hosts remove EVIL"), all("hosts remove a --engine EVIL")],
        "trust" => vec![all("trust EVIL"), quiet("trust --list")],
        "recover" => vec![all("recover")],
        "check" => vec![all("check broken"), all("check broken/p.lisp"), all("check EVIL")],
        "test" => vec![all("test EVIL"), all("test tested")],
        "new" => vec![quiet("new sample"), all("new other --from EVIL")],
        "import" => vec![all("import EVIL"), quiet("import START.md")],
        "graph" => vec![
            all("graph drawn.lisp"),
            all("graph drawn.lisp --format dot"),
            quiet("graph graph"),
            all("graph EVIL"),
        ],
        "workflow define" => vec![quiet("workflow define p.lisp"), all("workflow define EVIL")],
        "workflow start" => vec![all("workflow start EVIL")],
        "workflow watch" => vec![all("workflow watch p")],
        "workflow list" => vec![quiet("workflow list")],
        "schema" => vec![quiet("schema")],
        "completions" => vec![quiet("completions bash")],
        "man" => vec![quiet("man pages")],
        other => panic!("`raymond {other}` is new: say here how it is run on a terminal"),
    }
}

/// Returns the commands of the grammar that do something themselves, subcommands with both names, and whether they can
/// print JSON.
fn commands(of: &clap::Command, before: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for command in of.get_subcommands().filter(|command| command.get_name() != "help") {
        let name = format!("{before}{}", command.get_name());
        if command.has_subcommands() {
            found.extend(commands(command, &format!("{name} ")));
        }
        if !command.is_subcommand_required_set() {
            let has_json = command.get_arguments().any(|one| one.get_long() == Some("json"));
            found.push((name, has_json));
        }
    }
    found
}

/// Returns a graph that has the text wherever it can, and asks at the end.
fn graph() -> Value {
    json!({
        "name": "flow", "version": "1.0.0", "description": EVIL, "start_node": "start",
        "initial_state": { "computed": { "evil": EVIL } },
        "nodes": {
            "start": {
                "type": "action",
                "actions": [
                    { "type": "display_message", "message": "${computed.evil}" },
                    { "type": "bash_exec", "command": "printf '%s' \"$EVIL\" >&2; exit 3" },
                ],
                "on_success": "choose", "on_failure": "choose", "description": EVIL,
            },
            "choose": {
                "type": "conditional", "condition": { "type": "file_exists", "path": EVIL },
                "branches": { "true": "ask", "false": "ask" },
            },
            "ask": {
                "type": "user_prompt",
                "prompt": {
                    "question": EVIL, "header": EVIL,
                    "options": [
                        { "id": "a", "label": EVIL, "description": EVIL },
                        { "id": "b", "label": "b", "description": "b" },
                    ],
                },
                "on_response": { "a": { "next_node": "done" }, "b": { "next_node": "done" } },
            },
        },
        "endings": { "done": { "type": "success", "message": EVIL } },
    })
}

fn evil() -> Test {
    let failing = "---\nsupervision: { max_restarts: 0 }\n---\n";
    let noisy = format!(
        "cat >&2 <<'END'\n{EVIL}\nEND\n\
         echo '{{\"type\":\"hello\",\"version\":2,\"consult\":[]}}'\ncat >/dev/null\n"
    );
    let fork = |to: &str, next: &str| format!("<fork next=\"{next}\" item=\"{EVIL}\">{to}</fork>");
    let broken = json!({ "name": EVIL, EVIL: 1, "nodes": { EVIL: { "type": EVIL } } });
    let tested = json!({ "name": EVIL, "input": EVIL, "expect": { "result": EVIL } });
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("TWO.md", "two")
        .prompt("THREE.md", "three")
        .prompt("LAST.md", "last")
        .prompt("END.md", "heard {{answer}}")
        .prompt("WORK.md", &format!("work {EVIL} {{{{item}}}}"))
        .prompt("CRASH.md", &format!("{failing}crash"))
        .prompt("BREAK.md", &format!("{failing}break"))
        .file("tested/START.md", b"start")
        .file("tested/replies.yaml", printable_json(&json!({ "START.md": [EVIL] }).to_string()).as_bytes())
        .file("tested/tests/evil.yaml", printable_json(&tested.to_string()).as_bytes())
        .file("noisy.sh", noisy.as_bytes())
        .file("graph/workflow.yaml", printable_json(&graph().to_string()).as_bytes())
        .file("broken/workflow.yaml", printable_json(&broken.to_string()).as_bytes())
        .file("broken/p.lisp", format!("(workflow w (roles (a))\n (state {EVIL}").as_bytes())
        .file(
            "p.lisp",
            b"(workflow w (roles (a) (b)) (state s (action (assert said :key k :value \"x\")) \
              (wait (signal evil)) (terminal :result (signal evil))))",
        )
        .file(
            "drawn.lisp",
            format!(
                "(workflow w (roles (a) (b)) (state s (branch (on (signal x :equals \"{EVIL}\") (goto t)) \
                 (otherwise (goto t)))) (state t (terminal)))"
            )
            .as_bytes(),
        )
        .env("EVIL", EVIL);
    test.rule(
        when("start")
            .refused(&format!("Bash{EVIL}"), &json!({ "command": EVIL }), EVIL)
            .tool(&format!("Tool{EVIL}"))
            .reply(&fork("WORK.md", "TWO.md")),
    )
    .rule(when("two").reply(&fork("CRASH.md", "THREE.md")))
    .rule(when("three").reply(&fork("BREAK.md", "LAST.md")))
    .rule(when("last").reply(&format!("<ask next=\"END.md\">{EVIL}</ask>")))
    .rule(when("work").reply(&format!("<result>{EVIL}</result>")))
    .rule(when("crash").stderr(EVIL).exit(3))
    .rule(when("break").reply(EVIL))
}

/// Returns the effect of the text in the output of a command, apart from raymond's own control sequences.
fn harm(written: &str) -> Option<String> {
    let own = |c: char| matches!(c, '\n' | '\r' | '\t' | '\u{1b}');
    let raw: BTreeSet<char> = written.chars().filter(|&c| is_unprintable(c) && !own(c)).collect();
    if !raw.is_empty() {
        return Some(format!("wrote {raw:?}"));
    }
    let title = Regex::new("\u{1b}\\]2;raymond [^\u{1b}]*\u{1b}\\\\").expect("a pattern");
    let written = &*title.replace_all(written, "");
    if let Some(steers) = ["\u{1b}]", "\u{1b}[2;31;7m"].iter().find(|part| written.contains(**part))
    {
        return Some(format!("wrote {steers:?}"));
    }
    let forged = written.split(['\n', '\r']).any(|line| line.starts_with("FORGED"));
    forged.then(|| "has a line of the text's own".to_owned())
}

/// Runs a command on a terminal, and returns its fault.
fn fault(test: &Test, shown: &CommandInvocation) -> Option<String> {
    let words: Vec<String> =
        shown.arguments.iter().map(|word| word.replace("sh\u{a0}", "sh ")).collect();
    let mut screen = test.on_screen(&words.iter().map(String::as_str).collect::<Vec<_>>(), SIZE);
    for (text, keys) in shown.keys {
        screen.wait_for(&[text]).keys(keys);
    }
    screen.wait_for_exit();
    let written = screen.all_written();
    let unseen = shown.has_text && !written.contains("EVIL");
    let fault = harm(&written).or(unseen.then(|| "does not show it".to_owned()))?;
    Some(format!("{words:?} {fault}:\n  {written:?}"))
}

#[test]
fn every_command_escapes_control_characters() {
    let test = evil();
    test.run(&["START.md", "--plugin", "sh noisy.sh"]).code(2);
    test.raymond(&["run", "graph", "--id", "g", "--on-wait=exit"]).code(2);
    test.raymond(&["signal", "evil", "--value", EVIL]).ok();
    test.raymond(&["run", "p.lisp", "--id", "p"]).ok();
    let mut faults = Vec::new();
    for (command, has_json) in commands(&Cli::command(), "") {
        for shown in invocations(&command) {
            faults.extend(fault(&test, &shown));
            if has_json && shown.keys.is_empty() && command != "start" {
                faults.extend(fault(&test, &shown.with("--json")));
            }
        }
    }
    test.raymond(&["stop", "s", "--wait"]);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn json_and_piped_results_keep_unprintable_characters() {
    let test = evil();
    let outcome = test.run(&["START.md"]);
    outcome.code(2);
    assert!(outcome.stdout.contains(&format!("Agent main.1 terminated with result: {EVIL}\n")));
    let question = test.status()["questions"][0]["question"].clone();
    assert_eq!(question, EVIL, "the value is the same");
    let log = test.raymond(&["log", "t", "--json"]).ok().stdout.clone();
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let own = test.journal();
    assert_eq!(lines.len(), own.len());
    assert!(lines.iter().zip(&own).all(|(shown, kept)| shown["transition"] == kept["transition"]));
    let log = test.raymond(&["log", "t"]).ok().stdout.clone();
    let is_record = |line: &str| line.starts_with("20");
    assert!(log.lines().all(is_record), "a record is a line:\n{log}");
    assert!(Path::new(&test.journal_file()).exists());
}
