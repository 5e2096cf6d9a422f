//! What a turn came to, judged from its stream, its exit and its last words. Pure.
//!
//! `is_error` decides, never the subtype or the exit code alone: an API error comes as
//! `subtype: "success"`, and a process can exit with 0 without having answered.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use jiff::tz::TimeZone;

use super::limit::{self, UsageLimit};
use super::stream::{Rejected, Stream, TurnResult, excerpt, is_throttle};
use crate::domain::time::Timestamp;
use crate::domain::turn::{Cause, Failure, Reply, StepOutcome};

/// How the program ends a turn whose answer did not match its schema again and again. The session goes on, so
/// the agent can be reminded like one that answered without an object.
const NO_OBJECT: &str = "error_max_structured_output_retries";
/// Advice for credentials that are missing or not accepted.
pub(super) const LOG_IN: &str =
    "; log in by running `claude` once, or set a valid ANTHROPIC_API_KEY";

/// Beginnings of the lines with which the program refuses its arguments, on stderr.
const ARGUMENT_ERRORS: [&str; 12] = [
    "error: unknown option",
    "error: option ",
    "error: missing ",
    "error: too many arguments",
    "Error processing --",
    "Error: --",
    "Error: Invalid --",
    "Error: Invalid settings",
    "Error: Invalid MCP configuration",
    "Error: Settings file not found",
    "Error: System prompt file not found",
    "Error: Append system prompt file not found",
];

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With a code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// Nobody was there to see it.
    Unseen,
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Unseen,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => {
                write!(f, "was killed by signal {signal}{}", signal_name(*signal))
            }
            Self::Unseen => f.write_str("ended, or never began, while no raymond watched it"),
        }
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        6 => " (SIGABRT)",
        9 => " (SIGKILL; often the system was out of memory)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

/// When and where a turn is judged: a limit that resets at three means three o'clock there.
#[derive(Debug, Clone)]
pub struct Moment {
    /// The time.
    pub now: Timestamp,
    /// The zone of times that name none.
    pub zone: TimeZone,
}

/// Judges a turn that has ended by itself. `stderr` gives the end of what it said there, and is only
/// asked for if there is no result.
#[must_use]
pub fn judge(
    stream: &Stream,
    exit: Exit,
    moment: impl FnOnce() -> Moment,
    stderr: impl FnOnce() -> String,
) -> StepOutcome {
    match &stream.result {
        Some(result) if result.is_error && result.subtype != NO_OBJECT => {
            StepOutcome::Failed(refused(stream, result, &moment()))
        }
        Some(result) => StepOutcome::Replied(Reply {
            text: result.text.clone().unwrap_or_default(),
            structured: result.structured.clone(),
            cost: stream.taken().cost,
            usage: stream.taken().usage.clone(),
            duration_ms: result.duration_ms,
            message: stream.message.clone(),
            refused_tools: stream.refused.refusals(),
        }),
        None => StepOutcome::Failed(no_result(stream, exit, &stderr())),
    }
}

/// The program reported an error of its own.
fn refused(stream: &Stream, result: &TurnResult, moment: &Moment) -> Failure {
    let whole = match (&result.text, result.errors.as_slice()) {
        (Some(text), _) if !text.trim().is_empty() => text.clone(),
        (_, []) => result.subtype.clone(),
        (_, errors) => errors.join("; "),
    };
    let limit = usage_limit(stream, result.api_status, &whole, moment);
    let said = excerpt(&whole);
    let (cause, hint) = match limit {
        Some(_) => (Cause::UsageLimit, ""),
        None => classify(stream, result, &said),
    };
    Failure {
        resets: limit.and_then(|limit| limit.resets),
        cost: stream.taken().cost,
        usage: stream.taken().usage.clone(),
        ..Failure::new(cause, format!("Claude Code reported an error: {said}{hint}"))
    }
}

