//! Limits on turns besides the journal: permits in a burst, a throttled API, a usage limit.

use std::cell::Cell;
use std::rc::Rc;

use super::stage::{Player, Stage, ended, files, says, settings};
use crate::actor::context::now;
use crate::actor::runner::LocalFuture;
use crate::domain::event::Event;
use crate::domain::run::{PauseReason, RunStatus};
use crate::domain::settings::{OnLimit, Settings};
use crate::domain::supervision::SupervisionPolicy;
use crate::domain::turn::{FailureCause, TurnFailure, TurnInput, TurnOutcome};
use crate::store::view;

/// The texts are of no account: a [`forester`] answers.
const WORKFLOW: &[(&str, &str)] = &[("A.md", "go"), ("P.md", "go"), ("W.md", "go")];

/// Returns a script: `main` forks parents, each parent forks workers, and every worker ends at once.
fn forester(parents: u32, workers: u32) -> impl Fn(&TurnInput) -> String {
    move |input| {
        match (input.state.as_str(), input.visit) {
            ("A.md", visit) if visit < parents => "<fork next=\"A.md\">P.md</fork>",
            ("P.md", visit) if visit < workers => "<fork next=\"P.md\">W.md</fork>",
            _ => "<result>done</result>",
        }
        .to_owned()
    }
}

/// Returns an outcome that lets others have their turn first.
fn slowly(outcome: TurnOutcome) -> LocalFuture<TurnOutcome> {
    Box::pin(async move {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        outcome
    })
}

fn steadfast(max_procs: usize) -> Settings {
    let settings = settings(max_procs);
    let supervision = SupervisionPolicy { max_restarts: 0, ..settings.supervision };
    Settings { supervision, ..settings }
}

#[test]
fn ten_thousand_forks_do_not_exceed_permits() {
    const PERMITS: usize = 7;
    let says_what = forester(100, 100);
    let player = Player::new(move |input| slowly(says(input, &says_what(input))));
    let outcome = Stage::new().play(steadfast(PERMITS), files(WORKFLOW), &player);
    assert_eq!(outcome.run.status, RunStatus::Completed);
    assert_eq!(outcome.run.finished.len(), 1 + 100 + 10_000);
    assert_eq!(player.turns.borrow().len(), 101 + 100 * 101 + 10_000);
    assert_eq!(player.most.get(), PERMITS);
}

#[test]
fn single_permit_serves_thousand_agents_in_order() {
    let says_what = forester(1, 1000);
    let player = Player::new(move |input| slowly(says(input, &says_what(input))));
    Stage::new().play(steadfast(1), files(WORKFLOW), &player);
    assert_eq!(player.most.get(), 1);
    let turns = player.turns.borrow();
    let workers = turns.iter().filter(|input| input.state.as_str() == "W.md");
    let order: Vec<u32> = workers
        .map(|input| input.turn.agent.as_str().rsplit('.').next().expect("a number"))
        .map(|number| number.parse().expect("a number"))
        .collect();
    assert_eq!(order, (1..=1000).collect::<Vec<_>>());
}

/// Returns a player whose workers meet `failure` at their first turn.
fn workers_meet(workers: u32, failure: impl Fn() -> TurnFailure + 'static) -> Rc<Player> {
    let says_what = forester(1, workers);
    Player::new(move |input| {
        let first = input.turn.turn == 0 && input.state.as_str() == "W.md";
        let answer = says(input, &says_what(input));
        slowly(if first { TurnOutcome::Failed(failure()) } else { answer })
    })
}

#[test]
fn throttle_lowers_concurrency() {
    let throttled = || TurnFailure::new(FailureCause::Throttle, "slow down");
    let player = workers_meet(12, throttled);
    let settings = steadfast(64);
    let again = Rc::new(Cell::new(0_usize));
    let (seen, at_work) = (Rc::clone(&again), Rc::clone(&player));
    let look = move |published: &crate::actor::observer::Published| {
        if matches!(published.record.event, Event::TurnFailed(_)) {
            seen.set(seen.get() + 1);
            at_work.most.set(0);
        }
    };
    let outcome = Stage::new().play_before(look, settings, files(WORKFLOW), &player);
    assert_eq!((outcome.run.status, again.get()), (RunStatus::Completed, 12));
    assert!(player.most.get() <= 8, "{} at once after the last refusal", player.most.get());
}

