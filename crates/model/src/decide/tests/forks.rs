//! Forks and joins by table: the children, a run without room, the outcomes of a wait.

use super::*;
use crate::event::{JoinFinished, StepFinished};
use crate::join::{JoinCondition, JoinFallback, JoinOutcome, JoinTally, UnjoinedPolicy};
use crate::settings::ChildSpec;

fn fork() -> Transition {
    tag(TagName::Fork, "N.md", "W.md")
}

fn group(many: u32) -> ForkGroup {
    let child = |number: u32| ChildSpec {
        session: SessionId::new(&format!("b{number}")),
        cwd: None,
        variables: [("item".to_owned(), number.to_string())].into(),
    };
    ForkGroup {
        state: state("W.md"),
        scope: None,
        options: AgentOptions::default(),
        base: None,
        not_before: None,
        agents: (1..=many).map(child).collect(),
    }
}

fn fan_out(scene: &Scene, groups: Vec<ForkGroup>, stagger_ms: Option<u64>) -> Vec<Event> {
    let report = TurnReport { children: groups, stagger_ms, ..report(scene, accepted(fork())) };
    decide(&scene.run, &report, chosen())
}

/// Creates a run whose `main` has forked `many` agents with one tag, and is in `N.md`.
fn forked(many: u32) -> Scene {
    let mut scene = Scene::begin();
    let [event] = fan_out(&scene, vec![group(many)], None).try_into().expect("one record");
    scene.happens(event);
    scene
}

fn join(need: JoinCondition) -> Join {
    let otherwise = JoinFallback::Fail;
    Join {
        need,
        timeout_ms: None,
        on_timeout: otherwise.clone(),
        on_failure: otherwise,
        rest: UnjoinedPolicy::Leave,
    }
}

fn arrive(scene: &mut Scene, join: Join) {
    let report = report(scene, TurnJudgement::JoinDue(Box::new(join)));
    let [event] = decide(&scene.run, &report, chosen()).try_into().expect("one record");
    scene.happens(event);
}

fn concluded(scene: &Scene, now: Timestamp) -> Vec<Event> {
    finish_join(&scene.run, scene.agent("main"), now, &|agent| agent.as_str() == "main.3")
}

/// Returns the event of a join that has ended, and the error of the agent that fails by it.
fn over(scene: &Scene) -> (JoinFinished, Option<String>) {
    let mut events = concluded(scene, NOW).into_iter();
    let Some(Event::JoinFinished(joined)) = events.next() else { panic!("it is still open") };
    let error = events.next().map(|event| match event {
        Event::AgentFailed(failed) => failed.error,
        other => panic!("{other:?}"),
    });
    (*joined, error)
}

fn results(scene: &Scene) -> serde_json::Value {
    let results = scene.agent("main").results().expect("results");
    serde_json::from_str(results).expect("JSON")
}

#[test]
fn fork_group_is_one_record_with_staggered_starts() {
    let scene = Scene::begin();
    let events = fan_out(&scene, vec![group(3)], None);
    let [Event::StepFinished(StepFinished { children, new_session: None, .. })] = events.as_slice()
    else {
        panic!("{events:?}")
    };
    assert_eq!(children[0].not_before, Some(NOW.plus(3000)));
    let step = fan_out(&scene, vec![group(1), group(2)], Some(500));
    let [Event::StepFinished(step)] = step.as_slice() else { panic!("{step:?}") };
    let starts: Vec<_> = step.children.iter().map(|group| group.not_before).collect();
    assert_eq!(starts, [None, Some(NOW.plus(500))]);

    let scene = forked(3);
    let waits = |id: &str| scene.agent(id).not_before();
    assert_eq!((waits("main.1"), waits("main.2")), (None, Some(NOW.plus(3000))));
    assert_eq!(scene.agent("main.3").session.id, SessionId::new("b3"));
    assert_eq!(scene.agent("main.2").variables["item"], "2");
    assert_eq!(scene.agent("main").unjoined.tally(0), JoinTally { count: 3, done: 0, failed: 0 });
}

