//! Verdicts over turns of every kind of end.

use jiff::tz::TimeZone;
use raymond_model::time::Timestamp;

use super::*;
use raymond_model::money::Usd;

fn stream(lines: &str) -> StreamParser {
    let mut stream = StreamParser::default();
    stream.feed(lines.as_bytes()).expect("short lines");
    stream.end();
    stream
}

fn moment() -> ZonedTime {
    ZonedTime { now: Timestamp(1_763_800_000_000), zone: TimeZone::UTC }
}

fn failure(lines: &str, exit: ProcessExit, stderr: &str) -> TurnFailure {
    match judge(&stream(lines), exit, &moment(), &|| stderr.to_owned()) {
        TurnOutcome::Failed(failure) => failure,
        TurnOutcome::Replied(reply) => panic!("{reply:?}"),
    }
}

#[test]
fn answer_counts_for_any_exit_status() {
    let lines = r#"{"type":"result","subtype":"success","is_error":false,"result":"hi","total_cost_usd":0.01}"#;
    for exit in
        [ProcessExit::Code(0), ProcessExit::Code(1), ProcessExit::Signal(15), ProcessExit::Unseen]
    {
        let TurnOutcome::Replied(reply) = judge(&stream(lines), exit, &moment(), &String::new)
        else {
            panic!("no reply")
        };
        assert_eq!((reply.text.as_str(), reply.cost), ("hi", Usd::from_dollars(0.01)));
    }
}

#[test]
fn structured_output_is_preserved_verbatim_and_optional() {
    let table = [
        (
            r#"{"structured_output":{"b":1,"a":[2.50]},"type":"result","subtype":"success","is_error":false,"result":"{}"}"#,
            Some(r#"{"b":1,"a":[2.50]}"#),
        ),
        (
            r#"{"type":"result","subtype":"success","is_error":false,"result":"I approve.","structured_output":null}"#,
            None,
        ),
        (
            r#"{"type":"result","subtype":"error_max_structured_output_retries","is_error":true,"errors":["no"]}"#,
            None,
        ),
    ];
    for (lines, structured) in table {
        let outcome = judge(&stream(lines), ProcessExit::Code(0), &moment(), &String::new);
        let TurnOutcome::Replied(reply) = outcome else { panic!("{lines}: {outcome:?}") };
        assert_eq!(reply.structured.as_deref(), structured, "{lines}");
    }
}

#[test]
fn each_api_error_is_classified_by_cause() {
    let table = [
        (
            r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":400,"result":"API Error: 400 bad"}"#,
            FailureCause::Rejected,
            "a repeated request would fail too",
        ),
        (
            r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":400,"result":"API Error: 400 messages.3: `tool_use` ids were found without `tool_result` blocks"}"#,
            FailureCause::Poisoned,
            "`tool_use` ids",
        ),
        (
            r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":400,"result":"Prompt is too long"}"#,
            FailureCause::Rejected,
            "shorten the prompt",
        ),
        (
            r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":402,"result":"API Error: 402 pay"}"#,
            FailureCause::UsageLimit,
            "billing",
        ),
        (
            r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":404,"result":"There's an issue with the selected model (x)."}"#,
            FailureCause::Rejected,
            "--model",
        ),
        (
            r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":413,"result":"Request too large"}"#,
            FailureCause::Rejected,
            "read less",
        ),
        (
            r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":500,"result":"API Error: 500 oops"}"#,
            FailureCause::Crash,
            "oops",
        ),
        (
            r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"overloaded"}"#,
            FailureCause::Throttle,
            "overloaded",
        ),
        (
            r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"slow down"}"#,
            FailureCause::Throttle,
            "slow down",
        ),
        (
            r#"{"type":"result","subtype":"success","is_error":true,"result":"Not logged in · Please run /login"}"#,
            FailureCause::Authentication,
            "log in by running `claude` once",
        ),
        (
            r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: x"]}"#,
            FailureCause::SessionLost,
            "working directory",
        ),
        (
            r#"{"type":"result","subtype":"error_max_turns","is_error":true}"#,
            FailureCause::Rejected,
            "error_max_turns",
        ),
    ];
    for (line, cause, words) in table {
        let failure = failure(line, ProcessExit::Code(1), "");
        assert_eq!(failure.cause, cause, "{line}");
        assert!(failure.message.contains(words), "{}", failure.message);
    }
}

