//! Random workflows: run by a script, recorded, and replayed with the same outcome.

use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::{record, replay, story};
use crate::support::Test;

/// The number of workflows that are tried.
const CASES: u32 = 12;

/// A state of a random workflow. Numbers choose later states, so that each workflow ends.
#[derive(Debug, Clone)]
struct RandomState {
    kind: u8,
    first: u8,
    second: u8,
    /// True if the first reply has no tag, so that the agent is reminded.
    is_reminded: bool,
    cents: u8,
}

fn name(number: usize) -> String {
    if number == 0 { "START.md".to_owned() } else { format!("S{number}.md") }
}

/// Returns the tag of a state, and whether the state that it continues at waits for what it forks.
fn tag(states: &[RandomState], number: usize) -> String {
    let state = &states[number];
    let later = states.len() - number - 1;
    let chosen = |choice: u8| name(number + 1 + usize::from(choice) % later);
    if later == 0 {
        return format!("<result>end of {{{{agent_id}}}} at {number}</result>");
    }
    let (first, second) = (chosen(state.first), chosen(state.second));
    match state.kind % 7 {
        0 => format!("<goto>{first}</goto>"),
        1 => format!("<reset>{first}</reset>"),
        2 => format!("<call return=\"{second}\">{first}</call>"),
        3 => format!("<function return=\"{second}\">{first}</function>"),
        4 => format!("<fork next=\"{second}\" item=\"i{number}\">{first}</fork>"),
        5 => format!("<fork next=\"J{number}.md\" item=\"j{number}\">{first}</fork>"),
        _ => format!("<result>{number}</result>"),
    }
}

/// Writes a workflow; a fork of the kind 5 is joined by a state of its own.
fn workflow(states: &[RandomState]) -> Test {
    let mut test = Test::new();
    let mut replies = String::new();
    for (number, state) in states.iter().enumerate() {
        let name = name(number);
        test = test.prompt(&name, &format!("state {number} of {{{{agent_id}}}}"));
        let cost = f64::from(state.cents) / 100.0;
        let _ = writeln!(replies, "{name}:");
        let reply = format!("{{ reply: '{}', cost: {cost}, repeat: true }}", tag(states, number));
        if state.is_reminded {
            replies.push_str("  - { reply: no tag here, cost: 0.001 }\n");
        }
        let _ = writeln!(replies, "  - {reply}");
        let is_last = number + 1 == states.len();
        if state.kind % 7 == 5 && !is_last {
            let join = format!("J{number}.md");
            test = test.prompt(&join, "---\njoin: all\non_failure: keep\n---\njoined {{results}}");
            let _ = writeln!(
                replies,
                "{join}: [{{ reply: '<result>joined</result>', cost: {cost}, repeat: true }}]"
            );
        }
    }
    test.file("replies.yaml", replies.as_bytes())
}

#[test]
fn recorded_run_of_random_workflow_replays_the_same_for_each_agent() {
    let state = (any::<u8>(), any::<u8>(), any::<u8>(), prop::bool::weighted(0.25), 0u8..20);
    let state = state.prop_map(|(kind, first, second, is_reminded, cents)| RandomState {
        kind,
        first,
        second,
        is_reminded,
        cents,
    });
    let states = prop::collection::vec(state, 2..7);
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&states, |states| {
        let test = workflow(&states);
        let first = test.run(&["START.md", "--agent", "scripted", "--stagger", "0s", "--no-check"]);
        record(&test, &[]).ok();
        let again = replay(&test, "u", &["--stagger", "0s", "--no-check", "--strict-replay"]);
        prop_assert_eq!(again.status.code(), first.status.code());
        prop_assert_eq!(story(&test, "u"), story(&test, "t"));
        let results = |run: &str| {
            let mut agents = test.raymond(&["tree", run, "--json"]).ok().json()["agents"].clone();
            let parts = agents.as_array_mut().expect("agents").iter_mut();
            parts
                .map(|one| (one["id"].take(), one["result"].take(), one["cost_usd"].take()))
                .collect::<Vec<_>>()
        };
        prop_assert_eq!(results("u"), results("t"));
        let difference = test.raymond(&["diff", "t", "u", "--json"]).json();
        prop_assert!(difference["equal"] == true, "{}", difference);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}
