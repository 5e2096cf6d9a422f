//! Failures of turns in their classes: limits, the network, the account, the conversation, lost sessions, and what a
//! failed attempt leaves behind.

use std::fs::File;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::support::{Test, always, wait_until, when};

/// The error of the API with a message, as older versions of Claude Code print it.
fn nested(status: &str, message: &str) -> String {
    format!(
        "API Error: {status} {{\"type\":\"error\",\"error\":{{\"type\":\"api_error\",\"message\":\"{message}\"}}}}"
    )
}

#[test]
fn notice_of_usage_limit_pauses_run_whatever_its_status() {
    for status in [None, Some(400), Some(403), Some(500), Some(529)] {
        let notice = nested("500", "You're out of extra usage · resets 1pm (UTC)");
        let test = Test::new()
            .prompt("START.md", "start")
            .rule(when("start").once().error(status, &notice))
            .rule(always().reply("<result>well</result>"));
        test.run(&["START.md", "--on-limit", "pause"]).code(75).stderr_has("usage limit");
        assert_eq!(test.calls().len(), 1, "{status:?}");
        test.resume(&[]).ok().ended("main", "well");
    }
}

#[test]
fn absent_network_uses_no_restart_and_is_reported_once() {
    let codes =
        ["ECONNRESET", "ENOTFOUND", "ETIMEDOUT", "ECONNREFUSED", "EAI_AGAIN", "UND_ERR_SOCKET"];
    let mut test = Test::new().prompt("START.md", "start").prompt("NEXT.md", "next");
    for code in codes {
        let refused = format!("API Error: Unable to connect to API ({code})");
        test = test.rule(when("start").once().error(None::<u16>, &refused));
    }
    let test = test
        .rule(when("start").reply("<goto>NEXT.md</goto>"))
        .rule(when("next").once().error(None::<u16>, "API Error: Connection error."))
        .rule(when("next").reply("<result>back</result>"));
    let outcome = test.run(&["START.md", "--max-restarts", "0", "--backoff", "1ms..5ms"]);
    outcome.ok().ended("main", "back");
    let told = outcome.stderr.matches("network: ").count();
    assert_eq!(told, 2, "once for each time that it was absent");
    let failed = test.events("turn_failed");
    assert_eq!(failed.len(), 7);
    assert!(failed.iter().all(|turn| turn["cause"] == "network" && turn["counts"] == false));
}

#[test]
fn network_that_fails_only_after_a_paid_turn_ends_by_the_restart_policy() {
    let words = "API Error: Unable to connect to API (ECONNRESET)";
    let lost = json!({
        "type": "result", "subtype": "error_during_execution", "is_error": true, "num_turns": 1,
        "total_cost_usd": 0.5, "modelUsage": {}, "errors": [words],
    });
    let test = Test::new().prompt("START.md", "start").rule(when("start").lines([lost]));
    let outcome = test.run(&["START.md", "--max-restarts", "2", "--backoff", "1ms..5ms"]);
    outcome.code(1).failed("main");
    assert_eq!(test.calls().len(), 4, "one for the network, one, and two restarts");
}

