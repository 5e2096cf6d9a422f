//! Judges a turn by its stream, its exit and the end of its stderr. Pure.
//!
//! `is_error` decides, never the subtype or the exit code alone: an API error comes as
//! `subtype: "success"`, and a process can exit with 0 without having answered. What ends without an error is a reply
//! only if it is an answer: see [`why_no_answer`].

use raymond_model::turn::{FailureCause, TurnFailure, TurnOutcome, TurnReply, says_nothing};

use crate::child::ProcessExit;
use crate::claude::stream::answer::without_prompt;
use crate::claude::stream::{RateLimitRejection, StreamParser, excerpt};
use crate::claude::usage_limit::UsageLimit;
use crate::claude::{message, usage_limit};
use crate::dialogue::ZonedTime;
use crate::turn_progress::TurnResult;

/// The subtype of a turn whose answer repeatedly did not match its schema. The session can be resumed, so the agent is
/// reminded, as it is after an answer without an object.
const NO_OBJECT: &str = "error_max_structured_output_retries";

/// Beginnings of the errors that the program lists and that are about the turn itself.
const CLI_ERRORS: [&str; 16] = [
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

/// Judges a turn that has ended by itself. `stderr` returns the end of its stderr, and is called
/// only without a result.
pub(crate) fn judge(
    stream: &StreamParser,
    exit: ProcessExit,
    moment: &ZonedTime,
    stderr: &dyn Fn() -> String,
) -> TurnOutcome {
    match &stream.progress.result {
        Some(result) if result.is_error && result.subtype != NO_OBJECT => {
            TurnOutcome::Failed(refused(stream, result, moment))
        }
        Some(result) => match why_no_answer(stream, result).filter(|_| !result.is_error) {
            Some((cause, why)) => TurnOutcome::Failed(TurnFailure {
                cost: stream.progress.taken().cost,
                usage: stream.progress.taken().usage.clone(),
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
        cost: stream.progress.taken().cost,
        usage: stream.progress.taken().usage.clone(),
        duration_ms: result.duration_ms,
        message: stream.progress.message.clone(),
        refused_tools: stream.progress.refused.refusals(),
        asked_no_model: result.asked_no_model(),
        is_given: false,
        hook: stream.traces.looping_hook().map(str::to_owned),
        session: None,
    }
}

/// Returns the failure for an error that the program reported.
fn refused(stream: &StreamParser, result: &TurnResult, moment: &ZonedTime) -> TurnFailure {
    let result_text = result.text.as_ref().filter(|text| !text.trim().is_empty());
    // Beside its own error the program lists what has gone wrong elsewhere, such as in an MCP server.
    let is_of_cli =
        |error: &&String| CLI_ERRORS.iter().any(|begins| error.trim().starts_with(begins));
    let cli_errors =
        || result.errors.iter().filter(is_of_cli).cloned().collect::<Vec<_>>().join("; ");
    let whole = result_text.cloned().unwrap_or_else(cli_errors);
    let limit = usage_limit(stream, result, &whole, moment);
    let shown = match (result_text, result.errors.as_slice()) {
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
        cost: stream.progress.taken().cost,
        usage: stream.progress.taken().usage.clone(),
        ..TurnFailure::new(cause, format!("Claude Code reported an error: {shown}{hint}"))
    }
}

/// Returns the account's usage limit and its reset, if the limit is reached: from the structured event if there was
/// one, and otherwise from the text, regardless of its status. An answer that was refused for another reason after such
/// an event does not count. Neither does a turn that the program ended by its own limits.
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
        Some(garbage) if stream.progress.events == 0 => {
            format!("printed no result, but `{garbage}`, which is not stream-json")
        }
        _ if stream.progress.events == 0 => "printed nothing, so it has no result".to_owned(),
        _ => "gave no result".to_owned(),
    };
    let shown = match excerpt(stderr) {
        shown if shown.is_empty() => String::new(),
        shown => format!("; on stderr it said: {shown}"),
    };
    let unusable =
        exit == ProcessExit::Code(1) && stream.progress.events == 0 && is_about_arguments(stderr);
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

// The errors that Claude Code reports instead of an answer, with their causes and remedies, as a table. Pure.
//
// The first row that fits decides. Newer versions name the kind of an error; older ones, and proxies, only word it.

/// Advice for credentials that are missing or not accepted.
pub(crate) const LOG_IN: &str =
    "; log in by running `claude` once, or set a valid ANTHROPIC_API_KEY";

/// Advice for an account without credit.
const BILLING_ADVICE: &str = "; check the billing of the account";

/// Advice for a session that no longer exists.
const SESSION_ADVICE: &str = "; Claude Code deletes a session 30 days after its last use (`cleanupPeriodDays` in its settings), and finds it only in the same working directory and home. `raymond retry` continues in a fresh session that begins with the prompts and answers so far; with `on_lost_session: fresh` a state does so by itself";

/// An error as the program reports it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ApiError<'stream> {
    /// The status of the API's answer, if there was one.
    pub(crate) status: Option<u16>,
    /// The kinds that the program names.
    pub(crate) kinds: &'stream [&'stream str],
    pub(crate) text: &'stream str,
}

/// The statuses with which the kinds and the words of a row count.
#[derive(Debug, Clone, Copy)]
enum With {
    /// Any, or none.
    Any,
    /// One of these, or none.
    NoneOr(&'static [u16]),
    /// One of these.
    Only(&'static [u16]),
}

/// One kind of error: it is recognised by any of its statuses, kinds and words.
struct ErrorRow {
    statuses: &'static [u16],
    /// Kinds, words and phrases, separated by a bar.
    kinds: &'static str,
    words: &'static str,
    with: With,
    /// Words with which it is another error.
    unless: &'static str,
    cause: FailureCause,
    advice: &'static str,
}

/// A row that fits nothing.
const ROW: ErrorRow = ErrorRow {
    statuses: &[],
    kinds: "",
    words: "",
    with: With::Any,
    unless: "",
    cause: FailureCause::Crash,
    advice: "",
};

/// The statuses with which the API refuses an account.
const REFUSED: With = With::NoneOr(&[400, 401, 403]);

/// The kinds of error, in the order in which they are tried.
const ROWS: &[ErrorRow] = &[
    ErrorRow {
        kinds: "error_max_turns",
        cause: FailureCause::Rejected,
        advice: "; raise `max_turns` of the state, or give it less to do",
        ..ROW
    },
    ErrorRow { kinds: "error_max_budget_usd", cause: FailureCause::Budget, ..ROW },
    ErrorRow {
        statuses: &[402],
        kinds: "billing_error",
        words: "credit balance is too low",
        cause: FailureCause::UsageLimit,
        advice: BILLING_ADVICE,
        ..ROW
    },
    ErrorRow {
        kinds: "oauth_org_not_allowed",
        words: "disabled claude subscription access|not allowed for this organization|\
            organization has been disabled",
        with: REFUSED,
        cause: FailureCause::Account,
        advice: "; set an ANTHROPIC_API_KEY, log in with another account by running `claude` once, or ask the admin of the organization for access",
        ..ROW
    },
    ErrorRow {
        kinds: "account_on_hold",
        words: "account is on hold|account on hold",
        with: REFUSED,
        cause: FailureCause::Account,
        advice: "; have the hold lifted (run `claude` for the details), or log in with another account",
        ..ROW
    },
    ErrorRow {
        kinds: "verification_required",
        words: "verification required|verification is required|verify your identity",
        with: REFUSED,
        cause: FailureCause::Account,
        advice: "; run `claude` once and complete the verification",
        ..ROW
    },
    ErrorRow {
        kinds: "cloud_credential_error",
        words: "could not load credentials|could not load the default credentials|\
            credentialsprovidererror|expiredtokenexception|invalid_rapt",
        with: REFUSED,
        cause: FailureCause::Account,
        advice: "; renew the credentials of the cloud (such as `aws sso login` or `gcloud auth application-default login`)",
        ..ROW
    },
    ErrorRow {
        statuses: &[401],
        kinds: "authentication_failed",
        words: "not logged in|invalid api key",
        with: With::NoneOr(&[401, 403]),
        cause: FailureCause::Authentication,
        advice: LOG_IN,
        ..ROW
    },
    ErrorRow {
        words: "authentication",
        with: With::Only(&[403]),
        cause: FailureCause::Authentication,
        advice: LOG_IN,
        ..ROW
    },
    ErrorRow {
        words: "no conversation found with session id",
        cause: FailureCause::SessionLost,
        advice: SESSION_ADVICE,
        ..ROW
    },
    ErrorRow {
        kinds: "connection_failed|computer_slept",
        words: "econnreset|econnrefused|econnaborted|enotfound|etimedout|eai_again|eai_fail|\
            ehostunreach|ehostdown|enetunreach|enetdown|epipe|und_err|connectionrefused|\
            connectionreset|connectionclosed|failedtoopensocket|unable to connect to api|\
            connection error|connection lost|connection refused|connection reset|\
            connection closed|connection timed out|request timed out|network is unreachable|\
            getaddrinfo|fetch failed|socket hang up",
        with: With::NoneOr(&[]),
        unless: "cert|certificate|ssl|tls",
        cause: FailureCause::Network,
        ..ROW
    },
    ErrorRow {
        words: "prompt is too long",
        cause: FailureCause::Rejected,
        advice: "; shorten the prompt, or begin this state in a fresh session with <reset>",
        ..ROW
    },
    ErrorRow {
        statuses: &[429, 503, 529],
        kinds: "overloaded",
        with: With::NoneOr(&[]),
        cause: FailureCause::Throttle,
        ..ROW
    },
    ErrorRow {
        statuses: &[404],
        kinds: "model_not_found",
        cause: FailureCause::Rejected,
        advice: "; name a model that the account may use, with --model or in the workflow",
        ..ROW
    },
    ErrorRow {
        statuses: &[413],
        cause: FailureCause::Rejected,
        advice: "; have the agent read less at a time, or begin in a fresh session",
        ..ROW
    },
];

/// The kind of an error that was in the conversation and that the program has removed.
const MEDIA_REMOVED: &str = "media_removed";

/// The kind of an error that the API answers with 400.
const INVALID: &str = "invalid_request";

/// Words about what a conversation consists of. A request that is refused for it succeeds without the turn that
/// brought it.
const CONTENT: &str = "tool_use|tool_result|thinking|image|pdf|document|media|media_type|base64|attachment|\
    surrogate|unicode|utf-8|utf8|hex escape|valid json|empty|malformed|content block|\
    content filter|filtering|whitespace|content policy|roles must alternate";

/// Words about the request itself, which the next attempt would send again.
const REQUEST: &str = "extra inputs are not permitted|unknown parameter|unrecognized|max_tokens|budget_tokens|\
    tool_choice|anthropic-beta|not supported|not a valid model";

impl ApiError<'_> {
    /// Returns the cause of the error, and advice for people.
    pub(crate) fn cause(&self) -> (FailureCause, &'static str) {
        let text = self.text.to_lowercase();
        if let Some(row) = ROWS.iter().find(|row| row.fits(self, &text)) {
            return (row.cause, row.advice);
        }
        let is_invalid = self.status == Some(400) || self.kinds.contains(&INVALID);
        if self.kinds.contains(&MEDIA_REMOVED) || (is_invalid && is_about_conversation(&text)) {
            return (FailureCause::Poisoned, "; it came into the conversation during the turn");
        }
        if is_invalid {
            return (FailureCause::Rejected, "; a repeated request would fail too");
        }
        (FailureCause::Crash, "")
    }
}

impl ErrorRow {
    fn fits(&self, error: &ApiError<'_>, text: &str) -> bool {
        let counts = match (self.with, error.status) {
            (With::Any, _) | (With::NoneOr(_), None) => true,
            (With::Only(_), None) => false,
            (With::NoneOr(all) | With::Only(all), Some(status)) => all.contains(&status),
        };
        let is_kind =
            || self.kinds.split('|').any(|kind| !kind.is_empty() && error.kinds.contains(&kind));
        let is_named = || is_kind() || has_any(text, self.words);
        let is_found = error.status.is_some_and(|status| self.statuses.contains(&status));
        (is_found || (counts && is_named())) && !has_any(text, self.unless)
    }
}

/// Returns whether a text in lower case, of a request that was refused as invalid, is about the conversation and not
/// about the request itself. A place in the messages decides, then the words.
fn is_about_conversation(text: &str) -> bool {
    let is_digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let is_placed = text
        .split("messages")
        .skip(1)
        .any(|rest| rest.strip_prefix(['.', '[']).is_some_and(is_digit) || rest.starts_with(':'));
    is_placed || (!has_any(text, REQUEST) && has_any(text, CONTENT))
}

/// Returns whether a text has one of these words and phrases, or its plural, and not only as a part of a longer word.
fn has_any(text: &str, words: &str) -> bool {
    words.split('|').filter(|word| !word.is_empty()).any(|word| {
        text.match_indices(word).any(|(at, _)| {
            let rest = &text[at + word.len()..];
            let rest = rest.strip_prefix('s').unwrap_or(rest);
            !text[..at].ends_with(char::is_alphanumeric) && !rest.starts_with(char::is_alphanumeric)
        })
    })
}

// The rule for what is an answer: a turn yields a reply only if the model was asked and finished. Pure.
//
// Neither the exit code nor the subtype says so: a prompt that a hook blocks ends with `success`, and with a text that
// quotes the prompt. A reply that is empty is judged with the other replies, because its agent can be reminded.

/// The ends of a turn that hooks bring about.
const ENDED_BY_HOOK: [&str; 2] = ["hook_stopped", "tool_deferred"];

/// Words of the program about a prompt that a hook has stopped.
const STOPPED_BY_HOOK: [&str; 2] = ["blocked by hook", "stopped by hook"];

/// Words of the program about a command that it cannot execute.
const NO_COMMAND: [&str; 2] = ["Unknown command:", "isn't available in this environment"];

/// Advice for a hook that ended a turn.
const HOOK_ADVICE: &str =
    "; change the hook in the settings of Claude Code, then continue with `raymond retry`";

/// Returns why a turn that ended without an error has no answer; `None` if it has one.
pub(crate) fn why_no_answer(
    stream: &StreamParser,
    result: &TurnResult,
) -> Option<(FailureCause, String)> {
    let answer = result.text.as_deref().unwrap_or_default();
    if let Some(why) = stream.answered_requests.refusal(message::INITIALIZE) {
        let why = format!("Claude Code refused to renew the system prompt: {}", excerpt(why));
        return Some((FailureCause::Rejected, why));
    }
    if result.asked_no_model() {
        let quoted = without_prompt(answer);
        let is_stopped =
            quoted != answer || STOPPED_BY_HOOK.iter().any(|words| answer.contains(words));
        let answer = excerpt(quoted);
        if let Some(hook) = stream.traces.stopping_hook().or(is_stopped.then_some(&answer)) {
            let why =
                format!("a hook stopped the prompt, and no model was asked: {hook}{HOOK_ADVICE}");
            return Some((FailureCause::Rejected, why));
        }
        if !stream.traces.runs_command {
            let why = format!("Claude Code ended the turn without asking the model: \"{answer}\"");
            return Some((FailureCause::Crash, why));
        }
        let is_unknown = NO_COMMAND.iter().any(|words| answer.contains(words));
        let why = format!("Claude Code cannot run the command: {answer}");
        return is_unknown.then_some((FailureCause::Rejected, why));
    }
    if let Some(reason) = &result.unfinished {
        let ended = format!("ended the turn before the model had finished ({reason})");
        return Some(if ENDED_BY_HOOK.contains(&&**reason) {
            (FailureCause::Rejected, format!("a hook {ended}{HOOK_ADVICE}"))
        } else {
            (FailureCause::Crash, format!("Claude Code {ended}"))
        });
    }
    let is_empty = says_nothing(answer) && result.structured.is_none();
    let hook = stream.traces.looping_hook().filter(|_| is_empty)?;
    let why = format!(
        "a Stop hook kept the turn from ending until Claude Code gave up, and the model has not answered: {hook}{HOOK_ADVICE}"
    );
    Some((FailureCause::Rejected, why))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod api_error_tests;

#[cfg(test)]
mod no_answer_tests;
