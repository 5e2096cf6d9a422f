//! The usage of each model as the real program reports it, turn by turn.

use serde_json::{Value, json};

use crate::api::{on, otherwise};

use super::POSITIVE;
use super::machine::TestMachine;

/// Returns a machine with START on haiku, NEXT on sonnet with a sub-agent on opus, and LAST on haiku again,
/// in one session.
fn mixed() -> TestMachine {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "---\nmodel: sonnet\n---\nBRAVO: delegate.");
    machine.prompt("LAST.md", "CHARLIE: end.");
    let task = json!({
        "description": "a part", "prompt": "DELTA: a part.", "model": "opus",
        "subagent_type": "general-purpose",
    });
    machine.api.script([
        on("ALPHA").reply("<goto>NEXT.md</goto>").tokens(1_000, 100),
        on("BRAVO").tool("Agent", task).tokens(2_000, 200),
        on("DELTA").reply("ECHO").tokens(300, 30).hold(),
        on("ECHO").reply("<goto>LAST.md</goto>").tokens(2_500, 250),
        on("CHARLIE").reply("<result>POSITIVE</result>").tokens(4_000, 400),
        otherwise().reply("Nothing.").tokens(0, 0),
    ]);
    machine
}

/// Returns the tokens of each step by the family of the model, in and out.
fn tokens(machine: &TestMachine) -> Vec<Vec<(&'static str, u64, u64)>> {
    let family = |model: &str| ["haiku", "opus", "sonnet"].into_iter().find(|&n| model.contains(n));
    let count = |used: &Value, key: &str| used[key].as_u64().unwrap_or(u64::MAX);
    let of = |step: Value| {
        let usage = step["usage"].as_object().cloned().unwrap_or_default();
        let each = usage.iter().map(|(model, used)| {
            let family = family(model).expect("a model that was asked for");
            (family, count(used, "input_tokens"), count(used, "output_tokens"))
        });
        each.collect()
    };
    machine.records("step_finished").into_iter().map(of).collect()
}

/// Checks that the cost of each step is the sum over its models, to a millionth of a dollar.
fn assert_sums(machine: &TestMachine) {
    for step in machine.records("step_finished") {
        let parts = step["usage"].as_object().into_iter().flatten();
        let sum: f64 = parts.filter_map(|(_, used)| used["cost_usd"].as_f64()).sum();
        let cost = step["cost_usd"].as_f64().unwrap_or_default();
        assert!(cost > 0.0 && (sum - cost).abs() < 1e-6, "{step:#}");
    }
}

#[test]
fn usage_per_model_is_recorded_for_each_turn() {
    let expected = [
        vec![("haiku", 1_000, 100)],
        vec![("opus", 300, 30), ("sonnet", 4_500, 450)],
        vec![("haiku", 4_000, 400)],
    ];
    for options in [&[][..], &["--no-warm"]] {
        let machine = mixed();
        machine.api.release("DELTA");
        machine.run(options).exits(0).prints(POSITIVE);
        assert_eq!(tokens(&machine), expected, "{options:?}");
        assert_sums(&machine);
    }
    let machine = mixed();
    let run = machine.start(&[]);
    machine.api.wait_for("DELTA", 1);
    run.kill();
    let run = machine.resume(&[]);
    machine.until("the run was taken up", || !machine.records("run_resumed").is_empty());
    machine.api.release("DELTA");
    run.wait().exits(0).prints(POSITIVE);
    assert_eq!(tokens(&machine), expected, "the second turn was adopted");
    assert_sums(&machine);
}

/// The models whose price all versions of Claude Code know.
const OLD_MODELS: [&str; 4] =
    ["claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5", "claude-opus-4-6"];

/// The models and aliases that the version of the price table knows, besides.
const NEW_MODELS: [&str; 9] = [
    "haiku",
    "sonnet",
    "opus",
    "fable",
    "claude-sonnet-4-6",
    "claude-sonnet-5",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-fable-5",
];

#[test]
fn prices_of_the_table_are_those_of_the_program() {
    const TOKENS: u64 = 50_000;
    let is_new = super::installed::version() >= "2.1.330";
    let models: Vec<&str> =
        OLD_MODELS.into_iter().chain(NEW_MODELS.into_iter().filter(|_| is_new)).collect();
    let machine = TestMachine::new();
    let mut script = Vec::new();
    for (number, model) in models.iter().enumerate() {
        let state = |number: usize| {
            if number == 0 { "START.md".to_owned() } else { format!("S{number}.md") }
        };
        machine.prompt(&state(number), &format!("---\nmodel: {model}\n---\nTURN-{number}: go."));
        let tag = match number + 1 {
            next if next < models.len() => format!("<reset>{}</reset>", state(next)),
            _ => "<result>POSITIVE</result>".to_owned(),
        };
        script.push(on(&format!("TURN-{number}:")).reply(&tag).tokens(TOKENS, 0));
    }
    script.push(otherwise().reply("Nothing.").tokens(0, 0));
    machine.api.script(script);
    machine.run(&[]).exits(0).prints(POSITIVE);
    for (step, model) in machine.records("step_finished").iter().zip(&models) {
        let cost = step["cost_usd"].as_f64().expect("a cost");
        let listed = raymond::domain::model::input_cost(model, TOKENS).expect("listed");
        assert!((listed.dollars() - cost).abs() < 1e-6, "{model}: {listed} in the table; {step:#}");
    }
    assert_eq!(machine.records("step_finished").len(), models.len());
}
