//! The options of a state with the real program: the API gets them, and nothing wider runs.

use std::fs;

use serde_json::json;

use crate::api::{on, otherwise};

use super::POSITIVE;
use super::machine::TestMachine;

/// Returns a machine with one state that has these keys, and an answer to it.
fn one(keys: &str) -> TestMachine {
    let machine = TestMachine::new();
    machine.prompt("START.md", &format!("---\n{keys}\n---\nALPHA: begin."));
    machine.api.script([otherwise().reply("<result>POSITIVE</result>")]);
    machine
}

#[test]
fn state_is_offered_only_its_listed_tools() {
    let machine = one("tools: [Read, Grep]");
    machine.run(&[]).exits(0).prints(POSITIVE);
    let tools = machine.api.request("ALPHA").tools;
    let expected = ["Grep", "Read"];
    let offered = |tool: &&String| expected.contains(&tool.as_str());
    assert_eq!(tools.iter().filter(offered).count(), 2, "{tools:?}");
    for tool in ["Bash", "Edit", "Write", "WebFetch", "Agent"] {
        assert!(!tools.iter().any(|known| known == tool), "{tools:?}");
    }
}

#[test]
fn state_with_empty_tool_list_is_offered_no_tools() {
    let machine = one("tools: []");
    machine.run(&[]).exits(0).prints(POSITIVE);
    assert!(machine.api.request("ALPHA").tools.is_empty());
}

#[test]
fn denied_tools_are_not_offered() {
    let machine = one("disallowed_tools: [WebFetch, Bash]");
    machine.run(&[]).exits(0).prints(POSITIVE);
    let tools = machine.api.request("ALPHA").tools;
    for tool in ["WebFetch", "Bash", "AskUserQuestion", "ScheduleWakeup", "CronCreate"] {
        assert!(!tools.iter().any(|known| known == tool), "{tool} of {tools:?}");
    }
    assert!(tools.iter().any(|known| known == "Read"), "{tools:?}");
}

#[test]
fn system_prompt_and_appended_text_reach_api() {
    let machine = one("system_prompt_file: prompts/system.md\nappend_system_prompt: YANKEE too");
    fs::create_dir(machine.path("flow/prompts")).expect("made");
    machine.prompt("prompts/system.md", "ZULU: you are a stone.");
    machine.run(&[]).exits(0).prints(POSITIVE);
    let system = machine.api.request("ALPHA").system;
    assert!(system.contains("ZULU: you are a stone.") && system.contains("YANKEE too"), "{system}");
}

#[test]
fn model_and_effort_of_state_reach_api() {
    let machine = one("model: opus\neffort: low");
    machine.run(&[]).exits(0).prints(POSITIVE);
    let request = machine.api.request("ALPHA");
    assert!(request.model.contains("opus"), "{}", request.model);
    assert_eq!(request.effort.as_deref(), Some("low"));
}

#[test]
fn max_thinking_tokens_sets_thinking_budget() {
    let machine = one("model: claude-haiku-4-5\nmax_thinking_tokens: 2048");
    machine.run(&[]).exits(0).prints(POSITIVE);
    assert_eq!(machine.api.request("ALPHA").thinking_budget, Some(2048));
}

#[test]
fn manifest_options_apply_unless_state_overrides_them() {
    let machine = TestMachine::new();
    machine.prompt("raymond.yaml", "append_system_prompt: ZULU\ntools: [Read]\n");
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "---\ntools: [Grep]\n---\nBRAVO: go on.");
    machine.api.script([
        on("ALPHA").reply("<goto>NEXT.md</goto>"),
        on("BRAVO").reply("<result>POSITIVE</result>"),
    ]);
    machine.run(&[]).exits(0).prints(POSITIVE);
    let [first, second] = ["ALPHA", "BRAVO"].map(|marker| machine.api.request(marker));
    assert!(first.system.contains("ZULU") && second.system.contains("ZULU"));
    assert!(first.tools.iter().any(|tool| tool == "Read"), "{:?}", first.tools);
    assert!(second.tools.iter().any(|tool| tool == "Grep"), "{:?}", second.tools);
    assert!(!second.tools.iter().any(|tool| tool == "Edit"), "{:?}", second.tools);
    assert_eq!(first.session, second.session, "another process resumes the session");
    assert!(second.sees("ALPHA"), "{second:#?}");
    assert_eq!(machine.streams(), ["main-1-0.jsonl", "main-2-0.jsonl"]);
}

