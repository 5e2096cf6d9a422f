//! Restart policies by table: agents that restart, agents that end, and the last restart.

use super::*;
use crate::money::Usd;
use crate::run::AgentEnding;
use crate::supervision::{FixedPoint, RestartPolicy};
use crate::tests::scene::{CENT, variables};

const CAUSES: [FailureCause; 4] =
    [FailureCause::Crash, FailureCause::Timeout, FailureCause::Stall, FailureCause::Panic];

/// Creates a run under this policy, without jitter.
fn under(change: impl FnOnce(&mut SupervisionPolicy)) -> Scene {
    let mut scene = Scene::begin();
    let supervision = &mut scene.run.settings.supervision;
    supervision.backoff_jitter = FixedPoint::thousandths(0);
    change(supervision);
    scene
}

fn permanent(max_restarts: u32, on_exhausted: OnExhausted) -> Scene {
    under(|policy| {
        policy.restart = RestartPolicy::Permanent;
        policy.max_restarts = max_restarts;
        policy.on_exhausted = on_exhausted;
    })
}

/// Returns the events of an agent's report, at the time of the next record.
fn decided(scene: &Scene, agent: &str, judgement: TurnJudgement) -> Vec<Event> {
    let now = Timestamp(scene.next() * 1000);
    decide(
        &scene.run,
        &report_of(scene, agent, judgement),
        NondeterministicInputs { now, ..chosen() },
    )
}

/// Decides on an agent's report and applies the events.
fn happen(scene: &mut Scene, agent: &str, judgement: TurnJudgement) -> Vec<Effect> {
    let events = decided(scene, agent, judgement);
    events.into_iter().flat_map(|event| scene.happens(event)).collect()
}

/// Adds a child to the run, created in `W.md` with these supervision settings.
fn family(scene: &mut Scene, differing: SupervisionOverrides) {
    let fork = tag(TagName::Fork, "N.md", "W.md");
    let mut step = scene.step("main", fork);
    step.options.supervision = differing;
    scene.happens(Event::StepFinished(step));
}

