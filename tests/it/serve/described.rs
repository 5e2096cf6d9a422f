//! The description of the addresses is the one of the server.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::serve::http::PageReply;
use crate::support::pair;

#[test]
fn every_described_address_answers_as_described() {
    let test = pair();
    test.run(&["START.md"]).ok();
    let page = test.serve(&[]);
    let document = page.client.document("/api/openapi.json");
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().expect("paths");
    for (path, operations) in paths {
        let real = path
            .replace("{run}", "t")
            .replace("{agent}", "main")
            .replace("{step}", "1")
            .replace("{turn}", "0");
        let operations = operations.as_object().expect("operations");
        for (method, operation) in operations {
            assert!(operation["summary"].is_string(), "{method} {path} has a summary");
            if method == "post" {
                let name = path.rsplit('/').next().expect("a name");
                let reply = page.client.act(name, &serde_json::json!({}));
                assert_eq!(reply.status, 400, "{path}: {reply:?}");
                continue;
            }
            let media: BTreeSet<&String> = operation["responses"]["200"]["content"]
                .as_object()
                .expect("a content")
                .keys()
                .collect();
            if media.contains(&"text/event-stream".to_owned()) {
                page.client.stream(&real, None).until("whole", |_| true);
            } else {
                let reply = page.client.get(&real);
                let is_described = reply.status == 200
                    || operation["responses"].get(reply.status.to_string()).is_some();
                assert!(is_described, "{path}: {reply:?}");
                assert_described(path, &document, operation, &reply);
            }
        }
    }
}

/// Checks that a reply is as its description has it.
fn assert_described(path: &str, document: &Value, operation: &Value, reply: &PageReply) {
    let responses = &operation["responses"][reply.status.to_string()];
    let mut schema = responses["content"]["application/json"]["schema"].clone();
    schema["components"] = document["components"].clone();
    let validator = jsonschema::validator_for(&schema).expect("it is a schema");
    let body = reply.json();
    let errors: Vec<String> = validator
        .iter_errors(&body)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{path}: {errors:#?}\n{body}");
}
