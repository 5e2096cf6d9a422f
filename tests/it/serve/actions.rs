//! The actions do what their commands do, and go through the run's inbox.

use serde_json::json;

use crate::support::{Test, always, held, when};

#[test]
fn answer_is_given_once_and_resumes_the_run() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next {{answer}}")
        .rule(when("start").reply(r#"<ask next="NEXT.md">Which?</ask>"#))
        .rule(always().reply("<result>ok</result>"));
    test.run(&["START.md"]).code(2);
    let page = test.serve(&[]);
    let question = page.client.document("/api/questions")[0]["questions"][0].clone();
    let body = json!({ "run": "t", "agent": "main", "node": question["node"], "text": "-" });
    let given = page.client.act("answer", &body);
    assert_eq!(given.status, 200, "{given:?}");
    assert_eq!(given.json()["questions"], json!([]));
    // Nobody runs it, so the answer lies in its inbox, and the question is no longer open.
    page.client.stream("/api/runs/t/events", None).until("run", |run| run["questions"] == 0);
    let again = page.client.act("answer", &body);
    assert_eq!(again.status, 409);
    assert!(again.body.contains("has been answered already"), "{}", again.body);
    let none = page.client.act("answer", &json!({ "run": "none", "node": "x", "text": "y" }));
    assert_eq!(none.status, 404);
    test.resume(&[]).ok();
    assert_eq!(
        test.prompts(),
        ["start", "next -"],
        "a dash is a text, not the input of the server"
    );
}

#[test]
fn answer_does_not_reach_a_later_question_of_the_same_name() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next {{answer}}")
        .rule(when("start").reply(r#"<ask next="NEXT.md">Shall I look?</ask>"#))
        .rule(when("next yes").once().reply(r#"<ask next="NEXT.md">Shall I delete it?</ask>"#))
        .rule(always().reply("<result>ok</result>"));
    test.run(&["START.md"]).code(2);
    let page = test.serve(&[]);
    let asked = || page.client.document("/api/questions")[0]["questions"][0].clone();
    let body = |asked_at| json!({ "run": "t", "agent": "main", "node": "NEXT.md", "text": "yes", "asked_at": asked_at });
    let first = asked()["asked_at"].clone();
    assert_eq!(page.client.act("answer", &body(first.clone())).status, 200);
    test.resume(&["--on-wait", "exit"]).code(2);
    assert_eq!(asked()["question"], "Shall I delete it?");
    let stale = page.client.act("answer", &body(first));
    assert_eq!(stale.status, 409, "{stale:?}");
    assert!(stale.body.contains("is no longer open"), "{}", stale.body);
    assert_eq!(page.client.act("answer", &body(asked()["asked_at"].clone())).status, 200);
}

#[test]
fn live_run_is_stopped() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    let page = test.serve(&[]);
    let told = page.client.act("stop", &json!({ "run": "t" })).json();
    assert_eq!(told["asked"], true);
    live.wait_event("command_received", 1);
    test.release("go");
    live.wait().code(130);
    let after = page.client.act("stop", &json!({ "run": "t" })).json();
    assert_eq!((&after["asked"], &after["status"]), (&json!(false), &json!("paused")));
}

#[test]
fn failed_agents_are_retried_in_the_background() {
    let test = Test::new()
        .prompt("START.md", "---\nsupervision: { max_restarts: 0 }\n---\nstart")
        .rule(when("start").once().exit(3))
        .rule(when("start").reply("<result>ok</result>"));
    test.run(&["START.md"]).code(1);
    let page = test.serve(&[]);
    let plan = page.client.act("retry", &json!({ "run": "t", "dry_run": true }));
    assert_eq!(plan.json()["agents"][0]["agent"], "main", "{plan:?}");
    assert_eq!(test.calls().len(), 1, "nothing happens");
    let told = page.client.act("retry", &json!({ "run": "t" }));
    assert_eq!(told.status, 200, "{told:?}");
    let mut stream = page.client.stream("/api/runs/t/events", None);
    stream.until("run", |run| run["status"] == "completed");
    let again = page.client.act("retry", &json!({ "run": "t" }));
    assert_eq!(again.status, 409, "{again:?}");
}

#[test]
fn run_branches_off_in_the_background() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply("<goto>NEXT.md</goto>"))
        .rule(always().reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    let page = test.serve(&[]);
    let made = page.client.act("branch", &json!({ "run": "t", "at": "main#2" }));
    assert_eq!(made.status, 200, "{made:?}");
    let run = made.json()["run"].as_str().expect("a run").to_owned();
    let mut stream = page.client.stream(&format!("/api/runs/{run}/events"), None);
    stream.until("run", |run| run["status"] == "completed");
    let wrong = page.client.act("branch", &json!({ "run": "t", "at": "--help" }));
    assert_eq!(wrong.status, 409, "{wrong:?}");
}

#[test]
fn only_known_workflows_are_started() {
    let test = Test::new()
        .prompt("START.md", "start {{input}} {{tone}}")
        .file(
            "raymond.yaml",
            b"name: greeting\ninputs:\n  - { name: tone, description: The tone }\n",
        )
        .rule(always().reply("<result>ok</result>"));
    let page = test.serve(&[]);
    let folder = test.flow().canonicalize().expect("real").display().to_string();
    assert_eq!(page.client.document("/api/workflows"), json!({ "workflows": [] }));
    let refused = page.client.act("start", &json!({ "folder": folder, "inputs": {} }));
    assert_eq!(refused.status, 409, "{refused:?}");
    test.run(&["START.md", "--var", "tone=dry", "--input", "me"]).ok();
    let offered = page.client.document("/api/workflows");
    let workflow = &offered["workflows"][0];
    assert_eq!(
        (&workflow["name"], &workflow["inputs"][0]["name"]),
        (&json!("greeting"), &json!("tone"))
    );
    let inputs = json!({ "input": "you", "tone": "--dry-run" });
    let made = page.client.act("start", &json!({ "folder": folder, "inputs": inputs }));
    assert_eq!(made.status, 200, "{made:?}");
    let run = made.json()["run"].as_str().expect("a run").to_owned();
    let mut stream = page.client.stream(&format!("/api/runs/{run}/events"), None);
    stream.until("run", |run| run["status"] == "completed");
    assert_eq!(test.prompts(), ["start me dry", "start you --dry-run"]);
}

#[test]
fn fact_is_asserted_and_retracted() {
    let test = Test::new();
    let page = test.serve(&[]);
    let body = json!({ "label": "ready", "key": "k", "value": "v" });
    assert_eq!(page.client.act("signal", &body).json()["changed"], true);
    let facts = test.raymond(&["facts", "--json"]).ok().json();
    assert_eq!(facts[0]["value"], "v", "{facts}");
    let body = json!({ "label": "ready", "key": "k", "retract": true });
    assert_eq!(page.client.act("signal", &body).json()["changed"], true);
}

#[test]
fn body_that_does_not_fit_is_refused_with_its_field() {
    let test = Test::new();
    let page = test.serve(&[]);
    let refused = |body| {
        let reply = page.client.act("retry", &body);
        (reply.status, reply.json()["field"].clone())
    };
    assert_eq!(refused(json!({})), (400, json!("run")));
    assert_eq!(refused(json!({ "run": "t", "agnet": "main" })), (400, json!("agnet")));
    assert_eq!(refused(json!({ "run": "t", "dry_run": "yes" })), (400, json!("dry_run")));
    assert_eq!(refused(json!(["t"])), (400, json!(null)));
}
