//! `raymond run --dry-run`: what a start would do, without doing it.

use serde_json::{Value, json};

use crate::support::{Test, always};

fn row<'json>(printed: &'json Value, name: &str) -> &'json Value {
    let rows = printed["settings"].as_array().expect("settings");
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

/// Returns the files below the test's own directories of raymond.
fn traces(test: &Test) -> Vec<std::path::PathBuf> {
    let mut found = vec![test.dir(), test.root().join("home/.local")];
    found.retain(|path| path.exists());
    found
}

#[test]
fn dry_run_tells_prompt_settings_states_and_cost_and_leaves_nothing() {
    let test = Test::new()
        .prompt("START.md", "Write about {{input}}, then <goto>NEXT.md</goto>.")
        .prompt("NEXT.md", "---\nmodel: opus\n---\n<result>x</result>")
        .file("raymond.yaml", b"budget: 2\nsupervision: { timeout: 7m }\n")
        .rule(always().reply("<result>ok</result>"));
    let arguments = ["run", ".", "--dry-run", "--input", "the sea", "--model", "haiku"];
    test.raymond(&arguments)
        .ok()
        .stdout_has("START.md (prompt)")
        .stdout_has("Write about the sea, then")
        .stdout_has("none is needed")
        .stdout_has("at least $0.00")
        .stdout_has("cost extra");
    let printed = test.raymond(&[&arguments[..], &["--json"]].concat()).ok().json();
    assert_eq!(printed["first"], json!({ "state": "START.md", "kind": "prompt", "model": null }));
    assert_eq!(printed["prompt"]["text"], "Write about the sea, then <goto>NEXT.md</goto>.");
    assert_eq!(
        (&row(&printed, "model")["value"], &row(&printed, "model")["origin"]),
        (&json!("haiku"), &json!("--model"))
    );
    assert_eq!(row(&printed, "budget")["origin"], "raymond.yaml");
    assert_eq!(
        (&row(&printed, "timeout")["value"], &row(&printed, "timeout")["origin"]),
        (&json!("7m"), &json!("raymond.yaml"))
    );
    assert_eq!(row(&printed, "on_budget")["origin"], "default");
    assert_eq!(
        printed["states"][1],
        json!({ "state": "NEXT.md", "kind": "prompt", "model": "opus" })
    );
    assert!(printed["cost"]["at_least_usd"].as_f64().is_some_and(|cost| cost > 0.0), "{printed}");
    assert_eq!(printed["answerer"]["kind"], "claude");
    assert!(test.calls().is_empty(), "nothing was started");
    assert_eq!(traces(&test), Vec::<std::path::PathBuf>::new());
}

#[test]
fn dry_run_has_the_exit_codes_of_a_start_that_is_refused() {
    let test = Test::new()
        .prompt("START.md", "---\nallowed_tools: [\"Bash(make:*)\"]\n---\n<result>x</result>")
        .prompt("WRONG.md", "---\nmodle: x\n---\nx")
        .env("RAYMOND_TRUST", "false");
    test.raymond(&["run", "START.md", "--dry-run"])
        .code(77)
        .stdout_has("it is needed, and not given")
        .stdout_has("Bash(make:*)")
        .stderr_has("raymond trust");
    test.raymond(&["run", "START.md", "--dry-run", "--trust"])
        .ok()
        .stdout_has("it is needed, and given");
    test.raymond(&["run", "START.md", "--dry-run"]).code(77);
    test.raymond(&["run", "START.md", "--dry-run", "--trust", "--claude", "/nowhere"])
        .code(69)
        .stdout_has("Claude Code, not found: /nowhere")
        .stderr_has("Claude Code was not found");
    test.raymond(&["run", "WRONG.md", "--dry-run"]).code(65).stderr_has("unknown key `modle`");
    test.raymond(&["run", "START.md", "--dry-run", "--agent", "scripted"])
        .code(65)
        .stderr_has("--agent scripted needs this file");
    test.raymond(&["run", "START.md", "--dry-run", "--agent", "replay:none"]).code(65);
    test.raymond(&["run", "NONE.md", "--dry-run"]).code(64);
    test.raymond(&["run", "START.md", "--dry-run", "--trust", "--dir", "START.md"])
        .code(74)
        .stderr_has("choose another directory");
    assert_eq!(traces(&test), Vec::<std::path::PathBuf>::new());
}

#[test]
fn dry_run_is_for_workflows_and_knows_what_it_cannot_know() {
    let test = Test::new()
        .prompt("START.md", "<result>x</result>")
        .file("talk.lisp", b"(workflow talk (state work (terminal :result \"ok\")))")
        .file("replies.yaml", b"START.md: ['<result>x</result>']\n");
    let model = test.raymond(&["run", "START.md", "--dry-run", "--model", "some-model"]);
    model.ok().stdout_has("the price of some-model is not in the table");
    test.raymond(&["run", "START.md", "--dry-run", "--agent", "scripted"])
        .ok()
        .stdout_has("the script replies.yaml")
        .stdout_has("nothing: no model is called");
    test.raymond(&["start", "talk.lisp", "--dry-run"]).ok().stdout_has("it asks nothing by itself");
    test.run(&["START.md", "--agent", "scripted"]).ok();
    test.raymond(&["run", "START.md", "--dry-run", "--agent", "scripted", "--id", "t"])
        .code(64)
        .stderr_has("a run t already exists");
    test.raymond(&["run", "t", "--dry-run"])
        .code(64)
        .stderr_has("t is a run; `raymond status t` shows it");
}
