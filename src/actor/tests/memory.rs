//! Short memory holds turns back before the machine swaps, and never all of them.

use std::rc::Rc;

use super::stage::{Player, Stage, files, says, settings};
use crate::actor::observer::Published;
use crate::actor::runner::LocalFuture;
use crate::domain::run::RunStatus;
use crate::domain::turn::{TurnInput, TurnOutcome};

const WORKFLOW: &[(&str, &str)] = &[("A.md", "go"), ("W.md", "go"), ("X.md", "go")];

/// Returns a player: `main` forks this many workers of two steps each.
fn crowd(workers: u32) -> Rc<Player> {
    Player::new(move |input| {
        let result = match (input.state.as_str(), input.visit) {
            ("A.md", visit) if visit < workers => "<fork next=\"A.md\">W.md</fork>",
            ("W.md", _) => "<goto>X.md</goto>",
            _ => "<result>done</result>",
        };
        slowly(input, result)
    })
}

fn slowly(input: &TurnInput, result: &str) -> LocalFuture<TurnOutcome> {
    let outcome = says(input, result);
    Box::pin(async move {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        outcome
    })
}

#[test]
fn low_memory_runs_one_turn_at_a_time_until_all_complete() {
    let player = crowd(20);
    player.short_of_memory.set(true);
    let outcome = Stage::new().play(settings(8), files(WORKFLOW), &player);
    assert_eq!(outcome.run.status, RunStatus::Completed);
    assert_eq!((outcome.run.finished.len(), player.most.get()), (21, 1));
}

/// Plays a crowd; memory is short from the first to the second of these records.
fn short_between(from: u64, to: u64) -> (Rc<Player>, usize) {
    let player = crowd(40);
    let (machine, stage) = (Rc::clone(&player), Stage::new());
    let look = move |published: &Published| {
        if published.record.seq == from {
            machine.short_of_memory.set(true);
        } else if published.record.seq == to {
            machine.short_of_memory.set(false);
            machine.most.set(0);
        }
    };
    let outcome = stage.play_before(look, settings(8), files(WORKFLOW), &player);
    assert_eq!(outcome.run.status, RunStatus::Completed);
    (player, outcome.run.finished.len())
}

#[test]
fn more_turns_run_after_memory_recovers() {
    let (player, ended) = short_between(1, 30);
    assert_eq!(ended, 41);
    assert!(player.most.get() > 1, "{} at once when there was memory", player.most.get());
    assert!(player.most.get() <= 8);
}

#[test]
fn temporary_memory_shortage_loses_no_agent() {
    for (from, to) in [(2, 3), (20, 60), (50, 51)] {
        let (player, ended) = short_between(from, to);
        assert_eq!((ended, player.turns.borrow().len()), (41, 41 + 80), "from {from} to {to}");
    }
}
