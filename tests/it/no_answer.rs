//! Turns that are no answers of the model: they take no transition, not even one that needs no tag.

use serde_json::{Value, json};

use crate::support::{FakeRule, Test, always, when};

const ONLY_NEXT: &str = "---\nallowed_transitions: [{ tag: goto, target: NEXT.md }]\n---\nstart";

/// Returns a state with one way on, to a state that ends.
fn only_next(rules: impl IntoIterator<Item = FakeRule>) -> Test {
    let test = Test::new().prompt("START.md", ONLY_NEXT).prompt("NEXT.md", "next");
    let test = rules.into_iter().fold(test, Test::rule);
    test.rule(when("next").reply("<result>deployed</result>"))
}

fn result(more: &Value) -> Value {
    let mut line = json!({
        "type": "result", "subtype": "success", "is_error": false, "num_turns": 1,
        "total_cost_usd": 0.01, "modelUsage": {},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        line[key] = value.clone();
    }
    line
}

fn wrote(text: &str) -> Value {
    json!({
        "type": "assistant", "uuid": "m1",
        "message": { "model": "opus", "content": [{ "type": "text", "text": text }] },
    })
}

fn called_tool() -> [Value; 2] {
    let call = json!({ "type": "tool_use", "id": "t1", "name": "Write", "input": {} });
    let answer = json!({ "type": "tool_result", "tool_use_id": "t1", "content": "ok" });
    [
        json!({ "type": "assistant", "message": { "model": "opus", "content": [call] } }),
        json!({ "type": "user", "message": { "content": [answer] } }),
    ]
}

#[test]
fn empty_answer_is_reminded_and_takes_no_implied_transition() {
    let empty = || result(&json!({ "result": "", "terminal_reason": "completed" }));
    let missing = || result(&json!({ "usage": { "output_tokens": 0 } }));
    let thought = json!({
        "type": "assistant",
        "message": { "model": "opus", "content": [{ "type": "thinking", "thinking": " " }] },
    });
    let [call, answer] = called_tool();
    let cases = [
        vec![empty()],
        vec![missing()],
        vec![thought, empty()],
        vec![call.clone(), answer.clone(), empty()],
        vec![wrote("I look first."), call, answer, empty()],
    ];
    for lines in cases {
        let test = only_next([
            when("start").lines(lines),
            when("reply is empty").once().lines([empty()]),
            when("reply is empty").reply("now it is done"),
        ]);
        test.run(&["START.md"]).ok().ended("main", "deployed");
        assert_eq!(test.prompts().len(), 4, "{:?}", test.prompts());
        assert!(test.prompts()[1].contains("<goto>NEXT.md</goto>"), "{:?}", test.prompts());
    }
}

#[test]
fn agent_that_never_answers_fails_after_its_reminders() {
    let empty = result(&json!({ "result": " \n" }));
    let test = only_next([always().lines([empty.clone()])]);
    test.run(&["START.md"]).code(1).says("the reply is empty").failed("main");
    let asked = test.prompts().len();
    assert!((2..6).contains(&asked), "{asked}");

    let open = Test::new().prompt("START.md", "start").rule(when("start").lines([empty]));
    let open = open.rule(when("reply is empty").reply("<result>ok</result>"));
    open.run(&["START.md"]).ok().ended("main", "ok");
}

#[test]
fn turn_that_asked_no_model_or_that_a_hook_stopped_fails_the_agent() {
    let blocked = "UserPromptSubmit operation blocked by hook:\n[guard.sh]: NO\n\nOriginal prompt: start <goto>NEXT.md</goto>";
    let stopped = json!({
        "type": "system", "subtype": "informational", "content": blocked, "prevent_continuation": true,
    });
    let cases = [
        (vec![stopped, result(&json!({ "num_turns": 0, "result": blocked }))], "[guard.sh]: NO"),
        (
            vec![result(&json!({ "num_turns": 0, "result": "<goto>NEXT.md</goto>" }))],
            "without asking the model",
        ),
        (
            vec![result(&json!({ "result": "", "terminal_reason": "hook_stopped" }))],
            "a hook ended the turn",
        ),
        (
            vec![wrote("so"), result(&json!({ "result": "so", "terminal_reason": "model_error" }))],
            "(model_error)",
        ),
    ];
    for (lines, words) in cases {
        let test = only_next([when("start").lines(lines)]);
        let outcome = test.run(&["START.md", "--max-restarts", "0"]);
        outcome.code(1).says(words).failed("main");
        assert_eq!(test.prompts(), ["start"]);
    }
}

#[test]
fn last_text_counts_where_a_stop_hook_has_emptied_the_result() {
    let feedback = json!({
        "type": "user",
        "message": { "content": [{ "type": "text", "text": "Stop hook feedback:\n[check.sh]: not green\n" }] },
    });
    let end = result(&json!({ "num_turns": 10, "result": "", "terminal_reason": "completed" }));
    let lines = [wrote("<goto>NEXT.md</goto>"), feedback.clone(), end.clone()];
    let test = only_next([when("start").lines(lines)]);
    test.run(&["START.md"]).ok().ended("main", "deployed");

    let test = Test::new().prompt("START.md", "start").rule(when("start").lines([
        wrote("done"),
        feedback,
        end,
    ]));
    test.run(&["START.md"]).code(1).says("not green").failed("main");
}

#[test]
fn scripted_reply_that_is_empty_takes_no_implied_transition() {
    let test = only_next([]);
    let test =
        test.file("replies.yaml", b"START.md: ['', 'well']\nNEXT.md: ['<result>ok</result>']\n");
    test.run(&["START.md", "--agent", "scripted"]).ok().ended("main", "ok");
}

#[test]
fn prompt_and_input_that_begin_with_a_slash_are_sent_as_text() {
    let test = Test::new()
        .prompt("START.md", "{{input}}")
        .prompt("NEXT.md", "/compact")
        .prompt("LAST.md", "---\nrun_command: true\n---\n\n/review it")
        .rule(when("/model").reply("<goto>NEXT.md</goto>"))
        .rule(when("/compact").reply("<goto>LAST.md</goto>"))
        .rule(when("/review").reply("<result>ok</result>"));
    test.run(&["START.md", "--input", "/model opus"]).ok().ended("main", "ok");
    let sent: Vec<String> = test.calls().into_iter().map(|call| call.prompt).collect();
    assert_eq!(sent, ["\n/model opus", "\n/compact", "/review it"]);
}

#[test]
fn command_without_output_takes_the_implied_transition() {
    let said = result(&json!({ "num_turns": 0, "result": "" }));
    let test = Test::new()
        .prompt("START.md", &ONLY_NEXT.replace("---\nstart", "run_command: true\n---\n/compact"))
        .prompt("NEXT.md", "next")
        .rule(when("/compact").lines([said]))
        .rule(when("next").reply("<result>ok</result>"));
    test.run(&["START.md"]).ok().ended("main", "ok");
}

#[test]
fn command_that_asks_the_model_needs_its_answer() {
    let said = result(&json!({ "result": "", "terminal_reason": "completed" }));
    let test = Test::new()
        .prompt("START.md", &ONLY_NEXT.replace("---\nstart", "run_command: true\n---\n/review"))
        .prompt("NEXT.md", "next")
        .rule(when("/review").once().lines([said]))
        .rule(when("is empty").reply("reviewed"))
        .rule(when("next").reply("<result>ok</result>"));
    test.run(&["START.md"]).ok().ended("main", "ok");
    assert_eq!(test.events("turn_rejected").len(), 1);
}

#[test]
fn switch_that_is_refused_makes_a_new_process_that_has_the_options() {
    for (refused, options) in [
        ("set_model", "model: sonnet"),
        ("set_permission_mode", "permission_mode: plan"),
        ("apply_flag_settings", "effort: max"),
    ] {
        let test = Test::new()
            .prompt("START.md", "start")
            .prompt("NEXT.md", &format!("---\n{options}\n---\nnext"))
            .rule(when("start").reply("<goto>NEXT.md</goto>"))
            .rule(when("next").reply("<result>ok</result>"));
        let granted = test.run(&["START.md"]);
        granted.ok().ended("main", "ok");
        assert_eq!(test.calls()[1].pid, test.calls()[0].pid, "{refused}: it is granted");

        let test = Test::new()
            .prompt("START.md", "start")
            .prompt("NEXT.md", &format!("---\n{options}\n---\nnext"))
            .rule(when("start").reply("<goto>NEXT.md</goto>"))
            .rule(when("next").reply("<result>ok</result>"))
            .env("FAKE_CLAUDE_REFUSES", refused);
        test.run(&["START.md"]).ok().ended("main", "ok");
        let calls = test.calls();
        assert_eq!(test.prompts(), ["start", "next"], "{refused}: each is asked once");
        assert_ne!(calls[1].pid, calls[0].pid, "{refused}");
        let (key, value) = options.split_once(": ").expect("a key");
        assert_eq!(calls[1].flag(&format!("--{}", key.replace('_', "-"))), Some(value));
    }
}

#[test]
fn change_of_the_model_after_a_refusal_is_reported() {
    let changed = json!({
        "type": "system", "subtype": "model_refusal_fallback", "original_model": "opus",
        "fallback_model": "sonnet", "content": "Opus refused",
    });
    let end = result(&json!({ "result": "<result>ok</result>" }));
    let test = Test::new().prompt("START.md", "start").rule(always().lines([changed, end]));
    let outcome = test.run(&["START.md"]);
    outcome.ok().ended("main", "ok").stderr_has("changed from opus to sonnet: Opus refused");
}
