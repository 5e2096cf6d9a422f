//! A run of 10,000 agents: only visible rows exist, and all of them are reached by wheel, keys and filters.

use serde_json::json;

use super::Browser;
use crate::support::Test;

/// The number of agents that are forked.
const MANY: usize = 10_000;

/// Returns a workflow whose first agent forks so many. They end one after the other, slowly.
fn large() -> Test {
    let items: Vec<String> = (0..MANY).map(|number| format!("item {number}")).collect();
    let replies = "START.md:\n  - '<fork next=\"NEXT.md\" each=\"items.json\">WORKER.md</fork>'\n\
                   WORKER.md:\n  - { reply: '<result>worked</result>', delay: 500ms, repeat: true }\n";
    Test::new()
        .prompt("START.md", &format!("---\nmax_fan_out: {MANY}\n---\nstart"))
        .prompt("WORKER.md", "work on {{item}}")
        .prompt("NEXT.md", "---\njoin: all\n---\nnext")
        .file("items.json", json!(items).to_string().as_bytes())
        .file("replies.yaml", replies.as_bytes())
}

#[test]
fn ten_thousand_agents_are_followed_as_the_rows_that_are_seen() {
    let test = large();
    let limits = ["--max-agents", "11000", "--max-procs", "2"];
    let mut live = test.spawn(&[&["START.md", "--agent", "scripted"], &limits[..]].concat());
    live.wait_event("step_finished", 2);
    let page = test.serve(&[]);
    let mut browser = Browser::open();
    browser.go(&page.first);
    browser.go(&format!("http://{}/runs/t", page.client.address));
    browser.wait_text("10,001 agents");
    let family = "document.querySelector('.row.family')?.ariaExpanded";
    browser.wait("it is folded", &format!("{family} === 'false'"));
    let folded = browser.value("document.querySelector('.space').offsetHeight");
    assert!(folded.as_u64().is_some_and(|height| height < 36 * 20), "{folded}");
    let ended = "Number(/✓ ([\\d,]+)/.exec(document.querySelector('.kinds').innerText)?.[1].replaceAll(',', ''))";
    let before = browser.value(ended);
    browser.wait("it is followed", &format!("{ended} > {before} + 5"));

    browser.click(".row.family", "10,000 agents");
    browser.wait("the members", "document.querySelector('.space').offsetHeight > 36 * 10000");
    browser.wheel(".rows", 1_000_000);
    let last = "[...document.querySelectorAll('.row')].some((one) => one.ariaPosInSet === '10002')";
    browser.wait("the last row", last);
    let rows = browser.value("document.querySelectorAll('.row').length");
    assert!(rows.as_u64().is_some_and(|rows| rows < 80), "{rows}");
    browser.wheel(".rows", -1_000_000);
    browser.wait("the first row", "document.querySelector('.row[data-index=\"0\"]')");

    browser.click(".row.family", "10,000 agents");
    browser.wait("it is folded again", &format!("{family} === 'false'"));
    browser.value("document.querySelector('.rows').focus()");
    browser.key("ArrowRight");
    browser.wait("it is unfolded", &format!("{family} === 'true'"));
    browser.key("End");
    browser.wait("the last row", "document.querySelector('.row.active')?.ariaPosInSet === '10002'");

    browser.click("input[aria-label='Filter agents']", "");
    browser.type_text("main.999");
    browser.wait_text("11 of 10,001 agents");
    browser.click(".kinds button", "queued");
    browser.wait("the kind is chosen", "document.querySelector('.kinds [aria-pressed=true]')");
    browser.click(".row a.id", "main.9990");
    browser.wait("its page", "location.pathname === '/runs/t/agents/main.9990'");
    browser.wait_text("item 9989");
    browser.assert_calm();
    live.kill9();
}
