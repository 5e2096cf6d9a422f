//! Questions of graphs: the text for people, the ways to answer, and the first valid answer, which wins.

mod terminal;

use serde_json::{Value, json};

use crate::support::{RaymondOutcome, Test};

const GRAPH: &str = r"name: flow
version: 1.0.0
description: Asks two things.
start_node: ask_type
nodes:
  ask_type:
    type: user_prompt
    prompt:
      question: Which kind of source?
      header: Type
      options:
        - { id: git, label: Git repository, description: one that is cloned }
        - { id: web, label: Web site, description: one that is fetched }
    on_response:
      git: { next_node: ask_name }
      web: { next_node: ask_name }
  ask_name:
    type: user_prompt
    prompt:
      question: What is it called?
      header: Name
      options:
        - { id: main, label: The main one, description: as the folder }
        - { id: again, label: Ask again, description: begin again }
    on_response:
      main: { next_node: done }
      again: { next_node: ask_type }
      other: { next_node: done }
endings:
  done:
    type: success
    message: 'A ${user_responses.ask_type.id} source called ${user_responses.ask_name.raw}.'
";

fn graph() -> Test {
    Test::new().file("workflow.yaml", GRAPH.as_bytes())
}

/// Returns the questions of a run that paused for them, from the last line it printed.
#[track_caller]
fn questions(outcome: &RaymondOutcome) -> Value {
    outcome.code(2);
    let last = outcome.stdout.lines().last().unwrap_or_default();
    let mut document: Value = serde_json::from_str(last).expect("the last line is JSON");
    assert_eq!(document["run"], "t");
    document["questions"].take()
}

/// Returns the ids of the answers, in order.
fn answered(test: &Test) -> Vec<String> {
    let events = test.events("question_answered");
    let id = |event: &Value| event["answer"]["id"].as_str().expect("an id").to_owned();
    events.iter().map(id).collect()
}

#[test]
fn open_question_is_reported_with_options_and_answer_command() {
    let test = graph();
    let outcome = test.run(&["."]);
    let asked = questions(&outcome);
    assert_eq!(asked.as_array().map(Vec::len), Some(1));
    let options = json!([
        { "id": "git", "label": "Git repository", "description": "one that is cloned" },
        { "id": "web", "label": "Web site", "description": "one that is fetched" },
    ]);
    let one = &asked[0];
    assert_eq!((&one["agent"], &one["node"]), (&json!("main"), &json!("ask_type")));
    assert_eq!(one["question"], "Which kind of source?");
    assert_eq!((&one["header"], &one["free"]), (&json!("Type"), &json!(false)));
    assert_eq!(one["options"], options);
    assert!(one["asked_at"].is_string() && one.get("until").is_none(), "{one}");
    outcome
        .stderr_has("main/ask_type asks (Type): Which kind of source?")
        .stderr_has("  1  git  Git repository: one that is cloned")
        .stderr_has("raymond answer t ask_type=git")
        .stderr_has("then resume: raymond resume t");
    assert_eq!(test.status()["questions"], asked);
    test.raymond(&["status", "t"]).ok().stdout_has("raymond answer t ask_type=git");
    assert_eq!(test.raymond(&["answer", "t", "--json"]).ok().json()["questions"], asked);
    test.assert_no_survivors();

    let lines = test.resume(&["--json"]);
    lines.code(2);
    let lines = lines.json_lines();
    assert_eq!(lines.last().map(|last| &last["questions"]), Some(&asked));
    assert!(lines[..lines.len() - 1].iter().all(|line| line["event"].is_string()));
}

#[test]
fn first_valid_answer_to_paused_run_is_used_on_resume() {
    let test = graph();
    test.run(&["."]).code(2);
    let answer = |given: &str| test.raymond(&["answer", "t", given]);
    answer("ask_typ=git").code(64).stderr_has("did you mean ask_type?");
    answer("nobody=x").code(64).stderr_has("open questions: main/ask_type");
    answer("main.1/ask_type=git")
        .code(64)
        .stderr_has("t has no open question ask_type of main.1; open questions: main/ask_type");
    test.raymond(&["answer", "t", "ask_type=git", "ask_type=web"])
        .code(64)
        .stderr_has("ask_type is answered twice on this command line: git, web; give one answer. Nothing was stored, not even ask_type=git");
    test.raymond(&["answer", "t", "ask_type=git", "typo=web"])
        .code(64)
        .stderr_has("t has no open question typo")
        .stderr_has("Nothing was stored, not even ask_type=git");
    answer("ask_type=svn")
        .code(64)
        .stderr_has("WF504 `svn` is not an answer to ask_type: use one of git, web");
    answer("ask_type").code(64).stderr_has("write NODE=TEXT");
    answer("main/ask_type=WEB site")
        .ok()
        .stdout_has("main/ask_type is answered: web")
        .stdout_has("resume: raymond resume t");
    answer("ask_type=git").code(64).stderr_has("main/ask_type has been answered already: web");
    test.raymond(&["answer", "t"]).ok().stdout_has("main/ask_type is answered: web");
    let asked = questions(&test.resume(&[]));
    assert_eq!(asked[0]["node"], "ask_name");
    assert_eq!(asked[0]["free"], true);
    let taken = answer("ask_name=my own");
    taken.ok().stdout_has("main/ask_name is answered: my own");
    test.resume(&[]).ok().stderr_has("A web source called my own.");
    assert_eq!(answered(&test), ["web", "other"]);
    answer("ask_name=main").code(64).stderr_has("no question of t waits for an answer");
    test.raymond(&["answer", "u"]).code(64).stderr_has("no run u");
}

