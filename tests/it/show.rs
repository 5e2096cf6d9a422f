//! `raymond show`: the prompts and the answers of an agent, and `raymond log --agent`.

use serde_json::{Value, json};

use crate::support::{Test, always, pair, when};

const NEXT: &str = "---\nallowed_transitions:\n  - { tag: result }\n---\nnext";

/// Returns a workflow with a turn that crashes, one that leads on, one that is rejected, and one that ends;
/// the first prompt is too long to be shown.
fn troubled() -> Test {
    let long: Vec<String> = (0..40).map(|line| format!("line {line} of start")).collect();
    Test::new()
        .prompt("START.md", &long.join("\n"))
        .prompt("NEXT.md", NEXT)
        .rule(when("of start").once().exit(3))
        .rule(when("of start").reply("off we go <goto>NEXT.md</goto>").cost(0.02))
        .rule(when("next").once().reply("no tag").cost(0.01))
        .rule(always().reply("<result>done</result>").cost(0.01))
}

fn turns(shown: &Value) -> Vec<Value> {
    let steps = shown["steps"].as_array().expect("steps");
    steps.iter().flat_map(|step| step["turns"].as_array().cloned().unwrap_or_default()).collect()
}

#[test]
fn show_lists_every_turn_with_its_prompt_and_answer() {
    let test = troubled();
    test.run(&["START.md"]).ok();
    let shown = test.raymond(&["show", "t", "main", "--json"]).ok().json();
    assert_eq!((&shown["agent"], &shown["result"]), (&json!("main"), &json!("done")));
    assert_eq!((&shown["live"], &shown["cost_usd"]), (&json!(false), &json!(0.04)));
    let turns = turns(&shown);
    let events: Vec<&Value> = turns.iter().map(|turn| &turn["event"]).collect();
    assert_eq!(events, ["turn_failed", "step_finished", "turn_rejected", "step_finished"]);
    let asked: Vec<&str> = turns.iter().filter_map(|turn| turn["prompt"].as_str()).collect();
    let prompts = test.prompts();
    assert_eq!(asked.iter().map(|asked| asked.trim()).collect::<Vec<_>>(), prompts);
    assert_eq!(turns[1]["answer"], "off we go <goto>NEXT.md</goto>");
    assert_eq!(turns[2]["answer"], "no tag");
    assert_eq!(turns[3]["answer"], "<result>done</result>");
    let sessions: Vec<Option<String>> = test.calls().into_iter().map(|call| call.session).collect();
    let told: Vec<Option<String>> =
        turns.iter().map(|turn| turn["session_id"].as_str().map(str::to_owned)).collect();
    assert_eq!(told[1..], sessions[1..]);
    assert_eq!(shown["steps"][1]["cost_usd"], json!(0.02));
}

#[test]
fn long_text_is_cut_unless_its_step_is_requested() {
    let test = troubled();
    test.run(&["START.md"]).ok();
    test.raymond(&["show", "t", "main"])
        .ok()
        .stdout_has("line 0 of start")
        .stdout_lacks("line 39 of start")
        .stdout_has("raymond show t main --step 1")
        .stdout_has("crash")
        .stdout_has("off we go")
        .stdout_has("reminder")
        .stdout_has("finished: done");
    test.raymond(&["show", "t", "main", "--step", "1"])
        .ok()
        .stdout_has("line 39 of start")
        .stdout_lacks("NEXT.md  since");
    let one = test.raymond(&["show", "t", "main", "--step", "2", "--json"]).ok().json();
    assert_eq!(one["steps"].as_array().map(Vec::len), Some(1));
    test.raymond(&["show", "t", "main", "--step", "9"])
        .code(64)
        .stderr_has("main has no step 9: its last step is 2");
}

#[test]
fn show_has_the_same_answers_for_warm_and_no_warm_runs() {
    for flag in ["--warm-for=5m", "--no-warm"] {
        let test = troubled();
        test.run(&["START.md", flag]).ok();
        let shown = test.raymond(&["show", "t", "main", "--json"]).ok().json();
        let answers: Vec<Value> = turns(&shown).iter().map(|turn| turn["answer"].clone()).collect();
        assert_eq!(answers[2..], [json!("no tag"), json!("<result>done</result>")], "{flag}");
    }
}

