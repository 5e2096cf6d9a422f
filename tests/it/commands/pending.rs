//! `raymond pending`: all that waits for a person, over all runs, with the command that ends each wait.

use serde_json::Value;

use crate::support::{Test, when};

/// Returns the run, the kind and the command of each wait.
fn waits(test: &Test) -> Vec<[String; 3]> {
    let string = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let waits = test.raymond(&["pending", "--json"]).ok().json_items();
    waits.iter().map(|wait| ["run", "kind", "command"].map(|key| string(&wait[key]))).collect()
}

#[test]
fn waits_of_all_runs_are_listed_until_somebody_ends_them() {
    let test = Test::new()
        .prompt("ASK.md", "ask")
        .prompt("NEXT.md", "they said: {{answer}}")
        .prompt("WORK.md", "---\nsupervision: { max_restarts: 0, on_exhausted: wait }\n---\nwork")
        .prompt(
            "gate.lisp",
            "(workflow gate (state s (wait (signal gate/ci :key k1)) (terminal :result ok)))",
        )
        .rule(when("ask").reply(r#"<ask next="NEXT.md">Shall I?</ask>"#))
        .rule(when("they said").reply("<result>heard</result>"))
        .rule(when("work").once().exit(1).stderr("no disk"))
        .rule(when("work").reply("<result>done</result>"));
    test.raymond(&["pending"]).ok().stderr_has("nothing waits for a person");
    test.raymond(&["waits"]).ok().stderr_has("nothing waits for a person");
    assert_eq!(waits(&test), [] as [[String; 3]; 0]);
    test.run(&["ASK.md", "--id", "q"]).code(2);
    test.run(&["WORK.md", "--id", "p"]).code(2);
    test.run(&["gate.lisp", "--id", "s", "--on-wait", "exit"]).code(2);
    let [question, parked, signal] = [
        ["q", "answer", "raymond answer q main/NEXT.md=TEXT"],
        ["p", "parked", "raymond resume p"],
        ["s", "signal", "raymond signal gate/ci --key k1"],
    ]
    .map(|wait| wait.map(str::to_owned));
    assert_eq!(waits(&test), [question, parked.clone(), signal]);
    let shown = test.raymond(&["pending"]);
    shown.ok().stdout_has("asks: Shall I?").stdout_has("no disk").stdout_has("gate/ci of k1");

    test.raymond(&["answer", "q", "NEXT.md=yes"]).ok();
    test.raymond(&["resume", "q"]).ok();
    test.raymond(&["signal", "gate/ci", "--key", "k1"]).ok();
    test.raymond(&["resume", "s"]).ok();
    assert_eq!(waits(&test), [parked]);
    test.raymond(&["resume", "p"]).ok();
    assert_eq!(waits(&test), [] as [[String; 3]; 0]);
}
