//! The reactions as tables: each cause under each policy, with restarts left and with none.

use super::*;
use crate::agent::AgentSpec;
use crate::id::{AgentId, SessionId, StateName};
use crate::supervision::FixedPoint;

const NOW: Timestamp = Timestamp(1_000_000);

fn agent(restarts: &[u64]) -> Agent {
    let state = StateName::parse("A.md").expect("a state");
    let birth = AgentSpec::plain(state);
    let mut agent = Agent::from_spec(AgentId::main(), birth, SessionId::new("s"), NOW);
    agent.restarts = restarts.iter().map(|&ago| Timestamp(NOW.0 - ago)).collect();
    agent
}

fn under(supervision: &SupervisionPolicy) -> RestartContext<'_> {
    RestartContext { supervision, on_limit: OnLimit::Wait, now: NOW, chance: 0.5 }
}

fn after(cause: FailureCause, restarts: &[u64]) -> RestartDecision {
    decide_restart(
        &agent(restarts),
        &TurnFailure::new(cause, "m"),
        under(&SupervisionPolicy::default()),
    )
}

/// The reaction to each cause under each policy, with restarts left and with none.
#[test]
fn each_cause_gives_expected_decision_under_each_policy() {
    let counted = RestartDecision::Retry { not_before: Some(NOW.plus(1000)), counts: true };
    let exhausted = RestartDecision::Exhausted {
        reason: "restarted 3 times within 10m".into(),
        then: OnExhausted::FailAgent,
    };
    for restart in RestartPolicy::ALL.map(|(_, restart)| restart) {
        let supervision = SupervisionPolicy { restart, ..SupervisionPolicy::default() };
        for &cause in FailureCause::ALL {
            let reaction = |restarts: &[u64]| {
                decide_restart(&agent(restarts), &TurnFailure::new(cause, "m"), under(&supervision))
            };
            let (fresh, spent) = (reaction(&[]), reaction(&[10, 20, 30]));
            let expected = match cause {
                FailureCause::Crash
                | FailureCause::Timeout
                | FailureCause::Stall
                | FailureCause::Panic
                | FailureCause::Poisoned
                | FailureCause::Uncertain => {
                    if restart == RestartPolicy::Temporary {
                        (RestartDecision::GiveUp, RestartDecision::GiveUp)
                    } else {
                        (counted.clone(), exhausted.clone())
                    }
                }
                FailureCause::Budget => (counted.clone(), exhausted.clone()),
                _ => (after(cause, &[]), after(cause, &[])),
            };
            assert_eq!((fresh, spent), expected, "{cause} under {restart:?}");
        }
    }
}

#[test]
fn uncounted_causes_ignore_exhausted_restarts() {
    let free = RestartDecision::Retry { not_before: None, counts: false };
    let throttled = RestartDecision::Retry { not_before: Some(NOW.plus(1000)), counts: false };
    let pause = |pause| RestartDecision::Pause(pause);
    let message = || "m".to_owned();
    let table = [
        (FailureCause::Interrupted, free.clone()),
        (FailureCause::Lost, free),
        (FailureCause::Throttle, throttled.clone()),
        (FailureCause::Network, throttled),
        (
            FailureCause::UsageLimit,
            RestartDecision::AwaitLimit { until: NOW.plus(UNKNOWN_RESET_MS + 30_000) },
        ),
        (FailureCause::Rejected, RestartDecision::GiveUp),
        (FailureCause::Output, RestartDecision::GiveUp),
        (FailureCause::Protocol, RestartDecision::GiveUp),
        (FailureCause::Workflow, RestartDecision::GiveUp),
        (FailureCause::Storage, pause(PauseReason::Storage { message: message() })),
        (FailureCause::Authentication, pause(PauseReason::Authentication { message: message() })),
        (FailureCause::Account, pause(PauseReason::Unavailable { message: message() })),
        (FailureCause::SessionLost, RestartDecision::GiveUp),
        (FailureCause::Unavailable, pause(PauseReason::Unavailable { message: message() })),
    ];
    for (cause, reaction) in table {
        assert_eq!(after(cause, &[10, 20, 30]), reaction, "{cause}");
    }
}

