//! The six tags as Claude Code sees them: the session of each turn, the prompt, and the state that the stack
//! leads to.

use serde_json::json;

use crate::support::{Test, always, when};

#[test]
fn goto_continues_in_the_same_session() {
    let test = Test::new()
        .prompt("START.md", "start here")
        .prompt("NEXT.md", "next one")
        .rule(when("start").reply("Looked.\n<goto> NEXT.md </goto>\nMoving on.").cost(0.01))
        .rule(when("next").reply("<result>POSITIVE</result>").cost(0.02));
    test.run(&["START.md"]).ok().ended("main", "POSITIVE");

    let calls = test.calls();
    assert_eq!(calls.len(), 2);
    calls[0].assert_fresh();
    calls[1].assert_resumes(&calls[0]);
    assert_eq!(calls[1].history, ["start here"]);
}

#[test]
fn result_is_passed_verbatim() {
    let payload = "\n  <b>two</b> &amp; {{input}}\n<goto>NOT.md</goto>\n";
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("EVAL.md", "evaluate")
        .prompt("BACK.md", "got [{{result}}]")
        .rule(when("start").reply(r#"<function return="BACK.md">EVAL.md</function>"#))
        .rule(when("evaluate").reply(&format!("<result>{payload}</result>")))
        .rule(when("got").reply("<result>fine</result>"));
    test.run(&["START.md", "--input", "SECRET"]).ok();
    assert_eq!(test.calls()[2].prompt.trim_end(), format!("got [{payload}]"));
}

#[test]
fn function_starts_fresh_and_returns_to_the_caller() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("EVAL.md", "evaluate")
        .prompt("BACK.md", "back with {{result}}")
        .rule(when("start").reply(r#"<function return="BACK.md">EVAL.md</function>"#))
        .rule(when("evaluate").reply("<result>7</result>"))
        .rule(when("back").reply("<result>done</result>"));
    test.run(&["START.md"]).ok().ended("main", "done");

    let calls = test.calls();
    assert_eq!(test.prompts(), ["start", "evaluate", "back with 7"]);
    calls[1].assert_fresh();
    assert_ne!(calls[1].session, calls[0].session);
    calls[2].assert_resumes(&calls[0]);
    assert_eq!(calls[2].history, ["start"]);
}

#[test]
fn call_branches_the_callers_session_and_leaves_it_clean() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("CHILD.md", "child")
        .prompt("DEEPER.md", "deeper")
        .prompt("BACK.md", "back with {{result}}")
        .rule(when("start").reply(r"<call return='BACK.md'>CHILD.md</call>"))
        .rule(when("child").reply("<goto>DEEPER.md</goto>"))
        .rule(when("deeper").reply("<result>found</result>"))
        .rule(when("back").reply("<result>done</result>"));
    test.run(&["START.md"]).ok();

    let calls = test.calls();
    assert_eq!(test.prompts(), ["start", "child", "deeper", "back with found"]);
    calls[1].assert_branches(&calls[0]);
    assert_eq!(calls[1].history, ["start"]);
    calls[2].assert_resumes(&calls[1]);
    calls[3].assert_resumes(&calls[0]);
    assert_eq!(calls[3].history, ["start"], "the callee's turns are not in the caller's session");
}

#[test]
fn calls_nest_and_return_in_order() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("OUTER.md", "outer")
        .prompt("INNER.md", "inner")
        .prompt("MID.md", "mid {{result}}")
        .prompt("END.md", "end {{result}}")
        .rule(when("start").reply(r#"<call return="END.md">OUTER.md</call>"#))
        .rule(when("outer").reply(r#"<function return="MID.md">INNER.md</function>"#))
        .rule(when("inner").reply("<result>1</result>"))
        .rule(when("mid").reply("<result>2</result>"))
        .rule(when("end").reply("<result>3</result>"));
    test.run(&["START.md"]).ok().ended("main", "3");

    let calls = test.calls();
    assert_eq!(test.prompts(), ["start", "outer", "inner", "mid 1", "end 2"]);
    calls[3].assert_resumes(&calls[1]);
    calls[4].assert_resumes(&calls[0]);
}

#[test]
fn reset_starts_fresh_drops_the_stack_and_warns_of_it() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("CHILD.md", "child")
        .prompt("AFRESH.md", "afresh")
        .prompt("BACK.md", "back")
        .rule(when("start").reply(r#"<call return="BACK.md">CHILD.md</call>"#))
        .rule(when("child").reply("<reset>AFRESH.md</reset>"))
        .rule(when("afresh").reply("<result>over</result>"));
    let outcome = test.run(&["START.md"]);
    outcome.ok().ended("main", "over").stderr_has("reset").stderr_has("BACK.md");
    assert_eq!(test.prompts(), ["start", "child", "afresh"], "nobody returns to BACK.md");
    test.calls()[2].assert_fresh();
}

#[test]
fn reset_with_empty_stack_does_not_warn() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("LAST.md", "last")
        .rule(when("start").reply("<reset>NEXT.md</reset>"))
        .rule(when("next").reply("<goto>LAST.md</goto>"))
        .rule(when("last").reply("<result>ok</result>"));
    test.run(&["START.md"]).ok().stderr_lacks("warning");
    let calls = test.calls();
    calls[1].assert_fresh();
    calls[2].assert_resumes(&calls[1]);
    assert_eq!(calls[2].history, ["next"]);
}

#[test]
fn fork_starts_a_worker_beside_the_parent() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("WORKER.md", "work on {{item}} as {{agent_id}}")
        .prompt("NEXT.md", "parent goes on")
        .rule(when("start").reply(r#"<fork next="NEXT.md" item="a &lt; b">WORKER.md</fork>"#))
        .rule(when("work on").reply("<result>worked</result>"))
        .rule(when("parent").reply("<result>led</result>"));
    test.run(&["START.md"]).ok().ended("main", "led").ended("main.1", "worked");

    let [start, worker, parent] =
        ["start", "work on", "parent"].map(|part| test.calls_with(part).remove(0));
    worker.assert_fresh();
    assert_eq!(worker.prompt.trim(), "work on a < b as main.1");
    assert_eq!((worker.agent(), parent.agent()), ("main.1", "main"));
    parent.assert_resumes(&start);
}

#[test]
fn children_are_numbered_under_their_parent_and_have_no_stack() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("FORKING.md", "forking")
        .prompt("MORE.md", "more")
        .prompt("LEAF.md", "leaf {{agent_id}}")
        .prompt("BACK.md", "back")
        .rule(when("start").reply(r#"<call return="BACK.md">FORKING.md</call>"#))
        .rule(when("forking").agent("main").reply(r#"<fork next="MORE.md">FORKING.md</fork>"#))
        .rule(when("forking").reply(r#"<fork next="LEAF.md">LEAF.md</fork>"#))
        .rule(when("more").reply(r#"<fork next="LEAF.md">LEAF.md</fork>"#))
        .rule(when("leaf").reply("<result>leaf</result>"))
        .rule(when("back").reply("<result>root</result>"));
    let outcome = test.run(&["START.md"]);
    outcome.ok().ended("main", "root");
    for child in ["main.1", "main.1.1", "main.2"] {
        outcome.ended(child, "leaf");
    }
}

#[test]
fn filled_placeholders_are_not_expanded_again() {
    let test = Test::new()
        .prompt("START.md", "{{workflow_id}}|{{agent_id}}|{{state}}|{{input}}|{{who}}|{{nobody}}")
        .rule(always().reply("<result>ok</result>"));
    let arguments = ["START.md", "--input", "{{who}}", "--var", "who=you"];
    test.run(&arguments).ok().stderr_has("nobody");
    assert_eq!(test.prompts(), ["t|main|START.md|{{who}}|you|{{nobody}}"]);
}

#[test]
fn attributes_of_a_goto_are_variables_of_the_next_state() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next: {{topic}}")
        .rule(when("start").reply(r#"<goto topic="bees">NEXT.md</goto>"#))
        .rule(when("next").reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    assert_eq!(test.prompts(), ["start", "next: bees"]);
}

#[test]
fn frontmatter_model_overrides_command_line_model() {
    let test = Test::new()
        .prompt("START.md", "---\nmodel: haiku\n---\nstart")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply("<goto>NEXT.md</goto>"))
        .rule(when("next").reply("<result>ok</result>"));
    test.run(&["START.md", "--model", "sonnet"]).ok();
    let models: Vec<_> = test.calls().into_iter().map(|call| call.model).collect();
    assert_eq!(models, [Some("haiku".to_owned()), Some("sonnet".to_owned())]);
}

#[test]
fn claude_code_gets_no_model_flag_without_a_model() {
    let test = Test::new().prompt("START.md", "start").rule(always().reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    assert!(!test.calls()[0].has("--model"));
}

#[test]
fn failure_of_one_agent_does_not_stop_another() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("WORKER.md", "work")
        .prompt("NEXT.md", "next")
        .prompt("LAST.md", "last")
        .rule(when("start").reply(r#"<fork next="NEXT.md">WORKER.md</fork>"#))
        .rule(when("work").reply("I forgot the tag."))
        .rule(when("next").hold_before("worker-failed").reply("<goto>LAST.md</goto>"))
        .rule(when("last").reply("<result>done</result>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("agent_failed", 1);
    test.release("worker-failed");
    let outcome = live.wait();
    outcome.code(1).ended("main", "done").failed("main.1");
    let finished = test.status()["finished"].clone();
    let failed = finished.as_array().and_then(|all| all.iter().find(|one| one["id"] == "main.1"));
    assert!(failed.is_some_and(|one| one["error"].is_string()), "{finished}");
}

#[test]
fn each_step_is_one_record_even_a_fork() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("WORKER.md", "work")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply(r#"<fork next="NEXT.md" item="x">WORKER.md</fork>"#).cost(0.05))
        .rule(always().reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    let steps = test.events("step_finished");
    assert_eq!(steps.len(), 3, "{steps:#?}");
    assert_eq!(steps[0]["agent"], "main");
    assert_eq!(steps[0]["step"], 1);
    assert_eq!(steps[0]["transition"]["tag"], "fork");
    assert_eq!(steps[0]["transition"]["variables"], json!({"item": "x"}));
    let sequence: Vec<_> =
        test.journal().iter().filter_map(|record| record["seq"].as_u64()).collect();
    let expected: Vec<u64> = (1..).take(sequence.len()).collect();
    assert_eq!(sequence, expected, "sequence numbers have no gap");
}
