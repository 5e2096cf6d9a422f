//! The usage of each model by a turn, in any process, even if another raymond sees its end.

use serde_json::{Value, json};

use super::three;
use crate::support::{FakeRule, Test, alive, wait_until, when};

/// Returns the rule of NEXT, which has a sub-agent with another model.
fn next() -> FakeRule {
    when("next").reply("<goto>LAST.md</goto>").cost(0.75).takes("opus", [200, 20, 2, 4], 0.5).takes(
        "haiku",
        [50, 5, 0, 0],
        0.25,
    )
}

fn used(tokens: [u64; 4], usd: f64) -> Value {
    let [input, output, cache_read, cache_write] = tokens;
    json!({
        "input_tokens": input, "output_tokens": output, "cache_read_tokens": cache_read,
        "cache_write_tokens": cache_write, "cost_usd": usd,
    })
}

#[track_caller]
fn assert_used(test: &Test) {
    let usages: Vec<Value> =
        test.events("step_finished").iter().map(|step| step["usage"].clone()).collect();
    let next = json!({"haiku": used([50, 5, 0, 0], 0.25), "opus": used([200, 20, 2, 4], 0.5)});
    let plausible = |usd| json!({"opus": used([1_000, 100, 0, 0], usd)});
    assert_eq!(usages, [plausible(0.05), next, plausible(0.01)]);
}

#[test]
fn usage_of_a_turn_is_the_increase_of_its_process_usage() {
    for options in [&["START.md"][..], &["START.md", "--no-warm"]] {
        let test = three().rule(next());
        test.run(options).ok();
        assert_used(&test);
    }
}

#[test]
fn usage_of_an_adopted_turn_excludes_earlier_turns() {
    for finished in [false, true] {
        let test = three().rule(next().hold_before("go"));
        let mut live = test.spawn(&["START.md"]);
        live.wait_calls(2);
        live.kill9();
        if finished {
            test.release("go");
            let pid = test.calls()[0].pid;
            wait_until("its end", || !alive(pid));
        }
        let mut live = test.spawn_resumed(&[]);
        live.wait_event("run_resumed", 1);
        test.release("go");
        live.wait().ok();
        assert_used(&test);
    }
}

#[test]
fn adopted_turn_whose_offset_lacks_usage_is_not_counted_twice() {
    let test = three().rule(next().hold_before("go"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(2);
    live.kill9();
    let path = test.run_dir().join("steps/main-2-0.turn");
    let passage = std::fs::read(&path).expect("NEXT is a further turn of its process");
    let mut passage: Value = serde_json::from_slice(&passage).expect("a passage is JSON");
    let kept = passage.as_object_mut().and_then(|passage| passage.remove("usage"));
    assert_eq!(kept, Some(json!({"opus": used([1_000, 100, 0, 0], 0.05)})));
    std::fs::write(&path, passage.to_string()).expect("it can be replaced");
    // The raymond that wrote such passages sealed nothing, so the person who resumes the run must vouch for
    // it.
    std::fs::remove_dir_all(test.root().join("home/.local/state/raymond/runs")).expect("removed");
    test.release("go");
    test.resume(&["--trust"]).ok();
    let step = &test.events("step_finished")[1];
    let cost = step["cost_usd"].as_f64().expect("a number");
    assert!((cost - 0.75).abs() < 1e-9 && step["usage"].is_null(), "{step}");
}

#[test]
fn usage_of_a_replaced_process_counts_from_zero() {
    let test = three().rule(next().die_idle());
    test.run(&["START.md"]).ok();
    assert_used(&test);
}

#[test]
fn failed_and_rejected_turns_record_their_usage() {
    let test = Test::new()
        .prompt("START.md", "---\nallowed_transitions:\n  - { tag: result }\n---\nstart")
        .rule(when("start").once().error(500, "the API is ill").cost(0.25))
        .rule(when("start").once().reply("no tag").takes("haiku", [7, 3, 0, 0], 0.5).cost(0.5))
        .rule(when("start").once().reply("no tag either").cost(1.0))
        .rule(crate::support::always().error(400, "this is wrong").cost(0.125));
    test.run(&["START.md"]);
    let usage = |event: &str| test.events(event).first().map(|record| record["usage"].clone());
    let opus = |usd| json!({"opus": used([1_000, 100, 0, 0], usd)});
    assert_eq!(usage("turn_failed"), Some(opus(0.25)));
    assert_eq!(usage("turn_rejected"), Some(json!({"haiku": used([7, 3, 0, 0], 0.5)})));
    assert_eq!(usage("agent_failed"), Some(opus(0.125)));
}
