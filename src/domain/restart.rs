//! What follows when a turn came to nothing.
//!
//! A crash, a timeout and a panic are run again after a growing wait, until an agent has used up
//! its restarts within the period. A turn that was lost with an earlier runtime, or ended because
//! the run was stopped, is run again and does not count. What would fail the same way a second
//! time ends the agent; what keeps every agent from working pauses the whole run.

use super::agent::Agent;
use super::run::Pause;
use super::settings::Supervision;
use super::time::{Timestamp, span};
use super::turn::{Cause, Failure};

/// What to do after a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Reaction {
    /// Run the turn again.
    Again {
        /// Not before this time.
        not_before: Option<Timestamp>,
        /// Whether it counts as a restart.
        counts: bool,
    },
    /// The agent ends.
    GiveUp {
        /// What to add to the failure's own message.
        because: Option<String>,
    },
    /// The run pauses; the turn is run again when it goes on.
    Pause(Pause),
}

/// Decides what follows a failure at `now`; `chance` in 0..1 spreads restarts in time.
pub fn react(
    agent: &Agent,
    failure: &Failure,
    supervision: &Supervision,
    now: Timestamp,
    chance: f64,
) -> Reaction {
    match failure.cause {
        Cause::Crash | Cause::Timeout | Cause::Panic => restart(agent, supervision, now, chance),
        Cause::Interrupted | Cause::Lost => Reaction::Again { not_before: None, counts: false },
        Cause::Rejected | Cause::Output | Cause::Protocol | Cause::Workflow => {
            Reaction::GiveUp { because: None }
        }
        Cause::Storage => Reaction::Pause(Pause::Storage { message: failure.message.clone() }),
        Cause::Authentication => {
            Reaction::Pause(Pause::Authentication { message: failure.message.clone() })
        }
        Cause::Unavailable => {
            Reaction::Pause(Pause::Unavailable { message: failure.message.clone() })
        }
    }
}

fn restart(agent: &Agent, supervision: &Supervision, now: Timestamp, chance: f64) -> Reaction {
    let recent = agent.restarts.iter().filter(|&&at| now.since(at) < supervision.period_ms).count();
    if recent >= supervision.max_restarts as usize {
        let because = match recent {
            0 => "restarts are switched off".to_owned(),
            1 => format!("restarted once within {}", span(supervision.period_ms)),
            _ => format!("restarted {recent} times within {}", span(supervision.period_ms)),
        };
        return Reaction::GiveUp { because: Some(because) };
    }
    let wait = backoff(supervision, recent, chance);
    Reaction::Again { not_before: Some(now.plus(wait)), counts: true }
}

/// The wait before the restart after `earlier` others: doubled each time, within a fifth more or less.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "waits are far below 2^52 milliseconds, and the factor is positive"
)]
fn backoff(supervision: &Supervision, earlier: usize, chance: f64) -> u64 {
    let doubled = supervision.backoff_min_ms.saturating_mul(1 << earlier.min(32));
    let capped = doubled.min(supervision.backoff_max_ms);
    (capped as f64 * (0.8 + 0.4 * chance.clamp(0.0, 1.0))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{AgentId, SessionId, StateName};
    use crate::domain::transition::Variables;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn agent(restarts: &[u64]) -> Agent {
        let state = StateName::parse("A.md").expect("a state");
        let mut agent =
            Agent::born(AgentId::main(), state, SessionId::new("s"), Variables::new(), NOW);
        agent.restarts = restarts.iter().map(|&ago| Timestamp(NOW.0 - ago)).collect();
        agent
    }

    fn after(cause: Cause, restarts: &[u64]) -> Reaction {
        react(&agent(restarts), &Failure::new(cause, "m"), &Supervision::default(), NOW, 0.5)
    }

    #[test]
    fn each_cause_has_its_reaction() {
        let again_free = Reaction::Again { not_before: None, counts: false };
        let give_up = Reaction::GiveUp { because: None };
        let table = [
            (Cause::Crash, Reaction::Again { not_before: Some(NOW.plus(1000)), counts: true }),
            (Cause::Timeout, Reaction::Again { not_before: Some(NOW.plus(1000)), counts: true }),
            (Cause::Panic, Reaction::Again { not_before: Some(NOW.plus(1000)), counts: true }),
            (Cause::Interrupted, again_free.clone()),
            (Cause::Lost, again_free),
            (Cause::Rejected, give_up.clone()),
            (Cause::Output, give_up.clone()),
            (Cause::Protocol, give_up.clone()),
            (Cause::Workflow, give_up),
            (Cause::Storage, Reaction::Pause(Pause::Storage { message: "m".into() })),
            (Cause::Authentication, Reaction::Pause(Pause::Authentication { message: "m".into() })),
            (Cause::Unavailable, Reaction::Pause(Pause::Unavailable { message: "m".into() })),
        ];
        for (cause, reaction) in table {
            assert_eq!(after(cause, &[]), reaction, "{cause}");
        }
    }

    #[test]
    fn waits_double_and_then_it_is_given_up() {
        let wait = |restarts: &[u64]| match after(Cause::Crash, restarts) {
            Reaction::Again { not_before: Some(at), .. } => at.since(NOW),
            other => panic!("{other:?}"),
        };
        assert_eq!(wait(&[10]), 2000);
        assert_eq!(wait(&[10, 20]), 4000);
        let exhausted = after(Cause::Crash, &[10, 20, 30]);
        assert_eq!(
            exhausted,
            Reaction::GiveUp { because: Some("restarted 3 times within 10m".into()) }
        );
    }

    #[test]
    fn old_restarts_are_forgotten() {
        assert!(matches!(
            after(Cause::Crash, &[600_000, 10, 20]),
            Reaction::Again { counts: true, .. }
        ));
    }

    #[test]
    fn a_wait_never_exceeds_its_maximum_by_more_than_the_jitter() {
        let supervision = Supervision { max_restarts: 100, ..Supervision::default() };
        for earlier in 0..100 {
            assert!(backoff(&supervision, earlier, 1.0) <= supervision.backoff_max_ms * 6 / 5);
        }
    }
}