#[test]
fn allowed_tool_rule_permits_command_with_state_environment() {
    let machine = TestMachine::new();
    machine.prompt(
        "START.md",
        "---\nallowed_tools: [\"Bash(printenv:*)\"]\nenv: { COLOUR: mauve }\n---\nALPHA: begin.",
    );
    let command = json!({ "command": "printenv COLOUR", "description": "look" });
    machine.api.script([
        on("ALPHA").reply("I look.").tool("Bash", command),
        on("mauve").reply("<result>POSITIVE</result>"),
        otherwise().reply("<result>NEGATIVE</result>"),
    ]);
    machine.run(&["--allow-tool", "Bash(printenv:*)"]).exits(0).prints(POSITIVE);
}

#[test]
fn tool_rule_without_permission_is_refused_before_start() {
    let machine = one("allowed_tools: [\"Bash(printenv:*)\"]");
    machine.run(&[]).exits(77);
    assert_eq!(machine.api.turns("ALPHA"), 0);
}

#[test]
fn widening_later_state_is_refused_before_start() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "---\nenv: { PATH: /evil }\n---\nBRAVO: go on.");
    machine.api.script([
        on("ALPHA").reply("<goto>NEXT.md</goto>"),
        otherwise().reply("<result>NEGATIVE</result>"),
    ]);
    machine.run(&[]).exits(77);
    assert_eq!((machine.api.turns("ALPHA"), machine.api.turns("BRAVO")), (0, 0));
}

#[test]
fn model_mode_and_effort_switch_within_one_process() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "---\nmodel: opus\neffort: low\n---\nALPHA: begin.");
    machine.prompt(
        "NEXT.md",
        "---\nmodel: sonnet\neffort: high\npermission_mode: plan\n---\nBRAVO: go on.",
    );
    machine.prompt("LAST.md", "---\nmodel: opus\neffort: max\n---\nCHARLIE: end.");
    machine.api.script([
        on("ALPHA").reply("<goto>NEXT.md</goto>"),
        on("BRAVO").reply("<goto>LAST.md</goto>"),
        on("CHARLIE").reply("<result>POSITIVE</result>"),
    ]);
    machine.run(&[]).exits(0).prints(POSITIVE);
    let asked = ["ALPHA", "BRAVO", "CHARLIE"].map(|marker| machine.api.request(marker));
    let efforts = asked.each_ref().map(|request| request.effort.as_deref());
    assert_eq!(efforts, [Some("low"), Some("high"), Some("max")]);
    assert!(asked[0].model.contains("opus") && asked[2].model.contains("opus"));
    assert!(asked[1].model.contains("sonnet"), "{}", asked[1].model);
    assert_eq!(machine.streams(), ["main-1-0.jsonl"], "one process");
    let modes = machine.modes();
    assert_eq!(modes, ["acceptEdits", "plan", "acceptEdits"]);
}

#[test]
fn all_configuration_keys_are_accepted() {
    let keys = "settings: config/settings.json
agents: { digger: { description: digs, prompt: Dig. } }
mcp_config: { mcpServers: {} }
strict_mcp: true
setting_sources: [user]
add_dirs: [docs]
max_turns: 5
fallback_model: [sonnet]
model: opus";
    let machine = TestMachine::new();
    machine.prompt("START.md", &format!("---\n{keys}\n---\nALPHA: read."));
    for folder in ["flow/config", "flow/docs"] {
        fs::create_dir(machine.path(folder)).expect("made");
    }
    machine.prompt("config/settings.json", "{\"outputStyle\": \"default\"}");
    machine.prompt("docs/page", "the page says xylophone");
    let page = json!({ "file_path": machine.path("flow/docs/page") });
    machine.api.script([
        on("ALPHA").reply("I read.").tool("Read", page),
        on("xylophone").reply("<result>POSITIVE</result>"),
        otherwise().reply("<result>NEGATIVE</result>"),
    ]);
    machine.run(&["--trust-workflow"]).exits(0).prints(POSITIVE);
    let request = machine.api.request("ALPHA");
    assert!(request.model.contains("opus"), "{}", request.model);
}

