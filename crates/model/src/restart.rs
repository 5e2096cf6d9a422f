//! The consequences of a failed turn and of a permanent agent that ended well, and the count of failed agents.
//!
//! After a crash, a stall, a timeout or a panic, the turn is run again after a growing wait, until an agent has used up
//! its restarts within the period. Then its policy decides: the agent ends, the run ends, or the agent waits for a
//! person. A turn that was lost with an earlier runtime, or ended because the run was stopped, is run again and does
//! not count. The limits of the API and the account do not count either, nor does an absent network, because they are
//! nobody's failure. A conversation that the API refuses is run again from before the turn. If the API refuses that as
//! well, the agent ends. A turn that Claude Code cut off because it would have spent too much counts under each policy,
//! because it could be cut off forever. If its agent has no money left, the agent waits for money instead. A failure
//! that would happen again ends the agent. A failure that keeps every agent from working pauses the run.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::agent::Agent;
use super::id::StateName;
use super::money::Usd;
use super::run::{FinishedAgent, PauseReason, Run};
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
        // The network may fail in a turn that was paid for. A second such turn in a row may have another cause.
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
    let is_suffix =
        words == SWITCHED_OFF || words.strip_prefix("restarted ").is_some_and(is_counted);
    if is_suffix { plain } else { message }
}

/// Returns the time of the next restart of something that has been restarted at these times.
///
/// # Errors
/// The number of restarts, in words, if none is left.
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

// The failed agents of a run, counted by the state they failed in and by cause.
//
// A run is completed if each of its failures was taken by an agent that waited for it, such as an agent that joined its
// forks and kept their failures. They are failures nevertheless, and raymond reports them when a person looks at the
// run.

/// The number of groups that a line shows.
const MAX_SHOWN_GROUPS: usize = 12;

/// The failed agents of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AgentFailures {
    /// The number of agents that have ended, well or badly.
    #[serde(skip)]
    pub ended: usize,
    /// The number of failed ones among them. An agent that was no longer needed has not failed.
    #[serde(rename = "failed_agents")]
    pub failed: usize,
    /// The number of failed ones that a waiting agent was notified of.
    #[serde(skip)]
    pub kept: usize,
    /// True if they fail the run: no waiting agent took one of them, or the run is strict.
    #[serde(skip)]
    pub fails_run: bool,
    /// The failed ones by state and cause: the states by name, the most frequent cause of each first.
    #[serde(rename = "failures", skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<FailureGroup>,
}

/// The agents that failed in one state for one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailureGroup {
    /// The state they failed in, if it is known.
    pub state: Option<StateName>,
    /// The kind of failure, if it is known.
    pub cause: Option<FailureCause>,
    /// The number of these agents.
    pub agents: usize,
}

impl AgentFailures {
    /// Counts the failures of a run.
    pub fn of(run: &Run) -> Self {
        let mut counts: BTreeMap<(Option<StateName>, String), FailureGroup> = BTreeMap::new();
        let mut failures = Self { ended: run.finished.len(), ..Self::default() };
        for agent in run.finished.iter().filter(|agent| agent.has_failed()) {
            failures.failed += 1;
            failures.kept += usize::from(agent.parent_notified);
            let state = agent.shown_failed_in().or_else(|| agent.began());
            let key = (state.clone(), word(agent.cause));
            let group = counts.entry(key).or_insert_with(|| FailureGroup {
                state,
                cause: agent.cause,
                agents: 0,
            });
            group.agents += 1;
        }
        failures.fails_run = !failures.are_kept() || fails_strictly(run);
        failures.groups = counts.into_values().collect();
        // The sort is stable, so that causes of equal number stay in the order of their words.
        failures.groups.sort_by(|a, b| a.state.cmp(&b.state).then(b.agents.cmp(&a.agents)));
        failures
    }

    /// Returns whether no agent has failed.
    pub fn is_empty(&self) -> bool {
        self.failed == 0
    }

    /// Returns whether each failure was taken by an agent that waited for it, so that none fails the run.
    pub fn are_kept(&self) -> bool {
        self.kept == self.failed
    }

    /// Returns how a run has ended, as the rest of a sentence that begins with it:
    /// `finished: 48 of 50 agents failed, kept by the join (WORK.md: protocol ×40, timeout ×8)`.
    pub fn outcome(&self) -> String {
        if self.is_empty() {
            return "finished".to_owned();
        }
        let numbers = format!("{} of {} agents failed", self.failed, self.ended);
        let groups = match self.groups.as_slice() {
            [] => String::new(),
            _ => format!(" ({self})"),
        };
        if self.are_kept() {
            format!("finished: {numbers}, kept by the join{groups}")
        } else {
            format!("ended, {numbers}{groups}")
        }
    }
}

