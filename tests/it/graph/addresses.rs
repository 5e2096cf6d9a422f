//! The addresses that pages may be fetched from.

use serde_json::json;

use super::site::site;
use super::{graph, node, payload, test};

#[test]
fn loopback_address_is_refused_with_hint_to_allow_it() {
    let url = format!("{}/page", site());
    let fetch = json!([{"type": "web_fetch", "url": url, "store_as": "page"}]);
    let place = test(&graph(json!({"start": node(fetch, "done")})));
    let outcome = place.run(&["workflow.yaml"]);
    outcome.code(1).stdout_has(&format!(
        "web_fetch: cannot fetch {url}: 127.0.0.1 is a loopback address, and only public addresses may be fetched"
    ));
    outcome.stdout_has("--allow-address 127.0.0.1");
    let place = test(&graph(json!({"start": node(json!([]), "done")})));
    place
        .run(&["workflow.yaml", "--allow-address", "http://x"])
        .code(64)
        .stderr_has("--allow-address");
}

#[test]
fn allowed_address_is_stored_with_run() {
    let fetch =
        json!([{"type": "web_fetch", "url": format!("{}/page", site()), "store_as": "page"}]);
    let ask = json!({
        "type": "user_prompt",
        "prompt": {
            "question": "Go on?", "header": "Go",
            "options": [
                {"id": "yes", "label": "Yes", "description": "go on"},
                {"id": "no", "label": "No", "description": "do not"},
            ],
        },
        "on_response": {"yes": {"next_node": "fetch"}, "no": {"next_node": "done"}},
    });
    let place = test(&graph(json!({"start": ask, "fetch": node(fetch, "done")})));
    place.run(&["workflow.yaml", "--allow-address", "127.0.0.0/8"]).code(2);
    assert_eq!(place.status()["settings"]["allowed_addresses"], json!(["127.0.0.0/8"]));
    place.raymond(&["answer", "t", "start=yes"]).ok();
    let outcome = place.resume(&[]);
    assert_eq!(payload(outcome.ok(), "main")["type"], "success");
}