/// Whether the account's usage limit is reached, and when it resets: by the structured event if there
/// was one, and what that leaves open by the text. An answer that was refused for another reason, after
/// such an event, is no such case.
fn usage_limit(
    stream: &Stream,
    status: Option<u16>,
    said: &str,
    moment: &Moment,
) -> Option<UsageLimit> {
    if !matches!(status, None | Some(400 | 429)) {
        return None;
    }
    let read = limit::usage_limit(said, moment.now, &moment.zone);
    match stream.limit {
        Some(Rejected { resets_at }) if status == Some(429) || read.is_some() => {
            let told = resets_at.and_then(|number| limit::normalise(number, moment.now));
            Some(UsageLimit { resets: told.or(read.and_then(|limit| limit.resets)) })
        }
        _ => read,
    }
}

fn classify(stream: &Stream, result: &TurnResult, said: &str) -> (Cause, &'static str) {
    let says = |words: &str| said.contains(words);
    let forbidden = result.api_status == Some(403) && says("authentication");
    let logged_out = (stream.not_logged_in && matches!(result.api_status, None | Some(401 | 403)))
        || forbidden
        || result.api_status == Some(401)
        || says("Not logged in")
        || says("Invalid API key");
    if logged_out {
        return (Cause::Authentication, LOG_IN);
    }
    if says("No conversation found with session ID") {
        return (
            Cause::Rejected,
            "; sessions belong to their working directory and home: go on in the same ones as before",
        );
    }
    match result.subtype.as_str() {
        "error_max_turns" => return (Cause::Rejected, ""),
        "error_max_budget_usd" => return (Cause::Budget, ""),
        _ => {}
    }
    if result.api_status.is_some_and(is_throttle) {
        return (Cause::Throttle, "");
    }
    // Also what is wrong with the conversation itself: the next attempt starts from clean history.
    match rejection(stream, result, said) {
        Some(advice) => (Cause::Rejected, advice),
        None => (Cause::Crash, ""),
    }
}

/// Returns advice if the API refused the request in a way that repeating it would not change.
fn rejection(stream: &Stream, result: &TurnResult, said: &str) -> Option<&'static str> {
    let status = result.api_status;
    let reported = |kind: &str| stream.reported_error.as_deref() == Some(kind);
    let says = |words: &str| said.to_ascii_lowercase().contains(words);
    if says("prompt is too long") {
        return Some("; shorten the prompt, or begin this state in a fresh session with <reset>");
    }
    if status == Some(402) || reported("billing_error") || says("credit balance is too low") {
        return Some("; see to the billing of the account, then run it again");
    }
    if status == Some(404) || reported("model_not_found") {
        return Some("; name a model that the account may use, with --model or in the workflow");
    }
    if status == Some(413) {
        return Some("; have the agent read less at a time, or begin in a fresh session");
    }
    let about_history = ["tool_use", "tool_result", "thinking"].into_iter().any(says);
    let invalid = status == Some(400) || reported("invalid_request");
    (invalid && !about_history).then_some("; repeating the request would not change that")
}

/// The program ended without having answered.
fn no_result(stream: &Stream, exit: Exit, stderr: &str) -> Failure {
    let printed = match &stream.garbage {
        Some(garbage) if stream.events == 0 => {
            format!("gave no result: it printed `{garbage}`, which is not stream-json")
        }
        _ if stream.events == 0 => "gave no result: it printed nothing".to_owned(),
        _ => "gave no result".to_owned(),
    };
    let said = match excerpt(stderr) {
        said if said.is_empty() => String::new(),
        said => format!("; on stderr it said: {said}"),
    };
    let unusable = exit == Exit::Code(1) && stream.events == 0 && is_about_arguments(stderr);
    let (cause, advice) = match exit {
        Exit::Unseen => (Cause::Lost, ""),
        Exit::Code(_) if unusable => {
            (Cause::Rejected, "; correct that option, in the workflow or after `--`")
        }
        Exit::Code(_) | Exit::Signal(_) => (Cause::Crash, ""),
    };
    Failure::new(cause, format!("Claude Code {exit} and {printed}{said}{advice}"))
}

