//! Workflows that several subjects are tested on.

use super::{Test, always, when};

/// START forks a worker and goes on to NEXT.
pub(crate) fn pair() -> Test {
    Test::new()
        .prompt("START.md", "start {{input}}")
        .prompt("WORKER.md", "work")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply(r#"<fork next="NEXT.md">WORKER.md</fork>"#).cost(0.02))
        .rule(when("work").reply("<result>worked</result>").cost(0.01))
        .rule(when("next").reply("<result>led</result>").cost(0.01))
}

/// One turn, held at `go`.
pub(crate) fn held() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").hold_before("go").reply("<goto>NEXT.md</goto>"))
        .rule(always().reply("<result>ok</result>"))
}
