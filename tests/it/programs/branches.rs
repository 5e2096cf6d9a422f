//! Programs in branches: the facts are as they were, and signals that came later are not seen.

use super::{program, signal};
use crate::support::when;

#[test]
fn branch_does_not_see_signals_that_came_after_the_cut() {
    let test = program(
        "(state s (wait (signal first)) (action (send-prompt :agent a :template ask :request-id r)
            (await (transcript-response :request-id r))) (wait (signal second)) (terminal :result (signal second)))",
    )
    .rule(when("ask").reply("asked"));
    signal(&test, "first", "k", "one");
    let mut live = test.spawn(&["p.lisp", "--on-wait", "stay"]);
    live.wait_for("it waits again", |test| test.calls().len() == 1);
    signal(&test, "second", "k", "old");
    live.wait().ok().ended("main", "old");
    // The request and the advance of its program are one.
    let journal = test.journal();
    let asked = journal.iter().position(|record| record["event"] == "role_requested");
    let at = journal[asked.expect("asked") + 1]["seq"].to_string();
    let mut live = test.start(&["branch", "t", "--id", "b", "--at", &at, "--on-wait", "stay"]);
    live.wait_for("it has asked again", |test| test.calls().len() == 2);
    live.wait_stderr("waits for");
    signal(&test, "second", "k", "new");
    live.wait().ok().ended("main", "new");
}
