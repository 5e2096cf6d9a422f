//! The ends that a case expects of its run.

use strum::{Display, VariantArray};

/// The end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ExpectedStatus {
    /// All agents have ended well.
    Completed,
    /// An agent has failed.
    Failed,
    /// It is paused, and can be resumed.
    Paused,
    /// It waits for an answer, a signal or a person.
    Waiting,
}

impl ExpectedStatus {
    /// All ends.
    pub const ALL: &'static [Self] = Self::VARIANTS;
}
