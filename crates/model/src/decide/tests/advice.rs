//! Verdicts of plug-ins and their effects, and the effects of a spent budget.

use super::*;
use crate::agent::{AgentOptions, TurnHold};
use crate::budget::{BudgetScope, BudgetShare};
use crate::consult::{ConsultVerdict, StopScope};
use crate::id::AgentId;
use crate::money::Usd;
use crate::transition::OverruledTransition;
use crate::turn::TurnCost;

fn guard_says(verdict: ConsultVerdict) -> Vec<PluginVerdict> {
    vec![PluginVerdict { by: "guard".to_owned(), verdict }]
}

fn hold(until: u64) -> ConsultVerdict {
    ConsultVerdict::Hold { until: Timestamp(until), reason: "later".to_owned() }
}

fn stop(scope: StopScope) -> ConsultVerdict {
    ConsultVerdict::Stop { reason: "no more".to_owned(), scope }
}

fn instead(transition: Transition) -> ConsultVerdict {
    ConsultVerdict::Override { transition, reason: "better".to_owned() }
}

/// Returns the events of a report of `main` with a verdict of the plug-in `guard`.
fn events(scene: &Scene, judgement: TurnJudgement, verdict: ConsultVerdict) -> Vec<Event> {
    let report = TurnReport { verdicts: guard_says(verdict), ..report(scene, judgement) };
    decide(&scene.run, &report, chosen())
}

fn paused(event: &Event) -> bool {
    let pause = PauseReason::Plugin { plugin: "guard".to_owned(), reason: "no more".to_owned() };
    *event == Event::RunPaused { pause }
}

#[test]
fn overruled_transition_records_both_transitions() {
    let scene = Scene::begin();
    let events_of = events(&scene, accepted(goto("B.md")), instead(goto("C.md")));
    let [Event::StepFinished(step)] = events_of.as_slice() else { panic!("{events_of:?}") };
    let overruled = step.overruled.as_ref().expect("overruled");
    assert_eq!((&step.transition, overruled.asked.as_ref()), (&goto("C.md"), Some(&goto("B.md"))));
    assert_eq!((&*overruled.by, &*overruled.reason), ("the plug-in guard", "better"));
    assert_eq!(step.cost.amount, Usd::from_dollars(0.25));
    assert!(!step.without_turn);
}

#[test]
fn first_requested_transition_survives_second_override() {
    let scene = Scene::begin();
    let mut evaluated =
        AcceptedTransition { transition: goto("B.md"), implicit: false, overruled: None };
    evaluated.overruled = Some(Box::new(OverruledTransition {
        asked: Some(goto("A.md")),
        by: "the evaluator".to_owned(),
        reason: String::new(),
    }));
    let events_of = events(&scene, TurnJudgement::Accepted(evaluated), instead(goto("C.md")));
    let [Event::StepFinished(step)] = events_of.as_slice() else { panic!("{events_of:?}") };
    let overruled = step.overruled.as_ref().expect("overruled");
    assert_eq!(overruled.asked, Some(goto("A.md")));
}

#[test]
fn override_before_turn_takes_step_without_turn() {
    let mut scene = Scene::begin();
    let unstarted =
        TurnReport { cost: TurnCost::default(), ..report(&scene, TurnJudgement::NotStarted) };
    let report = TurnReport { verdicts: guard_says(instead(goto("C.md"))), ..unstarted };
    let events_of = decide(&scene.run, &report, chosen());
    let [Event::StepFinished(step), Event::TurnHeld(held)] = events_of.as_slice() else {
        panic!("{events_of:?}")
    };
    assert!(step.without_turn && step.overruled.as_ref().is_some_and(|by| by.asked.is_none()));
    assert_eq!(held.until, NOW.plus(1000), "a plug-in cannot flood the journal");
    for event in &events_of {
        scene.happens(event.clone());
    }
    let main = scene.agent("main");
    assert_eq!((main.current_state.as_str(), main.visits.is_empty()), ("C.md", true));
    assert!(scene.run.max_turn_costs_usd.is_empty(), "what was not asked teaches nothing");
}

#[test]
fn turn_hold_lasts_at_least_one_second() {
    let mut scene = Scene::begin();
    let events_of = events(&scene, TurnJudgement::NotStarted, hold(0));
    let [Event::TurnHeld(held)] = events_of.as_slice() else { panic!("{events_of:?}") };
    assert_eq!((held.until, held.turn.clone()), (NOW.plus(1000), scene.turn("main")));
    let due = scene.turn("main");
    scene.happens(events_of[0].clone());
    let main = scene.agent("main");
    assert_eq!((main.turn_id(), main.not_before()), (due, Some(NOW.plus(1000))));
    assert_eq!(
        main.hold,
        Some(TurnHold::Plugin { by: "guard: later".into(), until: NOW.plus(1000) })
    );
}

