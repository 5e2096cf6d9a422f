//! Limits of the API and the account: the agents that wait, the time they wait, and no used-up restarts.

use super::*;
use crate::restart::UNKNOWN_RESET_MS;
use crate::settings::{OnLimit, Settings};
use crate::supervision::RestartPolicy;

const RESETS: Timestamp = Timestamp(NOW.0 + 20_000);

/// The limit's reset plus a tenth of the time until then, times the chance, which is one half.
const GOES_ON: Timestamp = Timestamp(RESETS.0 + 1000);

fn at_limit(on_limit: OnLimit) -> Scene {
    let mut scene = Scene::begin();
    scene.run.settings.on_limit = on_limit;
    scene.run.settings.supervision.max_restarts = 0;
    scene
}

fn limited(resets: Option<Timestamp>) -> TurnJudgement {
    TurnJudgement::Failed(TurnFailure {
        resets,
        ..TurnFailure::new(FailureCause::UsageLimit, "no more")
    })
}

fn happen(scene: &mut Scene, agent: &str, judgement: TurnJudgement) -> Vec<Effect> {
    let events = decide(&scene.run, &report_of(scene, agent, judgement), chosen());
    events.into_iter().flat_map(|event| scene.happens(event)).collect()
}

#[test]
fn usage_limit_holds_run_without_counting_restart() {
    for (resets, until) in [(Some(RESETS), GOES_ON), (None, NOW.plus(UNKNOWN_RESET_MS + 30_000))] {
        let mut scene = at_limit(OnLimit::Wait);
        let events = decide(&scene.run, &report(&scene, limited(resets)), chosen());
        let [Event::TurnFailed(failed), reached] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!((failed.counts, failed.not_before), (false, None));
        assert_eq!(failed.session, Some(session(77)));
        assert_eq!(*reached, Event::LimitReached { until, message: "no more".to_owned() });
        let effects: Vec<Effect> = events.into_iter().flat_map(|e| scene.happens(e)).collect();
        assert_eq!(effects, [Effect::Proceed(agent_id("main")), Effect::AwaitLimit]);
        assert_eq!((scene.run.status, scene.run.limited(NOW)), (RunStatus::Running, Some(until)));
        assert_eq!(scene.run.limited(until), None);
        assert!(scene.agent("main").restarts.is_empty());
    }
}

#[test]
fn past_reset_time_still_gives_short_wait() {
    let scene = at_limit(OnLimit::Wait);
    let events = decide(&scene.run, &report(&scene, limited(Some(Timestamp(5)))), chosen());
    let [_, Event::LimitReached { until, .. }] = events.as_slice() else { panic!("{events:?}") };
    assert!(*until > NOW);
}

