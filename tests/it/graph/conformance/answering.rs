//! Questions to people: the ways to answer, what an answer is, and what is stored of it.

use serde_json::{Value, json};

use super::super::{graph, node, payload, route, run, test};
use crate::support::{RaymondOutcome, Test};

/// The rows below, each asserted by name.
pub(super) const NAMES: [&str; 22] = [
    "an answer by id",
    "an answer by number",
    "an answer by label in any case",
    "a free text where other exists",
    "a free text without other is refused",
    "an option stores its id",
    "an option stores raw.selected",
    "a free text stores other as id",
    "a free text stores raw.text",
    "raw as a text is the given text",
    "raw.text of an option does not exist",
    "answers from a file",
    "a list of answers for a loop",
    "without an answer the run waits with exit 2",
    "the question is JSON on stdout",
    "raymond answer and a resume",
    "a wrong answer is refused and the question stays",
    "the first valid answer wins",
    "the question is durable",
    "consequences are done before the next node",
    "a failed consequence takes on_failure of its response",
    "texts of a question are filled",
];

fn named(name: &str, holds: bool) {
    assert!(NAMES.contains(&name), "no row {name}");
    assert!(holds, "{name}");
}

/// Returns a graph that asks which kind of source, and tells what is stored of the answer.
fn asking(free: bool) -> Value {
    let option = |id: &str, label: &str| json!({"id": id, "label": label, "description": label});
    let mut responses = json!({
        "git": {
            "consequence": [{"type": "set_state", "field": "kind", "value": "${user_responses.start.raw}"}],
            "next_node": "done",
        },
        "web": {
            "consequence": [{"type": "read_file", "path": "gone", "store_as": "x"}],
            "next_node": "done", "on_failure": "after",
        },
    });
    if free {
        responses["other"] = json!({"next_node": "done"});
    }
    let mut all = graph(json!({
        "start": {
            "type": "user_prompt",
            "prompt": {
                "question": "Which of ${count}?", "header": "Kind",
                "options": [option("git", "Git repository"), option("web", "The ${site}")],
            },
            "on_response": responses,
        },
        "after": node(json!([]), "done"),
    }));
    all["initial_state"] = json!({"kind": null, "count": 2, "site": "Web"});
    all["endings"]["done"]["summary"] = json!({
        "answer": "${user_responses.start.id}", "raw": "is ${user_responses.start.raw}", "kind": "${kind}",
        "text": "${user_responses.start.raw.text ?? 'none'}",
        "selected": "${user_responses.start.raw.selected ?? 'none'}",
    });
    all
}

fn answered(free: bool, answer: &str) -> (Test, RaymondOutcome) {
    let place = test(&asking(free));
    let outcome = run(&place, &["--answer", &format!("start={answer}")]);
    (place, outcome)
}

fn summary(free: bool, answer: &str) -> Value {
    payload(answered(free, answer).1.ok(), "main")["summary"].clone()
}

#[test]
fn answers_are_ids_numbers_labels_and_free_texts() {
    let by_id = summary(false, "git");
    named("an answer by id", by_id["answer"] == "git");
    named("an option stores its id", by_id["answer"] == "git");
    named("an option stores raw.selected", by_id["selected"] == "git");
    named("raw.text of an option does not exist", by_id["text"] == "none");
    named("consequences are done before the next node", by_id["kind"] == "git");
    named("an answer by number", summary(false, "1")["answer"] == "git");
    let by_label = summary(false, "GIT repository");
    named("an answer by label in any case", by_label["answer"] == "git");
    named("raw as a text is the given text", by_label["raw"] == "is GIT repository");
    let free = summary(true, "something else");
    named("a free text where other exists", free["answer"] == "other");
    named("a free text stores other as id", free["answer"] == "other");
    named("a free text stores raw.text", free["text"] == "something else");
    let (place, outcome) = answered(true, "web");
    outcome.ok();
    let visits = route(&place, "main");
    let failed = visits == ["start failure", "after success"];
    named("a failed consequence takes on_failure of its response", failed);
}

#[test]
fn answers_come_ahead_or_later() {
    let place = test(&asking(false)).file("answers.yaml", b"start: git\n");
    let outcome = run(&place, &["--answers", "answers.yaml"]);
    named("answers from a file", payload(outcome.ok(), "main")["summary"]["answer"] == "git");
    let mut looping = asking(true);
    looping["nodes"]["start"]["on_response"]["other"]["next_node"] = json!("start");
    let place = test(&looping).file("answers.yaml", b"start: [one, two, git]\n");
    run(&place, &["--answers", "answers.yaml"]).ok();
    let expected = ["start other", "start other", "start git"];
    named("a list of answers for a loop", route(&place, "main") == expected);

    let place = test(&asking(false));
    let outcome = run(&place, &[]);
    named("without an answer the run waits with exit 2", outcome.status.code() == Some(2));
    let last: Value =
        serde_json::from_str(outcome.stdout.lines().last().unwrap_or_default()).expect("JSON");
    let question = &last["questions"][0];
    named("the question is JSON on stdout", question["node"] == "start");
    let filled =
        question["question"] == "Which of 2?" && question["options"][1]["label"] == "The Web";
    named("texts of a question are filled", filled);
    let refused = place.raymond(&["answer", "t", "start=nonsense"]);
    let said = refused.stderr.contains("WF504");
    named("a free text without other is refused", said && refused.status.code() != Some(0));
    let still = place.status()["questions"][0]["node"] == "start";
    named("a wrong answer is refused and the question stays", still);
    named("the question is durable", still);
    place.raymond(&["answer", "t", "start=git"]).ok();
    let second = place.raymond(&["answer", "t", "start=web"]);
    let outcome = place.resume(&[]);
    let result = payload(outcome.ok(), "main")["summary"]["answer"].clone();
    named("raymond answer and a resume", result == "git");
    named("the first valid answer wins", result == "git" && second.status.code().is_some());
}
