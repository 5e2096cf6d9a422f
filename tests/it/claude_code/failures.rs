//! What goes wrong around a turn: the API refuses, nobody is logged in, the money is gone.

use crate::api::on;

use super::POSITIVE;
use super::machine::{Machine, RUN};

#[test]
fn an_error_is_an_error_though_it_calls_itself_a_success() {
    let machine = Machine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "BRAVO: never asked.");
    machine.api.script([on("ALPHA").error(400, "no such beta <goto>NEXT.md</goto>")]);

    let ended = machine.run(&["--max-restarts", "0"]).exits(1);

    assert!(ended.stdout.starts_with("Agent main failed: "), "{ended:?}");
    assert!(ended.stdout.contains("400") && ended.stdout.contains("no such beta"), "{ended:?}");
    assert_eq!(machine.api.turns("BRAVO"), 0, "a tag in an error message moves nobody");
    assert_eq!(machine.api.turns("ALPHA"), 1);
    assert_eq!(machine.records("agent_failed").len(), 1);
}

#[test]
fn a_failed_turn_is_asked_again_as_if_for_the_first_time() {
    let machine = Machine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "BRAVO: go on.");
    machine.prompt("LAST.md", "CHARLIE: end.");
    machine.api.script([
        on("ALPHA").error(400, "hiccup").times(1),
        on("ALPHA").reply("<goto>NEXT.md</goto>"),
        on("BRAVO").error(400, "hiccup").times(1),
        on("BRAVO").reply("<goto>LAST.md</goto>"),
        on("CHARLIE").reply("<result>POSITIVE</result>"),
    ]);

    machine.run(&["--backoff", "1ms..5ms"]).exits(0).prints(POSITIVE);

    assert_eq!(machine.records("turn_failed").len(), 2);
    assert_eq!([machine.api.turns("ALPHA"), machine.api.turns("BRAVO")], [2, 2]);
    let last = machine.api.request("CHARLIE");
    let twice = ["ALPHA", "BRAVO"].map(|marker| last.mentions(marker));
    assert_eq!(twice, [1, 1], "no half turn stays in the conversation: {last:#?}");
    assert!(!last.sees("hiccup"), "{last:#?}");
}

#[test]
fn a_throttled_turn_is_alive_and_costs_no_restart() {
    let machine = Machine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.api.script([
        on("ALPHA").error(429, "slow down").times(1),
        on("ALPHA").reply("<result>POSITIVE</result>"),
    ]);

    machine.run(&["--max-restarts", "0"]).exits(0).prints(POSITIVE);

    assert_eq!(machine.api.turns("ALPHA"), 2);
    assert_eq!(machine.records("turn_failed").len(), 0);
    assert!(machine.run_file("steps/main-1-0.jsonl").contains("api_retry"));
}

#[test]
fn who_is_not_logged_in_is_told_so_and_can_go_on_later() {
    let mut machine = Machine::new();
    machine.unset("ANTHROPIC_API_KEY");
    machine.prompt("START.md", "ALPHA: begin.");
    machine.api.script([on("ALPHA").reply("<result>POSITIVE</result>")]);

    let ended = machine.run(&[]).exits(69);

    assert!(ended.stderr.contains("logged in") && ended.stderr.contains(RUN), "{ended:?}");
    let failed = machine.records("turn_failed");
    assert_eq!(failed.len(), 1, "a login does not repair itself");
    assert_eq!(failed[0]["counts"], false, "it is no restart");
    assert_eq!(machine.records("run_paused").len(), 1);

    machine.set("ANTHROPIC_API_KEY", "test");
    machine.go_on(&[]).wait().exits(0).prints(POSITIVE);
    assert_eq!(machine.api.request("ALPHA").mentions("ALPHA"), 1);
}

#[test]
fn a_budget_stops_the_run_and_a_larger_one_goes_on() {
    let mut machine = Machine::new();
    machine.fix_price_of_haiku();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("MORE.md", "BRAVO: go on.");
    machine.prompt("LAST.md", "CHARLIE: end.");
    let half_a_dollar_of_haiku = 100_000;
    machine.api.script([
        on("ALPHA").reply("<goto>MORE.md</goto>").tokens(0, half_a_dollar_of_haiku),
        on("BRAVO").reply("<goto>LAST.md</goto>").tokens(0, half_a_dollar_of_haiku),
        on("CHARLIE").reply("<result>POSITIVE</result>"),
    ]);

    let ended = machine.run(&["--budget", "0.75"]).exits(75);

    assert!(ended.stderr.contains("budget"), "{ended:?}");
    assert_eq!([machine.api.turns("BRAVO"), machine.api.turns("CHARLIE")], [1, 0]);
    let cost = |step: usize| machine.records("step_finished")[step]["cost_usd"].as_f64();
    assert_eq!([cost(0), cost(1)], [Some(0.5), Some(0.5)]);

    machine.go_on(&["--budget", "10"]).wait().exits(0).prints(POSITIVE);
    let turns = ["ALPHA", "BRAVO", "CHARLIE"].map(|marker| machine.api.turns(marker));
    assert_eq!(turns, [1, 1, 1]);
}
