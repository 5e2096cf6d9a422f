//! Texts of models are never HTML, wherever they stand.

use serde_json::json;

use super::Browser;
use crate::support::{Test, always, held, when};

const EVIL: &str = "<img src=x onerror=document.title='hacked'><script>document.title='hacked'</script>\u{202e}&amp;";

#[test]
fn hostile_texts_stay_texts_everywhere() {
    let test = Test::new()
        .prompt("START.md", &format!("start {EVIL}"))
        .prompt("WORKER.md", "work {{item}}")
        .prompt("NEXT.md", "next {{answer}}")
        .rule(when("start").reply(&format!(
            "<fork next=\"NEXT.md\" item=\"{}\">WORKER.md</fork>",
            EVIL.replace('<', "&lt;").replace('\'', "&apos;")
        )))
        .rule(when("work").tool("Grep").reply(&format!("<result>{EVIL}</result>")))
        .rule(
            when("next").reply("<ask next=\"NEXT.md\">Which of &lt;b&gt; and \u{202e} now?</ask>"),
        )
        .rule(always().reply("<result>ok</result>"));
    test.run(&["START.md"]).code(2);
    let page = test.serve(&[]);
    let at = |path: &str| format!("http://{}{path}", page.client.address);
    let mut browser = Browser::open();
    browser.go(&page.first);
    browser.wait_text("t");
    for (path, shown) in [
        ("/", "1 question"),
        ("/runs/t", "main.1"),
        ("/runs/t#graph", "START.md"),
        ("/runs/t#log", "main.1"),
        ("/runs/t#costs", "by state"),
        ("/runs/t/agents/main", "Prompt"),
        ("/runs/t/agents/main.1", "<img src=x"),
        ("/needs-you", "Which of"),
    ] {
        browser.go("about:blank");
        browser.go(&at(path));
        browser.wait_text(shown);
        browser.wait(
            "what is shown has come",
            "document.getElementById('link-state').dataset.state === 'live'",
        );
        let made =
            browser.value("document.querySelectorAll('main img, main script, [onerror]').length");
        assert_eq!(made, 0, "{path}: no element was made of a text");
        let turned =
            browser.value("/[\\u202a-\\u202e]/.test(document.documentElement.textContent)");
        assert_eq!(turned, false, "{path}: what turns a text is seen as its number");
        assert_ne!(browser.value("document.title"), "hacked", "{path}");
    }
    let refused = browser.value("(() => { try { document.body.innerHTML = '<b>x</b>'; return 'set'; } catch { return 'refused'; } })()");
    assert_eq!(refused, "refused", "the policy refuses it, too");
}

/// A change of files whose lines look like the heads of a difference.
const DIFF: &str = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@ fn f\n-- a comment\n+++ b/y\n+@@ -1 +1 @@\n same\n\
                    diff --git a/z b/z\n--- a/z\n+++ b/z\n@@ -0,0 +1 @@\n+new\n";

#[test]
fn line_of_a_file_does_not_look_like_a_head_of_the_difference() {
    let test = held();
    let page = test.serve(&[]);
    let mut browser = Browser::open();
    browser.go(&page.first);
    let signs = format!(
        "import('/assets/diff.js').then((diff) => diff.unifiedLines({}).map(([sign]) => sign).join(''))",
        json!(DIFF)
    );
    assert_eq!(browser.value(&signs), "@@@@-++ @@@@+@");
    let named = "import('/assets/dom.js').then((dom) => dom.oneLine('a\\nb\\u202e\\u200bc\\x1b'))";
    assert_eq!(browser.value(named), "a\\nb\\u{202e}\\u{200b}c\\u{1b}");
}
