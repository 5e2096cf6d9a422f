//! The consequences of a failed turn, and of a permanent agent that ended well.
//!
//! A crash, a stall, a timeout and a panic are run again after a growing wait, until an agent has used up its
//! restarts within the period. Then its policy decides: the agent ends, the run ends, or the agent waits for a
//! person. A turn that was lost with an earlier runtime, or ended because the run was stopped, is run again and
//! does not count. The limits of the API and the account do not count either, nor does an absent network, because they
//! are nobody's failure. A conversation that the API refuses is run again from before the turn; if that is refused as
//! well, the agent ends. A turn that Claude Code cut off because it would have spent too much counts under each policy,
//! because it could be cut off forever. If its agent has no money left, the agent waits for money instead. A
//! failure that would happen again ends the agent; one that keeps every agent from working pauses the run.

use super::agent::Agent;
use super::money::Usd;
use super::run::PauseReason;
use super::settings::OnLimit;
use super::supervision::{OnExhausted, RestartPolicy, SupervisionPolicy};
use super::time::{Timestamp, format_duration};
use super::turn::{FailureCause, TurnFailure};

/// The wait of a run at a usage limit that does not say when it resets, in milliseconds.
pub const UNKNOWN_RESET_MS: u64 = 15 * 60 * 1000;

/// The wait at a usage limit that still holds after the reset it names, in milliseconds.
const STALE_RESET_MS: u64 = 60 * 1000;

/// The largest spread of the end of such a wait, in milliseconds. It keeps runs that share an account from
/// coming back all at once.
const LIMIT_SPREAD_MS: u64 = 60 * 1000;

/// The words for no restarts at all.
const SWITCHED_OFF: &str = "restarts are switched off";

/// The consequence of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum RestartDecision {
    /// Run the turn again.
    Retry {
        /// The earliest time of the turn.
        not_before: Option<Timestamp>,
        /// True if it counts as a restart.
        counts: bool,
    },
    /// The agent ends.
    GiveUp,
    /// The restarts are used up.
    Exhausted {
        /// The number of restarts, in words.
        reason: String,
        /// The consequence.
        then: OnExhausted,
    },
    /// The run pauses; the turn is run again when the run resumes.
    Pause(PauseReason),
    /// No turn of the run starts before a time; then the turn is run again.
    AwaitLimit {
        /// The time at which the limit has reset.
        until: Timestamp,
    },
}

/// The facts that decide, besides the agent and its failure.
#[derive(Debug, Clone, Copy)]
pub struct RestartContext<'run> {
    /// The policy that supervises the agent.
    pub supervision: &'run SupervisionPolicy,
    /// The run's reaction to the usage limit.
    pub on_limit: OnLimit,
    /// The current time.
    pub now: Timestamp,
    /// A number from 0 up to 1, which spreads waits in time.
    pub chance: f64,
}

/// Decides what follows a failure.
pub fn decide_restart(
    agent: &Agent,
    failure: &TurnFailure,
    context: RestartContext<'_>,
) -> RestartDecision {
    let message = || failure.message.clone();
    match failure.cause {
        FailureCause::Poisoned if agent.failures_of(FailureCause::Poisoned) > 0 => {
            RestartDecision::GiveUp
        }
        // The network may fail in a turn that was paid for. A second such turn in a row may be none of the network's doing.
        FailureCause::Network
            if failure.cost > Usd::ZERO && agent.failures_of(FailureCause::Network) > 0 =>
        {
            restart(agent, context)
        }
        FailureCause::Crash
        | FailureCause::Timeout
        | FailureCause::Stall
        | FailureCause::Panic
        | FailureCause::Poisoned
        | FailureCause::Uncertain => match context.supervision.restart {
            RestartPolicy::Temporary => RestartDecision::GiveUp,
            RestartPolicy::Transient | RestartPolicy::Permanent => restart(agent, context),
        },
        FailureCause::Budget => restart(agent, context),
        FailureCause::Interrupted | FailureCause::Lost | FailureCause::Unapproved => {
            RestartDecision::Retry { not_before: None, counts: false }
        }
        FailureCause::Throttle | FailureCause::Network => {
            let earlier = agent.failures_of(failure.cause) as usize;
            let wait = backoff(context.supervision, earlier, context.chance);
            RestartDecision::Retry { not_before: Some(context.now.plus(wait)), counts: false }
        }
        FailureCause::SessionLost
            if failure.begins_fresh && agent.failures_of(FailureCause::SessionLost) == 0 =>
        {
            RestartDecision::Retry { not_before: None, counts: false }
        }
        // A second report in a row is not trusted: the clocks may differ.
        FailureCause::UsageLimit
            if failure.limit_is_over(context.now)
                && agent.failures_of(FailureCause::UsageLimit) == 0 =>
        {
            RestartDecision::Retry { not_before: None, counts: false }
        }
        FailureCause::UsageLimit => match context.on_limit {
            OnLimit::Wait => {
                RestartDecision::AwaitLimit { until: after_reset(failure.resets, context) }
            }
            OnLimit::Pause => RestartDecision::Pause(PauseReason::UsageLimit {
                resets: failure.resets,
                message: message(),
            }),
            OnLimit::Fail => RestartDecision::GiveUp,
        },
        FailureCause::Rejected
        | FailureCause::SessionLost
        | FailureCause::Output
        | FailureCause::Protocol
        | FailureCause::Workflow
        | FailureCause::Restarts
        | FailureCause::Stopped
        | FailureCause::ToolRefused
        | FailureCause::Ending
        | FailureCause::Join
        | FailureCause::Unneeded => RestartDecision::GiveUp,
        FailureCause::Storage => {
            RestartDecision::Pause(PauseReason::Storage { message: message() })
        }
        FailureCause::Authentication => {
            RestartDecision::Pause(PauseReason::Authentication { message: message() })
        }
        FailureCause::Account | FailureCause::Unavailable => {
            RestartDecision::Pause(PauseReason::Unavailable { message: message() })
        }
    }
}