#[test]
fn exhausted_restarts_follow_on_exhausted_policy() {
    for then in OnExhausted::ALL.map(|(_, then)| then) {
        let supervision = SupervisionPolicy {
            on_exhausted: then,
            max_restarts: 0,
            ..SupervisionPolicy::default()
        };
        assert_eq!(
            decide_restart(
                &agent(&[]),
                &TurnFailure::new(FailureCause::Crash, "m"),
                under(&supervision)
            ),
            RestartDecision::Exhausted { reason: "restarts are switched off".into(), then }
        );
    }
}

#[test]
fn usage_limit_decision_follows_on_limit_setting() {
    let supervision = SupervisionPolicy::default();
    let resets = Some(NOW.plus(20_000));
    let failure = TurnFailure { resets, ..TurnFailure::new(FailureCause::UsageLimit, "m") };
    let reaction = |on_limit| {
        decide_restart(&agent(&[]), &failure, RestartContext { on_limit, ..under(&supervision) })
    };
    assert_eq!(reaction(OnLimit::Wait), RestartDecision::AwaitLimit { until: NOW.plus(21_000) });
    assert_eq!(
        reaction(OnLimit::Pause),
        RestartDecision::Pause(PauseReason::UsageLimit { resets, message: "m".into() })
    );
    assert_eq!(reaction(OnLimit::Fail), RestartDecision::GiveUp);
}

#[test]
fn limit_wait_ends_after_reset_with_at_most_one_minute_jitter() {
    let supervision = SupervisionPolicy::default();
    for (ahead, most) in [(1, 1000), (20_000, 2000), (7_200_000, 60_000)] {
        for chance in [0.0, 1.0] {
            let around = RestartContext { chance, ..under(&supervision) };
            let until = after_reset(Some(NOW.plus(ahead)), around);
            assert!(until.since(NOW) >= ahead && until.since(NOW) <= ahead + most);
        }
    }
    for past in [Timestamp(5), NOW] {
        assert_eq!(after_reset(Some(past), under(&supervision)), NOW.plus(63_000));
    }
}

#[test]
fn backoff_grows_by_its_factor() {
    let wait = |restarts: &[u64]| match after(FailureCause::Crash, restarts) {
        RestartDecision::Retry { not_before: Some(at), .. } => at.since(NOW),
        other => panic!("{other:?}"),
    };
    assert_eq!((wait(&[]), wait(&[10]), wait(&[10, 20])), (1000, 2000, 4000));
    let slower = SupervisionPolicy {
        backoff_factor: FixedPoint::thousandths(1500),
        ..SupervisionPolicy::default()
    };
    assert_eq!(backoff(&slower, 2, 0.5), 2250);
    for cause in [FailureCause::Throttle, FailureCause::Network] {
        let again = again_after(cause, 3, &TurnFailure::new(cause, "m"));
        let waits = RestartDecision::Retry { not_before: Some(NOW.plus(8000)), counts: false };
        assert_eq!(again, waits);
        let other = again_after(FailureCause::Crash, 3, &TurnFailure::new(cause, "m"));
        assert_eq!(
            other,
            RestartDecision::Retry { not_before: Some(NOW.plus(1000)), counts: false }
        );
    }
}

/// Returns the decision on a failure after others in a row with a cause.
fn again_after(last: FailureCause, count: u32, failure: &TurnFailure) -> RestartDecision {
    let failed = Agent { throttles: count, last_failure: Some(last), ..agent(&[]) };
    decide_restart(&failed, failure, under(&SupervisionPolicy::default()))
}

#[test]
fn absent_network_counts_once_it_costs_money_again() {
    let free = TurnFailure::new(FailureCause::Network, "m");
    let paid = TurnFailure { cost: Usd::from_dollars(0.5), ..free.clone() };
    let counts = |last, count, failure| match again_after(last, count, failure) {
        RestartDecision::Retry { counts, .. } => counts,
        other => panic!("{other:?}"),
    };
    assert!(!counts(FailureCause::Crash, 1, &paid), "it was cut off for the first time");
    assert!(!counts(FailureCause::Network, 9, &free), "nothing was reached");
    assert!(counts(FailureCause::Network, 1, &paid));
    let last_failure = Some(FailureCause::Network);
    let failed = Agent { throttles: 4, last_failure, ..agent(&[1, 2, 3]) };
    let decided = decide_restart(&failed, &paid, under(&SupervisionPolicy::default()));
    assert!(matches!(decided, RestartDecision::Exhausted { .. }), "{decided:?}");
}

