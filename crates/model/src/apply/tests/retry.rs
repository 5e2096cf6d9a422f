//! Retries: failed agents live again where they failed, and who waited for them waits again.

use super::*;
use crate::event::{AgentFailed, JoinFinished};
use crate::join::{JoinCondition, JoinOutcome, JoinTally};
use crate::retry::{ContinuedParent, RetriedAgent, RetryError, RetrySelection, plan_retry};

/// Returns a run whose `main` has forked two workers, and is in `N.md`.
fn forked() -> Scene {
    let mut scene = Scene::begin();
    for _ in 0..2 {
        scene.take("main", tag(TagName::Fork, "N.md", "W.md"));
    }
    scene
}

fn chosen(agents: &[&str]) -> RetrySelection {
    RetrySelection { agents: agents.iter().map(|id| agent_id(id)).collect(), ..Default::default() }
}

/// Retries what a selection chooses; returns the ids of the agents that live again.
fn retry(scene: &mut Scene, selection: &RetrySelection) -> Vec<String> {
    let plan = plan_retry(&scene.run, selection).expect("a plan");
    let number = scene.next();
    let agents: Vec<RetriedAgent> = plan
        .agents
        .iter()
        .map(|agent| RetriedAgent { agent: agent.id.clone(), session: session(number) })
        .collect();
    scene.happens(Event::AgentsRetried { agents });
    plan.agents.iter().map(|agent| agent.id.to_string()).collect()
}

fn fail(scene: &mut Scene, id: &str) {
    let failure = scene.end_badly(id);
    scene.happens(Event::AgentFailed(failure));
}

/// Ends the join of `main`, which fails it.
fn miss(scene: &mut Scene, failed: u32) {
    let (turn, state) = (scene.turn("main"), scene.agent("main").current_state.clone());
    scene.happens(Event::JoinFinished(Box::new(JoinFinished {
        turn,
        state,
        outcome: JoinOutcome::Missed,
        tally: JoinTally { count: 2, done: 2 - failed, failed },
        enters: None,
        stopped: Vec::new(),
    })));
    fail(scene, "main");
}

#[test]
fn failed_agent_lives_again_at_its_state_with_all_restarts_and_clean_session() {
    let mut scene = Scene::begin();
    scene.take("main", goto("B.md"));
    scene.happens(Event::TurnFailed(scene.failure("main")));
    assert_eq!(scene.agent("main").restarts.len(), 1);
    let failed_turn = scene.turn("main");
    fail(&mut scene, "main");
    assert_eq!(scene.run.status, RunStatus::Failed);

    assert_eq!(retry(&mut scene, &RetrySelection::default()), ["main"]);
    let main = scene.agent("main");
    assert_eq!(main.current_state, state("B.md"));
    assert_eq!((main.restarts.len(), main.hold.clone()), (0, None));
    assert_eq!(main.turn_id(), TurnId { turn: failed_turn.turn + 1, ..failed_turn });
    assert_eq!(main.session, branch(5, 1, Some(message(2))), "cut at the last finished turn");
    assert_eq!(main.cost_usd, Usd::from_dollars(3.0 * CENT));
    assert_eq!(scene.run.status, RunStatus::Running);
    assert!(scene.run.finished.is_empty());
    assert_eq!(main.visit(), 0, "the turn is the same visit of its state");
}

#[test]
fn open_join_waits_for_retried_child_again() {
    let mut scene = forked();
    scene.joins("main", JoinCondition::Any);
    fail(&mut scene, "main.1");
    let tally = |scene: &Scene| scene.agent("main").unjoined.tally(0);
    assert_eq!(tally(&scene), JoinTally { count: 2, done: 0, failed: 1 });
    assert_eq!(retry(&mut scene, &chosen(&["main.1"])), ["main.1"]);
    assert_eq!(tally(&scene), JoinTally { count: 2, done: 0, failed: 0 });
    scene.take("main.1", result("one"));
    assert_eq!(tally(&scene), JoinTally { count: 2, done: 1, failed: 0 });
}