#[test]
fn hold_after_transition_delays_next_turn_unless_agent_ended() {
    let mut scene = Scene::begin();
    let until = NOW.0 + 60_000;
    let events_of = events(&scene, accepted(goto("B.md")), hold(until));
    assert_eq!(events_of.len(), 2);
    for event in &events_of {
        scene.happens(event.clone());
    }
    let main = scene.agent("main");
    assert_eq!((main.current_state.as_str(), main.not_before()), ("B.md", Some(Timestamp(until))));
    let events_of = events(&scene, accepted(result("done")), hold(until));
    assert_eq!(events_of.len(), 1, "an agent that has ended is not held: {events_of:?}");
}

#[test]
fn plugin_stop_fails_agent_with_cost_and_reason() {
    let scene = Scene::begin();
    for (judgement, what) in [
        (TurnJudgement::NotStarted, "did not let its turn start"),
        (accepted(goto("B.md")), "did not let it take its transition"),
    ] {
        let events_of = events(&scene, judgement, stop(StopScope::Agent));
        let [Event::AgentFailed(failed)] = events_of.as_slice() else { panic!("{events_of:?}") };
        assert_eq!(failed.cause, FailureCause::Stopped);
        assert_eq!(failed.error, format!("in A.md: the plug-in guard {what}: no more"));
        assert_eq!(failed.cost.amount, Usd::from_dollars(0.25));
    }
}

#[test]
fn plugin_run_stop_pauses_run_after_recording_paid_step() {
    let mut scene = Scene::begin();
    let events_of = events(&scene, TurnJudgement::NotStarted, stop(StopScope::Run));
    assert!(events_of.len() == 1 && paused(&events_of[0]), "{events_of:?}");
    let events_of = events(&scene, accepted(goto("B.md")), stop(StopScope::Run));
    assert!(
        matches!(events_of[0], Event::StepFinished(_)) && paused(&events_of[1]),
        "{events_of:?}"
    );
    let ask = tag(TagName::Ask, "B.md", "Sure?");
    let events_of = events(&scene, accepted(ask), stop(StopScope::Run));
    assert!(
        events_of.len() == 2 && paused(&events_of[1]),
        "the agent that asks lives: {events_of:?}"
    );
    let events_of = events(&scene, accepted(result("x")), stop(StopScope::Run));
    assert_eq!(events_of.len(), 1, "there is nothing left to stop: {events_of:?}");
    scene.take("main", tag(TagName::Fork, "A.md", "W.md"));
    let events_of = events(&scene, accepted(result("x")), stop(StopScope::Run));
    assert_eq!(events_of.len(), 2, "the child lives: {events_of:?}");
}

#[test]
fn proceed_verdict_changes_nothing() {
    let scene = Scene::begin();
    let events_of = events(&scene, accepted(goto("B.md")), ConsultVerdict::Proceed);
    assert_eq!(events_of, [single_event(&scene, accepted(goto("B.md")))]);
}

#[test]
fn spent_budget_error_names_budget_owner() {
    let mut scene = Scene::begin();
    let mut fork = scene.step("main", tag(TagName::Fork, "A.md", "W.md"));
    fork.options.budget_usd = Some(Usd::from_dollars(0.5));
    scene.happens(Event::StepFinished(fork));
    scene.take("main.1", tag(TagName::Fork, "W.md", "V.md"));
    let share = BudgetShare {
        limit_usd: Usd::from_dollars(0.5),
        spent_usd: Usd::from_dollars(CENT),
        live: 2,
    };
    assert_eq!(scene.run.shares.get(&agent_id("main.1")), Some(&share));
    let error_of = |agent: &str, whose: BudgetScope| {
        let agent = scene.agent(agent);
        let events_of =
            out_of_money(&scene.run, agent, &whose, AgentOptions::default(), None, chosen());
        let [Event::AgentFailed(failed)] = events_of.as_slice() else { panic!("{events_of:?}") };
        (failed.cause, failed.error.clone())
    };
    let share_of = |agent: &str| BudgetScope::Share(agent_id(agent) as AgentId);
    let used = "of $0.50 is used up: $0.01 spent (`budget` in W.md)";
    assert_eq!(
        error_of("main.1", share_of("main.1")),
        (FailureCause::Budget, format!("in W.md: its budget {used}"))
    );
    assert_eq!(
        error_of("main.1.1", share_of("main.1")).1,
        format!("in V.md: the budget of main.1, for it and all it forks, {used}")
    );
    assert!(error_of("main", BudgetScope::Run).1.starts_with("in A.md: the run's budget of"));
}

#[test]
fn spent_budget_error_names_called_state_and_caller() {
    let mut scene = Scene::begin();
    let mut call = scene.step("main", tag(TagName::Call, "R.md", "B.md"));
    call.call_budget_usd = Some(Usd::from_dollars(0.5));
    scene.happens(Event::StepFinished(call));
    scene.take("main", tag(TagName::Fork, "C.md", "W.md"));
    let whose = BudgetScope::Call { caller: agent_id("main"), depth: 0 };
    let error_of = |agent: &str| {
        let events_of = out_of_money(
            &scene.run,
            scene.agent(agent),
            &whose,
            AgentOptions::default(),
            None,
            chosen(),
        );
        let [Event::AgentFailed(failed)] = events_of.as_slice() else { panic!("{events_of:?}") };
        failed.error.clone()
    };
    let used = "of $0.50 is used up: $0.01 spent (`budget` in B.md)";
    assert_eq!(error_of("main"), format!("in C.md: the budget of its call {used}"));
    assert_eq!(error_of("main.1"), format!("in W.md: the budget of a call by main {used}"));
}

