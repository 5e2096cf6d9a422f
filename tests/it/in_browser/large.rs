//! A run of many agents: only visible rows exist, and the page stays as quick as that of a small one.

use super::Browser;
use crate::support::Test;

/// The number of agents that are forked.
const MANY: usize = 2000;

#[test]
fn many_agents_are_shown_as_the_rows_that_are_seen() {
    let items: Vec<String> = (0..MANY).map(|number| format!("item {number}")).collect();
    let replies = "START.md:\n  - '<fork next=\"NEXT.md\" each=\"items.json\">WORKER.md</fork>'\n\
                   WORKER.md:\n  - { reply: '<result>worked</result>', cost: 0.001, repeat: true }\n\
                   NEXT.md:\n  - <result>ok</result>\n";
    let test = Test::new()
        .prompt("START.md", &format!("---\nmax_fan_out: {MANY}\n---\nstart"))
        .prompt("WORKER.md", "work on {{item}}")
        .prompt("NEXT.md", "---\njoin: all\n---\nnext")
        .file("items.json", serde_json::json!(items).to_string().as_bytes())
        .file("replies.yaml", replies.as_bytes());
    let options = ["START.md", "--agent", "scripted", "--max-agents", "9000", "--max-procs", "20"];
    test.run(&options).ok();
    let page = test.serve(&[]);
    let mut browser = Browser::open();
    browser.go(&page.first);
    browser.go(&format!("http://{}/runs/t", page.client.address));
    browser.wait_text("2,001 agents");
    browser.click(".row.family", "2,000 agents");
    browser.wait("the members", "document.querySelector('.space').offsetHeight > 36 * 2000");
    let rows = browser.value("document.querySelectorAll('.row').length");
    assert!(rows.as_u64().is_some_and(|rows| rows < 80), "{rows}");
    browser.value("document.querySelector('.rows').focus()");
    browser.key("End");
    browser.wait("the last row", "document.querySelector('.row.active')?.ariaPosInSet === '2002'");
    browser.click("input[aria-label='Filter agents']", "");
    browser.type_text("main.199");
    browser.wait_text("11 of 2,001 agents");
    browser.assert_calm();
}
