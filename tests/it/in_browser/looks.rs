//! Pictures of the page, in each width and both colours: nothing is wider than the screen. `RAYMOND_PICTURES=DIR` writes what people look at.

use super::Browser;
use crate::support::crowd;

#[test]
fn pages_fit_into_each_width() {
    let test = crowd();
    let mut live = test.spawn(&["START.md", "--max-procs", "16"]);
    live.wait_crowd();
    let page = test.serve(&[]);
    let mut browser = Browser::open();
    browser.go(&page.first);
    for (look, width, is_dark) in
        [("light", 1200, false), ("dark", 1200, true), ("narrow", 360, false)]
    {
        browser.size(width, if width < 500 { 740 } else { 760 });
        browser.dark(is_dark);
        for (name, path, shown) in [
            ("runs", "/", "live agents"),
            ("run", "/runs/t", "14 agents"),
            ("graph", "/runs/t#graph", "START.md"),
            ("timeline", "/runs/t#timeline", "turns that ended"),
            ("costs", "/runs/t#costs", "Over time"),
            ("log", "/runs/t#log", "run t starts"),
            ("agent", "/runs/t/agents/main.1", "the turn is over"),
            ("needs", "/needs-you", "is parked"),
            ("start", "/start", "Signal"),
        ] {
            browser.go("about:blank");
            browser.go(&format!("http://{}{path}", page.client.address));
            browser.wait_text(shown);
            browser.picture(&format!("{name}-{look}"));
            let fits = browser.value("document.documentElement.scrollWidth <= window.innerWidth");
            assert_eq!(fits, true, "{name} fits into {look}");
        }
    }
    test.release("go");
    live.wait().code(2);
}
