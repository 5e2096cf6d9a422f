//! The buttons of an agent: tell, hold, release, end.

use serde_json::json;

use super::Browser;
use crate::serve::ServedPage;
use crate::support::{Test, always, held, when};

fn open_agent(page: &ServedPage<'_>, agent: &str) -> Browser {
    let mut browser = Browser::open();
    browser.go(&page.first);
    browser.go(&format!("http://{}/runs/t/agents/{agent}", page.client.address));
    browser.wait("its buttons", "document.querySelector('.head .actions button')");
    browser
}

#[test]
fn agent_gets_a_message_with_its_next_prompt() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    let page = test.serve(&[]);
    let mut browser = open_agent(&page, "main");
    browser.click(".actions button", "Tell");
    browser.wait("the field", "document.activeElement.matches('dialog textarea')");
    browser.click("dialog button", "Send");
    browser.wait("nothing is sent", "document.querySelector('dialog[open] textarea:invalid')");
    browser.click("dialog textarea", "");
    browser.type_text("leave the tests alone\nand hurry");
    browser.picture("tell");
    browser.click("dialog button", "Send");
    browser.wait_said("main gets the message with its next request to the model");
    browser.wait("the focus is back", "document.activeElement.innerText === 'Tell'");
    live.wait_event("command_received", 1);
    browser.click(".actions button", "Tell");
    browser.wait("the field", "document.activeElement.matches('dialog textarea')");
    browser.type_text("this is not sent");
    browser.click("dialog button", "Cancel");
    browser.wait("the dialog is gone", "!document.querySelector('dialog')");
    test.release("go");
    live.wait().ok();
    let prompts = test.prompts();
    assert!(prompts[1].contains("leave the tests alone\nand hurry"), "{prompts:?}");
    assert!(!prompts.concat().contains("this is not sent"), "{prompts:?}");
    browser.wait(
        "nothing can be told to who has ended",
        "!document.querySelector('.actions')?.innerText.includes('Tell')",
    );
    browser.assert_calm();
}

#[test]
fn agent_is_held_and_released() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    let page = test.serve(&[]);
    let mut browser = open_agent(&page, "main");
    browser.click(".actions button", "Hold");
    browser.wait_said("main starts nothing new");
    live.wait_event("command_received", 1);
    test.release("go");
    live.wait().code(2).stderr_has("main is held");
    browser.wait("it can be released", "[...document.querySelectorAll('.actions button')].some((one) => one.innerText === 'Release')");
    browser.click("nav a", "Needs you");
    browser.wait_text("is held");
    browser.click(".question button", "Release");
    browser.wait_said("main continues");
    test.resume(&[]).ok().ended("main", "ok");
    assert_eq!(test.calls().len(), 2);
    browser.wait_text("Nobody waits for a person.");
    browser.assert_calm();
}

#[test]
fn agent_is_released_by_its_button() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    test.raymond(&["hold", "t", "main"]).ok();
    live.wait_event("command_received", 1);
    let page = test.serve(&[]);
    let mut browser = open_agent(&page, "main");
    browser.click(".actions button", "Release");
    browser.wait_said("main continues");
    live.wait_event("command_received", 2);
    test.release("go");
    live.wait().ok().ended("main", "ok");
    browser.assert_calm();
}

#[test]
fn agent_is_ended_after_a_second_thought() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "---\njoin: all\n---\nnext")
        .prompt("WORKER.md", "work")
        .rule(when("start").reply(r#"<fork next="NEXT.md">WORKER.md</fork>"#))
        .rule(when("work").hold_before("never").reply("<result>worked</result>"))
        .rule(always().reply("<result>led</result>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_for("the worker", |test| !test.calls_with("work").is_empty());
    let page = test.serve(&[]);
    let mut browser = open_agent(&page, "main.1");
    browser.click(".actions button", "End");
    browser.wait("the safe answer has the focus", "document.activeElement.value === 'no'");
    browser.key("Enter");
    browser.wait("the dialog is gone", "!document.querySelector('dialog')");
    assert!(test.events("command_received").is_empty());
    browser.click(".actions button", "End");
    browser.click("dialog button", "Yes");
    browser.wait_said("main.1 ends");
    live.wait();
    let failed = &test.events("agent_failed")[0];
    assert_eq!((&failed["agent"], &failed["cause"]), (&json!("main.1"), &json!("stopped")));
    browser.wait("its state", "document.querySelector('.status').innerText === 'failed'");
    browser.wait(
        "it can be retried",
        "document.querySelector('.actions').innerText.includes('Retry')",
    );
    browser.assert_calm();
}
