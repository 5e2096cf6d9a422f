//! Decides the outcome of a turn, from the end of following and the stream.
//! A cancelled turn, or one that took too long, may still have answered; an error after the cancel is
//! ignored. A result is no answer while background work runs that the turn waits for.

use std::fmt::Write as _;

use super::api_error::{ApiError, LOG_IN};
use super::classify::{ZonedTime, judge};
use super::follow::FollowEnd;
use super::stream::background::TurnRemainder;
use super::stream::{StreamParser, TurnResult};
use super::transcript::ProcessFiles;
use crate::child::group::ProcessExit;
use raymond_model::supervision::TurnTimeouts;
use raymond_model::time::{Timestamp, format_duration};
use raymond_model::turn::{FailureCause, SuspendedTurn, TurnFailure, TurnOutcome};
use raymond_model::usage::ProcessSpending;

/// Returns the outcome of a turn; a failure names the process's stream among the `files`.
pub fn outcome(
    end: FollowEnd,
    stream: &StreamParser,
    files: &ProcessFiles,
    limits: TurnTimeouts,
) -> TurnOutcome {
    let mut outcome = judged(end, stream, files, limits);
    if let TurnOutcome::Failed(failure) = &mut outcome {
        let _ = write!(failure.message, "; see {}", files.stream.display());
        failure.refused_tools = stream.refused.refusals();
        failure.unsettled = stream.has_unknown_cost();
    }
    outcome
}

fn judged(
    end: FollowEnd,
    stream: &StreamParser,
    files: &ProcessFiles,
    limits: TurnTimeouts,
) -> TurnOutcome {
    let is_answer = |result: &TurnResult| !result.is_error && result.is_finished();
    let has_answer = stream.result.as_ref().is_some_and(is_answer);
    let unanswered = stream.approvals.unanswered();
    if !unanswered.is_empty() && !matches!(end, FollowEnd::Unreadable(_) | FollowEnd::Unauthorized)
    {
        return suspended(stream, unanswered);
    }
    let answered = has_answer && is_complete(&end, stream);
    let waited = stream.awaited_tasks();
    let failed = |cause, message: String| {
        let ProcessSpending { cost, usage } = stream.taken().clone();
        let waited = waited.as_deref().map(|tasks| format!("; it waited for {tasks}"));
        let message = message + &waited.unwrap_or_default();
        TurnOutcome::Failed(TurnFailure { cost, usage, ..TurnFailure::new(cause, message) })
    };
    match end {
        FollowEnd::Unreadable(error) => {
            failed(FailureCause::Output, format!("Claude Code cannot be followed: {error}"))
        }
        FollowEnd::Stopped if !answered => failed(
            FailureCause::Interrupted,
            "the turn was ended because the run was stopped".to_owned(),
        ),
        FollowEnd::TimedOut if !answered => {
            let longest = format_duration(limits.timeout_ms);
            let message =
                format!("Claude Code gave no result within {longest}; allow more with --timeout");
            failed(FailureCause::Timeout, message)
        }
        FollowEnd::Stalled if !answered => {
            let longest = format_duration(limits.idle_timeout_ms);
            let message = format!(
                "Claude Code made no progress for {longest}; allow more with --idle-timeout"
            );
            failed(FailureCause::Stall, message)
        }
        FollowEnd::NoOutput if !answered => {
            failed(FailureCause::Stall, "Claude Code did not acknowledge its prompt".to_owned())
        }
        FollowEnd::Exited(exit) if has_answer && !answered => {
            let cause =
                if exit == ProcessExit::Unseen { FailureCause::Lost } else { FailureCause::Crash };
            failed(cause, format!("Claude Code {exit} before its background work had ended"))
        }
        FollowEnd::Unauthorized if !answered => {
            let (cause, advice) = refused_access(stream);
            let message = "the API does not accept Claude Code's credentials (401 or 403, several times in a row)";
            failed(cause, format!("{message}{advice}"))
        }
        FollowEnd::Exited(exit) => judge(stream, exit, || moment(stream), || files.stderr_tail()),
        FollowEnd::Result
        | FollowEnd::Stopped
        | FollowEnd::Parked
        | FollowEnd::TimedOut
        | FollowEnd::Stalled
        | FollowEnd::NoOutput
        | FollowEnd::Unauthorized => {
            judge(stream, ProcessExit::Unseen, || moment(stream), || files.stderr_tail())
        }
    }
}

/// Returns the outcome of a turn in which calls were left without an answer. It goes on after the answer, even if the
/// model has replied: it could only reply that it was not allowed to work.
fn suspended(stream: &StreamParser, calls: Vec<String>) -> TurnOutcome {
    let ProcessSpending { cost, usage } = stream.taken().clone();
    let suspended = SuspendedTurn { calls, unsure: false, message: stream.message.clone() };
    TurnOutcome::Failed(TurnFailure {
        cost,
        usage,
        suspended: Some(Box::new(suspended)),
        ..TurnFailure::new(
            FailureCause::Unapproved,
            "the turn was ended while tool calls needed approval",
        )
    })
}