/// Restarts an agent after a wait, if it has restarts left.
pub fn restart(agent: &Agent, context: RestartContext<'_>) -> RestartDecision {
    let RestartContext { supervision, now, chance, .. } = context;
    match next_restart(&agent.restarts, supervision, now, chance) {
        Ok(not_before) => RestartDecision::Retry { not_before: Some(not_before), counts: true },
        Err(reason) => RestartDecision::Exhausted { reason, then: supervision.on_exhausted },
    }
}

/// Returns a message without the number of restarts that [`next_restart`] says in words at its end.
pub fn without_exhaustion(message: &str) -> &str {
    let Some((plain, words)) = message.strip_suffix(')').and_then(|text| text.rsplit_once(" ("))
    else {
        return message;
    };
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    let is_counted = |text: &str| match text.split_once(" within ") {
        Some(("once", _)) => true,
        Some((times, _)) => times.strip_suffix(" times").is_some_and(is_number),
        None => false,
    };
    let is_own = words == SWITCHED_OFF || words.strip_prefix("restarted ").is_some_and(is_counted);
    if is_own { plain } else { message }
}

/// Returns the time of the next restart of something that has been restarted at these times.
///
/// # Errors
/// The number of restarts, in words, if there is none left.
pub fn next_restart<'times>(
    restarts: impl IntoIterator<Item = &'times Timestamp>,
    supervision: &SupervisionPolicy,
    now: Timestamp,
    chance: f64,
) -> Result<Timestamp, String> {
    let recent = restarts.into_iter().filter(|&&at| now.since(at) < supervision.period_ms).count();
    if recent >= supervision.max_restarts as usize {
        return Err(match recent {
            0 => SWITCHED_OFF.to_owned(),
            1 => format!("restarted once within {}", format_duration(supervision.period_ms)),
            _ => format!(
                "restarted {recent} times within {}",
                format_duration(supervision.period_ms)
            ),
        });
    }
    Ok(now.plus(backoff(supervision, recent, chance)))
}

/// Returns the wait before the restart after `earlier` others, in milliseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "waits are far below 2^52 milliseconds, and the factors are not negative"
)]
fn backoff(supervision: &SupervisionPolicy, earlier: usize, chance: f64) -> u64 {
    let times = i32::try_from(earlier).unwrap_or(i32::MAX);
    let grown = supervision.backoff_min_ms as f64 * supervision.backoff_factor.value().powi(times);
    let longest = supervision.backoff_max_ms as f64;
    let capped = if grown.is_nan() { 0.0 } else { grown.min(longest) };
    let jitter = supervision.backoff_jitter.value();
    (capped * (1.0 - jitter + 2.0 * jitter * chance.clamp(0.0, 1.0))).max(0.0) as u64
}

/// Returns the time at which a run resumes after the usage limit: a little after its reset.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the spread is a minute at the most"
)]
fn after_reset(resets: Option<Timestamp>, context: RestartContext<'_>) -> Timestamp {
    let resets = match resets {
        None => context.now.plus(UNKNOWN_RESET_MS),
        Some(past) if past <= context.now => context.now.plus(STALE_RESET_MS),
        Some(ahead) => ahead,
    };
    let spread = (resets.since(context.now) / 10).clamp(1000, LIMIT_SPREAD_MS);
    resets.plus((spread as f64 * context.chance.clamp(0.0, 1.0)) as u64)
}

#[cfg(test)]
mod tests;
