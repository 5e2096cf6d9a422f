//! Tools that the real program refuses: reported as it happens, kept in the record, and allowed by the rule
//! that raymond advises.

use serde_json::{Value, json};

use crate::api::on;

use super::POSITIVE;
use super::machine::TestMachine;

/// A command that only the widest permission mode runs unasked, and that touches only 127.0.0.1.
const CURL: &str = "curl -s http://127.0.0.1:1/x";

fn bash(command: &str) -> Value {
    json!({ "command": command, "description": "try it" })
}

/// Returns a machine with an agent that tries a tool and then ends, whatever the result is.
fn trying(tool: &str, input: Value) -> TestMachine {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: try it.");
    machine.api.script([
        on("ALPHA").tool(tool, input).times(1),
        on("").reply("<result>POSITIVE</result>"),
    ]);
    machine
}

/// Returns the only refused call of the only step.
fn refused(machine: &TestMachine) -> Value {
    let steps = machine.records("step_finished");
    let calls = steps[0]["refused_tools"]["calls"].as_array().cloned().unwrap_or_default();
    assert_eq!(calls.len(), 1, "{steps:?}");
    calls[0].clone()
}

/// Returns the arguments that the last line advises.
fn advised(stderr: &str) -> Vec<String> {
    let (_, advice) = stderr.rsplit_once("allow it with: ").expect("an advice");
    let line = advice.lines().next().unwrap_or_default();
    let rules = line.strip_prefix("--allow-tool '").expect("an option").trim_end_matches('\'');
    let options = rules.split("' --allow-tool '").map(|rule| format!("--allow-tool={rule}"));
    options.collect()
}

/// Checks that nothing is refused with the arguments that the last line advises.
#[track_caller]
fn assert_advice_works(stderr: &str, tool: &str, input: Value) {
    let again = trying(tool, input);
    let advice = advised(stderr);
    let options: Vec<&str> = ["--strict"].into_iter().chain(advice.iter().map(|a| &**a)).collect();
    again.run(&options).exits(0).prints(POSITIVE);
    assert!(again.records("step_finished")[0].get("refused_tools").is_none());
}

#[test]
fn refused_command_is_reported_with_rule_that_allows_it() {
    let machine = trying("Bash", bash(CURL));
    let said = machine.run(&[]).exits(0).prints(POSITIVE);

    let call = refused(&machine);
    assert_eq!((&call["tool"], &call["input"]), (&json!("Bash"), &json!(CURL)));
    assert_eq!(call["why"], "This command requires approval");
    assert_eq!(call["allow"], json!(["Bash(curl:*)"]));
    assert!(said.stderr.contains(&format!("warning: refused: Bash `{CURL}`")), "{said:?}");
    let closing =
        format!("1 tool was refused: Bash `{CURL}`; allow it with: --allow-tool 'Bash(curl:*)'");
    assert!(said.stderr.contains(&closing), "{said:?}");
    assert_advice_works(&said.stderr, "Bash", bash(CURL));
}

#[test]
fn refused_compound_command_gets_rule_for_each_part() {
    let command = format!("FOO=1 timeout 5 {CURL} | tee out; git tag x && echo done");
    let machine = trying("Bash", bash(&command));
    let said = machine.run(&[]).exits(0).prints(POSITIVE);
    assert_advice_works(&said.stderr, "Bash", bash(&command));
}

#[test]
fn refused_page_gets_rule_for_its_domain() {
    let page = || json!({ "url": "http://127.0.0.1:1/page", "prompt": "what is it?" });
    let machine = trying("WebFetch", page());
    let said = machine.run(&[]).exits(0).prints(POSITIVE);
    assert_eq!(refused(&machine)["allow"], json!(["WebFetch(domain:127.0.0.1)"]));
    assert_advice_works(&said.stderr, "WebFetch", page());
}

#[test]
fn refused_file_outside_workspace_gets_rule_for_its_path() {
    let input = || json!({ "file_path": "/etc/hostname" });
    let machine = trying("Read", input());
    let said = machine.run(&[]).exits(0).prints(POSITIVE);
    assert_eq!(refused(&machine)["allow"], json!(["Read(//etc/hostname)"]));
    assert_advice_works(&said.stderr, "Read", input());
}

#[test]
fn command_denied_by_rule_gets_no_advised_rule() {
    let machine = trying("Bash", bash("git push origin"));
    let said = machine.run(&["--", "--disallowedTools", "Bash(git push:*)"]).exits(0);
    let call = refused(&machine);
    assert!(call.get("allow").is_none(), "{call}");
    assert!(call["why"].as_str().is_some_and(|why| why.contains("has been denied")), "{call}");
    assert!(said.stderr.contains("the reason: Permission to use Bash"), "{said:?}");
}

#[test]
fn on_denied_fail_fails_agent_and_counts_turn_cost() {
    let machine = trying("Bash", bash(CURL));
    machine.prompt("START.md", "---\non_denied: fail\n---\nALPHA: try it.");
    machine.run(&[]).exits(1);
    let failed = &machine.records("agent_failed")[0];
    assert_eq!(failed["cause"], "tool_refused");
    assert!(failed["cost_usd"].as_f64().is_some_and(|cost| cost > 0.0), "{failed}");
    assert_eq!(failed["refused_tools"]["calls"][0]["allow"], json!(["Bash(curl:*)"]));
}

#[test]
fn strict_run_fails_for_refused_tools_counted_per_warm_turn() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: try it.");
    machine.prompt("NEXT.md", "BRAVO: try it again.");
    machine.prompt("LAST.md", "CHARLIE: end.");
    machine.api.script([
        on("ALPHA").tool("Bash", bash(CURL)).times(1),
        on("BRAVO").tool("Bash", bash(CURL)).times(1),
        on("CHARLIE").reply("<result>POSITIVE</result>"),
        on("approval").reply("<goto>NEXT.md</goto>").times(1),
        on("approval").reply("<goto>LAST.md</goto>"),
    ]);
    let said = machine.run(&["--strict"]).exits(1).prints(POSITIVE);
    assert!(said.stderr.contains("2 tools were refused"), "{said:?}");
    assert!(said.stderr.contains("that fails the run (--strict)"), "{said:?}");
    let steps = machine.records("step_finished");
    let times = |step: &Value| step["refused_tools"]["calls"].as_array().map_or(0, Vec::len);
    assert_eq!(steps.iter().map(times).collect::<Vec<_>>(), [1, 1, 0]);
    assert_eq!(machine.streams().len(), 1, "one process served all turns");
}