/// Returns whether the program complained about its arguments, which will be the same next time.
fn is_about_arguments(stderr: &str) -> bool {
    stderr.lines().any(|line| ARGUMENT_ERRORS.iter().any(|error| line.starts_with(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::money::Usd;

    fn stream(lines: &str) -> Stream {
        let mut stream = Stream::default();
        stream.feed(lines.as_bytes()).expect("short lines");
        stream.end().expect("short lines");
        stream
    }

    fn moment() -> Moment {
        Moment { now: Timestamp(1_763_800_000_000), zone: TimeZone::UTC }
    }

    fn failure(lines: &str, exit: Exit, stderr: &str) -> Failure {
        match judge(&stream(lines), exit, moment, || stderr.to_owned()) {
            StepOutcome::Failed(failure) => failure,
            StepOutcome::Replied(reply) => panic!("{reply:?}"),
        }
    }

    #[test]
    fn an_answer_counts_whatever_the_exit() {
        let lines = r#"{"type":"result","subtype":"success","is_error":false,"result":"hi","total_cost_usd":0.01}"#;
        for exit in [Exit::Code(0), Exit::Code(1), Exit::Signal(15), Exit::Unseen] {
            let StepOutcome::Replied(reply) = judge(&stream(lines), exit, moment, String::new)
            else {
                panic!("no reply")
            };
            assert_eq!((reply.text.as_str(), reply.cost), ("hi", Usd::from_dollars(0.01)));
        }
    }

    #[test]
    fn an_object_is_kept_as_it_was_given_and_its_absence_is_a_reply_too() {
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
            let outcome = judge(&stream(lines), Exit::Code(0), moment, String::new);
            let StepOutcome::Replied(reply) = outcome else { panic!("{lines}: {outcome:?}") };
            assert_eq!(reply.structured.as_deref(), structured, "{lines}");
        }
    }

    #[test]
    fn errors_are_told_apart() {
        let table = [
            (
                r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":400,"result":"API Error: 400 bad"}"#,
                Cause::Rejected,
                "repeating the request would not change that",
            ),
            (
                r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":400,"result":"API Error: 400 messages.3: `tool_use` ids were found without `tool_result` blocks"}"#,
                Cause::Crash,
                "`tool_use` ids",
            ),
            (
                r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":400,"result":"Prompt is too long"}"#,
                Cause::Rejected,
                "shorten the prompt",
            ),
            (
                r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":402,"result":"API Error: 402 pay"}"#,
                Cause::Rejected,
                "billing",
            ),
            (
                r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":404,"result":"There's an issue with the selected model (x)."}"#,
                Cause::Rejected,
                "--model",
            ),
            (
                r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":413,"result":"Request too large"}"#,
                Cause::Rejected,
                "read less",
            ),
            (
                r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":500,"result":"API Error: 500 oops"}"#,
                Cause::Crash,
                "oops",
            ),
            (
                r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"overloaded"}"#,
                Cause::Throttle,
                "overloaded",
            ),
            (
                r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"slow down"}"#,
                Cause::Throttle,
                "slow down",
            ),
            (
                r#"{"type":"result","subtype":"success","is_error":true,"result":"Not logged in · Please run /login"}"#,
                Cause::Authentication,
                "log in by running `claude` once",
            ),
            (
                r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: x"]}"#,
                Cause::Rejected,
                "working directory",
            ),
            (
                r#"{"type":"result","subtype":"error_max_turns","is_error":true}"#,
                Cause::Rejected,
                "error_max_turns",
            ),
        ];
        for (line, cause, words) in table {
            let failure = failure(line, Exit::Code(1), "");
            assert_eq!(failure.cause, cause, "{line}");
            assert!(failure.message.contains(words), "{}", failure.message);
        }
    }

    #[test]
    fn a_usage_limit_is_known_by_its_event_first_and_then_by_its_text() {
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
            let failure = failure(&lines, Exit::Code(1), "");
            assert_eq!((failure.cause, failure.resets), (Cause::UsageLimit, resets), "{lines}");
        }
        for status in [400, 401, 500] {
            let refused = format!(
                "{{\"type\":\"result\",\"is_error\":true,\"api_error_status\":{status},\"result\":\"no\"}}"
            );
            let cause = failure(&(event("") + &refused), Exit::Code(1), "").cause;
            assert_ne!(cause, Cause::UsageLimit, "{status}");
        }
        let paid_extra = event(",\"isUsingOverage\":true") + &refused("slow down");
        assert_eq!(failure(&paid_extra, Exit::Code(1), "").cause, Cause::Throttle);
        let answered = event("") + "{\"type\":\"result\",\"result\":\"all the same\"}";
        let outcome = judge(&stream(&answered), Exit::Code(0), moment, String::new);
        assert!(matches!(outcome, StepOutcome::Replied(_)));
    }

    #[test]
    fn a_reported_kind_of_error_counts_without_a_status() {
        let result = r#"{"type":"result","is_error":true,"result":"no"}"#;
        for (kind, cause) in [
            ("billing_error", Cause::Rejected),
            ("model_not_found", Cause::Rejected),
            ("invalid_request", Cause::Rejected),
            ("server_error", Cause::Crash),
            ("authentication_failed", Cause::Authentication),
        ] {
            let lines = format!("{{\"type\":\"assistant\",\"error\":\"{kind}\"}}\n{result}");
            assert_eq!(failure(&lines, Exit::Code(1), "").cause, cause, "{kind}");
        }
    }

    #[test]
    fn refused_arguments_are_rejected_and_other_complaints_are_crashes() {
        for (stderr, cause) in [
            ("error: unknown option '--bogus'\n", Cause::Rejected),
            ("error: option '--permission-mode <mode>' argument 'x' is invalid.", Cause::Rejected),
            ("Error: Settings file not found: /nope.json", Cause::Rejected),
            ("Error processing --setting-sources: Invalid setting source: x.", Cause::Rejected),
            ("Error: Invalid MCP configuration:\nMCP config file not found: x", Cause::Rejected),
            ("Warning: old\nError: Invalid --agents configuration:", Cause::Rejected),
            ("Error: Session ID x is already in use.", Cause::Crash),
            ("error: out of memory", Cause::Crash),
        ] {
            let failed = failure("", Exit::Code(1), stderr);
            assert_eq!(failed.cause, cause, "{stderr}");
            assert_eq!(failed.message.contains("correct that option"), cause == Cause::Rejected);
        }
        let unknown = "error: unknown option '--bogus'";
        assert_eq!(failure("", Exit::Signal(9), unknown).cause, Cause::Crash);
        let init = "{\"type\":\"system\",\"subtype\":\"init\"}\n";
        assert_eq!(failure(init, Exit::Code(1), unknown).cause, Cause::Crash);
    }

    #[test]
    fn an_end_without_an_answer_says_what_was_there() {
        let message = |lines, exit, stderr| failure(lines, exit, stderr).message;
        assert_eq!(
            message("", Exit::Code(0), ""),
            "Claude Code exited with code 0 and gave no result: it printed nothing"
        );
        assert_eq!(
            message("core dumped\n", Exit::Code(3), "oh\n"),
            "Claude Code exited with code 3 and gave no result: it printed `core dumped`, which is not stream-json; on stderr it said: oh"
        );
        let init = "{\"type\":\"system\",\"subtype\":\"init\"}\n";
        assert!(message(init, Exit::Signal(9), "").contains("killed by signal 9 (SIGKILL"));
        assert_eq!(failure(init, Exit::Signal(9), "").cause, Cause::Crash);
        assert_eq!(failure(init, Exit::Unseen, "").cause, Cause::Lost);
    }
}