#[test]
fn fork_over_agent_limit_reminds_agent_or_pauses_run() {
    let mut scene = Scene::begin();
    scene.run.settings.forking.max_agents = 3;
    assert!(matches!(fan_out(&scene, vec![group(2)], None)[0], Event::StepFinished(_)));
    let allowed = TransitionPolicy { allowed: vec![fork()], ..TransitionPolicy::default() };
    let report =
        TurnReport { children: vec![group(3)], allowed, ..report(&scene, accepted(fork())) };
    let events = decide(&scene.run, &report, chosen());
    let [Event::TurnRejected(rejected)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(
        rejected.violation,
        "<fork next=\"N.md\">W.md</fork>: no room: 1 agent lives, 3 would be forked, and at most 3 may live at the same time (--max-agents)"
    );
    assert!(rejected.reminder.contains("--max-agents"));
    scene.run.settings.forking.max_agents = 1;
    let paused = Event::RunPaused { pause: PauseReason::Agents { live: 1, more: 1, limit: 1 } };
    assert_eq!(single_event(&scene, accepted(fork())), paused, "nobody can be reminded");
}

#[test]
fn join_all_waits_for_all_children_and_lists_results() {
    let mut scene = forked(2);
    arrive(&mut scene, join(JoinCondition::All));
    assert!(scene.agent("main").waits());
    scene.take("main.2", result("two"));
    assert_eq!(concluded(&scene, NOW), []);
    scene.take("main.1", result("one"));
    let (joined, error) = over(&scene);
    assert_eq!((joined.outcome, error), (JoinOutcome::Met, None));
    scene.happens(Event::JoinFinished(Box::new(joined)));
    let expected = serde_json::json!([
        { "id": "main.1", "state": "W.md", "status": "result", "result": "one", "variables": { "item": "1" } },
        { "id": "main.2", "state": "W.md", "status": "result", "result": "two", "variables": { "item": "2" } },
    ]);
    assert_eq!(results(&scene), expected);
    let main = scene.agent("main");
    assert!(!main.waits() && main.unjoined.is_empty());
    assert_eq!((main.current_state.as_str(), main.step), ("N.md", 2));
}

#[test]
fn join_is_missed_as_soon_as_condition_is_unreachable() {
    let mut scene = forked(3);
    arrive(&mut scene, join(JoinCondition::Count(2)));
    scene.happens(Event::AgentFailed(scene.end_badly("main.1")));
    assert_eq!(concluded(&scene, NOW), []);
    scene.happens(Event::AgentFailed(scene.end_badly("main.3")));
    let (joined, error) = over(&scene);
    assert_eq!(joined.outcome, JoinOutcome::Missed);
    assert_eq!(
        error.as_deref(),
        Some(
            "in N.md: 2 of the 3 agents it waited for failed (join: 2): main.1, main.3; on_failure: keep continues without them"
        )
    );
}

#[test]
fn on_failure_includes_failed_children_or_enters_other_state() {
    let mut scene = forked(2);
    let keep = Join { on_failure: JoinFallback::Keep, ..join(JoinCondition::All) };
    arrive(&mut scene, keep);
    scene.happens(Event::AgentFailed(scene.end_badly("main.1")));
    assert_eq!(concluded(&scene, NOW), [], "the other still lives");
    scene.take("main.2", result("two"));
    let (joined, error) = over(&scene);
    assert_eq!((joined.outcome, error), (JoinOutcome::Met, None));
    scene.happens(Event::JoinFinished(Box::new(joined)));
    assert_eq!(results(&scene)[0]["error"], "unusable");
    scene.take("main", result("done"));
    assert_eq!(scene.run.status, RunStatus::Completed, "who waited was told of the failure");

    let mut scene = forked(2);
    let elsewhere =
        Join { on_failure: JoinFallback::State(state("F.md")), ..join(JoinCondition::All) };
    arrive(&mut scene, elsewhere);
    scene.happens(Event::AgentFailed(scene.end_badly("main.1")));
    let (joined, error) = over(&scene);
    assert_eq!(
        (joined.outcome, joined.enters.clone(), error),
        (JoinOutcome::Missed, Some(state("F.md")), None)
    );
    scene.happens(Event::JoinFinished(Box::new(joined)));
    assert_eq!(scene.agent("main").current_state, state("F.md"));
    assert_eq!(results(&scene)[1]["status"], "running");
}

#[test]
fn finished_join_stops_remaining_children_and_descendants() {
    let mut scene = forked(3);
    scene.take("main.2", fork());
    arrive(&mut scene, Join { rest: UnjoinedPolicy::Stop, ..join(JoinCondition::Any) });
    scene.take("main.1", result("one"));
    let (joined, _) = over(&scene);
    let stopped: Vec<_> =
        joined.stopped.iter().map(|child| (child.agent.as_str(), child.at_work)).collect();
    assert_eq!(stopped, [("main.2", false), ("main.2.1", false), ("main.3", true)]);
    let effects = scene.happens(Event::JoinFinished(Box::new(joined)));
    let discarded: Vec<_> =
        ["main.2", "main.2.1", "main.3"].map(|id| Effect::Discard(agent_id(id))).into();
    assert_eq!(effects[..3], discarded);
    assert_eq!(results(&scene)[2]["status"], "stopped");
    let owed = scene.run.finished.iter().filter(|ended| ended.unbilled_turn.is_some());
    assert_eq!(owed.map(|ended| ended.id.as_str()).collect::<Vec<_>>(), ["main.3"]);
    scene.take("main", result("done"));
    assert_eq!(scene.run.status, RunStatus::Completed);
}

#[test]
fn join_timeout_ends_wait_with_late_outcome() {
    let mut scene = forked(2);
    let start = Timestamp(scene.next() * 1000);
    arrive(&mut scene, Join { timeout_ms: Some(5000), ..join(JoinCondition::All) });
    scene.take("main.1", result("one"));
    assert_eq!(concluded(&scene, start.plus(4999)), []);
    let events = concluded(&scene, start.plus(5000));
    let [Event::JoinFinished(joined), Event::AgentFailed(failed)] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!(joined.outcome, JoinOutcome::Late);
    assert_eq!(
        failed.error,
        "in N.md: 1 of the 2 agents it waited for had finished after 5s (join: all); on_timeout: keep continues with those"
    );
}

#[test]
fn subroutine_join_covers_own_children_and_leaves_rest_to_caller() {
    let mut scene = forked(2);
    scene.take("main", tag(TagName::Call, "AFTER.md", "SUB.md"));
    scene.take("main", fork());
    arrive(&mut scene, join(JoinCondition::All));
    scene.take("main.3", result("the subroutine's"));
    let (joined, _) = over(&scene);
    assert_eq!(joined.tally.count, 1);
    scene.happens(Event::JoinFinished(Box::new(joined)));
    scene.take("main", fork());
    scene.take("main", result("left one behind"));
    assert_eq!(scene.agent("main").unjoined.tally(0).count, 3, "two of its own, one that was left");
}

#[test]
fn joined_children_are_not_awaited_again() {
    let mut scene = forked(1);
    scene.take("main.1", result("one"));
    arrive(&mut scene, join(JoinCondition::All));
    let again = report(&scene, TurnJudgement::JoinDue(Box::new(join(JoinCondition::All))));
    assert_eq!(decide(&scene.run, &again, chosen()), []);
    let (joined, _) = over(&scene);
    scene.happens(Event::JoinFinished(Box::new(joined.clone())));
    assert!(scene.offer(Event::JoinFinished(Box::new(joined))).is_err());
    assert_eq!(decide(&scene.run, &again, chosen()), []);
    scene.take("main", goto("N.md"));
    arrive(&mut scene, join(JoinCondition::All));
    assert_eq!(over(&scene).0.tally, JoinTally::default());
}

#[test]
fn join_count_above_fork_count_is_error() {
    for (forks, words) in [(0, "forked none"), (2, "forked only 2")] {
        let mut scene = if forks == 0 { Scene::begin() } else { forked(forks) };
        arrive(&mut scene, join(JoinCondition::Count(7)));
        let (_, error) = over(&scene);
        let error = error.expect("it fails");
        assert!(error.contains(words) && error.contains("waits for 7"), "{error}");
    }
}
