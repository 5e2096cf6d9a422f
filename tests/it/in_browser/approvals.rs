//! Tool calls that need approval are shown as what they do, and allowed or denied in place.

use serde_json::{Value, json};

use super::Browser;
use crate::serve::ServedPage;
use crate::support::{Test, when};

/// Returns a workflow whose only turn calls a tool that needs approval.
fn calling(tool: &str, input: &Value, rules: &[&str]) -> Test {
    let calls = when("start").asked(tool, input, rules).asked(tool, input, rules);
    Test::new()
        .prompt("START.md", "---\npermissions: ask\n---\nstart")
        .rule(calls.reply("<result>ok</result>"))
}

/// Returns the number of calls that have run.
fn ran(test: &Test) -> usize {
    std::fs::read_to_string(test.fake().join("ran.jsonl")).unwrap_or_default().lines().count()
}

fn open_needs(page: &ServedPage<'_>) -> Browser {
    let mut browser = Browser::open();
    browser.go(&page.first);
    browser.wait("the count", "document.getElementById('needs-count').innerText === '1'");
    browser.click("nav a", "Needs you");
    browser
}

#[test]
fn edit_is_shown_as_a_difference_and_allowed_by_a_tap() {
    let edit = json!({ "file_path": "/w/\u{202e}a", "old_string": "same\nold", "new_string": "same\nnew" });
    let test = calling("Edit", &edit, &[]);
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("approval_asked", 1);
    let page = test.serve(&[]);
    let mut browser = open_needs(&page);
    browser.wait_text("May it run Edit?");
    browser.wait_text("/w/\\u{202e}a");
    let shown =
        |class: &str| format!("document.querySelector('.call .diff .{class}').innerText.trim()");
    for (class, line) in [("removed", "-old"), ("added", "+new"), ("same", "same")] {
        assert_eq!(browser.value(&shown(class)), line);
    }
    browser.picture("approval-edit");
    browser.size(390, 844);
    browser.picture("approval-edit-narrow");
    let fits = browser.value("document.documentElement.scrollWidth <= window.innerWidth");
    assert_eq!(fits, true);
    assert_eq!(ran(&test), 0);
    browser.click("button.option[data-option=allow]", "Allow");
    browser.wait_said("main/a1 is answered");
    live.wait_event("approval_asked", 2);
    browser.wait("the next", "document.querySelector('[data-key=\"main/a2\"] button.option')");
    let others = browser.value("document.body.innerText.includes('Other waits')");
    assert_eq!(others, false, "an approval is told once");
    browser.wait("taps count again", "!document.querySelector('.settling')");
    browser.click("[data-key='main/a2'] button.option[data-option=allow]", "Allow");
    live.wait().ok().ended("main", "ok");
    assert_eq!(ran(&test), 2);
    browser.wait_text("Nobody waits for a person.");
    browser.assert_calm();
}

#[test]
fn call_is_denied_with_a_reason_that_the_agent_gets() {
    let command = format!("touch a{}touch b", "\n".repeat(40));
    let test = calling("Bash", &json!({ "command": command }), &[]);
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("approval_asked", 1);
    let page = test.serve(&[]);
    let mut browser = open_needs(&page);
    browser.wait_text("41 lines: read to the end");
    browser.picture("approval-long");
    browser.click(".question .own textarea", "");
    browser.type_text("not in\nthis folder");
    browser.click(".question .own button", "Deny, and say why");
    browser.wait_said("main/a1 is answered");
    live.wait_event("approval_asked", 2);
    let answered = &test.events("approval_answered")[0];
    assert_eq!(
        (&answered["verdict"], &answered["reason"]),
        (&json!("deny"), &json!("not in\nthis folder"))
    );
    browser.wait("the next", "document.querySelector('[data-key=\"main/a2\"] button.option')");
    browser.wait("taps count again", "!document.querySelector('.settling')");
    browser.click("[data-key='main/a2'] button.option[data-option=deny]", "Deny");
    live.wait().ok().ended("main", "ok");
    assert_eq!(ran(&test), 0);
    let stream = std::fs::read_to_string(test.run_dir().join("steps/main-1-0.jsonl"));
    assert!(stream.expect("a stream").contains(r#""message":"not in\nthis folder""#));
    browser.assert_calm();
}

#[test]
fn rule_is_named_before_it_is_given_and_later_calls_are_not_asked() {
    let test = calling("Bash", &json!({ "command": "touch a" }), &["touch a *"]);
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("approval_asked", 1);
    let page = test.serve(&[]);
    let mut browser = open_needs(&page);
    browser.go(&format!("http://{}/runs/t", page.client.address));
    browser.wait_text("May it run Bash?");
    browser.wait_text("all of Bash(touch a *)");
    browser.click("button.option[data-option=allow-always]", "Always allow in this state");
    live.wait().ok().ended("main", "ok");
    assert_eq!(ran(&test), 2);
    test.raymond(&["rules", "t"]).ok().stdout_has("Bash(touch a *)").stdout_has("START.md");
    browser.wait_text("completed");
    browser.assert_calm();
}
