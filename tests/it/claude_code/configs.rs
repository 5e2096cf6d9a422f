//! The configurations of a state with the real program: servers, sub-agents, settings.

use std::fs;

use serde_json::{Value, json};

use crate::api::{ApiRequest, otherwise};

use super::POSITIVE;
use super::machine::TestMachine;

/// An MCP server with one tool, `paint`.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    paint = {"name": "paint", "description": "Paints mauve.", "inputSchema": {"type": "object"}}
    results = {
        "initialize": {
            "protocolVersion": asked.get("params", {}).get("protocolVersion"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "server", "version": "1"},
        },
        "tools/list": {"tools": [paint]},
    }
    answer = {"jsonrpc": "2.0", "id": asked["id"], "result": results.get(asked["method"], {})}
    print(json.dumps(answer), flush=True)
    if asked["method"] == "tools/list":
        open(sys.argv[1], "w").close()
"#;

/// Returns the request of a state that has these keys.
fn asked(machine: &TestMachine, keys: &str) -> ApiRequest {
    machine.prompt("START.md", &format!("---\n{keys}\n---\nALPHA: begin."));
    machine.api.script([otherwise().reply("<result>POSITIVE</result>")]);
    machine.run(&["--trust-workflow"]).exits(0).prints(POSITIVE);
    machine.api.request("ALPHA")
}

/// Returns a server that makes a file of that name once it has listed its tools.
fn server(machine: &TestMachine, name: &str) -> Value {
    machine.prompt("server.py", SERVER);
    json!({ "command": "python3", "args": [machine.path("flow/server.py"), machine.path(name)] })
}

/// Returns the requests of a turn whose model goes on after these servers have listed their tools: Claude Code does not wait
/// for a slow one before its first request.
fn asked_with_servers(machine: &TestMachine, keys: &str, servers: &[&str]) -> Vec<ApiRequest> {
    let files = servers.iter().map(|name| format!("[ -e '{}' ]", machine.path(name).display()));
    let all = files.collect::<Vec<_>>().join(" && ");
    let wait =
        json!({ "command": format!("until {all}; do sleep 0.05; done"), "description": "wait" });
    machine.prompt("START.md", &format!("---\n{keys}\n---\nALPHA: begin."));
    machine.api.script([
        otherwise().tool("Bash", wait).times(3),
        otherwise().reply("<result>POSITIVE</result>"),
    ]);
    let run = machine.run(&["--trust-workflow", "--", "--allowedTools", "Bash"]);
    run.exits(0).prints(POSITIVE);
    machine.api.requests()
}

#[test]
fn state_mcp_server_is_started_and_strict_mcp_excludes_others() {
    for strict in [false, true] {
        let machine = TestMachine::new();
        let own = json!({ "mcpServers": { "helper": server(&machine, "helper") } });
        let of_user = json!({ "mcpServers": { "household": server(&machine, "household") } });
        fs::write(machine.path("home/.claude.json"), of_user.to_string()).expect("written");
        let keys = format!("mcp_config: {own}\nstrict_mcp: {strict}");
        let servers = if strict { &["helper"][..] } else { &["helper", "household"] };
        let requests = asked_with_servers(&machine, &keys, servers);
        assert_eq!(requests.len(), 4);
        let has = |tool: &str| requests.iter().any(|request| request.has_text(tool));
        let tools: Vec<_> = requests.iter().map(|request| &request.tools).collect();
        assert!(has("mcp__helper__paint"), "{tools:?}");
        assert_eq!(has("mcp__household__paint"), !strict, "{tools:?}");
        let steps = machine.path("work/.raymond/runs/tested/steps");
        let files = fs::read_dir(steps).expect("the run's files").flatten();
        let left = files.filter(|file| file.path().extension().is_some_and(|end| end == "json"));
        assert_eq!(left.count(), 0, "they are gone with their processes");
    }
}

#[test]
fn sub_agent_of_state_is_offered_to_model() {
    let agents = "agents: { digger: { description: Digs for YANKEE things., prompt: Dig. } }";
    let request = asked(&TestMachine::new(), agents);
    assert!(request.has_text("digger") && request.has_text("Digs for YANKEE things."));
}

#[test]
fn state_settings_apply_and_omitted_setting_sources_do_not() {
    let style = |style: &str| json!({ "outputStyle": style }).to_string();
    let machine = || {
        let machine = TestMachine::new();
        fs::create_dir(machine.path("work/.claude")).expect("made");
        let project = machine.path("work/.claude/settings.json");
        fs::write(project, style("Learning")).expect("written");
        machine
    };
    let own = format!("settings: {}", style("Explanatory"));
    for (keys, has, has_not) in [
        (own.as_str(), "Explanatory", "Output Style: Learning"),
        ("effort: low", "Learning", "Output Style: Explanatory"),
        ("setting_sources: [user]", "ALPHA", "Output Style: Learning"),
    ] {
        let request = asked(&machine(), keys);
        assert!(request.has_text(has) && !request.has_text(has_not), "{keys}");
    }
}
