//! The reactions as tables: each cause under each policy, with restarts left and with none.

use super::*;
use crate::domain::agent::Birth;
use crate::domain::id::{AgentId, SessionId, StateName};
use crate::domain::supervision::Ratio;

const NOW: Timestamp = Timestamp(1_000_000);

fn agent(restarts: &[u64]) -> Agent {
    let state = StateName::parse("A.md").expect("a state");
    let birth = Birth::plain(state);
    let mut agent = Agent::born(AgentId::main(), birth, SessionId::new("s"), NOW);
    agent.restarts = restarts.iter().map(|&ago| Timestamp(NOW.0 - ago)).collect();
    agent
}

fn under(supervision: &Supervision) -> Circumstances<'_> {
    Circumstances { supervision, on_limit: OnLimit::Wait, now: NOW, chance: 0.5 }
}

fn after(cause: Cause, restarts: &[u64]) -> Reaction {
    react(&agent(restarts), &Failure::new(cause, "m"), under(&Supervision::default()))
}

/// The reaction to each cause under each policy, with restarts left and with none.
#[test]
fn each_cause_has_its_reaction_under_each_policy() {
    let counted = Reaction::Again { not_before: Some(NOW.plus(1000)), counts: true };
    let exhausted = Reaction::Exhausted {
        because: "restarted 3 times within 10m".into(),
        then: Exhausted::FailAgent,
    };
    for restart in Restart::ALL.map(|(_, restart)| restart) {
        let supervision = Supervision { restart, ..Supervision::default() };
        for cause in Cause::ALL {
            let reaction = |restarts: &[u64]| {
                react(&agent(restarts), &Failure::new(cause, "m"), under(&supervision))
            };
            let (fresh, spent) = (reaction(&[]), reaction(&[10, 20, 30]));
            let expected = match cause {
                Cause::Crash | Cause::Timeout | Cause::Stall | Cause::Panic | Cause::Uncertain => {
                    if restart == Restart::Temporary {
                        (Reaction::GiveUp, Reaction::GiveUp)
                    } else {
                        (counted.clone(), exhausted.clone())
                    }
                }
                Cause::Budget => (counted.clone(), exhausted.clone()),
                _ => (after(cause, &[]), after(cause, &[])),
            };
            assert_eq!((fresh, spent), expected, "{cause} under {restart:?}");
        }
    }
}

#[test]
fn what_is_nobodys_failure_does_not_count() {
    let free = Reaction::Again { not_before: None, counts: false };
    let throttled = Reaction::Again { not_before: Some(NOW.plus(1000)), counts: false };
    let pause = |pause| Reaction::Pause(pause);
    let message = || "m".to_owned();
    let table = [
        (Cause::Interrupted, free.clone()),
        (Cause::Lost, free),
        (Cause::Throttle, throttled),
        (Cause::UsageLimit, Reaction::AwaitLimit { until: NOW.plus(UNKNOWN_RESET_MS + 30_000) }),
        (Cause::Rejected, Reaction::GiveUp),
        (Cause::Output, Reaction::GiveUp),
        (Cause::Protocol, Reaction::GiveUp),
        (Cause::Workflow, Reaction::GiveUp),
        (Cause::Storage, pause(Pause::Storage { message: message() })),
        (Cause::Authentication, pause(Pause::Authentication { message: message() })),
        (Cause::Unavailable, pause(Pause::Unavailable { message: message() })),
    ];
    for (cause, reaction) in table {
        assert_eq!(after(cause, &[10, 20, 30]), reaction, "{cause}");
    }
}

#[test]
fn the_policy_says_what_follows_the_last_restart() {
    for then in Exhausted::ALL.map(|(_, then)| then) {
        let supervision =
            Supervision { on_exhausted: then, max_restarts: 0, ..Supervision::default() };
        assert_eq!(
            react(&agent(&[]), &Failure::new(Cause::Crash, "m"), under(&supervision)),
            Reaction::Exhausted { because: "restarts are switched off".into(), then }
        );
    }
}

#[test]
fn the_run_says_what_a_usage_limit_means() {
    let supervision = Supervision::default();
    let resets = Some(NOW.plus(20_000));
    let failure = Failure { resets, ..Failure::new(Cause::UsageLimit, "m") };
    let reaction =
        |on_limit| react(&agent(&[]), &failure, Circumstances { on_limit, ..under(&supervision) });
    assert_eq!(reaction(OnLimit::Wait), Reaction::AwaitLimit { until: NOW.plus(21_000) });
    assert_eq!(
        reaction(OnLimit::Pause),
        Reaction::Pause(Pause::UsageLimit { resets, message: "m".into() })
    );
    assert_eq!(reaction(OnLimit::Fail), Reaction::GiveUp);
}

#[test]
fn the_wait_at_a_limit_ends_after_its_reset_and_is_spread_by_a_minute_at_the_most() {
    let supervision = Supervision::default();
    for (ahead, most) in [(1, 1000), (20_000, 2000), (7_200_000, 60_000)] {
        for chance in [0.0, 1.0] {
            let around = Circumstances { chance, ..under(&supervision) };
            let until = after_reset(Some(NOW.plus(ahead)), around);
            assert!(until.since(NOW) >= ahead && until.since(NOW) <= ahead + most);
        }
    }
    for past in [Timestamp(5), NOW] {
        assert_eq!(after_reset(Some(past), under(&supervision)), NOW.plus(63_000));
    }
}

#[test]
fn waits_grow_by_their_factor() {
    let wait = |restarts: &[u64]| match after(Cause::Crash, restarts) {
        Reaction::Again { not_before: Some(at), .. } => at.since(NOW),
        other => panic!("{other:?}"),
    };
    assert_eq!((wait(&[]), wait(&[10]), wait(&[10, 20])), (1000, 2000, 4000));
    let slower = Supervision { backoff_factor: Ratio::thousandths(1500), ..Supervision::default() };
    assert_eq!(backoff(&slower, 2, 0.5), 2250);
    let throttled = Agent { throttles: 3, ..agent(&[]) };
    let again =
        react(&throttled, &Failure::new(Cause::Throttle, "m"), under(&Supervision::default()));
    assert_eq!(again, Reaction::Again { not_before: Some(NOW.plus(8000)), counts: false });
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
    for earlier in (0..100).chain([usize::MAX]) {
        assert!(backoff(&supervision, earlier, 1.0) <= supervision.backoff_max_ms * 6 / 5);
        assert!(backoff(&supervision, earlier, 0.0) >= supervision.backoff_min_ms * 4 / 5);
    }
}
