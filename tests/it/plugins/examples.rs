//! The examples of plug-ins work, and are short.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::{Test, always, when};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/plugins").join(name)
}

/// Returns a workflow with a parent that spends money and a child that does not.
fn spender(command: &str) -> Test {
    let manifest = format!("plugins:\n  - {{ command: {command}, deadline: 1m }}\n");
    Test::new()
        .file("raymond.yaml", manifest.as_bytes())
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("WORKER.md", "work")
        .rule(when("start").reply(r#"<fork next="NEXT.md">WORKER.md</fork>"#).cost(0.06))
        .rule(when("work").reply("<result>worked</result>").cost(0.01))
        .rule(always().reply("<result>led</result>").cost(0.01))
}

#[test]
fn budget_example_stops_an_agent_that_has_spent_its_limit() {
    let test = spender(&format!("python3 {} 0.05", example("budget.py").display()));
    let outcome = test.run(&["START.md"]);
    outcome.code(1).ended("main.1", "worked").stderr_lacks("warning");
    assert!(outcome.failed("main").contains("main has spent $0.06 of $0.05"));
    let failed = &test.events("agent_failed")[0];
    assert_eq!((&failed["agent"], &failed["cause"]), (&json!("main"), &json!("stopped")));
    let test = spender(&format!("python3 {} 1", example("budget.py").display()));
    test.run(&["START.md"]).ok().ended("main", "led");
    test.assert_no_survivors();
}

#[test]
fn log_example_writes_a_line_for_each_step() {
    let test = spender(&format!("sh {} steps.log", example("log.sh").display()));
    test.run(&["START.md"]).ok().stderr_lacks("warning");
    let log = std::fs::read_to_string(test.flow().join("steps.log")).expect("there is a log");
    let expected: Vec<String> = test
        .events("step_finished")
        .iter()
        .map(|step| {
            let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let transition = &step["transition"];
            let route = format!("{} {}", word(&transition["tag"]), word(&transition["target"]));
            format!(
                "{} {}#{}: {} -> {}",
                word(&step["at"]),
                word(&step["agent"]),
                step["step"],
                word(&step["state"]),
                route.trim_end()
            )
        })
        .collect();
    assert_eq!(log.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn examples_have_fewer_than_80_lines() {
    for name in ["budget.py", "log.sh"] {
        let text = std::fs::read_to_string(example(name)).expect("it is there");
        assert!(text.lines().count() < 80, "{name}");
    }
}