#[test]
fn errors_of_something_else_do_not_decide() {
    let table = [
        ("MCP server 'db': Error: connect ECONNREFUSED 127.0.0.1:5432", FailureCause::Crash),
        ("Error: Could not load credentials from any providers (aws)", FailureCause::Crash),
        ("Error: GitHub: usage limit reached, resets 3pm (UTC)", FailureCause::Crash),
        ("[mcp] not logged in", FailureCause::Crash),
        ("API Error: Unable to connect to API (ECONNRESET)", FailureCause::Network),
        ("Unable to connect to API due to poor internet connection", FailureCause::Network),
        ("You've hit your limit · resets 12pm (UTC)", FailureCause::UsageLimit),
        ("Your organization has disabled Claude subscription access", FailureCause::Account),
    ];
    for (error, cause) in table {
        let line = format!(
            "{{\"type\":\"result\",\"subtype\":\"error_during_execution\",\"is_error\":true,\"errors\":[\"Error: x\",\"{error}\"]}}"
        );
        let failure = failure(&line, ProcessExit::Code(1), "");
        assert_eq!(failure.cause, cause, "{error}");
        assert!(failure.message.contains(error), "{}", failure.message);
    }
}

#[test]
fn usage_limit_is_detected_by_event_then_by_text() {
    let event = |resets: &str| {
        format!(
            "{{\"type\":\"rate_limit_event\",\"rate_limit_info\":{{\"status\":\"rejected\",\"rateLimitType\":\"five_hour\"{resets}}}}}\n"
        )
    };
    let refused = |text: &str| {
        format!(
            "{{\"type\":\"result\",\"is_error\":true,\"api_error_status\":429,\"result\":\"{text}\"}}"
        )
    };
    let at = |seconds: u64| Some(Timestamp(seconds * 1000));
    let noon = "You've hit your limit · resets 12pm (UTC)";
    let table = [
        (event(",\"resetsAt\":1763803600") + &refused("no more"), at(1_763_803_600)),
        (event(",\"resetsAt\":1763803600000") + &refused(noon), at(1_763_803_600)),
        (event("") + &refused(noon), at(1_763_812_800)),
        (event("") + &refused("no more"), None),
        (refused(noon), at(1_763_812_800)),
    ];
    for (lines, resets) in table {
        let failure = failure(&lines, ProcessExit::Code(1), "");
        assert_eq!((failure.cause, failure.resets), (FailureCause::UsageLimit, resets), "{lines}");
    }
    for status in [400, 401, 500] {
        let refused = format!(
            "{{\"type\":\"result\",\"is_error\":true,\"api_error_status\":{status},\"result\":\"no\"}}"
        );
        let cause = failure(&(event("") + &refused), ProcessExit::Code(1), "").cause;
        assert_ne!(cause, FailureCause::UsageLimit, "{status}");
    }
    let paid_extra = event(",\"isUsingOverage\":true") + &refused("slow down");
    assert_eq!(failure(&paid_extra, ProcessExit::Code(1), "").cause, FailureCause::Throttle);
    let answered = event("") + "{\"type\":\"result\",\"result\":\"all the same\"}";
    let outcome = judge(&stream(&answered), ProcessExit::Code(0), &moment(), &String::new);
    assert!(matches!(outcome, TurnOutcome::Replied(_)));
}

