//! Plug-ins that are programs: the messages they get, the effect of their answers, and a run with plug-ins
//! that misbehave.

mod asked;
mod examples;
mod forks;
mod harmless;
mod life;
mod manifest;
mod schema;

use serde_json::Value;

use crate::support::{Test, always, when};

/// The first part of the plug-ins in these tests. It keeps each line that they read or write in a file.
const PRELUDE: &str = r#"
import json, os, signal, sys, time

def keep(name, line):
    with open(name, "a") as file:
        file.write(line + "\n")

def say(**message):
    line = json.dumps(message)
    keep("said.jsonl", line)
    print(line, flush=True)

def hello(*consult):
    say(type="hello", version=2, consult=list(consult))

def answer(message, **verdict):
    say(type="verdict", id=message["id"], **verdict)

def told():
    for line in sys.stdin:
        keep("told.jsonl", line.rstrip("\n"))
        yield json.loads(line)
"#;

/// Returns a plug-in that gives the same verdict, in Python, to each consultation.
fn says(occasion: &str, verdict: &str) -> String {
    format!(
        "hello({occasion:?})\nfor message in told():\n    if message['type'] == 'consult':\n        answer(message, {verdict})\n"
    )
}

/// A plug-in that only observes.
const LOOKS_ON: &str = "hello()\nfor message in told(): pass\n";

/// Returns a workflow of two steps with a plug-in `p`, which is this script, with these options.
fn with(script: &str, options: &str) -> Test {
    let manifest = format!(
        "plugins:\n  - {{ command: python3 ./p.py, deadline: 1m, backoff: {{ min: 1ms, max: 1ms }}, {options} }}\n"
    );
    Test::new()
        .file("p.py", format!("{PRELUDE}{script}").as_bytes())
        .file("raymond.yaml", manifest.as_bytes())
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply("<goto>NEXT.md</goto>").cost(0.02))
        .rule(always().reply("<result>well</result>").cost(0.01))
}

/// Returns the workflow with its first turn held at `go`.
fn held(script: &str, options: &str) -> Test {
    let test = with(script, options);
    test.script(&[
        when("start").hold_before("go").reply("<goto>NEXT.md</goto>"),
        always().reply("<result>well</result>"),
    ]);
    test
}

/// Returns the lines of a file that a plug-in wrote.
fn lines(test: &Test, name: &str) -> Vec<Value> {
    let written = std::fs::read_to_string(test.flow().join(name)).unwrap_or_default();
    written.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Returns the messages of one type that plug-ins were sent.
fn told(test: &Test, kind: &str) -> Vec<Value> {
    let mut lines = lines(test, "told.jsonl");
    lines.retain(|line| line["type"] == kind);
    lines
}

/// Returns how often a text contains another.
fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}