#[test]
fn killed_turn_is_billed_at_max_cost_of_its_state() {
    let mut scene = Scene::begin();
    scene.take("main", goto("A.md"));
    let failure =
        TurnFailure { unsettled: true, ..TurnFailure::new(FailureCause::Timeout, "too long") };
    let mut report = report(&scene, TurnJudgement::Failed(failure));
    report.cost.amount = Usd::ZERO;
    let events_of = decide(&scene.run, &report, chosen());
    let [Event::TurnFailed(failed)] = events_of.as_slice() else { panic!("{events_of:?}") };
    assert_eq!((failed.cost.amount, failed.cost.estimated), (Usd::from_dollars(CENT), true));
    let known = scene.run.max_turn_costs_usd.clone();
    scene.happens(events_of[0].clone());
    assert_eq!(scene.run.total_cost_usd, Usd::from_dollars(2.0 * CENT));
    assert_eq!(scene.run.max_turn_costs_usd, known, "an estimate teaches nothing");
}

#[test]
fn evaluator_runs_in_separate_session_and_finishes_step() {
    let mut scene = Scene::begin();
    let evaluator = state("CHECK.md");
    let proposed = TurnJudgement::Proposed {
        accepted: AcceptedTransition { transition: goto("B.md"), implicit: false, overruled: None },
        output: "the reply".to_owned(),
        evaluator: evaluator.clone(),
    };
    scene.happens(single_event(&scene, proposed));
    let main = scene.agent("main").clone();
    assert_eq!((main.prompt(), main.turn, main.visit()), (&evaluator, 1, 0));
    assert_eq!(main.turn_session(), &Session::fresh(session(77)));
    assert_eq!(main.session.checkpoint, Some(message(9)), "its own session is where it was");

    let failed = turn_failed(&scene, FailureCause::Crash);
    assert_eq!(failed.state, evaluator, "a crash is the evaluator's");
    scene.happens(Event::TurnFailed(failed));
    assert_eq!(scene.agent("main").session, main.session);
    assert_eq!(scene.turn("main").turn, 2);

    let kept = single_event(&scene, accepted(goto("B.md")));
    let Event::StepFinished(step) = &kept else { panic!("{kept:?}") };
    assert_eq!((step.evaluator.as_ref(), step.session_id.clone()), (Some(&evaluator), session(77)));
    scene.happens(kept);
    let main = scene.agent("main");
    assert_eq!((main.current_state.as_str(), main.proposal()), ("B.md", None));
    assert_eq!(main.session, Session::resumed(session(1), Some(message(9))));
    let asked: Vec<&str> = main.visits.states().map(StateName::as_str).collect();
    assert_eq!(asked, ["A.md", "CHECK.md"]);
    assert!(scene.run.max_turn_costs_usd.contains_key(&evaluator));
}

#[test]
fn proposal_is_accepted_unevaluated_when_budget_is_spent() {
    let mut scene = Scene::begin();
    let proposed = TurnJudgement::Proposed {
        accepted: AcceptedTransition {
            transition: result("paid"),
            implicit: false,
            overruled: None,
        },
        output: String::new(),
        evaluator: state("CHECK.md"),
    };
    scene.happens(single_event(&scene, proposed));
    let main = scene.agent("main").clone();
    let events_of =
        out_of_money(&scene.run, &main, &BudgetScope::Run, AgentOptions::default(), None, chosen());
    let [Event::StepFinished(step)] = events_of.as_slice() else { panic!("{events_of:?}") };
    assert!(step.without_turn && step.overruled.is_none() && step.cost.amount == Usd::ZERO);
    scene.happens(events_of[0].clone());
    assert_eq!(scene.run.status, RunStatus::Completed);
    let known: Vec<&str> = scene.run.max_turn_costs_usd.keys().map(StateName::as_str).collect();
    assert_eq!(known, ["A.md"], "a turn that was not asked teaches nothing");
}

#[test]
fn override_of_unevaluated_proposal_records_requested_transition() {
    let mut scene = Scene::begin();
    let accepted =
        AcceptedTransition { transition: goto("B.md"), implicit: false, overruled: None };
    let (output, evaluator) = (String::new(), state("CHECK.md"));
    let proposed = report(&scene, TurnJudgement::Proposed { accepted, output, evaluator });
    for event in decide(&scene.run, &proposed, chosen()) {
        scene.happens(event);
    }
    let events_of = events(&scene, TurnJudgement::NotStarted, instead(goto("C.md")));
    let [Event::StepFinished(step), Event::TurnHeld(_)] = events_of.as_slice() else {
        panic!("{events_of:?}")
    };
    let asked = step.overruled.as_ref().and_then(|overruled| overruled.asked.clone());
    assert_eq!((step.without_turn, asked), (true, Some(goto("B.md"))));
}
