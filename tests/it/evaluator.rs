//! Evaluators: a transition is checked by a pattern or by a turn of its own.

use crate::support::{Test, when};

const START: &str = "---\nallowed_transitions:\n  - { tag: goto, target: FIX.md }\n  - { tag: result }\nevaluator: EVALUATOR\n---\nstart";

fn evaluated(block: &str) -> Test {
    Test::new()
        .prompt("START.md", &START.replace("EVALUATOR", block))
        .prompt("FIX.md", "fix")
        .prompt("CHECK.md", "check {{output}} {{transition}} {{input}}")
        .rule(when("check").agent("nobody").reply(""))
}

#[test]
fn matching_pattern_overrides_transition() {
    let test = evaluated("{ pattern: '(?i)tests? fail', then: { tag: goto, target: FIX.md } }")
        .rule(when("start").reply("One Test FAILED. <result>fine</result>").cost(0.01))
        .rule(when("fix").reply("<result>fixed</result>").cost(0.01));
    let outcome = test.run(&["START.md"]);
    outcome.ok().ended("main", "fixed");
    outcome.stderr_has("the evaluator overruled <result>…</result>: found `(?i)tests? fail`");
    let step = &test.events("step_finished")[0];
    assert_eq!(step["overruled"]["asked"]["payload"], "fine");
    assert_eq!(step["transition"]["target"], "FIX.md");
}

#[test]
fn prompt_evaluator_overrides_transition_in_cheap_fresh_turn() {
    let test = evaluated("{ prompt: CHECK.md }")
        .rule(when("check").reply("Too thin: <goto>FIX.md</goto>").cost(0.002))
        .rule(when("start").reply("All good. <result>fine</result>").cost(0.01))
        .rule(when("fix").reply("<result>fixed</result>").cost(0.01));
    test.run(&["START.md", "--model", "opus", "--input", "the text"]).ok().ended("main", "fixed");
    let prompts = test.prompts();
    assert_eq!(prompts.len(), 3);
    assert_eq!(prompts[1], "check All good. <result>fine</result> <result>…</result> the text");
    let calls = test.calls();
    calls[1].assert_fresh();
    assert_eq!((calls[0].flag("--model"), calls[1].flag("--model")), (Some("opus"), Some("haiku")));
    calls[2].assert_resumes(&calls[0]);
    let proposed = test.events("transition_proposed");
    assert_eq!((proposed.len(), &proposed[0]["evaluator"]), (1, &"CHECK.md".into()));
    let step = &test.events("step_finished")[0];
    assert_eq!(step["overruled"]["by"], "the evaluator CHECK.md");
    assert_eq!((&step["evaluator"], &step["cost_usd"]), (&"CHECK.md".into(), &0.002.into()));
    let total = test.status()["total_cost_usd"].as_f64().expect("a number");
    assert!((total - 0.022).abs() < 1e-9, "{total}");
}

#[test]
fn evaluator_answer_without_allowed_tag_keeps_transition() {
    for (answer, warned) in [("KEEP", false), ("<goto>CHECK.md</goto>", true)] {
        let test = evaluated("{ prompt: CHECK.md, model: sonnet }")
            .rule(when("check").reply(answer))
            .rule(when("start").reply("<result>fine</result>"));
        let outcome = test.run(&["START.md", "--input", "x"]);
        outcome.ok().ended("main", "fine");
        assert_eq!(outcome.stderr.contains("the requested one is taken"), warned);
        assert_eq!(test.calls()[1].flag("--model"), Some("sonnet"));
    }
}

#[test]
fn crashed_evaluator_is_retried_without_repeating_agent_turn() {
    let test = evaluated("{ prompt: CHECK.md }")
        .rule(when("check").once().exit(1))
        .rule(when("check").reply("fine"))
        .rule(when("start").reply("<result>fine</result>"));
    test.run(&["START.md", "--input", "x"]).ok().ended("main", "fine");
    let prompts = test.prompts();
    let count = |part: &str| prompts.iter().filter(|prompt| prompt.starts_with(part)).count();
    assert_eq!((count("start"), count("check")), (1, 2));
    assert_eq!(test.events("turn_failed")[0]["state"], "CHECK.md");
}

#[test]
fn kill_during_evaluation_repeats_no_turn() {
    let test = evaluated("{ prompt: CHECK.md }")
        .rule(when("check").reply("<goto>FIX.md</goto>"))
        .rule(when("start").reply("<result>fine</result>"))
        .rule(when("fix").reply("<result>fixed</result>"));
    let test = test.env("RAYMOND_FAILPOINT", "effect.after:2");
    assert!(test.run(&["START.md", "--input", "x"]).killed());
    let test = test.env("RAYMOND_FAILPOINT", "none:1");
    test.resume(&[]).ok().ended("main", "fixed");
    assert_eq!(test.prompts().len(), 3, "{:?}", test.prompts());
}

#[test]
fn evaluator_mistakes_are_reported_before_first_turn() {
    let test = evaluated("{ pattern: '(', then: { tag: result } }");
    test.run(&["START.md"]).code(65).stderr_has("START.md:5:").stderr_has("unclosed group");
    let test = evaluated("{ prompt: CHEK.md }").rule(when("start").reply("<result>x</result>"));
    test.run(&["START.md"]).stderr_has("did you mean CHECK.md?");
    let test = evaluated("{ prompt: FIX.md }")
        .rule(when("fix").reply("x"))
        .rule(when("start").reply("<result>x</result>"));
    test.run(&["START.md"]).ok().stderr_has("an evaluator sees only its prompt");
}

#[test]
fn scripted_replies_answer_evaluator() {
    let test = evaluated("{ prompt: CHECK.md }").prompt(
        "replies.yaml",
        "START.md: [<result>fine</result>]\nCHECK.md: [<goto>FIX.md</goto>]\nFIX.md: [<result>fixed</result>]\n",
    );
    test.run(&["START.md", "--agent", "scripted", "--input", "x"]).ok().ended("main", "fixed");
}