#[test]
fn sibling_at_same_limit_records_no_new_limit() {
    let mut scene = at_limit(OnLimit::Wait);
    scene.take("main", tag(TagName::Fork, "N.md", "W.md"));
    happen(&mut scene, "main", limited(Some(RESETS)));
    let later = limited(Some(RESETS.plus(1)));
    let events = decide(&scene.run, &report_of(&scene, "main.1", later), chosen());
    let [Event::TurnFailed(failed)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((failed.counts, failed.not_before), (false, None));
    assert_eq!(scene.run.limited_until, Some(GOES_ON));
}

#[test]
fn usage_limit_can_be_reached_again_after_reset() {
    let mut scene = at_limit(OnLimit::Wait);
    happen(&mut scene, "main", limited(Some(RESETS)));
    let now = GOES_ON;
    let judgement = limited(Some(now.plus(20_000)));
    let events =
        decide(&scene.run, &report(&scene, judgement), NondeterministicInputs { now, ..chosen() });
    let [_, Event::LimitReached { until, .. }] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(*until, now.plus(21_000));
}

#[test]
fn usage_limit_pauses_run_if_on_limit_is_pause() {
    let mut scene = at_limit(OnLimit::Pause);
    let events = decide(&scene.run, &report(&scene, limited(Some(RESETS))), chosen());
    let pause = PauseReason::UsageLimit { resets: Some(RESETS), message: "no more".to_owned() };
    let [Event::TurnFailed(failed), paused] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((failed.counts, &failed.session), (false, &Some(session(77))));
    assert_eq!(*paused, Event::RunPaused { pause: pause.clone() });
    for event in events {
        scene.happens(event);
    }
    assert_eq!((scene.run.pause, scene.run.limited_until), (Some(pause), None));
}

#[test]
fn usage_limit_fails_agent_if_on_limit_is_fail() {
    for (_, restart) in RestartPolicy::ALL {
        let mut scene = at_limit(OnLimit::Fail);
        scene.run.settings.supervision.restart = restart;
        scene.run.settings.supervision.on_exhausted = OnExhausted::Wait;
        let failure = agent_failed(&scene, limited(Some(RESETS)));
        assert_eq!(
            (failure.cause, failure.ends_run),
            (FailureCause::UsageLimit, false),
            "{restart:?}"
        );
        assert_eq!(failure.error, "in A.md: no more");
    }
}

#[test]
fn resume_clears_usage_limit_after_pause_but_not_after_crash() {
    for (paused, limited_until) in [(true, None), (false, Some(GOES_ON))] {
        let mut scene = at_limit(OnLimit::Wait);
        happen(&mut scene, "main", limited(Some(RESETS)));
        if paused {
            scene.happens(Event::RunPaused { pause: PauseReason::Stopped });
            assert_eq!(scene.run.limited_until, Some(GOES_ON), "shown while it is paused");
        }
        let settings = Box::<Settings>::new(scene.run.settings.clone());
        let effects = scene.happens(Event::RunResumed { settings });
        assert_eq!(scene.run.limited_until, limited_until, "paused: {paused}");
        assert_eq!(effects.contains(&Effect::AwaitLimit), !paused, "{effects:?}");
        assert!(effects.contains(&Effect::Proceed(agent_id("main"))), "{effects:?}");
    }
}

#[test]
fn repeated_throttle_doubles_wait_without_counting_restart() {
    let mut scene = at_limit(OnLimit::Wait);
    let waits: Vec<u64> = (0..12)
        .map(|_| {
            let failed = turn_failed(&scene, FailureCause::Throttle);
            let wait = failed.not_before.expect("a wait").since(NOW);
            assert!(!failed.counts);
            scene.happens(Event::TurnFailed(failed));
            wait / 1000
        })
        .collect();
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    assert!(scene.agent("main").restarts.is_empty());
}

#[test]
fn successful_turn_resets_throttle_backoff() {
    let mut scene = at_limit(OnLimit::Wait);
    for _ in 0..3 {
        scene.happens(single_event(&scene, failed_by(FailureCause::Throttle)));
    }
    scene.happens(single_event(&scene, accepted(goto("B.md"))));
    assert_eq!(turn_failed(&scene, FailureCause::Throttle).not_before, Some(NOW.plus(1000)));
    scene.happens(single_event(&scene, failed_by(FailureCause::Throttle)));
    scene.happens(single_event(&scene, failed_by(FailureCause::Interrupted)));
    let after = turn_failed(&scene, FailureCause::Throttle).not_before;
    assert_eq!(after, Some(NOW.plus(2000)), "an interrupt says nothing about the API");
}

#[test]
fn throttle_backoff_uses_supervision_of_its_agent() {
    let mut scene = at_limit(OnLimit::Wait);
    let overrides =
        SupervisionOverrides { backoff_min_ms: Some(9000), ..SupervisionOverrides::default() };
    let mut fork = scene.step("main", tag(TagName::Fork, "N.md", "W.md"));
    fork.options.supervision = overrides;
    scene.happens(Event::StepFinished(fork));
    for (agent, wait) in [("main", 1000), ("main.1", 9000)] {
        let report = report_of(&scene, agent, failed_by(FailureCause::Throttle));
        let events = decide(&scene.run, &report, chosen());
        let [Event::TurnFailed(failed)] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(failed.not_before, Some(NOW.plus(wait)), "{agent}");
    }
}
