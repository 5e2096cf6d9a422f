//! Tags that lead to other folders: each is a scope of its own, and a return leads back into the caller's.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::{FakeRule, Test, always, wait_until, when};

const CALL: &str =
    "---\nallowed_transitions:\n  - { tag: call, target: review/, return: BACK.md }\n---\nstart";

/// Returns a workflow that calls a folder, whose names mean its own files.
fn composed() -> Test {
    Test::new()
        .prompt("START.md", "start\n<call return=\"BACK.md\">review/</call>")
        .prompt("BACK.md", "back with {{result}}\n<result>x</result>")
        .prompt("NEXT.md", "wrong next\n<result>x</result>")
        .prompt("review/START.md", "look\n<goto>NEXT.md</goto>")
        .prompt("review/NEXT.md", "judge\n<result>x</result>")
        .rule(when("start").reply("<call return=\"BACK.md\">./review/</call>"))
        .rule(when("look").reply("<goto>NEXT.md</goto>"))
        .rule(when("judge").reply("<result>good</result>"))
        .rule(when("back with good").reply("<result>done</result>"))
}

#[test]
fn call_of_folder_begins_at_its_entry_and_returns_into_folder_of_caller() {
    let test = composed();
    let outcome = test.run(&["START.md"]);
    outcome.ok().ended("main", "done");
    let calls = test.calls();
    assert_eq!(calls.len(), 4);
    calls[3].assert_resumes(&calls[0]);
    assert_eq!(
        test.events("step_finished")[0]["transition"],
        json!({ "tag": "call", "target": "START.md", "scope": "review", "return": "BACK.md" })
    );
    outcome.stderr_has("START.md → review/START.md, returning to BACK.md");
}

#[test]
fn every_view_names_a_state_of_another_folder_alike() {
    let test = composed();
    let outcome = test.run(&["START.md"]);
    outcome.ok();
    outcome.stderr_has("main  review/START.md → review/NEXT.md (goto)");
    outcome.stderr_has("main  review/NEXT.md → good (result)");
    outcome.stderr_has("main  BACK.md → done (result)");
    let log = test.raymond(&["log", "t"]);
    log.ok().stdout_has("main  review/START.md → review/NEXT.md (goto)");
    test.raymond(&["show", "t", "main"]).ok().stdout_has("step 3  review/NEXT.md  since");
    test.raymond(&["costs", "t"]).ok().stdout_has("review/NEXT.md");
    let costs: Value = test.raymond(&["costs", "t", "--json"]).ok().json();
    let states = costs["states"].as_array().expect("a list");
    assert!(states.iter().any(|one| one["state"] == "review/START.md"), "{states:?}");
    let folders: Vec<Value> =
        test.events("step_finished").iter().map(|step| step["folder"].clone()).collect();
    assert_eq!(json!(folders), json!([null, "review", "review", null]));
    let shown: Value = test.raymond(&["show", "t", "main", "--json"]).ok().json();
    assert_eq!(shown["steps"][2]["folder"], "review");
}

#[test]
fn forked_agents_of_another_folder_are_counted_under_its_name() {
    let each = "<fork next=\"NEXT.md\" each='[1, 2, 3]'>lib:worker/</fork>";
    let test = Test::new()
        .prompt("START.md", &format!("start\n{each}"))
        .prompt("NEXT.md", "next\n<result>x</result>")
        .prompt("lib/worker/START.md", "work\n<result>x</result>")
        .rule(when("start").reply(each))
        .rule(when("next").reply("<result>led</result>"))
        .rule(when("work").reply("no tag"));
    let outcome = test.run(&["START.md"]);
    outcome.code(1);
    outcome.stderr_has("START.md → NEXT.md, 3 new agents at lib/worker/START.md (fork)");
    outcome.stderr_has("(lib/worker/START.md: protocol ×3)");
    outcome.stderr_has("in lib/worker/START.md: the reply has no transition tag");
    let tree: Value = test.raymond(&["status", "t", "--json"]).ok().json();
    let ended = tree["finished"].as_array().expect("a list");
    let child = ended.iter().find(|one| one["id"] == "main.1").expect("main.1");
    assert_eq!(
        (&child["folder"], &child["failed_folder"]),
        (&json!("lib/worker"), &json!("lib/worker"))
    );
}

