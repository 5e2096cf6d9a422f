//! A run of many agents: only visible rows exist, and scrolling stays fluid.

use serde_json::json;

use super::Browser;
use crate::support::{Test, always, when};

#[test]
fn many_agents_are_shown_as_the_rows_that_are_seen() {
    let list: Vec<String> = (0..400).map(|number| format!("\"i{number}\"")).collect();
    let fork = format!(
        "<fork each=\"item\" next=\"NEXT.md\" to=\"WORKER.md\">[{}]</fork>",
        list.join(",")
    );
    let _ = fork;
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("WORKER.md", "work")
        .prompt("NEXT.md", "---\njoin: all\n---\nnext")
        .rule(when("start").reply(&format!(
            "<fork each=\"[{}]\" next=\"NEXT.md\">WORKER.md</fork>",
            list.join(",").replace('"', "&quot;")
        )))
        .rule(when("work").reply("<result>worked</result>"))
        .rule(always().reply("<result>ok</result>"));
    test.run(&["START.md", "--max-procs", "8"]).ok();
    let page = test.serve(&[]);
    let mut browser = Browser::open();
    browser.go(&page.first);
    browser.go(&format!("http://{}/runs/t", page.client.address));
    browser.wait_text("401 agents");
    browser.click(".row.family", "400 agents");
    browser.wait("the members", "document.querySelector('.space').offsetHeight > 14000");
    let rows = browser.value("document.querySelectorAll('.row').length");
    assert!(rows.as_u64().is_some_and(|rows| rows < 80), "{rows}");
    browser.value("document.querySelector('.rows').focus()");
    browser.key("End");
    browser.wait("the last row", "document.querySelector('.row.active')?.ariaPosInSet === '402'");
    let search = json!("i399");
    browser.click("input[aria-label='Filter agents']", "");
    browser.type_text("main.39");
    browser.wait_text("12 of 401 agents");
    let _ = search;
    browser.assert_calm();
}
