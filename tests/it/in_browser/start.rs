//! A trusted workflow is started by its form, and a refused value is told where it stands.

use serde_json::json;

use super::Browser;
use crate::support::{Test, always};

/// The head of a prompt that leads to a script, which needs trust.
const LEADS_ON: &str = "---\nallowed_transitions:\n  - { tag: goto, target: END.sh }\n---\n";

#[test]
fn trusted_workflow_is_started_by_its_form() {
    let manifest = "name: greeting\ndescription: Greets\ninputs:\n\
                    \x20 - { name: tone, description: The tone }\n\
                    \x20 - { name: place, description: The place, default: here }\n";
    let test = Test::new()
        .prompt("START.md", &format!("{LEADS_ON}start {{{{input}}}} {{{{tone}}}} {{{{place}}}}"))
        .file("END.sh", b"#!/bin/sh\necho '<result>ok</result>'\n")
        .file("raymond.yaml", manifest.as_bytes())
        .env("RAYMOND_TRUST", "false")
        .rule(always().reply("<goto>END.sh</goto>"));
    test.raymond(&["trust", "."]).ok();
    let page = test.serve(&[]);
    let mut browser = Browser::open();
    browser.go(&page.first);
    browser.click("nav a", "Start");
    browser.wait_text("greeting");
    browser.wait_text("tone (needed)");
    browser.picture("start-form");
    let field = |label: &str| {
        format!(
            "[...document.querySelectorAll('form label')].find((one) => one.innerText.startsWith('{label}')).control"
        )
    };
    let write = |browser: &mut Browser, label: &str, text: &str| {
        browser.value(&format!("{}.focus()", field(label)));
        browser.value(&format!("{}.select()", field(label)));
        browser.type_text(text);
    };
    browser.click("form[aria-label=greeting] button.main", "Start");
    let is_told = format!("{}.validity.valueMissing", field("tone"));
    assert_eq!(browser.value(&is_told), true, "an input that is needed is asked for");
    assert_eq!(browser.value("location.pathname"), "/start");

    write(&mut browser, "tone", "--dry-run");
    write(&mut browser, "input", "you");
    write(&mut browser, "Budget in dollars", "lots");
    browser.click("form[aria-label=greeting] button.main", "Start");
    browser.wait_text("write an amount in US dollars");
    let budget = field("Budget in dollars");
    browser.wait("it has the focus", &format!("document.activeElement === {budget}"));
    let told = format!(
        "{budget}.getAttribute('aria-invalid') + document.getElementById({budget}.getAttribute('aria-describedby')).innerText"
    );
    assert_eq!(browser.value(&told), "truewrite an amount in US dollars, such as 2 or 0.50");
    browser.picture("start-refused");
    assert!(test.calls().is_empty());
    write(&mut browser, "Budget in dollars", "2.50");
    browser.wait("the error is gone", &format!("!{budget}.hasAttribute('aria-invalid')"));

    browser.click("form[aria-label=greeting] button.main", "Start");
    browser.wait("the run", "location.pathname.startsWith('/runs/')");
    browser.wait_text("completed");
    browser.wait_text("of $2.50");
    assert_eq!(test.prompts(), ["start you --dry-run here"]);
}

#[test]
fn workflow_that_changed_meanwhile_tells_what_it_needs_at_the_field() {
    let declared =
        |required: &str| format!("name: greeting\ninputs:\n  - {{ name: tone, {required} }}\n");
    let test = Test::new()
        .prompt("START.md", &format!("{LEADS_ON}start {{{{tone}}}}"))
        .file("END.sh", b"#!/bin/sh\necho '<result>ok</result>'\n")
        .file("raymond.yaml", declared("required: false").as_bytes())
        .rule(always().reply("<goto>END.sh</goto>"));
    test.raymond(&["trust", "."]).ok();
    let page = test.serve(&[]);
    let mut browser = Browser::open();
    browser.go(&page.first);
    browser.click("nav a", "Start");
    browser.wait_text("greeting");
    std::fs::write(test.flow().join("raymond.yaml"), declared("required: true")).expect("written");
    browser.click("form[aria-label=greeting] button.main", "Start");
    browser.wait_text("this input is needed");
    assert!(test.calls().is_empty());
}

#[test]
fn values_that_no_command_takes_are_refused_by_name() {
    let test = Test::new().prompt("START.md", "start").rule(always().reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    let page = test.serve(&[]);
    let folder = test.flow().canonicalize().expect("real").display().to_string();
    for (inputs, field, status) in [
        (json!({ "input": "a\0b" }), "inputs.input", 409),
        (json!({ "input": "x".repeat(200_000) }), "inputs.input", 409),
        (json!({ "n": 3 }), "inputs.n", 409),
        (json!(["x"]), "inputs", 400),
    ] {
        let refused = page.client.act("start", &json!({ "folder": folder, "inputs": inputs }));
        assert_eq!(
            (refused.status, &refused.json()["field"]),
            (status, &json!(field)),
            "{refused:?}"
        );
    }
    assert_eq!(test.calls().len(), 1);
}