#[test]
fn folder_is_shown_while_agent_is_in_it_and_survives_a_kill() {
    let test = composed().rule(always().reply("<result>unused</result>"));
    test.script(&[
        when("start").reply("<call return=\"BACK.md\">review/</call>"),
        when("look").reply("<goto>NEXT.md</goto>"),
        when("judge").hold_before("go").reply("<result>good</result>"),
        when("back with good").reply("<result>done</result>"),
    ]);
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(3);
    let status = test.status();
    let main = &status["agents"][0];
    assert_eq!((&main["folder"], &main["current_state"]), (&json!("review"), &json!("NEXT.md")));
    test.raymond(&["status", "t"]).ok().stdout_has("review/NEXT.md");
    test.raymond(&["tree", "t"]).ok().stdout_has("review/NEXT.md");
    live.kill9();
    test.release("go");
    test.resume(&[]).ok().ended("main", "done");
}

#[test]
fn forked_agent_lives_in_other_folder_and_calls_its_sibling() {
    let test = Test::new()
        .prompt(
            "START.md",
            "start\n<fork-workflow next=\"NEXT.md\" item=\"a\">lib:worker</fork-workflow>",
        )
        .prompt("NEXT.md", "next\n<result>x</result>")
        .prompt(
            "lib/worker/1_START.md",
            "work on {{item}}\n<function return=\"END.md\">../rate/</function>",
        )
        .prompt("lib/worker/END.md", "rated {{result}}\n<result>x</result>")
        .prompt("lib/rate/raymond.yaml", "entry: RATE.md\n")
        .prompt("lib/rate/RATE.md", "rate\n<result>x</result>")
        .rule(
            when("start")
                .reply("<fork-workflow next=\"NEXT.md\" item=\"a\">lib:worker</fork-workflow>"),
        )
        .rule(when("next").reply("<result>led</result>"))
        .rule(
            when("work on a")
                .reply("<function-workflow return=\"END.md\">../rate</function-workflow>"),
        )
        .rule(when("rated 7").reply("<result>worked</result>"))
        .rule(when("rate").reply("<result>7</result>"));
    test.run(&["START.md"]).ok().ended("main", "led").ended("main.1", "worked");
}

#[test]
fn folder_beyond_root_is_refused_and_so_is_a_link_out() {
    let test =
        Test::new().prompt("START.md", "start").rule(when("start").reply("<goto>../other/</goto>"));
    std::fs::create_dir(test.root().join("other")).expect("made");
    std::fs::write(test.root().join("other/START.md"), "secret").expect("written");
    symlink(test.root().join("other"), test.flow().join("link")).expect("linked");
    test.run(&["START.md"])
        .code(1)
        .failed("main")
        .contains("leads out")
        .then_some(())
        .expect("why");
    let linked =
        Test::new().prompt("START.md", "start").rule(when("start").reply("<goto>link/</goto>"));
    symlink(test.root().join("other"), linked.flow().join("link")).expect("linked");
    let outcome = linked.run(&["START.md"]);
    outcome.code(1);
    let why = outcome.failed("main");
    outcome.assert(why.contains("link"), "the folder in the message");
    assert_eq!(linked.calls().len(), 1);
}

