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
    /// How many agents live at the same time when Claude Code is played by the fake.
    pub(crate) live: usize,
    /// And when the replies are scripted, one row each.
    pub(crate) live_scripted: &'static [usize],
    /// How long the text for the tag finder is, in bytes.
    pub(crate) text: usize,
    /// How long the stream is, in bytes.
    pub(crate) stream: usize,
    /// How often what runs in this process is repeated.
    pub(crate) repeats: usize,
}

impl Scale {
    /// Less than three minutes.
    pub(crate) fn full() -> Self {
        Self {
            rounds: 7,
            steps: 1_000,
            agents: &[1, 8],
            patience: Duration::from_secs(25),
            limit: Duration::from_secs(30),
            live: 1_000,
            live_scripted: &[1_000, 10_000],
            text: 5_000_000,
            stream: 100_000_000,
            repeats: 7,
        }
    }

    /// Less than half a minute.
    pub(crate) fn quick() -> Self {
        Self {
            rounds: 5,
            steps: 200,
            patience: Duration::from_secs(3),
            limit: Duration::from_secs(8),
            live: 200,
            live_scripted: &[1_000],
            stream: 50_000_000,
            repeats: 2,
            ..Self::full()
        }
    }
}