/// Shows the groups: `CHECK.md: crash, WORK.md: protocol ×40, timeout ×8`.
impl fmt::Display for AgentFailures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = None;
        for group in self.groups.iter().take(MAX_SHOWN_GROUPS) {
            let separator = if before.is_some() { ", " } else { "" };
            f.write_str(separator)?;
            if before != Some(&group.state) {
                match &group.state {
                    Some(state) => write!(f, "{state}: ")?,
                    None => f.write_str("unknown state: ")?,
                }
            }
            f.write_str(&word(group.cause))?;
            if group.agents > 1 {
                write!(f, " ×{}", group.agents)?;
            }
            before = Some(&group.state);
        }
        match self.groups.len().saturating_sub(MAX_SHOWN_GROUPS) {
            0 => Ok(()),
            _ => f.write_str(", …"),
        }
    }
}

/// Returns whether a run whose failures are kept has failed all the same: it is strict, and has lost something, because
/// a tool was refused or an agent failed.
pub fn fails_strictly(run: &Run) -> bool {
    run.settings.strict
        && (!run.refused_tools.is_empty() || run.finished.iter().any(FinishedAgent::has_failed))
}

fn word(cause: Option<FailureCause>) -> String {
    cause.map_or_else(|| "unknown cause".to_owned(), |cause| cause.to_string())
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod failures_tests {
    use super::*;
    use crate::id::AgentId;
    use crate::money::Usd;
    use crate::run::AgentEnding;
    use crate::tests::scene::{Scene, state};

    /// Returns a run whose agents began in BEGIN.md and have ended: the state of each then, its cause and whether a
    /// join has kept it.
    fn ended(agents: &[(&str, Option<FailureCause>, bool)]) -> Run {
        let mut run = Scene::begin().run;
        let finished = (1..).zip(agents).map(|(number, (last, cause, kept))| FinishedAgent {
            id: AgentId::main().child(number),
            state: Some(state("BEGIN.md")),
            folder: None,
            failed_in: cause.map(|_| state(last)),
            failed_folder: None,
            ending: match cause {
                Some(cause) => AgentEnding::Error(cause.to_string()),
                None => AgentEnding::Result(String::new()),
            },
            structured: false,
            cause: *cause,
            cost_usd: Usd::ZERO,
            unbilled_turn: None,
            variables: None,
            parent_notified: *kept,
            untold: Vec::new(),
            retryable: None,
        });
        run.finished = finished.collect();
        run
    }

    #[test]
    fn failures_are_counted_by_state_and_cause() {
        use FailureCause::{Crash, Protocol, Timeout, Unneeded};
        let run = ended(&[
            ("WORK.md", Some(Timeout), true),
            ("WORK.md", Some(Protocol), true),
            ("WORK.md", Some(Protocol), false),
            ("WORK.md", Some(Unneeded), true),
            ("WORK.md", None, true),
            ("CHECK.md", Some(Crash), true),
        ]);
        let failures = AgentFailures::of(&run);
        assert_eq!((failures.ended, failures.failed, failures.kept), (6, 4, 3));
        assert_eq!(
            failures.outcome(),
            "ended, 4 of 6 agents failed (CHECK.md: crash, WORK.md: protocol ×2, timeout)"
        );
        let groups = serde_json::json!(failures.groups);
        let expected = serde_json::json!([
            { "state": "CHECK.md", "cause": "crash", "agents": 1 },
            { "state": "WORK.md", "cause": "protocol", "agents": 2 },
            { "state": "WORK.md", "cause": "timeout", "agents": 1 },
        ]);
        assert_eq!(groups, expected);
    }

    #[test]
    fn results_and_unneeded_agents_are_not_failures() {
        let failures = AgentFailures::of(&ended(&[
            ("A.md", None, false),
            ("A.md", Some(FailureCause::Unneeded), true),
        ]));
        assert!(failures.is_empty() && failures.groups.is_empty());
        assert_eq!(failures.outcome(), "finished");
    }

    #[test]
    fn kept_failures_fail_strict_run_only() {
        for (kept, strict, fails) in
            [(true, false, false), (true, true, true), (false, false, true), (false, true, true)]
        {
            let mut run = ended(&[("B.md", Some(FailureCause::Crash), kept)]);
            run.settings.strict = strict;
            assert_eq!(AgentFailures::of(&run).fails_run, fails, "{kept} {strict}");
        }
        let mut run = ended(&[("A.md", None, false)]);
        run.settings.strict = true;
        assert!(!AgentFailures::of(&run).fails_run);
    }

    #[test]
    fn kept_failures_finish_run() {
        let failures = AgentFailures::of(&ended(&[
            ("A.md", None, false),
            ("B.md", Some(FailureCause::UsageLimit), true),
        ]));
        assert_eq!(
            failures.outcome(),
            "finished: 1 of 2 agents failed, kept by the join (B.md: usage limit)"
        );
    }
}