#[test]
fn folder_that_came_after_the_run_began_cannot_be_entered() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(when("start").hold_before("go").reply("<goto>late/</goto>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    std::fs::create_dir(test.flow().join("late")).expect("made");
    std::fs::write(test.flow().join("late/START.md"), "late").expect("written");
    test.release("go");
    let outcome = live.wait();
    outcome.code(1);
    let why = outcome.failed("main");
    outcome.assert(why.contains("not part of the workflow when the run began"), "the reason");
}

#[test]
fn root_above_lets_workflows_beside_each_other_enter_each_other() {
    let test = Test::new()
        .prompt("raymond.yaml", "root: true\n")
        .prompt("coding/START.md", "start\n<call return=\"BACK.md\">../review/</call>")
        .prompt("coding/BACK.md", "back with {{result}}\n<result>x</result>")
        .prompt("review/START.md", "look\n<result>x</result>")
        .rule(when("start").reply("<call return=\"BACK.md\">../review/</call>"))
        .rule(when("look").reply("<result>good</result>"))
        .rule(when("back with good").reply("<result>done</result>"));
    test.raymond(&["check", "coding"]).ok();
    test.run(&["coding"]).ok().ended("main", "done");
    let started = &test.events("run_started")[0];
    assert_eq!((&started["folder"], &started["entry"]), (&json!("coding"), &json!("START.md")));
    assert!(test.run_dir().join("workflow/review/START.md").is_file());
}

/// Returns two workflows beside each other, of which the first calls the second, and that calls back.
fn beside() -> Test {
    Test::new()
        .prompt(
            "main/START.md",
            "start\n<call-workflow return=\"BACK.md\">../review/</call-workflow>",
        )
        .prompt("main/BACK.md", "back with {{result}}\n<result>x</result>")
        .prompt("review/START.md", "look\n<goto>parts/NEXT.md</goto>")
        .prompt(
            "review/parts/NEXT.md",
            "judge\n<function-workflow return=\"LAST.md\">../../main/BACK.md</function-workflow>",
        )
        .prompt("review/parts/LAST.md", "last {{result}}\n<result>x</result>")
        .prompt("other/START.md", "other\n<result>x</result>")
        .rule(when("start").reply("<call-workflow return=\"BACK.md\">../review/</call-workflow>"))
        .rule(when("look").reply("<goto>parts/NEXT.md</goto>"))
        .rule(
            when("judge").reply(
                "<function-workflow return=\"LAST.md\">../../main/BACK.md</function-workflow>",
            ),
        )
        .rule(when("last good").reply("<result>seen</result>"))
        .rule(when("back with seen").reply("<result>done</result>"))
        .rule(when("back with").reply("<result>good</result>"))
}

#[test]
fn explicit_tag_leads_to_a_folder_beside_the_root_which_is_pinned() {
    let test = beside();
    let outcome = test.raymond(&["check", "main", "--level", "info"]);
    outcome.ok().says("this leads into another folder, ../review");
    test.raymond(&["graph", "main"]).ok().says("../review/START.md");
    let outcome = test.run(&["main"]);
    outcome.ok().ended("main", "done").says("START.md → ../review/START.md, returning to BACK.md");
    let copy = test.run_dir().join("workflow/@beside");
    assert!(copy.join("review/parts/LAST.md").is_file() && copy.join("main/BACK.md").is_file());
    assert!(!copy.join("other").exists());
    test.raymond(&["show", "t", "main"]).ok().says("../review/parts/NEXT.md");
}

#[test]
fn agent_in_a_folder_beside_the_root_survives_a_kill_and_an_edit() {
    let test = beside();
    test.script(&[
        when("start").reply("<call-workflow return=\"BACK.md\">../review/</call-workflow>"),
        when("look").hold_before("go").reply("<goto>parts/NEXT.md</goto>"),
        when("judge").reply("<result>good</result>"),
        when("back with good").reply("<result>done</result>"),
    ]);
    let mut live = test.spawn(&["main"]);
    live.wait_calls(2);
    live.kill9();
    std::fs::write(test.flow().join("review/parts/NEXT.md"), "changed").expect("written");
    test.release("go");
    let outcome = test.resume(&[]);
    outcome.ok().ended("main", "done").says("review/parts/NEXT.md: changed since the run began");
}

#[test]
fn only_an_explicit_tag_of_a_file_leads_to_a_plain_folder_beside_the_root() {
    let plain =
        beside().prompt("main/START.md", "start\n<call return=\"BACK.md\">../review/</call>");
    let outcome = plain.raymond(&["check", "main"]);
    outcome.code(65).says("RF103").says("to enter a folder beside the root, write <call-workflow>");
    let named = "start\n<call-workflow return=\"BACK.md\">../review/</call-workflow>";
    for (tag, why) in [
        ("<goto>../review/</goto>", "write <call-workflow>"),
        ("<goto>./../review/</goto>", "write <call-workflow>"),
        ("<goto>@beside/review/</goto>", "leads out of the run's root"),
        ("<reset-workflow>../other/</reset-workflow>", "a file of the workflow has to name it"),
        ("<reset-workflow>../../x/</reset-workflow>", "leads out of the run's root"),
    ] {
        let test = Test::new()
            .prompt("main/START.md", named)
            .prompt("main/BACK.md", "x")
            .prompt("review/START.md", "look")
            .prompt("other/START.md", "other")
            .rule(always().reply(tag));
        let outcome = test.run(&["main"]);
        let told = outcome.code(1).failed("main");
        outcome.assert(told.contains(why), &format!("{tag}: {why}"));
    }
    let linked = beside();
    std::fs::rename(linked.flow().join("review"), linked.root().join("far")).expect("moved");
    symlink(linked.root().join("far"), linked.flow().join("review")).expect("linked");
    linked.raymond(&["check", "main"]).code(65).says("review");
    let hidden = Test::new()
        .prompt("main/START.md", "start\n<reset-workflow>../.review/</reset-workflow>")
        .prompt(".review/START.md", "look");
    hidden.raymond(&["check", "main"]).code(65).says(".review");
}

#[test]
fn folder_beside_the_root_may_have_a_dot_and_is_named_where_it_is_missing() {
    let named = |name: &str| {
        let tag = format!("<call-workflow return=\"BACK.md\">../{name}</call-workflow>");
        Test::new()
            .prompt("main/START.md", &format!("start\n{tag}"))
            .prompt("main/BACK.md", "back\n<result>x</result>")
            .prompt("review.v2/START.md", "look\n<result>x</result>")
            .rule(when("start").reply(&tag))
            .rule(when("look").reply("<result>seen</result>"))
            .rule(when("back").reply("<result>done</result>"))
    };
    let test = named("review.v2/");
    test.raymond(&["check", "main"]).ok();
    test.run(&["main"]).ok().ended("main", "done");
    for name in ["reviw", "reviw/"] {
        let outcome = named(name).raymond(&["check", "main"]);
        outcome.code(65).says("../reviw: there is no such folder");
    }
}

#[test]
fn command_beside_the_root_names_a_file_of_its_folder() {
    let graph = r#"
name: review
version: "1.0.0"
description: Runs a tool.
entry_preconditions: []
initial_state: { flags: {}, computed: {} }
start_node: a
nodes:
  a:
    type: action
    actions: [{ type: bash_exec, command: "sh review/tool.sh" }]
    on_success: done
    on_failure: failed
endings:
  done: { type: success, message: Done }
  failed: { type: error, message: "${computed.last_error}" }
"#;
    let tag = "<call-workflow return=\"BACK.md\">../review/</call-workflow>";
    let test = Test::new()
        .prompt("main/START.md", &format!("start\n{tag}"))
        .prompt("main/BACK.md", "back\n<result>x</result>")
        .file("review/workflow.yaml", graph.as_bytes())
        .file("review/tool.sh", b"echo tool\n")
        .rule(when("start").reply(tag))
        .rule(when("back").reply("<result>done</result>"));
    let outcome = test.run(&["main", "--trust"]);
    outcome.ok().ended("main", "done");
    assert!(test.events("agent_failed").is_empty());
    outcome.assert(!outcome.stdout.contains("was changed"), "the file is as it was");
}

#[test]
fn script_beside_the_root_needs_trust_and_runs_from_the_copy() {
    let fork = "<fork-workflow next=\"BACK.md\" word=\"hi\">../work</fork-workflow>";
    let test = Test::new()
        .prompt("main/START.md", "---\nallowed_transitions:\n  - { tag: fork-workflow, next: BACK.md, target: ../work }\n---\nstart")
        .prompt("main/BACK.md", "back\n<result>x</result>")
        .prompt("work/START.sh", "echo \"<result>$RAYMOND_VAR_word</result>\"\n")
        .rule(when("start").reply(fork))
        .rule(when("back").reply("<result>led</result>"))
        .env("RAYMOND_TRUST", "");
    let outcome = test.run(&["main"]);
    outcome.code(77).says("work/START.sh:1:1: runs commands");
    test.raymond(&["trust", "main", "--yes"]);
    test.run(&["main", "--trust"]).ok().ended("main", "led").ended("main.1", "hi");
}

#[test]
fn widening_in_other_folder_needs_trust_before_the_run_begins() {
    let test = composed()
        .prompt(
            "review/NEXT.md",
            "---\nallowed_tools: [\"Bash(rm:*)\"]\n---\njudge\n<result>x</result>",
        )
        .env("RAYMOND_TRUST", "");
    let outcome = test.run(&["START.md"]);
    outcome.code(77).stderr_has("review/NEXT.md:2:17");
    assert!(test.calls().is_empty());
}

const INTERFACE: &str = "inputs:\n  - { name: topic, description: what to look at }\n  - { name: depth, default: shallow }\noutputs: [verdict]\n";

#[test]
fn missing_input_and_missing_output_are_repaired_after_a_reminder() {
    let policy = "---\nallowed_transitions:\n  - { tag: call, target: review/, return: BACK.md }\n---\nstart: give the topic";
    let test = composed()
        .prompt("START.md", policy)
        .prompt("BACK.md", "back with {{result}} and {{verdict}}")
        .prompt("review/raymond.yaml", INTERFACE)
        .prompt(
            "review/START.md",
            "---\nallowed_transitions: [{ tag: result }]\n---\nlook {{depth}} at {{topic}}",
        );
    test.script(&[
        when("start: give").once().reply("<call return=\"BACK.md\">review/</call>"),
        when("topic=").once().reply("<call return=\"BACK.md\" topic=\"bees\">review/</call>"),
        when("look shallow at bees").once().reply("<result>good</result>"),
        when("verdict=").once().reply("<result verdict=\"yes\">good</result>"),
        when("back with good and yes").reply("<result>done</result>"),
    ]);
    test.run(&["START.md", "--no-check"]).ok().ended("main", "done");
    assert_eq!(test.events("turn_rejected").len(), 2);
}

/// Returns the diagnostics of a check, as `code place`.
fn diagnostics(test: &Test, arguments: &[&str]) -> Vec<String> {
    let outcome = test.raymond(&[&["check", "--json", "--level", "info"], arguments].concat());
    let all = outcome.json()["diagnostics"].as_array().cloned().unwrap_or_default();
    let string = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let shown = |one: &Value| {
        let (code, path) = (string(&one["code"]), string(&one["path"]));
        format!("{code} {path}:{}:{}", one["line"], one["column"])
    };
    all.iter().map(shown).collect()
}

#[test]
fn check_tells_of_crossings_and_of_what_is_wrong_with_them() {
    let test = Test::new()
        .prompt("START.md", CALL)
        .prompt("BACK.md", "{{result}} {{verdict}}\n<goto>gone/</goto>\n<goto>empty/</goto>\n<goto>review/</goto>\n<result>x</result>")
        .prompt("empty/NOTES.md", "x")
        .prompt("review/raymond.yaml", INTERFACE)
        .prompt("review/START.md", "{{topic}} {{depth}}\n<goto>MISSING.md</goto>\n<result>x</result>");
    let found = diagnostics(&test, &["."]);
    for expected in [
        "RF309 START.md:3:5",
        "RF602 START.md:3:26",
        "RF103 BACK.md:2:1",
        "RF103 BACK.md:3:1",
        "RF309 BACK.md:4:1",
        "RF103 review/START.md:2:1",
    ] {
        assert!(found.iter().any(|one| one == expected), "{expected} in {found:#?}");
    }
    assert!(!found.iter().any(|one| one.starts_with("RF401")), "{found:#?}");
}

#[test]
fn picture_names_the_other_folder() {
    let test = composed();
    test.raymond(&["graph", ".", "--format", "mermaid"]).ok().stdout_has("review/START.md");
}

#[test]
fn agent_of_a_folder_is_known_from_the_journal_alone() {
    let test = composed();
    test.run(&["START.md"]).ok();
    wait_until("the snapshot is removed", || {
        std::fs::remove_file(test.run_dir().join("state.json")).is_err()
    });
    test.raymond(&["log", "t"]).ok().stdout_has("review/START.md");
}

#[test]
fn printed_text_is_shown_beside_the_tag() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply("<print>half\nway</print> <goto>NEXT.md</goto>"))
        .rule(when("next").reply("<result>done</result>"));
    test.run(&["START.md"]).ok().ended("main", "done").stderr_has("half\n  way");
    assert_eq!(test.events("step_finished")[0]["shown"], json!(["half\nway"]));
    test.raymond(&["log", "t"]).ok().stdout_has("; shows: half way");
}

