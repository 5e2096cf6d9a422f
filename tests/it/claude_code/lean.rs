//! A lean start sends the model a smaller request, with a key and with a login.

use raymond::domain::turn_options::{StartupMode, TurnOptions};
use raymond::process::claude::startup::startup_flags;

use crate::api::{ApiRequest, on};

use super::POSITIVE;
use super::machine::TestMachine;

/// Returns the request of a process that starts in this mode, with an API key or an OAuth token.
fn asked(startup: StartupMode, has_key: bool) -> ApiRequest {
    let mut machine = TestMachine::new();
    std::fs::write(machine.path("work/CLAUDE.md"), "PROJECT RULES").expect("written");
    if !has_key {
        machine.unset("ANTHROPIC_API_KEY");
        machine.set("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-test");
    }
    machine.api.script([on("ALPHA").reply("fine")]);
    let options = TurnOptions { startup: Some(startup), ..TurnOptions::default() };
    let flags = startup_flags(&options, &[], |name| has_key && name == "ANTHROPIC_API_KEY");
    for (name, value) in &flags.variables {
        machine.set(name, value);
    }
    let arguments: Vec<&str> = flags.arguments.iter().map(String::as_str).collect();
    machine.claude(&[&["--model", "haiku"], &arguments[..]].concat(), "ALPHA: begin.").exits(0);
    machine.api.request("ALPHA")
}

#[test]
fn lean_startup_halves_request_size_with_key_or_login() {
    for has_key in [true, false] {
        let [full, lean] =
            [StartupMode::Normal, StartupMode::Lean].map(|mode| asked(mode, has_key));
        let tools = |tool| lean.tools.iter().any(|offered| offered == tool);
        assert!(["Bash", "Edit", "Read"].into_iter().all(tools), "{:?}", lean.tools);
        assert!(!tools("Agent") && full.tools.len() > lean.tools.len(), "{:?}", lean.tools);
        assert!(lean.bytes * 2 < full.bytes, "{} of {} bytes", lean.bytes, full.bytes);
        assert!(full.has_text("PROJECT RULES") && !lean.has_text("PROJECT RULES"));
    }
}

#[test]
fn lean_state_is_offered_three_tools_and_next_state_all() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "---\nstartup: lean\n---\nALPHA: begin.");
    machine.prompt("NEXT.md", "BRAVO: go on.");
    machine.api.script([
        on("ALPHA").reply("<reset>NEXT.md</reset>"),
        on("BRAVO").reply("<result>POSITIVE</result>"),
    ]);

    machine.run(&["--trust-workflow"]).exits(0).prints(POSITIVE);

    let [lean, normal] = ["ALPHA", "BRAVO"].map(|marker| machine.api.request(marker));
    assert_eq!(lean.tools, ["Bash", "Edit", "Read"]);
    assert!(normal.tools.len() > 3, "{:?}", normal.tools);
    assert!(lean.bytes * 5 < normal.bytes, "{} of {} bytes", lean.bytes, normal.bytes);
}
