//! The environment of programs other than Claude Code: the variables they need, and those that the manifest
//! names.

use serde_json::json;

use crate::support::Test;

/// Returns a graph whose command, plug-in and hook each write their environment into a file.
fn keeping(manifest: &str) -> Test {
    let graph = json!({
        "name": "flow", "version": "1.0.0", "description": "a flow", "start_node": "start",
        "nodes": {
            "start": {
                "type": "action",
                "actions": [{ "type": "bash_exec", "command": "env > command.env" }],
                "on_success": "done", "on_failure": "done",
            },
        },
        "endings": { "done": { "type": "success", "message": "done" } },
    });
    let plugin = "env > plugin.env\necho '{\"type\":\"hello\",\"version\":2,\"consult\":[]}'\ncat >/dev/null\n";
    Test::new()
        .file("workflow.yaml", graph.to_string().as_bytes())
        .file("raymond.yaml", manifest.as_bytes())
        .file("plugin.sh", plugin.as_bytes())
        .env("GITHUB_TOKEN", "ghp-secret")
        .env("AWS_SECRET_ACCESS_KEY", "aws-secret")
        .env("ANTHROPIC_API_KEY", "sk-secret")
        .env("MINE", "own value")
        .env("LC_ALL", "C.UTF-8")
        .env("CARGO_HOME", "/nowhere/cargo")
}

/// Runs the graph, and returns the environments that were written.
fn environments(test: &Test) -> Vec<(&'static str, String)> {
    let hook = "sh -c 'env > hook.env'";
    test.run(&["workflow.yaml", "--plugin", "sh plugin.sh", "--on-event", hook]).ok();
    let kept = |name: &'static str| {
        let path = test.flow().join(name);
        (name, std::fs::read_to_string(path).expect("it was kept"))
    };
    ["command.env", "plugin.env", "hook.env"].map(kept).into()
}

#[test]
fn unnamed_secrets_are_not_passed_to_commands_plugins_or_hooks() {
    for (name, environment) in environments(&keeping("name: flow\n")) {
        let has = |line: &str| environment.lines().any(|one| one == line);
        assert!(has("LC_ALL=C.UTF-8") && has("CARGO_HOME=/nowhere/cargo"), "{name}: {environment}");
        assert!(has("RAYMOND_RUN=t") && environment.contains("PATH="), "{name}: {environment}");
        assert!(
            !environment.contains("secret") && !environment.contains("MINE"),
            "{name}: {environment}"
        );
    }
}

#[test]
fn variables_named_in_manifest_are_passed_on() {
    let manifest = "name: flow\nenv: { MODE: fast }\n";
    for (name, environment) in environments(&keeping(manifest)) {
        assert!(environment.lines().any(|line| line == "MODE=fast"), "{name}: {environment}");
    }
    for (name, environment) in environments(&keeping("name: flow\nenv: [MINE, GITHUB_TOKEN]\n")) {
        let has = |line: &str| environment.lines().any(|one| one == line);
        assert!(has("MINE=own value") && has("GITHUB_TOKEN=ghp-secret"), "{name}: {environment}");
        assert!(
            !environment.contains("aws-secret") && !environment.contains("sk-secret"),
            "{name}"
        );
    }
}