#[test]
fn mistake_in_the_manifest_of_another_folder_stops_the_start_at_its_place() {
    let test = composed().prompt("review/raymond.yaml", "inputs: [oops\n");
    for command in [&["check", "."][..], &["run", "."]] {
        let outcome = test.raymond(command);
        outcome.code(65);
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        outcome.assert(said.contains("review/raymond.yaml:1:9: RF003 "), "the place");
        outcome.assert(!said.contains("review/.:"), "no other place");
    }
    let empty = Test::new()
        .prompt("START.md", CALL)
        .prompt("BACK.md", "<result>x</result>")
        .prompt("review/NOTES.md", "x");
    for command in [&["check", "."][..], &["run", "."]] {
        let outcome = empty.raymond(command);
        outcome.code(65);
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        outcome.assert(said.contains("START.md:3:26: RF101 review/: "), "the tag's place");
        outcome.assert(said.contains("it has no first state; make START.md"), "what to do");
        outcome.assert(!said.contains("review/.:"), "no other place");
    }
    assert!(test.calls().is_empty() && empty.calls().is_empty());
}

#[test]
fn graph_of_another_folder_is_checked_with_the_states_that_lead_there() {
    let test = composed()
        .prompt("review/START.md", "look\n<goto>FLOW.yaml</goto>")
        .prompt("review/FLOW.yaml", "nodes: {}\nendingz: {}\n");
    for command in [&["check", "."][..], &["run", "."]] {
        let outcome = test.raymond(command);
        outcome.code(65);
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        outcome.assert(said.contains("review/FLOW.yaml:2:1: WF102 unknown key `endingz`"), "place");
    }
    assert!(test.calls().is_empty());
}

