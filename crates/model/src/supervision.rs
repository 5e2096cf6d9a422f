//! The supervision of an agent: OTP's restart policies by name, and time limits.
//!
//! A run has one [`SupervisionPolicy`]. The state an agent starts in may override some points, which the agent
//! keeps as [`SupervisionOverrides`]. The overrides at its start hold for its life.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The ends of an agent that are followed by a restart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RestartPolicy {
    /// Each end: after a result the agent begins again in the state it started in.
    Permanent,
    /// A failure, but not a result.
    #[default]
    Transient,
    /// No end is followed by a restart.
    Temporary,
}

impl RestartPolicy {
    /// All policies, by name.
    pub const ALL: [(&'static str, Self); 3] = [
        ("permanent", Self::Permanent),
        ("transient", Self::Transient),
        ("temporary", Self::Temporary),
    ];

    /// Returns whether an end is followed by a restart.
    pub fn restarts_after(self, is_failure: bool) -> bool {
        match self {
            Self::Permanent => true,
            Self::Transient => is_failure,
            Self::Temporary => false,
        }
    }
}

/// The fate of an agent that has used up its restarts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnExhausted {
    /// The agent ends with an error; the others continue.
    #[default]
    FailAgent,
    /// The agent ends with an error, and the whole run with it.
    FailRun,
    /// The agent waits for a person to resume the run.
    Wait,
}

impl OnExhausted {
    /// All reactions, by name.
    pub const ALL: [(&'static str, Self); 3] =
        [("fail-agent", Self::FailAgent), ("fail-run", Self::FailRun), ("wait", Self::Wait)];
}

/// A number with three decimals, such as a factor; kept as an integer so that it is equal to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(from = "f64", into = "f64")]
pub struct FixedPoint(u32);

impl FixedPoint {
    /// Creates a number from thousandths.
    pub const fn thousandths(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number itself.
    pub fn value(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

impl From<f64> for FixedPoint {
    /// Rounds to thousandths; a negative number counts as 0.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-integer cast saturates, and a negative number counts as 0"
    )]
    fn from(value: f64) -> Self {
        Self((value.max(0.0) * 1000.0).round() as u32)
    }
}

impl From<FixedPoint> for f64 {
    fn from(ratio: FixedPoint) -> Self {
        ratio.value()
    }
}

impl fmt::Display for FixedPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

/// The restarts of failed turns, and the time limits of turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SupervisionPolicy {
    /// The ends that are followed by a restart.
    pub restart: RestartPolicy,
    /// The number of restarts an agent may have within `period_ms`.
    pub max_restarts: u32,
    /// The window in which restarts are counted, in milliseconds.
    pub period_ms: u64,
    /// The wait before the first restart, in milliseconds.
    pub backoff_min_ms: u64,
    /// The longest wait, in milliseconds.
    pub backoff_max_ms: u64,
    /// The factor by which the wait grows with each further restart.
    pub backoff_factor: FixedPoint,
    /// The part of itself by which a wait may be shorter or longer, so that agents do not move in step.
    pub backoff_jitter: FixedPoint,
    /// The time limit of a turn, in milliseconds.
    pub timeout_ms: u64,
    /// The time limit of a turn without progress, in milliseconds.
    pub idle_timeout_ms: u64,
    /// The time that running turns still have when the run is told to stop, in milliseconds.
    pub shutdown_ms: u64,
    /// The reaction when the restarts are used up.
    pub on_exhausted: OnExhausted,
    /// The number of reminders of its state's policy that an agent gets before its reply counts as a failure.
    pub reminders: u32,
}

impl Default for SupervisionPolicy {
    fn default() -> Self {
        Self {
            restart: RestartPolicy::default(),
            max_restarts: 3,
            period_ms: 10 * 60 * 1000,
            backoff_min_ms: 1000,
            backoff_max_ms: 5 * 60 * 1000,
            backoff_factor: FixedPoint::thousandths(2000),
            backoff_jitter: FixedPoint::thousandths(200),
            timeout_ms: 30 * 60 * 1000,
            idle_timeout_ms: 10 * 60 * 1000,
            shutdown_ms: 20 * 1000,
            on_exhausted: OnExhausted::default(),
            reminders: 3,
        }
    }
}

/// The points in which one supervision overrides another. The fields are those of [`SupervisionPolicy`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SupervisionOverrides {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_restarts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_min_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_max_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_factor: Option<FixedPoint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_jitter: Option<FixedPoint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_exhausted: Option<OnExhausted>,
}

impl SupervisionOverrides {
    /// Returns whether it overrides nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl SupervisionPolicy {
    /// Returns this policy with the overrides. If only one bound of the waits is overridden and lies beyond the other
    /// bound, the other moves along.
    pub fn with(&self, differing: &SupervisionOverrides) -> Self {
        let base = self;
        let (backoff_min_ms, backoff_max_ms) =
            match (differing.backoff_min_ms, differing.backoff_max_ms) {
                (None, None) => (base.backoff_min_ms, base.backoff_max_ms),
                (Some(min), None) => (min, base.backoff_max_ms.max(min)),
                (None, Some(max)) => (base.backoff_min_ms.min(max), max),
                (Some(min), Some(max)) => (min, max.max(min)),
            };
        Self {
            restart: differing.restart.unwrap_or(base.restart),
            max_restarts: differing.max_restarts.unwrap_or(base.max_restarts),
            period_ms: differing.period_ms.unwrap_or(base.period_ms),
            backoff_min_ms,
            backoff_max_ms,
            backoff_factor: differing.backoff_factor.unwrap_or(base.backoff_factor),
            backoff_jitter: differing.backoff_jitter.unwrap_or(base.backoff_jitter),
            timeout_ms: differing.timeout_ms.unwrap_or(base.timeout_ms),
            idle_timeout_ms: differing.idle_timeout_ms.unwrap_or(base.idle_timeout_ms),
            shutdown_ms: differing.shutdown_ms.unwrap_or(base.shutdown_ms),
            on_exhausted: differing.on_exhausted.unwrap_or(base.on_exhausted),
            reminders: base.reminders,
        }
    }

