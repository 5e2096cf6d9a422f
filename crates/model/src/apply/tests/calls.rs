//! Budgets of calls: what counts to them, and the turns that they stop.

use super::*;
use crate::budget::{BudgetCheck, BudgetScope};

fn call(scene: &mut Scene, agent: &str, budget: Option<f64>) {
    let mut step = scene.step(agent, tag(TagName::Call, "R.md", "B.md"));
    step.call_budget_usd = budget.map(Usd::from_dollars);
    scene.happens(Event::StepFinished(step));
}

fn fork(scene: &mut Scene, agent: &str) {
    scene.take(agent, tag(TagName::Fork, "B.md", "W.md"));
}

/// Returns the cents that are spent in each open call of an agent, the outermost first.
fn spent(scene: &Scene, agent: &str) -> Vec<Option<u32>> {
    let cents = |usd: Usd| {
        (0..1000).find(|&cents| Usd::from_dollars(f64::from(cents) * CENT) == usd).expect("cents")
    };
    let budgets = scene.agent(agent).stack.iter().map(|frame| frame.budget.as_ref());
    budgets.map(|budget| budget.map(|budget| cents(budget.spent_usd))).collect()
}

fn of_call(depth: usize) -> BudgetScope {
    BudgetScope::Call { caller: agent_id("main"), depth }
}

/// Checks the next turn of an agent, beside running turns of others in the same state.
fn check(scene: &Scene, agent: &str, running: &[&str]) -> BudgetCheck {
    let (agent, state) = (agent_id(agent), state("B.md"));
    let running: Vec<AgentId> = running.iter().map(|agent| agent_id(agent)).collect();
    scene.run.budget().check((&agent, &state), &running.iter().map(|agent| (agent, &state)))
}

#[test]
fn turn_costs_count_to_every_open_call_until_it_returns() {
    let mut scene = Scene::begin();
    call(&mut scene, "main", Some(0.5));
    assert_eq!(spent(&scene, "main"), [Some(0)], "the turn that calls is the caller's");
    scene.take("main", goto("C.md"));
    let failure = scene.failure("main");
    scene.happens(Event::TurnFailed(failure));
    assert_eq!(spent(&scene, "main"), [Some(2)]);
    call(&mut scene, "main", None);
    scene.take("main", goto("C.md"));
    call(&mut scene, "main", Some(0.1));
    assert_eq!(spent(&scene, "main"), [Some(5), None, Some(0)]);
    scene.take("main", goto("C.md"));
    assert_eq!(spent(&scene, "main"), [Some(6), None, Some(1)]);
    scene.take("main", result("inner"));
    assert_eq!(spent(&scene, "main"), [Some(7), None]);
    scene.take("main", result("middle"));
    scene.take("main", result("outer"));
    assert!(scene.agent("main").stack.is_empty());
    call(&mut scene, "main", Some(0.5));
    assert_eq!(spent(&scene, "main"), [Some(0)], "each call has the whole budget");
}

#[test]
fn agents_forked_in_call_count_to_it_until_it_returns() {
    let mut scene = Scene::begin();
    fork(&mut scene, "main");
    call(&mut scene, "main", Some(0.5));
    scene.take("main.1", goto("C.md"));
    assert_eq!(spent(&scene, "main"), [Some(0)], "it was forked before the call");
    fork(&mut scene, "main");
    fork(&mut scene, "main.2");
    scene.take("main.2.1", goto("C.md"));
    assert_eq!(spent(&scene, "main"), [Some(3)]);
    let failed = scene.end_badly("main.2");
    scene.happens(Event::AgentFailed(failed));
    scene.take("main.2.1", goto("C.md"));
    assert_eq!(spent(&scene, "main"), [Some(5)], "its parent is gone, the call is not");
    call(&mut scene, "main", Some(0.2));
    scene.take("main.2.1", goto("C.md"));
    assert_eq!(spent(&scene, "main"), [Some(7), Some(0)]);
    scene.take("main", result("inner"));
    scene.take("main", result("outer"));
    call(&mut scene, "main", Some(0.5));
    scene.take("main.2.1", goto("C.md"));
    assert_eq!(spent(&scene, "main"), [Some(0)], "it was handed to the caller");
}