#[test]
fn call_workflow_and_reset_workflow_are_names_of_call_and_reset() {
    let call = "<call-workflow return=\"BACK.md\">review/</call-workflow>";
    let reset = "<reset-workflow>last/</reset-workflow>";
    let test = Test::new()
        .prompt("START.md", &format!("start\n{call}"))
        .prompt("BACK.md", &format!("back with {{{{result}}}}\n{reset}"))
        .prompt("review/START.md", "look\n<result>x</result>")
        .prompt("last/START.md", "the last\n<result>x</result>")
        .rule(when("start").reply(call))
        .rule(when("look").reply("<result>good</result>"))
        .rule(when("back with good").reply(reset))
        .rule(when("the last").reply("<result>done</result>"));
    test.raymond(&["check", "START.md"]).ok();
    test.run(&["START.md"]).ok().ended("main", "done");
    let steps = test.events("step_finished");
    assert_eq!(
        [&steps[0]["transition"], &steps[2]["transition"]],
        [
            &json!({ "tag": "call", "target": "START.md", "scope": "review", "return": "BACK.md" }),
            &json!({ "tag": "reset", "target": "START.md", "scope": "last" }),
        ]
    );
    let calls = test.calls();
    calls[2].assert_resumes(&calls[0]);
    calls[3].assert_fresh();
}

