//! A run is opened and watched, also over the end of its server.

use super::Browser;
use crate::support::{Test, always, held, when};

#[test]
fn run_is_opened_by_clicks_and_watched_to_its_end() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    let page = test.serve(&[]);
    let mut browser = Browser::open();
    browser.go(&page.first);
    assert_eq!(browser.value("location.search"), "", "the token is not in the address");
    browser.wait_text("running");
    browser.click(".run a.name", "t");
    browser.wait_text("START.md");
    browser.wait(
        "the agent runs",
        "document.querySelector('[data-agent=main]')?.classList.contains('running')",
    );
    browser.click("button[role=tab]", "Graph");
    browser.wait("the agent is on the picture", "document.querySelector('.graph .pill.running')");
    test.release("go");
    live.wait().ok();
    browser.wait_text("completed");
    browser.wait("no agent is on the picture", "!document.querySelector('.graph .pill')");
    browser.click("button[role=tab]", "Log");
    browser.wait(
        "all records",
        &format!("document.querySelectorAll('.log li').length === {}", test.journal().len()),
    );
    browser.click("button[role=tab]", "Timeline");
    browser.wait_text("2 turns that ended");
    browser.click("button[role=tab]", "Costs");
    browser.wait_text("by state");
    browser.click("button[role=tab]", "Agents");
    browser.click(".row a.id", "main");
    browser.wait_text("The last turn: step 2, turn 1");
    browser.wait_text("<result>ok</result>");
    browser.assert_calm();
}

#[test]
fn page_goes_on_when_its_server_is_killed_and_started_again() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    let page = test.serve(&[]);
    let address = page.client.address.clone();
    let mut browser = Browser::open();
    browser.go(&page.first);
    browser.go(&format!("http://{address}/runs/t#log"));
    browser.wait_text("live");
    browser.wait("the first records", "document.querySelector('.log li')");
    page.server.kill9();
    browser.wait_text("not connected");
    test.release("go");
    live.wait().ok();
    let _again = test.serve(&["--listen", &address]);
    browser.wait_text("completed");
    let numbers = "[...document.querySelectorAll('.log .seq')].map((one) => Number(one.innerText)).reverse().join()";
    let all: Vec<String> = (1..=test.journal().len()).map(|seq| seq.to_string()).collect();
    browser.wait("all records", &format!("{numbers} === '{}'", all.join(",")));
}

#[test]
fn conversation_appears_as_it_is_written() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(when("start").tool("Grep").hold_tool("go").reply("<result>it is found</result>"))
        .rule(always().reply("<result>ok</result>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    let page = test.serve(&[]);
    let mut browser = Browser::open();
    browser.go(&page.first);
    browser.go(&format!("http://{}/runs/t/agents/main", page.client.address));
    browser.wait("the tool", "document.querySelector('.entry.tool')?.innerText.includes('Grep')");
    test.release("go");
    browser.wait_text("it is found");
    browser.wait_text("the turn is over");
    live.wait().ok();
    browser.assert_calm();
}

#[test]
fn what_somebody_has_opened_stays_open_and_keeps_the_focus() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    let page = test.serve(&[]);
    let mut browser = Browser::open();
    browser.go(&page.first);
    browser.go(&format!("http://{}/runs/t/agents/main", page.client.address));
    browser.click(".steps summary", "turn 1");
    browser.wait("its entries", "document.querySelector('.steps .entry.prompt')");
    test.release("go");
    live.wait().ok();
    browser.wait("the next step", "document.querySelectorAll('.steps li').length === 2");
    browser.wait(
        "the end of the turn",
        "document.querySelector('.steps summary').innerText.includes('step finished')",
    );
    let is_kept = "document.activeElement === document.querySelector('.steps summary') && document.querySelector('.steps details').open";
    assert_eq!(browser.value(is_kept), true);
    browser.wait(
        "its reply",
        "document.querySelector('.steps details').innerText.includes('NEXT.md')",
    );
    browser.assert_calm();
}

#[test]
fn browser_without_a_key_shows_what_to_do() {
    let test = held();
    let page = test.serve(&[]);
    let mut browser = Browser::open();
    browser.go(&format!("http://{}/", page.client.address));
    browser.wait_text("This browser has no key");
}
