//! Texts of models are never HTML, wherever they stand.

use super::Browser;
use crate::support::{Test, always, when};

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
        assert_ne!(browser.value("document.title"), "hacked", "{path}");
    }
    let refused = browser.value("(() => { try { document.body.innerHTML = '<b>x</b>'; return 'set'; } catch { return 'refused'; } })()");
    assert_eq!(refused, "refused", "the policy refuses it, too");
}
