//! `raymond diff`: where two runs differ first, and what came of it.

use serde_json::{Value, json};

use crate::cassettes::use_tools;
use crate::support::{RaymondOutcome, Test, always, wait_until, when};

#[track_caller]
fn diff(test: &Test, a: &str, b: &str, more: &[&str]) -> Value {
    let outcome = test.raymond(&[&["diff", a, b, "--json"], more].concat());
    let json = outcome.code_in(&[0, 1]).json();
    let code = i32::from(json["equal"] == false);
    outcome.code(code);
    json
}

/// Starts a further run of the same workflow.
fn again(test: &Test, id: &str, more: &[&str]) -> RaymondOutcome {
    test.run(&[&["START.md", "--id", id], more].concat())
}

/// Returns the kinds of what differs first, with the place.
fn first(json: &Value) -> (String, Vec<&str>) {
    let first = &json["first_difference"];
    let place = format!("{}#{}", first["agent"].as_str().unwrap_or("none"), first["step"]);
    let parts = first["differs"].as_array().into_iter().flatten();
    (place, parts.filter_map(|part| part["what"].as_str()).collect())
}

/// Returns a workflow that forks a worker, whose answer can be changed.
fn forking() -> Test {
    Test::new()
        .prompt("START.md", "start in {{workflow_id}}")
        .prompt("WORK.md", "work")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply(r#"<fork next="NEXT.md">WORK.md</fork>"#).cost(0.01))
        .rule(when("next").reply("<result>done</result>").cost(0.02))
        .rule(when("work").once().reply("<result>honey</result>").cost(0.03))
        .rule(when("work").once().reply("<result>wax</result>").cost(0.05))
        .rule(when("work").reply("<result>honey</result>").cost(0.04))
}

#[test]
fn equal_runs_exit_0_and_different_runs_show_the_first_difference() {
    let test = forking();
    test.run(&["START.md"]).ok();
    again(&test, "u", &[]).ok();
    again(&test, "v", &[]).ok();
    let same = diff(&test, "t", "v", &[]);
    assert_eq!((&same["equal"], &same["first_difference"]), (&json!(true), &Value::Null));
    assert_eq!(same["states"][0]["state"], "WORK.md", "costs are told of equal runs, too");
    test.raymond(&["diff", "t", "t"]).ok().stdout_has("records are shared").stdout_has("are equal");
    let found = diff(&test, "t", "u", &[]);
    assert_eq!(first(&found), ("main.1#1".to_owned(), vec!["reply", "payload"]));
    assert_eq!(found["results"][0]["b"], json!({ "status": "finished", "result": "wax" }));
    assert_eq!(found["steps"], json!([]), "the transitions are the same");
    test.raymond(&["diff", "t", "u"])
        .code(1)
        .stdout_has("- <result>honey</result>")
        .stdout_has("+ <result>wax</result>")
        .stdout_has("WORK.md  - $0.03  + $0.05  +$0.02")
        .stdout_lacks("transitions");
    let own = diff(&test, "t", "u", &["--agent", "main"]);
    assert_eq!(own["equal"], true);
    test.raymond(&["diff", "t", "u", "--agent", "main.9"]).code(64).stderr_has("main.1");
    test.raymond(&["diff", "t", "x"]).code(64);
    test.raymond(&["diff", "t"]).code(64).stderr_has("did not branch off another run");
}

#[test]
fn changed_prompt_and_input_show_their_lines() {
    let test = Test::new()
        .prompt("START.md", "one {{input}}\ntwo\nin {{workflow_id}}")
        .rule(when("one x").reply("<result>ok</result>"))
        .rule(always().once().reply("<goto>START.md</goto>"))
        .rule(always().reply("<result>late</result>"));
    test.run(&["START.md", "--input", "x"]).ok();
    let test = test.prompt("START.md", "one {{input}}\nTWO\nin {{workflow_id}}");
    again(&test, "u", &["--input", "y"]).ok();
    let found = diff(&test, "t", "u", &[]);
    let expected = vec!["prompt", "reply", "transition", "payload"];
    assert_eq!(first(&found), ("main#1".to_owned(), expected));
    assert_eq!(found["inputs"], json!([{ "name": "var input", "a": "x", "b": "y" }]));
    let file = &found["workflow_files"][0];
    assert_eq!((&file["path"], &file["change"]), (&json!("START.md"), &json!("changed")));
    let sides =
        |step: usize| (found["steps"][step]["a"].clone(), found["steps"][step]["b"].clone());
    assert_eq!(sides(0).1["outcomes"], json!(["<goto>START.md</goto>"]));
    assert_eq!((sides(1).0, &sides(1).1["state"]), (Value::Null, &json!("START.md")));
    test.raymond(&["diff", "t", "u"])
        .code(1)
        .stdout_has("      -two")
        .stdout_has("      +TWO")
        .stdout_has("       in t")
        .stdout_lacks("in u");
}

#[test]
fn branch_is_compared_with_its_source_after_the_shared_records() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply("<goto>NEXT.md</goto>").cost(0.01))
        .rule(when("next").once().reply("<result>ok</result>").cost(0.02))
        .rule(when("next").reply("<result>ok</result>").cost(0.02));
    test.run(&["START.md"]).ok();
    test.raymond(&["branch", "t", "--at", "main#2", "--id", "b"]).ok();
    let same = diff(&test, "t", "b", &[]);
    assert_eq!((&same["equal"], &same["shared_records"]), (&json!(true), &json!(2)));
    let test = test.prompt("NEXT.md", "next, differently");
    test.raymond(&["branch", "t", "--edit", "NEXT.md", "--id", "c"]).ok();
    test.raymond(&["diff", "c"])
        .code(1)
        .stdout_has("- t")
        .stdout_has("the first 2 records are shared")
        .stdout_has("main#2  - record 3, turn 1  + record 5, turn 2")
        .stdout_has("+ next, differently")
        .stdout_has("NEXT.md: changed");
    let found = diff(&test, "b", "c", &[]);
    assert_eq!((first(&found).1, &found["shared_records"]), (vec!["prompt"], &json!(2)));
}

