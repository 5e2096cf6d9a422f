//! The turns of a worker that cost nothing and have no answer yet. While they wait for a slot, whoever ends them tells them here.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use tokio::sync::oneshot;

use crate::domain::id::{AgentId, RunId};

/// A turn that waits.
struct WaitingTurn {
    run: RunId,
    agent: AgentId,
    /// `None` once it was told.
    end: Option<oneshot::Sender<()>>,
}

/// The turns, by their numbers.
#[derive(Default)]
pub(super) struct WaitingTurns {
    turns: RefCell<HashMap<u64, WaitingTurn>>,
    next: Cell<u64>,
}

/// The place of a turn among those that wait, which it leaves when this is dropped.
pub(super) struct WaitingPlace<'w> {
    turns: &'w WaitingTurns,
    number: u64,
    end: oneshot::Receiver<()>,
}

impl WaitingTurns {
    /// Adds a turn of an agent.
    pub(super) fn enter(&self, run: &RunId, agent: &AgentId) -> WaitingPlace<'_> {
        let number = self.next.get();
        self.next.set(number + 1);
        let (end, ended) = oneshot::channel();
        let turn = WaitingTurn { run: run.clone(), agent: agent.clone(), end: Some(end) };
        self.turns.borrow_mut().insert(number, turn);
        WaitingPlace { turns: self, number, end: ended }
    }

    /// Ends the turns of a run, or of one of its agents.
    pub(super) fn end(&self, run: &RunId, agent: Option<&AgentId>) {
        self.end_those(|turn| turn.run == *run && agent.is_none_or(|agent| turn.agent == *agent));
    }

    /// Ends all turns.
    pub(super) fn end_all(&self) {
        self.end_those(|_| true);
    }

    /// Returns whether each has an answer, or was left to another worker.
    pub(super) fn is_empty(&self) -> bool {
        self.turns.borrow().is_empty()
    }

    fn end_those(&self, is_meant: impl Fn(&WaitingTurn) -> bool) {
        for turn in self.turns.borrow_mut().values_mut().filter(|turn| is_meant(turn)) {
            // One that has a slot by now does not listen any more.
            let _ = turn.end.take().map(|end| end.send(()));
        }
    }
}

impl WaitingPlace<'_> {
    /// Waits until the turn is ended.
    pub(super) async fn ended(&mut self) {
        let _ = (&mut self.end).await;
    }
}

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        self.turns.turns.borrow_mut().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_ended_by_run_and_agent_unless_they_have_left() {
        let turns = WaitingTurns::default();
        let run = |name: &str| RunId::parse(name).expect("an id");
        let main = AgentId::main();
        let mut first = turns.enter(&run("a"), &main);
        let mut second = turns.enter(&run("b"), &main);
        drop(turns.enter(&run("a"), &main));
        turns.end(&run("a"), Some(&main));
        turns.end(&run("c"), None);
        assert_eq!(first.end.try_recv(), Ok(()));
        assert_eq!(second.end.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        turns.end_all();
        assert_eq!(second.end.try_recv(), Ok(()));
        assert!(!turns.is_empty(), "they have no answer yet");
        drop((first, second));
        assert!(turns.is_empty());
    }
}
