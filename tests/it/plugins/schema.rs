//! The JSON Schema of the protocol: all messages fit the schema that `raymond schema` prints, and it equals
//! the kept copy.

use std::path::Path;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::{lines, says, told, with};
use crate::support::{Test, always, when};

fn schema(part: &[&str]) -> Validator {
    let printed = Test::new().raymond(&[&["schema"], part].concat()).ok().json();
    jsonschema::validator_for(&printed).expect("it is a schema")
}

#[track_caller]
fn fits(schema: &Validator, value: &Value) {
    let errors: Vec<String> = schema.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{value:#}\n{errors:#?}");
}

#[test]
fn printed_schema_equals_committed_copy() {
    // `RAYMOND_RENEW=1 cargo test --test it schema` writes the copy anew. Within a version of the protocol the
    // schema may only grow.
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/plugin-v2.json");
    let printed = Test::new().raymond(&["schema"]).ok().stdout.clone();
    if std::env::var_os("RAYMOND_RENEW").is_some() {
        std::fs::create_dir_all(kept.parent().expect("a folder")).expect("made");
        std::fs::write(&kept, &printed).expect("written");
    }
    let known = std::fs::read_to_string(kept).expect("a copy is kept");
    assert!(
        known == printed,
        "the protocol of plug-ins has changed; if it is to, renew its copy: RAYMOND_RENEW=1 cargo test --test it schema"
    );
}

#[test]
fn messages_in_both_directions_fit_the_schema() {
    let verdicts = "hello('start', 'transition')
answers = [dict(verdict='proceed'), dict(verdict='hold', until='2026-01-15T14:30:22Z', reason='x'),
    dict(verdict='hold', **{'for': '1ms'}), dict(verdict='proceed'),
    dict(verdict='override', transition=dict(tag='goto', target='NEXT.md'))]
for message in told():
    if message['type'] == 'consult':
        answer(message, **(answers.pop(0) if answers else dict(verdict='stop', reason='enough', scope='agent')))
";
    let (all, out) = (schema(&[]), schema(&["host-message"]));
    let back = schema(&["plugin-message"]);
    let (record, verdict) = (schema(&["record"]), schema(&["verdict"]));
    let question = schema(&["consult"]);
    let test = with(verdicts, "");
    test.run(&["START.md"]).code_in(&[0, 1]);
    for line in lines(&test, "told.jsonl") {
        fits(&all, &line);
        fits(&out, &line);
    }
    for line in told(&test, "consult") {
        fits(&question, &line["question"]);
    }
    for line in lines(&test, "said.jsonl") {
        fits(&all, &line);
        fits(&back, &line);
        if line["type"] == "verdict" {
            fits(&verdict, &line);
        }
    }
    for line in test.journal() {
        fits(&record, &line);
    }
}

#[test]
fn records_of_forks_failures_and_rejections_fit_the_schema() {
    let record = schema(&["record"]);
    let test = with(&says("start", "verdict='proceed'"), "")
        .prompt(
            "WORKER.md",
            "---\nsupervision: { restart: permanent, max_restarts: 1 }\nbudget: 0.5\n---\nwork",
        )
        .prompt("CHECK.md", "---\nallowed_transitions:\n  - { tag: result }\n---\ncheck");
    test.script(&[
        when("start").reply(r#"<fork next="CHECK.md" item="x">WORKER.md</fork>"#).cost(0.02),
        when("work").once().exit(1),
        when("work").reply("<result>worked</result>"),
        when("check").once().reply("<goto>NEXT.md</goto>"),
        always().reply("<result>well</result>"),
    ]);
    let options =
        ["START.md", "--var", "a=b", "--budget", "5", "--model", "haiku", "--max-procs", "3"];
    test.run(&options).code_in(&[0, 1]);
    let journal = test.journal();
    for line in &journal {
        fits(&record, line);
    }
    for event in ["run_started", "step_finished", "turn_failed", "turn_rejected"] {
        assert!(journal.iter().any(|line| line["event"] == event), "{event}");
    }
}

#[test]
fn former_names_of_schemas_print_the_same_schema() {
    let test = Test::new();
    for (former, name) in [("told", "host-message"), ("said", "plugin-message")] {
        let printed = |name: &str| test.raymond(&["schema", name]).ok().json();
        assert_eq!(printed(former), printed(name));
    }
}

#[test]
fn schema_rejects_each_invalid_message() {
    let said = schema(&["plugin-message"]);
    let right = json!({"type": "verdict", "id": 1, "verdict": "hold", "for": "30s"});
    fits(&said, &right);
    for (key, value) in [
        ("verdict", json!("maybe")),
        ("id", json!("1")),
        ("type", json!("x")),
        ("for", json!("soon")),
    ] {
        let mut wrong = right.clone();
        wrong[key] = value;
        assert!(!said.is_valid(&wrong), "{wrong}");
    }
    let record = schema(&["record"]);
    assert!(!record.is_valid(&json!({"seq": 1, "at": "2026-01-15T14:30:22Z", "event": "danced"})));
}