#[test]
fn show_includes_the_running_turn_of_a_live_run() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply("<goto>NEXT.md</goto>"))
        .rule(when("next").hold_before("go").reply("<result>ok</result>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_for("the held turn", |test| test.calls_with("next").len() == 1);
    live.wait_event("step_finished", 1);
    let due = || {
        let shown = test.raymond(&["show", "t", "main", "--json"]).ok().json();
        turns(&shown).pop().unwrap_or_default()
    };
    crate::support::wait_until("its prompt", || due()["prompt"] == "next");
    let due = due();
    assert_eq!((&due["event"], &due["state"]), (&json!("due"), &json!("NEXT.md")));
    assert_eq!((&due["answer"], &due["at"]), (&Value::Null, &Value::Null));
    test.raymond(&["show", "t", "main"]).ok().stdout_has("at NEXT.md").stdout_has("running");
    test.release("go");
    live.wait().ok();
}

#[test]
fn show_lists_prompts_and_answers_of_scripted_turns() {
    let replies = "START.md: [no tag, { reply: 'to {{input}} <goto>NEXT.md</goto>', cost: 0.5 }]\nNEXT.md: ['<result>ok</result>']\n";
    let test = Test::new()
        .prompt("START.md", "---\nallowed_transitions:\n  - { tag: goto, target: NEXT.md }\n  - { tag: result }\n---\nstart of {{input}}")
        .prompt("NEXT.md", NEXT)
        .file("replies.yaml", replies.as_bytes());
    test.run(&["START.md", "--agent", "scripted", "--input", "it"]).ok();
    test.raymond(&["show", "t", "main"])
        .ok()
        .stdout_has("answered by a script: no model was called")
        .stdout_has("start of it")
        .stdout_has("to it <goto>NEXT.md</goto>")
        .stdout_has("$0.50");
    let shown = test.raymond(&["show", "t", "main", "--json"]).ok().json();
    let turns = turns(&shown);
    let texts = |key: &str| -> Vec<String> {
        turns.iter().map(|turn| turn[key].as_str().unwrap_or("none").to_owned()).collect()
    };
    assert_eq!(shown["scripted"], json!(true));
    assert_eq!(texts("answer"), ["no tag", "to it <goto>NEXT.md</goto>", "<result>ok</result>"]);
    let prompts = texts("prompt");
    assert_eq!((prompts[0].as_str(), prompts[2].as_str()), ("start of it", "next"));
    assert_eq!(turns[0]["reminder"].as_str(), Some(prompts[1].as_str()));
}
#[test]
fn unknown_agent_is_refused_with_a_suggestion() {
    let test = pair();
    test.run(&["START.md"]).ok();
    for command in [&["show", "t", "main.7"][..], &["log", "t", "--agent", "main.7"]] {
        test.raymond(command).code(64).stderr_has(
            "the run t has no agent main.7; did you mean main.1? `raymond tree t` shows",
        );
    }
    test.raymond(&["show", "t", "worker"]).code(64).stderr_has("is not an agent id");
}

#[test]
fn show_without_agent_shows_the_only_agent_or_the_commands_for_all() {
    let test = pair();
    test.run(&["START.md"]).ok();
    test.raymond(&["show", "t"])
        .ok()
        .stdout_has("t has 2 agents")
        .stdout_has("raymond show t main  ")
        .stdout_has("raymond show t main.1  ");
    test.raymond(&["show", "t", "--json"]).code(64).stderr_has("raymond show t AGENT");
    let test = Test::new().prompt("START.md", "start").rule(always().reply("<result>x</result>"));
    test.run(&["START.md"]).ok();
    test.raymond(&["show", "--last"]).ok().stdout_has("main  of t").stdout_has("step 1");
}

#[test]
fn control_characters_of_agent_output_are_not_printed() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(always().reply("\u{1b}[2J<result>\u{1b}]0;owned\u{7}</result>"));
    test.run(&["START.md"]).ok();
    for command in [&["show", "t", "main"][..], &["tree", "t"], &["costs", "t"]] {
        test.raymond(command).ok().stdout_lacks("\u{1b}");
    }
}

#[test]
fn log_agent_filter_includes_descendants_only_with_wildcard() {
    let test = pair();
    test.run(&["START.md"]).ok();
    let records = |whose: &str| {
        let log = test.raymond(&["log", "t", "--json", "--agent", whose]);
        log.ok().json_lines().iter().map(|record| record["agent"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(records("main.1"), ["main.1"]);
    assert_eq!(records("main"), ["main", "main"]);
    assert_eq!(records("main.*").len(), 3);
    test.raymond(&["log", "t", "--agent", "main.1"]).ok().stdout_has("worked").stdout_lacks("led");
    test.raymond(&["log", "t", "--follow", "--agent", "main.1"]).ok().stdout_has("worked");
}

#[test]
fn show_has_the_output_of_a_graphs_command() {
    let graph = "name: flow\nversion: \"1\"\nstart_node: one\nnodes:\n  one:\n    type: action\n    actions:\n      - { type: bash_exec, command: \"echo hello; echo oh >&2\" }\n    on_success: end\n    on_failure: end\nendings:\n  end: { type: success, message: done }\n";
    let test = Test::new().file("workflow.yaml", graph.as_bytes());
    test.run(&["workflow.yaml"]).ok();
    let output = "    stdout\n      hello\n    stderr\n      oh\n    exit code 0\n";
    test.raymond(&["show", "t", "main"]).ok().stdout_has(output);
    let shown = test.raymond(&["show", "t", "main", "--json"]).ok().json();
    let expected = json!({ "exit_code": 0, "stdout": "hello\n", "stderr": "oh\n" });
    assert!(turns(&shown).iter().any(|turn| turn["command"] == expected), "{shown}");
}
