//! Questions are answered in place, on a phone's width and by keys.

use super::Browser;
use crate::support::{Test, always, when};

/// Returns a run in which two agents ask, one of them with options.
fn asking() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next {{answer}}")
        .prompt("OTHER.md", "other")
        .rule(when("start").reply(r#"<fork next="OTHER.md">OTHER.md</fork>"#))
        .rule(when("other").reply(r#"<ask next="NEXT.md">What now?</ask>"#))
        .rule(always().reply("<result>ok</result>"))
}

#[test]
fn question_is_answered_with_two_taps_on_a_narrow_screen() {
    let test = asking();
    test.run(&["START.md"]).code(2);
    let page = test.serve(&[]);
    let mut browser = Browser::open();
    browser.size(360, 640);
    browser.go(&page.first);
    browser.wait("the count", "document.getElementById('needs-count').innerText === '2'");
    browser.click("nav a", "Needs you");
    browser.wait_text("What now?");
    browser.picture("question-narrow");
    let is_narrow = browser.value("document.documentElement.scrollWidth <= 360");
    assert_eq!(is_narrow, true, "nothing is wider than the screen");
    browser.click(".question textarea", "");
    browser.type_text("to the left");
    browser.click(".question button.main", "Answer");
    browser.wait_said("is answered");
    browser.wait("one is left", "document.getElementById('needs-count').innerText === '1'");
    let given = test.raymond(&["answer", "t", "--json"]).ok().json();
    assert_eq!(
        given["questions"].as_array().map(Vec::len),
        Some(1),
        "the answer waits in the inbox"
    );
    test.resume(&["--on-wait", "exit"]).code(2);
    assert!(test.prompts().contains(&"next to the left".to_owned()));
    browser.assert_calm();
}

#[test]
fn text_that_is_being_written_is_not_interrupted_by_what_happens() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("OTHER.md", "other")
        .prompt("NEXT.md", "next {{answer}}")
        .prompt("WORKER.md", "work")
        .rule(when("start").reply(r#"<fork next="OTHER.md">WORKER.md</fork>"#))
        .rule(when("other").reply(r#"<ask next="NEXT.md">What now?</ask>"#))
        .rule(when("work").hold_before("go").reply("<result>worked</result>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    let page = test.serve(&[]);
    let mut browser = Browser::open();
    browser.go(&page.first);
    browser.go(&format!("http://{}/runs/t", page.client.address));
    browser.wait_text("What now?");
    browser.click(".asks textarea", "");
    browser.type_text("to the ");
    test.release("go");
    browser.wait(
        "more has happened",
        "document.querySelector('.kinds').innerText.includes('finished')",
    );
    browser.type_text("left");
    assert_eq!(browser.value("document.querySelector('.asks textarea').value"), "to the left");
    live.wait().code(2);
    browser.assert_calm();
}

#[test]
fn turns_are_chosen_and_dialogs_left_by_keys() {
    let test = asking();
    test.run(&["START.md"]).code(2);
    let page = test.serve(&[]);
    let mut browser = Browser::open();
    browser.go(&page.first);
    browser.value("document.querySelector('a.skip').focus()");
    browser.key("Enter");
    browser.wait("the content", "document.activeElement.id === 'main'");
    browser.go(&format!("http://{}/runs/t#timeline", page.client.address));
    browser.wait_text("turns that ended");
    browser.value("document.querySelector('canvas').focus()");
    browser.key("ArrowDown");
    browser.wait_text("main step 1 in START.md");
    for _ in 0..5 {
        browser.key("ArrowDown");
    }
    browser.wait_text("main.1 step");
    browser.key("Enter");
    browser.wait("its page", "location.pathname === '/runs/t/agents/main.1'");
    browser.wait("its buttons", "document.querySelector('.head .actions button')");
    browser.value("[...document.querySelectorAll('.actions button')].find((one) => one.innerText === 'Tell').focus()");
    browser.key("Enter");
    browser.wait("the dialog", "document.activeElement.matches('dialog textarea')");
    browser.key("Escape");
    browser.wait("the button", "document.activeElement.innerText === 'Tell'");
    browser.assert_calm();
}

#[test]
fn keys_reach_everything() {
    let test = asking();
    test.run(&["START.md"]).code(2);
    let page = test.serve(&[]);
    let mut browser = Browser::open();
    browser.go(&page.first);
    browser.go(&format!("http://{}/runs/t", page.client.address));
    browser.wait("the tree", "document.querySelectorAll('.row').length === 2");
    browser.value("document.querySelector('.rows').focus()");
    browser.key("ArrowDown");
    browser.wait("the second row", "document.querySelector('.row.active')?.dataset.index === '1'");
    browser.key("Enter");
    browser.wait("its page", "location.pathname.startsWith('/runs/t/agents/main')");
    browser.value("history.back()");
    browser.wait("the run again", "location.pathname === '/runs/t'");
    browser.value("document.getElementById('tab-agents').focus()");
    browser.key("ArrowRight");
    browser.wait("the next tab", "document.activeElement.id === 'tab-graph' && document.activeElement.ariaSelected === 'true'");
    let unnamed = "[...document.querySelectorAll('button, a, input, textarea')].filter((one) => !(one.innerText || one.ariaLabel || one.labels?.length)).map((one) => one.outerHTML).join()";
    assert_eq!(browser.value(unnamed), "", "everything has a name");
}
