//! The operations of graphs, once each, without Claude Code.

use serde_json::{Value, json};

use super::site::site;
use super::{git, graph, node, payload, remote, route, run, test, text, trace};
use crate::support::{alive, wait_until};

fn gate(validations: Value, next: &str) -> Value {
    json!({"type": "validation_gate", "validations": validations, "on_valid": next, "on_invalid": "failed"})
}

fn none_of(conditions: Value) -> Value {
    json!({"type": "none_of", "conditions": conditions})
}

/// Returns a graph that creates a corpus, adds and clones a source, and fetches pages. It has each type of
/// the seed that concerns the world.
fn corpus(url: &str, site: &str) -> Value {
    let found = json!([
        {"type": "config_exists"}, {"type": "index_exists"}, {"type": "index_is_placeholder"},
        {"type": "file_exists", "path": "data/index.md"},
        {"type": "directory_exists", "path": "data"},
        {"type": "tool_available", "tool": "git"},
        {"type": "python_module_available", "module": "json"},
        none_of(json!([
            {"type": "source_exists", "id": "react"}, {"type": "source_cloned", "id": "react"},
            {"type": "tool_available", "tool": "no-such-tool"},
            {"type": "python_module_available", "module": "no_such_module"},
        ])),
    ]);
    let clone = json!([
        {"type": "add_source", "spec": {"id": "react", "repo_url": url}},
        {"type": "clone_repo", "url": url, "dest": ".source/react", "branch": "main"},
        {"type": "get_sha", "repo_path": ".source/react", "store_as": "computed.sha"},
        {"type": "git_fetch", "repo_path": ".source/react"},
        {"type": "git_pull", "repo_path": ".source/react"},
        {"type": "update_source", "id": "react", "fields": {"sha": "${computed.sha}"}},
        {"type": "write_config_entry", "path": "schema.version", "value": 2},
        {"type": "read_config", "store_as": "config"},
        {"type": "read_file", "path": ".source/react/README.md", "store_as": "readme"},
        {"type": "compute_hash", "from": "computed.readme", "store_as": "computed.hash"},
        {"type": "glob_files", "pattern": "data/*", "store_as": "files"},
        {"type": "glob_count", "pattern": "**/*.md", "store_as": "count"},
        {"type": "bash_exec", "command": "printf %s \"$((6 * 7))\"", "store_as": "shell"},
        {"type": "append_to_file", "path": "log/added.txt", "content": "${computed.config.sources[0].id}\n"},
        {"type": "set_timestamp", "store_as": "when"},
    ]);
    let fetch = json!([
        {"type": "web_fetch", "url": format!("{site}/page"), "store_as": "page"},
        {"type": "cache_web_content", "from": "computed.page", "dest": "cache/page.html", "store_path_as": "computed.cached"},
        {"type": "web_fetch", "url": format!("{site}/gone"), "store_as": "gone", "allow_failure": true},
        {"type": "web_fetch", "url": "http://127.0.0.1:1/", "store_as": "nobody", "allow_failure": true},
        {"type": "delete_file", "path": "data/index.md"},
        {"type": "display_message", "message": "Fetched ${computed.page.url}"},
        {"type": "display_table", "title": "Sources", "headers": ["id", "sha"], "rows": "${computed.config.sources}"},
    ]);
    let after = json!([
        {"type": "source_exists", "id": "react"}, {"type": "source_cloned", "id": "react"},
        {"type": "fetch_succeeded", "from": "computed.page"},
        {"type": "fetch_returned_content", "from": "computed.page"},
        {"type": "count_equals", "field": "computed.files", "count": 2},
        {"type": "state_equals", "field": "computed.nobody.status", "value": 0},
        none_of(json!([
            {"type": "source_has_updates", "id": "react"}, {"type": "index_exists"},
            {"type": "fetch_succeeded", "from": "computed.gone"},
        ])),
    ]);
    let mut corpus = graph(json!({
        "start": node(json!([
            {"type": "create_directory", "path": "data"},
            {"type": "write_file", "path": "data/config.yaml", "content": "# mine\nsources: []\n"},
            {"type": "write_file", "path": "data/index.md", "content": "Run hiivmind-corpus-build to begin\n"},
        ]), "found"),
        "found": gate(found, "clone"),
        "clone": node(clone, "fetch"),
        "fetch": node(fetch, "after"),
        "after": gate(after, "done"),
    }));
    corpus["endings"]["done"]["summary"] = json!({
        "sha": "${computed.sha}", "shell": "${computed.shell.stdout}", "hash": "${computed.hash}",
        "files": "${computed.files}", "count": "${computed.count}", "cached": "${computed.cached}",
        "gone": "${computed.gone.status}", "version": "${computed.config.schema.version}",
    });
    corpus
}

#[test]
fn all_workspace_actions_work_without_starting_claude_code() {
    let place = test(&json!({}));
    let url = remote(&place);
    let place = place.file("workflow.yaml", corpus(&url, &site()).to_string().as_bytes());
    let outcome = run(&place, &[]);
    outcome.ok();
    let expected =
        ["start success", "found valid", "clone success", "fetch success", "after valid"];
    assert_eq!(route(&place, "main"), expected);
    let summary = payload(&outcome, "main")["summary"].clone();
    let sha = git(&place.root().join("remote"), &["rev-parse", "HEAD"]);
    let hash = "sha256:b8c2322c9fb62341ee3069769f1e43c3272ec10c83d89a44529b519b97c9cae4";
    let expected = json!({
        "sha": sha, "shell": "42", "hash": hash, "files": ["data/config.yaml", "data/index.md"],
        "count": 1, "cached": "cache/page.html", "gone": 404, "version": 2,
    });
    assert_eq!(summary, expected);
    let config = text(&place, "data/config.yaml");
    assert!(config.starts_with("# mine\n") && config.contains(&sha), "{config}");
    assert_eq!(text(&place, "cache/page.html"), "<h1>Docs</h1>");
    assert_eq!(text(&place, "log/added.txt"), "react\n");
    assert_eq!(text(&place, ".source/react/README.md"), "# Docs\n");
    assert!(!place.flow().join("data/index.md").exists());
    outcome.stderr_has("Fetched http://127.0.0.1:").stderr_has("react  ");
    assert!(!trace(&place).exists(), "Claude Code was started");
    assert_eq!(place.status()["total_cost_usd"], json!(0.0));
    place.assert_no_survivors();
}