#[test]
fn notice_of_usage_limit_counts_with_any_status_of_an_error() {
    let notice = "You're out of extra usage · resets 1pm (UTC)";
    let nested = |status: &str| {
        format!(
            "API Error: {status} {{\"type\":\"error\",\"error\":{{\"type\":\"api_error\",\"message\":\"{notice}\"}}}}"
        )
    };
    for status in ["null", "400", "401", "403", "404", "429", "500", "503", "529"] {
        for text in [notice.to_owned(), nested(status)] {
            let text = serde_json::to_string(&text).expect("JSON");
            let line = format!(
                "{{\"type\":\"result\",\"is_error\":true,\"api_error_status\":{status},\"result\":{text}}}"
            );
            let failed = failure(&line, ProcessExit::Code(1), "");
            assert_eq!(failed.cause, FailureCause::UsageLimit, "{line}");
            assert_eq!(failed.resets, Some(Timestamp(1_763_816_400_000)), "{line}");
            let answer = line.replace("\"is_error\":true", "\"is_error\":false");
            let outcome = judge(&stream(&answer), ProcessExit::Code(0), &moment(), &String::new);
            assert!(matches!(outcome, TurnOutcome::Replied(_)), "{answer}");
            let cut = answer.replace("false", "true,\"subtype\":\"error_max_turns\"");
            let cause = failure(&cut, ProcessExit::Code(1), "").cause;
            assert_eq!(cause, FailureCause::Rejected, "its own limit ended it: {cut}");
        }
    }
    for text in ["rate limit reached", "the limit of open files"] {
        let line = format!(
            "{{\"type\":\"result\",\"is_error\":true,\"api_error_status\":500,\"result\":\"{text}\"}}"
        );
        assert_eq!(failure(&line, ProcessExit::Code(1), "").cause, FailureCause::Crash, "{line}");
    }
}

#[test]
fn error_kind_is_classified_without_http_status() {
    let result = r#"{"type":"result","is_error":true,"result":"no"}"#;
    for (kind, cause) in [
        ("billing_error", FailureCause::UsageLimit),
        ("model_not_found", FailureCause::Rejected),
        ("invalid_request", FailureCause::Rejected),
        ("server_error", FailureCause::Crash),
        ("authentication_failed", FailureCause::Authentication),
    ] {
        let lines = format!("{{\"type\":\"assistant\",\"error\":\"{kind}\"}}\n{result}");
        assert_eq!(failure(&lines, ProcessExit::Code(1), "").cause, cause, "{kind}");
    }
}

#[test]
fn refused_arguments_are_rejected_and_other_errors_are_crashes() {
    for (stderr, cause) in [
        ("error: unknown option '--bogus'\n", FailureCause::Rejected),
        (
            "error: option '--permission-mode <mode>' argument 'x' is invalid.",
            FailureCause::Rejected,
        ),
        ("Error: Settings file not found: /nope.json", FailureCause::Rejected),
        ("Error processing --setting-sources: Invalid setting source: x.", FailureCause::Rejected),
        ("Error: Invalid MCP configuration:\nMCP config file not found: x", FailureCause::Rejected),
        ("Warning: old\nError: Invalid --agents configuration:", FailureCause::Rejected),
        ("Error: Session ID x is already in use.", FailureCause::Crash),
        ("error: out of memory", FailureCause::Crash),
    ] {
        let failed = failure("", ProcessExit::Code(1), stderr);
        assert_eq!(failed.cause, cause, "{stderr}");
        assert_eq!(failed.message.contains("correct that option"), cause == FailureCause::Rejected);
    }
    let unknown = "error: unknown option '--bogus'";
    assert_eq!(failure("", ProcessExit::Signal(9), unknown).cause, FailureCause::Crash);
    let init = "{\"type\":\"system\",\"subtype\":\"init\"}\n";
    assert_eq!(failure(init, ProcessExit::Code(1), unknown).cause, FailureCause::Crash);
}

#[test]
fn exit_without_answer_reports_output_and_stderr() {
    let message = |lines, exit, stderr| failure(lines, exit, stderr).message;
    assert_eq!(
        message("", ProcessExit::Code(0), ""),
        "Claude Code exited with code 0 and printed nothing, so it has no result"
    );
    assert_eq!(
        message("core dumped\n", ProcessExit::Code(3), "oh\n"),
        "Claude Code exited with code 3 and printed no result, but `core dumped`, which is not stream-json; on stderr it said: oh"
    );
    let init = "{\"type\":\"system\",\"subtype\":\"init\"}\n";
    assert!(message(init, ProcessExit::Signal(9), "").contains("killed by signal 9 (SIGKILL"));
    assert_eq!(failure(init, ProcessExit::Signal(9), "").cause, FailureCause::Crash);
    assert_eq!(failure(init, ProcessExit::Unseen, "").cause, FailureCause::Lost);
}
