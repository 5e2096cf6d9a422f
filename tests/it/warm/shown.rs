//! The cost and the prompts of a warm process, and its files with `--debug`.

use std::fs;

use serde_json::Value;

use super::three;
use crate::support::{Test, when};

#[track_caller]
fn assert_costs(test: &Test, wanted: &[f64]) {
    let near = |value: &Value, usd: f64| value.as_f64().is_some_and(|is| (is - usd).abs() < 1e-9);
    let steps = test.events("step_finished");
    let costs: Vec<&Value> = steps.iter().map(|step| &step["cost_usd"]).collect();
    let right = costs.iter().zip(wanted).all(|(cost, &usd)| near(cost, usd));
    assert!(right && costs.len() == wanted.len(), "{costs:?}");
    let total = &test.status()["total_cost_usd"];
    assert!(near(total, wanted.iter().sum()), "{total}");
}

#[test]
fn cost_of_a_turn_is_the_increase_of_its_process_cost() {
    let test = three().rule(when("next").reply("<goto>LAST.md</goto>").cost(0.02));
    test.run(&["START.md"]).ok();
    assert_costs(&test, &[0.05, 0.02, 0.01]);
}

#[test]
fn adopted_turn_is_billed_only_its_own_cost() {
    for finished in [false, true] {
        let test =
            three().rule(when("next").hold_before("go").reply("<goto>LAST.md</goto>").cost(0.02));
        let mut live = test.spawn(&["START.md"]);
        live.wait_calls(2);
        live.kill9();
        if finished {
            test.release("go");
            let pid = test.calls()[0].pid;
            crate::support::wait_until("its end", || !crate::support::alive(pid));
        }
        let mut live = test.spawn_resumed(&[]);
        live.wait_event("run_resumed", 1);
        test.release("go");
        live.wait().ok();
        assert_costs(&test, &[0.05, 0.02, 0.01]);
    }
}

#[test]
fn cost_of_a_replaced_process_counts_from_zero() {
    let test = three().rule(when("next").die_idle().reply("<goto>LAST.md</goto>").cost(0.02));
    test.run(&["START.md"]).ok();
    assert_costs(&test, &[0.05, 0.02, 0.01]);
}

#[test]
fn process_is_sent_the_model_only_when_it_changes() {
    let model = |name: &str, text: &str| format!("---\nmodel: {name}\n---\n{text}");
    let mut test = Test::new().prompt("S1.md", &model("haiku", "step 1"));
    for (number, name) in [(2, "haiku"), (3, "opus"), (4, "opus")] {
        let step = format!("step {number}");
        test = test.prompt(&format!("S{number}.md"), &model(name, &step));
    }
    let test = test
        .prompt("S5.md", "step 5")
        .rule(when("step 1").reply("<goto>S2.md</goto>"))
        .rule(when("step 2").reply("<goto>S3.md</goto>"))
        .rule(when("step 3").reply("<goto>S4.md</goto>"))
        .rule(when("step 4").reply("<goto>S5.md</goto>"))
        .rule(when("step 5").reply("<result>ok</result>"));
    test.run(&["S1.md", "--model", "sonnet"]).ok();
    let calls = test.calls();
    let models: Vec<&str> = calls.iter().filter_map(|call| call.model.as_deref()).collect();
    assert_eq!(models, ["haiku", "haiku", "opus", "opus", "sonnet"]);
    assert_eq!(calls[4].turn_in_process, 4);
    let stream =
        fs::read_to_string(test.run_dir().join("steps/main-1-0.jsonl")).expect("it is there");
    let answers = stream.matches("\"control_response\"").count();
    assert_eq!(answers, 1 + 2, "asked for the cost once, told the model only when it changes");
}

#[test]
fn model_is_correct_after_retry_and_adoption() {
    let test = three()
        .prompt("NEXT.md", "---\nmodel: opus\n---\nnext")
        .rule(when("next").once().exit(3))
        .rule(when("next").hold_before("go").reply("<goto>LAST.md</goto>"));
    let mut live = test.spawn(&["START.md", "--model", "haiku"]);
    live.wait_calls(3);
    live.kill9();
    test.release("go");
    test.resume(&[]).ok();
    let calls = test.calls();
    let models: Vec<&str> = calls.iter().filter_map(|call| call.model.as_deref()).collect();
    assert_eq!(models, ["haiku", "opus", "opus", "haiku"]);
}

#[test]
fn each_debug_file_has_the_answer_of_its_turn() {
    let test = three()
        .rule(when("next").unsolicited("nobody asked").reply("<goto>LAST.md</goto>").cost(0.02));
    test.run(&["START.md", "--debug"]).ok();
    let folder = fs::read_dir(test.dir().join("debug")).expect("a debug directory").next();
    let folder = folder.expect("one run").expect("it can be read").path();
    let answers = |name: &str| -> Vec<String> {
        let array = fs::read_to_string(folder.join(name)).expect("the turn is there");
        let lines: Vec<Value> = serde_json::from_str(&array).expect("an array");
        assert!(lines.iter().all(Value::is_object), "{array}");
        let results = lines.into_iter().filter(|line| line["type"] == "result");
        results.map(|line| line["result"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(answers("main_START_001.json"), ["<goto>NEXT.md</goto>"]);
    assert_eq!(answers("main_NEXT_002.json"), ["<goto>LAST.md</goto>"]);
    let last = answers("main_LAST_003.json");
    assert_eq!(last.last().map(String::as_str), Some("<result>ok</result>"), "{last:?}");
}