#[test]
fn budget_and_restarts_of_a_run_count_in_other_folders() {
    let test = composed_with(|rule| rule.cost(0.04));
    let outcome = test.run(&["START.md", "--budget", "0.1"]);
    outcome.code(75).stderr_has("budget");
    let folders: Vec<Value> =
        test.events("step_finished").iter().map(|step| step["folder"].clone()).collect();
    assert_eq!(json!(folders), json!([null, "review", "review"]), "the last one has used it up");
    let test = composed_with(|rule| rule.exit(1));
    let outcome = test.run(&["START.md", "--max-restarts", "2"]);
    let message = outcome.code(1).failed("main").to_owned();
    assert!(message.starts_with("in review/START.md"), "{message}");
    assert_eq!(test.calls_with("look").len(), 3, "the first one and two restarts");
}

/// Returns the workflow that calls a folder, with rules for its states that are changed so.
fn composed_with(change: impl Fn(FakeRule) -> FakeRule) -> Test {
    Test::new()
        .prompt("START.md", "start\n<call return=\"BACK.md\">review/</call>")
        .prompt("BACK.md", "back with {{result}}\n<result>x</result>")
        .prompt("review/START.md", "look\n<goto>NEXT.md</goto>")
        .prompt("review/NEXT.md", "judge\n<result>x</result>")
        .rule(when("start").cost(0.04).reply("<call return=\"BACK.md\">review/</call>"))
        .rule(change(when("look").reply("<goto>NEXT.md</goto>")))
        .rule(change(when("judge").reply("<result>good</result>")))
        .rule(when("back with good").reply("<result>done</result>"))
}