#[test]
fn added_keys_have_the_order_of_the_graph_also_after_a_resume() {
    let option = json!({"id": "yes", "label": "Yes", "description": "Go on"});
    let spec = json!({"id": "b", "type": "git", "branch": "main", "at": {"z": 1, "a": 2}});
    let ask = json!({
        "type": "user_prompt",
        "prompt": {"question": "Go on?", "header": "Go on", "options": [option]},
        "on_response": {"yes": {"next_node": "add"}},
    });
    let mut flow = graph(json!({
        "start": node(json!([{"type": "set_state", "field": "computed.source", "value": spec}]), "ask"),
        "ask": ask,
        "add": node(json!([
            {"type": "add_source", "spec": "${computed.source}"},
            {"type": "update_source", "id": "b", "fields": {"url": "u", "depth": 1}},
            {"type": "write_file", "path": "source.json", "content": "${computed.source}"},
        ]), "done"),
    }));
    flow["endings"]["done"]["summary"] = json!({"z": 1, "source": "${computed.source}"});
    let place = test(&flow).file("data/config.yaml", b"name: x\nsources: []\n");
    run(&place, &[]).code(2);
    place.raymond(&["answer", "t", "ask=yes"]).ok();
    let outcome = place.resume(&[]);
    let source = r#"{"id":"b","type":"git","branch":"main","at":{"z":1,"a":2}}"#;
    outcome.ok().stdout_has(&format!(r#""summary":{{"z":1,"source":{source}}}"#));
    assert_eq!(text(&place, "source.json"), source);
    let config = text(&place, "data/config.yaml");
    let keys = config.lines().filter_map(|line| line.split_once(':'));
    let keys: Vec<&str> = keys.map(|(key, _)| key.trim_start_matches(['-', ' '])).collect();
    let expected = ["name", "sources", "id", "type", "branch", "at", "z", "a", "url", "depth"];
    assert_eq!(keys, expected, "{config}");
}

#[test]
fn graph_without_turns_runs_without_claude_code_installed() {
    let start = node(json!([{"type": "write_file", "path": "made", "content": "x"}]), "done");
    let place = test(&graph(json!({"start": start})));
    let place = place.env("RAYMOND_CLAUDE", "/nowhere/claude");
    run(&place, &[]).ok();
    assert_eq!(text(&place, "made"), "x");
}

#[test]
fn failed_action_takes_on_failure_branch_with_reason() {
    let table = [
        (json!({"type": "read_file", "path": "gone.md", "store_as": "x"}), "read_file: "),
        (json!({"type": "write_file", "path": "${'..'}/escaped", "content": "x"}), "write_file: "),
        (json!({"type": "read_config", "store_as": "x"}), "read_config: "),
        (json!({"type": "git_pull", "repo_path": "."}), "git_pull: "),
        (json!({"type": "clone_repo", "url": "file:///nowhere", "dest": "d"}), "clone_repo: "),
        (json!({"type": "update_source", "id": "x", "fields": {}}), "update_source: "),
        (
            json!({"type": "web_fetch", "url": "http://127.0.0.1:1/", "store_as": "x"}),
            "web_fetch: ",
        ),
        (json!({"type": "bash_exec", "command": "echo no >&2; exit 3"}), "bash_exec: "),
    ];
    for (action, why) in table {
        let place = test(&graph(json!({"start": node(json!([action]), "done")})));
        let outcome = run(&place, &[]);
        let message = outcome.code(1).failed("main");
        outcome.assert(message.contains(why), why);
        outcome.stdout_has("Try running: /flow-repair");
        assert_eq!(route(&place, "main"), ["start failure"]);
        assert!(
            !place.flow().join("../escaped").exists(),
            "nothing is written above the workspace"
        );
    }
}

#[test]
fn unmet_entry_precondition_fails_run() {
    let mut gated = graph(json!({"start": node(json!([]), "done")}));
    gated["entry_preconditions"] =
        json!([{"type": "config_exists", "error_message": "No corpus here"}]);
    let place = test(&gated);
    let outcome = run(&place, &[]);
    outcome.code(1).stdout_has("WF401 Entry gate failed: No corpus here");
    let place = place.file("data/config.yaml", b"sources: []\n");
    place.run(&["workflow.yaml", "--id", "u"]).ok();
}

#[test]
fn command_in_own_session_is_killed_when_run_ends() {
    let hide = "setsid sh -c 'echo $$ > pid; exec env -i sleep 600' > /dev/null 2>&1 < /dev/null & until [ -s pid ]; do :; done";
    let hiding = graph(json!({
        "start": node(json!([{"type": "bash_exec", "command": hide}]), "done"),
    }));
    for options in [&["--agent", "scripted"][..], &[]] {
        let place =
            test(&hiding).file("replies.yaml", b"{}").env("RAYMOND_CLAUDE", "/nowhere/claude");
        run(&place, options).ok();
        let pid = text(&place, "pid").trim().parse().expect("a process id");
        wait_until("the command is gone", || !alive(pid));
    }
}
