//! The facts that several machines share, as the dataspace of one machine uses them.
//!
//! The log of their changes is elsewhere, and is the truth. Each machine makes its dataspace a copy of it.

use std::fmt::Debug;

use super::Error;

/// A change of a shared fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedChange {
    /// Its number, from 1 without gaps.
    pub number: u64,
    /// Its text.
    pub text: String,
}

/// The log of the changes of shared facts.
pub trait SharedFacts: Debug + Send + Sync {
    /// Returns the name of what has the log, without a password.
    fn name(&self) -> String;

    /// Returns changes after the one with the number `after`, at most `limit` of them, in order.
    ///
    /// # Errors
    /// [`Error::Unreached`] if the same call may succeed later, [`Error::Engine`].
    fn changes(&self, after: u64, limit: usize) -> Result<Vec<NumberedChange>, Error>;

    /// Appends a change if `after` is the number of the last one; returns false if it is not.
    ///
    /// # Errors
    /// [`Error::Unreached`] if it is unknown whether the change was appended, [`Error::Engine`].
    fn append(&self, after: u64, text: &str) -> Result<bool, Error>;
}
