//! The sizes of the measurements: the full ones, and smaller ones for a quick look.

use std::time::Duration;

/// The sizes of all figures.
#[derive(Debug)]
pub(crate) struct Scale {
    /// The number of pairs of the floor and raymond.
    pub(crate) rounds: usize,
    /// The number of steps in a round, over all agents.
    pub(crate) steps: usize,
    /// The numbers of agents that run at the same time, one for each row.
    pub(crate) agents: &'static [usize],
    /// The time after which no further round of a row begins, once there was one.
    pub(crate) row_limit: Duration,
    /// The time after which a process is killed.
    pub(crate) limit: Duration,
    /// The number of live agents.
    pub(crate) live: usize,
    /// The number of steps in one window, while the live agents are observed.
    pub(crate) window: usize,
    /// The number of windows.
    pub(crate) windows: usize,
    /// The number of times that the raymond of the live agents is killed.
    pub(crate) kills: usize,
    /// The numbers of agents that one parent forks, and of rounds, one pair for each row.
    pub(crate) forks: &'static [(usize, usize)],
    /// The number of agents that one tag forks.
    pub(crate) fan_out: usize,
    /// The number of nodes of a graph that a run executes.
    pub(crate) nodes: u32,
    /// The number of turns in a conversation.
    pub(crate) turns: usize,
    /// The number of facts that come from outside the conversation.
    pub(crate) facts: usize,
    /// The number of processes that are started one after another to measure the rate.
    pub(crate) spawns: usize,
    /// The length of the text for the tag finder, in bytes.
    pub(crate) text: usize,
    /// The length of the stream, in bytes.
    pub(crate) stream: usize,
    /// The number of repetitions of a measurement inside this process.
    pub(crate) repeats: usize,
}

impl Scale {
    /// Returns the sizes that take less than eight minutes.
    pub(crate) fn full() -> Self {
        Self {
            rounds: 7,
            steps: 1_000,
            agents: &[1, 16],
            row_limit: Duration::from_secs(20),
            limit: Duration::from_secs(30),
            live: 10_000,
            window: 4_000,
            windows: 7,
            kills: 5,
            forks: &[(1_000, 3), (10_000, 1)],
            fan_out: 10_000,
            nodes: 200_000,
            turns: 10_000,
            facts: 10_000,
            spawns: 500,
            text: 5_000_000,
            stream: 100_000_000,
            repeats: 7,
        }
    }

    /// Returns the sizes that take less than two minutes.
    pub(crate) fn quick() -> Self {
        Self {
            rounds: 5,
            steps: 200,
            row_limit: Duration::from_secs(3),
            limit: Duration::from_secs(8),
            window: 1_000,
            windows: 3,
            kills: 2,
            forks: &[(200, 2), (1_000, 1)],
            fan_out: 2_000,
            turns: 2_000,
            spawns: 100,
            repeats: 2,
            ..Self::full()
        }
    }
    /// Returns the same sizes with other rounds, each of which may take longer.
    pub(crate) fn longer(&self, rounds: usize) -> Self {
        Self { rounds, limit: self.limit * 4, ..*self }
    }
}
