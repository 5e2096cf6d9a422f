//! Appends a value behind those of a fact that nobody has taken yet.

use super::entry::{LoggedChange, ProvenFact};
use super::fact_file::{FactFile, LaterValue};
use super::writer::FactDecision;
use super::{Dataspace, FACT, FactStatement, name};
use crate::domain::fact::Fact;
use crate::store::Error;

/// The outcome of appending a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendOutcome {
    /// The fact that holds now.
    pub fact: Fact,
    /// The number of the values before the appended one.
    pub before: usize,
}

impl Dataspace {
    /// Appends a value to a fact: it holds once the values before it are taken. It is durable when this returns.
    ///
    /// # Errors
    /// [`Error::Unfit`] for values that cannot be a fact, or if too many wait; [`Error::Io`].
    pub fn append(&self, what: FactStatement) -> Result<AppendOutcome, Error> {
        let FactStatement { label, key, value, source, at } = what;
        let path = self.fact(label, key)?;
        name::check_value(label, key, value)?;
        self.carry_out(|writer| {
            let (value, source, seq) = (value.to_owned(), source.to_owned(), writer.log.next);
            let file = if let Ok(held) = self.proven(&path)? {
                held.value.followed_by(LaterValue { value, seq, source, at })?
            } else {
                let (label, key) = (label.to_owned(), key.to_owned());
                FactFile { label, key, value, seq, source, at, later: Vec::new() }
            };
            let outcome = AppendOutcome { fact: file.fact(), before: file.later.len() };
            let fact = ProvenFact::new(file, self.key.as_ref(), FACT)
                .map_err(std::io::Error::other)
                .map_err(Error::io("write", &path))?;
            let change = LoggedChange::Asserted { fact, step: None };
            Ok(FactDecision::change(label, key, change, outcome))
        })
    }
}