#[test]
fn refused_account_pauses_run_also_where_failures_are_kept() {
    let refused = "Your organization has disabled Claude subscription access for Claude Code";
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("W.md", "work")
        .prompt("JOIN.md", "---\njoin: all\non_failure: keep\n---\njoined")
        .rule(when("start").reply(r#"<fork next="JOIN.md">W.md</fork>"#))
        .rule(when("work").once().error(403, refused))
        .rule(when("work").reply("<result>worked</result>"))
        .rule(when("joined").reply("<result>all</result>"));
    test.run(&["START.md"]).code(69).stderr_has("ask the admin").stderr_has("raymond resume t");
    assert_eq!(test.calls_with("work").len(), 1);
    test.resume(&[]).ok().ended("main.1", "worked").ended("main", "all");
}

#[test]
fn poisoned_conversation_restarts_once_from_before_the_turn() {
    let texts = [
        "Could not process image",
        "The request body is not valid JSON: no low surrogate in string",
        "messages.3: text content blocks must be non-empty",
        "Output blocked by content filtering policy",
        "The PDF specified was not valid",
    ];
    for text in texts {
        let test = Test::new()
            .prompt("START.md", "start")
            .prompt("NEXT.md", "next")
            .rule(when("start").reply("<goto>NEXT.md</goto>"))
            .rule(when("next").once().error(400, &nested("400", text)))
            .rule(when("next").reply("<result>fine</result>"));
        test.run(&["START.md", "--backoff", "1ms..5ms"]).ok().ended("main", "fine");
        assert_eq!(test.events("turn_failed")[0]["cause"], "poisoned", "{text}");
        let calls = test.calls();
        assert_eq!(calls.len(), 3);
    }
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(always().error(400, &nested("400", "Could not process image")));
    test.run(&["START.md", "--backoff", "1ms..5ms"]).code(1);
    assert_eq!(test.calls().len(), 2, "the clean attempt was refused as well");
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(always().error(400, &nested("400", "max_tokens: Extra inputs are not permitted")));
    test.run(&["START.md"]).code(1);
    assert_eq!(test.calls().len(), 1);
}

#[test]
fn limit_that_was_reset_before_it_was_read_is_over() {
    let before = |seconds: i64| {
        let at = jiff::Timestamp::now() - jiff::Span::new().seconds(seconds);
        at.to_zoned(jiff::tz::TimeZone::UTC)
    };
    // A minute within the last hours, since which nothing was read.
    let resets = before(2 * 3600).strftime("%-I:%M%P").to_string();
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(
            when("start")
                .once()
                .hold_before("limit")
                .error(429, &format!("You've hit your session limit · resets {resets} (UTC)")),
        )
        .rule(always().reply("<result>went on</result>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_for("a turn", |test| test.calls().len() == 1);
    live.kill9();
    test.release("limit");
    let stream = test.run_dir().join("steps/main-1-0.jsonl");
    wait_until("the result", || {
        std::fs::read_to_string(&stream).is_ok_and(|text| text.contains("session limit"))
    });
    let written = SystemTime::now() - Duration::from_hours(3);
    let file = File::options().append(true).open(&stream).expect("opened");
    file.set_modified(written).expect("the file is older now");
    test.resume(&[]).ok().ended("main", "went on");
    assert!(test.events("limit_reached").is_empty());
}

#[test]
fn lost_session_is_offered_and_taken() {
    let gone = "No conversation found with session ID: x";
    let asks = |options: &str| {
        Test::new()
            .prompt("START.md", "start")
            .prompt("NEXT.md", &format!("---\n{options}\n---\nnext {{{{answer}}}}"))
            .rule(when("exists").reply("<result>shipped</result>"))
            .rule(when("start").reply(r#"<ask next="NEXT.md">ship it?</ask>"#))
            .rule(when("next").error(None::<u16>, gone))
    };
    let test = asks("model: haiku");
    test.run(&["START.md"]).code(2).stderr_has("30 days");
    test.raymond(&["answer", "t", "NEXT.md=yes"]).ok();
    test.resume(&[]).code(1).stdout_has("raymond retry").stdout_has("on_lost_session: fresh");
    test.raymond(&["retry", "t"]).ok().ended("main", "shipped");
    let last = test.prompts().pop().expect("a prompt");
    for part in ["start", "ship it?", "next yes"] {
        assert!(last.contains(part), "{part}: {last}");
    }

    let test = asks("on_lost_session: fresh");
    test.run(&["START.md"]).code(2);
    test.raymond(&["answer", "t", "NEXT.md=yes"]).ok();
    test.resume(&[]).ok().ended("main", "shipped");
    assert_eq!(test.events("turn_failed")[0]["cause"], "session_lost");
}

#[test]
fn flood_of_stderr_leaves_only_its_end() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(always().stderr(&"x".repeat(3_000_000)).reply("<result>well</result>"));
    test.run(&["START.md"]).ok().ended("main", "well");
    let steps = std::fs::read_dir(test.run_dir().join("steps")).expect("the steps");
    let files = steps.flatten().map(|file| file.path());
    let stderr: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|e| e == "stderr")).collect();
    assert_eq!(stderr.len(), 1);
    let length = stderr[0].metadata().expect("it is there").len();
    assert!((1..=64 * 1024).contains(&length), "{length}");
}

#[test]
fn each_failure_has_the_stderr_of_its_process() {
    let numbers: Vec<u32> = (10..70).collect();
    let mut test = Test::new()
        .prompt("START.md", "start")
        .prompt("JOIN.md", "join")
        .prompt("CRASH.md", "---\nsupervision: { max_restarts: 0 }\n---\ncrash {{item}}")
        .rule(
            when("start")
                .reply(&format!("<fork next=\"JOIN.md\" each=\"{numbers:?}\">CRASH.md</fork>")),
        )
        .rule(when("join").reply("<result>well</result>"));
    for n in &numbers {
        test = test.rule(when(&format!("crash {n}")).stderr(&format!("words of {n}.")).exit(3));
    }
    test.run(&["START.md", "--max-procs", "3"]).code(1);
    let failed = test.events("agent_failed");
    assert_eq!(failed.len(), numbers.len());
    let own = |failure: &Value| {
        let agent = failure["agent"].as_str().expect("an agent").to_owned();
        let number: usize =
            agent.strip_prefix("main.").expect("a child").parse().expect("a number");
        (failure.to_string(), format!("words of {}.", numbers[number - 1]))
    };
    for (message, words) in failed.iter().map(own) {
        assert!(message.contains(&words), "{words} {message}");
    }
}
