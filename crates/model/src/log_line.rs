//! A line of a log that several machines share.

/// A line of a log: a record of a run, or a change of a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Its number, from 1 without gaps.
    pub seq: u64,
    /// Its text, without a line break.
    pub text: String,
}