/// Eight workers of fifty steps each, one of which is refused once.
#[test]
fn concurrency_recovers_after_throttle() {
    let player = Player::new(|input| {
        let answer = match (input.state.as_str(), input.visit) {
            ("A.md", visit) if visit < 8 => "<fork next=\"A.md\">W.md</fork>",
            ("W.md", visit) if visit < 50 => "<goto>W.md</goto>",
            _ => "<result>done</result>",
        };
        let refused = input.turn.agent.as_str() == "main.3" && input.turn.step == 10;
        let answer = says(input, answer);
        let slow_down = TurnOutcome::Failed(TurnFailure::new(FailureCause::Throttle, "slow down"));
        slowly(if refused && input.turn.turn == 0 { slow_down } else { answer })
    });
    let (steps, at_work) = (Rc::new(Cell::new(0_u32)), Rc::clone(&player));
    let look = move |published: &crate::actor::observer::Published| {
        let refused = matches!(published.record.event, Event::TurnFailed(_));
        if refused || steps.get() > 0 {
            steps.set(steps.get() + 1);
        }
        if steps.get() == 20 {
            at_work.most.set(0);
        }
    };
    let outcome = Stage::new().play_before(look, steadfast(8), files(WORKFLOW), &player);
    assert_eq!(outcome.run.status, RunStatus::Completed);
    assert!(player.most.get() > 4, "{} at once in the end", player.most.get());
}

/// Returns a usage limit that resets in a moment.
fn limit() -> TurnFailure {
    TurnFailure {
        resets: Some(now().plus(100)),
        ..TurnFailure::new(FailureCause::UsageLimit, "no more")
    }
}

#[test]
fn no_turn_starts_during_usage_limit() {
    let stage = Stage::new();
    let root = stage.root.clone();
    let says_what = forester(1, 8);
    let player = Player::new(move |input| {
        let run = view::load_view(&root, &Stage::id()).expect("a readable run").run;
        assert_eq!(run.limited(now()), None, "{} begins too early", input.turn);
        let first = input.turn.turn == 0 && input.state.as_str() == "W.md";
        let answer = says(input, &says_what(input));
        slowly(if first { TurnOutcome::Failed(limit()) } else { answer })
    });
    let outcome = stage.play(steadfast(4), files(WORKFLOW), &player);
    assert_eq!(outcome.run.status, RunStatus::Completed, "{:?}", outcome.run.finished);
    let events = || outcome.records.iter().map(|record| &record.event);
    assert!(events().any(|event| matches!(event, Event::LimitReached { .. })));
    let failed = events().filter(|event| matches!(event, Event::TurnFailed(_)));
    assert_eq!(failed.count(), 8);
    assert!(outcome.run.finished.iter().all(|agent| agent.ending == ended("done")));
}

#[test]
fn usage_limit_pauses_run_if_on_limit_is_pause() {
    let player = workers_meet(3, limit);
    let settings = Settings { on_limit: OnLimit::Pause, ..steadfast(8) };
    let stage = Stage::new();
    let outcome = stage.play(settings, files(WORKFLOW), &player);
    assert!(matches!(outcome.run.pause, Some(PauseReason::UsageLimit { .. })), "{:?}", outcome.run);
    assert!(!outcome.run.agents.is_empty());
    assert_eq!(stage.stored(), outcome.run);
}

#[test]
fn usage_limit_fails_only_affected_agents_if_on_limit_is_fail() {
    let player = workers_meet(3, limit);
    let settings = Settings { on_limit: OnLimit::Fail, ..steadfast(8) };
    let outcome = Stage::new().play(settings, files(WORKFLOW), &player);
    assert_eq!(outcome.run.status, RunStatus::Failed);
    let endings = outcome.endings();
    assert_eq!((endings["main"], endings["main.1"]), (&ended("done"), &ended("done")));
    assert_eq!(outcome.run.finished.iter().filter(|agent| agent.cause.is_some()).count(), 3);
}

/// Two parents fork at the same pace, one of them ten times as many.
#[test]
fn small_family_is_not_delayed_by_large_family() {
    let player = Player::new(move |input| {
        let parents = if input.turn.agent.as_str() == "main" { 2 } else { 0 };
        let workers = if input.turn.agent.as_str() == "main.1" { 100 } else { 10 };
        slowly(says(input, &forester(parents, workers)(input)))
    });
    let outcome = Stage::new().play(steadfast(2), files(WORKFLOW), &player);
    assert_eq!(outcome.run.finished.len(), 1 + 2 + 100 + 10);
    let turns = player.turns.borrow();
    let workers: Vec<&str> = turns
        .iter()
        .filter(|input| input.state.as_str() == "W.md")
        .map(|input| input.turn.agent.as_str())
        .collect();
    let last = workers.iter().rposition(|id| id.starts_with("main.2.")).expect("its workers");
    assert!(last < 40, "the last of the small family was number {last} to be served");
}
