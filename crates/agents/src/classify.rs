//! Judges a turn by its stream, its exit and the end of its stderr. Pure.
//!
//! `is_error` decides, never the subtype or the exit code alone: an API error comes as
//! `subtype: "success"`, and a process can exit with 0 without having answered. What ends without an error is a reply only
//! if it is an [answer](super::no_answer).

use jiff::tz::TimeZone;

use super::api_error::ApiError;
use super::no_answer::why_no_answer;
use super::stream::{RateLimitRejection, StreamParser, TurnResult, excerpt};
use super::usage_limit::{self, UsageLimit};
use crate::child::group::ProcessExit;
use raymond_model::time::Timestamp;
use raymond_model::turn::{FailureCause, TurnFailure, TurnOutcome, TurnReply};

/// The subtype of a turn whose answer did not match its schema again and again. The session can be resumed, so
/// the agent can be reminded like one that answered without an object.
const NO_OBJECT: &str = "error_max_structured_output_retries";

/// Beginnings of the errors that the program lists and that are about the turn itself.
const OWN_ERRORS: [&str; 16] = [
    "API Error",
    "Unable to connect",
    "Connection error",
    "Request timed out",
    "No conversation found",
    "Prompt is too long",
    "Not logged in",
    "Invalid API key",
    "Failed to authenticate",
    "OAuth",
    "Credit balance",
    "Your ",
    "You've ",
    "You’ve ",
    "You're ",
    "Claude ",
];

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

/// The time at which the result was written, and the zone in which it is judged: a limit that resets at three means three o'clock in this zone.
#[derive(Debug, Clone)]
pub struct ZonedTime {
    /// The time.
    pub now: Timestamp,
    /// The zone of times that name none.
    pub zone: TimeZone,
}

/// Judges a turn that has ended by itself. `stderr` returns the end of its stderr, and is only
/// called if there is no result.
pub fn judge(
    stream: &StreamParser,
    exit: ProcessExit,
    moment: impl FnOnce() -> ZonedTime,
    stderr: impl FnOnce() -> String,
) -> TurnOutcome {
    match &stream.result {
        Some(result) if result.is_error && result.subtype != NO_OBJECT => {
            TurnOutcome::Failed(refused(stream, result, &moment()))
        }
        Some(result) => match why_no_answer(stream, result).filter(|_| !result.is_error) {
            Some((cause, why)) => TurnOutcome::Failed(TurnFailure {
                cost: stream.taken().cost,
                usage: stream.taken().usage.clone(),
                ..TurnFailure::new(cause, why)
            }),
            None => TurnOutcome::Replied(reply(stream, result)),
        },
        None => TurnOutcome::Failed(no_result(stream, exit, &stderr())),
    }
}

/// Returns the reply of a turn that has an answer.
fn reply(stream: &StreamParser, result: &TurnResult) -> TurnReply {
    TurnReply {
        text: match &result.text {
            Some(text) => text.clone(),
            // The program names here the violation of the schema.
            None => result.errors.join("; "),
        },
        structured: result.structured.clone(),
        cost: stream.taken().cost,
        usage: stream.taken().usage.clone(),
        duration_ms: result.duration_ms,
        message: stream.message.clone(),
        refused_tools: stream.refused.refusals(),
        asked_no_model: result.asked_no_model(),
        is_given: false,
        hook: stream.traces.looping_hook().map(str::to_owned),
        session: None,
    }
}

/// Returns the failure for an error that the program reported.
fn refused(stream: &StreamParser, result: &TurnResult, moment: &ZonedTime) -> TurnFailure {
    let said = result.text.as_ref().filter(|text| !text.trim().is_empty());
    // Beside its own error the program lists what has gone wrong elsewhere, such as in an MCP server.
    let is_own = |error: &&String| OWN_ERRORS.iter().any(|begins| error.trim().starts_with(begins));
    let own = || result.errors.iter().filter(is_own).cloned().collect::<Vec<_>>().join("; ");
    let whole = said.cloned().unwrap_or_else(own);
    let limit = usage_limit(stream, result, &whole, moment);
    let shown = match (said, result.errors.as_slice()) {
        (Some(text), _) => excerpt(text),
        (None, []) => result.subtype.clone(),
        (None, errors) => excerpt(&errors.join("; ")),
    };
    let kinds = [Some(&result.subtype), result.api_error.as_ref(), stream.reported_error.as_ref()];
    let kinds: Vec<&str> = kinds.into_iter().flatten().map(String::as_str).collect();
    let (cause, hint) = match limit {
        Some(_) => (FailureCause::UsageLimit, ""),
        None => ApiError { status: result.api_status, kinds: &kinds, text: &whole }.cause(),
    };
    let resets = limit.and_then(|limit| limit.resets);
    TurnFailure {
        resets,
        resets_after_notice: resets.is_some_and(|resets| moment.now < resets),
        cost: stream.taken().cost,
        usage: stream.taken().usage.clone(),
        ..TurnFailure::new(cause, format!("Claude Code reported an error: {shown}{hint}"))
    }
}

/// Returns the account's usage limit and its reset, if the limit is reached: from the structured event if there was
/// one, and otherwise from the text, whatever the status is that it comes with. An answer that was refused for another
/// reason, after such an event, does not count. Nor does a turn that the program ended by its own limits.
fn usage_limit(
    stream: &StreamParser,
    result: &TurnResult,
    text: &str,
    moment: &ZonedTime,
) -> Option<UsageLimit> {
    if result.subtype.starts_with("error_max_") {
        return None;
    }
    let read = usage_limit::usage_limit(text, moment.now, &moment.zone);
    match stream.limit {
        Some(RateLimitRejection { resets_at })
            if result.api_status == Some(429) || read.is_some() =>
        {
            let reported = resets_at.and_then(|number| usage_limit::normalise(number, moment.now));
            Some(UsageLimit { resets: reported.or(read.and_then(|limit| limit.resets)) })
        }
        _ => read,
    }
}

/// Returns the failure for a program that ended without an answer.
fn no_result(stream: &StreamParser, exit: ProcessExit, stderr: &str) -> TurnFailure {
    let printed = match &stream.garbage {
        Some(garbage) if stream.events == 0 => {
            format!("printed no result, but `{garbage}`, which is not stream-json")
        }
        _ if stream.events == 0 => "printed nothing, so it has no result".to_owned(),
        _ => "gave no result".to_owned(),
    };
    let shown = match excerpt(stderr) {
        shown if shown.is_empty() => String::new(),
        shown => format!("; on stderr it said: {shown}"),
    };
    let unusable = exit == ProcessExit::Code(1) && stream.events == 0 && is_about_arguments(stderr);
    let (cause, advice) = match exit {
        ProcessExit::Unseen => (FailureCause::Lost, ""),
        ProcessExit::Code(_) if unusable => {
            (FailureCause::Rejected, "; correct that option, in the workflow or after `--`")
        }
        ProcessExit::Code(_) | ProcessExit::Signal(_) => (FailureCause::Crash, ""),
    };
    TurnFailure::new(cause, format!("Claude Code {exit} and {printed}{shown}{advice}"))
}

/// Returns whether the program complained about its arguments, which will be the same next time.
fn is_about_arguments(stderr: &str) -> bool {
    stderr.lines().any(|line| ARGUMENT_ERRORS.iter().any(|error| line.starts_with(error)))
}

#[cfg(test)]
mod tests;