#[test]
fn permanent_agent_restarts_with_initial_state_and_variables() {
    let mut scene = permanent(3, OnExhausted::FailAgent);
    let fork = Transition::Fork {
        target: state("W.md"),
        scope: None,
        next: state("N.md"),
        each: None,
        cwd: None,
        variables: variables(&[("item", "x")]),
        also: Vec::new(),
    };
    scene.take("main", fork);
    scene.take("main.1", goto("X.md"));
    let events = decided(&scene, "main.1", accepted(result("done")));
    let [Event::StepFinished(finished)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(finished.new_session, Some(session(77)));
    let not_before = Timestamp(4000 + 1000);
    assert_eq!(finished.restarted, Some(PermanentRestart { not_before }));

    let effects = scene.happens(events[0].clone());
    assert_eq!(effects, [Effect::Proceed(agent_id("main.1"))]);
    let again = scene.agent("main.1");
    assert_eq!(again.current_state, state("W.md"));
    assert_eq!(again.variables, variables(&[("item", "x")]));
    assert_eq!(again.session, Session::fresh(session(77)));
    assert_eq!((again.step, again.turn, again.not_before()), (3, 0, Some(not_before)));
    assert_eq!(again.restarts, [Timestamp(4000)]);
    assert!(scene.run.finished.is_empty() && again.stack.is_empty());
}

#[test]
fn result_to_caller_neither_ends_nor_restarts_agent() {
    let mut scene = permanent(0, OnExhausted::FailAgent);
    scene.take("main", tag(TagName::Call, "R.md", "B.md"));
    let events = decided(&scene, "main", accepted(result("answer")));
    let [Event::StepFinished(finished)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((&finished.new_session, &finished.restarted), (&None, &None));
}

#[test]
fn only_permanent_agent_restarts_after_result() {
    for restart in [RestartPolicy::Transient, RestartPolicy::Temporary] {
        let mut scene = under(|policy| policy.restart = restart);
        let effects = happen(&mut scene, "main", accepted(result("done")));
        assert_eq!(effects, [Effect::Retire(agent_id("main")), Effect::End], "{restart:?}");
        assert_eq!(scene.run.status, RunStatus::Completed);
    }
}

#[test]
fn results_and_failures_share_restart_limit_of_permanent_agent() {
    let mut scene = permanent(3, OnExhausted::FailAgent);
    happen(&mut scene, "main", accepted(result("once")));
    happen(&mut scene, "main", failed_by(FailureCause::Crash));
    happen(&mut scene, "main", accepted(result("twice")));
    assert_eq!(scene.agent("main").restarts.len(), 3);
    let events = decided(&scene, "main", failed_by(FailureCause::Crash));
    assert!(matches!(events.as_slice(), [Event::AgentFailed(_)]), "{events:?}");
}

/// The last result is recorded as a step; the effect of the policy is a second event.
#[test]
fn exhausted_permanent_agent_fails_after_last_result() {
    for (then, ends_run) in [(OnExhausted::FailAgent, false), (OnExhausted::FailRun, true)] {
        let mut scene = permanent(1, then);
        happen(&mut scene, "main", accepted(result("once")));
        let turn = scene.turn("main");
        let events = decided(&scene, "main", accepted(result("twice")));
        let [Event::StepFinished(finished), Event::AgentFailed(failed)] = events.as_slice() else {
            panic!("{events:?}")
        };
        assert_eq!((&finished.turn, finished.transition.tag()), (&turn, TagName::Result));
        assert_eq!(
            (finished.cost.amount, failed.cost.amount),
            (Usd::from_dollars(0.25), Usd::ZERO)
        );
        assert_eq!(failed.turn, TurnId { step: 3, turn: 0, ..turn });
        assert_eq!((failed.cause, failed.ends_run), (FailureCause::Restarts, ends_run));
        assert_eq!(
            failed.error,
            "in A.md: the permanent agent ended again (restarted once within 10m); raise max_restarts"
        );
        let effects: Vec<Effect> = events.into_iter().flat_map(|e| scene.happens(e)).collect();
        assert!(effects.contains(&Effect::Retire(agent_id("main"))), "{effects:?}");
        assert!(effects.contains(&Effect::End), "{effects:?}");
        assert_eq!(scene.run.status, RunStatus::Failed);
        assert_eq!(scene.run.total_cost_usd, Usd::from_dollars(0.5));
    }
}

#[test]
fn exhausted_permanent_agent_is_parked_under_wait_policy() {
    let mut scene = permanent(0, OnExhausted::Wait);
    let events = decided(&scene, "main", accepted(result("done")));
    let [Event::StepFinished(_), Event::AgentParked(parked)] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!((parked.turn.step, parked.turn.turn), (2, 0));
    assert!(parked.reason.contains("restarts are switched off"), "{}", parked.reason);
    for event in events {
        scene.happens(event);
    }
    assert!(matches!(scene.run.waiting(), Some(PauseReason::Parked { agents: 1, .. })));
    assert_eq!(scene.agent("main").not_before(), None);
}

#[test]
fn temporary_agent_fails_on_first_failure() {
    for cause in CAUSES {
        let mut scene = under(|policy| policy.restart = RestartPolicy::Temporary);
        let failure = agent_failed(&scene, failed_by(cause));
        assert_eq!((failure.cause, failure.error.as_str()), (cause, "in A.md: it said no"));
        happen(&mut scene, "main", failed_by(FailureCause::Interrupted));
        happen(&mut scene, "main", failed_by(FailureCause::Lost));
        assert_eq!(scene.agent("main").turn, 2, "what is nobody's failure is run again");
    }
}

#[test]
fn exhausted_restarts_fail_agent_or_run_by_policy() {
    for (then, ends_run) in [(OnExhausted::FailAgent, false), (OnExhausted::FailRun, true)] {
        for cause in CAUSES {
            let scene = under(|policy| (policy.max_restarts, policy.on_exhausted) = (0, then));
            let failure = agent_failed(&scene, failed_by(cause));
            assert_eq!((failure.cause, failure.ends_run), (cause, ends_run));
            assert_eq!(failure.error, "in A.md: it said no (restarts are switched off)");
            assert_eq!(failure.cost.amount, Usd::from_dollars(0.25));
        }
    }
}

#[test]
fn exhausted_restarts_park_agent_at_next_turn_under_wait_policy() {
    for cause in CAUSES {
        let mut scene =
            under(|policy| (policy.max_restarts, policy.on_exhausted) = (0, OnExhausted::Wait));
        let turn = scene.turn("main");
        let events = decided(&scene, "main", failed_by(cause));
        let [Event::TurnFailed(failed), Event::AgentParked(parked)] = events.as_slice() else {
            panic!("{cause}: {events:?}")
        };
        assert_eq!((failed.counts, failed.not_before, &failed.turn), (false, None, &turn));
        let same = cause == FailureCause::Panic;
        let due = TurnId { turn: turn.turn + u32::from(!same), ..turn };
        assert_eq!(parked.turn, due, "{cause}");
        let effects: Vec<Effect> = events.into_iter().flat_map(|e| scene.happens(e)).collect();
        assert!(matches!(effects.as_slice(), [Effect::Proceed(_)]));
        let main = scene.agent("main");
        assert_eq!((main.turn_id(), main.restarts.len()), (due, 0), "{cause}");
        assert_eq!(scene.run.total_cost_usd, Usd::from_dollars(0.25), "paid for once");
    }
}

#[test]
fn resume_unparks_agents_with_fresh_restarts() {
    let mut scene =
        under(|policy| (policy.max_restarts, policy.on_exhausted) = (1, OnExhausted::Wait));
    family(&mut scene, SupervisionOverrides::default());
    for _ in 0..2 {
        happen(&mut scene, "main.1", failed_by(FailureCause::Crash));
    }
    assert!(scene.agent("main.1").parked_reason().is_some());
    assert_eq!(scene.run.waiting(), None, "main still works");
    happen(&mut scene, "main", failed_by(FailureCause::Crash));
    happen(&mut scene, "main", failed_by(FailureCause::Crash));
    let pause = scene.run.waiting().expect("all wait");
    assert!(pause.to_string().starts_with("2 agents wait for a person: in N.md"), "{pause}");

    scene.happens(Event::RunPaused { pause });
    let settings = Box::new(scene.run.settings.clone());
    let effects = scene.happens(Event::RunResumed { settings });
    assert_eq!(effects, ["main", "main.1"].map(|id| Effect::Proceed(agent_id(id))));
    for id in ["main", "main.1"] {
        let agent = scene.agent(id);
        assert_eq!((agent.parked_reason(), agent.restarts.len()), (None, 0), "{id}");
    }
    assert_eq!(scene.run.waiting(), None);
    happen(&mut scene, "main.1", failed_by(FailureCause::Crash));
    assert_eq!(scene.agent("main.1").parked_reason(), None, "it has its restarts again");
}

#[test]
fn child_uses_restart_policy_of_its_fork() {
    let policy = SupervisionOverrides {
        max_restarts: Some(1),
        backoff_min_ms: Some(7000),
        on_exhausted: Some(OnExhausted::FailRun),
        ..SupervisionOverrides::default()
    };
    let mut scene = under(|run| run.max_restarts = 5);
    family(&mut scene, policy);
    scene.take("main.1", goto("X.md"));
    let events = decided(&scene, "main.1", failed_by(FailureCause::Crash));
    let [Event::TurnFailed(failed)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(failed.not_before, Some(Timestamp(4000 + 7000)));
    happen(&mut scene, "main.1", failed_by(FailureCause::Crash));

    let effects = happen(&mut scene, "main.1", failed_by(FailureCause::Crash));
    assert_eq!(effects.last(), Some(&Effect::Abort));
    assert_eq!(scene.run.status, RunStatus::Failed);
    let AgentEnding::Error(error) = &scene.run.finished[1].ending else {
        panic!("main ended well")
    };
    assert!(error.starts_with("ended in N.md because main.1 failed"), "{error}");
}

#[test]
fn parent_ignores_restart_policy_of_its_child() {
    let mut scene = under(|run| run.max_restarts = 1);
    family(
        &mut scene,
        SupervisionOverrides { max_restarts: Some(0), ..SupervisionOverrides::default() },
    );
    let events = decided(&scene, "main", failed_by(FailureCause::Crash));
    assert!(matches!(events.as_slice(), [Event::TurnFailed(_)]), "{events:?}");
    let events = decided(&scene, "main.1", failed_by(FailureCause::Crash));
    assert!(matches!(events.as_slice(), [Event::AgentFailed(_)]), "{events:?}");
}

/// The records of a scene are a second apart.
#[test]
fn child_counts_restarts_within_its_period() {
    let mut scene = under(|run| run.period_ms = 3_600_000);
    let policy = SupervisionOverrides {
        period_ms: Some(1500),
        max_restarts: Some(2),
        ..SupervisionOverrides::default()
    };
    family(&mut scene, policy);
    for _ in 0..10 {
        happen(&mut scene, "main.1", failed_by(FailureCause::Crash));
    }
    assert_eq!(scene.agent("main.1").restarts.len(), 2);
}

#[test]
fn permanent_agent_forgets_restarts_older_than_period() {
    let mut scene = permanent(2, OnExhausted::FailAgent);
    scene.run.settings.supervision.period_ms = 1500;
    for _ in 0..10 {
        happen(&mut scene, "main", accepted(result("done")));
    }
    assert_eq!(scene.agent("main").restarts.len(), 2, "they would pile up over the days");
}

#[test]
fn turn_cancelled_by_run_failure_is_billed_once() {
    let mut scene = under(|run| run.max_restarts = 0);
    family(
        &mut scene,
        SupervisionOverrides {
            on_exhausted: Some(OnExhausted::FailRun),
            ..SupervisionOverrides::default()
        },
    );
    let late = report_of(&scene, "main", failed_by(FailureCause::Interrupted));
    happen(&mut scene, "main.1", failed_by(FailureCause::Crash));
    let before = scene.run.total_cost_usd;
    let events = decide(&scene.run, &late, chosen());
    let counted = Event::CostCounted { turn: late.turn.clone(), cost: late.cost.clone() };
    assert_eq!(events, [counted]);
    assert_eq!(scene.happens(events[0].clone()), []);
    let mut paid = before;
    paid += late.cost.amount;
    assert_eq!(
        (scene.run.total_cost_usd, scene.run.finished[1].cost_usd),
        (paid, Usd::from_dollars(CENT).saturating_add(late.cost.amount))
    );
    assert_eq!(decide(&scene.run, &late, chosen()), [], "it comes a second time");
}
