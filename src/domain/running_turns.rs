//! The turns that run, as a check of the budget looks at them.

use super::id::{AgentId, StateName};

/// A turn that runs, or is to run: its agent and its state.
pub type RunningTurn<'turn> = (&'turn AgentId, &'turn StateName);

/// The turns that run.
///
/// The budget of a run asks only how many there are in each state, so it need not look at each of them.
pub trait RunningTurns<'turn> {
    /// Returns the number of turns by their state; a state may occur more than once.
    fn by_state(&self) -> impl Iterator<Item = (&'turn StateName, usize)> + Clone;

    /// Returns each turn.
    fn each(&self) -> impl Iterator<Item = RunningTurn<'turn>> + Clone;
}

impl<'turn, I: Iterator<Item = RunningTurn<'turn>> + Clone> RunningTurns<'turn> for I {
    fn by_state(&self) -> impl Iterator<Item = (&'turn StateName, usize)> + Clone {
        self.clone().map(|(_, state)| (state, 1))
    }

    fn each(&self) -> impl Iterator<Item = RunningTurn<'turn>> + Clone {
        self.clone()
    }
}
