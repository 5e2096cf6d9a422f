//! Policies: strict matching, reminders made from the policy, and implicit transitions.

use crate::support::{Test, always, when};

const GOTO_OR_RESULT: &str = "\
---
allowed_transitions:
  - { tag: goto, target: NEXT.md }
  - { tag: result }
---
start";

fn guarded() -> Test {
    Test::new()
        .prompt("START.md", GOTO_OR_RESULT)
        .prompt("NEXT.md", "next")
        .prompt("OTHER.md", "other")
}

#[test]
fn reminder_repairs_missing_tag_in_same_session() {
    let test = guarded()
        .rule(when("start").once().reply("I forgot."))
        .rule(when("NEXT.md").reply("Sorry. <goto>NEXT.md</goto>"))
        .rule(always().reply("<result>ok</result>"));
    test.run(&["START.md"]).ok().ended("main", "ok");

    let calls = test.calls();
    assert_eq!(calls.len(), 3);
    assert_eq!(calls[0].prompt.trim(), "start", "the frontmatter is not for the model");
    calls[1].assert_resumes(&calls[0]);
    for allowed in ["<goto>NEXT.md</goto>", "<result>"] {
        assert!(calls[1].prompt.contains(allowed), "{}", calls[1].prompt);
    }
    assert_eq!(test.events("turn_rejected").len(), 1);
}

#[test]
fn each_kind_of_invalid_tag_causes_a_reminder() {
    let slips = [
        ("two tags", "<goto>NEXT.md</goto> or <result>x</result>"),
        ("another target", "<goto>OTHER.md</goto>"),
        ("another tag", "<reset>NEXT.md</reset>"),
        ("a path", "<goto>../NEXT.md</goto>"),
        ("an unknown tag", "<jump>NEXT.md</jump>"),
        ("a tag left open", "<goto>NEXT.md"),
    ];
    for (slip, reply) in slips {
        let test = guarded()
            .rule(always().once().reply(reply))
            .rule(always().reply("<result>repaired</result>"));
        let outcome = test.run(&["START.md"]);
        outcome.ok().ended("main", "repaired");
        let rejected = test.events("turn_rejected");
        outcome.assert(rejected.len() == 1, &format!("one rejected turn for {slip}"));
    }
}

#[test]
fn agent_fails_after_three_billed_reminders() {
    let test = guarded().rule(always().reply("never a tag").cost(0.01));
    let outcome = test.run(&["START.md"]);
    outcome.code(1);
    let message = outcome.failed("main");
    outcome.assert(message.contains("START.md"), "the state in the message");
    assert_eq!(test.calls().len(), 4, "one turn and three reminders");
    let total = test.status()["total_cost_usd"].as_f64().unwrap_or_default();
    assert!((total - 0.04).abs() < 1e-9, "reminders are paid for too: {total}");
}