/// Returns whether a turn that has a result is complete. A process that has ended by itself begins no further turn,
/// even if it has announced one.
fn is_complete(end: &FollowEnd, stream: &StreamParser) -> bool {
    match (end, stream.remainder()) {
        (FollowEnd::Result, Some(_))
        | (_, Some(TurnRemainder::Nothing))
        | (FollowEnd::Exited(_), Some(TurnRemainder::Announced)) => true,
        (_, None | Some(TurnRemainder::Announced | TurnRemainder::Turn | TurnRemainder::Tasks)) => {
            false
        }
    }
}

/// Returns the cause of a turn that was ended because the API refused it again and again, and advice for people.
fn refused_access(stream: &StreamParser) -> (FailureCause, &'static str) {
    let kinds: Vec<&str> = stream.retried_error.iter().map(String::as_str).collect();
    match (ApiError { status: Some(403), kinds: &kinds, text: "" }).cause() {
        _ if stream.limit.is_some() => (FailureCause::UsageLimit, ""),
        named @ (FailureCause::Account | FailureCause::UsageLimit, _) => named,
        _ => (FailureCause::Authentication, LOG_IN),
    }
}

/// Returns the time at which the result was written, which may be long before it is read, in the local zone.
fn moment(stream: &StreamParser) -> ZonedTime {
    let now = Timestamp(u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0));
    let written = stream.result_written.filter(|written| *written <= now);
    ZonedTime { now: written.unwrap_or(now), zone: jiff::tz::TimeZone::system() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use raymond_model::money::Usd;
    use raymond_model::supervision::SupervisionPolicy;

    fn after(end: FollowEnd, line: &str) -> TurnOutcome {
        let mut stream = StreamParser::default();
        stream.feed(line.as_bytes()).expect("a short line");
        let files = ProcessFiles::named(Path::new("steps"), "main-1-0");
        outcome(end, &stream, &files, SupervisionPolicy::default().limits())
    }

    const ANSWER: &str = "{\"type\":\"result\",\"is_error\":false,\"result\":\"hi\"}\n";
    const ERROR: &str = "{\"type\":\"result\",\"is_error\":true,\"subtype\":\"error_during_execution\",\"total_cost_usd\":0.5,\"modelUsage\":{\"opus\":{\"costUSD\":0.5}}}\n";

    #[test]
    fn answered_turn_counts_even_if_stopped_or_timed_out() {
        for end in [
            FollowEnd::Stopped,
            FollowEnd::TimedOut,
            FollowEnd::Stalled,
            FollowEnd::Exited(ProcessExit::Signal(15)),
        ] {
            assert!(matches!(after(end, ANSWER), TurnOutcome::Replied(_)));
        }
    }

    #[test]
    fn refused_credentials_fail_turn_unless_it_has_answered() {
        let TurnOutcome::Failed(failure) = after(FollowEnd::Unauthorized, ERROR) else {
            panic!("an answer")
        };
        assert_eq!(
            (failure.cause, failure.cost),
            (FailureCause::Authentication, Usd::from_dollars(0.5))
        );
        assert!(failure.message.contains("ANTHROPIC_API_KEY"), "{}", failure.message);
        assert!(matches!(after(FollowEnd::Unauthorized, ANSWER), TurnOutcome::Replied(_)));
    }

    #[test]
    fn turn_that_was_cut_off_is_judged_by_what_cut_it_off() {
        let cut = "{\"type\":\"result\",\"is_error\":false,\"result\":\"half\",\"terminal_reason\":\"aborted_streaming\"}\n";
        for (end, cause) in [
            (FollowEnd::Stopped, FailureCause::Interrupted),
            (FollowEnd::TimedOut, FailureCause::Timeout),
            (FollowEnd::Stalled, FailureCause::Stall),
            (FollowEnd::Exited(ProcessExit::Code(0)), FailureCause::Crash),
        ] {
            let TurnOutcome::Failed(failure) = after(end, cut) else { panic!("an answer") };
            assert_eq!(failure.cause, cause);
        }
    }

    #[test]
    fn refused_access_has_the_cause_that_the_program_names() {
        let retry = |error: &str| {
            format!(
                "{{\"type\":\"system\",\"subtype\":\"api_retry\",\"error_status\":403,\"error\":\"{error}\"}}\n"
            )
        };
        let limit = "{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"resetsAt\":1}}\n";
        for (lines, cause) in [
            (retry("authentication_failed"), FailureCause::Authentication),
            (retry("unknown"), FailureCause::Authentication),
            (retry("oauth_org_not_allowed"), FailureCause::Account),
            (retry("account_on_hold"), FailureCause::Account),
            (limit.to_owned() + &retry("unknown"), FailureCause::UsageLimit),
        ] {
            let TurnOutcome::Failed(failure) = after(FollowEnd::Unauthorized, &lines) else {
                panic!("an answer")
            };
            assert_eq!(failure.cause, cause, "{lines}");
        }
    }

    #[test]
    fn error_after_stop_is_billed_but_is_not_crash() {
        for (end, cause) in [
            (FollowEnd::Stopped, FailureCause::Interrupted),
            (FollowEnd::TimedOut, FailureCause::Timeout),
            (FollowEnd::Stalled, FailureCause::Stall),
        ] {
            let TurnOutcome::Failed(failure) = after(end, ERROR) else { panic!("an answer") };
            assert_eq!((failure.cause, failure.cost), (cause, Usd::from_dollars(0.5)));
            assert_eq!(failure.usage.total().cost_usd, failure.cost);
            assert!(failure.message.ends_with("; see steps/main-1-0.jsonl"));
        }
    }
}
