//! The errors that Claude Code reports instead of an answer, with their causes and remedies, as a table. Pure.
//!
//! The first row that fits decides. Newer versions name the kind of an error; older ones, and proxies, only word it.

use raymond_model::turn::FailureCause;

/// Advice for credentials that are missing or not accepted.
pub(super) const LOG_IN: &str =
    "; log in by running `claude` once, or set a valid ANTHROPIC_API_KEY";

/// Advice for an account without credit.
const BILLING_ADVICE: &str = "; check the billing of the account";

/// Advice for a session that no longer exists.
const SESSION_ADVICE: &str = "; Claude Code deletes a session 30 days after its last use (`cleanupPeriodDays` in its settings), and finds it only in the same working directory and home. `raymond retry` continues in a fresh session that begins with the prompts and answers so far; with `on_lost_session: fresh` a state does so by itself";

/// An error as the program reports it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ApiError<'stream> {
    /// The status of the API's answer, if there was one.
    pub(super) status: Option<u16>,
    /// The kinds that the program names.
    pub(super) kinds: &'stream [&'stream str],
    /// Its text.
    pub(super) text: &'stream str,
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
    pub(super) fn cause(&self) -> (FailureCause, &'static str) {
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

#[cfg(test)]
mod tests;