#[test]
fn live_run_takes_answers_as_they_arrive() {
    let test = graph();
    let mut live = test.spawn(&[".", "--on-wait=stay"]);
    live.wait_event("graph_advanced", 1);
    let taken = test.raymond(&["answer", "t", "ask_type=1", "--json"]).ok().json();
    assert_eq!(taken["answered"], json!([{ "agent": "main", "node": "ask_type", "id": "git" }]));
    assert_eq!(taken["locked"], true);
    live.wait_event("graph_advanced", 2);
    test.raymond(&["answer", "t", "ask_name=again"]).ok();
    live.wait_event("graph_advanced", 3);
    test.raymond(&["answer", "t", "ask_type=web"]).ok().stdout_lacks("go on:");
    live.wait_event("graph_advanced", 4);
    test.raymond(&["answer", "t", "ask_name=2", "ask_type=git"])
        .code(64)
        .stderr_has("t has no open question ask_type");
    test.raymond(&["answer", "t", "ask_name=main"]).ok();
    live.wait().ok().stderr_has("A web source called main.");
    assert_eq!(answered(&test), ["git", "again", "web", "main"]);
}

#[test]
fn answers_from_option_or_file_are_used_in_order() {
    let test = graph();
    test.run(&[".", "--answer", "ask_type=2", "--answer", "ask_name=x=y"])
        .ok()
        .stderr_has("A web source called x=y.");
    assert_eq!(answered(&test), ["web", "other"]);

    let yaml = "ask_type: [git, web]\nask_name:\n  - again\n  - My own name\n";
    let test = graph().file("answers.yaml", yaml.as_bytes());
    test.run(&[".", "--answers", "answers.yaml"])
        .ok()
        .stderr_has("A web source called My own name.");
    assert_eq!(answered(&test), ["git", "again", "web", "other"]);

    let test = graph();
    test.run(&[".", "--answer", "ask_type=git", "--answer", "ask_name=again"]).code(2);
    test.resume(&["--answer", "ask_type=svn"]).code(64).stderr_has("--answer ask_type=svn: WF504");
    test.resume(&["--answer", "ask_type=web", "--answer", "ask_name=main"])
        .ok()
        .stderr_has("A web source called main.");
    assert_eq!(answered(&test), ["git", "again", "web", "main"]);
}

#[test]
fn answer_with_spaces_and_without_quotes_is_shown_in_quotes() {
    let test = graph();
    test.run(&["."]).code(2);
    for words in [&["ask_type=my", "own"][..], &["ask_type", "my", "own"]] {
        let refused = test.raymond(&[&["answer", "t"], words].concat());
        refused.code(64).stderr_has("put a text with spaces in quotes: 'ask_type=my own'");
    }
}

#[test]
fn answer_to_a_question_answered_meanwhile_is_reported_as_kept() {
    let test = graph();
    test.run(&["."]).code(2);
    test.raymond(&["answer", "t", "ask_type=git"]).ok();
    test.resume(&["--answer", "ask_type=web"])
        .code(2)
        .stderr_has("--answer ask_type=web: no question of this name is open");
    assert_eq!(answered(&test), ["git"]);
}

#[test]
fn invalid_answer_option_is_rejected_before_run_starts() {
    let wrong = "ask_type: git\nask_nam: x\n";
    let test = graph().file("wrong.yaml", wrong.as_bytes()).file("bad.yaml", b"ask_type: {}\n");
    let table: [(&[&str], i32, &str); 7] = [
        (&["--answer", "ask_typ=git"], 64, "did you mean ask_type?"),
        (&["--answer", "zzz=git"], 64, "has no question zzz; it asks ask_name, ask_type"),
        (&["--answer", "ask_type=svn"], 64, "--answer ask_type=svn: WF504"),
        (&["--answer", "main/ask_type=git"], 64, "name only the question, not the agent"),
        (&["--answers", "wrong.yaml"], 64, "wrong.yaml:2:10: the graph flow has no question"),
        (&["--answers", "bad.yaml"], 65, "bad.yaml:1:11: WF102"),
        (&["--answers", "none.yaml"], 74, "cannot read the answers in"),
    ];
    for (arguments, code, message) in table {
        let all = [&["."], arguments].concat();
        test.run(&all).code(code).stderr_has(message);
        assert!(!test.run_dir().exists(), "{arguments:?}");
    }
}

#[test]
fn edited_graph_is_used_only_with_migrate() {
    let test = graph();
    test.run(&["."]).code(2);
    let write = |text: &str| {
        std::fs::write(test.flow().join("workflow.yaml"), text).expect("written");
    };
    write(&GRAPH.replace("called ${", "named ${"));
    let answers = ["--answer", "ask_type=git", "--answer", "ask_name=main"];
    test.resume(&answers[..2])
        .code(2)
        .stderr_has("workflow.yaml: changed since the run began; the run uses the old content");
    let before = test.journal().len();
    write(&GRAPH.replace("ask_name", "ask_kind"));
    test.resume(&["--migrate"]).code(65).stderr_has("WF503 the agent main is at the node ask_name");
    assert_eq!(test.journal().len(), before, "nothing has begun");
    write(&GRAPH.replace("called ${", "named ${"));
    test.resume(&[&answers[2..], &["--migrate"]].concat())
        .ok()
        .stderr_has("A git source named main.");
}
