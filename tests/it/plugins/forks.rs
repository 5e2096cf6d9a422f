//! A plug-in that forks many agents in place of an agent's own transition.

use serde_json::Value;

use super::with;
use crate::support::{Test, when};

/// Returns a workflow with a plug-in that replaces the transition of START by this fork, on this occasion.
fn forking(occasion: &str, list: &str) -> Test {
    let script = format!(
        "hello('{occasion}')
for message in told():
    if message['type'] == 'consult':
        if message['question']['state'] == 'START.md':
            answer(message, verdict='override', reason='many', transition={{
                'tag': 'fork', 'target': 'WORKER.md', 'next': 'JOIN.md', 'each': '{list}'}})
        else:
            answer(message, verdict='proceed')
"
    );
    let test = with(&script, "")
        .prompt("WORKER.md", "work on {{item}}")
        .prompt("JOIN.md", "---\njoin: all\n---\nmerge {{results}}")
        .file("items.txt", b"a\nb\n");
    test.script(&[
        when("start").reply("<goto>NEXT.md</goto>"),
        when("work on a").reply("<result>did a</result>"),
        when("work on b").reply("<result>did b</result>"),
        when("merge").reply("<result>merged</result>"),
    ]);
    test
}

#[test]
fn override_verdict_forks_a_list_before_or_after_a_turn() {
    for (occasion, turns) in [("start", 3), ("transition", 4)] {
        let test = forking(occasion, "items.txt");
        test.run(&["START.md", "--stagger", "0s"])
            .ok()
            .ended("main", "merged")
            .ended("main.2", "did b");
        assert_eq!(test.calls().len(), turns, "{occasion}");
        let step = &test.events("step_finished")[0];
        assert_eq!(step["children"][0]["agents"].as_array().map(Vec::len), Some(2));
        assert_eq!(step["overruled"]["by"], "the plug-in p");
        assert_eq!(test.events("joined").len(), 1);
    }
}

#[test]
fn override_with_a_missing_fork_list_fails_the_agent() {
    for occasion in ["start", "transition"] {
        let test = forking(occasion, "gone.txt");
        let ended = test.run(&["START.md", "--stagger", "0s"]);
        ended.code(1).failed("main");
        ended.stdout_has("no file `gone.txt`");
        assert!(test.events("step_finished").iter().all(|step| step["children"] == Value::Null));
    }
}
