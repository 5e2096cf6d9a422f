//! The specification's own example, unchanged, and the commands about it.

use serde_json::json;

use super::{holds, outcome, route, signal};
use crate::support::{Test, when};

const SEED: &[u8] =
    include_bytes!("../../../crates/lang/src/program/tests/planner-worker-review.lisp");

const FILE: &str = "planner-worker-review.lisp";

fn seed() -> Test {
    Test::new()
        .file(FILE, SEED)
        .rule(when("Share your plan").reply("shared").cost(0.01))
        .rule(when("Review").hold_before("reviewed").reply("do better").once().cost(0.02))
        .rule(when("Review").hold_before("again").reply("good").cost(0.02))
        .rule(when("Planner feedback").reply("better").cost(0.03))
}

const PROMPTS: [&str; 4] = [
    "Share your plan with implementer: the plan",
    "Review implementer's changes:",
    "Planner feedback:\ndo better",
    "Review implementer's changes:\nbetter",
];

#[test]
fn seed_program_completes_with_signals_sent_before_and_during_the_run() {
    let test = seed();
    signal(&test, "plan/ready", "t", "");
    let mut live = test.spawn(&[FILE]);
    live.wait_for("it waits for the summary", |test| {
        route(test, "main").iter().any(|at| at.contains("plan/summary"))
    });
    signal(&test, "plan/summary", "t", "the plan");
    live.wait_calls(2);
    test.release("reviewed");
    live.wait_calls(4);
    signal(&test, "review/satisfied", "other", "");
    signal(&test, "review/satisfied", "t", "");
    test.release("again");
    let ended = live.wait();
    ended.ok();
    assert_eq!(
        outcome(&ended, "main"),
        json!({"workflow": "planner-worker-review", "status": "completed", "state": "complete"})
    );
    assert_eq!(test.prompts(), PROMPTS);
    let calls = test.calls();
    calls[0].assert_fresh();
    calls[1].assert_resumes(&calls[0]);
    calls[2].assert_fresh();
    calls[3].assert_resumes(&calls[1]);
    assert_eq!(
        route(&test, "main"),
        [
            "handoff waiting (signal plan/summary :key t)",
            "handoff waiting (transcript-response :request-id handoff-request)",
            "review waiting (transcript-response :request-id review-request)",
            "review waiting (transcript-response :request-id implementer-fix)",
            "review waiting (transcript-response :request-id review-request)",
            "complete completed",
        ]
    );
    assert_eq!(super::logged(&test).len(), 1, "nothing has been asked of the implementer at first");
    for (event, count) in [
        ("program_started", 1),
        ("role_requested", 4),
        ("role_responded", 4),
        ("program_logged", 1),
    ] {
        assert_eq!(test.events(event).len(), count, "{event}");
    }
    test.assert_no_survivors();
}

/// Returns a test with the whole conversation, under scripted replies.
fn scripted() -> Test {
    let replies = format!(
        "{FILE}#planner: [shared, {{reply: good, cost: 0.25}}]\n{FILE}#implementer: [never]\n"
    );
    let test = Test::new().file(FILE, SEED).file("replies.yaml", replies.as_bytes());
    for (label, value) in
        [("plan/ready", ""), ("plan/summary", "the plan"), ("review/satisfied", "")]
    {
        signal(&test, label, "t", value);
    }
    test
}

#[test]
fn each_command_shows_the_scripted_conversation() {
    let test = scripted();
    test.run(&[FILE, "--agent", "scripted"])
        .ok()
        .stderr_has("nothing has been asked of implementer");
    assert_eq!(test.calls().len(), 0);
    let watched = test.raymond(&["workflow", "watch", "t"]);
    watched.ok();
    for part in [
        "(workflow-instance main :definition planner-worker-review :label t)",
        "(agent-request main#1/handoff-request/1 :to planner)\n    Share your plan with implementer: the plan\n",
        "(agent-response main#1/review-request/1 :status answered :cost $0.25)\n    good\n",
        "(workflow/log main :level warning \"(artifact implementer) is empty",
        "(assert review/satisfied :key t :value \"\")",
        "(workflow/state main :state review :status waiting :awaiting \"(transcript-response :request-id review-request)\" :iteration 1)",
        "(workflow/state main :state complete :status completed)",
    ] {
        watched.stdout_has(part);
    }
    let lines = test.raymond(&["workflow", "watch", "t", "--json"]).ok().json_lines();
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap_or("")).collect();
    assert!(events.contains(&"role_requested") && !events.contains(&"step_finished"), "{events:?}");
    test.raymond(&["log", "t"]).ok().stdout_has("planner answers (review-request): good");
    test.raymond(&["status", "t"]).ok().stdout_has("completed");
    assert_eq!(test.status()["total_cost_usd"], json!(0.25));
    test.raymond(&["tree", "t"]).ok().stdout_has("main.1");
    test.raymond(&["show", "t", "main.1"]).ok().stdout_has("answers (review-request): good");
    test.raymond(&["show", "t", "main"]).ok();
    test.raymond(&["costs", "t"]).ok().stdout_has(&format!("{FILE}#planner"));
    test.raymond(&["facts", "t"]).ok().stdout_has("plan/summary");
    assert_eq!(holds(&test).len(), 3);
}

#[test]
fn defined_workflow_is_started_by_its_name_and_listed() {
    let test = Test::new().file(FILE, SEED);
    let test = test.file("replies.yaml", format!("{FILE}#planner: [shared, good]\n").as_bytes());
    let defined = test.raymond(&["workflow", "define", FILE]);
    defined.ok().stdout_has("planner-worker-review is defined");
    let words = ["workflow", "start", "planner-worker-review", "--id", "t", "--agent", "scripted"];
    test.raymond(&words).ok().stdout_has("t");
    for (label, value) in
        [("review/satisfied", ""), ("plan/summary", "the plan"), ("plan/ready", "")]
    {
        signal(&test, label, "t", value);
    }
    test.raymond(&["workflow", "watch", "t"]).ok().stdout_has(":state complete :status completed");
    let listed = test.raymond(&["workflow", "list"]);
    listed.ok().stdout_lacks("definitions").stderr_has("`raymond` lists the defined programs");
    let rows: Vec<Vec<&str>> =
        listed.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows,
        [
            vec!["run", "status", "program", "state"],
            vec!["t", "completed", "planner-worker-review"]
        ]
    );
    test.shell("cd ..; \"$0\"").wait().ok().stdout_has("planner-worker-review");
    let listed = test.raymond(&["workflow", "list", "--json"]).ok().json();
    assert_eq!(listed["definitions"][0]["name"], "planner-worker-review");
    let run = &listed["runs"][0];
    assert_eq!((&run["run"], &run["status"]), (&json!("t"), &json!("completed")));
    assert_eq!(run["programs"], json!(["planner-worker-review"]));
    assert_eq!(run["executions"], json!([]), "it has ended");
    test.assert_no_survivors();
}
