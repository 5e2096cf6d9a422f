//! How much is measured: enough to be believed, or just enough to be seen.

use std::time::Duration;

/// The sizes of all figures.
#[derive(Debug)]
pub(crate) struct Scale {
    /// How often floor and raymond take turns.
    pub(crate) rounds: usize,
    /// How many steps a round has, over all agents.
    pub(crate) steps: usize,
    /// How many agents run at the same time, one row each.
    pub(crate) agents: &'static [usize],
    /// After this no further round of a row begins, once there was one.
    pub(crate) patience: Duration,
    /// After this a process is given up.
    pub(crate) limit: Duration,
    /// How many agents live at the same time.
    pub(crate) live: usize,
    /// How many steps the live agents are watched for at a time.
    pub(crate) window: usize,
    /// How often they are watched.
    pub(crate) windows: usize,
    /// How often their raymond is killed.
    pub(crate) kills: usize,
    /// How many agents one parent forks, and in how many rounds, one row each.
    pub(crate) forks: &'static [(usize, usize)],
    /// How many agents one tag forks.
    pub(crate) fan_out: usize,
    /// How many nodes of a graph are executed in a run.
    pub(crate) nodes: u32,
    /// How many turns a conversation has.
    pub(crate) turns: usize,
    /// How many facts there are that nobody in it has asserted.
    pub(crate) facts: usize,
    /// How many processes are started in a row to see how fast that goes.
    pub(crate) spawns: usize,
    /// How long the text for the tag finder is, in bytes.
    pub(crate) text: usize,
    /// How long the stream is, in bytes.
    pub(crate) stream: usize,
    /// How often what runs in this process is repeated.
    pub(crate) repeats: usize,
}

impl Scale {
    /// Less than eight minutes.
    pub(crate) fn full() -> Self {
        Self {
            rounds: 7,
            steps: 1_000,
            agents: &[1, 16],
            patience: Duration::from_secs(20),
            limit: Duration::from_secs(30),
            live: 10_000,
            window: 4_000,
            windows: 7,
            kills: 5,
            forks: &[(1_000, 3), (5_000, 1)],
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

    /// Less than two minutes.
    pub(crate) fn quick() -> Self {
        Self {
            rounds: 5,
            steps: 200,
            patience: Duration::from_secs(3),
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
    /// For rounds that are fewer, but each of them longer.
    pub(crate) fn longer(&self, rounds: usize) -> Self {
        Self { rounds, limit: self.limit * 4, ..*self }
    }
}
