//! The failures that a scripted reply can stand for, as a real turn would report them. Pure.

use strum::{Display, VariantArray};

use super::supervision::TurnTimeouts;
use super::time::{Timestamp, format_duration};
use super::turn::{FailureCause, TurnFailure};

/// A kind of failure of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum FaultKind {
    /// The process is killed before it answers.
    Crash,
    /// The turn takes longer than `timeout` allows.
    Timeout,
    /// The turn makes no progress for longer than `idle_timeout` allows.
    Stall,
    /// The account's usage limit is reached.
    Limit,
    /// The process prints something that is no answer.
    Malformed,
    /// The API refuses the request, and would refuse it again.
    Refused,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: &'static [Self] = Self::VARIANTS;
}

/// A failure of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptedFault {
    /// The kind.
    pub kind: FaultKind,
    /// The time after which a usage limit resets, in milliseconds, if the account says so.
    pub resets_ms: Option<u64>,
}

impl ScriptedFault {
    /// Returns the failure of a kind, of which nothing more is known.
    pub fn of(kind: FaultKind) -> Self {
        Self { kind, resets_ms: None }
    }

    /// Returns the failure that follows when a turn takes so long, if it may not: `None` if it may.
    pub fn of_delay(delay_ms: u64, limits: TurnTimeouts) -> Option<(u64, Self)> {
        let timeout = (limits.timeout_ms, Self::of(FaultKind::Timeout));
        let stall = (limits.idle_timeout_ms, Self::of(FaultKind::Stall));
        let first = if limits.idle_timeout_ms < limits.timeout_ms { stall } else { timeout };
        (delay_ms > first.0).then_some(first)
    }

    /// Returns the failure of a turn, with the cause and the words of a real one.
    pub fn failure(self, limits: TurnTimeouts, now: Timestamp) -> TurnFailure {
        let (cause, message) = match self.kind {
            FaultKind::Crash => (
                FailureCause::Crash,
                "Claude Code was killed by signal 9 and gave no result".to_owned(),
            ),
            FaultKind::Timeout => {
                let longest = format_duration(limits.timeout_ms);
                let words = "; allow more with --timeout";
                (FailureCause::Timeout, format!("Claude Code gave no result within {longest}{words}"))
            }
            FaultKind::Stall => {
                let longest = format_duration(limits.idle_timeout_ms);
                let words = "; allow more with --idle-timeout";
                (FailureCause::Stall, format!("Claude Code made no progress for {longest}{words}"))
            }
            FaultKind::Limit => (
                FailureCause::UsageLimit,
                "Claude Code reported an error: Claude AI usage limit reached".to_owned(),
            ),
            FaultKind::Malformed => (
                FailureCause::Crash,
                "Claude Code exited with code 0 and printed no result, but `{\"type\":`, which is not stream-json"
                    .to_owned(),
            ),
            FaultKind::Refused => (
                FailureCause::Rejected,
                "Claude Code reported an error: API Error: 400 invalid_request_error; a repeated request would fail too"
                    .to_owned(),
            ),
        };
        let resets = self.resets_ms.map(|after| now.plus(after));
        TurnFailure { resets, ..TurnFailure::new(cause, message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: TurnTimeouts =
        TurnTimeouts { timeout_ms: 30_000, idle_timeout_ms: 10_000, shutdown_ms: 0 };

    #[test]
    fn each_fault_has_the_cause_of_a_real_failure() {
        let causes = [
            (FaultKind::Crash, FailureCause::Crash),
            (FaultKind::Timeout, FailureCause::Timeout),
            (FaultKind::Stall, FailureCause::Stall),
            (FaultKind::Limit, FailureCause::UsageLimit),
            (FaultKind::Malformed, FailureCause::Crash),
            (FaultKind::Refused, FailureCause::Rejected),
        ];
        assert_eq!(causes.len(), FaultKind::ALL.len());
        for (kind, cause) in causes {
            let failure = ScriptedFault::of(kind).failure(LIMITS, Timestamp(5));
            assert_eq!((failure.cause, failure.resets), (cause, None), "{kind}");
        }
        let limit = ScriptedFault { kind: FaultKind::Limit, resets_ms: Some(7) };
        assert_eq!(limit.failure(LIMITS, Timestamp(5)).resets, Some(Timestamp(12)));
    }

    #[test]
    fn long_delay_is_a_stall_or_a_timeout_whichever_comes_first() {
        let of = |delay, idle_timeout_ms| {
            let fault = ScriptedFault::of_delay(delay, TurnTimeouts { idle_timeout_ms, ..LIMITS });
            fault.map(|(after, fault)| (after, fault.kind))
        };
        assert_eq!(of(10_000, 10_000), None);
        assert_eq!(of(10_001, 10_000), Some((10_000, FaultKind::Stall)));
        assert_eq!(of(30_001, 90_000), Some((30_000, FaultKind::Timeout)));
    }
}
