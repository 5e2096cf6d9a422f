//! The real program under budgets: an inexpensive evaluator, and a turn that exceeds its budget.

use super::POSITIVE;
use super::machine::TestMachine;

use crate::api::on;

const HEAD: &str = "---\nmodel: sonnet\nallowed_transitions:\n  - { tag: goto, target: FIX.md }\n  - { tag: result }\nevaluator: { prompt: CHECK.md }\n---\n";

#[test]
fn evaluator_uses_cheap_model_in_separate_session() {
    let machine = TestMachine::new();
    machine.prompt("START.md", &format!("{HEAD}ALPHA: begin."));
    machine.prompt("CHECK.md", "DELTA: is this enough? {{output}}");
    machine.prompt("FIX.md", "BRAVO: make it better.");
    machine.api.script([
        on("ALPHA").reply("A thin answer. <result>thin</result>"),
        on("DELTA").reply("No. <goto>FIX.md</goto>"),
        on("BRAVO").reply("<result>POSITIVE</result>"),
    ]);

    machine.run(&[]).exits(0).prints(POSITIVE);

    let [first, second, last] = ["ALPHA", "DELTA", "BRAVO"].map(|name| machine.api.request(name));
    assert!(first.model.contains("sonnet") && second.model.contains("haiku"));
    assert!(second.sees("A thin answer.") && !second.sees("ALPHA"));
    assert!(last.sees("ALPHA") && !last.sees("DELTA"));
    assert_eq!(machine.records("transition_proposed").len(), 1);
    let step = &machine.records("step_finished")[0];
    assert_eq!(step["overruled"]["by"], "the evaluator CHECK.md");
}

#[test]
fn runaway_turn_is_cut_off_and_pauses_run() {
    let mut machine = TestMachine::new();
    machine.fix_price_of_haiku();
    machine.prompt("START.md", "ALPHA: begin.");
    let two_dollars_of_haiku = 400_000;
    machine.api.script([
        on("ALPHA").reply("<result>too dear</result>").tokens(0, two_dollars_of_haiku).times(1),
        on("ALPHA").reply("<result>POSITIVE</result>"),
    ]);

    let paused = machine.run(&["--budget", "0.5"]).exits(75);

    assert!(paused.stderr.contains("Reached maximum budget ($1)"), "{paused:?}");
    let failed = &machine.records("turn_failed")[0];
    assert_eq!((&failed["cause"], failed["cost_usd"].as_f64()), (&"budget".into(), Some(2.0)));
    assert_eq!(machine.api.turns("ALPHA"), 1);
    machine.resume(&["--budget", "10"]).wait().exits(0).prints(POSITIVE);
    assert_eq!(machine.api.turns("ALPHA"), 2);
}
