//! What follows when a turn came to nothing, and when a permanent agent has ended well.
//!
//! A crash, a stall, a timeout and a panic are run again after a growing wait, until an agent has
//! used up its restarts within the period; then its policy says who ends, or that it waits for a
//! person. A turn that was lost with an earlier runtime, or ended because the run was stopped, is run
//! again and does not count, and neither do the limits of the API and the account: they are nobody's
//! failure. A turn that Claude Code cut off because it would have spent too much counts under each
//! policy: where its agent has no money left it waits for that, and else it could cut off for ever.
//! What would fail the same way a second time ends the agent; what keeps every agent from
//! working pauses the whole run.

use super::agent::Agent;
use super::run::PauseReason;
use super::settings::OnLimit;
use super::supervision::{OnExhausted, RestartPolicy, SupervisionPolicy};
use super::time::{Timestamp, span};
use super::turn::{FailureCause, TurnFailure};

/// How long a run waits at a usage limit that does not say when it resets, in milliseconds.
pub const UNKNOWN_RESET_MS: u64 = 15 * 60 * 1000;

/// How long it waits at one that still holds after the reset it names, in milliseconds.
const STALE_RESET_MS: u64 = 60 * 1000;

/// By how much the end of such a wait is spread at the most, in milliseconds, so that runs which
/// share an account do not come back all at once.
const LIMIT_SPREAD_MS: u64 = 60 * 1000;

/// What to do after a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum RestartDecision {
    /// Run the turn again.
    Again {
        /// Not before this time.
        not_before: Option<Timestamp>,
        /// Whether it counts as a restart.
        counts: bool,
    },
    /// The agent ends.
    GiveUp,
    /// The restarts are used up.
    Exhausted {
        /// How many there were, in words.
        because: String,
        /// What follows.
        then: OnExhausted,
    },
    /// The run pauses; the turn is run again when it goes on.
    Pause(PauseReason),
    /// No turn of the run starts before this time; then the turn is run again.
    AwaitLimit {
        /// When the limit has reset.
        until: Timestamp,
    },
}

/// What decides, besides the agent and its failure.
#[derive(Debug, Clone, Copy)]
pub struct RestartContext<'run> {
    /// How the agent is supervised.
    pub supervision: &'run SupervisionPolicy,
    /// What the run does at the usage limit.
    pub on_limit: OnLimit,
    /// The time.
    pub now: Timestamp,
    /// A number from 0 up to 1, which spreads waits in time.
    pub chance: f64,
}

/// Decides what follows a failure.
pub fn react(agent: &Agent, failure: &TurnFailure, around: RestartContext<'_>) -> RestartDecision {
    let message = || failure.message.clone();
    match failure.cause {
        FailureCause::Crash
        | FailureCause::Timeout
        | FailureCause::Stall
        | FailureCause::Panic
        | FailureCause::Uncertain => match around.supervision.restart {
            RestartPolicy::Temporary => RestartDecision::GiveUp,
            RestartPolicy::Transient | RestartPolicy::Permanent => restart(agent, around),
        },
        FailureCause::Budget => restart(agent, around),
        FailureCause::Interrupted | FailureCause::Lost => {
            RestartDecision::Again { not_before: None, counts: false }
        }
        FailureCause::Throttle => {
            let wait = backoff(around.supervision, agent.throttles as usize, around.chance);
            RestartDecision::Again { not_before: Some(around.now.plus(wait)), counts: false }
        }
        FailureCause::UsageLimit => match around.on_limit {
            OnLimit::Wait => {
                RestartDecision::AwaitLimit { until: after_reset(failure.resets, around) }
            }
            OnLimit::Pause => RestartDecision::Pause(PauseReason::UsageLimit {
                resets: failure.resets,
                message: message(),
            }),
            OnLimit::Fail => RestartDecision::GiveUp,
        },
        FailureCause::Rejected
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
        FailureCause::Unavailable => {
            RestartDecision::Pause(PauseReason::Unavailable { message: message() })
        }
    }
}

/// Restarts an agent after a wait, if it has restarts left.
pub fn restart(agent: &Agent, around: RestartContext<'_>) -> RestartDecision {
    let RestartContext { supervision, now, chance, .. } = around;
    match again(&agent.restarts, supervision, now, chance) {
        Ok(not_before) => RestartDecision::Again { not_before: Some(not_before), counts: true },
        Err(because) => RestartDecision::Exhausted { because, then: supervision.on_exhausted },
    }
}

/// When something is to be started again that has been restarted at these times.
///
/// # Errors
/// How many restarts there were, in words, if it has none left.
pub fn again<'times>(
    restarts: impl IntoIterator<Item = &'times Timestamp>,
    supervision: &SupervisionPolicy,
    now: Timestamp,
    chance: f64,
) -> Result<Timestamp, String> {
    let recent = restarts.into_iter().filter(|&&at| now.since(at) < supervision.period_ms).count();
    if recent >= supervision.max_restarts as usize {
        return Err(match recent {
            0 => "restarts are switched off".to_owned(),
            1 => format!("restarted once within {}", span(supervision.period_ms)),
            _ => format!("restarted {recent} times within {}", span(supervision.period_ms)),
        });
    }
    Ok(now.plus(backoff(supervision, recent, chance)))
}

/// The wait before the restart after `earlier` others.
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

/// When a run goes on after the usage limit: a little after its reset.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the spread is a minute at the most"
)]
fn after_reset(resets: Option<Timestamp>, around: RestartContext<'_>) -> Timestamp {
    let resets = match resets {
        None => around.now.plus(UNKNOWN_RESET_MS),
        Some(past) if past <= around.now => around.now.plus(STALE_RESET_MS),
        Some(ahead) => ahead,
    };
    let spread = (resets.since(around.now) / 10).clamp(1000, LIMIT_SPREAD_MS);
    resets.plus((spread as f64 * around.chance.clamp(0.0, 1.0)) as u64)
}

#[cfg(test)]
mod tests;
