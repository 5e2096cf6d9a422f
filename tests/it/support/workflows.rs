//! Workflows that several subjects are tested on.

use super::{RunningRaymond, Test, always, when};

/// Returns a workflow whose first agent forks a worker and continues in NEXT.
pub(crate) fn pair() -> Test {
    Test::new()
        .prompt("START.md", "start {{input}}")
        .prompt("WORKER.md", "work")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply(r#"<fork next="NEXT.md">WORKER.md</fork>"#).cost(0.02))
        .rule(when("work").reply("<result>worked</result>").cost(0.01))
        .rule(when("next").reply("<result>led</result>").cost(0.01))
}

/// Returns a workflow of two turns, the first of which is held at `go`.
pub(crate) fn held() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").hold_before("go").reply("<goto>NEXT.md</goto>"))
        .rule(always().reply("<result>ok</result>"))
}

/// Returns a workflow in which one agent forks fourteen workers. The third is parked, the fifth fails, the
/// seventh and their parent are held at `go`, and the others end.
pub(crate) fn crowd() -> Test {
    let fork = r#"<fork next="NEXT.md">WORKER.md</fork>"#;
    let born = "---\nsupervision: { max_restarts: 0, on_exhausted: wait }\n---\nwork";
    Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("WORKER.md", born)
        .rule(always().agent("main.3").exit(3))
        .rule(always().agent("main.5").reply("no tag at all"))
        .rule(always().agent("main.7").hold_before("go").reply("<result>worked at last</result>"))
        .rule(when("work").reply("<result>worked</result>").cost(0.01))
        .rule(when("start").reply(fork))
        .rule(when("next").times(13).reply(fork))
        .rule(when("next").hold_before("go").reply("<result>led</result>"))
}

impl RunningRaymond<'_> {
    /// Waits until all agents of the [`crowd`] have reached their last turn.
    pub(crate) fn wait_crowd(&mut self) -> &mut Self {
        self.wait_event("agent_parked", 1).wait_event("agent_failed", 1);
        self.wait_event("step_finished", 14 + 11);
        self.wait_for("the held turns", |test| {
            let held = |part: &str, agent: &str| {
                test.calls_with(part).iter().any(|call| call.agent() == agent)
            };
            held("work", "main.7") && test.calls_with("next").len() == 14
        })
    }
}
