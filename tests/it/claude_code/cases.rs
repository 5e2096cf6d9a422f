//! `raymond test --real`: cases that the real program runs.

use crate::api::on;

use super::machine::TestMachine;

const CASES: &str = "cases:
  - name: answered
    input: BRAVO
    replies: { START.md: [<result>scripted</result>] }
    files: { note.md: x }
    expect:
      path: [START.md, NEXT.md]
      result: POSITIVE
      turns_at_most: 2
      files: { note.md: true }
";

/// Returns a machine with a workflow of two states and its cases.
fn machine() -> TestMachine {
    let mut machine = TestMachine::new();
    machine.fix_price_of_haiku();
    machine.prompt("START.md", "---\nallowed_transitions:\n  - { tag: goto, target: NEXT.md }\n  - { tag: result }\n---\nALPHA: {{input}}");
    machine.prompt("NEXT.md", "CHARLIE: end.");
    std::fs::create_dir(machine.path("flow/tests")).expect("made");
    std::fs::write(machine.path("flow/tests/main.yaml"), CASES).expect("written");
    machine
}

fn words(options: &[&'static str]) -> Vec<&'static str> {
    [&["test", "../flow", "--real", "--models", "haiku"], options].concat()
}

#[test]
fn live_cases_are_judged_by_what_the_model_answers() {
    let machine = machine();
    machine.api.script([
        on("ALPHA").reply("<goto>NEXT.md</goto>").times(2),
        on("ALPHA").reply("<result>short</result>"),
        on("CHARLIE").reply("<result>POSITIVE</result>"),
    ]);

    let outcome = machine.raymond(&words(&["--times", "3", "--jobs", "1"])).wait().exits(1);

    let printed = &outcome.stdout;
    assert!(printed.contains("ok   ../flow: answered [haiku 2/3]"), "{outcome:?}");
    assert!(printed.contains("found \"short\""), "{outcome:?}");
    assert!(printed.contains("2/3") && printed.contains("21–94%"), "{outcome:?}");
    assert_eq!((machine.api.turns("ALPHA"), machine.api.turns("CHARLIE")), (3, 2));
    assert!(machine.api.requests().iter().all(|request| request.model.contains("haiku")));
    assert!(machine.processes().is_empty(), "no process is left");
    assert!(!machine.path("work/.raymond").exists(), "the user's runs are not touched");
}

#[test]
fn live_tests_stop_when_their_budget_is_used_up() {
    let machine = machine();
    // $0.20 of haiku, and the runs have a budget of $0.25 and of $0.15.
    machine.api.script([
        on("ALPHA").reply("<goto>NEXT.md</goto>").tokens(0, 20_000),
        on("CHARLIE").reply("<result>POSITIVE</result>").tokens(0, 20_000),
    ]);

    let words = words(&["--times", "3", "--jobs", "1", "--budget", "0.50", "--json"]);
    let outcome = machine.raymond(&words).wait().exits(75);

    let json: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!((&json["passed"], &json["not_run"]), (&1.into(), &2.into()), "{json}");
    let cost = json["cost_usd"].as_f64().expect("a cost");
    assert!((0.2..=0.5).contains(&cost), "{json}");
    assert_eq!(machine.api.turns("ALPHA"), 1);
}