#[test]
fn turn_exceeding_max_turns_fails() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "---\nmax_turns: 1\n---\nALPHA: read.");
    machine.api.script([on("ALPHA").reply("I read.").tool("Glob", json!({ "pattern": "*" }))]);
    machine.run(&["--max-restarts", "0"]).exits(1);
    assert_eq!(machine.api.turns("ALPHA"), 1);
}

#[test]
fn workflow_plugin_skills_are_offered() {
    let machine = one("plugin_dirs: [helpers]");
    let folder = machine.path("flow/helpers");
    fs::create_dir_all(folder.join(".claude-plugin")).expect("made");
    fs::create_dir_all(folder.join("skills/mauve-things")).expect("made");
    let about = json!({ "name": "helpers", "version": "1.0.0", "description": "helps" });
    fs::write(folder.join(".claude-plugin/plugin.json"), about.to_string()).expect("written");
    let skill =
        "---\nname: mauve-things\ndescription: Paints things YANKEE mauve.\n---\nPaint it.\n";
    fs::write(folder.join("skills/mauve-things/SKILL.md"), skill).expect("written");
    machine.run(&["--trust-workflow"]).exits(0).prints(POSITIVE);
    let request = machine.api.request("ALPHA");
    assert!(request.has_text("mauve-things"), "{request:#?}");
}

#[test]
fn fallback_model_is_used_when_model_is_overloaded() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "---\nmodel: opus\nfallback_model: sonnet\n---\nALPHA: begin.");
    machine.api.script([
        on("ALPHA").times(3).error(529, "overloaded"),
        otherwise().reply("<result>POSITIVE</result>"),
    ]);
    machine.run(&[]).exits(0).prints(POSITIVE);
    let models: Vec<String> = machine.api.requests().into_iter().map(|one| one.model).collect();
    assert!(models.first().is_some_and(|model| model.contains("opus")), "{models:?}");
    assert!(models.last().is_some_and(|model| model.contains("sonnet")), "{models:?}");
}

#[test]
fn appended_system_prompt_does_not_leak_to_other_states() {
    let machine = TestMachine::new();
    let state = |keys: &str, marker: &str| format!("---\n{keys}\n---\n{marker}: go on.");
    machine.prompt("START.md", &state("tools: [Read, Grep]", "ALPHA"));
    machine.prompt("NEXT.md", &state("append_system_prompt: ZULU", "BRAVO"));
    machine.prompt("OTHER.md", &state("append_system_prompt: YANKEE", "CHARLIE"));
    machine.prompt("LAST.md", &state("tools: [Read]", "DELTA"));
    machine.api.script([
        on("ALPHA").reply("<goto>NEXT.md</goto>"),
        on("BRAVO").reply("<goto>OTHER.md</goto>"),
        on("CHARLIE").reply("<goto>LAST.md</goto>"),
        on("DELTA").reply("<result>POSITIVE</result>"),
    ]);
    machine.run(&[]).exits(0).prints(POSITIVE);
    let table = [("ALPHA", ""), ("BRAVO", "ZULU"), ("CHARLIE", "YANKEE"), ("DELTA", "")];
    for (marker, own) in table {
        let request = machine.api.request(marker);
        for text in ["ZULU", "YANKEE"] {
            assert_eq!(request.system.contains(text), text == own, "{text} in {marker}");
        }
        assert!(request.sees("ALPHA"), "one session: {request:#?}");
    }
}
