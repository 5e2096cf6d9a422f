//! A directory with runs of every kind and the files that they leave, for the tests of JSON and of files.

use serde_json::json;

use crate::graph::git;
use crate::support::{Test, always, when};

/// The fork of the run that waits for an answer: of three agents in worktrees one has ended, one has failed,
/// one asks, and their parent waits for them.
const FORK: &str = r#"<fork next="MERGE.md" each='["a","b","c"]'>WORK.md</fork>"#;

/// A prompt whose process has configurations.
const HELD: &str = "---
settings: { model: opus }
mcp_config: [{ mcpServers: { docs: { command: docs-server } } }]
---
held";

/// A program that asks a role, asserts a fact, and waits for another.
const PROGRAM: &str = r#"(workflow talk
  (metadata (label "A talk"))
  (roles (writer :agent-kind "claude-code"))
  (state draft
    (action
      (send-prompt :agent writer :template "write" :request-id first)
      (await (transcript-response :request-id first))
      (assert talk/begun :key @workflow-id))
    (wait (signal talk/released :key @workflow-id :consume true))
    (terminal)))"#;

/// Returns a graph that runs a command, appends to a file, and refers to a document.
fn graph() -> String {
    let graph = json!({
        "name": "graph", "version": "1.0.0", "description": "All kinds of operations.",
        "entry_preconditions": [], "initial_state": {}, "start_node": "work",
        "nodes": { "work": {
            "type": "action", "on_success": "done", "on_failure": "failed",
            "actions": [
                { "type": "bash_exec", "command": "echo hello" },
                { "type": "append_to_file", "path": "out/log.txt", "content": "a line\n" },
                { "type": "spawn_agent", "subagent_type": "general-purpose", "prompt": "spawned",
                  "store_as": "spawned" },
            ],
        } },
        "endings": {
            "done": { "type": "success", "message": "done" },
            "failed": { "type": "error", "message": "${computed.last_error}" },
        },
    });
    graph.to_string()
}

/// Returns a repository with a workflow of each language, and the replies to their prompts.
fn place() -> Test {
    let work = "---\nworktree: true\nsupervision: { max_restarts: 0 }\n---\nwork {{item}}";
    let merge = "---\njoin: all\ntimeout: 2h\non_timeout: keep\non_failure: keep\n---\nmerge {{results_file}}";
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("WORK.md", work)
        .prompt("MERGE.md", merge)
        .prompt("DONE.md", "heard {{answer}}")
        .prompt("HELD.md", HELD)
        .prompt("AGAIN.md", "again")
        .prompt("tested/START.md", "tested")
        .prompt(
            "tested/replies.yaml",
            "START.md: [{ match: tested, reply: <result>well</result> }]\n",
        )
        .prompt("tested/tests/main.yaml", "expect: { path: [START.md] }\n")
        .prompt("wrong/START.md", "---\nmodell: x\n---\nwrong")
        .file("graph/workflow.yaml", graph().as_bytes())
        .file("talk.lisp", PROGRAM.as_bytes())
        .rule(when("start").reply(FORK).cost(0.01))
        .rule(when("work").agent("main.1").reply("<result>one</result>").cost(0.01))
        .rule(when("work").agent("main.2").exit(3))
        .rule(when("work").reply("<ask next=\"DONE.md\">Which?</ask>"))
        .rule(when("held").hold_before("go").reply("<result>done</result>"))
        .rule(when("again").reply("<goto>DONE.md</goto>"))
        .rule(always().reply("<result>well</result>"));
    git(&test.flow(), &["init", "-q", "-b", "main"]);
    git(&test.flow(), &["add", "."]);
    git(&test.flow(), &["commit", "-q", "-m", "one"]);
    test
}

/// Runs the workflows: `t` waits for an answer, `p` for a fact, `g` and `b` have ended, `b` in the
/// background.
pub(super) fn start() -> Test {
    let test = place();
    test.run(&["START.md", "--debug", "--stagger", "0s", "--max-procs", "1"]).code(2);
    test.raymond(&["run", "graph", "--id", "g"]).ok();
    test.raymond(&["workflow", "define", "talk.lisp"]).ok();
    test.raymond(&["run", "talk.lisp", "--id", "p", "--on-wait", "exit"]).code(2);
    test.raymond(&["start", "DONE.md", "--id", "b"]).ok();
    test.raymond(&["log", "b", "--follow"]).ok();
    test.raymond(&["run", "tested", "--id", "s", "--agent", "scripted"]).ok();
    test.raymond(&["signal", "plan/ready", "--key", "k"]).ok();
    test
}