#[test]
fn agent_that_failed_with_its_join_waits_again_and_counts_later_ends() {
    let mut scene = forked();
    scene.joins("main", JoinCondition::All);
    fail(&mut scene, "main.1");
    miss(&mut scene, 1);
    scene.take("main.2", result("two"));
    let plan = plan_retry(&scene.run, &chosen(&["main.1"])).expect("a plan");
    let needs: Vec<_> =
        plan.agents.iter().map(|agent| (agent.id.as_str(), &agent.needed_by)).collect();
    assert_eq!(needs, [("main", &Some(agent_id("main.1"))), ("main.1", &None)]);
    assert!(plan.continued.is_empty());
    retry(&mut scene, &chosen(&["main.1"]));
    let main = scene.agent("main");
    assert!(main.pending_join().is_some());
    assert_eq!(main.unjoined.tally(0), JoinTally { count: 2, done: 1, failed: 0 });
    scene.take("main.1", result("one"));
    assert_eq!(scene.agent("main").unjoined.tally(0).done, 2);
    let kept = scene.run.finished.iter().filter(|ended| ended.variables.is_some()).count();
    assert_eq!(kept, 2, "the join needs the variables of both");
}

#[test]
fn retry_of_joining_agent_takes_its_failed_children_along() {
    let mut scene = forked();
    scene.joins("main", JoinCondition::All);
    fail(&mut scene, "main.1");
    fail(&mut scene, "main.2");
    miss(&mut scene, 2);
    assert_eq!(retry(&mut scene, &chosen(&["main"])), ["main", "main.1", "main.2"]);
}

#[test]
fn parent_that_continued_is_named_and_stays_where_it_is() {
    let mut scene = forked();
    scene.joins("main", JoinCondition::Any);
    fail(&mut scene, "main.1");
    scene.take("main.2", result("two"));
    let (turn, at) = (scene.turn("main"), scene.agent("main").current_state.clone());
    scene.happens(Event::JoinFinished(Box::new(JoinFinished {
        turn,
        state: at,
        outcome: JoinOutcome::Met,
        tally: JoinTally { count: 2, done: 1, failed: 1 },
        enters: None,
        stopped: Vec::new(),
    })));
    let before = scene.agent("main").clone();
    let plan = plan_retry(&scene.run, &RetrySelection::default()).expect("a plan");
    let continued = ContinuedParent {
        parent: agent_id("main"),
        child: agent_id("main.1"),
        place: Some(state("N.md")),
    };
    assert_eq!(plan.continued, [continued]);
    retry(&mut scene, &RetrySelection::default());
    assert_eq!(*scene.agent("main"), before);
    scene.take("main.1", result("late"));
    assert_eq!(*scene.agent("main"), before);
}

#[test]
fn all_agents_that_ended_with_the_run_live_again() {
    let mut scene = forked();
    let failure = AgentFailed { ends_run: true, ..scene.end_badly("main.1") };
    scene.happens(Event::AgentFailed(failure));
    assert!(scene.run.agents.is_empty());
    assert_eq!(retry(&mut scene, &RetrySelection::default()), ["main", "main.1", "main.2"]);
    assert_eq!(scene.agent("main").unjoined.tally(0), JoinTally { count: 2, done: 0, failed: 0 });
}

#[test]
fn selection_that_chooses_nothing_is_named_error() {
    let mut scene = forked();
    let planned = |scene: &Scene, selection: &RetrySelection| {
        plan_retry(&scene.run, selection).expect_err("nothing to retry")
    };
    assert_eq!(planned(&scene, &RetrySelection::default()), RetryError::NothingFailed);
    let lives = RetryError::Lives(agent_id("main.1"));
    assert_eq!(planned(&scene, &chosen(&["main.1"])), lives);
    assert_eq!(planned(&scene, &chosen(&["main.9"])), RetryError::NoAgent(agent_id("main.9")));
    fail(&mut scene, "main.1");
    let elsewhere = RetrySelection { states: vec![state("N.md")], ..Default::default() };
    let error = planned(&scene, &elsewhere).to_string();
    assert_eq!(
        error,
        "no failed agent fits the selection; failed are main.1 in W.md (unusable output)"
    );
    let cause = RetrySelection { causes: vec![FailureCause::Crash], ..Default::default() };
    assert!(matches!(planned(&scene, &cause), RetryError::NothingChosen(_)));
    let both = RetrySelection {
        states: vec![state("W.md")],
        causes: vec![FailureCause::Crash, FailureCause::Output],
        ..Default::default()
    };
    assert_eq!(retry(&mut scene, &both), ["main.1"]);
}

#[test]
fn agent_that_did_not_fail_is_not_retried() {
    let mut scene = Scene::begin();
    let agents = vec![RetriedAgent { agent: AgentId::main(), session: session(9) }];
    let retried = Event::AgentsRetried { agents };
    let refused = ApplyError::NotRetryable(AgentId::main());
    assert_eq!(scene.offer(retried.clone()), Err(refused.clone()));
    scene.take("main", result("well"));
    assert_eq!(scene.offer(retried), Err(refused));
}