#[test]
fn poisoned_conversation_is_tried_once_more_from_before_the_turn() {
    let poisoned = TurnFailure::new(FailureCause::Poisoned, "m");
    let counted = RestartDecision::Retry { not_before: Some(NOW.plus(1000)), counts: true };
    assert_eq!(after(FailureCause::Poisoned, &[]), counted);
    assert_eq!(again_after(FailureCause::Throttle, 9, &poisoned), counted);
    assert_eq!(again_after(FailureCause::Poisoned, 1, &poisoned), RestartDecision::GiveUp);
}

#[test]
fn lost_session_begins_fresh_once_where_the_state_says_so() {
    let lost = TurnFailure::new(FailureCause::SessionLost, "m");
    let fresh = TurnFailure { begins_fresh: true, ..lost.clone() };
    let free = RestartDecision::Retry { not_before: None, counts: false };
    assert_eq!(again_after(FailureCause::Crash, 1, &lost), RestartDecision::GiveUp);
    assert_eq!(again_after(FailureCause::Crash, 1, &fresh), free);
    assert_eq!(again_after(FailureCause::SessionLost, 1, &fresh), RestartDecision::GiveUp);
}

#[test]
fn limit_that_was_reset_before_it_was_read_is_over() {
    let reported = |reported: u64, resets: u64| TurnFailure {
        resets: Some(Timestamp(resets)),
        resets_after_notice: reported < resets,
        ..TurnFailure::new(FailureCause::UsageLimit, "m")
    };
    let free = RestartDecision::Retry { not_before: None, counts: false };
    let over = reported(NOW.0 - 120_000, NOW.0 - 60_000);
    let stale = RestartDecision::AwaitLimit { until: NOW.plus(63_000) };
    for on_limit in [OnLimit::Wait, OnLimit::Pause, OnLimit::Fail] {
        let supervision = SupervisionPolicy::default();
        let context = RestartContext { on_limit, ..under(&supervision) };
        assert_eq!(decide_restart(&agent(&[]), &over, context), free);
    }
    assert_eq!(again_after(FailureCause::UsageLimit, 1, &over), stale, "it is not trusted twice");
    let table = [
        // It named a reset that had passed when it was written.
        (reported(NOW.0 - 60_000, NOW.0 - 120_000), stale),
        (
            reported(NOW.0 - 60_000, NOW.0 + 20_000),
            RestartDecision::AwaitLimit { until: NOW.plus(21_000) },
        ),
    ];
    for (failure, expected) in table {
        assert_eq!(
            decide_restart(&agent(&[]), &failure, under(&SupervisionPolicy::default())),
            expected
        );
    }
}

#[test]
fn restarts_older_than_period_do_not_count() {
    assert!(matches!(
        after(FailureCause::Crash, &[600_000, 10, 20]),
        RestartDecision::Retry { counts: true, .. }
    ));
}

#[test]
fn backoff_exceeds_its_bounds_by_at_most_the_jitter() {
    let supervision = SupervisionPolicy { max_restarts: 100, ..SupervisionPolicy::default() };
    for earlier in (0..100).chain([usize::MAX]) {
        assert!(backoff(&supervision, earlier, 1.0) <= supervision.backoff_max_ms * 6 / 5);
        assert!(backoff(&supervision, earlier, 0.0) >= supervision.backoff_min_ms * 4 / 5);
    }
}

#[test]
fn number_of_restarts_is_taken_off_a_message_and_nothing_else() {
    let supervision = SupervisionPolicy { max_restarts: 2, ..SupervisionPolicy::default() };
    for recent in [0, 1, 2] {
        let policy = SupervisionPolicy { max_restarts: recent, ..supervision.clone() };
        let restarts = vec![NOW; recent as usize];
        let words = next_restart(&restarts, &policy, NOW, 0.5).expect_err("used up");
        assert_eq!(without_exhaustion(&format!("db down ({words})")), "db down", "{words}");
    }
    for other in ["db down (restarted by systemd)", "down (restarted x times within 1m)", "x"] {
        assert_eq!(without_exhaustion(other), other);
    }
}