#[test]
fn spent_call_stops_turns_of_caller_and_its_forks_until_it_returns() {
    let mut scene = Scene::begin();
    fork(&mut scene, "main");
    call(&mut scene, "main", Some(0.5));
    call(&mut scene, "main", Some(2.0 * CENT));
    fork(&mut scene, "main");
    assert_eq!(check(&scene, "main", &[]), BudgetCheck::Enough);
    scene.take("main", goto("B.md"));
    for agent in ["main", "main.2"] {
        assert_eq!(check(&scene, agent, &[]), BudgetCheck::Spent(of_call(1)), "{agent}");
    }
    assert_eq!(check(&scene, "main.1", &["main"]), BudgetCheck::Enough);
    scene.take("main", result("inner"));
    assert_eq!(check(&scene, "main", &["main.1"]), BudgetCheck::Enough);
}

#[test]
fn call_whose_caller_has_ended_limits_agents_it_forked() {
    let mut scene = Scene::begin();
    fork(&mut scene, "main");
    call(&mut scene, "main", Some(4.0 * CENT));
    fork(&mut scene, "main");
    let failed = scene.end_badly("main");
    scene.happens(Event::AgentFailed(failed));
    assert_eq!(check(&scene, "main.2", &["main.1"]), BudgetCheck::Enough);
    scene.take("main.2", tag(TagName::Fork, "B.md", "W.md"));
    scene.take("main.2", goto("B.md"));
    for agent in ["main.2", "main.2.1"] {
        assert_eq!(check(&scene, agent, &[]), BudgetCheck::Spent(of_call(0)), "{agent}");
    }
    assert_eq!(check(&scene, "main.1", &[]), BudgetCheck::Enough, "it was forked before");
    scene.take("main.2", result("done"));
    assert_eq!(scene.run.ended_calls.len(), 1, "an agent of the call lives");
    scene.take("main.2.1", result("done"));
    assert!(scene.run.ended_calls.is_empty());
}

#[test]
fn running_turns_reserve_in_their_call_only() {
    let mut scene = Scene::begin();
    fork(&mut scene, "main");
    call(&mut scene, "main", Some(3.0 * CENT));
    fork(&mut scene, "main");
    scene.take("main.2", goto("B.md"));
    assert_eq!(check(&scene, "main", &["main.1"]), BudgetCheck::Enough);
    assert_eq!(check(&scene, "main", &["main.2"]), BudgetCheck::Reserved(of_call(0)));
    assert_eq!(check(&scene, "main.2", &["main"]), BudgetCheck::Reserved(of_call(0)));
    assert_eq!(check(&scene, "main.1", &["main", "main.2"]), BudgetCheck::Enough);
}

#[test]
fn process_limit_is_that_of_tightest_call() {
    let mut scene = Scene::begin();
    let limit = |scene: &Scene| scene.run.budget().process_limit(&agent_id("main"), &state("B.md"));
    assert_eq!(limit(&scene), None);
    call(&mut scene, "main", Some(0.2));
    call(&mut scene, "main", Some(0.1));
    assert_eq!(limit(&scene), Some(Usd::from_dollars(0.2)));
    scene.take("main", goto("B.md"));
    assert_eq!(limit(&scene), Some(Usd::from_dollars(0.18)));
    scene.take("main", result("inner"));
    assert_eq!(limit(&scene), Some(Usd::from_dollars(0.34)));
}

#[test]
fn reset_drops_budgets_with_pending_returns() {
    let mut scene = Scene::begin();
    call(&mut scene, "main", Some(CENT));
    scene.take("main", tag(TagName::Reset, "", "C.md"));
    assert_eq!(check(&scene, "main", &[]), BudgetCheck::Enough);
}