#[test]
fn reminder_count_restarts_in_each_state() {
    let policy = |target| {
        format!(
            "---\nallowed_transitions:\n  - {{ tag: goto, target: {target} }}\n  - {{ tag: result }}\n---\n"
        )
    };
    let test = Test::new()
        .prompt("START.md", &(policy("NEXT.md") + "start"))
        .prompt("NEXT.md", &(policy("START.md") + "second"))
        .rule(always().times(3).reply("no tag"))
        .rule(always().once().reply("<goto>NEXT.md</goto>"))
        .rule(always().times(3).reply("no tag"))
        .rule(always().reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    assert_eq!(test.calls().len(), 8);
}

#[test]
fn invalid_reply_without_a_policy_fails_agent_at_once() {
    let slips = [
        ("no tag", "Just prose."),
        ("two tags", "<goto>A.md</goto><goto>B.md</goto>"),
        ("an unclosed tag", "<goto>A.md"),
        ("prose that looks like one", "<results>x</results>"),
    ];
    for (slip, reply) in slips {
        let test = Test::new()
            .prompt("START.md", "start")
            .prompt("A.md", "a")
            .prompt("B.md", "b")
            .rule(always().reply(reply));
        let outcome = test.run(&["START.md"]);
        outcome.code(1).failed("main");
        outcome.assert(test.calls().len() == 1, &format!("one call for {slip}"));
    }
}

#[test]
fn empty_policy_fails_the_agent_without_a_reminder() {
    let test = Test::new()
        .prompt("START.md", "---\nallowed_transitions: []\n---\nstart")
        .rule(always().reply("no tag"));
    test.run(&["START.md"]).code(1).failed("main");
    assert_eq!(test.calls().len(), 1);
}

#[test]
fn only_allowed_transition_is_taken_without_a_tag() {
    let test = Test::new()
        .prompt(
            "START.md",
            "---\nallowed_transitions:\n  - { tag: call, target: CHILD.md, return: BACK.md }\n---\nstart",
        )
        .prompt("CHILD.md", "child")
        .prompt("BACK.md", "back {{result}}")
        .rule(when("start").reply("All looked at."))
        .rule(when("child").reply("<result>5</result>"))
        .rule(when("back").reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    assert_eq!(test.prompts(), ["start", "child", "back 5"]);
    let calls = test.calls();
    calls[1].assert_branches(&calls[0]);
}

#[test]
fn tag_that_differs_from_the_only_allowed_transition_is_rejected() {
    let test = Test::new()
        .prompt(
            "START.md",
            "---\nallowed_transitions:\n  - { tag: goto, target: NEXT.md }\n---\nstart",
        )
        .prompt("NEXT.md", "next")
        .prompt("OTHER.md", "other")
        .rule(always().once().reply("<goto>OTHER.md</goto>"))
        .rule(always().once().reply("<goto>NEXT.md</goto>"))
        .rule(always().reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    assert_eq!(test.events("turn_rejected").len(), 1);
    assert_eq!(test.prompts().last().map(String::as_str), Some("next"));
}

#[test]
fn result_needs_a_tag_even_as_the_only_transition() {
    let test = Test::new()
        .prompt("START.md", "---\nallowed_transitions:\n  - { tag: result }\n---\nstart")
        .rule(always().once().reply("All done."))
        .rule(always().reply("<result>said</result>"));
    test.run(&["START.md"]).ok().ended("main", "said");
    assert_eq!(test.calls().len(), 2);
}

#[test]
fn policy_matches_attributes_and_allows_any_variables() {
    let test = Test::new()
        .prompt(
            "START.md",
            "---\nallowed_transitions:\n  - { tag: fork, target: W.md, next: NEXT.md }\n  - { tag: result }\n---\nstart",
        )
        .prompt("W.md", "toil on {{item}}")
        .prompt("NEXT.md", "next")
        .prompt("OTHER.md", "other")
        .rule(when("toil").reply("<result>w</result>"))
        .rule(always().once().reply(r#"<fork next="OTHER.md" item="1">W.md</fork>"#))
        .rule(always().once().reply(r#"<fork next="NEXT.md" item="2">W.md</fork>"#))
        .rule(always().reply("<result>m</result>"));
    test.run(&["START.md"]).ok();
    assert_eq!(test.events("turn_rejected").len(), 1);
    assert_eq!(test.calls_with("toil on 2").len(), 1);
}

#[test]
fn goto_to_a_missing_state_is_repaired_by_a_reminder() {
    let test = Test::new()
        .prompt(
            "START.md",
            "---\nallowed_transitions:\n  - { tag: goto, target: NOWHERE.md }\n  - { tag: result }\n---\nstart",
        )
        .rule(always().once().reply("<goto>NOWHERE.md</goto>"))
        .rule(always().reply("<result>ok</result>"));
    test.run(&["START.md", "--no-check"]).ok();
    let calls = test.calls();
    assert_eq!(calls.len(), 2);
    assert!(calls[1].prompt.contains("NOWHERE.md"), "{}", calls[1].prompt);
}

#[test]
fn endings_may_be_left_out_and_texts_and_transitions_be_fixed() {
    let test = Test::new()
        .prompt("1_START.md", "---\nallowed_transitions:\n  - { tag: call, target: CHECK, return: END }\n---\nx")
        .prompt("CHECK.md", "---\nallowed_transitions:\n  - { tag: reset, target: AGAIN, keep: stack }\n---\nx")
        .prompt("AGAIN.md", "---\nallowed_transitions:\n  - { tag: result, payload: \"YES\" }\n  - { tag: result, payload: \"NO\" }\n---\nx")
        .prompt("END.md", "---\nforce_implicit: true\nallowed_transitions:\n  - { tag: result, payload: DONE }\n---\n{{result}}")
        .file(
            "replies.yaml",
            b"1_START.md: ['<call return=\"END.md\">CHECK</call>']\nCHECK.md: [so]\nAGAIN.md: [\"<result>MAYBE</result>\", \"<result>YES</result>\"]\nEND.md: [\"Write <goto>X.md</goto> or <result>x</result>.\"]\n",
        );
    let outcome = test.raymond(&["run", ".", "--agent", "scripted", "--id", "r"]);
    outcome.ok().stdout_has("DONE");
}

#[test]
fn placeholders_of_the_policy_are_filled_for_a_reply_without_tag() {
    let policy = |entry: &str| format!("---\nallowed_transitions:\n  - {{ {entry} }}\n---\nstart");
    let hello = ["START.md", "--input", "HELLO \"you\" {{agent_id}}"];
    let test = Test::new()
        .prompt(
            "START.md",
            &policy("tag: goto, target: NEXT.md, input: \"<{{input}}>\", by: \"{{agent_id}}\""),
        )
        .prompt("NEXT.md", "next {{by}} {{input}}")
        .rule(when("start").reply("no tag"))
        .rule(when("next").reply("<result>ok</result>"));
    test.run(&hello).ok().stderr_lacks("nothing fills");
    assert_eq!(test.calls()[1].prompt.trim(), "next main <HELLO \"you\" {{agent_id}}>");

    let test = Test::new()
        .prompt("START.md", &policy("tag: result, payload: \"{{input}} done\""))
        .rule(when("start").once().reply("<result>other</result>"))
        .rule(when("done").reply("no tag"));
    test.run(&hello).ok().ended("main", "HELLO \"you\" {{agent_id}} done");
    assert_eq!(test.events("turn_rejected").len(), 1);

    let test = Test::new()
        .prompt("START.md", &policy("tag: fork, target: WORKER.md, next: NEXT.md, each: \"{{input}}\", of: \"{{state}}\""))
        .prompt("WORKER.md", "work on {{item}} of {{of}}")
        .prompt("NEXT.md", "---\njoin: all\n---\nnext")
        .rule(when("start").reply("no tag"))
        .rule(when("work").reply("<result>ok</result>"))
        .rule(when("next").reply("<result>ok</result>"));
    test.run(&["START.md", "--input", "[1, 2]", "--stagger", "0s"]).ok();
    for number in [1, 2] {
        assert_eq!(test.calls_with(&format!("work on {number} of START.md")).len(), 1);
    }
}

#[test]
fn tag_has_to_have_the_filled_value_of_the_policy() {
    let entries = "---\nallowed_transitions:\n  - { tag: goto, target: NEXT.md, input: \"{{input}}\" }\n  - { tag: result, kind: \"{{gone}}\" }\n---\nstart";
    let test = Test::new()
        .prompt("START.md", entries)
        .prompt("NEXT.md", "next {{input}}")
        .rule(when("start").once().reply("<goto input=\"{{input}}\">NEXT.md</goto>"))
        .rule(when("allowed").reply("<goto input=\"HELLO\">NEXT.md</goto>"))
        .rule(when("next HELLO").reply("<result>ok</result>"));
    let ended = test.run(&["START.md", "--input", "HELLO"]);
    ended.ok().ended("main", "ok").stderr_has("START.md:4");
    assert!(test.calls()[1].prompt.contains("<goto input=\"HELLO\">NEXT.md</goto>"));
    assert_eq!(test.events("turn_rejected").len(), 1);
}

#[test]
fn unreadable_tag_beside_implied_transition_is_a_warning() {
    let test = Test::new()
        .prompt("START.md", "---\nallowed_transitions:\n  - { tag: goto, target: NEXT }\n---\nstart <goto target=\"NEXT\">")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply("<goto target=\"NEXT\">"))
        .rule(when("next").reply("<result>ok</result>"));
    test.run(&["START.md"]).ok().ended("main", "ok");
    let checked = test.raymond(&["check", "."]);
    checked
        .ok()
        .stdout_has("START.md:5:7: warning: RF104")
        .stdout_has("takes the only way, <goto>NEXT.md</goto>");
}

#[test]
fn frontmatter_in_the_text_of_a_prompt_is_warned_of() {
    let policy = "allowed_transitions:\n  - { tag: result }\n---\n";
    for (head, keys) in [
        (
            format!("budget: 0.10\nmodel: haiku\n{policy}"),
            "`budget`, `model`, `allowed_transitions`",
        ),
        (format!("---\nmodel: haiku\n---\n{policy}"), "`allowed_transitions`"),
    ] {
        let warning = format!(
            "this looks like frontmatter, but it is a part of the prompt and has no effect ({keys}): put"
        );
        let test = Test::new()
            .prompt("START.md", "start <goto>NEXT.md</goto>")
            .prompt("NEXT.md", &format!("{head}next <result>x</result>"))
            .rule(when("start").reply("<goto>NEXT.md</goto>"))
            .rule(when("next").reply("<result>ok</result>"));
        test.raymond(&["check", "."]).ok().stdout_has(&warning).stdout_has("warning: RF108");
        for options in [&["START.md"][..], &["START.md", "--no-check", "--id", "u"]] {
            test.run(options).ok().ended("main", "ok").stderr_has(&warning);
        }
    }
}