    /// Returns the time limits of a turn.
    pub fn limits(&self) -> TurnTimeouts {
        TurnTimeouts {
            timeout_ms: self.timeout_ms,
            idle_timeout_ms: self.idle_timeout_ms,
            shutdown_ms: self.shutdown_ms,
        }
    }
}

/// The time limits of a turn, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnTimeouts {
    /// The whole turn.
    pub timeout_ms: u64,
    /// The time without progress.
    pub idle_timeout_ms: u64,
    /// The time after the run was asked to stop.
    pub shutdown_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_change_only_fields_they_set() {
        let policy = SupervisionPolicy::default();
        assert_eq!(policy.with(&SupervisionOverrides::default()), policy);
        let differing = SupervisionOverrides {
            restart: Some(RestartPolicy::Temporary),
            backoff_min_ms: Some(600_000),
            ..SupervisionOverrides::default()
        };
        let changed = policy.with(&differing);
        assert_eq!((changed.restart, changed.backoff_max_ms), (RestartPolicy::Temporary, 600_000));
        assert_eq!(changed.max_restarts, policy.max_restarts);
        let short =
            SupervisionOverrides { backoff_max_ms: Some(500), ..SupervisionOverrides::default() };
        assert_eq!(policy.with(&short).backoff_min_ms, 500);
        assert!(!differing.is_empty() && SupervisionOverrides::default().is_empty());
    }

    #[test]
    fn policy_json_without_newer_fields_uses_defaults() {
        let old = r#"{"max_restarts":7,"period_ms":1,"backoff_min_ms":1,"backoff_max_ms":2,"timeout_ms":3,"shutdown_ms":4,"reminders":5}"#;
        let read: SupervisionPolicy = serde_json::from_str(old).expect("readable");
        assert_eq!((read.max_restarts, read.on_exhausted), (7, OnExhausted::FailAgent));
        let written = serde_json::to_value(&read).expect("written");
        assert_eq!(written["backoff_factor"], 2.0);
    }
}
