//! Panics of one agent affect no other.
//!
//! Panics in its code, in its turn or while its files are read are noticed, and count as restarts.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::stage::{Played, Player, Stage, ended, files, says, settings};
use crate::domain::event::Event;
use crate::domain::id::{Folder, StateName};
use crate::domain::run::{AgentEnding, RunStatus};
use crate::domain::settings::Settings;
use crate::domain::supervision::SupervisionPolicy;
use crate::domain::turn::FailureCause;
use crate::language::source::{Error, WorkflowSource};

/// `main` forks a worker and does four steps of its own beside it.
const WORKFLOW: &[(&str, &str)] = &[
    ("A.md", "<fork next=\"B.md\" item=\"kept\">W.md</fork>"),
    ("B.md", "<goto>C.md</goto>"),
    ("C.md", "<goto>D.md</goto>"),
    ("D.md", "<result>main is well</result>"),
    ("W.md", "<goto item=\"{{item}}\">X.md</goto>"),
    ("X.md", "<result>{{item}}</result>"),
];

/// The action on a file that springs the trap.
#[derive(Clone, Copy, PartialEq)]
enum On {
    Reading,
    Checking,
}

/// A workflow with one file that makes its reader panic a number of times. An agent that forks another reads that
/// one's first file before it, and is spared.
struct Trap {
    files: BTreeMap<String, String>,
    on: On,
    state: &'static str,
    spared: AtomicU32,
    left: AtomicU32,
}

impl Trap {
    fn new(on: On, state: &'static str, times: u32) -> Self {
        let spared = u32::from(on == On::Reading && state == "W.md");
        Self {
            files: files(WORKFLOW),
            on,
            state,
            spared: AtomicU32::new(spared),
            left: AtomicU32::new(times),
        }
    }

    fn touch(&self, on: On, name: &StateName) {
        let less = |left: u32| left.checked_sub(1);
        let take = |number: &AtomicU32| {
            number.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
        };
        let here = self.on == on && name.as_str() == self.state;
        let springs = here && !take(&self.spared) && take(&self.left);
        assert!(!springs, "the trap of {name} springs");
    }
}

impl WorkflowSource for Trap {
    fn read(&self, name: &StateName) -> Result<String, Error> {
        self.touch(On::Reading, name);
        self.files.read(name)
    }

    fn check(&self, name: &StateName) -> Result<(), Error> {
        self.touch(On::Checking, name);
        self.files.check(name)
    }

    fn within(&self, folder: &Folder) -> Result<std::sync::Arc<dyn WorkflowSource>, Error> {
        self.files.within(folder)
    }

    fn names(&self) -> Result<Vec<StateName>, Error> {
        self.files.names()
    }

    fn path(&self, name: &StateName) -> String {
        self.files.path(name)
    }

    fn document(&self, path: &str) -> Result<String, Error> {
        self.files.document(path)
    }

    fn read_path(&self, path: &str) -> Result<String, Error> {
        self.files.read_path(path)
    }

    fn check_path(&self, path: &str, is_folder: bool) -> Result<(), Error> {
        self.files.check_path(path, is_folder)
    }
}

/// Returns the causes of an agent's failed turns; each is a restart of the same turn.
fn restarts(outcome: &Played, agent: &str) -> Vec<FailureCause> {
    let failed = outcome.about(agent).into_iter().filter_map(|event| match event {
        Event::TurnFailed(failed) => Some(failed),
        _ => None,
    });
    failed
        .map(|failed| {
            assert!(failed.counts && failed.session.is_none(), "{failed:?}");
            failed.cause
        })
        .collect()
}

/// Asserts that the worker did its work after `times` panics, and that `main` never noticed.
fn assert_recovered(outcome: &Played, times: usize) {
    assert_eq!(outcome.run.status, RunStatus::Completed, "{:?}", outcome.run.finished);
    assert_eq!(restarts(outcome, "main.1"), vec![FailureCause::Panic; times]);
    assert_eq!(outcome.endings()["main.1"], &ended("kept"), "its variables were in its state");
    assert_untouched(outcome);
}