#[test]
fn paths_of_the_first_run_are_no_difference_between_a_branch_and_its_branch() {
    let test = Test::new().prompt("START.md", "start").prompt("LAST.md", "last of {{notes}}");
    let notes = test.dir().join("runs/tour-first/notes").display().to_string();
    let test = test
        .rule(when("start").reply(&format!(r#"<goto notes="{notes}">LAST.md</goto>"#)))
        .rule(always().reply("<result>ok</result>"));
    test.run(&["START.md", "--id", "tour-first"]).ok();
    test.raymond(&["branch", "tour-first", "--at", "main#2", "--id", "second"]).ok();
    test.raymond(&["branch", "second", "--at", "main#2", "--id", "third"]).ok();
    assert_eq!(diff(&test, "second", "third", &[])["equal"], true);
}

#[test]
fn branch_of_the_kept_records_of_a_branch_is_equal_to_both() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("WORK.md", "work on {{item}}")
        .prompt("END.md", "---\njoin: all\n---\nend")
        .rule(
            when("start")
                .reply(r#"<fork next="END.md" each='["x", "y", "z"]' as="item">WORK.md</fork>"#),
        )
        .rule(always().reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    test.raymond(&["branch", "t", "--at", "main.1#1", "--id", "g"]).ok();
    test.raymond(&["branch", "g", "--at", "4", "--id", "f"]).ok();
    for (a, b) in [("t", "g"), ("g", "f"), ("t", "f")] {
        assert_eq!(diff(&test, a, b, &[])["equal"], true, "{a} {b}");
    }
}

#[test]
fn run_that_lives_differs_where_it_stands() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply("<goto>NEXT.md</goto>"))
        .rule(when("next").once().reply("<result>ok</result>"))
        .rule(when("next").hold_before("go").reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    let live = test.spawn(&["START.md", "--id", "u"]);
    wait_until("its second turn", || test.calls_with("next").len() == 2);
    wait_until("its record", || diff(&test, "t", "u", &[])["first_difference"]["step"] == 2);
    let found = diff(&test, "t", "u", &[]);
    assert_eq!(
        (&found["first_difference"]["b"], &found["runs"]["b"]["status"]),
        (&Value::Null, &json!("running"))
    );
    assert_eq!(found["results"][0]["b"], json!({ "status": "live" }));
    test.raymond(&["diff", "t", "u"])
        .code(1)
        .stdout_has("+ nothing more")
        .stdout_has("+ has not ended");
    test.release("go");
    live.wait().ok();
    assert_eq!(diff(&test, "t", "u", &[])["equal"], true);
}

#[test]
fn changed_files_are_compared_as_far_as_streams_tell() {
    let test =
        Test::new().prompt("START.md", "start").rule(when("start").reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    again(&test, "u", &[]).ok();
    let path = test.flow().join("out/new.txt").display().to_string();
    let write = ("Write", json!({ "file_path": path, "content": "text" }));
    use_tools(&test, "main-1-0", &[write, ("Bash", json!({ "command": "make" }))]);
    let found = diff(&test, "t", "u", &[]);
    let file = &found["files"][0];
    assert_eq!((&file["path"], &file["b"]), (&json!("out/new.txt"), &Value::Null));
    assert_eq!(file["a"], json!({ "by": ["main#1"], "content": "text" }));
    assert_eq!(found["first_difference"], Value::Null);
    test.raymond(&["diff", "t", "u"])
        .code(1)
        .stdout_has("- changed by main#1")
        .stdout_has("+ not changed")
        .stdout_has("(Bash) changed are not compared");
}

#[test]
fn graphs_are_compared_by_nodes_and_values() {
    let graph = json!({
        "name": "g", "version": "1.0.0", "description": "A command.",
        "entry_preconditions": [], "initial_state": {}, "start_node": "work",
        "nodes": { "work": {
            "type": "action", "on_success": "done", "on_failure": "done",
            "actions": [{ "type": "bash_exec", "command": "cat word.txt", "store_as": "word" }],
        } },
        "endings": { "done": { "type": "success", "message": "done" } },
    });
    let test = Test::new().file("workflow.yaml", graph.to_string().as_bytes());
    let word = |word: &str| std::fs::write(test.flow().join("word.txt"), word).expect("written");
    for (id, text) in [("t", "one"), ("u", "one"), ("v", "two")] {
        word(text);
        test.run(&["workflow.yaml", "--id", id]).ok();
    }
    assert_eq!(diff(&test, "t", "u", &[])["equal"], true);
    let found = diff(&test, "t", "v", &[]);
    assert_eq!(first(&found), ("main#2".to_owned(), vec!["values"]));
}

#[test]
fn programs_are_compared_by_requests_and_answers_of_their_roles() {
    let program = r#"(workflow w (roles (a))
      (state draft
        (action
          (send-prompt :agent a :template "write ~a" :args (@context/what) :request-id first)
          (await (transcript-response :request-id first)))
        (terminal)))"#;
    let test = Test::new().file("p.lisp", program.as_bytes()).rule(when("write").reply("a poem"));
    for (id, what) in [("t", "what=rain"), ("u", "what=rain"), ("v", "what=snow")] {
        test.run(&["p.lisp", "--id", id, "--context", what]).ok();
    }
    assert_eq!(diff(&test, "t", "u", &[])["equal"], true);
    let found = diff(&test, "t", "v", &[]);
    assert_eq!(first(&found), ("main#1".to_owned(), vec!["request"]));
    assert_eq!(found["inputs"][0]["name"], "context what");
    test.raymond(&["diff", "t", "v"]).code(1).stdout_has("+write snow");
}

#[test]
fn records_kept_by_a_causal_branch_are_compared_with_their_originals() {
    let test = Test::new()
        .prompt("START.md", "distribute")
        .prompt("GATHER.md", "---\njoin: all\n---\ngather")
        .prompt("W.md", "work on {{item}}")
        .rule(
            when("distribute")
                .reply(r#"<fork next="GATHER.md" each='["a", "b", "c"]' as="item">W.md</fork>"#),
        )
        .rule(when("work on").reply("<result>one</result>"))
        .rule(always().reply("<result>all</result>"));
    test.run(&["START.md", "--max-procs", "1", "--stagger", "0s"]).ok();
    let words =
        ["branch", "t", "--at", "main.2#1", "--reply", "<result>mine</result>", "--id", "u"];
    test.raymond(&words).ok();
    let found = diff(&test, "t", "u", &[]);
    assert_eq!(
        (&found["shared_records"], &found["first_difference"]["agent"]),
        (&json!(4), &json!("main.2"))
    );
    assert_eq!(found["steps"], json!([]), "the kept steps are the same");
    let results = found["results"].as_array().expect("a list");
    assert_eq!(results.iter().map(|one| &one["agent"]).collect::<Vec<_>>(), ["main.2"]);
}
