//! Shares of a budget: their members, and their end.

use super::*;
use crate::retry::RetriedAgent;

fn fork(scene: &mut Scene, parent: &str, budget: Option<f64>) {
    let mut step = scene.step(parent, tag(TagName::Fork, "A.md", "W.md"));
    step.options.budget_usd = budget.map(Usd::from_dollars);
    scene.happens(Event::StepFinished(step));
}

/// Returns the shares: owner, cents spent, number of live agents.
fn shares(scene: &Scene) -> Vec<(String, u32, u32)> {
    let cents = |usd: Usd| {
        (0..1000).find(|&cents| Usd::from_dollars(f64::from(cents) * CENT) == usd).expect("cents")
    };
    let shares = scene.run.shares.iter();
    shares.map(|(id, share)| (id.to_string(), cents(share.spent_usd), share.live)).collect()
}

fn of(expected: &[(&str, u32, u32)]) -> Vec<(String, u32, u32)> {
    expected.iter().map(|&(id, spent, live)| (id.to_owned(), spent, live)).collect()
}

#[test]
fn turn_cost_counts_to_every_enclosing_share() {
    let mut scene = Scene::begin();
    fork(&mut scene, "main", Some(1.0));
    fork(&mut scene, "main", None);
    fork(&mut scene, "main.1", Some(0.5));
    fork(&mut scene, "main.1", None);
    assert_eq!(shares(&scene), of(&[("main.1", 2, 3), ("main.1.1", 0, 1)]));
    scene.take("main.1.1", goto("W.md"));
    scene.take("main.1.2", goto("W.md"));
    scene.take("main.2", goto("W.md"));
    assert_eq!(shares(&scene), of(&[("main.1", 4, 3), ("main.1.1", 1, 1)]));
    let failure = scene.failure("main.1.1");
    scene.happens(Event::TurnFailed(failure));
    assert_eq!(shares(&scene), of(&[("main.1", 5, 3), ("main.1.1", 2, 1)]));
}

#[test]
fn agent_that_lives_again_spends_what_is_left_of_a_share_whose_owner_has_ended() {
    let mut scene = Scene::begin();
    fork(&mut scene, "main", Some(1.0));
    fork(&mut scene, "main.1", None);
    scene.take("main.1", result("done"));
    let failed = scene.end_badly("main.1.1");
    scene.happens(Event::AgentFailed(failed));
    assert_eq!(shares(&scene), []);
    let session = crate::id::SessionId::new("again");
    let again = RetriedAgent { agent: agent_id("main.1.1"), session };
    scene.happens(Event::AgentsRetried { agents: vec![again] });
    assert_eq!(shares(&scene), of(&[("main.1", 3, 1)]));
    let limit = scene.run.shares.values().next().map(|share| share.limit_usd);
    assert_eq!(limit, Some(Usd::from_dollars(1.0)));
    assert!(scene.run.closed_shares.is_empty());
}

#[test]
fn share_is_removed_after_its_last_agent_ends() {
    let mut scene = Scene::begin();
    fork(&mut scene, "main", Some(1.0));
    fork(&mut scene, "main.1", None);
    scene.take("main.1", result("done"));
    assert_eq!(shares(&scene), of(&[("main.1", 2, 1)]), "its child still spends from it");
    let failed = scene.end_badly("main.1.1");
    scene.happens(Event::AgentFailed(failed));
    assert_eq!(shares(&scene), []);
}