/// Asserts that the worker failed after so many restarts, and that `main` never noticed.
fn assert_given_up(outcome: &Played, state: &str, restarts_before: usize) {
    assert_eq!(outcome.run.status, RunStatus::Failed);
    assert_eq!(restarts(outcome, "main.1"), vec![FailureCause::Panic; restarts_before]);
    let Some(Event::AgentFailed(failed)) = outcome.about("main.1").last() else {
        panic!("main.1 did not fail: {:?}", outcome.run.finished)
    };
    assert_eq!((failed.cause, failed.state.as_str()), (FailureCause::Panic, state));
    let AgentEnding::Error(error) = outcome.endings()["main.1"] else {
        panic!("main.1 ended well")
    };
    assert!(error.starts_with(&format!("in {state}: the runtime failed")), "{error}");
    assert!(error.contains(&format!("restarted {restarts_before} times")), "{error}");
    assert_untouched(outcome);
}

fn assert_untouched(outcome: &Played) {
    let about_main = outcome.about("main");
    assert!(about_main.iter().all(|event| matches!(event, Event::StepFinished(_))));
    assert_eq!(about_main.len(), 4);
    assert_eq!(outcome.endings()["main"], &ended("main is well"));
}

fn patient(max_restarts: u32) -> Settings {
    let settings = settings(1);
    Settings { supervision: SupervisionPolicy { max_restarts, ..settings.supervision }, ..settings }
}

#[test]
fn agent_panicking_before_turn_restarts_in_same_state() {
    for times in [1, 2, 3] {
        for state in ["W.md", "X.md"] {
            let trap = Trap::new(On::Reading, state, times);
            let outcome = Stage::new().play(patient(3), trap, &Player::echo());
            assert_recovered(&outcome, times as usize);
        }
    }
}

#[test]
fn always_panicking_agent_fails_with_its_error() {
    let trap = Trap::new(On::Reading, "W.md", u32::MAX);
    let stage = Stage::new();
    let outcome = stage.play(patient(2), trap, &Player::echo());
    assert_given_up(&outcome, "W.md", 2);
    assert!(stage.registry.is_empty());
    assert_eq!(stage.stored(), outcome.run);
}

#[test]
fn agent_panicking_on_reply_repeats_same_turn() {
    let player = Player::echo();
    let trap = Trap::new(On::Checking, "X.md", 1);
    let outcome = Stage::new().play(patient(3), trap, &player);
    assert_recovered(&outcome, 1);
    let turns = player.turns.borrow();
    let worker: Vec<_> = turns.iter().filter(|input| input.state.as_str() == "W.md").collect();
    assert_eq!(worker.len(), 2);
    assert_eq!(worker[0], worker[1], "the runner can give the outcome it has already");
}

/// Returns a player that panics over the first `times` turns of a state, at once or in the turn's future.
fn clumsy(state: &'static str, times: u32, at_once: bool) -> Rc<Player> {
    let left = Cell::new(times);
    Player::new(move |input| {
        let falls = input.state.as_str() == state && left.get() > 0;
        if falls {
            left.set(left.get() - 1);
            assert!(!at_once, "the turn does not even begin");
        }
        let outcome = says(input, &input.prompt);
        Box::pin(async move {
            tokio::task::yield_now().await;
            assert!(!falls, "the turn falls over");
            outcome
        })
    })
}

#[test]
fn panicking_turn_is_retried() {
    for at_once in [false, true] {
        for times in [1, 3] {
            let player = clumsy("W.md", times, at_once);
            let outcome = Stage::new().play(patient(3), files(WORKFLOW), &player);
            assert_recovered(&outcome, times as usize);
        }
    }
}

#[test]
fn always_panicking_turn_fails_its_agent() {
    for at_once in [false, true] {
        let player = clumsy("X.md", u32::MAX, at_once);
        let outcome = Stage::new().play(patient(3), files(WORKFLOW), &player);
        assert_given_up(&outcome, "X.md", 3);
    }
}
